"""Very many labels: label trees against napkinXC and PECOS with the same tree, and by labels.

A set is named by its folder, or as "folder:rows:labels" for its first training and test rows and
its most frequent labels.

Everything is measured in processes of its own, which say how long they took and how much memory
they held at most: training, prediction and evaluation each for itself. A package that is not
installed is skipped. What a method predicts is judged by the same code, from sparse label sets.
"""

from __future__ import annotations

import importlib.util
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csc_matrix, csr_array, csr_matrix, load_npz, save_npz

from benchmarks.pictures import draw_growth
from benchmarks.rows import load, machine, put, table

SET, KS = "debian_depends", (1, 3, 5)
# Of the labels of the growth rows: all, and the most frequent halves of them.
HALVINGS = 4
LEAST_WEIGHTS = (0.0, 0.01, 0.05, 0.1, 0.3, 1.0)
# Labels that napkinXC and PECOS list, and the thresholds that are tried for them.
LISTED, THRESHOLDS = 50, np.round(np.arange(0.05, 0.6, 0.025), 3)
# Penalties, of which that of the largest F1 on a fifth of the training rows is taken.
PENALTIES, HELD_OUT = (0.03, 0.1, 0.3), 0.2
# That of the rows by labels, the default.
PENALTY = 0.1
# So many rows that follow each other are a group, of which none is held out without the others.
GROUP_ROWS = 50


def extreme(data: Path, sets: list[str] | None = None) -> Iterator[dict[str, Any]]:
    """A row for each way to predict the test rows."""
    for name in sets or [SET]:
        with tempfile.TemporaryDirectory() as folder:
            for stage in ("choice", "training", "prediction", "evaluation"):
                yield from _run(stage, data, name, folder)
            for stage in ("napkinxc", "pecos"):
                if importlib.util.find_spec(stage) is None:
                    print(f"{stage} is not installed: skipped")
                    continue
                try:
                    yield from _run(stage, data, name, folder)
                except subprocess.CalledProcessError:
                    print(f"{stage} does not run with the packages that are here: skipped")


def label_growth(data: Path, sets: list[str] | None = None) -> Iterator[dict[str, Any]]:
    """Time and memory of training and prediction as labels double."""
    for name in sets or [SET]:
        folder_name, n_rows, n_labels = _size(data, name)
        for halving in range(HALVINGS, -1, -1):
            part = f"{folder_name}:{n_rows}:{-(-n_labels // 2**halving)}"
            with tempfile.TemporaryDirectory() as folder:
                Path(folder, "penalty.json").write_text(json.dumps(PENALTY))
                first = _run("training", data, part, folder)[0]
                second = _run("prediction", data, part, folder)[0]
            yield {
                "set": folder_name, "rows": n_rows, "labels": first["n_labels"],
                "entries": first["entries"], "work": first["work"], "weights": first["weights"],
                "training_seconds": first["seconds"], "training_mib": first["peak_mib"],
                "prediction_rows": second["rows"], "prediction_seconds": second["seconds"],
                "prediction_mib": second["peak_mib"], "f1": second["f1"],
                "listed": second["listed"], **machine(),
            }  # fmt: skip


def _size(data: Path, name: str) -> tuple[str, int, int]:
    """The folder, the rows and the labels that a name asks for."""
    folder, *sizes = name.split(":")
    if sizes:
        return folder, int(sizes[0]), int(sizes[1])
    return folder, 10**9, load_npz(data / folder / "Y.npz").shape[1]


