"""Run measurements and write their tables: `python -m benchmarks [NAME ...]`."""

from __future__ import annotations

import argparse
from importlib import import_module
from itertools import chain
from pathlib import Path

from benchmarks.bounds import tightest
from benchmarks.ensemble import by_seed
from benchmarks.excess_risk import POPULATION_SIZES, SIZES, by_size
from benchmarks.extreme import draw as draw_growth
from benchmarks.extreme import write_section
from benchmarks.guarantee_pages import draw, page
from benchmarks.rows import load, store, table
from benchmarks.scaling import draw as draw_rows
from benchmarks.scaling import write_section as write_rows

# Where each is, as module and function: loaded when it is measured, since some need what others
# do not have (torch, data sets).
MEASUREMENTS = {
    "speed": ("speed", "speed"),
    "growth": ("speed", "growth"),
    "limit": ("limit", "limit"),
    "taxonomy": ("taxonomy", "taxonomy"),
    "modules": ("modules", "modules"),
    "networks": ("networks", "networks"),
    "decoding": ("decoding", "decoding"),
    "wide": ("decoding", "wide"),
    "peers": ("peers", "peers"),
    "imports": ("imports", "imports"),
    "tables": ("tables", "tables"),
    "one_row": ("waiting", "one_row"),
    "first_call": ("waiting", "first_call"),
    "busy": ("waiting", "busy"),
    "quadrature": ("quadrature", "quadrature"),
    "quality": ("quality", "quality"),
    "bounds": ("bounds", "bounds"),
    "tightness": ("bounds", "tightness"),
    "excess_risk": ("excess_risk", "excess_rows"),
    "population_regret": ("excess_risk", "population_rows"),
    "guarantees": ("guarantees", "guarantees"),
    "training": ("training", "training"),
    "choice": ("choice", "choice"),
    "searches": ("searches", "searches"),
    "fits": ("searches", "fits"),
    "population": ("population", "population"),
    "averages": ("population", "averages"),
    "budgets": ("budgets", "budgets"),
    "many_labels": ("budgets", "many_labels"),
    "hierarchies": ("hierarchies", "hierarchies"),
    "resplits": ("hierarchies", "resplits"),
    "ensemble": ("ensemble", "ensemble"),
    "budget": ("ensemble", "budget"),
    "boost": ("boost", "boost"),
    "extreme": ("extreme", "extreme"),
    "label_growth": ("extreme", "label_growth"),
    "sparse_weights": ("extreme", "sparse_weights"),
    "model_growth": ("evidence.growth", "model_growth"),
    "row_growth": ("scaling", "row_growth"),
    "workers": ("scaling", "workers"),
}
# Those that read data sets, and those that can do without: the others are measured only when named.
WITH_DATA = (
    *("quality", "training", "choice", "population", "averages", "networks", "hierarchies"),
    *("resplits", "ensemble", "budget", "boost", "extreme", "label_growth", "sparse_weights"),
    *("searches", "fits", "row_growth", "workers"),
)
WITHOUT = ("networks",)
# Those of `make guarantees`.
GUARANTEES = ("guarantees", "bounds", "tightness", "excess_risk", "population_regret")
SHOWN = {
    "speed": [
        *("rows", "labels", "target", "q", "ratio"),
        *("mean_value", "gradient_norm", "value_error", "gradient_error"),
    ],
    "growth": ["rows", "labels", "target", "q", "doubling"],
    "limit": [
        *("rows", "labels", "target", "q", "exponentials", "bytes", "nanoseconds"),
        *("pass_nanoseconds", "ratio", "value_error", "gradient_error"),
    ],
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
    "ensemble": [
        *("set", "target", "seeds", "mixture", "linear", "extra trees", "booster", "weights"),
        *("independent", "log_loss", "best_log_loss", "cpu_seconds", "peak_mib"),
    ],
    "budget": [
        *("set", "rows", "budget", "wall_seconds", "cpu_seconds", "peak_mib", "stopped"),
        *("weights", "log_loss"),
    ],
    "boost": [
        *("set", "rows", "features", "labels", "sets", "rounds", "seconds", "xgboost_seconds"),
        *("ratio", "cpu_ratio", "share of the objective", "log_loss"),
    ],
    "hierarchies": [
        *("set", "labels", "paths", "method", "tree distance", "over ours", "low", "high"),
        *("hierarchical f1", "closed", "chosen"),
    ],
    "resplits": ["set", "seed", "SetClassifierCV", "one-vs-rest, closed"],
    "training": [
        *("set", "rows", "labels", "method", "tol", "seconds", "time_over_ours", "objective"),
        *("over_ours", "largest_gradient", "before_mib", "peak_mib"),
    ],
    "choice": [
        *("set", "rows", "labels", "sets", "unseen, estimated", "unseen in test"),
        *("catalog f1", "sized f1", "catalog f1, folds", "sized f1, folds"),
    ],
    "searches": [
        *("set", "rows", "features", "labels", "labels of theirs", "seconds", "their seconds"),
        *("ratio", "seconds by likelihood", "f1", "f1, by likelihood", "jaccard"),
        *("jaccard, by likelihood", "subset", "subset, by likelihood", "hamming"),
        "hamming, by likelihood",
    ],
    "fits": [
        *("set", "rows", "features", "labels", "space", "seconds", "their seconds", "ratio"),
        *("steps", "f1", "growth"),
    ],
    "model_growth": [
        *("grows", "rows", "features", "labels", "label sets", "method", "fit_seconds"),
        "predict_seconds",
    ],
    "population": [
        *("set", "split", "marginals", "measure", "at 1/2", "expected", "calibrated", "batch"),
        *("thresholds", "cross_fitted", "micro_macro"),
    ],
    "averages": ["set", "measure", "value", "space", "scaling", "alpha", "cpu_seconds"],
    "budgets": [
        *("kind", "problems", "expected", "batch", "xcolumns, coordinate ascent"),
        *("xcolumns, Frank-Wolfe", "least_lead", "largest_gap"),
    ],
    "many_labels": [
        *("law", "entries", "rule", "exactly", "at most", "ratio", "value", "mean_size"),
    ],
    "imports": ["ratio", "setwise_milliseconds", "numpy_milliseconds", "modules_loaded"],
    "tables": ["rows", "columns", "ratio", "milliseconds", "pandas_milliseconds", "largest_error"],
    "one_row": [
        *("rows", "features", "labels", "target", "ratio", "milliseconds"),
        *("one_vs_rest_milliseconds", "same_from_threads"),
    ],
    "first_call": [
        *("target", "estimator", "installed", "cold_seconds", "cold_processor_seconds"),
        *("warm_seconds", "warm_processor_seconds", "sklearn_seconds", "warm_over_sklearn"),
    ],
    "busy": [
        *("rows", "features", "labels", "fit", "seconds_alone", "seconds_beside", "ratio"),
    ],
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
    "population_regret": [
        *("problem", "target", "method"), *(f"n = {n}" for n in POPULATION_SIZES), "best possible",
    ],
}  # fmt: skip
# How rows are put together before they are shown, where they are many.
TOGETHER = {
    "bounds": tightest, "excess_risk": by_size, "population_regret": by_size, "ensemble": by_seed,
}  # fmt: skip
DOCS = Path(__file__).parents[1] / "docs"
OPENING = (
    "How fast setwise is, and how good, in tables for those who want to check or repeat it. "
    "[Findings](findings.md) compares methods on real data in plain words. The authors of setwise "
    "measured all rows, on their own machines; below each table is the processor of its first row. "
    "`python -m benchmarks NAME` measures one table again (`make bench` all that need no data), "
    "stores its rows in `benchmarks/results`, and writes this page from the stored rows. A `ratio` "
    "is the time that setwise takes divided by the time of what the paragraph above the table "
    "names: 2 is twice as long, 0.5 half as long. (Under *busy* it is a fit beside other processes "
    "over the same fit alone.)"
)
INTRODUCTION = {
    "speed": "Value and gradient of CompSum on the cube from float32 scores. `ratio`: time over "
    "that of PyTorch's binary cross-entropy with logits, forward and backward, same threads, "
    "minima of interleaved rounds. Errors are relative to the largest exact value and gradient.",
    "growth": "Time with twice the labels over time with that many: F1 at q = 1.",
    "limit": "How close those losses come to what none can do without. `exponentials` and `bytes` "
    "of a logit: scores checked and read, gradients written, labels checked, counted and read; "
    "beside them a quotient takes a division and ten products a logit for each node of its rule "
    "(three to five here). `ratio`: processor time on one thread over that of one pass that reads "
    "the scores and writes as many exponentials, minima of interleaved rounds.",
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
    "ensemble": "`SetEnsemble` with its defaults, fitted for F1 with official splits and decoded "
    "for each target: utilities on the test rows of the mixture and of its members, means over "
    "seeds. `log_loss`: of the mixture on the test rows, beside that of its best member, smoothed "
    "as it is mixed (a set that a law gives no probability counts as though each had seen one row "
    "more, of independent labels). `independent`: the share of each member that is smoothed; rows "
    "without it were taken before members were. `peak_mib`: of a process that reads, fits and "
    "predicts.",
    "budget": "`SetEnsemble(time_budget=...)` fitted to all rows of a set: seconds and processor "
    "seconds of the fit, the peak memory of its process, and the log-loss on rows held out.",
    "boost": "`SetBooster` on the likelihood of the label sets seen, beside XGBoost's own "
    "`binary:logistic` with the same trees and rounds, in one process, minima of turns; reading "
    "of the inputs included. `cpu_ratio`: of processor seconds; `share of the objective`: of ours, "
    "for gradients and Hessians.",
    "hierarchies": "Means over the test rows of hierarchical data sets with their official splits. "
    "`tree distance`: labels, with all above them, in which prediction and truth differ; "
    "`hierarchical f1`: over all entries of both sets with all above their labels; `closed`: share "
    "of predictions that hold the parents of their labels; `paths`: whether every label set is "
    "one path, where HiClass's local classifiers are compared; `over ours`: tree distance "
    "less that of the first method, with a 95 % interval by paired resamples of the test rows. All "
    "are linear, on the same features, with penalties from one grid chosen by the same folds of "
    "the training rows. What is compared (row lengths of sparse features, which spaces and "
    "surrogates the first method tries) was settled after figures on these test rows had been "
    "seen, so it is not an untouched test. Of debtags only the list of seen sets and binary "
    "relevance are tried, with few penalties and one held-out fifth; HiClass's rows of diatoms are "
    "of an earlier run with three folds. One-vs-rest is solved by `SetClassifier`.",
    "resplits": "Mean tree distance on random splits of all rows of a set, in parts as large as "
    "its official ones, everything else as under *hierarchies*.",
    "training": "The same objective for each label (C = 1) to the same gradient, real data sets: "
    "minima of interleaved rounds, ours on all threads, scikit-learn on the one it uses. Objective "
    "(the sum over labels; `over_ours`: less ours) and gradient are computed from the coefficients "
    "in float64. Below, the peak memory of fresh processes that train on whole sets (the "
    "likelihood for five steps), and what it was before.",
    "choice": 'Evidence for the rule of `space="auto"`: F1 on test rows and, as chosen by, on '
    "folds, of the list of seen label sets and of the sized space, beside the share of label sets "
    "never seen, estimated from the training rows and found in the test rows.",
    "searches": "`SetClassifierCV('f1')` against scikit-learn's `LogisticRegressionCV(Cs=10, "
    "cv=5)` for each label that is in at least five rows, in processor seconds on one thread, same "
    "process, each at its default tolerance (of gradients by log-odds ours is five times theirs); "
    "`text` is 2,250 training rows of reuters21578. Then the utilities of test rows, of "
    "models chosen by each target itself and of one model chosen by likelihood (`choose_by`).",
    "fits": "One fit of `SetClassifier('f1')` on each space against scikit-learn's "
    "`LogisticRegression` for each label, same penalty and largest gradient, in processor seconds "
    "on one thread of the same process; F1 of test rows. `growth`: time over that with half of the "
    "rows.",
    "model_growth": "How training, and prediction of 1,000 rows, grow with one size of drawn data "
    "while the others stay: processor seconds on one thread, all in one process.",
    "population": 'Evidence for the rule of `PopulationRule(rule="auto")`: measures of the test '
    "rows by each rule, from the same marginals. Split 0 is the official one, others are random in "
    "parts as large. `at 1/2`: labels of probability above 1/2. Marginals of `sets seen` are of "
    "the model that `SetClassifierCV` chooses.",
    "averages": "`SetClassifierCV(measure)` with its defaults, one call, on the test rows of "
    "official splits: what it reaches, what it chose, and processor seconds of the fit.",
    "imports": "`import setwise` in units of `import numpy`, fresh processes.",
    "tables": "A CSV file of numbers by `setwise.datasets.read`. `ratio`: wall time over that of "
    "`pandas.read_csv`, minima of interleaved rounds.",
    "one_row": "`SetClassifier.predict` of one row, default settings. `ratio`: time over that of "
    "scikit-learn's one-vs-rest logistic regression, minima of interleaved rounds. "
    "`same_from_threads`: rows predicted one by one by eight threads at once are those of one "
    "call.",
    "first_call": "Import, fit of 300 rows and predict in a fresh process: where no process has "
    "kept a compiled kernel (`cold`), but so many were `installed` with the package for this "
    "machine; and where one has (`warm`, the shorter of two). `sklearn_seconds`: "
    "`import sklearn.linear_model`, which is a part of both; processor seconds are those after it. "
    "`tree`: the distance in a hierarchy of six labels.",
    "busy": "A fit of `SetClassifier('f1')` alone, the shortest of three, and beside as many busy "
    "processes as there are processors. `ratio`: beside over alone.",
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
    "budgets": "Macro-F1 of expected counts with 3 labels a row, of 400 rows and 40 labels; means "
    "over problems. `least_lead`: of `batch` over the better of xcolumns' two ways, in the worst "
    "problem. `largest_gap`: how much larger the best possible value can be, at most.",
    "many_labels": "Deciding macro-F1 for a sparse matrix of 10,000 x 30,000 probabilities, fit "
    "and decode. `ratio`: time over that of `numpy.sort` of the stored entries, minima of "
    "interleaved rounds. `value`: macro-F1 of the expected counts.",
    "population_regret": "The measure of the expected counts of 20,000 fresh inputs below the best "
    "of all decisions for them, on data with a known p(y | x), means over three repetitions. Of "
    "`independent` separate labels hold the true marginals, of `chain` they do not quite.",
}


