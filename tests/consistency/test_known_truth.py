"""Laws of data with a known truth, of pictures, and of the stored rows about guarantees."""

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks.guarantee_pages import page
from setwise.consistency import (
    Problem,
    bound,
    chain,
    excess_risk,
    exclusive,
    hierarchy,
    independent,
    rare_but_joint,
    surrogate_excess,
)
from setwise.consistency.known_truth import PROBLEMS
from setwise.consistency.setting import Setting
from setwise.estimators import SetClassifier
from setwise.spaces import Catalog, Cube, Slice
from setwise.targets import get_target
from tests.support import oracle
from tests.support.turns import in_turn

ROOT = Path(__file__).parents[2]


def stored(name):
    lines = (ROOT / "benchmarks" / "results" / f"{name}.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


# ------------------------------------------------------------------------------------ known truth


@pytest.mark.parametrize("name", PROBLEMS)
def test_label_sets_are_drawn_from_the_stated_conditional(name):
    problem = PROBLEMS[name]()
    X, Y = problem.sample(40_000, seed=1)
    sets, law = problem.conditional(X)
    np.testing.assert_allclose(law.sum(axis=1), 1.0)
    codes = 1 << np.arange(problem.n_labels)
    drawn = (Y @ codes)[:, None] == (sets @ codes)[None, :]
    assert drawn.any(axis=1).all()
    # By thirds of the first feature, so that the dependence on x is seen too.
    for part in np.array_split(np.argsort(X[:, 0]), 3):
        spread = np.sqrt((law[part] * (1 - law[part])).mean(axis=0) / len(part))
        gap = np.abs(drawn[part].mean(axis=0) - law[part].mean(axis=0))
        assert (gap <= 5.0 * spread + 1e-9).all()


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_sample_follows_from_its_seed(name):
    problem = PROBLEMS[name]()
    first, again, other = (problem.sample(20, seed=seed) for seed in (4, 4, 5))
    np.testing.assert_array_equal(first[0], again[0])
    np.testing.assert_array_equal(first[1], again[1])
    assert (first[0] != other[0]).all()


def test_labels_are_as_dependent_as_the_names_say():
    X = np.zeros((1, 3))
    independent, chain = PROBLEMS["independent"](), PROBLEMS["chain"]()
    for problem, dependent in ((independent, False), (chain, True)):
        sets, law = problem.conditional(X)
        marginal = law[0] @ sets
        both = law[0] @ (sets[:, 0] * sets[:, 1])
        assert (abs(both - marginal[0] * marginal[1]) > 1e-3) == dependent
    exclusive = PROBLEMS["exclusive"]()
    assert (exclusive.sets[:, :3].sum(axis=1) == 1).all()
    assert (exclusive.sets[:, 3:].sum(axis=1) == 1).all()
    hierarchy = PROBLEMS["hierarchy"]()
    for child, parent in enumerate((-1, 0, 0, 1, 1)):
        assert parent < 0 or (hierarchy.sets[:, child] <= hierarchy.sets[:, parent]).all()


def test_the_excess_risk_of_the_best_label_sets_is_zero_and_of_others_positive():
    problem, sets = rare_but_joint(), oracle.all_sets(4)

    def best(X):
        return sets[problem.risks("f1", X, sets).argmin(axis=1)]

    assert excess_risk(best, problem, "f1", n_rows=500).value == pytest.approx(0.0, abs=1e-12)
    nothing = excess_risk(lambda X: np.zeros((len(X), 4)), problem, "f1", n_rows=500)
    assert nothing.risk == pytest.approx(1.0)  # some label is always true
    assert nothing.value == pytest.approx(1.0 - nothing.bayes_risk)


def test_risks_are_expectations_over_the_conditional():
    problem = PROBLEMS["chain"]()
    X = problem.inputs(7, seed=2)
    sets, law = problem.conditional(X)
    y_pred = np.array([[1, 0, 1, 0]])
    losses = get_target("jaccard").loss(np.tile(y_pred, (len(sets), 1)), sets)
    np.testing.assert_allclose(problem.risks("jaccard", X, y_pred)[:, 0], law @ losses)


def test_rare_but_joint_defeats_a_cut_at_one_half():
    """Where the full set is best for F1, all labels but the first are less likely than not."""
    problem, sets = rare_but_joint(), oracle.all_sets(4)
    X = np.array([[0.2, 0.0]])
    law = problem.conditional(X)[1]
    marginal = law @ problem.sets
    assert (marginal[0] > 0.5).tolist() == [True, False, False, False]
    assert sets[problem.risks("f1", X, sets).argmin()].tolist() == [1, 1, 1, 1]


def test_joint_scores_at_the_truth_have_no_divergence():
    problem = rare_but_joint()
    X = problem.inputs(50, seed=3)
    truth = X @ problem.coef.T + problem.intercept
    space = Catalog(problem.sets, joint=True)
    exact = surrogate_excess("likelihood", truth, problem, X, space=space, kind="joint")
    assert exact == pytest.approx(0.0, abs=1e-12)
    other = truth + np.array([[1.0, 0.0, 0.0, 0.0, 0.0]])
    moved = surrogate_excess("likelihood", other, problem, X, space=space)
    assert moved > 0.01


def test_a_fitted_model_is_within_its_bound():
    problem = rare_but_joint()
    X, Y = problem.sample(2000, seed=4)
    model = SetClassifier("f1", space="joint", alpha=1e-4).fit(X, Y)
    fresh = problem.inputs(4000, seed=12345)
    scores = fresh @ model.coef_.T + model.intercept_
    kl = surrogate_excess("likelihood", scores, problem, fresh, space=model.space_, kind="joint")
    found = excess_risk(model, problem, "f1", n_rows=4000)
    assert 0.0 <= found.value <= bound("likelihood")(kl)


@pytest.mark.parametrize(
    ("model", "settings", "words"),
    [
        (lambda X: np.zeros((1, 4)), {}, "a label set for each of the 50 inputs, but it has 1 row"),
        (lambda X: np.zeros((5, 4)), {}, "each of the 50 inputs, but it has 5 rows"),
        (lambda X: np.zeros((len(X), 3)), {}, r"must have shape \(n, 4\)"),
        (np.zeros((50, 4)), {}, "model must have a method predict or be a function of X"),
        (None, {}, "model must have a method predict or be a function of X"),
        (
            lambda X: np.ones((len(X), 4)),
            {"problem": None},
            "problem must be a Problem, .* and None",
        ),
        (lambda X: np.ones((len(X), 4)), {"space": Cube(3)}, r"must have shape \(n, 3\)"),
        (
            lambda X: np.eye(4)[np.arange(len(X)) % 4],
            {"space": Slice(4, 2)},
            r"50 of the 50 predictions are not in Slice\(4, 2\), the first at row 0: \[1, 0",
        ),
        (
            lambda X: np.where(np.arange(len(X))[:, None] == 7, [[1, 1, 1, 1]], [[1, 0, 0, 0]]),
            {"space": Slice(4, 1)},
            r"1 of the 50 predictions are not in Slice\(4, 1\), the first at row 7: \[1, 1",
        ),
    ],
)
def test_predictions_that_cannot_be_judged_are_refused(model, settings, words):
    problem = settings.get("problem", rare_but_joint())
    space = settings.get("space")
    with pytest.raises(ValueError, match=words):
        excess_risk(model, problem, "f1", space=space, n_rows=50)


@in_turn(
    ("make", "words"),
    [
        (lambda: independent(0), "n_labels must be a whole number of at least 1, but it is 0"),
        (lambda: independent(30), "n_labels must be at most 16, .* but it is 30"),
        (lambda: independent(2, 0), "n_features must be a whole number of at least 1"),
        (lambda: chain(2.5), "n_labels must be a whole number"),
        (lambda: exclusive(3), r"groups must list the sizes of groups.*\(3, 2\), but it is 3"),
        (
            lambda: exclusive((0, 2)),
            r"groups\[0\] must be a whole number of at least 1, but it is 0",
        ),
        (lambda: exclusive(()), "groups must list the sizes of groups"),
        (lambda: hierarchy(3), "parents must be"),
        (lambda: rare_but_joint().conditional(np.zeros((3, 5))), r"X must have shape \(n, 2\)"),
        (lambda: rare_but_joint().conditional(np.zeros(2)), r"X must have shape \(n, 2\)"),
    ],
)
def test_problems_that_make_no_sense_are_refused(make, words):
    with pytest.raises(ValueError, match=words):
        make()


def test_rows_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="a row for each of the 2 label sets"):
        Problem("own", [[0, 1], [1, 0]], np.zeros((3, 2)), np.zeros(2))


