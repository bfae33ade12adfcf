"""The command answers in words or JSON, and refuses with one line and status 2."""

import json
import subprocess
import sys

import pytest

from setwise import __version__
from setwise.consistency import Certificate, from_dict
from setwise.surrogates.names import SURROGATES
from tests.support.command import run


def test_certify_prints_the_verdict_in_words(capsys):
    status, out, err = run(capsys, "certify", "f1", "logistic")
    assert (status, err) == (0, "")
    assert out.startswith("Counterexample: logistic for f1 on Cube(3)")
    assert "is not consistent" in out
    status, out, _ = run(capsys, "certify", "hamming", "logistic", "--labels", "2")
    assert status == 0
    assert out.startswith("Certificate: logistic for hamming on Cube(2)")


def test_certify_prints_a_verdict_that_can_be_read_back(capsys):
    words = ("certify", "tree", "logistic", "--space", "paths", "--parents=-1,0,0,1", "--json")
    status, out, _ = run(capsys, *words)
    verdict = from_dict(json.loads(out))
    assert status == 0
    assert isinstance(verdict, Certificate)
    assert verdict.theorem == "R"


@pytest.mark.parametrize(
    ("words", "space"),
    [
        (("precision@1", "logistic"), "Slice(3, 1)"),
        (("precision@1", "logistic", "--labels", "2"), "Slice(2, 1)"),
        (("f1", "logistic", "--labels", "2"), "Cube(2)"),
        (
            ("tree", "mean_absolute_error", "--labels", "2"),
            "Forest of 2 labels, closed=True (parents -1, 0)",
        ),
        (
            ("f1", "mean_absolute_error", "--space", "list"),
            "Catalog of 4 sets of 3 labels (sets 001, 011, 101, 111)",
        ),
        (("hamming", "logistic", "--space", "slice", "--scores", "joint"), "Slice(4, 2)"),
    ],
)
def test_without_a_space_the_target_is_at_home(words, space, capsys):
    status, out, _ = run(capsys, "certify", *words)
    assert status == 0
    assert f" on {space} with one score per " in out.splitlines()[0]


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("nonsense",), "No such command"),
        (("certify", "f1"), "Missing argument"),
        (("certify", "nonsense", "logistic"), "no target named 'nonsense'"),
        (("certify", "f1", "nonsense"), "surrogate must be one of"),
        (("certify", "f1", "FocalLoss"), "nothing is proved here about 'FocalLoss'"),
        (("certify", "f1", "logistic", "--space", "moon"), "no space named 'moon'"),
        (("certify", "f1", "logistic", "--scores", "both"), "Invalid value for '--scores'"),
        (("certify", "f1", "logistic", "--labels", "0"), "at least 1, but it is 0"),
        (("certify", "f1", "logistic", "--labels", "some"), "--labels"),
        (("certify", "f1", "logistic", "--labels", "40"), "too many to examine"),
        (("certify", "f1", "logistic", "--seed", "-1"), "Invalid value for '--seed'"),
        (("certify", "tree", "logistic", "--parents=root"), "comma-separated whole numbers"),
        (("certify", "tree", "logistic", "--parents=-1,0", "--labels", "3"), "the 3 labels"),
        (("certify", "precision@2", "logistic", "--space", "cube"), "label sets of size 2 only"),
        (("certify", "f1", "generalized_cross_entropy", "--q", "2"), "q must be"),
        (("certify", "f1", "logistic", "--q", "0.5"), "--q is for generalized_cross_entropy and"),
        (("certify", "f1", "comp_sum"), "comp_sum needs --q"),
        (("certify", "f1", "comp_sum", "--q", "-2"), "q must be"),
        (("certify", "f1", "logistic", "--margin", "hinge"), "--margin is for binary_relevance"),
        (("certify", "f1", "binary_relevance", "--margin", "rho"), "margin must be one of"),
        (("certify", "f1", "logistic", "--rho", "2"), "--rho is for constrained_rho"),
        (("certify", "f1", "constrained_rho", "--rho", "-1"), "rho must be a positive number"),
        (("certify", "f1", "logistic", "--parents=-1,0"), "--parents is for the target tree and"),
        (("certify", "f1", "logistic", "--space", "cube", "--parents=-1,0"), "--parents is for"),
        (
            ("certify", "precision@5", "logistic", "--labels", "3"),
            "precision@5 --labels 3: size must be",
        ),
        (("certify", "precision@2", "logistic", "--space", "list"), "use --space slice"),
        (("certify", "f1", "binary_relevance", "--scores", "joint"), "use --scores labelwise"),
        (("certify", "f1", "nosuch"), "comp_sum"),
    ],
)
def test_what_cannot_be_answered_is_one_line_and_status_two(words, complaint, capsys):
    status, out, err = run(capsys, *words)
    assert (status, out) == (2, "")
    assert err.startswith("setwise: ")
    assert err.count("\n") == 1
    assert complaint in err
    # What helps in Python does not help here.
    assert not any(word in err for word in ("object", "Slice(", "Catalog(", "scores=", "pass "))


