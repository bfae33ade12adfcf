"""Measures of a population: the same numbers as scikit-learn's scorers, by any of their names."""

import warnings

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn import metrics
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import get_scorer, get_scorer_names

from setwise import get_target
from setwise.targets import (
    BalancedAccuracy,
    CountTarget,
    FBeta,
    GMean,
    Hamming,
    LinearFractional,
    Macro,
    Micro,
    Precision,
    PrecisionAtK,
    Weighted,
    ZeroOne,
)
from tests.support.turns import in_turn

AVERAGED = ("f1", "jaccard", "precision", "recall")
SCORERS = [name for name in get_scorer_names() if name.startswith(tuple(f"{a}_" for a in AVERAGED))]
SCORERS.append("accuracy")


def drawn(seed, n_rows=12, n_labels=4):
    """Predicted and true sets, some labels never true or never predicted, and weights."""
    rng = np.random.default_rng(seed)
    often = rng.choice([0.0, 0.2, 0.6], (2, n_labels))
    y_pred, y_true = (rng.random((2, n_rows, n_labels)) < often[:, None]).astype(int)
    return y_pred, y_true, rng.integers(0, 3, n_rows) + (np.arange(n_rows) == 0) * 1.0


def by_scorer(name, y_pred, y_true, weights=None, **settings):
    scorer = get_scorer(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        asked = scorer._kwargs | {"sample_weight": weights} | settings
        return scorer._score_func(y_true, y_pred, **asked)


@in_turn("name", SCORERS)
@in_turn("seed", range(5))
def test_a_scorers_name_is_the_scorers_number(name, seed):
    y_pred, y_true, weights = drawn(seed)
    target = get_target(name)
    for w in (None, weights):
        expected = by_scorer(name, y_pred, y_true, w)
        assert target.utility(y_pred, y_true, w) == pytest.approx(expected, abs=1e-12)
        sparse = target.utility(csr_array(y_pred), csr_array(y_true), w)
        assert sparse == pytest.approx(expected, abs=1e-12)


def test_the_names_of_scorers_are_all_there():
    assert len(SCORERS) == 17


@in_turn("nothing", [0.0, 1.0, np.nan])
@in_turn("name", [name for name in SCORERS if not name.endswith(("samples", "acy"))])
@in_turn("seed", range(5))
def test_zero_division_is_scikit_learns(name, nothing, seed):
    y_pred, y_true, weights = drawn(seed)
    made = get_target(name)
    target = type(made)(made.of, zero_division=nothing)
    if name.startswith("jaccard") and np.isnan(nothing):
        return  # scikit-learn's has no such option
    expected = by_scorer(name, y_pred, y_true, weights, zero_division=nothing)
    found = target.utility(y_pred, y_true, weights)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_balanced_accuracy_is_the_mean_of_scikit_learns_over_labels(seed):
    y_pred, y_true, weights = drawn(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        expected = [
            metrics.balanced_accuracy_score(y_true[:, j], y_pred[:, j], sample_weight=weights)
            for j in range(4)
        ]
    found = get_target("balanced_accuracy").utility(y_pred, y_true, weights)
    assert found == pytest.approx(np.mean(expected), abs=1e-12)


def test_g_mean_is_the_root_of_the_product_of_two_recalls():
    y_pred, y_true, _ = drawn(3)
    values = []
    for j in range(4):
        shares = [
            (y_pred[:, j] == c)[y_true[:, j] == c].mean()
            for c in (0, 1)
            if (y_true[:, j] == c).any()
        ]
        values.append(np.sqrt(np.prod(shares)) if len(shares) == 2 else shares[0])
    assert get_target("g_mean").utility(y_pred, y_true) == pytest.approx(np.mean(values), abs=1e-12)


@pytest.mark.parametrize("average", [Macro, Micro, Weighted])
@pytest.mark.parametrize("beta", [0.5, 2.0])
def test_f_beta_is_scikit_learns(average, beta):
    y_pred, y_true, weights = drawn(5)
    settings = {"beta": beta, "average": average.average, "zero_division": 0}
    expected = metrics.fbeta_score(y_true, y_pred, sample_weight=weights, **settings)
    assert average(FBeta(beta)).utility(y_pred, y_true, weights) == pytest.approx(
        expected, abs=1e-12
    )


@in_turn(
    ("name", "target"),
    [
        ("macro_f1", Macro(FBeta())),
        ("Macro-F1", Macro("f1")),
        ("f1_macro", Macro("f1")),
        ("micro F2", Micro(FBeta(2.0))),
        ("weighted_jaccard", Weighted("jaccard")),
        ("precision_macro", Macro(Precision())),
        ("balanced_accuracy", Macro(BalancedAccuracy())),
        ("balanced accuracy score", Macro("balanced_accuracy")),
        ("micro_balanced_accuracy", Micro(BalancedAccuracy())),
        ("g_mean", Macro(GMean())),
        ("G-mean", Macro("g_mean")),
        ("micro_hamming", Micro(Hamming())),
        ("f1_samples", FBeta(empty=0.0)),
    ],
)
def test_a_name_gives_the_target_and_the_target_its_name(name, target):
    assert get_target(name) == target
    assert get_target(str(target)) == target


def test_any_quotient_of_the_counts_has_an_average():
    y_pred, y_true, weights = drawn(7)
    jaccard = LinearFractional([0, 0, 1, 1, 0], [0, 1, 1, 1, 0])
    expected = get_target("macro_jaccard").utility(y_pred, y_true, weights)
    assert Macro(jaccard).utility(y_pred, y_true, weights) == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize(
    "part", [ZeroOne(), PrecisionAtK(2), CountTarget(np.add), Hamming([1.0, 2.0]), Macro("f1")]
)
def test_what_is_no_quotient_of_the_counts_has_no_average(part):
    with pytest.raises(ValueError, match="is of a quotient of linear functions of the counts"):
        Macro(part)


@pytest.mark.parametrize("nothing", [-0.1, 1.5, "warn", None])
def test_zero_division_is_a_utility(nothing):
    with pytest.raises(ValueError, match="zero_division must be from 0 to 1, or nan"):
        Macro("f1", zero_division=nothing)


@pytest.mark.parametrize("average", [Macro, Micro, Weighted])
def test_a_single_row_has_no_loss(average):
    with pytest.raises(ValueError, match=r"judges all rows together.*utility\(y_pred, y_true\)"):
        average("f1").loss([[1, 0]], [[1, 0]])


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("macro_subset", "subset judges a label set as a whole"),
        ("precision", "'macro_precision'"),
        ("macro_micro_f1", "names two averages"),
        ("macro_f1_samples", "names two averages"),
        ("macro_fl", "did you mean 'macro_f1'"),
        ("f1_marco", "did you mean 'macro_f1'"),
        ("balancd_accuracy", "did you mean 'macro_balanced_accuracy'"),
    ],
)
def test_a_name_that_is_none_gets_a_sentence(name, said):
    with pytest.raises(ValueError, match=f"{name!r}.*{said}"):
        get_target(name)


@pytest.mark.parametrize("name", ["f1", "hamming", "subset", "jaccard"])
def test_the_utility_of_other_targets_is_one_less_the_mean_loss(name):
    y_pred, y_true, weights = drawn(9)
    target = get_target(name)
    expected = 1.0 - np.average(target.loss(y_pred, y_true), weights=weights)
    assert target.utility(y_pred, y_true, weights) == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize("weights", [[0.0, 0.0], [1.0, -1.0], [1.0], [np.nan, 1.0]])
def test_weights_that_make_no_sense_are_refused(weights):
    for name in ("macro_f1", "f1"):
        with pytest.raises(ValueError, match="weight"):
            get_target(name).utility([[1], [0]], [[1], [1]], weights)
