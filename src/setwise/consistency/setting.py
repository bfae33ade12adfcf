"""A combination of target, surrogate, space and scores, and the distributions worst for it.

A `Setting` turns rows of probabilities p (n, M) of the M true label sets considered into expected
losses, least surrogate risks and predictions. The search draws distributions at random, then varies
the worst and keeps the best of their variations, for some rounds: towards the largest regret at
surrogate regret 0, or, where there is a bound, towards the largest ratio of regret to bound, over
distributions and scores. All of it follows from a seed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, NamedTuple

import numpy as np
from scipy.special import softmax

from setwise.consistency.conditional import Kind, Weights
from setwise.consistency.naming import (
    Choice,
    chosen_space,
    chosen_surrogate,
    in_words,
    loss_matrix,
    plain,
)
from setwise.consistency.optimum import Optimum, best_scores, least_risks
from setwise.consistency.verdicts import Gamma
from setwise.spaces.space import Array, Space, all_sets
from setwise.surrogates.names import DEFAULT_Q
from setwise.targets.measure import ROUNDING, find_rows
from setwise.targets.registry import get_target
from setwise.targets.target import Target, predicted_size
from setwise.validation import whole_number

# Weights, or expected losses, that differ by no more are tied.
TIE = 1e-10
# With at most this many labels, true label sets outside the space are considered too.
FEW_LABELS = 6
# Losses of a target that is code are written down up to this many.
MOST_LISTED = 4096
# Every true label set keeps this share of a uniform law, so that minimisers are finite.
FLOOR = 1e-3
CONCENTRATIONS = (0.1, 0.3, 1.0, 3.0)
STEPS = (1.0, 0.3, 0.1, 0.03)
# A prediction counts as wrong from this regret on.
WRONG = 1e-3
# Sets at least this much worse than the best are what the ascent tries to have predicted.
AIMED_AT = 2.0 * WRONG
# What a wrong prediction that ties with a right one is worth beside a clear one.
TIED = 0.1


@dataclass(frozen=True, eq=False)
class Setting:
    """A target, a surrogate, a space and its scores.

    ``sets`` (K, l) are those of the space, weighed by scores as ``scored`` says. ``truths`` (M, l)
    are the true label sets considered: those of the space, and for precision@k and recall@k, which
    judge size-k predictions of any truth, all label sets. ``losses`` (M, K) are the target's,
    ``stakes`` (M, m, K') what the surrogate's conditional risk sums up, over sets that scores weigh
    by ``weights``: those of the space, or present and absent for each label. The prediction is the
    most likely set; after a likelihood, the set of least expected loss.
    """

    target: Target
    choice: Choice
    space: Space
    kind: Kind
    sets: Array
    scored: Weights
    truths: Array
    losses: Array
    stakes: Array
    weights: Weights

    @classmethod
    def of(
        cls,
        target: Any,
        surrogate: Any,
        space: Space | None = None,
        scores: Kind = "labelwise",
        q: float = DEFAULT_Q,
        truths: Array | None = None,
    ) -> Setting:
        """From names or objects; without a space, a small one the target is at home on.

        ``truths`` are the true label sets to consider, in place of the usual ones; those of a
        likelihood are always the sets of the space.
        """
        target, choice = get_target(target), chosen_surrogate(surrogate, q)
        space = chosen_space(target, choice, space)
        target, weights = target.on(space), Weights.of(space, scores)
        scored, sets, labels = weights, space.enumerate(), space.n_labels
        kind = "joint" if space.is_joint else scores
        if choice.by_label and kind == "joint":
            raise ValueError(
                "binary relevance has one score for each label; use scores='labelwise'"
            )
        if choice.is_likelihood:
            truths = sets
        elif truths is None:
            every = predicted_size(target) is not None and labels <= FEW_LABELS
            truths = all_sets(labels) if every else sets
        losses = stakes = _unit_losses(target, truths, sets)
        if choice.target is not None:
            stakes = _unit_losses(choice.target.on(space), truths, sets)
            if np.array_equal(stakes, losses):
                choice = replace(choice, target=None)
        stakes = stakes[:, None]
        if choice.by_label:
            false_alarm, miss = label_costs(choice, labels)
            stakes = np.stack([(1.0 - truths) * false_alarm, truths * miss], axis=-1)
            apart = 0.5 if choice.margin == "logistic" else 1.0
            features = np.eye(labels)[:, None] * [[apart], [-apart]]
            weights = Weights(features, np.zeros((labels, 2)))
        if choice.is_likelihood:
            stakes = np.eye(len(truths))[:, None]
        elif choice.margin in (None, "logistic"):
            # Comp-sum losses sum up utilities: of a label what the other state would have cost.
            stakes = stakes[..., ::-1] if choice.by_label else 1.0 - stakes
        return cls(target, choice, space, kind, sets, scored, truths, losses, stakes, weights)

    def regrets(self, p: Array) -> Array:
        """Expected loss of each set above the least, (n, K)."""
        risks = p @ self.losses
        return risks - risks.min(axis=1, keepdims=True)

    def worth(self, p: Array) -> Array:
        """What the conditional risk needs to know of each set it sums over, (n, m, K')."""
        flat = p @ self.stakes.reshape(len(self.stakes), -1)
        # A sum of probabilities may end a rounding outside [0, 1].
        return np.clip(flat, 0.0, 1.0).reshape(len(p), *self.stakes.shape[1:])

    def value(self, p: Array, scores: Array) -> Array:
        """The conditional surrogate risk, (n,)."""
        return self.choice.risk.value(self.weights.at(scores), self.worth(p))

    def minimisers(self, p: Array) -> tuple[Array, Array]:
        """Scores of least surrogate risk and its value, (n, d) and (n,)."""
        scores, least = least_risks(self.choice.risk, self.weights, self.worth(p))
        refuse_infinite(np.column_stack([scores, least]), "minimiser", p)
        return scores, least

    def optimum(self, p: Array, seed: int = 0) -> Optimum:
        """The least surrogate risk of one distribution, with its certificate."""
        return best_scores(self.choice.risk, self.weights, self.worth(p[None])[0], seed)

    def shortfalls(self, scores: Array) -> Array:
        """How far each set is from being predicted, 0 if it is, (n, K)."""
        z = self.scored.at(scores)[:, 0]
        if self.choice.is_likelihood:
            expected = softmax(z, axis=1) @ self.losses
            return expected - expected.min(axis=1, keepdims=True)
        return z.max(axis=1, keepdims=True) - z

    def worst_predictions(self, p: Array, scores: Array) -> tuple[Array, Array]:
        """Of the sets tied for the prediction the worst, and its regret, (n,) and (n,)."""
        tied = self.shortfalls(scores) <= TIE * (1.0 + np.abs(scores).max(axis=1, keepdims=True))
        regrets = np.where(tied, self.regrets(p), -1.0)
        return regrets.argmax(axis=1), regrets.max(axis=1)

    def probabilities(self, sets: Array, probability: Array) -> Array:
        """Laws (..., m) over listed sets as laws over the truths considered, (..., M)."""
        place = find_rows(self.truths, sets)
        lost = (place < 0) & (probability > 0.0).reshape(-1, len(sets)).any(axis=0)
        if lost.any():
            raise ValueError(
                f"the distribution gives {sets[int(np.argmax(lost))].tolist()} a probability, "
                f"which is not among the {len(self.truths)} true label sets of {self.choice} for "
                f"{self.target} on {self.space}"
            )
        p = np.zeros((*probability.shape[:-1], len(self.truths)))
        p[..., place[place >= 0]] = probability[..., place >= 0]
        return p

    def asked(self) -> dict[str, Any]:
        """What is asked: in names, and as plain values with all that the names leave out."""
        target = plain(self.target)
        is_code = not isinstance(target, dict)
        target = {"type": type(self.target).__name__} if is_code else target
        if is_code or any(callable(getattr(self.target, name, None)) for name in target):
            # Code has no parameters; what it says of these label sets has.
            few = self.losses.size <= MOST_LISTED
            digest = {"losses_sha256": sha256(self.losses.tobytes()).hexdigest()}
            target |= {"losses": self.losses.tolist()} if few else digest
        question = {
            "target": target, "surrogate": self.choice.parameters, "space": plain(self.space),
            "scores": self.kind,
        }  # fmt: skip
        return {
            "target": in_words(self.target), "surrogate": str(self.choice),
            "space": in_words(self.space), "scores": self.kind, "question": question,
        }  # fmt: skip


def label_costs(choice: Choice, n_labels: int) -> Array:
    """What a false alarm and a miss of each label cost, at most 1, (2, l)."""
    if choice.costs is None:
        return np.ones((2, n_labels))
    costs = np.stack(choice.costs.costs(n_labels)[::-1])
    return costs / costs.max()


def _unit_losses(target: Target, truths: Array, sets: Array) -> Array:
    """`loss_matrix`, refused unless its entries lie in [0, 1], as every theorem needs."""
    losses = loss_matrix(target, truths, sets)
    inside = (losses >= -ROUNDING) & (losses <= 1.0 + ROUNDING)
    if not inside.all():
        row, column = (int(i) for i in np.argwhere(~inside)[0])
        raise ValueError(
            f"the losses of a target must lie in [0, 1], but {target} has the loss "
            f"{losses[row, column]:g} for predicting {sets[column].tolist()} where "
            f"{truths[row].tolist()} is true"
        )
    return losses


# -------------------------------------------------------------------------------------- search


@dataclass(frozen=True)
class Effort:
    """How hard to try: distributions drawn, those kept, variations of each, rounds.

    Examples
    --------
    >>> from setwise.consistency import certify
    >>> certify("f1", "logistic", effort=Effort(draws=200, kept=4, rounds=4)).verdict
    'counterexample'
    """

    draws: int = 2000
    kept: int = 24
    variations: int = 8
    rounds: int = 24

    def __post_init__(self):
        for name in ("draws", "kept", "variations", "rounds"):
            whole_number(getattr(self, name), name, 0 if name == "rounds" else 1)


class Trials(NamedTuple):
    """Distributions and scores that were tried, the set predicted, and the regrets of both losses.

    ``paid`` is the regret of the surrogate, ``merit`` what the search raises.
    """

    p: Array
    scores: Array
    prediction: Array
    regret: Array
    paid: Array
    merit: Array

    def best(self, count: int) -> Trials:
        order = np.argsort(-self.merit, kind="stable")[:count]
        return Trials(*(part[order] for part in self))


def draw(n_rows: int, n_sets: int, rng: np.random.Generator) -> Array:
    """Probabilities from symmetric Dirichlet laws, sparse to even, all above 0, (n, m)."""
    parts = [
        rng.dirichlet(np.full(n_sets, concentration), size=-(-n_rows // len(CONCENTRATIONS)))
        for concentration in CONCENTRATIONS
    ]
    return _floored(rng.permutation(np.concatenate(parts))[:n_rows])


def worst_regret(setting: Setting, effort: Effort, seed: int) -> tuple[Trials, int]:
    """Distributions of the largest regret at surrogate regret 0, and how many were tried.

    Where no prediction is wrong yet, the ascent brings a wrong set nearer to being predicted.
    """
    rng = np.random.default_rng(seed)
    first = _judged(setting, draw(effort.draws, len(setting.truths), rng))
    return _ascent(first, effort, lambda parents: _judged(setting, _varied(parents.p, rng)))


def worst_ratio(setting: Setting, gamma: Gamma, effort: Effort, seed: int) -> tuple[Trials, int]:
    """Those of the largest ratio (the merit) of regret to gamma(surrogate regret).

    gamma is on the paper's scale. It begins with the draws of `sampled_regrets`.
    """
    rng = np.random.default_rng(seed)

    def rated(rows: Trials) -> Trials:
        # Smaller regrets are met by surrogate regrets that are rounding.
        bounds = np.maximum(gamma(rows.paid), 1e-300)
        merit = np.where(rows.regret > WRONG, rows.regret / bounds, 0.0)
        refuse_infinite(merit, "ratio of regret to bound", rows.p)
        return rows._replace(merit=merit)

    def varied(parents: Trials) -> Trials:
        step = rng.choice(STEPS, (len(parents.p), 1))
        scores = parents.scores + step * rng.normal(size=parents.scores.shape)
        return rated(_aimed(setting, _varied(parents.p, rng), scores, parents.prediction))

    return _ascent(rated(_sampled(setting, effort.draws, rng)), effort, varied)


def sampled_regrets(setting: Setting, n_rows: int, seed: int) -> tuple[Array, Array]:
    """Surrogate regret (paper's scale) and regret of random distributions and scores, (n,) each.

    Scores are the minimiser's, moved at random and then to where a set chosen at random just
    becomes the prediction: there the regret is largest for its surrogate regret.
    """
    rows = _sampled(setting, n_rows, np.random.default_rng(seed))
    return rows.paid, rows.regret


def _ascent(rows: Trials, effort: Effort, varied: Callable[[Trials], Trials]) -> tuple[Trials, int]:
    """The best rows after so many rounds of variations of the best, and how many were tried."""
    tried = len(rows.p)
    for _ in range(effort.rounds):
        rows = rows.best(effort.kept)
        children = varied(Trials(*(np.repeat(part, effort.variations, axis=0) for part in rows)))
        tried += len(children.p)
        rows = Trials(*(np.concatenate(pair) for pair in zip(rows, children, strict=True)))
    return rows.best(effort.kept), tried


def _floored(p: Array) -> Array:
    """Mixed with a little of the uniform law."""
    return (1.0 - FLOOR) * p + FLOOR / p.shape[1]


def _varied(p: Array, rng: np.random.Generator) -> Array:
    """Log-probabilities moved at random, some of them or all."""
    step = rng.choice(STEPS, (len(p), 1))
    some = rng.random(p.shape) < rng.choice((0.3, 1.0), (len(p), 1))
    return _floored(softmax(np.log(p) + step * some * rng.normal(size=p.shape), axis=1))


def _judged(setting: Setting, p: Array) -> Trials:
    """The merit is the regret, or how near a wrong set is to being predicted.

    A wrong prediction by a clear margin over all sets of less than half its regret is worth more
    than one that is all but tied; the margin is in units of z, or of expected loss.
    """
    scores, _ = setting.minimisers(p)
    prediction, regret = setting.worst_predictions(p, scores)
    regrets, shortfalls = setting.regrets(p), setting.shortfalls(scores)
    nearest = np.where(regrets >= AIMED_AT, shortfalls, 1e9).min(axis=1)
    margin = np.where(regrets <= 0.5 * regret[:, None], shortfalls, np.inf).min(axis=1)
    clear = np.minimum(margin / (0.01 if setting.choice.is_likelihood else 0.1), 1.0)
    merit = np.where(regret > WRONG, regret * (TIED + (1.0 - TIED) * clear), -nearest)
    return Trials(p, scores, prediction, regret, np.zeros(len(p)), merit)


def refuse_infinite(values: Array, name: str, p: Array) -> None:
    """Raise for NaN or infinity, which compare as nothing: a search must not pass over them."""
    bad = np.flatnonzero(~np.isfinite(values).reshape(len(values), -1).all(axis=1))
    if len(bad):
        raise RuntimeError(
            f"the search met a {name} that is not finite, {values[bad[0]]}, at the probabilities "
            f"{p[bad[0]].tolist()} ({len(bad)} such distributions)"
        )


def _sampled(setting: Setting, n_rows: int, rng: np.random.Generator) -> Trials:
    p = draw(n_rows, len(setting.truths), rng)
    scores = np.clip(setting.minimisers(p)[0], -8.0, 8.0)
    scores = scores + rng.choice((0.0, 0.1, 1.0), (n_rows, 1)) * rng.normal(size=scores.shape)
    return _aimed(setting, p, scores, rng.integers(len(setting.sets), size=n_rows))


def _aimed(setting: Setting, p: Array, scores: Array, aim: Array) -> Trials:
    """Trials of scores moved until they predict the sets aimed at; a likelihood's stay."""
    if setting.choice.is_likelihood:
        prediction, regret = setting.worst_predictions(p, scores)
    else:
        scores = _brought_to(setting, scores, aim)
        prediction, regret = aim, setting.regrets(p)[np.arange(len(p)), aim]
    value = setting.value(p, scores)
    # A risk beyond floating point is infinite, and so is what it allows.
    refuse_infinite(np.where(value == np.inf, 0.0, value), "surrogate risk", p)
    paid = np.maximum(value - setting.minimisers(p)[1], 0.0)
    return Trials(p, scores, prediction, regret, paid, np.zeros(len(p)))


def _brought_to(setting: Setting, scores: Array, aim: Array) -> Array:
    """Scores moved along the features of the set aimed at until it just ties for the heaviest."""
    features, rows = setting.scored.flat, np.arange(len(scores))
    z = setting.scored.at(scores)[:, 0]
    behind = z - z[rows, aim][:, None]
    rate = (features[aim] * features[aim]).sum(axis=1)[:, None] - features[aim] @ features.T
    rate[rows, aim] = np.inf
    behind[rows, aim] = 0.0
    return scores + (behind / rate).max(axis=1)[:, None] * features[aim]
