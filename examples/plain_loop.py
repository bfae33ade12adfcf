"""A plain training loop, once with cross-entropy and once with the expected F1 loss.

    python examples/plain_loop.py
    python examples/plain_loop.py --data ../shared/data/emotions

The first on data whose truth is known, the second on a folder with X.npy, Y.npz and meta.json. The
same network, the same steps; only the line that makes the loss differs. What is printed is
instance-averaged F1 on rows that were not trained on; logits >= 0 are predicted.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
import torch
from scipy import sparse
from torch import Tensor, nn

from setwise.nn import ExpectedLoss
from setwise.targets import get_target

N_FEATURES, N_LABELS, N_SETS = 6, 10, 30

Parts = tuple[Tensor, Tensor, Tensor, Tensor]


def known_truth(seed: int = 0, n_train: int = 2_000, n_test: int = 2_000) -> Parts:
    """x and y to train on and to test on, from a known law of y given x.

    Thirty sets of one to three of ten labels; the probability of each is a softmax of linear
    functions of x.
    """
    generator = np.random.default_rng(seed)
    sets = np.zeros((N_SETS, N_LABELS), dtype=np.float32)
    for row in sets:
        row[generator.choice(N_LABELS, generator.integers(1, 4), replace=False)] = 1.0
    x = generator.normal(size=(n_train + n_test, N_FEATURES)).astype(np.float32)
    weights = 1.5 * x @ generator.normal(size=(N_FEATURES, N_SETS))
    # The largest of weights with Gumbel noise is a draw from their softmax.
    y = sets[(weights + generator.gumbel(size=weights.shape)).argmax(axis=1)]
    return tuple(
        torch.from_numpy(part) for part in (x[:n_train], y[:n_train], x[n_train:], y[n_train:])
    )  # type: ignore


def stored(folder: Path) -> Parts:
    """x and y to train on and to test on, from files; features are brought to unit variance."""
    x = np.load(folder / "X.npy").astype(np.float32)
    y = sparse.load_npz(folder / "Y.npz").toarray().astype(np.float32)
    split = json.loads((folder / "meta.json").read_text())["split"]
    train, test = (slice(*split[part]["range"]) for part in ("train", "test"))
    x = (x - x[train].mean(axis=0)) / (x[train].std(axis=0) + 1e-6)
    return tuple(torch.from_numpy(part) for part in (x[train], y[train], x[test], y[test]))  # type: ignore


def train(loss: nn.Module, x: Tensor, y: Tensor, epochs: int = 30, seed: int = 0) -> nn.Module:
    """A network with one hidden layer, trained by Adam."""
    torch.manual_seed(seed)
    net = nn.Sequential(nn.Linear(x.shape[1], 64), nn.ReLU(), nn.Linear(64, y.shape[1]))
    optimizer = torch.optim.Adam([*net.parameters(), *loss.parameters()], lr=3e-3)
    for _ in range(epochs):
        for rows in torch.randperm(len(x)).split(64):
            optimizer.zero_grad()
            loss(net(x[rows]), y[rows]).backward()
            optimizer.step()
    return net


@torch.no_grad()
def instance_f1(net: nn.Module, x: Tensor, y: Tensor) -> float:
    """F1 of each row, averaged."""
    y_pred = (net(x) >= 0).numpy().astype(np.uint8)
    return 1.0 - float(get_target("f1").loss(y_pred, y.numpy()).mean())


def main(folder: Path | None = None, epochs: int = 30) -> dict[str, float]:
    """Instance F1 of both losses."""
    x, y, x_test, y_test = known_truth() if folder is None else stored(folder)
    losses = {"cross-entropy": nn.BCEWithLogitsLoss(), "expected F1 loss": ExpectedLoss("f1")}
    return {
        name: instance_f1(train(loss, x, y, epochs), x_test, y_test)
        for name, loss in losses.items()
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Cross-entropy beside the expected F1 loss.")
    parser.add_argument("--data", type=Path, help="a folder with X.npy, Y.npz and meta.json")
    for name, value in main(parser.parse_args().data).items():
        print(f"{name:20s} instance F1 {value:.4f}")
