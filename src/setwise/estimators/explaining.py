"""What raised and what lowered the labels of a row: contributions of features to log-odds.

What is explained is what `predict_proba` says: the log-odds log P - log(1 - P) of each label. A
model gets to them by coordinates u (scores of labels or sets, or the probabilities of a forest)
that are sums over features, u = base + sum_j part_j. The log-odds L of a label are a function of
all coordinates, since labels depend on each other. On the straight way from the base to the row,

    contribution of j = integral over t in [0, 1] of grad L(base + t (u - base)) · part_j,

which is Aumann and Shapley's share. Contributions add up to L(u) - L(base); a feature without a
part has 0; and where the log-odds of a label are its own score (binary relevance, the cube), they
are the parts themselves.

With scores of labels on a space of label sets, the log-odds of label i grow with the score of label
k by 2 (P(k | i) - P(k | not i)): what speaks for k speaks for i as far as they come together. The
log-odds of the marginal are not twice the score there; their difference is what the space and the
other labels bring, and it is shared among the features that bring it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import quad_vec
from scipy.sparse import issparse
from scipy.special import expit
from sklearn.ensemble._forest import BaseForest
from sklearn.model_selection._search import BaseSearchCV
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from setwise.estimators.explanation import Explanation, feature_names_of
from setwise.estimators.leaf_forest import LeafForest
from setwise.estimators.scored import ScoredClassifier
from setwise.spaces.listing import listing_of, posterior_of
from setwise.spelling import known_names
from setwise.validation import places_of

Array = NDArray[Any]

# How exactly contributions add up, and the most parts the way is cut into.
EXACT, MOST_PARTS = 1e-10, 400
# A score that decides a label where all others are 0.
DECIDED = 20.0
# A probability of a forest that is 0 counts so much.
LEAST = 1e-9


def explain(
    model: Any,
    X: Any,
    *,
    rows: Sequence[int] | None = None,
    labels: Sequence[Any] | None = None,
    background: Any = None,
    feature_names: Sequence[str] | None = None,
) -> list[Explanation]:
    """What raised and lowered the labels of each row: contributions of features to log-odds.

    For linear scores and boosted trees (by XGBoost's own contributions), forests in a
    `CatalogClassifier` (by the changes of the posterior on the way to the leaves), and mixtures of
    these, also at the end of a pipeline. See `setwise.estimators.explaining` for the formula.

    Parameters
    ----------
    model : fitted `SetClassifier`, `SetClassifierCV`, `SetBooster`, `CatalogClassifier` or
        `SetEnsemble`, or a Pipeline or a search that ends in one
    X : array, sparse matrix or data frame of shape (n, n_features)
        The rows to explain. Where what is predicted for a row depends on those that come with it
        (``depends_on_batch_``), all that are predicted together.
    rows : sequence of int, optional
        Which of them to explain; by default all.
    labels : sequence, optional
        Names of the labels to explain, as in ``classes_``; by default those predicted for the row,
        or the most probable one where none is.
    background : like X, optional
        Rows whose mean is the base of linear scores, such as the training rows; by default the base
        is a row of zeros. (Trees have a base of their own: the mean over their training rows.)
    feature_names : sequence of str, optional
        By default those that the model was fitted with, else numbers.

    Examples
    --------
    >>> from setwise import SetClassifier
    >>> X = [[0.0, 1.0], [1.0, 0.0], [0.0, 0.9], [0.8, 0.1]]
    >>> model = SetClassifier(space="cube", alpha=0.1).fit(X, [[1, 0], [0, 1], [1, 0], [1, 1]])
    >>> (row,) = explain(model, [[0.0, 1.0]])
    >>> bool(abs(row.contributions.sum() - (row.log_odds - row.base).sum()) < 1e-6)
    True
    """
    inputs: Any
    inputs, base = (
        np.asarray(of) if isinstance(of, list | tuple) else of for of in (X, background)
    )
    model = model.best_estimator_ if isinstance(model, BaseSearchCV) else model
    if isinstance(model, Pipeline):
        before, model = model[:-1], model[-1]
        if feature_names is None and hasattr(before, "feature_names_in_"):
            told: Any = before.get_feature_names_out()
            feature_names = list(told)
        inputs = before.transform(inputs) if len(before) else inputs
        base = before.transform(base) if len(before) and base is not None else base
    if not hasattr(model, "predict_proba"):
        raise UnexplainableError(
            f"the model must be a fitted classifier of setwise, with predict_proba, not {model!r}"
        )
    check_is_fitted(model)
    names, whole = np.asarray(model.classes_), inputs
    if rows is not None:
        inputs = _safe_indexing(inputs, places_of(rows, "rows", inputs.shape[0], "rows of X"))
    if rows is not None and getattr(model, "depends_on_batch_", False):
        decided = _dense(model.predict(whole))[np.asarray(rows)]
    else:
        decided = _dense(model.predict(inputs))
    if decided.ndim == 1:
        decided = (decided[:, None] == names).astype(int)
    likely = None
    if labels is None:
        try:
            likely = _dense(model.predict_proba(inputs))
        except ValueError as error:
            # The rows can be predicted, so it is the scores that have no probability.
            raise UnexplainableError(str(error)) from error
    wanted = None if labels is None else _places(labels, names.tolist())
    n_features, given = inputs.shape[1], inputs
    told, found = feature_names_of(model, "feature_names_in_", feature_names, n_features), []
    for row, sets in enumerate(decided):
        places = np.flatnonzero(sets) if wanted is None else wanted
        if likely is not None and len(places) == 0:
            places = likely[row].argmax(keepdims=True)
        one = given.iloc[[row]] if hasattr(given, "iloc") else given[row : row + 1]
        parts = _integrated(_ways(model, one, base, places))
        cells = np.asarray(_dense(one), object if hasattr(one, "iloc") else None)[0]
        found.append(
            Explanation(names[places], sets[places] == 1, *parts, feature_names=told, values=cells)
        )
    return found


class UnexplainableError(ValueError):
    """A model that cannot be taken apart into features."""


class Way(NamedTuple):
    """How a member gets from the base to a row.

    ``at(t)`` gives the log-odds (s,) of the labels and their gradient (s, q) by the coordinates;
    what feature j adds to these is ``weights[:, j] * deltas[j]``.
    """

    at: Any
    weights: Array
    deltas: Array
    name: str = ""
    share: float = 1.0

    @property
    def length(self) -> Array:
        """The sum of what features add to each coordinate, whatever its sign, (q,)."""
        return np.abs(self.weights) @ np.abs(self.deltas)


def _ways(model: Any, row: Any, background: Any, labels: Array) -> list[Way]:
    """The way of a model, or of each member of a mixture that counts."""
    if not hasattr(model, "members_"):
        way = _way(model, row, background, labels, 1.0, is_member=False)
        if way is None:
            raise UnexplainableError(
                f"{type(model).__name__} cannot be taken apart into features: explained are linear "
                f"scores, boosted trees, forests in a CatalogClassifier, and mixtures of these"
            )
        return [way]
    found = []
    for told, share in zip(model.contributions_, model.weights_, strict=True):
        if share > 0.0:
            member, power = model.members_[told["member"]], told["temperature"]
            way = _way(member, row, background, labels, power)
            way = _standing(member, row, labels, power) if way is None else way
            found.append(way._replace(name=told["member"], share=float(share)))
    return found


def _way(
    model: Any, row: Any, background: Any, labels: Array, power: float, is_member: bool = True
) -> Way | None:
    """The way of one model to a row; None for one that cannot be taken apart."""
    if isinstance(model, ScoredClassifier):
        fitted = model._fitted()
        law = _Scored(fitted, labels, power, is_member)
        base = None if background is None else fitted._checked(background)
        weights, deltas = fitted._score_parts(fitted._checked(row), base)
        whole = weights @ deltas
        start = fitted._scores(fitted._checked(row))[0] - whole
        return Way(lambda t: law(start + t * whole), weights, deltas)
    forest = getattr(model, "estimator_", None)
    is_known = isinstance(forest, BaseForest | LeafForest) and hasattr(model, "posterior")
    if not is_known:
        return None
    start, parts = _forest_parts(forest, row, len(model.sets_))
    whole, has = parts.sum(axis=1), model.sets_[:, labels].T == 1
    at = lambda t: _listed(np.maximum(start + t * whole, 0.0), has, power)  # noqa: E731
    return Way(at, parts, np.ones(parts.shape[1]))


def _standing(member: Any, row: Any, labels: Array, power: float) -> Way:
    """A member that cannot be taken apart: what it says of the row is part of the base."""
    law = member.predict_distribution(row)
    law = law if power == 1.0 else law.tempered(power)
    chance = np.clip(_dense(law.marginals())[0, labels], LEAST, 1.0 - LEAST)
    odds, nothing = np.log(chance) - np.log1p(-chance), np.empty((len(labels), 0))
    return Way(lambda t: (odds, nothing), np.empty((0, row.shape[1])), np.zeros(row.shape[1]))


class _Scored:
    """Log-odds of some labels, and their gradient, from one row of scores."""

    def __init__(self, model: Any, labels: Array, power: float, is_member: bool):
        self.model, self.labels, self.power = model, labels, power
        self.space = model.space_ if power == 1.0 else model.space_.tempered(power)
        # Of classes, probabilities of labels by themselves are divided by their sum.
        self.is_share = model._names.one_dimensional and not is_member

    def __call__(self, scores: Array) -> tuple[Array, Array]:
        training = self.model._trained
        if training.is_by_label:
            return self._by_label(training.loss(self.space), scores)
        if self.space.is_joint:
            posterior = posterior_of(listing_of(self.space), self.power * scores[None])[1]
            sets = listing_of(self.space).sets
            log_odds, given = _conditional(posterior[0], sets[:, self.labels].T == 1)
            return log_odds, self.power * given
        if self.space.is_independent:
            gradient = 2.0 * self.power * np.eye(len(scores))[self.labels]
            return 2.0 * self.power * scores[self.labels], gradient
        return self._of_space(self.power * scores)

    def _by_label(self, loss: Any, scores: Array) -> tuple[Array, Array]:
        """Each label has its own score: the log-odds are a function of it alone."""
        (odds,), (slope,) = loss.log_odds(scores[None])
        if self.is_share:
            return _of_shares(odds, slope, self.labels)
        gradient = np.zeros((len(self.labels), len(scores)))
        gradient[np.arange(len(self.labels)), self.labels] = slope[self.labels]
        return self.power * odds[self.labels], self.power * gradient

    def _of_space(self, scores: Array) -> tuple[Array, Array]:
        """By the sums over the sets with a label, and without it: its score is put beyond all."""
        n, own = len(self.labels), scores[self.labels]
        parameters = self.space.parameters
        parameters = parameters[np.isfinite(parameters)]
        # So far that what is beyond weighs nothing beside the rest: exp(-2 DECIDED) is below 1e-17.
        beyond = DECIDED + 4.0 * (np.abs(scores).sum() + np.abs(parameters).sum())
        forced = np.tile(scores, (2 * n, 1))
        forced[np.arange(n), self.labels] = beyond
        forced[np.arange(n, 2 * n), self.labels] = -beyond
        likely, sums = self.space.marginals(forced), self.space.log_partition(forced)
        log_odds = sums[:n] - sums[n:] + 2.0 * own
        gradient = 2.0 * self.power * (likely[:n] - likely[n:])
        # A label that is in every set, or in none, has no other side.
        never = likely[np.arange(n), self.labels] < 0.5
        always = likely[np.arange(n, 2 * n), self.labels] > 0.5
        gradient[never | always] = 0.0
        return np.where(never, -np.inf, np.where(always, np.inf, log_odds)), gradient


def _of_shares(odds: Array, slope: Array, labels: Array) -> tuple[Array, Array]:
    """Log-odds of p / sum p for some labels, and their gradient, from log-odds of p and slopes."""
    likely = expit(odds)
    others = likely.sum() - likely[labels]
    # d log p = (1 - p) · slope; the log-odds of a share are log p - log (the sum of the others).
    gradient = -(likely * (1.0 - likely) * slope) / others[:, None]
    gradient[np.arange(len(labels)), labels] = ((1.0 - likely) * slope)[labels]
    return np.log(likely[labels]) - np.log(others), gradient


def _conditional(chance: Array, has: Array) -> tuple[Array, Array]:
    """Log-odds of labels from the probabilities of sets (K,), and P(set | label) - P(set | not)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        on, off = (side * chance for side in (has, ~has))
        sums = [side.sum(axis=1, keepdims=True) for side in (on, off)]
        given, log_odds = (on / sums[0], off / sums[1]), (np.log(sums[0]) - np.log(sums[1]))[:, 0]
    return log_odds, np.where(np.isfinite(log_odds)[:, None], given[0] - given[1], 0.0)


def _listed(chance: Array, has: Array, power: float) -> tuple[Array, Array]:
    """The same of probabilities of a forest as coordinates, raised to a power."""
    chance = chance + LEAST
    raised = (chance / chance.max()) ** power
    log_odds, given = _conditional(raised / raised.sum(), has)
    return log_odds, power * given / chance


def _forest_parts(forest: Any, row: Any, n_sets: int) -> tuple[Array, Array]:
    """The mean posterior (K,) at the roots, and what features change on the way to the leaves."""
    start, parts = np.zeros(n_sets), np.zeros((n_sets, forest.n_features_in_))
    classes = np.asarray(forest.classes_)
    if isinstance(forest, LeafForest):
        start[classes], parts[classes] = forest.parts(row)
        return start, parts
    for one in forest.estimators_:
        tree = one.tree_
        share = tree.value[:, 0, :] / tree.value[:, 0, :].sum(axis=1, keepdims=True)
        path = one.decision_path(row).indices
        start[classes] += share[path[0]]
        for feature, moved in zip(
            tree.feature[path[:-1]], np.diff(share[path], axis=0), strict=True
        ):
            parts[classes, feature] += moved
    return start / len(forest.estimators_), parts / len(forest.estimators_)


def _integrated(ways: list[Way]) -> tuple[Any, ...]:
    """Log-odds of row and base, contributions, those by member, and members that stand apart."""
    logs, single = np.log([way.share for way in ways])[:, None], len(ways) == 1

    def mixed(t: float) -> tuple[Array, Array]:
        """Log-odds of the mixture (s,), and its gradient by the coordinates of all members."""
        odds, slopes = zip(*(way.at(t) for way in ways), strict=True)
        if single:
            return odds[0], slopes[0]
        on, off = (-np.logaddexp(0.0, sign * np.array(odds)) for sign in (-1.0, 1.0))
        present, absent = (np.logaddexp.reduce(side + logs, axis=0) for side in (on, off))
        with np.errstate(invalid="ignore"):
            whole, share = present - absent, np.exp(logs + on + off - present - absent)
        share = np.where(np.isfinite(whole), share, 0.0)[:, :, None]
        return whole, np.concatenate([s * g for s, g in zip(share, slopes, strict=True)], axis=1)

    length = np.concatenate([way.length for way in ways])
    mean = quad_vec(
        lambda t: mixed(t)[1] * length, 0.0, 1.0, epsabs=EXACT, norm="max", limit=MOST_PARTS
    )[0]  # fmt: skip
    mean = np.divide(mean, length, out=np.zeros_like(mean), where=length > 0.0)
    parts = np.split(mean, np.cumsum([len(way.weights) for way in ways])[:-1], axis=1)
    members = {
        way.name: (own @ way.weights) * way.deltas for way, own in zip(ways, parts, strict=True)
    }
    apart = tuple(way.name for way in ways if len(way.weights) == 0)
    whole = np.sum(list(members.values()), axis=0)
    return mixed(1.0)[0], mixed(0.0)[0], whole, {} if single else members, apart


def _places(wanted: Sequence[Any], names: list[Any]) -> Array:
    """Where the labels stand among the names."""
    if isinstance(wanted, str) or not np.iterable(wanted) or not len(wanted):
        raise ValueError(f"labels must be a list of names of labels, at least one, not {wanted!r}")
    by_name = {str(name): place for place, name in enumerate(names)}
    for label in wanted:
        if str(label) not in by_name:
            raise ValueError(
                f"there is no label {str(label)!r}; {known_names(str(label), list(by_name))}"
            )
    return np.array([by_name[str(label)] for label in wanted])


def _dense(values: Any) -> Any:
    return values.toarray() if issparse(values) else values
