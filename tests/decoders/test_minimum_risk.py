"""Laws of the decoders: no label set that may be predicted has a smaller expected loss."""

import re
import tracemalloc
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from setwise.decoders import MinimumRisk, MostLikely, TopK
from setwise.spaces import Catalog, Cube, Forest, Paths, Sized, Slice
from setwise.targets import (
    TARGETS,
    CountTarget,
    FBeta,
    Hamming,
    Jaccard,
    LinearFractional,
    PrecisionAtK,
    RecallAtK,
    TableTarget,
    TreeDistance,
    ZeroOne,
)
from setwise.targets.measure import OfCounts
from setwise.threads import thread_count
from tests.support import cases, oracle
from tests.support import decision_oracle as decisions
from tests.support.examples import FEWER, generators, score_arrays
from tests.support.nn_cases import FORMS
from tests.support.profile import THOROUGH
from tests.support.turns import in_turn, told

GRID = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0)
EXACT, SINGLE = 1e-10, 1e-6  # what float64 and float32 promise
every_target = in_turn("name", cases.EVERY_TARGET)


# ------------------------------------------------------------------------------- what is drawn


@lru_cache(maxsize=256)
def _fixed_table(describe, arguments, n_labels):
    return decisions.loss_table(describe(**dict(arguments)), n_labels)


def table_of(target: cases.TargetCase, n_labels: int, definition=None) -> np.ndarray:
    """The table of losses; kept for the targets that do not depend on the draw."""
    if definition is None:
        try:
            return _fixed_table(target.describe, tuple(target.arguments.items()), n_labels)
        except TypeError:  # arguments that are arrays
            definition = target.describe(**target.arguments)
    return decisions.loss_table(definition, n_labels)


@dataclass(frozen=True)
class Problem:
    """A target and a number of labels: which sets may be predicted, and at which losses."""

    target: cases.TargetCase
    n_labels: int

    @property
    def decoder(self) -> MinimumRisk:
        return MinimumRisk(self.target.target)

    @property
    def definition(self) -> oracle.Target:
        return self.target.describe(**self.target.arguments)

    @property
    def counts(self) -> bool:
        """Whether the loss is any function of the counts, so that it need not be monotone."""
        return self.target.describe in (oracle.linear_fractional, oracle.counts)

    @cached_property
    def table(self) -> np.ndarray:
        return table_of(self.target, self.n_labels)

    @cached_property
    def allowed(self) -> np.ndarray:
        return decisions.allowed_numbers(
            self.n_labels,
            size=self.target.arguments.get("k"),
            parents=self.target.arguments.get("parents"),
        )

    @cached_property
    def directions(self) -> list[str] | None:
        return decisions.directions(self.definition, self.n_labels) if self.counts else []

    @property
    def unclear(self) -> bool:
        return self.directions is None

    @property
    def refused(self) -> bool:
        return "mixed" in self.directions

    def decide(self, law) -> decisions.Decision:
        return decisions.decide(self.table, law, self.allowed)


def problem_of(name: str, n_labels: int, rng) -> Problem:
    if name in cases.AT_K_TARGETS:
        size = int(rng.integers(1, n_labels + 1))
        case = cases.SpaceCase(Slice, oracle.slice_of, {"n_labels": n_labels, "size": size})
    else:
        case = cases.cube(n_labels, rng)
    return Problem(cases.EVERY_TARGET[name](rng, case), n_labels)


@st.composite
def problems(draw, name, most_labels=6):
    rng = draw(generators())
    n_labels = draw(st.integers(1, min(most_labels, cases.MOST_LABELS.get(name, 8))))
    return problem_of(name, n_labels, rng)


def grid_probabilities(n_labels, n_rows=4):
    """Few values, so that there are ties."""
    return hnp.arrays(np.float64, (n_rows, n_labels), elements=st.sampled_from(GRID))


@st.composite
def probabilities(draw, n_labels):
    """Rows of the grid, of any numbers, and of several sizes of numbers."""
    rng = draw(generators())
    drawn = hnp.arrays(np.float64, (2, n_labels), elements=st.floats(0, 1, allow_subnormal=False))
    return np.vstack([draw(grid_probabilities(n_labels)), draw(drawn), random_rows(n_labels, rng)])


def random_rows(n_labels, rng):
    power = rng.choice([0.2, 1.0, 3.0, 20.0], size=(8, 1))
    return rng.random((8, n_labels)) ** power


# ---------------------------------------------------------------------------- what is compared


def assert_refused(action, *words):
    """ValueError whose message has every one of the words, in any order and case."""
    pattern = "(?is)" + "".join(f"(?=.*(?:{word}))" for word in words)
    with pytest.raises(ValueError, match=pattern):
        action()


def dense(sets) -> np.ndarray:
    return sets.toarray() if scipy.sparse.issparse(sets) else np.asarray(sets)


def assert_same(first, second, tolerance=1e-12):
    """Two answers with risks are one answer."""
    np.testing.assert_array_equal(dense(first.sets), dense(second.sets))
    np.testing.assert_allclose(first.risk, second.risk, rtol=0, atol=tolerance)
    np.testing.assert_allclose(first.second_risk, second.second_risk, rtol=0, atol=tolerance)


def assert_is_an_answer(answer, n_rows, n_labels):
    """The named tuple, its types and shapes."""
    assert answer._fields == ("sets", "risk", "second_risk")
    assert answer.sets.shape == (n_rows, n_labels)
    assert answer.sets.dtype == np.uint8
    assert answer.risk.shape == answer.second_risk.shape == (n_rows,)
    assert answer.risk.dtype == answer.second_risk.dtype == np.float64


def assert_optimal(answer, expected: list, tolerance=EXACT):
    """Each row's set is a candidate of least risk, and both risks are the enumerated ones."""
    assert_is_an_answer(answer, len(expected), expected[0].n_labels)
    chosen = decisions.number_of(dense(answer.sets))
    for row, (number, decision) in enumerate(zip(chosen, expected, strict=True)):
        risk = decision.risk_of(number)
        assert risk <= decision.least + tolerance, (
            f"row {row}: {dense(answer.sets)[row]} has risk {risk}, the least is {decision.least}"
        )
        assert answer.risk[row] == pytest.approx(float(risk), rel=0, abs=tolerance)
        assert answer.second_risk[row] == pytest.approx(
            decision.second(number), rel=0, abs=tolerance
        )


# ------------------------------------------------------------------------ the oracle against itself


@settings(max_examples=FEWER)
@given(data=st.data())
def test_counting_and_enumerating_are_one_oracle(data):
    """The sums for many labels, where both can be taken."""
    rng, n_labels = data.draw(generators()), data.draw(st.integers(1, 6))
    probability, everything = rng.random(n_labels), oracle.all_sets(n_labels)
    loss = decisions.f_beta_of_counts(0.7, 0.3)
    table = decisions.loss_table(oracle.f_beta(0.7, 0.3), n_labels)
    law = decisions.independent_law(probability)
    enumerated = decisions.decide(table, law, np.arange(2**n_labels))
    counted = [decisions.risk_by_counting(probability, row, loss) for row in everything]
    listed = decisions.expected_losses(everything, law, everything, loss)
    np.testing.assert_allclose(counted, enumerated.risks, rtol=0, atol=1e-17)
    np.testing.assert_allclose(listed, enumerated.risks, rtol=0, atol=1e-17)
    by_size = decisions.risks_by_size(probability, loss)
    best = decisions.labels_in_order(probability, int(np.argmin(by_size)))
    assert best == enumerated.documented()
    assert decisions.second_by_size(probability, by_size, loss) == pytest.approx(
        enumerated.second(best), abs=1e-16
    )
    waegeman = decisions.f_beta_by_size(everything, law, 0.7, 0.3)
    np.testing.assert_allclose(waegeman, by_size, rtol=0, atol=1e-17)


@settings(max_examples=FEWER)
@given(data=st.data())
def test_the_recursion_over_a_tree_is_the_best_closed_set(data):
    rng, n_labels = data.draw(generators()), data.draw(st.integers(1, 6))
    parents, lengths = cases.random_parents(n_labels, rng), rng.uniform(0.2, 2.0, size=n_labels)
    probability = rng.random(n_labels)
    decision = decisions.decide(
        decisions.loss_table(oracle.tree_distance(parents, lengths), n_labels),
        decisions.independent_law(probability),
        decisions.allowed_numbers(n_labels, parents=parents),
    )
    gain = decisions.tree_gain(probability, parents, lengths) / lengths.sum()
    assert decision.risk_of(0) - gain == pytest.approx(float(decision.least), abs=1e-15)


# -------------------------------------------------------------- all label sets, all outcomes


@every_target
@given(data=st.data())
def test_no_allowed_set_has_less_risk(name, data):
    """Set, risk and second risk against 2^l sets and 2^l outcomes; refused if top k need not be
    best.
    """
    problem = data.draw(problems(name))
    probability = data.draw(probabilities(problem.n_labels))
    if problem.unclear:
        return
    if problem.refused:
        assert_refused(lambda: problem.decoder.decode(probability), "monotone")
        return
    answer = problem.decoder.decode(probability, return_risk=True)
    expected = [problem.decide(decisions.independent_law(row)) for row in probability]
    assert_optimal(answer, expected)
    np.testing.assert_array_equal(problem.decoder.decode(probability), answer.sets)


