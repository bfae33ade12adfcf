"""Inputs that a solver passes over in less time than over those it was given.

Where many models are trained on parts of the same rows, the inputs are turned to their principal
directions once for all of them (`Turned`). One model is walked most of its way on lighter ones
(`Light`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import issparse

from setwise.estimators.design import ENTRIES_AT_ONCE, Array, Design, Solution
from setwise.estimators.moments import MOST_ROTATED, along_principal, orthonormal, principal

# Inputs are turned up to this many directions and entries.
MOST_TURNED, MOST_TURNED_ENTRIES = 2560, 2**24
# What an entry of sparse inputs costs a solver, and a variable more, by an entry of turned ones.
ENTRY_COST, VARIABLE_COST = 16, 512
# Inputs beyond this are kept in float64: sums of products would overflow in float32.
LARGEST_SINGLE = 1e18
# The least tolerance for which products in float32 are good enough.
LEAST_SINGLE = 1e-4
# Fewer products of a pass, entries by scores, are not worth a way of their own.
LEAST_PRODUCTS = 2**22


@dataclass(frozen=True)
class Turned:
    """Inputs of a design along their principal directions V: (X - center) V, of shape (n, r).

    A ridge solution lies in the span of the rows it is learnt from (with intercepts, of the rows
    less any point), so that r is at most n and d, nothing is lost, and weights keep their length.
    One factorisation serves every part of the rows, every penalty and every space.

    ``basis`` is V (d, r), or (n, r) with V = (X - center)^T basis where rows are fewer. Of many
    sparse rows, whose features are nearly uncorrelated, any orthonormal V does as well.
    """

    design: Design
    inputs: Array
    basis: Array

    @classmethod
    def of(cls, design: Design, dtype: Any = np.float64) -> Turned | None:
        """None where the factorisation or the dense inputs would cost more than they save."""
        n, d = design.inputs.shape
        r = min(n, d)
        if r > MOST_TURNED or n * r > MOST_TURNED_ENTRIES or r == 0:
            return None
        plain = ENTRY_COST * design.n_entries + VARIABLE_COST * (d - r)
        if issparse(design.inputs) and n * r > plain:
            return None
        center = design.center
        if d <= n:
            basis = principal(design.covariance())[1]
            inputs = np.asarray(design.precise @ basis) - center @ basis
            return cls(design, kept(inputs, dtype), basis)
        gram = design.precise @ design.precise.T
        gram = gram.toarray() if issparse(gram) else gram
        shift = np.asarray(design.precise @ center)
        gram = gram - shift[:, None] - shift + center @ center
        is_any = issparse(design.inputs) and n > MOST_ROTATED
        inputs, basis = orthonormal(gram) if is_any else along_principal(gram)
        return cls(design, kept(inputs, dtype), basis)

    def point(self, weights: Array, intercept: Array) -> tuple[Array, Array]:
        """Weights (d, m) and intercepts (m,) for the design, of those for the turned inputs."""
        center, plain = self.design.center, self.basis @ weights
        if len(self.basis) != len(center):
            shares = plain
            plain = np.asarray(self.design.precise.T @ shares)
            plain = plain - np.outer(center, shares.sum(axis=0))
        return plain, intercept - center @ plain

    def gradients(self, by_weight: Array, by_intercept: Array) -> tuple[Array, Array]:
        """By weights of the features, and of those about the center, (d, m), of turned ones.

        In the type of the turned inputs. (For features that are no more than the rows.)
        """
        centred = self._basis @ by_weight.astype(self.inputs.dtype)
        return centred + np.outer(self.design.center, by_intercept), centred

    @cached_property
    def _basis(self) -> Array:
        return self.basis.astype(self.inputs.dtype)


def kept(inputs: Any, dtype: Any) -> Any:
    """Inputs, dense or CSR, in that type, or as they are if they are too large for it."""
    entries = inputs.data if issparse(inputs) else inputs
    small = np.abs(entries).max(initial=0.0) <= LARGEST_SINGLE
    return inputs.astype(dtype, copy=False) if small else inputs


@dataclass(frozen=True)
class Light:
    """A design in float32, and the way back from it.

    Sparse inputs whose weights would be rotated at every step are turned instead, once.
    """

    design: Design
    turned: Turned | None

    @classmethod
    def of(cls, design: Design, n_scores: int) -> Light | None:
        """None where it would save little, or its memory is more than the inputs' own."""
        n, d = design.inputs.shape
        few = design.n_entries * n_scores < LEAST_PRODUCTS or design.n_entries > ENTRIES_AT_ONCE
        if few or design.precision != np.float64:
            return None
        is_rotated = issparse(design.inputs) and d <= min(n, MOST_ROTATED)
        turned = Turned.of(design, np.float32) if is_rotated else None
        inputs = kept(design.inputs, np.float32) if turned is None else turned.inputs
        if inputs.dtype != np.float32:
            return None
        light = replace(
            design, inputs=inputs, is_turned=turned is not None, precision=np.float32, plain=turned
        )
        return cls(light, turned)

    def back(self, at: Solution) -> Solution:
        """The same solution for the inputs as they were given."""
        if self.turned is None:
            return at
        weights, intercept = self.turned.point(at.weights, at.intercept)
        return replace(at, weights=weights, intercept=intercept)
