"""Laws of evaluation: figures are scikit-learn's, also on resamples; intervals mean something."""

import json
import math
import tracemalloc
import warnings

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics

from setwise.evaluation import Evaluation, Figure, compare, evaluate, propensities
from setwise.evaluation import statistics as statistics_module
from setwise.evaluation.evaluation import Options
from setwise.evaluation.sample import checked_sample
from setwise.evaluation.statistics import Bootstrap, Title, holm, p_values, row_means
from setwise.targets import FBeta, Hamming, PrecisionAtK
from tests.support.examples import generators
from tests.support.turns import in_turn

N_BINS = 7
SPARSE = ["csr_array", "csr_matrix", "csc_array", "coo_array", "lil_matrix", "dok_array"]
NAN = float("nan")
zero_divisions = in_turn("zero_division", [0.0, 1.0, NAN])


# ------------------------------------------------------------------------------- the definitions


def reference(y_pred, y_true, probability, scores, *, ks, propensity, zero_division):
    """Every figure by name: scikit-learn where it has one, else a loop over the definition.

    scikit-learn reads one column as two classes. So a label that is never true, never predicted
    and ranked last is put beside a single one, which changes only the Hamming loss and the means
    over labels; these are taken from the first label alone.
    """
    one = y_true.shape[1] == 1
    pad = (lambda array, value: np.column_stack([array, np.full(len(array), value)])) if one else (
        lambda array, value: array
    )  # fmt: skip
    truth, predicted = pad(y_true, 0), pad(y_pred, 0)
    figures = {
        "hamming loss": metrics.hamming_loss(truth, predicted) * (2 if one else 1),
        "subset accuracy": metrics.accuracy_score(truth, predicted),
        "predicted size": np.mean([sum(row) for row in y_pred.tolist()]),
        "true size": np.mean([sum(row) for row in y_true.tolist()]),
        "macro balanced accuracy": balanced_accuracy(y_pred, y_true),
        "brier score": metrics.brier_score_loss(y_true.ravel(), probability.ravel(), pos_label=1),
    }
    functions = {
        "precision": metrics.precision_score,
        "recall": metrics.recall_score,
        "f1": metrics.f1_score,
        "jaccard": metrics.jaccard_score,
    }
    if math.isnan(zero_division):
        functions["jaccard"] = jaccard_without_nothing
    for name, function in functions.items():
        for group, average in {"instance": "samples", "micro": "micro"}.items():
            figures[f"{group} {name}"] = function(
                truth, predicted, average=average, zero_division=zero_division
            )
        by_label = {"labels": [0]} if one else {}
        for group in ("macro", "weighted"):
            figures[f"{group} {name}"] = function(
                truth, predicted, average=group, zero_division=zero_division, **by_label
            )
    for name in ("precision", "recall", "jaccard"):
        del figures[f"weighted {name}"]
    ranked = pad(scores, scores.min() - 1.0)
    figures["label ranking average precision"] = metrics.label_ranking_average_precision_score(
        truth, ranked
    )
    figures["ranking loss"] = metrics.label_ranking_loss(truth, ranked)
    figures["coverage error"] = metrics.coverage_error(truth, ranked)
    for k in ks:
        figures[f"ndcg@{k}"] = metrics.ndcg_score(truth, ranked, k=k)
        figures |= figures_at_k(y_true, scores, k, propensity, zero_division)
    return figures | calibration_errors(probability, y_true) | separations(y_true, scores)


def jaccard_without_nothing(y_true, y_pred, *, average, zero_division, labels=None):
    """scikit-learn's, which does not take NaN, of the rows or labels that have a union."""
    axis = 1 if average == "samples" else 0
    kept = (y_true + y_pred).any(axis=axis)
    if labels is not None:
        kept[1:] = False
    if not kept.any():
        return zero_division
    true, predicted = (sets[kept] if axis else sets[:, kept] for sets in (y_true, y_pred))
    if average == "macro":
        pairs = zip(true.T, predicted.T, strict=True)
        return np.mean([metrics.jaccard_score(*pair) for pair in pairs])
    return metrics.jaccard_score(true.ravel(), predicted.ravel()) if axis == 0 else np.mean(
        [metrics.jaccard_score(*pair) for pair in zip(true, predicted, strict=True)]
    )  # fmt: skip


def separations(y_true, scores):
    """scikit-learn's for the entries of all labels, and for each label that has them."""
    found = {}
    for name, least, function in (
        ("average precision", 0, metrics.average_precision_score),
        ("roc auc", 1, metrics.roc_auc_score),
    ):
        # Classes a label must have besides "true".
        judged = [
            function(true, own)
            for true, own in zip(y_true.T, scores.T, strict=True)
            if true.any() and (not least or not true.all())
        ]
        whole = y_true.any() and (not least or not y_true.all())
        found[f"macro {name}"] = np.mean(judged) if judged else NAN
        found[f"micro {name}"] = function(y_true.ravel(), scores.ravel()) if whole else NAN
    return found


def balanced_accuracy(y_pred, y_true):
    with warnings.catch_warnings():
        # scikit-learn warns of labels with one class; it then takes the recall of that class.
        warnings.simplefilter("ignore")
        pairs = zip(y_true.T, y_pred.T, strict=True)
        return np.mean([metrics.balanced_accuracy_score(true, pred) for true, pred in pairs])


def figures_at_k(y_true, scores, k, propensity, zero_division):
    """precision@k, recall@k and psp@k, row by row and label by label."""
    precisions, recalls, gained, possible = [], [], 0.0, 0.0
    for truth, row in zip(y_true.tolist(), scores.tolist(), strict=True):
        first = sorted(range(len(row)), key=lambda label: (-row[label], label))[:k]
        hits = sum(truth[label] for label in first)
        precisions.append(hits / k)
        recalls.append(hits / sum(truth) if sum(truth) else zero_division)
        gained += sum(truth[label] / propensity[label] for label in first)
        worths = [1 / p for p, is_true in zip(propensity, truth, strict=True) if is_true]
        possible += sum(sorted(worths, reverse=True)[:k])
    return {
        f"precision@{k}": np.mean(precisions),
        f"recall@{k}": NAN if np.isnan(recalls).all() else np.nanmean(recalls),
        f"psp@{k}": gained / possible if possible else zero_division,
    }


