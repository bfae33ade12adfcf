"""Laws of the thresholds: no other threshold, and no other 0/1 matrix, has a larger measure."""

import itertools
import warnings

import numpy as np
import pytest
import scipy.sparse
import sklearn.metrics
from hypothesis import given, settings
from hypothesis import strategies as st

from setwise.decoders.thresholds import Thresholds, prefers_own
from setwise.targets import CountTarget, FBeta, Hamming, Jaccard, LinearFractional
from tests.support.examples import generators
from tests.support.turns import in_turn

FEWER = max(2, settings.default.max_examples // 2)


# ------------------------------------------------------------------------------------------ oracle
# Scalar formulas and exhaustive search; nothing here is shared with the package.


def ratio(above, below, empty=1.0):
    return above / below if below > 0 else empty


def f_beta(beta, empty=1.0):
    def value(tp, fp, fn, tn):
        return ratio((1 + beta**2) * tp, (1 + beta**2) * tp + fp + beta**2 * fn, empty)

    return value


def balanced_accuracy(tp, fp, fn, tn):
    parts = [part / whole for part, whole in ((tp, tp + fn), (tn, tn + fp)) if whole > 0]
    return sum(parts) / len(parts)


METRICS = {
    "f1": ("f1", f_beta(1.0)),
    "f2": (FBeta(2.0), f_beta(2.0)),
    "f1 empty 0": (FBeta(empty=0.0), f_beta(1.0, empty=0.0)),
    "jaccard": ("jaccard", lambda tp, fp, fn, tn: ratio(tp, tp + fp + fn)),
    "jaccard empty .3": (Jaccard(empty=0.3), lambda tp, fp, fn, tn: ratio(tp, tp + fp + fn, 0.3)),
    "hamming": ("hamming", lambda tp, fp, fn, tn: (tp + tn) / (tp + fp + fn + tn)),
    "precision": ("precision", lambda tp, fp, fn, tn: ratio(tp, tp + fp)),
    "precision empty 0": (
        LinearFractional([0, 0, 1, 0, 0], [0, 1, 1, 0, 0], empty=0.0),
        lambda tp, fp, fn, tn: ratio(tp, tp + fp, 0.0),
    ),
    "recall": ("recall", lambda tp, fp, fn, tn: ratio(tp, tp + fn)),
    "specificity": (
        LinearFractional([0, 0, 1, 0, 0], [0, 0, 1, 0, 1]),
        lambda tp, fp, fn, tn: ratio(tn, tn + fp),
    ),
    "negative predictive value": (
        LinearFractional([0, 0, 0, 1, 0], [0, 0, 0, 1, 1], empty=0.5),
        lambda tp, fp, fn, tn: ratio(tn, tn + fn, 0.5),
    ),
    "balanced accuracy": ("balanced_accuracy", balanced_accuracy),
    "tversky": (
        LinearFractional([0, 0, 0.3, 0.7, 0], [0, 1, 0.3, 0.7, 0]),
        lambda tp, fp, fn, tn: ratio(tp, tp + 0.3 * fp + 0.7 * fn),
    ),
    "smoothed f1": (
        LinearFractional([0, 0, 1, 1, 0], [1, 2, 1, 1, 0]),
        lambda tp, fp, fn, tn: (1 + 2 * tp) / (1 + 2 * tp + fp + fn),
    ),
    "all five": (
        LinearFractional([0.2, 0.1, 0.9, 0.7, 0.1], [0.5, 1.3, 1.1, 0.8, 0.4]),
        lambda tp, fp, fn, tn: (
            (0.3 + 1.2 * tp + 0.2 * fp + 0.1 * fn + 0.3 * tn)
            / (0.5 + 1.3 * tp + 1.1 * fp + 0.8 * fn + 0.4 * tn)
        ),
    ),
    "rewards errors": (
        LinearFractional([0, 1, 0, 0, 1], [0, 1, 1, 1, 1]),
        lambda tp, fp, fn, tn: (fp + fn) / (tp + fp + fn + tn),
    ),
}
AVERAGES = ("micro", "macro", "instance")
SENSIBLE = [name for name in METRICS if name != "rewards errors"]
every_metric = in_turn("name", METRICS)
every_average = in_turn("average", AVERAGES)


def counts(y_pred, true):
    """tp, fp, fn, tn of any block of decisions; `true` may hold probabilities."""
    y_pred, true = np.asarray(y_pred, dtype=bool), np.asarray(true, dtype=float)
    return (
        float(true[y_pred].sum()),
        float((1 - true)[y_pred].sum()),
        float(true[~y_pred].sum()),
        float((1 - true)[~y_pred].sum()),
    )


def measure(name, average, y_pred, true):
    """The population measure from its definition."""
    utility = METRICS[name][1]
    if average == "micro":
        return utility(*counts(y_pred, true))
    if average == "instance":
        y_pred, true = np.transpose(y_pred), np.transpose(true)
    labels = range(np.shape(true)[1])
    return float(np.mean([utility(*counts(y_pred[:, j], true[:, j])) for j in labels]))


def cuts(scores):
    """Every decision a threshold can make on these scores, the fewest predictions first."""
    return [scores >= t for t in (np.inf, *np.unique(scores)[::-1])]


def label_cuts(scores, true):
    """The cuts of each label; a label without a positive example is never predicted."""
    return [
        cuts(column) if positive.any() else [np.zeros(len(column), dtype=bool)]
        for column, positive in zip(scores.T, true.T, strict=True)
    ]


def best_of(decisions, name, average, true):
    """The largest value, and the fewest predictions among those that reach it."""
    found = [(measure(name, average, y_pred, true), int(y_pred.sum())) for y_pred in decisions]
    value = max(v for v, _ in found)
    return value, min(size for v, size in found if v >= value - 1e-12)


def draw(rng, n_rows, n_labels, ties=True):
    """Scores, with ties, and label sets, often with labels that are always or never true."""
    levels = rng.normal(size=int(rng.integers(2, 6)))
    scores = (
        rng.choice(levels, size=(n_rows, n_labels)) if ties else rng.normal(size=(n_rows, n_labels))
    )
    y_true = (rng.random((n_rows, n_labels)) < rng.uniform(0.1, 0.9)).astype(int)
    for value in (0, 1):
        if rng.random() < 0.3:
            y_true[:, rng.integers(n_labels)] = value
    return scores, y_true


def probabilities(rng, n_rows, n_labels):
    """Probabilities with ties, zeros and ones."""
    p = rng.random((n_rows, n_labels))
    if rng.random() < 0.5:
        p = np.round(p, 1)
    if rng.random() < 0.3:
        p[:, rng.integers(n_labels)] = 0.0
    p[rng.random(p.shape) < 0.1] = 1.0
    return p


# ---------------------------------------------------------------------------------- exact optimum


@every_average
@every_metric
@given(rng=generators(), n_rows=st.integers(1, 7), n_labels=st.integers(1, 4), ties=st.booleans())
def test_no_other_threshold_for_all_labels_is_better(name, average, rng, n_rows, n_labels, ties):
    scores, y_true = draw(rng, n_rows, n_labels, ties)
    decoder = Thresholds(METRICS[name][0], average, per_label=False).fit(scores, y_true)
    value, size = best_of(cuts(scores), name, average, y_true)
    y_pred = decoder.decode(scores)
    assert measure(name, average, y_pred, y_true) == pytest.approx(value, abs=1e-12)
    assert decoder.value_ == pytest.approx(value, abs=1e-12)
    assert y_pred.sum() == size
    np.testing.assert_array_equal(decoder.thresholds_, decoder.threshold_)


@every_metric
@given(rng=generators(), n_rows=st.integers(1, 7), n_labels=st.integers(1, 4), ties=st.booleans())
def test_no_other_threshold_of_a_label_is_better_for_macro(name, rng, n_rows, n_labels, ties):
    scores, y_true = draw(rng, n_rows, n_labels, ties)
    decoder = Thresholds(METRICS[name][0], "macro").fit(scores, y_true)
    y_pred, values = decoder.decode(scores), []
    for label, options in enumerate(label_cuts(scores, y_true)):
        true = y_true[:, [label]]
        value, size = best_of([cut[:, None] for cut in options], name, "micro", true)
        assert y_pred[:, label].sum() == size
        values.append(value)
        assert measure(name, "micro", y_pred[:, [label]], true) == pytest.approx(value, abs=1e-12)
    assert decoder.value_ == pytest.approx(np.mean(values), abs=1e-12)
    assert decoder.threshold_ is None


@every_metric
@given(rng=generators(), n_rows=st.integers(1, 6), n_labels=st.integers(1, 3), ties=st.booleans())
def test_no_other_thresholds_together_are_better_for_micro(name, rng, n_rows, n_labels, ties):
    """Against every combination of the labels' cuts."""
    scores, y_true = draw(rng, n_rows, n_labels, ties)
    decoder = Thresholds(METRICS[name][0], "micro").fit(scores, y_true)
    together = itertools.product(*label_cuts(scores, y_true))
    decisions = [np.stack(columns, axis=1) for columns in together]
    value, size = best_of(decisions, name, "micro", y_true)
    y_pred = decoder.decode(scores)
    assert measure(name, "micro", y_pred, y_true) == pytest.approx(value, abs=1e-12)
    assert decoder.value_ == pytest.approx(value, abs=1e-12)
    assert y_pred.sum() == size


@pytest.mark.parametrize("average", ["micro", "macro"])
@settings(max_examples=FEWER)
@given(rng=generators())
def test_no_single_change_is_better_on_larger_data(average, rng):
    """Moving one label's threshold to any of its cuts; more labels than can be enumerated."""
    scores, y_true = draw(rng, 60, 12, ties=bool(rng.integers(2)))
    decoder = Thresholds("f1", average).fit(scores, y_true)
    y_pred = decoder.decode(scores)
    for label, options in enumerate(label_cuts(scores, y_true)):
        for cut in options:
            changed = y_pred.copy()
            changed[:, label] = cut
            assert measure("f1", average, changed, y_true) <= decoder.value_ + 1e-12


def test_thresholds_of_labels_are_never_worse_than_one_for_all():
    rng = np.random.default_rng(4)
    scores, y_true = draw(rng, 80, 9, ties=False)
    for average in ("micro", "macro"):
        own, shared = (
            Thresholds("jaccard", average, per_label=own).fit(scores, y_true).value_
            for own in (True, False)
        )
        assert own > shared


# --------------------------------------------------------------------------- from probabilities


def all_matrices(n_rows, n_labels):
    for bits in itertools.product((0, 1), repeat=n_rows * n_labels):
        yield np.array(bits).reshape(n_rows, n_labels)


@in_turn("name", SENSIBLE)
@given(rng=generators(), n_rows=st.integers(1, 4), n_labels=st.integers(1, 2))
def test_no_matrix_has_a_larger_micro_measure_of_expected_counts(name, rng, n_rows, n_labels):
    probability = probabilities(rng, n_rows, n_labels)
    decoder = Thresholds(METRICS[name][0], "micro").fit_probability(probability)
    y_pred = decoder.decode(probability)
    decisions = all_matrices(n_rows, n_labels) if probability.any() else [0 * y_pred]
    best = max(measure(name, "micro", matrix, probability) for matrix in decisions)
    assert measure(name, "micro", y_pred, probability) == pytest.approx(best, abs=1e-11)
    assert decoder.value_ == pytest.approx(best, abs=1e-11)
    np.testing.assert_array_equal(decoder.thresholds_, decoder.threshold_)


@in_turn("name", SENSIBLE)
@given(rng=generators(), n_rows=st.integers(1, 7), n_labels=st.integers(1, 3))
def test_no_matrix_has_a_larger_macro_measure_of_expected_counts(name, rng, n_rows, n_labels):
    """Label by label; a label with no expected positive is never predicted."""
    probability = probabilities(rng, n_rows, n_labels)
    decoder = Thresholds(METRICS[name][0], "macro").fit_probability(probability)
    y_pred, best = decoder.decode(probability), []
    for column in probability.T[:, :, None]:
        decisions = all_matrices(n_rows, 1) if column.any() else [np.zeros((n_rows, 1))]
        best.append(max(measure(name, "micro", matrix, column) for matrix in decisions))
    assert measure(name, "macro", y_pred, probability) == pytest.approx(np.mean(best), abs=1e-11)
    assert decoder.value_ == pytest.approx(np.mean(best), abs=1e-11)


@given(rng=generators(), n_rows=st.integers(1, 7), n_labels=st.integers(1, 3))
def test_one_threshold_for_macro_from_probabilities_is_the_best_one(rng, n_rows, n_labels):
    probability = probabilities(rng, n_rows, n_labels)
    decoder = Thresholds("f1", "macro", per_label=False).fit_probability(probability)
    value, size = best_of(cuts(probability), "f1", "macro", probability)
    assert decoder.value_ == pytest.approx(value, abs=1e-12)
    assert decoder.decode(probability).sum() == size


# What the gain of a prediction is at value v, solved for the probability.
FIXED_POINTS = {
    "f1": lambda v, p: v / 2,
    "f2": lambda v, p: v / 5,
    "jaccard": lambda v, p: v / (1 + v),
    "hamming": lambda v, p: 0.5,
    "balanced accuracy": lambda v, p: p.mean(),
}


@pytest.mark.parametrize("name", FIXED_POINTS)
def test_the_threshold_on_probabilities_is_the_fixed_point(name):
    """For F1 half the optimal value, and so on; also where nothing or everything is predicted."""
    rng = np.random.default_rng(0)
    threshold = FIXED_POINTS[name]
    for probability in (rng.random((50, 3)), 0.3 + 0.1 * rng.random((9, 2)), np.full((4, 1), 0.9)):
        micro = Thresholds(METRICS[name][0], "micro").fit_probability(probability)
        # Where all probabilities are equal, every threshold up to them decides the same.
        expected = threshold(micro.value_, probability)
        if np.ptp(probability) > 0 or name != "balanced accuracy":
            assert micro.threshold_ == pytest.approx(expected, rel=1e-12)
    probability = rng.random((60, 4)) ** 2
    macro = Thresholds(METRICS[name][0], "macro").fit_probability(probability)
    for column, found in zip(probability.T, macro.thresholds_, strict=True):
        one = Thresholds(METRICS[name][0], "macro").fit_probability(column[:, None])
        assert found == pytest.approx(threshold(one.value_, column), rel=1e-12)


def test_certain_probabilities_are_as_good_as_label_sets():
    """With p in {0, 1} expected counts are counts."""
    y_true = np.random.default_rng(2).integers(0, 2, size=(20, 3))
    for average in ("micro", "macro"):
        decoder = Thresholds("f1", average).fit_probability(y_true)
        np.testing.assert_array_equal(decoder.decode(y_true), y_true)
        assert decoder.value_ == 1.0


def test_tiny_probabilities_are_not_zero():
    """Only an expectation of 0 is 0/0, however small another is."""
    for scale, predicted in ((1e-18, 0), (1e-6, 1)):
        probability = scale * np.array([[1.0, 0.0], [3.0, 0.0], [0.0, 0.0]])
        decoder = Thresholds("f1", "macro").fit_probability(probability)
        # A value of 6e-18 is equal to that of predicting nothing, one of 6e-6 is not.
        np.testing.assert_array_equal(decoder.decode(probability), [[0, 0], [predicted, 0], [0, 0]])
        assert decoder.value_ == pytest.approx((6 * scale * predicted + 1.0) / 2, rel=1e-9)
        assert decoder.thresholds_[1] == np.inf


# ------------------------------------------------------------------------------------- conventions


@in_turn("average", ["micro", "macro"])
@in_turn("name", SENSIBLE)
def test_a_label_without_a_positive_example_is_never_predicted(name, average):
    rng = np.random.default_rng(1)
    scores, y_true = rng.normal(size=(30, 4)), rng.integers(0, 2, size=(30, 4))
    y_true[:, 2] = 0
    decoder = Thresholds(METRICS[name][0], average).fit(scores, y_true)
    assert decoder.thresholds_[2] == np.inf
    assert not decoder.decode(100 + scores)[:, 2].any()
    crossed = Thresholds(METRICS[name][0], average, cv=3).fit(scores, y_true)
    assert crossed.thresholds_[2] == np.inf
    probability = rng.random((30, 4))
    probability[:, 2] = 0.0
    if average == "macro":
        expected = Thresholds(METRICS[name][0], average).fit_probability(probability)
        assert expected.thresholds_[2] == np.inf


@pytest.mark.parametrize("empty", [1.0, 0.0, 0.25])
def test_a_label_without_a_positive_example_counts_with_empty(empty):
    scores, y_true = np.array([[2.0, 1.0], [1.0, 2.0]]), np.array([[1, 0], [0, 0]])
    decoder = Thresholds(FBeta(empty=empty), "macro").fit(scores, y_true)
    assert decoder.value_ == (1.0 + empty) / 2


def test_one_threshold_for_all_holds_for_labels_without_a_positive_example_too():
    scores, y_true = np.array([[2.0, 1.8], [1.0, 0.0]]), np.array([[1, 0], [1, 0]])
    decoder = Thresholds("f1", "micro", per_label=False).fit(scores, y_true)
    np.testing.assert_array_equal(decoder.decode(scores), [[1, 1], [1, 0]])
    assert decoder.value_ == pytest.approx(0.8)


def test_a_label_that_is_always_true_is_always_predicted():
    scores = np.random.default_rng(0).normal(size=(8, 2))
    for average in ("micro", "macro"):
        decoder = Thresholds("f1", average).fit(scores, np.ones((8, 2), dtype=int))
        np.testing.assert_array_equal(decoder.thresholds_, -np.inf)
        assert decoder.value_ == 1.0


def test_precision_predicts_nothing_unless_nothing_is_worth_nothing():
    rng = np.random.default_rng(3)
    scores, y_true = rng.normal(size=(30, 2)), rng.integers(0, 2, size=(30, 2))
    np.testing.assert_array_equal(
        Thresholds("precision", "macro").fit(scores, y_true).thresholds_, np.inf
    )
    target = METRICS["precision empty 0"][0]
    assert np.isfinite(Thresholds(target, "macro").fit(scores, y_true).thresholds_).all()


def test_thresholds_stand_halfway():
    scores, y_true = np.array([[4.0], [3.0], [1.0], [0.0]]), np.array([[1], [1], [0], [0]])
    for average in ("micro", "macro"):
        assert Thresholds("f1", average).fit(scores, y_true).thresholds_ == [2.0]
    assert Thresholds("f1", "micro", per_label=False).fit(scores, y_true).threshold_ == 2.0


@pytest.mark.parametrize(
    ("lower", "upper"),
    [
        (1.0, np.nextafter(1.0, 2.0)),
        (np.nextafter(1.0, 0.0), 1.0),
        (0.0, 5e-324),
        (-5e-324, 0.0),
        (-1e308, 1.7e308),
        (1.6e308, 1.7e308),
        (np.float32(1.0), np.nextafter(np.float32(1.0), np.float32(2.0))),
    ],
)
def test_a_threshold_parts_the_closest_and_the_farthest_scores(lower, upper):
    scores, y_true = np.array([[lower], [upper]]), np.array([[0], [1]])
    for decoder in (
        Thresholds("f1", "macro"),
        Thresholds("f1", "micro"),
        Thresholds("f1", "instance"),
    ):
        decoder.fit(scores, y_true)
        np.testing.assert_array_equal(decoder.decode(scores), y_true)
        assert lower < decoder.thresholds_[0] <= upper


@every_average
@settings(max_examples=FEWER)
@given(rng=generators(), ties=st.booleans())
def test_float32_scores_are_decided_as_their_float64_values(average, rng, ties):
    scores, y_true = draw(rng, 40, 3, ties)
    narrow = scores.astype(np.float32)
    decoder = Thresholds("f1", average).fit(narrow, y_true)
    wide = Thresholds("f1", average).fit(narrow.astype(np.float64), y_true)
    np.testing.assert_array_equal(decoder.thresholds_, wide.thresholds_)
    assert decoder.thresholds_.dtype == np.float64
    assert decoder.value_ == wide.value_
    y_pred = decoder.decode(narrow)
    assert y_pred.dtype == np.uint8
    assert measure("f1", average, y_pred, y_true) == pytest.approx(decoder.value_, abs=1e-12)


# ---------------------------------------------------------------------------------------- symmetry

MODES = [
    ("micro", True),
    ("macro", True),
    ("micro", False),
    ("macro", False),
    ("instance", False),
]
every_mode = in_turn(("average", "per_label"), MODES)


@every_mode
@in_turn("name", ["f1", "balanced accuracy"])
@settings(max_examples=FEWER)
@given(rng=generators(), ties=st.booleans())
def test_thresholds_go_with_their_labels(average, per_label, name, rng, ties):
    """Permuting labels permutes thresholds; permuting rows changes nothing."""
    scores, y_true = draw(rng, 25, 5, ties)
    rows, labels = rng.permutation(25), rng.permutation(5)
    metric = METRICS[name][0]
    first = Thresholds(metric, average, per_label).fit(scores, y_true)
    second = Thresholds(metric, average, per_label).fit(
        scores[rows][:, labels], y_true[rows][:, labels]
    )
    np.testing.assert_array_equal(second.thresholds_, first.thresholds_[labels])
    assert second.value_ == pytest.approx(first.value_, abs=1e-15)


@every_mode
@settings(max_examples=FEWER)
@given(rng=generators(), ties=st.booleans())
def test_only_the_order_of_scores_matters(average, per_label, rng, ties):
    scores, y_true = draw(rng, 25, 4, ties)
    decisions = [
        Thresholds("f1", average, per_label).fit(x, y_true).decode(x)
        for x in (scores, 5 * scores - 3, np.arctan(scores))
    ]
    np.testing.assert_array_equal(decisions[1], decisions[0])
    np.testing.assert_array_equal(decisions[2], decisions[0])


# ----------------------------------------------------------------------------------- scikit-learn

SKLEARN = {
    "f1": sklearn.metrics.f1_score,
    "f2": lambda *args, **kwargs: sklearn.metrics.fbeta_score(*args, beta=2.0, **kwargs),
    "jaccard": sklearn.metrics.jaccard_score,
    "precision": sklearn.metrics.precision_score,
    "recall": sklearn.metrics.recall_score,
}


@every_average
@in_turn("name", SKLEARN)
@settings(max_examples=FEWER)
@given(rng=generators(), ties=st.booleans())
def test_value_is_that_of_scikit_learn(name, average, rng, ties):
    """With 0/0 = 1 there too."""
    scores, y_true = draw(rng, 30, 4, ties)
    decoder = Thresholds(METRICS[name][0], average).fit(scores, y_true)
    value = SKLEARN[name](
        y_true,
        decoder.decode(scores),
        average="samples" if average == "instance" else average,
        zero_division=1.0,
    )
    assert decoder.value_ == pytest.approx(value, abs=1e-12)


@settings(max_examples=FEWER)
@given(rng=generators(), ties=st.booleans())
def test_balanced_accuracy_is_that_of_scikit_learn(rng, ties):
    """Also where a label is always or never true: the class that does not occur is ignored."""
    scores, y_true = draw(rng, 30, 4, ties)
    decoder = Thresholds("balanced_accuracy", "macro").fit(scores, y_true)
    y_pred = decoder.decode(scores)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        values = [
            sklearn.metrics.balanced_accuracy_score(true, pred)
            for true, pred in zip(y_true.T, y_pred.T, strict=True)
        ]
    assert decoder.value_ == pytest.approx(np.mean(values), abs=1e-12)


# ----------------------------------------------------------------------------------- cross-fitting


def rare_labels(rng, n_rows, prevalence, separation=1.5):
    """Scores that tell true from false only roughly."""
    y_true = (rng.random((n_rows, len(prevalence))) < prevalence).astype(int)
    return separation * y_true + rng.normal(size=y_true.shape) + np.log(prevalence), y_true


@pytest.mark.parametrize("average", ["macro", "micro"])
def test_cross_fitting_is_better_on_new_rows_where_labels_are_rare(average):
    """Averaged over seeds, and on most of them; the plain fit looks better only on its own rows."""
    gains, plain_values, cross_values, cross_fresh = [], [], [], []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        prevalence = np.exp(rng.uniform(np.log(0.01), np.log(0.05), size=60))
        scores, y_true = rare_labels(rng, 200, prevalence)
        fresh, fresh_true = rare_labels(rng, 8000, prevalence)
        plain = Thresholds("f1", average).fit(scores, y_true)
        cross = Thresholds("f1", average, cv=5).fit(scores, y_true)
        on_fresh = [
            sklearn.metrics.f1_score(
                fresh_true, decoder.decode(fresh), average=average, zero_division=1.0
            )
            for decoder in (plain, cross)
        ]
        gains.append(on_fresh[1] - on_fresh[0])
        cross_fresh.append(on_fresh[1])
        plain_values.append(plain.value_)
        cross_values.append(cross.cross_fitted_value_)
    assert np.mean(gains) > 0.005
    assert np.mean(np.array(gains) > 0) >= 0.75
    # What cross-fitting reports is nearer to the truth by far.
    optimism = np.mean(cross_values) - np.mean(cross_fresh)
    assert abs(optimism) < 0.3 * (np.mean(plain_values) - np.mean(cross_fresh))


def test_cross_fitting_keeps_the_thresholds_labels_need():
    """Common labels on different scales: one threshold for all would lose much."""
    rng = np.random.default_rng(0)
    scores, y_true = rare_labels(rng, 600, np.full(6, 0.4), separation=3.0)
    scores = scores * np.array([1.0, 5.0, 0.1, 1.0, 5.0, 0.1]) + np.array([0, 9, -9, 5, -5, 0])
    for average in ("micro", "macro"):
        plain = Thresholds("f1", average).fit(scores, y_true)
        cross = Thresholds("f1", average, cv=4).fit(scores, y_true)
        shared = Thresholds("f1", average, per_label=False).fit(scores, y_true)
        assert cross.value_ > plain.value_ - 0.01 > shared.value_ + 0.1
        # (The common one happens to suit a label.)
        assert (cross.thresholds_ != shared.threshold_).sum() >= 5


def split(scores, y_true, cv, seed):
    """The folds as they are documented: shuffled rows dealt out in turn."""
    folds = np.random.default_rng(seed).permutation(len(scores)) % cv
    return [(folds != fold, folds == fold) for fold in range(cv)]


@pytest.mark.parametrize("cv", [2, 3, 4])
@pytest.mark.parametrize("name", ["f1", "balanced accuracy", "hamming"])
@settings(max_examples=FEWER)
@given(rng=generators(), ties=st.booleans())
def test_macro_cross_fitting_is_its_definition(name, cv, rng, ties):
    """From plain fits on the folds: which labels choose, what they get, and the value reported."""
    scores, y_true = draw(rng, 24, 5, ties)
    metric, utility = METRICS[name]
    found = Thresholds(metric, "macro", cv=cv, random_state=7).fit(scores, y_true)
    own, shared = np.zeros((2, cv, 5))
    held, decided = [], np.zeros((2, *scores.shape), dtype=bool)
    for fold, (train, rest) in enumerate(split(scores, y_true, cv, 7)):
        own[fold] = Thresholds(metric, "macro").fit(scores[train], y_true[train]).thresholds_
        one = Thresholds(metric, "macro", per_label=False).fit(scores[train], y_true[train])
        shared[fold] = one.threshold_
        decided[0][rest], decided[1][rest] = scores[rest] >= shared[fold], scores[rest] >= own[fold]
        held.append(rest)

    def chosen(label, rows):
        """1 for the label's own threshold, by the decisions on these rows."""
        true = y_true[rows, label]
        by_shared, by_own = (utility(*counts(decided[k][rows, label], true)) for k in (0, 1))
        return int(not true.any() or by_own > by_shared + 1e-12)

    everyone = Thresholds(metric, "macro", per_label=False).fit(scores, y_true).threshold_
    for label in range(5):
        wanted = np.sort(own[:, label])[cv // 2] if chosen(label, slice(None)) else everyone
        assert found.thresholds_[label] == (wanted if y_true[:, label].any() else np.inf)
    out_of_fold = np.zeros(scores.shape, dtype=bool)
    for rest, label in itertools.product(held, range(5)):
        out_of_fold[rest, label] = decided[chosen(label, ~rest)][rest, label]
    expected = measure(name, "macro", out_of_fold, y_true)
    assert found.cross_fitted_value_ == pytest.approx(expected, abs=1e-12)
    assert found.value_ == pytest.approx(
        measure(name, "macro", found.decode(scores), y_true), abs=1e-12
    )


@settings(max_examples=FEWER)
@given(rng=generators(), ties=st.booleans())
def test_micro_cross_fitting_keeps_the_best_combination(rng, ties):
    """Of all ways to give labels their own or the common one, on the decisions out of fold."""
    scores, y_true = draw(rng, 24, 4, ties)
    found = Thresholds("f1", "micro", cv=3, random_state=1).fit(scores, y_true)
    own, decided = [], np.zeros((2, *scores.shape), dtype=bool)
    for train, rest in split(scores, y_true, 3, 1):
        own.append(Thresholds("f1", "micro").fit(scores[train], y_true[train]).thresholds_)
        one = Thresholds("f1", "micro", per_label=False).fit(scores[train], y_true[train])
        decided[0][rest], decided[1][rest] = scores[rest] >= one.threshold_, scores[rest] >= own[-1]
    everyone = Thresholds("f1", "micro", per_label=False).fit(scores, y_true).threshold_
    median, positive = np.median(own, axis=0), y_true.any(axis=0)
    values = {
        which: measure(
            "f1", "micro", np.where(np.array(which, dtype=bool), decided[1], decided[0]), y_true
        )
        for which in itertools.product((0, 1), repeat=4)
    }
    fits = [
        which
        for which in values
        if np.array_equal(
            found.thresholds_, np.where(positive, np.where(which, median, everyone), np.inf)
        )
    ]
    assert max(values[which] for which in fits) == pytest.approx(max(values.values()), abs=1e-12)


@every_average
def test_with_one_threshold_cross_fitting_only_adds_a_value(average):
    scores, y_true = draw(np.random.default_rng(8), 40, 5, ties=False)
    plain = Thresholds("f1", average, per_label=False).fit(scores, y_true)
    cross = Thresholds("f1", average, per_label=False, cv=4, random_state=3).fit(scores, y_true)
    np.testing.assert_array_equal(cross.thresholds_, plain.thresholds_)
    assert plain.cross_fitted_value_ is None
    decided = np.zeros(scores.shape, dtype=bool)
    for train, rest in split(scores, y_true, 4, 3):
        one = Thresholds("f1", average, per_label=False).fit(scores[train], y_true[train])
        decided[rest] = scores[rest] >= one.threshold_
    expected = measure("f1", average, decided, y_true)
    assert cross.cross_fitted_value_ == pytest.approx(expected, abs=1e-12)


# ------------------------------------------------------------------------------------------ sparse


def sparse_draw(rng, n_rows, n_labels):
    """Nonnegative scores with many zeros, and label sets that are often true where nothing is."""
    scores, y_true = draw(rng, n_rows, n_labels, ties=bool(rng.integers(2)))
    scores = np.abs(scores)
    scores[rng.random(scores.shape) < 0.6] = 0.0
    if rng.random() < 0.3:
        scores[:, 0] += 1.0
    return scores, y_true


def with_stored_zeros(matrix, rng):
    """CSR that stores some zeros, with the entries of its rows out of order."""
    stored = (matrix != 0) | (rng.random(matrix.shape) < 0.2)
    rows, labels = np.nonzero(stored)
    order = rng.permutation(len(rows))
    rows, labels = rows[order], labels[order]
    sort = np.argsort(rows, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=len(matrix)))])
    return scipy.sparse.csr_matrix(
        (matrix[rows, labels][sort], labels[sort], starts), shape=matrix.shape
    )


