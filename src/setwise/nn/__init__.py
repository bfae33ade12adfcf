"""Losses for neural networks: the measure you are judged by in place of cross-entropy.

Input are *logits*: sigmoid(logit) is the probability of a label on the cube, as it is for binary
cross-entropy. The scores of the paper are half of them, on every space.
"""

try:
    import torch as _torch  # noqa: F401
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "setwise.nn needs PyTorch: install it with `pip install 'setwise[torch]'`, "
        "or choose a build at https://pytorch.org/get-started",
        name=error.name,
    ) from error

from setwise.nn import functional
from setwise.nn.modules import ExpectedLoss, LearnableSpace, QSchedule, SurrogateLoss
from setwise.nn.population import PopulationLoss

__all__ = [
    "ExpectedLoss",
    "LearnableSpace",
    "PopulationLoss",
    "QSchedule",
    "SurrogateLoss",
    "functional",
]
