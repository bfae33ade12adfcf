"""Weights of a mixture, and temperatures of its members, by the log-likelihood of rows held out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize, minimize_scalar

from setwise.distributions import Independent, Mixture
from setwise.estimators.choice import frequency

Array = NDArray[np.float64]

# A weight below this is 0: the member brings nothing.
NOTHING = 1e-6
# Where the derivative of the log-likelihood by each weight shows the optimum, and most steps to it;
# and how far a step may go on the way to a weight of 0.
OPTIMAL, MOST_STEPS, ON_THE_WAY = 1e-10, 1_000, 0.9
# Labels whose independence is thought of.
MOST_LABELS = 512
# A law is flattened or sharpened within these powers, if that gains so many nats a row.
COOLEST, HOTTEST, WORTHWHILE = 0.25, 4.0, 1e-3
# Entries of rows by label sets, or labels, that a temperature is found by.
MOST_ENTRIES = 2**22


def mixture_weights(log_probability: Array, row_weights: Array) -> Array:
    """Weights (m,) of members that maximise the mean log-likelihood of their mixture.

    ``log_probability`` (n, m) is that of the true label set of each row by each member; a row that
    no member gives a probability says nothing of the weights. The problem is concave. By scipy's
    SLSQP, and to the last digits by Newton's steps or, where these do not gain, EM's (each weight
    times the mean share of its member in what the rows have).

    Examples
    --------
    >>> mixture_weights(np.log([[0.9, 0.1], [0.2, 0.8], [0.8, 0.2]]), np.ones(3)).round(3)
    array([0.816, 0.184])
    """
    n_members = log_probability.shape[1]
    counted = np.isfinite(log_probability).any(axis=1) & (row_weights > 0)
    equal = np.full(n_members, 1.0 / n_members)
    if n_members == 1 or not counted.any():
        return equal
    logs = log_probability[counted]
    chance = np.exp(logs - logs.max(axis=1, keepdims=True))
    share = row_weights[counted] / row_weights[counted].sum()

    def loss(weights: Array) -> tuple[float, Array]:
        mixed = np.maximum(chance @ weights, 1e-300)
        return -float(share @ np.log(mixed)), -(share / mixed) @ chance

    found = minimize(
        loss, equal, jac=True, method="SLSQP", bounds=[(0.0, 1.0)] * n_members,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1.0, "jac": np.ones_like},
        options={"ftol": 1e-15, "maxiter": 200},
    )  # fmt: skip
    weights = np.maximum(found.x, 0.0) / np.maximum(found.x, 0.0).sum()
    if not loss(weights)[0] <= loss(equal)[0]:
        weights = equal
    # What is 0 stays 0 in EM; a little of what would gain by more weight is put back.
    gains = -loss(weights)[1]
    weights = np.where((weights < NOTHING) & (gains <= 1.0), 0.0, np.maximum(weights, NOTHING))
    weights /= weights.sum()
    for _ in range(MOST_STEPS):
        ratio = -loss(weights)[1]
        if np.abs(np.where(weights > 0.0, ratio - 1.0, 0.0)).max() <= OPTIMAL:
            break
        tried = newton_step(chance, share, weights)
        if not loss(tried)[0] < loss(weights)[0]:
            tried = weights * ratio
        weights = tried / tried.sum()
    weights = np.where(weights < NOTHING, 0.0, weights)
    return weights / weights.sum()


def newton_step(chance: Array, share: Array, weights: Array) -> Array:
    """Newton's step from weights whose sum is 1 to others; what is 0 stays 0, and no other is."""
    used = np.flatnonzero(weights)
    own = chance[:, used] / np.maximum(chance @ weights, 1e-300)[:, None]
    ones = np.ones((len(used), 1))
    system = np.block([[(own * share[:, None]).T @ own, ones], [ones.T, np.zeros((1, 1))]])
    move = np.linalg.lstsq(system, np.append(share @ own, 0.0), rcond=None)[0][:-1]
    falls = move < 0.0
    furthest = np.min(weights[used][falls] / -move[falls], initial=np.inf)
    moved = weights.copy()
    moved[used] += min(1.0, ON_THE_WAY * furthest) * move
    return moved


class Contributions(NamedTuple):
    """What members bring: log P of the true sets (n, m), weights of the rows, and log-losses.

    ``alone`` (m,) are those of each member, ``without`` those of the best mixture of the others.
    """

    logs: Array
    row_weights: Array
    alone: Array
    without: list[float | None]

    def log_loss(self, weights: Array) -> float:
        """The mean log-loss of a mixture."""
        return mixed_log_loss(self.logs, self.row_weights, weights)


def contributions(logs: Array, row_weights: Array) -> Contributions:
    """What each member brings to a mixture, by log P of the true sets by each, (n, m)."""
    members, without = range(logs.shape[1]), []
    alone = [mixed_log_loss(logs[:, [m]], row_weights, np.ones(1)) for m in members]
    for m in members:
        others = np.delete(logs, m, axis=1)
        weights = mixture_weights(others, row_weights) if others.shape[1] else None
        without.append(None if weights is None else mixed_log_loss(others, row_weights, weights))
    return Contributions(logs, row_weights, np.array(alone), without)


