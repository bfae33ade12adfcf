"""How many nodes the rules for 1/D need: makes the tables of `setwise.spaces.quadrature` again.

For D = start + k with k from the widest laws that independent labels have (Poisson, the limit of
many unlikely labels; binomial with shares .5 and .9), the error of E[1/D] and E[k/D] relative to
the larger of the value and 1/mean.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.stats import binom, poisson

from setwise.spaces.quadrature import (
    DOUBLE_ERROR,
    JACOBI,
    LAGUERRE,
    MEANS,
    SINGLE_ERROR,
    STARTS,
    jacobi,
    laguerre,
)

MOST = 24


def laws(mean: float) -> tuple[np.ndarray, list[np.ndarray]]:
    """The values k and the laws of k with that mean."""
    k = np.arange(int(mean + 12.0 * np.sqrt(mean) + 60.0))
    out = [poisson.pmf(k, mean)]
    for share in (0.5, 0.9):
        labels = int(np.ceil(mean / share))
        out.append(binom.pmf(k, labels, mean / labels))
    return k, out


def rule_error(kind: str, nodes: int, start: float, mean: float) -> float:
    """The largest error of a rule over the laws."""
    k, pmfs = laws(mean)
    if kind == "jacobi":
        t, w = jacobi(nodes, start - 1.0)
        powers = t[None, :] ** k[:, None]
    else:
        x, w = laguerre(nodes)
        w, powers = w / (start + mean), np.exp(-np.outer(start + k, x) / (start + mean))
    worst = 0.0
    for pmf in pmfs:
        for factor in (np.ones(len(k)), k / mean):
            exact = float((pmf * factor / (start + k)).sum())
            error = abs(float(w @ ((pmf * factor) @ powers)) - exact)
            worst = max(worst, error / max(exact, 1.0 / (start + mean)))
    return worst


def needed(kind: str, error: float, start: float, mean: float) -> int:
    """The fewest nodes with less than that error; 0 if more than 24."""
    counts = range(1, MOST + 1)
    return next((m for m in counts if rule_error(kind, m, start, mean) < error), 0)


def quadrature() -> Iterator[dict[str, Any]]:
    """A row for each start and mean: nodes needed, and what the package uses."""
    for error in (SINGLE_ERROR, DOUBLE_ERROR):
        for row, start in enumerate(STARTS):
            for column, mean in enumerate(MEANS):
                yield {
                    "error": error, "start": start, "mean": mean,
                    "jacobi": needed("jacobi", error, start, mean),
                    "jacobi_table": JACOBI[error][row][column],
                    "laguerre": needed("laguerre", error, start, mean),
                    "laguerre_table": LAGUERRE[error][row][column],
                }  # fmt: skip
