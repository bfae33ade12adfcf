"""The log-partition of each space in torch operations, from a weight for each state of each label.

``states`` (..., l, 2) are the logarithms of what a label multiplies a set's weight by: [..., 0]
when it is not in the set, [..., 1] when it is; -inf makes a state impossible. For scores h they are
-h and h, but any number may be taken off both. Everything else follows: a power t^D of a sum D over
labels changes the states (`setwise.nn.expected`), a given set makes all others impossible.

Beside log W each sum carries a mean E[N] of what labels add to a number N (the expectation
semiring): a product adds both, a sum of weights averages N by their shares. All terms have one
sign, so that small means stay accurate.

A space is known here by its entry in `PARTITIONS`, and by its class nowhere else in this package.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import logsigmoid, pad

from setwise.spaces import Cube, Forest, Sized, Space
from setwise.taxonomy import forest_levels


def in_transform() -> bool:
    """Whether `torch.func` is at work. (It offers no public way to ask.)"""
    return torch._C._are_functorch_transforms_active()


def is_traced() -> bool:
    """Whether operations are being compiled or transformed, and must be seen one by one."""
    return torch.compiler.is_compiling() or in_transform()


class Constant:
    """An array as a tensor: copied to each device once, and kept there in each floating type.

    Whole numbers and truth values keep their type.
    """

    def __init__(self, values: Iterable | np.ndarray):
        # A copy that torch owns; see `LearnableSpace`.
        self._values = torch.tensor(np.asarray(values))
        self._kept: dict[tuple[torch.device, torch.dtype], Tensor] = {}

    def beside(self, other: Tensor) -> Tensor:
        """The array on the device and in the floating type of another tensor."""
        key = other.device, other.dtype
        if key in self._kept:
            return self._kept[key]
        dtype = other.dtype if self._values.is_floating_point() else self._values.dtype
        if torch.compiler.is_compiling():
            copy = self._values.to(dtype).to(other.device)
        else:
            # A copy made inside a transform or in inference mode could not be used outside of it.
            outside = torch._C._DisableFuncTorch()
            with torch.inference_mode(False):
                # The type first: not every device has float64.
                copy = self._values.to(dtype).to(other.device)
            del outside
        # While a compiler traces, tensors may be placeholders, which are not kept.
        if type(copy) is Tensor and not (torch.compiler.is_compiling() and in_transform()):
            self._kept[key] = copy
        return copy


def softplus(values: Tensor) -> Tensor:
    """log(1 + e^values) without the cut-off of torch's own."""
    return -logsigmoid(-values)


def negative(values: Tensor) -> Tensor:
    """-|values|, with derivatives that make even functions of it smooth at 0."""
    return torch.where(values > 0, -values, values)


class Sum(NamedTuple):
    """log of a sum of weights, and the mean of N under them (None where nobody asks)."""

    log: Tensor
    mean: Tensor | None = None

    def after(self, change: Tensor | None) -> Sum:
        """The same means under changed weights."""
        return self if change is None else Sum(self.log + change, self.mean)

    def map(self, change: Callable[..., Tensor], *others: Sum) -> Sum:
        """The same change of the logarithms and of the means, together with those of others."""
        log = change(self.log, *(other.log for other in others))
        if self.mean is None:
            return Sum(log)
        return Sum(log, change(self.mean, *(other.mean for other in others)))


def log_sum(terms: Sum, dim: int) -> Sum:
    """The sum along a dimension; -inf, with mean 0, where every term is.

    Torch's own ``logsumexp`` has derivatives that are not a number where every term is -inf; here
    they are 0, of any order.
    """
    high = terms.log.amax(dim, keepdim=True).detach()
    high = torch.where(high > -torch.inf, high, 0.0)
    share = torch.exp(terms.log - high)
    total = share.sum(dim)
    possible = total > 0
    total = torch.where(possible, total, 1.0)
    log = torch.where(possible, total.log() + high.squeeze(dim), -torch.inf)
    return Sum(log, None if terms.mean is None else (share * terms.mean).sum(dim) / total)


def log_polynomial(factors: Sum, largest: int) -> Sum:
    """The coefficients of prod_j (e^off_j + e^on_j t) up to t^largest, (..., largest + 1).

    Neighbours are multiplied until one polynomial is left: log2(l) steps, at most O(l^2) work.
    """
    while factors.log.shape[-2] > 1:
        if factors.log.shape[-2] % 2:
            one = torch.zeros_like(factors.log[..., :1, :])
            never = pad(one[..., :1], (0, one.shape[-1] - 1), value=-torch.inf)
            factors = factors.map(lambda x, y: torch.cat([x, y], -2), Sum(never, one))
        even, odd = (factors.map(lambda x, k=k: x[..., k::2, :]) for k in (0, 1))
        factors = _multiplied(even, odd, largest)
    return factors.map(lambda x: x[..., 0, : largest + 1])


