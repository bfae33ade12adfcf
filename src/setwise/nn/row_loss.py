"""One loss for each row: what its settings mean, and which of two ways computes it.

Compiled kernels on the CPU, torch operations everywhere else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from setwise.nn.batch import Batch
from setwise.nn.compiled import Compiled, Cores
from setwise.nn.partition import Constant, is_traced
from setwise.nn.tensor_losses import Listed, Structured, law_of, margin_loss
from setwise.nn.validation import (
    is_plain,
    refuse_not_finite_logits,
    refuse_open,
    require_one_of,
)
from setwise.spaces import Cube, Space
from setwise.surrogates.binary_relevance import MARGINS as RELEVANCE_MARGINS
from setwise.surrogates.constrained import NAMES as CONSTRAINED_MARGINS
from setwise.surrogates.names import COMP_SUM, DEFAULT_Q
from setwise.targets import Hamming, ZeroOne, get_target
from setwise.targets.target import Target, hierarchy_of, is_hamming, label_weights
from setwise.validation import positive_number, real_number

# q of each name of the comp-sum family; "comp_sum" is told.
POWERS = {**COMP_SUM, "generalized_cross_entropy": DEFAULT_Q, "comp_sum": None}
SURROGATES = (*POWERS, "expected_loss", "likelihood", "constrained", "binary_relevance")
MARGINS = {"constrained": CONSTRAINED_MARGINS, "binary_relevance": tuple(RELEVANCE_MARGINS)}
BACKENDS = ("auto", "compiled", "torch")


@dataclass(frozen=True)
class Recipe:
    """A target and a surrogate with its settings; the number q is kept apart, for it may change.

    ``margin`` is None where the surrogate has none; ``weight`` are label weights of binary
    relevance (those of Hamming loss are part of the target).
    """

    target: Target
    surrogate: str
    margin: str | None
    rho: float
    backend: str
    weight: tuple[float, ...] | None = None
    pos_weight: tuple[float, ...] | None = None

    @property
    def has_power(self) -> bool:
        """Whether the loss is a member of the comp-sum family, with a number q."""
        return self.surrogate in POWERS


def recipe_of(
    target: Any, surrogate: str, margin: str | None, rho: float, backend: str, weight, pos_weight
) -> Recipe:
    """Settings that make sense together, or a ValueError that says why not."""
    require_one_of(surrogate, SURROGATES, "surrogate")
    require_one_of(backend, BACKENDS, "backend")
    target, margin = get_target(target), _margin(surrogate, margin)
    weight, pos_weight = weights_of(weight, "weight"), weights_of(pos_weight, "pos_weight")
    if surrogate != "binary_relevance":
        target, weight = _weighted(target, surrogate, weight, pos_weight), None
    rho = positive_number(rho, "rho")
    return Recipe(target, surrogate, margin, rho, backend, weight, pos_weight)


def power_of(surrogate: str, q: Any) -> float | None:
    """The number q of a surrogate, or None where it has none."""
    if surrogate not in POWERS:
        if q is not None:
            raise ValueError(
                f"{surrogate!r} has no q; the family in q is surrogate='comp_sum', but q is {q!r}"
            )
        return None
    own = POWERS[surrogate]
    if q is None:
        if own is None:
            raise ValueError("surrogate='comp_sum' needs q, a number from -1 to 1")
        return own
    q = real_number(q, "q", -1.0, 1.0)
    if surrogate == "generalized_cross_entropy" and not 0.0 < q < 1.0:
        raise ValueError(f"generalised cross-entropy has 0 < q < 1, but q is {q}")
    if surrogate in COMP_SUM and q != own:
        raise ValueError(f"{surrogate!r} is q = {own:g}, but q is {q}; any q: surrogate='comp_sum'")
    return q


def _margin(surrogate: str, margin: str | None) -> str | None:
    if surrogate in MARGINS:
        known = MARGINS[surrogate]
        if margin is not None:
            require_one_of(margin, known, f"margin of {surrogate!r}")
        return margin or known[0]
    if margin is not None:
        raise ValueError(
            f"{surrogate!r} has no margin; 'constrained' and 'binary_relevance' have, "
            f"but margin is {margin!r}"
        )
    return None


def weights_of(values: Any, name: str) -> tuple[float, ...] | None:
    """A nonnegative number for each label (or one for all), or None."""
    if values is None:
        return None
    if isinstance(values, Tensor):
        values = values.detach().cpu().double().numpy()
    array = np.asarray(values, dtype=np.float64)
    # As torch's own losses do: one number, or a row of them.
    array = array.reshape(-1) if array.ndim == 0 or array.shape[:-1] == (1,) else array
    if array.ndim != 1 or not (np.isfinite(array) & (array >= 0)).all():
        raise ValueError(
            f"{name} must be a finite number of at least 0 for each label, but it is {values!r}"
        )
    return tuple(array.tolist())


def _weighted(target: Target, surrogate: str, weight, pos_weight) -> Target:
    """The target with label weights, where they mean something."""
    if pos_weight is not None:
        raise ValueError(
            f"pos_weight weighs the positive term of each label, which {surrogate!r} does "
            f"not have; it belongs to surrogate='binary_relevance'"
        )
    if weight is None:
        return target
    if not is_hamming(target):
        raise ValueError(
            f"weight is a weight for each label, which {target} has no place for; it "
            f"belongs to 'hamming' or to surrogate='binary_relevance' (for weights of rows hand "
            f"sample_weight to the call)"
        )
    return Hamming(weight)


def untraced(make: Callable[[Any], None]) -> Callable[[Any], None]:
    """A function that makes tables, kept from a compiler that traces.

    (As a decorator it would load the compiler for everybody.)
    """
    if not torch.compiler.is_compiling():
        return make
    return cast("Callable[[Any], None]", torch.compiler.disable(make))


class RowLoss:
    """A recipe on a space. What cannot be exact is refused when it is made."""

    def __init__(self, recipe: Recipe, space: Space):
        self.recipe, self.space = recipe, space
        self._laws: dict[bool, Structured | Listed] = {}
        self._sizes_seen: set[int] = set()
        self._own = Constant(space.parameters)
        self._label_weights = [
            None if values is None else Constant(values)
            for values in (recipe.weight, recipe.pos_weight)
        ]
        # (On the cube the likelihood is that of its labels, one by one.)
        is_cube_likelihood = recipe.surrogate == "likelihood" and space.is_independent
        self._is_by_label = recipe.surrogate == "binary_relevance" or is_cube_likelihood
        if self._is_by_label:
            self._refuse_label_by_label()
            return
        self.cores = Cores(recipe, space)
        if recipe.backend == "torch":
            self._build_law(False)

    def __reduce__(self):
        # What was made from the two is made again elsewhere.
        return RowLoss, (self.recipe, self.space)

    def __call__(
        self,
        logits: Tensor,
        parameters: Tensor | None,
        y_true: Tensor,
        known: Tensor | None,
        q: float | None,
    ) -> Tensor:
        """The loss of each row, (n,); 0 where no label is known."""
        y_true = _lasting(y_true)
        known = None if known is None else _lasting(known)
        target = self.recipe.target
        refuse_open(y_true, target, self.space, self.recipe.surrogate == "likelihood")
        if not self._is_by_label and self._wants_kernels(logits, known):
            return Compiled.apply(logits, parameters, self, y_true, known, q)  # type: ignore
        refuse_not_finite_logits(logits)
        if self._is_by_label:
            return self._by_label(logits, y_true, known)
        if target.form == "table" and is_plain(logits):
            # A set that the table does not list is refused by name.
            target.measure(self.space.n_labels, "loss").index(y_true.numpy(), "target")  # type: ignore
        return self.by_tensors(logits, parameters, y_true, known, q)

    def by_tensors(
        self,
        logits: Tensor,
        parameters: Tensor | None,
        y_true: Tensor,
        known: Tensor | None,
        q: float | None,
    ) -> Tensor:
        """The loss of each row in torch operations."""
        masked, dtype, recipe = known is not None, logits.dtype, self.recipe
        if masked not in self._laws:
            untraced(self._build_law)(masked)
        law = self._laws[masked]
        if q is not None and q < 0.0 and logits.device.type != "mps":
            # Powers of probabilities then outgrow float32. (One kind of device has no float64.)
            logits = logits.double()
        batch = Batch.of(y_true, known, logits)
        own = self._own.beside(logits) if parameters is None else parameters.to(logits.dtype)
        if q is not None:
            rows = law.comp_sum(batch, logits, own, q)
        elif recipe.surrogate == "likelihood":
            rows = law.likelihood(batch, logits, own)
        elif recipe.surrogate == "expected_loss":
            rows = law.expected(batch, logits, own)
            # Only rounding takes it out of [0, 1]; derivatives stay as they are.
            rows = rows + (rows.clamp(0.0, 1.0) - rows).detach()
        else:
            assert recipe.margin is not None
            rows = law.constrained(batch, logits, own, recipe.margin, recipe.rho)
        rows = rows.to(dtype)
        return rows if known is None else torch.where(batch.n_known > 0, rows, 0.0)

    def _by_label(self, logits: Tensor, y_true: Tensor, known: Tensor | None) -> Tensor:
        """sum_i w_i Phi(y_i logit_i) over known labels, positive terms times their weight, (n,).

        The logits are the scores here: with the logistic margin sigmoid(logit) is P(label), and so
        it is for a likelihood, which has no margin.
        """
        truth, margin = y_true.to(logits.dtype), self.recipe.margin
        weight, positive = (w and w.beside(logits) for w in self._label_weights)
        if margin in (None, "logistic"):
            terms = binary_cross_entropy_with_logits(
                logits, truth, pos_weight=positive, reduction="none"
            )
        else:
            terms = margin_loss((2.0 * truth - 1.0) * logits, margin)
            if positive is not None:
                terms = terms * (1.0 + truth * (positive - 1.0))
        terms = terms if weight is None else terms * weight
        return (terms if known is None else torch.where(known, terms, 0.0)).sum(1)

    def _refuse_label_by_label(self) -> None:
        """Raise unless labels are free, and there is a weight for each, or one for all."""
        n_labels = self.space.n_labels
        if not self.space.is_independent:
            raise ValueError(
                f"binary relevance decides label by label, but {self.space} does not have every "
                f"label set; use Cube({n_labels}), or no space"
            )
        for name in ("weight", "pos_weight"):
            values = getattr(self.recipe, name)
            if values is not None and len(values) not in (1, n_labels):
                raise ValueError(
                    f"{name} must have a number for each of the {n_labels} labels, "
                    f"but it has {len(values)}"
                )

    def _build_law(self, masked: bool) -> None:
        recipe, space = self.recipe, self.space
        target = ZeroOne() if recipe.surrogate == "likelihood" else recipe.target.on(space)
        of = "utility" if recipe.has_power or recipe.surrogate == "likelihood" else "loss"
        listed = recipe.surrogate == "constrained" and recipe.margin != "exponential"
        self._laws[masked] = law_of(target, space, of, masked, listed)

    def _wants_kernels(self, logits: Tensor, known: Tensor | None) -> bool:
        """Whether the compiled kernels serve this call."""
        backend, able = self.recipe.backend, is_plain(logits)
        # Weights that differ belong to certain labels: no smaller cube stands for known ones.
        able = able and not (known is not None and self._is_weighted)
        if backend == "compiled" and not able:
            raise ValueError(
                "backend='compiled' runs on the CPU, outside torch.compile and torch.func, and "
                "without a mask for weighted labels; use backend='auto'"
            )
        return able and backend != "torch"

    @property
    def _is_weighted(self) -> bool:
        """Whether the loss is Hamming loss with a weight for each label."""
        target = self.recipe.target
        if is_hamming(target) or hierarchy_of(target) is not None:
            return False
        return label_weights(target, self.space.n_labels) is not None

    def refuse_known(self, known: Tensor) -> None:
        """Raise unless the loss has a meaning over some of the labels."""
        if not self.space.is_independent:
            raise ValueError(
                f"a mask needs all label sets: on {self.space} the known labels alone do not "
                f"decide which sets are possible; use Cube({self.space.n_labels})"
            )
        target = self.recipe.target
        if self.recipe.surrogate in ("binary_relevance", "likelihood"):
            return
        is_sum = target.form == "additive" and not is_hamming(target) and not self._is_weighted
        if target.form == "table" or is_sum:
            raise ValueError(
                f"{target} is not defined over some of its labels; with a mask use a function of "
                f"the counts, subset 0/1 or Hamming loss (weighted by length it is tree distance)"
            )
        if is_plain(known) and not self._is_weighted:
            # A quotient may leave [0, 1] for fewer labels.
            for size in set(known.sum(1).unique().tolist()) - self._sizes_seen - {0}:
                target.on(Cube(size))
                self._sizes_seen.add(size)


def _lasting(labels: Tensor) -> Tensor:
    """The labels; what was made in inference mode is copied, as no backward pass may keep it."""
    return labels.clone() if not is_traced() and labels.is_inference() else labels