def calibration_errors(probability, y_true):
    """Gaps between mean probability and frequency, bin by bin."""
    edges = np.linspace(0, 1, N_BINS + 1)
    pairs = list(zip(probability.ravel().tolist(), y_true.ravel().tolist(), strict=True))
    expected, largest = 0.0, 0.0
    for b in range(N_BINS):
        inside = [(p, y) for p, y in pairs if edges[b] < p <= edges[b + 1] or (b == 0 and p == 0.0)]
        if inside:
            gap = abs(np.mean([p for p, _ in inside]) - np.mean([y for _, y in inside]))
            expected += gap * len(inside) / len(pairs)
            largest = max(largest, gap)
    return {"expected calibration error": expected, "maximum calibration error": largest}


# ---------------------------------------------------------------------------------- drawn samples


def drawn(rng, n_rows, n_labels, grid=True):
    """Label sets with empty rows and idle labels; scores and probabilities with ties and zeros."""
    y_true = (rng.random((n_rows, n_labels)) < rng.uniform(0.1, 0.7)).astype(int)
    y_pred = np.where(rng.random(y_true.shape) < 0.3, 1 - y_true, y_true)
    for sets in (y_true, y_pred):
        sets[rng.random(n_rows) < 0.2] = 0
        sets[:, rng.random(n_labels) < 0.2] = 0
        sets[rng.random(n_rows) < 0.1] = 1
    scores = y_true + rng.normal(size=y_true.shape)
    probability = rng.beta(0.5, 0.5, size=y_true.shape)
    if grid:
        scores, probability = np.round(scores), np.round(probability * N_BINS) / N_BINS
    return {"y_pred": y_pred, "y_true": y_true, "probability": probability, "scores": scores}


def sparse(case, kind="csr_array"):
    return {name: getattr(scipy.sparse, kind)(array) for name, array in case.items()}


def settings(rng, n_labels):
    ks = sorted(set(rng.integers(1, n_labels + 1, size=3).tolist()))
    return {"ks": ks, "propensity": rng.uniform(0.05, 1.0, n_labels)}


def values(evaluation):
    return {name: figure.value for name, figure in evaluation.items()}


def own_values(case, weights, *, ks, propensity, zero_division, targets=()):
    """The figures of our statistics at weights of the rows."""
    sample = checked_sample(*case.values())
    options = Options.of(sample, targets, ks, propensity, None, N_BINS, zero_division)
    return {
        title.name: row
        for statistic in options.statistics(sample)
        for title, row in zip(statistic.titles, statistic.at(weights), strict=True)
    }


def own_replicates(case, bootstrap, *, ks, propensity, zero_division):
    """The figures of our statistics on the resamples of a bootstrap."""
    sample = checked_sample(*case.values())
    options = Options.of(sample, (), ks, propensity, None, N_BINS, zero_division)
    statistics = options.statistics(sample)
    names = [title.name for statistic in statistics for title in statistic.titles]
    rows = bootstrap.replicates(statistics, *sample.true.shape)
    return dict(zip(names, rows, strict=True))


def assert_same(actual, expected):
    assert sorted(actual) == sorted(expected)
    for name, value in expected.items():
        np.testing.assert_allclose(actual[name], value, rtol=1e-12, atol=1e-12, err_msg=name)


# ----------------------------------------------------------------------- figures are scikit-learn's


@given(
    zero_division=st.sampled_from([0.0, 1.0, NAN]),
    form=st.sampled_from(["dense", *SPARSE]),
    rng=generators(),
    n_rows=st.integers(1, 12),
    n_labels=st.integers(1, 6),
    grid=st.booleans(),
)
def test_every_figure_is_its_definition(form, zero_division, rng, n_rows, n_labels, grid):
    """scikit-learn's own value where it has one."""
    case, chosen = drawn(rng, n_rows, n_labels, grid), settings(rng, n_labels)
    expected = reference(**case, **chosen, zero_division=zero_division)
    given_case = case if form == "dense" else sparse(case, form)
    evaluation = evaluate(
        **given_case, **chosen, n_bins=N_BINS, zero_division=zero_division, n_bootstrap=0
    )
    assert_same(values(evaluation), expected)


@given(
    zero_division=st.sampled_from([0.0, 1.0, NAN]),
    form=st.sampled_from(["dense", "csr_array"]),
    rng=generators(),
    n_rows=st.integers(1, 12),
    n_labels=st.integers(1, 6),
    grid=st.booleans(),
)
def test_a_figure_at_weights_is_the_figure_of_the_repeated_rows(
    form, zero_division, rng, n_rows, n_labels, grid
):
    """The key law of the bootstrap: every figure, for rows literally drawn with replacement."""
    case, chosen = drawn(rng, n_rows, n_labels, grid), settings(rng, n_labels)
    resamples = rng.integers(n_rows, size=(2, n_rows))
    weights = np.array([np.bincount(rows, minlength=n_rows) for rows in resamples]).T * 1.0
    given_case = case if form == "dense" else sparse(case)
    ours = own_values(given_case, weights, **chosen, zero_division=zero_division)
    for column, rows in enumerate(resamples):
        repeated = {name: np.take(array, rows, axis=0) for name, array in case.items()}
        expected = reference(**repeated, **chosen, zero_division=zero_division)
        # (Figures of ranked rows are exact to first order only, see below.)
        separated = set(separations(case["y_true"], case["scores"]))
        own = {name: value[column] for name, value in ours.items() if name not in separated}
        assert_same(own, {name: expected[name] for name in own})
        assert set(expected) - set(own) == separated


