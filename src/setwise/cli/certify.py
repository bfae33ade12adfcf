"""`setwise certify f1 logistic`: is a surrogate consistent for a target?"""

from __future__ import annotations

from typing import Any, Literal

import typer

from setwise.cli.options import command, concerning, echo, target_for, typed
from setwise.surrogates.names import DEFAULT_Q, METRO, SURROGATES

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
    "Binary cross-entropy is binary_relevance.",
    space="Which label sets may be predicted: cube (any), slice (those of one size), sized (any, "
    "some sizes likelier), chain (labels that depend on the one before), closed and paths (of a "
    "taxonomy) or list. By default cube; slice for targets @k, closed for tree.",
    scores="What the model has a score for: labelwise, each label; joint, each label set.",
    labels="Number of labels; by default 3, and k + 2 for targets @k.",
    parents="Taxonomy of tree, closed and paths: the parent of each label, -1 for a root, as in "
    "--parents=-1,0,0. By default label 0 stands over all others.",
    q=f"The q of generalized_cross_entropy, {DEFAULT_Q:g} by default, or of comp_sum, -1 to 1.",
    margin="Margin of binary_relevance: logistic, exponential, hinge or squared_hinge. By default "
    "logistic.",
    rho="Width of constrained_rho, by default 1.",
    seed="Of the search for counterexamples: the same seed gives the same answer.",
    precise="Print the whole statement: theorem, bound and source, or how an example was checked.",
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
    r"""Is what I train (a loss, the "surrogate") consistent for what I report (the target)?

    Consistent means: with ever more data, and the loss minimised ever better, predictions become
    the best possible for the target. The answer is a certificate, which rests on a theorem; or a
    counterexample, a case in which predictions stay wrong however well the loss is minimised; or
    that neither is known. A likelihood, what setwise trains by default, has a guarantee for every
    target: predictions are as good as the learnt probabilities.

    Theorems were tested on thousands of distributions, and counterexamples confirmed with the loss
    as it is trained; --precise prints all of it.

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

    Exit status: 0 with a verdict; 2 when what was asked cannot be answered.
    """
    if surrogate not in KNOWN:
        raise ValueError(
            f"surrogate must be one of {', '.join(KNOWN)}, not {surrogate!r} (binary "
            "cross-entropy, as of BCEWithLogitsLoss and one-vs-rest logistic regressions, is "
            "binary_relevance)"
        )
    for name, owners in OWNERS.items():
        if context.params[name] is not None and surrogate not in owners:
            raise ValueError(f"--{name} is for {' and '.join(owners)}; {surrogate} has none")
    if surrogate == "comp_sum" and q is None:
        raise ValueError("comp_sum needs --q, its member: a number from -1 to 1")
    if surrogate == "binary_relevance" and scores == "joint":
        raise ValueError("binary_relevance has one score for each label; use --scores labelwise")
    from setwise.targets.registry import known_name

    known = known_name(target)
    if known != "tree":
        target_for(target)
    target = known
    if parents is not None and target != "tree" and space not in ("closed", "paths"):
        raise ValueError(
            f"--parents is for the target tree and the spaces closed and paths; {target} on "
            f"{space or 'its own space'} has no taxonomy"
        )
    try:
        tree = None if parents is None else [int(word) for word in parents.split(",")]
    except ValueError:
        raise ValueError(
            f"--parents must be whole numbers with commas between, such as -1,0,0, not {parents!r}"
        ) from None
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
        str(verdict) if precise else f"{verdict.in_short}\n(--precise prints the whole statement)"
    )
    echo(to_json(verdict) if json else words, json=json)
