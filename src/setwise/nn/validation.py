"""Settings and inputs of a loss, checked once.

Of settings: which of them make sense together, and what they mean. Of tensors: shapes always,
values where looking at them costs no waiting.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from setwise.kernels import kernel
from setwise.nn.differentiable import is_plain
from setwise.spaces import Space
from setwise.surrogates.binary_relevance import MARGINS as RELEVANCE_MARGINS
from setwise.surrogates.constrained import NAMES as CONSTRAINED_MARGINS
from setwise.surrogates.names import COMP_SUM, DEFAULT_Q
from setwise.targets import Hamming, get_target
from setwise.targets.target import Target, hierarchy_of, is_hamming
from setwise.taxonomy import Taxonomy
from setwise.threads import for_rows
from setwise.validation import (
    label_matrix,
    positive_number,
    real_number,
    refuse_not_finite,
    require_one_of,
)

# The default q of each name of the comp-sum family.
POWERS = {**COMP_SUM, "generalized_cross_entropy": DEFAULT_Q, "comp_sum": None}
SURROGATES = (*POWERS, "expected_loss", "likelihood", "constrained", "binary_relevance")
MARGINS = {"constrained": CONSTRAINED_MARGINS, "binary_relevance": tuple(RELEVANCE_MARGINS)}
BACKENDS = ("auto", "compiled", "torch")
REDUCTIONS = ("none", "mean", "sum")


class Settings(NamedTuple):
    """A target and a surrogate with its settings; the number q is kept apart, for it may change.

    ``margin`` is empty where the surrogate has none; ``weight`` are label weights of binary
    relevance (those of Hamming loss are part of the target).
    """

    target: Target
    surrogate: str
    margin: str
    rho: float
    backend: str
    weight: tuple[float, ...] | None
    pos_weight: tuple[float, ...] | None

    @classmethod
    def of(
        cls, target: Any, surrogate: str, margin: str | None, rho: float, backend: str,
        weight: Any, pos_weight: Any,
    ) -> Settings:  # fmt: skip
        """Settings that make sense together, or a ValueError that says why not."""
        require_one_of(surrogate, SURROGATES, "surrogate")
        require_one_of(backend, BACKENDS, "backend")
        margins, target = MARGINS.get(surrogate, ()), get_target(target)
        if margin is not None and margin not in margins:
            known = f"the margins {', '.join(margins)}" if margins else "no margin"
            raise ValueError(f"{surrogate!r} has {known}, but margin is {margin!r}")
        weight, pos_weight = (
            label_numbers(weight, "weight"),
            label_numbers(pos_weight, "pos_weight"),
        )
        if surrogate != "binary_relevance":
            if pos_weight is not None or (weight is not None and not is_hamming(target)):
                raise ValueError(
                    f"pos_weight belongs to surrogate='binary_relevance', and weight to it and to "
                    f"'hamming'; {surrogate!r} of {target} has no place for it (weights of rows "
                    f"are sample_weight of the call)"
                )
            target, weight = target if weight is None else Hamming(weight), None
        margin = margin or (margins[0] if margins else "")
        rho = positive_number(rho, "rho")
        return cls(target, surrogate, margin, rho, backend, weight, pos_weight)

    @property
    def has_power(self) -> bool:
        """Whether the loss is a member of the comp-sum family, with a number q."""
        return self.surrogate in POWERS


def power_of(surrogate: str, q: Any) -> float | None:
    """The number q of a surrogate, or None where it has none."""
    own = POWERS.get(surrogate)
    if surrogate not in POWERS:
        wanted, fits = "no q; the family in q is surrogate='comp_sum'", q is None
    elif surrogate in COMP_SUM:
        wanted, fits = f"q = {own:g}; any other is surrogate='comp_sum'", q is None or q == own
    else:
        q = own if q is None and own is not None else real_number(q, "q", -1.0, 1.0)
        wanted, fits = "0 < q < 1", surrogate == "comp_sum" or 0.0 < q < 1.0
    if not fits:
        raise ValueError(f"{surrogate!r} has {wanted}, but q is {q!r}")
    return own if q is None else float(q)


def label_numbers(values: Any, name: str) -> tuple[float, ...] | None:
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


def refuse_tensors(
    space: Space, logits: Tensor, y_true: Tensor, parameters: Tensor | None = None,
    mask: Tensor | None = None, sample_weight: Tensor | None = None,
) -> None:  # fmt: skip
    """Raise unless each is a dense tensor of its kind and shape, on the device of the logits.

    Weights and parameters are looked at too, where that costs no waiting.
    """
    n_rows, own = len(logits) if isinstance(logits, Tensor) else 0, space.parameters
    shape = n_rows, space.n_labels
    floating, real = torch.is_floating_point, lambda tensor: not tensor.is_complex()
    for name, tensor, kind, is_kind, wanted in (
        ("input", logits, "floating-point logits", floating, (n_rows, space.n_scores)),
        ("target", y_true, "0 and 1", real, shape),
        ("mask", mask, "bools", lambda mask: mask.dtype == torch.bool, shape),
        ("sample_weight", sample_weight, "weights of rows", real, (n_rows,)),
        ("parameters", parameters, "parameters of the space", floating, own.shape),
    ):
        if tensor is None and name not in ("input", "target"):
            continue
        is_tensor = isinstance(tensor, Tensor)
        if not is_tensor or tensor.layout != torch.strided or not is_kind(tensor):
            found = tensor.dtype if is_tensor else type(tensor).__name__
            raise ValueError(f"{name} must be a dense tensor of {kind}, but it is {found}")
        if tensor.shape != wanted:
            raise ValueError(
                f"{name} must have shape {tuple(wanted)}, but its shape is {tuple(tensor.shape)}"
            )
        if name != "parameters" and tensor.device != logits.device:
            raise ValueError(
                f"{name} must be on the device of the input, {logits.device}, but it is on "
                f"{tensor.device}"
            )
    if sample_weight is not None:
        _refuse_numbers(sample_weight, "sample_weight", "finite and at least 0", lambda x: x >= 0)
    if parameters is not None:
        wanted = "finite, and -inf where those of the space are"
        _refuse_numbers(
            parameters, "parameters", wanted, lambda x: (x == -np.inf) == (own == -np.inf)
        )


def _refuse_numbers(tensor: Tensor, name: str, wanted: str, fits: Any) -> None:
    """Raise for the first number that is NaN or +inf or does not fit, where one can look."""
    if is_plain(tensor):
        values = tensor.detach().double().numpy()
        wrong = np.flatnonzero(~(fits(values) & (values < np.inf)))
        if len(wrong):
            raise ValueError(
                f"{name} must be {wanted}, but {name}[{wrong[0]}] is {values[wrong[0]]}"
            )


def label_bytes(y_true: Tensor) -> Tensor:
    """True label sets as 0/1 bytes (n, l), from bool, whole or floating-point numbers."""
    if y_true.dtype == torch.bool:
        return y_true.view(torch.uint8)
    if not is_plain(y_true):
        return (y_true != 0).view(torch.uint8)
    # (NumPy has no bfloat16, the compiler no float16.)
    halves = (torch.float16, torch.bfloat16)
    y_true = y_true.float() if y_true.dtype in halves else y_true
    numbers = np.ascontiguousarray(y_true.detach().numpy())
    ones, wrong = np.empty(numbers.shape, np.uint8), np.empty(len(numbers), np.uint8)
    for_rows(one_rows, len(numbers), numbers, ones, wrong)
    if wrong.any():
        label_matrix(numbers, None, "target")
    return torch.from_numpy(ones)


@kernel
def one_rows(start, stop, numbers, ones, wrong):
    """Which numbers are 1, and whether any of a row is neither 0 nor 1; (n, l), (n, l), (n,)."""
    for row in range(start, stop):
        line, is_one = numbers[row], ones[row]
        # (In bytes: more of them are compared at once.)
        found = np.uint8(0)
        for j in range(len(line)):
            one = np.uint8(line[j] == 1)
            is_one[j] = one
            found |= one ^ np.uint8(line[j] != 0)
        wrong[row] = found


def refuse_infinite(logits: Tensor) -> None:
    """Raise for logits that are not finite, where values can be looked at."""
    if is_plain(logits):
        refuse_not_finite(np.ascontiguousarray(logits.detach().numpy()), "input")


def refuse_values(y_true: Tensor, target: Target, space: Space, within: bool) -> None:
    """Raise for true sets that the target has no value for.

    Those are sets that a table does not list and, for tree distance on closed sets or paths, sets
    that are none. A likelihood asks for sets ``within`` the space; other losses take paths to inner
    nodes on a space of paths to leaves.
    """
    sets, hierarchy = y_true.numpy(), hierarchy_of(target)
    if target.form == "table":
        target.measure(space.n_labels, "loss").index(sets, "target")  # type: ignore
    if hierarchy is None or not space.is_closed:
        return
    hierarchy.refuse_open(sets, "target")
    inside = (space.are_paths if space.is_path and not within else space.contains)(sets)  # type: ignore
    if not inside.all():
        Taxonomy.from_parents(space.parents).refuse_open(sets, "target")  # type: ignore
        raise ValueError(
            f"target must have one path a row, but row {int(np.argmin(inside))} is none of the "
            f"{space}; use Forest(parents, closed=True), which has all closed sets"
        )