@in_turn("name", cases.EVERY_TARGET if THOROUGH else FORMS)
def test_no_allowed_set_of_seven_labels_has_less_risk(name):
    rng = np.random.default_rng(8)
    problem = problem_of(name, min(cases.MOST_LABELS.get(name, 7), 7), rng)
    probability = np.vstack(
        [rng.choice(GRID, size=(6, problem.n_labels)), random_rows(problem.n_labels, rng)]
    )
    if not problem.refused:
        answer = problem.decoder.decode(probability, return_risk=True)
        assert_optimal(
            answer, [problem.decide(decisions.independent_law(row)) for row in probability]
        )


def documented_answers(decision, probability) -> set[int] | None:
    """The lowest labels of the smallest best sets; or, if several sets of that size are best
    though their probabilities differ, the labels first in order of probability.
    """
    documented = decision.documented()
    if documented is None:
        return None
    size = documented.bit_count()
    ordered = {decisions.labels_in_order(probability, size, lowest) for lowest in (False, True)}
    return {documented} | (ordered & set(decision.ties()))


@every_target
@given(data=st.data())
def test_ties_go_to_the_smaller_set_and_the_lower_labels(name, data):
    problem = data.draw(problems(name))
    probability = data.draw(grid_probabilities(problem.n_labels, n_rows=8))
    if problem.unclear or problem.refused:
        return
    chosen = decisions.number_of(problem.decoder.decode(probability))
    for number, row in zip(chosen, probability, strict=True):
        decision = problem.decide(decisions.independent_law(row))
        answers = documented_answers(decision, row)
        assert answers is None or number in answers, (
            f"{row} gives {number:0{problem.n_labels}b}, but {decision.ties()} tie"
        )


def test_explicit_ties():
    """Half a chance is no reason to predict; of equal labels the lower ones come first."""
    half = np.full((1, 3), 0.5)
    np.testing.assert_array_equal(MinimumRisk("hamming").decode(half), [[0, 0, 0]])
    np.testing.assert_array_equal(MinimumRisk("subset").decode(half), [[0, 0, 0]])
    np.testing.assert_array_equal(MinimumRisk("precision@2").decode(half), [[1, 1, 0]])
    np.testing.assert_array_equal(
        MinimumRisk("recall@2").decode(np.array([[0.2, 0.7, 0.2, 0.2]])), [[1, 1, 0, 0]]
    )
    np.testing.assert_array_equal(
        MinimumRisk(FBeta(empty=0.0)).decode(np.zeros((1, 3))), [[0, 0, 0]]
    )


def test_ties_hold_where_sums_are_rounded():
    """Two children gain 1/6 each and their parent loses 1/3: no reason to predict any."""
    target = TreeDistance([1, -1, 1])
    answer = MinimumRisk(target).decode(np.array([[0.75, 0.0, 0.75]]), return_risk=True)
    np.testing.assert_allclose(answer.risk, answer.second_risk, rtol=0, atol=decisions.TIE)
    np.testing.assert_array_equal(answer.sets, [[0, 0, 0]])


@every_target
@settings(max_examples=FEWER)
@given(data=st.data())
def test_float32_is_optimal_to_its_precision(name, data):
    """Judged on the float32 numbers themselves."""
    problem = data.draw(problems(name, most_labels=5))
    probability = data.draw(probabilities(problem.n_labels)).astype(np.float32)
    if problem.unclear or problem.refused:
        return
    answer = problem.decoder.decode(probability, return_risk=True)
    expected = [
        problem.decide(decisions.independent_law(row)) for row in probability.astype(np.float64)
    ]
    assert_optimal(answer, expected, SINGLE)


@every_target
@settings(max_examples=FEWER)
@given(data=st.data())
def test_risk_of_any_set_is_the_enumerated_expectation(name, data):
    """Every allowed set against every row."""
    problem = data.draw(problems(name, most_labels=5))
    probability = data.draw(grid_probabilities(problem.n_labels))
    probability = np.vstack([probability, random_rows(problem.n_labels, np.random.default_rng(0))])
    if problem.unclear or problem.refused:
        return
    sets = oracle.all_sets(problem.n_labels)[problem.allowed]
    for row in probability:
        law = decisions.independent_law(row)
        repeated = np.tile(row, (len(sets), 1))
        actual = problem.decoder.risk(repeated, sets)
        assert actual.dtype == np.float64
        np.testing.assert_allclose(
            actual, oracle.as_float(problem.decide(law).risks), rtol=0, atol=EXACT
        )


@in_turn("name", TARGETS)
def test_a_target_is_taken_by_name(name):
    """Every registered name; the star stands for 2."""
    by_name = name.replace("*", "2")
    made = TARGETS[name]("2") if "*" in name else TARGETS[name]()
    probability = np.random.default_rng(1).random((20, 5))
    assert_same(
        MinimumRisk(by_name).decode(probability, return_risk=True),
        MinimumRisk(made).decode(probability, return_risk=True),
        tolerance=0,
    )


@in_turn("beta", [1e-3, 0.05, 0.3, 1.7, 20.0, 300.0])
@in_turn("empty", [0.0, 0.4, 1.0])
def test_f_of_any_beta_is_optimal(beta, empty):
    rng = np.random.default_rng(2)
    problem = Problem(cases.TargetCase(FBeta, oracle.f_beta, {"beta": beta, "empty": empty}), 5)
    probability = np.vstack([rng.choice(GRID, size=(8, 5)), random_rows(5, rng)])
    answer = problem.decoder.decode(probability, return_risk=True)
    assert_optimal(answer, [problem.decide(decisions.independent_law(row)) for row in probability])


def test_without_another_set_the_second_risk_is_infinite():
    for target in (PrecisionAtK(3), RecallAtK(3)):
        answer = MinimumRisk(target).decode(np.full((2, 3), 0.3), return_risk=True)
        assert np.isposinf(answer.second_risk).all()
        assert np.isfinite(answer.risk).all()
        np.testing.assert_array_equal(answer.sets, np.ones((2, 3)))


# ------------------------------------------------------------------------------- monotonicity


@dataclass(frozen=True)
class ByCounts:
    """A loss for each predicted size, true size and tp, as a function of the counts."""

    values: np.ndarray

    def __call__(self, tp, fp, fn, tn):
        n_pred, n_true = (np.rint(np.asarray(tp) + other).astype(int) for other in (fp, fn))
        last = self.values.shape[0] - 1
        return self.values[
            np.clip(n_pred, 0, last),
            np.clip(n_true, 0, last),
            np.clip(np.rint(tp).astype(int), 0, last),
        ]


def losses_by_counts(n_labels, rng, kind) -> ByCounts:
    """Random losses, put in order of tp: falling, rising, either by predicted size, or neither."""
    values = rng.random((n_labels + 1, n_labels + 1, n_labels + 1))
    if rng.integers(2):
        values = np.round(4 * values) / 4  # stretches where tp does not matter
    falling = -np.sort(-values, axis=2)
    if kind == "top":
        return ByCounts(falling)
    if kind == "bottom":
        return ByCounts(falling[:, :, ::-1].copy())
    if kind == "by size":
        rises = rng.integers(2, size=n_labels + 1).astype(bool)
        return ByCounts(np.where(rises[:, None, None], falling[:, :, ::-1], falling))
    if kind == "one true size against":
        size = int(rng.integers(n_labels + 1))
        falling[:, size] = falling[:, size, ::-1]
        return ByCounts(falling)
    return ByCounts(values)


COUNT_KINDS = ("top", "bottom", "by size", "one true size against", "any")


def assert_optimal_or_refused(problem, probability):
    if problem.unclear:
        return
    if problem.refused:
        assert_refused(lambda: problem.decoder.decode(probability), "monotone")
    else:
        answer = problem.decoder.decode(probability, return_risk=True)
        assert_optimal(
            answer, [problem.decide(decisions.independent_law(row)) for row in probability]
        )


@in_turn("kind", COUNT_KINDS)
@settings(max_examples=2 * settings.default.max_examples)
@given(data=st.data())
def test_functions_of_the_counts_are_decoded_exactly_if_monotone(kind, data):
    rng, n_labels = data.draw(generators()), data.draw(st.integers(1, 5))
    function = losses_by_counts(n_labels, rng, kind)
    case = cases.TargetCase(CountTarget, oracle.counts, {"function": function})
    problem = Problem(case, n_labels)
    if kind in ("top", "bottom", "by size"):
        assert not problem.refused
    assert_optimal_or_refused(problem, data.draw(probabilities(n_labels)))


