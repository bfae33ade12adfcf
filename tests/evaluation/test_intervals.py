"""Laws of intervals: they cover their values, and known populations as often as is said."""

import functools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics

from setwise.evaluation import compare, evaluate
from setwise.taxonomy import Taxonomy
from tests.support.examples import generators

NAN = float("nan")
# How many samples are drawn of a population; more in the thorough profile.
N_SAMPLES = max(30, 3 * settings().max_examples)
# How often 95 % intervals cover at least: of most figures, and of others where every label is true
# in some twenty rows, or some in one or none. Percentiles of a hundred rows are a little short; the
# calibration errors are biased; of rare labels these figures have no spread in a sample.
SMOOTH = 0.91
FREQUENT = {"expected calibration error": 0.7, "maximum calibration error": 0.1}
FREQUENT |= {"macro average precision": 0.86}
RARE = {"expected calibration error": 0.5, "maximum calibration error": 0.05}
RARE |= {"macro average precision": 0.25, "macro roc auc": 0.6, "macro balanced accuracy": 0.4}
RARE |= {"macro precision": 0.8, "psp@3": 0.85}


def hostile(rng, n_rows, n_labels):
    """Labels that are never, once or always true or predicted, empty rows, extreme scores."""
    y_true, y_pred = (rng.random((2, n_rows, n_labels)) < rng.beta(0.3, 1.0, n_labels)).astype(int)
    for sets in (y_true, y_pred):
        for label in np.flatnonzero(rng.random(n_labels) < 0.5):
            sets[:, label] = 0
            sets[rng.integers(n_rows), label] = rng.integers(2)
        sets[:, rng.random(n_labels) < 0.1] = 1
    probability = rng.choice([0.0, 1e-300, 0.5, 1.0 - 1e-16, 1.0], size=y_true.shape)
    probability[:, rng.random(n_labels) < 0.5] = rng.random()
    return y_pred, y_true, probability


@given(
    generators(), st.integers(1, 25), st.integers(1, 12), st.sampled_from([0.0, 1.0, NAN]),
    st.sampled_from([1, 2, 40]),
)  # fmt: skip
def test_every_interval_covers_its_value(rng, n_rows, n_labels, zero_division, n_bootstrap):
    y_pred, y_true, probability = hostile(rng, n_rows, n_labels)
    options = {
        "targets": ["f1", "hamming", "subset"],
        "propensity": rng.uniform(0.1, 1.0, n_labels),
        "taxonomy": Taxonomy.from_parents([-1, *rng.integers(0, 1, n_labels - 1)]),
        "zero_division": zero_division,
        "n_bootstrap": n_bootstrap,
        "confidence": 0.5,
    }
    evaluation = evaluate(y_pred, y_true, probability=probability, **options)
    for name, figure in evaluation.items():
        if math.isnan(figure.value):
            assert figure.low is figure.high is None, name
        else:
            assert 0.0 <= figure.low <= figure.value <= figure.high, name
            assert figure.high <= 1.0 or "size" in name or "coverage" in name or "tree" in name
    other, _, others = hostile(rng, n_rows, n_labels)
    both = {"probability_a": probability, "probability_b": others}
    comparison = compare(y_pred, other, y_true, **both, **options)
    for name, entry in comparison.items():
        assert entry.low <= entry.value <= entry.high, name


def test_a_label_that_is_rare_does_not_move_the_interval_off_its_value():
    """Labels of one row each, of which one in four is found: resamples of rows would lose them."""
    y_true = np.eye(40, dtype=int)
    y_pred = y_true * (np.arange(40) % 4 == 0)
    for zero_division in (0.0, 1.0, NAN):
        figure = evaluate(y_pred, y_true, zero_division=zero_division)["macro recall"]
        assert figure.value == 0.25
        # (Nor does it seem certain: a label found in one row might be missed in the next.)
        assert 0.05 < figure.low < 0.2
        assert 0.3 < figure.high < 0.45


def test_zero_division_is_scikit_learns_by_default():
    """Of a label never predicted and one never true."""
    y_pred, y_true = np.array([[1, 0, 1], [1, 0, 0]]), np.array([[1, 1, 0], [0, 1, 0]])
    figures = evaluate(y_pred, y_true, n_bootstrap=0)
    options = {"average": "macro", "zero_division": 0}
    for name, function in (("precision", metrics.precision_score), ("f1", metrics.f1_score)):
        expected = function(y_true, y_pred, **options)
        assert figures[f"macro {name}"].value == pytest.approx(expected, abs=1e-12)


# ------------------------------------------------------------------------- how often they are right


@functools.cache
def population(*odds_of_labels):
    """Rows that are the whole population, so that all its figures are known: labels, scores."""
    rng, n_rows = np.random.default_rng(0), 20_000
    odds = np.log(odds_of_labels) + 0.8 * rng.normal(size=(n_rows, 1))
    odds = odds + rng.normal(size=(n_rows, len(odds_of_labels)))
    y_true = (rng.random(odds.shape) < 1.0 / (1.0 + np.exp(-odds))).astype(int)
    probability = np.round(1.0 / (1.0 + np.exp(-0.8 * odds - 0.3)), 3)
    arrays = (probability > 0.4).astype(int), y_true, probability
    return arrays, judged(arrays, n_bootstrap=0)


def judged(arrays, **options):
    y_pred, y_true, probability = arrays
    chosen = {"targets": ["f1"], "propensity": np.linspace(0.3, 0.9, y_true.shape[1])}
    return evaluate(y_pred, y_true, probability=probability, **chosen, **options)


@pytest.mark.parametrize(
    ("odds_of_labels", "n_rows", "least"),
    [((0.25, 0.4, 0.6, 1.0), 100, FREQUENT), ((0.01, 0.03, 0.1, 0.4, 1.0), 60, RARE)],
    ids=["frequent labels", "rare labels"],
)
def test_intervals_cover_a_known_population_as_often_as_they_say(odds_of_labels, n_rows, least):
    """Every figure; the bounds leave room for chance in as many samples as are drawn."""
    arrays, whole = population(*odds_of_labels)
    rng, covered = np.random.default_rng(1), dict.fromkeys(whole, 0)
    for _ in range(N_SAMPLES):
        rows = rng.integers(len(arrays[0]), size=n_rows)
        sample = judged([array[rows] for array in arrays], n_bootstrap=150, random_state=rng)
        for name, figure in sample.items():
            covered[name] += figure.low <= whole[name].value <= figure.high
    for name, times in covered.items():
        bound = least.get(name, SMOOTH)
        room = 3.3 * math.sqrt(bound * (1.0 - bound) / N_SAMPLES)
        assert bound - room <= times / N_SAMPLES, f"{name}: {times} of {N_SAMPLES}"