# ----------------------------------------------------------------------------------- stored rows


def test_the_document_is_rendered_from_its_rows():
    rows = stored("guarantees")
    assert (ROOT / "docs" / "guarantees.md").read_text() == page(rows)
    assert min(row["tried"] for row in rows) >= 1000


def test_no_stored_certificate_is_contradicted_and_no_counterexample_is_weak():
    for row in stored("guarantees"):
        if row["verdict"] == "certificate":
            assert row["worst_regret"] <= 1e-3
            assert row["worst_ratio"] is None or row["worst_ratio"] <= 1.0 + 1e-6
        if row["verdict"] == "counterexample":
            assert row["regret"] > 1e-3
            assert row["surrogate_regret"] <= 1e-8


def test_bounds_held_on_ten_thousand_draws_of_every_covered_cell():
    rows = stored("bounds")
    assert {row["draws"] for row in rows} == {10_000}
    assert all(row["above"] == 0 for row in rows)
    assert max(max(row["largest ratio"], row["after ascent"]) for row in rows) <= 1.0 + 1e-6
    covered = [row for row in stored("guarantees") if row.get("gamma") is not None]
    assert len(covered) == len(rows)


@pytest.mark.parametrize("target", ["f1", "jaccard"])
def test_consistent_methods_approached_the_best_and_binary_relevance_did_not(target):
    rows = [
        row for row in stored("excess_risk")
        if (row["problem"], row["target"]) == ("rare but joint", target)
    ]  # fmt: skip
    sizes = sorted({row["n"] for row in rows})
    assert (sizes[0], sizes[-1]) == (100, 100_000)

    def excess(method, n):
        (row,) = (row for row in rows if (row["method"], row["n"]) == (method, n))
        return row["excess"]

    for method in ("mean absolute error, cube", "likelihood, joint scores, minimum risk"):
        assert excess(method, 100_000) < 0.001
        assert excess(method, 100_000) < 0.05 * excess(method, 100)
    assert excess("binary relevance, cut at 1/2", 100_000) > 0.04
    assert all(row["bound"] is None or row["excess"] <= row["bound"] for row in rows)


