"""What `certify` answers: theorems where there is a proof, counterexamples that enumeration
confirms, and nothing else.
"""

import json

import numpy as np
import pytest

from benchmarks.guarantees import LISTED
from setwise.consistency import (
    THEOREMS,
    Certificate,
    Counterexample,
    Distribution,
    Effort,
    Gamma,
    Undecided,
    certify,
    examine,
    from_dict,
    to_json,
)
from setwise.consistency.certify import trained
from setwise.consistency.naming import chosen_surrogate, named_space
from setwise.consistency.optimum import least_risks
from setwise.consistency.setting import Setting, worst_regret
from setwise.consistency.theorems import covering
from setwise.spaces import Catalog, Cube, Forest, Paths, Sized, Slice
from setwise.surrogates import BinaryRelevance, CompSum, Constrained, Logistic
from setwise.surrogates.names import SURROGATES
from setwise.targets import CountTarget, FBeta, Hamming, Jaccard, TreeDistance, ZeroOne, get_target
from tests.support import oracle

QUICK = Effort(draws=800, kept=12, variations=6, rounds=10)
CLOSED = np.array([[0, 0, 0], [1, 0, 0], [1, 0, 1], [1, 1, 0], [1, 1, 1]])
F_BREAKS = (0.517, 0.055, 0.001, 0.004, 0.241, 0.128, 0.05, 0.004)


# ------------------------------------------------------------------------------- counterexamples

