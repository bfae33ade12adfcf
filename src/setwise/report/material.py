"""What the sections are made of, whether a study or evaluations are reported.

Evaluations become results too: the same predictions judged by several targets, without folds,
training or guarantees. Sections show what is there, and need not know where it came from.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import joblib
import numpy as np

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
from setwise.report.drawing import Style
from setwise.report.words import Measure, listed, measure_of
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


class Belief(NamedTuple):
    """The figures of one array of probabilities, and the outcomes that have it."""

    reliability: Reliability
    micro: PrecisionRecall
    by_label: PrecisionRecall
    outcomes: list[Outcome]


class Panel(NamedTuple):
    """Label sets that are shown together: those predicted for one target, or for several alike."""

    title: str
    target: str
    outcomes: list[Outcome]


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
    def by_target(self) -> dict[str, list[Outcome]]:
        """The outcomes of each target that has some, in order."""
        outcomes = self.results.outcomes
        found = {t: [o for o in outcomes if o.target == t] for t in self.results.targets}
        return {target: own for target, own in found.items() if own}

    @cached_property
    def panels(self) -> list[Panel]:
        """The targets that have label sets; those that share all of them stand together."""
        groups: dict[Any, list[str]] = {}
        for target, outcomes in self.by_target.items():
            shared = tuple((outcome.method, id(outcome.y_pred)) for outcome in outcomes)
            groups.setdefault(shared, []).append(target)
        titles = [listed([self.measures[t].title for t in group]) for group in groups.values()]
        if len(groups) == 1 and len(self.by_target) > 1:
            titles = ["all targets"]
        pairs = zip(titles, (group[0] for group in groups.values()), strict=True)
        return [Panel(title, target, self.by_target[target]) for title, target in pairs]

    @cached_property
    def shown(self) -> list[tuple[Outcome, PerLabel]]:
        """The outcomes of all panels, in their order, with the figures of each label."""
        drawn = {panel.target for panel in self.panels}
        y_true = self.results.y_true
        return [
            (outcome, _named(outcome, per_label, outcome.y_pred, y_true))
            for outcome in self.results.outcomes
            if outcome.target in drawn
        ]

    @cached_property
    def styles(self) -> Mapping[str, Style]:
        """The mark of each method."""
        return {method: Style.of(i) for i, method in enumerate(self.results.methods)}

    @cached_property
    def measures(self) -> Mapping[str, Measure]:
        """How each target is shown."""
        scales = self.results.scales
        return {target: measure_of(target, scales.get(target)) for target in self.results.targets}

    @cached_property
    def support(self) -> Any:
        """In how many rows each label is true, (l,)."""
        return np.asarray(self.results.y_true.sum(axis=0)).ravel().astype(np.int64)

    @cached_property
    def beliefs(self) -> list[Belief]:
        """What the probabilities are worth; equal ones, as of one model decoded twice, once."""
        found: dict[Any, Belief] = {}
        for outcome in self.results.outcomes:
            if outcome.probability is not None:
                key = joblib.hash(outcome.probability)
                if key not in found:
                    found[key] = _named(outcome, _belief, outcome.probability, self.results.y_true)
                found[key].outcomes.append(outcome)
        return list(found.values())

    def belief_of(self, outcome: Outcome) -> int | None:
        """The place of an outcome's probabilities among ``beliefs``, None where it has none."""
        places = (i for i, b in enumerate(self.beliefs) if any(o is outcome for o in b.outcomes))
        return next(places, None)


def _belief(probability: Any, y_true: Any) -> Belief:
    micro, by_label = (precision_recall(probability, y_true, average=a) for a in ("micro", None))
    return Belief(reliability(probability, y_true), micro, by_label, [])


def _named(outcome: Outcome, function: Any, *arguments: Any) -> Any:
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
    if isinstance(judged, Results):
        results, evaluations, options = judged, {}, {}
        if name or label_names is not None:
            _refuse("name and label_names are those of evaluations, but a study has its own")
    else:
        evaluations = _checked_evaluations(judged)
        results = _results_of(evaluations, name, label_names)
        first = next(iter(evaluations.values()))
        options = {"n_bootstrap": first.n_bootstrap, "confidence": first.confidence}
    for problem in _problems(results, board, placed):
        _refuse(problem)
    return Material(
        results,
        leaderboard(results, **options) if board is None else board,
        in_hierarchy(results) if placed is None else placed,
        evaluations,
    )


def _refuse(problem: str) -> None:
    raise ValueError(f"no report can be made of these results: {problem}")