@pytest.mark.parametrize("kind", ["whole", "real"])
@settings(max_examples=4 * settings.default.max_examples)
@given(data=st.data())
def test_fractions_are_decoded_exactly_if_monotone(kind, data):
    """0 <= numerator <= denominator, coefficient by coefficient: whole numbers hit 0/0 and ties."""
    rng, n_labels = data.draw(generators()), data.draw(st.integers(1, 5))
    if kind == "whole":
        denominator = rng.integers(0, 4, size=5)
        denominator[rng.integers(5)] += 1
        numerator = rng.integers(0, denominator + 1)
    else:
        denominator = rng.uniform(0.05, 2.0, size=5)
        numerator = denominator * rng.choice([0.0, 1.0, rng.random(), rng.random()], size=5)
    arguments = {
        "numerator": tuple(numerator.tolist()),
        "denominator": tuple(denominator.tolist()),
        "empty": float(rng.choice([0.0, 0.3, 1.0])),
    }
    problem = Problem(
        cases.TargetCase(LinearFractional, oracle.linear_fractional, arguments), n_labels
    )
    assert_optimal_or_refused(problem, data.draw(probabilities(n_labels)))


def test_a_loss_that_rises_with_hits_takes_the_least_probable_labels():
    """The share of labels that agree, as a loss: predict the opposite."""
    agree = LinearFractional([0, 1, 0, 0, 1], [0, 1, 1, 1, 1])
    probability = np.array([[0.9, 0.2, 0.6, 0.1]])
    np.testing.assert_array_equal(MinimumRisk(agree).decode(probability), [[0, 1, 0, 1]])


def test_a_loss_that_is_not_monotone_is_refused_at_decoding_only():
    """The message says that the top k need not be best; making the decoder is no error."""
    odd = CountTarget(lambda tp, fp, fn, tn: (np.asarray(tp) % 2 == 1) * 1.0)
    decoder = MinimumRisk(odd)
    assert_refused(lambda: decoder.decode(np.full((1, 4), 0.5)), "monotone", "top")
    assert_refused(
        lambda: decoder.decode(scipy.sparse.csr_array(np.full((1, 4), 0.5))), "monotone", "top"
    )
    # One label leaves no choice of labels at a given size.
    np.testing.assert_array_equal(decoder.decode(np.array([[0.5]])), [[0]])


def test_a_function_is_asked_only_for_counts_that_occur():
    def careful(tp, fp, fn, tn):
        counts = np.array([np.broadcast_to(count, np.shape(tp)) for count in (tp, fp, fn, tn)])
        assert (counts >= 0).all()
        assert (counts.sum(axis=0) == 4).all()
        return (fp + fn) / 4.0

    probability = np.random.default_rng(3).random((5, 4))
    np.testing.assert_array_equal(
        MinimumRisk(CountTarget(careful)).decode(probability), probability > 0.5
    )


# ---------------------------------------------------------------------------------- many labels


def spread(values, total):
    """Scaled to a given sum, within [0, 1]."""
    return np.minimum(values * total / values.sum(), 1.0)


SHAPES = {
    "all tiny": lambda n, rng: rng.uniform(0.0, 1e-3, n),
    "all near 1": lambda n, rng: 1.0 - rng.uniform(0.0, 1e-3, n),
    "uniform": lambda n, rng: rng.random(n),
    "one large, many small": lambda n, rng: np.append(rng.uniform(0.0, 0.02, n - 1), 0.95),
    "mean near 50": lambda n, rng: spread(rng.random(n), 50.0),
    "grid": lambda n, rng: rng.choice(GRID, size=n),
    "few certain, many impossible": lambda n, rng: (rng.random(n) < 0.05) * rng.choice([1, 0.9], n),
    "steep": lambda n, rng: 0.9 ** np.arange(n),
}
every_shape = in_turn("shape", SHAPES)

FRACTIONS = {
    "f1": (FBeta(), decisions.f_beta_of_counts()),
    "f2": (FBeta(2.0), decisions.f_beta_of_counts(2.0)),
    "f0.5": (FBeta(0.5), decisions.f_beta_of_counts(0.5)),
    "f0.05": (FBeta(0.05), decisions.f_beta_of_counts(0.05)),
    "f12.3 empty 0": (FBeta(12.3, empty=0.0), decisions.f_beta_of_counts(12.3, 0.0)),
    "jaccard": (Jaccard(), decisions.jaccard_of_counts()),
    "jaccard empty 0": (Jaccard(empty=0.0), decisions.jaccard_of_counts(0.0)),
}


def assert_best_by_counting(answer, probability, loss, tolerance=1e-9):
    """Risk, second risk and the best value of each row, against the law of the counts."""
    for row, values in enumerate(probability):
        risks = decisions.risks_by_size(values, loss)
        risk = decisions.risk_by_counting(values, answer.sets[row], loss)
        assert risk <= risks.min() + tolerance
        assert answer.risk[row] == pytest.approx(float(risk), rel=0, abs=tolerance)
        assert answer.second_risk[row] == pytest.approx(
            float(decisions.second_by_size(values, risks, loss)), rel=0, abs=tolerance
        )


@every_shape
@in_turn("name", FRACTIONS)
def test_many_labels_against_the_law_of_the_counts(name, shape):
    target, loss = FRACTIONS[name]
    for n_labels in (40, 90):
        rng = np.random.default_rng(n_labels)
        probability = SHAPES[shape](n_labels, rng)[None, :]
        answer = MinimumRisk(target).decode(probability, return_risk=True)
        assert_best_by_counting(answer, probability, loss)


@every_shape
def test_two_hundred_labels_against_the_law_of_the_counts(shape):
    target, loss = FRACTIONS["f1"]
    probability = SHAPES[shape](200, np.random.default_rng(200))[None, :]
    answer = MinimumRisk(target).decode(probability, return_risk=True)
    assert_best_by_counting(answer, probability, loss)


OTHER_FRACTIONS = {
    "tversky": ((0, 0, 0.3, 0.7, 0), (0, 1, 0.3, 0.7, 0)),
    "f1 of the negatives": ((0, 0, 1, 1, 0), (0, 0, 1, 1, 2)),
    "smoothed f1": ((0, 0, 1, 1, 0), (1, 2, 1, 1, 0)),
    "mixed signs": ((0, 0, 1, 1, 0), (0, 3, 1, 1, 2)),
    "precision empty 0": ((0, 0, 1, 0, 0), (0, 1, 1, 0, 0), 0.0),
    "recall": ((0, 0, 0, 1, 0), (0, 1, 0, 1, 0)),
    "specificity": ((0, 0, 1, 0, 0), (0, 0, 1, 0, 1)),
    "irrational": (
        (0.1, 0, 2**0.5, np.pi / 2, 0.2),
        (0.5, np.e, 2**0.5 + 0.1, np.pi / 2, 5**-0.5),
    ),
}


@every_shape
@in_turn("name", OTHER_FRACTIONS)
def test_other_fractions_against_the_law_of_the_counts(name, shape):
    probability = SHAPES[shape](50, np.random.default_rng(50))[None, :]
    loss = decisions.fraction_of_counts(*OTHER_FRACTIONS[name])
    answer = MinimumRisk(LinearFractional(*OTHER_FRACTIONS[name])).decode(
        probability, return_risk=True
    )
    assert_best_by_counting(answer, probability, loss)


@every_shape
@in_turn("name", cases.COUNT_NAMES)
def test_functions_of_the_counts_against_the_law_of_the_counts(name, shape):
    probability = SHAPES[shape](50, np.random.default_rng(51))[None, :]
    target = cases.TARGETS[name](None, None).target
    answer = MinimumRisk(target).decode(probability, return_risk=True)
    assert_best_by_counting(answer, probability, target.measure(50, "loss").function)


@in_turn("total", [0.5, 12.0, 60.0, 400.0])
@in_turn("name", ["f1", "f2", "f0.5", "jaccard"])
def test_a_thousand_labels_cannot_be_improved_by_one(name, total):
    """The risk is the counted one, and neither a label more nor one less is better."""
    target, loss = FRACTIONS[name]
    probability = spread(np.random.default_rng(9).random(1000) ** 3, total)
    order = np.argsort(-probability, kind="stable")
    answer = MinimumRisk(target).decode(probability[None, :], return_risk=True)
    size = int(answer.sets.sum())
    np.testing.assert_array_equal(np.flatnonzero(answer.sets[0]), np.sort(order[:size]))
    risks = []
    for near in (size, size - 1, size + 1):
        predicted = np.zeros(1000, dtype=int)
        predicted[order[: min(max(near, 0), 1000)]] = 1
        risks.append(float(decisions.risk_by_counting(probability, predicted, loss)))
    assert risks[0] <= min(risks) + 1e-9
    assert answer.risk[0] == pytest.approx(risks[0], rel=0, abs=1e-9)


def test_the_best_closed_set_of_many_labels():
    """TreeDistance against the recursion over the tree, and against every set one label away."""
    rng = np.random.default_rng(10)
    for n_labels in (50, 200):
        parents = cases.random_parents(n_labels, rng, n_roots=3)
        lengths = rng.uniform(0.2, 2.0, size=n_labels)
        probability = rng.random((10, n_labels))
        decoder = MinimumRisk(TreeDistance(parents, lengths))
        answer = decoder.decode(probability, return_risk=True)
        for row, values in enumerate(probability):
            chosen = answer.sets[row]
            assert decisions.is_closed(chosen.tolist(), parents)
            empty = (lengths * values).sum() / lengths.sum()
            gain = float(decisions.tree_gain(values, parents, lengths)) / lengths.sum()
            own = (lengths * np.where(chosen == 1, 1 - values, values)).sum() / lengths.sum()
            assert own == pytest.approx(empty - gain, abs=1e-12)
            assert answer.risk[row] == pytest.approx(own, abs=1e-12)
            assert answer.second_risk[row] >= answer.risk[row] - 1e-12


