"""The rules of `setwise.expectation` for 1/D, as tensors.

D = start + the steps of the labels that count, in the unit of the largest step; a rule says
1/D = sum over nodes of weight * t^(D - start).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from setwise.expectation.quadrature import exponential_sum
from setwise.expectation.rules import MEANS, Rules, laguerre_table
from setwise.nn.tensors.batch import Batch
from setwise.nn.tensors.partition import States
from setwise.nn.tensors.values import beside
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
        far_x, far_w = laguerre_table()
        width = max(table.weight.shape[2], far_x.shape[1])
        used = np.arange(table.weight.shape[2]) < table.count[..., None]
        powers = [np.where(used, p, 1.0) for p in (table.power_true, table.power_false)]
        with np.errstate(divide="ignore"):
            self._logs = [torch.from_numpy(_wide(np.log(p), width)) for p in powers]
        self._weight = torch.from_numpy(_wide(np.where(used, table.weight, 0.0), width))
        self._far_x = torch.from_numpy(_wide(far_x, width))
        self._far_w = torch.from_numpy(_wide(far_w, width))
        self._start, self._zero = torch.from_numpy(table.start), torch.from_numpy(table.zero > 0)
        self._count, self._means = torch.from_numpy(table.count), torch.tensor(MEANS)
        self._step, self._flip = rules.step.tolist(), rules.flip.tolist()

    def at(self, batch: Batch, weights: States) -> Nodes:
        """The nodes of each row; they do not depend on the weights as far as derivatives go."""
        on, off = weights
        steps = batch.only_known(batch.by_truth(*self._step))
        flips = batch.by_truth(*map(float, self._flip)) != 0
        mean = (steps * torch.where(flips, off, on).detach().exp()).sum(-1)
        n_true, device = batch.n_true, on.device
        level = torch.bucketize(mean, beside(self._means, on))
        count = self._count.to(device)[n_true, level]
        start = beside(self._start, on)[n_true]
        # Laguerre nodes (a negative count), scaled by the row's mean of D.
        center = (start + mean)[:, None]
        row = (-count).clamp(min=0)
        x = beside(self._far_x, on)[row] / center
        far_w = beside(self._far_w, on)[row] / center * torch.exp(-x * start[:, None])
        is_far = (count < 0)[:, None]
        log_true, log_false = (
            torch.where(is_far, -step * x, beside(log, on)[n_true, level])
            for step, log in zip(self._step, self._logs, strict=True)
        )
        weight = torch.where(is_far, far_w, beside(self._weight, on)[n_true, level])
        return Nodes(self._zero.to(device)[n_true], log_true, log_false, weight)


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
        self._x, self._w = torch.from_numpy(x.copy()), torch.from_numpy(w.copy())

    def at(self, batch: Batch, weights: States) -> Nodes:
        """The nodes; only whether D can be 0 and the weights depend on the row."""
        on, _ = weights
        n_true, n_false = batch.n_true.to(on.dtype), (batch.n_known - batch.n_true).to(on.dtype)
        start = self._start[0] + self._start[1] * n_true + self._start[2] * n_false
        zero = start <= max(self._tiny, 64.0 * torch.finfo(on.dtype).eps)
        x, w = beside(self._x, on), beside(self._w, on)
        weight = w * torch.exp(-x * torch.where(zero, 0.0, start)[:, None])
        return Nodes(zero, -self._step[0] * x[None], -self._step[1] * x[None], weight)


def _wide(values: np.ndarray, width: int) -> np.ndarray:
    """Zeros up to that width of the last axis."""
    return np.pad(values, [(0, 0)] * (values.ndim - 1) + [(0, width - values.shape[-1])])
