"""Ranks of methods over data sets, and whether they differ by more than chance.

The splits and seeds of a set are averaged first: they are not independent of one another. Methods
are compared on those that all of them have.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import friedmanchisquare, rankdata, wilcoxon

from setwise.evaluation.statistics import holm


class Ranking(NamedTuple):
    """Values (sets, methods) of one measure for methods that have them on every set.

    ``p`` is of the Friedman test that all are alike; ``against`` of Wilcoxon tests of each method
    against the first of the ranking, after Holm's correction (None for itself). ``left_out`` has
    the methods without a value on some set, and on how many they have one.
    """

    measure: str
    sets: list[str]
    methods: list[str]
    values: np.ndarray
    ranks: np.ndarray
    p: float | None
    against: list[float | None]
    left_out: dict[str, int]


def means(
    rows: Sequence[dict[str, Any]], measure: str, among: Sequence[str] | None = None
) -> dict[tuple[str, str], float]:
    """By set and method the mean of a measure that the row was made for.

    Over those splits and seeds of a set that every method (of some) has which has the set at all;
    where there is none, over those that most have, without the methods that lack them.
    """
    found: dict[str, dict[str, dict[tuple[str, int], list[float]]]] = {}
    for row in rows:
        if row.get("target") == measure and (among is None or row["method"] in among):
            own = found.setdefault(row["set"], {}).setdefault(row["method"], {})
            own.setdefault((row["split"], row["seed"]), []).append(row[measure])
    values = {}
    for name, methods in found.items():
        counts = Counter(unit for units in methods.values() for unit in units)
        most = max(counts.values())
        shared = [unit for unit, count in counts.items() if count == most]
        for method, units in methods.items():
            if all(unit in units for unit in shared):
                own = [value for unit in shared for value in units[unit]]
                values[name, method] = float(np.mean(own))
    return values


def ranking(rows: Sequence[dict[str, Any]], measure: str, among: Sequence[str]) -> Ranking:
    """Of some methods, best mean rank first."""
    value = means(rows, measure, among)
    sets = sorted({name for name, method in value if method in among})
    n_sets = Counter(method for _, method in value)
    methods = [one for one in among if n_sets[one] == len(sets)]
    left_out = {one: n_sets[one] for one in among if 0 < n_sets[one] < len(sets)}
    table = np.array([[value[name, one] for one in methods] for name in sets])
    if table.size == 0:
        return Ranking(measure, sets, [], np.empty((len(sets), 0)), np.empty(0), None, [], left_out)
    ranks = np.mean([rankdata(-row.round(6)) for row in table], axis=0)
    order = np.argsort(ranks, kind="stable")
    table, ranks, methods = table[:, order], ranks[order], [methods[i] for i in order]
    tested = len(sets) > 2 and len(methods) > 2
    p = float(friedmanchisquare(*table.T).pvalue) if tested else None
    return Ranking(measure, sets, methods, table, ranks, p, _against_first(table), left_out)


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


def _against_first(table: np.ndarray) -> list[float | None]:
    """Holm's p-values of Wilcoxon tests of each column against the first."""
    raw = []
    for column in table.T[1:]:
        same = np.allclose(column, table[:, 0])
        raw.append(1.0 if same else float(wilcoxon(table[:, 0], column).pvalue))
    return [None, *(float(p) for p in holm(np.array(raw)))] if raw else [None]
