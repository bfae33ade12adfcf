"""Boosted trees on a Dask cluster: XGBoost's own Dask interface, with the losses of setwise.

Workers grow every tree together, by XGBoost's collective. In each round each of them has the exact
derivatives of its own rows; what the parameters of the space go by is summed over all of them.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import numpy as np
from scipy.sparse import csr_matrix, issparse

from setwise import estimators as local
from setwise.blocks import Block
from setwise.dask.blocks import (
    BETWEEN,
    RETRIES,
    DaskBlocks,
    blocks_given,
    refuse_lacking,
    wait_for_workers,
)
from setwise.dask.estimators import Distributed
from setwise.estimators.block_folds import BlockFolds, folds_of_rows
from setwise.estimators.blocked import BlockRows, take_columns
from setwise.estimators.boosting import (
    Descent,
    Judge,
    Trees,
    mean_of_sums,
    scores_of,
    share_of,
    trees_of,
    width_of,
    xgboost,
)
from setwise.estimators.design import Array, Rows
from setwise.estimators.running import Watch, progress_shown, run
from setwise.estimators.training import Objective
from setwise.targets.registry import get_target
from setwise.threads import threads_limited

# The attribute of XGBoost's model by which workers hand over what belongs to its best round.
HANDED = "setwise"


class SetBooster(Distributed):
    """`setwise.SetBooster` on a Dask cluster, by XGBoost's own Dask interface: see `Distributed`.

    With ``subsample=1`` and ``colsample=1`` the trees are those of the booster in memory, as far as
    XGBoost's sums over workers are. Rows are held out by the numbers of their block and row. Where
    a worker is lost, XGBoost gives up, and training begins anew with the workers that are there.
    Categories, and a time budget, are for boosters in memory.
    """

    kind = local.SetBooster

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Grow trees on the workers; X, y and sample_weight as in `SetClassifier.fit`."""
        xgboost()
        model = self.local
        model._require_settings()
        target = get_target(model.target)
        for name in ("time_budget", "categorical_features"):
            if getattr(model, name) is not None:
                raise ValueError(f"{name} is for boosters in memory: a Dask cluster has none")
        if model.stopping == "target" and target.form == "population" and model.patience:
            raise ValueError(
                f"{target} is a measure of all rows together, which no worker sees after a round: "
                f"use stopping='log_loss'"
            )
        blocks: Any = blocks_given(self.client, X, y, sample_weight)
        if not isinstance(blocks, DaskBlocks):
            raise ValueError(
                f"X must be on a cluster, as Dask's collections and DaskBlocks are, but it is "
                f"{type(blocks).__name__}"
            )
        refuse_lacking(blocks.client, "xgboost", xgboost().__version__)
        with run(model), progress_shown(model.verbose) as tell:
            take_columns(model, blocks, target)
            model._categories = {}
            rows = BlockRows.of(blocks, target, allow_missing=True)
            model._fit(rows, blocks.names, Watch(None, tell), OnCluster(model, blocks.client))
        return self


@dataclass
class OnCluster:
    """How the rows of a booster are held out and boosted where they are on a cluster."""

    model: Any
    client: Any
    judging: Any = None

    def held(self, rows: BlockRows) -> tuple[BlockRows, Rows] | None:
        """Rows to learn from, and a sample in memory of those to judge by, if there are any."""
        part, model = share_of(self.model.validation_fraction), self.model
        if model.patience is None or rows.n_rows < part.denominator:
            return None
        sample, folds = BlockFolds(rows, part.denominator, model._seed).drawn
        kept = np.flatnonzero(folds < part.numerator)
        if len(kept) in (0, len(folds)):
            # Of few rows, chance may leave none to one side.
            return None
        sides = (part.denominator, part.numerator, model._seed)
        self.judging = rows.blocks.changed(_Side(*sides, True))
        learnt = BlockRows.surveyed(rows.blocks.changed(_Side(*sides, False)))
        return learnt, Rows(sample.inputs[kept], sample.sets[kept], sample.weights[kept])

    def boosting(
        self, rows: BlockRows, objective: Objective, settings: dict[str, Any], held: Rows | None,
        judge: Judge,
    ) -> Boosting:  # fmt: skip
        """Rounds on rows, judged by others if there are any."""
        own = {name: value for name, value in settings.items() if name != "nthread"}
        judging = None if held is None else self.judging
        return Boosting(self.client, rows, objective, own, held, judging, judge)


