"""A mixture of distributions over label sets, decoded for the target."""

from __future__ import annotations

import time
from collections.abc import Mapping
from copy import copy
from dataclasses import KW_ONLY, dataclass, replace
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing, check_consistent_length, indexable
from sklearn.utils.validation import check_is_fitted

from setwise.decoders.for_target import Decoder, HeldOut, decoder_of, with_target
from setwise.decoders.minimum_risk import UndecodableError
from setwise.distributions import Independent, Mixture
from setwise.estimators.catalog_classifier import CatalogClassifier
from setwise.estimators.guarantee import claim_of_mixture, claim_of_population, log_loss_of
from setwise.estimators.held_out import folds_for
from setwise.estimators.members import Given, Member, seen_before, settled, within, wrapped
from setwise.estimators.mixing import mixture_weights, temperature
from setwise.estimators.named_sets import NamedSets
from setwise.estimators.running import (
    INTERRUPTS,
    OutOfTime,
    Watch,
    progress_shown,
    run,
    warn_of_end,
)
from setwise.estimators.set_booster import SetBooster
from setwise.estimators.set_classifier_cv import SetClassifierCV
from setwise.estimators.wrapped import handed_on, seeded
from setwise.persistence import save
from setwise.targets.target import method_of
from setwise.targets.truth import encode_truth, read_truth, refuse_open, refuse_other_labels
from setwise.validation import require_one_of, whole_number

Array = NDArray[Any]


# Of the time that is left to a member, what its fit to all rows may take, where it can be told;
# and how much longer than the last fold the next one may take.
OF_SHARE, SLOWER = 0.3, 1.25


