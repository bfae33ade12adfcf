"""`setwise certify f1 logistic`: is a surrogate consistent for a target?"""

from __future__ import annotations

from typing import Annotated, Any

import typer

from setwise.cli.options import Json, concerning, require_target
from setwise.surrogates.names import DEFAULT_Q, SURROGATES


def certify(
    target: Annotated[
        str,
        typer.Argument(
            help="What a prediction is judged by: hamming, f1, f0.5, jaccard, subset, precision@2, "
            "recall@2, tree (the distance in a taxonomy)."
        ),
    ],
    surrogate: Annotated[
        str,
        typer.Argument(
            help=f"What a model is trained on: {', '.join(SURROGATES)}, or comp_sum with --q."
        ),
    ],
    space: Annotated[
        str | None,
        typer.Option(
            help="Which label sets may be predicted: cube, slice, sized, chain, closed, paths or "
            "list. By default cube; slice for targets @k, closed for tree."
        ),
    ] = None,
    scores: Annotated[
        str, typer.Option(help="labelwise: a score for each label; joint: for each label set.")
    ] = "labelwise",
    labels: Annotated[
        int | None, typer.Option(help="Number of labels; by default 3, and k + 2 for targets @k.")
    ] = None,
    parents: Annotated[
        str | None,
        typer.Option(
            help="Taxonomy of tree, closed and paths: the parent of each label, -1 for a root, as "
            "in --parents=-1,0,0. By default label 0 stands over all others."
        ),
    ] = None,
    q: Annotated[
        float | None,
        typer.Option(
            help=f"Member of generalized_cross_entropy, {DEFAULT_Q:g} by default, or of comp_sum, "
            "-1 to 1."
        ),
    ] = None,
    margin: Annotated[
        str | None,
        typer.Option(
            help="Margin of binary_relevance: logistic, exponential, hinge or squared_hinge. By "
            "default logistic."
        ),
    ] = None,
    rho: Annotated[
        float | None, typer.Option(help="Width of constrained_rho, by default 1.")
    ] = None,
    seed: Annotated[int, typer.Option(help="The answer follows from it.")] = 0,
    json: Json = False,
) -> None:
    """Is a surrogate consistent for a target? Prints a theorem, a counterexample, or neither.

    A certificate names the theorem that covers the combination and its bound, tested on
    thousands of distributions. A counterexample is a distribution for which the
    minimiser of the surrogate predicts a wrong label set, confirmed with the loss as trained.

    \b
    Examples:
      setwise certify f1 logistic
      setwise certify f1 logistic --scores joint
      setwise certify precision@2 logistic --space slice --labels 5
      setwise certify tree logistic --space paths --parents=-1,0,0,1
      setwise certify hamming comp_sum --q -0.5
      setwise certify hamming logistic --json

    Exit status: 0 with a verdict; 2 when what was asked cannot be answered.
    """  # noqa: D301 - click reads the backspace, and leaves what follows as it is
    from setwise.consistency import certify as examined
    from setwise.consistency import naming, to_json
    from setwise.surrogates import BinaryRelevance, CompSum, Constrained
    from setwise.targets.target import predicted_size

    known = (*SURROGATES, "comp_sum")
    if surrogate not in known:
        raise ValueError(f"surrogate must be one of {', '.join(known)}, not {surrogate!r}")
    if surrogate == "binary_relevance" and scores == "joint":
        raise ValueError("binary_relevance has one score for each label; use --scores labelwise")
    for option, value, owners in (
        ("--q", q, ("generalized_cross_entropy", "comp_sum")),
        ("--margin", margin, ("binary_relevance",)),
        ("--rho", rho, ("constrained_rho",)),
    ):
        if value is not None and surrogate not in owners:
            raise ValueError(f"{option} is for {' and '.join(owners)}; {surrogate} has none")
    if surrogate == "comp_sum" and q is None:
        raise ValueError("comp_sum needs --q, its member: a number from -1 to 1")
    if parents is not None and target != "tree" and space not in ("closed", "paths"):
        raise ValueError(
            f"--parents is for the target tree and the spaces closed and paths; {target} on "
            f"{space or 'its own space'} has no taxonomy"
        )
    require_target(target)
    tree = None if parents is None else _numbers(parents)
    judged = naming.named_target(target, labels, tree)
    with concerning(f"{target} over {labels} labels" if labels else target):
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
    verdict = examined(judged, trained, where, scores, q=member, seed=seed)  # type: ignore
    typer.echo(to_json(verdict) if json else str(verdict))


def _numbers(words: str) -> list[int]:
    try:
        return [int(word) for word in words.split(",")]
    except ValueError:
        raise ValueError(
            f"--parents must be whole numbers with commas between, such as -1,0,0, not {words!r}"
        ) from None
