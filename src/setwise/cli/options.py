"""What commands share: how they are declared, how options are written, where output goes."""

from __future__ import annotations

import csv
import inspect
import json
import os
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from setwise.atomic_write import naming, opened_whole
from setwise.spelling import as_python, counted
from setwise.terminal import printable

# Exit statuses.
DONE, PARTLY, REFUSED, INTERRUPTED = 0, 1, 2, 130
# What errors call the two streams.
STDOUT, STDERR = "standard output", "standard error"
# How the files begin that a command writes, and may therefore replace.
MODEL, PAGE = (b"PK", "a model"), (b"<!doctype html", "a page")
# The help of options that several commands have.
HELP = {
    "data": "A CSV, TSV, Parquet, ARFF, LIBSVM or extreme-classification file.",
    "model": "A model file written by `setwise fit`.",
    "target": "The measure you are judged by. Measures computed for each row and averaged: "
    "hamming, f1, f2, jaccard, subset (exact match), precision@3, recall@5, ..., tree (distance in "
    "a label hierarchy). Measures computed over all rows at once: macro_f1, micro_f1, "
    "balanced_accuracy, ... scikit-learn's scorer names work too.",
    "test": "A second file to test on. Default: the file's own test split, if it has one.",
    "test_share": "Alternatively, hold out this share of the rows for testing, e.g. 0.25. The same "
    "share and --seed hold out the same rows in every command.",
    "jobs": "Number of processes to run in parallel.",
    "seed": "Random seed; the same seed gives the same result.",
    "json": "Print the result as one line of JSON.",
    "decoder": "How probabilities become label sets. auto: whatever suits the target. For measures "
    "of single rows: minimum_risk (smallest expected loss), most_likely (the most probable label "
    "set) or marginals (smallest expected loss if labels were independent). For measures of all "
    "rows at once, a way to set thresholds: expected, calibrated, batch, thresholds, cross_fitted "
    "or micro_macro.",
    "budget": "Predict exactly this many labels per row (measures of all rows at once only).",
    "at_most": "Alternatively, predict at most this many labels per row.",
    "zero_division": "What 0/0 counts as in precision, recall, F1 and Jaccard: 0 as in "
    "scikit-learn, 1, or nan to leave such rows and labels out.",
    "labels": "Names of the 0/1 columns that are labels, comma-separated. For ARFF files also a "
    "number: the first N columns are labels, or the last N if it is negative.",
    "label_prefix": "Alternatively, the prefix that the names of all label columns start with.",
    "label_column": "Alternatively, the one column that lists the labels of each row.",
    "separator": "What separates the labels in --label-column. Default: a comma.",
    "text_columns": "Columns of free text, comma-separated; they become TF-IDF features.",
    "categorical": "Columns of categories, comma-separated; auto: all columns that are not "
    "numeric.",
    "drop": "Columns to ignore, comma-separated.",
    "delimiter": "What separates the cells. Default: a tab for .tsv files, otherwise a comma.",
    "encoding": "Text encoding. Default: utf-8.",
    "unknown_labels": "What to do with rows whose labels are unknown ('?'): refuse (default) or "
    "leave_out.",
    "unseen_categories": "What to do with categories that the training file did not have: refuse "
    "(default), or zeros, which sets all features of the column to 0 and reports how many there "
    "were.",
    "unseen_labels": "What to do with true labels that the training file did not have: refuse "
    "(default), or missed, which counts each as a label the model failed to predict and reports "
    "how many there were.",
    "xml": "The Mulan XML file that belongs to an ARFF file.",
    "format": "File format: arff, libsvm, extreme, table or folder. Default: detected from name "
    "and content.",
    "taxonomy": "A text file with the label hierarchy: either one edge per line (parent, child, "
    "optionally a length), or one path per line, such as a/b/c.",
    "path_separator": "Alternatively, labels are paths split by this character, such as / in "
    "Home/Garden/Hoses; every ancestor becomes a label too.",
    "close": "Add the missing ancestors to each label set. Without this option, label sets with "
    "missing ancestors are refused.",
}
SPELT = {"output": ["--output", "-o"], "cv": ["--cv/--no-cv"]}
LEAST = {
    "seed": 0, "jobs": 1, "folds": 2, "resamples": 0, "budget": 1, "at_most": 1, "rows": 1,
}  # fmt: skip
# All options of all commands, and arguments of the library that are options by another name.
OPTIONS = set(HELP)
RENAMED = {
    "text": "text_columns",
    "cv": "folds",
    "surrogates": "surrogate",
    "spaces": "space",
    "alphas": "alpha",
    "rule": "decoder",
}