def sparse_weights(data: Path, sets: list[str] | None = None) -> Iterator[dict[str, Any]]:
    """What dropping small weights of linear models costs: flat trees, official splits."""
    from benchmarks.quality import load as load_set
    from setwise import LabelTreeClassifier
    from setwise.estimators.label_tree import LabelTree
    from setwise.targets import get_target

    for name in sets or ["bibtex", "corel5k"]:
        X, Y, test, truth = load_set(data / name)
        model = LabelTreeClassifier("f1", max_leaves=Y.shape[1], least_weight=0.0).fit(X, Y)
        tree, before = model.tree_, None
        for least in LEAST_WEIGHTS:
            kept = tree.weights.copy()
            kept.data[np.abs(kept.data) < least] = 0.0
            kept.eliminate_zeros()
            model.tree_ = LabelTree(tree.first, tree.label, kept, tree.intercept, tree.company)
            f1 = get_target("f1").utility(model.predict(test), csr_array(truth))
            before = f1 if before is None else before
            yield {
                "set": name, "labels": Y.shape[1], "least_weight": least, "density": model.density_,
                "weights": int(kept.nnz), "f1": f1, "f1_lost": before - f1, **machine(),
            }  # fmt: skip


def _run(stage: str, data: Path, name: str, folder: str) -> list[dict[str, Any]]:
    """The rows of a stage, by a process of its own."""
    command = [sys.executable, "-m", "benchmarks.extreme", stage, str(data), name, folder]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    rows = [json.loads(line[4:]) for line in done.stdout.splitlines() if line.startswith("row ")]
    return [{"set": name, **row, **machine()} for row in rows]


def _tell(method: str, began: float, **figures: Any) -> None:
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    row = {"method": method, "seconds": time.perf_counter() - began, "peak_mib": used, **figures}
    row["processor_seconds"] = time.process_time()
    print("row " + json.dumps(row), flush=True)


def read(data: Path, name: str) -> tuple[Any, Any, Any, Any, Any]:
    """Inputs, label sets and groups of the training rows; inputs and label sets of the test rows.

    (Packages of one source have names, and descriptions, that are alike. The split of the set keeps
    them together, and so do groups: they stand next to each other.)
    """
    folder, n_rows, n_labels = _size(data, name)
    X = csr_array(load_npz(data / folder / "X.npz")).astype(np.float32)
    Y = csr_array(load_npz(data / folder / "Y.npz"))
    if n_labels < Y.shape[1]:
        frequent = np.argsort(-np.asarray(Y.sum(axis=0)).ravel(), kind="stable")[:n_labels]
        Y = csr_array(Y[:, np.sort(frequent)])
    parts = np.load(data / folder / "split.npz")
    generator = np.random.default_rng(0)
    train, test = (generator.permutation(parts[part])[:n_rows] for part in ("train", "test"))
    return X[train], Y[train], train // GROUP_ROWS, X[test], Y[test]


def figures(sets: Any, listed: Any, truth: Any) -> dict[str, float]:
    """F1 of label sets, and precision of the k most probable labels."""
    from setwise.decoders import TopK
    from setwise.targets import get_target

    found = {"f1": get_target("f1").utility(sets, truth)}
    found["labels"] = float(sets.sum()) / truth.shape[0]
    for k in KS:
        first = TopK(k).decode(listed)
        found[f"precision@{k}"] = get_target(f"precision@{k}").utility(first, truth)
    return found


# ------------------------------------------------------------------------------------------- ours


def training(data: Path, name: str, folder: Path) -> None:
    from setwise import LabelTreeClassifier

    X, Y, groups, _, _ = read(data, name)
    began = time.perf_counter()
    chosen = json.loads((folder / "penalty.json").read_text())
    model = LabelTreeClassifier("f1", penalty=chosen).fit(X, Y, groups=groups)
    model.save(folder / "tree.skops")
    tree = model.tree_
    _tell(
        "LabelTreeClassifier, training", began, weights=int(tree.weights.nnz), entries=int(Y.nnz),
        work=_work(tree, X, Y), n_labels=tree.n_labels, penalty=chosen,
        calibration=model.calibration_,
    )  # fmt: skip


