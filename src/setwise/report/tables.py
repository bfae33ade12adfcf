"""The numbers of the page as tables: CSV to keep, with all digits.

Each section has one, from what fills it. The page holds them as links, all but that of the labels,
which may be large: there the page's script writes what is shown, and a folder of tables has all.
"""

from __future__ import annotations

import csv
import io
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict
from itertools import product
from typing import Any

import numpy as np

from setwise.report.material import Material
from setwise.terminal import no_formula

Row = Mapping[str, Any]


def csv_of(rows: Iterable[Row]) -> str:
    """Rows as CSV under the names of the first one's columns; nothing is an empty cell."""
    rows, file = list(rows), io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    for line in [list(rows[0]), *(row.values() for row in rows)] if rows else []:
        writer.writerow([_cell(value) for value in line])
    return file.getvalue().encode("utf-8", "replace").decode()


def _cell(value: Any) -> Any:
    if value is None or (isinstance(value, float | np.floating) and np.isnan(value)):
        return ""
    return value.item() if isinstance(value, np.generic) else no_formula(value)


def link_of(rows: Iterable[Row]) -> str:
    """The same as an address that holds it."""
    return f"data:text/csv;base64,{b64encode(csv_of(rows).encode()).decode()}"


def _leaderboards(material: Material, _: Any) -> Iterator[Row]:
    for standing in material.board:
        own = asdict(standing)
        yield {key: own[key] for key in ("target", "method")} | own


def _methods(_: Material, here: Any) -> Iterator[Row]:
    for own in here:
        for first, rest, targets in own["texts"]:
            yield {
                "method": own["name"],
                "description": own["description"],
                "targets": ", ".join(targets),
                "guarantee": f"{first} {rest}".strip(),
            }


def _figures(material: Material, _: Any) -> Iterator[Row]:
    for panel, evaluations in material.judged:
        for method, own in evaluations.items():
            for figure in own.values():
                yield {"trained for": panel.title, "method": method} | asdict(figure)


def _examples(_: Material, here: Any) -> Iterator[Row]:
    for panel in here["panels"]:
        for kind, rows in panel["kinds"]:
            for row in rows:
                sets = {
                    name: "; ".join(label["name"] for label in row[name][0])
                    for name in ("true", "predicted")
                }
                of = {"trained for": panel["title"], "method": panel["method"], "kind": kind}
                yield of | {"row": row["name"], **sets, "loss": row["loss"]}


def _labels(material: Material, _: Any) -> Iterator[Row]:
    for outcome, figures in material.shown:
        belief = material.belief_of(outcome)
        curves = None if belief is None else material.beliefs[belief].by_label
        for label, name in enumerate(material.results.label_names):
            own = {key: getattr(figures, key)[label] for key in LABEL_FIGURES}
            average = None if curves is None or not figures.support[label] else curves
            yield {
                "target": outcome.target,
                "method": outcome.method,
                "label": name,
                **own,
                "average_precision": average and average.average_precision[label],
            }


LABEL_FIGURES = ("support", "predicted", "both", "precision", "recall", "f1")


def _cooccurrence(_: Material, here: Any) -> Iterator[Row]:
    for (a, b), both, b_given_a, a_given_b, lift in here["pairs"]:
        shares = {"b given a": b_given_a, "a given b": a_given_b, "times chance": lift}
        yield {"a": a, "b": b, "rows with both": both} | shares


def _sizes(_: Material, here: Any) -> Iterator[Row]:
    for panel in here["panels"]:
        every = [("true", here["true_mean"], here["true_shares"], None), *panel["methods"]]
        for method, mean, shares, _ in every:
            sizes = dict(zip(here["bars"], shares.tolist(), strict=True))
            yield {"trained for": panel["title"], "method": method, "mean": mean} | sizes


def _calibration(_: Material, here: Any) -> Iterator[Row]:
    for holders, curve, _ in here["panels"]:
        for method, place in product(holders, np.flatnonzero(curve.count)):
            yield {
                "method": method,
                "targets": holders[method] or "all",
                "above": curve.edges[place],
                "to": curve.edges[place + 1],
                "mean probability": curve.mean_probability[place],
                "share true": curve.frequency[place],
                "entries": curve.count[place],
            }


def _mixture(_: Material, here: Any) -> Iterator[Row]:
    for group in here:
        for own in group["members"]:
            figures = own["figures"]
            yield {
                "method": group["method"],
                "target": group["target"] or "all",
                "member": figures.name,
                "weight": figures.weight,
                "temperature": figures.temperature,
                "log-loss": figures.log_loss,
                "log-loss of the mixture without it": figures.log_loss_without,
                "expected calibration error": figures.expected_error,
            }


def _explained(material: Material, _: Any) -> Iterator[Row]:
    for name, one in material.explained.items():
        for label, place in product(range(len(one.labels)), range(len(one.feature_names))):
            if one.contributions[label, place] != 0.0:
                yield {
                    "row": str(name),
                    "label": str(one.labels[label]),
                    "feature": str(one.feature_names[place]),
                    "value": one.values[place],
                    "added to the log-odds": one.contributions[label, place],
                }


def _precision_recall(_: Material, here: Any) -> Iterator[Row]:
    for panel in here["panels"]:
        for method, belief in panel["curves"].items():
            of = {"trained for": panel["title"], "method": method}
            of["average precision"] = belief.micro.average_precision[0]
            found = belief.micro.interpolated(here["recalls"])[0]
            pairs = zip(here["recalls"], found.tolist(), strict=True)
            yield of | {f"precision at recall {recall}": value for recall, value in pairs}


def _regret(material: Material, here: Any) -> Iterator[Row]:
    truth: Any = material.results.truth
    for board in here:
        for method, regret in board["regrets"]:
            yield {
                "target": board["target"],
                "method": method,
                "regret": regret,
                "at most": board["bounds"].get(method),
                "expected loss": truth.expected[method, board["target"]],
            }


def _timing(material: Material, _: Any) -> Iterator[Row]:
    for outcome in material.results.outcomes:
        times = zip(outcome.fit_seconds, outcome.predict_seconds, strict=False)
        for fold, (fit, predict) in enumerate(times):
            of = {"method": outcome.method, "target": outcome.target, "fold": fold}
            yield of | {"training seconds": fit, "predicting seconds": predict}


def _hierarchy(material: Material, _: Any) -> Iterator[Row]:
    for own in material.placed:
        levels = vars(own.levels)
        for level in range(len(own.levels.f1)):
            of = {"target": own.target, "method": own.method, "level": level}
            yield of | {name: values[level] for name, values in levels.items()}


def _reproduction(material: Material, _: Any) -> Iterator[Row]:
    for outcome in material.results.outcomes:
        for fold, settings in enumerate(outcome.settings):
            for key, value in settings.items():
                of = {"method": outcome.method, "target": outcome.target, "fold": fold}
                yield of | {"setting": str(key), "value": str(value)}


TABLES: dict[str, Callable[[Material, Any], Iterator[Row]]] = {
    "leaderboards": _leaderboards,
    "methods": _methods,
    "figures": _figures,
    "examples": _examples,
    "explained": _explained,
    "labels": _labels,
    "cooccurrence": _cooccurrence,
    "sizes": _sizes,
    "calibration": _calibration,
    "mixture": _mixture,
    "precision_recall": _precision_recall,
    "regret": _regret,
    "timing": _timing,
    "hierarchy": _hierarchy,
    "reproduction": _reproduction,
}
# Those that the page holds.
SMALL = [name for name in TABLES if name != "labels"]
