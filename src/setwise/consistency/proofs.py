"""The theorems that guarantees rest on, each with the idea of its proof.

Letters: l labels, n label sets, U(y') the expected utility of predicting y', c = 1 - U, s the law
of the scores, t the surrogate's conditional regret, eta_i the marginals, m_i = 2 eta_i - 1.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Theorem:
    """A statement, its source and the idea of its proof; ``key`` is how tables refer to it."""

    key: str
    statement: str
    source: str
    proof: str


REACHED_COMP_SUM = Theorem(
    "R",
    "Where scores reach every law over the label sets, every comp-sum loss is consistent for every "
    "target: the regret is at most 2 sqrt(t) (q = 0, q = -1), 2 sqrt(n^q t) (0 < q < 1).",
    "Theorem 9 (section 6) of Mao, Mohri and Zhong (2024); q = 0 is their Theorem 7",
    "Exchange mass between the prediction and the best set, all else kept: the law that results "
    "must be reachable, and that is the whole assumption. The proof for 0 < q < 1 uses an "
    "inequality stated for a + b <= 1, while two expected utilities may add up to 2; it holds for "
    "all a, b in [0, 1]: with d = |a - b| / (a + b) and p = 1 / (1 - q) it says "
    "N_p(d) >= 1 + q d^2 / (2 (1 + d)) for the power mean N_p of 1 + d and 1 - d, which for p <= 2 "
    "follows from the first two terms of the binomial series, for p >= 2 from N_p >= N_2. For "
    "-1 < q < 0 the paper has no bound; s proportional to U^(1/(1-q)) is the minimiser.",
)
REACHED_CONSTRAINED = Theorem(
    "C",
    "Where scores reach every law over the label sets, the constrained losses are consistent for "
    "every target: the regret is at most 2 sqrt(L_max t) (exponential), sqrt(2 t) (squared hinge), "
    "t (hinge, rho margin).",
    "Theorem 12 (appendix A) of Mao, Mohri and Zhong (2024); the constant of the squared hinge is "
    "proved here",
    "Exchange weight between the prediction and the best set. Squared hinge: with a = 1 + z of the "
    "best set, b = 1 + z of the prediction, b >= 1 and b >= a, the exchange gains "
    "(c_h b - c_y a)^2 / (c_h + c_y) >= (c_h - c_y)^2 / 2. That is sqrt(2 t): better than the "
    "theorem's 2 sqrt(t), worse than the sqrt(t) its printed proof ends with, which is false.",
)
ABSOLUTE = Theorem(
    "A",
    "Mean absolute error (q = 1) with the most likely set is consistent for every target on every "
    "space, with one score a label too: the regret is at most n t.",
    "Theorem 9 (section 6) of Mao, Mohri and Zhong (2024), by a proof that needs no reachability",
    "The surrogate is the expected loss of a set drawn from s. It is a mean of the sets' own "
    "expected losses, so its infimum is the best set's, approached by h = c (2 y - 1), c large. "
    "The most likely set has s >= 1/n, so a regret r of it costs t >= r / n. Not convex.",
)
HAMMING = Theorem(
    "H",
    "On all label sets with one score a label, every comp-sum loss and the exponential and "
    "squared-hinge constrained losses are consistent for (weighted) Hamming loss.",
    "proved here",
    "Flip a label with the wrong sign: pairs of sets that differ in it change places, and their "
    "utilities differ by w_i m_i, the same for all pairs, so the risk falls. From a score of 0, "
    "with all other scores kept, the label is a problem of two sets; moving it to its best score "
    "gains at least (w_i m_i)^2 / 4 (q = 0), (w_i m_i)^2 / (8 (1 - q)) (q < 0), "
    "(w_i m_i)^2 2^(-(1-q)(l-1)) / 8 (0 < q < 1), (w_i m_i)^2 / 8 (exponential), (w_i m_i)^2 / 2 "
    "(squared hinge) on the unit scale. Mending the wrong labels one after the other and "
    "Cauchy's inequality give sqrt(4 l t), sqrt(8 (1 - q) l t), sqrt(8 l 2^((1-q)(l-1)) t), "
    "sqrt(8 l t), sqrt(2 l t) there, and with t / n^(1-q) (t / n for constrained losses) in place "
    "of t on the paper's scale, n = 2^l. For q = 0 and q = -1 this implies the paper's 2 sqrt(t). "
    "The hinge has a kink where the argument needs a slope.",
)
AT_K = Theorem(
    "K",
    "On all sets of k labels with one score a label, every comp-sum loss and the exponential and "
    "squared-hinge constrained losses are consistent for precision@k, recall@k, F-beta and "
    "(weighted) Hamming loss.",
    "proved here",
    "The utility is a constant and a gain v_i for each of the k labels. If v_i > v_j but "
    "h_i <= h_j, exchanging the two scores pairs the sets with i and without j with those the "
    "other way round, and lowers the risk; at h_i = h_j the slope along e_i - e_j is not 0. The "
    "laws reached and their limits "
    "are compact, and the prediction keeps s >= 1/n in the limit, so no sequence whose surrogate "
    "regret vanishes predicts j without i. With a rate: along e_i - e_j the log-partition grows no "
    "faster than log cosh (q = 0), and constrained weights change in pairs (exponential, squared "
    "hinge); a wrong prediction has at most kappa = min(k, l - k) such pairs.",
)
RELEVANCE = Theorem(
    "B",
    "Binary relevance is consistent for (weighted) Hamming loss on all label sets: the regret is "
    "at most Gamma(t / l), Gamma the binary bound of the margin.",
    "Theorem 3 (section 3) of Mao, Mohri and Zhong (2024), the constant of Corollary 4 corrected",
    "Label by label, and concavity. The binary bounds are sqrt(2 t) (logistic, exponential), "
    "sqrt(t) (squared hinge), t (hinge). The paper prints sqrt(t) for the logistic margin; at "
    "eta = 1 and a score just below 0 the regret is 1 while t = ln 2 = .69.",
)
RELEVANCE_AT_K = Theorem(
    "P",
    "On all sets of k labels, binary relevance with a margin other than the hinge is consistent "
    "for precision@k, with a regret of at most sqrt(kappa t) / k, kappa = min(k, l - k), and for "
    "Hamming loss, with 2 / l in place of 1 / k.",
    "proved here",
    "Two labels in the wrong order share a score at best; the divergence of their marginals from "
    "that of any common score is at least (eta_i - eta_j)^2, as the margins' Bregman divergences "
    "exceed 2 (eta - eta')^2 (4 (eta - eta')^2 for the squared hinge).",
)
MAJORITY = Theorem(
    "M",
    "Binary relevance with a margin other than the hinge is consistent for Hamming loss and tree "
    "distance on closed sets, and on the paths of a taxonomy with one root.",
    "proved here",
    "A label is at most as likely as its parent, so the labels with eta > 1/2 are closed, and on "
    "paths a path. They are the best of all label sets, and the heaviest: scores of vanishing "
    "regret have the sign of eta - 1/2. Labels with eta = 1/2 change neither.",
)
MATCHING = Theorem(
    "L",
    "Likelihood and the set of least expected loss: the regret is at most sqrt(2 KL(p || s)) for "
    "every target and space. Where the expected loss of a prediction is linear in what the scores "
    "multiply (every target with scores that reach every law; sums over labels with one score a "
    "label), the regret is at most sqrt(2 t), t the log-loss above the best of the same scores.",
    "proved here, from Pinsker's inequality",
    "The prediction is best under s, so its regret under p is at most the change of an expectation "
    "with values in [-1, 1] from s to p: 2 TV(p, s) <= sqrt(2 KL(p || s)). The best law s* of an "
    "exponential family has the moments of p, so the target cannot tell p from s*, and "
    "KL(p || s) - KL(p || s*) = KL(s* || s).",
)
ONLY = Theorem(
    "O",
    "Where there is one label set only, it is predicted, and it is the best.",
    "evident",
    "There is nothing to choose between, whatever the scores.",
)
THEOREMS = (
    REACHED_COMP_SUM, REACHED_CONSTRAINED, ABSOLUTE, HAMMING, AT_K, RELEVANCE, RELEVANCE_AT_K,
    MAJORITY, MATCHING, ONLY,
)  # fmt: skip
