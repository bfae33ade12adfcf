"""Members of a mixture: how they are fitted to some rows, and what they said of rows held out."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing

from setwise.distributions import Distribution, Listed
from setwise.estimators.catalog_classifier import CatalogClassifier
from setwise.estimators.design import weights_of
from setwise.estimators.held_out import folds_for
from setwise.estimators.leaf_forest import LeafForest
from setwise.estimators.set_booster import SetBooster
from setwise.estimators.set_classifier_cv import SetClassifierCV
from setwise.estimators.target_decoder import TargetDecoder
from setwise.estimators.wrapped import seeded, takes_weights
from setwise.labels import LabelNames
from setwise.validation import whole_number

Array = NDArray[Any]

# Rows whose laws are asked for, and mixed, at a time: a law over a list has a number for each set.
ROWS = 1000
# Beyond the first number of rows one part is held out: a fifth, at most the second number of rows.
MANY, MOST_HELD = 10_000, 5_000
# Rows, and trees, of the first fit by which the time of one to all rows is estimated; fewer rows
# where a fit does not end in time by itself; and how time grows with rows. So many times as many
# rows are tried next, while that takes about this part of all time at most; and at most so many
# times as many are learnt from.
PILOT, FEWEST, FEW, GROWTH = 500, 125, 20, 1.2
TIMES, OF_PILOT, MOST_TIMES = 4, 0.2, 32
# Of the time for a fit, what the least that it has to do may take, where it ends in time by itself;
# and what all of it may take where it does not.
LEAST_WORK, ALL_WORK = 0.35, 0.7


class Member(NamedTuple):
    """A fitted estimator, what models like it said of rows held out, in parts, and its power."""

    name: str
    estimator: Any
    laws: list[Distribution]
    power: float = 1.0

    def law(self, given: Distribution) -> Any:
        """A distribution of the estimator's as it is mixed."""
        return given if self.power == 1.0 else given.tempered(self.power)

    def contribution(
        self, weight: float = 1.0, loose: float = 0.0, alone: Any = None, without: Any = None
    ) -> dict[str, Any]:
        """What is told of it as a member; log-losses are None where nothing was compared."""
        return {
            "member": self.name, "weight": float(weight), "temperature": self.power,
            "independent": float(loose), "log_loss": None if alone is None else float(alone),
            "log_loss_without": without,
        }  # fmt: skip


