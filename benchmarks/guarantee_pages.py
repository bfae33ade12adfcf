"""docs/guarantees.md from the rows of `benchmarks.guarantees`, and its pictures."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.guarantees import MORE_TARGETS, TARGETS, spaces
from benchmarks.pictures import excess_picture, regret_picture
from setwise.consistency import THEOREMS, Counterexample, bound, from_dict
from setwise.consistency.conditional import KINDS, Kind, Weights
from setwise.consistency.naming import word
from setwise.consistency.setting import Setting
from setwise.consistency.theorems import covering
from setwise.spaces import Cube, Space
from setwise.surrogates.names import SURROGATES

# The problem whose excess risks are shown.
SHOWN = "rare but joint"
# And the one of measures of all rows together.
SHOWN_TOGETHER = "chain"
COLUMNS = {
    "likelihood": "likelihood",
    "binary_relevance": "binary relevance",
    "sum_exponential": "sum-exp",
    "logistic": "logistic",
    "mean_absolute_error": "mae",
    "generalized_cross_entropy": "gce .7",
    "constrained_exponential": "cstnd exp",
    "constrained_squared_hinge": "cstnd sq. hinge",
    "constrained_hinge": "cstnd hinge",
    "constrained_rho": "cstnd rho",
}

NO_BREAK = "\N{NO-BREAK SPACE}"
NOTES = {
    "†": "† The minimiser ties several sets; the scores lie 1e-10 from it, on the side of the "
    "wrong one.",
    "‡": "‡ The minimiser is not unique, and a wrong one is shown.",
    "§": "§ Whatever the scores, the regret is at most sqrt(2 KL(p || s)): theorem L.",
}

INTRODUCTION = """# What is guaranteed

Rows are what you report, columns what you train with. For one combination at a time, run `setwise
certify f1 logistic`; [Theory](theory.md) is an introduction.

