"""A loss for measures of a whole population, whose costs follow from what it reaches."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from setwise.nn.tensor_losses import margin_loss
from setwise.nn.validation import REDUCTIONS, refuse_tensors
from setwise.spaces import Cube
from setwise.surrogates.binary_relevance import MARGINS
from setwise.surrogates.metro import costs_at, refuse_others
from setwise.targets.registry import get_target
from setwise.validation import require_one_of, whole_number


class PopulationLoss(nn.Module):
    """Binary relevance with costs for a measure such as macro-F1, in place of cross-entropy.

    sum_j miss_j y_j Phi(h_j) + false_alarm_j (1 - y_j) Phi(-h_j) of logits h. The costs stand for
    the measure at the value it has (`setwise.surrogates.metro.costs_at`); they begin at 1, which is
    plain cross-entropy, and `update` sets them from held-out rows. Predicted are the labels with
    logit >= 0.

    Parameters
    ----------
    target : Macro, Micro or Weighted, or their name
        "macro_f1", "micro_jaccard", "balanced_accuracy", ...
    n_labels : int
    margin : {"logistic", "exponential", "hinge", "squared_hinge"}, default "logistic"
    reduction : {"mean", "sum", "none"}, default "mean"
        Over rows.

    Notes
    -----
    The costs are a buffer: they move with the module and are saved with it. A few updates are
    enough, one after each of the last epochs or so; in between the costs must stand still, or the
    optimiser chases them.

    Examples
    --------
    >>> loss = PopulationLoss("macro_f1", n_labels=2)
    >>> logits = torch.tensor([[2.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [-2.0, -1.0]])
    >>> truth = torch.tensor([[1, 1], [0, 1], [1, 0], [0, 0]])
    >>> loss.update(logits, truth)  # the value reached: the mean of an F1 of 1 and one of 2/3
    0.8333333333333333
    >>> loss.costs  # of false alarms and of misses
    tensor([[1.0000, 0.6667],
            [1.0000, 1.3333]])
    """

    costs: Tensor

    def __init__(
        self, target: Any, n_labels: int, margin: str = "logistic", reduction: str = "mean"
    ):
        super().__init__()
        self.target = get_target(target)
        refuse_others(self.target)
        require_one_of(margin, MARGINS, "margin")
        require_one_of(reduction, REDUCTIONS, "reduction")
        self.margin, self.reduction = margin, reduction
        self._space = Cube(whole_number(n_labels, "n_labels", 1))
        self.register_buffer("costs", torch.ones(2, self._space.n_labels))

    def forward(self, input: Tensor, target: Tensor, sample_weight: Tensor | None = None) -> Tensor:
        """The loss of logits (n, l) against true label sets (n, l) of 0/1."""
        refuse_tensors(self._space, input, target, sample_weight=sample_weight)
        truth, costs = target.to(input.dtype), self.costs.to(input.dtype)
        cost = costs[0] * (1.0 - truth) + costs[1] * truth
        rows = (cost * margin_loss((2.0 * truth - 1.0) * input, self.margin)).sum(1)
        rows = rows if sample_weight is None else rows * sample_weight.to(rows.dtype)
        if self.reduction == "none":
            return rows
        return rows.sum() / max(len(rows), 1) if self.reduction == "mean" else rows.sum()

    @torch.no_grad()
    def update(self, input: Tensor, target: Tensor, sample_weight: Tensor | None = None) -> float:
        """Set the costs from the decisions of logits (n, l) on rows with known label sets.

        Best of rows that were not trained on, all of them at once. Returns the measure reached.
        """
        refuse_tensors(self._space, input, target, sample_weight=sample_weight)
        predicted, true = (part.cpu().numpy().astype(bool) for part in (input >= 0, target))
        weights = np.ones(len(true))
        if sample_weight is not None:
            weights = sample_weight.cpu().double().numpy()
        parts = predicted & true, predicted & ~true, ~predicted & true, ~predicted & ~true
        counts = np.stack([weights @ part for part in parts])
        costs = costs_at(self.target, counts)
        self.costs.copy_(torch.tensor(np.stack([costs.false_alarm, costs.miss])))
        return float(self.target.of_counts(counts))  # type: ignore

    def extra_repr(self) -> str:
        """The settings."""
        return f"{self.target}, {self.margin}, reduction={self.reduction}"
