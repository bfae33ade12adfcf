"""One small network, the same budget for every loss, each written from its definition.

Asymmetric (Ridnik et al. 2021), focal (Lin et al. 2017), ZLPR (Su et al. 2022), two-way (Kobayashi
2023), sigmoidF1 (Bénédict et al. 2022), distribution-balanced (Wu et al. 2020), beside our
`ExpectedLoss` and the likelihood of seen sets. The number of epochs is chosen as the penalty of
others is, on the same folds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from torch import Tensor, nn
from torch.nn.functional import logsigmoid, softplus

from benchmarks.evidence.tuning import Question, Recipe
from setwise.decoders import MinimumRisk, PopulationRule
from setwise.nn import ExpectedLoss, LearnableSpace, SurrogateLoss
from setwise.spaces import Catalog
from setwise.targets import get_target

HIDDEN, RATE, BATCH = 128, 2e-3, 64
EPOCHS = (20, 60)

Loss = Callable[[Tensor, Tensor], Tensor]


def cross_entropy(logits: Tensor, y: Tensor) -> Tensor:
    """Binary cross-entropy."""
    return -(y * logsigmoid(logits) + (1 - y) * logsigmoid(-logits)).sum(1).mean()


def focal(logits: Tensor, y: Tensor, gamma: float = 2.0) -> Tensor:
    """What is easy counts less: (1 - p)^gamma of the probability of the truth."""
    signed = torch.where(y > 0, logits, -logits)
    return -((torch.sigmoid(-signed) ** gamma) * logsigmoid(signed)).sum(1).mean()


def asymmetric(logits: Tensor, y: Tensor, gamma: float = 4.0, shift: float = 0.05) -> Tensor:
    """Focusing on negatives only, of which those below the shift do not count."""
    p = torch.sigmoid(logits)
    low = (p - shift).clamp(min=0.0)
    negative = low**gamma * torch.log((1.0 - low).clamp(min=1e-8))
    return -(y * logsigmoid(logits) + (1 - y) * negative).sum(1).mean()


def zlpr(logits: Tensor, y: Tensor) -> Tensor:
    """log(1 + sum over negatives of e^s) + log(1 + sum over positives of e^-s)."""
    zero = torch.zeros_like(logits[:, :1])
    most = torch.finfo(logits.dtype).min
    parts = logits.masked_fill(y > 0, most), (-logits).masked_fill(y == 0, most)
    return sum(torch.cat([zero, part], 1).logsumexp(1).mean() for part in parts)  # type: ignore


def two_way(logits: Tensor, y: Tensor, temperature: float = 4.0) -> Tensor:
    """Softplus of the gap of soft maxima of negatives and soft minima of positives.

    Over the labels of each row, and over the rows for each label.
    """
    most = torch.finfo(logits.dtype).min

    def one_way(axis: int) -> Tensor:
        negative = logits.masked_fill(y > 0, most).logsumexp(axis)
        positive = (-logits / temperature).masked_fill(y == 0, most).logsumexp(axis)
        counted = (y > 0).any(axis) & (y == 0).any(axis)
        gap = softplus(negative + temperature * positive)[counted]
        return gap.mean() if counted.any() else logits.sum() * 0.0

    return one_way(1) + one_way(0)


def sigmoid_f1(logits: Tensor, y: Tensor) -> Tensor:
    """1 - macro F1 of soft counts of the batch."""
    p = torch.sigmoid(logits)
    true = (p * y).sum(0)
    return (1.0 - 2.0 * true / (p.sum(0) + y.sum(0) + 1e-16)).mean()


def balanced(frequency: Tensor, n_rows: int, scale: float = 5.0, shift: float = 0.05) -> Loss:
    """Distribution-balanced: rows weighed anew by the frequencies of their labels, tolerant.

    The weight of a label in a row is 1/n_i over the sum of 1/n_j of the row's labels, mapped by a
    sigmoid. Scores are lowered by (shift / scale) log(n / n_i - 1), more for a rarer label, and
    those of negatives scaled; all are focal (gamma 2).
    """
    count = frequency.clamp(1.0, max(n_rows - 1.0, 1.0))
    lower = shift / scale * torch.log((n_rows / count - 1.0).clamp(min=1e-8))

    def loss(logits: Tensor, y: Tensor) -> Tensor:
        repeat = (y / count).sum(1, keepdim=True).clamp(min=1e-8)
        weight = 0.1 + torch.sigmoid(10.0 * ((1.0 / count) / repeat - 0.2))
        logits = logits - lower
        logits = torch.where(y > 0, logits, scale * logits)
        entropy = -(y * logsigmoid(logits) + (1 - y) * logsigmoid(-logits) / scale)
        signed = torch.where(y > 0, logits, -logits)
        return (weight * torch.sigmoid(-signed) ** 2 * entropy).sum(1).mean()

    return loss


class Network(ClassifierMixin, BaseEstimator):
    """One hidden layer, by Adam. ``loss``: a name of `LOSSES`, "expected" or "likelihood".

    Cut where the probability is 1/2, but with the two-way loss, which fixes differences of scores
    only: there so that training rows have as many predicted labels as true ones.
    """

    def __init__(self, loss: str, target: str, epochs: int, seed: int):
        self.loss, self.target, self.epochs, self.seed = loss, target, epochs, seed

    def fit(self, X, y):
        dense = X.toarray() if sparse.issparse(X) else X
        self.middle_, self.spread_ = dense.mean(axis=0), dense.std(axis=0) + 1e-6
        x, y = self._tensor(X), torch.from_numpy(np.asarray(y, np.float32))
        torch.manual_seed(self.seed)
        self.net_ = nn.Sequential(
            nn.Linear(x.shape[1], HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, y.shape[1])
        )
        loss, learnt = self._loss(y), []
        if isinstance(loss, nn.Module):
            learnt = list(loss.parameters())
        optimizer = torch.optim.Adam([*self.net_.parameters(), *learnt], lr=RATE)
        for _ in range(self.epochs):
            for part in torch.randperm(len(x)).split(BATCH):
                optimizer.zero_grad()
                loss(self.net_(x[part]), y[part]).backward()
                optimizer.step()
        # Its loss is the same for scores that are all higher: as many labels as there are.
        self.cut_ = 0.0
        if self.loss == "two-way":
            self.cut_ = float(np.quantile(self.logits(X), 1.0 - float(y.mean())))
        return self

    def _loss(self, y: Tensor) -> Any:
        self.space_ = None
        if self.loss == "expected":
            return ExpectedLoss(self.target)
        if self.loss == "likelihood":
            seen = Catalog(np.unique(y.numpy().astype(np.uint8), axis=0))
            self.space_ = LearnableSpace(seen)
            return SurrogateLoss("f1", self.space_, "likelihood")
        if self.loss == "distribution-balanced":
            return balanced(y.sum(0), len(y))
        return LOSSES[self.loss]

    def _tensor(self, X: Any) -> Tensor:
        X = X.toarray() if sparse.issparse(X) else X
        return torch.from_numpy(np.asarray((X - self.middle_) / self.spread_, np.float32))

    @torch.no_grad()
    def logits(self, X) -> np.ndarray:
        return self.net_(self._tensor(X)).double().numpy()

    def predict_proba(self, X):
        if self.space_ is not None:
            return self.space_.current().marginals(self.logits(X) / 2.0)
        return 1.0 / (1.0 + np.exp(-self.logits(X)))

    def predict(self, X):
        return (self.logits(X) >= self.cut_).astype(np.int64)


def decoded(model: Any, X: Any, target: str) -> Any:
    """The network's probabilities decided for the target."""
    if get_target(target).form == "population":
        rule, probability = PopulationRule(target, "batch"), model.predict_proba(X)
        return rule.fit(probability).decode(probability)
    if model.space_ is not None:
        return MinimumRisk(target).decode_scores(model.logits(X) / 2.0, model.space_.current())
    return MinimumRisk(target).decode(model.predict_proba(X))


LOSSES: dict[str, Loss] = {
    "cross-entropy": cross_entropy, "focal": focal, "asymmetric": asymmetric, "ZLPR": zlpr,
    "two-way": two_way, "sigmoidF1": sigmoid_f1,
}  # fmt: skip


def _network(loss: str, asked: Question, epochs: int) -> Network:
    return Network(loss, asked.target, epochs, asked.seed)


def _grid(is_sparse: bool) -> list[dict[str, Any]]:
    return [{"epochs": epochs} for epochs in EPOCHS]


def _recipe(loss: str, **given: Any) -> Recipe:
    return Recipe(lambda asked, epochs: _network(loss, asked, epochs), _grid, **given)


KINDS = {
    "network": {
        **{f"network: {name}": _recipe(name) for name in (*LOSSES, "distribution-balanced")},
        "network: cross-entropy, decoded": _recipe("cross-entropy", decide=decoded),
        "network: likelihood of seen sets, decoded": _recipe("likelihood", decide=decoded),
        "network: expected loss": _recipe(
            "expected", serves_all=False, targets=("f1", "jaccard", "subset", "hamming")
        ),
    }
}