| cell | meaning |
|---|---|
| a letter | Proved: with ever more data, predictions become the best possible. The letter names \
the [theorem](#the-theorems). |
| ✗ | Disproved: predictions can stay wrong however much data there is. The \
[counterexamples](#the-counterexamples) show how. |
| bounded | Predictions are as good as the learnt probabilities. They can stay wrong if the \
model cannot represent the truth. |
| ? | Unknown: neither a theorem nor a counterexample was found. |

The first table answers most questions: `likelihood` is the default of setwise, and `binary
relevance` is `BCEWithLogitsLoss`, or one logistic regression per label, cut at 0.5. The numbers
are explained [below](#precisely). The page is written by `make guarantees`; no figure is typed by
hand.
"""

PRECISELY = """## Precisely

A surrogate is **consistent** for a target if scores whose expected surrogate loss approaches its
infimum predict label sets whose expected target loss approaches the best of the space. Each cell
is one combination of target, surrogate, space and scores, on a small space.

- **A letter and a number**: the largest ratio of regret to the theorem's bound, in a search over
  {tried} or more distributions and scores. Without a number the theorem has no rate, and the
  search found no wrong prediction.
- **✗ and a number**: the regret of the counterexample, which was confirmed with the loss as it is
  trained. ° marks losses that are not convex, where the minimiser is the best of many descents and
  therefore not certain; all others are certified by duality, a linear program, branch and bound,
  or by comparing all candidates.
- **bounded and a number**: a likelihood, decoded by the set with the smallest expected loss. Its
  regret is at most sqrt(2 KL(p || s)) for *every* target and space (theorem L), but with these
  scores it is not consistent, because they cannot represent every distribution: the number is the
  regret of a counterexample. (The most likely set of the same scores has no such bound, except for
  subset 0/1, where it is the set with the smallest expected loss.)

The prediction is the most likely set, or after a likelihood the set of the space with the smallest
expected loss. Biases and potentials of a space are fixed at the values given. `gce .7` is the
generalised cross-entropy with q = .7, `mae` the mean absolute error (q = 1), `cstnd` the
constrained losses of the paper's appendix. True label sets are those of the space; for precision@k
and recall@k, all label sets.

**About the paper.** Mao, Mohri and Zhong (2024) state their bounds for every target with one score
per label (H = F^l). Their proofs exchange probability between two label sets, and say that the
distribution that results "can be realized by some h' in H". With l scores for n label sets, that
is true if the sets are affinely independent: paths of a taxonomy are, all subsets of two or more
labels are not. The line above each table counts the directions in which the scores can move the
distribution, and all directions that exist. If both numbers agree, the theorem holds as stated;
otherwise it can fail, and mostly does. There are separate proofs for mean absolute error, for
Hamming loss on all label sets, and for precision@k, recall@k and F-beta on sets of one size. For
subset 0/1, the logistic loss with one score per label is binary relevance with doubled scores,
which the paper itself calls inconsistent for it.
"""

PICTURES = """## Pictures

Each point is a random distribution over three labels, with random scores. To the right, the
logistic loss is further from its minimum; upwards, predictions are further from the best. With one
score per label, all points for Hamming loss lie below both bounds. For F1 some lie above the
paper's bound, and wrong predictions occur even where the logistic loss is minimal; with a score
per label set, none do.

{hamming}
{labelwise}
{joint}

How much worse than the best possible, by number of training rows, on simulated data (either all
labels occur together, or one alone: `setwise.consistency.known_truth.rare_but_joint`). Lines are
means over repeated samples, shaded from the smallest to the largest value. Mean absolute error,
and likelihoods that can represent the truth, approach the best possible. Binary relevance (cut at
1/2, or decoded as if labels were independent) and the logistic loss with one score per label do
not.

{f1}
{jaccard}

The same for macro F1, a measure of all rows together, where each label depends on the previous
one. With a cut at 1/2, more data do not help; thresholds, and costs that represent the measure
(METRO, theorem V), approach the best that their scores can represent.

{macro}
""".format(
    **{
        name: f'<picture><source media="(prefers-color-scheme: dark)" '
        f'srcset="pictures/{file}-dark.png"><img alt="{alt}" src="pictures/{file}-light.png">'
        f"</picture>"
        for name, file, alt in (
            ("hamming", "regret-hamming", "Hamming loss: regrets below the bound"),
            ("labelwise", "regret-f1-labelwise", "F1, one score per label: regrets above it"),
            ("joint", "regret-f1-joint", "F1, one score per label set: regrets below it"),
            ("f1", "excess-f1", "Excess F1 risk against sample size"),
            ("jaccard", "excess-jaccard", "Excess Jaccard risk against sample size"),
            ("macro", "excess-macro_f1", "Regret of macro-F1 against sample size"),
        )
    }
)


def page(rows: list[dict[str, Any]]) -> str:
    """The document."""
    found = {tuple(row["cell"]): row for row in rows}
    tried = min(row["tried"] for row in rows)
    parts = [INTRODUCTION, "## The tables\n"]
    for name, (space, words) in spaces().items():
        for kind in KINDS:
            parts.append(_table(found, name, kind, space, words))
    parts += [PRECISELY.format(tried=f"{tried:,}"), PICTURES, "## The theorems\n"]
    parts += [
        f"**{theorem.key}.** {theorem.statement} *({theorem.source})* {theorem.proof}\n"
        for theorem in THEOREMS
    ]
    parts.append("## The counterexamples\n")
    for name, (space, words) in spaces().items():
        parts.append(_counterexamples(found, name, space, words))
    return "\n".join(part for part in parts if part)


def draw(rows: list[dict[str, Any]], folder: Path) -> None:
    """The pictures, light and dark; those of excess risks from their rows. Needs matplotlib."""
    holds = Setting.of("hamming", "logistic", Cube(3))
    coverage = covering(holds.target, holds.choice, holds.space)
    assert coverage is not None
    assert coverage.gamma is not None
    fails = Setting.of("f1", "logistic", Cube(3))
    joint = Setting.of("f1", "logistic", Cube(3), "joint")
    printed = replace(bound("logistic"), theorem="the paper's Theorem 7")
    own = replace(coverage.gamma, theorem="theorem H")
    folder.mkdir(parents=True, exist_ok=True)
    for theme in ("light", "dark"):
        figures = {
            "regret-hamming": regret_picture(holds, [printed, own], theme),
            "regret-f1-labelwise": regret_picture(fails, [printed], theme),
            "regret-f1-joint": regret_picture(joint, [printed], theme),
        }
        shown = dict.fromkeys(("f1", "jaccard"), SHOWN) | {"macro_f1": SHOWN_TOGETHER}
        for target, problem in shown.items():
            chosen = [row for row in rows if (row["problem"], row["target"]) == (problem, target)]
            title = f"Excess {target} risk, {problem}"
            figures[f"excess-{target}"] = excess_picture(chosen, title, theme)
        for name, figure in figures.items():
            figure.savefig(folder / f"{name}-{theme}.png")


def _table(found: dict, name: str, kind: Kind, space: Space, words: str) -> str:
    targets = [t for t in (*TARGETS, *MORE_TARGETS.get(name, ())) if _has(found, name, kind, t)]
    if not targets:
        return ""
    columns = [s for s in SURROGATES if any((name, kind, t, s) in found for t in targets)]
    n_sets = len(space.enumerate())
    per = "label" if kind == "labelwise" else "label set"
    lines = [
        f"### {name}: {words}; one score per {per}\n",
        f"{space}: {n_sets} label sets; scores move the distribution in "
        f"{Weights.of(space, kind).directions} of {n_sets - 1} directions.\n",
        "| target | " + " | ".join(COLUMNS[s] for s in columns) + " |",
        "|" + "---|" * (len(columns) + 1),
    ]
    for target in targets:
        cells = [_cell(found.get((name, kind, target, s))) for s in columns]
        lines.append(f"| {target} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _has(found: dict, name: str, kind: str, target: str) -> bool:
    return any((name, kind, target, surrogate) in found for surrogate in SURROGATES)


def _cell(row: dict[str, Any] | None) -> str:
    if row is None:
        return ""
    if row["verdict"] == "certificate":
        ratio = row["worst_ratio"]
        return row["theorem"] if ratio is None else f"{row['theorem']}{NO_BREAK}{_short(ratio)}"
    if row["verdict"] == "undecided":
        return "?"
    wrong = "bounded " if row["surrogate"] == "likelihood" else f"✗{NO_BREAK}"
    return f"{wrong}{_short(row['regret'])}" + ("°" if "not certain" in row["method"] else "")


def _short(value: float) -> str:
    """Three digits without the leading zero."""
    return f"{value:.3f}".removeprefix("0")


def _counterexamples(found: dict, name: str, space: Space, words: str) -> str:
    rows = [row for cell, row in found.items() if cell[0] == name]
    rows = [row for row in rows if row["verdict"] == "counterexample"]
    if not rows:
        return ""
    lines = [
        f"### {name}: {words}\n",
        "| target | surrogate | distribution | scores | predicts | best | regret | certain by |",
        "|---|---|---|---|---|---|---|---|",
    ]
    lines += [_line(row) for row in rows]
    notes = [words for mark, words in NOTES.items() if any(mark in _marks(row) for row in rows)]
    return "\n".join([*lines, "", *(f"{note}\n" for note in notes)])


def _line(row: dict[str, Any]) -> str:
    verdict = from_dict(row)
    assert isinstance(verdict, Counterexample)
    scores = ", ".join(f"{score:.3g}" for score in verdict.minimiser)
    law = str(verdict.distribution).replace("P(", "").replace(") =", ":")
    method = verdict.method.split(";")[0]
    return (
        f"| {row['cell'][2]} | {COLUMNS[row['cell'][3]]} | {law} | {scores} | "
        f"{word(verdict.prediction)} | {word(verdict.bayes)} | {verdict.regret:.4f}{_marks(row)} | "
        f"{method} |"
    )


def _marks(row: dict[str, Any]) -> str:
    words = {"†": "ties", "‡": "not unique", "§": "KL"}
    return "".join(mark for mark, word in words.items() if word in row["note"])