@every_mode
@in_turn("cv", [None, 3])
@in_turn("name", ["f1", "negative predictive value", "balanced accuracy"])
@settings(max_examples=FEWER)
@given(rng=generators(), n_labels=st.integers(1, 5))
def test_sparse_scores_are_their_dense_values(average, per_label, cv, name, rng, n_labels):
    scores, y_true = sparse_draw(rng, 12, n_labels)
    decoder = Thresholds(METRICS[name][0], average, per_label, cv=cv)
    dense = decoder.fit(scores, y_true)
    thresholds, results = dense.thresholds_, (dense.value_, dense.cross_fitted_value_ or 0.0)
    y_pred = dense.decode(scores)
    for stored, true in (
        (scipy.sparse.csr_array(scores), scipy.sparse.csr_array(y_true)),
        (scipy.sparse.coo_array(scores), y_true),
        (with_stored_zeros(scores, rng), with_stored_zeros(y_true, rng)),
    ):
        sparse = decoder.fit(stored, true)
        np.testing.assert_array_equal(sparse.thresholds_, thresholds)
        assert (sparse.value_, sparse.cross_fitted_value_ or 0.0) == pytest.approx(
            results, abs=1e-13
        )
        answer = sparse.decode(stored)
        assert answer.format == "csr"
        assert answer.dtype == np.uint8
        assert isinstance(answer, scipy.sparse.csr_array)
        np.testing.assert_array_equal(answer.toarray(), y_pred)