@in_turn("dtype", [np.float32, np.float64])
@in_turn("seed", range(5))
def test_ties_of_closed_sets_are_left_out_exactly(seed, dtype):
    """Many labels whose gains are fractions, many of them 0: set, risk and second risk."""
    rng = np.random.default_rng(seed)
    parents = cases.random_parents(300, rng, n_roots=3)
    lengths = rng.integers(1, 4, size=300).astype(float)
    probability = rng.integers(0, 9, size=(3, 300)) / 8.0
    answer = MinimumRisk(TreeDistance(parents, lengths)).decode(
        probability.astype(dtype), return_risk=True
    )
    for row, values in enumerate(probability):
        chosen, risk, gap = decisions.best_closed_set(values, parents, lengths)
        np.testing.assert_array_equal(answer.sets[row], chosen)
        assert answer.risk[row] == pytest.approx(float(risk), abs=1e-13)
        assert answer.second_risk[row] == pytest.approx(float(risk + gap), abs=1e-13)


CERTAIN_TARGETS = {
    "hamming": Hamming(),
    "f1": FBeta(),
    "f2 empty 0": FBeta(2.0, empty=0.0),
    "f0.3": FBeta(0.3, empty=0.5),
    "jaccard": Jaccard(),
    "jaccard empty 0": Jaccard(empty=0.0),
    "subset": ZeroOne(),
}
every_certain_target = in_turn("target", CERTAIN_TARGETS.values(), ids=CERTAIN_TARGETS)


@every_certain_target
def test_a_certain_outcome_is_returned(target):
    rng = np.random.default_rng(11)
    for n_labels in (1, 7, 50, 300):
        share = rng.choice([0.0, 0.05, 0.5, 1.0], size=(12, 1))
        outcome = (rng.random((12, n_labels)) < share).astype(np.float64)
        answer = MinimumRisk(target).decode(outcome, return_risk=True)
        np.testing.assert_array_equal(answer.sets, outcome)
        np.testing.assert_allclose(
            answer.risk, target.loss(outcome.astype(int), outcome.astype(int)), atol=EXACT
        )


@every_certain_target
def test_an_impossible_label_changes_nothing(target):
    """Wherever it is inserted; Hamming counts it in its denominator."""
    rng = np.random.default_rng(12)
    for n_labels in (5, 50, 200):
        probability = rng.random((6, n_labels)) ** 2
        place = int(rng.integers(n_labels + 1))
        before = MinimumRisk(target).decode(probability, return_risk=True)
        after = MinimumRisk(target).decode(
            np.insert(probability, place, 0.0, axis=1), return_risk=True
        )
        np.testing.assert_array_equal(after.sets, np.insert(before.sets, place, 0, axis=1))
        scale = n_labels / (n_labels + 1) if isinstance(target, Hamming) else 1.0
        np.testing.assert_allclose(after.risk, scale * before.risk, rtol=0, atol=1e-10)


@in_turn(
    "target",
    [*CERTAIN_TARGETS.values(), PrecisionAtK(4), RecallAtK(4), Hamming(np.arange(1, 81))],
    ids=[*CERTAIN_TARGETS, "precision@4", "recall@4", "weighted hamming"],
)
def test_permuted_labels_give_the_permuted_answer(target):
    rng = np.random.default_rng(13)
    probability, order = rng.random((10, 80)), rng.permutation(80)
    weights = getattr(target, "weights", None)
    moved = target if weights is None else Hamming(weights[order])
    before = MinimumRisk(target).decode(probability, return_risk=True)
    after = MinimumRisk(moved).decode(probability[:, order], return_risk=True)
    np.testing.assert_array_equal(after.sets, before.sets[:, order])
    np.testing.assert_allclose(after.risk, before.risk, rtol=0, atol=1e-10)
    np.testing.assert_allclose(after.second_risk, before.second_risk, rtol=0, atol=1e-10)


@pytest.mark.parametrize("beta", [0.3, 1.0, 2.0])
@given(data=st.data())
def test_raising_a_probability_never_removes_the_label(beta, data):
    """With label i in the set, E[F] rises with p_i; without it, it falls."""
    rng, n_labels = data.draw(generators()), data.draw(st.integers(50, 300))
    probability = rng.random(n_labels) ** rng.choice([0.5, 1.0, 4.0])
    label = int(rng.integers(n_labels))
    raised = np.tile(probability, (6, 1))
    raised[:, label] = np.sort(rng.uniform(probability[label], 1.0, size=6))
    raised[0, label] = probability[label]
    chosen = MinimumRisk(FBeta(beta)).decode(raised)[:, label].astype(int)
    assert (np.diff(chosen) >= 0).all()


# ---------------------------------------------------------------------------------- sparse rows


def scrambled(matrix, rng):
    """The same CSR array with unsorted indices and some zeros stored."""
    full = np.asarray(matrix)
    data, indices, indptr = [], [], [0]
    for row in full:
        stored = np.flatnonzero((row != 0) | (rng.random(len(row)) < 0.3))
        stored = rng.permutation(stored)
        data.extend(row[stored])
        indices.extend(stored)
        indptr.append(len(indices))
    return scipy.sparse.csr_array(
        (np.array(data, dtype=full.dtype), np.array(indices), np.array(indptr)), shape=full.shape
    )


def sparse_probabilities(n_rows, n_labels, rng):
    """Rows with few entries, one without any, one full."""
    probability = rng.choice(GRID, size=(n_rows, n_labels)) * rng.random((n_rows, n_labels))
    probability[rng.random(probability.shape) < 0.6] = 0.0
    probability[0], probability[1] = 0.0, rng.random(n_labels)
    probability[2] = rng.choice(GRID, size=n_labels)
    return probability


def assert_canonical_sets(sets):
    assert isinstance(sets, scipy.sparse.csr_array)
    assert sets.dtype == np.uint8
    assert (sets.data == 1).all()
    assert sets.copy().has_sorted_indices
    assert sets.nnz == len(set(zip(*sets.nonzero(), strict=True)))


@every_target
def test_sparse_rows_are_decoded_as_dense_rows(name):
    """Arrays and matrices, sorted or not, with zeros stored or not, float64 and float32."""
    rng = np.random.default_rng(14)
    problem = problem_of(name, cases.MOST_LABELS.get(name, 7), rng)
    if problem.unclear or problem.refused:
        return  # refused for this draw
    probability = sparse_probabilities(12, problem.n_labels, rng)
    expected = problem.decoder.decode(probability, return_risk=True)
    for given_as in (
        scipy.sparse.csr_array(probability),
        scipy.sparse.csr_matrix(probability),
        scrambled(probability, rng),
    ):
        answer = problem.decoder.decode(given_as, return_risk=True)
        assert_canonical_sets(answer.sets)
        assert_same(answer, expected, 1e-10)
        assert_canonical_sets(problem.decoder.decode(given_as))
        np.testing.assert_allclose(
            problem.decoder.risk(given_as, answer.sets), expected.risk, rtol=0, atol=1e-10
        )
    single = probability.astype(np.float32)
    assert_same(
        problem.decoder.decode(scipy.sparse.csr_array(single), return_risk=True),
        problem.decoder.decode(single, return_risk=True),
        SINGLE,
    )


@pytest.mark.parametrize(
    "target",
    [*CERTAIN_TARGETS.values(), PrecisionAtK(5), RecallAtK(5)],
    ids=[*CERTAIN_TARGETS, "precision@5", "recall@5"],
)
def test_many_sparse_labels_are_decoded_as_dense_ones(target):
    rng = np.random.default_rng(15)
    probability = sparse_probabilities(40, 150, rng)
    assert_same(
        MinimumRisk(target).decode(scrambled(probability, rng), return_risk=True),
        MinimumRisk(target).decode(probability, return_risk=True),
        1e-10,
    )


def test_rows_with_fewer_entries_than_k_take_the_lowest_other_labels():
    probability = scipy.sparse.csr_array(np.array([[0, 0, 0, 0, 0.4], [0, 0, 0, 0, 0], [0.1] * 5]))
    for target in ("precision@3", "recall@3"):
        np.testing.assert_array_equal(
            MinimumRisk(target).decode(probability).toarray(),
            [[1, 1, 0, 0, 1], [1, 1, 1, 0, 0], [1, 1, 1, 0, 0]],
        )


@pytest.mark.parametrize("name", ["hamming", "f1", "jaccard", "subset", "precision@1", "recall@1"])
def test_entries_given_twice_are_added_or_refused(name):
    probability = scipy.sparse.csr_array(
        (np.array([0.3, 0.4, 0.3]), np.array([1, 2, 1]), np.array([0, 3])), shape=(1, 4)
    )
    try:
        answer = MinimumRisk(name).decode(probability, return_risk=True)
    except ValueError:
        return
    summed = np.array([[0.0, 0.6, 0.4, 0.0]])
    assert_same(answer, MinimumRisk(name).decode(summed, return_risk=True), 1e-10)


