"""Moments of the features, each a sum over blocks of rows.

A function here takes a block to what it adds to a sum: in float64, some rows at a time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpstrf, dtrtri  # type: ignore
from scipy.sparse import issparse

from setwise.blocks.block import Block, Function
from setwise.threads import small_products

Array = NDArray[Any]

CHUNK_ROWS = 4096
# Features are rotated to their principal directions only where that costs less than it saves.
MOST_ROTATED = 1024
ROTATION_COST = 16


class Columns(ABC):
    """The features of some rows, as far as sums over the rows tell of them.

    ``n_entries`` are stored ones, ``mass`` is the sum of the weights of the rows.
    """

    fit_intercept: bool
    is_turned: bool
    n_features: Any
    n_entries: Any
    mass: Any

    @abstractmethod
    def sum(self, function: Function, *parameters: Any) -> tuple[Any, ...]:
        """The sum of a function over the rows: see `setwise.blocks`."""

    @cached_property
    def center(self) -> Array:
        """The mean of each feature, or 0 without intercepts, (d,)."""
        if not self.fit_intercept:
            return np.zeros(self.n_features)
        return self.sum(totals)[0] / self.mass

    @cached_property
    def spectrum(self) -> tuple[Array, Array | None]:
        """Variances (d,) along the principal directions (d, d), or along the features and None."""
        d = self.n_features
        if self.is_turned or d > MOST_ROTATED or d * d > ROTATION_COST * self.n_entries:
            return self.sum(squares, self.center)[0] / self.mass, None
        variance, rotation = principal(self.covariance())
        return np.maximum(variance, 0.0), rotation

    def covariance(self) -> Array:
        """Of the features about the center, (d, d)."""
        return self.sum(products, self.center)[0] / self.mass


def moments(columns: Any, mass: float) -> tuple[Array, Array]:
    """Weighted mean and variance of each feature, (d,), of what has sums over rows."""
    mean = columns.sum(totals)[0] / mass
    return mean, columns.sum(squares, mean)[0] / mass


def standard_deviations(columns: Any, mass: float) -> Array:
    """Of each feature, 1 for one that is constant, (d,)."""
    mean, variance = moments(columns, mass)
    deviation = np.sqrt(variance)
    return np.where(deviation > 1e-7 * np.abs(mean), deviation, 1.0)


def principal(symmetric: Array) -> tuple[Array, Array]:
    """Eigenvalues, ascending, and the directions that belong to them, as columns.

    The factorisation takes its steps by products with a vector. Several threads save a third of the
    time on processors that are free, and take ten times as long on busy ones.
    """
    with small_products(float(symmetric.size)):
        values, vectors = np.linalg.eigh(symmetric)
    return values, vectors


def along_principal(gram: Array) -> tuple[Array, Array]:
    """Rows Z of that Gram matrix G along the r principal directions of their span.

    Z (n, r) and B (n, r) with Z = G B and B' G B = 1: the directions are those of the rows times B.
    """
    values, vectors = principal(gram)
    large = values > len(gram) * np.finfo(np.float64).eps * max(values[-1], 0.0)
    root = np.sqrt(values[large])
    return vectors[:, large] * root, vectors[:, large] / root


def orthonormal(gram: Array) -> tuple[Array, Array]:
    """The same along r other orthonormal directions, in a tenth of the time.

    By pivoted Cholesky factors, G = L L': Z is L, and B the inverse of the pivots' part of L'.
    """
    with small_products(float(gram.size)):
        factor, pivots, rank, _ = dpstrf(gram, lower=1)
        factor, order = np.tril(factor)[:, :rank], pivots - 1
        inverse = np.tril(dtrtri(factor[:rank], lower=1)[0])
    rows, basis = np.empty_like(factor), np.zeros_like(factor)
    rows[order], basis[order[:rank]] = factor, inverse.T
    return rows, basis


# ------------------------------------------------------------------------------ what a block adds


def totals(block: Block) -> tuple[Array]:
    """Weighted sum of each feature, (d,)."""
    total = np.zeros(block.inputs.shape[1])
    for part, weights in _parts(block):
        total += part.T @ weights
    return (total,)


def squares(block: Block, center: Array) -> tuple[Array]:
    """Weighted sum of the squares of each feature about a center, (d,)."""
    total, d = np.zeros(len(center)), len(center)
    for part, weights in _parts(block):
        if not issparse(part):
            total += weights @ np.square(part - center)
            continue
        of_entry = np.repeat(weights, np.diff(part.indptr))
        away = of_entry * np.square(part.data - center[part.indices])
        # (A feature that all rows store: rounding must not leave a weight to others.)
        partly = np.bincount(part.indices, minlength=d) < part.shape[0]
        absent = partly * (weights.sum() - np.bincount(part.indices, of_entry, d))
        total += np.bincount(part.indices, away, d) + absent * center**2
    return (total,)


def products(block: Block, center: Array) -> tuple[Array]:
    """Weighted sum of the products of each two features about a center, (d, d)."""
    d, sparse = len(center), issparse(block.inputs)
    total, first = np.zeros((d, d)), np.zeros(d)
    for part, weights in _parts(block):
        root = np.sqrt(weights)[:, None]
        first += part.T @ weights
        part = part.multiply(root).tocsr() if sparse else (part - center) * root
        product = part.T @ part
        total += product.toarray() if sparse else product
    if sparse:
        # (Sparse rows stay sparse: their products are about 0.)
        cross = np.outer(first, center)
        total += block.weights.sum() * np.outer(center, center) - cross - cross.T
    return (total,)


def _parts(block: Block) -> Iterator[tuple[Any, Array]]:
    """Some rows at a time, in float64, with their weights."""
    for first in range(0, block.inputs.shape[0], CHUNK_ROWS):
        rows = slice(first, first + CHUNK_ROWS)
        yield block.inputs[rows].astype(np.float64), block.weights[rows]
