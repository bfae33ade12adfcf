"""Independent labels, and the joint distribution of each label and the size of the set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from setwise.distributions.distribution import Array, Distribution, Ranked, one_set_a_row
from setwise.kernels import kernel
from setwise.spaces.symmetric import fill, group_of, size_law, sweep
from setwise.threads import for_rows
from setwise.validation import probability_matrix


@dataclass(frozen=True, eq=False)
class Independent(Distribution):
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

    @property
    def is_sparse(self) -> bool:
        """Whether the probabilities are CSR."""
        return not isinstance(self.probability, np.ndarray)

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
        p = self.probability.toarray() if self.is_sparse else self.probability
        return p.astype(np.float64)

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
    group, adjoint = group_of(n_labels, width - 1), np.empty(width)
    last, doubled, off = group.table[n_labels], np.empty(n_labels), np.empty(n_labels)
    for row in range(start, stop):
        factored = True
        if len(bias) > 0:
            factored = size_law(values[row], bias, doubled, group, size[row])[0]
        else:
            group.step[:] = 1.0
            for i in range(n_labels):
                group.weight[i], group.keep[i] = values[row, i], 1.0 - values[row, i]
            fill(True, group)
            size[row] = last
        joint[row] = 0.0
        for s in range(1, width):
            if size[row, s] > 0.0:
                adjoint[:] = 0.0
                adjoint[s] = size[row, s] / last[s]
                sweep(factored, group, adjoint, joint[row, s], off)
