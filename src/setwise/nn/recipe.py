"""Which loss is meant by a name and its settings."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from torch import Tensor

from setwise.surrogates.constrained import NAMES as CONSTRAINED_MARGINS
from setwise.surrogates.margins import MARGINS as RELEVANCE_MARGINS
from setwise.surrogates.names import COMP_SUM, DEFAULT_Q
from setwise.targets import Hamming, get_target
from setwise.targets.target import Target
from setwise.validation import positive_number, real_number

# q of each name of the comp-sum family; "comp_sum" is told.
POWERS = {
    **COMP_SUM,
    "generalized_cross_entropy": DEFAULT_Q,
    "comp_sum": None,
}
SURROGATES = (*POWERS, "expected_loss", "likelihood", "constrained", "binary_relevance")
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
    if surrogate not in SURROGATES:
        known = ", ".join(map(repr, SURROGATES))
        raise ValueError(f"surrogate must be one of {known}, but it is {surrogate!r}")
    if backend not in BACKENDS:
        known = ", ".join(map(repr, BACKENDS))
        raise ValueError(f"backend must be one of {known}, but it is {backend!r}")
    plain = Recipe(
        get_target(target),
        surrogate,
        _margin(surrogate, margin),
        positive_number(rho, "rho"),
        backend,
    )
    return _weighted(plain, weights_of(weight, "weight"), weights_of(pos_weight, "pos_weight"))


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
    if surrogate in ("mean_absolute_error", "logistic", "sum_exponential") and q != own:
        raise ValueError(f"{surrogate!r} is q = {own:g}, but q is {q}; any q: surrogate='comp_sum'")
    return q


def _margin(surrogate: str, margin: str | None) -> str | None:
    margins = {"constrained": CONSTRAINED_MARGINS, "binary_relevance": tuple(RELEVANCE_MARGINS)}
    if surrogate not in margins:
        if margin is not None:
            raise ValueError(
                f"{surrogate!r} has no margin; 'constrained' and 'binary_relevance' have, "
                f"but margin is {margin!r}"
            )
        return None
    known = margins[surrogate]
    if margin is not None and margin not in known:
        raise ValueError(
            f"margin of {surrogate!r} must be one of {', '.join(map(repr, known))}, "
            f"but it is {margin!r}"
        )
    return margin or known[0]


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


def _weighted(recipe: Recipe, weight, pos_weight) -> Recipe:
    """Label weights where they mean something."""
    if recipe.surrogate == "binary_relevance":
        return replace(recipe, weight=weight, pos_weight=pos_weight)
    if pos_weight is not None:
        raise ValueError(
            f"pos_weight weighs the positive term of each label, which {recipe.surrogate!r} does "
            f"not have; it belongs to surrogate='binary_relevance'"
        )
    if weight is None:
        return recipe
    if not isinstance(recipe.target, Hamming) or recipe.target.weights is not None:
        raise ValueError(
            f"weight is a weight for each label, which {recipe.target} has no place for; it "
            f"belongs to 'hamming' or to surrogate='binary_relevance' (for weights of rows hand "
            f"sample_weight to the call)"
        )
    return replace(recipe, target=Hamming(weight))