def choice(data: Path, name: str, folder: Path) -> None:
    """The best of some penalties, by the F1 of a fifth of the training rows, in whole groups."""
    from setwise import LabelTreeClassifier
    from setwise.estimators.folds import drawn_groups

    X, Y, groups, _, _ = read(data, name)
    began, tried = time.perf_counter(), {}
    held = drawn_groups(groups, HELD_OUT, seed=1)
    for penalty in PENALTIES:
        model = LabelTreeClassifier("f1", penalty=penalty)
        model.fit(X[~held], Y[~held], groups=groups[~held])
        tried[penalty] = model.score(X[held], Y[held])
    best = max(tried, key=tried.__getitem__)
    (folder / "penalty.json").write_text(json.dumps(best))
    _tell("LabelTreeClassifier, choice of the penalty", began, penalty=best, tried=tried)


def _work(tree: Any, X: Any, Y: Any) -> float:
    """Products of a feature of a row with a node that one pass of the training takes."""
    rows = np.zeros(len(tree.label))
    leaf = np.empty(tree.n_labels, np.int64)
    leaf[tree.label[tree.label >= 0]] = np.flatnonzero(tree.label >= 0)
    for labels in np.split(Y.indices, Y.indptr[1:-1]):
        node = np.unique(leaf[labels])
        while len(node):
            node = np.unique(tree.parents[node])
            node = node[node >= 0]
            rows[node] += 1
    rows[0] = X.shape[0]
    return float(rows @ np.diff(tree.first)) * X.nnz / X.shape[0]


def prediction(data: Path, name: str, folder: Path) -> None:
    import setwise
    from setwise.decoders import MinimumRisk

    _, _, _, X, Y = read(data, name)
    model = setwise.load(folder / "tree.skops", max_bytes=2**33)
    began = time.perf_counter()
    given = model.predict_distribution(X)
    sets = MinimumRisk("f1").decode(given)
    spent = time.perf_counter() - began
    gap = MinimumRisk("f1").gap(given)
    listed = given.probability
    save_npz(folder / "sets.npz", sets)
    save_npz(folder / "listed.npz", listed)
    outside = (Y.sum() - Y.multiply(listed > 0).sum()) / Y.shape[0]
    _tell(
        "LabelTreeClassifier", time.perf_counter() - spent, **figures(sets, listed, Y),
        rows=Y.shape[0], listed=listed.nnz / Y.shape[0], outside=float(outside),
        tail=float(given.tail.mean()), most_tail=float(given.most_tail.mean()),
        mean_gap=float(gap.mean()), largest_gap=float(gap.max()),
    )  # fmt: skip
    halved = csr_array(listed > 0.5).astype(np.uint8)
    _tell("the same tree, probability above 0.5", began, **figures(halved, listed, Y))
    plain = MinimumRisk("f1").decode(listed)
    _tell("the same tree, decoded without the tail", began, **figures(plain, listed, Y))


def evaluation(data: Path, name: str, folder: Path) -> None:
    from setwise.evaluation import evaluate, propensities

    _, train, _, _, Y = read(data, name)
    sets, listed = (csr_array(load_npz(folder / f"{name}.npz")) for name in ("sets", "listed"))
    began = time.perf_counter()
    found = evaluate(
        sets, Y, probability=listed, propensity=propensities(train), n_bootstrap=100, targets=["f1"]
    )
    chosen = ("macro f1", "micro f1", "psp@1", "psp@3", "psp@5")
    told = {name: found[name].value for name in chosen if name in found}
    _tell("LabelTreeClassifier, evaluation", began, **told)


# ------------------------------------------------------------------------------------------ others


