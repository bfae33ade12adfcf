"""Help, warnings, guarantees and the report speak to those who have not read the paper.

What a theorem says precisely stands one step behind: after the first sentence of a guarantee, in
`<details>` of the report, behind `--precise`.
"""

import ast
import re
from pathlib import Path

import pytest

from setwise.consistency import certify
from setwise.estimators.claim import SENTENCES
from setwise.report.words import first_sentence
from tests.support.command import EVERY_COMMAND
from tests.support.turns import in_turn

SOURCE = Path(__file__).parents[2] / "src" / "setwise"
SECTIONS = sorted((SOURCE / "report" / "templates" / "sections").glob("*.html"))
# Words that mean something else, or nothing, outside of the theory.
OF_THE_PAPER = re.compile(
    r"\b(?:nats|KL|divergence|minimisers?|laws?|surrogate regret|posterior|partition|reachable|"
    r"affine\w*|Pinsker\W?s?|infimum|conditional regret|mass)\b"
)
# Guarantees whose sentence may come first.
FIRST = (
    "bounded", "covered", "other", "none", "confined", "sampled", "thresholds", "budget", "costs",
    "shortlists", "marginals", "rounds",
)  # fmt: skip


@in_turn("words", EVERY_COMMAND, ids=" ".join)
def test_help_needs_no_paper(words):
    command = EVERY_COMMAND[words]
    texts = [command.help, *(getattr(part, "help", None) for part in command.params)]
    assert command.help
    for text in filter(None, texts):
        said = text.partition("Examples:")[0]
        assert not OF_THE_PAPER.search(said), said


def warned(path):
    """What is written in calls of `warnings.warn`."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "warnings.warn":
            yield " ".join(
                part.value for part in ast.walk(node) if isinstance(part, ast.Constant)
                and isinstance(part.value, str)
            )  # fmt: skip


def test_warnings_need_no_paper():
    found = [words for path in SOURCE.rglob("*.py") for words in warned(path)]
    assert len(found) > 8
    assert [words for words in found if OF_THE_PAPER.search(words)] == []


@in_turn("key", FIRST)
def test_a_guarantee_opens_in_plain_words(key):
    first, _ = first_sentence(SENTENCES[key])
    assert not OF_THE_PAPER.search(first)


@in_turn("section", SECTIONS, ids=lambda path: path.stem)
def test_a_section_of_the_report_needs_no_paper(section):
    text = re.sub(r"<details>.*?</details>", "", section.read_text(), flags=re.S)
    assert not OF_THE_PAPER.search(re.sub(r"<[^>]*>|{[{%].*?[%}]}", " ", text, flags=re.S))


@pytest.mark.parametrize(
    ("target", "surrogate"), [("hamming", "logistic"), ("f1", "logistic"), ("f1", "likelihood")]
)
def test_a_verdict_says_what_it_means_before_what_it_rests_on(target, surrogate):
    verdict = certify(target, surrogate)
    assert str(verdict).startswith(f"{verdict.in_short}\n\n")
    assert "That is: " in verdict.in_short
    assert not OF_THE_PAPER.search(verdict.in_short)
    assert max(map(len, verdict.in_short.splitlines()[1:])) <= 88


@pytest.mark.parametrize("surrogate", ["binary_relevance", "likelihood"])
def test_a_certificate_that_rests_on_thresholds_says_so_first(surrogate):
    said = " ".join(certify("macro_f1", surrogate).in_short.split())
    assert "a cut at 0.5 is not covered" in said


DECISIONS = {
    "binary_relevance": "the labels whose probability is at least 0.5",
    "logistic": "the most likely label set",
    "likelihood": "the label set with the smallest expected loss",
}


@pytest.mark.parametrize("target", ["hamming", "f1"])
@pytest.mark.parametrize("surrogate", DECISIONS)
def test_a_verdict_names_its_decision_and_what_to_do_instead(target, surrogate):
    verdict = certify(target, surrogate)
    said = " ".join(verdict.in_short.split())
    assert [one for one in DECISIONS.values() if f"(in each row {one})" in said] == [
        DECISIONS[surrogate]
    ]
    is_wrong = verdict.verdict == "counterexample" and not verdict.is_bounded
    assert said.endswith("Or train mean_absolute_error for f1, which is consistent.") == is_wrong
    # Only cross-entropy has probabilities to decide by.
    assert ("What to do: keep this loss" in said) == (is_wrong and surrogate == "binary_relevance")
