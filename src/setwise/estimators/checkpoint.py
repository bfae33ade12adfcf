"""Solutions on disk: the last one of a fit, and those of a search, so that both can go on."""

from __future__ import annotations

import io
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from setwise.archives import refuse_large_arrays
from setwise.atomic_write import write_whole
from setwise.estimators.design import Array, Solution
from setwise.files import DataError
from setwise.run_folder import begun_in

# Seconds between two writings.
BETWEEN = 10.0
ARRAYS = ("coef", "intercept", "parameters")
# How a fit has ended.
END = ("value", "gradient_norm", "n_iter")


@dataclass(frozen=True)
class Lasting:
    """The path of a checkpoint that stays when the fit has ended, for who saves the model."""

    path: Path

    def __fspath__(self) -> str:
        return os.fspath(self.path)


@dataclass
class Checkpoint:
    """A file with the best solution so far, written now and then, and whole or not at all.

    Weights are those of the plain features; ``unit`` are those that the solver has them in. A fit
    of other shapes does not begin there, one of the same shapes ends where it would have ended, as
    far as its tolerance tells. With a ``key`` it is of a search that is known to be the same: what
    has ended there under that key is taken as it is.
    """

    path: Path
    unit: Array
    key: str = ""
    lasts: bool = False
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
        return cls(file, unit, lasts=isinstance(path, Lasting))

    def last(self) -> Solution | None:
        """The solution that an earlier fit has left, if there is one."""
        if not self.path.exists():
            return None
        try:
            refuse_large_arrays(self.path)
            with np.load(self.path, allow_pickle=False) as kept:
                coef, intercept, parameters = (kept[name].astype(np.float64) for name in ARRAYS)
                ended = [kept[name].item() for name in END]
                other = str(kept["key"]) != self.key
            if other or coef.shape[0] != len(self.unit) or coef.shape[1:] != intercept.shape:
                return None
        except DataError:
            raise
        except Exception as error:
            reason = f"damaged, or no checkpoint of a fit: {error}; remove it to begin anew"
            raise DataError(self.path, None, reason) from error
        return Solution(coef * self.unit[:, None], intercept, parameters, *ended)

    def ended(self) -> Solution | None:
        """The solution of a search's fit that has ended already."""
        last = self.last() if self.key else None
        return None if last is None or last.n_iter < 0 else last

    def keep(self, solution: Solution, at_once: bool = False, has_ended: bool = False) -> None:
        """Write a solution, if the last writing was long ago."""
        if not at_once and time.monotonic() - self.written < BETWEEN:
            return
        coef = solution.weights / self.unit[:, None]
        arrays = dict(zip(ARRAYS, (coef, solution.intercept, solution.parameters), strict=True))
        end = solution.value, solution.gradient_norm, solution.n_iter if has_ended else -1
        file = io.BytesIO()
        np.savez(file, key=np.array(self.key), **dict(zip(END, end, strict=True)), **arrays)
        write_whole(self.path, file.getvalue())
        self.written = time.monotonic()

    def done(self) -> None:
        """The fit has ended, and so has what was made of it: nothing is left to go on from."""
        if not self.lasts:
            remove(self.path)


@dataclass
class Checkpoints:
    """Those of the fits of a search, in the order in which it makes them."""

    folder: Path
    count: int = 0

    def next(self, key: str, n_features: int) -> Checkpoint:
        """That of the next fit; ``key`` tells it from others that could have come in its place."""
        self.count += 1
        return Checkpoint(self.folder / f"{self.count:04}.npz", np.ones(n_features), key or "-")


@contextmanager
def checkpoints_in(
    folder: Any, identity: Callable[[], Mapping[str, Any]]
) -> Iterator[Checkpoints | None]:
    """The checkpoints of a search in a folder, which is gone once the search has ended."""
    if folder is None:
        yield None
        return
    place = Path(os.fspath(folder))
    with begun_in(place, identity(), "search"):
        yield Checkpoints(place)
    if not isinstance(folder, Lasting):
        remove(place)


def remove(checkpoint: Path) -> None:
    """Remove a checkpoint, the file of a fit or the folder of a search, if it is there."""
    if not checkpoint.is_dir():
        checkpoint.unlink(missing_ok=True)
        return
    for file in (*checkpoint.glob("*.npz"), checkpoint / "search.json"):
        file.unlink(missing_ok=True)
    with suppress(OSError):
        checkpoint.rmdir()