@pytest.mark.parametrize(("average", "per_label"), MODES[:4])
@settings(max_examples=FEWER)
@given(rng=generators(), n_labels=st.integers(1, 5))
def test_sparse_probabilities_are_their_dense_values(average, per_label, rng, n_labels):
    probability = probabilities(rng, 12, n_labels) * (rng.random((12, n_labels)) < 0.5)
    dense = Thresholds("f1", average, per_label).fit_probability(probability)
    sparse = Thresholds("f1", average, per_label).fit_probability(
        scipy.sparse.csr_array(probability)
    )
    np.testing.assert_allclose(sparse.thresholds_, dense.thresholds_, rtol=1e-13)
    assert sparse.value_ == pytest.approx(dense.value_, abs=1e-13)
    np.testing.assert_array_equal(
        sparse.decode(scipy.sparse.csr_array(probability)).toarray(), dense.decode(probability)
    )


def test_a_sparse_matrix_is_never_made_dense():
    """Two billion entries, of which a few thousand are stored."""
    rng = np.random.default_rng(0)
    shape = (40_000, 50_000)
    scores = scipy.sparse.random_array(shape, density=2e-6, random_state=rng, format="csr")
    y_true = scores > 0.5
    for average, per_label in MODES:
        decoder = Thresholds("f1", average, per_label).fit(scores, y_true)
        assert (decoder.thresholds_ > 0).all()
        assert 0 < decoder.decode(scores).nnz <= scores.nnz
    Thresholds("f1", "macro", cv=2).fit(scores, y_true)
    Thresholds("f1", "micro").fit_probability(scores)


