"""Laws of deciding for a population: enumeration of all 0/1 matrices within a budget."""

import itertools

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit

from setwise.decoders import PopulationRule, Thresholds
from setwise.decoders.budget import Budget, Entries
from setwise.decoders.population import Population, Utilities
from setwise.decoders.population_rule import OF_THRESHOLDS, RULES
from setwise.decoders.threshold_search import ScoredRows
from setwise.targets import get_target
from tests.support.examples import generators
from tests.support.turns import in_turn

FEWER = max(2, settings.default.max_examples // 2)


# ------------------------------------------------------------------------------------------ oracle
# Scalar formulas and exhaustive search; nothing here is shared with the package.


def share(part, whole, nothing=0.0):
    return part / whole if whole > 1e-12 else nothing


def rates(tp, fp, fn, tn):
    of_true, of_false = share(tp, tp + fn, None), share(tn, tn + fp, None)
    return of_false if of_true is None else of_true, of_true if of_false is None else of_false


OF_COUNTS = {
    "f1": lambda tp, fp, fn, tn: share(2 * tp, 2 * tp + fp + fn),
    "f2": lambda tp, fp, fn, tn: share(5 * tp, 5 * tp + fp + 4 * fn),
    "jaccard": lambda tp, fp, fn, tn: share(tp, tp + fp + fn),
    "recall": lambda tp, fp, fn, tn: share(tp, tp + fn),
    "precision": lambda tp, fp, fn, tn: share(tp, tp + fp),
    "balanced_accuracy": lambda *counts: sum(rates(*counts)) / 2,
    "g_mean": lambda *counts: float(np.sqrt(rates(*counts)[0] * rates(*counts)[1])),
}


def measure(name, y_pred, true, weight=None):
    """The population measure of 0/1 decisions, where `true` may be probabilities."""
    average, of = name.split("_", 1)
    weight = np.ones(len(true)) if weight is None else weight
    counts = np.array(
        [
            (weight[:, None] * a * b).sum(axis=0)
            for a, b in ((y_pred, true), (y_pred, 1 - true), (1 - y_pred, true))
        ]
        + [(weight[:, None] * (1 - y_pred) * (1 - true)).sum(axis=0)]
    )
    if average == "micro":
        return OF_COUNTS[of](*counts.sum(axis=1))
    values = [OF_COUNTS[of](*column) for column in counts.T]
    positives = counts[0] + counts[2]
    by = positives if average == "weighted" and positives.sum() > 0 else None
    return float(np.average(values, weights=by))


def matrices(n_rows, n_labels, allowed):
    """All 0/1 matrices whose row sizes are allowed."""
    rows = [row for row in itertools.product((0, 1), repeat=n_labels) if sum(row) in allowed]
    return (np.array(chosen) for chosen in itertools.product(rows, repeat=n_rows))


def best(name, probability, allowed, weight=None):
    every = matrices(*probability.shape, allowed)
    return max(measure(name, y_pred, probability, weight) for y_pred in every)


def draw(rng, most_rows=4, most_labels=3):
    shape = int(rng.integers(2, most_rows + 1)), int(rng.integers(1, most_labels + 1))
    probability = rng.random(shape)
    probability[rng.random(shape) < 0.2] = 0.0
    return probability


NAMES = [f"macro_{of}" for of in OF_COUNTS]
NAMES += ["micro_f1", "micro_jaccard", "micro_balanced_accuracy", "micro_g_mean", "weighted_f1"]
BUDGETS = ("budget", "at_most")


# -------------------------------------------------------------------------------------------- laws


@in_turn("name", NAMES)
@in_turn("rule", ["expected", "batch"])
@settings(max_examples=FEWER, deadline=None)
@given(rng=generators())
def test_no_matrix_has_a_larger_measure_of_expected_counts(name, rule, rng):
    probability = draw(rng)
    # (With weights, the best threshold for G-mean need not be the best matrix: it is no quotient.)
    is_weighted = rule == "expected" and "g_mean" not in name
    weight = rng.choice([0.3, 1.0, 2.0], size=len(probability)) if is_weighted else None
    decider = PopulationRule(name, rule).fit(probability, None, weight)
    value = measure(name, decider.decode(probability), probability, weight)
    every = range(probability.shape[1] + 1)
    assert value == pytest.approx(best(name, probability, every, weight), abs=1e-9)


@pytest.mark.parametrize("name", ["micro_f1", "micro_jaccard", "macro_recall"])
@pytest.mark.parametrize("mode", BUDGETS)
@settings(max_examples=FEWER, deadline=None)
@given(rng=generators(), size=st.integers(1, 3))
def test_budgets_of_linear_or_pooled_measures_are_decided_exactly(name, mode, rng, size):
    probability = draw(rng)
    size = min(size, probability.shape[1])
    rule = PopulationRule(name, "batch", **{mode: size}).fit(probability)
    allowed = (size,) if mode == "budget" else range(size + 1)
    value = measure(name, rule.decode(probability), probability)
    assert value == pytest.approx(best(name, probability, allowed), abs=1e-9)


@in_turn("name", [name for name in NAMES if not name.startswith("micro")])
@in_turn("mode", BUDGETS)
@settings(max_examples=FEWER, deadline=None)
@given(rng=generators(), size=st.integers(1, 3))
def test_no_matrix_within_the_budget_is_better_by_more_than_the_gap(name, mode, rng, size):
    probability = draw(rng, most_rows=3)
    size = min(size, probability.shape[1])
    allowed = (size,) if mode == "budget" else range(size + 1)
    largest, values = best(name, probability, allowed), {}
    for rule in ("expected", "batch"):
        decider = PopulationRule(name, rule, **{mode: size}).fit(probability)
        y_pred = decider.decode(probability)
        assert set(y_pred.sum(axis=1)) <= set(allowed)
        values[rule] = measure(name, y_pred, probability)
        for given_as in (probability, scipy.sparse.csr_array(probability)):
            decider.fit(given_as)
            decided = decider.decode(given_as)
            decided = decided if isinstance(decided, np.ndarray) else decided.toarray()
            reached = measure(name, decided, probability)
            assert reached <= largest + 1e-9
            assert reached + decider.gap(given_as) >= largest - 1e-9
    assert values["batch"] >= values["expected"] - 1e-9


@settings(max_examples=FEWER, deadline=None)
@given(rng=generators())
def test_no_other_labels_of_one_row_are_better_after_coordinate_ascent(rng):
    probability = rng.random((12, 5)) ** 2
    y_pred = PopulationRule("macro_f1", "batch", at_most=2).fit(probability).decode(probability)
    value = measure("macro_f1", y_pred, probability)
    for row in range(12):
        for other in matrices(1, 5, range(3)):
            changed = y_pred.copy()
            changed[row] = other[0]
            assert measure("macro_f1", changed, probability) <= value + 2e-5


@in_turn("rule", [rule for rule in RULES if rule != "auto"])
@in_turn("name", ["macro_f1", "micro_f1", "macro_g_mean"])
def test_sparse_probabilities_are_decided_as_dense_ones(name, rule):
    rng = np.random.default_rng(0)
    probability = rng.random((60, 8)) * (rng.random((60, 8)) < 0.5)
    y_true = (rng.random((60, 8)) < probability).astype(int)
    stored, true = scipy.sparse.csr_array(probability), scipy.sparse.csr_array(y_true)
    modes = [{}] if rule in OF_THRESHOLDS else [{}, {"budget": 2}, {"at_most": 2}]
    for mode in modes:
        dense = PopulationRule(name, rule, **mode).fit(probability, y_true)
        sparse = PopulationRule(name, rule, **mode).fit(stored, true)
        answer = sparse.decode(stored)
        assert answer.dtype == np.uint8
        np.testing.assert_array_equal(answer.toarray(), dense.decode(probability))


@pytest.mark.parametrize("size", [1, 2, 3, 5])
@pytest.mark.parametrize("is_exact", [True, False])
def test_of_equal_gains_the_lower_labels_are_chosen_be_they_stored_or_not(size, is_exact):
    rng = np.random.default_rng(size)
    gains = rng.integers(-1, 3, 8).astype(float)
    # (A slope of 0: what is stored gains as much as what is not.)
    stored = rng.integers(0, 2, (50, 8))
    stored[0] = [0, 0, 0, 0, 0, 1, 1, 1]
    for of in (gains, np.ones(8)):
        rows, labels = np.nonzero(stored)
        ends, even = np.append(0, np.cumsum(stored.sum(axis=1))), np.full(len(rows), 0.5)
        entries = Entries(ends, labels.astype(np.int32), even, even, np.ones(50))
        found = entries.choose(Budget(size, is_exact), np.zeros(8), of).label
        best = [j for j in np.argsort(-of, kind="stable")[:size] if is_exact or of[j] > 0]
        best += [-1] * (size - len(best))
        np.testing.assert_array_equal(found, np.broadcast_to(best, found.shape))


@in_turn("name", ["macro_f1", "micro_jaccard", "macro_balanced_accuracy"])
@in_turn("rule", ["expected", "calibrated", "thresholds", "micro_macro"])
def test_a_weight_of_two_is_a_row_twice(name, rule):
    rng = np.random.default_rng(1)
    probability = rng.random((40, 3))
    y_true = (rng.random((40, 3)) < probability).astype(int)
    weight = rng.integers(0, 3, 40)
    twice = np.repeat(np.arange(40), weight)
    if rule == "micro_macro":
        twice, weight = np.flatnonzero(weight), (weight > 0).astype(float)
    once = PopulationRule(name, rule).fit(probability, y_true, weight)
    again = PopulationRule(name, rule).fit(probability[twice], y_true[twice])
    np.testing.assert_allclose(once.thresholds_, again.thresholds_, rtol=1e-12)


@pytest.mark.parametrize("name", ["macro_f1", "micro_f1", "balanced_accuracy"])
def test_calibrated_undoes_one_distortion_of_all_log_odds(name):
    """Right probabilities are hardly changed; distorted ones are decided as the right ones are."""
    rng = np.random.default_rng(3)
    odds = rng.normal([-3.0, -2.0, -1.0, 0.0], 1.5, (4000, 4))
    right, wrong = expit(odds), expit(0.4 * odds - 0.8)
    y_true = (rng.random(right.shape) < right).astype(int)
    best = PopulationRule(name, "expected").fit(right).decode(right)
    for said in (right, wrong):
        rule = PopulationRule(name).fit(said, y_true)
        assert rule.rule_ == "calibrated"
        assert (rule.decode(said) != best).mean() < 0.01
    plain = PopulationRule(name, "expected").fit(wrong).decode(wrong)
    assert (plain != best).mean() > 0.03


def test_calibrated_is_not_misled_by_few_rows():
    """Label sets that the probabilities tell apart have no most likely slope; a prior gives one."""
    rule = PopulationRule("macro_f1", "calibrated").fit([[0.9, 0.2], [0.4, 0.7]], [[1, 0], [0, 1]])
    np.testing.assert_array_equal(rule.decode([[0.9, 0.2], [0.4, 0.7]]), [[1, 0], [0, 1]])
    assert ((rule.thresholds_ > 0.2) & (rule.thresholds_ < 0.9)).all()


def test_thresholds_are_those_of_the_decoder_of_that_name():
    rng = np.random.default_rng(2)
    probability = rng.random((50, 4))
    y_true = (rng.random((50, 4)) < probability).astype(int)
    rule = PopulationRule("macro_f1", "thresholds").fit(probability, y_true)
    own = Thresholds("f1", "macro").fit(probability, y_true)
    np.testing.assert_array_equal(rule.thresholds_, own.thresholds_)


def micro_macro_by_definition(score, true, folds):
    """Label after label by falling frequency, every cut tried, in each fold."""
    cuts = []
    for fold in np.unique(folds):
        s, y = score[folds == fold], true[folds == fold]
        found, before = np.zeros(s.shape[1]), np.zeros(4)
        for m, j in enumerate(np.argsort(-y.sum(axis=0), kind="stable")):
            levels = np.unique(s[:, j])[::-1]
            best_value, kept = -np.inf, None
            for taken in range(len(levels) + 1):
                x = s[:, j] >= levels[taken - 1] if taken else np.zeros(len(s), bool)
                t = y[:, j] == 1
                counts = np.array(
                    [(x & t).sum(), (x & ~t).sum(), (~x & t).sum(), (~x & ~t).sum()], float
                )
                value = OF_COUNTS["f1"](*counts) / (m + 1) + OF_COUNTS["f1"](*(before + counts))
                if value > best_value + 1e-12:
                    best_value, kept = value, (taken, counts)
            taken, counts = kept
            before += counts
            upper = levels[taken - 1] if taken else np.nextafter(levels[0], np.inf)
            lower = levels[taken] if taken < len(levels) else upper
            found[j] = (lower + upper) / 2
        cuts.append(found)
    return np.mean(cuts, axis=0)


def test_the_micro_macro_rule_is_its_definition():
    rng = np.random.default_rng(3)
    probability = rng.random((45, 4)) * [1.0, 0.7, 0.4, 0.2]
    y_true = (rng.random((45, 4)) < probability).astype(int)
    rule = PopulationRule("macro_f1", "micro_macro").fit(probability, y_true)
    folds = np.random.default_rng(0).permutation(45) % 3
    expected = micro_macro_by_definition(probability, y_true, folds)
    np.testing.assert_allclose(rule.thresholds_, expected, rtol=1e-12)


def test_a_label_without_a_positive_is_never_predicted():
    probability = np.array([[0.9, 0.0], [0.3, 0.0], [0.2, 0.0]])
    y_true = np.array([[1, 0], [0, 0], [0, 0]])
    for rule in ("expected", "thresholds", "micro_macro"):
        fitted = PopulationRule("macro_f1", rule).fit(probability, y_true)
        assert fitted.thresholds_[1] == np.inf


def test_a_large_sparse_batch_is_never_made_dense():
    rng = np.random.default_rng(0)
    probability = scipy.sparse.random_array(
        (40_000, 50_000), density=2e-6, random_state=rng, format="csr"
    )
    for mode in ({}, {"budget": 2}, {"at_most": 2}):
        sets = PopulationRule("macro_f1", "batch", **mode).fit(probability).decode(probability)
        assert 0 < sets.nnz <= 80_000


# ------------------------------------------------------------------------------------- bad input


@in_turn(
    ("action", "words"),
    [
        (lambda p: PopulationRule("f1"), "all rows together"),
        (lambda p: PopulationRule("macro_f1", "best"), "rule must be one of"),
        (lambda p: PopulationRule("macro_f1", budget=1, at_most=1), "not both"),
        (lambda p: PopulationRule("macro_f1", "micro_macro", budget=1), "use 'expected'"),
        (lambda p: PopulationRule("macro_f1", budget=3).fit(p), "number of labels, which is 2"),
        (lambda p: PopulationRule("macro_f1", at_most=0), "at_most must be a whole number"),
        (lambda p: PopulationRule("macro_f1", "thresholds").fit(p), "needs label sets"),
        (lambda p: PopulationRule("macro_f1", "batch").fit(p).decode(p[:1]), "single row"),
        (lambda p: PopulationRule("macro_f1").fit(p).decode(p[:, :1]), "shape"),
        (lambda p: PopulationRule("macro_f1").decode(p), "not fitted"),
        (lambda p: PopulationRule("macro_f1").fit(p).gap(p), "with a budget"),
        (lambda p: PopulationRule("macro_f1").fit(p, None, [-1.0, 1.0]), "sample_weight"),
        (
            lambda p: PopulationRule("macro_f1", "cross_fitted").fit(p, [[0, 1], [1, 0]], [0, 1]),
            "at least 2 rows",
        ),
        (lambda p: PopulationRule("macro_f1").fit(p[:0]), "at least one row"),
        (lambda p: PopulationRule("macro_f1").fit(p).decode(p[:0]), "at least one row"),
        (
            lambda p: PopulationRule("macro_f1", budget=3).fit(scipy.sparse.csr_array(p)),
            "number of labels",
        ),
    ],
)
def test_bad_input_is_refused(action, words):
    with pytest.raises(ValueError, match=words):
        action(np.array([[0.2, 0.7], [0.5, 0.1]]))


@pytest.mark.parametrize("target", ["macro_f1", "micro_f1", "macro_jaccard"])
def test_calibrated_thresholds_count_what_is_true_outside_a_shortlist(target):
    generator = np.random.default_rng(0)
    probability = generator.random((4000, 3)) ** [2.0, 3.0, 4.0]
    truth = (generator.random(probability.shape) < probability).astype(np.uint8)
    listed = scipy.sparse.csr_array(np.where(probability >= 0.3, probability, 0.0))
    whole, short = (
        PopulationRule(target, "calibrated").fit(table, truth).thresholds_
        for table in (scipy.sparse.csr_array(probability), listed)
    )
    assert listed.nnz < 0.6 * probability.size
    np.testing.assert_allclose(short, whole, atol=0.015)


ROWS = np.random.default_rng(5).random((12, 4))
SETS = (np.random.default_rng(6).random((12, 4)) < ROWS).astype(int)
ODD = {
    "a label never true": (ROWS, SETS * [1, 0, 1, 1], None),
    "a label always true": (ROWS, np.maximum(SETS, [0, 0, 1, 0]), None),
    "no label ever true": (ROWS, SETS * 0, None),
    "all labels always true": (ROWS, SETS * 0 + 1, None),
    "probabilities of 0": (ROWS * 0, SETS, None),
    "probabilities of 1": (ROWS * 0 + 1, SETS, None),
    "two rows": (ROWS[:2], SETS[:2], None),
    "one label": (ROWS[:, :1], SETS[:, :1], None),
    "all weight on two rows": (ROWS, SETS, np.eye(12)[3] + np.eye(12)[7]),
    "nothing stored": (scipy.sparse.csr_array((12, 4)), scipy.sparse.csr_array(SETS), None),
    "sparse, label sets dense": (scipy.sparse.csr_array(ROWS), SETS, None),
}


@in_turn("case", ODD)
@in_turn("name", ["macro_f1", "micro_jaccard", "weighted_recall", "g_mean"])
def test_odd_rows_are_decided_within_the_budget_by_every_rule(case, name):
    probability, y_true, weight = ODD[case]
    for rule in RULES[1:]:
        for mode in ({}, {"budget": 1}, {"at_most": 1}, {"budget": probability.shape[1]}):
            if mode and rule in OF_THRESHOLDS:
                continue
            fitted = PopulationRule(name, rule, **mode).fit(probability, y_true, weight)
            sets = fitted.decode(probability)
            sizes = np.asarray(sets.sum(axis=1))
            assert sets.shape == probability.shape
            assert (sizes == mode["budget"]).all() if "budget" in mode else sizes.max() <= 4
            assert sizes.max() <= mode.get("at_most", 4)


@pytest.mark.parametrize("of", OF_COUNTS)
@settings(max_examples=FEWER, deadline=None)
@given(rng=generators())
def test_utilities_by_tallies_are_those_of_the_counts_and_tangents_their_derivatives(of, rng):
    total, positives = 10.0, rng.uniform(1.0, 9.0, 5)
    tp = rng.uniform(0.2, 0.8, 5) * positives
    predicted = tp + rng.uniform(0.2, 0.8, 5) * (total - positives)
    metric = Population.of(get_target(f"macro_{of}")).metric
    utilities = Utilities.of(metric, positives, total)
    # (Kernels look up both by the same number.)
    assert len(utilities.geometric) == utilities.slopes.shape[2]

    def by_counts(tp, predicted):
        counts = tp, predicted - tp, positives - tp, total - positives - predicted + tp
        return np.array([OF_COUNTS[of](*column) for column in np.transpose(counts)])

    np.testing.assert_allclose(utilities.at(tp, predicted), by_counts(tp, predicted), rtol=1e-12)
    constant, slope, offset = utilities.tangents(tp, predicted, total)
    linear = constant + slope * tp + offset * predicted
    np.testing.assert_allclose(linear, by_counts(tp, predicted), rtol=1e-9)
    for change, derivative in (((1e-6, 0.0), slope), ((0.0, 1e-6), offset)):
        above = by_counts(tp + change[0], predicted + change[1])
        below = by_counts(tp - change[0], predicted - change[1])
        np.testing.assert_allclose(derivative, (above - below) / 2e-6, rtol=1e-6, atol=1e-8)


@settings(max_examples=FEWER, deadline=None)
@given(rng=generators(), size=st.integers(1, 4), exact=st.booleans())
def test_the_labels_chosen_do_not_depend_on_those_chosen_before(rng, size, exact):
    rows = scipy.sparse.csr_array(rng.integers(0, 3, (12, 6)) / 2.0)
    entries, budget = Entries.of(ScoredRows(rows, rows)), Budget(size, exact)
    before, gains = (rng.integers(-2, 3, (2, 6)).astype(float) for _ in range(2))
    anew, chosen = entries.choose(budget, *gains), entries.choose(budget, *before)
    again = entries.choose(budget, *gains, chosen)
    np.testing.assert_array_equal(again.label, anew.label)
    np.testing.assert_array_equal(again.entry, anew.entry)


def test_a_batch_is_best_for_a_measure_that_is_linear_in_the_counts():
    """Balanced accuracy of given marginals: every row by itself takes its largest gains."""
    probability = np.random.default_rng(0).random((200, 6))
    positives = probability.sum(axis=0)
    gains = probability / positives - (1.0 - probability) / (len(probability) - positives)
    rule = PopulationRule("macro_balanced_accuracy", "batch", budget=2).fit(probability)
    chosen = rule.decode(probability)
    best = np.sort(gains, axis=1)[:, -2:].sum()
    assert (gains * chosen).sum() == pytest.approx(best, rel=1e-12)
