"""Guarantees in words: `certify f1 logistic`, `table`, and `pictures` of them."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from setwise.consistency.certify import certify
from setwise.consistency.naming import SPACES, named_space, named_target
from setwise.consistency.pictures import drawn
from setwise.consistency.scored_sets import KINDS
from setwise.consistency.table import grid, page
from setwise.consistency.verdicts import to_json
from setwise.surrogates.names import SURROGATES


def main(arguments: list[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    options = _parser().parse_args(arguments)
    try:
        return options.run(options)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


def run_certify(options: argparse.Namespace) -> int:
    """Print the verdict on one combination."""
    target = named_target(options.target, options.parents)
    space = None
    if options.space is not None:
        labels = options.labels or (4 if options.space == "slice" else 3)
        labels = len(options.parents) if options.parents else labels
        space = named_space(options.space, labels, options.parents, target)
    verdict = certify(
        target, options.surrogate, space, options.scores, q=options.q, seed=options.seed
    )
    print(to_json(verdict) if options.json else verdict)
    return 0


def run_table(options: argparse.Namespace) -> int:
    """Certify every cell, or read their rows, and write the document."""
    if options.render:
        rows = [json.loads(line) for line in options.rows.read_text().splitlines()]
    else:
        rows = []
        for row in grid(seed=options.seed):
            rows.append(row)
            print(" ".join(row["cell"]), row["verdict"], file=sys.stderr)
        options.rows.write_text("".join(json.dumps(row) + "\n" for row in rows))
    options.output.write_text(page(rows))
    return 0


def run_pictures(options: argparse.Namespace) -> int:
    """Draw the pictures of docs/guarantees.md, light and dark."""
    rows = [json.loads(line) for line in options.rows.read_text().splitlines()]
    options.output.mkdir(parents=True, exist_ok=True)
    for name, figure in drawn(rows):
        figure.savefig(options.output / f"{name}.png")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m setwise.consistency", description=__doc__)
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("certify", help="is a surrogate consistent for a target?")
    one.add_argument("target", help="f1, jaccard, subset, hamming, precision@2, ..., or tree")
    one.add_argument("surrogate", choices=SURROGATES, metavar="surrogate", help=str(SURROGATES))
    one.add_argument("--space", choices=SPACES, help="by default where the target is at home")
    one.add_argument("--labels", type=int, help="number of labels; 3 by default")
    one.add_argument("--parents", type=int, nargs="+", help="taxonomy of tree, closed, paths")
    one.add_argument("--scores", choices=KINDS, default="labelwise")
    one.add_argument("--q", type=float, default=0.7, help="of the generalized cross-entropy")
    one.add_argument("--seed", type=int, default=0)
    one.add_argument("--json", action="store_true", help="print a line of JSON")
    one.set_defaults(run=run_certify)
    every = commands.add_parser("table", help="all combinations, as a document")
    every.add_argument("--output", type=Path, default=Path("docs/guarantees.md"))
    every.add_argument("--rows", type=Path, default=Path("benchmarks/results/guarantees.jsonl"))
    every.add_argument("--render", action="store_true", help="from the rows there are")
    every.add_argument("--seed", type=int, default=0)
    every.set_defaults(run=run_table)
    shown = commands.add_parser("pictures", help="regrets with bounds, excess risks; needs plots")
    shown.add_argument("--output", type=Path, default=Path("docs/pictures"))
    shown.add_argument("--rows", type=Path, default=Path("benchmarks/results/excess_risk.jsonl"))
    shown.set_defaults(run=run_pictures)
    return parser


if __name__ == "__main__":
    sys.exit(main())
