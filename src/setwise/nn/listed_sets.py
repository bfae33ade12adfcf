"""Listed label sets in torch operations: what a measure and a space give each, and their bonuses.

A space that favours listed sets has the law of its base and, beside it, of each of these alone: see
`setwise.spaces.Backoff`. Its log-partition and its means follow from those of the base.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from setwise.nn.differentiable import Constant
from setwise.nn.expected import CountValues, SumTerms, mean_of
from setwise.nn.partition import Partition, Rows, Sum, partition_of
from setwise.spaces import Space
from setwise.targets.measure import ZERO_DIFFERENCE, Additive, Equality, Measure, Table

# Rows of features made at a time while the parameters of listed sets are looked up.
ROWS = 1024


class SetValues:
    """The values of a measure of listed sets, (K, l), against the true sets."""

    def __init__(self, sets: np.ndarray, measure: Measure, masked: bool):
        self._sets, n_labels = Constant(sets.astype(np.float64)), sets.shape[1]
        if isinstance(measure, Additive):
            self._values, self._terms = self._of_sums, SumTerms(measure, n_labels)
        elif isinstance(measure, Table):
            self._values, self._known = self._of_table, Constant(measure.sets.astype(np.float64))
            self._columns = Constant(measure.values[measure.index(sets, "sets")].T)
        else:
            self._values = self._of_counts
            self._counts = CountValues(measure, n_labels, masked, n_labels)

    def __call__(self, rows: Rows) -> Tensor:
        """(n, K)."""
        return self._values(rows)

    def _of_sums(self, rows: Rows) -> Tensor:
        """constant + scale * sum over labels, (n, K); a difference that is only rounding is 0."""
        terms, sets = self._terms(rows), self._sets.beside(rows.truth).T
        value = terms.extra + terms.weight * (terms.on @ sets + terms.off @ (1.0 - sets))
        rounding = max(ZERO_DIFFERENCE, 16.0 * torch.finfo(value.dtype).eps)
        return torch.where(value.abs() <= rounding * terms.extra.abs(), 0.0, value)

    def _of_table(self, rows: Rows) -> Tensor:
        """The column of the true set, (n, K); one that the table does not list has no value."""
        signs = 2.0 * self._known.beside(rows.truth) - 1.0
        same = (2.0 * rows.truth - 1.0) @ signs.T > signs.shape[1] - 0.5
        values = self._columns.beside(rows.truth)[same.long().argmax(-1)]
        return torch.where(same.any(-1, keepdim=True), values, torch.nan)

    def _of_counts(self, rows: Rows) -> Tensor:
        """A function of the counts of each set, (n, K)."""
        sets = self._sets.beside(rows.truth).T
        tp = (rows.truth @ sets).round().long()
        size = (rows.only_known(torch.ones_like(rows.truth)) @ sets).round().long()
        return self._counts.at(rows, tp, size - tp)


class SetBias:
    """What the parameters of a space add to each of the given sets, (K,)."""

    def __init__(self, space: Space, sets: np.ndarray):
        parts = np.array_split(sets, range(ROWS, len(sets), ROWS))
        used = [np.nonzero(space.features(part)) for part in parts]
        row = np.concatenate([rows + ROWS * part for part, (rows, _) in enumerate(used)])
        count = np.bincount(row, minlength=len(sets))
        # Beyond the last parameter there is one of 0, for sets that use fewer than others.
        places = np.full((len(sets), count.max()), len(space.parameters))
        nth = np.arange(len(row)) - (np.cumsum(count) - count)[row]
        places[row, nth] = np.concatenate([columns for _, columns in used])
        self.places = Constant(places)

    def __call__(self, parameters: Tensor) -> Tensor:
        """g of each set; -inf where excluded."""
        padded = torch.cat([parameters, torch.zeros_like(parameters[:1].sum()[None])])
        return padded[self.places.beside(parameters)].sum(-1)


class Favoured:
    """The listed sets of a space that favours them, beside the log-partition of its base."""

    def __init__(self, base: Space, sets: np.ndarray, partition: Partition):
        self._partition, self._n_own = partition, len(base.parameters)
        self._sets, self._bias = Constant(sets.astype(np.float64)), SetBias(base, sets)

    def partition(self, states: Sum, parameters: Tensor) -> Sum:
        """The log-partition, of which the base and each listed set are parts."""
        base, listed = self._partition(states, parameters[: self._n_own]), states.map(self._over)
        log, own, shares = self._shares(base.log, listed.log, parameters)
        if base.mean is None or listed.mean is None:
            return Sum(log)
        return Sum(log, own * base.mean + (shares * listed.mean).sum(-1))

    def shares(self, rows: Rows) -> tuple[Tensor, Tensor]:
        """The share of the base (n,), and what the bonus adds to that of each set, (n, K)."""
        states, own = Sum(rows.states), self.of_base(rows).parameters
        base, listed = self._partition(states, own).log, self._over(states.log)
        return self._shares(base, listed, rows.parameters)[1:]

    def of_base(self, rows: Rows) -> Rows:
        """The same rows with the parameters of the base."""
        return replace(rows, parameters=rows.parameters[: self._n_own])

    def _over(self, states: Tensor) -> Tensor:
        """Sums over the labels of each listed set in their states, (..., K); -inf stays."""
        sets = self._sets.beside(states)
        possible = states > -torch.inf
        parts = torch.where(possible, states, 0.0), (~possible).to(states.dtype)
        total, missing = (x[..., 0] @ (1.0 - sets.T) + x[..., 1] @ sets.T for x in parts)
        return torch.where(missing > 0.5, -torch.inf, total)

    def _shares(self, base: Tensor, listed: Tensor, parameters: Tensor):
        """log Z, and the shares of base and listed sets, from log Z_b and the weights in it.

        A set of weight w gains w (e^bonus - 1): in terms of the larger of w and w e^bonus.
        """
        bonus = parameters[self._n_own :]
        rises = bonus > 0.0
        up, down = torch.where(rises, bonus, 0.0), torch.where(rises, 0.0, bonus)
        lifted = listed + self._bias(parameters[: self._n_own]) + up
        high = torch.maximum(base, lifted.amax(-1)).detach()
        high = torch.where(high > -torch.inf, high, 0.0)
        own = torch.exp(base - high)
        gained = torch.exp(lifted - high[..., None]) * (torch.expm1(down) - torch.expm1(-up))
        total = own + gained.sum(-1)
        possible = total > 0
        total = torch.where(possible, total, 1.0)
        log = torch.where(possible, total.log() + high, -torch.inf)
        return log, own / total, gained / total[..., None]


class FavouredMean:
    """E[u] of the base and of the listed sets, by their shares."""

    def __init__(self, favoured: Favoured, mean: Callable[[Rows], Tensor], values: SetValues):
        self._favoured, self._mean, self._values = favoured, mean, values

    def __call__(self, rows: Rows) -> Tensor:
        """(n,)."""
        base, listed = self._favoured.shares(rows)
        own = base * self._mean(self._favoured.of_base(rows))
        return own + (listed * self._values(rows)).sum(-1)


def structure_of(
    measure: Measure, space: Space, masked: bool
) -> tuple[Partition, Callable[[Rows], Tensor]] | None:
    """The log-partition of a space and the mean of a measure on it, where both have a structure."""
    if space.favoured is None:
        partition = partition_of(space)
        mean = None if partition is None else mean_of(measure, space, partition, masked)
        return None if partition is None or mean is None else (partition, mean)
    base, sets = space.favoured
    found = structure_of(measure, base, masked)
    if found is None:
        return None
    favoured = Favoured(base, sets, found[0])
    if isinstance(measure, Equality):
        mean = mean_of(measure, space, favoured.partition, masked)
        assert mean is not None
        return favoured.partition, mean
    return favoured.partition, FavouredMean(favoured, found[1], SetValues(sets, measure, masked))
