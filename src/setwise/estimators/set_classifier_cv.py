"""The linear classifier with penalty, space and surrogate chosen by cross-validated target loss."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import check_cv
from sklearn.utils.validation import check_is_fitted

from setwise.decoders.minimum_risk import MinimumRisk
from setwise.estimators.choice import MOST_UNSEEN, hierarchy_space, unseen_mass
from setwise.estimators.design import SCALINGS, Design, Rows, read_training
from setwise.estimators.folds import StratifiedLabelSets
from setwise.estimators.guarantee import log_loss_of
from setwise.estimators.set_classifier import LinearClassifier, SetClassifier
from setwise.estimators.solver import progress_shown
from setwise.labels import LabelNames
from setwise.surrogates.binary_relevance import BinaryRelevance
from setwise.surrogates.names import DEFAULT_Q
from setwise.targets.registry import get_target
from setwise.targets.target import hierarchy_of
from setwise.validation import positive_number, whole_number

# Where the nine default penalties, half a decade apart, begin and end (in decades): the larger the
# features of a scaling, the smaller their weights.
DECADES = {None: (-0.5, -4.5), "standard": (1.0, -3.0), "rows": (-1.5, -5.5)}
# A path of penalties ends after this many in a row that are worse than its best.
PATIENCE = 3
TIE = 1e-12
SETTINGS = ("surrogate", "space", "scaling")
# Folds, and the most rows they are for.
FOLDS = ((10, 1_000), (5, 10_000), (3, np.inf))


@dataclass(frozen=True)
class Fold:
    """Rows to learn from, in a scaling, and rows held out, with one decoder for all models."""

    learnt: Rows
    held: Rows
    names: LabelNames
    risk: MinimumRisk

    def fit(self, model: SetClassifier, design: Design, alpha: float) -> SetClassifier:
        """Learn from the rows of the fold on a path of penalties.

        Begins where the last one ended, and need not converge.
        """
        model.set_params(alpha=alpha, warm_start=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return model._fit(design, self.learnt, self.names, self.risk)

    def loss(self, model: SetClassifier) -> float:
        """The mean loss of the model's target on the rows held out; of classes, the error."""
        predicted: Any = model._predict(self.held.inputs)
        if self.names.one_dimensional:
            losses = predicted != self.names.decode(self.held.sets)
        else:
            losses = self.risk.target.loss(predicted, self.held.sets)
        return float(np.average(losses, weights=self.held.weights))


def held_out(folds: list[Fold], models: list[SetClassifier]) -> dict[str, float] | None:
    """The log-loss of the rows held out, where a guarantee is in terms of it; see `log_loss_of`."""
    if models[0]._claim().kind != "bounded":
        return None
    found = [model._log_probability(fold.held) for fold, model in zip(folds, models, strict=True)]
    return log_loss_of(np.concatenate(found), np.concatenate([fold.held.weights for fold in folds]))


