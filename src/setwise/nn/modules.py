"""Losses as torch modules, what they learn of a space, and a schedule for their q."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from setwise.nn.differentiable import Constant
from setwise.nn.row_loss import RowLoss, untraced
from setwise.nn.validation import REDUCTIONS, Settings, power_of, refuse_tensors
from setwise.spaces import Cube, Space
from setwise.spaces.space import require_space
from setwise.validation import real_number, require_one_of, whole_number


class SurrogateLoss(nn.Module):
    """A surrogate of the measure you are judged by, in place of ``BCEWithLogitsLoss``.

    Input are logits (n, l): sigmoid(logit) is the marginal of a label on the cube, so the scores h
    of the paper are logits / 2, on every space (for a Catalog with joint scores there is a logit
    for each listed set, (n, K)). Binary relevance alone takes the logits as scores: its marginal is
    sigmoid(score). Values and gradients are exact; see `setwise.surrogates`.

    Parameters
    ----------
    target : Target or str
        What a prediction is judged by: "f1", "jaccard", "hamming", "subset", "precision@3", ...
    space : Space or LearnableSpace, optional
        The label sets that may be predicted; all of them by default.
    surrogate : str, default "mean_absolute_error"
        "mean_absolute_error" (q = 1), "logistic" (0), "sum_exponential" (-1),
        "generalized_cross_entropy" (0 < q < 1), "comp_sum" (any q), all on the unit
        scale; "expected_loss", the expected target loss itself; "likelihood", the negative
        log-likelihood of the true set (of use for every target, with `MinimumRisk` to decode);
        "constrained" and "binary_relevance", with a ``margin``.
    q : float, optional
        Member of the comp-sum family, from -1 to 1. ``loss.q = ...`` changes it: see `QSchedule`.
    margin : str, optional
        Of "constrained": "exponential" (default), "squared_hinge", "hinge", "rho"; of
        "binary_relevance": "logistic" (default), "exponential", "hinge", "squared_hinge".
    rho : float, default 1.0
        Width of the rho margin.
    reduction : {"mean", "sum", "none"}, default "mean"
        Over rows. With a mask, the mean is over the rows that have a known label.
    weight : array of shape (l,), optional
        A weight for each label, for "hamming" and for binary relevance; refused elsewhere.
    pos_weight : array of shape (l,), optional
        Weight of the positive term of each label, for binary relevance; refused elsewhere.
    backend : {"auto", "compiled", "torch"}, default "auto"
        Compiled kernels on the CPU and torch operations on other devices, under ``torch.compile``,
        in ``torch.func`` and for second derivatives; or always one of the two.

    Notes
    -----
    float16 and bfloat16 are computed in float32, also under autocast. On the CPU logits that are
    not finite and targets other than 0 and 1 are refused; elsewhere looking would mean waiting for
    the device, and they are not looked at.

    For q in [0, 1] values and gradients are finite for logits up to 1e15; below 0 they may
    overflow.

    Examples
    --------
    >>> loss = SurrogateLoss("f1", surrogate="logistic")
    >>> logits = torch.tensor([[3.0, -1.0, 0.5]], requires_grad=True)
    >>> value = loss(logits, torch.tensor([[1, 0, 0]]))
    >>> value.backward()
    >>> logits.grad.round(decimals=3)
    tensor([[-0.0170, -0.0510,  0.0750]])
    """

    def __init__(
        self,
        target: Any,
        space: Space | LearnableSpace | None = None,
        surrogate: str = "mean_absolute_error",
        *,
        q: float | None = None,
        margin: str | None = None,
        rho: float = 1.0,
        reduction: str = "mean",
        weight: Any = None,
        pos_weight: Any = None,
        backend: str = "auto",
    ):
        super().__init__()
        self._q = power_of(surrogate, q)
        self._settings = Settings.of(target, surrogate, margin, rho, backend, weight, pos_weight)
        self.target, self.reduction, self.space = self._settings.target, reduction, space
        # By the number of labels where the space is the cube of as many as come in, else at 0.
        self._losses: dict[int, RowLoss] = {}
        if space is not None:
            fixed = space.initial if isinstance(space, LearnableSpace) else space
            self._losses[0] = RowLoss(self._settings, fixed)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "reduction":
            require_one_of(value, REDUCTIONS, "reduction")
        if name in ("space", "target") and hasattr(self, name):
            raise AttributeError(f"the {name} of a loss does not change: make another loss")
        super().__setattr__(name, value)

    @property
    def q(self) -> float | None:
        """The member of the comp-sum family, None for other surrogates; the expected loss is 1."""
        return 1.0 if self._settings.surrogate == "expected_loss" else self._q

    @q.setter
    def q(self, value: float) -> None:
        self._q = power_of(self._settings.surrogate, value)

    def forward(
        self,
        input: Tensor,
        target: Tensor,
        mask: Tensor | None = None,
        sample_weight: Tensor | None = None,
    ) -> Tensor:
        """The loss of logits (n, l) against true label sets (n, l) of 0/1.

        Parameters
        ----------
        input : Tensor of shape (n, l)
            Logits.
        target : Tensor of shape (n, l)
            True label sets as bool, whole or floating-point numbers.
        mask : bool Tensor of shape (n, l), optional
            True where the label is known: the target over the known labels only. On the cube only.
        sample_weight : Tensor of shape (n,), optional
            What the loss of each row is multiplied by; as for torch's own losses, a mean is still
            divided by the number of rows.
        """
        learnt = self.space() if isinstance(self.space, LearnableSpace) else None
        return self.value(input, target, learnt, mask, sample_weight, self.reduction, self._q)

    def value(
        self, input: Tensor, target: Tensor, parameters: Tensor | None, mask: Tensor | None,
        sample_weight: Tensor | None, reduction: str, q: float | None,
    ) -> Tensor:  # fmt: skip
        """The loss at any parameters of the space and any q, for `setwise.nn.functional`."""
        require_one_of(reduction, REDUCTIONS, "reduction")
        width = 0 if self.space is not None else _n_labels(input)
        if width not in self._losses:
            untraced(self._make)(width)
        loss = self._losses[width]
        refuse_tensors(loss.space, input, target, parameters, mask, sample_weight)
        is_mean = reduction == "mean" and mask is None and sample_weight is None
        share = 1.0 / max(len(input), 1) if is_mean else 1.0
        rows = loss(input, target, parameters, mask, q, share)
        rows = rows if sample_weight is None else rows * sample_weight.to(rows.dtype)
        if reduction == "none":
            return rows
        if reduction == "sum":
            return rows.sum()
        # The mean is over the rows that have a known label.
        return rows.sum() / (max(len(rows), 1) if mask is None else mask.any(1).sum().clamp(min=1))

    def most_likely(self, input: Tensor) -> Tensor:
        """The most likely label sets of the logits, (n, l): on the cube the labels with logit >= 0.

        The prediction that goes with q > 0, the expected loss and constrained losses.
        """
        return self._decoded(input, "most_likely")

    def marginals(self, input: Tensor) -> Tensor:
        """The probability of each label, (n, l); after the likelihood, what `MinimumRisk` takes."""
        return self._decoded(input, "marginals")

    def extra_repr(self) -> str:
        """The settings."""
        margin, surrogate = self._settings.margin, self._settings.surrogate
        parts = [str(self.target), f"{margin} {surrogate}".strip()]
        if self.space is not None and not isinstance(self.space, LearnableSpace):
            parts.insert(1, str(self.space))
        if self._q is not None:
            parts.append(f"q={self._q:g}")
        return ", ".join([*parts, f"reduction={self.reduction}"])

    def _make(self, n_labels: int) -> None:
        self._losses[n_labels] = RowLoss(self._settings, Cube(n_labels))

    def _decoded(self, logits: Tensor, question: str) -> Tensor:
        """What the space says of the scores."""
        space = self.space.current() if isinstance(self.space, LearnableSpace) else self.space
        space = Cube(_n_labels(logits)) if space is None else space
        scores = logits.detach().cpu().double().numpy() / 2.0
        answer = torch.from_numpy(np.asarray(getattr(space, question)(scores))).to(logits.device)
        return answer if question == "most_likely" else answer.to(logits.dtype)


def _n_labels(logits: Tensor) -> int:
    """The number of labels of logits without a space."""
    if not isinstance(logits, Tensor) or logits.ndim != 2 or logits.shape[1] == 0:
        what = tuple(logits.shape) if isinstance(logits, Tensor) else type(logits).__name__
        raise ValueError(f"input must be a tensor of shape (n, n_labels), but it is {what}")
    return logits.shape[1]


class ExpectedLoss(SurrogateLoss):
    """The expected target loss of a label set drawn from the logits, in [0, 1].

    1 - M = sum over y' of s(y') L(y', y), with s the law that the logits define: on the cube every
    label is drawn on its own with probability sigmoid(logit). It is the surrogate
    "mean_absolute_error" (q = 1) of `SurrogateLoss` less a constant, with the same further
    settings, and is consistent for every target on every space when the most likely set is
    predicted: the labels with logit >= 0 on the cube.

    Examples
    --------
    >>> loss = ExpectedLoss("f1")
    >>> loss(torch.tensor([[50.0, -50.0]]), torch.tensor([[1, 1]])).round(decimals=4)
    tensor(0.3333)
    """

    def __init__(
        self,
        target: Any,
        space: Space | LearnableSpace | None = None,
        **options: Any,
    ):
        super().__init__(target, space, "expected_loss", **options)


class LearnableSpace(nn.Module):
    """A space of label sets with its parameters as a torch Parameter.

    For a Sized space the bias of each size, for a Forest the potentials of its edges, for a Catalog
    the bias of each listed set, for a Backoff the parameters of its base and the bonuses. They
    start at the values of the given space; -inf stays -inf, and a bonus that a step takes below 0
    is 0, with the slope it has there. Hand it to one loss or to several, and give
    ``loss.parameters()`` to the optimizer.

    Parameters
    ----------
    space : Space
        Sized, Forest, Catalog or Backoff, with at least two parameters that are not -inf.

    Examples
    --------
    >>> from setwise.spaces import Sized
    >>> space = LearnableSpace(Sized(3, [-np.inf, 0.5, 0.0]))
    >>> space.values
    Parameter containing:
    tensor([0.5000, 0.0000], requires_grad=True)
    >>> space.current()
    Sized(n_labels=3, bias=[-inf, 0.5, 0.0])
    """

    places: Tensor

    def __init__(self, space: Space):
        super().__init__()
        require_space(space)
        finite = np.flatnonzero(np.isfinite(space.parameters))
        if len(finite) < 2:
            raise ValueError(
                f"{space} has nothing to learn; use a Sized space, a Forest, a Catalog or a Backoff"
            )
        self._space, self._least = space, Constant(space.lower_bounds[finite])
        self.values = nn.Parameter(torch.empty(len(finite)))
        self.register_buffer("places", torch.empty(len(finite), dtype=torch.int64))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """The values of the space it was made from; for a module that began without memory."""
        own = self._space.parameters
        finite = np.flatnonzero(np.isfinite(own))
        # Copies that torch owns: letting go of NumPy's memory needs the interpreter, and a thread
        # of DistributedDataParallel that holds it last would wait for that forever.
        with torch.no_grad():
            self.values.copy_(torch.tensor(own[finite]))
            self.places.copy_(torch.tensor(finite))

    @property
    def initial(self) -> Space:
        """The space it was made from."""
        return self._space

    def forward(self) -> Tensor:
        """All parameters of the space, -inf where excluded, (p,)."""
        everything = self.values.new_full((len(self._space.parameters),), -torch.inf)
        # Where a value is below its least, that is taken; derivatives stay as they are.
        raised = torch.maximum(self.values, self._least.beside(self.values)) - self.values
        return everything.scatter(0, self.places, self.values + raised.detach())

    def current(self) -> Space:
        """The space with the values learnt so far, for decoding with `setwise.decoders`."""
        return self._space.with_parameters(self().detach().cpu().double().numpy())

    def extra_repr(self) -> str:
        """The space it was made from."""
        return str(self._space)


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
        ends = {
            name: real_number(getattr(self, name), name, -1.0, 1.0) for name in ("start", "end")
        }
        vars(self).update(steps=whole_number(self.steps, "steps", 1), **ends)
        require_one_of(self.kind, ("linear", "cosine"), "kind")

    def __call__(self, step: float) -> float:
        """q at a step, counted from 0; between steps too."""
        share = min(real_number(step, "step", 0.0, math.inf) / self.steps, 1.0)
        if self.kind == "cosine":
            share = (1.0 - math.cos(math.pi * share)) / 2.0
        return self.end if share == 1.0 else self.start + (self.end - self.start) * share