KNOWN = {
    "subset, logistic, two labels": (
        "subset", "logistic", Cube(2), (0.3, 0.3, 0.0, 0.4), (0, 1), 0.1,
    ),
    "subset, gce, two labels": (
        "subset", "generalized_cross_entropy", Cube(2), (0.149, 0.316, 0.321, 0.214), (1, 1), 0.107,
    ),
    "f1, logistic": ("f1", "logistic", Cube(3), F_BREAKS, (1, 0, 0), 0.15533),
    "f1, constrained exponential": (
        "f1", "constrained_exponential", Cube(3), F_BREAKS, (1, 0, 0), 0.15533,
    ),
    "f1, gce": (
        "f1", "generalized_cross_entropy", Cube(3),
        (0.512, 0.02, 0.005, 0.0, 0.063, 0.068, 0.33, 0.002), (1, 0, 0), 0.18267,
    ),
    "jaccard, sum-exponential": (
        "jaccard", "sum_exponential", Cube(3),
        (0.074, 0.024, 0.307, 0.013, 0.516, 0.047, 0.009, 0.01), (1, 1, 0), 0.10017,
    ),
    "tree distance, closed sets": (
        TreeDistance([-1, 0, 0]), "logistic", Forest([-1, 0, 0], closed=True),
        (0.543, 0.415, 0.035, 0.006, 0.001), (1, 0, 0), 0.02867,
    ),
    "hamming, sized": (
        "hamming", "logistic", Sized(3, [1.0, 0.0, 0.0, 1.0]),
        (0.025, 0.006, 0.009, 0.213, 0.009, 0.687, 0.023, 0.028), (1, 1, 1), 0.15133,
    ),
    "hamming, list": (
        "hamming", "logistic", Catalog(LISTED),
        (0.001, 0.554, 0.001, 0.003, 0.318, 0.123, 0.0), (1, 1, 1, 0), 0.0275,
    ),
    "hamming, list again": (
        "hamming", "logistic", Catalog(LISTED),
        (0.009, 0.007, 0.061, 0.002, 0.506, 0.166, 0.249), (1, 1, 1, 0), 0.039,
    ),
    "hamming, constrained hinge": (
        "hamming", "constrained_hinge", Cube(3),
        (0.016, 0.014, 0.551, 0.042, 0.0, 0.006, 0.002, 0.369), (1, 1, 1), 0.128,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", KNOWN)
def test_the_known_counterexamples_are_reproduced(name):
    target, surrogate, space, law, y_pred, regret = KNOWN[name]
    found = examine(target, surrogate, law, space)
    assert found is not None
    assert found.prediction == y_pred
    assert found.regret == pytest.approx(regret, abs=1e-4)
    assert found.surrogate_regret <= 1e-8
    assert "not certain" not in found.method


def test_where_the_minimiser_is_right_there_is_no_counterexample():
    assert examine("hamming", "logistic", F_BREAKS, Cube(3)) is None
    assert examine("f1", "mean_absolute_error", F_BREAKS, Cube(3)) is None
    # The list of Hamming's counterexample, decoded from a likelihood: marginals are matched.
    law = (0.009, 0.007, 0.061, 0.002, 0.506, 0.166, 0.249)
    assert examine("hamming", "likelihood", law, Catalog(LISTED)) is None


def test_the_two_label_counterexample_is_found():
    found = certify("subset", "logistic", Cube(2))
    assert isinstance(found, Counterexample)
    assert found.regret > 0.1
    assert found.tried <= Effort().draws + Effort().rounds * Effort().kept * Effort().variations


FOUND = [
    ("f1", "logistic", None, oracle.f_beta()),
    ("jaccard", "sum_exponential", None, oracle.jaccard()),
    ("subset", "constrained_squared_hinge", None, oracle.subset()),
    ("hamming", "constrained_hinge", None, oracle.hamming()),
    ("f2", "constrained_rho", None, oracle.f_beta(2.0)),
    ("f1", "binary_relevance", None, oracle.f_beta()),
    ("recall@2", "binary_relevance", None, oracle.recall_at_k(2)),
    ("hamming", "logistic", "sized", oracle.hamming()),
    ("hamming", "logistic", "chain", oracle.hamming()),
    ("subset", "generalized_cross_entropy", "closed", oracle.subset()),
]


@pytest.mark.parametrize(("target", "surrogate", "space", "definition"), FOUND)
def test_counterexamples_are_wrong_by_the_definition_of_the_target(
    target, surrogate, space, definition
):
    space = None if space is None else named_space(space, 3)
    found = certify(target, surrogate, space, effort=QUICK)
    assert isinstance(found, Counterexample), found
    sets, law = found.distribution.sets, found.distribution.probability

    def risk(y_pred):
        return law @ [float(definition.loss(tuple(y_pred), tuple(y))) for y in sets.tolist()]

    setting = Setting.of(target, surrogate, space)
    best = min(risk(row) for row in setting.sets.tolist())
    assert risk(found.prediction) - best == pytest.approx(found.regret, abs=1e-9)
    assert risk(found.bayes) == pytest.approx(best, abs=1e-9)
    assert found.regret > 1e-3
    assert found.surrogate_regret <= 1e-8


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("bce", "binary_relevance"),
        ("BCEWithLogitsLoss", "binary_relevance"),
        ("expected_loss", "mean_absolute_error"),
        ("ExpectedLoss", "mean_absolute_error"),
    ],
)
def test_a_loss_by_the_name_that_others_have_is_the_same(name, ours):
    assert certify("f1", name, Cube(2), effort=QUICK) == certify("f1", ours, Cube(2), effort=QUICK)
    law = [0.1, 0.4, 0.4, 0.1]
    assert examine("f1", name, law, Cube(2)) == examine("f1", ours, law, Cube(2))


@pytest.mark.parametrize("name", ["focal", "AsymmetricLoss", "two-way"])
def test_of_a_loss_without_a_theorem_nothing_is_claimed(name):
    with pytest.raises(ValueError, match="nothing is proved here"):
        certify("f1", name)


@pytest.mark.parametrize("target", ["f1", "jaccard", "subset"])
def test_labels_that_never_occur_leave_the_counterexample_of_cross_entropy(target):
    found = certify(target, "binary_relevance", Cube(3), effort=QUICK)
    truth = found.distribution
    wider = Distribution(np.pad(truth.sets, ((0, 0), (0, 2))), truth.probability)
    more = examine(target, "binary_relevance", wider, Cube(5))
    assert more.prediction == (*found.prediction, 0, 0)
    assert more.regret == pytest.approx(found.regret)


def test_a_likelihood_with_one_score_a_label_says_what_still_holds():
    found = certify("f1", "likelihood", Cube(3), effort=QUICK)
    assert isinstance(found, Counterexample)
    assert "sqrt(2 KL(p || s))" in found.note
    kl = float(found.note.split("KL = ")[1].split(" ")[0])
    assert found.regret <= np.sqrt(2.0 * kl)
    assert found.is_bounded
    assert str(found).startswith("Bounded, but not consistent: likelihood for f1")
    other = certify("f1", "logistic", Cube(3), effort=QUICK)
    assert not other.is_bounded
    assert str(other).startswith("Counterexample: logistic for f1")