@dataclass(frozen=True, eq=False)
class Given:
    """What `fit` was given, and members fitted to some of its rows."""

    X: Any
    sets: Array
    names: LabelNames
    sample_weight: Any = None
    weights: Array = field(init=False)

    def __post_init__(self):
        vars(self).update(weights=weights_of(self.sample_weight, self.sets))

    def taken(self) -> Given:
        """Without the rows of weight 0, which are not there."""
        used = np.flatnonzero(self.weights)
        if len(used) == len(self.weights):
            return self
        return Given(_safe_indexing(self.X, used), self.sets[used], self.names, self.weights[used])

    @cached_property
    def order(self) -> Array:
        """The rows as chance has them: where time is short, the first of them are taken."""
        return np.random.default_rng(0).permutation(len(self.sets))

    def fit(self, member: Any, rows: Any, name: str, where: str = "") -> Any:
        """A clone of the member, fitted to some rows; ``where`` is said if that fails."""
        y: Any = self.sets[rows].argmax(axis=1) if self.names.one_dimensional else self.sets[rows]
        # (A dense column would be taken for classes; a sparse one is a label.)
        y = csr_array(y) if y.ndim == 2 and y.shape[1] == 1 else y
        params = {} if self.sample_weight is None else {"sample_weight": self.weights[rows]}
        try:
            with warnings.catch_warnings():
                # Warnings of single members, and of folds, are of no use to who asked for all.
                warnings.simplefilter("ignore", UserWarning)
                return copy_of(member).fit(_safe_indexing(self.X, rows), y, **params)
        except Exception as error:
            if where:
                told = f"the member {name!r} could not be fitted {where}"
                raise ValueError(f"{told}: {error}") from error
            error.add_note(f"(This was the member {name!r} of an ensemble, fitted to all rows.)")
            raise

    def laws(self, fitted: Any, rows: Array) -> list[Distribution]:
        """What a fitted member says of some rows, in parts of `ROWS`."""
        parts = (rows[first : first + ROWS] for first in range(0, len(rows), ROWS))
        laws = [fitted.predict_distribution(_safe_indexing(self.X, p)) for p in parts]
        n_classes = self.sets.shape[1]
        if not self.names.one_dimensional or len(fitted.classes_) == n_classes:
            return laws
        # Classes that a fold does not have are impossible there.
        wide = [np.zeros((len(law), n_classes)) for law in laws]
        for law, chance in zip(laws, wide, strict=True):
            own = law.marginals()
            chance[:, fitted.classes_] = own / own.sum(axis=1, keepdims=True)
        return [Listed.trusted(np.eye(n_classes, dtype=np.uint8), chance) for chance in wide]

    def splits(self, cv: Any, seed: Any) -> list[Any]:
        """Rows to learn from and rows held out, by fold, as `SetEnsemble` says of ``cv``."""
        if cv is not None and not isinstance(cv, int | np.integer):
            splitter: Any = check_cv(cv)
            splits = list(splitter.split(self.X, csr_array(self.sets)))
            if not splits:
                raise ValueError("cv must give at least one split, but it gives none")
            return splits
        n_rows = len(self.sets)
        folds, is_many = folds_for(n_rows, seed=seed), cv is None and n_rows > MANY
        if cv is not None:
            folds = replace(folds, n_splits=whole_number(cv, "cv", 2))
        elif is_many:
            folds = replace(folds, n_splits=max(folds_for(MANY).n_splits, n_rows // MOST_HELD))
        splits = folds.split(None, csr_array(self.sets))
        if not is_many:
            return list(splits)
        train, test = next(splits)
        # (As chance has them: where time is short, the first of them are asked for.)
        return [(train, self.order[np.isin(self.order, test)])]

    def held(self, splits: list[Any]) -> list[Array]:
        """The rows held out, in the same parts."""
        return [test[k : k + ROWS] for _, test in splits for k in range(0, len(test), ROWS)]


def compact(law: Distribution) -> Distribution:
    """The same, with the probabilities of a list in half the memory."""
    if isinstance(law, Listed):
        return Listed.trusted(law.sets, law.posterior.astype(np.float32))
    return law


def copy_of(member: Any) -> Any:
    """A clone, of which the type checker knows nothing."""
    return clone(member)


def default_members(target: Any) -> dict[str, Any]:
    """Linear scores, extra trees on the label sets seen and, with XGBoost, boosted trees."""
    members: dict[str, Any] = {
        "linear": SetClassifierCV(target),
        "extra trees": CatalogClassifier(LeafForest(), target),
    }
    return members | ({} if find_spec("xgboost") is None else {"booster": SetBooster(target)})


def members_of(given: Any, target: Any, random_state: Any) -> dict[str, Any]:
    """Members by name, as `SetEnsemble` takes them, with seeds."""
    found = default_members(target) if isinstance(given, str) and given == "auto" else given
    if not isinstance(found, Mapping | list | tuple) or not found:
        raise ValueError(
            f"members must be 'auto', a mapping of names to classifiers or a list of them, at "
            f"least one, not {given!r}"
        )
    if not isinstance(found, Mapping):
        found = {f"{type(one).__name__} {k}": one for k, one in enumerate(found, 1)}
    members = {name: wrapped(one, target) for name, one in found.items()}
    return {name: seeded(one, random_state) for name, one in members.items()}


def wrapped(member: Any, target: Any) -> Any:
    """A classifier with `predict_distribution`, if need be by `TargetDecoder`."""
    if isinstance(member, type):
        raise ValueError(
            f"a member of an ensemble must be a classifier such as {member.__name__}(), not the "
            f"class {member.__name__}"
        )
    if hasattr(member, "predict_distribution"):
        return member
    if not hasattr(member, "predict_proba"):
        raise ValueError(
            f"a member of an ensemble must have predict_distribution or predict_proba, but "
            f"{member!r} has neither"
        )
    return TargetDecoder(member, target)


def refuse_unweighted(name: str, member: Any) -> None:
    """Raise for a member whose `fit` takes no weights of rows."""
    inner = getattr(member, "estimator", member)
    if not takes_weights(inner.fit):
        raise ValueError(
            f"sample_weight was given, but the member {name!r} takes none: "
            f"{type(inner).__name__}.fit has no such argument; leave the weights or the member out"
        )


def named(member: Any, name: str) -> str | None:
    """A setting of the member, or of the estimator that it holds, as `set_params` knows it."""
    given = member.get_params()
    return next((one for one in (name, f"estimator__{name}") if one in given), None)


def budgeted(member: Any, seconds: float | None) -> Any:
    """The member with so much time for its fit, if it ends in time by itself."""
    name = named(member, "time_budget")
    if name is None:
        return member
    return copy_of(member).set_params(**{name: None if seconds is None else max(seconds, 1e-3)})


def rows_within(name: str, member: Any, seconds: float, rows: Given, pool: Array) -> int:
    """How many rows of ``pool`` it can be fitted to in about so long, by fits to a few of them.

    Of trees a few are grown; other fits that end in time by themselves do the least they can. What
    a few rows take says little of many, so pilots grow, while they take a small part of the time.
    """
    n_rows, trees = len(pool), named(member, "n_estimators")
    ends = named(member, "time_budget") is not None
    n_least = n_pilot = PILOT if ends else FEWEST
    # (A pilot that takes long ends too.)
    least = budgeted(member, seconds / 4.0 if trees else 0.0)
    if ends and trees:
        least = copy_of(least).set_params(**{trees: min(FEW, member.get_params()[trees])})
    known: list[tuple[float, float]] = []
    while n_pilot < n_rows:
        begun = time.monotonic()
        rows.fit(least, pool[:n_pilot], name)
        took, known = time.monotonic() - begun, known[-1:]
        known.append((n_pilot**GROWTH, took))
        if TIMES * took <= OF_PILOT * seconds:
            n_pilot *= TIMES
        elif n_pilot == n_least and len(known) == 1 and 3.0 * took < seconds:
            # The first fit of all also loads what it needs: once more.
            seconds -= took
        else:
            share = LEAST_WORK if ends else ALL_WORK
            most = n_pilot * affordable(share * seconds, known[0], known[-1])
            return int(min(n_rows, max(most, FEWEST if ends else 2)))
    return n_rows


def affordable(seconds: float, before: tuple[float, float], last: tuple[float, float]) -> float:
    """How many times the rows of the last of two fits can be learnt from in so many seconds.

    A fit is (rows to the power `GROWTH`, seconds). What grows with rows is told by the difference
    of two, if they are of different rows; it is at least a quarter of all that the last one took.
    """
    (few, took_few), (many, took) = before, last
    slope = took / many
    if many > few:
        slope = max((took - took_few) / (many - few), slope / 4.0)
    more = max(seconds - took, 0.0) / slope + (many if seconds > took else many * seconds / took)
    return min(max(more / many, 0.0) ** (1.0 / GROWTH), MOST_TIMES)


def settled(fitted: Any) -> Any:
    """The same estimator, to be fitted again with what it chose; others as they are."""
    return fitted.settled() if hasattr(fitted, "settled") else fitted


def importances_of(fitted: Any) -> Array | None:
    """The importances of features of a member, or of the estimator inside; None if it has none."""
    for one in (fitted, getattr(fitted, "estimator_", None)):
        found = getattr(one, "feature_importances_", None)
        if found is not None:
            return np.asarray(found, np.float64)
    return None


def was_cut(fitted: Any) -> bool:
    """Whether a fit, or the estimator inside of it, ended for want of time; in doubt it did."""
    inner = getattr(fitted, "estimator_", fitted)
    timed = named(fitted, "time_budget")
    if timed is None or fitted.get_params()[timed] is None:
        return False
    return getattr(inner, "stopped_", "time_budget") is not None
