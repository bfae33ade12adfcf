"""`setwise certify f1 logistic`: is a surrogate consistent for a target?"""

from __future__ import annotations

from typing import Annotated, Any

import typer

from setwise.cli.options import Json, require_target
from setwise.names import SURROGATES


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
            help="Member of generalized_cross_entropy, 0.7 by default, or of comp_sum, -1 to 1."
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
    minimiser of the surrogate predicts a wrong label set, confirmed by enumeration.

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

    tree = None if parents is None else _numbers(parents)
    judged = _target(target, labels, tree)
    _refuse_what_is_ignored(target, surrogate, space, scores, labels, tree, q, margin, rho)
    where = naming.named_space(space, labels, tree, judged)
    trained: Any = surrogate
    if surrogate == "comp_sum":
        from setwise.surrogates import CompSum

        trained = CompSum(judged, where, q)  # type: ignore
    elif margin is not None:
        from setwise.surrogates import BinaryRelevance

        trained = BinaryRelevance(margin)
    elif rho is not None:
        from setwise.surrogates import Constrained

        trained = Constrained(judged, where, "rho", rho=rho)
    member = 0.7 if q is None else q
    verdict = examined(judged, trained, where, scores, q=member, seed=seed)  # type: ignore
    typer.echo(to_json(verdict) if json else str(verdict))


def _target(name: str, labels: int | None, parents: list[int] | None) -> Any:
    from setwise.consistency.naming import named_target

    require_target(name)
    return named_target(name, labels, parents)


def _refuse_what_is_ignored(
    target: str,
    surrogate: str,
    space: str | None,
    scores: str,
    labels: int | None,
    parents: list[int] | None,
    q: float | None,
    margin: str | None,
    rho: float | None,
) -> None:
    """Raise for options that do not go together, in the words of the command line."""
    known = (*SURROGATES, "comp_sum")
    if surrogate not in known:
        raise ValueError(f"surrogate must be one of {', '.join(known)}, not {surrogate!r}")
    for option, value, owners in (
        ("--q", q, ("generalized_cross_entropy", "comp_sum")),
        ("--margin", margin, ("binary_relevance",)),
        ("--rho", rho, ("constrained_rho",)),
    ):
        if value is not None and surrogate not in owners:
            raise ValueError(f"{option} is for {' and '.join(owners)}; {surrogate} has none")
    if surrogate == "comp_sum" and q is None:
        raise ValueError("comp_sum needs --q, its member: a number from -1 to 1")
    if surrogate == "binary_relevance" and scores == "joint":
        raise ValueError("binary_relevance has one score for each label: use --scores labelwise")
    if parents is not None and target != "tree" and space not in ("closed", "paths"):
        raise ValueError(
            f"--parents is for the target tree and the spaces closed and paths; {target} on "
            f"{space or 'its own space'} has no taxonomy"
        )
    _, at, k = target.partition("@")
    if at and space not in (None, "slice"):
        raise ValueError(
            f"{target} is defined on label sets of size {k} only: use --space slice, not {space}"
        )
    if at and labels is not None and labels < int(k):
        raise ValueError(
            f"{target} predicts k = {k} labels, but --labels is {labels}: use --labels {k} or more"
        )


def _numbers(words: str) -> list[int]:
    try:
        return [int(word) for word in words.split(",")]
    except ValueError:
        raise ValueError(
            f"--parents must be whole numbers with commas between, such as -1,0,0, not {words!r}"
        ) from None
