"""What the sections are made of, whether a study or evaluations are reported.

Evaluations become results too: the same predictions judged by several targets, without folds,
training or guarantees. Sections show what is there, and need not know where it came from.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array, issparse

from setwise.consistency.naming import same_values
from setwise.evaluation import (
    Evaluation,
    PerLabel,
    PrecisionRecall,
    Reliability,
    per_label,
    precision_recall,
    reliability,
)
from setwise.evaluation.label_sets import row_losses
from setwise.evaluation.sample import one_order
from setwise.report import numbers
from setwise.report.drawing import Style, style_of
from setwise.report.names import Measure, measure_of
from setwise.study import (
    InHierarchy,
    Leaderboard,
    Outcome,
    Results,
    Scale,
    in_hierarchy,
    leaderboard,
)
from setwise.targets import Target, get_target

# What evaluations are judged by that were asked for no target, or not all for the same one.
USUAL = ("f1", "jaccard", "hamming", "subset")
# What a single evaluation is called.
ALONE = "the prediction"


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


class Panel(NamedTuple):
    """Label sets that are shown together: those predicted for one target, or for several alike."""

    title: str
    target: str


@dataclass(frozen=True)
class Material:
    """Results, their leaderboard and their figures in the hierarchy; what several sections need.

    ``evaluations`` are those that are reported, by name; none of a study.
    """

    results: Results
    board: Leaderboard
    placed: Sequence[InHierarchy] = ()
    evaluations: Mapping[str, Evaluation] = field(default_factory=dict)

    @property
    def trained(self) -> bool:
        """Whether methods were trained and then judged, as in a study."""
        return not self.evaluations

    @cached_property
    def panels(self) -> list[Panel]:
        """The targets that have label sets; those that share all of them stand together."""
        groups: dict[Any, list[str]] = {}
        for target in self.judged:
            shared = tuple((outcome.method, id(outcome.y_pred)) for _, outcome in self.of(target))
            groups.setdefault(shared, []).append(target)
        titles = [
            numbers.listed([self.measures[target].title for target in group])
            for group in groups.values()
        ]
        if len(groups) == 1 and len(self.judged) > 1:
            titles = ["all targets"]
        return [
            Panel(title, group[0]) for title, group in zip(titles, groups.values(), strict=True)
        ]

    @cached_property
    def shown(self) -> list[tuple[int, Outcome]]:
        """The outcomes of all panels with their places, in the order of the outcomes."""
        targets = {panel.target for panel in self.panels}
        return [(i, o) for i, o in enumerate(self.results.outcomes) if o.target in targets]

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
        """The figures of each label, of each outcome that is shown."""
        y_true = self.results.y_true
        return tuple(
            _named(outcome, per_label, outcome.y_pred, y_true) for _, outcome in self.shown
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


# ------------------------------------------------------------------------------ where it comes from


def material_of(
    judged: Results | Evaluation | Mapping[str, Evaluation],
    name: str = "",
    label_names: Sequence[Any] | None = None,
    board: Leaderboard | None = None,
    placed: Sequence[InHierarchy] | None = None,
) -> Material:
    """The material of a study or of evaluations; see `write`."""
    evaluations: Mapping[str, Evaluation] = {}
    options: dict[str, Any] = {}
    if isinstance(judged, Results):
        results = judged
        _require(
            not name and label_names is None,
            "name and label_names are those of evaluations, but a study has its own",
        )
    else:
        evaluations = _checked_evaluations(judged)
        results = _results_of(evaluations, name, label_names)
        first = next(iter(evaluations.values()))
        options = {"n_bootstrap": first.n_bootstrap, "confidence": first.confidence}
    checked(results, board, placed)
    return Material(
        results,
        leaderboard(results, **options) if board is None else board,
        in_hierarchy(results) if placed is None else placed,
        evaluations,
    )


def _checked_evaluations(judged: Any) -> Mapping[str, Evaluation]:
    """Evaluations by name, of the same rows and labels, or a ValueError."""
    evaluations = {ALONE: judged} if isinstance(judged, Evaluation) else judged
    _require(
        isinstance(evaluations, Mapping) and len(evaluations) > 0,
        "they must be Results of a study, an Evaluation, or a mapping from names to Evaluations, "
        f"not {type(judged).__name__}",
    )
    for name, evaluation in evaluations.items():
        _require(
            isinstance(evaluation, Evaluation) and evaluation.sample is not None,
            f"{name!r} must be what `evaluate` returned, which keeps the label sets it judged, not "
            f"{type(evaluation).__name__}",
        )
    samples: dict[str, Any] = {str(name): own.sample for name, own in evaluations.items()}
    _require(len(samples) == len(evaluations), f"a name is there twice: {list(evaluations)}")
    first, *others = samples
    for other in others:
        a, b = samples[first].true, samples[other].true
        _require(
            a.shape == b.shape and (a != b).nnz == 0,
            f"{first!r} and {other!r} must be of the same y_true",
        )
    one_order({name: sample.columns for name, sample in samples.items()})
    return {str(name): evaluation for name, evaluation in evaluations.items()}


def _results_of(
    evaluations: Mapping[str, Evaluation], name: str, label_names: Sequence[Any] | None
) -> Results:
    """The predictions as outcomes, one for each target, without folds and training."""
    samples: list[Any] = [evaluation.sample for evaluation in evaluations.values()]
    options: list[Any] = [evaluation.options for evaluation in evaluations.values()]
    targets = _targets([own.targets for own in options])
    taxonomy = next((own.taxonomy for own in options if own.taxonomy is not None), None)
    names = next((sample.columns for sample in samples if sample.columns), None)
    if names is None:
        names = range(samples[0].n_labels) if taxonomy is None else taxonomy.names.tolist()
    outcomes = [
        Outcome(method, str(target), sample.predicted, sample.probability, "", (), (), (),
                row_losses(sample, target))
        for method, sample in zip(evaluations, samples, strict=True) for target in targets
    ]  # fmt: skip
    scales = {str(target): Scale.of(target) for target in targets}
    return Results(
        name=name,
        label_names=tuple(map(str, names if label_names is None else label_names)),
        y_true=samples[0].true,
        fold=np.zeros(samples[0].n_rows, int),
        n_train=(),
        targets=tuple(map(str, targets)),
        methods=tuple(evaluations),
        outcomes=tuple(outcomes),
        question={},
        versions={},
        taxonomy=taxonomy,
        scales={target: scale for target, scale in scales.items() if scale is not None},
    )


def _targets(asked: list[tuple[Target, ...]]) -> list[Target]:
    """The targets that all were asked for, or the usual ones."""
    shared = set.intersection(*({str(target) for target in own} for own in asked))
    for target in asked[0]:
        for other in (t for own in asked[1:] for t in own if str(t) == str(target)):
            _require(
                same_values(target, other),
                f"{target} of one evaluation has other parameters than that of another: "
                f"{target!r} and {other!r}; evaluate both by the same target",
            )
    return [t for t in asked[0] if str(t) in shared] or [get_target(usual) for usual in USUAL]


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