@given(rng=generators(), n_rows=st.integers(2, 12), n_labels=st.integers(2, 5), grid=st.booleans())
def test_figures_of_ranked_rows_are_right_to_first_order_in_the_weights(
    rng, n_rows, n_labels, grid
):
    """Against scikit-learn with weights, by a central difference."""
    case = drawn(rng, n_rows, n_labels, grid)
    row, step, changed = rng.integers(n_rows), 1e-5, []
    for sign in (1, -1):
        weights = np.ones(n_rows)
        weights[row] += sign * step
        ours = own_values(case, weights[:, None], ks=[1], propensity=None, zero_division=0.0)
        found = {}
        for name, function in (
            ("average precision", metrics.average_precision_score),
            ("roc auc", metrics.roc_auc_score),
        ):
            pairs = list(zip(case["y_true"].T, case["scores"].T, strict=True))
            kept = [pair for pair in pairs if pair[0].any() and not pair[0].all()]
            if len(kept) == n_labels:
                every = [function(*pair, sample_weight=weights) for pair in kept]
                found[f"macro {name}"] = ours[f"macro {name}"][0], np.mean(every)
            if kept:
                flat = case["y_true"].ravel(), case["scores"].ravel()
                whole = function(*flat, sample_weight=np.repeat(weights, n_labels))
                found[f"micro {name}"] = ours[f"micro {name}"][0], whole
        changed.append(found)
    for name, after in changed[0].items():
        slopes = (np.array(after) - changed[1][name]) / (2 * step)
        # (At 0 and 1 a figure can change to one side only, and is kept within bounds.)
        if 0.01 < after[1] < 0.99:
            assert slopes[0] == pytest.approx(slopes[1], abs=1e-6), name


@given(
    shape=st.sampled_from([(1, 1), (1, 4), (5, 1)]),
    zero_division=st.sampled_from([0.0, 1.0, NAN]),
    rng=generators(),
)
def test_one_row_and_one_label_are_samples_too(shape, zero_division, rng):
    case, chosen = drawn(rng, *shape), settings(rng, shape[1])
    expected = reference(**case, **chosen, zero_division=zero_division)
    for given_case in (case, sparse(case)):
        evaluation = evaluate(
            **given_case, **chosen, n_bins=N_BINS, zero_division=zero_division, n_bootstrap=3
        )
        assert_same(values(evaluation), expected)


@zero_divisions
@in_turn("full", [0, 1])
@in_turn("predicted", [0, 1])
def test_figures_where_all_labels_or_none_are_true(full, predicted, zero_division):
    case = {
        "y_pred": np.full((4, 3), predicted),
        "y_true": np.full((4, 3), full),
        "probability": np.full((4, 3), 0.5),
        "scores": np.zeros((4, 3)),
    }
    chosen = {"ks": [1, 3], "propensity": np.array([0.2, 0.5, 1.0])}
    expected = reference(**case, **chosen, zero_division=zero_division)
    for given_case in (case, sparse(case)):
        evaluation = evaluate(
            **given_case, **chosen, n_bins=N_BINS, zero_division=zero_division, n_bootstrap=20
        )
        assert_same(values(evaluation), expected)


@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_figures_do_not_depend_on_how_rows_are_split(form, monkeypatch):
    case = drawn(np.random.default_rng(1), 40, 7)
    case = case if form == "dense" else sparse(case)
    whole = evaluate(**case, targets=["f2"], n_bootstrap=20)
    monkeypatch.setattr("setwise.sparse.MOST_ENTRIES", 30)
    assert evaluate(**case, targets=["f2"], n_bootstrap=20) == whole


def test_resamples_do_not_depend_on_how_many_are_taken_at_once(monkeypatch):
    bootstrap = Bootstrap(30, 0.95, 3)
    whole = np.concatenate([part for part, _ in bootstrap.drawn(11, 4)], axis=1)
    assert (whole > 0).all()
    monkeypatch.setattr(statistics_module, "WEIGHT_ENTRIES", 80)
    parts = [part for part, _ in bootstrap.drawn(11, 4)]
    assert len(parts) > 1
    np.testing.assert_array_equal(np.concatenate(parts, axis=1), whole)
    np.testing.assert_allclose(whole.sum(axis=0), 11, rtol=1e-12)


def test_scores_are_ranked_by_before_probabilities():
    case = drawn(np.random.default_rng(2), 30, 6)
    both = evaluate(**case, n_bootstrap=0)
    scores_only = evaluate(case["y_pred"], case["y_true"], scores=case["scores"], n_bootstrap=0)
    by_probability = evaluate(
        case["y_pred"], case["y_true"], probability=case["probability"], n_bootstrap=0
    )
    assert both["ndcg@3"] == scores_only["ndcg@3"] != by_probability["ndcg@3"]
    assert both["brier score"] == by_probability["brier score"]
    assert "brier score" not in scores_only
    assert "psp@1" not in both
    assert not {"ranking", "calibration"} & {
        figure.group for figure in evaluate(case["y_pred"], case["y_true"]).values()
    }


def test_equal_scores_rank_the_lower_label_first():
    """Also among absent entries, which are zeros between positive and negative scores."""
    y_true = np.array([[0, 1, 0, 0, 1]])
    rows = {"positive tie": [[0, 2, 2, 0, 2]], "zeros": [[-1, 0, 0, 3, 0]], "none": [[0] * 5]}
    hits = {"positive tie": [1, 1, 2], "zeros": [0, 1, 1], "none": [0, 1, 1]}
    for name, scores in rows.items():
        for given_scores in (np.array(scores), scipy.sparse.csr_array(scores)):
            evaluation = evaluate(y_true, y_true, scores=given_scores, ks=(1, 2, 3), n_bootstrap=0)
            found = [evaluation[f"precision@{k}"].value * k for k in (1, 2, 3)]
            np.testing.assert_allclose(found, hits[name], atol=1e-15)


@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_a_target_is_reported_as_its_mean_loss(form):
    case = drawn(np.random.default_rng(3), 25, 5)
    y_pred, y_true = case["y_pred"], case["y_true"]
    targets = ["f2", Hamming([1, 2, 3, 4, 5]), "jaccard"]
    given_case = case if form == "dense" else sparse(case)
    sets = given_case["y_pred"], given_case["y_true"]
    evaluation = evaluate(*sets, targets=targets, zero_division=1.0)
    f2 = metrics.fbeta_score(y_true, y_pred, beta=2, average="samples", zero_division=1.0)
    weighted = ((y_pred != y_true) * [1, 2, 3, 4, 5]).sum(axis=1).mean() / 15
    assert evaluation["loss: f2"].value == pytest.approx(1 - f2, abs=1e-12)
    assert evaluation["loss: weighted hamming"].value == pytest.approx(weighted, abs=1e-12)
    jaccard, instance = evaluation["loss: jaccard"], evaluation["instance jaccard"]
    assert jaccard.value == pytest.approx(1 - instance.value, abs=1e-12)
    assert (jaccard.low, jaccard.high) == pytest.approx((1 - instance.high, 1 - instance.low))
    assert (jaccard.group, jaccard.better) == ("target", "lower")


