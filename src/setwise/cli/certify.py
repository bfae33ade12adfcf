"""`setwise certify f1 logistic`: is a surrogate consistent for a target?"""

from __future__ import annotations

from typing import Annotated

import typer

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
        str, typer.Argument(help=f"What a model is trained on: {', '.join(SURROGATES)}.")
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
    q: Annotated[float, typer.Option(help="Member of generalized_cross_entropy.")] = 0.7,
    seed: Annotated[int, typer.Option(help="The answer follows from it.")] = 0,
    json: Annotated[
        bool, typer.Option("--json", help="Print the verdict as one line of JSON.")
    ] = False,
) -> None:
    r"""Is a surrogate consistent for a target? Prints a theorem, a counterexample, or neither.

    A certificate names the theorem that covers the combination and its bound, tested on
    thousands of distributions. A counterexample is a distribution for which the
    minimiser of the surrogate predicts a wrong label set, confirmed by enumeration.

    \b
    Examples:
      setwise certify f1 logistic
      setwise certify f1 logistic --scores joint
      setwise certify precision@2 logistic --space slice --labels 5
      setwise certify tree logistic --space paths --parents=-1,0,0,1
      setwise certify hamming logistic --json
    """
    from setwise.consistency import certify as examined
    from setwise.consistency import naming, to_json

    tree = None if parents is None else _numbers(parents)
    judged = naming.named_target(target, labels, tree)
    where = naming.named_space(space, labels, tree, judged)
    verdict = examined(judged, surrogate, where, scores, q=q, seed=seed)  # type: ignore
    typer.echo(to_json(verdict) if json else str(verdict))


def _numbers(words: str) -> list[int]:
    try:
        return [int(word) for word in words.split(",")]
    except ValueError:
        raise ValueError(
            f"--parents must be whole numbers with commas between, such as -1,0,0, not {words!r}"
        ) from None