@dataclass(eq=False)
class Boosting:
    """What `setwise.estimators.boosting.Boosting` is, on the workers of a cluster."""

    client: Any
    rows: BlockRows
    objective: Objective
    settings: dict[str, Any]
    held: Rows | None
    judging: DaskBlocks | None
    judge: Judge
    rounds: int = 0
    best: int = 0
    values: list[float] = field(default_factory=list)
    best_parameters: Any = None
    best_scores: Any = None
    trees: Any = None

    @property
    def n_rows(self) -> int:
        """Rows to learn from."""
        return self.rows.n_rows

    def grow(self, rounds: int, patience: int | None, after: Callable[[], None]) -> None:
        """All rounds at once, on the workers; again, where one of them was lost."""
        descent = Descent(self.objective, self.settings["learning_rate"])
        for _ in range(RETRIES):
            wait_for_workers(self.client)
            before = set(self.client.nthreads())
            try:
                booster = self._trained(descent, rounds, patience)
                break
            except Exception as error:
                # (XGBoost's Dask interface has an error of each kind where a worker is lost.)
                if not self._has_lost(before):
                    raise
                lost = error
        else:
            raise RuntimeError(
                f"workers of the cluster were lost in {RETRIES} trainings of the same trees, and "
                f"XGBoost needs all of them to the end"
            ) from lost  # type: ignore
        handed = json.loads(booster.attr(HANDED))
        booster.set_attr(**{HANDED: None})
        self.best, self.values = handed["best"], handed["values"]
        self.rounds = len(self.values) or rounds
        self.best_parameters = np.array(handed["parameters"])
        self.trees = trees_of(booster, self.best, descent.offset)
        if self.held is not None:
            self.best_scores = self.trees.scores(self.held.inputs)

    def _has_lost(self, before: set[str]) -> bool:
        """Whether one of the workers is gone; the scheduler may hear of it a moment later."""
        end = time.monotonic() + BETWEEN
        while before <= set(self.client.nthreads()):
            if time.monotonic() > end:
                return False
            time.sleep(BETWEEN / 10.0)
        return True

    def _trained(self, descent: Descent, rounds: int, patience: int | None) -> Any:
        from xgboost import dask as interface

        bare: Any = copy(descent)
        bare.objective = self.objective.of_no_rows()
        sent = Sent(bare)
        with self.client.as_current():
            dtrain = matrix(self.client, self.rows.blocks)
            evals = {}
            if self.judging is not None:
                evals["evals"] = [(matrix(self.client, self.judging), "held")]
                evals["custom_metric"] = Judging(sent, self.judge)
            told = interface.train(
                self.client, {**self.settings, **width_of(descent.offset)}, dtrain, rounds,
                obj=Round(sent), callbacks=[handing_over(sent, patience)], verbose_eval=False,
                **evals,
            )  # fmt: skip
        return told["booster"]

    def grown(self) -> Trees:
        """The trees of the best rounds."""
        return self.trees


def matrix(client: Any, blocks: Any) -> Any:
    """Blocks as XGBoost takes them from a cluster."""
    import dask.array as array
    from dask.delayed import delayed
    from xgboost import dask as interface

    part: Any = delayed(_part, pure=False)
    widths = {"inputs": blocks.n_features, "sets": blocks.n_labels, "weights": None}

    def stacked(name: str, width: int | None) -> Any:
        shape = (np.nan,) if width is None else (np.nan, width)
        chunks = [
            array.from_delayed(part(block, name), shape, dtype=np.float32) for block in blocks.held
        ]
        return array.concatenate(chunks, axis=0, allow_unknown_chunksizes=True)

    inputs, sets, weights = (stacked(*pair) for pair in widths.items())
    # (Weights where XGBoost does not look at them: the derivatives have them, and bins of the
    # inputs are those of the booster in memory, which does not weigh them either.)
    return interface.DaskDMatrix(client, inputs, sets, label_lower_bound=weights)


