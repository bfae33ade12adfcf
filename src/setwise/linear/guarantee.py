"""What is proved about a trained combination of surrogate, space, target and decoder, in words."""

from __future__ import annotations

from typing import Any

LIKELIHOOD = (
    "Likelihood and minimum risk: with log-loss regret r against the true p(y | x) within the "
    "label sets of {space}, the regret of {target} is at most sqrt(2 r) (Pinsker's inequality). "
    "The training log-loss reached is {log_loss:.4f} nats a row; r itself is not known."
)
ABSOLUTE = (
    "Mean absolute error, most likely set: consistent for {target} on {space}; the objective is "
    "not convex, and the solver may have stopped short of its minimiser."
)
NONE = (
    "No theorem covers {surrogate} with label-wise scores for {target} on {space} decoded this "
    "way; there are counterexamples for targets other than Hamming."
)
HAMMING = "Consistent for Hamming loss: labels are decided one by one from their own probabilities."


def guarantee(kind: str, target: Any, space: Any, decoder: str, log_loss: float | None) -> str:
    """The sentence for a combination; ``kind`` is the name of the surrogate."""
    words = {"target": target, "space": space, "surrogate": kind}
    if kind in ("likelihood", "binary_relevance") and str(target) == "hamming":
        return HAMMING
    if kind == "likelihood" and decoder == "minimum_risk" and log_loss is not None:
        return LIKELIHOOD.format(**words, log_loss=log_loss)
    if kind == "mean_absolute_error" and decoder == "most_likely":
        return ABSOLUTE.format(**words)
    return NONE.format(**words)
