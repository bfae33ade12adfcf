"""Very many labels: label trees against napkinXC and PECOS with the same tree, and by labels.

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

from benchmarks.rows import machine

SET, KS = "debian_depends", (1, 3, 5)
# Of the labels of the growth rows: all, and the most frequent halves of them.
HALVINGS = 4
# Labels that napkinXC and PECOS list, and the thresholds that are tried for them.
LISTED, THRESHOLDS = 50, np.round(np.arange(0.05, 0.6, 0.025), 3)


def extreme(data: Path, sets: list[str] | None = None) -> Iterator[dict[str, Any]]:
    """A row for each way to predict the test rows."""
    for name in sets or [SET]:
        with tempfile.TemporaryDirectory() as folder:
            for stage in ("training", "prediction", "evaluation"):
                yield from _run(stage, data / name, Path(folder))
            for stage, package in (("napkinxc", "napkinxc"), ("pecos", "pecos")):
                if importlib.util.find_spec(package) is None:
                    print(f"{package} is not installed: skipped")
                else:
                    yield from _run(stage, data / name, Path(folder))


def label_growth(data: Path, sets: list[str] | None = None) -> Iterator[dict[str, Any]]:
    """Time and memory of training and prediction as labels double."""
    for name in sets or [SET]:
        n_labels = load_npz(data / name / "Y.npz").shape[1]
        for halving in range(HALVINGS, -1, -1):
            with tempfile.TemporaryDirectory() as folder:
                many = str(-(-n_labels // 2**halving))
                rows = [
                    *_run("training", data / name, Path(folder), many),
                    *_run("prediction", data / name, Path(folder), many),
                ]
                yield {
                    "set": name, "labels": int(many), "entries": rows[0]["entries"],
                    "training_seconds": rows[0]["seconds"],
                    "training_mib": rows[0]["peak_mib"], "weights": rows[0]["weights"],
                    "prediction_seconds": rows[1]["seconds"],
                    "prediction_mib": rows[1]["peak_mib"], "f1": rows[1]["f1"],
                    "listed": rows[1]["listed"], **machine(),
                }  # fmt: skip


def _run(stage: str, data: Path, folder: Path, *options: str) -> list[dict[str, Any]]:
    """The rows of a stage, by a process of its own."""
    command = [sys.executable, "-m", "benchmarks.extreme", stage, str(data), str(folder), *options]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    rows = [json.loads(line[4:]) for line in done.stdout.splitlines() if line.startswith("row ")]
    return [{"set": data.name, **row, **machine()} for row in rows]


def _tell(method: str, began: float, **figures: Any) -> None:
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    row = {"method": method, "seconds": time.perf_counter() - began, "peak_mib": used, **figures}
    print("row " + json.dumps(row), flush=True)


def read(data: Path, n_labels: int | None = None) -> tuple[Any, Any, Any, Any]:
    """Inputs and label sets of the training rows and of the test rows, CSR."""
    X = csr_array(load_npz(data / "X.npz")).astype(np.float32)
    Y = csr_array(load_npz(data / "Y.npz"))
    if n_labels is not None:
        frequent = np.argsort(-np.asarray(Y.sum(axis=0)).ravel(), kind="stable")[:n_labels]
        Y = csr_array(Y[:, np.sort(frequent)])
    parts = np.load(data / "split.npz")
    train, test = parts["train"], parts["test"]
    return X[train], Y[train], X[test], Y[test]


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


def training(data: Path, folder: Path, n_labels: int | None = None) -> None:
    from setwise import LabelTreeClassifier

    X, Y, _, _ = read(data, n_labels)
    began = time.perf_counter()
    model = LabelTreeClassifier("f1").fit(X, Y)
    model.save(folder / "tree.skops")
    weights, entries = int(model.tree_.weights.nnz), int(Y.nnz)
    _tell("LabelTreeClassifier, training", began, weights=weights, entries=entries)


def prediction(data: Path, folder: Path, n_labels: int | None = None) -> None:
    import setwise
    from setwise.decoders import MinimumRisk

    _, _, X, Y = read(data, n_labels)
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
        listed=listed.nnz / Y.shape[0], tail=float(given.tail.mean()), outside=float(outside),
        mean_gap=float(gap.mean()), largest_gap=float(gap.max()),
    )  # fmt: skip
    halved = csr_array(listed > 0.5).astype(np.uint8)
    _tell("the same tree, probability above 0.5", began, **figures(halved, listed, Y))
    plain = MinimumRisk("f1").decode(listed)
    _tell("the same tree, decoded without the tail", began, **figures(plain, listed, Y))


def evaluation(data: Path, folder: Path) -> None:
    from setwise.evaluation import evaluate, propensities

    _, train, _, Y = read(data)
    sets, listed = (csr_array(load_npz(folder / f"{name}.npz")) for name in ("sets", "listed"))
    began = time.perf_counter()
    found = evaluate(
        sets, Y, probability=listed, propensity=propensities(train), n_bootstrap=100, targets=["f1"]
    )
    chosen = ("macro f1", "micro f1", "psp@1", "psp@3", "psp@5")
    told = {name: found[name].value for name in chosen if name in found}
    _tell("LabelTreeClassifier, evaluation", began, **told)


# ------------------------------------------------------------------------------------------ others


def _others(name: str, began: float, listed: Any, held: Any, truths: tuple[Any, Any]) -> None:
    """Rows of label sets by a threshold of 1/2, by the best one of rows held out, and of k labels.

    ``held`` are the probabilities of rows that a model like it was not trained on.
    """
    from setwise.decoders import TopK

    above: Callable[[Any, float], Any] = lambda p, t: csr_array(p >= t).astype(np.uint8)  # noqa: E731
    truth, known = truths
    tuned = max(THRESHOLDS, key=lambda t: figures(above(held, t), held, known)["f1"])
    for told, threshold in (("0.5", 0.5), (f"{tuned} (tuned)", tuned)):
        sets = above(listed, threshold)
        _tell(f"{name}, threshold {told}", began, **figures(sets, listed, truth))
    for k in KS:
        _tell(f"{name}, top {k}", began, **figures(TopK(k).decode(listed), listed, truth))


def _in_parts(X: Any, Y: Any) -> tuple[Any, Any, Any, Any]:
    """Four of five training rows, and the fifth."""
    held = np.random.default_rng(0).permutation(X.shape[0]) < X.shape[0] // 5
    return X[~held], Y[~held], X[held], Y[held]


def _tree(folder: Path) -> Any:
    import setwise

    return setwise.load(folder / "tree.skops", max_bytes=2**33).tree_


def napkinxc(data: Path, folder: Path) -> None:
    from napkinxc.models import PLT

    tree = _tree(folder)
    nodes = zip(tree.parents, range(len(tree.label)), tree.label, strict=True)
    structure = [tuple(map(int, node)) for node in nodes]

    def probability(X: Any, Y: Any, test: Any, place: str) -> Any:
        model = PLT(str(folder / place), tree_structure=structure, seed=0, threads=2)
        model.fit(csr_matrix(X), csr_matrix(Y.astype(np.float32)))
        model.load()
        rows = model.predict_proba(csr_matrix(test), top_k=LISTED)
        ends = np.cumsum([0, *map(len, rows)])
        labels = np.array([label for row in rows for label, _ in row])
        values = np.array([min(value, 1.0) for row in rows for _, value in row])
        found = csr_array((values, labels, ends), shape=(test.shape[0], Y.shape[1]))
        found.sort_indices()
        return found

    _compared("napkinXC", data, probability)


def pecos(data: Path, folder: Path) -> None:
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

    def probability(X: Any, Y: Any, test: Any, place: str) -> Any:
        model = XLinearModel.train(csr_matrix(X), csc_matrix(Y.astype(np.float32)), C=chain)
        found = csr_array(model.predict(csr_matrix(test), only_topk=LISTED))
        found.data = np.clip(found.data, 0.0, 1.0)
        found.sort_indices()
        return found

    _compared("PECOS", data, probability)


def _compared(name: str, data: Path, probability: Callable[..., Any]) -> None:
    X, Y, test, truth = read(data)
    began = time.perf_counter()
    listed = probability(X, Y, test, "whole")
    _tell(f"{name}, training and prediction", began)
    *kept, unseen, known = _in_parts(X, Y)
    _others(name, began, listed, probability(*kept, unseen, "part"), (truth, known))


if __name__ == "__main__":
    stage, data, folder, *rest = sys.argv[1:]
    globals()[stage](Path(data), Path(folder), *map(int, rest))