def _others(name: str, began: float, listed: Any, truth: Any) -> None:
    """Rows of label sets above a threshold, of 1/2 and the best on the test rows, and of k labels.

    The best threshold is found with the test rows' own label sets, which no user has.
    """
    from setwise.decoders import TopK

    def above(threshold: float) -> dict[str, float]:
        return figures(csr_array(listed >= threshold).astype(np.uint8), listed, truth)

    best = float(max(THRESHOLDS, key=lambda threshold: above(threshold)["f1"]))
    for told, threshold in (("0.5", 0.5), (f"{best}, the best of all on the test rows", best)):
        _tell(f"{name}, threshold {told}", began, **above(threshold))
    for k in KS:
        _tell(f"{name}, top {k}", began, **figures(TopK(k).decode(listed), listed, truth))


def _tree(folder: Path) -> Any:
    import setwise

    return setwise.load(folder / "tree.skops", max_bytes=2**33).tree_


def napkinxc(data: Path, name: str, folder: Path) -> None:
    from napkinxc.models import PLT

    tree = _tree(folder)
    nodes = zip(tree.parents, range(len(tree.label)), tree.label, strict=True)
    structure = [tuple(map(int, node)) for node in nodes]

    def probability(X: Any, Y: Any, test: Any) -> Any:
        model = PLT(str(folder / "napkinxc"), tree_structure=structure, seed=0, threads=2)
        model.fit(csr_matrix(X), csr_matrix(Y.astype(np.float32)))
        model.load()
        rows = model.predict_proba(csr_matrix(test), top_k=LISTED)
        ends = np.cumsum([0, *map(len, rows)])
        labels = np.array([label for row in rows for label, _ in row])
        values = np.array([min(value, 1.0) for row in rows for _, value in row])
        found = csr_array((values, labels, ends), shape=(test.shape[0], Y.shape[1]))
        found.sort_indices()
        return found

    _compared("napkinXC", data, name, probability)


def pecos(data: Path, name: str, folder: Path) -> None:
    from pecos.xmc.xlinear.model import XLinearModel

    tree = _tree(folder)
    chain, upper = [], np.array([0])
    while (tree.label[upper] < 0).all():
        lower = np.concatenate([np.arange(*tree.first[[node, node + 1]]) for node in upper])
        places = np.searchsorted(upper, tree.parents[lower]), np.arange(len(lower))
        if (tree.label[lower] >= 0).all():
            places = places[0], tree.label[lower]
        ones = np.ones(len(lower), np.float32)
        chain.append(csc_matrix((ones, places[::-1]), shape=(len(lower), len(upper))))
        upper = lower

    def probability(X: Any, Y: Any, test: Any) -> Any:
        model = XLinearModel.train(csr_matrix(X), csc_matrix(Y.astype(np.float32)), C=chain)
        found = csr_array(model.predict(csr_matrix(test), only_topk=LISTED))
        found.data = np.clip(found.data, 0.0, 1.0)
        found.sort_indices()
        return found

    _compared("PECOS", data, name, probability)


def _compared(method: str, data: Path, name: str, probability: Callable[..., Any]) -> None:
    X, Y, _, test, truth = read(data, name)
    began = time.perf_counter()
    listed = probability(X, Y, test)
    _tell(f"{method}, training and prediction", began)
    _others(method, began, listed, truth)


# ------------------------------------------------------------------------------ docs/scaling.md

# What is asked on paper: rows, features and labels a row, labels.
ON_PAPER = {"rows": 10**7, "features a row": 100, "labels a row": 5, "labels": 10**6}
SHOWN = ["method", "f1", "labels", *(f"precision@{k}" for k in KS), "processor_seconds", "peak_mib"]


def section() -> str:
    """Tables and cost models for docs/scaling.md, from the stored rows."""
    rows = [{**dict.fromkeys(SHOWN), **row} for row in load("extreme")]
    parts = ["### Measured\n"]
    if rows:
        parts.append(
            f"{rows[0]['set']} (folder, most training and test rows, most frequent labels): all "
            "methods have the same tree. `processor_seconds` and `peak_mib` are of the process up "
            f"to that row, on a machine with other work to do.{_words_of_penalty(rows)}\n"
        )
        parts.append(table(rows, SHOWN) + "\n")
    dropped = load("sparse_weights")
    if dropped:
        parts.append(
            "Linear models of all labels (flat trees), with the weights below `least_weight` "
            "dropped: `density` is what is kept, `f1_lost` what that costs on test rows.\n"
        )
        parts.append(table(dropped, DROPPED) + "\n")
    growth = load("label_growth")
    if growth:
        parts += [_growth_words(growth), table(growth, GROWTH) + "\n", PICTURE, _paper(growth)]
    return "\n".join(parts)