def render() -> None:
    """Write docs/benchmarks.md and docs/guarantees.md from the stored rows."""
    parts = [f"# Measurements\n\n{OPENING}\n"]
    for name, columns in SHOWN.items():
        rows = load(name)
        if not rows:
            continue
        rows = TOGETHER.get(name, list)(rows)
        parts.append(f"## {name}\n\n{INTRODUCTION[name]}\n\n{table(rows, columns)}\n")
        parts.append(f"{rows[0]['processor']}, {rows[0]['threads']} threads.\n")
    (DOCS / "benchmarks.md").write_text("\n".join(parts))
    (DOCS / "guarantees.md").write_text(page(load("guarantees")))
    write_section(DOCS / "scaling.md")
    write_rows(DOCS / "scaling.md")


def main() -> None:
    """Measure what was named, or everything, then render."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"of {', '.join(MEASUREMENTS)}; all by default")
    parser.add_argument("--data", type=Path, help=f"data sets of {', '.join(WITH_DATA)}")
    parser.add_argument("--sets", nargs="*", help="which of them; by default those it names")
    options = parser.parse_args()
    named = {*WITH_DATA, *GUARANTEES} - set(WITHOUT)
    names = options.names or [name for name in MEASUREMENTS if name not in named]
    unknown = set(names) - set(MEASUREMENTS)
    if unknown:
        parser.error(f"no such measurement: {', '.join(sorted(unknown))}")
    for name in names:
        chosen = {"sets": options.sets} if options.sets else {}
        settings = {"data": options.data, **chosen} if name in WITH_DATA else {}
        module, function = MEASUREMENTS[name]
        measure = getattr(import_module(f"benchmarks.{module}"), function)
        # (Rows of sets that were not asked for stay, and all in their order.)
        before = load(name)
        kept = [row for row in before if chosen and row.get("set") not in options.sets]
        rows = store(name, chain(kept, measure(**settings)))
        if kept:
            order = list(dict.fromkeys(row.get("set") for row in (*before, *rows)))
            rows = store(name, sorted(rows, key=lambda row: order.index(row.get("set"))))
        if name in SHOWN:
            print(f"{name}\n{table(TOGETHER.get(name, list)(rows), SHOWN[name])}\n")
    render()
    if set(GUARANTEES) & set(names):
        draw(load("excess_risk") + load("population_regret"), DOCS / "pictures")
    if "label_growth" in names:
        draw_growth(load("label_growth"), DOCS / "pictures")
    if "row_growth" in names:
        draw_rows(load("row_growth"), DOCS / "pictures")


if __name__ == "__main__":
    main()