@pytest.mark.parametrize(
    ("words", "subject"),
    [
        (("comp_sum", "--q", "-0.5"), "comp-sum q = -0.5 for f1 on Cube(2)"),
        (("comp_sum", "--q=0.5"), "generalized cross entropy (q = 0.5) for f1 on Cube(2)"),
        (("comp_sum", "--q", "0"), "logistic for f1 on Cube(2)"),
        (("generalized_cross_entropy",), "generalized cross entropy (q = 0.7) for f1 on Cube(2)"),
        (("binary_relevance", "--margin", "hinge"), "binary relevance (hinge) for f1 on Cube(2)"),
        (("constrained_rho", "--rho", "0.5"), "constrained rho (rho = 0.5) for f1 on Cube(2)"),
    ],
)
def test_members_margins_and_widths_are_options(words, subject, capsys):
    status, out, err = run(capsys, "certify", "f1", *words, "--labels", "2")
    assert (status, err) == (0, "")
    assert f": {subject} with" in out.splitlines()[0]


def test_the_taxonomy_of_tree_serves_other_spaces(capsys):
    status, out, _ = run(capsys, "certify", "tree", "mean_absolute_error", "--space", "slice")
    assert status == 0
    assert "Slice(3, 2)" in out
    words = ("certify", "tree", "mean_absolute_error", "--space", "cube", "--parents=-1,0")
    status, out, _ = run(capsys, *words)
    assert status == 0
    assert "(parents -1, 0) on Cube(2)" in out


@pytest.mark.parametrize("name", ["bce", "BCEWithLogitsLoss", "one-vs-rest"])
def test_names_of_cross_entropy_are_those_of_binary_relevance(name, capsys):
    known = run(capsys, "certify", "hamming", "binary_relevance", "--json")
    assert known[0] == 0
    assert run(capsys, "certify", "hamming", name, "--json") == known


def test_the_expected_loss_is_the_mean_absolute_error_and_said_to_be(capsys):
    _, known, _ = run(capsys, "certify", "f1", "mean_absolute_error", "--labels", "2")
    status, out, _ = run(capsys, "certify", "f1", "ExpectedLoss", "--labels", "2")
    assert (status, out) == (0, f"(ExpectedLoss is called mean_absolute_error here.)\n{known}")


def test_help_names_every_surrogate_and_gives_examples(capsys):
    status, out, _ = run(capsys, "certify", "--help")
    assert status == 0
    lines = [line.strip() for line in out.splitlines()]
    for example in (
        "setwise certify f1 logistic",
        "setwise certify f1 logistic --scores joint",
        "setwise certify precision@2 logistic --space slice --labels 5",
        "setwise certify tree logistic --space paths --parents=-1,0,0,1",
        "setwise certify hamming comp_sum --q -0.5",
        "setwise certify hamming logistic --json",
    ):
        assert example in lines
    assert "\\b" not in out
    assert all(name in out for name in SURROGATES)
    status, out, _ = run(capsys)
    assert status == 0
    assert "certify" in out


def test_the_version_is_that_of_the_package(capsys):
    assert run(capsys, "--version") == (0, f"{__version__}\n", "")


def test_help_loads_nothing_heavy():
    code = "import sys; from setwise.cli import main; main(['--version']); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not set(done.stdout.split()) & {"numba", "scipy", "sklearn", "numpy", "matplotlib"}