def loosened(law: Any) -> Independent | None:
    """The labels of a law that lists its sets, as though they were independent of each other.

    So sets that are not listed have a probability too. None for a law that is no list, which gives
    them one anyway; and for very many labels, whose sizes would take long.
    """
    first = law[:1]
    is_list = first.ranked() is None and first.listed() is not None
    return Independent(law.marginals()) if is_list and law.n_labels <= MOST_LABELS else None


def log_probability(folds: list[Any], sets: list[Any]) -> Array:
    """Log P of the true sets by laws of several folds, (n,)."""
    return np.concatenate([law.log_probability(y) for law, y in zip(folds, sets, strict=True)])


def log_probabilities(folds: list[Any], sets: list[Any], may_loosen: bool) -> tuple[Array, Array]:
    """The same of laws as they are, and loosened; -inf by those that are not to be."""
    loose = [loosened(law) if may_loosen else None for law in folds]
    said = [
        np.full(len(y), -np.inf) if law is None else law.log_probability(y)
        for law, y in zip(loose, sets, strict=True)
    ]
    return log_probability(folds, sets), np.concatenate(said)


def smoothed(logs: Array, row_weights: Array, finite: Array) -> tuple[Array, Array]:
    """How much of each member is best loosened, (m,), and log P of the true sets then, (m, n).

    By log P as they are and loosened, (m, 2, n), as they were told and made ``finite``.
    """
    may = np.isfinite(logs[:, 1]).any(axis=1)
    found = [mixture_weights(own.T, row_weights)[1] for own in finite]
    loose = np.where(may, found, 0.0)
    with np.errstate(divide="ignore"):
        shares = np.log(np.stack([1.0 - loose, loose], axis=1))
    return loose, np.logaddexp.reduce(finite + shares[:, :, None], axis=1)


def mixed(laws: Sequence[Any], weights: Array, loose: Array) -> Mixture:
    """The mixture of laws in which a share ``loose`` of each weight is that of its loosened law.

    Marginals are those of the mixture of the laws as they are.
    """
    parts = list(zip(weights * (1.0 - loose), laws, strict=True))
    shares = zip(weights * loose, laws, strict=True)
    parts += [(share, Independent(law.marginals())) for share, law in shares if share > 0.0]
    parts = [(share, law) for share, law in parts if share > 0.0]
    return Mixture([law for _, law in parts], [share for share, _ in parts])


def mixed_log_loss(logs: Array, row_weights: Array, weights: Array) -> float:
    """The mean over rows of -log sum_m weights_m exp(logs_m), for logs (n, m)."""
    with np.errstate(divide="ignore"):
        mixed = np.logaddexp.reduce(logs + np.log(weights), axis=1)
    return -float(np.average(mixed, weights=row_weights))


def backed(logs: Any, known: Any, row_weights: Array, sets: Any) -> Array:
    """log P of the true sets (n,) by each of several laws, none of them impossible, (..., n).

    As though each law had seen one row more, of independent labels as frequent as they are in the
    ``known`` sets: P = (n p + p_0) / (n + 1). It is the same for all of them, so a mixture of what
    comes of it is what comes of the mixture.
    """
    n_rows, often = len(known), frequency(known, row_weights)
    base = Independent(np.broadcast_to(often, sets.shape)).log_probability(sets)
    own = np.asarray(logs) + np.log(n_rows / (n_rows + 1.0))
    return np.logaddexp(own, base - np.log(n_rows + 1.0))


def temperature(folds: list[Any], sets: list[Any], row_weights: list[Array]) -> float:
    """The power of the members' laws, scaled to add up to 1, that is likeliest; 1 if none gains.

    Of very many rows by listed sets, a part is looked at.
    """
    step = 1 + sum(len(law) * _width(law) for law in folds) // MOST_ENTRIES
    folds = [law[::step] for law in folds]
    sets, row_weights = [y[::step] for y in sets], [weights[::step] for weights in row_weights]

    def loss(log_power: float) -> float:
        power = float(np.exp(log_power))
        found = log_probability([law.tempered(power) for law in folds], sets)
        weights = np.concatenate(row_weights)
        counted = np.isfinite(found) & (weights > 0.0)
        if not counted.any():
            return 0.0
        return -float(np.average(found[counted], weights=weights[counted]))

    if any(law.tempered(1.0) is None for law in folds):
        return 1.0
    bounds = (np.log(COOLEST), np.log(HOTTEST))
    found: Any = minimize_scalar(loss, bounds=bounds, method="bounded", options={"xatol": 0.01})
    return float(np.exp(found.x)) if loss(0.0) - found.fun > WORTHWHILE else 1.0


def _width(law: Any) -> int:
    """Numbers that a row of a law stands for: a list has one for each set."""
    listed = law.sets if hasattr(law, "sets") else getattr(law, "space", None)
    return max(law.n_labels, len(getattr(listed, "parameters", () if listed is None else listed)))