def _multiplied(a: Sum, b: Sum, largest: int) -> Sum:
    """The product of two polynomials of the same degree, up to t^largest."""
    width = a.log.shape[-1]
    terms = min(2 * width - 1, largest + 1)

    def pairs(x: Tensor, y: Tensor) -> Tensor:
        # Window c of the padded y holds y_(c - width + 1) to y_c, which meet x_(width - 1) to x_0.
        nothing = -torch.inf if x is a.log else 0.0
        windows = pad(y, (width - 1, width - 1), value=nothing).unfold(-1, width, 1)
        return x.flip(-1)[..., None, :] + windows[..., :terms, :]

    return log_sum(a.map(pairs, b), -1)


class Partition(Protocol):
    """Sums over the label sets of a space.

    States are normalised: the two weights of a label add up to 1. ``parameters`` (p,) are the
    space's, -inf where excluded.
    """

    def __call__(self, states: Sum, parameters: Tensor, change: Tensor | None = None) -> Sum:
        """A and E[N] (...,) from normalised states (..., l, 2), after a change of them."""
        ...

    def size_bias(self, parameters: Tensor) -> Tensor | None:
        """g of a set of each size, if it depends on the size alone."""
        ...


class CubePartition:
    """Every set, labels independent: A is a sum over labels."""

    def __init__(self, space: Cube):
        self._no_bias = Constant(np.zeros(space.n_labels + 1))

    def __call__(self, states: Sum, parameters: Tensor, change: Tensor | None = None) -> Sum:
        off, on = states.after(change).log.unbind(-1)
        odds = on - off
        log = torch.zeros_like(odds)
        if change is not None:
            # Near 1, the log of the two weights comes from what the change takes off 1; elsewhere
            # from the larger weight and the odds, which are finite with all their derivatives.
            gap = (states.log.exp() * torch.expm1(change)).sum(-1)
            near = gap > -0.5
            far = torch.where(odds >= 0, on, off) + softplus(negative(odds))
            log = torch.where(near, torch.log1p(torch.where(near, gap, 0.0)), far)
        if states.mean is None:
            return Sum(log.sum(-1))
        off, on = states.mean.unbind(-1)
        return Sum(log.sum(-1), (on * torch.sigmoid(odds) + off * torch.sigmoid(-odds)).sum(-1))

    def size_bias(self, parameters: Tensor) -> Tensor | None:
        return self._no_bias.beside(parameters)


class SizedPartition:
    """A bias for each size: symmetric polynomials of the labels' weights, O(l^2)."""

    def __init__(self, space: Sized):
        self._largest = int(space.sizes[-1])

    def __call__(self, states: Sum, parameters: Tensor, change: Tensor | None = None) -> Sum:
        states = states.after(change)
        sizes = log_polynomial(states, self._largest)
        return log_sum(Sum(sizes.log + self.size_bias(parameters), sizes.mean), -1)

    def size_bias(self, parameters: Tensor) -> Tensor:
        return parameters[: self._largest + 1]


class ForestPartition:
    """Potentials on edges: messages from the deepest labels to the roots, level by level, O(l)."""

    def __init__(self, space: Forest):
        depth = forest_levels(space.parents)
        levels = [np.flatnonzero(depth == d) for d in range(int(depth.max()) + 1)]
        place = np.zeros(space.n_labels, dtype=np.int64)
        for labels in levels:
            place[labels] = np.arange(len(labels))
        self._labels = [Constant(labels) for labels in levels]
        # Where in the level above the parents of a level stand.
        self._above = [Constant(place[space.parents[labels]]) for labels in levels]

    def __call__(self, states: Sum, parameters: Tensor, change: Tensor | None = None) -> Sum:
        states = states.after(change)
        potentials = parameters.reshape(-1, 2, 2)
        labels = [level.beside(parameters) for level in self._labels]
        up = states.map(lambda x: x[..., labels[-1], :])
        for depth in range(len(labels) - 1, 0, -1):
            # A message is a sum over the label's own state, for each state of its parent.
            up = up.map(lambda x: x[..., None])
            message = log_sum(Sum(up.log + potentials[labels[depth]], up.mean), -2)
            level, above = labels[depth - 1], self._above[depth].beside(parameters)
            up = states.map(
                lambda x, y, level=level, above=above: x[..., level, :].index_add(-2, above, y),
                message,
            )
        return log_sum(up, -1).map(lambda x: x.sum(-1))

    def size_bias(self, parameters: Tensor) -> Tensor | None:
        return None


# What makes the log-partition of a space, by its class. A space without an entry is listed.
PARTITIONS: dict[type, Callable[..., Partition]] = {
    Cube: CubePartition,
    Sized: SizedPartition,
    Forest: ForestPartition,
}


def partition_of(space: Space) -> Partition | None:
    """The log-partition of a space, None where it has no entry."""
    kinds = (kind for kind in type(space).__mro__ if kind in PARTITIONS)
    kind = next(kinds, None)
    return None if kind is None else PARTITIONS[kind](space)
