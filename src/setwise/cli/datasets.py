"""`setwise datasets list | info | fetch`: what there is, what is in a file, what OpenML has."""

from __future__ import annotations

import json as json_text
import os
from pathlib import Path
from shutil import rmtree
from typing import Any
from uuid import uuid4

import typer

from setwise.atomic_write import PARTIAL, naming
from setwise.cli.options import command, names, say
from setwise.cli.reading import Reading

datasets = typer.Typer(
    help="Inspect data files, and download data sets from OpenML.",
    rich_markup_mode=None,
    no_args_is_help=True,
)
# Multi-label sets of OpenML by number; a name alone may also be that of another set.
KNOWN = {
    "birds": 40588, "emotions": 40589, "enron": 40590, "genbase": 40591, "image": 40592,
    "langLog": 40593, "reuters": 40594, "scene": 40595, "slashdot": 40596, "yeast": 40597,
}  # fmt: skip
MOST_FREQUENT = 10


@datasets.command("list")
@command()
def list_known(*, json: bool = False) -> None:
    r"""List the data sets that `setwise datasets fetch` knows by name.

    \b
    Examples:
      setwise datasets list
      setwise datasets list --json

    Exit status: 0.
    """
    lines = [f"{name:<10} OpenML {number}" for name, number in KNOWN.items()]
    told = {"known": [{"name": name, "openml": number} for name, number in KNOWN.items()]}
    say(json, told, "\n".join([*lines, "Others can be fetched by their OpenML number."]))


@datasets.command()
@command()
def info(data: Path, *, json: bool = False, reading: Reading) -> None:
    r"""Summarise a file: rows, features, missing values, and the labels with their frequencies.

    \b
    Examples:
      setwise datasets info books.csv --label-column tags --separator ";"
      setwise datasets info yeast.arff --json

    Exit status: 0 success; 2 the file or an option is wrong.
    """
    _say(json, reading.read(data))


@datasets.command()
@command(
    name="A name from `setwise datasets list`, or an OpenML number.",
    output="A new folder for the data, which `setwise fit` reads without further options.",
    labels="The label columns, comma-separated. Default: OpenML's target columns.",
    version="The version to fetch, for names that are not in the list.",
    cache="Where to keep downloads. Default: the user's cache folder.",
    url="Another server with the same interface as OpenML.",
)
def fetch(
    name: str,
    *,
    output: Path | None = None,
    labels: str | None = None,
    version: int | None = None,
    cache: Path | None = None,
    url: str | None = None,
    json: bool = False,
) -> None:
    r"""Download a data set from OpenML; the second time it comes from the cache.

    \b
    Examples:
      setwise datasets fetch yeast -o yeast
      setwise fit yeast --target f1 --test-share 0.3 -o model.skops
      setwise datasets fetch 40595 --json

    Exit status: 0 success; 2 no network, no such data set, or a damaged file.
    """
    from setwise.datasets import fetch as fetched

    options: dict[str, Any] = {} if url is None else {"url": url}
    if labels is not None:
        options["labels"] = names(labels)
    if output is not None and output.exists():
        raise ValueError(f"{str(output)!r} is there already; name a new folder")
    known = name if version is not None else KNOWN.get(name, name)
    found = fetched(known, version=version, cache=cache, **options)
    if known != name and found.name.lower() != name.lower():
        raise ValueError(
            f"OpenML {known} should be {name!r}, but it is {found.name!r}: `setwise datasets list` "
            f"is wrong there; fetch it by its own number, or {found.name!r} as {known}"
        )
    if output is not None:
        write_folder(found, output)
    _say(json, found)


def _say(json_wanted: bool, data: Any) -> None:
    import numpy as np

    # (Signed: the counts of uint8 sets are unsigned, and -0 would come before -1.)
    counts = np.asarray(data.Y.sum(axis=0, dtype=np.int64)).ravel()
    order = np.argsort(-counts, kind="stable")[:MOST_FREQUENT]
    frequent = {str(data.label_names[i]): int(counts[i]) for i in order}
    told = {
        "name": data.name,
        "rows": data.n_rows,
        "features": data.n_features,
        "labels": data.n_labels,
        "labels_a_row": data.cardinality,
        "distinct_sets": data.distinct_sets,
        "rows_without_labels": int((np.asarray(data.Y.sum(axis=1)).ravel() == 0).sum()),
        "missing_values": data.has_missing,
        "hierarchy": data.hierarchy is not None,
        "split": {name: len(rows) for name, rows in (data.split or {}).items()},
        "most_frequent_labels": frequent,
    }
    width = max(map(len, frequent))
    lines = [f"  {name:<{width}}  {count}" for name, count in frequent.items()]
    say(json_wanted, told, "\n".join([str(data), "most frequent labels, by rows:", *lines]))


def write_folder(data: Any, path: Path) -> None:
    """Write X, Y and meta.json; the folder appears when it is complete, and must be new."""
    beside = path.with_name(f".{path.name}.{uuid4().hex}{PARTIAL}")
    try:
        with naming(path, beside):
            beside.mkdir()
            _write_arrays(data, beside)
            os.rename(beside, path)
    except BaseException:
        rmtree(beside, ignore_errors=True)
        raise


def _write_arrays(data: Any, beside: Path) -> None:
    import numpy as np
    from scipy.sparse import csr_array, issparse, save_npz

    for name in ("X", "Y", "Y_specific"):
        array = getattr(data, name)
        if name == "X" and not issparse(array):
            np.save(beside / "X.npy", array, allow_pickle=False)
        elif array is not None:
            save_npz(beside / f"{name}.npz", csr_array(array))
    split = {name: {"indices": rows.tolist()} for name, rows in (data.split or {}).items()}
    meta = {
        "name": data.name,
        "source": data.source,
        "n": data.n_rows,
        "d": data.n_features,
        "l": data.n_labels,
        "label_names": data.label_names,
        "feature_names": data.feature_names,
        "hierarchy_edges": data.hierarchy,
        "hierarchy_lengths": data.edge_lengths,
        "split": split or None,
    }
    known = {key: value for key, value in meta.items() if value is not None}
    text = json_text.dumps(known, ensure_ascii=False, default=np.ndarray.tolist)
    (beside / "meta.json").write_text(text, encoding="utf-8")
