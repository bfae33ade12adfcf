"""Choosing penalty and space by the target itself."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.model_selection import GroupKFold, KFold
from sklearn.utils.estimator_checks import parametrize_with_checks

from setwise.estimators import SetClassifier, SetClassifierCV
from setwise.estimators.folds import StratifiedLabelSets
from setwise.targets import get_target
from tests.support.turns import in_turn


def drawn(seed, n_rows=90, n_features=6, n_labels=4):
    """Label sets of which one label excludes another."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_features))
    Y = X @ rng.normal(size=(n_features, n_labels)) + rng.normal(size=(n_rows, n_labels)) > 0.5
    Y[:, 1] &= ~Y[:, 0]
    return X, Y.astype(np.int64)


def test_the_losses_are_those_of_the_folds():
    """Each entry is what training on the other folds and judging on this one gives."""
    X, Y = drawn(0)
    folds = KFold(3)
    model = SetClassifierCV(
        "jaccard", alphas=[0.1], spaces=["cube"], scalings=[None], cv=folds, tol=1e-6
    ).fit(X, Y)
    (row,) = model.cv_results_
    for (train, test), loss in zip(folds.split(X), row["fold_losses"], strict=True):
        alone = SetClassifier("jaccard", space="cube", alpha=0.1, tol=1e-6).fit(X[train], Y[train])
        expected = get_target("jaccard").loss(alone.predict(X[test]), Y[test]).mean()
        assert loss == pytest.approx(expected, abs=1e-12)
    assert row["loss"] == pytest.approx(np.mean(row["fold_losses"]))


def test_the_combination_of_least_loss_is_trained_on_all_rows():
    X, Y = drawn(1)
    model = SetClassifierCV("f1", alphas=[1e-3, 1e-1, 10.0], cv=3, tol=1e-8).fit(X, Y)
    losses = [row["loss"] for row in model.cv_results_]
    assert model.best_loss_ == min(losses)
    assert len(losses) == 6
    best = SetClassifier("f1", **model.best_params_, tol=1e-8, warm_start=True)
    for alpha in (10.0, 1e-1, model.best_params_["alpha"]):
        if alpha >= model.best_params_["alpha"]:
            best.set_params(alpha=alpha).fit(X, Y)
    np.testing.assert_allclose(model.best_estimator_.coef_, best.coef_, atol=1e-6)
    np.testing.assert_array_equal(model.predict(X), best.predict(X))


def test_ties_go_to_the_larger_penalty_and_the_earlier_space():
    X, Y = drawn(2)
    model = SetClassifierCV("f1", alphas=[1e5, 1e6], spaces=["sized", "cube"], cv=2).fit(X, Y)
    assert {row["loss"] for row in model.cv_results_[:2]} == {model.cv_results_[0]["loss"]}
    if model.best_params_["space"] == "sized":
        assert model.best_params_["alpha"] == 1e6


def test_a_penalty_that_ruins_the_model_is_not_chosen():
    X, Y = drawn(3, n_rows=200)
    model = SetClassifierCV("f1", alphas=[1e-2, 1e4], cv=3).fit(X, Y)
    assert model.best_params_["alpha"] == 1e-2


def test_sparse_and_named_labels_are_chosen_alike():
    X, Y = drawn(4)
    settings = {"alphas": [0.01, 0.1], "cv": 2}
    plain = SetClassifierCV(**settings).fit(X, Y)
    names = np.array(["a", "b", "c", "d"])
    lists = [names[row == 1].tolist() for row in Y]
    for form in (sparse.csr_array(Y), Y.astype(bool), lists):
        other = SetClassifierCV(**settings).fit(X, form)
        assert other.best_params_ == plain.best_params_
        assert other.best_loss_ == plain.best_loss_


# (With a smaller tol than 1e-4 the search takes its products in float64.)
@parametrize_with_checks([SetClassifierCV(alphas=[0.1], spaces=["catalog"], cv=2, tol=1e-5)])
def test_scikit_learn_finds_a_classifier_of_its_own_kind(estimator, check):
    check(estimator)


