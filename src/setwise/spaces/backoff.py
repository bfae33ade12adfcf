"""A space with a bonus for listed label sets: all others stay possible."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from setwise.spaces.catalog import refuse_duplicates
from setwise.spaces.expectation import Expectation, Mean, SubsetExpectation, Tempered
from setwise.spaces.listing import SetList, listing_of, log_share
from setwise.spaces.prefixes import MOST_EXPONENT, Lookup, within_products
from setwise.spaces.space import Array, Moments, Space, weighted_features
from setwise.sparse import row_ranges
from setwise.spelling import brief
from setwise.targets.measure import Form, Of
from setwise.targets.target import Target
from setwise.validation import label_matrix, real_vector, score_matrix

# How strongly training holds a bonus near 0; see `Space.penalties`.
PENALTY = 0.1
# Bonuses up to this are within reach of products.
MOST_BONUS = 40.0


class Shares(NamedTuple):
    """The law of a row as a mixture: of that of the base, and of each listed set alone.

    ``log_partition`` (n,), ``base`` (n,) is the share of the base, ``extra`` (n, K) what the bonus
    adds to the probability of each listed set, ``listed`` (n, K) that probability itself.
    """

    log_partition: Array
    base: Array
    extra: Array
    listed: Array


@dataclass(frozen=True, eq=False)
class Backoff(Space):
    """The label sets of another space, with a bonus for each set of a list.

    z(y') = base z(y') + bonus[k] where y' = y_k is listed, and base z(y') elsewhere: sets seen
    often are favoured, all others stay as possible as the base has them. With Z_b, p_b and E_b the
    sum of weights, the probabilities and the means of the base,

        Z / Z_b = 1 + sum_k p_b(y_k) (e^bonus[k] - 1),
        E[u] = (E_b[u] + sum_k p_b(y_k) (e^bonus[k] - 1) u(y_k)) Z_b / Z:

    terms of one sign, so nothing cancels. The cost is that of the base and one exponential for
    each listed set. What the base answers exactly, this space does.

    Parameters
    ----------
    base : Space
        With a score for each label: Sized, Cube, Forest, Paths, ...
    sets : array of shape (K, n_labels)
        The label sets that are favoured, no two alike, all in the base.
    bonus : array of shape (K,), optional
        Finite and not negative; 0 by default.

    Notes
    -----
    The parameters are those of the base and then the bonuses. Training keeps these from falling
    below 0 (`lower_bounds`): a set that is rarer than the base has it is not favoured, and costs
    what it cost before. The most likely set is that of the base unless a listed one is heavier;
    ties among those: the earlier row of the list.

    Losses with q < 0 weigh sets by e^(q z), where a bonus makes a set lighter: digits are lost, at
    most a factor e^(-q bonus) of the accuracy, where a listed set has nearly all the weight.

    Examples
    --------
    >>> from setwise.spaces import Cube
    >>> space = Backoff(Cube(2), [[1, 1]], [np.log(3.0)])
    >>> space.marginals([[0.0, 0.0]]).round(3)
    array([[0.667, 0.667]])
    >>> space.most_likely([[-0.1, -0.1]])
    array([[1, 1]], dtype=uint8)
    """

    base: Any
    sets: Any
    bonus: Any = None
    n_labels: int = field(init=False, repr=False)
    log_size: float = field(init=False, repr=False)
    sizes: Array = field(init=False, repr=False)
    is_list: bool = field(init=False, repr=False)
    is_path: bool = field(init=False, repr=False)
    is_closed: bool = field(init=False, repr=False)
    carries: frozenset[Form] = field(init=False, repr=False)
    _lookup: ClassVar[Lookup]

    def __post_init__(self):
        base = self.base
        if not isinstance(base, Space) or base.is_joint:
            raise ValueError(
                f"the base of a Backoff is a space with a score for each label, such as Cube(10), "
                f"but it is {base if isinstance(base, Space) else repr(base)}"
            )
        sets = label_matrix(self.sets, base.n_labels, "sets")
        if len(sets) == 0:
            raise ValueError(
                f"a Backoff needs at least one label set, but sets has shape {sets.shape}"
            )
        refuse_duplicates(sets)
        inside = base.contains(sets)
        if not inside.all():
            row = int(np.argmin(inside))
            raise ValueError(
                f"sets must be in the base, but {sets[row].tolist()}, row {row}, is not in {base}"
            )
        bonus = _bonuses(np.zeros(len(sets)) if self.bonus is None else self.bonus, len(sets))
        vars(self).update(
            sets=sets, bonus=bonus, n_labels=base.n_labels, log_size=base.log_size,
            sizes=base.sizes, is_list=base.is_list, is_path=base.is_path, is_closed=base.is_closed,
            carries=base.carries, _lookup=Lookup(sets),
        )  # fmt: skip

    def __getattr__(self, name: str) -> Any:
        # What the sets of a hierarchy are is said by the base.
        if name in ("parents", "leaves_only", "are_paths", "diameter"):
            return getattr(self.base, name)
        raise AttributeError(f"{type(self).__name__} has no {name}")

    @property
    def favoured(self) -> tuple[Space, Array]:
        """The base and the listed sets."""
        return self.base, self.sets

    @property
    def is_even(self) -> bool:
        """Whether no set is favoured over another, by the base or by a bonus."""
        return self.base.is_even and not self.bonus.any()

    @property
    def is_learnable(self) -> bool:
        """True: a bonus says something that no score does."""
        return True

    @property
    def has_label_sizes(self) -> bool:
        """Whether P(label, size) of the base is known without a list."""
        return self.base.has_label_sizes

    @property
    def parameters(self) -> Array:
        """Those of the base, and the bonus of each listed set."""
        return np.concatenate([self.base.parameters, self.bonus])

    @property
    def lower_bounds(self) -> Array:
        """0 for each bonus."""
        return np.concatenate([self.base.lower_bounds, np.zeros(len(self.sets))])

    @property
    def penalties(self) -> Array:
        """`PENALTY` for each bonus: without it, bonuses of all sets seen would grow for ever."""
        return np.concatenate([self.base.penalties, np.full(len(self.sets), PENALTY)])

    def with_parameters(self, values) -> Backoff:
        """The same list, which is not checked again, with other parameters."""
        given = real_vector(values, len(self.parameters), "parameters", minus_infinity=True)
        own, bonus = np.split(given, [len(given) - len(self.sets)])
        return self._with(self.base.with_parameters(own), _bonuses(bonus, len(self.sets)))

    def tempered(self, q: float) -> Backoff:
        """The base tempered, and the bonuses times q."""
        return self._with(self.base.tempered(q), q * self.bonus)

    def _with(self, base: Space, bonus: Array) -> Backoff:
        other = copy(self)
        vars(other).update(base=base, bonus=bonus)
        return other

    def most_likely(self, scores) -> Array:
        """The base's most likely set, or a listed one that is heavier, (n, l)."""
        checked = score_matrix(scores, self.n_labels).astype(np.float64)
        if (self.bonus < 0.0).any():
            # (Of a tempered space.) Some set that is not listed may come next in the base.
            every = listing_of(self)
            return every.sets[np.argmax(every.weights(checked), axis=1)]
        sets, listed = self.base.most_likely(checked), self._listing.weights(checked) + self.bonus
        own = SetList.of(self.base, sets)
        weight = np.einsum("ij,ij->i", checked, 2.0 * sets - 1.0) + own.bias
        best = np.argmax(listed, axis=1)
        heavier = listed[np.arange(len(best)), best] > weight
        return np.where(heavier[:, None], self.sets[best], sets)

    def enumerate(self) -> Array:
        """All sets of the base, (|Y|, l)."""
        return self.base.enumerate()

    def contains(self, sets) -> Array:
        """Whether the set is in the base, (n,)."""
        return self.base.contains(sets)

    def sample(self, n_samples: int, generator: np.random.Generator) -> Array:
        """Sets drawn uniformly from the base, (n_samples, l)."""
        return self.base.sample(n_samples, generator)

    def features(self, sets: Array) -> Array:
        """Those of the base, then 1 at the place of the set in the list, (m, p)."""
        place = self._lookup.index.find(sets)
        return np.hstack([self.base.features(sets), place[:, None] == np.arange(len(self.sets))])

    def others(self, values: Array, total: Array) -> Array:
        """E[u; feature 0] from E[u feature] and E[u]."""
        own, bonus = np.split(values, [values.shape[1] - len(self.sets)], axis=1)
        rest = np.maximum(total[:, None] - bonus, 0.0)
        return np.hstack([self.base.others(own, total), rest])

    def expectation(self, target: Target | str) -> Expectation:
        """As every space; the subset loss, where it is small, from where the base has it."""
        paired = self.paired(target)
        tempered = Tempered(paired, self)
        if paired.form != "subset":
            return tempered
        is_known = getattr(self.base.expectation(target), "loss", None) is not None
        return SubsetExpectation(paired, self, tempered if is_known else None)

    def shares(self, scores: Array) -> tuple[Array, Array]:
        """The share of the base, and what the bonuses add to those of the listed sets."""
        found = self._shares(scores, self.base.mean_scores(scores, False)[0])
        return found.base, found.extra

    def moments(self, scores: Array, *, features: bool = False) -> Moments:
        """Those of the base and of the listed sets, by their shares."""
        m: Moments = self.base.moments(scores, features=features)
        shares, sets = self._shares(scores, m.log_partition), self.sets.astype(np.float64)
        base, own = shares.base[:, None], m.features
        if features:
            own = base * own + shares.extra @ self._listing.features
        return Moments(
            shares.log_partition, base * m.on + shares.extra @ sets,
            base * m.off + shares.extra @ (1.0 - sets), np.hstack([own, shares.listed]),
        )  # fmt: skip

    def mean(
        self, target: Target, scores: Array, y_true: Array, of: Of, parameters: bool = True
    ) -> Mean:
        """That of the base and of the listed sets, by their shares."""
        mean: Mean = self.base.mean(target, scores, y_true, of, parameters)
        measure, listing, parts = target.measure(self.n_labels, of), self._listing, []
        for rows in row_ranges(len(scores), listing.count):
            shares = self._shares(scores[rows], mean.log_partition[rows])
            values, base = measure.matrix(listing, y_true[rows]), shares.base
            by_score, own = listing.aggregate(shares.extra * values)
            if parameters:
                own = own + base[:, None] * mean.parameters[rows]
            parts.append((
                shares.log_partition,
                base * mean.value[rows] + np.einsum("ij,ij->i", shares.extra, values),
                base[:, None] * mean.scores[rows] + by_score,
                np.hstack([own, shares.listed * values]),
            ))  # fmt: skip
        return Mean(*(np.concatenate(part) for part in zip(*parts, strict=True)))

    def negative_log_likelihood(
        self, scores: Array, sets: Array, parameters: bool = True
    ) -> tuple[Array, Array, Array]:
        """-log s(y) and its gradients, from those of the base and the scores of each listed set.

        The true set is kept apart from the others: what they weigh together is what y lacks of
        probability 1, also where that is small. A set that the base does not have has inf.
        """
        n = len(scores)
        if not parameters:
            return *self.summed_likelihood(scores, sets, np.ones(n))[:2], np.empty((n, 0))
        lack, by_score, own = self.base.negative_log_likelihood(scores, sets)
        (lift, gain, kept), listing, place = (
            self._lifts,
            self._listing,
            self._lookup.index.find(sets),
        )
        features = self.base.features(sets)
        level = np.einsum("ij,ij->i", 2.0 * sets - 1.0, scores)
        level += weighted_features(features, self.base.parameters)
        # (The log-partition of the base, or inf where it does not have the set.)
        level = np.where(np.isneginf(level), np.inf, level) + lack
        lifted = listing.weights(scores.astype(np.float64)) + lift - level[:, None]
        listed = np.flatnonzero(place >= 0)
        lifted[listed, place[listed]] = -np.inf
        high = np.maximum(lifted.max(axis=1), 0.0)
        lifted = np.exp(lifted - high[:, None])
        others = np.maximum(lifted @ gain - np.exp(-high) * np.expm1(-lack), lifted @ kept)
        log_own = -lack - high
        log_own[listed] += (lift + np.log(kept))[place[listed]]
        value, part = log_share(others, log_own)
        share, lifted = np.exp(-high) * part, lifted * part[:, None]
        extra = lifted * gain
        apart = 2.0 * (extra @ self.sets - extra.sum(axis=1, keepdims=True) * sets)
        by_score = (share[:, None] * by_score + apart).astype(scores.dtype)
        by_bonus = lifted * kept
        by_bonus[listed, place[listed]] = -(others * part)[listed]
        apart = extra @ listing.features - extra.sum(axis=1, keepdims=True) * features
        own = share[:, None] * own + apart * np.isfinite(self.base.parameters)
        return value, by_score, np.hstack([own, by_bonus])

    def summed_likelihood(
        self, scores: Array, sets: Array, weights: Array, parameters: bool = True
    ) -> tuple[Array, Array, Array]:
        """The same with a sum over rows, by products of what the listed sets have in common.

        Rows whose scores are too large for that, by the logarithms of all weights.
        """
        n, place = len(scores), self._lookup.index.find(sets)
        lack, by_score, own = self.base.negative_log_likelihood(scores, sets)
        features = self.base.features(sets)
        log_own = 2.0 * np.einsum("ij,ij->i", scores, sets) - self._listing.bias.max()
        log_own += weighted_features(features, self.base.parameters)
        near = within_products(scores, log_own) & (lack <= MOST_EXPONENT)
        near &= self.bonus.min() >= 0.0 and self.bonus.max() <= MOST_BONUS
        value, rows = np.empty(n), slice(None) if near.all() else np.flatnonzero(near)
        value[rows], by_score[rows], total = self._by_products(
            (scores[rows], sets[rows], place[rows], -log_own[rows], weights[rows]),
            (lack[rows], by_score[rows], own[rows], features[rows]),
        )
        far = np.flatnonzero(~near)
        for part in row_ranges(len(far), len(self.sets)) if len(far) else ():
            rows = far[part]
            found = self.negative_log_likelihood(scores[rows], sets[rows])
            value[rows], by_score[rows] = found[:2]
            total = total + weights[rows] @ found[2]
        return value, by_score, total

    def _by_products(self, rows: tuple[Array, ...], base: tuple[Array, ...]) -> Any:
        """`summed_likelihood` of rows within reach of products, with what the base says of them.

        All weights are those over the base's weight of the true set: that of all its sets is
        e^lack, and the true one has e^bonus, if it is listed.
        """
        (scores, sets, place, start, weights), (lack, by_score, own, features) = rows, base
        n_sets, listed, beside = len(self.sets), place >= 0, np.expm1(lack)
        bias = np.exp(self._listing.bias - self._listing.bias.max())
        factor, bonus = bias * np.expm1(self.bonus), np.where(listed, self.bonus[place], 0.0)
        rest = np.exp(bonus) + beside
        extra, by_listed, by_set = self._lookup.halves.sums(
            scores, sets, factor, start, place, rest, weights
        )
        value, part = log_share(beside + extra, bonus)
        share, lacks, extra = (1.0 + beside) * part, (beside + extra) * part, extra * part
        by_score = share[:, None] * by_score + by_listed
        by_true = np.bincount(place[listed], (weights * lacks)[listed], n_sets)
        apart = (factor * by_set) @ self._listing.features - (weights * extra) @ features
        own = (weights * share) @ own + apart * np.isfinite(self.base.parameters)
        return value, by_score, np.append(own, bias * np.exp(self.bonus) * by_set - by_true)

    def start_scores(self, sets: Array, weights: Array) -> Array:
        """Those of the base."""
        return self.base.start_scores(sets, weights)

    def _shares(self, scores: Array, log_partition: Array) -> Shares:
        """The shares at scores where the base has that log-partition."""
        lift, gain, kept = self._lifts
        lifted = self._listing.weights(scores) - log_partition[:, None] + lift
        high = np.maximum(lifted.max(axis=1), 0.0)
        lifted = np.exp(lifted - high[:, None])
        base, extra, listed = np.exp(-high), lifted * gain, lifted * kept
        # All listed sets together are a part of the whole: more than rounding may leave of it
        # where a bonus is below 0, as of a tempered space.
        total = np.maximum(base + extra.sum(axis=1), listed.sum(axis=1))
        share = 1.0 / total[:, None]
        return Shares(
            log_partition + high + np.log(total), base / total, extra * share, listed * share
        )

    @cached_property
    def _base_features(self) -> Array:
        """The features of the listed sets in the base, (K, p)."""
        return self.base.features(self.sets)

    @property
    def _listing(self) -> SetList:
        """The listed sets with what the base adds to them."""
        features = self._base_features
        return SetList(self.sets, features, weighted_features(features, self.base.parameters))

    @property
    def _lifts(self) -> tuple[Array, Array, Array]:
        """lift = max(bonus, 0), (e^bonus - 1) / e^lift and e^bonus / e^lift, (K,) each.

        What a bonus adds to the weight of a set, and that weight, as parts of one that is not less.
        """
        lift, drop = np.maximum(self.bonus, 0.0), np.minimum(self.bonus, 0.0)
        return lift, np.expm1(drop) - np.expm1(-lift), np.exp(drop)

    __repr__ = brief

    def __str__(self) -> str:
        return f"Backoff of {len(self.sets)} sets to {self.base}"


def _bonuses(values: Any, n_sets: int) -> Array:
    bonus = real_vector(values, n_sets, "bonus")
    if bonus.min() < 0.0:
        row = int(np.argmin(bonus))
        raise ValueError(f"bonus must not be negative, but bonus[{row}] is {bonus[row]}")
    return bonus
