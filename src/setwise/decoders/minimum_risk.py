"""The label set of least expected loss, from the probabilities of any model."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from setwise.decoders.by_label import ClosedSets, Labels, Mode
from setwise.decoders.by_size import BySize
from setwise.decoders.catalog import best_among, best_edited, best_f_beta, best_of_size
from setwise.decoders.count_sizes import CountSizes
from setwise.decoders.decisions import Decisions
from setwise.decoders.direction import directions
from setwise.decoders.every_set import EverySet, small_first
from setwise.decoders.hierarchy import HierarchySets
from setwise.decoders.most_likely import most_likely_decisions
from setwise.decoders.sizes import Sizes
from setwise.decoders.sparse import decide_dense, decide_entries, row_ranges
from setwise.spaces.catalog import Catalog
from setwise.spaces.cube import Cube
from setwise.spaces.listing import Listing, listing_of, posterior_of
from setwise.spaces.sized import Sized
from setwise.spaces.space import Space
from setwise.targets.at_k import PrecisionAtK, RecallAtK
from setwise.targets.linear_fractional import FBeta
from setwise.targets.measure import Additive, Array, Fraction, Table
from setwise.targets.registry import get_target
from setwise.targets.target import Target
from setwise.targets.tree_distance import TreeDistance
from setwise.validation import label_matrix, probability_matrix, real_array, score_matrix

# Spaces with more sets than this are not listed.
LISTABLE = 2**14
# Functions of the counts take the cube of the number of labels.
MOST_COUNTED = 1000
# How far the probabilities of a row may be from a sum of 1.
SUM_ERROR = 1e-5
OVER = ("list", "edits", "all")
# A risk may be so far beyond 1 by rounding.
ROUNDED = 1e-9


class Way(Protocol):
    """An exact search for the best set, given what the labels' values are."""

    @property
    def leaves_out_impossible(self) -> bool:
        """Whether only a row's entries above 0 matter."""
        ...

    def decide(self, values: Array, second: bool) -> Decisions:
        """The best sets; without ``second`` the second risk has no meaning."""
        ...

    def of_sets(self, values: Array, sets: Array) -> Array:
        """The expected loss of given sets, (n,)."""
        ...


