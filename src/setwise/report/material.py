"""What the sections are made of, whether a study or evaluations are reported.

Evaluations become results too: the same predictions judged by several targets, without folds,
training or guarantees. Sections show what is there, and need not know where it came from.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, NamedTuple

import joblib
import numpy as np

from setwise import evaluation, study
from setwise.consistency.naming import same_values
from setwise.evaluation import Evaluation
from setwise.evaluation.label_sets import row_losses
from setwise.evaluation.sample import one_order
from setwise.report.drawing import Style
from setwise.report.words import Measure, listed, measure_of
from setwise.study import InHierarchy, Leaderboard, Outcome, Results
from setwise.targets import Target, get_target

# What evaluations are judged by that were asked for no target, or not all for the same one.
USUAL = ("f1", "jaccard", "hamming", "subset")
# Resamples behind the intervals of all figures of a study.
MOST_RESAMPLES = 1000
# What a single evaluation is called.
ALONE = "the prediction"


class Belief(NamedTuple):
    """The figures of one array of probabilities, and the outcomes that have it."""

    reliability: evaluation.Reliability
    micro: evaluation.PrecisionRecall
    by_label: evaluation.PrecisionRecall
    outcomes: list[Outcome]

    @classmethod
    def of(cls, probability: Any, y_true: Any) -> Belief:
        """All figures of the probabilities, of no outcome yet."""
        micro = evaluation.precision_recall(probability, y_true)
        by_label = evaluation.precision_recall(probability, y_true, average=None)
        return cls(evaluation.reliability(probability, y_true), micro, by_label, [])

    @property
    def methods(self) -> list[str]:
        """The methods that have these probabilities, in order."""
        return list(dict.fromkeys(outcome.method for outcome in self.outcomes))


class Panel(NamedTuple):
    """Label sets that are shown together: those predicted for one target, or for several alike."""

    title: str
    target: str


@dataclass(frozen=True)
class Material:
    """Results, their leaderboard and their figures in the hierarchy; what several sections need.

    ``evaluations`` are those that are reported, by name; none of a study. ``members`` are of
    mixtures among these, ``explained`` are rows by name, ``importance`` is what features are worth.
    """

    results: Results
    board: Leaderboard
    placed: Sequence[InHierarchy] = ()
    evaluations: Mapping[str, Evaluation] = field(default_factory=dict)
    members: Mapping[str, Any] = field(default_factory=dict)
    explained: Mapping[Any, Any] = field(default_factory=dict)
    importance: Any = None

    @cached_property
    def mixtures(self) -> dict[str, dict[str, Any]]:
        """The members of each mixture, by method, then by the target it was trained for."""
        found: dict[str, dict[str, Any]] = {name: {"": own} for name, own in self.members.items()}
        for outcome in self.results.outcomes:
            if outcome.members:
                found.setdefault(outcome.method, {})[outcome.target] = outcome.members
        return found

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
        if len(groups) == 1 and len(self.by_target) > 1:
            return [Panel("all targets", next(iter(self.by_target)))]
        titles = (listed([self.measures[t].title for t in group]) for group in groups.values())
        return [
            Panel(title, group[0]) for title, group in zip(titles, groups.values(), strict=True)
        ]

    @cached_property
    def shown(self) -> list[tuple[Outcome, evaluation.PerLabel]]:
        """The outcomes of all panels, in their order, with the figures of each label."""
        drawn, y_true = {panel.target for panel in self.panels}, self.results.y_true
        chosen = [outcome for outcome in self.results.outcomes if outcome.target in drawn]
        figures = partial(evaluation.per_label, zero_division=self.results.zero_division)
        return [(o, _named(o, figures, o.y_pred, y_true)) for o in chosen]

    @cached_property
    def judged(self) -> list[tuple[Panel, dict[str, Evaluation]]]:
        """All figures of each method, panel by panel: as evaluated, or of a study's predictions."""
        if not self.trained:
            return [(panel, dict(self.evaluations)) for panel in self.panels[:1]]
        options: Any = {"ks": (), "zero_division": self.results.zero_division}
        options["n_bootstrap"] = min(self.board.n_bootstrap, MOST_RESAMPLES)
        options["confidence"] = self.board.confidence
        y_true = self.results.y_true

        def judged(outcome: Outcome) -> Evaluation:
            arrays = outcome.y_pred, y_true
            return evaluation.evaluate(*arrays, probability=outcome.probability, **options)

        return [
            (panel, {o.method: _named(o, judged, o) for o in self.by_target[panel.target]})
            for panel in self.panels
        ]

    @cached_property
    def has_empty_rows(self) -> bool:
        """Whether a row has no true label, and by some method no predicted one."""
        empty = np.asarray(self.results.y_true.sum(axis=1)).ravel() == 0
        predicted = (outcome.y_pred[empty].sum(axis=1) for outcome in self.results.outcomes)
        return bool(empty.any()) and any((np.asarray(own) == 0).any() for own in predicted)

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
        for outcome in (o for o in self.results.outcomes if o.probability is not None):
            key = joblib.hash(outcome.probability)
            arrays = (outcome.probability, self.results.y_true)
            if key not in found:
                found[key] = _named(outcome, Belief.of, *arrays)
            found[key].outcomes.append(outcome)
        return list(found.values())

    def belief_of(self, outcome: Outcome) -> int | None:
        """The place of an outcome's probabilities among ``beliefs``, None where it has none."""
        places = (i for i, b in enumerate(self.beliefs) if any(o is outcome for o in b.outcomes))
        return next(places, None)


def _named(outcome: Outcome, function: Any, *arguments: Any) -> Any:
    """Call the function; a ValueError then names the outcome."""
    try:
        return function(*arguments)
    except ValueError as error:
        raise ValueError(f"{outcome.method!r} for {outcome.target!r}: {error}") from error