# -------------------------------------------------------------------------------------- pictures


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_pictures_are_readable_on_their_ground(theme, tmp_path):
    pytest.importorskip("matplotlib")
    from matplotlib.colors import to_rgb

    from benchmarks.pictures import excess_picture, regret_picture

    setting = Setting.of("hamming", "logistic", Cube(2))
    first = regret_picture(setting, [bound("logistic")], theme, n_rows=100)
    rows = [row for row in stored("excess_risk") if row["target"] == "f1"]
    second = excess_picture(rows[:12], "excess", theme)
    for name, figure in (("first", first), ("second", second)):
        if (name, theme) in (("first", "light"), ("second", "dark")):
            figure.savefig(tmp_path / f"{name}.png")
            assert (tmp_path / f"{name}.png").stat().st_size > 5000
        (axes,) = figure.axes
        ground = np.mean(to_rgb(axes.get_facecolor()))
        for part in (axes.title, axes.xaxis.label, *axes.get_legend().get_texts()):
            assert abs(np.mean(to_rgb(part.get_color())) - ground) > 0.5
    assert (first.axes[0].get_xscale(), second.axes[0].get_yscale()) == ("log", "log")
    with pytest.raises(ValueError, match="theme must be"):
        excess_picture(rows[:6], "excess", "sepia")