def test_by_default_k_is_as_large_as_the_labels_allow():
    case = drawn(np.random.default_rng(4), 10, 4)
    assert {"precision@1", "precision@3"} <= set(evaluate(**case, n_bootstrap=0))
    assert "precision@5" not in evaluate(**case, n_bootstrap=0)


# ------------------------------------------------------------------------------------ propensities


def test_propensities_are_the_formula():
    """N = 20 rows, labels true 0, 3 and 20 times; C = (log 20 - 1) 2.5^0.55."""
    y_train = np.zeros((20, 3), dtype=int)
    y_train[:3, 1], y_train[:, 2] = 1, 1
    c = (math.log(20) - 1) * 2.5**0.55
    expected = [1 / (1 + c * math.exp(-0.55 * math.log(count + 1.5))) for count in (0, 3, 20)]
    np.testing.assert_allclose(propensities(y_train), expected, rtol=1e-14)
    np.testing.assert_array_equal(
        propensities(scipy.sparse.csc_array(y_train)), propensities(y_train)
    )
    by_hand = 1 / (1 + (math.log(20) - 1) * 1.4**0.5 / math.sqrt(3.4))
    np.testing.assert_allclose(propensities(y_train, a=0.5, b=0.4)[1], by_hand, rtol=1e-14)


def test_equal_propensities_leave_a_share_of_what_is_attainable():
    """psp@k with p = 1 is the sum of hits over the sum of min(k, n_true)."""
    case = drawn(np.random.default_rng(5), 30, 6)
    evaluation = evaluate(**case, ks=[2], propensity=np.ones(6), n_bootstrap=0)
    attainable = np.minimum(case["y_true"].sum(axis=1), 2).mean()
    assert evaluation["psp@2"].value == pytest.approx(
        2 * evaluation["precision@2"].value / attainable
    )


# --------------------------------------------------------------------------------------- intervals


def test_an_interval_covers_a_known_mean_as_often_as_it_says():
    """Subset accuracy of rows that are right with probability 0.7; 80 % intervals."""
    rng, covered = np.random.default_rng(6), 0
    title = (Title("right", "instance", "higher"),)
    for seed in range(400):
        drawn_rows = 1.0 * (rng.random((80, 1)) < 0.7)
        bootstrap = Bootstrap(400, 0.8, seed)
        replicates = bootstrap.replicates([row_means(title, drawn_rows)], 80, 1)
        [(low, high)] = bootstrap.intervals(drawn_rows.mean(axis=0), replicates, 0.0, 1.0)
        assert low is not None
        assert high is not None
        covered += low <= 0.7 <= high
    assert 0.74 <= covered / 400 <= 0.86


def test_the_interval_of_a_mean_is_the_normal_one_for_many_rows():
    rng = np.random.default_rng(7)
    y_true = (rng.random((2000, 3)) < 0.4).astype(int)
    y_pred = np.where(rng.random(y_true.shape) < 0.2, 1 - y_true, y_true)
    figure = evaluate(y_pred, y_true, n_bootstrap=4000)["hamming loss"]
    rows = (y_pred != y_true).mean(axis=1)
    half = 1.959964 * rows.std() / math.sqrt(2000)
    np.testing.assert_allclose(
        [figure.low, figure.high], [rows.mean() - half, rows.mean() + half], atol=0.08 * half
    )


def test_intervals_are_percentiles_of_the_figure_on_resamples_about_its_value():
    """Every figure, from its values at the very weights that were drawn."""
    case = drawn(np.random.default_rng(8), 15, 4)
    chosen = {"ks": [1, 2], "propensity": np.array([0.3, 0.5, 0.9, 1.0]), "zero_division": 0.0}
    evaluation = evaluate(**case, **chosen, n_bins=N_BINS, n_bootstrap=9, random_state=5)
    replicates = own_replicates(case, Bootstrap(9, 0.95, 5), **chosen)
    for name, figure in evaluation.items():
        low, median, high = np.quantile(replicates[name], [0.025, 0.5, 0.975])
        most = np.inf if "size" in name or "coverage" in name else 1.0
        ends = np.clip(figure.value + np.array([low, high]) - median, 0.0, most)
        np.testing.assert_allclose([figure.low, figure.high], ends, atol=1e-12, err_msg=name)


@zero_divisions
def test_replicates_are_figures_at_weights_and_macro_ones_spread_by_a_prior(zero_division):
    """Macro figures of a label with weights of Gamma(1/2) in its four counts, one at a time."""
    case = drawn(np.random.default_rng(28), 15, 4)
    chosen = {"ks": [1], "propensity": None, "zero_division": zero_division}
    bootstrap = Bootstrap(7, 0.95, 3)
    found = own_replicates(case, bootstrap, **chosen)
    weights = np.concatenate([part for part, _ in bootstrap.drawn(15, 4)], axis=1)
    plain = own_values(case, weights, **chosen)
    spread = {f"macro {of}" for of in ("precision", "recall", "f1", "jaccard")}
    spread.add("macro balanced accuracy")
    for name, values_found in found.items():
        if name not in spread:
            np.testing.assert_array_equal(values_found, plain[name], err_msg=name)
    drawn_again = list(bootstrap.drawn(15, 4, True))
    prior = np.concatenate([part for _, part in drawn_again], axis=-1)
    assert prior.shape == (4, 4, 7)
    truth, predicted = case["y_true"], case["y_pred"]
    for column in range(7):
        recalls = []
        for label in range(4):
            own = weights[:, column]
            hit = own @ (truth[:, label] * predicted[:, label])
            missed = own @ (truth[:, label] * (1 - predicted[:, label]))
            both, _, only_true, _ = prior[:, label, column]
            if truth[:, label].any() or not math.isnan(zero_division):
                recalls.append((hit + both) / (hit + missed + both + only_true))
        assert found["macro recall"][column] == pytest.approx(np.mean(recalls), abs=1e-12)


def test_the_prior_has_the_moments_of_gamma_of_a_half():
    [(_, prior)] = Bootstrap(100, 0.95, 0).drawn(10, 200, True)
    assert prior.mean() == pytest.approx(0.5, abs=0.02)
    assert prior.var() == pytest.approx(0.5, abs=0.03)


