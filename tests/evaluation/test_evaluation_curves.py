"""Laws of what is drawn: figures of each label, reliability and precision-recall curves."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn import calibration, metrics

from setwise.evaluation import evaluate, per_label, precision_recall, reliability
from tests.support.examples import generators

shapes = st.tuples(st.integers(1, 12), st.integers(1, 5))


def draw(generator, shape, levels=5):
    """Label sets and coarse probabilities, so that ties and zeros are frequent."""
    y_true, y_pred = (generator.random((2, *shape)) < 0.4).astype(int)
    return y_pred, y_true, generator.integers(0, levels + 1, shape) / levels


def theirs(function, *arguments, **options):
    """What scikit-learn says, without its warnings of labels that are never true."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*arguments, **options)


def is_their_curve(curve, index, y_true, probability):
    """Of scikit-learn's points, those that first reach a recall above 0."""
    here = slice(curve.start[index], curve.start[index + 1])
    precision, recall, threshold = theirs(metrics.precision_recall_curve, y_true, probability)
    first = [np.flatnonzero(recall == value)[-1] for value in np.unique(recall) if value > 0]
    if not y_true.any():
        first = []
    np.testing.assert_allclose(curve.recall[here], recall[first], rtol=1e-12)
    np.testing.assert_allclose(curve.precision[here], precision[first], rtol=1e-12)
    np.testing.assert_array_equal(curve.threshold[here], threshold[first])


@given(generators(), shapes, st.sampled_from([0.0, 1.0]))
def test_figures_of_each_label_are_those_of_scikit_learn(generator, shape, zero_division):
    y_pred, y_true, probability = draw(generator, shape)
    found = per_label(y_pred, y_true, probability=probability, zero_division=zero_division)
    for label in range(shape[1]):
        arguments = y_true[:, label], y_pred[:, label]
        options = {"average": "binary", "zero_division": zero_division}
        precision, recall, f1, _ = metrics.precision_recall_fscore_support(*arguments, **options)
        np.testing.assert_allclose(found.precision[label], precision)
        np.testing.assert_allclose(found.recall[label], recall)
        np.testing.assert_allclose(found.f1[label], f1)
        average = theirs(metrics.average_precision_score, arguments[0], probability[:, label])
        np.testing.assert_allclose(found.average_precision[label], average, atol=1e-15)
    np.testing.assert_array_equal(found.support, y_true.sum(axis=0))
    np.testing.assert_array_equal(found.predicted, y_pred.sum(axis=0))
    np.testing.assert_array_equal(found.both, (y_pred * y_true).sum(axis=0))


def test_the_means_of_the_figures_of_labels_are_the_macro_figures():
    y_pred, y_true, _ = draw(np.random.default_rng(1), (40, 6))
    found, figures = per_label(y_pred, y_true), evaluate(y_pred, y_true, n_bootstrap=0)
    assert found.average_precision is None
    for name in ("precision", "recall", "f1"):
        assert getattr(found, name).mean() == pytest.approx(figures[f"macro {name}"].value)


@given(generators(), shapes)
def test_precision_recall_curves_are_those_of_scikit_learn(generator, shape):
    _, y_true, probability = draw(generator, shape)
    micro = precision_recall(probability, y_true)
    is_their_curve(micro, 0, y_true.ravel(), probability.ravel())
    average = theirs(metrics.average_precision_score, y_true.ravel(), probability.ravel())
    assert micro.average_precision[0] == pytest.approx(average, abs=1e-15)
    by_label = precision_recall(probability, y_true, average=None)
    for label in range(shape[1]):
        is_their_curve(by_label, label, y_true[:, label], probability[:, label])


@given(generators(), shapes)
def test_interpolated_precision_is_the_best_at_that_recall_or_beyond(generator, shape):
    _, y_true, probability = draw(generator, shape)
    asked = np.array([0.0, 0.1, 1 / 3, 0.5, 0.6, 1.0])
    curves = precision_recall(probability, y_true, average=None)
    found = curves.interpolated(asked)
    for label in range(shape[1]):
        here = slice(curves.start[label], curves.start[label + 1])
        for place, recall in enumerate(asked):
            beyond = curves.precision[here][curves.recall[here] >= recall - 1e-9]
            assert found[label, place] == pytest.approx(max(beyond, default=0.0), abs=1e-12)


@given(generators(), shapes, st.integers(1, 9))
def test_reliability_is_scikit_learns_curve_and_gives_the_calibration_error(
    generator, shape, n_bins
):
    _, y_true, probability = draw(generator, shape, levels=7)
    found = reliability(probability, y_true, n_bins=n_bins)
    frequency, mean = calibration.calibration_curve(
        y_true.ravel(), probability.ravel(), n_bins=n_bins, pos_label=1
    )
    filled = found.count > 0
    np.testing.assert_allclose(found.frequency[filled], frequency)
    np.testing.assert_allclose(found.mean_probability[filled], mean, atol=1e-15)
    assert found.count.sum() == y_true.size
    assert not found.frequency[~filled].any()
    figures = evaluate(y_true, y_true, probability=probability, n_bins=n_bins, n_bootstrap=0)
    assert found.expected_error == pytest.approx(figures["expected calibration error"].value)


@pytest.mark.parametrize("form", ["csr_array", "csc_array", "coo_array", "lil_matrix"])
def test_sparse_probabilities_are_their_dense_values(form, monkeypatch):
    """Also if they are read a few rows or labels at a time."""
    y_pred, y_true, probability = draw(np.random.default_rng(3), (30, 7))
    make = getattr(sparse, form)
    dense = per_label(y_pred, y_true, probability=probability)
    curve, bins = precision_recall(probability, y_true), reliability(probability, y_true)
    monkeypatch.setattr("setwise.sparse.MOST_ENTRIES", 40)
    others = make(y_pred), make(y_true), make(probability)
    found = per_label(others[0], others[1], probability=others[2])
    for name in vars(dense):
        np.testing.assert_allclose(getattr(found, name), getattr(dense, name))
    again, cells = precision_recall(others[2], others[1]), reliability(others[2], others[1])
    for name in vars(curve):
        np.testing.assert_allclose(getattr(again, name), getattr(curve, name))
    for name in vars(bins):
        np.testing.assert_allclose(getattr(cells, name), getattr(bins, name), atol=1e-15)


def test_what_cannot_be_read_is_refused():
    with pytest.raises(ValueError, match="probability and y_true must have the same shape"):
        precision_recall([[0.5]], [[1, 0]])
    with pytest.raises(ValueError, match=r"probability\[0, 0\] is 1.5"):
        reliability([[1.5]], [[1]])
    with pytest.raises(ValueError, match="average must be 'micro' or None"):
        precision_recall([[0.5]], [[1]], average="macro")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="zero_division must be 0"):
        per_label([[1]], [[1]], zero_division=0.5)
    with pytest.raises(ValueError, match="n_bins"):
        reliability([[0.5]], [[1]], n_bins=0)