def test_the_arrays_of_the_caller_are_not_changed():
    rng = np.random.default_rng(0)
    scores, y_true = sparse_draw(rng, 12, 4)
    stored, true = with_stored_zeros(scores, rng), with_stored_zeros(y_true, rng)
    kept = [array.copy() for m in (stored, true) for array in (m.data, m.indices, m.indptr)]
    dense = scores.copy(), y_true.copy()
    for cv in (None, 2):
        Thresholds("f1", "micro", cv=cv).fit(stored, true).decode(stored)
        Thresholds("f1", "micro", cv=cv).fit(scores, y_true).decode(scores)
    np.testing.assert_array_equal(scores, dense[0])
    np.testing.assert_array_equal(y_true, dense[1])
    now = [array for m in (stored, true) for array in (m.data, m.indices, m.indptr)]
    for before, after in zip(kept, now, strict=True):
        np.testing.assert_array_equal(before, after)


# ------------------------------------------------------------------------------------------ errors

SCORES, Y_TRUE = np.array([[0.2, 0.7], [0.4, 0.1], [0.9, 0.3]]), np.array([[0, 1], [1, 0], [1, 1]])


def assert_refused(action, *words):
    """ValueError whose message has every one of the words."""
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        action()
    message = str(caught.value)
    missing = [word for word in words if word not in message]
    assert not missing, f"{missing} not in {message!r}"