def _checked_evaluations(judged: Any) -> dict[str, Evaluation]:
    """Evaluations by name, of the same rows and labels, or a ValueError."""
    evaluations: Any = {ALONE: judged} if isinstance(judged, Evaluation) else judged
    if not isinstance(evaluations, Mapping) or not evaluations:
        _refuse(
            "they must be Results of a study, an Evaluation, or a mapping from names to "
            f"Evaluations, not {type(judged).__name__}"
        )
    for name, own in evaluations.items():
        if not isinstance(own, Evaluation) or own.sample is None:
            kind = type(own).__name__
            _refuse(f"{name!r} must be what `evaluate` returned, with its label sets, not {kind}")
    found = {str(name): own for name, own in evaluations.items()}
    if len(found) < len(evaluations):
        _refuse(f"a name is there twice: {list(evaluations)}")
    first, *others = found
    for other in others:
        a, b = found[first].sample.true, found[other].sample.true
        if a.shape != b.shape or (a != b).nnz:
            _refuse(f"{first!r} and {other!r} must be of the same y_true")
    one_order({name: own.sample.columns for name, own in found.items()})
    return found


def _results_of(
    evaluations: Mapping[str, Evaluation], name: str, label_names: Sequence[Any] | None
) -> Results:
    """The predictions as outcomes, one for each target, without folds and training."""
    samples: list[Any] = [evaluation.sample for evaluation in evaluations.values()]
    options: list[Any] = [evaluation.options for evaluation in evaluations.values()]
    targets = _targets([own.targets for own in options])
    taxonomy = next((own.taxonomy for own in options if own.taxonomy is not None), None)
    numbers = range(samples[0].n_labels) if taxonomy is None else taxonomy.names.tolist()
    columns = next((sample.columns for sample in samples if sample.columns), numbers)
    outcomes = [
        Outcome(method, str(target), sample.predicted, sample.probability, "", (), (), (),
                row_losses(sample, target))
        for method, sample in zip(evaluations, samples, strict=True) for target in targets
    ]  # fmt: skip
    scales = {str(target): Scale.of(target) for target in targets}
    return Results(
        name=name,
        label_names=tuple(map(str, columns if label_names is None else label_names)),
        y_true=samples[0].true,
        fold=np.zeros(samples[0].n_rows, int),
        n_train=(),
        targets=tuple(scales),
        methods=tuple(evaluations),
        outcomes=tuple(outcomes),
        question={},
        versions={},
        taxonomy=taxonomy,
        scales={target: scale for target, scale in scales.items() if scale is not None},
    )


def _targets(asked: list[tuple[Target, ...]]) -> list[Target]:
    """The targets that all were asked for, or the usual ones."""
    shared = []
    for target in asked[0]:
        others = [t for own in asked[1:] for t in own if str(t) == str(target)]
        for other in others:
            if not same_values(target, other):
                _refuse(
                    f"{target} of one evaluation has other parameters than that of another: "
                    f"{target!r} and {other!r}; evaluate both by the same target"
                )
        shared += [target] * (len(others) == len(asked) - 1)
    return shared or [get_target(usual) for usual in USUAL]


def _problems(results: Results, board: Any, placed: Any) -> Iterator[str]:
    """What does not fit together of the results, and of what was made of them."""
    shape: Any = results.y_true.shape
    n_rows, n_labels = shape
    n_names, n_folds = len(results.label_names), len(results.fold)
    if 0 in shape:
        yield f"y_true has shape {shape}, not even one row and label"
    if n_names != n_labels:
        yield f"y_true has {n_labels} labels, but there are {n_names} label_names"
    if n_folds != n_rows:
        yield f"y_true has {n_rows} rows, but fold has {n_folds} entries"
    if results.taxonomy is not None and results.taxonomy.n_labels != n_labels:
        yield f"y_true has {n_labels} labels, taxonomy {results.taxonomy.n_labels}"
    for kind in ("methods", "targets"):
        names = getattr(results, kind)
        if len(set(names)) < len(names):
            yield f"{kind} has a name twice: {names}"
        for outcome in results.outcomes:
            own = getattr(outcome, kind[:-1])
            if own not in names:
                yield f"{kind[:-1]} {own!r} is not in {kind}"
    pairs = [(outcome.method, outcome.target) for outcome in results.outcomes]
    if len(set(pairs)) < len(pairs):
        yield f"outcomes has a pair of method and target twice: {pairs}"
    for pair, outcome in zip(pairs, results.outcomes, strict=True):
        for kind in ("y_pred", "probability"):
            array = getattr(outcome, kind)
            if array is not None and array.shape != shape:
                yield f"{kind} of {pair} has shape {array.shape}, y_true has {shape}"
    if board is not None and {(entry.method, entry.target) for entry in board} != set(pairs):
        yield "the leaderboard is not of these outcomes"
    in_tree = pairs if results.taxonomy is not None else []
    if placed is not None and [(own.method, own.target) for own in placed] != in_tree:
        yield "the figures in the hierarchy are not of these outcomes"
