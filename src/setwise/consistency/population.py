"""Measures of a whole population on known truth: their largest value, and who reaches it."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from setwise.consistency.naming import in_words, plain
from setwise.consistency.theorems import BY_KEY
from setwise.consistency.verdicts import Certificate
from setwise.decoders.population_rule import PopulationRule
from setwise.spaces.cube import Cube
from setwise.spaces.space import Array, Space
from setwise.surrogates import BinaryRelevance
from setwise.surrogates.binary_relevance import MARGINS
from setwise.surrogates.metro import costs_at
from setwise.surrogates.names import METRO
from setwise.targets.target import rates_mean, utility_quotient

# The inputs of the problems on which a theorem is tested, and entries decided in every way.
N_INPUTS, MOST_ENTRIES = 4, 12
# Rounds of costs and decisions.
ROUNDS = 20


def expected_counts(chance: Array, y_pred: Array, weight: Array | None = None) -> Array:
    """tp, fp, fn, tn of each label that decisions have in expectation, a share of all, (4, l, ...).

    ``chance`` (n, l) are the true marginals at the inputs, ``weight`` (n,) the inputs' mass;
    ``y_pred`` (n, l, ...) may be several decisions.
    """
    mass = np.full(len(chance), 1.0 / len(chance)) if weight is None else weight
    true, false = mass[:, None] * chance, mass[:, None] * (1.0 - chance)
    tp, fp = (np.einsum("nl,nl...->l...", part, y_pred) for part in (true, false))
    positives, negatives = (
        part.sum(axis=0).reshape(-1, *[1] * (tp.ndim - 1)) for part in (true, false)
    )
    return np.stack([tp, fp, positives - tp, negatives - fp])


def best_decisions(target: Any, chance: Array, weight: Array | None = None) -> Array:
    """The decisions with the largest measure of their expected counts, (n, l)."""
    rule = PopulationRule(target, "expected").fit(chance, None, weight)
    return np.asarray(rule.decode(chance), np.float64)


def certified(
    target: Any, surrogate: Any, space: Space | None, draws: int, seed: int
) -> Certificate:
    """The theorem that covers training for a population measure, tested on finite inputs.

    Refused for surrogates that sum the losses of label sets: the measure has none.
    """
    key, name, reason = _covering(target, surrogate)
    space = Cube(3) if space is None else space
    n_labels = min(space.n_labels, MOST_ENTRIES // N_INPUTS)
    rng, worst = np.random.default_rng(seed), 0.0
    every = np.array(list(product((0.0, 1.0), repeat=N_INPUTS * n_labels)))
    every = every.T.reshape(N_INPUTS, n_labels, -1)
    for _ in range(draws):
        chance = rng.beta(0.7, 1.2, (N_INPUTS, n_labels))
        # Of the G-mean thresholds are best where no input has more mass than another.
        even = rates_mean(target.of) == "geometric"
        weight = np.full(N_INPUTS, 0.25) if even else rng.dirichlet(np.ones(N_INPUTS))
        counts = np.maximum(expected_counts(chance, every, weight), 0.0)
        reached = best_decisions if key == "T" else _by_rounds
        own = expected_counts(chance, reached(target, chance, weight), weight)
        worst = max(worst, float(target.of_counts(counts).max() - target.of_counts(own)))
    theorem = BY_KEY[key]
    if worst > 1e-9:
        raise RuntimeError(f"this contradicts theorem {key}: a regret of {worst} for {target}")
    trained = surrogate if isinstance(surrogate, str) else plain(surrogate)
    question = {
        "target": plain(target), "surrogate": trained, "space": plain(space), "scores": "labelwise",
    }  # fmt: skip
    return Certificate(
        target=in_words(target), surrogate=name, space=in_words(space), scores="labelwise",
        tried=draws, seed=seed, question=question, theorem=key, statement=theorem.statement,
        source=theorem.source, proof=theorem.proof, reason=reason, gamma=None, worst_ratio=None,
        worst_regret=worst,
    )  # fmt: skip


def _covering(target: Any, surrogate: Any) -> tuple[str, str, str]:
    """The key of the theorem, the name of the surrogate, and why the theorem applies."""
    margin = "logistic" if surrogate == "binary_relevance" else getattr(surrogate, "margin", None)
    if isinstance(surrogate, str) and surrogate == METRO:
        if (why_not := rounds_may_fail(target)) is not None:
            raise ValueError(
                f"no theorem covers 'metro' for {target}: {why_not}; 'likelihood' and "
                f"'binary_relevance', cut at thresholds, are covered"
            )
        return "V", METRO, "logistic binary relevance is consistent for costs, and D is positive"
    if surrogate == "likelihood":
        why = "its marginals at the minimiser are the true ones, of true label sets in the space"
        return "T", "likelihood", f"{why}, and they are cut at thresholds"
    by_label = surrogate == "binary_relevance" or isinstance(surrogate, BinaryRelevance)
    costs = getattr(surrogate, "costs", None)
    free = costs is None or min(np.min(costs.miss), np.min(costs.false_alarm)) > 0.0
    if by_label and free and MARGINS[str(margin)].probability is not None:
        why = f"scores of the {margin} margin give the marginals, which are cut at thresholds"
        return (
            "T",
            f"binary relevance ({margin})" if margin != "logistic" else "binary relevance",
            why,
        )
    known = "'likelihood', 'binary_relevance' (with a margin that has probabilities) and 'metro'"
    raise ValueError(
        f"{target} judges all rows together, so there is no loss of a label set for {surrogate} to "
        f"be made of, and nothing is known of its scores; certify it for {known}"
    )


def rounds_may_fail(target: Any) -> str | None:
    """Why rounds of costs and decisions need not end at the best, or None where they do."""
    if rates_mean(target.of) == "geometric":
        return (
            "the G-mean is no quotient of the counts, and rounds of costs may end at other "
            "decisions than the best"
        )
    quotient = utility_quotient(target.of)
    if quotient is not None and not quotient.denominator[[0, 3, 4]].any():
        return "its denominator is 0 where nothing is predicted, and rounds of costs end there"
    return None


def _by_rounds(target: Any, chance: Array, weight: Array) -> Array:
    """Where rounds of costs and the decisions that minimise them end, from no decision at all."""
    decisions = np.zeros(chance.shape)
    for _ in range(ROUNDS):
        costs = costs_at(target, expected_counts(chance, decisions, weight))
        decisions = (chance * costs.miss > (1.0 - chance) * costs.false_alarm).astype(np.float64)
    return decisions