@in_turn(
    ("arguments", "words"),
    [
        ({"metric": "f-one"}, ["metric", "'f-one'", "'f1'", "'balanced_accuracy'"]),
        ({"metric": 3}, ["metric", "3"]),
        ({"metric": "subset"}, ["metric", "subset", "counts"]),
        ({"metric": "precision@2"}, ["metric", "precision@2", "additive"]),
        ({"metric": Hamming([1.0, 2.0])}, ["metric", "weighted hamming", "without weights"]),
        ({"metric": CountTarget(lambda tp, fp, fn, tn: 0 * tp)}, ["metric", "counts"]),
        ({"average": "weighted"}, ["average", "'weighted'", "'micro'", "'macro'", "'instance'"]),
        ({"average": "instance", "per_label": True}, ["per_label", "instance", "per_label=False"]),
        ({"per_label": "yes"}, ["per_label", "'yes'"]),
        ({"cv": 1}, ["cv", "2", "1"]),
        ({"cv": 2.5}, ["cv", "whole number", "2.5"]),
        ({"cv": True}, ["cv", "True"]),
        ({"random_state": -1}, ["random_state", "-1"]),
    ],
)
def test_bad_settings_are_refused(arguments, words):
    assert_refused(lambda: Thresholds(**arguments), *words)