def test_a_higher_confidence_widens_every_interval():
    case = drawn(np.random.default_rng(9), 60, 5, grid=False)
    wide, narrow = (evaluate(**case, ks=[1, 2], confidence=level) for level in (0.99, 0.5))
    for name, figure in wide.items():
        assert figure.low < narrow[name].low < narrow[name].high < figure.high, name


def test_the_same_seed_gives_the_same_intervals():
    case = drawn(np.random.default_rng(10), 30, 5)
    assert evaluate(**case, random_state=1) == evaluate(**case, random_state=1)
    assert evaluate(**case, random_state=1) != evaluate(**case, random_state=2)
    generator = np.random.default_rng(1)
    assert evaluate(**case, random_state=generator) == evaluate(**case, random_state=1)


def test_one_row_has_intervals_of_length_zero_but_where_a_prior_spreads_them():
    figures = evaluate(**drawn(np.random.default_rng(11), 1, 3)).values()
    undefined = {figure.name for figure in figures if math.isnan(figure.value)}
    assert {"macro roc auc"} <= undefined <= set(separations(np.ones((1, 1)), np.ones((1, 1))))
    for figure in (figure for figure in figures if not math.isnan(figure.value)):
        length = figure.high - figure.low
        if figure.group == "macro" and figure.name != "weighted f1":
            assert length > 0.1, figure.name
        else:
            assert length == pytest.approx(0.0, abs=1e-12), figure.name


def test_without_resamples_there_are_values_only():
    case = drawn(np.random.default_rng(12), 20, 4)
    with_intervals, without = evaluate(**case, n_bootstrap=50), evaluate(**case, n_bootstrap=0)
    assert values(with_intervals) == values(without)
    assert all(figure.low is None and figure.high is None for figure in without.values())


# --------------------------------------------------------------------------------------- comparison


def two_predictions(seed, n_rows=80, n_labels=5):
    a = drawn(np.random.default_rng(seed), n_rows, n_labels)
    b = drawn(np.random.default_rng(seed + 1), n_rows, n_labels)
    arguments = {"y_true": a["y_true"]}
    for name in ("y_pred", "probability", "scores"):
        arguments |= {f"{name}_a": a[name], f"{name}_b": b[name]}
    return arguments


def swapped(arguments):
    other = {"_a": "_b", "_b": "_a"}
    return {name[:-2] + other.get(name[-2:], name[-2:]): array for name, array in arguments.items()}


def test_equal_predictions_do_not_differ():
    case = drawn(np.random.default_rng(13), 40, 5)
    comparison = compare(
        case["y_pred"],
        case["y_pred"],
        case["y_true"],
        probability_a=case["probability"],
        probability_b=case["probability"],
    )
    assert {"hamming loss", "ndcg@3", "brier score"} <= set(comparison)
    for entry in comparison.values():
        assert (entry.value, entry.low, entry.high) == (0.0, 0.0, 0.0)
        assert (entry.p, entry.adjusted_p, entry.significant) == (1.0, 1.0, False)


def test_swapping_the_predictions_flips_every_difference():
    arguments = two_predictions(14)
    forward, backward = compare(**arguments), compare(**swapped(arguments))
    for name, entry in forward.items():
        other = backward[name]
        assert (other.a, other.b, other.value) == (entry.b, entry.a, -entry.value)
        np.testing.assert_allclose([other.low, other.high], [-entry.high, -entry.low], atol=1e-12)
        assert (other.p, other.adjusted_p) == (entry.p, entry.adjusted_p)


def test_a_comparison_holds_the_evaluation_of_each():
    arguments = two_predictions(15)
    comparison = compare(**arguments, random_state=4)
    for side in "ab":
        alone = evaluate(
            arguments[f"y_pred_{side}"],
            arguments["y_true"],
            probability=arguments[f"probability_{side}"],
            scores=arguments[f"scores_{side}"],
            random_state=4,
        )
        assert getattr(comparison, side) == alone
    described_only = {"predicted size", "true size"}
    assert set(comparison) == set(comparison.a) - described_only
    for name, entry in comparison.items():
        assert entry.value == comparison.b[name].value - comparison.a[name].value


def test_both_predictions_are_judged_on_the_same_rows():
    """Losses that differ by a constant: the difference has no spread, though each loss has."""
    y_true = np.tile([[0, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 1]], (20, 1))
    y_pred_a = np.zeros_like(y_true)
    y_pred_b = y_pred_a.copy()
    y_pred_b[:, 3] = 1 - y_true[:, 3]
    y_pred_a[:, 3] = y_true[:, 3]
    entry = compare(y_pred_a, y_pred_b, y_true)["hamming loss"]
    np.testing.assert_allclose([entry.low, entry.value, entry.high], 0.25, atol=1e-12)
    evaluation = evaluate(y_pred_b, y_true)["hamming loss"]
    assert evaluation.high - evaluation.low > 0.05


def test_the_interval_of_a_difference_is_of_that_figure_on_the_same_resamples():
    """Every figure, from the values of both at the very weights that were drawn; p included."""
    arguments, chosen = two_predictions(26, 15, 4), {"ks": [1, 2], "propensity": np.full(4, 0.5)}
    comparison = compare(**arguments, **chosen, n_bins=N_BINS, n_bootstrap=9, random_state=5)
    cases = [
        {
            "y_pred": arguments[f"y_pred_{side}"],
            "y_true": arguments["y_true"],
            "probability": arguments[f"probability_{side}"],
            "scores": arguments[f"scores_{side}"],
        }
        for side in "ab"
    ]
    bootstrap, chosen = Bootstrap(9, 0.95, 5), {**chosen, "zero_division": 0.0}
    a, b = (own_replicates(case, bootstrap, **chosen) for case in cases)
    for name, entry in comparison.items():
        value, changes = comparison.b[name].value - comparison.a[name].value, b[name] - a[name]
        low, median, high = np.quantile(changes, [0.025, 0.5, 0.975])
        ends = value + low - median, value + high - median
        np.testing.assert_allclose([entry.low, entry.high], ends, atol=1e-12, err_msg=name)
        as_large = sum(abs(d - value) >= abs(value) - 1e-12 for d in changes)
        assert entry.p == (1 + as_large) / 10, name


