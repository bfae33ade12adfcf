"""Expected quotients N / D of sums over labels.

1/D is a sum over nodes of weight * t^(D - start) (see `nodes`), so E[N / D] is a sum of terms
E[N t^(D - start)]; each is a log-partition with changed weights, and its derivative along N. Where
D can be 0, one more node, t = 0, takes out what the rule makes of that and puts the convention in.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from setwise.expectation.rules import DOUBLE_ERROR, Rules
from setwise.nn.tensors.batch import Batch
from setwise.nn.tensors.nodes import RowNodes, SharedNodes
from setwise.nn.tensors.partition import Partition, Power, States
from setwise.targets.measure import Fraction


class FractionMean:
    """E[N / D] of a linear-fractional measure: one log-partition for each node."""

    def __init__(self, measure: Fraction, n_labels: int, partition: Partition, masked: bool):
        rules = Rules(measure, n_labels, DOUBLE_ERROR)
        self._partition, self._empty = partition, measure.empty
        self._step, self._flip = rules.step.tolist(), rules.flip.tolist()
        above = measure.numerator / rules.unit
        states = np.stack([above[1:3], above[3:5]])
        least = states.min(axis=0)
        # What a label adds to N beyond its least, which is part of the constant: [on, off][true].
        self._adds = (states - least).tolist()
        self._constant = [float(above[0]), *least.tolist()]
        sees_negatives = measure.numerator[4] != 0.0 or measure.denominator[4] != 0.0
        by_row = partition.independent and not (masked and sees_negatives)
        self._nodes = RowNodes(rules) if by_row else SharedNodes(rules, masked)

    def __call__(self, batch: Batch, weights: States, parameters: Tensor) -> Tensor:
        """E[N / D], with ``empty`` where D is 0, (n,)."""
        nodes = self._nodes.at(batch, weights)
        rest = torch.where(nodes.zero, -nodes.weight.sum(-1), 0.0)
        weight = torch.cat([nodes.weight, rest[:, None]], -1)
        log_true, log_false = (
            pad(log, (0, 1), value=-torch.inf if step > 0 else 0.0)
            for log, step in zip((nodes.log_true, nodes.log_false), self._step, strict=True)
        )
        log_power = torch.where(batch.is_true[:, None], log_true[..., None], log_false[..., None])
        if batch.known is not None:
            log_power = torch.where(batch.known[:, None], log_power, 0.0)
        # A label whose step is negative counts when it is not in the set.
        power = Power(log_power, batch.by_truth(*map(float, self._flip)) != 0)
        on, off = (batch.only_known(batch.by_truth(*pair)) for pair in self._adds)
        log_mass, extra = self._partition.tilted(weights, power, (on, off), parameters)
        n_true, n_false = batch.n_true.to(on.dtype), (batch.n_known - batch.n_true).to(on.dtype)
        constant = self._constant[0] + self._constant[1] * n_true + self._constant[2] * n_false
        terms = weight * (constant[:, None] + extra)
        at_zero = pad(torch.zeros_like(nodes.weight), (0, 1), value=self._empty)
        terms = terms + torch.where(nodes.zero[:, None], at_zero, 0.0)
        return (torch.exp(log_mass) * terms).sum(-1)