WIDE = (10_000, 30_000, 100)


@pytest.fixture(scope="module")
def wide_probabilities():
    """10,000 rows of 30,000 labels with 100 entries each."""
    n_rows, n_labels, entries = WIDE
    rng = np.random.default_rng(16)
    step = n_labels // entries
    columns = np.arange(entries) * step + rng.integers(step, size=(n_rows, entries))
    values = rng.random((n_rows, entries)) ** 4
    return scipy.sparse.csr_array(
        (values.ravel(), columns.ravel(), np.arange(0, n_rows * entries + 1, entries)),
        shape=(n_rows, n_labels),
    )


@pytest.mark.parametrize("name", ["f1", "jaccard", "hamming", "subset", "precision@5"])
def test_wide_sparse_rows_need_no_dense_copy(name, wide_probabilities):
    """The peak stays far below the 300 MB of one byte for each label."""
    decoder = MinimumRisk(name)
    decoder.decode(wide_probabilities[:3], return_risk=True)  # what is compiled, is compiled now
    tracemalloc.start()
    try:
        answer = decoder.decode(wide_probabilities, return_risk=True)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 120e6, f"peak {peak / 1e6:.0f} MB"
    assert_canonical_sets(answer.sets)
    for row in (0, 1, 4_321, 9_999):
        start, stop = wide_probabilities.indptr[row : row + 2]
        labels = wide_probabilities.indices[start:stop]
        narrow = decoder.decode(wide_probabilities.data[None, start:stop], return_risk=True)
        chosen = answer.sets.indices[answer.sets.indptr[row] : answer.sets.indptr[row + 1]]
        np.testing.assert_array_equal(np.sort(chosen), labels[narrow.sets[0] == 1])
        scale = len(labels) / WIDE[1] if name == "hamming" else 1.0
        assert answer.risk[row] == pytest.approx(scale * narrow.risk[0], rel=0, abs=1e-10)


# ------------------------------------------------------------------- a posterior over listed sets


def posteriors(n_sets, rng, n_rows=6):
    """Rows that sum to 1: from whole numbers (ties), with zeros, spread out, certain."""
    whole = rng.integers(0, 3, size=(3, n_sets)).astype(float)
    whole[:, rng.integers(n_sets)] += 1.0
    spread_out = rng.dirichlet(np.full(n_sets, 0.3), size=n_rows - 4) + 1e-300
    certain = np.eye(n_sets)[[rng.integers(n_sets)]]
    rows = np.vstack([whole, spread_out, certain])
    return rows / rows.sum(axis=1, keepdims=True)


@dataclass(frozen=True)
class Listing:
    """A problem with listed outcomes and posteriors over them."""

    problem: Problem
    sets: np.ndarray
    posterior: np.ndarray

    @property
    def numbers(self) -> np.ndarray:
        return decisions.number_of(self.sets)

    def decide(self, candidates) -> list[decisions.Decision]:
        return [
            decisions.decide(self.problem.table, decisions.listed_law(self.sets, row), candidates)
            for row in self.posterior
        ]

    def decode(self, over):
        return self.problem.decoder.decode_catalog(
            self.posterior, self.sets, over=over, return_risk=True
        )


@st.composite
def listings(draw, name, members_only):
    """`members_only` lists only sets that may be predicted."""
    problem = draw(problems(name, most_labels=5))
    rng = draw(generators())
    numbers = problem.allowed if members_only else np.arange(2**problem.n_labels)
    n_sets = int(rng.integers(1, min(12, len(numbers)) + 1))
    sets = oracle.all_sets(problem.n_labels)[rng.permutation(numbers)[:n_sets]]
    return Listing(problem, sets, posteriors(n_sets, rng))


@every_target
@given(data=st.data())
def test_no_listed_set_has_less_risk(name, data):
    """Any target, monotone or not; ties go to the earlier row."""
    listing = data.draw(listings(name, members_only=True))
    answer, expected = listing.decode("list"), listing.decide(listing.numbers)
    assert_optimal(answer, expected)
    for number, decision in zip(decisions.number_of(answer.sets), expected, strict=True):
        ties = decision.ties()
        assert ties is None or number == ties[0]
    default = listing.problem.decoder.decode_catalog(listing.posterior, listing.sets)
    np.testing.assert_array_equal(default, answer.sets)


@every_target
@given(data=st.data())
def test_no_set_one_label_from_a_listed_one_has_less_risk(name, data):
    """Precision and recall at k may refuse; tree distance keeps to closed sets."""
    listing = data.draw(listings(name, members_only=True))
    near = decisions.edits(listing.numbers, listing.problem.n_labels)
    closed = near[np.isin(near, listing.problem.allowed)]
    if name in cases.AT_K_TARGETS:
        try:
            answer = listing.decode("edits")
        except ValueError:
            return
        assert_optimal(answer, listing.decide(closed))
        return
    answer = listing.decode("edits")
    if name in cases.TREE_NAMES:
        assert_optimal(answer, listing.decide(closed))
        return
    assert_optimal(answer, listing.decide(near))


ADDITIVE = (
    oracle.hamming,
    oracle.cost_sensitive,
    oracle.tree_distance,
    oracle.precision_at_k,
    oracle.recall_at_k,
)
OVER_ALL = (oracle.f_beta, oracle.subset, *ADDITIVE)


@every_target
@given(data=st.data())
def test_no_set_at_all_has_less_risk_under_a_listed_posterior(name, data):
    """F-beta (Waegeman et al. 2014), additive targets and 0/1; the others refuse. The listed sets
    need not be sets that may be predicted.
    """
    listing = data.draw(listings(name, members_only=False))
    if listing.problem.target.describe not in OVER_ALL:
        assert_refused(lambda: listing.decode("all"), "list", "edits")
        return
    assert_optimal(listing.decode("all"), listing.decide(listing.problem.allowed))


@in_turn("name", [name for name in cases.EVERY_TARGET if name != "table"])
@given(data=st.data())
def test_ties_over_all_sets_go_to_the_smaller_set_and_the_lower_labels(name, data):
    """Posteriors in quarters and eighths, so that equal risks are equal numbers."""
    listing = data.draw(listings(name, members_only=False))
    if listing.problem.target.describe not in OVER_ALL:
        return
    n_sets = min(4, len(listing.sets))
    shares = {1: [1.0], 2: [0.5, 0.5], 3: [0.25, 0.5, 0.25], 4: [0.25, 0.25, 0.25, 0.25]}[n_sets]
    tied = Listing(listing.problem, listing.sets[:n_sets], np.array([shares]))
    answer, expected = tied.decode("all"), tied.decide(tied.problem.allowed)[0]
    documented = expected.documented()
    assert documented is None or decisions.number_of(answer.sets)[0] == documented, (
        f"{answer.sets[0]}, but {expected.ties()} tie"
    )


def test_a_table_of_the_listed_sets_alone_is_enough_for_the_list():
    """The order of the table is not that of the list."""
    rng = np.random.default_rng(17)
    sets = oracle.all_sets(6)[rng.permutation(64)[:9]]
    order = rng.permutation(9)
    losses = rng.random((9, 9))
    target = TableTarget(sets[order], losses)
    posterior = rng.dirichlet(np.ones(9), size=20)
    answer = MinimumRisk(target).decode_catalog(posterior, sets, return_risk=True)
    place = np.argsort(order)
    risks = posterior @ losses[np.ix_(place, place)].T
    np.testing.assert_array_equal(answer.sets, sets[risks.argmin(axis=1)])
    np.testing.assert_allclose(answer.risk, risks.min(axis=1), atol=1e-12)
    np.testing.assert_allclose(answer.second_risk, np.sort(risks, axis=1)[:, 1], atol=1e-12)


def test_a_single_listed_set_has_no_second():
    sets = np.array([[1, 0, 1]])
    answer = MinimumRisk("f1").decode_catalog(np.ones((2, 1)), sets, return_risk=True)
    np.testing.assert_array_equal(answer.sets, [[1, 0, 1], [1, 0, 1]])
    assert np.isposinf(answer.second_risk).all()
    np.testing.assert_allclose(answer.risk, 0.0, atol=1e-12)


