"""The last solution of a fit on disk, from which an interrupted one goes on."""

from __future__ import annotations

import io
import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from setwise.archives import refuse_large_arrays
from setwise.atomic_write import write_whole
from setwise.estimators.design import Array, Solution
from setwise.files import DataError

# Seconds between two writings.
BETWEEN = 10.0
ARRAYS = ("coef", "intercept", "parameters")


@dataclass
class Checkpoint:
    """A file with the best solution so far, written now and then, and whole or not at all.

    Weights are those of the plain features; ``unit`` are those that the solver has them in. A fit
    of other shapes does not begin there, one of the same shapes ends where it would have ended, as
    far as its tolerance tells.
    """

    path: Path
    unit: Array
    written: float = field(default_factory=time.monotonic)

    @classmethod
    def at(cls, path: Any, unit: Array) -> Checkpoint | None:
        """At a path, or nowhere."""
        if path is None:
            return None
        file = Path(os.fspath(path))
        if file.is_dir() or not file.parent.is_dir():
            # (Else it would be found out when something is to be kept, and be lost.)
            reason = "a checkpoint must be a file in a folder that is there"
            raise DataError(file, None, reason)
        return cls(file, unit)

    def last(self) -> Solution | None:
        """The solution that an earlier fit has left, if there is one."""
        if not self.path.exists():
            return None
        try:
            refuse_large_arrays(self.path)
            with np.load(self.path, allow_pickle=False) as kept:
                coef, intercept, parameters = (kept[name].astype(np.float64) for name in ARRAYS)
            if coef.shape[0] != len(self.unit) or coef.shape[1:] != intercept.shape:
                return None
        except DataError:
            raise
        except Exception as error:
            reason = f"damaged, or no checkpoint of a fit: {error}; remove it to begin anew"
            raise DataError(self.path, None, reason) from error
        return Solution(coef * self.unit[:, None], intercept, parameters)

    def keep(self, solution: Solution, at_once: bool = False) -> None:
        """Write a solution, if the last writing was long ago."""
        if not at_once and time.monotonic() - self.written < BETWEEN:
            return
        coef = solution.weights / self.unit[:, None]
        arrays = dict(zip(ARRAYS, (coef, solution.intercept, solution.parameters), strict=True))
        file = io.BytesIO()
        np.savez(file, **arrays)
        write_whole(self.path, file.getvalue())
        self.written = time.monotonic()

    def done(self) -> None:
        """The fit has ended: nothing is left to go on from."""
        self.path.unlink(missing_ok=True)
