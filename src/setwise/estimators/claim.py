"""What is proved of predictions, for programs and in words."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from setwise.consistency.verdicts import Gamma

SENTENCES = {
    "bounded": "Predictions are best for {target} if the learnt probabilities are right. If they "
    "are not, the expected loss is at most {bound} above the smallest possible one, whether or not "
    "the model can express the truth (Pinsker's inequality). Here r is the mean divergence "
    "KL(p || s), in nats, of the learnt distribution s from the true p(y | x){outside}.",
    "unmeasured": "r is at most the mean log-loss on new rows: `guarantee_on(X, y)` measures it on "
    "rows you held out, `SetClassifierCV` on its folds.",
    "measured": "r is at most the mean log-loss on new rows: {log_loss:.4f} nats on "
    "{rows}{impossible}. That is a bound of {value:.3f}{verdict}.",
    "covered": "Consistent for {target} on {space}: with enough data, minimising the training loss "
    "makes the predictions the best possible. Precisely: the minimiser of that loss over all "
    "functions of the input predicts best, as {reason} ({source}).",
    "bound": "The regret of {target} is at most {gamma} at surrogate regret t{scales}. "
    "Assumed: {needs}.",
    "no bound": "No bound is claimed if the training loss is above its minimum.",
    "other": "No theorem is known to cover a surrogate trained for {trained_for} and judged by "
    "{target}: predictions may be good, but nothing is proved about them.",
    "none": "No theorem is known to cover {surrogate} for {target} on {space}, decoded by the "
    "{decoder}: predictions may be good, but nothing is proved about them. (The theorems of Mao, "
    "Mohri and Zhong, 2024, need scores that can express every distribution over the {sets}, and "
    "the {likely}.) On a small space, `setwise certify` looks for a counterexample.",
    "undecoded": "The guarantee of a likelihood, which holds for every target, is for the set with "
    "the smallest expected loss (decoder='minimum_risk').",
    "among": "{target} is decoded among the sets of {space}: the regret is that over them.",
    "closed": "On closed sets one score per label cannot express every distribution: the logistic "
    "loss has a counterexample over three labels, parents [-1, 0, 0]. Covered there are "
    "'mean_absolute_error', and 'likelihood' with the set of smallest expected loss.",
    "confined": "No theorem covers {surrogate} for {target} here: predictions may be good, but "
    "nothing is proved about them. The theorems need independent scores, but label_features of "
    "rank {rank} confine the {n_scores} scores to their combinations.",
    "sampled": "No theorem covers this training: predictions may be good, but nothing is proved "
    "about them. Its loss sums over {n_samples} label sets drawn from {space}, and its minimiser "
    "need not minimise the exact loss, which a theorem covers. 'constrained_exponential' is exact "
    "on every space.",
    "thresholds": "Each label is predicted if its learnt probability reaches a threshold, and no "
    "other kind of decision is better for {target} if these probabilities are right. Precisely: "
    "for all rows of the source together, if each label occurs, and no label has exactly its "
    "threshold as probability in a positive share of the rows ({source}).",
    "fitted": "The thresholds were fitted to {n_rows} rows by the rule {rule!r}; each row was "
    "predicted by a model that was not trained on it.",
    "grows": "With more such rows, their value tends to the best. Nothing is claimed if the "
    "probabilities are wrong.",
    "swept": "No other thresholds are better on these rows, whatever the probabilities are, and "
    "with more such rows their value on new rows tends to the best.",
    "smoothed": "The rule also uses the counts of all labels together, so that rare labels do not "
    "overfit; it is not claimed that its thresholds tend to the best.",
    "budget": "No theorem is known to cover {target} with a budget of labels per row: predictions "
    "may be good, but nothing is proved about them. Labels are chosen by the gain of each, found "
    "on rows that were not trained on.",
    "batch": "The thresholds are taken from the probabilities of the rows to be predicted, so a "
    "prediction depends on the other rows of its batch: they maximise {target} of the expected "
    "counts, which tends to the best expected value as the batch grows (Dembczyński, Kotłowski, "
    "Koyejo and Natarajan, 2017).",
    "costs": "Consistent for {target}: with enough data, minimising the training loss makes the "
    "predictions the best possible. Precisely: at its best value the regret is the regret of the "
    "costs of misses and false alarms, divided by the denominator, and binary relevance weighted "
    "by them is consistent for costs (theorem V: {source}). Assumed: {complete}; the value that "
    "was found on folds is the best one; and counts of future rows are near their means, as they "
    "are if no label is rare.",
    "shortlists": "Predictions are best for {target} if the learnt probabilities of the labels are "
    "right and labels are independent given the input, except for labels less probable than "
    "{floor:g}, of which only sums are known: `gap(X)` says by how much at most that lowers the "
    "expected utility of a prediction. Nothing is claimed if the probabilities are wrong.",
    "marginals": "Predictions are best for {target} if the learnt probabilities of the labels are "
    "right. Nothing is claimed if they are wrong.",
    "independent": "Predictions are best for {target} if the learnt probabilities of the labels "
    "are right and labels are independent given the input. Nothing is claimed if they are not.",
    "rounds": "No theorem covers 'metro' for {target}: {why_not}.",
    "origin": "Without an intercept, an input of zeros has scores of 0 and is not covered.",
    "not convex": "The objective is not convex, and the solver may have stopped short of its "
    "minimiser.",
    "several": "Labels have several parents: the distance is that of a spanning tree, which leaves "
    "out {left_out} edges; predictions, and the best one, are sets closed under all edges.",
}
OUTSIDE = " within {}, and m the true mass of label sets outside it, which s gives 0"
UNSEEN = " ({:.3f} by Good and Turing's estimate from the training rows)"
IMPOSSIBLE = (
    ", without {:.3g} % of them whose label set the model rules out: their log-loss is infinite, "
    "and they count in full"
)
Kind = Literal["consistent", "bounded", "thresholds", "nothing"]


@dataclass(frozen=True)
class Claim:
    """What is proved of predictions; ``holds`` are the sentences that say so, about ``about``.

    "consistent": scores that minimise the surrogate predict a best set, and at surrogate regret t
    the regret is at most ``gamma(t)``, where there is a rate. "bounded": the regret is at most
    m + (1 - m) sqrt(2 KL(p || s)) for the law s that is decoded, m the true mass outside the space,
    p the truth within it. "thresholds": a measure of all rows together, decided for by thresholds
    on the learnt probabilities, which is best where these are right. Regrets are over all
    predictions that the target allows, or ``is_among`` those of the space.
    """

    kind: Kind
    holds: tuple[str, ...]
    about: dict[str, Any] = field(default_factory=dict)
    gamma: Gamma | None = None

    @property
    def is_among(self) -> bool:
        """Whether the best prediction is that among the sets of the space."""
        return self.kind == "consistent" or "among" in self.holds

    def saying(self, *sentences: str, **about: Any) -> Claim:
        """The same with more to say."""
        return replace(self, holds=(*self.holds, *sentences), about=self.about | about)

    def measured(self, held_out: dict[str, float] | None, rows: str) -> Claim:
        """The same with the log-loss of held-out rows (`log_loss_of`) put in, if it has a use."""
        if self.kind != "bounded":
            return self
        if held_out is None:
            return self.saying("unmeasured")
        missed, log_loss = held_out["impossible"], held_out["log_loss"]
        bound = missed + (1.0 - missed) * np.sqrt(2.0 * log_loss)
        return self.saying(
            "measured", log_loss=log_loss, value=bound, rows=rows,
            impossible=IMPOSSIBLE.format(100.0 * missed) if missed else "",
            verdict=": no regret is above 1, so it says nothing" if bound >= 1.0 else "",
        )  # fmt: skip

    def __str__(self) -> str:
        return " ".join(SENTENCES[key].format(**self.about) for key in self.holds)


NOTHING = Claim("nothing", ("none",))


def log_loss_of(log_probability: Any, weights: Any) -> dict[str, float]:
    """Mean of -log P over the rows whose label set is possible, and the share of the others.

    Examples
    --------
    >>> log_loss_of(np.log([0.5, 0.5, 1.0, 1.0]) - [0.0, 0.0, 0.0, np.inf], np.ones(4))
    {'log_loss': 0.46209812037329684, 'impossible': 0.25}
    """
    possible = np.isfinite(log_probability)
    share = float(weights[possible].sum() / weights.sum())
    if share == 0.0:
        return {"log_loss": 0.0, "impossible": 1.0}
    mean = -float(np.average(log_probability[possible], weights=weights[possible]))
    return {"log_loss": max(0.0, mean), "impossible": 1.0 - share}