def test_scalings_are_compared_and_the_best_is_kept():
    """One feature a thousand times as large as the others drowns them if it is not scaled."""
    X, Y = drawn(4, n_rows=150)
    X = np.column_stack([X, 1000.0 * np.random.default_rng(0).normal(size=150)])
    model = SetClassifierCV(
        "f1",
        alphas=[1.0, 0.1],
        spaces=["catalog", "cube"],
        scalings=[None, "standard", "rows"],
        cv=3,
    ).fit(X, Y)
    tried = {(row["space"], row["scaling"]) for row in model.cv_results_}
    best = min((row for row in model.cv_results_ if row["space"] == "catalog"), key=loss_of)
    assert tried == {("catalog", s) for s in (None, "standard", "rows")} | {
        ("cube", best["scaling"])
    }
    assert best["scaling"] != "rows"
    assert model.best_estimator_.scaling == best["scaling"]
    for form, scalings in ((X, {"standard"}), (sparse.csr_array(X), {None, "rows"})):
        chosen = SetClassifierCV("f1", alphas=[0.1], spaces=["cube"], cv=2).fit(form, Y)
        assert {row["scaling"] for row in chosen.cv_results_} == scalings


def loss_of(row):
    return row["loss"]


def test_a_path_ends_on_the_first_fold_after_two_that_are_clearly_worse():
    X, Y = drawn(5, n_rows=400, n_features=100)
    alphas = np.logspace(3, -9, 25)
    model = SetClassifierCV("f1", alphas=alphas, spaces=["cube"], cv=2, max_iter=50).fit(X, Y)
    rows = model.cv_results_
    assert len(rows) < 25
    first = [row["fold_losses"][0] for row in rows]
    assert min(first) not in first[-2:]
    assert all(len(row["fold_losses"]) == 1 for row in rows[-2:])


def test_a_plateau_is_not_an_end():
    """Large penalties all give the constant model; the path goes on to where it gets better."""
    X, Y = drawn(5, n_rows=150)
    model = SetClassifierCV("f1", alphas=np.logspace(6, -3, 10), spaces="cube", cv=3).fit(X, Y)
    losses = [row["loss"] for row in model.cv_results_]
    assert losses[0] == losses[1] == losses[2] == losses[3]
    assert model.best_loss_ < losses[0] - 0.05


def test_a_row_of_weight_zero_is_not_there():
    X, Y = drawn(6)
    weights = np.random.default_rng(0).integers(0, 2, len(X)).astype(float)
    settings = {"alphas": [0.1, 0.01], "cv": 3}
    weighted = SetClassifierCV("f1", **settings).fit(X, Y, sample_weight=weights)
    removed = SetClassifierCV("f1", **settings).fit(X[weights > 0], Y[weights > 0])
    assert weighted.best_loss_ == pytest.approx(removed.best_loss_, abs=1e-12)
    np.testing.assert_allclose(weighted.best_estimator_.coef_, removed.best_estimator_.coef_)


def test_binary_relevance_is_tried_once():
    X, Y = drawn(7)
    model = SetClassifierCV(
        "f1", alphas=[0.1], surrogates=["likelihood", "binary_relevance"], cv=2
    ).fit(X, Y)
    pairs = [(row["surrogate"], row["space"]) for row in model.cv_results_]
    assert pairs.count(("binary_relevance", "auto")) == 1
    assert len(pairs) == 3


def test_the_penalty_is_at_the_vertex_through_the_best_and_its_neighbours():
    X, Y = drawn(6, n_rows=120)
    model = SetClassifierCV("f1", alphas=np.logspace(1, -4, 11), spaces=["catalog"], cv=3).fit(X, Y)
    rows = model.cv_results_
    place = int(np.argmin([row["loss"] for row in rows]))
    assert 0 < place < len(rows) - 1
    x = np.log([row["alpha"] for row in rows[place - 1 : place + 2]])
    y = [row["loss"] for row in rows[place - 1 : place + 2]]
    vertex = np.roots(np.polyder(np.polyfit(x, y, 2)))[0]
    assert model.best_params_["alpha"] == pytest.approx(np.exp(vertex), rel=1e-6)
    assert x[2] < vertex < x[0]


