"""Peers as recipes, each in an environment of its own, named before the colon.

A peer is imported when it is made: this module is read by interpreters that have one of them.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.multiclass import OneVsRestClassifier

from benchmarks.evidence.tuning import (
    Logistic,
    Question,
    Recipe,
    few,
    linear_grid,
    logistic,
    one_vs_rest,
    scaled,
    scalings,
)  # fmt: skip

# Boosters have these, as forests have their defaults.
N_ROUNDS, RATE = 200, 0.1


# ----------------------------------------------------------------------------- scikit-multilearn-ng


def _ml_knn(asked: Question, k: int, scaling: str | None) -> Any:
    from skmultilearn.adapt import MLkNN

    return scaled(Plain(MLkNN(k=k)), scaling)


def _neighbours(is_sparse: bool) -> list[dict[str, Any]]:
    return [{"k": k, **scaling} for scaling in scalings(is_sparse) for k in (5, 10, 20)]


def _powerset(asked: Question, C: float, scaling: str | None) -> Any:
    from skmultilearn.problem_transform import LabelPowerset

    return scaled(Plain(LabelPowerset(logistic(C))), scaling)


def _rakel(asked: Question, C: float, scaling: str | None) -> Any:
    from skmultilearn.ensemble import RakelD

    model = RakelD(base_classifier=Logistic(C), base_classifier_require_dense=[True, True])
    return scaled(Plain(model), scaling)


class Plain(ClassifierMixin, BaseEstimator):
    """A model that takes and gives matrices of its own kind, with sparse matrices in between."""

    def __init__(self, model: Any):
        self.model = model

    def fit(self, X, y):
        self.model_ = self.model.fit(sparse.csr_matrix(X), sparse.csr_matrix(y))
        return self

    def predict(self, X):
        return sparse.csr_array(self.model_.predict(sparse.csr_matrix(X))).astype(np.int64)


# ----------------------------------------------------------------------------------------- boosting


class Lights(ClassifierMixin, BaseEstimator):
    """LightGBM for each label."""

    def __init__(self, seed: int):
        self.seed = seed

    def fit(self, X, y):
        from lightgbm import LGBMClassifier

        made = LGBMClassifier(
            n_estimators=N_ROUNDS, learning_rate=RATE, random_state=self.seed, n_jobs=1, verbose=-1
        )
        self.model_ = OneVsRestClassifier(made).fit(_floats(X), y)
        return self

    def predict_proba(self, X):
        return self.model_.predict_proba(_floats(X))

    def predict(self, X):
        return (self.predict_proba(X) >= 0.5).astype(np.int64)


class Trees(ClassifierMixin, BaseEstimator):
    """XGBoost's own objective for several labels, trees with a vector in each leaf."""

    def __init__(self, seed: int):
        self.seed = seed

    def fit(self, X, y):
        from xgboost import XGBClassifier

        self.model_ = XGBClassifier(
            n_estimators=N_ROUNDS, learning_rate=RATE, max_depth=4, tree_method="hist",
            multi_strategy="multi_output_tree", random_state=self.seed, n_jobs=1,
        ).fit(_floats(X), y)  # fmt: skip
        return self

    def predict_proba(self, X):
        return self.model_.predict_proba(_floats(X))

    def predict(self, X):
        return (self.predict_proba(X) >= 0.5).astype(np.int64)


def _floats(X: Any) -> Any:
    return sparse.csr_matrix(X, dtype=np.float32) if sparse.issparse(X) else X


# ------------------------------------------------------------------------------------------- BOOMER


def _boomer(loss: str, asked: Question) -> Any:
    from mlrl.boosting import BoomerClassifier

    return Plain(BoomerClassifier(random_state=asked.seed + 1, loss=loss))


# -------------------------------------------------------------------------------------- GFM package


def _gfm(asked: Question, C: float, scaling: str | None) -> Any:
    from example_wise_f1_maximizer import ExampleWiseF1Maximizer

    return scaled(ExampleWiseF1Maximizer(estimator=logistic(C)), scaling)


# ------------------------------------------------------------------------------- napkinXC, xcolumns


