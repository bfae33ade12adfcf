"""Names people know are understood; those of measures that are no target say what is near."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics
from sklearn.neighbors import KNeighborsClassifier

from setwise import CatalogClassifier, SetClassifier, TargetDecoder, get_target
from setwise.cli import main
from setwise.consistency import bayes
from setwise.decoders import MinimumRisk, Thresholds
from setwise.evaluation import evaluate
from setwise.spaces import Cube
from setwise.surrogates import CompSum
from setwise.targets import FBeta, Hamming, Jaccard, PrecisionAtK, RecallAtK, ZeroOne, registry
from setwise.targets.names import ALIASES, NEAR
from setwise.targets.registry import TARGETS, known_name
from tests.support.turns import in_turn

UNDERSTOOD = {
    FBeta(1.0): "f1, F1, f1_score, f1-score, F1 score, f_1, F-1, "
    "F-measure, example-based F1, instance f1, f1_example, dice, Dice coefficient, f1.0",
    FBeta(1.0, empty=0.0): "f1_samples, samples_f1, F1 samples, f1-samples",
    FBeta(2.0): "f2, F2-score",
    FBeta(2.0, empty=0.0): "f2_samples",
    Jaccard(empty=0.0): "jaccard_samples, samples jaccard",
    FBeta(0.5): "f0.5, F0.5, f0.5_score",
    Jaccard(): "jaccard, Jaccard, jaccard_score, Jaccard index, jaccard-loss, "
    "jaccard similarity coefficient, IoU, intersection over union",
    ZeroOne(): "subset, subset_accuracy, SubsetAccuracy, Subset Accuracy, subset 0/1, 0/1 loss, "
    "exact_match, exact-match ratio, accuracy, accuracy_score, zero_one, zero_one_loss, "
    "zero-one loss, subset_zero_one_loss",
    Hamming(): "hamming, hamming_loss, Hamming-Loss, HAMMING LOSS, HammingLoss, neg_hamming_loss, "
    "hamming distance",
    PrecisionAtK(5): "precision@5, p@5, P@5, prec@5, Precision @ 5, precision_at_5, "
    "precision-at-5, Precision at 5",
    PrecisionAtK(1): "precision@1, one_error, one-error",
    RecallAtK(3): "recall@3, r@3, R@3, recall_at_3, Recall at 3",
}  # fmt: skip


@in_turn(
    ("name", "target"),
    [(name.strip(), target) for target, names in UNDERSTOOD.items() for name in names.split(",")],
    ids=str,
)
def test_a_name_people_know_gives_the_same_target(name, target):
    assert get_target(name) == target
    assert get_target(known_name(name)) == target


@in_turn("alias", ALIASES)
def test_every_alias_leads_to_a_known_name(alias):
    name = known_name(alias.replace("*", "2").replace("?", "f1"))
    matched = registry.match(name, [*TARGETS, *registry.AVERAGES, *NEAR])
    assert matched is not None


@given(st.sampled_from(sorted({*TARGETS, *ALIASES} - {"0/1"})), st.data())
def test_case_and_separators_do_not_matter(name, data):
    written = name.replace("*", "2").replace("?", "f1")
    other = "".join(
        data.draw(st.sampled_from("_- " if c == "_" else [c.lower(), c.upper()])) for c in written
    )
    assert known_name(other) == known_name(written)


# scikit-learn's functions by the names of their scorers.
MEASURED = {
    "accuracy": metrics.accuracy_score,
    "f1": lambda y, p: metrics.f1_score(y, p, average="samples", zero_division=1),
    "jaccard": lambda y, p: metrics.jaccard_score(y, p, average="samples", zero_division=1),
    "hamming_loss": lambda y, p: 1 - metrics.hamming_loss(y, p),
    "zero_one_loss": lambda y, p: 1 - metrics.zero_one_loss(y, p),
}


@pytest.mark.parametrize("name", MEASURED)
def test_a_name_of_scikit_learn_is_its_measure(name):
    """As a utility or a loss: both name the target, whose loss is 1 - its utility."""
    rng = np.random.default_rng(0)
    y_pred, y_true = rng.integers(0, 2, (2, 40, 4))
    utility = 1.0 - get_target(name).loss(y_pred, y_true).mean()
    np.testing.assert_allclose(utility, MEASURED[name](y_true, y_pred), rtol=1e-12)


ANSWERED = {
    "roc_auc": "ranking.*precision@5",
    "AUC": "ranking.*precision@5",
    "roc_auc_ovr": "ranking",
    "average_precision": "ranking.*precision@5",
    "average_precision_score": "ranking",
    "mAP": "ranking",
    "ndcg@5": r"ranking.*precision@5.*Ranking..ndcg@5.. of setwise.decoders",
    "dcg@5": "ranking.*precision@5",
    "nDCG": "ranking",
    "label_ranking_loss": "ranking",
    "coverage_error": "ranking",
    "log_loss": "probabilities.*predict_proba",
    "neg_log_loss": "probabilities",
    "brier_score": "probabilities",
    "precision": "'precision@5'.*'f0.5'",
    "recall": "'recall@5'.*'f2'.*'recall_samples'",
    "fbeta": "'f2'",
    "F-beta": "'f2'",
    "tree": r"TreeDistance\(taxonomy\)",
    "Tree distance": r"TreeDistance\(taxonomy\)",
}


@in_turn("name", ANSWERED)
def test_a_measure_that_is_no_target_says_what_to_use(name):
    with pytest.raises(ValueError, match=ANSWERED[name]) as refused:
        get_target(name)
    assert repr(name) in str(refused.value)


@in_turn("name", NEAR)
def test_what_an_answer_offers_works(name):
    """Every name in quotes is a target."""
    with pytest.raises(ValueError, match="is no target") as refused:
        get_target(name.replace("*", "3").replace("?", "f1"))
    said = str(refused.value).partition("is no target")[2]
    offered = re.findall(r"'([^']+)'", said)
    for one in offered:
        get_target(one)
    assert offered or "(" in said


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("hammming", "'hamming'"),
        ("jacard", "'jaccard'"),
        ("precison@3", "'precision@3'"),
        ("recal@7", "'recall@7'"),
        ("subsett_accuracy", "'subset'"),
        ("p@k", "'precision@5'"),
    ],
)
def test_an_unknown_name_is_answered_with_the_nearest(name, near):
    with pytest.raises(ValueError, match=f"no target named '{name}'; did you mean.*{near}.*known"):
        get_target(name)


@pytest.mark.parametrize("name", ["recall@03", "f0,5", "precison@0", "F½"])
def test_what_is_offered_as_nearest_is_a_target(name):
    with pytest.raises(ValueError, match="no target named") as refused:
        get_target(name)
    offered = re.findall(r"'([^']+)'", str(refused.value).partition("did you mean")[2])
    assert offered
    for one in offered:
        get_target(one)


@pytest.mark.parametrize("name", ["macro_foo", "Macro-averaged F1", "micro_xyz"])
def test_the_average_of_an_unknown_measure_is_refused_by_its_whole_name(name):
    with pytest.raises(ValueError, match=f"no target named {name!r}"):
        get_target(name)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("macro_subset", "'subset', the mean over rows"),
        ("exact_match_micro", "'subset', the mean over rows"),
        ("macro p@5", "'precision@5', the mean over rows"),
        ("macro_log_loss", "judges probabilities"),
        ("micro_ndcg", "judges a ranking"),
        ("macro_f0", "beta must be a positive number"),
        ("f1_binary", "judges one label"),
    ],
)
def test_an_average_is_offered_only_of_what_has_one(name, said):
    with pytest.raises(ValueError, match=f"{name!r} is no target: .*{said}"):
        get_target(name)


def test_what_is_far_from_every_name_has_no_nearest():
    for name in ("neg_max_error", "explained_variance", "rand_score"):
        with pytest.raises(ValueError, match=r"no target named '\w+'; known are"):
            get_target(name)


@in_turn("name", ["", " ", "*", "?", "f", "f*", "macro_", "_", "precision@-3", "f0_5"])
def test_a_name_that_says_nothing_is_refused(name):
    with pytest.raises(ValueError, match="no target named"):
        get_target(name)


@pytest.mark.parametrize("name", ["f1_5", "f05", "precision@05", "precision@1_0", "f1 2"])
def test_numbers_are_not_made_of_parts(name):
    with pytest.raises(ValueError, match="no target named"):
        get_target(name)


def test_a_name_that_was_registered_comes_before_what_it_could_mean(monkeypatch):
    monkeypatch.setattr(registry, "TARGETS", dict(TARGETS))
    registry.register("accuracy", Jaccard)
    registry.register("My-Loss", lambda: FBeta(3.0))
    registry.register("macro_f*", lambda number: FBeta(float(number)))
    assert get_target("accuracy") == Jaccard()
    assert get_target("my loss") == FBeta(3.0)
    assert get_target("F1-macro") == FBeta(1.0)
    assert get_target("subset_accuracy") == ZeroOne()


def test_thresholds_take_the_same_names():
    scores, y_true = [[0.1, 0.4], [0.9, 0.6]], [[0, 1], [1, 0]]
    for name, same in (("F1-score", "f1"), ("Balanced Accuracy", "balanced_accuracy")):
        found, expected = (Thresholds(metric).fit(scores, y_true) for metric in (name, same))
        assert found.value_ == expected.value_
    with pytest.raises(ValueError, match="average"):
        Thresholds("f1_macro").fit(scores, y_true)


@pytest.mark.parametrize("name", ["F1-score", "Subset Accuracy"])
def test_the_command_line_takes_the_same_names(name, tmp_path):
    path = tmp_path / "p.csv"
    path.write_text("0.6,0.4\n0.2,0.3\n")
    printed = []
    for one in (name, known_name(name)):
        assert main(["decode", str(path), "--target", one, "-o", str(tmp_path / "out.csv")]) == 0
        printed.append((tmp_path / "out.csv").read_text())
    assert printed[0] == printed[1]


def test_the_command_line_knows_the_tree_by_its_names():
    assert main(["certify", "Tree-Distance", "logistic", "--space", "paths"]) == 0


@pytest.mark.parametrize(
    "words", [("certify", "log_loss", "logistic"), ("decode", "p.csv", "--target", "log_loss")]
)
def test_the_command_line_answers_the_name_that_was_typed(words, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.csv").write_text("0.6,0.4\n0.2,0.3\n")
    assert main(words) == 2
    said = capsys.readouterr().err
    assert "'log_loss' is no target" in said


X = np.arange(24.0).reshape(12, 2) % 7
Y = (X @ [[1, -1, 0], [0, 1, -1]] > 0).astype(int)
NEIGHBOURS = KNeighborsClassifier(3)
TAKERS = {
    "SetClassifier": lambda name: SetClassifier(name).fit(X, Y).predict(X),
    "TargetDecoder": lambda name: TargetDecoder(NEIGHBOURS, name).fit(X, Y).predict(X),
    "CatalogClassifier": lambda name: CatalogClassifier(NEIGHBOURS, name).fit(X, Y).predict(X),
    "for_target": lambda name: TargetDecoder(NEIGHBOURS).fit(X, Y).for_target(name).predict(X),
    "MinimumRisk": lambda name: MinimumRisk(name).decode([[0.4, 0.6], [0.2, 0.3]]),
    "CompSum": lambda name: CompSum(name, Cube(3)).value_and_gradient(X @ np.eye(2, 3), Y)[0],
    "bayes": lambda name: bayes(name, Cube(2), [0.1, 0.2, 0.3, 0.4]),
    "evaluate": lambda name: [
        figure.value for figure in evaluate(Y[::-1], Y, targets=[name], n_bootstrap=0).values()
    ],
}


@pytest.mark.parametrize("taker", TAKERS)
def test_whatever_takes_a_target_takes_its_other_names(taker):
    for name, other in (("jaccard", "Jaccard index"), ("subset", "exact-match ratio")):
        np.testing.assert_array_equal(TAKERS[taker](other), TAKERS[taker](name))