@dataclass(eq=False, repr=False)
class SetClassifierCV(LinearClassifier):
    """`SetClassifier` that chooses alpha, the space and the surrogate by the target itself.

    Every combination is trained on all folds but one and judged by the mean loss of the target on
    that one. Alphas go from large to small, each starting from the solution before, until three in
    a row are worse than the best. The combination of least loss is trained on all rows, its alpha
    moved to the vertex of the parabola through the losses of the best one and its two neighbours,
    which smooths the noise of the folds; ties: the larger alpha, the earlier space.

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
    surrogates : sequence of str or Surrogate, default ("likelihood",)
        Surrogates to try.
    scalings : sequence of {None, "standard", "rows"} or "auto", default "auto"
        Scalings to try, see `SetClassifier`; they are compared with the first space and surrogate,
        and the others are tried with the best. "auto": ("standard",) for dense features,
        (None, "rows") for sparse ones.
    cv : int or splitter, optional
        Folds; a number makes `StratifiedLabelSets`. By default ten folds up to 1,000 rows, five up
        to 10,000, three beyond: few rows need more folds and can pay for them.
    decoder, q, fit_intercept, sparse_output
        As in `SetClassifier`.
    tol : float, default 1e-3
        As in `SetClassifier`; a tenth of it for the scaling "rows".
    max_iter : int, default 300
        Steps for each penalty of a path.
    verbose : bool, default False
        Whether to show progress and the time left.
    random_state : int, RandomState or None, default None
        Seed of the folds, and of the models; None is 0.

    Attributes
    ----------
    best_estimator_ : SetClassifier
        Trained on all rows; what predicts.
    best_params_ : dict
        The surrogate, space, scaling and alpha that were chosen; alpha lies within half a step of
        one tried.
    cv_results_ : list of dict
        One a combination tried: its settings, mean loss and the loss of each fold; of a likelihood
        that was the best of its path so far, the log-loss of the rows ``held_out``: its mean over
        those whose label set is possible, and the share of the others.
    best_loss_ : float
        The least mean loss of those tried. (Chosen by it, so a little optimistic.)

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
    surrogates: Any = ("likelihood",)
    scalings: Any = "auto"
    cv: Any = None
    decoder: str = "auto"
    q: float = DEFAULT_Q
    fit_intercept: bool = True
    tol: float = 1e-3
    max_iter: int = 300
    sparse_output: bool = False
    verbose: bool = False
    random_state: Any = None

    def fit(self, X, y, sample_weight=None):
        """Choose by cross-validation, then learn from all rows.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, n_features)
        y : label sets in any form of `setwise.labels.read_labels`, or one class a row
        sample_weight : array of shape (n,), optional
            For training; the losses of held-out rows are weighted by it too.
        """
        rows, names = read_training(self, X, y, sample_weight)
        # A row of weight 0 is not there; splits that are given count it all the same.
        rows = rows if hasattr(self.cv, "__iter__") else rows.taken()
        risk = MinimumRisk(self.target)
        truth: Any = names.decode(rows.sets) if names.one_dimensional else csr_array(rows.sets)
        folds = [
            Fold(rows.taken(train), rows.taken(test), names, risk)
            for train, test in self._splitter(len(rows.sets)).split(rows.inputs, truth)
        ]
        if not folds:
            raise ValueError("cv must give at least one split, but it gives none")
        scalings = self._scalings(rows.inputs)
        first, *others = self._pairs(names, rows.sets)
        self.cv_results_ = results = []
        n_trials = (len(scalings) + len(others)) * len(self._alphas(None))
        with progress_shown(self.verbose, n_trials) as progress:
            for scaling in scalings:
                results += self._path(first, scaling, folds, progress)
            scaling = min(results, key=_loss)["scaling"]
            designs = [Design.of(fold.learnt, scaling, self.fit_intercept) for fold in folds]
            for pair in others:
                results += self._path(pair, scaling, folds, progress, designs)
        everything = rows.taken()
        self._finish(Fold(everything, everything, names, risk))
        return self

    def _path(
        self, pair: tuple[Any, Any], scaling: Any, folds: list[Fold], progress: Any,
        designs: list[Design] | None = None,
    ) -> Iterator[dict[str, Any]]:  # fmt: skip
        """A row of results for each alpha; each begins where the last one ended.

        Ends when `PATIENCE` alphas in a row are worse than the best.
        """
        if designs is None:
            designs = [Design.of(fold.learnt, scaling, self.fit_intercept) for fold in folds]
        settings = dict(zip(SETTINGS, (*pair, scaling), strict=True))
        alphas = self._alphas(scaling)
        models = [self._model(**settings) for _ in folds]
        least, worse = np.inf, 0
        for alpha in alphas:
            if progress is not None:
                progress(advance=1, description=f"{settings['space']} {alpha:.2g}")
            if worse == PATIENCE:
                continue
            losses = [
                fold.loss(fold.fit(model, design, alpha))
                for fold, model, design in zip(folds, models, designs, strict=True)
            ]
            loss = float(np.mean(losses))
            row = {**settings, "alpha": alpha, "loss": loss, "fold_losses": losses}
            if loss < least:
                row["held_out"] = held_out(folds, models)
            yield row
            if loss < least - TIE:
                least, worse = loss, 0
            elif loss > least + TIE:
                worse += 1

    def _finish(self, rows: Fold) -> None:
        """Learn from all rows with what was chosen."""
        best = min(self.cv_results_, key=_loss)
        alpha, scaling = _between(best, self.cv_results_), best["scaling"]
        self.best_loss_ = best["loss"]
        self.best_params_ = {**{name: best[name] for name in SETTINGS}, "alpha": alpha}
        design = Design.of(rows.learnt, scaling, self.fit_intercept)
        model = self._model(*(best[name] for name in SETTINGS))
        # By the same path as in the folds: where the objective is flat, it matters.
        for larger in self._alphas(scaling):
            if larger > alpha:
                rows.fit(model, design, larger)
        model.set_params(alpha=alpha, sparse_output=self.sparse_output)
        self.best_estimator_ = model._fit(design, rows.learnt, rows.names, rows.risk)
        model._held_out = best["held_out"]
        model.set_params(warm_start=False)
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self, name):
                setattr(model, name, getattr(self, name))
        self.classes_, self.n_iter_ = model.classes_, model.n_iter_

    def _fitted(self) -> SetClassifier:
        check_is_fitted(self)
        return self.best_estimator_

    def _model(self, surrogate, space, scaling) -> SetClassifier:
        # Entries of rows of length 1 are small, and so are gradients.
        tol = self.tol / 10.0 if scaling == "rows" else self.tol
        return SetClassifier(
            self.target, surrogate, space, self.decoder, tol=tol, q=self.q, scaling=scaling,
            fit_intercept=self.fit_intercept, max_iter=self.max_iter, warm_start=True,
            random_state=self.random_state,
        )  # fmt: skip

    # ------------------------------------------------------------------------------ what is tried

    def _pairs(self, names: LabelNames, sets) -> list[tuple[Any, Any]]:
        """Surrogates with the spaces to try them on; binary relevance has its own."""
        spaces = _several(self.spaces, "spaces")
        if names.one_dimensional:
            spaces = ["auto"]
        elif isinstance(self.spaces, str) and self.spaces == "auto":
            # Where nearly every row has a set of its own, a list is as long as the data.
            listed = ["catalog"] if unseen_mass(sets) <= MOST_UNSEEN else []
            spaces = [*listed, "sized"]
            if hierarchy_of(get_target(self.target)) is not None:
                is_path = hierarchy_space("auto", self.target, sets).is_path
                spaces = ["paths" if is_path else "closed", *listed]
        pairs = []
        for surrogate in _several(self.surrogates, "surrogates"):
            named = isinstance(surrogate, str) and surrogate == "binary_relevance"
            alone = named or isinstance(surrogate, BinaryRelevance)
            pairs += [(surrogate, space) for space in (["auto"] if alone else spaces)]
        return pairs

    def _splitter(self, n_rows: int) -> Any:
        if self.cv is not None and not isinstance(self.cv, int | np.integer):
            return check_cv(self.cv)
        if n_rows < 2:
            raise ValueError(
                f"cross-validation needs at least 2 rows of positive weight, but there are "
                f"n_samples = {n_rows}"
            )
        folds = next(folds for folds, most in FOLDS if n_rows <= most)
        n_splits = min(folds, n_rows) if self.cv is None else whole_number(self.cv, "cv", 2)
        seed = 0 if self.random_state is None else self.random_state
        return StratifiedLabelSets(n_splits, random_state=seed)

    def _scalings(self, inputs) -> list[Any]:
        if isinstance(self.scalings, str) and self.scalings == "auto":
            return [None, "rows"] if issparse(inputs) else ["standard"]
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


def _loss(row: dict[str, Any]) -> float:
    return row["loss"]


def _several(given: Any, name: str) -> list[Any]:
    """What is to be tried, as a list; a single one need not be in one."""
    alone = isinstance(given, str) or not hasattr(given, "__iter__")
    several = [given] if alone else list(given)
    if not several:
        raise ValueError(f"{name} must have at least one to try, but it is empty")
    return several


def _between(best: dict[str, Any], rows: list[dict[str, Any]]) -> float:
    """The vertex, in log alpha, of the parabola through the best loss and its two neighbours."""
    same = [row for row in rows if all(row[name] is best[name] for name in SETTINGS)]
    place = same.index(best)
    if place in (0, len(same) - 1):
        return best["alpha"]
    near = same[place - 1 : place + 2]
    x, y = np.log([row["alpha"] for row in near]), np.array([row["loss"] for row in near])
    curve, slope, _ = np.polyfit(x - x[1], y, 2)
    return best["alpha"] if curve <= 1e-12 else float(np.exp(x[1] - slope / (2.0 * curve)))