@dataclass(frozen=True)
class MinimumRisk:
    """The label set y' with the least expected loss, sum over y of p(y) L(y', y).

    From independent marginals (`decode`), from a posterior over listed sets (`decode_catalog`) or
    from scores on a space (`decode_scores`). Predicted may be any label set, or any of a list; for
    precision@k and recall@k the sets of k labels, for tree distance the closed sets.

    ============================  ==================================================  ============
    target                        from independent marginals                          cost a row
    ============================  ==================================================  ============
    Hamming                       labels above 1/2                                    O(l)
    subset 0/1                    labels above 1/2                                    O(l)
    tree distance                 best closed set, leaves to roots                    O(l)
    precision@k, recall@k         the k most probable labels                          O(l log l)
    F-beta, Jaccard, any          the k most (or least) probable labels, all k        O(l log l)
    linear-fractional             compared by quadrature, error below 1e-10
    any function of the counts    the same, by the law of the counts                  O(l^3)
    a table of all label sets     all pairs                                           O(4^l)
    ============================  ==================================================  ============

    The top (or bottom) k labels are the best k if the loss is monotone in tp at fixed predicted and
    true size; a target for which it is not is refused at the first decode.

    Ties: where sets are compared by size or from a list, expected losses that differ by no more
    than 1e-11 are equal. Of equal sets the smaller is taken; among labels of equal probability the
    lower; from a list the earlier set. A label decided by itself is left out at exactly 1/2.

    Parameters
    ----------
    target : Target or str
        What a prediction is judged by.

    Examples
    --------
    At F1, a label of probability .4 is worth predicting beside one that is likely:

    >>> probability = [[0.8, 0.4, 0.1]]
    >>> MinimumRisk("hamming").decode(probability)
    array([[1, 0, 0]], dtype=uint8)
    >>> MinimumRisk("f1").decode(probability)
    array([[1, 1, 0]], dtype=uint8)
    """

    target: Any
    _ways: dict = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self):
        object.__setattr__(self, "target", get_target(self.target))

    def decode(self, probability, return_risk: bool = False) -> Any:
        """The best label set of each row for independent labels.

        Parameters
        ----------
        probability : array or sparse matrix of shape (n, l)
            The probability of each label. In a sparse matrix absent means 0.
        return_risk : bool, default False
            Whether to return `Decisions`: the sets, their expected loss, and that of the best set
            other than them.

        Returns
        -------
        sets : uint8 array of shape (n, l), CSR if the probabilities were sparse; or Decisions
        """
        checked = probability_matrix(probability)
        way = self._way(checked.shape[1])
        if isinstance(checked, np.ndarray):
            return _answer(way.decide(checked, return_risk), return_risk)

        def decide(values: Array) -> Decisions:
            return way.decide(values, return_risk)

        if way.leaves_out_impossible:
            spare = self.target.k + 1 if isinstance(self.target, PrecisionAtK | RecallAtK) else 1
            return _answer(decide_entries(checked, decide, spare), return_risk)
        return _answer(decide_dense(checked, decide), return_risk)

    def risk(self, probability, sets) -> Array:
        """The expected loss of given label sets for independent labels, (n,).

        For precision@k and recall@k sets of k labels; for tree distance closed or not.
        """
        checked = probability_matrix(probability)
        n, n_labels = checked.shape
        if np.shape(sets)[:1] != (n,):
            raise ValueError(
                f"probability and sets must have the same number of rows, "
                f"but probability has shape {checked.shape} and sets {np.shape(sets)}"
            )
        way, found = self._way(n_labels), np.empty(n)
        given = sets.tocsr() if hasattr(sets, "tocsr") else np.asarray(sets)
        # Dense, some rows at a time.
        for rows in row_ranges(checked.shape):
            part = checked[rows] if isinstance(checked, np.ndarray) else checked[rows].toarray()
            label_sets = label_matrix(given[rows], n_labels, "sets")
            self._require_size(label_sets)
            found[rows] = way.of_sets(part, label_sets)
        return _in_unit(found)

    def decode_catalog(self, posterior, sets, over: str = "list", return_risk: bool = False) -> Any:
        """The best label set of each row for a posterior over listed label sets.

        Parameters
        ----------
        posterior : array of shape (n, K)
            The probability of each listed set; rows add up to 1.
        sets : array of shape (K, l)
            The label sets, no two alike.
        over : {"list", "edits", "all"}, default "list"
            Which sets may be predicted: the listed ones; those and all sets (for tree distance
            closed ones) that differ from one of them in one label; or all 2^l sets. The last is
            exact for F-beta (Waegeman et al., 2014) and for targets that are sums over labels, and
            refused for others.
        return_risk : bool, default False
            Whether to return `Decisions`.
        """
        listed = Catalog(sets)
        chance = _posterior(posterior, len(listed.sets))
        if over not in OVER:
            raise ValueError(f"over must be one of {', '.join(map(repr, OVER))}, not {over!r}")
        if over == "all":
            return _answer(self._over_all(chance, listed), return_risk)
        self._require_size(listed.sets)
        measure = self.target.measure(listed.n_labels, "loss")
        if over == "edits":
            if isinstance(self.target, PrecisionAtK | RecallAtK):
                raise ValueError(
                    f"{self.target} is not defined on label sets one label away from the listed "
                    f"ones; use over='list'"
                )
            tree = isinstance(self.target, TreeDistance)
            closed = self.target.hierarchy.is_closed if tree else None
            return _answer(best_edited(measure, chance, listed.sets, closed), return_risk)
        return _answer(best_among(measure, chance, listed.sets, listed.sets), return_risk)

    def decode_scores(self, scores, space: Space, return_risk: bool = False) -> Any:
        """The best label set of each row for the law of a space, p(y) = exp(z(y) - A).

        Exact over all label sets where `decode` or `decode_catalog` over all sets is, on Cube and
        Sized for every target of `decode`; for other targets on a Catalog, Paths or a small Forest,
        over the sets of the space.

        Parameters
        ----------
        scores : array of shape (n, space.n_scores)
        space : Space
        return_risk : bool, default False
            Whether to return `Decisions`.
        """
        if not isinstance(space, Space):
            raise ValueError(f"a space is an object such as Cube(10), but this is {space!r}")
        checked = score_matrix(scores, space.n_scores)
        if 0 in checked.shape:
            raise ValueError(f"scores must have at least one row, but its shape is {checked.shape}")
        checked = checked.astype(np.float64)
        if isinstance(space, Cube):
            return self.decode(space.marginals(checked), return_risk)
        paired = self
        if isinstance(self.target, TreeDistance):
            paired = MinimumRisk(self.target.on(space))
        return _answer(paired._on(space, checked, return_risk), return_risk)

    def decodes(self, space: Space) -> bool:
        """Whether `decode_scores` has an exact way on a space of this kind and size."""
        target = self.target
        if isinstance(space, Cube) or target.form in ("additive", "subset"):
            return True
        by_size = isinstance(space, Sized) and target.form in ("linear_fractional", "counts")
        return by_size or _is_listable(space)

    def _on(self, space: Space, scores: Array, second: bool) -> Decisions:
        target, at_k = self.target, isinstance(self.target, PrecisionAtK | RecallAtK)
        if target.form == "additive" and not isinstance(target, RecallAtK):
            # The expectation of a sum over labels needs only the marginals, whatever the law.
            way = self._way(space.n_labels)
            return way.decide(np.clip(space.marginals(scores), 0.0, 1.0), second)
        if isinstance(space, Sized) and (target.form in ("linear_fractional", "counts") or at_k):
            way = self._way(space.n_labels)
            assert isinstance(way, BySize)
            measure = _size_measure(target, space.n_labels)
            bias = space.bias[: int(space.sizes[-1]) + 1]
            search = CountSizes(measure, space.n_labels, bias, scores=True)
            return BySize(search, way.top, way.bottom).decide(scores, second)
        if target.form == "subset" and not isinstance(space, Listing):
            return most_likely_decisions(space, scores, second)
        if _is_listable(space):
            listing = listing_of(space)
            allowed = space.contains(listing.sets)
            posterior = posterior_of(listing, scores)[1][:, allowed]
            listed = Catalog(listing.sets[allowed])
            if self._covers_all:
                return self._over_all(posterior, listed)
            measure = target.measure(space.n_labels, "loss")
            if isinstance(measure, Table) and isinstance(space, Sized):
                return best_among(measure, posterior, listed.sets, measure.sets)
            return best_among(measure, posterior, listed.sets, listed.sets)
        raise ValueError(
            f"{self.target} has no exact minimum-risk decoding on {space}: it would need all "
            f"e^{space.log_size:.0f} label sets. Use MostLikely, or decode from a Cube, Sized or "
            f"Catalog space"
        )

    @property
    def _covers_all(self) -> bool:
        """Whether the best of all label sets follows from a posterior over a list."""
        return self.target.form in ("additive", "subset") or isinstance(self.target, FBeta)

    def _over_all(self, posterior: Array, listed: Catalog) -> Decisions:
        target, n_labels = self.target, listed.n_labels
        if isinstance(target, FBeta):
            return best_f_beta(target.beta, target.empty, posterior, listed.sets)
        if isinstance(target, PrecisionAtK | RecallAtK):
            measure = target.measure(n_labels, "utility")
            size = listed.sets.sum(axis=1, dtype=np.float64)
            share = listed.sets * (measure.scale(size) * measure.weights[0])[:, None]
            return best_of_size(posterior @ share, target.k, posterior @ measure.constant(size))
        if target.form == "additive":
            marginals = np.clip(posterior @ listed.sets, 0.0, 1.0)
            return self._way(n_labels).decide(marginals, True)
        if target.form == "subset":
            return _mode_of_list(target, posterior, listed)
        raise ValueError(
            f"{target} has no exact minimum over all label sets from a posterior over a list; "
            f"use over='list' or over='edits'"
        )

    def __getstate__(self) -> dict:
        # What was made for a number of labels is made again when needed.
        return {"target": self.target, "_ways": {}}

    def _way(self, n_labels: int) -> Way:
        if n_labels not in self._ways:
            self._ways[n_labels] = _way_of(self.target, n_labels)
        return self._ways[n_labels]

    def _require_size(self, sets: Array) -> None:
        if isinstance(self.target, PrecisionAtK | RecallAtK):
            # The target's own check of its predictions.
            self.target.loss(sets, sets)


