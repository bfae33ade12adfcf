"""How a data file is to be read: the options that all commands which read one share."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from setwise.cli.taxonomy import FILE_HELP, NEEDED, PATH_HELP, taxonomy_over

if TYPE_CHECKING:
    from setwise.datasets import Dataset
    from setwise.targets import Target

PANEL = "How the file is read"


def _option(*names: str, help: str) -> Any:
    return typer.Option(*names, help=help, rich_help_panel=PANEL)


@dataclass(frozen=True)
class Reading:
    """Options of `setwise.datasets.read` and of the hierarchy; None where nothing is said."""

    labels: Annotated[
        str | None,
        _option(
            "--labels",
            help="Columns of 0 and 1 that are labels, commas between; of ARFF also how many there "
            "are, first or, if negative, last.",
        ),
    ] = None
    label_prefix: Annotated[
        str | None, _option(help="Instead: what the names of these columns begin with.")
    ] = None
    label_column: Annotated[
        str | None, _option(help="Instead: the one column that lists the labels of a row.")
    ] = None
    separator: Annotated[
        str | None, _option(help="Between the labels of --label-column; by default a comma.")
    ] = None
    text_columns: Annotated[
        str | None, _option(help="Columns of text, commas between: TF-IDF features.")
    ] = None
    categorical: Annotated[
        str | None,
        _option(help="Columns of categories, commas between; auto: all that are no numbers."),
    ] = None
    drop: Annotated[str | None, _option(help="Columns to leave out, commas between.")] = None
    delimiter: Annotated[
        str | None, _option(help="Between cells; by default a tab in .tsv files, else a comma.")
    ] = None
    encoding: Annotated[str | None, _option(help="Of the text; by default utf-8.")] = None
    unknown_labels: Annotated[
        str | None, _option(help="Rows with unknown labels: refuse (default) or leave_out.")
    ] = None
    xml: Annotated[Path | None, _option(help="Mulan's XML file beside an ARFF file.")] = None
    format: Annotated[
        str | None,
        _option(
            help="arff, libsvm, extreme, table or folder; by default found by name and content."
        ),
    ] = None

    taxonomy: Annotated[Path | None, _option(help=FILE_HELP)] = None
    path_separator: Annotated[str | None, _option(help=PATH_HELP)] = None
    close: Annotated[
        bool,
        _option(
            "--close",
            help="Give each label set what stands above its labels; without it, sets that lack it "
            "are refused.",
        ),
    ] = False

    def read(self, path: Path, test: Path | None = None) -> Dataset:
        """The file, and the rows to test on if they are in another."""
        from setwise.datasets import read
        from setwise.datasets.files import existing
        from setwise.datasets.reading import recognise, with_test

        options = self.options
        kind = recognise(existing(path)) if self.format is None else self.format
        if kind == "table" and not options.keys() & {"labels", "label_prefix", "label_column"}:
            # (The reader says it too, in the words of Python.)
            raise ValueError(
                f"{path.name}: which columns are labels? Say one of --labels A,B (columns of "
                f"0 and 1), --label-prefix P (what their names begin with) and --label-column "
                f"C (a column that lists them, --separator between)"
            )
        data = self.placed(read(path, format=kind, **options))
        return data if test is None else with_test(data, test)

    def placed(self, data: Dataset) -> Dataset:
        """The data with the labels of the taxonomy that was asked for, closed if it was."""
        names = data.label_names.tolist()
        taxonomy = taxonomy_over(names, self.taxonomy, self.path_separator, data.name)
        if taxonomy is not None:
            return data.under(taxonomy, self.close)
        if not self.close:
            return data
        if data.hierarchy is None:
            raise ValueError(
                f"--close adds what stands above labels, but {data.name} has no hierarchy; {NEEDED}"
            )
        return data.under(data.taxonomy, close=True)

    @property
    def options(self) -> dict[str, Any]:
        """What was said, as the readers take it."""
        lists = {"text": self.text_columns, "drop": self.drop}
        # (--drop '' is the column without a name.)
        given: dict[str, Any] = {
            name: names(words) or [""] for name, words in lists.items() if words is not None
        }
        if self.labels is not None:
            given["labels"] = _count(self.labels) or names(self.labels)
        if self.categorical is not None:
            auto = self.categorical == "auto"
            given["categorical"] = "auto" if auto else names(self.categorical)
        plain = ("label_prefix", "label_column", "separator", "encoding", "unknown_labels", "xml")
        given |= {name: getattr(self, name) for name in plain if getattr(self, name) is not None}
        if self.delimiter is not None:
            given["delimiter"] = {"tab": "\t", "\\t": "\t"}.get(self.delimiter, self.delimiter)
        return given


def names(words: str) -> list[str]:
    """Names with commas between; one with a comma in it stands in double quotes.

    Examples
    --------
    >>> names('art,"law, civil"')
    ['art', 'law, civil']
    """
    return next(csv.reader([words], skipinitialspace=True), [])


def _count(words: str) -> int | None:
    try:
        return int(words)
    except ValueError:
        return None


def target_for(name: str, data: Any) -> Target:
    """A target by name; "tree" is the distance in the hierarchy of the data."""
    from setwise.targets import TreeDistance, get_target

    require_known(name)
    if name != "tree":
        return get_target(name)
    if data.hierarchy is None:
        raise ValueError(f"{data.name} has no hierarchy, which the target tree needs; {NEEDED}")
    return TreeDistance(data.taxonomy)


def require_known(target: str) -> None:
    """Raise unless there is a target of that name, "tree" among them."""
    from setwise.targets.registry import TARGETS, is_named

    if target != "tree" and not is_named(target):
        known = ", ".join(name.replace("*", "NUMBER") for name in TARGETS)
        raise ValueError(f"there is no target named {target!r}; known are {known}, tree")


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
