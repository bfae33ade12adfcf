"""The label set of least expected loss, from what any model says of its rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, cast

import numpy as np

from setwise.decoders.by_label import ClosedSets, EachLabel, Mode, of_mode
from setwise.decoders.by_size import BySize
from setwise.decoders.decisions import Decisions, decide_sparse
from setwise.decoders.lists import (
    MOST_LABELS,
    EverySet,
    best_among,
    best_by_label_sizes,
    kept_losses,
    or_ranked,
    with_edits,
)
from setwise.decoders.shortlist_gap import gaps
from setwise.distributions import Distribution, Independent, Listed, OfSpace, Shortlist
from setwise.spaces.space import Space
from setwise.sparse import row_ranges, tidied
from setwise.targets.measure import Array, OfCounts
from setwise.targets.registry import get_target
from setwise.targets.target import beta_of, follows_from_marginals, hierarchy_of, predicted_size
from setwise.validation import label_matrix, probability_matrix, require_one_of, same_rows

OVER = ("list", "ranked", "edits", "all")
# A risk may be so far beyond 1 by rounding.
ROUNDED = 1e-9


@dataclass(frozen=True)
class MinimumRisk:
    """Turns probabilities into the label sets of least expected loss.

    Of a row it is the set y' with the least sum over y of p(y) L(y', y): from any distribution of
    `setwise.distributions`, or independent marginals (`decode`), from a posterior over listed sets
    (`decode_catalog`) or from scores on a space (`decode_scores`). Predicted may be any label set,
    or any of a list; for precision@k and recall@k the sets of k labels, for tree distance the
    closed sets.

    ==========================  =========================================  ==========
    target                      from independent marginals                 cost a row
    ==========================  =========================================  ==========
    Hamming                     labels above 1/2                           O(l)
    subset 0/1                  labels above 1/2                           O(l)
    tree distance               best closed set, leaves to roots           O(l)
    precision@k, recall@k       the k most probable labels                 O(l log l)
    F-beta, Jaccard, ...        the k most (or least) probable, for all k  O(l log l)
    any function of the counts  the same, by the counts of each size       O(l^3)
    a table of all label sets   all pairs                                  O(4^l)
    ==========================  =========================================  ==========

    For F-beta, Jaccard and every other linear-fractional target, these sets are compared by
    quadrature, with an error below 1e-10.

    Sums over labels need no more than the marginals, so they are exact for every distribution;
    F-beta and recall@k need P(label, size), which mixtures have too. From a list, other targets
    take the best set of the list; from other mixtures they compare all sets of up to 12 labels.

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
    # Facts that estimators ask of a decoder: see `for_target`.
    is_of_whole: ClassVar[bool] = False
    depends_on_batch: ClassVar[bool] = False
    # By number of labels the search with its tables; by space the decoder paired with it; by name
    # what was made of a list or of biases last.
    _kept: dict = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self):
        vars(self).update(target=get_target(self.target))

    def decode(self, distribution, return_risk: bool = False) -> Any:
        """The best label set of each row.

        Parameters
        ----------
        distribution : Distribution, or array or sparse matrix of shape (n, l)
            What is known of the label sets of each row. A matrix holds the probability of each of
            independent labels; in a sparse one absent means 0.
        return_risk : bool, default False
            Whether to return `Decisions`: the sets, their expected loss, and that of the best set
            other than them.

        Returns
        -------
        sets : uint8 array of shape (n, l), CSR if the probabilities were sparse; or Decisions
        """
        # (Cheaper than `isinstance` of a protocol.)
        if not hasattr(distribution, "ranked"):
            distribution = Independent(distribution)
        if len(distribution) == 0:
            raise ValueError("a distribution to decode must have at least one row, but it has none")
        decoder = self._paired(getattr(distribution, "space", None))
        decisions = decoder._decide(distribution, return_risk)
        is_sparse = getattr(distribution, "is_sparse", False)
        return _answer(decisions.sparse() if is_sparse else decisions, return_risk)

    def fitted(self, held_out: Any) -> MinimumRisk:
        """The same: a row is decided by itself, without a look at others."""
        return self

    def decode_scores(self, scores, space: Space, return_risk: bool = False) -> Any:
        """The best label set of each row for the distribution of a space, p(y) = exp(z(y) - A).

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
        return self.decode(OfSpace(space, scores), return_risk)

    def decode_catalog(self, posterior, sets, over: str = "list", return_risk: bool = False) -> Any:
        """The best label set of each row for a posterior over listed label sets.

        Parameters
        ----------
        posterior : array of shape (n, K)
            The probability of each listed set; rows add up to 1.
        sets : array of shape (K, l)
            The label sets, no two alike.
        over : {"list", "ranked", "edits", "all"}, default "list"
            Which sets may be predicted: the listed ones; those and the k most probable labels of
            the row, for any k up to the size of the largest listed set (for functions of the
            counts); those and all sets (for tree distance closed ones) that differ from one of them
            in one label; or all 2^l sets. The last is exact for F-beta (Waegeman et al., 2014) and
            for targets that are sums over labels, and refused for others.
        return_risk : bool, default False
            Whether to return `Decisions`.
        """
        return self.decode_listed(Listed(sets, posterior), over, return_risk)

    def decode_listed(self, given: Listed, over: str, return_risk: bool = False) -> Any:
        """`decode_catalog` of a distribution over listed sets."""
        self.require_over(over, given.sets)
        if over == "all":
            return _answer(self._decide(given, return_risk), return_risk)
        candidates, hierarchy = given.sets, hierarchy_of(self.target)
        if over == "edits":
            candidates = with_edits(given.sets, hierarchy and hierarchy.is_closed)
        measure: Any = self.target.measure(given.n_labels, "loss")
        found = best_among(measure, given.posterior, given.sets, candidates)
        if over == "ranked":
            found = or_ranked(found, measure, given.posterior, given.sets)
        return _answer(found, return_risk)

    def covers_all(self, n_labels: int) -> bool:
        """Whether the best of all label sets follows from sums that every list has."""
        target = self.target
        sized = predicted_size(target) is not None or target.form == "subset"
        return sized or beta_of(target) is not None or follows_from_marginals(target, n_labels)

    def require_over(self, over: str, sets: Array) -> None:
        """Raise where `decode_catalog` has no way from a posterior over these sets."""
        require_one_of(over, OVER, "over")
        # A target that is not defined for so many labels says so.
        measure = self.target.measure(sets.shape[1], "loss")
        if over == "ranked" and not isinstance(measure, OfCounts):
            raise ValueError(
                f"{self.target} is no function of the counts of hits and misses, which "
                f"over='ranked' is for; use over='list'"
            )
        if over == "all":
            if not self.covers_all(sets.shape[1]):
                raise ValueError(
                    f"{self.target} has no exact minimum over all label sets from a posterior over "
                    f"a list; use over='list', over='ranked' or over='edits'"
                )
            return
        self._require_size(sets)
        if over == "edits" and predicted_size(self.target) is not None:
            raise ValueError(
                f"{self.target} is not defined on label sets one label away from the listed "
                f"ones; use over='list'"
            )
        if over == "edits" and self.target.form == "table":
            # It must list what is one label away too.
            for edited in with_edits(sets, None):
                self.target.measure(sets.shape[1], "loss").index(edited, "sets")

    def risk(self, probability, sets) -> Array:
        """The expected loss of given label sets for independent labels, (n,).

        For precision@k and recall@k sets of k labels; for tree distance closed or not.
        """
        checked = probability_matrix(probability)
        n, n_labels = checked.shape
        given = tidied(sets, "sets") if hasattr(sets, "tocsr") else np.atleast_1d(sets)
        same_rows(probability=checked, sets=given)
        search, found = self._search(n_labels), np.empty(n)
        # Dense, some rows at a time.
        for rows in row_ranges(n, n_labels):
            part = checked[rows] if isinstance(checked, np.ndarray) else checked[rows].toarray()
            label_sets = label_matrix(given[rows], n_labels, "sets")
            self._require_size(label_sets)
            found[rows] = search.of_sets(part, label_sets)
        return _in_unit(found)

    def gap(self, shortlist: Shortlist) -> Array:
        """By how much at most the expected utility of each decision is below the best, (n,).

        Whatever the labels outside the shortlists are: no label set of any labels, be they listed
        or not, is better by more, for any sum of probabilities outside between ``least_tail`` and
        ``most_tail``. 0 for precision@k where k labels are listed, and for Hamming and subset 0/1
        where the floor is at most 1/2. Cost: that of `decode` without its pruning, 16 times.
        """
        self.require_shortlists(shortlist.n_labels)
        return gaps(self._search(shortlist.n_labels), shortlist, self._spare)

    def decodes(self, space: Space) -> bool:
        """Whether `decode_scores` has an exact way for the target on the space."""
        try:
            self.prepare(space)
        except ValueError:
            return False
        return True

    def prepare(self, space: Space) -> None:
        """Make what decoding on a space needs before there are scores; raises where it has no way.

        Nothing is decoded: the tables are kept for what will be.
        """
        self._paired(space)._require_way(space)

    def _require_way(self, space: Space) -> None:
        """The choices of `_decide`, by what the space says of itself."""
        target, n_labels = self.target, space.n_labels
        if target.form == "additive" and self._search(n_labels).is_by_marginals:
            return
        by_size = space.size_bias is not None and target.form not in ("subset", "table")
        if space.is_independent or by_size:
            self._search(n_labels)
        elif space.has_label_sizes and self.covers_all(n_labels):
            return
        elif target.form != "subset" and not space.is_listable:
            raise _no_way(target, space)
        elif target.form == "table":
            # It must have a loss for every set of the space.
            space.paired(target)

    def _decide(self, given: Distribution, second: bool) -> Decisions:
        """By the first of these that the distribution offers and the target can use."""
        target, n_labels = self.target, given.n_labels
        ranked = given.ranked()
        if ranked is not None and ranked.outside is not None:
            self.require_shortlists(n_labels)
            return self._by_values(ranked.values, second, ranked.outside)
        if target.form == "additive" and self._search(n_labels).is_by_marginals:
            return self._by_values(given.marginals(), second)
        if ranked is not None and ranked.bias is None:
            return self._by_values(ranked.values, second)
        if ranked is not None and target.form not in ("subset", "table"):
            biased = self._last("bias", ranked.bias, self._search(n_labels).with_bias)
            return biased.decide(ranked.values, second)
        if target.form == "subset":
            found = given.most_likely(second)
            if found is None and (sets := given.listed()) is not None:
                found = Listed.trusted(*sets).most_likely(second)
            if found is not None:
                return of_mode(*found)
        elif not self.covers_all(n_labels) and (found := given.listed()) is not None:
            (sets, posterior), measure = found, cast("Any", target.measure(n_labels, "loss"))
            # On a space of any sets a table also takes those that only it lists.
            of_table = ranked is not None and target.form == "table"
            candidates = measure.sets if of_table else sets
            losses = self._last("sets", sets, lambda sets: kept_losses(measure, sets, candidates))
            return best_among(measure, posterior, sets, candidates, losses)
        elif (decided := best_by_label_sizes(target, given)) is not None:
            return decided
        if n_labels <= MOST_LABELS:
            return EverySet.of(target, n_labels).best(given)
        raise _no_way(target, given)

    def _by_values(self, values: Any, second: bool, outside: Array | None = None) -> Decisions:
        """From marginals, dense or CSR; ``outside`` is what `Ranked` has of further labels."""
        search = self._search(values.shape[1])
        if isinstance(values, np.ndarray):
            return search.decide(values, second)
        spare = self._spare if search.leaves_out_impossible else None

        def decide(part: Array, rows: Any) -> Decisions:
            return search.decide(part, second, *(() if outside is None else (outside[rows],)))

        return decide_sparse(values, decide, spare)

    @property
    def _spare(self) -> int:
        """Labels without an entry that a row may need: as are predicted, one for the second."""
        return (predicted_size(self.target) or 0) + 1

    def require_shortlists(self, n_labels: int) -> None:
        """Raise where a `Shortlist` over so many labels is not enough to decide by."""
        if not getattr(self._search(n_labels), "takes_outside", False):
            raise UndecodableError(
                f"{self.target} is not decided from shortlists of independent labels: it needs the "
                f"probability of every label; F-beta, Jaccard, precision@k, recall@k, Hamming and "
                f"subset 0/1 do not"
            )

    def _paired(self, space: Any) -> MinimumRisk:
        """The decoder for the target on a space, by which tree distances are scaled."""
        if space is None or space.is_independent or hierarchy_of(self.target) is None:
            return self
        if space not in self._kept:
            self._kept[space] = MinimumRisk(self.target.on(space))
        return self._kept[space]

    def _search(self, n_labels: int) -> Any:
        """The exact search over that many independent labels, made once.

        It offers ``decide(values, second)``, where the second risk has no meaning without
        ``second``; ``of_sets(values, sets)``, the expected loss of given sets; ``is_by_marginals``,
        whether marginals are enough, be the labels independent or not; ``leaves_out_impossible``,
        whether only a row's entries above 0 matter.
        """
        if n_labels not in self._kept:
            self._kept[n_labels] = _search_of(self.target, n_labels)
        return self._kept[n_labels]

    def _last(self, name: str, part: Any, make: Callable[[Any], Any]) -> Any:
        """``make(part)``, kept until it is asked for another part.

        (A space has the same list or biases for all its rows.)
        """
        kept = self._kept.get(name)
        if kept is None or kept[0] is not part:
            kept = self._kept[name] = part, make(part)
        return kept[1]

    def _require_size(self, sets: Array) -> None:
        if predicted_size(self.target) is not None:
            # The target's own check of its predictions.
            self.target.loss(sets, sets)

    def __getstate__(self) -> dict:
        # What was made for a number of labels is made again when needed.
        return {"target": self.target, "_kept": {}}


class UndecodableError(ValueError):
    """A target has no exact decoding from a distribution, or on a space."""


def _no_way(target: Any, given: Any) -> UndecodableError:
    return UndecodableError(
        f"{target} has no exact minimum-risk decoding on {given}: it would need all its label "
        f"sets, too many to list. Use MostLikely, or decode from a Cube, Sized or Catalog "
        f"space, or a mixture of lists; of other mixtures, sums over labels and F-beta"
    )


def _search_of(target: Any, n_labels: int) -> Any:
    measure, hierarchy = target.measure(n_labels, "loss"), hierarchy_of(target)
    if hierarchy is not None:
        return ClosedSets(measure, target.parents, hierarchy)
    if target.form == "subset":
        return Mode()
    if target.form == "table":
        return EverySet.of(target, n_labels)
    if target.form != "additive" or predicted_size(target) is not None:
        return BySize.of(target, n_labels)
    if not follows_from_marginals(target, n_labels):
        raise ValueError(
            f"{target} weighs labels by the number of true ones, so they cannot be decided one by "
            f"one; use decode_catalog with listed label sets"
        )
    return EachLabel(measure)


def _answer(decisions: Decisions, return_risk: bool) -> Any:
    """The sets, or all; a risk that rounding took out of [0, 1] is put back to the end."""
    if not return_risk:
        return decisions.sets
    return Decisions(decisions.sets, _in_unit(decisions.risk), _in_unit(decisions.second_risk))


def _in_unit(risk: Array) -> Array:
    """With what is beyond 0 or 1 by rounding put there."""
    return np.where((risk > 1.0) & (risk < 1.0 + ROUNDED), 1.0, np.maximum(risk, 0.0))
