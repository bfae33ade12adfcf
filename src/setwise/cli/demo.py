"""`setwise demo`: four methods and four targets on data whose truth is known."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from setwise.cli.output import PAGE, can_write, say


def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Where the report goes.")] = Path(
        "report.html"
    ),
    jobs: Annotated[int, typer.Option(help="Processes at work at once.", min=1)] = 1,
    json: Annotated[bool, typer.Option("--json", help="Print one line of JSON.")] = False,
) -> None:
    r"""Compare methods on data with a known truth; print exact regrets, write the report.

    \b
    Examples:
      setwise demo
      setwise demo -o demo.html --json

    Exit status: 0 fine; 2 the report cannot be written there; 130 interrupted.
    """
    can_write(output, replaces=PAGE)
    from setwise.demo import demonstrated, regrets, table
    from setwise.report import write

    results = demonstrated(jobs)
    write(results, output)
    told = {"report": str(output), "regret": regrets(results)}
    say(json, told, f"{table(results)}\n\nreport: {output}")
