"""The linear classifier with penalty, space and surrogate chosen by cross-validated target loss."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from copy import copy
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import Any

import joblib
import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import check_cv
from sklearn.utils.extmath import row_norms
from sklearn.utils.validation import check_is_fitted, column_or_1d

from setwise.blocks import Blocks
from setwise.decoders.for_target import decoder_of
from setwise.estimators.block_folds import BlockFolds, BlockInputs
from setwise.estimators.blocked import read_rows
from setwise.estimators.checkpoint import checkpoints_in
from setwise.estimators.choice import MOST_UNSEEN, hierarchy_space, unseen_mass
from setwise.estimators.cost import is_auto, planned
from setwise.estimators.design import SCALINGS, Rows, read_training
from setwise.estimators.finished import OF_TIME
from setwise.estimators.held_out import folds_for
from setwise.estimators.running import (
    INTERRUPTS,
    OutOfTime,
    Watch,
    progress_shown,
    run,
    warn_of_end,
)
from setwise.estimators.scored import ScoredClassifier
from setwise.estimators.search import Inputs, Path, Race, Split, Trial
from setwise.estimators.set_classifier import SetClassifier
from setwise.labels import LabelNames
from setwise.surrogates.binary_relevance import BinaryRelevance
from setwise.surrogates.names import DEFAULT_Q, METRO
from setwise.targets.registry import get_target
from setwise.targets.target import hierarchy_of
from setwise.threads import small_products
from setwise.validation import positive_number, require_one_of, same_rows, whole_number

# Where the nine default penalties, half a decade apart, begin and end (in decades): the larger the
# features of a scaling, the smaller their weights.
DECADES = {None: (-0.5, -4.5), "standard": (1.0, -3.0), "rows": (-1.5, -5.5)}
SETTINGS = ("surrogate", "space", "scaling")
# What combinations are compared by, and the surrogates whose marginals can be.
CRITERIA, LIKELIHOODS = ("target", "likelihood"), ("likelihood", "binary_relevance")
# Folds, and the most rows they are for.
FOLDS = ((10, 1_000), (5, 10_000), (3, np.inf))


@dataclass(eq=False, repr=False)
class SetClassifierCV(ScoredClassifier):
    """`SetClassifier` with alpha, scaling, space and surrogate chosen by cross-validation.

    Combinations are compared by the loss of the target on held-out rows. A measure of all rows,
    such as "macro_f1", is computed on the rows of all folds together; if it is a mean over labels,
    alphas and scalings within a standard error of the best are compared by the likelihood of the
    marginals, which has less noise.

    All combinations are tried on the first fold. After each fold, those whose expected gain over
    the best one is below 3e-4 are dropped, and the search ends when one is left: with many rows one
    fold may be enough. Further spaces are tried with the best alpha and its neighbours. The best
    combination is trained on all rows, with alpha at the vertex of the parabola through the losses
    of the best alpha and its neighbours. Ties go to the larger alpha and the earlier space.

    Parameters
    ----------
    target : str or Target, default "f1"
        What a prediction is judged by, here and in the end.
    alphas : sequence of float, optional
        Penalties to try; by default nine from .3 to 3e-5 for features as they are, from 10 to 1e-3
        for standardised ones, from .03 to 3e-6 for rows of length 1.
    spaces : sequence of str or Space, or "auto", default "auto"
        Spaces to try; "auto": "catalog" and "sized", or only the latter if more than nine in ten
        rows have a label set that occurs once; for tree distance "paths", where every set of y is
        one, or "closed" in place of "sized".
    surrogates : sequence of str or Surrogate, or "auto", default "auto"
        Surrogates to try; "auto": "likelihood", or "binary_relevance" where that costs too much, as
        in `SetClassifier`.
    scalings : sequence of {None, "standard", "rows"} or "auto", default "auto"
        Scalings to try, see `SetClassifier`; they are compared with the first space and surrogate,
        and the others are tried with the best. "auto": ("standard",) for dense features,
        (None, "rows") for sparse ones.
    choose_by : {"target", "likelihood"}, default "target"
        What combinations are compared by: the loss of the target, or the log-loss of the label
        probabilities on held-out rows. The latter is faster and serves all targets
        (`for_target`), but for F1 the target was the better one on real data.
    cv : int or splitter, optional
        Folds; a number makes `StratifiedLabelSets`. By default ten folds up to 1,000 rows, five up
        to 10,000, three beyond: few rows need more folds and can pay for them.
    decoder, q, fit_intercept, sparse_output
        As in `SetClassifier`.
    tol : float, default 1e-3
        As in `SetClassifier`; a tenth of it for the scaling "rows". Three times that in the folds.
    max_iter : int, default 300
        Steps for each penalty of a path.
    n_jobs : int, optional
        As in `SetClassifier`.
    time_budget : float, optional
        Seconds for `fit`. When they are nearly over, the search is cut and the best combination so
        far is trained in the time kept for it; a warning says so, and ``stopped_``. (Penalties are
        tried from large to small: while ever smaller ones gain, the middle one.) There is always
        a model, so what cannot be done in less (reading, one combination on one fold, one fit to
        all rows) may take longer.
    on_interrupt : {"raise", "finish"}, default "raise"
        What an interrupt (Ctrl-C) during the search does: raises KeyboardInterrupt, as everywhere
        in Python, and leaves the classifier as it was; or, once a combination has been tried,
        trains the best one so far. A second interrupt always raises.
    verbose : bool, default False
        Whether to show progress and, after the first fold, about how long it will take: on a
        terminal a line that changes, else a line now and then on the error stream.
    random_state : int, RandomState or None, default None
        Seed of the folds, and of the models; None is 0.

    Attributes
    ----------
    best_estimator_ : SetClassifier
        Trained on all rows; what predicts.
    coef_ : array of shape (n_scores, n_features)
    intercept_ : array of shape (n_scores,)
        Those of ``best_estimator_``.
    best_params_ : dict
        The surrogate, space, scaling and alpha that were chosen; alpha lies within half a step of
        one tried.
    cv_results_ : list of dict
        One a combination tried: its settings, mean loss and the loss of each fold it was tried on.
        The mean loss of one that left early is estimated: that of the best one, plus what it lost
        to that on the folds that both saw. ``log_loss`` is that of the marginals, if they are
        compared. Of a likelihood, the log-loss of the rows ``held_out``: its mean over those whose
        label set is possible, and the share of the others.
    best_loss_ : float
        The mean loss of the one that was chosen. (Chosen by it, so a little optimistic.)
    choice_ : str or None
        Why "auto" did not choose as usual, if it did not; a warning says so too.
    stopped_ : {"time_budget", "interrupt"} or None
        What cut the search, if anything did.

    Examples
    --------
    >>> X = [[0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [0.0, 0.9], [0.9, 0.1], [0.8, 1.1]]
    >>> Y = [[0, 1], [1, 0], [1, 1], [0, 1], [1, 0], [1, 1]]
    >>> SetClassifierCV("f1", alphas=[0.01, 0.1], cv=2).fit(X, Y).predict([[0.1, 0.8]])
    array([[0, 1]])
    """

    target: Any = "f1"
    _: KW_ONLY
    alphas: Any = None
    spaces: Any = "auto"
    surrogates: Any = "auto"
    scalings: Any = "auto"
    choose_by: str = "target"
    cv: Any = None
    decoder: str = "auto"
    q: float = DEFAULT_Q
    fit_intercept: bool = True
    tol: float = 1e-3
    max_iter: int = 300
    sparse_output: bool = False
    n_jobs: int | None = None
    time_budget: float | None = None
    on_interrupt: str = "raise"
    verbose: bool = False
    random_state: Any = None

    def fit(self, X, y=None, sample_weight=None, groups=None, *, checkpoint=None):
        """Choose by cross-validation, then learn from all rows.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, n_features), or Blocks
            Blocks have label sets and weights of their own. Their rows are in three folds (``cv`` a
            number), and up to 262,144 rows of them, in memory, are what combinations are judged by.
        y : label sets in any form of `setwise.labels.read_labels`, or one class a row
        sample_weight : array of shape (n,), optional
            For training; the losses of held-out rows are weighted by it too.
        groups : array of shape (n,), optional
            For a ``cv`` that splits by groups of rows, such as `GroupKFold`.
        checkpoint : path, optional
            A folder for what is learnt on the way, new or left by the same search: that one then
            goes on where it was cut off. A search that has ended removes it. (As in
            `SetClassifier.fit`, binary relevance then goes by L-BFGS.)
        """
        require_one_of(self.on_interrupt, INTERRUPTS, "on_interrupt")
        with run(self), progress_shown(self.verbose) as tell:
            watch = Watch(self.time_budget, tell)
            rows, names, splits, inputs_of = self._rows(X, y, sample_weight, groups)
            sample = rows
            if isinstance(rows, BlockFolds):
                sample, rows = rows.sample[0], rows.rows
            risk = decoder_of(self.target, self.decoder)
            pairs = self._pairs(names, rows)
            by_likelihood = self._is_by_likelihood(pairs)
            identity = partial(self._identity, rows, sample, names, splits)
            self.stopped_ = None
            with (
                checkpoints_in(checkpoint, identity) as kept,
                small_products(rows.multiplications),
            ):
                told = watch, by_likelihood, kept
                race = Race(sample, names, risk, splits, self._model, *told)
                try:
                    self._run(race, pairs, inputs_of)
                except OutOfTime:
                    self.stopped_ = "time_budget"
                except KeyboardInterrupt:
                    if self.on_interrupt == "raise" or not race.has_begun:
                        raise
                    self.stopped_ = "interrupt"
                    watch.say(
                        "interrupted: the best model so far is trained on all rows; a second "
                        "interrupt ends at once, without it"
                    )
                self._finish(race)
        tried = f"{len(self.cv_results_)} combinations tried so far"
        warn_of_end(self.stopped_, f"the model is the best of {tried}")
        return self

    def _identity(self, rows: Any, sample: Rows, names: LabelNames, splits: Any) -> dict[str, str]:
        """What the fits of this search depend on, as digests."""
        given = self.get_params(deep=False).items()
        parts: dict[str, Any] = {name: repr(value) for name, value in given if name not in OF_TIME}
        parts |= {"rows": [rows.n_rows, rows.n_features, rows.n_entries], "labels": names.names}
        parts |= {"sample": tuple(sample), "folds": splits, "sets": (rows.sets, rows.weights)}
        return {name: str(joblib.hash(part)) for name, part in parts.items()}

    def _rows(self, X: Any, y: Any, sample_weight: Any, groups: Any) -> tuple[Any, ...]:
        """The rows, names of labels, splits, and what gives the rows in a scaling."""
        if isinstance(X, Blocks):
            if groups is not None:
                raise ValueError("groups are of rows in memory: fit(blocks) takes none")
            whole, names = read_rows(self, X, y, sample_weight)
            seed = SetClassifier(random_state=self.random_state)._seed
            folds = BlockFolds.of(whole, self.cv, seed)  # type: ignore
            fold_of = folds.sample[1]
            splits = [Split(k, np.flatnonzero(fold_of == k)) for k in range(folds.count)]
            return folds, names, splits, lambda s: BlockInputs.of(folds, s, self.fit_intercept)
        rows, names = read_training(self, X, y, sample_weight)
        if groups is not None:
            groups = column_or_1d(groups)
            same_rows(X=rows.inputs, groups=groups)
        # A row of weight 0 is not there; splits that are given count it all the same.
        if not hasattr(self.cv, "__iter__"):
            groups = None if groups is None else groups[rows.positive(slice(None))]
            rows = rows.taken()
        splits = self._splits(rows, names, groups)
        return rows, names, splits, lambda s: Inputs.of(rows, s, self.fit_intercept, self.tol)

    def _run(
        self, race: Race, pairs: list[tuple[Any, Any]], inputs_of: Callable[[Any], Any]
    ) -> None:
        """Try all there is to try: the scalings with the first pair, the others with the best."""
        first, *others = pairs
        for scaling in self._scalings(race.rows.inputs):
            path = self._path(first, scaling, inputs_of(scaling), self._alphas(scaling))
            race.paths.append(path)
        race.run()
        for pair in others:
            path, alphas = race.best().path, self._alphas(race.best().path.settings["scaling"])
            same = pair[0] == path.settings["surrogate"]
            if same:
                alphas = near(race.best().alpha, alphas)
            other = self._path(pair, path.settings["scaling"], path.inputs, alphas)
            other.is_further = same
            race.run(other)
        race.complete(race.best())

    def _splits(self, rows: Rows, names: LabelNames, groups: Any = None) -> list[Split]:
        truth: Any = names.decode(rows.sets) if names.one_dimensional else csr_array(rows.sets)
        splitter = self._splitter(rows.n_rows)
        splits = [
            Split(rows.positive(train), rows.positive(test))
            for train, test in splitter.split(rows.inputs, truth, groups)
        ]
        if not splits:
            raise ValueError("cv must give at least one split, but it gives none")
        return splits

    def _path(self, pair: tuple[Any, Any], scaling: Any, inputs: Any, alphas: list[float]) -> Path:
        path = Path(dict(zip(SETTINGS, (*pair, scaling), strict=True)), inputs)
        path.trials += [Trial(path, alpha) for alpha in alphas]
        return path

    def _finish(self, race: Race) -> None:
        """Learn from all rows with what was chosen."""
        best = race.best()
        self.cv_results_ = [
            {**trial.path.settings, "alpha": trial.alpha, "loss": race.target_loss(trial, best),
             "log_loss": race.estimate(trial, best) if race.by_likelihood else None,
             "fold_losses": trial.means, "held_out": race.held_out(trial)}
            for trial in race.trials if trial.kept
        ]  # fmt: skip
        self.best_loss_ = race.target_loss(best, best)
        guess = _guess(best, race)
        model = self._train(best, race, _between(best, race) if guess is None else guess)
        self.best_estimator_ = model
        model._held_out = race.held_out(best) if guess is None else None
        model._out_of_fold = race.marginals(best) if guess is None else None
        model._settle(race.risk, lambda: model._out_of_fold)
        self.best_params_ = {**best.path.settings, "alpha": model.alpha}
        model.set_params(warm_start=False, max_iter=self.max_iter)
        for name in ("n_features_in_", "feature_names_in_", "_of_blocks"):
            if hasattr(self, name):
                setattr(model, name, getattr(self, name))
        self.classes_, self.n_iter_ = model.classes_, model.n_iter_

    def _train(self, best: Trial, race: Race, alpha: float) -> SetClassifier:
        """Train on all rows, from where a fold ended, and from there by the plain features.

        What a fold learnt is also what the model has where time is up before.
        """
        inputs, scaling = best.path.inputs, best.path.settings["scaling"]
        walked, everything, design = inputs.everything(race.rows)
        watch, model = race.watch, self._model(**best.path.settings)
        watch.words, watch.kept, model.n_iter_ = "training on all rows", 0.0, 0
        vars(model).update(best.path.reached)
        try:
            race.fit(model, walked, everything, alpha)
        except OutOfTime:
            self.stopped_ = "time_budget"
        weights, intercept = model.coef_.T, model.intercept_
        if inputs.turned is not None:
            weights, intercept = inputs.turned.point(weights, intercept)
        model.coef_, model.intercept_ = (weights / design.unit[:, None]).T, intercept
        model.set_params(alpha=alpha, scaling=scaling, sparse_output=self.sparse_output)
        steps = model.n_iter_
        try:
            race.fit_closely(model, design, everything)
        except OutOfTime:
            self.stopped_ = "time_budget"
            model.set_params(max_iter=1)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                model._fit(design, everything, race.names, race.risk)
        model.n_iter_ += steps
        return model

    @property
    def coef_(self) -> Any:
        """Those of ``best_estimator_``."""
        return self.best_estimator_.coef_

    @property
    def intercept_(self) -> Any:
        """Those of ``best_estimator_``."""
        return self.best_estimator_.intercept_

    def for_target(self, target, decoder=None) -> SetClassifierCV:
        """The same choice and fit, decoded for another target; see `SetClassifier.for_target`."""
        model = self._fitted().for_target(target, decoder)
        other: Any = copy(self)
        other.set_params(target=target, decoder=model.decoder)
        other.best_estimator_ = model
        return other

    def settled(self) -> SetClassifier:
        """A classifier, to be fitted, with the settings that were chosen.

        After a search that was cut, in no more steps than its model took.
        """
        settled: Any = clone(self._fitted())
        steps = self.max_iter if self.stopped_ is None else min(self.max_iter, max(self.n_iter_, 1))
        return settled.set_params(max_iter=steps)

    def _fitted(self) -> SetClassifier:
        if "best_estimator_" not in vars(self):
            check_is_fitted(self, "best_estimator_")
        return self.best_estimator_

    def _model(self, surrogate, space, scaling) -> SetClassifier:
        """A classifier for inputs that are in the scaling already."""
        # Entries of rows of length 1 are small, and so are gradients.
        tol = self.tol / 10.0 if scaling == "rows" else self.tol
        return SetClassifier(
            self.target, surrogate, space, self.decoder, tol=tol, q=self.q,
            fit_intercept=self.fit_intercept, max_iter=self.max_iter, warm_start=True,
            random_state=self.random_state,
        )  # fmt: skip

    # ------------------------------------------------------------------------------ what is tried

    def _pairs(self, names: LabelNames, rows: Any) -> list[tuple[Any, Any]]:
        """Surrogates with the spaces to try them on; binary relevance has its own."""
        spaces = _several(self.spaces, "spaces")
        surrogates = _several(self.surrogates, "surrogates")
        if any(isinstance(one, str) and one == METRO for one in surrogates):
            raise ValueError(
                f"{METRO!r} finds costs on folds of its own, and is trained without a search: "
                f"SetClassifier takes it, with an alpha (setwise fit with --no-cv)"
            )
        target, is_free = get_target(self.target), is_auto(self.spaces)
        if names.one_dimensional:
            spaces, is_free = ["auto"], False
        may_fall_back = is_free and is_auto(self.surrogates)
        plan = planned(self, "auto", "auto", may_fall_back, rows, target)
        if is_free:
            # Where nearly every row has a set of its own, a list is as long as the data.
            few = plan.space == "auto" and unseen_mass(rows.sets, rows.counts) <= MOST_UNSEEN
            listed = ["catalog"] if few else []
            spaces = [*listed, "sized"]
            if hierarchy_of(target) is not None:
                is_path = hierarchy_space("auto", self.target, rows.sets).is_path
                spaces = ["paths" if is_path else "closed", *listed]
        pairs = []
        for surrogate in [plan.surrogate if is_auto(one) else one for one in surrogates]:
            named = isinstance(surrogate, str) and surrogate == "binary_relevance"
            alone = named or isinstance(surrogate, BinaryRelevance)
            pairs += [(surrogate, space) for space in (["auto"] if alone else spaces)]
        return pairs

    def _is_by_likelihood(self, pairs: list[tuple[Any, Any]]) -> bool:
        """Whether combinations are compared by their marginals, which all of them must have."""
        require_one_of(self.choose_by, CRITERIA, "choose_by")
        if self.choose_by == "target":
            return False
        given = [one for one, _ in pairs if not (isinstance(one, str) and one in LIKELIHOODS)]
        if given:
            known = " and ".join(map(repr, LIKELIHOODS))
            raise ValueError(
                f"choose_by='likelihood' compares probabilities, which the surrogates {known} "
                f"have, but surrogates has {given[0]!r}; use choose_by='target'"
            )
        return True

    def _splitter(self, n_rows: int) -> Any:
        if self.cv is not None and not isinstance(self.cv, int | np.integer):
            return check_cv(self.cv)
        folds = folds_for(n_rows, FOLDS, self.random_state)
        return folds if self.cv is None else replace(folds, n_splits=whole_number(self.cv, "cv", 2))

    def _scalings(self, inputs) -> list[Any]:
        if isinstance(self.scalings, str) and self.scalings == "auto":
            return _of_sparse(inputs) if issparse(inputs) else ["standard"]
        scalings = _several(self.scalings, "scalings")
        if any(scaling not in SCALINGS for scaling in scalings):
            known = ", ".join(map(repr, SCALINGS))
            raise ValueError(f"scalings must be 'auto' or some of {known}, not {self.scalings!r}")
        return scalings

    def _alphas(self, scaling: str | None) -> list[float]:
        if self.alphas is None:
            return [float(alpha) for alpha in np.logspace(*DECADES[scaling], 9)]
        given = np.ravel(self.alphas).tolist()
        alphas = sorted({positive_number(a, "each of alphas") for a in given}, reverse=True)
        if not alphas:
            raise ValueError("alphas must have at least one penalty, but it is empty")
        return alphas


def near(alpha: float, alphas: list[float]) -> list[float]:
    """A penalty and its neighbours among all."""
    place = alphas.index(alpha)
    return alphas[max(place - 1, 0) : place + 2]


def _of_sparse(inputs: Any) -> list[str | None]:
    """Scalings for sparse features: as they are, and rows of length 1, where these differ."""
    lengths = row_norms(inputs)
    return ["rows"] if np.allclose(lengths[lengths > 0], 1.0, atol=1e-5) else [None, "rows"]


def _several(given: Any, name: str) -> list[Any]:
    """What is to be tried, as a list; a single one need not be in one."""
    alone = isinstance(given, str) or not hasattr(given, "__iter__")
    several = [given] if alone else list(given)
    if not several:
        raise ValueError(f"{name} must have at least one to try, but it is empty")
    return several


def _guess(best: Trial, race: Race) -> float | None:
    """The middle of a path that was cut while smaller penalties gained, if there is time for it.

    (What was held out is said by another model then, so rules for all rows together, which are
    fitted to it, stay with the best that was tried.)
    """
    tried = [trial for trial in best.path.trials if trial.kept or trial.twin]
    middle = best.path.trials[len(best.path.trials) // 2]
    is_open = best is tried[-1] and not (middle in tried or middle.left_out)
    may_guess = is_open and race.watch.left > 0.0 and not race.judge.keeps_marginals
    return middle.alpha if may_guess else None


def _between(best: Trial, race: Race) -> float:
    """The vertex, in log alpha, of the parabola through the best loss and its two neighbours."""
    same = [trial for trial in best.path.trials if trial.kept or trial.twin]
    place = same.index(best)
    if place in (0, len(same) - 1):
        return best.alpha
    near = same[place - 1 : place + 2]
    x = np.log([trial.alpha for trial in near])
    y = np.array([race.estimate(trial.twin or trial, best) for trial in near])
    if y[1] > min(y):
        return best.alpha
    curve, slope, _ = np.polyfit(x - x[1], y, 2)
    return best.alpha if curve <= 1e-12 else float(np.exp(x[1] - slope / (2.0 * curve)))
