"""The compiled kernels of `setwise.surrogates` as one differentiable operation on the CPU.

The exact gradient comes with the value; it is kept, and multiplied when the network's turn comes. A
second derivative is taken through torch operations.

Logits, labels and gradients are read in one pass each, by the threads of the kernels: torch's own
threads would be woken for it, and wait for each other, beside those.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from setwise.kernels import kernel
from setwise.spaces import Cube, Space
from setwise.spaces.space import Array
from setwise.surrogates import CompSum, Constrained, Logistic
from setwise.surrogates.surrogate import as_type
from setwise.threads import for_rows
from setwise.validation import refuse_not_finite

if TYPE_CHECKING:
    from setwise.nn.row_loss import Recipe, RowLoss

# Values (n,), gradient by scores (n, n_scores) and by parameters (n, p), of scores, label bytes
# and q.
Core = Callable[[Array, Array, float | None], tuple[Array, Array, Array]]


def core_of(recipe: Recipe, space: Space, parameters: bool = False) -> Core:
    """The loss of NumPy arrays; refused where the target and the space have no exact way.

    Unless ``parameters`` are asked for, the gradient by them has no meaning.
    """
    target = recipe.target
    if recipe.has_power:
        family = CompSum(target, space, 1.0)
        return lambda scores, y_true, q: family.with_q(q).of_checked(  # type: ignore
            scores, y_true, parameters
        )
    if recipe.surrogate == "likelihood":
        loss = Logistic("subset", space, "paper")
        return lambda scores, y_true, q: loss.of_checked(scores, y_true, parameters)
    if recipe.surrogate == "constrained":
        assert recipe.margin is not None
        margins = Constrained(target, space, recipe.margin, recipe.rho)
        return lambda scores, y_true, q: margins.value_and_gradients(scores, y_true)
    pair = space.expectation(target)

    def expected(scores: Array, y_true: Array, q: float | None) -> tuple[Array, Array, Array]:
        with np.errstate(over="ignore", invalid="ignore"):
            mean = pair.moment(scores, y_true, 1.0, "loss", parameters=parameters)
        return as_type(scores.dtype, mean.value, mean.scores, mean.parameters)  # type: ignore

    return expected


class Cores:
    """The cores of one recipe, on its space and on the cubes of known labels; made once."""

    def __init__(self, recipe: Recipe, space: Space):
        self._recipe, self._space = recipe, space
        self._kept = {space.n_labels: core_of(recipe, space)}

    def run(
        self, scores: Array, y_true: Array, known: Array | None, parameters: Array | None, q
    ) -> tuple[Array, Array, Array]:
        """Values and both gradients, over the known labels only."""
        if parameters is not None:
            space = self._space.with_parameters(parameters)
            return core_of(self._recipe, space, parameters=True)(scores, y_true, q)
        if known is None:
            return self._kept[self._space.n_labels](scores, y_true, q)
        return self._over_known(scores, y_true, known, q)

    def _over_known(self, scores: Array, y_true: Array, known: Array, q):
        """Rows with as many known labels are rows of a smaller cube; nothing known is no loss."""
        value, gradient = np.zeros(len(scores), scores.dtype), np.zeros_like(scores)
        sizes = known.sum(axis=1)
        for size in np.unique(sizes[sizes > 0]).tolist():
            if size not in self._kept:
                self._kept[size] = core_of(self._recipe, Cube(size))
            rows = np.flatnonzero(sizes == size)
            inside = known[rows]
            shape = (len(rows), size)
            part = self._kept[size](
                scores[rows][inside].reshape(shape), y_true[rows][inside].reshape(shape), q
            )
            block = np.zeros(inside.shape, scores.dtype)
            block[inside] = part[1].ravel()
            value[rows], gradient[rows] = part[0], block
        return value, gradient, np.empty((len(scores), 0), scores.dtype)


@kernel
def scaled_rows(start, stop, rows, factors, out, sums):
    """out = factor * row in the precision of the rows, and the sum of each row in float64."""
    for row in range(start, stop):
        line, target, factor = rows[row], out[row], factors[row]
        total = 0.0
        for j in range(len(line)):
            target[j] = factor * line[j]
            total += np.float64(line[j])
        sums[row] = total


def scaled(rows: Array, factors: Array, name: str | None = None) -> Array:
    """A new array with each row (n, m) times its factor (n,), which has the type of the rows.

    With a name, entries that are not finite are refused under it.
    """
    out, sums = np.empty(rows.shape, rows.dtype), np.empty(len(rows))
    for_rows(scaled_rows, len(rows), np.ascontiguousarray(rows), factors, out, sums)
    # A sum is finite only if its terms are.
    if name is not None and not np.isfinite(sums).all():
        refuse_not_finite(rows, name)
    return out


@kernel
def byte_rows(start, stop, numbers, out, wrong):
    """Whether each number is not 0, and how many of a row are neither 0 nor 1."""
    for row in range(start, stop):
        line, target = numbers[row], out[row]
        count = 0
        for j in range(len(line)):
            present = line[j] != 0
            target[j] = present
            count += present and line[j] != 1
        wrong[row] = count


def as_bytes(numbers: Array, name: str) -> Array:
    """0/1 bytes of numbers that are 0 or 1; others are refused."""
    out = np.empty(numbers.shape, np.uint8)
    wrong = np.empty(len(numbers), np.int64)
    for_rows(byte_rows, len(numbers), np.ascontiguousarray(numbers), out, wrong)
    if wrong.any():
        row, column = (int(i) for i in np.argwhere((numbers != 0) & (numbers != 1))[0])
        raise ValueError(
            f"{name} must hold only 0 and 1, but {name}[{row}, {column}] is {numbers[row, column]}"
        )
    return out


class Compiled(torch.autograd.Function):
    """Row losses by the compiled kernels, with their exact gradient."""

    @staticmethod
    def forward(  # type: ignore[override]
        ctx: Any,
        logits: Tensor,
        parameters: Tensor | None,
        loss: RowLoss,
        y_true: Tensor,
        known: Tensor | None,
        q: float | None,
    ) -> Tensor:
        """The loss of each row, (n,)."""
        array = logits.detach().numpy()
        value, by_score, by_parameter = loss.cores.run(
            scaled(array, np.full(len(array), 0.5, array.dtype), "input"),
            y_true.numpy(),
            None if known is None else known.numpy(),
            None if parameters is None else parameters.detach().double().numpy(),
            q,
        )
        ctx.loss, ctx.q = loss, q
        gradients = torch.from_numpy(by_score), torch.from_numpy(by_parameter)
        ctx.save_for_backward(logits, parameters, y_true, known, *gradients)
        return torch.from_numpy(np.asarray(value))

    @staticmethod
    def backward(ctx: Any, upstream: Tensor):  # type: ignore[override]
        """The kept gradient times what comes from above."""
        logits, parameters, y_true, known, by_score, by_parameter = ctx.saved_tensors
        if torch.is_grad_enabled():
            # Asked for a derivative of the gradient too (create_graph).
            again = ctx.loss.by_tensors(logits, parameters, y_true, known, ctx.q)
            wanted = [t for t in (logits, parameters) if t is not None and t.requires_grad]
            # (Potentials of a forest without edges are used by nothing.)
            made = iter(
                torch.autograd.grad(
                    again, wanted, upstream, create_graph=True, materialize_grads=True
                )
            )
            gradients = [
                next(made) if t is not None and t.requires_grad else None
                for t in (logits, parameters)
            ]
        else:
            factors = upstream.detach().numpy() / by_score.numpy().dtype.type(2)
            gradients = [torch.from_numpy(scaled(by_score.numpy(), factors)), None]
            if parameters is not None:
                gradients[1] = upstream.to(parameters.dtype) @ by_parameter.to(parameters.dtype)
        return *gradients, None, None, None, None
