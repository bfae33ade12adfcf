"""Do the bounds hold, and how tight are they? `python -m benchmarks bounds tightness`.

`bounds`: the largest ratio of regret to bound over 10,000 random distributions and scores, for
every cell of docs/guarantees.md that a theorem with a rate covers, and after an ascent from the
worst of others. `tightness`: the constants of the paper against the largest ratio over *every*
target: on sets of one label each, precision@1 gives them any expected utilities in [0, 1].
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from math import log
from typing import Any

from benchmarks.guarantees import cells
from benchmarks.rows import machine
from setwise.consistency.setting import Effort, Setting, sampled_regrets, worst_ratio
from setwise.consistency.theorems import bound, covering
from setwise.spaces import Cube, Slice
from setwise.surrogates import BinaryRelevance

DRAWS = 10_000
# A surrogate regret is exact to 1e-13 or so; a square root makes this of it.
ROUNDING = 1e-6
ASCENT = Effort(draws=1000, kept=24, variations=8, rounds=40)
HARD = Effort(draws=4000, kept=32, variations=12, rounds=150)


def bounds() -> Iterator[dict[str, Any]]:
    """A row for each cell that has a bound."""
    for cell, target, space in cells():
        setting = Setting.of(target, cell[3], space, cell[1])
        coverage = covering(setting.target, setting.choice, setting.space, setting.kind)
        if coverage is None or coverage.gamma is None:
            continue
        began = time.perf_counter()
        paid, regret = sampled_regrets(setting, DRAWS, seed=1)
        counted = regret > 1e-3
        ratio = regret[counted] / coverage.gamma(paid[counted])
        above = int((regret > coverage.gamma(paid) + ROUNDING).sum())
        ascent, _ = worst_ratio(setting, coverage.gamma, ASCENT, seed=2)
        yield {
            "space": cell[0], "scores": cell[1], "target": cell[2], "surrogate": cell[3],
            "theorem": coverage.theorem.key, "bound": coverage.gamma.formula,
            "coefficient": coverage.gamma.coefficient, "exponent": coverage.gamma.exponent,
            "draws": DRAWS, "counted": int(counted.sum()), "above": above,
            "largest ratio": float(ratio.max(initial=0.0)), "after ascent": float(ascent.merit[0]),
            "seed": 1, "seconds": time.perf_counter() - began, **machine(),
        }  # fmt: skip


def tightness() -> Iterator[dict[str, Any]]:
    """A row for each constant of the paper: how much of it is needed."""
    for surrogate, q in (
        ("logistic", 0.7), ("sum_exponential", 0.7), ("generalized_cross_entropy", 0.3),
        ("generalized_cross_entropy", 0.5), ("generalized_cross_entropy", 0.7),
        ("generalized_cross_entropy", 0.9), ("mean_absolute_error", 0.7),
        ("constrained_exponential", 0.7), ("constrained_squared_hinge", 0.7),
        ("constrained_hinge", 0.7), ("constrained_rho", 0.7),
    ):  # fmt: skip
        for n_sets in (2, 3, 4):
            setting = Setting.of("precision@1", surrogate, Slice(n_sets, 1), "joint", q)
            gamma = bound(surrogate, setting.space, q=q)
            yield _row(surrogate, q, setting, gamma, n_sets)
            if surrogate == "constrained_squared_hinge":
                for square, formula in ((1.0, "sqrt(t), its proof"), (2.0, "sqrt(2 t), ours")):
                    other = replace(gamma, log_coefficient=log(square) / 2.0, formula=formula)
                    yield _row(surrogate, q, setting, other, n_sets)
    for margin in ("logistic", "exponential", "squared_hinge", "hinge"):
        for n_labels in (1, 2, 3):
            own = BinaryRelevance(margin)
            setting = Setting.of("hamming", own, Cube(n_labels))
            name = f"binary relevance, {margin}"
            yield _row(name, None, setting, bound(own, setting.space), n_labels)
            if margin == "logistic":
                printed = bound(own, setting.space, as_printed=True)
                yield _row(name, None, setting, printed, n_labels)


def _row(surrogate: str, q: float | None, setting: Setting, gamma, n: int) -> dict[str, Any]:
    found, tried = worst_ratio(setting, gamma, HARD, seed=3)
    member = q if surrogate == "generalized_cross_entropy" else None
    paid = float(setting.value(found.p[:1], found.scores[:1])[0])
    paid -= setting.optimum(found.p[0]).value
    ratio = float(found.merit[0])
    return {
        "surrogate": surrogate, "q": member, "n": n, "bound": gamma.formula,
        "theorem": gamma.theorem, "largest ratio": ratio,
        "constant needed": ratio * gamma.coefficient, "constant": gamma.coefficient,
        "regret": float(found.regret[0]), "surrogate regret": paid, "tried": tried, "seed": 3,
        **machine(),
    }  # fmt: skip


def tightest(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of the cells of each theorem, surrogate and kind of scores, that of the largest ratio."""
    worst: dict[tuple, dict[str, Any]] = {}
    for row in rows:
        key = (row["theorem"], row["surrogate"], row["scores"])
        cells = worst[key]["cells"] if key in worst else 0
        if key not in worst or row["after ascent"] > worst[key]["after ascent"]:
            worst[key] = dict(row)
        worst[key]["cells"] = cells + 1
    return list(worst.values())
