"""The linear classifier: optimality, equality with known solutions, conventions."""

from __future__ import annotations

import warnings
from itertools import product

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler, normalize
from sklearn.utils.estimator_checks import parametrize_with_checks

from setwise import load
from setwise.blocks import Block
from setwise.blocks.memory import Whole
from setwise.decoders import MinimumRisk
from setwise.estimators import SetClassifier, SetClassifierCV
from setwise.estimators.choice import choose_space, unseen_mass
from setwise.estimators.guarantee import claim_of_sets
from setwise.estimators.moments import standard_deviations
from setwise.estimators.training import Objective, Training
from setwise.spaces import Catalog, Cube, Paths, Sized
from setwise.surrogates import BinaryRelevance, CompSum, Constrained, Logistic
from setwise.targets import (
    CountTarget,
    FBeta,
    Hamming,
    Jaccard,
    LinearFractional,
    TableTarget,
    TreeDistance,
    ZeroOne,
)
from tests.support.turns import in_turn

SEEDS = (0, 1)


def drawn(seed, n_rows=80, n_features=4, n_labels=3):
    """Label sets that depend on the inputs and on one another."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_features))
    first = X @ rng.normal(size=(n_features, n_labels)) + rng.normal(size=(n_rows, n_labels))
    return X, (first + 0.5 * first[:, ::-1] > 0.3).astype(np.int64)


def by_scipy(X, Y, space, surrogate_of, alpha):
    """The least value of the objective, by a general solver without any of our scaling."""
    d, n_scores = X.shape[1], space.n_scores
    free = np.isfinite(space.parameters)

    def objective(flat):
        weights = flat[: d * n_scores].reshape(d, n_scores)
        intercept = flat[d * n_scores : (d + 1) * n_scores]
        parameters = space.parameters
        parameters[free] = flat[(d + 1) * n_scores :]
        loss = surrogate_of(space.with_parameters(parameters))
        value, gradient, by_parameter = loss.value_and_gradients(X @ weights + intercept, Y)
        return value.mean() + alpha / 2 * (weights**2).sum(), np.concatenate(
            [
                (X.T @ gradient / len(X) + alpha * weights).ravel(),
                gradient.mean(axis=0),
                by_parameter.mean(axis=0)[free],
            ]
        )

    start = np.concatenate([np.zeros((d + 1) * n_scores), space.parameters[free]])
    return minimize(objective, start, jac=True, method="BFGS", options={"gtol": 1e-7}).fun


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", ["catalog", "joint", "sized", "forest", "cube"])
def test_the_likelihood_reaches_the_least_objective(name, seed):
    X, Y = drawn(seed)
    model = SetClassifier(space=name, alpha=0.05, tol=1e-7).fit(X, Y)
    space = choose_space(name, Y.astype(np.uint8))
    least = by_scipy(X, Y, space, lambda s: Logistic("subset", s, "paper"), 0.05)
    assert model.objective_ == pytest.approx(least, rel=1e-6)


CONVEX = {
    "logistic": lambda s: CompSum("f1", s, 0.0),
    "sum_exponential": lambda s: CompSum("f1", s, -1.0),
    "constrained_exponential": lambda s: Constrained("f1", s, "exponential"),
    "constrained_squared_hinge": lambda s: Constrained("f1", s, "squared_hinge"),
}


@pytest.mark.parametrize("name", ["cube", "catalog", "joint", "sized", "forest"])
@pytest.mark.parametrize("surrogate", CONVEX)
def test_the_targets_own_losses_reach_the_least_objective(surrogate, name):
    X, Y = drawn(0)
    model = SetClassifier("f1", surrogate, name, alpha=0.05, tol=1e-7).fit(X, Y)
    space = choose_space(name, Y.astype(np.uint8))
    least = by_scipy(X, Y, space, CONVEX[surrogate], 0.05)
    assert model.objective_ == pytest.approx(least, rel=1e-6)


@pytest.mark.parametrize("name", ["cube", "catalog", "sized"])
@pytest.mark.parametrize(
    ("surrogate", "convex", "loss"),
    [
        ("mean_absolute_error", "logistic", lambda s: CompSum("f1", s, 1.0)),
        ("generalized_cross_entropy", "logistic", lambda s: CompSum("f1", s, 0.7)),
        ("constrained_rho", "constrained_hinge", lambda s: Constrained("f1", s, "rho")),
    ],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_what_is_not_convex_ends_no_higher_than_where_the_convex_loss_led(
    surrogate, convex, loss, name
):
    """The hinge has corners, so its gradient need not vanish: the solver may say so."""
    X, Y = drawn(1)
    alpha = 0.01
    near = SetClassifier("f1", convex, name, alpha=alpha, max_iter=60).fit(X, Y)
    model = SetClassifier("f1", surrogate, name, alpha=alpha, max_iter=60).fit(X, Y)
    scores = X @ near.coef_.T + near.intercept_
    value = loss(near.space_).value_and_gradient(scores, Y)[0].mean()
    assert model.objective_ <= value + alpha / 2 * (near.coef_**2).sum() + 1e-12
    scores = X @ model.coef_.T + model.intercept_
    reached = loss(model.space_).value_and_gradient(scores, Y)[0].mean()
    reached += alpha / 2 * (model.coef_**2).sum()
    assert model.objective_ == pytest.approx(reached, rel=1e-9)


def test_a_surrogate_object_is_its_name():
    X, Y = drawn(2)
    for given, name in (
        (CompSum("f1", Cube(3), 0.0), "logistic"),
        (Constrained("f1", Cube(3), "exponential"), "constrained_exponential"),
        (BinaryRelevance(), "binary_relevance"),
    ):
        plain = SetClassifier("f1", name).fit(X, Y)
        model = clone(SetClassifier("f1", given)).fit(X, Y)
        np.testing.assert_array_equal(model.coef_, plain.coef_)
        named = name.replace("_", " ")
        assert model.guarantee_.replace(str(given), named) == plain.guarantee_
    margin = SetClassifier("hamming", BinaryRelevance("squared_hinge")).fit(X, Y)
    np.testing.assert_array_equal(margin.predict(X), margin.decision_function(X) >= 0)


def test_at_k_targets_train_on_sets_of_k_labels():
    X, Y = drawn(3)
    for surrogate in ("likelihood", "binary_relevance", "logistic", "mean_absolute_error"):
        model = SetClassifier("precision@2", surrogate).fit(X, Y)
        assert (model.predict(X).sum(axis=1) == 2).all()
    np.testing.assert_array_equal(model.space_.sizes, [2])


@pytest.mark.parametrize("space", ["catalog", "sized"])
def test_scaled_features_are_those_of_a_scaler(space):
    X, Y = drawn(4)
    X = X * [1.0, 100.0, 0.01, 3.0] + 5.0
    for scaling, transform in (
        ("standard", StandardScaler(with_mean=False).fit(X).transform),
        ("rows", normalize),
    ):
        settings = {"space": space, "alpha": 0.05, "tol": 1e-6}
        model = SetClassifier(scaling=scaling, **settings).fit(X, Y)
        plain = SetClassifier(**settings).fit(transform(X), Y)
        assert model.objective_ == pytest.approx(plain.objective_, rel=1e-9)
        np.testing.assert_allclose(
            model.predict_proba(X), plain.predict_proba(transform(X)), atol=1e-5
        )


def test_a_model_of_a_forest_too_large_to_list_is_decoded_by_its_marginals():
    X, Y = drawn(5, n_labels=25)
    model = SetClassifier("f1", space="forest", alpha=0.1, tol=1e-3).fit(X, Y)
    assert model.decoder_ == "marginals"
    expected = MinimumRisk("f1").decode(model.predict_proba(X))
    np.testing.assert_array_equal(model.predict(X), expected)
    assert "No theorem" in model.guarantee_
    additive = SetClassifier("hamming", space="forest", alpha=0.1, tol=1e-3).fit(X, Y)
    assert additive.decoder_ == "minimum_risk"


@pytest.mark.parametrize("model", [SetClassifier(), SetClassifierCV(alphas=[0.1], cv=2)])
def test_progress_is_shown_to_those_who_ask(model, capsys, monkeypatch):
    monkeypatch.setattr("setwise.estimators.running.BETWEEN_LINES", 0.0)
    X, Y = drawn(6)
    model.fit(X, Y)
    assert capsys.readouterr() == ("", "")
    clone(model).set_params(verbose=True).fit(X, Y)
    out, err = capsys.readouterr()
    assert out == ""
    assert "training" in err


def test_the_seed_draws_the_sets_of_a_margin_on_many():
    X, Y = drawn(7, n_labels=18)
    settings = {"surrogate": "constrained_squared_hinge", "alpha": 0.1, "tol": 1e-3}
    models = [SetClassifier(**settings, random_state=seed).fit(X, Y) for seed in (None, 0, 1)]
    np.testing.assert_array_equal(models[0].coef_, models[1].coef_)
    assert np.abs(models[1].coef_ - models[2].coef_).max() > 1e-6


@pytest.mark.parametrize("seed", SEEDS)
def test_binary_relevance_is_logistic_regression_for_each_label(seed):
    X, Y = drawn(seed)
    alpha = 0.02
    model = SetClassifier(surrogate="binary_relevance", alpha=alpha, tol=1e-7).fit(X, Y)
    for label in range(Y.shape[1]):
        theirs = LogisticRegression(C=1 / (alpha * len(X)), tol=1e-10, max_iter=10_000)
        theirs.fit(X, Y[:, label])
        np.testing.assert_allclose(model.coef_[label], theirs.coef_[0], atol=1e-5)
        assert model.intercept_[label] == pytest.approx(theirs.intercept_[0], abs=1e-5)


def test_one_class_a_row_is_multinomial_logistic_regression():
    X, Y = drawn(0)
    y = np.array(["a", "b", "c"])[Y.sum(axis=1) % 3]
    alpha = 0.02
    model = SetClassifier(alpha=alpha, tol=1e-7).fit(X, y)
    # The scores of the sets of one label are twice those of the labels.
    theirs = LogisticRegression(C=4 / (alpha * len(X)), tol=1e-10, max_iter=10_000).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), theirs.predict_proba(X), atol=1e-5)
    np.testing.assert_array_equal(model.predict(X), theirs.predict(X))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_one_pass_over_a_list_is_the_surrogate(dtype):
    rng = np.random.default_rng(0)
    sets = np.unique(rng.integers(0, 2, (9, 5)), axis=0).astype(np.uint8)
    space = Catalog(sets, rng.normal(size=len(sets)))
    scores = rng.normal(size=(200, 5)).astype(dtype)
    place, weights = rng.integers(0, len(sets), 200), rng.random(200)
    objective = Objective(None, space, sets[place], weights)
    value, gradient, by_set = objective.sums(slice(0, 200), scores, space.parameters)
    expected = Logistic("subset", space, "paper").value_and_gradients(
        scores.astype(np.float64), sets[place]
    )
    tolerance = 1e-10 if dtype == np.float64 else 1e-5
    assert value == pytest.approx(weights @ expected[0], rel=tolerance)
    np.testing.assert_allclose(gradient, weights[:, None] * expected[1], atol=tolerance)
    np.testing.assert_allclose(by_set, weights @ expected[2], atol=tolerance)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_loss_that_is_not_convex_ends_no_worse_than_it_began(seed):
    X, Y = drawn(seed)
    alpha = 0.01
    convex = SetClassifier("f1", "logistic", alpha=alpha).fit(X, Y)
    absolute = SetClassifier("f1", "mean_absolute_error", alpha=alpha).fit(X, Y)
    loss = CompSum("f1", Cube(3), 1.0)
    value = loss.value_and_gradient(X @ convex.coef_.T + convex.intercept_, Y)[0].mean()
    begun = value + alpha / 2 * (convex.coef_**2).sum()
    assert absolute.objective_ <= begun + 1e-12


def test_predictions_have_the_least_expected_loss_of_the_law_learnt():
    X, Y = drawn(3)
    for target in ("f1", "jaccard", "hamming", "subset"):
        model = SetClassifier(target).fit(X, Y)
        scores = X @ model.coef_.T + model.intercept_
        expected = MinimumRisk(target).decode_scores(scores, model.space_)
        np.testing.assert_array_equal(model.predict(X), expected)
        np.testing.assert_allclose(model.predict_proba(X), model.space_.marginals(scores))


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.float32])
def test_label_sets_of_any_type_give_the_same_model(dtype):
    X, Y = drawn(4)
    plain = SetClassifier().fit(X, Y)
    for form in (Y.astype(dtype), sparse.csr_array(Y.astype(dtype))):
        np.testing.assert_array_equal(SetClassifier().fit(X, form).coef_, plain.coef_)


def test_lists_of_names_are_label_sets():
    X, Y = drawn(5)
    names = np.array(["cat", "dog", "owl"])
    model = SetClassifier().fit(X, [names[row == 1].tolist() for row in Y])
    assert model.classes_.tolist() == ["cat", "dog", "owl"]
    np.testing.assert_array_equal(model.coef_, SetClassifier().fit(X, Y).coef_)


@pytest.mark.parametrize("scaling", [None, "standard", "rows"])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("surrogate", ["likelihood", "binary_relevance", "logistic"])
def test_weights_and_repetition_lead_along_the_same_path(surrogate, form, scaling):
    """Also at the default tolerance, far from the minimum, they end in the same place."""
    X, Y = drawn(6)
    weights = np.random.default_rng(0).integers(1, 4, len(X))
    model = SetClassifier("f1", surrogate, scaling=scaling, alpha=0.05)
    weighted = clone(model).fit(form(X), Y, sample_weight=weights)
    repeated = clone(model).fit(form(np.repeat(X, weights, 0)), np.repeat(Y, weights, 0))
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-8)
    assert weighted.n_iter_ == repeated.n_iter_


@pytest.mark.parametrize("scaling", [None, "standard", "rows"])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("surrogate", ["likelihood", "binary_relevance", "logistic"])
def test_inputs_of_any_size_are_learnt_from_or_refused_by_name(surrogate, form, scaling):
    X, Y = drawn(6)
    model = SetClassifier("f1", surrogate, scaling=scaling, max_iter=20)
    sizes = [(np.float64, 1e-300), (np.float64, 1e139), (np.float32, 1e-37), (np.float32, 1e30)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for dtype, size in sizes:
            inputs = form((X / np.abs(X).max() * size).astype(dtype))
            scores = clone(model).fit(inputs, Y).decision_function(inputs)
            assert np.isfinite(scores).all()
        fitted = clone(model).fit(form(X), Y)
    X[4, 1] = -1e300
    for ask in (lambda: clone(model).fit(form(X), Y), lambda: fitted.predict(form(X))):
        with pytest.raises(ValueError, match=r"X\[4, 1\] is -1e\+300"):
            ask()


def test_a_weight_of_two_is_a_row_twice():
    X, Y = drawn(6)
    weights = np.random.default_rng(0).integers(1, 4, len(X))
    settings = {"space": Catalog(np.unique(Y, axis=0)), "alpha": 0.05, "tol": 1e-7}
    weighted = SetClassifier(**settings).fit(X, Y, sample_weight=weights)
    repeated = SetClassifier(**settings).fit(np.repeat(X, weights, 0), np.repeat(Y, weights, 0))
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-5)


@pytest.mark.parametrize(
    ("surrogate", "space"),
    [
        *product(
            ["likelihood", "mean_absolute_error"], ["catalog", "joint", "sized", "forest", "auto"]
        ),
        ("binary_relevance", "auto"),
    ],
)
def test_a_row_of_weight_zero_is_not_there(surrogate, space):
    """Its label set is not listed, nor does it count among those seen once."""
    X, Y = drawn(6)
    weights = np.where(Y.sum(axis=1) == 3, 0.0, 1.0)
    kept = weights > 0
    settings = {"surrogate": surrogate, "space": space, "alpha": 0.05}
    weighted = SetClassifier(**settings).fit(X, Y, sample_weight=weights)
    removed = SetClassifier(**settings).fit(X[kept], Y[kept])
    np.testing.assert_allclose(weighted.coef_, removed.coef_, atol=1e-9)
    np.testing.assert_array_equal(weighted.predict(X), removed.predict(X))


def test_sparse_inputs_are_their_dense_values():
    X, Y = drawn(7)
    X = X * (X > 0)
    dense, wide = SetClassifier(tol=1e-7).fit(X, Y), SetClassifier(tol=1e-7)
    wide.fit(sparse.csr_array(X), Y)
    np.testing.assert_allclose(wide.coef_, dense.coef_, atol=1e-4)
    predicted = clone(wide).set_params(sparse_output=True).fit(X, Y).predict(X)
    np.testing.assert_array_equal(predicted.toarray(), dense.predict(X))


def test_single_precision_is_kept():
    X, Y = drawn(8)
    model = SetClassifier().fit(X.astype(np.float32), Y)
    assert model.coef_.dtype == model.predict_proba(X.astype(np.float32)).dtype == np.float32


def test_the_mass_of_unseen_sets_decides_the_space():
    seldom = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0]], np.uint8)
    often = np.repeat(seldom, 3, axis=0)
    assert unseen_mass(seldom) == 1.0
    assert unseen_mass(often) == 0.0
    assert isinstance(choose_space("auto", seldom), Sized)
    assert isinstance(choose_space("auto", often), Catalog)


def test_a_warm_start_that_does_not_fit_is_left():
    """Sizes seen now but not then, or scores that are worse than none."""
    X, Y = drawn(3)
    first, second = Y.sum(axis=1) != 1, Y.sum(axis=1) != 2
    settings = {"space": "sized", "alpha": 0.05, "tol": 1e-6}
    model = SetClassifier(**settings, warm_start=True).fit(X[first], Y[first])
    model.fit(X[second], Y[second])
    plain = SetClassifier(**settings).fit(X[second], Y[second])
    assert model.objective_ == pytest.approx(plain.objective_, rel=1e-6)
    model.coef_ = model.coef_ * 1e5
    assert model.fit(X, Y).objective_ == pytest.approx(
        SetClassifier(**settings).fit(X, Y).objective_, rel=1e-6
    )


@pytest.mark.parametrize("surrogate", ["binary_relevance", "likelihood"])
@pytest.mark.parametrize("shift", [10.0, 1e3, 1e5])
def test_features_far_from_zero_change_nothing_but_intercepts(surrogate, shift):
    X, Y = drawn(4)
    plain = SetClassifier("f1", surrogate, alpha=0.05).fit(X, Y)
    far = SetClassifier("f1", surrogate, alpha=0.05).fit(X + shift, Y)
    assert far.objective_ == pytest.approx(plain.objective_, rel=1e-4)
    np.testing.assert_allclose(far.coef_, plain.coef_, atol=5e-3)
    single = SetClassifier("f1", surrogate, alpha=0.05).fit((X + 100).astype(np.float32), Y)
    assert single.objective_ == pytest.approx(plain.objective_, rel=1e-3)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"target": "precision@9"}, "9"),
        ({"target": Hamming([1.0, 2.0])}, "2 labels"),
        (
            {"surrogate": "binary_relevance", "space": Sized(3, [0.0, 0.0])},
            "binary relevance decides",
        ),
        ({"surrogate": "binary_relevance", "space": "cub"}, "space must be one of"),
        ({"surrogate": BinaryRelevance("hinge"), "decoder": "minimum_risk"}, "no probability"),
    ],
)
def test_what_cannot_be_decoded_is_refused_before_it_is_trained(settings, message):
    X, Y = drawn(0)
    with pytest.raises(ValueError, match=message):
        SetClassifier(**settings).fit(X, Y)


def test_settings_changed_after_the_fit_do_not_change_predictions():
    X, Y = drawn(1)
    model = SetClassifier("f1", scaling="rows").fit(X, Y)
    before = model.predict_proba(X)
    model.set_params(surrogate="binary_relevance", scaling=None, label_features=np.eye(3))
    np.testing.assert_array_equal(model.predict_proba(X), before)


def test_predictions_of_ranges_are_those_of_rows(monkeypatch):
    X, Y = drawn(2, n_rows=300)
    model = SetClassifier("jaccard").fit(X, Y)
    expected = model.predict(X), model.predict_proba(X)
    monkeypatch.setattr("setwise.estimators.training.MOST_ENTRIES", 1)
    np.testing.assert_array_equal(model.predict(X), expected[0])
    np.testing.assert_array_equal(model.predict_proba(X), expected[1])


def deviations(form, weights):
    return standard_deviations(Whole(Block(form, None, weights)), float(weights.sum()))


def test_a_constant_sparse_feature_has_the_unit_one():
    for value in (3.0, 7.0, 0.3, 1.1):
        for n in (10, 1000):
            constant = np.full((n, 1), value)
            for form in (constant, sparse.csr_array(constant)):
                assert deviations(form, np.ones(n)) == 1.0
    rng = np.random.default_rng(0)
    values = rng.normal(size=(50, 3)) * (rng.random((50, 3)) < 0.3) + [0.0, 0.0, 1e6]
    weights = rng.random(50)
    mean = weights @ values / weights.sum()
    expected = np.sqrt(weights @ (values - mean) ** 2 / weights.sum())
    for form in (values, sparse.csr_array(values)):
        np.testing.assert_allclose(deviations(form, weights), expected, rtol=1e-8)


def test_a_solver_that_stops_early_says_so_with_the_gradient():
    X, Y = drawn(9)
    with pytest.warns(ConvergenceWarning, match="after 1 iterations with a gradient of"):
        SetClassifier(max_iter=1).fit(X, Y)


@in_turn(
    ("settings", "message"),
    [
        ({"target": "f"}, "there is no target named 'f'"),
        ({"surrogate": "hinge"}, "surrogate must be one of"),
        ({"space": "tree"}, "space must be one of"),
        ({"space": 3}, "space must be one of .* or a space object, not 3"),
        ({"decoder": "best"}, "decoder must be"),
        ({"alpha": 0.0}, "alpha must be a positive number"),
        ({"tol": -1.0}, "tol must be a positive number"),
        ({"max_iter": 0}, "max_iter must be a whole number"),
        ({"scaling": "max"}, "scaling must be one of None, 'standard', 'rows', but it is 'max'"),
        ({"space": Cube(4)}, r"as many labels as y, 3, but Cube\(4\) has 4"),
        ({"surrogate": "generalized_cross_entropy", "q": 1.0}, "q must be above 0 and below 1"),
    ],
)
def test_bad_settings_are_named(settings, message):
    X, Y = drawn(0)
    with pytest.raises(ValueError, match=message):
        SetClassifier(**settings).fit(X, Y)


def test_odd_data_work_or_are_refused():
    X, Y = drawn(1)
    never, always, empty = Y.copy(), Y.copy(), np.zeros_like(Y)
    never[:, 0], always[:, 0] = 0, 1
    assert not SetClassifier().fit(X, never).predict(X)[:, 0].any()
    assert SetClassifier().fit(X, always).predict(X)[:, 0].all()
    assert not SetClassifier().fit(X, empty).predict(X).any()
    assert SetClassifier().fit(X[:1], Y[:1]).predict(X[:1]).tolist() == Y[:1].tolist()
    SetClassifier().fit(np.ones_like(X), Y).predict(X)
    with pytest.raises(ValueError, match="same number of rows, but X has 80 and y has 79"):
        SetClassifier().fit(X, Y[:-1])
    with pytest.raises(ValueError, match="row 1 is not in Catalog of 1 sets"):
        SetClassifier(space=Catalog([[0, 0, 0]])).fit(X, Y)


def test_what_is_guaranteed_is_said():
    X, Y = drawn(2)
    X, Y = X[Y.sum(axis=1) < 3], Y[Y.sum(axis=1) < 3]
    likelihood = SetClassifier().fit(X, Y)
    assert "m + (1 - m) sqrt(2 r)" in likelihood.guarantee_
    assert "m + (1" not in SetClassifier(space="cube").fit(X, Y).guarantee_
    assert "2 sqrt(t)" in SetClassifier("f1", "logistic", "joint").fit(X, Y).guarantee_
    assert (
        "appendix A"
        in SetClassifier("f1", "constrained_squared_hinge", "joint", tol=1e-3).fit(X, Y).guarantee_
    )
    assert "Consistent" in SetClassifier("hamming", "logistic").fit(X, Y).guarantee_
    assert "Consistent" in SetClassifier("recall@2", "logistic").fit(X, Y).guarantee_
    assert "No theorem" in SetClassifier("f1", decoder="most_likely").fit(X, Y).guarantee_
    assert "among the sets of" in SetClassifier("jaccard").fit(X, Y).guarantee_
    assert "among the sets of" not in SetClassifier("f1").fit(X, Y).guarantee_
    assert "sqrt(2 r)" in SetClassifier("subset", "logistic").fit(X, Y).guarantee_
    assert (
        "sqrt(2 r)" in SetClassifier("f1", space="cube", decoder="marginals").fit(X, Y).guarantee_
    )
    other = SetClassifier("jaccard", CompSum("f1", Cube(3), 1.0)).fit(X, Y)
    assert "trained for f1 and judged by jaccard" in other.guarantee_
    between = SetClassifier("f1", CompSum("f1", Catalog(np.unique(Y, axis=0), joint=True), -0.5))
    assert "No bound" in between.fit(X, Y).guarantee_
    classes = SetClassifier("f1", "logistic").fit(X, Y[:, 0])
    assert "sqrt(2 r)" in classes.guarantee_
    assert "share of wrong classes" in classes.guarantee_
    relevance = SetClassifier("hamming", "binary_relevance").fit(X, Y).guarantee_
    assert "hamming is at most sqrt(2 t / l)" in relevance
    assert "No theorem" in SetClassifier("f1", "logistic").fit(X, Y).guarantee_
    assert "not convex" in SetClassifier("f1", "mean_absolute_error").fit(X, Y).guarantee_


SETS = [[0, 0], [0, 1], [1, 0], [1, 1]]


@pytest.mark.parametrize(
    ("target", "trained_for", "space"),
    [
        (FBeta(1.0, empty=0.0), FBeta(1.0), Cube(2)),
        (Jaccard(), Jaccard(empty=0.5), Cube(2)),
        (Hamming([0.0, 1.0]), Hamming([1.0, 0.0]), Cube(2)),
        (TableTarget(SETS, np.eye(4)), TableTarget(SETS, 1.0 - np.eye(4)), Catalog(SETS)),
        (
            CountTarget(lambda tp, fp, fn, tn: (fp + fn > 0) * 1.0),
            CountTarget(lambda tp, fp, fn, tn: (fp + fn == 0) * 1.0),
            Cube(2),
        ),
        (TreeDistance([-1, 0], [1.0, 9.0]), TreeDistance([-1, 0], [9.0, 1.0]), Cube(2)),
        (FBeta(1.0, empty=0.0), FBeta(1.0), Cube(30)),
    ],
)
def test_a_surrogate_for_another_target_of_the_same_name_is_not_certified(
    target, trained_for, space
):
    training = Training(CompSum(trained_for, space, 1.0), target)
    claim = claim_of_sets(training, target, space, "most_likely")
    said = str(claim)
    assert said.startswith("No theorem is known to cover a surrogate trained for"), said
    assert claim.kind == "nothing"


@pytest.mark.parametrize(
    ("target", "trained_for", "space"),
    [
        (FBeta(1.0, empty=0.0), FBeta(1.0, empty=0.0), Cube(30)),
        (Hamming(), Hamming([2.0, 2.0]), Cube(2)),
        (TableTarget(SETS, np.eye(4)), TableTarget(SETS, np.eye(4)), Catalog(SETS)),
        (TreeDistance([-1, 0, 0]), TreeDistance([-1, 0, 0]), Paths([-1, 0, 0])),
        (FBeta(), LinearFractional([0, 0, 1, 1, 0], [0, 2, 1, 1, 0]), Cube(30)),
        (ZeroOne(), CountTarget(lambda tp, fp, fn, tn: (fp + fn > 0) * 1.0), Cube(2)),
    ],
)
def test_a_surrogate_for_the_same_target_written_otherwise_is_certified(target, trained_for, space):
    training = Training(CompSum(trained_for, space, 1.0), target)
    claim = claim_of_sets(training, target, space, "most_likely")
    assert claim.kind == "consistent"
    assert str(claim).startswith("Consistent")


@pytest.mark.parametrize("scale", ["unit", "paper"])
def test_the_log_loss_is_that_of_the_scores_on_any_scale(scale):
    X, Y = drawn(2)
    model = SetClassifier("subset", CompSum("subset", Cube(3), 0.0, scale)).fit(X, Y)
    scores = X @ model.coef_.T + model.intercept_
    loss = Logistic("subset", Cube(3), "paper").value_and_gradient(scores, Y)[0].mean()
    assert f"{loss:.4f} nats on the rows given" in model.guarantee_on(X, Y)


@pytest.mark.parametrize("surrogate", ["likelihood", "logistic", "binary_relevance"])
@pytest.mark.parametrize("target", ["f1", "hamming", "subset"])
def test_of_classes_the_guarantee_speaks_of_classes(surrogate, target):
    X, _ = drawn(2)
    y = np.array(["a", "b", "c"])[np.arange(len(X)) % 3]
    model = SetClassifier(target, surrogate).fit(X, y)
    assert "share of wrong classes" in model.guarantee_
    assert "abel set" not in model.guarantee_
    assert "Slice" not in model.guarantee_
    if surrogate != "binary_relevance":
        chosen = model.predict_proba(X)[np.arange(len(X)), np.arange(len(X)) % 3]
        if "nats" in model.guarantee_:
            assert f"{-np.log(chosen).mean():.4f} nats" in model.guarantee_on(X, y)


@pytest.mark.parametrize("space", ["catalog", "sized", "joint", "forest"])
def test_binary_relevance_refuses_a_named_space(space):
    X, Y = drawn(2)
    with pytest.raises(ValueError, match=f"takes no space '{space}'"):
        SetClassifier("hamming", "binary_relevance", space).fit(X, Y)
    SetClassifier("hamming", "binary_relevance", "cube").fit(X, Y)


def test_binary_relevance_takes_any_label_count():
    X, Y = drawn(0, n_labels=1)
    model = SetClassifier(surrogate="binary_relevance").fit(X, sparse.csr_array(Y))
    assert model.predict_proba(X).shape == (80, 1)


@parametrize_with_checks([SetClassifier(alpha=0.1, tol=1e-5)])
def test_scikit_learn_finds_a_classifier_of_its_own_kind(estimator, check):
    check(estimator)


@pytest.mark.parametrize("space", ["catalog", "sized", "cube"])
def test_a_saved_classifier_predicts_the_same(space, tmp_path):
    X, Y = drawn(11)
    model = SetClassifier("f2", space=space).fit(X, Y)
    model.save(tmp_path / "model.skops")
    again = load(tmp_path / "model.skops")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert again.guarantee_ == model.guarantee_


def test_labels_by_their_features():
    """With the identity nothing changes; with fewer features scores have their rank."""
    X, Y = drawn(12)
    settings = {"space": "sized", "alpha": 0.05, "tol": 1e-7}
    plain = SetClassifier(**settings).fit(X, Y)
    same = SetClassifier(**settings, label_features=np.eye(3)).fit(X, Y)
    np.testing.assert_allclose(same.coef_, plain.coef_, atol=1e-5)
    features = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    model = SetClassifier(**settings, label_features=features).fit(X, Y)
    assert model.coef_.shape == (2, 4)
    scores = model.decision_function(X)
    np.testing.assert_allclose(scores[:, 2], scores[:, 0] + scores[:, 1], atol=1e-9)
    np.testing.assert_allclose(model.score_labels(X, features), scores)
    unseen = model.score_labels(X, [[0.5, -2.0]])
    np.testing.assert_allclose(unseen[:, 0], 0.5 * scores[:, 0] - 2.0 * scores[:, 1], atol=1e-9)
    with pytest.raises(ValueError, match=r"label_features must have shape \(3, m\)"):
        SetClassifier(label_features=np.eye(2)).fit(X, Y)
    with pytest.raises(ValueError, match="only if fit had label_features"):
        plain.score_labels(X, features)
