"""Laws of exact conditional risks: enumeration, certificates of optimality, minimizability gaps."""

import numpy as np
import pytest

from setwise.consistency import (
    Distribution,
    Effort,
    FiniteInputs,
    bayes,
    best_in_class,
    certify,
    regret,
    risks,
    surrogate_gap,
    surrogate_regret,
    surrogate_risk,
    target_gap,
)
from setwise.consistency.conditional import CompSumRisk, ConstrainedRisk, Weights
from setwise.consistency.naming import named_space
from setwise.consistency.optimum import best_scores, least_risks, upper_bounds, vertices
from setwise.consistency.setting import Setting
from setwise.spaces import Catalog, Cube, Forest, Paths, Sized, Slice
from setwise.surrogates import BinaryRelevance, CompSum, Constrained
from setwise.surrogates.names import SURROGATES
from tests.support import cases, oracle
from tests.support.turns import in_turn

MARGINS = ("exponential", "squared_hinge", "hinge", "rho")
COMP_SUM = (-1.0, -0.5, 0.0, 0.7, 1.0)
SMALL = {
    "cube": Cube(3),
    "slice": Slice(4, 2),
    "sized": Sized(3, [1.0, 0.0, 0.0, 1.0]),
    "chain": named_space("chain", 3),
    "closed": Forest([-1, 0, 0], closed=True),
    "paths": Paths([-1, 0, 0, 1, 1]),
    "list": Catalog([[0, 0, 1], [0, 1, 0], [1, 0, 0], [1, 1, 0], [1, 1, 1]], [0.5, 0, 0, 0, -1]),
}
RISKS = [CompSumRisk(q) for q in COMP_SUM] + [ConstrainedRisk(margin) for margin in MARGINS]
RISK_IDS = [f"q={q:g}" for q in COMP_SUM] + list(MARGINS)
CONVEX = [risk for risk in RISKS if risk.is_convex]


def random_law(n_sets, seed):
    return np.random.default_rng(seed).dirichlet(np.full(n_sets, 0.5)) * 0.99 + 0.01 / n_sets


# ------------------------------------------------------------------------------------ the target


@in_turn("space_name", cases.SPACES)
@in_turn("target_name", ["hamming", "f1", "jaccard", "subset", "table"])
def test_risks_are_the_enumerated_expected_losses(space_name, target_name):
    rng = np.random.default_rng(0)
    case = cases.SPACES[space_name](3, rng)
    target = cases.TARGETS[target_name](rng, case)
    sets, law = oracle.all_sets(3), random_law(8, 1)
    found = risks(target.target, case.space, Distribution(sets, law))
    definition = target.oracle_on(case)
    for row, own in zip(case.space.enumerate(), found, strict=True):
        losses = [float(definition.loss(tuple(map(int, row)), tuple(y))) for y in sets.tolist()]
        assert own == pytest.approx(law @ losses, abs=1e-12)


def test_no_label_set_has_less_risk_than_the_bayes_set():
    for seed in range(20):
        law = random_law(8, seed)
        best = bayes("f1", Cube(3), law)
        assert regret("f1", Cube(3), law, best) == pytest.approx(0.0, abs=1e-12)
        for row in oracle.all_sets(3):
            assert regret("f1", Cube(3), law, row) >= -1e-12


def test_ties_go_to_the_smaller_set_and_then_to_the_lower_labels():
    np.testing.assert_array_equal(bayes("subset", Cube(2), [0.25] * 4), [0, 0])
    np.testing.assert_array_equal(bayes("subset", Cube(2), [0.0, 0.5, 0.5, 0.0]), [1, 0])


@pytest.mark.parametrize(
    ("sets", "probability", "words"),
    [
        ([[0, 1], [0, 1]], [0.5, 0.5], "twice"),
        ([[0, 1], [1, 1]], [0.5, 0.4], "add up to 1"),
        ([[0, 1], [1, 1]], [1.2, -0.2], "negative"),
    ],
)
def test_what_is_no_distribution_is_refused(sets, probability, words):
    with pytest.raises(ValueError, match=words):
        Distribution(sets, probability)


def test_a_distribution_of_other_labels_is_refused():
    with pytest.raises(ValueError, match="as many labels"):
        risks("f1", Cube(3), Distribution([[0, 1]], [1.0]))


# --------------------------------------------------------------------------------- the surrogate


