"""Is a surrogate consistent for a target? A theorem, a counterexample, or neither."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import entr

from setwise.consistency.conditional import Kind
from setwise.consistency.naming import in_words
from setwise.consistency.population import certified
from setwise.consistency.setting import (
    AIMED_AT,
    WRONG,
    Effort,
    Setting,
    Trials,
    label_costs,
    refuse_infinite,
    worst_ratio,
    worst_regret,
)
from setwise.consistency.theorems import Coverage, covering
from setwise.consistency.verdicts import (
    Certificate,
    Counterexample,
    Distribution,
    Undecided,
    Verdict,
)
from setwise.spaces import Catalog
from setwise.spaces.space import Array, Space
from setwise.surrogates import BinaryRelevance, CompSum, Constrained
from setwise.surrogates.metro import refuse_others
from setwise.surrogates.names import DEFAULT_Q, METRO, known_surrogate
from setwise.targets.additive import CostSensitive
from setwise.targets.registry import get_target
from setwise.targets.target import judges_all_rows
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
# Problems of finite inputs on which a theorem of a population measure is tested.
MOST_PROBLEMS = 200
# How far the risk of the search may be from that of the loss that is trained.
SLACK = 1e-9
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
        A name of `SetClassifier`, or an object; "bce", "BCEWithLogitsLoss" and "ExpectedLoss" are
        known too. For a measure of all rows together "likelihood", "binary_relevance" or "metro".
    space : Space, optional
        A small space of label sets. By default three labels, all sets; for precision@k and recall@k
        the sets of k of k + 2 labels, for tree distance the closed sets. A measure of all rows
        together, such as "macro_f1", is tested on inputs whose labels are decided in every way.
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
        If a distribution was found, and confirmed with the loss that is trained. For a likelihood
        its regret is bounded all the same (``is_bounded``).
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
    seed = whole_number(seed, "seed", 0)
    if effort is not None and not isinstance(effort, Effort):
        raise ValueError(f"effort must be an Effort, such as Effort(draws=500), not {effort!r}")
    effort, judge = effort or Effort(), get_target(target)
    surrogate = known_surrogate(surrogate) if isinstance(surrogate, str) else surrogate
    if judges_all_rows(judge):
        return certified(judge, surrogate, space, min(effort.draws, MOST_PROBLEMS), seed)
    if isinstance(surrogate, str) and surrogate == METRO:
        refuse_others(judge)
    setting = Setting.of(judge, surrogate, space, scores, q)
    coverage = covering(setting.target, setting.choice, setting.space, setting.kind)
    worst, tried = worst_regret(setting, effort, seed)
    found = _counterexample(setting, worst, tried, seed)
    if coverage is not None:
        if found is not None:
            raise RuntimeError(f"this contradicts theorem {coverage.theorem.key}:\n{found}")
        return _certificate(setting, coverage, worst, tried, effort, seed)
    if found is None:
        # More of everything, and much more where a distribution costs next to nothing.
        draws = HARDER * effort.draws * (25 if setting.choice.by_label else 1)
        more = Effort(draws, 2 * effort.kept, effort.variations, 2 * effort.rounds)
        worst, more_tried = worst_regret(setting, more, seed + 1)
        tried += more_tried
        found = _counterexample(setting, worst, tried, seed)
    if found is not None:
        return found
    near = setting.shortfalls(worst.scores[:1])[setting.regrets(worst.p[:1]) >= AIMED_AT]
    return Undecided(
        **setting.asked(), tried=tried, worst_regret=max(0.0, float(worst.regret[0])),
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
    surrogate = known_surrogate(surrogate) if isinstance(surrogate, str) else surrogate
    setting = Setting.of(target, surrogate, space, scores, q)
    truth = Distribution.of(distribution, setting.space)
    setting = Setting.of(target, surrogate, setting.space, scores, q, truth.sets)
    p = setting.probabilities(truth.sets, truth.probability)
    return _shown(setting, p, 1, seed)


def _counterexample(
    setting: Setting, worst: Trials, tried: int, seed: int
) -> Counterexample | None:
    """The first of the worst distributions that is one, in as few digits as keep it so."""
    for candidate in worst.p[:CANDIDATES] if worst.regret[0] > WRONG else ():
        own = _shown(setting, candidate, tried, seed)
        if own is None:
            continue
        for digits in (2, 3, 4):
            shown = _shown(setting, _rounded(candidate, digits), tried, seed)
            if shown is not None and shown.regret >= 0.8 * own.regret:
                return shown
        return own
    return None


def _rounded(p: Array, digits: int) -> Array:
    """To so many digits, sets below the last of them left out, the rest on the most likely set."""
    kept = np.where(p >= 0.5 * 10.0**-digits, p, 0.0)
    rounded = np.round(kept / kept.sum(), digits)
    rounded[int(np.argmax(p))] += 1.0 - rounded.sum()
    return np.round(rounded, digits + 2)


def _shown(setting: Setting, p: Array, tried: int, seed: int) -> Counterexample | None:
    """Scores near a minimiser that predict a wrong set, without a tie; None if there are none.

    None too where the loss that is trained does not confirm it.
    """
    optimum, likelihood = setting.optimum(p, seed), setting.choice.is_likelihood
    refuse_infinite(np.append(optimum.scores, optimum.value)[None], "minimiser", p[None])
    minimisers = np.array([optimum.scores, *optimum.others])
    places, regrets = setting.worst_predictions(np.tile(p, (len(minimisers), 1)), minimisers)
    place, scores = places[regrets.argmax()], minimisers[regrets.argmax()]
    behind = np.delete(setting.shortfalls(scores[None])[0], place)
    tied = bool(behind.min(initial=np.inf) <= 2.0 * NUDGE)
    if tied and not likelihood:
        scores = scores + NUDGE * setting.scored.flat[place]
    risk = float(setting.value(p[None], scores[None])[0])
    paid = max(ROUNDED, risk - optimum.infimum)
    if regrets.max() <= WRONG or paid > ZERO:
        return None
    notes = []
    if tied:
        notes.append(
            f"the minimiser ties several sets; the scores shown are {NUDGE:.0e} from it, on the "
            f"side of the wrong one"
        )
    if optimum.others:
        notes.append("the minimiser is not unique, and a wrong one is shown")
    if likelihood:
        divergence = optimum.value - float(entr(p).sum())
        notes.append(
            f"whatever the scores, the regret is at most sqrt(2 KL(p || s)); here KL = "
            f"{divergence:.4f} even for the best of them, which allows "
            f"{np.sqrt(2.0 * max(divergence, 0.0)):.3f}"
        )
    gap = f"{optimum.gap:.0e}" if optimum.gap > ROUNDED else f"below {ROUNDED:.0e}"
    risks = p @ setting.losses
    found = Counterexample(
        **setting.asked(), tried=tried, seed=seed,
        decoder="set of least expected loss" if likelihood else "most likely set",
        distribution=Distribution(setting.truths[p > 0.0], p[p > 0.0]),
        minimiser=tuple(scores.tolist()), surrogate_regret=paid,
        method=METHODS[optimum.method].format(gap=gap),
        prediction=tuple(setting.sets[place].tolist()), prediction_risk=float(risks[place]),
        bayes=tuple(setting.sets[risks.argmin()].tolist()), bayes_risk=float(risks.min()),
        regret=float(risks[place] - risks.min()), reason=_reason(setting), note="; ".join(notes),
        check="the same risk at these scores, and the same prediction",
    )  # fmt: skip
    return found if _is_confirmed(setting, found, risk) else None


def _reason(setting: Setting) -> str:
    if setting.choice.target is not None:
        return f"the surrogate is built for another target, {in_words(setting.choice.target)}"
    if setting.choice.costs is not None:
        return "binary relevance weighed by costs decides for these, and for no others"
    if setting.choice.by_label:
        return "binary relevance sees the marginals only"
    if setting.choice.is_likelihood:
        return (
            f"the likelihood's best distribution matches the marginals of the truth, and the "
            f"best set for {setting.target} needs more than those"
        )
    count = len(setting.sets)
    return (
        f"the theorems of Mao, Mohri and Zhong (2024) need scores that move the distribution of "
        f"the {count} label sets in all {count - 1} directions; one score per label moves it in "
        f"{setting.scored.directions}"
    )


def trained(setting: Setting) -> tuple[Any, Space]:
    """The loss as models are trained on it, on the paper's scale, and its space.

    A second opinion: it shares no risk, weight or decoder with the search.
    """
    choice, space = setting.choice, setting.space
    if setting.kind == "joint" and not space.is_joint:
        space = Catalog(setting.sets, setting.scored.offset[0], joint=True)
    if choice.by_label:
        false_alarm, miss = label_costs(choice, space.n_labels)
        costs = None if choice.costs is None else CostSensitive(miss, false_alarm)
        return BinaryRelevance(str(choice.margin), costs), space
    if choice.is_likelihood:
        return CompSum("subset", space, 0.0, "paper"), space
    target = choice.target or setting.target
    if choice.q is not None:
        return CompSum(target, space, choice.q, "paper"), space
    return Constrained(target, space, choice.margin, choice.risk.rho, "paper"), space  # type: ignore


def _is_confirmed(setting: Setting, found: Counterexample, risk: float) -> bool:
    """Whether the loss that is trained has the same risk at the scores, and predicts the same."""
    (loss, space), truth = trained(setting), found.distribution
    every = np.tile(found.minimiser, (len(truth.sets), 1))
    own = float(truth.mean(loss.value_and_gradient(every, truth.sets)[0]))
    if setting.choice.is_likelihood:
        every = np.tile(found.minimiser, (len(setting.sets), 1))
        law = np.exp(space.log_probability(every, setting.sets))
        predicted = setting.sets[np.argmin(law @ setting.losses)]
    else:
        predicted = space.most_likely([found.minimiser])[0]
    return abs(own - risk) <= SLACK * max(1.0, risk) and found.prediction == tuple(predicted)


def _certificate(
    setting: Setting, coverage: Coverage, worst: Trials, tried: int, effort: Effort, seed: int
) -> Certificate:
    """The theorem, after a search for a larger ratio of regret to bound than it allows."""
    gamma, theorem, ratio = coverage.gamma, coverage.theorem, None
    if gamma is not None:
        rated, more = worst_ratio(setting, gamma, effort, seed + 1)
        tried, ratio = tried + more, float(rated.merit[0])
        if ratio > 1.0 + ROUNDING:
            # The descents of the search may have stopped short of the infimum.
            paid = float(setting.value(rated.p[:1], rated.scores[:1])[0])
            allowed = gamma(paid - setting.optimum(rated.p[0], seed).value)
            ratio = float(rated.regret[0]) / allowed if allowed > 0.0 else np.inf
        if not ratio <= 1.0 + ROUNDING:
            raise RuntimeError(
                f"this contradicts theorem {theorem.key}: the ratio of regret to bound is "
                f"{ratio} at {rated.p[0].tolist()}, scores {rated.scores[0].tolist()}"
            )
    return Certificate(
        **setting.asked(), theorem=theorem.key, statement=theorem.statement, source=theorem.source,
        proof=theorem.proof, reason=coverage.reason, gamma=gamma, worst_ratio=ratio,
        worst_regret=max(0.0, float(worst.regret[0])), tried=tried, seed=seed,
    )  # fmt: skip
