"""What a target says of a predicted set once the true set is known, in tensors."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from setwise.nn.tensors.batch import Batch
from setwise.nn.tensors.constant import Constant
from setwise.targets.measure import (
    ZERO_DENOMINATOR,
    ZERO_DIFFERENCE,
    Additive,
    Counts,
    Equality,
    Fraction,
)

# A function of the counts is tabulated; a table has at most this many entries.
LARGEST_TABLE = 2**22


class LabelValues:
    """constant + scale * sum over labels of what each adds in its state (an additive measure)."""

    def __init__(self, measure: Additive, n_labels: int):
        sizes = np.arange(n_labels + 1.0)
        self._weights = Constant(measure.weights)
        self._agreement = measure.agreement.tolist()
        self._constant = Constant(measure.constant(sizes))
        self._scale = Constant(measure.scale(sizes))

    def states(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """What each label adds when it is in the set and when it is not, (n, l) each.

        Where labels are unknown, the weights of the known ones are made to add up to the same.
        """
        weights = self._weights.beside(batch.truth)
        if batch.known is not None:
            total, weights = weights.sum(), batch.only_known(weights)
            known_total = weights.sum(1, keepdim=True)
            weights = weights * (total / torch.where(known_total > 0, known_total, 1.0))
        (off_false, on_false), (off_true, on_true) = self._agreement
        return (
            weights * batch.by_truth(on_true, on_false),
            weights * batch.by_truth(off_true, off_false),
        )

    def complete(self, batch: Batch, total: Tensor) -> Tensor:
        """The value from the sum over labels; both have the rows of the batch in front."""
        constant = self._constant.beside(total)[batch.n_true]
        scale = self._scale.beside(total)[batch.n_true]
        if total.ndim > 1:
            constant, scale = constant[:, None], scale[:, None]
        return constant + scale * total

    def of_sets(self, batch: Batch, total: Tensor) -> Tensor:
        """The value of each set, (n, K), where a difference that is only rounding is 0."""
        value, constant = self.complete(batch, total), self._constant.beside(total)[batch.n_true]
        rounding = max(ZERO_DIFFERENCE, 16.0 * torch.finfo(total.dtype).eps)
        return torch.where(value.abs() <= rounding * constant.abs()[:, None], 0.0, value)


class CountValues:
    """A function of tp, fp, fn and tn over ``n_labels`` labels, or, if masked, over fewer too.

    Equality and quotients are computed; any other function is tabulated, for predicted sets of
    up to ``largest`` labels.
    """

    def __init__(
        self, measure: Equality | Fraction | Counts, n_labels: int, masked: bool, largest: int
    ):
        self._when_equal, self._quotient, self._table = None, None, None
        if isinstance(measure, Equality):
            self._when_equal = measure.when_equal
        elif isinstance(measure, Fraction):
            self._quotient = measure.numerator.tolist(), measure.denominator.tolist()
            self._largest, self._empty = float(np.abs(measure.denominator).max()), measure.empty
        else:
            self._table = Constant(tabulated(measure, n_labels, masked, min(n_labels, largest)))

    def at(self, batch: Batch, tp: Tensor, fp: Tensor) -> Tensor:
        """The value at whole numbers of tp and fp, with the rows of the batch in front."""
        column = (-1,) + (1,) * (tp.ndim - 1)
        n_true, n_known = batch.n_true.reshape(column), batch.n_known.reshape(column)
        if self._table is not None:
            table = self._table.beside(batch.truth)
            known = n_known if table.shape[0] > 1 else torch.zeros_like(n_known)
            most = table.shape[-1] - 1
            return table[known, n_true, tp.clamp(max=most), fp.clamp(max=most)]
        if self._quotient is None:
            assert self._when_equal is not None
            is_equal = ((fp == 0) & (tp == n_true)).to(batch.truth.dtype)
            return is_equal if self._when_equal == 1.0 else 1.0 - is_equal
        counts = [k.to(batch.truth.dtype) for k in (tp, fp, n_true - tp, n_known - n_true - fp)]
        above, below = (_linear(part, counts) for part in self._quotient)
        rounding = max(ZERO_DENOMINATOR, 16.0 * torch.finfo(below.dtype).eps)
        nothing = below.abs() <= rounding * self._largest
        return torch.where(nothing, self._empty, above / torch.where(nothing, 1.0, below))


def tabulated(measure: Counts, n_labels: int, masked: bool, largest: int) -> np.ndarray:
    """values[number of known labels, n_true, tp, fp]; only one number known unless masked."""
    shape = (n_labels + 1 if masked else 1, n_labels + 1, largest + 1, largest + 1)
    if np.prod(shape, dtype=np.float64) > LARGEST_TABLE:
        raise ValueError(
            f"a function of the counts over {n_labels} labels needs a table of "
            f"{' x '.join(map(str, shape))} entries in torch operations, but the limit is "
            f"{LARGEST_TABLE}; on the CPU use backend='compiled'"
        )
    known, n_true, tp, fp = np.indices(shape)
    known = known if masked else known + n_labels
    possible = (known > 0) & (n_true <= known) & (tp <= n_true) & (fp <= known - n_true)
    counts = (tp, fp, n_true - tp, known - n_true - fp)
    table = np.zeros(shape)
    table[possible] = measure.of_counts(*(count[possible] for count in counts))
    return table


def _linear(coefficients: list[float], counts: list[Tensor]) -> Tensor:
    total = torch.full_like(counts[0] + counts[1], coefficients[0])
    for coefficient, count in zip(coefficients[1:], counts, strict=True):
        total = total + coefficient * count
    return total
