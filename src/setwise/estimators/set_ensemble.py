"""A mixture of distributions over label sets, decoded for the target."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from copy import copy
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin
from sklearn.utils import _safe_indexing, check_consistent_length, indexable
from sklearn.utils.validation import _num_samples, check_is_fitted

from setwise.decoders.for_target import Decoder, HeldOut, Together, with_target
from setwise.distributions import Mixture
from setwise.estimators.claim import log_loss_of
from setwise.estimators.finished import finished_in, identity_of
from setwise.estimators.guarantee import claim_of_mixture, claim_of_population
from setwise.estimators.members import (
    ROWS,
    Given,
    Member,
    importances_of,
    members_of,
    refuse_unweighted,
)
from setwise.estimators.mixing import (
    Contributions,
    backed,
    contributions,
    log_probabilities,
    log_probability,
    mixed,
    mixture_weights,
    smoothed,
    temperature,
)
from setwise.estimators.mixture_decoder import TIE, MixtureDecoder, answers_of
from setwise.estimators.named_sets import NamedSets
from setwise.estimators.running import (
    INTERRUPTS,
    OutOfTime,
    Watch,
    progress_shown,
    run,
    warn_of_end,
)
from setwise.estimators.schedule import Schedule
from setwise.estimators.wrapped import decoder_by_rule, handed_on, take_columns
from setwise.spelling import counted
from setwise.targets.target import hierarchy_of
from setwise.targets.truth import read_truth, refuse_open, refuse_other_labels
from setwise.validation import require_one_of

Array = NDArray[Any]

OF_MEMBERS = 0.85  # Of the time of a fit, what all members may take.


@dataclass(eq=False, repr=False)
class SetEnsemble(NamedSets, ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """A mixture of distributions over label sets, its weights learnt on rows held out.

    p(y) = sum_m w_m p_m(y). Each member is fitted to all rows, and again to all folds but one, the
    same for all members. What these say of the rows held out gives each member a temperature, if
    that makes it likelier. A member that lists its sets is smoothed: in a share of its law, as
    large as is likeliest, labels are independent of each other, each as probable as before; so sets
    that nobody has seen are possible. Last come the weights of the mixture: those of the highest
    log-likelihood, or equal ones where these lose less for the target, by more than a standard
    error, and are as likely as the best member. The divergence of the best mixture from the truth
    is at most that of its best member, and the bound sqrt(2 KL) of the regret holds for it.

    Parameters
    ----------
    target : str or Target, default "f1"
        What a prediction is judged by.
    members : "auto", or mapping of names to classifiers, or list of classifiers
        Estimators of setwise, or any classifier with `predict_proba`, which `TargetDecoder` wraps.
        "auto": `SetClassifierCV`, 300 extra trees on the label sets seen (`CatalogClassifier` of a
        `LeafForest`), and `SetBooster`, if XGBoost is installed.
    decoder : default "auto"
        For measures of all rows together, a rule of `PopulationRule`.
    cv : int, splitter or list of splits, optional
        Folds; by default 5 up to 10,000 rows. Beyond, one part is held out, once: a fifth of the
        rows, at most 5,000.
    calibrate : bool, default True
        Whether members of a mixture may have temperatures, and be smoothed.
    sparse_output : bool, default False
        Whether `predict` returns a CSR array.
    time_budget : float, optional
        Seconds that `fit` may take. Of many rows a member learns from as many as time allows, and
        members, or folds, that would take longer are left out; the first member is always there.
        Where one part is held out, or there is time for less than half of the rows, members learn
        from the rows that are not held out. ``cut_`` and a warning say what was cut.
    folder : str or path, optional
        Where fits are kept as they are finished: a second run with the same rows and settings goes
        on where the first one ended. Fits that were cut are made anew where ``time_budget`` is
        longer. A folder of another ensemble is refused.
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
        For each member its name, weight, temperature (the power of its law), the share of its law
        in which labels are independent, and on held-out rows its log-loss alone, smoothed, and that
        of the best mixture without it. A set that a member gives no probability counts as though
        each had seen one row more, of independent labels.
    is_equal_ : bool
        Whether equal weights were taken, since they decide better.
    feature_importances_ : array of shape (n_features,)
        The mean over the members that have them, by weight.
    classes_, target_, guarantee_, n_features_in_
        As in `SetClassifier`.
    stopped_ : {None, "time_budget", "interrupt"}
        Why training ended early, if it did.
    cut_ : list of str
        What was left out then, in words.

    Notes
    -----
    A label set that occurs in one fold only is on no list that was learnt without it. If lists gave
    such rows probability 0, they would leave them to members that know of no list, whatever these
    are worth elsewhere: so lists are smoothed before they are weighed. Where the best set is looked
    for among those listed (Jaccard, exact match), members are mixed as they are.

    Examples
    --------
    >>> from setwise import SetClassifier
    >>> X = [[0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [0.0, 0.9], [0.9, 0.1]] * 4
    >>> Y = [[0, 1], [1, 0], [1, 1], [0, 1], [1, 0]] * 4
    >>> members = {"mild": SetClassifier("f1", alpha=0.1), "free": SetClassifier("f1")}
    >>> mixture = SetEnsemble("f1", members, cv=3).fit(X, Y)
    >>> mixture.predict([[0.1, 0.8], [0.8, 0.0]])
    array([[0, 1],
           [1, 0]])
    >>> round(float(sum(mixture.weights_)), 6)
    1.0
    """

    target: Any = "f1"
    members: Any = "auto"
    _: KW_ONLY
    decoder: Any = "auto"
    cv: Any = None
    calibrate: bool = True
    sparse_output: bool = False
    time_budget: float | None = None
    folder: Any = None
    on_interrupt: str = "raise"
    n_jobs: int | None = None
    verbose: bool = False
    random_state: Any = 0

    def fit(self, X, y=None, sample_weight=None):
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
            # (Splits that are given count rows of weight 0 all the same, and classes stay known.)
            is_kept = hasattr(self.cv, "__iter__") or names.one_dimensional
            rows = rows if is_kept else rows.taken()
            self.classes_, self._names, self.stopped_ = names.names, names, None
            self._fit(rows, watch)
        outcome = f"the mixture is of {counted(len(self._mixed), 'member')}"
        warn_of_end(self.stopped_, "; ".join([outcome, *self.cut_]))
        return self

    def _fit(self, rows: Given, watch: Watch) -> None:
        risk: Any = decoder_by_rule(self.target, self.decoder)
        if risk.is_of_whole and not rows.names.one_dimensional:
            risk.rule.require_room(len(self.classes_))
        splits = rows.splits(self.cv, self.random_state)
        members = members_of(self.members, self.target, self.random_state)
        if rows.sample_weight is not None:
            for name, member in members.items():
                refuse_unweighted(name, member)
        # The rest of the time is for mixing.
        watch.end -= (1.0 - OF_MEMBERS) * watch.left if np.isfinite(watch.left) else 0.0
        identity = {} if self.folder is None else identity_of(rows, splits, members)
        with finished_in(self.folder, identity) as finished:
            budget = np.inf if self.time_budget is None else float(self.time_budget)
            schedule = Schedule(rows, splits, watch, finished, budget)
            try:
                with suppress(OutOfTime):
                    schedule.train(members)
            except KeyboardInterrupt:
                if self.on_interrupt == "raise" or not schedule.found:
                    raise
                self.stopped_ = "interrupt"
        self.cut_ = schedule.cut
        if self.cut_ and self.stopped_ is None:
            self.stopped_ = "time_budget"
        # What all members have said something of.
        held = rows.held(schedule.splits[: min(one.n_folds for one in schedule.found)])
        trained = [one.fitted._replace(laws=one.laws[: len(held)]) for one in schedule.found]
        self._mix(trained, rows, held, risk)
        take_columns(self, self._mixed[0].estimator)

    def _mix(self, trained: list[Member], rows: Given, held: list[Array], risk: Decoder) -> None:
        """Temperatures, weights, and the decoder fitted to the mixture of rows held out."""
        self.target_, self._risk = risk.target, risk
        if not held:
            self._alone(trained[0], rows)
            return
        truths, weights = ([of[part] for part in held] for of in (rows.sets, rows.weights))
        if not any(part.any() for part in weights):
            raise ValueError("cv must hold out rows of positive weight, but all of them have 0")
        may_change = self.calibrate and len(trained) > 1
        if may_change:
            powers = [temperature(one.laws, truths, weights) for one in trained]
            trained = [one._replace(power=p) for one, p in zip(trained, powers, strict=True)]
        laws = [[one.law(law) for law in one.laws] for one in trained]
        self._answers = answers_of([parts[0] for parts in laws])
        self._mixed = [one._replace(laws=[]) for one in trained]
        # Classes, and labels below others in a taxonomy, are not independent.
        is_free = not self._names.one_dimensional and hierarchy_of(self.target_) is None
        logs = np.array([log_probabilities(of, truths, is_free and may_change) for of in laws])
        mass, known = np.concatenate(weights), (rows.sets, rows.weights)
        self._loose, own = smoothed(logs, mass, backed(logs, *known, np.concatenate(truths)))
        self._weigh(contributions(own.T, mass), laws, truths)
        if not self._names.one_dimensional:
            self._risk = risk.fitted(lambda: self._out_of_fold)

    def _weigh(self, told: Contributions, laws: list[Any], truths: list[Array]) -> None:
        """Choose the weights, and say what members bring."""
        mass, parts = told.row_weights, list(zip(*laws, strict=True))
        learnt, equal = mixture_weights(told.logs, mass), np.full(len(laws), 1.0 / len(laws))
        self.is_equal_ = False
        if len(laws) > 1 and told.log_loss(equal) <= told.alone.min() + TIE:
            decided, truth = self._decided, HeldOut(np.empty(0), np.concatenate(truths), mass)
            one, other = ([decided.law(p, w, self._loose) for p in parts] for w in (equal, learnt))
            self.is_equal_ = decided.prefers(one, other, truth)
        self.weights_ = equal if self.is_equal_ else learnt
        self.log_loss_ = told.log_loss(self.weights_)
        figures = zip(self.weights_, self._loose, told.alone, told.without, strict=True)
        self.contributions_ = [
            one.contribution(*own) for one, own in zip(self._mixed, figures, strict=True)
        ]
        self._remember(parts, truths, mass)

    def _remember(self, parts: list[Any], truths: list[Array], mass: Array) -> None:
        """What the mixture says of the rows held out: log-losses and marginals."""
        plain = [Mixture(part, self.weights_) for part in parts]
        loosened = [mixed(part, self.weights_, self._loose) for part in parts]
        self._held_out, self._held_listed = (
            log_loss_of(log_probability(laws, truths), mass) for laws in (loosened, plain)
        )
        marginals = np.concatenate([law.marginals() for law in plain]).astype(np.float32)
        self._out_of_fold = HeldOut(marginals, np.concatenate(truths), mass)

    def _alone(self, member: Member, rows: Given) -> None:
        """There was no time to compare: the first member is all there is.

        A rule for all rows together is fitted to the rows that the member itself held out; if there
        are none, labels are decided by the probabilities of the rows to be predicted.
        """
        self._mixed, self.weights_, self.is_equal_ = [member], np.ones(1), False
        self._loose = np.zeros(1)
        self._held_out = self._held_listed = self.log_loss_ = None
        inner = member.estimator
        inner = inner._fitted() if hasattr(inner, "_fitted") else inner
        self._out_of_fold = getattr(inner, "_out_of_fold", None)
        self._answers = answers_of(rows.laws(member.estimator, np.arange(1)))
        self.contributions_ = [member.contribution()]
        risk: Any = self._risk
        if self._names.one_dimensional or not risk.is_of_whole:
            return
        if self._out_of_fold is None and not risk.depends_on_batch:
            risk = Together(replace(risk.rule, rule="batch"))
            self.cut_.append("labels are decided by each batch, as decoder='batch' does")
        self._risk = risk.fitted(lambda: self._out_of_fold)

    @property
    def _decided(self) -> MixtureDecoder:
        """How label sets, or classes, follow from the mixture."""
        return MixtureDecoder(self._risk, self._names.one_dimensional)

    def for_target(self, target, decoder=None):
        """The same mixture, decoded for another target; nothing is trained again."""
        check_is_fitted(self)
        decoder = with_target(self.decoder, target) if decoder is None else decoder
        risk = decoder_by_rule(target, decoder)
        refuse_other_labels(risk.target, self._names)
        other: Any = copy(self)
        other.set_params(target=target, decoder=decoder)
        other.target_, other._risk = risk.target, risk.fitted(lambda: self._out_of_fold)
        return other

    @property
    def depends_on_batch_(self) -> bool:
        """Whether what is predicted for a row depends on the rows that come with it."""
        check_is_fitted(self)
        return self._risk.depends_on_batch

    @property
    def guarantee_(self) -> str:
        """What is proved of the predictions, in words."""
        check_is_fitted(self)
        if self._risk.is_of_whole and not self._names.one_dimensional:
            return str(claim_of_population(self._risk, self._out_of_fold))  # type: ignore
        claim = claim_of_mixture(
            self.target_, len(self.classes_), self._names.one_dimensional, *self._answers
        )
        by_list = self._decided.is_by_list(len(self.classes_))
        measured = self._held_listed if by_list else self._held_out
        return str(claim.measured(measured, "the held-out rows of the folds"))

    @property
    def members_(self) -> dict[str, Any]:
        """The fitted members by name."""
        check_is_fitted(self)
        return {one.name: one.estimator for one in self._mixed}

    @property
    def feature_importances_(self) -> Array:
        """The mean over the members that have importances, by weight, with a sum of 1, (d,).

        Trees have them (`SetBooster`, `LeafForest`, those of scikit-learn), linear scores have not;
        `setwise.feature_importance` compares features by what shuffling them costs.
        """
        check_is_fitted(self)
        found = [importances_of(one.estimator) for one in self._mixed]
        told = [w * own for w, own in zip(self.weights_, found, strict=True) if own is not None]
        mean = np.sum(told, axis=0)
        if not np.any(mean):
            raise AttributeError("no member with a weight above 0 has feature_importances_")
        return mean / mean.sum()

    def predict_distribution(self, X) -> Mixture:
        """The mixture of what the members say of each row; those of weight 0 are not asked."""
        check_is_fitted(self)
        return mixed(*self._laws(X))

    def _laws(self, X: Any) -> tuple[list[Any], Array, Array]:
        """What members of positive weight say of rows, their weights and how loose they are."""
        asked = np.flatnonzero(self.weights_)
        found = [self._mixed[k] for k in asked]
        laws = [one.law(one.estimator.predict_distribution(X)) for one in found]
        return laws, self.weights_[asked], self._loose[asked]

    def predict_proba(self, X):
        """The probability of each label (or class), (n, l)."""
        return self._by_parts(lambda part: Mixture(*self._laws(part)[:2]).marginals(), X)

    def _by_parts(self, function: Callable[[Any], Any], X: Any) -> Array:
        """A function of some rows at a time, so that lists of sets fit in memory."""
        check_is_fitted(self)
        (X,) = indexable(handed_on(X))
        parts = [slice(first, first + ROWS) for first in range(0, max(_num_samples(X), 1), ROWS)]
        given = [X] if len(parts) == 1 else (_safe_indexing(X, part) for part in parts)
        found = [function(part) for part in given]
        return np.concatenate([one.toarray() if issparse(one) else one for one in found])

    def predict(self, X):
        """The label sets, or classes, to predict."""
        check_is_fitted(self)
        if self._names.one_dimensional:
            return self.classes_[self.predict_proba(X).argmax(axis=1)]
        if self._risk.is_of_whole:
            sets = self._risk.decode(self.predict_proba(X))
        else:
            decided = self._decided
            sets = self._by_parts(lambda part: decided.decide(decided.law(*self._laws(part))), X)
        return csr_array(sets).astype(np.int64) if self.sparse_output else self._names.decode(sets)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_label = True
        return tags
