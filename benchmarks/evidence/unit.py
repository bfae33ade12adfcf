"""One method on one split of one set, in a process of its own: what it predicts, and what it took.

`python -m benchmarks.evidence.unit FOLDER SPLIT KIND METHOD SEED OUT` writes OUT.npz with the label
sets for each target, and OUT.json beside it. A process of its own so that its peak of memory is
its own, and a peer is run by the interpreter that has it: only numpy, scipy and scikit-learn are
needed here.
"""

from __future__ import annotations

import importlib
import json
import platform
import random
import sys
import warnings
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.data import load
from benchmarks.evidence.tuning import Recipe, answers

# Where the recipes of a kind are.
MODULES = {"peer": "peers", "network": "networks"}
# Those whose versions are stored, where they are installed.
PACKAGES = (
    "setwise", "numpy", "scipy", "scikit-learn", "numba", "torch", "xgboost-cpu", "xgboost",
    "lightgbm", "scikit-multilearn-ng", "libmultilabel", "napkinxc", "xcolumns", "mlrl-boomer",
    "example-wise-f1-maximizer",
)  # fmt: skip


def recipe(kind: str, method: str) -> Recipe:
    """The recipe of a method by its kind and name."""
    module = importlib.import_module(f"benchmarks.evidence.{MODULES.get(kind, 'methods')}")
    return module.KINDS[kind][method]


def versions() -> dict[str, str]:
    """Of Python, and of those packages that are there."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def peak_mib() -> float | None:
    """The most memory this process held; None where the system does not tell.

    (Not by `resource`: there a process begins with what the one that started it had.)
    """
    try:
        told = Path("/proc/self/status").read_text()
    except OSError:
        return None
    return float(told.partition("VmHWM:")[2].split()[0]) / 1024.0


def run(folder: Path, split: int | None, kind: str, method: str, seed: int, out: Path) -> None:
    """Train, predict, write."""
    # Peers that draw from the generators of all take no seed of their own.
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002
    X, Y, X_test, _ = load(folder, split)
    arrays: dict[str, Any] = {}
    told = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # labels missing in a fold, solvers that stop early
        for place, answer in enumerate(answers(recipe(kind, method), X, Y, X_test, seed)):
            arrays[f"{place} indices"] = answer.sets.indices
            arrays[f"{place} indptr"] = answer.sets.indptr
            if answer.probability is not None:
                arrays[f"{place} probability"] = answer.probability.astype(np.float32)
            told.append({
                "target": answer.target, "settings": answer.settings, "at_edge": answer.at_edge,
                "fit_seconds": answer.fit_seconds, "predict_seconds": answer.predict_seconds,
            })  # fmt: skip
    peak = peak_mib()
    np.savez_compressed(out.with_suffix(".npz"), **arrays)
    about = {"answers": told, "peak_mib": peak, "versions": versions()}
    out.with_suffix(".json").write_text(json.dumps(about))


if __name__ == "__main__":
    folder, split, kind, method, seed, out = sys.argv[1:]
    place = None if split == "official" else int(split)
    run(Path(folder), place, kind, method, int(seed), Path(out))
