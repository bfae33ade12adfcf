"""
A neural network
================

Replace ``BCEWithLogitsLoss()`` by ``ExpectedLoss("f1")`` in a training loop. It takes the same
logits, and maximises the expected F1 of a label set drawn from the model.
"""

import matplotlib.pyplot as plt
import numpy as np
import torch
from torch import nn

from setwise import get_target
from setwise.consistency import exclusive
from setwise.decoders import MinimumRisk
from setwise.nn import ExpectedLoss

torch.set_num_threads(1)
truth = exclusive(groups=(5, 5), n_features=6, seed=0)
X, Y = (torch.as_tensor(part, dtype=torch.float32) for part in truth.sample(1500, seed=0))
X_test, Y_test = truth.sample(2000, seed=1)
X_test = torch.as_tensor(X_test, dtype=torch.float32)
f1 = get_target("f1")


def train(loss, epochs=12):
    """The same small network and the same steps for every loss; F1 after every epoch."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(X.shape[1], 48), nn.ReLU(), nn.Linear(48, Y.shape[1]))
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
    history = []
    for _ in range(epochs):
        for rows in torch.randperm(len(X)).split(64):
            optimizer.zero_grad()
            loss(net(X[rows]), Y[rows]).backward()
            optimizer.step()
        logits = net(X_test).detach().numpy()
        history.append(1 - f1.loss(logits >= 0, Y_test).mean())
    return history, logits


# %%
# There is another way to the same goal: train with cross-entropy, then let ``MinimumRisk`` choose
# the label sets that are best for F1.

entropy, logits = train(nn.BCEWithLogitsLoss())
expected, _ = train(ExpectedLoss("f1"))
decided = 1 - f1.loss(MinimumRisk("f1").decode(1 / (1 + np.exp(-logits))), Y_test).mean()
print(f"BCEWithLogitsLoss, logits >= 0      F1 {entropy[-1]:.3f}")
print(f"BCEWithLogitsLoss, then MinimumRisk F1 {decided:.3f}")
print(f"ExpectedLoss('f1'), logits >= 0     F1 {expected[-1]:.3f}")

# %%
_, axis = plt.subplots(figsize=(7, 3.8))
steps = range(1, len(entropy) + 1)
axis.plot(steps, entropy, "o-", label="BCEWithLogitsLoss, logits ≥ 0")
axis.plot(steps, expected, "o-", label='ExpectedLoss("f1"), logits ≥ 0')
axis.plot(steps[-1], decided, "s", color="C2", label="BCEWithLogitsLoss, then MinimumRisk")
axis.set(xlabel="epoch", ylabel="mean F1 of 2,000 fresh rows")
axis.legend()
plt.tight_layout()
plt.show()
