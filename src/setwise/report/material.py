"""What the sections are made of: results, checked, and what several sections take from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from setwise.evaluation import (
    PerLabel,
    PrecisionRecall,
    Reliability,
    per_label,
    precision_recall,
    reliability,
)
from setwise.report.drawing import Style, style_of
from setwise.report.names import Measure, measure_of
from setwise.study import InHierarchy, Leaderboard, Outcome, Results


@dataclass(frozen=True)
class Belief:
    """The figures of one array of probabilities."""

    reliability: Reliability
    micro: PrecisionRecall
    by_label: PrecisionRecall


def belief_of(probability: Any, y_true: Any) -> Belief:
    """All figures of the probabilities."""
    return Belief(
        reliability(probability, y_true),
        precision_recall(probability, y_true),
        precision_recall(probability, y_true, average=None),
    )


@dataclass(frozen=True)
class Material:
    """Results, their leaderboard and their figures in the hierarchy; what several sections need."""

    results: Results
    board: Leaderboard
    placed: Sequence[InHierarchy] = ()

    @cached_property
    def styles(self) -> Mapping[str, Style]:
        """The mark of each method."""
        return {method: style_of(i) for i, method in enumerate(self.results.methods)}

    @cached_property
    def measures(self) -> Mapping[str, Measure]:
        """How each target is shown."""
        scales = self.results.scales
        return {target: measure_of(target, scales.get(target)) for target in self.results.targets}

    @cached_property
    def figures(self) -> tuple[PerLabel, ...]:
        """The figures of each label, of each outcome."""
        y_true = self.results.y_true
        return tuple(
            _named(outcome, per_label, outcome.y_pred, y_true) for outcome in self.results.outcomes
        )

    @cached_property
    def support(self) -> Any:
        """In how many rows each label is true, (l,)."""
        return np.asarray(self.results.y_true.sum(axis=0)).ravel().astype(np.int64)

    @cached_property
    def believed(self) -> tuple[int | None, ...]:
        """For each outcome, its place in ``beliefs``; None where it has no probabilities."""
        return self._beliefs[0]

    @cached_property
    def beliefs(self) -> tuple[Belief, ...]:
        """What the probabilities are worth; equal ones, as of one model decoded twice, once."""
        return self._beliefs[1]

    @cached_property
    def _beliefs(self) -> tuple[tuple[int | None, ...], tuple[Belief, ...]]:
        places: dict[bytes, int] = {}
        by_outcome: list[int | None] = []
        found: list[Belief] = []
        for outcome in self.results.outcomes:
            if outcome.probability is None:
                by_outcome.append(None)
                continue
            key = _fingerprint(outcome.probability)
            if key not in places:
                places[key] = len(found)
                found.append(_named(outcome, belief_of, outcome.probability, self.results.y_true))
            by_outcome.append(places[key])
        return tuple(by_outcome), tuple(found)

    def of(self, target: str) -> list[tuple[int, Outcome]]:
        """The outcomes of a target with their places, in the order of the methods."""
        return [(i, o) for i, o in enumerate(self.results.outcomes) if o.target == target]

    @property
    def judged(self) -> list[str]:
        """The targets that have outcomes, in order."""
        present = {outcome.target for outcome in self.results.outcomes}
        return [target for target in self.results.targets if target in present]

    @property
    def n_missing(self) -> int:
        """How many outcomes the study still lacks."""
        asked = len(self.results.methods) * len(self.results.targets)
        return asked - len(self.results.outcomes)


def _fingerprint(probability: Any) -> bytes:
    """The same for equal arrays, dense or sparse."""
    parts = [probability]
    if issparse(probability):
        rows: Any = csr_array(probability)
        parts = [rows.data, rows.indices, rows.indptr]
    return sha256(b"".join(np.ascontiguousarray(part).tobytes() for part in parts)).digest()


def _named(outcome: Outcome, function: Callable[..., Any], *arguments: Any) -> Any:
    """What the function gives; its error says of which outcome."""
    try:
        return function(*arguments)
    except ValueError as error:
        raise ValueError(f"{outcome.method!r} for {outcome.target!r}: {error}") from error


def checked(
    results: Results,
    board: Leaderboard | None = None,
    placed: Sequence[InHierarchy] | None = None,
) -> None:
    """Raise unless the parts of the results, and what was made of them, fit together."""
    shape: Any = results.y_true.shape
    n_rows, n_labels = shape
    _require(n_rows > 0 and n_labels > 0, f"y_true has shape {shape}, not even one row and label")
    _require(
        len(results.label_names) == n_labels,
        f"y_true has {n_labels} labels, but there are {len(results.label_names)} label_names",
    )
    _require(
        len(results.fold) == n_rows,
        f"y_true has {n_rows} rows, but fold has {len(results.fold)} entries",
    )
    for kind in ("methods", "targets"):
        names = getattr(results, kind)
        _require(len(set(names)) == len(names), f"{kind} has a name twice: {names}")
    seen = set()
    for outcome in results.outcomes:
        pair = outcome.method, outcome.target
        _require(outcome.method in results.methods, f"method {pair[0]!r} is not in methods")
        _require(outcome.target in results.targets, f"target {pair[1]!r} is not in targets")
        _require(pair not in seen, f"outcomes has {pair} twice")
        seen.add(pair)
        for kind in ("y_pred", "probability"):
            array = getattr(outcome, kind)
            _require(
                array is None or array.shape == shape,
                f"{kind} of {pair} has shape {getattr(array, 'shape', None)}, y_true has {shape}",
            )
    if board is not None:
        standing = {(entry.method, entry.target) for entry in board}
        _require(standing == seen, "the leaderboard is not of these outcomes")
    if placed is not None:
        own = [(outcome.method, outcome.target) for outcome in results.outcomes]
        given = [(figures.method, figures.target) for figures in placed]
        _require(
            given == (own if results.taxonomy is not None else []),
            "the figures in the hierarchy are not of these outcomes",
        )
    if results.taxonomy is not None:
        n_taxonomy = results.taxonomy.n_labels
        _require(n_taxonomy == n_labels, f"y_true has {n_labels} labels, taxonomy {n_taxonomy}")


def _require(holds: bool, problem: str) -> None:
    if not holds:
        raise ValueError(f"no report can be made of these results: {problem}")
