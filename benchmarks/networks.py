"""What a small network predicts after training on different losses, for F1.

On data whose truth is known, figures are exact: the expected instance F1 of the predictions under
the law that y was drawn from, over inputs that were not trained on. "Few labels": 30 sets of one to
three of ten labels. "Half of the labels": 12 of all sets of six labels. "A hundred labels": 30 sets
of two to six of a hundred (whose best prediction nobody has enumerated). With `--data FOLDER` also
on real sets with their official splits, features brought to unit variance. There is a row for each
seed, which decides the data (where they are drawn), the first weights and the order of the rows;
every method has the same of these, and as many steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch import Tensor, nn

from benchmarks.data import load
from benchmarks.rows import machine
from setwise.consistency.known_truth import Problem
from setwise.decoders import MinimumRisk
from setwise.nn import ExpectedLoss, LearnableSpace, QSchedule, SurrogateLoss
from setwise.spaces import Catalog
from setwise.spaces.space import all_sets
from setwise.targets import get_target

SEEDS, EPOCHS, BATCH, HIDDEN, RATE = 5, 30, 64, 64, 3e-3
N_FEATURES, N_TRAIN, N_TEST = 5, 2_000, 2_000
TARGET = "f1"
SETS = ("emotions", "scene", "yeast")

# The losses of a training, in turns of equally many steps.
Turns = list[nn.Module]


def known_truth(kind: str, seed: int) -> tuple[Problem, np.random.Generator]:
    """A law to draw rows from, and the generator that it was drawn by."""
    generator = np.random.default_rng(seed)
    if kind == "a hundred labels":
        sizes = generator.integers(2, 7, size=30)
        sets = (generator.random((30, 100)).argsort(axis=1) < sizes[:, None]).astype(np.uint8)
    else:
        every = all_sets(10 if kind == "few labels" else 6)
        if kind == "few labels":
            every = every[(every.sum(axis=1) >= 1) & (every.sum(axis=1) <= 3)]
        count = 30 if kind == "few labels" else 12
        sets = every[generator.choice(len(every), count, replace=False)]
    weights = 1.5 * generator.normal(size=(N_FEATURES + 1, len(sets)))
    return Problem(kind, sets, weights[:-1].T, weights[-1]), generator


def train(turns: Turns, x: Tensor, y: Tensor, seed: int, schedule: bool = False) -> nn.Module:
    """A network with one hidden layer, by Adam; with a schedule, q goes from 0 to 1."""
    torch.manual_seed(seed)
    net = nn.Sequential(nn.Linear(x.shape[1], HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, y.shape[1]))
    learnt = [parameter for loss in turns for parameter in loss.parameters()]
    optimizer = torch.optim.Adam([*net.parameters(), *learnt], lr=RATE)
    rows = [part for _ in range(EPOCHS) for part in torch.randperm(len(x)).split(BATCH)]
    power = QSchedule(len(rows))
    for step, part in enumerate(rows):
        loss = turns[len(turns) * step // len(rows)]
        if schedule:
            loss.q = power(step)
        optimizer.zero_grad()
        loss(net(x[part]), y[part]).backward()
        optimizer.step()
    return net


def predictions(x: Tensor, y: Tensor, x_test: Tensor, seed: int) -> Iterator[tuple[str, Any]]:
    """Label sets of each method on the test rows."""
    entropy, expected = nn.BCEWithLogitsLoss(), ExpectedLoss(TARGET)
    family = SurrogateLoss(TARGET, surrogate="comp_sum", q=0.0)
    seen = LearnableSpace(Catalog(np.unique(y.numpy().astype(np.uint8), axis=0)))
    likelihood = SurrogateLoss(TARGET, seen, "likelihood")

    @torch.no_grad()
    def logits(turns: Turns, **settings: bool) -> Tensor:
        with torch.enable_grad():
            net = train(turns, x, y, seed, **settings)
        return net(x_test)

    binary = logits([entropy])
    yield "cross-entropy at 0.5", (binary >= 0).numpy().astype(np.uint8)
    yield "expected loss", expected.most_likely(logits([expected])).numpy()
    yield "expected loss after cross-entropy", expected.most_likely(logits([entropy, expected]))
    yield "q from 0 to 1", family.most_likely(logits([family], schedule=True))
    risk = MinimumRisk(TARGET)
    yield "cross-entropy, decoded", risk.decode(torch.sigmoid(binary).numpy())
    scores = logits([likelihood]).double().numpy() / 2.0
    yield "likelihood on sets seen, decoded", risk.decode_scores(scores, seen.current())


def networks(data: Path | None = None, sets: Sequence[str] = SETS) -> Iterator[dict[str, Any]]:
    """A row for each problem and seed: instance F1 of each method."""
    for kind in ("few labels", "half of the labels", "a hundred labels"):
        for seed in range(SEEDS):
            problem, generator = known_truth(kind, seed)
            (x, y), (x_test, _) = (problem.sample(rows, generator) for rows in (N_TRAIN, N_TEST))

            def score(y_pred, problem=problem, x_test=x_test) -> float:
                return 1.0 - float(problem.expected_loss(TARGET, x_test, y_pred).mean())

            best = None
            if problem.n_labels <= 10:
                best = 1.0 - float(problem.least_loss(TARGET, x_test).mean())
            parts = (tensor(with_one(x)), tensor(y), tensor(with_one(x_test)))
            yield row(kind, seed, parts, score, best)
    for name in sets if data is not None else ():
        assert data is not None
        if not (data / name).exists():
            print(f"{name} is not in {data}: skipped")
            continue
        x, y, x_test, y_test = load(data / name)
        x, x_test = (part.toarray() if sparse.issparse(part) else part for part in (x, x_test))
        middle, spread = x.mean(axis=0), x.std(axis=0) + 1e-6
        parts = (tensor((x - middle) / spread), tensor(y), tensor((x_test - middle) / spread))

        def utility(y_pred, y_test=y_test) -> float:
            return 1.0 - float(get_target(TARGET).loss(np.asarray(y_pred), y_test).mean())

        for seed in range(SEEDS):
            yield row(name, seed, parts, utility, None)


def row(
    problem: str, seed: int, parts: tuple[Tensor, Tensor, Tensor],
    score: Callable[[Any], float], best: float | None,
) -> dict[str, Any]:  # fmt: skip
    """The figures of one problem and seed."""
    figures = {name: score(y_pred) for name, y_pred in predictions(*parts, seed)}
    return {
        "problem": problem, "seed": seed, **figures, "best possible": best, "epochs": EPOCHS,
        "torch": torch.__version__, **machine(),
    }  # fmt: skip


def with_one(x: np.ndarray) -> np.ndarray:
    """Inputs with a feature that is 1 beside the others."""
    return np.column_stack([x, np.ones(len(x))])


def tensor(array: np.ndarray) -> Tensor:
    """In float32."""
    return torch.from_numpy(np.asarray(array, dtype=np.float32))
