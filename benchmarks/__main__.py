"""Run measurements and write their tables: `python -m benchmarks [NAME ...]`."""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks.choice import choice
from benchmarks.decoding import decoding, wide
from benchmarks.imports import imports
from benchmarks.modules import modules
from benchmarks.networks import networks
from benchmarks.peers import peers
from benchmarks.quadrature import quadrature
from benchmarks.quality import quality
from benchmarks.rows import load, store, table
from benchmarks.speed import growth, speed
from benchmarks.taxonomy import taxonomy
from benchmarks.training import training

MEASUREMENTS = {
    "speed": speed,
    "growth": growth,
    "taxonomy": taxonomy,
    "modules": modules,
    "networks": networks,
    "decoding": decoding,
    "wide": wide,
    "peers": peers,
    "imports": imports,
    "quadrature": quadrature,
    "quality": quality,
    "training": training,
    "choice": choice,
}
# Those that read data sets, and those that can do without: the others are measured only when named.
WITH_DATA = ("quality", "training", "choice", "networks")
WITHOUT = ("networks",)
SHOWN = {
    "speed": [
        *("rows", "labels", "target", "q", "ratio"),
        *("mean_value", "gradient_norm", "value_error", "gradient_error"),
    ],
    "growth": ["rows", "labels", "target", "q", "doubling"],
    "taxonomy": [
        *("rows", "labels", "space", "loss", "ratio"),
        *("mean_value", "gradient_norm", "value_error", "gradient_error"),
    ],
    "modules": [
        *("rows", "labels", "target", "loss", "ratio"),
        *("mean_value", "gradient_norm", "value_error", "gradient_error"),
    ],
    "networks": [
        *("problem", "seed", "cross-entropy at 0.5", "expected loss"),
        *("expected loss after cross-entropy", "q from 0 to 1", "cross-entropy, decoded"),
        *("likelihood on sets seen, decoded", "best possible"),
    ],
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
    "training": [
        *("set", "rows", "labels", "method", "tol", "seconds", "time_over_ours", "objective"),
        *("over_ours", "largest_gradient", "before_mib", "peak_mib"),
    ],
    "choice": [
        *("set", "rows", "labels", "sets", "unseen, estimated", "unseen in test"),
        *("catalog f1", "sized f1", "catalog f1, folds", "sized f1, folds"),
    ],
    "imports": ["ratio", "setwise_milliseconds", "numpy_milliseconds", "modules_loaded"],
}
PAGE = Path(__file__).parents[1] / "docs" / "benchmarks.md"
INTRODUCTION = {
    "speed": "Value and gradient of CompSum on the cube from float32 scores. `ratio`: time over "
    "that of PyTorch's binary cross-entropy with logits, forward and backward, same threads, "
    "minima of interleaved rounds. Errors are relative to the largest exact value and gradient.",
    "growth": "Time with twice the labels over time with that many: F1 at q = 1.",
    "taxonomy": "Value and gradient of losses on a taxonomy from float32 scores. `ratio`: time "
    "over that of PyTorch's binary cross-entropy with logits, forward and backward, same shape and "
    "threads, minima of interleaved rounds. Errors are relative to the largest value and gradient "
    "by the general recursion (closed sets) or over the list of paths, in float64.",
    "modules": "Forward and backward of `setwise.nn` losses from float32 logits and labels on the "
    "CPU. `ratio`: time over that of `BCEWithLogitsLoss`, same threads, minima of interleaved "
    "rounds. Errors are relative to the largest exact value and gradient.",
    "networks": "Instance F1 of a small network after training on each loss: on data drawn from a "
    "known law exact, on real sets over their official test rows. Every method has the same first "
    "weights, order of rows and number of steps. Decoded: `MinimumRisk`; otherwise logits >= 0.",
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
    "training": "The same objective for each label (C = 1) to the same gradient, real data sets: "
    "minima of interleaved rounds, ours on all threads, scikit-learn on the one it uses. Objective "
    "(the sum over labels; `over_ours`: less ours) and gradient are computed from the coefficients "
    "in float64. Below, the peak memory of fresh processes that train on whole sets (the "
    "likelihood for five steps), and what it was before.",
    "choice": 'Evidence for the rule of `space="auto"`: F1 on test rows and, as chosen by, on '
    "folds, of the list of seen label sets and of the sized space, beside the share of label sets "
    "never seen, estimated from the training rows and found in the test rows.",
    "imports": "`import setwise` in units of `import numpy`, fresh processes.",
}


def render() -> None:
    """Write docs/benchmarks.md from the stored rows."""
    parts = ["# Measurements\n\nMade by `make bench` from the rows in `benchmarks/results`.\n"]
    for name, columns in SHOWN.items():
        rows = load(name)
        if not rows:
            continue
        parts.append(f"## {name}\n\n{INTRODUCTION[name]}\n\n{table(rows, columns)}\n")
        parts.append(f"{rows[0]['processor']}, {rows[0]['threads']} threads.\n")
    PAGE.write_text("\n".join(parts))


def main() -> None:
    """Measure what was named, or everything, then render."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"of {', '.join(MEASUREMENTS)}; all by default")
    parser.add_argument("--data", type=Path, help=f"data sets of {', '.join(WITH_DATA)}")
    parser.add_argument("--sets", nargs="*", help="which of them; by default those it names")
    options = parser.parse_args()
    needing = set(WITH_DATA) - set(WITHOUT)
    names = options.names or [name for name in MEASUREMENTS if name not in needing]
    unknown = set(names) - set(MEASUREMENTS)
    if unknown:
        parser.error(f"no such measurement: {', '.join(sorted(unknown))}")
    for name in names:
        chosen = {"sets": options.sets} if options.sets else {}
        settings = {"data": options.data, **chosen} if name in WITH_DATA else {}
        rows = store(name, MEASUREMENTS[name](**settings))
        if name in SHOWN:
            print(f"{name}\n{table(rows, SHOWN[name])}\n")
    render()


if __name__ == "__main__":
    main()