@pytest.mark.parametrize("beta", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("empty", [0.0, 1.0])
def test_f_beta_over_all_sets_of_many_labels(beta, empty):
    """100 listed sets of 60 labels: against the best labels of each size, by the formula."""
    rng = np.random.default_rng(18)
    sets = np.unique((rng.random((100, 60)) < rng.uniform(0, 0.2, size=(100, 1))), axis=0)
    sets = sets.astype(int)
    posterior = rng.dirichlet(np.full(len(sets), 0.05), size=12)
    target, loss = FBeta(beta, empty), decisions.f_beta_of_counts(beta, empty)
    answer = MinimumRisk(target).decode_catalog(posterior, sets, over="all", return_risk=True)
    listed = MinimumRisk(target).decode_catalog(posterior, sets, over="list", return_risk=True)
    edited = MinimumRisk(target).decode_catalog(posterior, sets, over="edits", return_risk=True)
    for row, shares in enumerate(posterior):
        own = decisions.expected_losses(sets, shares, answer.sets[[row]], loss)[0]
        least = decisions.f_beta_by_size(sets, shares, beta, empty).min()
        assert own <= least + EXACT
        assert answer.risk[row] == pytest.approx(float(own), rel=0, abs=EXACT)
        risks = decisions.expected_losses(sets, shares, sets, loss)
        assert listed.risk[row] == pytest.approx(float(risks.min()), rel=0, abs=EXACT)
        near = (sets[:, None, :] ^ np.eye(60, dtype=int)).reshape(-1, 60)
        if row == 0:
            near_risks = decisions.expected_losses(sets, shares, near, loss)
            best = min(float(near_risks.min()), float(risks.min()))
            assert edited.risk[row] == pytest.approx(best, rel=0, abs=EXACT)
    assert (answer.risk <= edited.risk + EXACT).all()
    assert (edited.risk <= listed.risk + EXACT).all()


@pytest.mark.parametrize("over", ["list", "edits", "all"])
def test_many_posteriors_are_decoded_row_by_row(over):
    rng = np.random.default_rng(19)
    sets = oracle.all_sets(8)[rng.permutation(256)[:50]]
    posterior = rng.dirichlet(np.full(50, 0.2), size=5000)
    decoder = MinimumRisk("f1")
    together = decoder.decode_catalog(posterior, sets, over=over, return_risk=True)
    for row in (0, 1, 2_500, 4_999):
        alone = decoder.decode_catalog(posterior[[row]], sets, over=over, return_risk=True)
        np.testing.assert_array_equal(alone.sets[0], together.sets[row])
        assert alone.risk[0] == pytest.approx(together.risk[row], abs=1e-13)
        assert alone.second_risk[0] == pytest.approx(together.second_risk[row], abs=1e-13)


# ------------------------------------------------------------------------------ scores on a space


def candidates_on(problem: Problem, case: cases.SpaceCase) -> np.ndarray:
    """All allowed sets where that is exact, else the sets of the space in their order."""
    everywhere = case.make in (Cube, Sized, Slice) or problem.target.describe in OVER_ALL
    return problem.allowed if everywhere else decisions.number_of(case.oracle.sets)


def at_any_k(make, describe):
    """A size that need not be a size of the space."""
    return lambda rng, case: cases.TargetCase(
        make, describe, {"k": int(rng.integers(1, case.n_labels + 1))}
    )


ANY_K = {
    "precision@any k": at_any_k(PrecisionAtK, oracle.precision_at_k),
    "recall@any k": at_any_k(RecallAtK, oracle.recall_at_k),
}
SCORE_PAIRS = [
    *cases.PAIRS,
    *((name, space) for name in cases.COUNT_NAMES for space in cases.FOREST_NAMES),
    *((name, space) for name in ANY_K for space in cases.SPACES),
]


@in_turn("group", cases.by_space(SCORE_PAIRS), ids=cases.group_id)
@settings(max_examples=FEWER)
@given(data=st.data())
def test_no_set_has_less_risk_under_the_law_of_the_scores(group, data):
    """s(y) = exp(z(y) - A) over the space, against all sets where the decoder is exact."""
    space_name, target_names = group
    rng = data.draw(generators())
    case = cases.EVERY_SPACE[space_name](data.draw(st.integers(2, 4)), rng)
    scores = data.draw(score_arrays(3, case.n_scores, largest=20.0))
    laws = [
        decisions.listed_law(case.oracle.sets, oracle.set_probability(case.oracle, row))
        for row in scores
    ]
    for name in target_names:
        problem = Problem((cases.EVERY_TARGET | ANY_K)[name](rng, case), case.n_labels)
        if not problem.unclear:
            with told(target=name):
                assert_optimal_on(problem, case, scores, laws)


def assert_optimal_on(problem, case, scores, laws):
    """Against the candidates on the space; refused where the top k need not be best."""
    if problem.refused and case.make in (Cube, Sized, Slice):
        assert_refused(lambda: problem.decoder.decode_scores(scores, case.space), "monotone")
        return
    answer = problem.decoder.decode_scores(scores, case.space, return_risk=True)
    table = table_of(problem.target, case.n_labels, problem.target.oracle_on(case))
    candidates = candidates_on(problem, case)
    assert_optimal(answer, [decisions.decide(table, law, candidates) for law in laws])
    np.testing.assert_array_equal(problem.decoder.decode_scores(scores, case.space), answer.sets)


@every_target
def test_scores_on_the_cube_are_decoded_by_their_marginals(name):
    rng = np.random.default_rng(20)
    problem = problem_of(name, 5, rng)
    if problem.unclear or problem.refused:
        return  # refused for this draw
    scores, space = rng.normal(scale=2, size=(30, 5)), Cube(5)
    assert_same(
        problem.decoder.decode_scores(scores, space, return_risk=True),
        problem.decoder.decode(space.marginals(scores), return_risk=True),
        1e-10,
    )


LARGE_SIZED = {
    "sized": Sized(36, np.array([0.3, -0.2, 0.5, -np.inf, 0.1])),
    "slice": Slice(30, 3),
}
LARGE_LOSSES = {
    "f1": FRACTIONS["f1"],
    "f2": FRACTIONS["f2"],
    "jaccard": FRACTIONS["jaccard"],
    "tversky": (
        LinearFractional(*OTHER_FRACTIONS["tversky"]),
        decisions.fraction_of_counts(*OTHER_FRACTIONS["tversky"]),
    ),
    "geometric mean": (CountTarget(cases.geometric_mean_loss), cases.geometric_mean_loss),
}


@pytest.fixture(scope="module")
def large_sized_sets():
    return {name: space.enumerate().astype(int) for name, space in LARGE_SIZED.items()}


@pytest.mark.parametrize("space_name", LARGE_SIZED)
@pytest.mark.parametrize("name", LARGE_LOSSES)
def test_scores_on_a_large_sized_space(name, space_name, large_sized_sets):
    """The top labels of every size, against all sets of the space: 67,000 and 4,060."""
    target, loss = LARGE_LOSSES[name]
    space, outcomes = LARGE_SIZED[space_name], large_sized_sets[space_name]
    scores = np.random.default_rng(21).normal(loc=-0.8, size=(1, space.n_labels))
    answer = MinimumRisk(target).decode_scores(scores, space, return_risk=True)
    bias = space.bias[outcomes.sum(axis=1)]
    z = ((2 * outcomes - 1) @ scores[0].astype(np.longdouble)) + bias
    law = np.exp(z - oracle.log_sum_exp(z))
    order = np.argsort(-scores[0])
    tops = np.zeros((space.n_labels + 1, space.n_labels), dtype=int)
    for size in range(space.n_labels + 1):
        tops[size, order[:size]] = 1
    risks = decisions.expected_losses(outcomes, law, np.vstack([tops, answer.sets]), loss)
    assert risks[-1] <= risks.min() + EXACT
    assert answer.risk[0] == pytest.approx(float(risks[-1]), rel=0, abs=EXACT)
    best = int(np.argmin(risks[:-1]))
    swapped = tops[best].copy()
    if 0 < best < space.n_labels:
        swapped[order[best - 1]], swapped[order[best]] = 0, 1
        second = decisions.expected_losses(outcomes, law, swapped[None, :], loss)[0]
    else:
        second = np.inf
    second = min(second, np.delete(risks[:-1], best).min())
    assert answer.second_risk[0] == pytest.approx(float(second), rel=0, abs=EXACT)


def test_a_long_chain_without_potentials_is_a_cube():
    """Additive targets and 0/1 are exact on forests too large to list."""
    rng = np.random.default_rng(22)
    scores = rng.normal(size=(20, 60))
    parents = [-1, *range(59)]
    for target in (Hamming(), Hamming(rng.random(60)), ZeroOne(), PrecisionAtK(7)):
        assert_same(
            MinimumRisk(target).decode_scores(scores, Forest.chain(60), return_risk=True),
            MinimumRisk(target).decode_scores(scores, Cube(60), return_risk=True),
            1e-10,
        )
    target = MinimumRisk(TreeDistance(parents))
    assert_same(
        target.decode_scores(scores, Forest.chain(60), return_risk=True),
        target.decode_scores(scores, Cube(60), return_risk=True),
        1e-10,
    )


def test_the_mode_of_a_long_chain_is_its_most_likely_set():
    rng = np.random.default_rng(23)
    space = Forest.chain(60, potentials=rng.normal(size=(60, 2, 2)))
    scores = rng.normal(size=(20, 60))
    answer = MinimumRisk("subset").decode_scores(scores, space, return_risk=True)
    mode = space.most_likely(scores)
    np.testing.assert_array_equal(answer.sets, mode)
    potential = space.potentials[np.arange(1, 60), mode[:, 1:], mode[:, :-1]].sum(axis=1)
    z = ((2.0 * mode - 1.0) * scores).sum(axis=1) + potential
    np.testing.assert_allclose(answer.risk, 1 - np.exp(z - space.log_partition(scores)), atol=1e-10)
    # No set that differs in a run of labels has a risk below the second.
    for row in range(3):
        weights = []
        for start in range(60):
            for stop in range(start + 1, 61):
                other = mode[row].copy()
                other[start:stop] ^= 1
                joint = space.potentials[np.arange(1, 60), other[1:], other[:-1]].sum()
                weights.append(((2.0 * other - 1.0) * scores[row]).sum() + joint)
        # The second most likely set differs in a run: two separate runs would each have to help.
        second = 1 - np.exp(max(weights) - space.log_partition(scores)[row])
        assert answer.second_risk[row] == pytest.approx(second, abs=1e-10)


# ------------------------------------------------------------------ most likely, and the highest k


@in_turn("name", cases.EVERY_SPACE)
@settings(max_examples=FEWER)
@given(data=st.data())
def test_the_most_likely_set_is_the_one_of_the_space(name, data):
    case = cases.EVERY_SPACE[name](data.draw(st.integers(2, 6)), data.draw(generators()))
    scores = data.draw(score_arrays(4, case.n_scores))
    chosen = MostLikely(case.space).decode(scores)
    assert chosen.dtype == np.uint8
    np.testing.assert_array_equal(chosen, case.space.most_likely(scores))


@given(data=st.data())
def test_the_highest_scores_lower_labels_first(data):
    n_labels = data.draw(st.integers(1, 8))
    k = data.draw(st.integers(1, n_labels))
    values = st.sampled_from((-2.0, -0.5, 0.0, 0.5, 3.0))
    scores = data.draw(hnp.arrays(np.float64, (5, n_labels), elements=values))
    expected = np.zeros(scores.shape, dtype=int)
    for row, values in enumerate(scores):
        best = sorted(range(n_labels), key=lambda label: (-values[label], label))[:k]
        expected[row, best] = 1
    chosen = TopK(k).decode(scores)
    assert chosen.dtype == np.uint8
    np.testing.assert_array_equal(chosen, expected)
    np.testing.assert_array_equal(TopK(k).decode(scores.astype(np.float32)), expected)
    # What is not stored is 0: above the negative scores.
    rng = data.draw(generators())
    for given_as in (scipy.sparse.csr_array(scores), scrambled(scores, rng)):
        sparse = TopK(k).decode(given_as)
        assert_canonical_sets(sparse)
        np.testing.assert_array_equal(sparse.toarray(), expected)


# -------------------------------------------------------------------------------- refused inputs


PROBABILITY = np.full((3, 4), 0.3)
SETS = np.array([[1, 0, 0, 0], [0, 1, 1, 0], [1, 1, 1, 1]])
POSTERIOR = np.array([[0.2, 0.3, 0.5], [1.0, 0.0, 0.0]])
ENTRY = r"row 1|\(1, 2\)|\[1, 2\]"

SOME_TARGETS = {
    "hamming": Hamming(),
    "f1": FBeta(),
    "subset": ZeroOne(),
    "precision@2": PrecisionAtK(2),
    "tree distance": TreeDistance([-1, 0, 0, 1]),
    "count target": CountTarget(cases.squared_error_share),
}
some_targets = in_turn("target", SOME_TARGETS.values(), ids=SOME_TARGETS)
either_way = in_turn("store", [np.asarray, scipy.sparse.csr_array], ids=("dense", "sparse"))


def changed(array, position, value):
    """A copy with one entry replaced."""
    copy = np.array(array, dtype=float)
    copy[position] = value
    return copy


@some_targets
@either_way
@in_turn("value", [-0.25, 1.5, np.inf, -np.inf])
def test_probabilities_outside_the_unit_interval_are_refused(target, store, value):
    bad = store(changed(PROBABILITY, (1, 2), value))
    assert_refused(
        lambda: MinimumRisk(target).decode(bad), "probability", re.escape(str(value)), ENTRY
    )


def test_a_probability_just_above_one_is_refused_not_clipped():
    bad = changed(PROBABILITY, (1, 2), np.nextafter(1.0, 2.0))
    assert_refused(lambda: MinimumRisk("f1").decode(bad), "probability", ENTRY)


@some_targets
@either_way
def test_nan_probabilities_are_refused(target, store):
    bad = store(changed(PROBABILITY, (1, 2), np.nan))
    assert_refused(lambda: MinimumRisk(target).decode(bad), "probability", "nan", ENTRY)


@some_targets
@in_turn("shape", [(4,), (3, 4, 1), ()])
def test_probabilities_of_another_number_of_dimensions_are_refused(target, shape):
    assert_refused(
        lambda: MinimumRisk(target).decode(np.full(shape, 0.5)),
        "probability",
        re.escape(str(shape)),
        "shape|dim",
    )


@some_targets
@either_way
def test_no_rows_are_refused(target, store):
    assert_refused(
        lambda: MinimumRisk(target).decode(store(np.zeros((0, 4)))),
        "probability",
        r"row|\(0, 4\)",
        "at least|empty|no |0",
    )


@pytest.mark.parametrize("target", ["hamming", "f1", "jaccard", "subset", "precision@1"])
@either_way
def test_no_labels_are_refused(target, store):
    assert_refused(
        lambda: MinimumRisk(target).decode(store(np.zeros((3, 0)))),
        "probability|label",
        r"label|column|\(3, 0\)",
    )


@pytest.mark.parametrize("name", ["precision@5", "recall@5"])
@either_way
def test_a_k_larger_than_the_labels_is_refused(name, store):
    assert_refused(lambda: MinimumRisk(name).decode(store(PROBABILITY)), "5", "4", "label")


def test_weights_for_another_number_of_labels_are_refused():
    decoder = MinimumRisk(Hamming([1.0, 2.0, 3.0]))
    assert_refused(lambda: decoder.decode(PROBABILITY), "weight|hamming", "3", "4")
    assert_refused(lambda: decoder.decode_catalog(POSTERIOR, SETS), "weight|hamming", "3", "4")
    assert_refused(lambda: decoder.decode_scores(PROBABILITY, Cube(4)), "weight|hamming", "3", "4")


def test_parents_for_another_number_of_labels_are_refused():
    decoder = MinimumRisk(TreeDistance([-1, 0, 0]))
    assert_refused(lambda: decoder.decode(PROBABILITY), "parents|tree", "3", "4")
    assert_refused(lambda: decoder.decode_catalog(POSTERIOR, SETS), "parents|tree", "3", "4")


def test_an_unknown_target_is_refused():
    assert_refused(lambda: MinimumRisk("f-one"), "f-one", "hamming")


def test_a_table_that_does_not_list_every_set_is_refused():
    table = TableTarget(oracle.all_sets(4)[:15], np.zeros((15, 15)))
    assert_refused(lambda: MinimumRisk(table).decode(PROBABILITY), "table", "decode_catalog")


def test_a_table_over_other_labels_is_refused():
    table = TableTarget(oracle.all_sets(3), np.zeros((8, 8)))
    assert_refused(lambda: MinimumRisk(table).decode(PROBABILITY), "table", "3", "4")


def test_text_is_refused():
    assert_refused(lambda: MinimumRisk("f1").decode([["a", "b"]]), "probability")


@pytest.mark.parametrize("over", ["list", "edits", "all"])
def test_posteriors_that_do_not_sum_to_one_are_refused(over):
    bad = changed(POSTERIOR, (1, 0), 0.9)
    assert_refused(
        lambda: MinimumRisk("f1").decode_catalog(bad, SETS, over=over),
        "posterior",
        "sum|add",
        r"row 1|\[1\]|0\.9",
        "1",
    )


@pytest.mark.parametrize("over", ["list", "edits", "all"])
def test_negative_posteriors_are_refused(over):
    bad = np.array([[0.2, 0.3, 0.5], [0.5, 0.75, -0.25]])
    assert_refused(
        lambda: MinimumRisk("f1").decode_catalog(bad, SETS, over=over),
        "posterior",
        "-0.25",
        r"row 1|\[1, 2\]|\(1, 2\)",
    )


def test_nan_posteriors_are_refused():
    bad = changed(POSTERIOR, (1, 2), np.nan)
    assert_refused(lambda: MinimumRisk("f1").decode_catalog(bad, SETS), "posterior", "nan", ENTRY)


@pytest.mark.parametrize("posterior", [POSTERIOR[0], POSTERIOR[None], np.zeros((0, 3))])
def test_posteriors_of_another_shape_are_refused(posterior):
    assert_refused(
        lambda: MinimumRisk("f1").decode_catalog(posterior, SETS), "posterior", "shape|row|dim"
    )


def test_listed_sets_of_other_numbers_are_refused():
    assert_refused(
        lambda: MinimumRisk("f1").decode_catalog(POSTERIOR, changed(SETS, (1, 2), 2)),
        "sets",
        "2",
        ENTRY,
        "0 (and|or) 1|0/1|0, 1",
    )


def test_as_many_sets_as_columns_of_the_posterior_are_expected():
    assert_refused(
        lambda: MinimumRisk("f1").decode_catalog(POSTERIOR, SETS[:2]), "posterior|sets", "3", "2"
    )


def test_sets_listed_twice_are_refused():
    assert_refused(
        lambda: MinimumRisk("f1").decode_catalog(POSTERIOR, SETS[[0, 1, 0]]),
        "sets",
        "duplicate|twice|repeat|same",
        "0",
        "2",
    )


def test_an_unknown_range_of_candidates_is_refused():
    assert_refused(
        lambda: MinimumRisk("f1").decode_catalog(POSTERIOR, SETS, over="some"),
        "over",
        "some",
        "list",
        "edits",
        "all",
    )


@pytest.mark.parametrize("target", [PrecisionAtK(2), RecallAtK(2)], ids=("precision@2", "recall@2"))
def test_listed_predictions_of_another_size_than_k_are_refused(target):
    assert_refused(
        lambda: MinimumRisk(target).decode_catalog(POSTERIOR, SETS, over="list"), "2", "size|label"
    )


def test_a_fraction_on_a_large_forest_is_refused():
    """Jaccard on 2^60 sets: neither exact nor listable."""
    assert_refused(
        lambda: MinimumRisk("jaccard").decode_scores(np.zeros((1, 60)), Forest.chain(60)),
        "jaccard",
        "forest",
    )


def test_a_forest_is_listed_up_to_two_to_the_fourteen():
    """A chain without potentials is a cube, where the labels are independent."""
    decoder = MinimumRisk("f1")
    listed = decoder.decode_scores(np.zeros((1, 14)), Forest.chain(14), return_risk=True)
    assert_same(listed, decoder.decode(np.full((1, 14), 0.5), return_risk=True), EXACT)
    assert_refused(lambda: decoder.decode_scores(np.zeros((1, 15)), Forest.chain(15)), "forest")


@in_turn(
    "space",
    [
        Cube(4),
        Sized(4, np.zeros(3)),
        Slice(4, 2),
        Forest([-1, 0, 0, 1]),
        Paths([-1, 0, 0, 1]),
        Catalog(np.eye(4, dtype=int)),
    ],
    ids=str,
)
@in_turn("target", ["hamming", "f1", "subset"])
def test_scores_that_do_not_fit_are_refused(space, target):
    decoder = MinimumRisk(target)
    assert_refused(lambda: decoder.decode_scores(np.zeros((2, 5)), space), "scores", "5", "4")
    assert_refused(
        lambda: decoder.decode_scores(changed(np.zeros((2, 4)), (1, 2), np.nan), space),
        "scores",
        "nan",
    )
    assert_refused(lambda: decoder.decode_scores(np.zeros(4), space), "scores", r"\(4,\)")


def test_sets_to_judge_must_fit_the_probabilities():
    decoder = MinimumRisk("f1")
    assert_refused(lambda: decoder.risk(PROBABILITY, np.zeros((3, 5), dtype=int)), "sets", "5", "4")
    assert_refused(
        lambda: decoder.risk(PROBABILITY, np.zeros((2, 4), dtype=int)), "rows?", "2", "3"
    )
    assert_refused(
        lambda: decoder.risk(PROBABILITY, changed(np.zeros((3, 4)), (1, 2), 2)),
        "sets",
        "2",
        "0 (and|or) 1|0/1|0, 1",
    )
    assert_refused(
        lambda: decoder.risk(changed(PROBABILITY, (1, 2), 1.5), np.zeros((3, 4), dtype=int)),
        "probability",
        "1.5",
        ENTRY,
    )


@either_way
def test_more_highest_scores_than_labels_are_refused(store):
    assert_refused(lambda: TopK(5).decode(store(PROBABILITY)), "5", "4")


def test_a_negative_number_of_highest_scores_is_refused():
    assert_refused(lambda: TopK(-1).decode(PROBABILITY), "k", "-1")


@either_way
def test_scores_that_are_nan_have_no_order(store):
    assert_refused(
        lambda: TopK(2).decode(store(changed(PROBABILITY, (1, 2), np.nan))), "scores", "nan"
    )


# ------------------------------------------------------- inputs, repetition, batches, threads


@every_target
def test_inputs_are_not_changed(name):
    """Nor need they be writeable, contiguous or in C order."""
    rng = np.random.default_rng(24)
    problem = problem_of(name, 5, rng)
    if problem.unclear or problem.refused:
        return  # refused for this draw
    probability = sparse_probabilities(6, 5, rng)
    expected = problem.decoder.decode(probability, return_risk=True)
    frozen = probability.copy()
    frozen.flags.writeable = False
    wide = np.full((12, 10), np.nan)
    wide[::2, ::2] = probability
    for given_as in (frozen, np.asfortranarray(probability), wide[::2, ::2]):
        assert_same(problem.decoder.decode(given_as, return_risk=True), expected, 1e-14)
    np.testing.assert_array_equal(frozen, probability)
    sparse = scrambled(probability, rng)
    kept = sparse.copy()
    problem.decoder.risk(sparse, problem.decoder.decode(sparse))
    for part in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(sparse, part), getattr(kept, part))


