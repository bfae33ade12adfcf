"""Is a surrogate consistent for a target? A theorem, a counterexample, or neither."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from setwise.consistency.conditional import Kind
from setwise.consistency.enumeration import SLACK, Enumeration
from setwise.consistency.naming import in_words
from setwise.consistency.optimum import Optimum
from setwise.consistency.search import (
    AIMED_AT,
    WRONG,
    Effort,
    Worst,
    refuse_not_finite,
    worst_ratio,
    worst_regret,
)
from setwise.consistency.setting import Distribution, Setting, as_distribution
from setwise.consistency.theorems import Coverage, covering
from setwise.consistency.verdicts import Certificate, Counterexample, Undecided, Verdict
from setwise.spaces.space import Array, Space
from setwise.surrogates.names import DEFAULT_Q
from setwise.validation import whole_number

# A counterexample's scores have at most this surrogate regret.
ZERO = 1e-8
# At a tie the scores shown are moved by this much towards the set they are to predict.
NUDGE = 1e-10
# Without a theorem and without a find, the search is repeated with this many times the draws.
HARDER = 4
# How many of the worst distributions are looked at.
CANDIDATES = 8
# A ratio of regret to bound may exceed 1 by rounding.
ROUNDING = 1e-6
# Gaps and surrogate regrets up to this are the rounding of sums.
ROUNDED = 1e-14
# How scores become a prediction: in general, and after a likelihood.
DECODERS = ("most likely set", "set of least expected loss")
METHODS = {
    "closed form": "closed form",
    "duality": "duality gap {gap}",
    "linear program": "linear program, duality gap {gap}",
    "vertices": "all vertices compared",
    "branch and bound": "branch and bound, gap {gap}",
    "multistart": "best of many descents; not convex, so not certain",
}


def certify(
    target: Any,
    surrogate: Any,
    space: Space | None = None,
    scores: Kind = "labelwise",
    *,
    q: float = DEFAULT_Q,
    effort: Effort | None = None,
    seed: int = 0,
) -> Verdict:
    """Search for a distribution that shows a surrogate inconsistent; name the theorem if there is.

    Parameters
    ----------
    target : Target or str
        What a prediction is judged by.
    surrogate : str or Surrogate
        A name of `SetClassifier`, or an object.
    space : Space, optional
        A small space of label sets. By default three labels, all sets; for precision@k and recall@k
        the sets of k of k + 2 labels, for tree distance the closed sets.
    scores : {"labelwise", "joint"}, default "labelwise"
        A score for each label, or for each label set.
    q : float, default 0.7
        Member of the generalised cross-entropy by name.
    effort : Effort, optional
        How hard to try.
    seed : int, default 0
        The answer follows from it.

    Returns
    -------
    Certificate
        If a theorem covers the combination; the search is then a test of it.
    Counterexample
        If a distribution was found, and confirmed by `enumeration`.
    Undecided
        If there is neither.

    Examples
    --------
    >>> from setwise.spaces import Cube
    >>> found = certify("subset", "logistic", Cube(2))
    >>> found.verdict, found.regret > 0.05
    ('counterexample', True)
    >>> certify("hamming", "logistic", Cube(2)).verdict
    'certificate'
    """
    setting, seed = Setting.of(target, surrogate, space, scores, q), whole_number(seed, "seed", 0)
    coverage = covering(setting.target, setting.choice, setting.space, setting.scored.kind)
    if effort is not None and not isinstance(effort, Effort):
        raise ValueError(f"effort must be an Effort, such as Effort(draws=500), not {effort!r}")
    effort = effort or Effort()
    worst = worst_regret(setting, effort, seed)
    found = _counterexample_near(setting, worst, seed) if worst.value > WRONG else None
    if coverage is not None:
        if found is not None:
            raise RuntimeError(f"this contradicts theorem {coverage.theorem.key}:\n{found}")
        return _certificate(setting, coverage, worst, effort, seed)
    if found is None:
        # More of everything, and much more where a distribution costs next to nothing.
        draws = HARDER * effort.draws * (25 if setting.choice.by_label else 1)
        more = Effort(draws, 2 * effort.kept, effort.variations, 2 * effort.rounds)
        harder = worst_regret(setting, more, seed + 1)
        worst = replace(harder, tried=worst.tried + harder.tried)
        found = _counterexample_near(setting, worst, seed) if worst.value > WRONG else None
    if found is not None:
        return found
    shortfalls = setting.shortfalls(worst.scores[None])[0]
    near = shortfalls[setting.regrets(worst.probability[None])[0] >= AIMED_AT]
    return Undecided(
        **_names(setting), tried=worst.tried, worst_regret=max(0.0, worst.value),
        nearest=float(near.min()) if len(near) else None, seed=seed,
    )  # fmt: skip


def examine(
    target: Any,
    surrogate: Any,
    distribution: Distribution | Any,
    space: Space | None = None,
    scores: Kind = "labelwise",
    *,
    q: float = DEFAULT_Q,
    seed: int = 0,
) -> Counterexample | None:
    """What the minimiser predicts for one distribution: a counterexample, or None if it is right.

    Examples
    --------
    >>> from setwise.spaces import Cube
    >>> found = examine("subset", "logistic", [0.3, 0.3, 0.0, 0.4], Cube(2))
    >>> found.prediction, found.bayes, round(found.regret, 4)
    ((0, 1), (1, 1), 0.1)
    """
    setting = Setting.of(target, surrogate, space, scores, q)
    truth = as_distribution(distribution, setting.space)
    setting = Setting.of(target, surrogate, setting.space, scores, q, truth.sets)
    p = setting.probabilities(truth.sets, truth.probability)
    shown = _shown(setting, p, seed)
    return None if shown is None else _confirmed(setting, p, shown, 1, seed)


class _Shown(NamedTuple):
    """Scores of all but no surrogate regret, and the wrong set they predict."""

    optimum: Optimum
    scores: Array
    prediction: int
    surrogate_regret: float
    is_tied: bool


def _shown(setting: Setting, p: Array, seed: int) -> _Shown | None:
    """Scores near a minimiser that predict a wrong set, without a tie; None if there are none."""
    optimum = setting.optimum(p, seed)
    refuse_not_finite(np.append(optimum.scores, optimum.value)[None], "minimiser", p[None])
    minimisers = np.array([optimum.scores, *optimum.others])
    every = np.tile(p, (len(minimisers), 1))
    places, regrets = setting.worst_predictions(every, minimisers)
    best = int(np.argmax(regrets))
    place, scores = int(places[best]), minimisers[best]
    if regrets[best] <= WRONG:
        return None
    shortfalls = np.delete(setting.shortfalls(scores[None])[0], place)
    tied = bool(shortfalls.min(initial=np.inf) <= 2.0 * NUDGE)
    if tied and not setting.choice.is_likelihood:
        scores = scores + NUDGE * setting.scored.features[place]
    value = float(setting.value(p[None], scores[None])[0])
    paid = max(ROUNDED, value - optimum.infimum)
    predicted = int(setting.scored.most_likely(scores[None])[0])
    if setting.choice.is_likelihood:
        predicted = int(np.argmin(setting.shortfalls(scores[None])[0]))
    if paid > ZERO or predicted != place:
        return None
    return _Shown(optimum, scores, place, paid, tied)


def _counterexample_near(setting: Setting, worst: Worst, seed: int) -> Counterexample | None:
    """The first candidate that is one, in as few digits as keep it so, confirmed by enumeration."""
    for candidate in worst.candidates[:CANDIDATES]:
        own = _shown(setting, candidate, seed)
        if own is None:
            continue
        regret = setting.regrets(candidate[None])[0, own.prediction]
        for digits in (2, 3, 4, None):
            p = candidate if digits is None else _rounded(candidate, digits)
            shown = own if digits is None else _shown(setting, p, seed)
            if shown is None or setting.regrets(p[None])[0, shown.prediction] < 0.8 * regret:
                continue
            found = _confirmed(setting, p, shown, worst.tried, seed)
            if found is not None:
                return found
    return None


def _confirmed(
    setting: Setting, p: Array, shown: _Shown, tried: int, seed: int
) -> Counterexample | None:
    """The counterexample if enumeration agrees with every figure, else None."""
    listed = enumeration_of(setting, p)
    risks, place = listed.risks(), listed.prediction(shown.scores)
    same = np.array_equal(listed.sets[place], setting.scored.sets[shown.prediction])
    regret = float(risks[place] - risks.min())
    own = float(listed.surrogate_risk(shown.scores)[0])
    least, points = listed.contested(shown.scores, seed)
    refuse_not_finite(np.array([[regret, own, least]]), "figure of enumeration", p[None])
    if not same or regret <= WRONG or least < own - SLACK:
        return None
    gap = shown.optimum.gap
    gap = f"{gap:.0e}" if gap > ROUNDED else f"below {ROUNDED:.0e}"
    check = (
        f"the same prediction and regret, and none of {points} other points and descents has a "
        f"surrogate risk lower by more than {SLACK:.0e}"
    )
    return Counterexample(
        **_names(setting), decoder=DECODERS[setting.choice.is_likelihood],
        distribution=Distribution(setting.truths[p > 0.0], p[p > 0.0]),
        minimiser=tuple(float(score) for score in shown.scores),
        surrogate_regret=shown.surrogate_regret,
        method=METHODS[shown.optimum.method].format(gap=gap),
        prediction=tuple(int(i) for i in listed.sets[place]), prediction_risk=float(risks[place]),
        bayes=tuple(int(i) for i in listed.sets[int(np.argmin(risks))]),
        bayes_risk=float(risks.min()), regret=regret, reason=_reason(setting),
        note=_note(setting, p, shown), check=check, tried=tried, seed=seed,
    )  # fmt: skip


def enumeration_of(setting: Setting, p: Array) -> Enumeration:
    """The same combination, for the second opinion."""
    choice, name = setting.choice, "comp_sum"
    if choice.is_likelihood or choice.by_label:
        name = choice.name
    elif choice.margin is not None:
        name = "constrained"
    return Enumeration(
        setting.target, choice.target or setting.target, setting.space,
        setting.scored.kind == "joint", name, setting.truths[p > 0.0], p[p > 0.0],
        choice.q, choice.margin, getattr(setting.risk, "rho", 1.0),
    )  # fmt: skip


def _certificate(
    setting: Setting, coverage: Coverage, worst: Worst, effort: Effort, seed: int
) -> Certificate:
    tried, ratio = worst.tried, None
    if coverage.gamma is not None:
        rated = worst_ratio(setting, coverage.gamma, effort, seed + 1)
        tried, ratio = tried + rated.tried, rated.value
        if ratio > 1.0 + ROUNDING:
            # The descents of the search may have stopped short of the infimum.
            paid = float(setting.value(rated.probability[None], rated.scores[None])[0])
            paid -= setting.optimum(rated.probability, seed).value
            regret = float(setting.regrets(rated.probability[None])[0, rated.prediction])
            allowed = coverage.gamma(paid)
            ratio = regret / allowed if allowed > 0.0 else np.inf
        if not ratio <= 1.0 + ROUNDING:
            raise RuntimeError(
                f"this contradicts theorem {coverage.theorem.key}: the ratio of regret to bound is "
                f"{ratio} at {rated.probability.tolist()}, scores {rated.scores.tolist()}"
            )
    theorem = coverage.theorem
    return Certificate(
        **_names(setting), theorem=theorem.key, statement=theorem.statement, source=theorem.source,
        proof=theorem.proof, reason=coverage.reason, gamma=coverage.gamma, worst_ratio=ratio,
        worst_regret=max(0.0, worst.value), tried=tried, seed=seed,
    )  # fmt: skip


def _names(setting: Setting) -> dict[str, Any]:
    return {
        "target": in_words(setting.target),
        "surrogate": str(setting.choice),
        "space": in_words(setting.space),
        "scores": setting.scored.kind,
        "question": setting.question,
    }


def _reason(setting: Setting) -> str:
    count, free = len(setting.scored.sets), setting.scored.weights.directions
    if setting.choice.target is not None:
        return f"the surrogate is built for another target, {in_words(setting.choice.target)}"
    if setting.choice.by_label:
        return "binary relevance sees the marginals only"
    if setting.choice.is_likelihood:
        return (
            f"the likelihood's best law matches the marginals of the truth, and the best set for "
            f"{setting.target} needs more than those"
        )
    return (
        f"the theorems of Mao, Mohri and Zhong (2024) need scores that move the law of the {count} "
        f"label sets in all {count - 1} directions; one score a label moves it in {free}"
    )


def _note(setting: Setting, p: Array, shown: _Shown) -> str:
    notes = []
    if shown.is_tied:
        notes.append(
            f"the minimiser ties several sets; the scores shown are {NUDGE:.0e} from it, on the "
            f"side of the wrong one"
        )
    if shown.optimum.others:
        notes.append("the minimiser is not unique, and a wrong one is shown")
    if setting.choice.is_likelihood:
        law = p[p > 0.0]
        divergence = shown.optimum.value + float((law * np.log(law)).sum())
        notes.append(
            f"whatever the scores, the regret is at most sqrt(2 KL(p || s)); here KL = "
            f"{divergence:.4f} even for the best of them, which allows "
            f"{np.sqrt(2.0 * max(divergence, 0.0)):.3f}"
        )
    return "; ".join(notes)


def _rounded(p: Array, digits: int) -> Array:
    """To so many digits, sets below the last of them left out, the rest on the most likely set."""
    kept = np.where(p >= 0.5 * 10.0**-digits, p, 0.0)
    rounded = np.round(kept / kept.sum(), digits)
    rounded[int(np.argmax(p))] += 1.0 - rounded.sum()
    return np.round(rounded, digits + 2)
