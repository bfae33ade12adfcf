"""Ranks of methods over data sets, and whether they differ by more than chance.

Two questions have their tests. Would other *sets* say the same? Friedman's test, with Nemenyi's
critical difference, and Wilcoxon's tests against the first, of the means of sets; they need many of
them. Would other *splits* of these sets say the same? `Gain.p`. Both p-values against the first
have Holm's correction.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import friedmanchisquare, rankdata, studentized_range, wilcoxon

from benchmarks.evidence.gains import gain
from setwise.evaluation.statistics import holm

# What is less likely by chance is called told apart.
LEVEL = 0.05
# Splits count that so many of the methods have: a few that lack some must not cost all the others.
SHARED = 0.75


class Ranking(NamedTuple):
    """Values (sets, methods) of one measure for methods that have them on every set.

    ``p`` is of Friedman's test that all are alike, ``critical`` Nemenyi's difference of mean ranks
    at `LEVEL`; ``against`` of each method against the first of the ranking on the splits that both
    have (None for itself, and with few splits), ``over_sets`` of Wilcoxon's tests on the
    sets, both after Holm's correction. ``left_out`` has the methods that lack a set, or splits of
    it, and of how many sets they have all.
    """

    measure: str
    sets: list[str]
    methods: list[str]
    values: np.ndarray
    ranks: np.ndarray
    p: float | None
    critical: float
    against: list[float | None]
    over_sets: list[float | None]
    left_out: dict[str, int]


def means(
    rows: Sequence[dict[str, Any]], measure: str, among: Sequence[str] | None = None
) -> dict[tuple[str, str], float]:
    """By set and method the mean of a measure that the row was made for.

    Over those splits and seeds of a set that most methods (of some) have, by `SHARED` or, where
    there is none, by their number; without the methods that lack one.
    """
    found: dict[str, dict[str, dict[tuple[str, int], list[float]]]] = {}
    for row in rows:
        if row.get("target") == measure and (among is None or row["method"] in among):
            own = found.setdefault(row["set"], {}).setdefault(row["method"], {})
            own.setdefault((row["split"], row["seed"]), []).append(row[measure])
    values = {}
    for name, methods in found.items():
        counts = Counter(unit for units in methods.values() for unit in units)
        least = min(SHARED * len(methods), max(counts.values()))
        shared = [unit for unit, count in counts.items() if count >= least]
        for method, units in methods.items():
            if all(unit in units for unit in shared):
                own = [value for unit in shared for value in units[unit]]
                values[name, method] = float(np.mean(own))
    return values


def ranking(rows: Sequence[dict[str, Any]], measure: str, among: Sequence[str]) -> Ranking:
    """Of some methods those that have every set and its splits, best mean rank first."""
    has = {(row["set"], row["method"]) for row in rows if row["target"] == measure}
    sets = sorted({name for name, method in has if method in among})
    n_sets = Counter(method for _, method in has)
    everywhere = [one for one in among if n_sets[one] == len(sets)]
    value = means(rows, measure, everywhere)
    whole = Counter(method for _, method in value)
    methods = [one for one in everywhere if whole[one] == len(sets)]
    left_out = {
        one: whole[one] if one in everywhere else n_sets[one]
        for one in among
        if n_sets[one] and one not in methods
    }
    table = np.array([[value[name, one] for one in methods] for name in sets])
    if table.size == 0:
        empty = np.empty((len(sets), 0)), np.empty(0)
        return Ranking(measure, sets, [], *empty, None, np.inf, [], [], left_out)
    ranks = np.mean([rankdata(-row.round(6)) for row in table], axis=0)
    order = np.argsort(ranks, kind="stable")
    table, ranks, methods = table[:, order], ranks[order], [methods[i] for i in order]
    tested = len(sets) > 2 and len(methods) > 2
    p = float(friedmanchisquare(*table.T).pvalue) if tested else None
    critical = _critical(len(methods), len(sets))
    tests = _against_first(rows, measure, methods), _over_sets(table)
    return Ranking(measure, sets, methods, table, ranks, p, critical, *tests, left_out)


def by_kind(
    rows: Sequence[dict[str, Any]], measures: Sequence[str], among: Sequence[str]
) -> dict[str, dict[str, float]]:
    """For sets with dense and with sparse features: mean ranks, averaged over the measures."""
    found = {}
    for kind, is_sparse in (("dense", False), ("sparse", True)):
        own = [row for row in rows if row["is_sparse"] == is_sparse]
        tables = [ranking(own, measure, among) for measure in measures]
        ranks = [dict(zip(one.methods, one.ranks, strict=True)) for one in tables]
        everywhere = set(among).intersection(*ranks)
        if everywhere:
            found[kind] = {
                name: float(np.mean([one[name] for one in ranks]))
                for name in among
                if name in everywhere
            }
    return found


def _critical(n_methods: int, n_sets: int) -> float:
    """By which mean ranks of any two methods differ if sets are to tell them apart (Nemenyi)."""
    spread = np.sqrt(n_methods * (n_methods + 1) / (12.0 * n_sets))
    return float(studentized_range.isf(LEVEL, max(n_methods, 2), np.inf) * spread)


def _against_first(
    rows: Sequence[dict[str, Any]], measure: str, methods: Sequence[str]
) -> list[float | None]:
    """Holm's p-values of each method against the first, on other splits of the same sets."""
    found = [gain(rows, measure, methods[0], other) for other in methods[1:]]
    raw = [None if one is None else one.p for one in found]
    known = iter(holm(np.array([p for p in raw if p is not None])))
    return [None, *(None if p is None else float(next(known)) for p in raw)]


def _over_sets(table: np.ndarray) -> list[float | None]:
    """Holm's p-values of Wilcoxon's tests of each method, a column, against the first."""
    first = table[:, 0]
    raw = [
        1.0 if np.allclose(column, first) else float(wilcoxon(first, column).pvalue)
        for column in table.T[1:]
    ]
    return [None, *map(float, holm(np.array(raw)))]