# --------------------------------------------------------------------------- what workers compute


def _part(block: Block, name: str) -> Any:
    """An array of a block as XGBoost joins them: label sets as dense numbers."""
    found = getattr(block, name)
    if name == "inputs":
        return csr_matrix(found) if issparse(found) else found
    return np.asarray(found.toarray() if issparse(found) else found, np.float32)


@dataclass(frozen=True)
class _Side:
    """Blocks of the rows that are held out, or of the others."""

    count: int
    held_folds: int
    seed: int
    is_held: bool

    def __call__(self, number: int, block: Block) -> Block:
        folds = folds_of_rows(number, len(block.weights), self.count, self.seed)
        return block.take(np.flatnonzero((folds < self.held_folds) == self.is_held))


def summed(values: Array) -> Array:
    """The sum over all workers, which all of them have to ask for."""
    from xgboost import collective

    return collective.allreduce(np.asarray(values, np.float64), collective.Op.SUM)


def rows_of(matrix: Any, n_labels: int) -> Rows:
    """Label sets and weights of XGBoost's rows."""
    sets = np.asarray(matrix.get_label()).reshape(-1, n_labels).astype(np.uint8)
    weights = np.asarray(matrix.get_float_info("label_lower_bound"), np.float64)
    return Rows(None, sets, weights)


# The descents that the workers of this process are in, by training and worker.
_DESCENTS: dict[tuple[str, str], Descent] = {}


@dataclass(frozen=True)
class Sent:
    """A descent on its way to the workers, where objective, metric and callback go by the same one.

    (XGBoost hands each of them over by itself, so that they would have copies.)
    """

    begun: Descent
    training: str = field(default_factory=lambda: uuid4().hex)

    @property
    def here(self) -> Descent:
        """The one of this worker."""
        return _DESCENTS.setdefault(self._place, self.begun)

    def end(self) -> None:
        """It is not needed any more."""
        _DESCENTS.pop(self._place, None)

    @property
    def _place(self) -> tuple[str, str]:
        from distributed import get_worker

        return self.training, get_worker().address


@dataclass(eq=False)
class Round:
    """XGBoost's objective: the derivatives of a worker's rows, and a step of the parameters."""

    sent: Sent
    objective: Objective | None = None

    def __call__(self, margins: Array, matrix: Any) -> tuple[Array, Array]:
        from distributed import get_worker

        descent = self.sent.here
        if self.objective is None:
            rows = rows_of(matrix, descent.objective.space.n_labels)
            self.objective = descent.objective.of_rows(rows.sets, rows.weights)
        with threads_limited(get_worker().state.nthreads):
            return descent.round(margins, self.objective, summed)


@dataclass(eq=False)
class Judging:
    """XGBoost's metric: what the scores of the held-out rows of all workers are worth."""

    sent: Sent
    judge: Judge
    rows: Rows | None = None

    def __call__(self, margins: Array, matrix: Any) -> tuple[str, float]:
        descent = self.sent.here
        if self.rows is None:
            self.rows = rows_of(matrix, descent.objective.space.n_labels)
        sums, scores = np.zeros(4), scores_of(margins, descent.offset)
        if len(scores):
            sums = self.judge(scores, descent.space, self.rows)
        return "loss", mean_of_sums(summed(sums))


def handing_over(sent: Sent, patience: int | None) -> Any:
    """What ends training, and hands over the best round and its parameters with the model."""

    class HandingOver(xgboost().callback.TrainingCallback):
        handed: dict[str, Any] = {"best": 0, "values": []}  # noqa: RUF012 - one on each worker

        def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
            values = evals_log["held"]["loss"] if evals_log else []
            if not values or values[-1] < min(values[:-1], default=np.inf):
                parameters = sent.here.parameters.tolist()
                self.handed = {"best": epoch + 1, "parameters": parameters}
            self.handed["values"] = values
            return bool(values) and epoch + 1 - self.handed["best"] >= (patience or np.inf)

        def after_training(self, model: Any) -> Any:
            model.set_attr(**{HANDED: json.dumps(self.handed)})
            sent.end()
            return model

    return HandingOver()
