"""Run measurements and write their tables: `python -m benchmarks [NAME ...]`."""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks.bounds import bounds, tightest, tightness
from benchmarks.decoding import decoding, wide
from benchmarks.excess_risk import SIZES, by_size, excess_rows
from benchmarks.imports import imports
from benchmarks.peers import peers
from benchmarks.quadrature import quadrature
from benchmarks.quality import SETS, quality
from benchmarks.rows import load, store, table
from benchmarks.speed import growth, speed

MEASUREMENTS = {
    "speed": speed,
    "growth": growth,
    "decoding": decoding,
    "wide": wide,
    "peers": peers,
    "imports": imports,
    "quadrature": quadrature,
    "quality": quality,
    "bounds": bounds,
    "tightness": tightness,
    "excess_risk": excess_rows,
}
SHOWN = {
    "speed": [
        *("rows", "labels", "target", "q", "ratio"),
        *("mean_value", "gradient_norm", "value_error", "gradient_error"),
    ],
    "growth": ["rows", "labels", "target", "q", "doubling"],
    "decoding": [
        *("rows", "labels", "law", "target", "ratio", "mean_size", "mean_risk", "risk_error"),
    ],
    "wide": [
        *("rows", "labels", "entries", "target", "seconds", "peak_over_own", "peak_over_dense"),
        "mean_size",
    ],
    "peers": [
        *("peer", "value", "problems", "ours", "theirs", "least_lead", "largest_lead"),
        "time_over_theirs",
    ],
    "quality": [
        *("set", "method", "f1 utility", "jaccard utility", "subset utility", "hamming utility"),
        *("seconds", "chosen"),
    ],
    "imports": ["ratio", "setwise_milliseconds", "numpy_milliseconds", "modules_loaded"],
    "tightness": [
        *("surrogate", "q", "n", "bound", "largest ratio", "constant", "constant needed"),
        "regret",
    ],
    "bounds": [
        *("theorem", "surrogate", "scores", "cells", "space", "target", "coefficient", "exponent"),
        *("draws", "above", "largest ratio", "after ascent"),
    ],
    "excess_risk": [
        *("problem", "target", "method"), *(f"n = {n}" for n in SIZES),
        *("best possible", "last bound"),
    ],
}  # fmt: skip
# How rows are put together before they are shown, where they are many.
TOGETHER = {"bounds": tightest, "excess_risk": by_size}
PAGE = Path(__file__).parents[1] / "docs" / "benchmarks.md"
INTRODUCTION = {
    "speed": "Value and gradient of CompSum on the cube from float32 scores. `ratio`: time over "
    "that of PyTorch's binary cross-entropy with logits, forward and backward, same threads, "
    "minima of interleaved rounds. Errors are relative to the largest exact value and gradient.",
    "growth": "Time with twice the labels over time with that many: F1 at q = 1.",
    "decoding": "Minimum-risk label sets from float32 probabilities. `ratio`: time over that of "
    "`numpy.argsort` along the rows, minima of interleaved rounds. `risk_error`: of the expected "
    "loss, against the law of the counts (not computed for more than 200 labels).",
    "wide": "A sparse matrix of probabilities. `peak`: memory allocated while decoding, over the "
    "size of the matrix and over that of a dense copy with a byte an entry.",
    "peers": "The value of our label sets and of a peer's on the same probabilities. `lead`: ours "
    "less theirs, in the worst and in the best problem.",
    "quality": "Means over the test rows of real data sets with their official splits, features as "
    "stored, default settings; `SetClassifierCV` chooses for F1 by cross-validation. `seconds`: "
    "training, choosing and predicting.",
    "imports": "`import setwise` in units of `import numpy`, fresh processes.",
    "tightness": "The paper's constants over every target: n sets of one label each, any expected "
    "utilities in [0, 1] (n labels for binary relevance). `largest ratio` of regret to bound met "
    "by an ascent; above 1 the bound is false. `constant needed`: in place of `constant`, in "
    "constant t^exponent, at the regret where it was met.",
    "bounds": "Every combination of docs/guarantees.md that a theorem with a rate covers; of the "
    "`cells` of a theorem, surrogate and kind of scores, the one of the largest ratio. `above`: "
    "draws of distributions and scores whose regret exceeds the bound; `largest ratio` of regret "
    "to bound among them, and `after ascent` from the worst of others. Bounds on the paper's "
    "scale.",
    "excess_risk": "Mean loss above the best possible on data with a known p(y | x), 20,000 fresh "
    "inputs, means over repetitions. `last bound`, at the largest n: sqrt(2 KL) of a likelihood, "
    "n t of mean absolute error, from the surrogate's own regret on the known truth. Of "
    "`rare but joint` the joint scores hold the truth, and the cube's mean absolute error the best "
    "classifier.",
}


def render() -> None:
    """Write docs/benchmarks.md from the stored rows."""
    parts = ["# Measurements\n\nMade by `make bench` from the rows in `benchmarks/results`.\n"]
    for name, columns in SHOWN.items():
        rows = load(name)
        if not rows:
            continue
        rows = TOGETHER.get(name, list)(rows)
        parts.append(f"## {name}\n\n{INTRODUCTION[name]}\n\n{table(rows, columns)}\n")
        parts.append(f"{rows[0]['processor']}, {rows[0]['threads']} threads.\n")
    PAGE.write_text("\n".join(parts))


def main() -> None:
    """Measure what was named, or everything, then render."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"of {', '.join(MEASUREMENTS)}; all by default")
    parser.add_argument("--data", type=Path, help="folder with the data sets of `quality`")
    parser.add_argument("--sets", nargs="*", default=SETS, help="which of them; all by default")
    options = parser.parse_args()
    names = options.names or [name for name in MEASUREMENTS if name != "quality"]
    unknown = set(names) - set(MEASUREMENTS)
    if unknown:
        parser.error(f"no such measurement: {', '.join(sorted(unknown))}")
    for name in names:
        made = quality(options.data, options.sets) if name == "quality" else MEASUREMENTS[name]()
        rows = store(name, made)
        if name in SHOWN:
            print(f"{name}\n{table(TOGETHER.get(name, list)(rows), SHOWN[name])}\n")
    render()


if __name__ == "__main__":
    main()