def test_p_is_the_share_of_deviations_as_large_as_the_difference():
    """By hand: deviations 0.0, 0.1, 0.2, 0.3 of a difference 0.2, two as large: (1 + 2) / 5."""
    replicates = np.array([[0.2, 0.3, 0.0, 0.5]])
    np.testing.assert_allclose(p_values(np.array([0.2]), replicates), [3 / 5])
    np.testing.assert_allclose(p_values(np.array([-0.2]), -replicates), [3 / 5])


def test_p_is_never_zero_and_small_for_a_clear_difference():
    rng = np.random.default_rng(16)
    y_true = (rng.random((200, 4)) < 0.5).astype(int)
    comparison = compare(1 - y_true, y_true, y_true, n_bootstrap=499)
    assert comparison["hamming loss"].value == -1.0
    assert comparison["hamming loss"].p == 1 / 500
    assert comparison["hamming loss"].adjusted_p == len(comparison) / 500
    assert comparison["hamming loss"].significant


def test_without_a_difference_p_is_below_a_level_as_often_as_the_level():
    """Figures of two predictions that are equally good: p <= 0.2 in a fifth of the trials."""
    rng, below = np.random.default_rng(17), 0
    title = (Title("loss", "instance", "lower"),)
    for seed in range(400):
        change = rng.normal(size=(60, 1)) * rng.exponential(size=(60, 1))
        bootstrap = Bootstrap(300, 0.95, seed)
        replicates = bootstrap.replicates([row_means(title, change)], 60, 1)
        below += p_values(change.mean(axis=0), replicates)[0] <= 0.2
    assert 0.14 <= below / 400 <= 0.27


def test_holm_steps_down_from_the_smallest_p():
    """By hand: 4 * 0.01, then 3 * 0.015 = 0.045, then 2 * 0.02 held up at 0.045, then 0.9."""
    np.testing.assert_allclose(holm(np.array([0.02, 0.9, 0.01, 0.015])), [0.045, 0.9, 0.04, 0.045])
    np.testing.assert_array_equal(holm(np.array([0.7, 0.8])), [1.0, 1.0])


def test_figures_that_only_one_prediction_has_are_left_out():
    arguments = two_predictions(18)
    del arguments["probability_b"]
    comparison = compare(**arguments)
    assert "brier score" in comparison.a
    assert "brier score" not in comparison
    assert "ndcg@3" in comparison


def test_a_comparison_without_resamples_has_differences_only():
    comparison = compare(**two_predictions(19), n_bootstrap=0)
    for entry in comparison.values():
        assert entry.value == entry.b - entry.a
        assert entry.low is entry.high is entry.p is entry.adjusted_p is entry.significant is None


# ------------------------------------------------------------------------------ results as objects


def test_results_read_like_mappings():
    case = drawn(np.random.default_rng(20), 20, 4)
    evaluation = evaluate(**case, n_bootstrap=10)
    assert isinstance(evaluation, Evaluation)
    assert isinstance(evaluation["instance f1"], Figure)
    assert list(evaluation) == list(evaluation.figures)
    assert all(name == figure.name for name, figure in evaluation.items())
    groups = [figure.group for figure in evaluation.values()]
    assert list(dict.fromkeys(groups)) == ["instance", "micro", "macro", "ranking", "calibration"]
    with pytest.raises(KeyError, match=r"instance f3.*instance f1"):
        evaluation["instance f3"]


NAMED = {
    "f1_weighted": "weighted_f1",
    "balanced_accuracy": "macro_balanced_accuracy",
    "F1-score": "f1",
    "accuracy": "subset",
}


@in_turn(("given", "named"), NAMED.items())
def test_the_figure_of_a_target_is_found_by_every_name_of_it(given, named):
    case = drawn(np.random.default_rng(20), 20, 4)
    evaluation = evaluate(**case, targets=[given], n_bootstrap=0)
    names = [name for name in evaluation if name.startswith("loss: ")]
    assert names == [f"loss: {named}"]
    assert f"loss: {given}" in evaluation
    assert evaluation[f"loss: {given}"] is evaluation[f"loss: {named}"]
    other = compare(case["y_true"], case["y_pred"], case["y_true"], targets=[given], n_bootstrap=0)
    assert other[f"loss: {given}"] is other[f"loss: {named}"]
    for absent in ("loss: f3", "loss: nothing", "loss: "):
        assert absent not in evaluation
        with pytest.raises(KeyError, match=f"no figure named '{absent}'"):
            evaluation[absent]


@pytest.mark.parametrize("name", ["f1", "jaccard"])
def test_the_note_on_empty_rows_names_the_target_that_is_scikit_learns_number(name):
    y_pred, y_true = [[0, 0], [1, 0], [1, 1]], [[0, 0], [1, 0], [0, 1]]
    judged = evaluate(y_pred, y_true, targets=[name, f"{name}_samples"], n_bootstrap=0)
    own, theirs = (judged[f"loss: {name}{more}"].value for more in ("", "_samples"))
    assert judged[f"instance {name}"].value == pytest.approx(1.0 - theirs)
    assert judged[f"instance {name}"].value != pytest.approx(1.0 - own)
    said = f"'instance {name}' is not 1 - 'loss: {name}' but 1 - 'loss: {name}_samples'"
    assert str(judged).count(said) == 1


@pytest.mark.parametrize("n_bootstrap", [0, 10])
def test_results_survive_json(n_bootstrap):
    case = drawn(np.random.default_rng(21), 20, 4)
    evaluation = evaluate(**case, targets=["f2"], n_bootstrap=n_bootstrap)
    for result in (evaluation, compare(**two_predictions(21), n_bootstrap=n_bootstrap)):
        assert json.loads(json.dumps(result.to_dict(), allow_nan=False)) == result.to_dict()
    figure = evaluation.to_dict()["figures"]["instance f1"]
    assert Figure(**figure) == evaluation["instance f1"]


def test_the_table_shows_every_figure_with_its_interval():
    evaluation = evaluate([[1, 1, 0], [0, 0, 1]] * 5, [[1, 0, 0], [0, 0, 1]] * 5, n_bootstrap=200)
    lines = str(evaluation).splitlines()
    assert lines[0] == "10 rows, 3 labels; 95 % intervals from 200 resamples"
    assert [line for line in lines[1:] if not line.startswith(" ")] == [
        "instance",
        "micro",
        "macro",
    ]
    for name, figure in evaluation.items():
        line = next(line for line in lines if line.strip().startswith(f"{name} "))
        assert f"{figure.value:.4f}  [" in line
        assert (f"{figure.better} is better" in line) == (figure.better is not None)


