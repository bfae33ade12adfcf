"""The oracle is checked against itself: its identities, its own derivatives, and fifty-digit
arithmetic.
"""

import itertools

import mpmath
import numpy as np
import pytest

from tests.support import oracle
from tests.support.turns import in_turn

ORACLE_Q = (-1.0, -0.5, -1e-3, -1e-6, -1e-12, 0.0, 1e-12, 1e-9, 1e-6, 1e-3, 0.3, 0.7, 1.0)
N_LABELS = 4
POTENTIALS = np.random.default_rng(3).normal(size=(N_LABELS, 2, 2))
POTENTIALS[2, 1, 0] = -np.inf
SETS = oracle.all_sets(N_LABELS)[[0, 3, 5, 6, 9, 12, 15]]

ORACLE_SPACES = {
    "cube": oracle.cube(N_LABELS),
    "sized": oracle.sized(N_LABELS, [0.3, -np.inf, -1.2, 0.7]),
    "slice": oracle.slice_of(N_LABELS, 2),
    "forest": oracle.forest([-1, 0, 0, 2], POTENTIALS),
    "closed": oracle.forest([-1, 0, 0, 2], closed=True),
    "paths": oracle.paths([-1, 0, 0, 2]),
    "leaves": oracle.paths([-1, 0, 0, 2], leaves_only=True),
    "catalog": oracle.catalog(SETS, [0.1, -np.inf, 0.5, 0, -1, 2, 0.3]),
    "joint": oracle.catalog(SETS, [0.1, 0.2, -np.inf, 0, -1, 2, 0.3], joint=True),
}

ORACLE_TARGETS = {
    "hamming": oracle.hamming(),
    "weighted": oracle.hamming([0.2, 1.5, 3.0, 0.7]),
    "f1": oracle.f_beta(),
    "f_real": oracle.f_beta(0.7, empty=0.25),
    "jaccard": oracle.jaccard(),
    "subset": oracle.subset(),
    "tversky": oracle.linear_fractional((0, 0, 0.3, 0.7, 0), (0, 1, 0.3, 0.7, 0)),
    "tree": oracle.tree_distance([-1, 0, 0, 2], [0.3, 1.0, 2.0, 0.5]),
    "counts": oracle.counts(
        lambda tp, fp, fn, tn: ((fp + 2.0 * fn) / (2.0 * (tp + fp + fn + tn))) ** 2
    ),
    "table": oracle.table(oracle.all_sets(N_LABELS), np.random.default_rng(5).random((16, 16))),
}


def drawn_scores(space, size=2.0, seed=0):
    return np.random.default_rng(seed).normal(scale=size, size=space.score_features.shape[1])


def in_fifty_digits(space, target, scores, y_true, q):
    """The paper's comp-sum formula, written with mpmath and nothing else."""
    with mpmath.workdps(50):
        exponents = [
            mpmath.fsum(
                [
                    mpmath.mpf(float(a)) * mpmath.mpf(float(h))
                    for a, h in zip(row, scores, strict=True)
                ]
            )
            + mpmath.mpf(float(g))
            for row, g in zip(space.score_features, space.offset, strict=True)
        ]
        total = mpmath.fsum([mpmath.exp(z) for z in exponents])
        terms = []
        for z, u in zip(exponents, target.utilities(space.sets, y_true), strict=True):
            v = total / mpmath.exp(z)
            terms.append(
                mpmath.mpf(float(u))
                * (mpmath.log(v) if q == 0 else (1 - v ** (-mpmath.mpf(q))) / mpmath.mpf(q))
            )
        return float(mpmath.fsum(terms))


@in_turn("q", ORACLE_Q)
@pytest.mark.parametrize("space", ORACLE_SPACES.values(), ids=ORACLE_SPACES)
@in_turn("size", [0.5, 40.0])
def test_comp_sum_agrees_with_fifty_digits(space, q, size):
    """Extended precision keeps twelve digits of sum_{y'} u Psi_q(1/s), also where it is as large as
    e^600.
    """
    scores = drawn_scores(space, size)
    expected = in_fifty_digits(space, ORACLE_TARGETS["f1"], scores, (1, 0, 1, 0), q)
    assert oracle.comp_sum(
        space, ORACLE_TARGETS["f1"], scores, (1, 0, 1, 0), q
    ).value == pytest.approx(expected, rel=1e-12)