def material_of(
    judged: Results | Evaluation | Mapping[str, Evaluation],
    name: str = "",
    label_names: Sequence[Any] | None = None,
    row_names: Sequence[Any] | None = None,
    board: Leaderboard | None = None,
    placed: Sequence[InHierarchy] | None = None,
) -> Material:
    """The material of a study or of evaluations; see `write`."""
    if isinstance(judged, Results):
        results, evaluations, options = judged, {}, {}
        if name or label_names is not None or row_names is not None:
            _refuse(
                "name, label_names and row_names are those of evaluations, but a study has its own"
            )
    else:
        evaluations = _checked_evaluations(judged)
        results = _results_of(evaluations, name, label_names, row_names)
        first = next(iter(evaluations.values()))
        options = {"n_bootstrap": first.n_bootstrap, "confidence": first.confidence}
    for problem in _problems(results, board, placed):
        _refuse(problem)
    return Material(
        results,
        study.leaderboard(results, **options) if board is None else board,
        study.in_hierarchy(results) if placed is None else placed,
        evaluations,
    )


def _refuse(problem: str) -> None:
    raise ValueError(f"no report can be made of these results: {problem}")


def _checked_evaluations(judged: Any) -> dict[str, Evaluation]:
    """Evaluations by name, of the same rows and labels, or a ValueError."""
    evaluations: Any = {ALONE: judged} if isinstance(judged, Evaluation) else judged
    if not isinstance(evaluations, Mapping) or not evaluations:
        kinds = "Results of a study, an Evaluation, or a mapping from names to Evaluations"
        _refuse(f"they must be {kinds}, not {type(judged).__name__}")
    for name, own in evaluations.items():
        if not isinstance(own, Evaluation) or own.sample is None:
            kind = type(own).__name__
            _refuse(f"{name!r} must be what `evaluate` returned, with its label sets, not {kind}")
    found = {str(name): own for name, own in evaluations.items()}
    if len(found) < len(evaluations):
        _refuse(f"a name is there twice: {list(evaluations)}")
    first, *others = found
    for other in others:
        zeros = [str(found[name].options.zero_division) for name in (first, other)]
        if zeros[0] != zeros[1]:
            _refuse(f"{first!r} and {other!r} have another zero_division each: {zeros}")
        a, b = found[first].sample.true, found[other].sample.true
        if a.shape != b.shape or (a != b).nnz:
            _refuse(f"{first!r} and {other!r} must be of the same y_true")
    one_order({name: own.sample.columns for name, own in found.items()})
    return found


def _results_of(
    evaluations: Mapping[str, Evaluation],
    name: str,
    label_names: Sequence[Any] | None,
    row_names: Sequence[Any] | None,
) -> Results:
    """The predictions as outcomes, one for each target, without folds and training."""
    samples: list[Any] = [own.sample for own in evaluations.values()]
    options: list[Any] = [own.options for own in evaluations.values()]
    targets = _targets([own.targets for own in options])
    taxonomy = next((own.taxonomy for own in options if own.taxonomy is not None), None)
    n_rows, n_labels = samples[0].true.shape
    numbers = range(n_labels) if taxonomy is None else taxonomy.names.tolist()
    columns = next((sample.columns for sample in samples if sample.columns), numbers)
    outcomes = [
        Outcome(method, str(t), own.predicted, own.probability, "", (), (), (), row_losses(own, t))
        for method, own in zip(evaluations, samples, strict=True)
        for t in targets
    ]
    scales = {str(target): study.Scale.of(target) for target in targets}
    return Results(
        name=name,
        label_names=tuple(map(str, columns if label_names is None else label_names)),
        y_true=samples[0].true,
        fold=np.zeros(n_rows, int),
        n_train=(),
        targets=tuple(scales),
        methods=tuple(evaluations),
        outcomes=tuple(outcomes),
        question={},
        versions={},
        taxonomy=taxonomy,
        scales={target: scale for target, scale in scales.items() if scale is not None},
        row_names=tuple(map(str, row_names or ())),
        zero_division=options[0].zero_division,
    )


def _targets(asked: list[tuple[Target, ...]]) -> list[Target]:
    """The targets that all were asked for, or the usual ones."""
    shared = []
    for target in asked[0]:
        others = [t for own in asked[1:] for t in own if str(t) == str(target)]
        for other in others:
            if not same_values(target, other):
                both = f"{target!r} and {other!r}"
                _refuse(f"evaluations by {target} have other parameters each: {both}")
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
    if len(results.row_names) not in (0, n_rows):
        yield f"y_true has {n_rows} rows, but there are {len(results.row_names)} row_names"
    if n_folds != n_rows:
        yield f"y_true has {n_rows} rows, but fold has {n_folds} entries"
    if results.taxonomy is not None and results.taxonomy.n_labels != n_labels:
        yield f"y_true has {n_labels} labels, taxonomy {results.taxonomy.n_labels}"
    pairs = [(outcome.method, outcome.target) for outcome in results.outcomes]
    named = {"methods": results.methods, "targets": results.targets, "outcomes": pairs}
    for kind, names in named.items():
        if len(set(names)) < len(names):
            yield f"{kind} has a name twice: {names}"
    for method, target in pairs:
        if method not in results.methods:
            yield f"method {method!r} is not in methods"
        if target not in results.targets:
            yield f"target {target!r} is not in targets"
    if board is not None and {(entry.method, entry.target) for entry in board} != set(pairs):
        yield "the leaderboard is not of these outcomes"
    in_tree = pairs if results.taxonomy is not None else []
    if placed is not None and [(own.method, own.target) for own in placed] != in_tree:
        yield "the figures in the hierarchy are not of these outcomes"