def _is_listable(space: Space) -> bool:
    return isinstance(space, Listing) or space.log_size <= np.log(LISTABLE) + 1e-9


def _answer(decisions: Decisions, return_risk: bool) -> Any:
    """The sets, or all; a risk that rounding took out of [0, 1] is put back to the end."""
    if not return_risk:
        return decisions.sets
    return Decisions(decisions.sets, _in_unit(decisions.risk), _in_unit(decisions.second_risk))


def _in_unit(risk: Array) -> Array:
    """With what is beyond 0 or 1 by rounding put there."""
    return np.where((risk > 1.0) & (risk < 1.0 + ROUNDED), 1.0, np.maximum(risk, 0.0))


def _way_of(target: Target, n_labels: int) -> Way:
    """The exact search for a target over that many labels."""
    measure: Any = target.measure(n_labels, "loss")
    if isinstance(target, PrecisionAtK | RecallAtK):
        only = np.arange(n_labels + 1) == target.k
        return BySize(Sizes(_size_measure(target, n_labels), n_labels), only, only & False)
    if isinstance(target, TreeDistance):
        closed = ClosedSets(measure, target.parents)
        return HierarchySets(closed, target.hierarchy) if len(target.left_out) else closed
    if isinstance(measure, Additive):
        _refuse_coupled(target, measure, n_labels)
        return Labels(measure)
    if target.form == "subset":
        return Mode()
    if target.form == "table":
        return EverySet.of(target, n_labels)
    if target.form == "counts":
        _refuse_many(target, n_labels)
    top, bottom = directions(measure, n_labels, str(target))
    utility: Any = target.measure(n_labels, "utility")
    if isinstance(utility, Fraction):
        return BySize(Sizes(utility, n_labels), top, bottom)
    return BySize(CountSizes(utility, n_labels, np.zeros(n_labels + 1)), top, bottom)