@pytest.mark.parametrize("surrogate", ["logistic", "binary_relevance", "likelihood"])
def test_a_risk_that_is_not_that_of_training_confirms_nothing(surrogate, monkeypatch):
    law = (0.3, 0.3, 0.0, 0.4)
    assert examine("subset", surrogate, law, Cube(2)) is not None
    sound = Setting.value
    monkeypatch.setattr(Setting, "value", lambda self, p, scores: sound(self, p, scores) - 1e-6)
    assert examine("subset", surrogate, law, Cube(2)) is None


@pytest.mark.parametrize("scores", ["labelwise", "joint"])
@pytest.mark.parametrize("surrogate", SURROGATES)
def test_search_and_training_compute_the_same_risks(surrogate, scores):
    """They share losses and membership only: two opinions on every figure."""
    if (surrogate, scores) == ("binary_relevance", "joint"):
        return
    rng = np.random.default_rng(0)
    for name in ("cube", "sized", "chain", "closed", "list"):
        setting = Setting.of("jaccard", surrogate, named_space(name, 3), scores)
        p = rng.dirichlet(np.ones(len(setting.truths)))
        points = rng.normal(size=(5, setting.scored.n_scores))
        loss, _ = trained(setting)
        expected = [
            p @ loss.value_and_gradient(np.tile(row, (len(p), 1)), setting.truths)[0]
            for row in points
        ]
        ours = setting.value(np.tile(p, (5, 1)), points)
        np.testing.assert_allclose(ours, expected, rtol=1e-10)


# ---------------------------------------------------------------------------------- certificates

PROVED = [
    ("hamming", "logistic", None, "labelwise", "H"),
    (Hamming([0.5, 2.0, 1.0]), "sum_exponential", None, "labelwise", "H"),
    ("hamming", "constrained_exponential", None, "labelwise", "H"),
    ("hamming", "constrained_squared_hinge", None, "labelwise", "H"),
    ("hamming", "binary_relevance", None, "labelwise", "B"),
    ("f1", "mean_absolute_error", None, "labelwise", "A"),
    ("jaccard", "mean_absolute_error", named_space("chain", 3), "labelwise", "A"),
    ("subset", "mean_absolute_error", Sized(3, [1.0, 0.0, 0.0, 1.0]), "labelwise", "A"),
    ("precision@2", "logistic", None, "labelwise", "K"),
    ("recall@2", "sum_exponential", None, "labelwise", "K"),
    ("f1", "constrained_squared_hinge", Slice(4, 2), "labelwise", "K"),
    ("precision@2", "binary_relevance", None, "labelwise", "P"),
    (TreeDistance([-1, 0, 0, 1]), "logistic", Paths([-1, 0, 0, 1]), "labelwise", "R"),
    ("f1", "constrained_hinge", Paths([-1, 0, 0, 1]), "labelwise", "C"),
    (TreeDistance([-1, 0, 0]), "binary_relevance", None, "labelwise", "M"),
    ("f1", "logistic", None, "joint", "R"),
    ("jaccard", "sum_exponential", Catalog(LISTED), "joint", "R"),
    ("subset", "generalized_cross_entropy", None, "joint", "R"),
    ("f1", "constrained_rho", Catalog(LISTED, joint=True), "labelwise", "C"),
    ("f1", "likelihood", None, "joint", "L"),
    ("hamming", "likelihood", Catalog(LISTED), "labelwise", "L"),
]


@pytest.mark.parametrize(("target", "surrogate", "space", "scores", "theorem"), PROVED)
def test_proved_combinations_get_their_theorem_and_the_search_agrees(
    target, surrogate, space, scores, theorem
):
    verdict = certify(target, surrogate, space, scores, effort=QUICK)
    assert isinstance(verdict, Certificate), verdict
    assert verdict.theorem == theorem
    assert verdict.tried >= 1000
    assert verdict.worst_regret <= 1e-3
    if verdict.gamma is not None:
        assert 0.0 < verdict.worst_ratio <= 1.0 + 1e-6