@in_turn(
    ("scores", "y_true", "words"),
    [
        ([[0.1, np.nan]], [[0, 1]], ["scores[0, 1]", "nan", "finite"]),
        ([[0.1, np.inf]], [[0, 1]], ["scores[0, 1]", "inf", "finite"]),
        ([0.1, 0.2], [[0, 1]], ["scores", "(2,)"]),
        (SCORES, Y_TRUE[:, :1], ["y_true", "(3, 1)", "(n, 2)"]),
        (SCORES, Y_TRUE[:2], ["rows", "3", "2"]),
        (SCORES, 2 * Y_TRUE, ["y_true[0, 1]", "2", "0 and 1"]),
        (np.zeros((0, 2)), np.zeros((0, 2)), ["scores", "(0, 2)", "at least one row"]),
        (np.zeros((3, 0)), np.zeros((3, 0)), ["scores", "(3, 0)", "one label"]),
        (scipy.sparse.csr_array(-SCORES), Y_TRUE, ["scores[0, 0]", "-0.2", "below 0", "dense"]),
        (scipy.sparse.csr_array([[0, np.nan]]), [[0, 1]], ["scores", "nan", "finite"]),
        (scipy.sparse.csr_array(SCORES), Y_TRUE[:2], ["rows", "3", "2"]),
        (scipy.sparse.csr_array(SCORES), Y_TRUE[:, :1], ["y_true", "(3, 1)", "(n, 2)"]),
        (
            scipy.sparse.csr_array(SCORES),
            scipy.sparse.csr_array(Y_TRUE[:, :1]),
            ["y_true", "(3, 1)", "(n, 2)"],
        ),
        (
            scipy.sparse.csr_array(SCORES),
            scipy.sparse.csr_array(3 * Y_TRUE),
            ["y_true[0, 1]", "3", "0 and 1"],
        ),
        (scipy.sparse.csr_array((0, 2)), np.zeros((0, 2)), ["scores", "(0, 2)"]),
        (scipy.sparse.csr_array(1j * SCORES), Y_TRUE, ["scores", "complex"]),
    ],
)
def test_bad_batches_are_refused(scores, y_true, words):
    assert_refused(lambda: Thresholds().fit(scores, y_true), *words)