@in_turn("q", ORACLE_Q)
@pytest.mark.parametrize("space", ORACLE_SPACES.values(), ids=ORACLE_SPACES)
@in_turn("target", ORACLE_TARGETS.values(), ids=ORACLE_TARGETS)
def test_paper_scale_is_an_affine_function_of_the_unit_scale(target, space, q):
    """paper_q = |Y|^(1-q) unit_q + L1 (1 - |Y|^-q) / q, where L1 = sum_{y'} u."""
    scores, y_true = drawn_scores(space), (0, 1, 1, 0)
    total = float(target.utilities(space.sets, y_true).sum())
    constant = space.log_size if q == 0 else -np.expm1(-q * space.log_size) / q
    unit = oracle.comp_sum(space, target, scores, y_true, q, "unit")
    paper = oracle.comp_sum(space, target, scores, y_true, q, "paper")
    factor = space.size ** (1 - q)
    assert paper.value == pytest.approx(
        factor * unit.value + total * constant, rel=1e-12, abs=1e-12 * total
    )
    np.testing.assert_allclose(
        paper.score_gradient, factor * unit.score_gradient, rtol=1e-12, atol=1e-14
    )
    np.testing.assert_allclose(
        paper.parameter_gradient, factor * unit.parameter_gradient, rtol=1e-12, atol=1e-14
    )


@pytest.mark.parametrize("space", ORACLE_SPACES.values(), ids=ORACLE_SPACES)
@in_turn("target", ORACLE_TARGETS.values(), ids=ORACLE_TARGETS)
def test_logistic_closed_form(target, space):
    """unit_0 = M(0) (A - log|Y|) - E_0[u z]: MATH.md section 2, from its own sums."""
    scores, y_true = drawn_scores(space), (1, 1, 0, 0)
    utility = target.utilities(space.sets, y_true)
    excess = oracle.log_partition(space, scores) - space.log_size
    closed = oracle.uniform_mean(utility) * excess - oracle.uniform_mean(utility * space.z(scores))
    assert oracle.comp_sum(space, target, scores, y_true, 0.0, "unit").value == pytest.approx(
        float(closed), rel=1e-12
    )


@pytest.mark.parametrize("space", ORACLE_SPACES.values(), ids=ORACLE_SPACES)
@in_turn("q", [-1.0, -0.3, 0.4, 1.0])
def test_tempered_closed_form(space, q):
    """paper_q = (L1 - exp(A_q - q A_1) M_q) / q."""
    target, scores, y_true = ORACLE_TARGETS["jaccard"], drawn_scores(space), (1, 1, 0, 0)
    utility = target.utilities(space.sets, y_true)
    tempered = oracle.log_partition(space, scores, q)
    mean = (np.exp(q * space.z(scores) - tempered) * utility).sum()
    closed = (utility.sum() - np.exp(tempered - q * oracle.log_partition(space, scores)) * mean) / q
    assert oracle.comp_sum(space, target, scores, y_true, q).value == pytest.approx(
        float(closed), rel=1e-12
    )


def moved(space, parameter_step):
    """The same support with its finite parameters moved."""
    offset = space.offset + space.parameter_features @ np.asarray(
        parameter_step, dtype=oracle.EXTENDED
    )
    return oracle.Space(space.sets, space.score_features, offset, space.parameter_features)


def central_difference(function, point, step=1e-5):
    """Symmetric differences of a scalar function, one coordinate at a time."""
    ends = [
        [function(point + sign * step * unit) for sign in (1, -1)] for unit in np.eye(len(point))
    ]
    return np.array([(up - down) / (2 * step) for up, down in ends])


def every_loss():
    for q, scale in itertools.product((-1.0, -1e-6, 0.0, 0.5, 1.0), ("unit", "paper")):
        yield (
            f"comp-sum {q} {scale}",
            lambda space, target, scores, y, q=q, scale=scale: oracle.comp_sum(
                space, target, scores, y, q, scale
            ),
        )
    for margin, scale in itertools.product(
        ("exponential", "squared_hinge", "hinge", "rho"), ("unit", "paper")
    ):
        yield (
            f"{margin} {scale}",
            lambda space, target, scores, y, margin=margin, scale=scale: oracle.constrained(
                space, target, scores, y, margin, 2.5, scale
            ),
        )


@in_turn("loss", dict(every_loss()).values(), ids=dict(every_loss()))
@pytest.mark.parametrize("space", ORACLE_SPACES.values(), ids=ORACLE_SPACES)
def test_gradients_are_the_central_differences(space, loss):
    """The term-by-term gradients are the derivatives of the enumerated value, in the scores and in
    g.
    """
    target, scores, y_true = ORACLE_TARGETS["tversky"], drawn_scores(space, 0.6), (1, 0, 0, 1)
    answer = loss(space, target, scores, y_true)
    by_scores = central_difference(lambda point: loss(space, target, point, y_true).value, scores)
    still = np.zeros(space.parameter_features.shape[1])
    by_parameters = central_difference(
        lambda step: loss(moved(space, step), target, scores, y_true).value, still
    )
    size = 1 + abs(answer.value)
    np.testing.assert_allclose(answer.score_gradient, by_scores, rtol=1e-6, atol=1e-8 * size)
    np.testing.assert_allclose(
        answer.parameter_gradient, by_parameters, rtol=1e-6, atol=1e-8 * size
    )