@pytest.mark.parametrize("q", [0.3, 0.7])
def test_generalised_cross_entropy_is_proved_for_hamming(q):
    effort = Effort(draws=500, kept=6, variations=6, rounds=4)
    verdict = certify("hamming", "generalized_cross_entropy", Cube(2), q=q, effort=effort)
    assert isinstance(verdict, Certificate)
    assert verdict.theorem == "H"
    assert verdict.tried >= 1000


def test_a_theorem_needs_what_its_proof_needs():
    def key(target, surrogate, space, scores="labelwise"):
        setting = Setting.of(target, surrogate, space, scores)
        found = covering(setting.target, setting.choice, setting.space, setting.kind)
        return None if found is None else found.theorem.key

    assert key("f1", "logistic", Cube(3)) is None
    assert key("f1", "logistic", Cube(1)) == "R"  # two sets are affinely independent
    assert key("f1", "logistic", Slice(4, 1)) == "R"
    assert key("f1", "logistic", Slice(4, 2)) == "K"
    assert key("jaccard", "logistic", Slice(4, 2)) is None
    assert key("hamming", "logistic", Sized(3, [0.0, 0.0, 0.0, 0.0])) == "H"
    assert key("hamming", "logistic", Sized(3, [0.0, 0.5, 1.0, 1.5])) == "H"  # scores absorb it
    assert key("hamming", "binary_relevance", Sized(3, [0.0, 0.5, 1.0, 1.5])) is None
    assert key("hamming", "logistic", Sized(3, [1.0, 0.0, 0.0, 1.0])) is None
    assert key("hamming", "constrained_hinge", Cube(3)) is None
    assert key("f1", "likelihood", Cube(3)) is None
    assert key("hamming", "likelihood", named_space("chain", 3)) == "L"
    assert key("f1", CompSum("subset", Cube(3), 1.0), Cube(3)) is None  # built for another target
    assert key("f1", CompSum("f1", Cube(3), 1.0), Cube(3)) == "A"
    assert key("recall@2", "binary_relevance", Slice(4, 2)) is None
    assert key("hamming", BinaryRelevance("hinge"), Forest([-1, 0, 0], closed=True)) is None


def test_theorems_cover_spaces_too_large_to_list():
    for target, surrogate, space, key in (
        ("f1", "mean_absolute_error", Cube(1000), "A"),
        ("hamming", "logistic", Cube(1000), "H"),
        ("hamming", "likelihood", Cube(1000), "L"),
        ("precision@3", "logistic", Slice(100, 3), "K"),
        (TreeDistance([-1] + [0] * 5000), "logistic", Paths([-1] + [0] * 5000), "R"),
    ):
        judged = get_target(target).on(space)
        found = covering(judged, chosen_surrogate(surrogate), space)
        assert found is not None
        assert found.theorem.key == key
    assert covering(get_target("f1"), chosen_surrogate("logistic"), Cube(1000)) is None
    with pytest.raises(ValueError, match="too many to examine"):
        certify("f1", "logistic", Cube(1000))


TREES = ([-1], [-1, -1], [-1, 0, 0], [-1, 0, 1, 2], [2, -1, 1, 1, 0], [-1, 0, 0, 1, 1, -1, 5])


@pytest.mark.parametrize("parents", TREES, ids=str)
@pytest.mark.parametrize("leaves_only", [False, True])
def test_tree_distance_is_certified_on_paths(parents, leaves_only):
    lengths = np.random.default_rng(len(parents)).uniform(0.2, 2.0, len(parents))
    space = Paths(parents, leaves_only)
    for surrogate in ("logistic", "generalized_cross_entropy", "constrained_exponential"):
        verdict = certify(TreeDistance(parents, lengths), surrogate, space, effort=QUICK)
        assert isinstance(verdict, Certificate)


def test_labels_of_majorities_are_paths_but_need_not_end_in_leaves():
    parents = [-1, 0, 1, 0, 0]
    target, surrogate = TreeDistance(parents), BinaryRelevance("logistic")
    on_all = certify(target, surrogate, Paths(parents), effort=QUICK)
    assert isinstance(on_all, Certificate)
    assert on_all.theorem == "M"
    verdict = certify(target, surrogate, Paths(parents, leaves_only=True), effort=QUICK)
    assert isinstance(verdict, Counterexample)
    assert verdict.regret > 1e-3
    # Many labels, few sets.
    wide = [*parents, *[0] * 38]
    space = Paths(wide, leaves_only=True)
    little = Effort(draws=40, kept=4, variations=2, rounds=1)
    assert not isinstance(certify(TreeDistance(wide), surrogate, space, effort=little), Certificate)


