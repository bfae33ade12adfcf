"""The command `setwise`. Each of its commands has a file of its own, and loads what it needs.

Exit status: 0 with an answer; 1 when part of what was asked could not be done; 2 when what was
asked cannot be answered, and a line that says why; 130 when interrupted.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence
from typing import Any

import typer

from setwise.atomic_write import naming
from setwise.cli.card import card
from setwise.cli.certify import certify
from setwise.cli.compare import compare, demo
from setwise.cli.compile import compile
from setwise.cli.convert import convert
from setwise.cli.datasets import datasets
from setwise.cli.doctor import doctor
from setwise.cli.evaluate import evaluate
from setwise.cli.explain import explain
from setwise.cli.fit import fit
from setwise.cli.options import DONE, INTERRUPTED, PARTLY, REFUSED, STDOUT, echo, spelt
from setwise.cli.predict import decode, predict
from setwise.spelling import SPELLING

app = typer.Typer(
    name="setwise", rich_markup_mode=None, add_completion=False, pretty_exceptions_enable=False
)
for _command in (
    fit, predict, evaluate, explain, compare, decode, certify, convert, card, demo, doctor,
    compile,
):  # fmt: skip
    app.command()(_command)
app.add_typer(datasets, name="datasets")


@app.callback(invoke_without_command=True)
def setwise(
    context: typer.Context,
    version: bool = typer.Option(False, "--version", help="Print the version and exit."),
) -> None:
    """Multi-label learning for the measure you are judged by.

    \b
    Examples:
      setwise demo
      setwise fit books.csv --label-column tags --separator ";" --target f1 -o model.skops
      setwise predict model.skops new.csv -o predictions.csv
      setwise compare books.csv --label-column tags --separator ";" --targets f1,jaccard -o study

    \b
    Exit status:
      0    success
      1    part of the work failed, or the output could not be delivered
      2    wrong input or option; one line on standard error says what
      130  interrupted
    """  # noqa: D301 - Typer reads the backspace, and leaves what follows as it is
    if version:
        from setwise import __version__

        echo(__version__)
    elif context.invoked_subcommand is None:
        echo(context.get_help())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with these arguments, or those of the process; returns the exit status."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    as_before = SPELLING.set(spelt)
    with warnings.catch_warnings():
        warnings.showwarning = _warn
        # What the user is to know is said, whatever the environment thinks of warnings.
        warnings.simplefilter("always", UserWarning)
        try:
            # (Not by calling the app, which makes an end of its own of interrupts and pipes.)
            command = typer.main.get_command(app)
            with command.make_context("setwise", list(given), obj=given) as context:
                status = command.invoke(context)
            if sys.stdout is not None:
                with naming(STDOUT):
                    sys.stdout.flush()
            return status if isinstance(status, int) else DONE
        except typer.Exit as leave:
            return leave.exit_code
        except KeyboardInterrupt as interrupt:
            # What was interrupted may have left a note: how to go on.
            notes = getattr(interrupt, "__notes__", ())
            echo("\n".join(["setwise: interrupted", *notes]), err=True)
            return INTERRUPTED
        except BrokenPipeError:
            # Nobody reads the output any more: nothing is left to say, at exit either.
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            return PARTLY
        except Exception as error:
            said = _complaint(error)
            if said is None:
                raise
            echo(f"setwise: {' '.join(said.split())}", err=True)
            return REFUSED
        finally:
            SPELLING.reset(as_before)


def _complaint(error: Exception) -> str | None:
    """What is wrong, of the user or of the machine; None for an error of setwise's own."""
    # Typer's own complaints about arguments say in format_message what they are about.
    if hasattr(error, "format_message"):
        return error.format_message()  # type: ignore
    if isinstance(error, OSError) and error.strerror:
        return error.strerror + ("" if error.filename is None else f": {str(error.filename)!r}")
    if isinstance(error, MemoryError):
        return f"there is not enough memory for this: {error}".rstrip(": ")
    known = isinstance(error, ValueError | OSError | ImportError)
    return str(error) if known else None


def _warn(message: Warning | str, *more: Any) -> None:
    """A warning as one line on the error stream."""
    echo(f"setwise: warning: {' '.join(str(message).split())}", err=True)
