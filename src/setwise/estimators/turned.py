"""Inputs that a solver passes over in less time than over those it was given.

Where many models are trained on parts of the same rows, the inputs are turned to their principal
directions once for all of them (`Turned`). One model of sparse inputs is trained most of the way
in single precision (`lighter`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import issparse

from setwise.estimators.design import Array, Design
from setwise.estimators.moments import MOST_ROTATED, along_principal, orthonormal, principal

# Inputs are turned up to this many directions and entries.
MOST_TURNED, MOST_TURNED_ENTRIES = 2560, 2**24
# What an entry of sparse inputs costs a solver, and a variable more, by an entry of turned ones.
ENTRY_COST, VARIABLE_COST = 16, 512
# Inputs beyond this are kept in float64: sums of products would overflow in float32.
LARGEST_SINGLE = 1e18
# The least tolerance for which products in float32 are good enough.
LEAST_SINGLE = 1e-4
# Fewer products of a pass, entries by scores, are not worth a walk of their own.
LEAST_PRODUCTS = 2**22
# Features are far from 0 where a mean is so many times the largest standard deviation.
FAR = 10.0


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


def kept(inputs: Any, dtype: Any) -> Any:
    """Inputs, dense or CSR, in that type, or as they are if they are too large for it."""
    entries = inputs.data if issparse(inputs) else inputs
    small = np.abs(entries).max(initial=0.0) <= LARGEST_SINGLE
    return inputs.astype(dtype, copy=False) if small else inputs


def lighter(design: Design, n_scores: int) -> Design | None:
    """Sparse inputs in float32, with rotations in it too; None where that would save little.

    Products with dense inputs are fast in float64, and of features far from 0 float32 tells little.
    """
    many = design.n_entries * n_scores >= LEAST_PRODUCTS
    if not many or not issparse(design.inputs) or design.precision != np.float64:
        return None
    inputs = kept(design.inputs, np.float32)
    if inputs.dtype != np.float32:
        return None
    variance, rotation = design.spectrum
    if np.abs(design.center).max(initial=0.0) > FAR * np.sqrt(variance.max(initial=0.0)):
        return None
    rotation = None if rotation is None else rotation.astype(np.float32)
    light = replace(design, inputs=inputs, precision=np.float32)
    vars(light).update(center=design.center, spectrum=(variance, rotation))
    return light