class Napkin(ClassifierMixin, BaseEstimator):
    """A probabilistic label tree, or a binary model for each label.

    With every weight: it would drop those below 0.1, which most are of dense features. Features are
    as they are given, but rows of norm 1 for the tree, which ends the process without that.
    """

    def __init__(self, kind: str, C: float, seed: int):
        self.kind, self.C, self.seed = kind, C, seed

    def fit(self, X, y):
        import tempfile

        from napkinxc.models import BR, PLT

        self.folder_ = tempfile.TemporaryDirectory()  # until the model is let go
        kinds = {"PLT": PLT, "BR": BR}
        self.model_ = kinds[self.kind](
            self.folder_.name, liblinear_c=self.C, norm=self.kind == "PLT", weights_threshold=0.0,
            seed=self.seed, threads=1, verbose=0,
        )  # fmt: skip
        self.model_.fit(sparse.csr_matrix(X, dtype=np.float32), _lists(y))
        self.n_labels_ = y.shape[1]
        return self

    def predict_proba(self, X):
        found = self.model_.predict_proba(sparse.csr_matrix(X, dtype=np.float32), top_k=0)
        probability = np.zeros((X.shape[0], self.n_labels_))
        for row, pairs in enumerate(found):
            for label, value in pairs:
                probability[row, label] = value
        return probability

    def predict(self, X):
        return (self.predict_proba(X) >= 0.5).astype(np.int64)


def _lists(y: Any) -> list[list[int]]:
    return [list(map(int, np.flatnonzero(row))) for row in y]


def _napkin(kind: str, asked: Question, C: float, scaling: str | None) -> Any:
    return scaled(Napkin(kind, C, asked.seed), scaling)


def _by_columns(model: Any, X: Any, target: str) -> Any:
    """xcolumns: block coordinate ascent on the expected macro-F1 of the rows at hand."""
    from xcolumns.block_coordinate import predict_optimizing_macro_f1_score_using_bc as ascend

    return ascend(model.predict_proba(X), k=0, seed=0)


# ------------------------------------------------------------------------------------ LibMultiLabel


class Lib(ClassifierMixin, BaseEstimator):
    """A linear technique of LibMultiLabel; costs are chosen by itself.

    With an intercept, which it has only if asked (-B), and on one thread (-m).
    """

    def __init__(self, technique: str, C: float):
        self.technique, self.C = technique, C

    def fit(self, X, y):
        from libmultilabel import linear

        train = getattr(linear, f"train_{self.technique}")
        inputs, sets = sparse.csr_matrix(X, dtype=np.float64), sparse.csr_matrix(y)
        options = f"-s 0 -B 1 -c {self.C} -m 1 -q"
        self.model_ = train(sets, inputs, multiclass=False, options=options)
        return self

    def predict(self, X):
        from libmultilabel import linear

        values = linear.predict_values(self.model_, sparse.csr_matrix(X, dtype=np.float64))
        return (values > 0.0).astype(np.int64)


def _lib(technique: str, asked: Question, C: float, scaling: str | None) -> Any:
    return scaled(Lib(technique, C), scaling)


KINDS = {
    "peer": {
        "multilearn: ML-kNN": Recipe(_ml_knn, _neighbours),
        "multilearn: label powerset": Recipe(_powerset, linear_grid),
        "multilearn: RAkEL-d": Recipe(_rakel, few),
        "boosting: LightGBM": Recipe(lambda asked: Lights(asked.seed)),
        "boosting: XGBoost": Recipe(lambda asked: Trees(asked.seed)),
        **{
            f"boomer: {loss}": Recipe(partial(_boomer, loss))
            for loss in ("logistic-decomposable", "logistic-non-decomposable")
        },
        "gfm: GFM": Recipe(_gfm, few, targets=("f1",)),
        "extreme: napkinXC PLT": Recipe(partial(_napkin, "PLT"), linear_grid),
        "extreme: napkinXC BR": Recipe(partial(_napkin, "BR"), linear_grid),
        "extreme: xcolumns": Recipe(one_vs_rest, linear_grid, _by_columns, targets=("macro_f1",)),
        **{
            f"libmultilabel: {technique}": Recipe(partial(_lib, technique), few)
            for technique in ("1vsrest", "thresholding", "cost_sensitive", "cost_sensitive_micro")
        },
    }
}
