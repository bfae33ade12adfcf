"""The rules of `setwise.spaces` for 1/D, as tensors.

D = start + the steps of the labels that count, in the unit of the largest step; a rule says
1/D = sum over nodes of weight * t^(D - start).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from setwise.nn.tensors.batch import Batch
from setwise.nn.tensors.constant import Constant
from setwise.spaces.quadrature import MEANS, Rules, exponential_sum, laguerre_table
from setwise.targets.measure import ZERO_DENOMINATOR


class Nodes(NamedTuple):
    """For each row: whether D can be 0 (n,); log t^step of true and false labels, weights (n, m).

    (log t^step and weights may be the same for all rows: (1, m).)
    """

    zero: Tensor
    log_true: Tensor
    log_false: Tensor
    weight: Tensor


class RowNodes:
    """On the cube D is concentrated: few nodes, by the row's number of true labels and mean of D.

    For a measure that does not see true negatives they serve rows with unknown labels too.
    """

    def __init__(self, rules: Rules):
        table = rules.table(np.arange(rules.n_labels + 1))
        width = int(np.abs(table.count).max())
        far_x, far_w = (_wide(part, width) for part in laguerre_table())
        used = np.arange(table.weight.shape[2]) < table.count[..., None]
        powers = [np.where(used, p, 1.0) for p in (table.power_true, table.power_false)]
        with np.errstate(divide="ignore"):
            self._logs = [Constant(_wide(np.log(p), width)) for p in powers]
        self._weight = Constant(_wide(np.where(used, table.weight, 0.0), width))
        self._far_x, self._far_w = Constant(far_x), Constant(far_w)
        self._start, self._zero = Constant(table.start), Constant(table.zero > 0)
        self._count, self._means = Constant(table.count), Constant(MEANS)
        self._step = rules.step.tolist()

    def at(self, batch: Batch, odds: Tensor, left_out: Tensor) -> Nodes:
        """The nodes of each row; ``left_out`` says which labels count when they are left out."""
        steps = batch.only_known(batch.by_truth(*self._step))
        mean = (steps * torch.sigmoid(torch.where(left_out, -odds, odds))).sum(-1)
        n_true, level = batch.n_true, torch.bucketize(mean, self._means.beside(odds))
        count = self._count.beside(odds)[n_true, level]
        start = self._start.beside(odds)[n_true]
        # Laguerre nodes (a negative count), scaled by the row's mean of D.
        center = (start + mean)[:, None]
        row = (-count).clamp(min=0)
        x = self._far_x.beside(odds)[row] / center
        far_w = self._far_w.beside(odds)[row] / center * torch.exp(-x * start[:, None])
        is_far = (count < 0)[:, None]
        log_true, log_false = (
            torch.where(is_far, -step * x, log.beside(odds)[n_true, level])
            for step, log in zip(self._step, self._logs, strict=True)
        )
        weight = torch.where(is_far, far_w, self._weight.beside(odds)[n_true, level])
        return Nodes(self._zero.beside(odds)[n_true], log_true, log_false, weight)


class SharedNodes:
    """One rule for every value that D can take, whatever its law."""

    def __init__(self, rules: Rules, masked: bool):
        below = rules.measure.denominator / rules.unit
        self._step, flipped = rules.step.tolist(), rules.flip * rules.step
        self._start = [float(below[0]), *(below[3:5] - flipped).tolist()]
        self._tiny = ZERO_DENOMINATOR * float(np.abs(below).max())
        n_true, n_known = np.indices((rules.n_labels + 1, rules.n_labels + 1))
        possible = (n_true <= n_known) & (n_known > 0 if masked else n_known == rules.n_labels)
        n_true, n_false = n_true[possible], (n_known - n_true)[possible]
        start = self._start[0] + self._start[1] * n_true + self._start[2] * n_false
        high = start + rules.step[0] * n_true + rules.step[1] * n_false
        least_step = rules.step[rules.step > 0].min(initial=1.0)
        low = np.where(start > self._tiny, start, least_step).min()
        x, w = exponential_sum(float(low), float(max(high.max(), low)))
        self._x, self._w = Constant(x), Constant(w)

    def at(self, batch: Batch, odds: Tensor, left_out: Tensor) -> Nodes:
        """The nodes; only whether D can be 0 and the weights depend on the row."""
        n_true, n_false = (
            count.to(odds.dtype) for count in (batch.n_true, batch.n_known - batch.n_true)
        )
        start = self._start[0] + self._start[1] * n_true + self._start[2] * n_false
        zero = start <= max(self._tiny, 64.0 * torch.finfo(odds.dtype).eps)
        x, w = self._x.beside(odds), self._w.beside(odds)
        weight = w * torch.exp(-x * torch.where(zero, 0.0, start)[:, None])
        return Nodes(zero, -self._step[0] * x[None], -self._step[1] * x[None], weight)


def _wide(values: np.ndarray, width: int) -> np.ndarray:
    """As much of the last axis, with zeros where it ends before."""
    values = values[..., :width]
    return np.pad(values, [(0, 0)] * (values.ndim - 1) + [(0, width - values.shape[-1])])
