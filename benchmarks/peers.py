"""Decoding against the peers' own answers on the same probabilities.

- example-wise-f1-maximizer: the label set of highest expected F1 from P(label, size of the set).
- xcolumns: the predictions of highest macro-F1 of expected counts, by block coordinate ascent.

A peer that is not installed is skipped. A row holds the mean value of both, and the least that ours
is above theirs in any problem: below 0 we would have missed something.
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.rows import machine
from setwise.decoders import MinimumRisk, Thresholds
from setwise.spaces.space import all_sets
from setwise.targets import FBeta


def peers() -> Iterator[dict[str, Any]]:
    """A row for each peer and kind of problem; none for a peer that is not installed."""
    for package, compare in (
        ("example_wise_f1_maximizer", example_wise),
        ("xcolumns", macro_f1),
    ):
        if importlib.util.find_spec(package) is None:
            print(f"{package} is not installed: skipped")
            continue
        yield from compare()


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """What it returns and how long it took."""
    began = time.perf_counter()
    answer = work()
    return answer, time.perf_counter() - began


def example_wise(n_rows: int = 300, n_labels: int = 8) -> Iterator[dict[str, Any]]:
    """Expected F1 of a row's label set, exactly, under laws over all 2^l label sets."""
    from example_wise_f1_maximizer.meta_estimator import gfm

    generator = np.random.default_rng(0)
    every = all_sets(n_labels)
    sizes = every.sum(axis=1)
    marginals = generator.random((n_rows, n_labels)) ** 2
    laws = {
        "independent": np.prod(np.where(every == 1, marginals[:, None], 1 - marginals[:, None]), 2),
        "any": generator.dirichlet(np.full(len(every), 0.05), n_rows),
    }
    for law, posterior in laws.items():

        def theirs(posterior=posterior):
            joint = np.stack(
                [posterior @ (every * (sizes == s)[:, None]) for s in sizes_of(every)], 2
            )
            sets = np.zeros((n_rows, n_labels), np.uint8)
            for row in range(n_rows):
                sets[row, gfm(joint[row], posterior[row, 0]).astype(int)] = 1
            return sets

        def ours(law=law, posterior=posterior):
            if law == "independent":
                return MinimumRisk("f1").decode(marginals)
            return MinimumRisk("f1").decode_catalog(posterior, every, over="all")

        utilities, seconds = [], []
        for work in (ours, theirs):
            work()
            sets, spent = timed(work)
            losses = np.array([FBeta().loss(np.tile(row, (len(every), 1)), every) for row in sets])
            utilities.append(1.0 - (posterior * losses).sum(axis=1))
            seconds.append(spent)
        yield _row("example-wise-f1-maximizer", f"expected F1, {law} labels", utilities, seconds)


def sizes_of(every: np.ndarray) -> range:
    """Sizes of label sets that are not empty."""
    return range(1, every.shape[1] + 1)


def macro_f1(problems: int = 10, n_rows: int = 500, n_labels: int = 30) -> Iterator[dict[str, Any]]:
    """Macro-F1 of expected counts, for problems whose labels are of very different frequency."""
    from xcolumns.block_coordinate import predict_optimizing_macro_f1_score_using_bc

    values, seconds = [[], []], [0.0, 0.0]
    for seed in range(problems):
        generator = np.random.default_rng(seed)
        rare = generator.random(n_labels) * 4.0
        probability = 1.0 / (1.0 + np.exp(rare + 2.0 * generator.normal(size=(n_rows, n_labels))))

        def ours(probability=probability):
            return Thresholds("f1", "macro").fit_probability(probability).decode(probability)

        def theirs(probability=probability, seed=seed):
            return predict_optimizing_macro_f1_score_using_bc(probability, k=0, seed=seed)

        for place, work in enumerate((ours, theirs)):
            work()
            sets, spent = timed(work)
            seconds[place] += spent
            true = (sets * probability).sum(axis=0)
            values[place].append(np.mean(2 * true / (sets.sum(axis=0) + probability.sum(axis=0))))
    yield _row("xcolumns", "macro-F1 of expected counts", [np.array(v) for v in values], seconds)


def _row(peer: str, value: str, utilities: list[np.ndarray], seconds: list[float]) -> dict:
    ours, theirs = utilities
    return {
        "peer": peer, "value": value, "problems": len(ours), "ours": float(ours.mean()),
        "theirs": float(theirs.mean()), "least_lead": float((ours - theirs).min()),
        "largest_lead": float((ours - theirs).max()), "time_over_theirs": seconds[0] / seconds[1],
        **machine(),
    }  # fmt: skip