def test_few_rows_have_more_folds():
    X, Y = drawn(7, n_rows=30)
    model = SetClassifierCV("f1", alphas=[0.1], spaces=["cube"]).fit(X, Y)
    assert len(model.cv_results_[0]["fold_losses"]) == 10
    few = SetClassifierCV("f1", alphas=[0.1], spaces=["cube"]).fit(X[:4], Y[:4])
    assert len(few.cv_results_[0]["fold_losses"]) == 4


@in_turn(
    ("settings", "message"),
    [
        ({"alphas": []}, "alphas must have at least one penalty"),
        ({"alphas": [0.1, -1.0]}, "each of alphas must be a positive number"),
        ({"scalings": ["max"]}, "scalings must be 'auto' or some of"),
        ({"scalings": []}, "scalings must have at least one to try"),
        ({"spaces": []}, "spaces must have at least one"),
        ({"surrogates": []}, "surrogates must have at least one"),
        ({"cv": 1}, "cv must be a whole number of at least 2"),
        ({"cv": []}, "cv must"),
        ({"surrogates": ["svm"]}, "surrogate must be one of"),
        ({"spaces": ["tree"]}, "space must be one of"),
    ],
)
def test_bad_settings_are_named(settings, message):
    X, Y = drawn(0)
    with pytest.raises(ValueError, match=message):
        SetClassifierCV(**settings).fit(X, Y)


def test_surrogates_are_compared_too():
    X, Y = drawn(8)
    model = SetClassifierCV(
        "f1", alphas=[0.01], spaces=["cube"], surrogates=["likelihood", "mean_absolute_error"], cv=2
    ).fit(X, Y)
    assert [row["surrogate"] for row in model.cv_results_] == ["likelihood", "mean_absolute_error"]
    assert model.best_estimator_.surrogate == model.best_params_["surrogate"]


def test_shuffled_folds_are_those_of_the_seed():
    X, Y = drawn(9)
    model = SetClassifierCV("f1", alphas=[0.1], spaces=["cube"], cv=3, random_state=5).fit(X, Y)
    folds = StratifiedLabelSets(3, shuffle=True, random_state=5)
    given = SetClassifierCV("f1", alphas=[0.1], spaces=["cube"], cv=folds).fit(X, Y)
    assert model.cv_results_ == given.cv_results_


@pytest.mark.parametrize("n_features", [6, 200])
@pytest.mark.parametrize("size", [1e39, 1e130])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_inputs_too_large_for_single_precision_are_learnt_from(size, n_features):
    X, Y = drawn(3, n_features=n_features)
    X = sparse.csr_array(size * X)
    model = SetClassifierCV("f1", alphas=[1.0, 0.01], cv=2).fit(X, Y)
    assert np.isfinite(model.best_estimator_.coef_).all()
    assert model.score(X, Y) > 0.7


def test_groups_are_for_the_splitter_and_lose_their_rows_of_weight_zero():
    X, Y = drawn(1)
    groups, weights = np.arange(len(X)) // 9, np.ones(len(X))
    weights[:5] = 0.0
    settings = {"alphas": [0.1], "spaces": ["cube"]}
    model = SetClassifierCV("f1", cv=GroupKFold(3), **settings)
    model.fit(X, Y, sample_weight=weights, groups=groups)
    folds = list(GroupKFold(3).split(X[5:], Y[5:], groups[5:]))
    given = SetClassifierCV("f1", cv=folds, **settings).fit(X[5:], Y[5:])
    assert model.cv_results_ == given.cv_results_
    with pytest.raises(ValueError, match="groups"):
        model.fit(X, Y, groups=groups[:-1])
    with pytest.raises(ValueError, match="groups"):
        model.fit(X, Y)


def test_weights_are_those_of_the_best_estimator():
    X, Y = drawn(2)
    model = SetClassifierCV("f1", alphas=[0.1], spaces=["cube"], cv=2)
    assert not hasattr(model, "coef_")
    model.fit(X, Y)
    assert model.coef_ is model.best_estimator_.coef_
    np.testing.assert_allclose(model.decision_function(X), X @ model.coef_.T + model.intercept_)