def test_the_table_of_a_comparison_says_when_no_p_can_be_small_enough():
    arguments = two_predictions(22)
    few, many = compare(**arguments, n_bootstrap=50), compare(**arguments, n_bootstrap=1000)
    assert "increase n_bootstrap" in str(few)
    assert "increase n_bootstrap" not in str(many)
    assert f"{few['ranking loss'].p:.4f}" in str(few)


# ----------------------------------------------------------------------------------- sparse arrays


def large_sparse(n_rows=2000, n_labels=30_000, stored=100):
    rng = np.random.default_rng(23)
    columns = np.concatenate([rng.choice(n_labels, stored, replace=False) for _ in range(n_rows)])
    entries = rng.uniform(0.01, 1.0, n_rows * stored)
    shape, ends = (n_rows, n_labels), np.arange(n_rows + 1) * stored
    probability = scipy.sparse.csr_array((entries, columns, ends), shape=shape)
    y_true = (probability > 0.95).astype(int)
    y_pred = (probability > 0.9).astype(int)
    return y_pred, y_true, probability


def test_sparse_arrays_stay_sparse():
    """No dense copy of all rows: that would take 288 MB in float64."""
    y_pred, y_true, probability = large_sparse(1200, stored=30)
    options = {"targets": ("f2", "hamming"), "propensity": propensities(y_true), "n_bootstrap": 10}
    tracemalloc.start()
    try:
        evaluate(y_pred, y_true, probability=probability, **options)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 0.25 * 8 * y_true.shape[0] * y_true.shape[1]


def test_a_sparse_sample_of_many_labels_has_the_figures_of_the_dense_one():
    y_pred, y_true, probability = large_sparse(60, 5000, 40)
    options = {"propensity": propensities(y_true), "n_bootstrap": 30}
    from_sparse = evaluate(y_pred, y_true, probability=probability, **options)
    from_dense = evaluate(
        y_pred.toarray(), y_true.toarray(), probability=probability.toarray(), **options
    )
    for name, figure in from_sparse.items():
        other = from_dense[name]
        np.testing.assert_allclose(
            [figure.value, figure.low, figure.high],
            [other.value, other.low, other.high],
            rtol=1e-12,
            err_msg=name,
        )


def test_the_callers_arrays_are_never_changed():
    """Also a CSR with labels out of order and stored zeros."""
    shape = (2, 3)
    sets = scipy.sparse.csr_array(([1, 1, 0], [2, 0, 1], [0, 2, 3]), shape=shape)
    likely = scipy.sparse.csr_array(([0.75, 0.2, 0.0], [2, 0, 1], [0, 2, 3]), shape=shape)
    dense = np.array([[1, 0, 1], [0, 0, 0]])
    kept = [(array.data.copy(), array.indices.copy()) for array in (sets, likely)]
    evaluation = evaluate(sets, dense, probability=likely, scores=likely, n_bootstrap=10)
    for array, (data, indices) in zip((sets, likely), kept, strict=True):
        np.testing.assert_array_equal(array.data, data)
        np.testing.assert_array_equal(array.indices, indices)
    np.testing.assert_array_equal(dense, [[1, 0, 1], [0, 0, 0]])
    assert evaluation["subset accuracy"].value == 1.0
    assert evaluation["brier score"].value == pytest.approx((0.8**2 + 0.25**2) / 6)


def test_lists_and_read_only_arrays_are_taken():
    case = drawn(np.random.default_rng(24), 10, 4)
    frozen = {name: array.copy() for name, array in case.items()}
    for array in frozen.values():
        array.flags.writeable = False
    lists = {name: array.tolist() for name, array in case.items()}
    assert evaluate(**frozen) == evaluate(**lists) == evaluate(**case)


# ------------------------------------------------------------------------------------------- errors

SETS, HALF = np.eye(3, 4, dtype=int), np.full((3, 4), 0.5)


def assert_refused(action, *words):
    """ValueError whose message has every one of the words, in any order and case."""
    pattern = "(?is)" + "".join(f"(?=.*(?:{word}))" for word in words)
    with pytest.raises(ValueError, match=pattern):
        action()


def changed(array, position, value):
    """A copy with one entry replaced."""
    copy = np.array(array, dtype=float)
    copy[position] = value
    return copy


either_form = in_turn("form", [np.asarray, scipy.sparse.csr_array, scipy.sparse.coo_matrix])


@either_form
@pytest.mark.parametrize("shape", [(2, 4), (3, 5), (4, 3)])
def test_arrays_of_another_shape_are_refused(form, shape):
    other = form(np.zeros(shape))
    words = [rf"\({shape[0]}, {shape[1]}\)", r"\(3, 4\)", "y_true", "same shape"]
    assert_refused(lambda: evaluate(form(np.zeros(shape, dtype=int)), SETS), "y_pred", *words)
    assert_refused(lambda: evaluate(SETS, SETS, probability=other), "probability", *words)
    assert_refused(lambda: evaluate(SETS, SETS, scores=other), "scores", *words)
    assert_refused(lambda: compare(SETS, other.astype(int), SETS), "y_pred_b", *words)


def test_arrays_of_other_dimensions_are_refused():
    assert_refused(lambda: evaluate(np.zeros(4, dtype=int), SETS), "y_pred", r"\(4,\)", "shape")
    assert_refused(lambda: evaluate(SETS, SETS, scores=np.zeros(4)), "scores", r"\(4,\)", "shape")


@either_form
@in_turn("value", [2, -1, 0.5, np.nan])
def test_label_sets_of_other_numbers_are_refused(form, value):
    wrong = form(changed(SETS, (1, 2), value))
    words = [r"\[1, 2\]", str(value), "0 and 1"]
    assert_refused(lambda: evaluate(wrong, SETS), "y_pred", *words)
    assert_refused(lambda: evaluate(SETS, wrong), "y_true", *words)
    assert_refused(lambda: propensities(wrong), "y_train", *words)