@in_turn("margin", ["logistic", "exponential", "hinge", "squared_hinge"])
def test_binary_relevance_gradient_is_the_central_difference(margin):
    scores, y_true = np.array([0.3, -1.7, 2.2, 0.9]), (1, 0, 0, 1)
    answer = oracle.binary_relevance(scores, y_true, margin)
    expected = central_difference(
        lambda point: oracle.binary_relevance(point, y_true, margin).value, scores
    )
    np.testing.assert_allclose(answer.score_gradient, expected, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("target", ORACLE_TARGETS.values(), ids=ORACLE_TARGETS)
def test_loss_and_utility_sum_to_one(target):
    """The two formulas of each target are one, and both stay in [0, 1]."""
    for y_pred, y_true in itertools.product(itertools.product((0, 1), repeat=N_LABELS), repeat=2):
        loss, utility = float(target.loss(y_pred, y_true)), float(target.utility(y_pred, y_true))
        assert loss + utility == pytest.approx(1, abs=1e-15)
        assert 0 <= loss <= 1


def test_linear_fractional_contains_f_beta_jaccard_and_hamming():
    """The paper's remark after its linear-fractional family."""
    family = {
        "f": (oracle.f_beta(2.0), oracle.linear_fractional((0, 0, 1, 4, 0), (0, 5, 1, 4, 0))),
        "jaccard": (oracle.jaccard(), oracle.linear_fractional((0, 0, 1, 1, 0), (0, 1, 1, 1, 0))),
        "hamming": (oracle.hamming(), oracle.linear_fractional((0, 0, 1, 1, 0), (0, 1, 1, 1, 1))),
    }
    sets = oracle.all_sets(N_LABELS)
    for own, general in family.values():
        for y_true in sets.tolist():
            np.testing.assert_allclose(
                oracle.as_float(own.losses(sets, y_true)),
                oracle.as_float(general.losses(sets, y_true)),
                rtol=1e-15,
            )


def test_supports_are_what_their_definitions_say():
    """Counts by hand: sizes 0, 2, 3 of four labels; a hierarchy's closed sets; nodes; leaves;
    finite rows.
    """
    sizes = {name: space.size for name, space in ORACLE_SPACES.items()}
    assert sizes["cube"] == 16
    assert sizes["sized"] == 1 + 6 + 4
    assert sizes["slice"] == 6
    assert (
        sizes["closed"] == 1 + 2 * 3
    )  # the root off; or on, with label 1 free and {}, {2}, {2, 3} below it
    assert sizes["paths"] == 4
    assert sizes["leaves"] == 2
    assert sizes["catalog"] == sizes["joint"] == 6
    off_parent = (ORACLE_SPACES["forest"].sets[:, 2] == 1) & (
        ORACLE_SPACES["forest"].sets[:, 0] == 0
    )
    assert not off_parent.any()
    assert sizes["forest"] == 12


def f_beta_of_counts(square):
    def utility(tp, fp, fn, tn):
        size = (1 + square) * tp + square * fn + fp
        return np.where(size > 0, (1 + square) * tp / np.where(size > 0, size, 1), 1.0)

    return utility


@in_turn("square", [1.0, 4.0, 0.25, 0.49])
@in_turn("n_true", [0, 1, 3, 9])
def test_counting_and_the_high_order_rule_agree_with_enumeration(square, n_true):
    """Nine independent labels: all 512 sets, the two Poisson-binomial laws, and the rule on the
    half line.
    """
    rng = np.random.default_rng(n_true)
    scores, y_true = rng.normal(size=9), (np.arange(9) < n_true).astype(int)
    space, target = oracle.cube(9), oracle.f_beta(square**0.5)
    expected = float(oracle.set_probability(space, scores) @ target.utilities(space.sets, y_true))
    probability = 1 / (1 + np.exp(-2 * scores))
    counted = oracle.expected_utility_by_counting(probability, y_true, f_beta_of_counts(square))
    assert counted == pytest.approx(expected, abs=1e-14)
    rule = (1 + square) * oracle.expected_reciprocal_share(
        probability, y_true, square * n_true, 1, 1
    )
    nothing = np.prod(1 - probability) if n_true == 0 else 0.0
    assert rule + nothing == pytest.approx(expected, abs=1e-14)


def test_the_high_order_rule_agrees_with_counting_at_a_thousand_labels():
    """The rule is trusted at 30,000 labels because at 1,000 it has thirteen digits for every
    expected size.
    """
    rng = np.random.default_rng(0)
    for size, n_true in itertools.product((1, 10, 300, 500), (1, 5, 500)):
        probability = np.clip(rng.random(1000) * 2 * size / 1000, 0, 1)
        y_true = (rng.permutation(1000) < n_true).astype(int)
        counted = oracle.expected_utility_by_counting(probability, y_true, f_beta_of_counts(0.25))
        rule = 1.25 * oracle.expected_reciprocal_share(probability, y_true, 0.25 * n_true, 1, 1)
        assert rule == pytest.approx(counted, rel=1e-13)
