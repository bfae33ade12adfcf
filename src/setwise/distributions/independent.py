"""Independent labels, and the joint distribution of each label and the size of the set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from setwise.distributions.distribution import Array, Ranked, one_set_a_row
from setwise.kernels import exp, kernel
from setwise.spaces.symmetric import fill, group_of, largest_first, ratios, scale, step_back, weigh
from setwise.threads import for_rows
from setwise.validation import probability_matrix


@dataclass(frozen=True, eq=False)
class Independent:
    """Labels that are independent of each other: P(y) = prod_i p_i^(y_i) (1 - p_i)^(1 - y_i).

    Parameters
    ----------
    probability : array or sparse matrix of shape (n, l)
        The probability of each label, in [0, 1]. In a sparse matrix absent means 0.

    Examples
    --------
    >>> Independent([[0.5, 0.25]]).log_probability([[1, 0]]).round(4)
    array([-0.9808])
    """

    probability: Any

    def __post_init__(self):
        object.__setattr__(self, "probability", probability_matrix(self.probability))

    @property
    def n_labels(self) -> int:
        """Number of labels."""
        return self.probability.shape[1]

    def __len__(self) -> int:
        return self.probability.shape[0]

    def __getitem__(self, rows) -> Independent:
        """The same of some rows."""
        return Independent(self.probability[rows])

    def marginals(self) -> Any:
        """The probabilities as they were given, (n, l)."""
        return self.probability

    def log_probability(self, sets) -> Array:
        """Sum of log p over the labels of the set and of log(1 - p) over the others, (n,)."""
        checked, p = one_set_a_row(sets, self), self._dense()
        with np.errstate(divide="ignore"):
            return np.where(checked == 1, np.log(p), np.log1p(-p)).sum(axis=1)

    def ranked(self) -> Ranked:
        """By their probabilities."""
        return Ranked(self.probability, None)

    def listed(self) -> None:
        """None: every label set is possible."""
        return

    def label_sizes(self) -> tuple[Array, Array]:
        """From the Poisson-binomial distribution of the size, O(l^3) a row."""
        return label_sizes(self._dense(), None)

    def most_likely(self, second: bool) -> tuple[Array, Array, Array]:
        """The labels above 1/2; the next likely set has the least certain one the other way."""
        p = self._dense()
        likely = np.maximum(p, 1.0 - p)
        log_chance = np.log(likely).sum(axis=1)
        with np.errstate(divide="ignore"):
            other = log_chance + np.log(((1.0 - likely) / likely).max(axis=1))
        return (p > 0.5).astype(np.uint8), log_chance, other

    def _dense(self) -> Array:
        p = self.probability
        return (p.toarray() if hasattr(p, "toarray") else p).astype(np.float64)

    def __str__(self) -> str:
        return "independent labels"


def label_sizes(values: Array, bias: Array | None) -> tuple[Array, Array]:
    """P(label, size) and P(size) of ranked labels; see `Ranked`. O(l K^2) a row."""
    n, n_labels = values.shape
    width = n_labels + 1 if bias is None else len(bias)
    joint, size = np.empty((n, width, n_labels)), np.empty((n, width))
    given = np.empty(0) if bias is None else bias
    for_rows(label_size_rows, n, values, given, joint, size, least=1)
    return joint, size


@kernel
def label_size_rows(start, stop, values, bias, joint, size):
    """joint[row, s, i] and size[row, s] from values (n, l); see `label_sizes`.

    An empty ``bias`` means that the values are probabilities. The table of the sizes of the first j
    labels is filled once; then each size is carried back through it, alone.
    """
    n_labels, width = values.shape[1], joint.shape[1]
    independent, largest = len(bias) == 0, width - 1
    group, adjoint = group_of(n_labels, largest), np.empty(width)
    order, logits, keep, weight, step, ratio, offset, table = group
    step[:] = 1.0
    for row in range(start, stop):
        factored = True
        if independent:
            for i in range(n_labels):
                weight[i], keep[i] = values[row, i], 1.0 - values[row, i]
        else:
            largest_first(values[row], largest, order)
            for j in range(n_labels):
                logits[j] = 2.0 * values[row, order[j]]
            factored = scale(group)
        fill(factored, group)
        last, high = table[n_labels], -np.inf
        for s in range(width):
            size[row, s] = last[s]
            if not independent:
                size[row, s] = bias[s] + offset[s] + np.log(last[s])
                high = max(high, size[row, s])
        if not independent:
            mass = 0.0
            for s in range(width):
                size[row, s] = exp(size[row, s] - high) if size[row, s] > -np.inf else 0.0
                mass += size[row, s]
            for s in range(width):
                size[row, s] /= mass
        joint[row] = 0.0
        for s in range(1, width):
            if size[row, s] == 0.0:
                continue
            adjoint[:] = 0.0
            adjoint[s] = size[row, s] / last[s]
            for j in range(n_labels - 1, -1, -1):
                top = min(j + 1, largest)
                ratios(j, top, factored, weight, step, ratio)
                joint[row, s, order[j]] = weigh(j, top, ratio, table, adjoint)[0]
                step_back(top, keep[j], ratio, adjoint)