@pytest.mark.parametrize(
    ("probability", "words"),
    [
        ([[0.1, 1.5]], ["probability[0, 1]", "1.5", "[0, 1]"]),
        ([[-0.1, 0.5]], ["probability[0, 0]", "-0.1", "[0, 1]"]),
        ([[np.nan, 0.5]], ["probability[0, 0]", "nan"]),
        (scipy.sparse.csr_array([[0.0, 1.5]]), ["probability[0, 1]", "1.5", "[0, 1]"]),
        (scipy.sparse.csr_array([[0.0, -0.5]]), ["probability[0, 1]", "-0.5"]),
        (np.zeros((0, 2)), ["probability", "(0, 2)"]),
    ],
)
def test_bad_probabilities_are_refused(probability, words):
    assert_refused(lambda: Thresholds().fit_probability(probability), *words)


def test_more_folds_than_rows_are_refused():
    assert_refused(lambda: Thresholds(cv=4).fit(SCORES, Y_TRUE), "cv", "4", "3", "rows")


def test_decoding_before_fitting_is_refused():
    assert_refused(lambda: Thresholds().decode(SCORES), "not fitted", "fit(scores, y_true)")


def test_decoding_other_labels_is_refused():
    decoder = Thresholds().fit(SCORES, Y_TRUE)
    for scores in (np.zeros((2, 3)), scipy.sparse.csr_array(np.ones((2, 3)))):
        assert_refused(lambda s=scores: decoder.decode(s), "scores", "(n, 2)", "(2, 3)")
    assert_refused(lambda: decoder.decode([[np.nan, 1.0]]), "scores[0, 0]", "nan")


