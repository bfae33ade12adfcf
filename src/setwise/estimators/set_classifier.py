"""The linear classifier: scores X W + b, a surrogate to train on, a decoder to predict by."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from setwise.decoders.for_target import AtCosts, Decoder, decoder_of
from setwise.estimators.blocked import read_rows
from setwise.estimators.checkpoint import Checkpoint
from setwise.estimators.choice import space_for, unseen_mass
from setwise.estimators.cost import is_auto, planned
from setwise.estimators.design import Solution, checked_inputs, scaled_rows
from setwise.estimators.held_out import held_out_rows
from setwise.estimators.metro import Metro
from setwise.estimators.running import Progress, progress_shown, run
from setwise.estimators.scored import ScoredModel
from setwise.estimators.solver import Fitting
from setwise.labels import LabelNames
from setwise.sparse import dense_rows
from setwise.surrogates.names import DEFAULT_Q, METRO
from setwise.threads import small_products
from setwise.validation import positive_number, score_matrix, whole_number


@dataclass(eq=False, repr=False)
class SetClassifier(ScoredModel):
    """A linear classifier trained and decoded for the target it is judged by.

    Scores are X W + b. By default the likelihood of the label sets is trained, and the label set
    with the smallest expected loss is predicted. The objective is

        mean loss + alpha / 2 ||W||²

    Intercepts and the parameters of the space are not penalised, except for the bonuses of
    "backoff": they are not negative, and 0.05 bonus² / n is added for each.

    Parameters
    ----------
    target : str or Target, default "f1"
        The measure that predictions are judged by. `TreeDistance` requires label sets that contain
        the ancestors of their labels; predictions then contain them too.
    surrogate : str or Surrogate, default "auto"
        The loss that is trained. "auto": "likelihood", or "binary_relevance" if that would take
        more than a quarter of the memory or 1e11 operations per pass. The losses of the target are
        "logistic", "sum_exponential", "generalized_cross_entropy" (with `q`),
        "mean_absolute_error", "constrained_exponential", "constrained_squared_hinge",
        "constrained_hinge" and "constrained_rho". For measures of all rows, such as "macro_f1",
        also "metro": binary relevance with costs that represent the measure, found on three folds.
        A surrogate object keeps its own target, settings and, unless one is given, space. If a
        loss is not convex, training starts from the solution of a convex one.
    space : str or Space, default "auto"
        Which label sets are possible. Those seen in training: "catalog" (a bias each) or "joint"
        (separate weights each). All sets of the sizes seen: "sized" (a bias per size) or "backoff"
        (also a bonus for each frequent set). All sets: "forest" (with potentials on the Chow-Liu
        tree of the labels) or "cube" (independent labels). For a taxonomy: "paths" or "closed".
        "auto", for a likelihood: "catalog", or "sized" if more than nine in ten rows have a label
        set of their own; for tree distance, "paths" if every set is a path, else "closed"; for
        other losses, the sets of k labels (precision@k, recall@k), those of a table, or "cube".
    decoder : {"auto", "minimum_risk", "most_likely", "marginals"}, default "auto"
        How scores become label sets. "auto": the set with the smallest expected loss after a
        likelihood, otherwise the most likely set. "marginals": the smallest expected loss if
        labels were independent; "auto" uses it if there is no exact way. For a measure of all
        rows, a rule of `PopulationRule` or such an object; "auto" fits thresholds to the
        held-out predictions of five folds.
    alpha : float, default 1e-3
        Strength of the L2 penalty on the weights.
    q : float, default 0.7
        The parameter of the generalized cross-entropy, between 0 and 1.
    scaling : {None, "standard", "rows"}, default None
        None: features as they are. "standard": weights are penalised as if each feature were
        divided by its standard deviation (``coef_`` is for the features as they are). "rows":
        every row is divided by its Euclidean length, in training and in prediction.
    fit_intercept : bool, default True
    tol : float, default 1e-4
        Training ends when no entry of the gradient is larger. Solutions for the same rows in
        another order, or for a row of weight 3 in place of three rows, agree up to tol.
    max_iter : int, default 1000
        Maximum number of steps, for each loss on the way to one that is not convex.
    sparse_output : bool, default False
        Whether `predict` returns a CSR array.
    warm_start : bool, default False
        Whether `fit` starts from the last solution, if its shapes are the same.
    label_features : array of shape (n_labels, m), optional
        Features V of the labels: scores are (X W + b) V^T, with W of shape (n_features, m), so that
        `score_labels` can score labels not seen in training.
    n_jobs : int, optional
        Number of threads; None and -1: one per processor, or OMP_NUM_THREADS.
    verbose : bool, default False
        Whether to show progress on the error stream.
    random_state : int, RandomState or None, default None
        Seed of the label sets drawn for margins other than the exponential on spaces of more than
        2^16 sets; None is 0. Nothing else is random.

    Attributes
    ----------
    classes_ : array of shape (n_labels,)
        Names of the labels, or the classes of a one-dimensional y.
    coef_ : array of shape (n_scores, n_features)
    intercept_ : array of shape (n_scores,)
        With label_features (m, n_features) and (m,).
    space_ : Space
        With the parameters learnt.
    target_ : Target
    decoder_ : str
        The decoder in use.
    surrogate_ : str
        What was trained on.
    choice_ : str or None
        Why "auto" did not choose as usual, if it did not; a warning says so too.
    objective_ : float
        The objective reached.
    guarantee_ : str
        What is proved about the predictions. For a likelihood, `guarantee_on` adds the bound that
        follows from held-out rows.
    n_iter_ : int

    Examples
    --------
    >>> X = [[0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [0.0, 0.9], [0.9, 0.1]]
    >>> Y = [[0, 1], [1, 0], [1, 1], [0, 1], [1, 0]]
    >>> SetClassifier("f1").fit(X, Y).predict([[0.1, 0.8], [0.8, 0.0]])
    array([[0, 1],
           [1, 0]])
    """

    target: Any = "f1"
    surrogate: Any = "auto"
    space: Any = "auto"
    decoder: str = "auto"
    _: KW_ONLY
    alpha: float = 1e-3
    q: float = DEFAULT_Q
    scaling: str | None = None
    fit_intercept: bool = True
    tol: float = 1e-4
    max_iter: int = 1000
    sparse_output: bool = False
    warm_start: bool = False
    label_features: Any = None
    n_jobs: int | None = None
    verbose: bool = False
    random_state: Any = None

    def fit(self, X, y=None, sample_weight=None, *, checkpoint=None):
        """Learn weights and the parameters of the space.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, n_features), or Blocks
            Blocks have label sets and weights of their own; what comes out is the same to the last
            bit whatever holds them and however many threads sum over them.
        y : label sets in any form of `setwise.labels.read_labels`, or one class a row
        sample_weight : array of shape (n,), optional
        checkpoint : path, optional
            A file for the best solution so far, every ten seconds and when the fit is interrupted.
            Where it is there already, the fit goes on from it; a fit that has ended removes it.
            (Binary relevance then goes by L-BFGS, as on blocks, whose steps can be kept.)
        """
        with run(self):
            rows, names = read_rows(self, X, y, sample_weight)
            with small_products(rows.multiplications):
                design = rows.design(self.scaling, self.fit_intercept)
                kept = Checkpoint.at(checkpoint, design.unit)
                risk, surrogate = decoder_of(self.target, self.decoder), self.surrogate
                if isinstance(surrogate, str) and surrogate == METRO:
                    surrogate = self._metro(design, rows, names, risk)
                    risk = AtCosts(risk.target, surrogate.costs)
                self._fit(design, rows, names, risk, surrogate=surrogate, checkpoint=kept)
                self._settle(risk, lambda: held_out_rows(self, design, rows))
        if kept is not None:
            kept.done()
        return self

    def _metro(self, design: Any, rows: Any, names: LabelNames, risk: Decoder) -> Any:
        if not design.in_memory:
            raise ValueError(
                f"{METRO!r} looks at all rows at once, and is not trained on blocks; use another "
                f"surrogate, such as 'binary_relevance'"
            )
        sets, settings = dense_rows(rows.sets), (self.alpha, self.tol, self.max_iter)
        return Metro(risk.target, design, sets, *settings).surrogate(names, self.decoder)

    def _fit(
        self, design: Any, rows: Any, names: LabelNames, risk: Decoder,
        progress: Progress | None = None, surrogate: Any = None,
        checkpoint: Checkpoint | None = None,
    ):  # fmt: skip
        """Learn from what has been read and checked, to be decoded by ``risk``.

        ``progress`` hears of each step of the solver, and may raise to end it. ``surrogate`` is
        what to train where that is not simply what was asked for. It begins at the
        ``checkpoint``, if there is one.
        """
        surrogate = self.surrogate if surrogate is None else surrogate
        positive_number(self.alpha, "alpha")
        positive_number(self.tol, "tol")
        whole_number(self.max_iter, "max_iter", 1)
        sets, is_class = rows.sets, names.one_dimensional
        is_free = is_auto(self.space) and not is_class and self.label_features is None
        plan = planned(self, surrogate, self.space, is_free, rows, risk.target)
        training = self._training(plan.surrogate, risk.target)
        space = space_for(plan.space, training, is_class, sets, rows.weights, rows.counts)
        self._names, self.classes_ = names, names.names
        cut_off = None if checkpoint is None else checkpoint.last()
        last = cut_off or self._last(design)
        self._decode_by(risk, training, space)
        fitting = Fitting(
            training, space, design, sets, rows.weights, float(self.alpha), float(self.tol),
            self.max_iter, self.label_features, checkpoint,
        )  # fmt: skip
        solution = None if checkpoint is None else checkpoint.ended()
        if solution is None:
            with progress_shown(self.verbose) as shown:
                solution = fitting.solve(last, progress or shown)
            if cut_off is not None:
                # The steps before count: a search takes a fit without any for the one before it.
                solution = replace(solution, n_iter=max(solution.n_iter, 1))
            if checkpoint is not None:
                checkpoint.keep(solution, at_once=True, has_ended=True)
        dtype, intercept = design.dtype, solution.intercept
        self._scaling, self._features = self.scaling, fitting.features()
        self._has_intercept = design.fit_intercept
        self.space_ = fitting.learnt(solution)
        coef = (solution.weights / design.unit[:, None]).T
        self.coef_ = np.ascontiguousarray(coef).astype(dtype)
        if is_class and not training.is_by_label and self.label_features is None:
            # The scores of all classes may be raised together; these have the mean 0.
            intercept = intercept - intercept.mean()
        self.intercept_ = intercept.astype(dtype)
        self.objective_, self.n_iter_ = solution.value, solution.n_iter
        # What the guarantee tells of rows.
        self._unseen = unseen_mass(sets, rows.counts) if isinstance(self.space, str) else None
        self._held_out: dict[str, float] | None = None
        self._out_of_fold = None
        return self

    def score_labels(self, X, label_features):
        """The scores of labels given by their features, seen in training or not, (n, rows of V)."""
        inputs = self._fitted()._checked(X)
        if self._features is None:
            raise ValueError(
                "labels can be scored by their features only if fit had label_features"
            )
        features = score_matrix(label_features, len(self.intercept_), "label_features")
        return self._projections(inputs) @ features.T.astype(self.coef_.dtype)

    # ------------------------------------------------------------------ what training begins with

    def _last(self, design: Any) -> Solution | None:
        """The last solution if a fit is to begin there, else None."""
        if not self.warm_start or not hasattr(self, "coef_"):
            return None
        if self.coef_.shape[1] != len(design.unit):
            return None
        weights = self.coef_.T.astype(np.float64) * design.unit[:, None]
        intercept = self.intercept_.astype(np.float64)
        finite = np.isfinite(weights).all() and np.isfinite(intercept).all()
        return Solution(weights, intercept, self.space_.parameters) if finite else None

    # ------------------------------------------------------------------- answers to checked inputs

    def _fitted(self) -> SetClassifier:
        if "coef_" not in vars(self):
            check_is_fitted(self, "coef_")
        return self

    @property
    def _dtype(self):
        return self.coef_.dtype

    def _checked(self, X):
        return checked_inputs(self, X, reset=False)

    def _projections(self, X):
        return np.asarray(scaled_rows(X, self._scaling) @ self.coef_.T + self.intercept_)

    def _scores(self, X):
        projections = self._projections(X)
        if self._features is None:
            return projections
        return projections @ self._features.T.astype(projections.dtype)

    def _score_parts(self, X, background):
        row, base = (
            np.float64(0.0) if given is None else scaled_rows(given, self._scaling).mean(axis=0)
            for given in (X, background)
        )
        weights = self.coef_ if self._features is None else self._features @ self.coef_
        return weights.astype(np.float64), np.asarray(row - base, np.float64).ravel()
