"""The race of a cross-validation: combinations that promise little are tried on no more folds.

All combinations are trained and judged on the first fold, from large penalties to small ones, each
from the solution before. From then on the losses of the rows held out so far are compared row by
row: a combination leaves when little is to be gained by going on with it. That is what one could
expect to gain by taking it in place of the best one, once all were known of both: the mean of
max(0, D), where D is normal about the difference of their mean losses with its standard error. So
with many rows one fold is enough, and with few those that are close go on. What it would have had
on the folds it did not see is estimated as the loss of the best one there, plus what it lost to the
best one on those that both saw.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from scipy.special import ndtr
from sklearn.exceptions import ConvergenceWarning

from setwise.decoders.for_target import Decoder, HeldOut
from setwise.estimators.checkpoint import Checkpoints
from setwise.estimators.claim import log_loss_of
from setwise.estimators.design import Design, Rows
from setwise.estimators.held_out import (
    ByLikelihood,
    Judged,
    judge_of,
    surprise_of,
    together,
)
from setwise.estimators.running import Watch
from setwise.estimators.set_classifier import SetClassifier
from setwise.estimators.turned import LEAST_SINGLE, Turned, kept
from setwise.labels import LabelNames
from setwise.targets.target import averages_labels

# The least number of rows to judge by.
LEAST_JUDGED = 60
# A path of penalties ends after this many in a row that are worse than its best, and not worth it.
PATIENCE = 2
# So many times the tolerance of a fit is enough to compare by.
LOOSER = 3.0
TIE = 1e-12
# Marginals of so many entries are kept of every combination for measures of all rows together.
MOST_KEPT = 2**21
# What the next fit of a model begins at.
REACHED = ("coef_", "intercept_", "space_")
# The final fit is by all rows, more exact, and then by the plain features: so many times the time
# that the best one took in a fold.
FINISH = 8.0


class Split(NamedTuple):
    """Places of the rows to learn from and of those held out, all of positive weight.

    Of rows in blocks, the number of the fold to leave out, and places in the sample.
    """

    train: Any
    test: NDArray[np.int64]


@dataclass(eq=False)
class Trial:
    """A penalty of a path: what is kept of the rows held out, by fold, and the loss of each fold.

    ``judged`` has what was made of the first so many folds together. ``means`` are losses of the
    target, whatever the trial is judged by. ``marginals``, of few rows, are kept for other targets.
    A ``twin`` has the same model, so that there is nothing of its own to keep.
    Where a guarantee is in terms of it, ``log_probability`` too: of their true label sets.
    """

    path: Path
    alpha: float
    kept: list[NDArray[Any]] = field(default_factory=list)
    judged: dict[int, Judged] = field(default_factory=dict)
    marginals: list[NDArray[Any]] = field(default_factory=list)
    means: list[float] = field(default_factory=list)
    log_probability: list[NDArray[np.float64]] = field(default_factory=list)
    seconds: float = 0.0
    left_out: bool = False
    twin: Trial | None = None

    @property
    def seconds_a_fold(self) -> float:
        """What it took on each fold."""
        return self.seconds / max(len(self.kept), 1)


@dataclass(eq=False)
class Path:
    """Penalties, from large to small, for one surrogate, space and scaling.

    ``is_further`` says that another space was tried before, which is kept unless this one is ahead.
    ``reached`` is where the best of them ended on the last fold: attributes of a model. ``fold`` is
    that fold.
    """

    settings: dict[str, Any]
    inputs: Any
    is_further: bool = False
    trials: list[Trial] = field(default_factory=list)
    reached: dict[str, Any] = field(default_factory=dict)
    fold: int | None = None


@dataclass(frozen=True)
class Inputs:
    """All rows in a scaling, turned to their principal directions where that saves time.

    ``inputs`` are what is learnt from: the turned ones, or those of the design.
    """

    design: Design
    turned: Turned | None
    inputs: Any

    @classmethod
    def of(cls, rows: Rows, scaling: str | None, fit_intercept: bool, tol: float) -> Inputs:
        """The scaling is by all rows: it knows nothing of their labels.

        Products are in float32 where the gradient need not be known any better.
        """
        design = Design.of(rows, scaling, fit_intercept)
        dtype = np.float32 if tol >= LEAST_SINGLE else np.float64
        turned = Turned.of(design, dtype)
        if turned is not None:
            return cls(design, turned, turned.inputs)
        sparse = issparse(design.inputs)
        return cls(design, None, kept(design.inputs, dtype) if sparse else design.inputs)

    def part(self, rows: Any = slice(None)) -> Design:
        """Some of the rows, to learn from. (Features of sparse inputs are nearly uncorrelated.)"""
        is_turned = self.turned is not None or issparse(self.inputs)
        unit = np.ones(self.inputs.shape[1])
        fit_intercept, weights = self.design.fit_intercept, self.design.weights[rows]
        precision = self.inputs.dtype if is_turned else np.float64
        return Design(self.inputs[rows], unit, fit_intercept, weights, is_turned, precision)

    def learnt(self, split: Split, rows: Rows) -> tuple[Design, Rows]:
        """Rows to learn from, as a solver sees them, and their label sets."""
        design = self.part(split.train)
        return design, Rows(design.inputs, rows.sets[split.train], rows.weights[split.train])

    def everything(self, rows: Rows) -> tuple[Design, Rows, Design]:
        """All rows to learn from: along a path, their label sets, by the plain features."""
        places, whole = rows.positive(slice(None)), self.design
        plain = replace(whole, inputs=whole.inputs[places], weights=whole.weights[places])
        return self.part(places), rows.taken(), plain


@dataclass(eq=False)
class Race:
    """Paths of penalties on the same folds; ``model`` makes the classifier of some settings.

    Judged by the target or, ``by_likelihood``, by the marginals.
    """

    rows: Rows
    names: LabelNames
    risk: Decoder
    splits: list[Split]
    model: Callable[..., SetClassifier]
    watch: Watch
    by_likelihood: bool = False
    checkpoints: Checkpoints | None = None
    paths: list[Path] = field(default_factory=list)

    @property
    def trials(self) -> list[Trial]:
        """All that there are, path by path."""
        return [trial for path in self.paths for trial in path.trials]

    def run(self, path: Path | None = None) -> None:
        """Try paths fold by fold, one more beside those so far, until one combination is left."""
        self.paths += [] if path is None else [path]
        for fold, split in enumerate(self.splits):
            for path in self.paths:
                self._along(path, fold, split)
            leader = self.best()
            for trial in self.trials:
                trial.left_out |= self._is_out(trial, leader)
            decided = len(self.trials) > 1 and sum(not one.left_out for one in self.trials) == 1
            # A measure of all rows together is decided from the rows of all folds.
            if decided and not self.judge.keeps_marginals:
                break

    def complete(self, best: Trial) -> None:
        """Try the chosen combination on the folds it has not seen, where all rows are to be judged.

        Measures of all rows together are decided for by what was said of each row held out. A mean
        over labels is decided by few rows of rare labels, so that the best penalty is often the
        luckiest: of the scalings and penalties within a standard error of it, for its space and
        surrogate, the one with the most likely marginals is chosen.
        """
        if not self.judge.keeps_marginals:
            return
        if averages_labels(self.risk.target):
            close = [one for one in self.trials if one.kept and self._is_close(one, best)]
            best = min(close, key=lambda one: self.surprise(one, best) - self.surprise(best, one))
        for trial in self.trials:
            trial.left_out = trial is not best
        for fold, split in enumerate(self.splits):
            self._along(best.path, fold, split)

    def _along(self, path: Path, fold: int, split: Split) -> None:
        """Try what is left of a path on a fold that it has not seen."""
        trials = [one for one in path.trials if len(one.kept) == fold and not one.left_out]
        if not trials:
            return
        model, worse, best, before = self.model(**path.settings), 0, None, None
        model.set_params(tol=LOOSER * model.tol)
        if path.is_further:
            vars(model).update(self._learnt(path, fold))
        learnt, rows = path.inputs.learnt(split, self.rows)
        held = path.inputs.part(split.test)
        for trial in trials:
            if worse == PATIENCE:
                trial.left_out = True
                continue
            self.watch.words = self._words(trial, fold)
            begun = time.monotonic()
            self.fit(model, learnt, rows, trial.alpha)
            if fold == 0 and model.n_iter_ == 0 and before is not None:
                # The model of the penalty before, which is near enough to this solution.
                trial.left_out, trial.twin = True, before
                continue
            before = trial
            truth = self.rows.sets[split.test], self.rows.weights[split.test]
            trial.kept.append(self.judge.kept(model, held.inputs, truth[0]))
            trial.seconds += time.monotonic() - begun
            trial.means.append(self._loss(trial, model, held.inputs, truth))
            if np.prod(self.rows.sets.shape) <= MOST_KEPT and not self.judge.keeps_marginals:
                trial.marginals.append(model._marginals_of(held.inputs).astype(np.float32))
            if model._claim().kind == "bounded":
                trial.log_probability.append(model._log_probability(Rows(held.inputs, *truth)))
            leader = self.best()
            self.watch.kept = FINISH * leader.seconds_a_fold
            if best is None or self._excess(trial, best)[0] < -TIE:
                best = trial
                path.reached = {name: getattr(model, name) for name in REACHED}
                path.fold = fold
            is_worse = fold == 0 and self._excess(trial, best)[0] > TIE
            worse = worse + 1 if is_worse and self._is_out(trial, best) else 0

    def _learnt(self, path: Path, fold: int) -> dict[str, Any]:
        """Where another space ended with the same rows and inputs, if one was tried on the fold."""
        same = (one for one in self.paths if one.inputs is path.inputs and one.fold == fold)
        return next((one.reached for one in same if one is not path), {})

    def fit(self, model: SetClassifier, design: Any, rows: Any, alpha: float) -> None:
        """Learn on a path: begins where the last one ended, and need not converge."""
        model.set_params(alpha=alpha)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            self.fit_closely(model, design, rows)

    def fit_closely(self, model: SetClassifier, design: Any, rows: Any) -> None:
        """The same, and it should; what an earlier run of this search has learnt is taken."""
        kept, settings = None, (model.surrogate, model.space, model.scaling, model.alpha)
        if self.checkpoints is not None:
            words = f"{settings}, {self.watch.words.partition(';')[0]}"
            kept = self.checkpoints.next(words, design.n_features)
        model._fit(design, rows, self.names, self.risk, self.watch.step, checkpoint=kept)

    @cached_property
    def judge(self) -> Any:
        """How rows held out are judged."""
        return ByLikelihood() if self.by_likelihood else self.of_target

    @cached_property
    def of_target(self) -> Any:
        """How they are judged by the target."""
        return judge_of(self.risk, self.names)

    def _loss(self, trial: Trial, model: SetClassifier, inputs: Any, truth: tuple) -> float:
        """The loss of the target on the fold that was judged last."""
        kept = trial.kept[-1]
        if self.judge is not self.of_target:
            kept = self.of_target.kept(model, inputs, truth[0])
        return self.of_target.judged([HeldOut(kept, *truth)]).loss

    def judged(self, trial: Trial, folds: int) -> Judged:
        """Its loss on all rows of the first so many folds together, and that of each row."""
        if folds not in trial.judged:
            trial.judged[folds] = self.judge.judged(self._folds(trial.kept[:folds]))
        return trial.judged[folds]

    def marginals(self, trial: Trial) -> HeldOut | None:
        """Of all rows that it was tried on, if they were kept."""
        kept = trial.kept if self.judge.keeps_marginals else trial.marginals
        return together(self._folds(kept)) if kept and not self.names.one_dimensional else None

    def _folds(self, kept: list[NDArray[Any]]) -> list[HeldOut]:
        """What is kept of the first folds, with the sets and weights of their rows."""
        truths = ((self.rows.sets[s.test], self.rows.weights[s.test]) for s in self.splits)
        return [HeldOut(part, *truth) for part, truth in zip(kept, truths, strict=False)]

    def held_out(self, trial: Trial) -> dict[str, float] | None:
        """Its log-loss of the rows held out, where a guarantee is in terms of it."""
        if not trial.log_probability:
            return None
        weights = [self.rows.weights[s.test] for s in self.splits[: len(trial.log_probability)]]
        return log_loss_of(np.concatenate(trial.log_probability), np.concatenate(weights))

    def _words(self, trial: Trial, fold: int) -> str:
        """Where the search is and, after the first fold, about how long it will take at most."""
        settings = trial.path.settings
        where = (
            f"fold {fold + 1} of {len(self.splits)}, {settings['space']}, alpha {trial.alpha:.2g}"
        )
        if fold == 0:
            return where
        seconds = sum(
            one.seconds_a_fold * (len(self.splits) - len(one.kept))
            for one in self.trials
            if not one.left_out
        )
        return f"{where}; about {seconds + self.watch.kept:.0f} s left"

    # ------------------------------------------------------------------------------ who is ahead

    @property
    def has_begun(self) -> bool:
        """Whether any combination has been tried."""
        return any(trial.kept for trial in self.trials)

    def best(self) -> Trial:
        """The least mean loss of those not left out; the first of ties.

        One that saw fewer folds than others is compared on those that both saw.
        """
        left = [trial for trial in self.trials if trial.kept and not trial.left_out]
        most = max(len(trial.kept) for trial in left)
        ahead = min(
            (trial for trial in left if len(trial.kept) == most),
            key=lambda one: self.judged(one, most).loss,
        )
        return min(left, key=lambda trial: self.estimate(trial, ahead))

    def estimate(self, trial: Trial, best: Trial) -> float:
        """Its loss on the folds that the best one saw."""
        both = min(len(trial.kept), len(best.kept))
        excess = self.judged(trial, both).loss - self.judged(best, both).loss
        return self.judged(best, len(best.kept)).loss + excess

    def target_loss(self, trial: Trial, best: Trial) -> float:
        """The same by the loss of the target, where that is not what it is judged by."""
        if not self.by_likelihood:
            return self.estimate(trial, best)
        both = min(len(trial.means), len(best.means))
        excess = np.mean(trial.means[:both]) - np.mean(best.means[:both])
        return float(np.mean(best.means) + excess)

    def _excess(self, trial: Trial, other: Trial) -> tuple[float, float]:
        """How much more it loses than another on the rows that both saw, and its standard error."""
        both = min(len(trial.kept), len(other.kept))
        difference = self.judged(trial, both).rows - self.judged(other, both).rows
        weights = np.concatenate([self.rows.weights[s.test] for s in self.splits[:both]])
        mean = float(np.average(difference, weights=weights))
        spread = float(np.linalg.norm(weights / weights.sum() * (difference - mean)))
        return mean, spread if len(difference) >= LEAST_JUDGED else np.inf

    def _is_close(self, trial: Trial, best: Trial) -> bool:
        """Whether it differs from the best one by penalty only, and rows do not tell which."""
        of_trial, of_best = ({**one.path.settings, "scaling": None} for one in (trial, best))
        excess, spread = self._excess(trial, best)
        return trial is best or (of_trial == of_best and excess <= spread)

    def surprise(self, trial: Trial, other: Trial) -> float:
        """The log-loss of its marginals, on the rows that both saw."""
        seen = together(self._folds(trial.kept[: min(len(trial.kept), len(other.kept))]))
        losses = surprise_of(seen.probability, seen.sets)
        return float(np.average(losses, weights=seen.weights))

    def _is_out(self, trial: Trial, other: Trial) -> bool:
        """Whether too little is to be gained by it in place of another."""
        if not trial.kept or trial is other:
            return False
        excess, spread = self._excess(trial, other)
        if trial.path.is_further and not other.path.is_further and spread < np.inf:
            return excess > -TIE
        least = self.judge.least_gain(self.judged(other, len(other.kept)).loss)
        return expected_gain(excess, spread) < least


def expected_gain(excess: float, spread: float) -> float:
    """E[max(0, D)] for a normal D of mean -excess and standard deviation ``spread``.

    Examples
    --------
    >>> expected_gain(0.0, 1.0).__round__(4), expected_gain(0.5, 0.0), expected_gain(-0.5, 0.0)
    (0.3989, 0.0, 0.5)
    """
    if spread in (0.0, np.inf):
        return max(0.0, -excess) if spread == 0.0 else np.inf
    away = excess / spread
    return float(spread * (np.exp(-(away**2) / 2.0) / np.sqrt(2.0 * np.pi) - away * ndtr(-away)))