@either_form
@pytest.mark.parametrize("value", [-0.1, 1.5])
def test_probabilities_outside_the_unit_interval_are_refused(form, value):
    wrong = form(changed(HALF, (2, 1), value))
    assert_refused(
        lambda: evaluate(SETS, SETS, probability=wrong),
        "probability",
        r"\[2, 1\]",
        str(value),
        r"\[0, 1\]",
    )
    assert_refused(
        lambda: compare(SETS, SETS, SETS, probability_b=wrong), "probability_b", r"\[2, 1\]"
    )


@either_form
@in_turn("name", ["probability", "scores"])
@in_turn("value", [np.nan, np.inf])
def test_numbers_that_are_not_finite_are_refused(form, name, value):
    wrong = form(changed(HALF, (0, 3), value))
    assert_refused(
        lambda: evaluate(SETS, SETS, **{name: wrong}),
        name,
        r"\[0, 3\]",
        str(value),
        "finite|lie in",
    )


@either_form
@pytest.mark.parametrize("shape", [(0, 4), (3, 0)])
def test_samples_without_rows_or_labels_are_refused(form, shape):
    empty = form(np.zeros(shape, dtype=int))
    assert_refused(
        lambda: evaluate(empty, empty), "at least one row and one label", rf"\({shape[0]}, "
    )


@pytest.mark.parametrize("kind", ["csr_array", "csc_array"])
def test_sparse_entries_that_are_repeated_are_refused(kind):
    repeated = getattr(scipy.sparse, kind)(([1, 1, 1], [0, 0, 2], [0, 2, 3, 3]), shape=(3, 3))
    true = np.eye(3, dtype=int)
    words = ["each entry once", "1 entries are repeated"]
    assert_refused(lambda: evaluate(repeated, true), "y_pred", *words)
    assert_refused(lambda: evaluate(true, true, scores=repeated), "scores", *words)
    assert_refused(lambda: evaluate(true, true, probability=repeated * 0.5), "probability", *words)


def test_other_kinds_of_entries_are_refused():
    assert_refused(lambda: evaluate(SETS.astype(str), SETS), "y_pred", "dtype")
    complex_sets = scipy.sparse.csr_array(SETS.astype(complex))
    assert_refused(lambda: evaluate(complex_sets, SETS), "y_pred", "complex")


@pytest.mark.parametrize("ks", [[0], [-1], [1.5], [True], 3, "13"])
def test_ks_that_are_not_positive_whole_numbers_are_refused(ks):
    assert_refused(lambda: evaluate(SETS, SETS, scores=HALF, ks=ks), "ks", "whole number")


def test_a_k_above_the_number_of_labels_is_refused():
    assert_refused(lambda: evaluate(SETS, SETS, scores=HALF, ks=(1, 5)), "ks", "5", "4", "labels")


@pytest.mark.parametrize("confidence", [0.0, 1.0, -0.5, 95, np.nan, "high"])
def test_a_confidence_outside_the_unit_interval_is_refused(confidence):
    assert_refused(
        lambda: evaluate(SETS, SETS, confidence=confidence), "confidence", str(confidence)
    )


def test_counts_that_are_not_whole_numbers_are_refused():
    assert_refused(lambda: evaluate(SETS, SETS, n_bootstrap=-1), "n_bootstrap", "-1")
    assert_refused(lambda: evaluate(SETS, SETS, n_bootstrap=10.5), "n_bootstrap", "10.5")
    assert_refused(lambda: evaluate(SETS, SETS, n_bins=0), "n_bins", "0", "at least 1")


@pytest.mark.parametrize("zero_division", [0.5, "warn", None])
def test_another_value_for_zero_division_is_refused(zero_division):
    assert_refused(
        lambda: evaluate(SETS, SETS, zero_division=zero_division),
        "zero_division",
        str(zero_division),
        r"0\.0, 1\.0 or nan",
    )


def test_a_seed_that_is_none_is_refused():
    assert_refused(lambda: evaluate(SETS, SETS, random_state="lucky"), "random_state", "lucky")
    assert_refused(lambda: evaluate(SETS, SETS, random_state=-3), "random_state", "-3")


@pytest.mark.parametrize("value", [0.0, -0.2, 1.1, np.nan])
def test_propensities_outside_the_unit_interval_are_refused(value):
    propensity = changed(np.ones(4), 2, value)
    assert_refused(
        lambda: evaluate(SETS, SETS, scores=HALF, propensity=propensity),
        "propensity",
        r"\[2\]",
        str(value),
    )


def test_propensities_that_do_not_fit_are_refused():
    assert_refused(
        lambda: evaluate(SETS, SETS, scores=HALF, propensity=np.ones(3)), "propensity", "3", "4"
    )
    assert_refused(
        lambda: evaluate(SETS, SETS, propensity=np.ones(4)), "propensity", "probability or scores"
    )
    assert_refused(lambda: propensities(SETS[:2]), "y_train", "3 rows", "2")
    assert_refused(lambda: propensities(SETS, a=0.0), r"\ba\b", "positive")
    assert_refused(lambda: propensities(SETS, b=-1.0), r"\bb\b", "positive")


def test_targets_that_do_not_fit_raise_their_own_error():
    case = drawn(np.random.default_rng(25), 5, 4)
    case["y_pred"][0] = 1
    assert_refused(
        lambda: evaluate(case["y_pred"], case["y_true"], targets=[PrecisionAtK(2)]),
        "precision@2",
        "exactly 2 labels",
        r"y_pred\[0\] has 4",
    )
    assert_refused(lambda: evaluate(SETS, SETS, targets=[Hamming([1, 2])]), "2 labels", "4")
    assert_refused(lambda: evaluate(SETS, SETS, targets=["f-one"]), "f-one", "hamming")
    assert_refused(lambda: evaluate(SETS, SETS, targets="f1"), "targets", "f1", "list")
    assert_refused(
        lambda: evaluate(SETS, SETS, targets=["f1", FBeta(empty=0.5)]), "different names", "f1"
    )


def test_an_error_of_a_target_says_where_its_rows_begin(monkeypatch):
    monkeypatch.setattr("setwise.sparse.MOST_ENTRIES", 4)
    y_pred = SETS.copy()
    y_pred[2] = 1
    assert_refused(
        lambda: evaluate(y_pred, SETS, targets=["precision@1"]), r"y_pred\[0\]", "from row 2"
    )