def command(**helps: str) -> Callable[..., Any]:
    """Declare a function as a command: what may be given by place is an argument, the rest options.

    ``helps`` says what they mean where `HELP` does not. A parameter that is a dataclass, such as
    `Reading`, stands for an option for each of its fields.
    """

    def declared(function: Callable[..., Any]) -> Callable[..., Any]:
        parameters: list[inspect.Parameter] = []
        grouped: dict[str, Any] = {}
        for parameter in inspect.signature(function, eval_str=True).parameters.values():
            own = [parameter]
            if is_dataclass(parameter.annotation):
                grouped[parameter.name] = parameter.annotation
                of_kind = inspect.signature(grouped[parameter.name], eval_str=True).parameters
                own = [
                    part.replace(kind=inspect.Parameter.KEYWORD_ONLY) for part in of_kind.values()
                ]
            parameters += [_parameter(part, HELP | helps) for part in own]

        @wraps(function)
        def called(**given: Any) -> Any:
            for name, kind in grouped.items():
                given[name] = kind(**{field.name: given.pop(field.name) for field in fields(kind)})
            return function(**given)

        called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        called.__annotations__ = {part.name: part.annotation for part in parameters}
        # (The mark keeps the lines of a paragraph apart.)
        called.__doc__ = (function.__doc__ or "").replace(r"\b", "\b")
        return called

    return declared


def _parameter(given: inspect.Parameter, helps: dict[str, str]) -> inspect.Parameter:
    """With what Typer is to know of it."""
    name, kind = given.name, given.annotation
    if kind is typer.Context:
        return given.replace(kind=inspect.Parameter.KEYWORD_ONLY)
    if given.kind is inspect.Parameter.KEYWORD_ONLY:
        words = SPELT.get(name, [f"--{name.replace('_', '-')}"] if kind is bool else [])
        told = typer.Option(*words, help=helps[name], min=LEAST.get(name))
        OPTIONS.add(name)
    else:
        told = typer.Argument(help=helps[name])
    return given.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=Annotated[kind, told])


@contextmanager
def concerning(what: str) -> Iterator[None]:
    """Begin the message of a ValueError with what it is about. (A `DataError` names its file.)"""
    from setwise.datasets import DataError

    try:
        yield
    except DataError:
        raise
    except ValueError as error:
        raise ValueError(f"{what}: {error}" if what else str(error)) from error


def given(context: typer.Context, options: Iterable[str]) -> list[str]:
    """The names of those options that the user typed."""
    sources: Any = {name: context.get_parameter_source(name) for name in options}
    return [name for name, source in sources.items() if source.name == "COMMANDLINE"]


def typed(context: typer.Context, *options: str) -> str:
    """Those of the options that the user typed, as they were."""
    return " ".join(option(name, context.params[name]) for name in given(context, options))


def option(name: str, value: Any) -> str:
    """An argument as it is typed.

    Examples
    --------
    >>> option("text_columns", ["title", "body"])
    '--text-columns title,body'
    """
    words = [
        "..." if word is ... else str(word)
        for word in (value if isinstance(value, list) else [value])
    ]
    return f"--{name.replace('_', '-')} {shlex.quote(','.join(words))}"


def spelt(name: str, value: Any) -> str:
    """An argument of the library in its messages: the option that sets it, if one does.

    Examples
    --------
    >>> spelt("text", ["title"]), spelt("max_bytes", 5)
    ('--text-columns title', 'max_bytes=5')
    """
    known = RENAMED.get(name, name)
    return option(known, value) if known in OPTIONS else as_python(name, value)