def _refuse_many(target: Target, n_labels: int) -> None:
    if n_labels > MOST_COUNTED:
        raise ValueError(
            f"{target} is decoded by the law of the counts, O(n_labels^3) a row, for at most "
            f"{MOST_COUNTED} labels, but there are {n_labels}; a linear-fractional target, or "
            f"decode_catalog with listed label sets, has no such limit"
        )


def _size_measure(target: Target, n_labels: int) -> Any:
    """The utility as a function of the counts; for precision@k and recall@k at size k."""
    if isinstance(target, PrecisionAtK):
        return Fraction(np.eye(5)[1], target.k * np.eye(5)[0], 0.0)
    if isinstance(target, RecallAtK):
        return Fraction(np.eye(5)[1], np.eye(5)[1] + np.eye(5)[3], target.empty)
    return target.measure(n_labels, "utility")


def _refuse_coupled(target: Target, measure: Additive, n_labels: int) -> None:
    sizes = np.arange(n_labels + 1.0)
    if np.ptp(measure.scale(sizes)) > 0 or np.ptp(measure.constant(sizes)) > 0:
        raise ValueError(
            f"{target} weighs labels by the number of true ones, so they cannot be decided one by "
            f"one; use decode_catalog with listed label sets"
        )


def _posterior(posterior: Any, n_sets: int) -> Array:
    array = real_array(posterior, "posterior").astype(np.float64)
    if array.ndim != 2 or array.shape[1] != n_sets or len(array) == 0:
        raise ValueError(
            f"posterior must have shape (n, {n_sets}), one column for each of the listed sets and "
            f"at least one row, but its shape is {array.shape}"
        )
    inside = (array >= 0.0) & (array <= 1.0 + SUM_ERROR)
    if not inside.all():
        row, column = (int(i) for i in np.argwhere(~inside)[0])
        raise ValueError(
            f"posterior must lie in [0, 1], but posterior[{row}, {column}] is {array[row, column]}"
        )
    sums = array.sum(axis=1)
    if (np.abs(sums - 1.0) > SUM_ERROR).any():
        row = int(np.argmax(np.abs(sums - 1.0) > SUM_ERROR))
        raise ValueError(
            f"rows of posterior must add up to 1, but row {row} adds up to {sums[row]}"
        )
    return array


def _mode_of_list(target: Target, posterior: Array, listed: Catalog) -> Decisions:
    """The most likely listed set; a set that is not listed has loss 1 for certain."""
    measure, candidates = target.measure(listed.n_labels, "loss"), small_first(listed.sets)
    decisions = best_among(measure, posterior, listed.sets, candidates)
    unlisted = len(listed.sets) < 2.0**listed.n_labels
    second = np.minimum(decisions.second_risk, 1.0) if unlisted else decisions.second_risk
    return Decisions(decisions.sets, decisions.risk, second)
