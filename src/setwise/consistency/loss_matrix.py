"""The losses of label sets against true ones, as a matrix, and whether two targets share it."""

from __future__ import annotations

import numpy as np

from setwise.consistency.identity import same_values
from setwise.spaces.space import Array, Space, all_sets
from setwise.targets.measure import ROUNDING
from setwise.targets.target import Target

# With at most this many labels and predicted sets, targets are compared loss by loss.
FEW_LABELS, FEW_SETS = 8, 256


def loss_matrix(target: Target, truths: Array, sets: Array) -> Array:
    """The loss of each set (a column) against each truth (a row), (m, K)."""
    return np.column_stack([target.loss(np.tile(row, (len(truths), 1)), truths) for row in sets])


def unit_losses(target: Target, truths: Array, sets: Array) -> Array:
    """`loss_matrix`, refused unless its entries lie in [0, 1], as every theorem needs."""
    losses = loss_matrix(target, truths, sets)
    inside = (losses >= -ROUNDING) & (losses <= 1.0 + ROUNDING)
    if not inside.all():
        row, column = (int(i) for i in np.argwhere(~inside)[0])
        raise ValueError(
            f"the losses of a target must lie in [0, 1], but {target} has the loss "
            f"{losses[row, column]:g} for predicting {sets[column].tolist()} where "
            f"{truths[row].tolist()} is true"
        )
    return losses


def is_same_target(first: Target, second: Target, space: Space, own_truths: bool = False) -> bool:
    """Whether two targets are provably the same on a space, whatever the true label set.

    By their parameters, those of their measures, or on few labels loss by loss; True is proof,
    False that there is none. ``own_truths`` says that true label sets are those of the space.

    Examples
    --------
    >>> from setwise.spaces import Cube
    >>> from setwise.targets import FBeta
    >>> is_same_target(FBeta(1.0), FBeta(1.0, empty=0.0), Cube(2))
    False
    """
    if same_values(first, second):
        return True
    first, second, labels = first.on(space), second.on(space), space.n_labels
    if same_values(first, second) or same_values(
        first.measure(labels, "loss"), second.measure(labels, "loss")
    ):
        return True
    if space.log_size > np.log(FEW_SETS) + 1e-9:
        return False
    sets = space.enumerate()
    if own_truths:
        truths = sets
    elif "table" in (first.form, second.form):
        # A table judges the sets it lists; those of both have to be the same.
        listed = [t.sets for t in (first, second) if t.form == "table"]  # type: ignore
        if any(set(map(bytes, one)) != set(map(bytes, listed[0])) for one in listed):
            return False
        truths = listed[0]
    elif labels <= FEW_LABELS:
        truths = all_sets(labels)
    else:
        return False
    return bool(np.array_equal(loss_matrix(first, truths, sets), loss_matrix(second, truths, sets)))
