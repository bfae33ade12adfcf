"""Which way of computing fits a target and a space, or why none does."""

from __future__ import annotations

import numpy as np

from setwise.spaces.additive import AdditiveMean
from setwise.spaces.cube import Cube
from setwise.spaces.expectation import FEW, LISTABLE, Expectation, Tempered
from setwise.spaces.forest import Forest
from setwise.spaces.hierarchy import HierarchyMoments, law_of
from setwise.spaces.listed import ListedMean
from setwise.spaces.listing import Listing
from setwise.spaces.paths import Paths
from setwise.spaces.sized import Sized
from setwise.spaces.space import Space
from setwise.spaces.subset import SubsetMoments
from setwise.targets.measure import Table
from setwise.targets.registry import get_target
from setwise.targets.target import Target


def expectation(target: Target | str, space: Space) -> Expectation:
    """The exact moments of a target on a space; refused where there is no exact way.

    Parameters
    ----------
    target : Target or str
        What a prediction is judged by.
    space : Space
        The label sets that may be predicted.

    Examples
    --------
    >>> import numpy as np
    >>> pair = Cube(2).expectation("f1")
    >>> pair.moment(np.zeros((1, 2)), np.array([[1, 0]], dtype=np.uint8), q=1.0).value.round(3)
    array([0.417])
    """
    if not isinstance(space, Space):
        raise ValueError(f"a space is an object such as Cube(10), but this is {space!r}")
    target = get_target(target).on(space)
    if target.form in ("additive", "subset") and law_of(space) is not None:
        assert isinstance(space, Forest | Paths)
        way = HierarchyMoments if target.form == "additive" else SubsetMoments
        return way(target, space)
    if isinstance(space, Listing):
        _refuse_unlisted(target, space)
        return Tempered(target, ListedMean(target, space))
    exact = _structured(target, space)
    if exact is not None:
        return exact
    if space.log_size <= np.log(LISTABLE) + 1e-9:
        _refuse_unlisted(target, space)
        return Tempered(target, ListedMean(target, space))
    raise ValueError(
        f"{target} (a {target.form} target) has no exact expectation on {space}: it would need "
        f"all e^{space.log_size:.0f} label sets. Use {_alternatives(target, space)}"
    )


def _structured(target: Target, space: Space) -> Expectation | None:
    """The way that uses the structure of the space, if there is one."""
    if isinstance(space, Cube) and target.form != "table":
        from setwise.spaces.cube_moments import CubeMoments

        return CubeMoments.of(target, space)
    if target.form == "additive" and isinstance(space, Sized | Forest):
        return Tempered(target, AdditiveMean(target, space))
    if isinstance(space, Sized) and target.form in ("subset", "linear_fractional", "counts"):
        from setwise.spaces.count_law import CountMean

        counts = Tempered(target, CountMean(target, space))
        return SubsetMoments(target, space, counts) if target.form == "subset" else counts
    if isinstance(space, Forest) and target.form == "subset":
        return SubsetMoments(target, space)
    many = space.log_size > np.log(FEW) + 1e-9
    if isinstance(space, Forest) and target.form == "linear_fractional" and many:
        from setwise.spaces.shifted import ShiftedMean

        return Tempered(target, ShiftedMean(target, space))
    return None


def _refuse_unlisted(target: Target, space: Space) -> None:
    """A table target must know every set of the space."""
    measure = target.measure(space.n_labels, "loss")
    if isinstance(measure, Table):
        try:
            measure.index(space.enumerate(), "sets")
        except ValueError as error:
            raise ValueError(f"{target} does not cover {space}: {error}") from None


def _alternatives(target: Target, space: Space) -> str:
    if target.form == "table":
        return "a Catalog of the label sets of the table"
    return (
        f"Cube({space.n_labels}), Sized or Slice, or a Catalog of label sets, "
        f"where any function of the counts is exact"
    )
