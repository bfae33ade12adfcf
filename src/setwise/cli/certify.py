"""`setwise certify f1 logistic`: is a surrogate consistent for a target?"""

from __future__ import annotations

from typing import Any, Literal

import typer

from setwise.cli.options import command, concerning, echo, numbers, typed
from setwise.cli.reading import refuse_unknown
from setwise.surrogates.names import DEFAULT_Q, METRO, SURROGATES, known_surrogate

NAMED = (*SURROGATES, METRO)
KNOWN = (*NAMED, "comp_sum")
# The options that are parameters of some surrogates.
OWNERS = {
    "q": ("generalized_cross_entropy", "comp_sum"),
    "margin": ("binary_relevance",),
    "rho": ("constrained_rho",),
}


@command(
    target="The measure you report: hamming, f1, f0.5, jaccard, subset, precision@2, recall@2, "
    "tree (the distance in a taxonomy), macro_f1, ...",
    surrogate=f"The loss that training minimises: {', '.join(NAMED)}, or comp_sum with --q. "
    "bce and BCEWithLogitsLoss are names of binary_relevance, ExpectedLoss (of setwise.nn) of "
    "mean_absolute_error.",
    space="Which label sets may be predicted: cube (any), slice (those of one size), sized (any; "
    "models the number of labels), chain (any; each label depends on the previous one), "
    "closed or paths (for a taxonomy) or list. Default: cube; slice for precision@k and recall@k, "
    "closed for tree.",
    scores="What the model computes a score for: labelwise, each label; joint, each label set.",
    labels="Number of labels. Default: 3, or k + 2 for precision@k and recall@k.",
    parents="The taxonomy for tree, closed and paths: the parent of each label, -1 for a root, as "
    "in --parents=-1,0,0. Default: label 0 is the parent of all others.",
    q=f"The parameter q of generalized_cross_entropy (default {DEFAULT_Q:g}) or of comp_sum (from "
    "-1 to 1).",
    margin="The margin loss of binary_relevance: logistic (default), exponential, hinge or "
    "squared_hinge.",
    rho="The width parameter of constrained_rho. Default: 1.",
    seed="Random seed of the search for counterexamples; the same seed gives the same answer.",
    precise="Print the full statement: theorem, bound and source, or how the counterexample was "
    "checked.",
)
def certify(
    context: typer.Context,
    target: str,
    surrogate: str,
    *,
    space: str | None = None,
    scores: Literal["labelwise", "joint"] = "labelwise",
    labels: int | None = None,
    parents: str | None = None,
    q: float | None = None,
    margin: str | None = None,
    rho: float | None = None,
    seed: int = 0,
    precise: bool = False,
    json: bool = False,
) -> None:
    r"""Is the loss you train with right for the measure you report?

    The loss ("surrogate") is called consistent for the measure ("target") if minimising it better
    and better, with more and more data, makes the predictions the best possible for the measure.
    The likelihood, which setwise trains by default, has a bound for every measure: predictions are
    as good as its probabilities.

    \b
    The answer is one of four:
      Certificate                  proved: a theorem says that it is consistent
      Counterexample               disproved: a case in which predictions stay wrong
      Bounded, but not consistent  predictions are as good as the learnt probabilities
      Undecided                    no theorem is known, and no counterexample was found

    It is about one way to decide, which it names: labels cut at probability 0.5, the most likely
    label set, or the one with the smallest expected loss.

    The theorems were checked on thousands of distributions, and every counterexample is confirmed
    with the loss as it is trained. --precise prints the details.

    \b
    Examples:
      setwise certify f1 logistic
      setwise certify f1 binary_relevance --precise
      setwise certify f1 logistic --scores joint
      setwise certify precision@2 logistic --space slice --labels 5
      setwise certify tree logistic --space paths --parents=-1,0,0,1
      setwise certify hamming comp_sum --q -0.5
      setwise certify hamming logistic --json
      setwise certify macro_f1 metro

    Exit status: 0 with a verdict; 2 if the question cannot be answered.
    """
    asked, surrogate = surrogate, known_surrogate(surrogate)
    if surrogate not in KNOWN:
        raise ValueError(f"surrogate must be one of {', '.join(KNOWN)}, not {surrogate!r}")
    for name, owners in OWNERS.items():
        if context.params[name] is not None and surrogate not in owners:
            raise ValueError(f"--{name} is for {' and '.join(owners)}; {surrogate} has none")
    if surrogate == "comp_sum" and q is None:
        raise ValueError("comp_sum needs --q, its member: a number from -1 to 1")
    if surrogate == "binary_relevance" and scores == "joint":
        raise ValueError("binary_relevance has one score for each label; use --scores labelwise")
    from setwise.targets.registry import known_name

    refuse_unknown(target)
    target = known_name(target)
    if parents is not None and target != "tree" and space not in ("closed", "paths"):
        raise ValueError(
            f"--parents is for the target tree and the spaces closed and paths; {target} on "
            f"{space or 'its own space'} has no taxonomy"
        )
    expected = "--parents must be comma-separated whole numbers such as -1,0,0"
    tree = None if parents is None else numbers(parents, int, expected)
    from setwise.consistency import certify as examined
    from setwise.consistency import naming, to_json
    from setwise.surrogates import BinaryRelevance, CompSum, Constrained
    from setwise.targets.target import predicted_size

    with concerning(" ".join([target, typed(context, "labels", "parents")]).strip()):
        judged = naming.named_target(target, labels, tree)
        where = naming.named_space(space, labels, tree, judged)
    size = predicted_size(judged)
    if size is not None and where.sizes.tolist() != [size]:
        raise ValueError(f"{target} is for label sets of size {size} only; use --space slice")
    trained: Any = surrogate
    if surrogate == "comp_sum":
        trained = CompSum(judged, where, q)  # type: ignore
    elif margin is not None:
        trained = BinaryRelevance(margin)
    elif rho is not None:
        trained = Constrained(judged, where, "rho", rho=rho)
    member = DEFAULT_Q if q is None else q
    verdict = examined(judged, trained, where, scores, q=member, seed=seed)
    words = (
        str(verdict) if precise else f"{verdict.in_short}\n(--precise prints the full statement)"
    )
    if asked != surrogate:
        words = f"({asked} is called {surrogate} here.)\n{words}"
    echo(to_json(verdict) if json else words, json=json)