@in_turn("space_name", cases.SPACES)
@in_turn("q", COMP_SUM)
def test_conditional_comp_sum_risks_are_the_enumerated_sums(space_name, q):
    rng = np.random.default_rng(2)
    case = cases.SPACES[space_name](3, rng)
    target = cases.TARGETS["f1"](rng, case)
    sets, law = oracle.all_sets(3), random_law(8, 3)
    setting = Setting.of(target.target, CompSum(target.target, case.space, q), truths=sets)
    scores = rng.normal(size=case.n_scores)
    definition = target.oracle_on(case)
    expected = [oracle.comp_sum(case.oracle, definition, scores, y, q).value for y in sets]
    found = setting.value(law[None], scores[None])[0]
    assert found == pytest.approx(law @ expected, rel=1e-11)


@in_turn("space_name", cases.SPACES)
@in_turn("margin", MARGINS)
def test_conditional_constrained_risks_are_the_enumerated_sums(space_name, margin):
    rng = np.random.default_rng(4)
    case = cases.SPACES[space_name](3, rng)
    target = cases.TARGETS["jaccard"](rng, case)
    sets, law = oracle.all_sets(3), random_law(8, 5)
    surrogate = Constrained(target.target, case.space, margin, rho=0.7)
    setting = Setting.of(target.target, surrogate, truths=sets)
    scores = rng.normal(size=case.n_scores)
    definition = target.oracle_on(case)
    expected = [
        oracle.constrained(case.oracle, definition, scores, y, margin, 0.7).value for y in sets
    ]
    found = setting.value(law[None], scores[None])[0]
    assert found == pytest.approx(law @ expected, rel=1e-11)


@in_turn("risk", [risk for risk in RISKS if not risk.kinks])
def test_derivatives_are_those_of_the_value(risk):
    rng = np.random.default_rng(6)
    features, offset = rng.normal(size=(2, 5, 3)), rng.normal(size=(2, 5))
    worth, scores, step = rng.random((1, 2, 5)), rng.normal(size=3), 1e-5

    def at(h):
        return (features @ h + offset)[None]

    gradient, hessian = risk.derivatives(at(scores), worth, features)
    for i, unit in enumerate(np.eye(3)):
        ends = [at(scores + side * step * unit) for side in (1.0, -1.0)]
        slope = np.subtract(*(risk.value(end, worth)[0] for end in ends)) / (2 * step)
        assert gradient[0, i] == pytest.approx(slope, rel=1e-6, abs=1e-7)
        bend = np.subtract(*(risk.derivatives(end, worth, features)[0][0] for end in ends))
        np.testing.assert_allclose(hessian[0, i], bend / (2 * step), rtol=1e-5, atol=1e-6)


# ----------------------------------------------------------------------- certificates of optimality


@in_turn("risk", RISKS, ids=RISK_IDS)
@in_turn("name", SMALL)
def test_no_scores_have_less_risk_than_the_best(risk, name):
    rng = np.random.default_rng(7)
    weights = Weights.of(SMALL[name])
    for seed in range(3):
        worth = np.random.default_rng(seed).random(weights.offset.shape)
        found = best_scores(risk, weights, worth)
        around = found.scores * (np.abs(found.scores).max() < 30) + np.concatenate(
            [size * rng.normal(size=(50, len(found.scores))) for size in (0.01, 0.3, 2.0)]
        )
        values = risk.value(weights.at(around), np.tile(worth, (150, 1, 1)))
        assert values.min() >= found.value - 1e-9
        if found.is_certain:
            assert found.gap <= 1e-8, found.method
            assert values.min() >= found.lower - 1e-12