@dataclass(eq=False, repr=False)
class SetEnsemble(NamedSets, ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """A mixture of distributions over label sets, its weights learnt on rows held out.

    p(y) = sum_m w_m p_m(y). Each member is fitted to all rows, and again to all folds but one, the
    same for all members. What these say of the rows held out gives each member a temperature, if
    that makes it likelier, and the mixture its weights: those of the highest log-likelihood, or
    equal ones where these decide better for the target. The divergence of the best mixture from the
    truth is at most that of its best member, and the bound sqrt(2 KL) of the regret holds for it.

    Parameters
    ----------
    target : str or Target, default "f1"
        What a prediction is judged by.
    members : "auto", or mapping of names to classifiers, or list of classifiers
        Estimators of setwise, or any classifier with `predict_proba`, which `TargetDecoder` wraps.
        "auto": `SetClassifierCV`, 300 extra trees on the label sets seen (`CatalogClassifier`),
        and `SetBooster`, if XGBoost is installed.
    decoder : default "auto"
        For measures of all rows together, a rule of `PopulationRule`.
    cv : int, splitter or list of splits, optional
        Folds; by default 5 up to 10,000 rows, else 3.
    calibrate : bool, default True
        Whether members may have temperatures.
    sparse_output : bool, default False
        Whether `predict` returns a CSR array.
    time_budget : float, optional
        Seconds that `fit` may take; members, or folds, that would take longer are left out.
    on_interrupt : {"raise", "finish"}, default "raise"
        Whether an interrupt ends `fit` with an error, or with the members trained so far.
    n_jobs : int, optional
        Threads, as in `SetClassifier`.
    verbose : bool, default False
    random_state : int, RandomState or None, default 0
        Seed of the folds, and of members that have none.

    Attributes
    ----------
    members_ : dict
        The fitted members by name.
    weights_ : array of shape (m,)
        Of the members, with a sum of 1; 0 for one that brings nothing.
    contributions_ : list of dict
        For each member its name, weight, temperature (the power of its law), and on held-out rows
        its log-loss alone and that of the mixture without it.
    is_equal_ : bool
        Whether equal weights were taken, since they decide better.
    classes_, target_, guarantee_, n_features_in_
        As in `SetClassifier`.
    stopped_ : {None, "time_budget", "interrupt"}
        Why training ended early, if it did.

    Notes
    -----
    A label set that occurs in one fold only is on no list that was learnt without it: all lists
    give such rows probability 0, and would leave them to members that know of no list. These rows
    are left out of the weights.
    """

    target: Any = "f1"
    members: Any = "auto"
    _: KW_ONLY
    decoder: Any = "auto"
    cv: Any = None
    calibrate: bool = True
    sparse_output: bool = False
    time_budget: float | None = None
    on_interrupt: str = "raise"
    n_jobs: int | None = None
    verbose: bool = False
    random_state: Any = 0

    def fit(self, X, y, sample_weight=None):
        """Fit the members, their temperatures and the weights of the mixture.

        Parameters
        ----------
        X : what the members take
        y : label sets in any form of `setwise.labels.read_labels`, or one class a row
        sample_weight : array of shape (n,), optional
            Handed on to the members.
        """
        require_one_of(self.on_interrupt, INTERRUPTS, "on_interrupt")
        with run(self), progress_shown(self.verbose) as tell:
            watch = Watch(self.time_budget, tell)
            (X,) = indexable(handed_on(X))
            sets, names = read_truth(self.target, y)
            refuse_open(self.target, sets)
            check_consistent_length(X, sets)
            sets = sets.toarray() if hasattr(sets, "toarray") else sets
            rows = Given(X, sets, names, sample_weight)
            self.classes_, self._names, self.stopped_ = names.names, names, None
            self._fit(rows, watch)
        warn_of_end(self.stopped_, f"the mixture is of {len(self._mixed)} members")
        return self

    def _fit(self, rows: Given, watch: Watch) -> None:
        risk = decoder_of(self.target, self.decoder)
        splits = self._splits(rows)
        members, trained = self._members(), []
        try:
            for number, (name, member) in enumerate(members.items()):
                share = watch.left / (len(members) - number)
                trained.append(self._trained(name, member, rows, splits, watch, share))
        except OutOfTime:
            self.stopped_ = "time_budget"
        except KeyboardInterrupt:
            if self.on_interrupt == "raise" or not trained:
                raise
            self.stopped_ = "interrupt"
        # What all members have said something of.
        folds = min(len(one.laws) for one in trained)
        self._mix(
            [one._replace(laws=one.laws[:folds]) for one in trained], rows, splits[:folds], risk
        )
        first = self._mixed[0].estimator
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(first, name):
                setattr(self, name, getattr(first, name))

    def _trained(
        self, name: str, member: Any, rows: Given, splits: list[Any], watch: Watch, share: float
    ) -> Member:
        """A member fitted to all rows, and what models like it say of each fold, as time allows.

        ``share`` is the time in seconds that is left to it. The first member is always there.
        """
        watch.words = f"{name}: all rows"
        watch.step()
        begun = time.monotonic()
        member = within(member, OF_SHARE * share, rows)
        if member is None:
            raise OutOfTime
        estimator = rows.fit(member, slice(None))
        laws, again, taken = [], settled(estimator), time.monotonic() - begun
        for number, (train, test) in enumerate(splits):
            if watch.left < SLOWER * taken:
                if number == 0 and watch.kept < np.inf:
                    raise OutOfTime
                self.stopped_ = "time_budget"
                break
            watch.words, begun = f"{name}: fold {number + 1} of {len(splits)}", time.monotonic()
            watch.step()
            fold = rows.fit(again, train)
            laws.append(fold.predict_distribution(_safe_indexing(rows.X, test)))
            taken = time.monotonic() - begun
        # From now on there is a model to end with.
        watch.kept = 0.0
        return Member(name, estimator, laws)

    def _mix(self, trained: list[Member], rows: Given, splits: list[Any], risk: Decoder) -> None:
        """Temperatures, weights, and the decoder fitted to the mixture of rows held out."""
        self.target_, self._risk = risk.target, risk
        if not splits:
            self._alone(trained[0])
            return
        truths = [rows.sets[test] for _, test in splits]
        weights = [rows.weights[test] for _, test in splits]
        if self.calibrate:
            trained = [
                one._replace(power=temperature(one.laws, truths, weights)) for one in trained
            ]
        laws = [[one.law(law) for law in one.laws] for one in trained]
        logs = np.array([
            np.concatenate([law.log_probability(y) for law, y in zip(of, truths, strict=True)])
            for of in laws
        ])  # fmt: skip
        counted = np.concatenate([seen_before(rows.sets, *split) for split in splits])
        counted = counted if counted.any() else np.ones_like(counted)
        mass = np.concatenate(weights)
        learnt = mixture_weights(logs.T[counted], mass[counted])
        equal = np.full(len(trained), 1.0 / len(trained))
        held = [
            [Mixture(list(parts), w) for parts in zip(*laws, strict=True)] for w in (learnt, equal)
        ]
        losses = [self._loss(one, truths, weights) for one in held]
        self.is_equal_ = len(trained) > 1 and losses[1] < losses[0] - 1e-12
        self.weights_ = equal if self.is_equal_ else learnt
        self._tell(trained, logs, counted, mass)
        mixed = held[int(self.is_equal_)]
        self._held_out = log_loss_of(
            np.concatenate([m.log_probability(y) for m, y in zip(mixed, truths, strict=True)]), mass
        )
        marginals = np.concatenate([one.marginals() for one in mixed]).astype(np.float32)
        self._out_of_fold = HeldOut(marginals, np.concatenate(truths), mass)
        rows_of_one = [parts[0][:1] for parts in laws]
        self._answers = (
            all(law.label_sizes() is not None for law in rows_of_one),
            all(law.listed() is not None for law in rows_of_one),
        )
        self._mixed = [one._replace(laws=[]) for one in trained]
        if not self._names.one_dimensional:
            self._risk = risk.fitted(lambda: self._out_of_fold)

    def _alone(self, member: Member) -> None:
        """There was no time to compare: the first member is all there is."""
        self._mixed, self.weights_, self.is_equal_ = [member], np.ones(1), False
        self._held_out = self._out_of_fold = self.log_loss_ = None
        self._answers = False, False
        self.contributions_ = [{
            "member": member.name, "weight": 1.0, "temperature": 1.0, "log_loss": None,
            "log_loss_without": None,
        }]  # fmt: skip
        self._risk = self._risk.fitted(lambda: None)

    def _tell(self, trained: list[Member], logs: Array, counted: Array, mass: Array) -> None:
        """What each member contributes, by the log-loss of the rows that decide the weights."""

        def log_loss(weights: Array) -> float:
            with np.errstate(divide="ignore"):
                mixed = np.logaddexp.reduce(logs + np.log(weights)[:, None], axis=0)[counted]
            return log_loss_of(mixed, mass[counted])["log_loss"]

        self.contributions_ = []
        for number, one in enumerate(trained):
            alone = np.eye(len(trained))[number]
            others = np.delete(np.arange(len(trained)), number)
            without = np.zeros(len(trained))
            if len(others):
                without[others] = mixture_weights(logs[others].T[counted], mass[counted])
            self.contributions_.append({
                "member": one.name, "weight": float(self.weights_[number]),
                "temperature": one.power, "log_loss": log_loss(alone),
                "log_loss_without": log_loss(without) if len(others) else None,
            })  # fmt: skip
        self.log_loss_ = log_loss(self.weights_)

    def _loss(self, mixtures: list[Mixture], truths: list[Array], weights: list[Array]) -> float:
        """The loss of the target for rows held out."""
        sets, mass = np.concatenate(truths), np.concatenate(weights)
        if self._names.one_dimensional:
            guess = np.concatenate([one.marginals().argmax(axis=1) for one in mixtures])
            return float(np.average(guess != sets.argmax(axis=1), weights=mass))
        if self._risk.is_of_whole:
            marginals = np.concatenate([one.marginals() for one in mixtures])
            rule = self._risk.fitted(lambda: HeldOut(marginals, sets, mass))
            return 1.0 - method_of(self.target_, "utility")(rule.decode(marginals), sets, mass)
        decided = np.concatenate([self._decided(one) for one in mixtures])
        return 1.0 - method_of(self.target_, "utility")(decided, sets, mass)

    def _decided(self, law: Mixture) -> Array:
        """The best label set of each row; as though labels were independent, where no way is."""
        try:
            return self._risk.decode(law)
        except UndecodableError:
            return self._risk.decode(Independent(law.marginals()))

    # ---------------------------------------------------------------------------------- answers

    def for_target(self, target, decoder=None):
        """The same mixture, decoded for another target; nothing is trained again."""
        check_is_fitted(self)
        decoder = with_target(self.decoder, target) if decoder is None else decoder
        risk = decoder_of(target, decoder)
        refuse_other_labels(risk.target, self._names)
        other: Any = copy(self)
        other.set_params(target=target, decoder=decoder)
        other.target_, other._risk = risk.target, risk.fitted(lambda: self._out_of_fold)
        return other

    @property
    def guarantee_(self) -> str:
        """What is proved of the predictions, in words."""
        check_is_fitted(self)
        if self._risk.is_of_whole and not self._names.one_dimensional:
            rule: Any = self._risk
            rows = None if rule.depends_on_batch else self._out_of_fold
            n_rows = None if rows is None else len(rows.sets)
            return str(claim_of_population(rule.rule, self.target_, n_rows))
        claim = claim_of_mixture(
            self.target_, len(self.classes_), self._names.one_dimensional, *self._answers
        )
        return str(claim.measured(self._held_out, "the held-out rows of the folds"))

    @property
    def members_(self) -> dict[str, Any]:
        """The fitted members by name."""
        check_is_fitted(self)
        return {one.name: one.estimator for one in self._mixed}

    def predict_distribution(self, X) -> Mixture:
        """The mixture of what the members say of each row; those of weight 0 are not asked."""
        check_is_fitted(self)
        asked = [number for number, weight in enumerate(self.weights_) if weight > 0.0]
        laws = [self._mixed[k].law(self._mixed[k].estimator.predict_distribution(X)) for k in asked]
        return Mixture(laws, self.weights_[asked])

    def predict_proba(self, X):
        """The probability of each label (or class), (n, l)."""
        found = self.predict_distribution(X).marginals()
        return np.asarray(found.todense()) if hasattr(found, "todense") else found

    def predict(self, X):
        """The label sets, or classes, to predict."""
        law = self.predict_distribution(X)
        if self._names.one_dimensional:
            return self.classes_[np.asarray(law.marginals()).argmax(axis=1)]
        sets = self._risk.decode(law.marginals()) if self._risk.is_of_whole else self._decided(law)
        return csr_array(sets).astype(np.int64) if self.sparse_output else self._names.decode(sets)

    def score(self, X, y, sample_weight=None) -> float:
        """The utility of the target, or the accuracy of classes; y in any form of `fit`."""
        check_is_fitted(self)
        if self._names.one_dimensional:
            return super().score(X, y, sample_weight)
        known = encode_truth(self.target_, self._names, y)
        return method_of(self.target_, "utility")(self.predict(X), known, sample_weight)

    def save(self, path) -> None:
        """Write the ensemble to a file that holds data only; `setwise.load` reads it."""
        save(self, path)

    # --------------------------------------------------------------------------------- settings

    def _members(self) -> dict[str, Any]:
        """The members by name, with seeds."""
        given = self.members
        if isinstance(given, str) and given == "auto":
            trees = ExtraTreesClassifier(300, min_samples_leaf=1, n_jobs=self.n_jobs)
            given = {
                "linear": SetClassifierCV(self.target),
                "extra trees": CatalogClassifier(trees, self.target),
            }
            if find_spec("xgboost") is not None:
                given["booster"] = SetBooster(self.target)
        if not isinstance(given, Mapping):
            given = {f"{type(one).__name__} {k}": one for k, one in enumerate(given, 1)}
        members = {name: wrapped(one, self.target) for name, one in given.items()}
        return {name: seeded(one, self.random_state) for name, one in members.items()}

    def _splits(self, rows: Given) -> list[Any]:
        """Rows to learn from and rows held out, by fold."""
        if self.cv is not None and not isinstance(self.cv, int | np.integer):
            splitter: Any = check_cv(self.cv)
            return list(splitter.split(rows.X, csr_array(rows.sets)))
        folds = folds_for(len(rows.sets), seed=self.random_state)
        if self.cv is not None:
            folds = replace(folds, n_splits=whole_number(self.cv, "cv", 2))
        return list(folds.split(None, csr_array(rows.sets)))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_label = True
        return tags
