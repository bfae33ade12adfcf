"""Options that commands share, and what is made of those that say how a data file is read."""

from __future__ import annotations

import csv
import inspect
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from setwise.datasets import Dataset
    from setwise.targets import Target
    from setwise.taxonomy import Taxonomy

NEEDED = "--taxonomy FILE names one, or --path-separator / where labels are path names such as a/b"

DataFile = Annotated[
    Path, typer.Argument(help="CSV, TSV, Parquet, ARFF, LIBSVM, extreme-classification file.")
]
ModelFile = Annotated[Path, typer.Argument(help="A file that `setwise fit` wrote.")]
TargetName = Annotated[
    str,
    typer.Option(
        help="What predictions are judged by: hamming, f1, f2, jaccard, subset, precision@3, "
        "recall@5, ..., tree (the distance in a hierarchy: that of the data, --taxonomy or "
        "--path-separator)."
    ),
]
Output = Annotated[
    Path | None, typer.Option("--output", "-o", help="A file; by default the standard output.")
]
TestFile = Annotated[
    Path | None, typer.Option(help="A second file, to test on; by default the file's own.")
]
TestShare = Annotated[
    float | None, typer.Option(help="Instead: test on this share of the rows, drawn by --seed.")
]
Jobs = Annotated[int, typer.Option(help="Processes at work at once.", min=1)]
Seed = Annotated[int, typer.Option(help="Of all that is random.", min=0)]
Json = Annotated[bool, typer.Option("--json", help="Print one line of JSON.")]

TaxonomyFile = Annotated[
    Path | None,
    typer.Option(
        help="A hierarchy over the labels, which are found by name: a text file with lines of "
        "parent, child and perhaps length, or of path names such as a/b/c."
    ),
]
PathSeparator = Annotated[
    str | None,
    typer.Option(
        help="Instead: labels are path names, and this parts them, such as / in "
        "Home/Garden/Hoses; what stands above a label is a label too."
    ),
]


def _option(help: str, *names: str) -> Any:
    return typer.Option(*names, help=help)


@dataclass(frozen=True)
class Reading:
    """How a file is read: options of `setwise.datasets.read` under the same names, a hierarchy.

    None where nothing is said. `reads_files` makes an option of a command of each.
    """

    labels: Annotated[
        str | None,
        _option(
            "Columns of 0 and 1 that are labels, commas between; of ARFF also how many there are, "
            "first or, if negative, last."
        ),
    ] = None
    label_prefix: Annotated[
        str | None, _option("Instead: what the names of these columns begin with.")
    ] = None
    label_column: Annotated[
        str | None, _option("Instead: the one column that lists the labels of a row.")
    ] = None
    separator: Annotated[
        str | None, _option("Between the labels of --label-column; by default a comma.")
    ] = None
    text_columns: Annotated[
        str | None, _option("Columns of text, commas between: TF-IDF features.")
    ] = None
    categorical: Annotated[
        str | None, _option("Columns of categories, commas between; auto: all that are no numbers.")
    ] = None
    drop: Annotated[str | None, _option("Columns to leave out, commas between.")] = None
    delimiter: Annotated[
        str | None, _option("Between cells; by default a tab in .tsv files, else a comma.")
    ] = None
    encoding: Annotated[str | None, _option("Of the text; by default utf-8.")] = None
    unknown_labels: Annotated[
        str | None, _option("Rows with unknown labels: refuse (default) or leave_out.")
    ] = None
    xml: Annotated[Path | None, _option("Mulan's XML file beside an ARFF file.")] = None
    format: Annotated[
        str | None,
        _option("arff, libsvm, extreme, table or folder; by default found by name and content."),
    ] = None
    taxonomy: TaxonomyFile = None
    path_separator: PathSeparator = None
    close: Annotated[
        bool,
        _option(
            "Give each label set what stands above its labels; without it, sets that lack it are "
            "refused.",
            "--close",
        ),
    ] = False

    @property
    def options(self) -> dict[str, Any]:
        """What was said, as the readers take it."""
        given = {field.name: getattr(self, field.name) for field in fields(self)[:11]}
        given["text"] = given.pop("text_columns")
        given = {name: value for name, value in given.items() if value is not None}
        for name in ("labels", "text", "categorical", "drop"):
            if name in given and (name, given[name]) != ("categorical", "auto"):
                # (--drop '' is the column without a name.)
                given[name] = names(given[name]) or [""]
        if self.labels is not None and self.labels.removeprefix("-").isdecimal():
            given["labels"] = int(self.labels)
        if given.get("delimiter") in ("tab", "\\t"):
            given["delimiter"] = "\t"
        return given

    def read(self, path: Path, test: Path | None = None) -> Dataset:
        """The file, and the rows to test on if they are in another."""
        from setwise.datasets import read
        from setwise.datasets.reading import with_test

        data = self.placed(read(path, format=self.format, **self.options))
        return data if test is None else with_test(data, test)

    def placed(self, data: Dataset) -> Dataset:
        """The data with the labels of the taxonomy that was asked for, closed if it was."""
        labels = data.label_names.tolist()
        taxonomy = taxonomy_over(labels, self.taxonomy, self.path_separator, data.name)
        if taxonomy is None and self.close and data.hierarchy is None:
            raise ValueError(
                f"--close adds what stands above labels, but {data.name} has no hierarchy; {NEEDED}"
            )
        if taxonomy is None and not self.close:
            return data
        with concerning("with --close" if self.close else "without --close"):
            return data.under(data.taxonomy if taxonomy is None else taxonomy, self.close)