DEGENERATE = {
    "one set": (1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
    "two alike": (0.0, 0.5, 0.0, 0.0, 0.0, 0.0, 0.5, 0.0),
    "all but one": (0.0, 0.0, 1e-12, 0.0, 0.0, 1.0 - 1e-12, 0.0, 0.0),
    "three": (0.0, 0.25, 0.0, 0.0, 0.25, 0.5, 0.0, 0.0),
    "all alike": (0.125,) * 8,
}


@in_turn("surrogate", [name for name in SURROGATES if "generalized" not in name])
@in_turn("name", ["cube", "sized", "chain"])
def test_degenerate_distributions_have_certain_minimisers(surrogate, name):
    """Minimisers at infinity, sets without worth, ties: the dual bound is tight there too."""
    setting = Setting.of("jaccard", surrogate, named_space(name, 3))
    for words, law in DEGENERATE.items():
        found = setting.optimum(np.array(law))
        assert found.is_certain, (words, found.method, found.gap)
        assert found.lower <= found.value + 1e-9


@pytest.mark.parametrize("risk", CONVEX, ids=str)
def test_convex_risks_are_never_left_to_chance(risk):
    weights = Weights.of(SMALL["list"])
    worth = np.linspace(0.1, 0.9, weights.offset.size)[None]
    assert best_scores(risk, weights, worth).is_certain


@in_turn("risk", RISKS, ids=RISK_IDS)
def test_joint_scores_are_never_worse_and_have_a_closed_form(risk):
    worth, weights = (
        np.random.default_rng(8).random((1, 8)),
        Weights.of(Cube(3), "joint"),
    )
    label_wise = best_scores(risk, Weights.of(Cube(3)), worth)
    joint = best_scores(risk, weights, worth)
    assert joint.method == "closed form"
    assert joint.value <= label_wise.value + 1e-9
    z = weights.at(joint.scores[None])
    assert risk.value(z, worth[None])[0] == pytest.approx(joint.value, abs=1e-9)


@in_turn("risk", RISKS, ids=RISK_IDS)
def test_many_problems_at_once_are_solved_as_one_by_one(risk):
    weights = Weights.of(SMALL["closed"])
    worth = np.random.default_rng(9).random((6, *weights.offset.shape))
    _, values = least_risks(risk, weights, worth)
    expected = [best_scores(risk, weights, row).value for row in worth]
    np.testing.assert_allclose(values, expected, atol=1e-9)


@pytest.mark.parametrize("name", ["cube", "slice", "sized", "closed", "list"])
def test_the_linear_program_of_the_hinge_ends_in_a_vertex(name):
    risk, weights = ConstrainedRisk("hinge"), Weights.of(SMALL[name])
    _, _, costs = vertices(risk, weights)
    for seed in range(5):
        worth = np.random.default_rng(seed).random(weights.offset.shape)
        found = best_scores(risk, weights, worth)
        assert found.method == "linear program"
        assert (costs @ worth[0]).min() == pytest.approx(found.value, abs=1e-9)


@in_turn("q", [0.2, 0.7, 0.95])
@in_turn("n_labels", [1, 2, 3])
def test_a_box_holds_no_value_above_its_bound(q, n_labels):
    rng = np.random.default_rng(10)
    sets, worth = oracle.all_sets(n_labels), rng.random(2**n_labels)
    low = rng.random((60, n_labels))
    boxes = np.stack([low, low + (1 - low) * rng.random((60, n_labels)) ** 2], axis=-1)
    bounds = upper_bounds(worth.reshape((2,) * n_labels), q, boxes)
    for _ in range(50):
        p = boxes[..., 0] + (boxes[..., 1] - boxes[..., 0]) * rng.random((60, n_labels))
        chance = np.where(sets == 1, p[:, None], 1.0 - p[:, None]).prod(axis=2)
        assert ((chance**q) @ worth <= bounds + 1e-12).all()


def test_generalised_cross_entropy_on_small_cubes_is_certain():
    for seed in range(4):
        worth = np.random.default_rng(seed).random((1, 8))
        found = best_scores(CompSumRisk(0.7), Weights.of(Cube(3)), worth)
        assert found.method == "branch and bound"
        assert found.gap <= 1e-8


def test_a_method_that_proves_nothing_says_so():
    worth = np.random.default_rng(0).random((1, 8))
    found = best_scores(CompSumRisk(0.7), Weights.of(SMALL["chain"]), worth)
    assert (found.method, found.is_certain) == ("multistart", False)


# ------------------------------------------------------------------------------- public functions


@pytest.mark.parametrize("scale", ["unit", "paper"])
@pytest.mark.parametrize("q", [-1.0, 0.0, 0.7])
def test_surrogate_regret_is_the_risk_above_that_of_the_best_scores(q, scale):
    surrogate, law = CompSum("f1", Cube(3), q, scale), random_law(8, 11)
    best = best_in_class(surrogate, law)
    assert surrogate_regret(surrogate, best.scores, law) == pytest.approx(0.0, abs=1e-9)
    scores = np.array([0.4, -0.3, 0.1])
    gained = surrogate_risk(surrogate, scores, law) - surrogate_risk(surrogate, best.scores, law)
    assert surrogate_regret(surrogate, scores, law) == pytest.approx(gained, abs=1e-9)


@pytest.mark.parametrize("margin", ["logistic", "exponential", "squared_hinge", "hinge"])
def test_binary_relevance_is_least_at_its_link(margin):
    law = Distribution(oracle.all_sets(2), [0.1, 0.2, 0.3, 0.4])
    best = best_in_class(BinaryRelevance(margin), law)
    rng = np.random.default_rng(0)
    for scores in best.scores + rng.normal(size=(50, 2)):
        assert surrogate_regret(BinaryRelevance(margin), scores, law) >= 0.0
        assert surrogate_risk(BinaryRelevance(margin), scores, law) >= best.value - 1e-12
    eta = law.marginals()
    links = {
        "logistic": np.log(eta / (1 - eta)), "exponential": np.log(eta / (1 - eta)) / 2,
        "squared_hinge": 2 * eta - 1, "hinge": np.sign(eta - 0.5),
    }  # fmt: skip
    np.testing.assert_allclose(best.scores, links[margin], atol=1e-12)


def test_truths_may_lie_outside_the_space():
    surrogate = CompSum("precision@1", Slice(3, 1), 0.0)
    law = Distribution(oracle.all_sets(3), random_law(8, 12))
    assert surrogate_regret(surrogate, [0.1, 0.2, 0.3], law) > 0.0


# ---------------------------------------------------------------------------- minimizability gaps

PLANE = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])