def names(words: str) -> list[str]:
    """Names with commas between; one with a comma in it stands in double quotes.

    Examples
    --------
    >>> names('art,"law, civil"')
    ['art', 'law, civil']
    """
    return next(csv.reader([words], skipinitialspace=True), [])


def numbers(words: str, kind: type[int] | type[float], expected: str) -> list[Any]:
    """Numbers with commas between, or a ValueError that says what is expected."""
    try:
        return [kind(word) for word in words.split(",")]
    except ValueError:
        raise ValueError(f"{expected}, not {words!r}") from None


# --------------------------------------------------------------------------------- what is written


def say(json_wanted: bool, told: dict[str, Any], words: str) -> None:
    """Print what was found, as one line of JSON or in words."""
    text = json.dumps(told, ensure_ascii=False, allow_nan=False) if json_wanted else words
    echo(text, json=json_wanted)


def echo(text: str, err: bool = False, json: bool = False) -> None:
    """Print a text; on a terminal control characters that came with the data as escapes."""
    stream = sys.stderr if err else sys.stdout
    with naming(STDERR if err else STDOUT):
        # (With color=True it is left as it is where it goes to a file.)
        typer.echo(printable(text, json) if _is_terminal(stream) else text, err=err, color=True)


def say_unseen(unseen: Any, missing_features: int = 0, filled: bool = True) -> None:
    """Say on the error stream what a file has that the training file had not, and what it lacks."""
    lines = list(unseen.words())
    if missing_features:
        what = counted(missing_features, "missing feature value")
        rule = "replaced by the column's mean over the training rows"
        lines.append(f"{what} {rule if filled else 'left missing, as in training'}")
    for line in lines:
        echo(line, err=True)


def can_write(
    path: Path | None,
    inputs: Iterable[Path | None] = (),
    replaces: tuple[bytes, str] | None = None,
) -> None:
    """Raise, before any work is done, if a file cannot be written there or must not be.

    It must not take the place of a file that is read, nor, with ``replaces``, of one that does not
    begin as what is written does.
    """
    if path is None or _is_stream(path):
        return
    real = Path(os.path.realpath(path))
    if any(file and file.exists() and real.exists() and file.samefile(real) for file in inputs):
        raise ValueError(f"{str(path)!r} is read, and would be lost: write to another file")
    if real.is_dir():
        raise ValueError(f"{str(path)!r} is a folder; name a file in it")
    if not os.access(real.parent, os.W_OK):
        raise ValueError(f"there is no folder {str(path.parent)!r} that can be written in")
    if replaces is not None and real.exists():
        begins, what = replaces
        with open(real, "rb") as file:
            start = file.read(len(begins))
        if start and start.lower() != begins.lower():
            raise ValueError(
                f"{str(path)!r} is there and is not {what}: remove it, or write to another file"
            )


@contextmanager
def opened_output(path: Path | None) -> Iterator[_Output]:
    """The file, whole or not at all; without one the standard output."""
    if path is None:
        if sys.stdout is None:
            raise ValueError("the standard output is closed; name a file (-o)")
        yield _Output(sys.stdout.buffer, STDOUT)
        return
    with opened_whole(path if _is_stream(path) else Path(os.path.realpath(path))) as file:
        yield _Output(file, str(path))
    echo(f"wrote {path}", err=True)


class _Output(NamedTuple):
    """Where lines go: to a file as they are, to a terminal without control characters."""

    file: Any
    name: str

    def writelines(self, lines: Iterable[bytes]) -> None:
        for line in lines:
            text = printable(line.decode()).encode() if _is_terminal(self.file) else line
            with naming(self.name):
                self.file.write(text)
        with naming(self.name):
            self.file.flush()


def _is_terminal(stream: Any) -> bool:
    return stream is not None and stream.isatty()


def _is_stream(path: Path) -> bool:
    """Whether something is there that is no file and no folder: a pipe, a terminal."""
    return path.exists() and not path.is_file() and not path.is_dir()
