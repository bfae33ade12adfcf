"""Mixtures on real data with official splits: `python -m benchmarks ensemble --data FOLDER`.

`SetEnsemble` with its defaults is fitted for F1, and decoded for other targets without training
again; so is each member. Every fit is made in a process of its own, whose memory is measured.
"""

from __future__ import annotations

import resource
import time
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from benchmarks.quality import SETS, TARGETS, load
from benchmarks.rows import machine
from setwise import SetEnsemble
from setwise.estimators.mixing import backed, mixed
from setwise.targets import get_target

SEEDS = range(5)
BUDGETS = (("emotions", 5.0), ("bibtex", 30.0), ("imdb", 30.0))


def ensemble(data: Path | None = None, sets: Sequence[str] = SETS) -> Iterator[dict[str, Any]]:
    """A row for each set, seed and target."""
    for name in sets if data is not None else ():
        for seed in SEEDS:
            yield from alone(fit_rows, data, name, seed)


def budget(data: Path | None = None, sets: Sequence[str] = ()) -> Iterator[dict[str, Any]]:
    """A row for each set and time budget; all rows of the set are learnt from."""
    for name, seconds in BUDGETS if data is not None else ():
        if not sets or name in sets:
            yield alone(budget_row, data, name, seconds)


def alone(function: Any, *arguments: Any) -> Any:
    """What a function gives in a process of its own."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


def fit_rows(data: Path, name: str, seed: int, folder: Path | None = None) -> list[dict[str, Any]]:
    """A row for each target of one fit; one that goes on in a folder has no seconds."""
    X, Y, X_test, Y_test = load(data / name)
    goes_on = folder is not None and folder.exists()
    model, cost = fitted(SetEnsemble("f1", random_state=seed, folder=folder), X, Y)
    if goes_on:
        cost |= {"wall_seconds": None, "cpu_seconds": None}
    told = log_losses(model, Y, X_test, Y_test)
    rows = []
    for target in TARGETS:
        judge = get_target(target)
        asked = {"mixture": model, **model.members_}
        figures = {
            who: float(1.0 - judge.loss(one.for_target(target).predict(X_test), Y_test).mean())
            for who, one in asked.items()
        }
        rows.append({
            "set": name, "seed": seed, "target": target, **figures, **told, **cost, **machine(),
        })  # fmt: skip
    return rows


def fitted(model: SetEnsemble, X: Any, Y: Any) -> tuple[Any, dict[str, Any]]:
    """The fitted model, and what it took."""
    wall, processor = time.monotonic(), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model.fit(X, csr_array(Y))
    return model, {
        "wall_seconds": time.monotonic() - wall,
        "cpu_seconds": time.process_time() - processor,
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "weights": dict(zip(model.members_, model.weights_.round(3).tolist(), strict=True)),
        "equal": model.is_equal_,
    }


def log_losses(model: Any, known: Any, X: Any, Y: Any) -> dict[str, Any]:
    """On test rows, of the mixture and of each member as it is mixed; see `backed`."""
    sets = Y.astype(np.uint8)
    laws = [one.law(one.estimator.predict_distribution(X)) for one in model._mixed]
    alone = np.eye(len(laws))
    logs = backed(
        [mixed(laws, w, model._loose).log_probability(sets) for w in (*alone, model.weights_)],
        known, np.ones(len(known)), sets,
    )  # fmt: skip
    *each, whole = (-logs.mean(axis=1)).tolist()
    return {
        "log_loss": whole, "best_log_loss": min(each),
        "log_losses": dict(zip(model.members_, each, strict=True)),
        "independent": dict(zip(model.members_, model._loose.round(3).tolist(), strict=True)),
    }  # fmt: skip


def budget_row(data: Path, name: str, seconds: float) -> dict[str, Any]:
    """What a fit to all rows of a set takes of its time budget, in seconds and memory."""
    X, Y, X_test, Y_test = load(data / name)
    stacked = np.vstack if isinstance(X, np.ndarray) else _stacked
    X, Y = stacked([X, X_test]), np.vstack([Y, Y_test])
    model, cost = fitted(SetEnsemble("f1", time_budget=seconds), X, Y)
    return {
        "set": name, "rows": len(Y), "budget": seconds, **cost, "stopped": model.stopped_,
        "cut": "; ".join(model.cut_), "log_loss": model.log_loss_, **machine(),
    }  # fmt: skip


def _stacked(parts: list[Any]) -> Any:
    from scipy.sparse import vstack

    return csr_array(vstack(parts))


def by_seed(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Means over the seeds, by set and target."""
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault((row["set"], row["target"]), []).append(row)
    means = []
    for (name, target), group in groups.items():
        numbers = ("mixture", "linear", "extra trees", "booster", "log_loss", "best_log_loss",
                   "cpu_seconds", "peak_mib")  # fmt: skip
        weights = [list(row["weights"].values()) for row in group]
        loose = [list(row["independent"].values()) for row in group if "independent" in row]
        means.append({
            **group[0], "set": name, "target": target, "seeds": len(group),
            **{key: mean_of([row[key] for row in group]) for key in numbers},
            "weights": ", ".join(f"{w:.2f}" for w in np.mean(weights, axis=0)),
            "independent": ", ".join(f"{w:.2f}" for w in np.mean(loose, axis=0)) if loose else None,
        })  # fmt: skip
    return means


def mean_of(values: list[Any]) -> float | None:
    """The mean of those that are known."""
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None
