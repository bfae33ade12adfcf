"""The command `setwise`. Each of its commands has a file of its own, and loads what it needs.

Exit status: 0 with an answer; 2 when what was asked cannot be answered, and a line that says why.
"""

from __future__ import annotations

from collections.abc import Sequence

import typer

from setwise.cli.certify import certify

app = typer.Typer(
    name="setwise", rich_markup_mode=None, add_completion=False, pretty_exceptions_enable=False
)
app.command()(certify)


@app.callback(invoke_without_command=True)
def setwise(
    context: typer.Context,
    version: bool = typer.Option(False, "--version", help="Print the version and leave."),
) -> None:
    """Multi-label learning for the measure you are judged by."""
    if version:
        from setwise import __version__

        typer.echo(__version__)
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with these arguments, or those of the process; returns the exit status."""
    given = None if arguments is None else list(arguments)
    try:
        status = app(given, prog_name="setwise", standalone_mode=False)
    except typer.Abort:
        return 1
    except Exception as error:
        # Typer's own complaints about arguments say in format_message what they are about.
        said = getattr(error, "format_message", None)
        if said is None and not isinstance(error, ValueError):
            raise
        typer.echo(f"setwise: {error if said is None else said()}", err=True)
        return 2
    return status if isinstance(status, int) else 0
