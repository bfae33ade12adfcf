"""Expectations of sums over labels: marginals, and moments of a sum."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from setwise.spaces.expectation import Mean
from setwise.spaces.forest import Forest
from setwise.spaces.sized import Sized
from setwise.spaces.space import Array
from setwise.targets.measure import Additive, Of
from setwise.targets.target import Target


@dataclass(frozen=True)
class AdditiveMean:
    """Additive targets on Sized and Forest spaces, from the space's moments of a sum."""

    target: Target
    space: Sized | Forest

    def mean(self, scores: Array, y_true: Array, of: Of, parameters: bool = True) -> Mean:
        """constant + scale * E[sum of what each label adds]."""
        measure = self.target.measure(self.space.n_labels, of)
        assert isinstance(measure, Additive)
        n_true = y_true.sum(axis=1, dtype=np.float64)
        constant, scale = measure.constant(n_true), measure.scale(n_true)
        present = measure.agreement[y_true, 1] * measure.weights
        absent = measure.agreement[y_true, 0] * measure.weights
        m = self.space.moments(scores, (present, absent), features=parameters)
        return Mean(
            m.log_partition,
            constant + scale * m.total,
            constant[:, None] * (m.on - m.off) + scale[:, None] * (m.total_on - m.total_off),
            constant[:, None] * m.features + scale[:, None] * m.total_features,
        )

    def on(self, space: Sized | Forest) -> AdditiveMean:
        """The same target on another space."""
        return AdditiveMean(self.target, space)
