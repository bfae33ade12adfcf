"""What a verdict means, for those who have not read the paper."""

from __future__ import annotations

from textwrap import fill
from typing import Any

from setwise.consistency.naming import word

WIDTH = 88
# The first line, and what it means; a counterexample follows between the two parts.
HEADS = {
    "certificate": "Certificate: {0.subject} is consistent.",
    "counterexample": "Counterexample: {0.subject} is not consistent.",
    "bounded": "Bounded, but not consistent: {0.subject}.",
    "undecided": "Undecided: no theorem covers {0.subject}, and no counterexample was found.",
}
MEANINGS = {
    "certificate": "That is: with enough data, minimising this loss makes the "
    "predictions{decision} the best possible for {0.target}. This is proved (theorem {0.theorem}).",
    "counterexample": "That is: even with unlimited data and this loss minimised perfectly, "
    "predictions{decision} can be worse for {0.target} than they need to be. For example, "
    "suppose that a row has these label sets, with one digit per label:",
    "bounded": "That is: predictions{decision} are best for {0.target} if the learnt "
    "probabilities are right, and nearly best if they are nearly right. But these scores "
    "cannot express all probabilities, however much data there is. For example, suppose that a row "
    "has these label sets, with one digit per label:",
    "undecided": "That is: nobody has proved that predictions{decision} become the best possible "
    "for {0.target}, and a search found no case in which they do not.",
}
# Of a measure of all rows together, by the theorem that rests on thresholds.
CUT = (
    " This holds if labels are predicted above the thresholds that setwise finds for {0.target}; "
    "a cut at 0.5 is not covered."
)
EXAMPLE = (
    "The prediction is then {1}, with an expected loss of {0.prediction_risk:.4f}; the best is "
    "{2}, with {0.bayes_risk:.4f}."
)
# What can be done about a counterexample. Only cross-entropy has probabilities to decide by.
INSTEAD = (
    "What to do: {1}, and predict the set with the smallest expected loss (MinimumRisk, or "
    "`setwise decode`), which has a bound for every measure: predictions are as good as its "
    "probabilities. Or train mean_absolute_error for {0.target}, which is consistent."
)
KEEP = {True: "keep this loss", False: "train the likelihood, the default of setwise"}
CROSS_ENTROPY = "binary relevance"


def in_short(verdict: Any) -> str:
    """The verdict, what it means for those who have not read the paper, and its example."""
    has_example = verdict.verdict == "counterexample"
    kind = "bounded" if has_example and verdict.is_bounded else verdict.verdict
    meaning = MEANINGS[kind].replace("{decision}", _decision(verdict))
    if kind == "certificate" and verdict.theorem == "T":
        meaning += CUT
    lines = [HEADS[kind].format(verdict), _folded(meaning.format(verdict))]
    if has_example:
        told = EXAMPLE.format(verdict, word(verdict.prediction), word(verdict.bayes))
        lines += [f"    {verdict.distribution}.", _folded(told)]
    if kind == "counterexample":
        keep = KEEP[verdict.surrogate == CROSS_ENTROPY]
        lines.append(_folded(INSTEAD.format(verdict, keep)))
    return "\n".join(lines)


def _decision(verdict: Any) -> str:
    """What is predicted, in brackets; of a measure of all rows together its theorem says it."""
    if verdict.verdict == "certificate" and verdict.theorem in ("T", "V"):
        return ""
    if verdict.is_bounded:
        return " (in each row the label set with the smallest expected loss)"
    if verdict.surrogate == CROSS_ENTROPY and verdict.space.startswith("Cube"):
        return " (in each row the labels whose probability is at least 0.5)"
    return " (in each row the most likely label set)"


def _folded(text: str) -> str:
    return fill(text, WIDTH, initial_indent="  ", subsequent_indent="  ", break_long_words=False)