def inputs_on(X, seed=0):
    laws = np.array([random_law(8, [seed, row]) for row in range(len(X))])
    return FiniteInputs(X, np.full(len(X), 1.0 / len(X)), oracle.all_sets(3), laws)


SOLVED = [name for name in SURROGATES if name != "constrained_rho"]


@pytest.mark.parametrize("surrogate", SOLVED)
def test_gaps_are_not_negative_and_vanish_for_all_functions(surrogate):
    inputs = inputs_on(PLANE)
    linear = surrogate_gap(surrogate, Cube(3), inputs, target="f1")
    every = surrogate_gap(surrogate, Cube(3), inputs, "all", target="f1")
    assert every.value == 0.0
    assert linear.best >= linear.pointwise - 1e-9
    if linear.method != "multistart":
        assert linear.best - linear.lower == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("surrogate", SOLVED)
def test_inputs_in_general_position_leave_linear_scores_no_gap(surrogate):
    """Then linear scores are all functions of the inputs."""
    linear = surrogate_gap(surrogate, Cube(3), inputs_on(np.eye(4)), target="f1")
    assert linear.value == pytest.approx(0.0, abs=1e-8)


def crossed():
    """One label, on where the two features differ: no plane parts the inputs so."""
    sets = np.array([[0], [1]])
    laws = np.array([[0.9, 0.1], [0.1, 0.9], [0.1, 0.9], [0.9, 0.1]])
    return FiniteInputs(PLANE, np.full(4, 0.25), sets, laws)


def test_a_crossed_pattern_has_a_gap_for_target_and_surrogate():
    gap = target_gap("hamming", Cube(1), crossed())
    assert gap.value == pytest.approx(0.2)  # one of the four inputs is wrong: .8 / 4
    own = surrogate_gap("binary_relevance", Cube(1), crossed())
    # The best linear logistic regression is constant: log 2 above the entropy of .1.
    entropy = -(0.1 * np.log(0.1) + 0.9 * np.log(0.9))
    assert own.value == pytest.approx(np.log(2.0) - entropy, abs=1e-9)
    assert target_gap("hamming", Cube(1), crossed(), "all").value == 0.0


@pytest.mark.parametrize("surrogate", ["logistic", "binary_relevance", "constrained_exponential"])
def test_the_bound_holds_with_the_gaps_on_both_sides(surrogate):
    """Theorem 14 of the paper, on a proved combination: Hamming loss on the cube."""
    from setwise.consistency.theorems import covering

    inputs = inputs_on(PLANE, seed=3)
    setting = Setting.of("hamming", surrogate, Cube(3), truths=inputs.sets)
    gamma = covering(setting.target, setting.choice, setting.space).gamma
    own = surrogate_gap(surrogate, Cube(3), inputs, target="hamming")
    judged = target_gap("hamming", Cube(3), inputs)
    rng = np.random.default_rng(0)
    for _ in range(20):
        weights = rng.normal(size=(3, 3))
        scores = np.column_stack([PLANE, np.ones(4)]) @ weights
        risk = inputs.weight @ setting.value(inputs.conditional, scores)
        place = setting.shortfalls(scores).argmin(axis=1)
        losses = (inputs.conditional @ setting.losses)[np.arange(4), place]
        left = inputs.weight @ losses - judged.best + judged.value
        assert left <= gamma(risk - own.best + own.value) + 1e-9