def reads_files(command: Callable[..., Any]) -> Callable[..., Any]:
    """The command with the fields of `Reading` as options, which it gets as one: ``reading``."""
    own = inspect.signature(command, eval_str=True).parameters
    hints = get_type_hints(Reading, include_extras=True)
    kind = inspect.Parameter.KEYWORD_ONLY
    parameters = [own[name].replace(kind=kind) for name in own if name != "reading"]
    for field in fields(Reading):
        shared = {"default": field.default, "annotation": hints[field.name]}
        parameters.append(inspect.Parameter(field.name, kind, **shared))

    @wraps(command)
    def called(**given: Any) -> Any:
        reading = Reading(**{field.name: given.pop(field.name) for field in fields(Reading)})
        return command(**given, reading=reading)

    called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    called.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return called


def names(words: str) -> list[str]:
    """Names with commas between; one with a comma in it stands in double quotes.

    Examples
    --------
    >>> names('art,"law, civil"')
    ['art', 'law, civil']
    """
    return next(csv.reader([words], skipinitialspace=True), [])


def taxonomy_over(
    labels: Sequence[str], file: Path | None, separator: str | None, where: str
) -> Taxonomy | None:
    """The taxonomy that has these labels, or None if none is asked for."""
    from setwise.taxonomy import Taxonomy

    if file is not None and separator is not None:
        raise ValueError("--taxonomy and --path-separator exclude each other")
    if file is not None:
        return Taxonomy.read(file)
    if separator is None:
        return None
    if not any(separator in label for label in labels):
        raise ValueError(
            f"--path-separator parts path names, but {separator!r} is in no label of {where}, such "
            f"as {labels[0]!r}"
        )
    from_above: dict[str, None] = {}
    for label in labels:
        parts = label.split(separator)
        above = (separator.join(parts[:n]) for n in range(1, len(parts) + 1))
        from_above.update(dict.fromkeys(above))
    return Taxonomy.from_paths(labels, separator, missing="add").over(list(from_above))


def target_for(name: str, data: Any) -> Target:
    """A target by name; "tree" is the distance in the hierarchy of the data."""
    from setwise.targets import TreeDistance, get_target

    require_target(name)
    if name != "tree":
        return get_target(name)
    if data.hierarchy is None:
        raise ValueError(f"{data.name} has no hierarchy, which the target tree needs; {NEEDED}")
    return TreeDistance(data.taxonomy)


def require_target(name: str) -> None:
    """Raise unless there is a target of that name, "tree" among them."""
    from setwise.targets.registry import TARGETS, is_named

    if name != "tree" and not is_named(name):
        known = ", ".join(target.replace("*", "NUMBER") for target in TARGETS)
        raise ValueError(f"there is no target named {name!r}; known are {known}, tree")


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


@contextmanager
def concerning(what: str) -> Iterator[None]:
    """Say, before what the library says is wrong, which option it is about. (It names files.)"""
    from setwise.datasets import DataError

    try:
        yield
    except DataError:
        raise
    except ValueError as error:
        raise ValueError(f"{what}: {error}") from error
