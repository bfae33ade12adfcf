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
    "certificate": "That is: with enough data, minimising this loss makes the predictions the best "
    "possible for {0.target}. This is proved (theorem {0.theorem}).",
    "counterexample": "That is: even with unlimited data and this loss minimised perfectly, "
    "predictions can be worse for {0.target} than they need to be. For example, suppose that a row "
    "has these label sets, with one digit per label:",
    "bounded": "That is: predictions are best for {0.target} if the learnt probabilities are "
    "right, and nearly best if they are nearly right. But these scores cannot express all "
    "probabilities, however much data there is. For example, suppose that a row has these label "
    "sets, with one digit per label:",
    "undecided": "That is: nobody has proved that predictions become the best possible for "
    "{0.target}, and a search found no case in which they do not.",
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
INSTEAD = " The default of setwise, the likelihood, has a guarantee for every such measure."


def in_short(verdict: Any) -> str:
    """The verdict, what it means for those who have not read the paper, and its example."""
    has_example = verdict.verdict == "counterexample"
    kind = "bounded" if has_example and verdict.is_bounded else verdict.verdict
    meaning = MEANINGS[kind]
    if kind == "certificate" and verdict.theorem == "T":
        meaning += CUT
    lines = [HEADS[kind].format(verdict), _folded(meaning.format(verdict))]
    if has_example:
        told = EXAMPLE.format(verdict, word(verdict.prediction), word(verdict.bayes))
        told += "" if kind == "bounded" else INSTEAD
        lines += [f"    {verdict.distribution}.", _folded(told)]
    return "\n".join(lines)


def _folded(text: str) -> str:
    return fill(text, WIDTH, initial_indent="  ", subsequent_indent="  ", break_long_words=False)
