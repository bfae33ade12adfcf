"""From one member of the comp-sum family to another while training."""

from __future__ import annotations

import math
from dataclasses import dataclass

from setwise.validation import real_number, whole_number


@dataclass(frozen=True)
class QSchedule:
    """q for each step: from ``start`` to ``end`` over ``steps`` steps, then ``end``.

    q(step) = start + (end - start) f(step / steps), with f(x) = x for kind "linear" and
    (1 - cos(pi x)) / 2 for "cosine". From the logistic loss (0), which is convex in the scores, to
    the mean absolute error (1), which is consistent for every target but not convex.

    Examples
    --------
    >>> schedule = QSchedule(steps=4)
    >>> [schedule(step) for step in (0, 1, 2, 4, 100)]
    [0.0, 0.25, 0.5, 1.0, 1.0]

    In a training loop: ``loss.q = schedule(step)``.
    """

    steps: int
    start: float = 0.0
    end: float = 1.0
    kind: str = "linear"

    def __post_init__(self):
        object.__setattr__(self, "steps", whole_number(self.steps, "steps", 1))
        for name in ("start", "end"):
            object.__setattr__(self, name, real_number(getattr(self, name), name, -1.0, 1.0))
        if self.kind not in ("linear", "cosine"):
            raise ValueError(f"kind must be 'linear' or 'cosine', but it is {self.kind!r}")

    def __call__(self, step: float) -> float:
        """q at a step, counted from 0; between steps too."""
        share = min(real_number(step, "step", 0.0, math.inf) / self.steps, 1.0)
        if self.kind == "cosine":
            share = (1.0 - math.cos(math.pi * share)) / 2.0
        return self.end if share == 1.0 else self.start + (self.end - self.start) * share