def test_one_label_set_leaves_nothing_to_decide():
    verdict = certify("f1", "binary_relevance", Catalog([[0, 1]]), effort=QUICK)
    assert isinstance(verdict, Certificate)
    assert verdict.theorem == "O"


def test_every_theorem_has_a_letter_a_source_and_a_proof():
    assert len({theorem.key for theorem in THEOREMS}) == len(THEOREMS)
    for theorem in THEOREMS:
        assert theorem.source
        assert len(theorem.proof) > 40


# ------------------------------------------------------------------------------------- undecided


def test_a_search_that_finds_nothing_is_undecided():
    """There is a counterexample, but a small effort misses it."""
    little = Effort(draws=40, kept=4, variations=2, rounds=2)
    verdict = certify("hamming", "binary_relevance", Catalog(LISTED), effort=little)
    assert isinstance(verdict, Undecided)
    assert "proves nothing" in str(verdict)
    assert verdict.tried > 40
    assert verdict.nearest > 0.0
    assert to_json(from_dict(json.loads(to_json(verdict)))) == to_json(verdict)


# ---------------------------------------------------------------------------------- words and files


@pytest.mark.parametrize(
    "arguments",
    [("f1", "logistic", Cube(2)), ("hamming", "logistic", Cube(2))],
)
def test_verdicts_survive_a_file_and_follow_from_the_seed(arguments):
    first = certify(*arguments, effort=QUICK, seed=3)
    again = certify(*arguments, effort=QUICK, seed=3)
    assert to_json(first) == to_json(again)
    read = from_dict(json.loads(to_json(first)))
    assert str(read) == str(first)
    assert type(read) is type(first)
    with pytest.raises(ValueError, match="a verdict is one of"):
        from_dict({"verdict": "perhaps"})


def test_objects_and_names_are_the_same_question():
    by_name = worst_regret(Setting.of("f1", "logistic", Cube(2)), QUICK, 0)
    by_object = worst_regret(Setting.of(FBeta(), Logistic(FBeta(), Cube(2))), QUICK, 0)
    np.testing.assert_array_equal(by_name[0].merit, by_object[0].merit)


def test_a_loss_for_one_target_judged_by_another_is_named_so():
    verdict = certify(Jaccard(), CompSum(ZeroOne(), Cube(2), 1.0), effort=QUICK)
    assert isinstance(verdict, Counterexample)
    assert verdict.surrogate == "mean absolute error [subset]"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("f1", "nonsense"), "surrogate must be one of"),
        (("f1", "logistic", "cube"), "a space is an object"),
        (("f1", "logistic", Cube(2), "both"), "'labelwise' or 'joint'"),
        (("f1", "binary_relevance", Cube(2), "joint"), "one score for each label"),
    ],
)
def test_what_is_not_known_is_refused(arguments, words):
    with pytest.raises(ValueError, match=words):
        certify(*arguments)


def test_a_seed_is_a_whole_number():
    with pytest.raises(ValueError, match="seed must be a whole number"):
        certify("f1", "logistic", Cube(2), seed=-1)


def test_a_truth_outside_the_space_has_no_likelihood():
    law = Distribution([[1, 1, 1], [0, 0, 0]], [0.5, 0.5])
    with pytest.raises(ValueError, match="not among"):
        examine("f1", "likelihood", law, Slice(3, 1))


# -------------------------------------------------------------------------- what theorems rest on


class Scaled:
    """Hamming loss times a factor: a target of a user's own."""

    form = "additive"

    def __init__(self, factor):
        self.factor = factor

    def loss(self, y_pred, y_true):
        return self.factor * Hamming().loss(y_pred, y_true)

    def measure(self, n_labels, of):
        return Hamming().measure(n_labels, of)

    def on(self, space):
        return self