@pytest.mark.parametrize("over", ["list", "edits", "all"])
def test_posteriors_and_lists_are_not_changed(over):
    posterior, sets = POSTERIOR.copy(), SETS.copy()
    posterior.flags.writeable = sets.flags.writeable = False
    MinimumRisk("f1").decode_catalog(posterior, sets, over=over, return_risk=True)
    np.testing.assert_array_equal(posterior, POSTERIOR)
    np.testing.assert_array_equal(sets, SETS)


@in_turn("name", ["hamming", "f1", "jaccard", "subset", "precision@3", "recall@3"])
@either_way
@in_turn("dtype", [np.float64, np.float32])
def test_a_row_is_decoded_alone_as_in_a_batch(name, store, dtype):
    """3,000 rows at once, 40 of them one at a time, and everything twice."""
    rng = np.random.default_rng(25)
    probability = (rng.random((3000, 30)) ** 3).astype(dtype)
    probability[::3] = rng.choice(GRID, size=(1000, 30))
    decoder = MinimumRisk(name)
    together = decoder.decode(store(probability), return_risk=True)
    assert_same(decoder.decode(store(probability), return_risk=True), together, 0)
    sets = dense(together.sets)
    for row in range(0, 3000, 75):
        alone = decoder.decode(store(probability[[row]]), return_risk=True)
        np.testing.assert_array_equal(dense(alone.sets)[0], sets[row])
        assert alone.risk[0] == pytest.approx(together.risk[row], abs=1e-12)
        assert alone.second_risk[0] == pytest.approx(together.second_risk[row], abs=1e-12)