def _words_of_penalty(rows: list[dict[str, Any]]) -> str:
    """How the penalty was settled."""
    for row in rows:
        if "tried" in row:
            tried = ", ".join(f"{f1:.3f} with {key}" for key, f1 in row["tried"].items())
            return (
                f" The penalty was chosen on the training rows, a fifth of them held out in whole "
                f"groups: F1 is {tried}."
            )
    return ""


GROWTH = [
    *("labels", "entries", "weights", "training_seconds", "training_mib", "prediction_seconds"),
    *("prediction_mib", "listed", "f1"),
]
DROPPED = ["set", "labels", "least_weight", "density", "weights", "f1", "f1_lost"]
PICTURE = "![Time and memory against the number of labels](pictures/label_growth_light.svg)\n"


def _growth_words(growth: list[dict[str, Any]]) -> str:
    return (
        f"{growth[0]['set']} with its most frequent labels, twice as many in each row. `entries`: "
        "labels of all training rows; `weights`: those kept.\n"
    )


def _paper(growth: list[dict[str, Any]]) -> str:
    """What a million labels would need, from the constants of the largest row."""
    last, asked = growth[-1], ON_PAPER
    depth = max(0.0, np.log(asked["labels"] / 128) / np.log(16))
    a_row = asked["features a row"] * (
        16 + asked["labels a row"] * (16 * max(depth - 1.0, 0.0) + 128)
    )
    work = asked["rows"] * a_row
    hours = last["training_seconds"] / last["work"] * work / 3600
    gib = last["weights"] / last["labels"] * asked["labels"] * 8 / 2**30
    data = asked["rows"] * (asked["features a row"] + asked["labels a row"]) * 8 / 2**30
    second = last["prediction_seconds"] / last["prediction_rows"]
    return (
        "### Cost, and a million labels on paper\n\n"
        "With n rows of f features and c labels, arity a and m leaves a last node, training passes "
        "over about n f (a + c (a (log_a(l / m) - 1) + m)) products of a feature and a node, some "
        "dozen times: it grows with the logarithm of the number of labels l. Memory is that of "
        "the data, of the weights kept (8 bytes each, in proportion to l) and `memory`. A "
        "prediction visits the nodes above the floor and their siblings.\n\n"
        f"From the largest row above: {last['training_seconds'] / last['work']:.2g} seconds a "
        f"product, {last['weights'] / last['labels']:.0f} weights a label, {second * 1e3:.2g} "
        f"milliseconds a predicted row. {asked['labels']:,} labels and {asked['rows']:,} rows of "
        f"{asked['features a row']} features and {asked['labels a row']} labels would then take "
        f"about {hours:.0f} hours of training on this machine ({last['threads']} threads), "
        f"{gib:.1f} GiB for the model and {data:.0f} GiB for the data. That is computed from "
        f"times taken beside other work, not measured: too long rather than too short.\n"
    )


def write_section(page: Path) -> None:
    """Put the section in its place in the guide."""
    put(page, "extreme", section())


def draw(growth: list[dict[str, Any]], folder: Path) -> None:
    """Time and memory against the number of labels."""
    stages = ("training", "prediction")
    draw_growth(growth, "label trees by the number of labels", "labels", stages, folder)


if __name__ == "__main__":
    stage, data, name, folder = sys.argv[1:]
    globals()[stage](Path(data), name, Path(folder))