def test_probabilities_are_refused_where_they_do_not_answer():
    assert_refused(
        lambda: Thresholds(average="instance").fit_probability(SCORES), "instance", "MinimumRisk"
    )
    assert_refused(lambda: Thresholds(cv=3).fit_probability(SCORES), "cv", "3", "fit(scores")
    for average in ("micro", "macro"):
        metric = METRICS["rewards errors"][0]
        assert_refused(
            lambda m=metric, a=average: Thresholds(m, a).fit_probability(SCORES),
            "rewards errors",
            "threshold",
        )


@pytest.mark.parametrize(
    ("target", "words"),
    [
        (LinearFractional([0, 0, 1, 1, 0], [-5, 1, 1, 1, 1]), ["tp", "denominator -2"]),
        (LinearFractional([0, 0, 3, 1, 0], [0, 1, 1, 1, 1]), ["fp", "denominator 3"]),
        (LinearFractional([0.5, 0, 0, 0, 0], [0, 0, 1, 0, 0]), ["tp", "denominator 0"]),
    ],
)
def test_measures_outside_the_unit_interval_are_refused(target, words):
    """For the entries of the population, which are not the labels of a set: here 3 rows."""
    assert_refused(lambda: Thresholds(target, "macro").fit(SCORES, Y_TRUE), "3 entries", *words)


@given(generators())
def test_of_equal_cross_fitted_choices_the_fewest_predictions_are_taken(rng):
    """All choices of own or shared thresholds are tried; ties are common in counts this small."""
    n_labels = int(rng.integers(1, 4))
    shared, own = rng.integers(0, 3, size=(2, 4, n_labels)).astype(float)
    own[2] = np.maximum(shared[0] + shared[2] - own[0], 0)
    own[0] = shared[0] + shared[2] - own[2]
    own[3] = np.maximum(shared[1] + shared[3] - own[1], 0)
    own[1] = shared[1] + shared[3] - own[3]
    shared[1], own[1] = shared[1] + 1, own[1] + 1  # A positive denominator, whatever is chosen.

    def of(chosen):
        tp, fp, fn, _ = np.where(chosen, own, shared).sum(axis=1)
        return 2 * tp / (2 * tp + fp + fn), -(tp + fp)

    choices = [np.array(c) for c in itertools.product([False, True], repeat=n_labels)]
    best, fewest = max((round(of(c)[0], 9), of(c)[1]) for c in choices)
    empty = own[0] + own[2] == 0
    found = prefers_own(FBeta(), "micro", shared, own)
    if not empty.any():
        assert (round(of(found)[0], 9), of(found)[1]) == (best, fewest)
    assert found[empty].all()
