"""The loss of each row, by compiled kernels on the CPU and by torch operations everywhere else."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from setwise.nn.differentiable import Constant, Kept, is_plain, is_traced, scaled
from setwise.nn.partition import Rows
from setwise.nn.tensor_losses import Listed, Structured, law_of, margin_loss
from setwise.nn.validation import Settings, label_bytes, refuse_infinite, refuse_values
from setwise.spaces import Cube, Space
from setwise.spaces.space import Array, require_space
from setwise.surrogates import CompSum, Constrained, Logistic
from setwise.surrogates.surrogate import as_type
from setwise.targets import ZeroOne
from setwise.targets.target import hierarchy_of, is_hamming, label_weights
from setwise.validation import refuse_not_finite

# Values (n,), gradient by scores (n, n_scores) and by parameters (n, p), of scores, label bytes
# and q. With a share as well, of logits, the gradient by them times that share; None where the
# loss is not made for them.
Answers = tuple[Array, Array, Array]
Core = Callable[[Array, Array, float | None, float | None], Answers | None]


def core_of(settings: Settings, space: Space, parameters: bool = False) -> Core:
    """The loss of NumPy arrays; refused where the target and the space have no exact way.

    Unless ``parameters`` are asked for, the gradient by them has no meaning.
    """
    target = settings.target
    if settings.has_power:
        family = CompSum(target, space, 1.0)

        def power(given: Array, y_true: Array, q: Any, share: float | None) -> Answers | None:
            loss = family.with_q(q)
            loss = loss if share is None else loss.of_logits(share)
            return loss and loss.of_checked(given, y_true, parameters)

        return power
    if settings.surrogate == "likelihood":
        likelihood = Logistic("subset", space, "paper")
        return lambda scores, y_true, q, share: (
            likelihood.of_checked(scores, y_true, parameters) if share is None else None
        )
    if settings.surrogate == "constrained":
        margins = Constrained(target, space, settings.margin, settings.rho)
        return lambda scores, y_true, q, share: (
            margins.value_and_gradients(scores, y_true) if share is None else None
        )
    plain = space.expectation(target)

    def expected(given: Array, y_true: Array, q: Any, share: float | None) -> Answers | None:
        pair = plain if share is None else plain.of_logits(share)
        if pair is None:
            return None
        with np.errstate(over="ignore", invalid="ignore"):
            mean = pair.moment(given, y_true, 1.0, "loss", parameters=parameters)
        return as_type(given.dtype, mean.value, mean.scores, mean.parameters)  # type: ignore

    return expected


def of_logits(
    core: Core, logits: Array, sets: Array, q: float | None, share: float
) -> tuple[Array, Array, Array, float]:
    """Values, gradients, and what the one by the logits is still to be multiplied by."""
    found = core(logits, sets, q, share)
    if found is not None and not np.isnan(found[0]).any():
        return *found, 1.0 / share
    scores, are_finite = scaled(logits, np.full(len(logits), 0.5, logits.dtype))
    if not are_finite:
        refuse_not_finite(logits, "input")
    return *cast(Answers, core(scores, sets, q, None)), 0.5


class RowLoss:
    """A loss with its settings on a space. What cannot be exact is refused when it is made."""

    def __init__(self, settings: Settings, space: Space):
        require_space(space)
        self.settings, self.space = settings, space
        self._laws: dict[bool, Structured | Listed] = {}
        # On the space, and on the cubes of known labels.
        self._cores: dict[int, Core] = {}
        self._own = Constant(space.parameters)
        target, n_labels = settings.target, space.n_labels
        # Whether the loss is Hamming loss with a weight for each label.
        is_other = is_hamming(target) or hierarchy_of(target) is not None
        self._is_weighted = not is_other and label_weights(target, n_labels) is not None
        # (On the cube the likelihood is that of its labels, one by one.)
        names = ("binary_relevance", "likelihood")[: 1 + space.is_independent]
        self._is_by_label = settings.surrogate in names
        if self._is_by_label:
            self._weights = self._label_weights()
            return
        self._cores[n_labels] = core_of(settings, space)
        if settings.backend == "torch":
            self._build_law(False)

    def __reduce__(self):
        # What was made from the two is made again elsewhere.
        return RowLoss, (self.settings, self.space)

    def __call__(
        self, logits: Tensor, y_true: Tensor, parameters: Tensor | None, mask: Tensor | None, q,
        share: float = 1.0,
    ) -> Tensor:  # fmt: skip
        """The loss of each row, (n,), in float64 for float64 logits and in float32 for others.

        A row without a known label has loss 0. Gradients cost a pass over them less where what is
        made of the losses has a derivative of ``share`` by each.
        """
        if mask is not None:
            self._refuse_known(mask)
            # Whatever stands where nothing is known: it has no value and no gradient.
            logits, y_true = logits.masked_fill(~mask, 0), y_true.masked_fill(~mask, 0)
            mask = _lasting(mask)
        y_true = _lasting(label_bytes(y_true))
        logits = logits if logits.dtype == torch.float64 else logits.float()
        if is_plain(logits):
            within = self.settings.surrogate == "likelihood"
            refuse_values(y_true, self.settings.target, self.space, within)
        # Autocast would round products.
        kind = logits.device.type
        has_autocast = torch.amp.is_autocast_available(kind)
        with torch.autocast(kind, enabled=False) if has_autocast else nullcontext():
            if self._is_by_label:
                refuse_infinite(logits)
                return self._by_label(logits, y_true, mask)
            by_tensors = partial(self._by_tensors, y_true=y_true, known=mask, q=q)
            if not self._wants_kernels(logits, mask):
                refuse_infinite(logits)
                return by_tensors(logits, parameters)
            by_kernels = partial(self._by_kernels, y_true=y_true, known=mask, q=q, share=share)
            return Kept.apply(logits, parameters, by_kernels, by_tensors)  # type: ignore

    def _wants_kernels(self, logits: Tensor, mask: Tensor | None) -> bool:
        """Whether the compiled kernels serve this call."""
        # Weights that differ belong to certain labels: no smaller cube stands for known ones.
        able = is_plain(logits) and not (mask is not None and self._is_weighted)
        if self.settings.backend == "compiled" and not able:
            raise ValueError(
                "backend='compiled' runs on the CPU, outside torch.compile and torch.func, and "
                "without a mask for weighted labels; use backend='auto'"
            )
        return able and self.settings.backend != "torch"

    def _by_kernels(
        self, logits: Tensor, parameters: Tensor | None, y_true: Tensor, known: Tensor | None, q,
        share: float,
    ) -> tuple[Any, ...]:  # fmt: skip
        """Values and both gradients, as `Kept` wants them."""
        given, sets = np.ascontiguousarray(logits.numpy()), y_true.contiguous().numpy()
        if parameters is not None:
            space = self.space.with_parameters(parameters.detach().double().numpy())
            core = core_of(self.settings, space, parameters=True)
            *answers, scale = of_logits(core, given, sets, q, 1.0)
        elif known is None:
            core = self._cores[self.space.n_labels]
            *answers, scale = of_logits(core, given, sets, q, share)
        else:
            *answers, scale = self._over_known(given, sets, known.numpy(), q)
        return *(torch.from_numpy(np.asarray(answer)) for answer in answers), scale

    def _over_known(self, given: Array, sets: Array, known: Array, q) -> tuple[Any, ...]:
        """Rows with as many known labels are rows of a smaller cube; nothing known is no loss."""
        value, gradient = np.zeros(len(given), given.dtype), np.zeros_like(given)
        sizes = known.sum(axis=1)
        for size in np.unique(sizes[sizes > 0]).tolist():
            if size not in self._cores:
                self._cores[size] = core_of(self.settings, Cube(size))
            rows = sizes == size
            inside, shape = known & rows[:, None], (-1, size)
            of_size = given[inside].reshape(shape), sets[inside].reshape(shape)
            part, by_logit, _, scale = of_logits(self._cores[size], *of_size, q, 1.0)
            value[rows], gradient[inside] = part, scale * by_logit.ravel()
        return value, gradient, np.empty((len(given), 0), given.dtype), 1.0

    def _by_tensors(
        self, logits: Tensor, parameters: Tensor | None, y_true: Tensor, known: Tensor | None, q
    ) -> Tensor:
        """The loss of each row in torch operations."""
        masked, dtype, settings = known is not None, logits.dtype, self.settings
        if masked not in self._laws:
            untraced(self._build_law)(masked)
        law = self._laws[masked]
        if q is not None and q < 0.0 and logits.device.type != "mps":
            # Powers of probabilities then outgrow float32. (One kind of device has no float64.)
            logits = logits.double()
        own = self._own.beside(logits) if parameters is None else parameters.to(logits.dtype)
        rows = Rows.of(logits, own, y_true, known)
        if q is not None:
            value = law.comp_sum(rows, q)
        elif settings.surrogate == "likelihood":
            value = law.likelihood(rows)
        elif settings.surrogate == "expected_loss":
            value = law.expected(rows)
            # Only rounding takes it out of [0, 1]; derivatives stay as they are.
            value = value + (value.clamp(0.0, 1.0) - value).detach()
        else:
            value = law.constrained(rows, settings.margin, settings.rho)
        value = value.to(dtype)
        return value if known is None else torch.where(rows.n_known > 0, value, 0.0)

    def _build_law(self, masked: bool) -> None:
        settings, space = self.settings, self.space
        is_likelihood = settings.surrogate == "likelihood"
        target = ZeroOne() if is_likelihood else settings.target.on(space)
        of = "utility" if settings.has_power or is_likelihood else "loss"
        listed = settings.surrogate == "constrained" and settings.margin != "exponential"
        self._laws[masked] = law_of(target, space, of, masked, listed)

    def _by_label(self, logits: Tensor, y_true: Tensor, known: Tensor | None) -> Tensor:
        """sum_i w_i Phi(y_i logit_i) over known labels, positive terms times their weight, (n,).

        The logits are the scores here: with the logistic margin sigmoid(logit) is P(label), and so
        it is for a likelihood, which has no margin.
        """
        truth, margin = y_true.to(logits.dtype), self.settings.margin
        weight, positive = (values and values.beside(logits) for values in self._weights)
        if margin in ("", "logistic"):
            terms = binary_cross_entropy_with_logits(
                logits, truth, weight, pos_weight=positive, reduction="none"
            )
        else:
            terms = margin_loss((2.0 * truth - 1.0) * logits, margin)
            terms = terms if weight is None else terms * weight
            terms = terms if positive is None else terms * (1.0 + truth * (positive - 1.0))
        return (terms if known is None else torch.where(known, terms, 0.0)).sum(1)

    def _label_weights(self) -> list[Constant | None]:
        """Weights of labels and of their positive terms, refused unless labels are free."""
        n_labels, settings = self.space.n_labels, self.settings
        if not self.space.is_independent:
            raise ValueError(
                f"binary relevance decides label by label, but {self.space} does not have every "
                f"label set; use Cube({n_labels}), or no space"
            )
        given = {"weight": settings.weight, "pos_weight": settings.pos_weight}
        for name, values in given.items():
            if values is not None and len(values) not in (1, n_labels):
                raise ValueError(
                    f"{name} must have a number for each of the {n_labels} labels, "
                    f"but it has {len(values)}"
                )
        return [None if values is None else Constant(values) for values in given.values()]

    def _refuse_known(self, known: Tensor) -> None:
        """Raise unless the loss has a meaning over some of the labels."""
        target = self.settings.target
        if not self.space.is_independent:
            raise ValueError(
                f"a mask needs all label sets: on {self.space} the known labels alone do not "
                f"decide which sets are possible; use Cube({self.space.n_labels})"
            )
        if self._is_by_label or self._is_weighted:
            return
        if target.form == "table" or (target.form == "additive" and not is_hamming(target)):
            raise ValueError(
                f"{target} is not defined over some of its labels; with a mask use a function of "
                f"the counts, subset 0/1 or Hamming loss (weighted by length it is tree distance)"
            )
        if is_plain(known):
            # A quotient may leave [0, 1] for fewer labels.
            for size in set(known.sum(1).tolist()) - self._cores.keys() - {0}:
                target.on(Cube(size))


def untraced(make: Callable[[Any], None]) -> Callable[[Any], None]:
    """A function that makes tables, kept from a compiler that traces.

    (As a decorator it would load the compiler for everybody.)
    """
    if not torch.compiler.is_compiling():
        return make
    return cast("Callable[[Any], None]", torch.compiler.disable(make))


def _lasting(labels: Tensor) -> Tensor:
    """The labels; what was made in inference mode is copied, as no backward pass may keep it."""
    return labels.clone() if not is_traced() and labels.is_inference() else labels
