"""What commands share: how they are declared, how data files are read, where output goes."""

from __future__ import annotations

import csv
import inspect
import json
import os
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import wraps
from itertools import accumulate, chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import typer

from setwise.atomic_write import naming, opened_whole
from setwise.spelling import as_python, counted
from setwise.terminal import printable

if TYPE_CHECKING:
    from setwise.datasets import Dataset
    from setwise.targets import Target
    from setwise.taxonomy import Taxonomy

# Exit statuses.
DONE, PARTLY, REFUSED, INTERRUPTED = 0, 1, 2, 130
NEEDED = "--taxonomy FILE names one, or --path-separator / where labels are path names such as a/b"
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
    "test_share": "Alternatively, hold out this share of the rows for testing, e.g. 0.25.",
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

# Fields of `Reading` that `setwise.datasets.read` does not take, or not in the same way.
OUTSIDE = ("format", "taxonomy", "path_separator", "close", "unseen_labels")


def command(**helps: str) -> Callable[..., Any]:
    """Declare a function as a command: what may be given by place is an argument, the rest options.

    ``helps`` says what they mean where `HELP` does not. A parameter ``reading`` stands for an
    option for each field of `Reading`.
    """

    def declared(function: Callable[..., Any]) -> Callable[..., Any]:
        parameters: list[inspect.Parameter] = []
        for parameter in inspect.signature(function, eval_str=True).parameters.values():
            own = [parameter]
            if parameter.annotation is Reading:
                own = list(inspect.signature(Reading, eval_str=True).parameters.values())
                own = [part.replace(kind=inspect.Parameter.KEYWORD_ONLY) for part in own]
            parameters += [_parameter(part, HELP | helps) for part in own]

        @wraps(function)
        def called(**given: Any) -> Any:
            if any(parameter.name == "label_column" for parameter in parameters):
                parts = {field.name: given.pop(field.name) for field in fields(Reading)}
                given["reading"] = Reading(**parts)
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


# ------------------------------------------------------------------------------------ what is read


@dataclass(frozen=True)
class Reading:
    """How a file is read: options of `setwise.datasets.read` under the same names, a hierarchy.

    None where nothing is said.
    """

    labels: str | None = None
    label_prefix: str | None = None
    label_column: str | None = None
    separator: str | None = None
    text_columns: str | None = None
    categorical: str | None = None
    drop: str | None = None
    delimiter: str | None = None
    encoding: str | None = None
    unknown_labels: Literal["refuse", "leave_out"] | None = None
    unseen_categories: Literal["refuse", "zeros"] | None = None
    unseen_labels: Literal["refuse", "missed"] | None = None
    xml: Path | None = None
    format: str | None = None
    taxonomy: Path | None = None
    path_separator: str | None = None
    close: bool = False

    @property
    def options(self) -> dict[str, Any]:
        """What was said, as the readers take it."""
        given = {
            field.name: getattr(self, field.name)
            for field in fields(self)
            if field.name not in OUTSIDE
        }
        given["text"] = given.pop("text_columns")
        given = {name: value for name, value in given.items() if value is not None}
        for name in ("labels", "text", "categorical", "drop"):
            if name in given and (name, given[name]) != ("categorical", "auto"):
                # (--drop '' is the column without a name.)
                given[name] = names(given[name]) or [""]
        if self.labels is not None and self.labels.removeprefix("-").isdecimal():
            given["labels"] = int(self.labels)
        if self.delimiter in ("tab", "\\t"):
            given["delimiter"] = "\t"
        return given

    def read(self, path: Path, test: Path | None = None) -> Dataset:
        """The file, and the rows to test on if they are in another."""
        from setwise.datasets import read
        from setwise.datasets.reading import with_test

        if test is None and self.unseen_labels is not None:
            raise ValueError("--unseen-labels is for labels that only a second file has (--test)")
        data = self.placed(read(path, format=self.format, **self.options))
        data = data if test is None else with_test(data, test, self.unseen_labels)
        say_unseen(data.unseen)
        return data

    def placed(self, data: Dataset) -> Dataset:
        """The data with the labels of the taxonomy that was asked for, closed if it was."""
        taxonomy = self.over(data.label_names.tolist(), data.name)
        if taxonomy is None and not self.close:
            return data
        if taxonomy is None and data.hierarchy is None:
            raise ValueError(
                f"--close adds what stands above labels, but {data.name} has no hierarchy; {NEEDED}"
            )
        with concerning("with --close" if self.close else "without --close"):
            return data.under(data.taxonomy if taxonomy is None else taxonomy, self.close)

    def over(self, labels: Sequence[str], where: str) -> Taxonomy | None:
        """The taxonomy that has these labels, or None if none is asked for."""
        from setwise.taxonomy import Taxonomy

        mark = self.path_separator
        if self.taxonomy is not None and mark is not None:
            raise ValueError("--taxonomy and --path-separator exclude each other")
        if self.taxonomy is not None:
            return Taxonomy.read(self.taxonomy)
        if mark is None:
            return None
        if not any(mark in label for label in labels):
            raise ValueError(
                f"--path-separator parts path names, but {mark!r} is in no label of {where}, such "
                f"as {labels[0]!r}"
            )
        above = (accumulate(label.split(mark), f"{{}}{mark}{{}}".format) for label in labels)
        return Taxonomy.from_paths(list(dict.fromkeys(chain.from_iterable(above))), mark)


def refuse_unknown(*targets: str) -> None:
    """Raise for a name that is no target's, before anything is read."""
    from setwise.targets.registry import known_name

    for name in targets:
        if known_name(name) != "tree":
            target_for(name)


def target_for(name: str, data: Any = None) -> Target:
    """A target by name; "tree" is the distance in the hierarchy of the data."""
    from setwise.targets import TreeDistance, get_target
    from setwise.targets.registry import known_name

    if data is not None and known_name(name) == "tree":
        if data.hierarchy is None:
            raise ValueError(f"{data.name} has no hierarchy, which the target tree needs; {NEEDED}")
        return TreeDistance(data.taxonomy)
    return get_target(name)


def decoder_asked(target: Any, decoder: str, budget: int | None, at_most: int | None) -> Any:
    """What label sets are to be decided by: a name, or a rule with a budget of labels a row."""
    from setwise.decoders import PopulationRule
    from setwise.targets.target import judges_all_rows

    if budget is None and at_most is None:
        return decoder
    if not judges_all_rows(target):
        raise ValueError(
            f"--budget and --at-most are for measures of all rows together, such as macro_f1, but "
            f"the target is {target}; precision@3 and recall@3 ask for 3 labels a row"
        )
    rule: Any = decoder
    return PopulationRule(target, rule, budget, at_most)


def held_out(data: Dataset, share: float | None, seed: int) -> Dataset:
    """The data with a random share of the rows to test on, if asked for."""
    if share is None:
        return data
    if not 0.0 < share < 1.0:
        raise ValueError(f"--test-share must be between 0 and 1, such as 0.3, but it is {share}")
    if data.split is not None:
        raise ValueError(
            f"{data.name} has a test part already: --test-share is for a file without one"
        )
    return data.split_off(seed=seed, train=1.0 - share)


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