@pytest.mark.parametrize("name", ["hamming", "f1", "jaccard", "subset", "precision@3", "recall@3"])
def test_one_thread_gives_the_answers_of_many(name, monkeypatch):
    probability = np.random.default_rng(26).random((3000, 25)) ** 2
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    alone = MinimumRisk(name).decode(probability, return_risk=True)
    monkeypatch.setenv("OMP_NUM_THREADS", "4")
    assert thread_count() == 4
    assert_same(MinimumRisk(name).decode(probability, return_risk=True), alone, 1e-14)


def test_losses_between_the_sets_of_a_space_are_computed_once(monkeypatch):
    """Not for each row that is decoded; of another space anew, and not for ever."""
    sets, pairs = oracle.all_sets(5)[::3], []
    computed = OfCounts.matrix

    def counting(measure, listed, y_true):
        pairs.append(len(listed.sets) * len(y_true))
        return computed(measure, listed, y_true)

    monkeypatch.setattr(OfCounts, "matrix", counting)
    decoder, spaces = MinimumRisk("jaccard"), (Catalog(sets), Catalog(sets[:7]))
    scores = np.random.default_rng(0).normal(size=(6, 5))
    for space in spaces:
        together = MinimumRisk("jaccard").decode_scores(scores, space)
        pairs.clear()
        alone = [decoder.decode_scores(scores[[row]], space) for row in range(len(scores))]
        np.testing.assert_array_equal(np.concatenate(alone), together)
        assert pairs == [len(space.sets) ** 2]


def test_sets_that_are_all_but_impossible_change_a_decision_by_rounding_only():
    """Losses against them are left out where no row that is decoded has them."""
    sets, scores = oracle.all_sets(4), 30.0 * np.random.default_rng(0).normal(size=(40, 4))
    space = oracle.cube(4)
    posterior = np.array([oracle.set_probability(space, row) for row in scores], np.float64)
    assert (posterior < 2.0**-60).mean() > 0.3
    losses = np.array([[float(oracle.jaccard().loss(a, b)) for a in sets] for b in sets])
    decoder = MinimumRisk("jaccard")
    together = decoder.decode_catalog(posterior, sets, return_risk=True)
    least = (posterior @ losses).min(axis=1)
    np.testing.assert_allclose(together.risk, least, rtol=0, atol=1e-14)
    for row in range(len(scores)):
        alone = decoder.decode_catalog(posterior[[row]], sets, return_risk=True)
        np.testing.assert_array_equal(alone.sets[0], together.sets[row])
        np.testing.assert_allclose(alone.risk, least[row], rtol=0, atol=1e-14)