@pytest.mark.parametrize("factor", [4.0, -0.5, np.nan])
def test_losses_outside_the_unit_interval_are_refused(factor):
    for scores in ("labelwise", "joint"):
        with pytest.raises(ValueError, match=r"must lie in \[0, 1\].*predicting \[0, [01]\]"):
            certify(Scaled(factor), "sum_exponential", Cube(2), scores)
    with pytest.raises(ValueError, match=r"losses in \[0, 1\], but it returned 2"):
        certify(CountTarget(lambda tp, fp, fn, tn: fp + fn), "logistic", Cube(2))
    with pytest.raises(ValueError, match="largest must be at least 2"):
        certify(TreeDistance([-1, 0, 0], largest=0.5), "logistic", Paths([-1, 0, 0]))


@pytest.mark.parametrize("place", ["scores", "values"])
@pytest.mark.parametrize("surrogate", ["logistic", "mean_absolute_error"])
def test_a_search_that_meets_nan_stops(surrogate, place, monkeypatch):
    """NaN is larger than nothing, so it would pass as nothing found."""

    def broken(risk, weights, worth):
        scores, values = least_risks(risk, weights, worth)
        (scores if place == "scores" else values)[len(worth) // 2] = np.nan
        return scores, values

    monkeypatch.setattr("setwise.consistency.setting.least_risks", broken)
    with pytest.raises(RuntimeError, match="not finite"):
        certify("f1", surrogate, Cube(2), effort=QUICK)


def test_a_ratio_that_is_no_number_stops_the_search(monkeypatch):
    monkeypatch.setattr(Gamma, "__call__", lambda self, t: np.full(np.shape(t), np.nan))
    with pytest.raises(RuntimeError, match="not finite"):
        certify("hamming", "logistic", Cube(2), effort=QUICK)


# ------------------------------------------------------------------------ what a verdict says of it

LITTLE = Effort(draws=40, kept=4, variations=2, rounds=1)


def test_why_a_loss_for_another_target_fails_is_said_first():
    found = certify(Jaccard(), CompSum(ZeroOne(), Cube(3), 1.0), effort=QUICK)
    assert isinstance(found, Counterexample)
    assert found.reason == "the surrogate is built for another target, subset"


def test_why_a_likelihood_fails_is_its_decoding():
    found = certify("f1", "likelihood", Cube(2), effort=QUICK)
    assert isinstance(found, Counterexample)
    assert "marginals" in found.reason
    assert "f1 needs more" in found.reason
    assert "Mao" not in found.reason


CHAIN = np.tile(np.eye(2), (3, 1, 1))
# Pairs of questions that differ in a parameter their names leave out.
QUESTIONS = [
    (("f1", "logistic", Cube(2)), (FBeta(1.0, empty=0.0), "logistic", Cube(2))),
    (("jaccard", "logistic", Cube(2)), (Jaccard(empty=0.5), "logistic", Cube(2))),
    ((Hamming([1, 2]), "logistic", Cube(2)), (Hamming([2, 1]), "logistic", Cube(2))),
    (
        (TreeDistance([-1, 0, 0]), "logistic", Paths([-1, 0, 0])),
        (TreeDistance([-1, 0, 0], [1, 2, 1]), "logistic", Paths([-1, 0, 0])),
    ),
    (
        ("hamming", "logistic", Sized(3, [1.0, 0, 0, 1.0])),
        ("hamming", "logistic", Sized(3, [2.0, 0, 0, 2.0])),
    ),
    (
        ("hamming", "logistic", Forest.chain(3, CHAIN)),
        ("hamming", "logistic", Forest.chain(3, 2.0 * CHAIN)),
    ),
    (
        ("hamming", "logistic", Forest([-1, 0, 0], closed=True)),
        ("hamming", "logistic", Forest([-1, 0, 1], closed=True)),
    ),
    (
        ("hamming", "logistic", Catalog([[0, 0], [0, 1]])),
        ("hamming", "logistic", Catalog([[0, 0], [1, 1]])),
    ),
    (
        ("f1", Constrained("f1", Cube(2), "rho")),
        ("f1", Constrained("f1", Cube(2), "rho", rho=0.3)),
    ),
    (
        ("f1", CompSum("f1", Cube(2), -0.5)),
        ("f1", CompSum("f1", Cube(2), -0.25)),
    ),
    (
        (FBeta(1.0, empty=0.0), CompSum(FBeta(1.0), Cube(2), 1.0)),
        (FBeta(1.0, empty=0.0), CompSum(FBeta(1.0, empty=0.5), Cube(2), 1.0)),
    ),
]  # fmt: skip


@pytest.mark.parametrize(("first", "second"), QUESTIONS)
def test_a_verdict_says_which_question_it_answers(first, second):
    one, other = (certify(*question, effort=LITTLE) for question in (first, second))
    assert str(one).splitlines()[0] != str(other).splitlines()[0]
    assert one.question != other.question
    assert one != other
    read = from_dict(json.loads(to_json(one)))
    assert read == one
    assert hash(read) == hash(one)
    assert read.question == one.question


def test_a_function_is_told_by_its_losses():
    def certified(function):
        return certify(CountTarget(function), "logistic", Cube(2), effort=LITTLE)

    one = certified(lambda tp, fp, fn, tn: (fp + fn > 1) * 1.0)
    other = certified(lambda tp, fp, fn, tn: (fp + fn > 0) * 1.0)
    assert one.question["target"]["losses"][0] == [0.0, 0.0, 0.0, 1.0]
    assert one.question != other.question


def test_what_is_plain_is_json_without_infinities():
    verdict = certify("hamming", "logistic", Forest([-1, 0], closed=True), effort=LITTLE)
    assert "Infinity" not in to_json(verdict)
    assert verdict.question["space"] == {
        "type": "Forest",
        "parents": [-1, 0],
        "potentials": [[[0.0, 0.0], [0.0, 0.0]], [[0.0, 0.0], ["-inf", 0.0]]],
        "closed": True,
    }
    assert verdict.question["surrogate"] == {"name": "logistic", "q": 0.0, "target": None}


def test_a_space_other_than_the_surrogates_own_is_refused():
    with pytest.raises(ValueError, match=r"built for Cube\(2\), but the space is Cube\(3\)"):
        certify("f1", CompSum("f1", Cube(2)), Cube(3))
    with pytest.raises(ValueError, match="built for Sized"):
        certify("f1", CompSum("f1", Sized(2, [0.0, 1.0, 0.0])), Sized(2, [0.0, 0.0, 0.0]))
    bias = [0.0, 1.0, 0.0]
    certify("f1", CompSum("f1", Sized(2, bias)), Sized(2, bias), effort=LITTLE)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (
            lambda: certify("f1", "logistic", Cube(2), effort=5),
            "must be an Effort, .* not 5",
        ),
        (lambda: Effort(0, 0, 0, 0), "draws must be a whole number of at least 1"),
        (lambda: Effort(10, 0, 2, 3), "kept must be a whole number of at least 1"),
        (lambda: Effort(10, 3, 2, -1), "rounds must be a whole number of at least 0"),
        (lambda: from_dict([1]), "a verdict is read from a dictionary, not from a list"),
        (lambda: from_dict({"verdict": "certificate"}), "without 'target'"),
        (lambda: from_dict({"verdict": ["x"]}), "a verdict is one of"),
    ],
)
def test_nonsense_is_refused_in_words(make, words):
    with pytest.raises(ValueError, match=words):
        make()


@pytest.mark.parametrize(
    ("name", "value"),
    [("tried", "many"), ("worst_ratio", "x"), ("gamma", 3), ("gamma", {}), ("target", 3)],
)
def test_a_damaged_certificate_is_refused(name, value):
    values = certify("hamming", "logistic", Cube(2), effort=LITTLE).to_dict() | {name: value}
    with pytest.raises(ValueError, match=f"certificate.*{name}"):
        from_dict(values)


@pytest.mark.parametrize(
    ("name", "value"),
    [("distribution", {}), ("distribution", None), ("prediction", 3), ("minimiser", ["a"])],
)
def test_a_damaged_counterexample_is_refused(name, value):
    found = examine("subset", "logistic", [0.3, 0.3, 0.0, 0.4], Cube(2))
    with pytest.raises(ValueError, match=f"counterexample.*{name}"):
        from_dict(found.to_dict() | {name: value})


def test_verdicts_of_files_without_the_question_are_read():
    found = examine("subset", "logistic", [0.3, 0.3, 0.0, 0.4], Cube(2))
    values = found.to_dict()
    del values["question"]
    assert from_dict(values).question is None
