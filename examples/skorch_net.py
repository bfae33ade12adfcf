"""The expected F1 loss as the criterion of a skorch network, which is a scikit-learn estimator.

python examples/skorch_net.py
"""

from __future__ import annotations

import numpy as np
import torch
from plain_loop import N_FEATURES, N_LABELS, known_truth
from skorch import NeuralNet
from torch import nn

from setwise.nn import ExpectedLoss
from setwise.targets import get_target


class LabelNet(NeuralNet):
    """A network that predicts label sets: the labels whose logit is not negative."""

    def predict(self, X) -> np.ndarray:
        """Label sets, (n, l)."""
        return (self.predict_proba(X) >= 0).astype(np.uint8)

    def score(self, X, y) -> float:
        """F1 of each row, averaged."""
        return 1.0 - float(get_target("f1").loss(self.predict(X), y).mean())


def main(epochs: int = 20) -> dict[str, float]:
    """Instance F1 on test rows, of cross-entropy and of the expected F1 loss."""
    x, y, x_test, y_test = (part.numpy() for part in known_truth())
    settings = {"cross-entropy": {"criterion": nn.BCEWithLogitsLoss}} | {
        "expected F1 loss": {"criterion": ExpectedLoss, "criterion__target": "f1"}
    }
    scores = {}
    for name, criterion in settings.items():
        torch.manual_seed(0)
        net = LabelNet(
            nn.Sequential(nn.Linear(N_FEATURES, 64), nn.ReLU(), nn.Linear(64, N_LABELS)),
            optimizer=torch.optim.Adam, lr=3e-3, batch_size=64, max_epochs=epochs,
            train_split=None, verbose=0, predict_nonlinearity=None, **criterion,
        )  # fmt: skip
        scores[name] = net.fit(x, y).score(x_test, y_test)
    return scores


if __name__ == "__main__":
    for name, value in main().items():
        print(f"{name:20s} instance F1 {value:.4f}")
