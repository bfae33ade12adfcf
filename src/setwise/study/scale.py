"""Tree distance in the units of its lengths, of which its loss is a share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from setwise.targets import TreeDistance


@dataclass(frozen=True)
class Scale:
    """What a loss of 1 is in units of length.

    Attributes
    ----------
    whole : float
        The length of all edges, or what else counts as loss 1.
    unit : str
        "edges" where all lengths are 1, else "units of length".
    lengths : sequence of float or None
        Of the edge of each label; None in studies stored before they were.

    Examples
    --------
    >>> Scale.of(TreeDistance([-1, 0, 0])).said(0.5)
    '1.5 edges'
    """

    whole: float
    unit: str
    lengths: Sequence[float] | None = field(default=None, compare=False, repr=False)

    @classmethod
    def of(cls, target: Any) -> Scale | None:
        """Of a tree distance; None for another target."""
        if not isinstance(target, TreeDistance):
            return None
        whole = target.lengths.sum() if target.largest is None else target.largest
        return cls(float(whole), unit_of(target.lengths), tuple(target.lengths.tolist()))

    def distance(self, loss: float) -> float:
        """A mean loss as a mean distance."""
        return loss * self.whole

    def said(self, loss: float) -> str:
        """The same in words."""
        return said(self.distance(loss), self.unit)


def unit_of(lengths: Any) -> str:
    """What distances are counted in."""
    return "edges" if (np.asarray(lengths) == 1.0).all() else "units of length"


def said(distance: float, unit: str) -> str:
    """A distance with its unit."""
    return f"{distance:.4g} {unit}"