def test_gaps_that_are_not_computed_are_refused():
    with pytest.raises(ValueError, match="on all label sets only"):
        target_gap("hamming", Slice(3, 1), inputs_on(PLANE))
    with pytest.raises(ValueError, match="inputs by label sets"):
        FiniteInputs(PLANE, np.full(4, 0.25), oracle.all_sets(3), np.ones((4, 2)))


# ------------------------------------------------------------- the rho margin on spaces too large

RHO_CASES = [
    (Cube(3), 0.3), (Sized(3, [1.0, 0.0, 0.0, 1.0]), 1.0), (Slice(4, 2), 2.0),
]  # fmt: skip


@pytest.mark.parametrize(("space", "rho"), RHO_CASES)
def test_descents_of_the_rho_margin_end_where_all_vertices_compared_do(space, rho, monkeypatch):
    surrogate = Constrained("f1", space, "rho", rho=rho)
    rng = np.random.default_rng(0)
    laws = rng.dirichlet(np.full(len(space.enumerate()), 0.5), size=3)
    exact = [best_in_class(surrogate, law) for law in laws]
    assert {optimum.method for optimum in exact} == {"vertices"}
    monkeypatch.setattr("setwise.consistency.optimum.MOST_VERTICES", 0)
    for law, known in zip(laws, exact, strict=True):
        found = best_in_class(surrogate, law)
        assert found.method == "multistart"
        assert not found.is_certain
        assert found.value == pytest.approx(known.value, abs=1e-9)
        assert found.lower <= known.value + 1e-12
        assert surrogate_risk(surrogate, found.scores, law) * len(laws[0]) == pytest.approx(
            found.value, abs=1e-9
        )


def test_the_rho_margin_on_five_labels_is_the_best_of_descents_and_says_so():
    surrogate = Constrained("f1", Cube(5), "rho")
    rng = np.random.default_rng(1)
    law = rng.dirichlet(np.full(32, 0.3))
    found = best_in_class(surrogate, law)
    assert (found.method, found.is_certain) == ("multistart", False)
    setting = Setting.of("f1", surrogate, truths=Cube(5).enumerate())
    points = rng.normal(size=(5000, 5)) * rng.choice([0.1, 0.5, 2.0], (5000, 1))
    assert found.value <= setting.value(np.tile(law, (5000, 1)), points).min() + 1e-12


def test_the_rho_margin_on_five_labels_has_a_verdict():
    verdict = certify("f1", "constrained_rho", Cube(5), effort=Effort(200, 8, 4, 4))
    assert verdict.verdict == "counterexample"
    assert "not certain" in verdict.method


def test_the_gap_of_the_rho_margin_is_exact_on_few_inputs_and_the_best_of_descents_on_more(
    monkeypatch,
):
    rng = np.random.default_rng(2)
    inputs = FiniteInputs(
        rng.normal(size=(3, 1)),
        np.full(3, 1 / 3),
        Cube(2).enumerate(),
        rng.dirichlet(np.ones(4), 3),
    )
    gap = surrogate_gap("constrained_rho", Cube(2), inputs, target="f1")
    assert gap.method == "vertices"
    monkeypatch.setattr("setwise.consistency.optimum.MOST_VERTICES", 0)
    found = surrogate_gap("constrained_rho", Cube(2), inputs, target="f1")
    assert (found.method, found.lower) == ("multistart", -np.inf)
    assert found.best == pytest.approx(gap.best, abs=1e-9)
    surrogate = Setting.of("f1", "constrained_rho", Cube(2), truths=Cube(2).enumerate())
    least = np.inf
    for _ in range(3000):
        weights = rng.normal(size=(2, 2)) * rng.choice([0.3, 1.0, 3.0])
        scores = np.column_stack([inputs.X, np.ones(3)]) @ weights
        least = min(least, float(inputs.weight @ surrogate.value(inputs.conditional, scores)))
    assert gap.best <= least + 1e-12
    assert gap.best >= gap.pointwise - 1e-12


def test_a_gap_that_is_not_computed_says_what_is():
    inputs = FiniteInputs([[0.0]], [1.0], [[1, 0]], [[1.0]])
    with pytest.raises(ValueError, match=r"use Cube\(2\).*hypotheses='all'"):
        target_gap("f1", Slice(2, 1), inputs)
    assert target_gap("f1", Slice(2, 1), inputs, "all").value == 0.0
