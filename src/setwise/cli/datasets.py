"""`setwise datasets list | info | fetch`: what there is, what is in a file, what OpenML has."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from setwise.cli.options import DataFile, Json, Reading, names, reads_files
from setwise.cli.output import help_of, say

datasets = typer.Typer(
    help="Data sets: known ones, what a file holds, and fetching from OpenML.",
    rich_markup_mode=None,
)
# Multi-label sets of OpenML by number; a name alone may also be that of another set.
KNOWN = {
    "birds": 40588,
    "emotions": 40589,
    "enron": 40590,
    "genbase": 40591,
    "image": 40592,
    "langLog": 40593,
    "reuters": 40594,
    "scene": 40595,
    "slashdot": 40596,
    "yeast": 40597,
}
MOST_FREQUENT = 10


@datasets.callback(invoke_without_command=True)
def _help(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def list_known(
    json: Json = False,
) -> None:
    r"""List the data sets that `setwise datasets fetch` knows by name.

    \b
    Examples:
      setwise datasets list
      setwise datasets list --json

    Exit status: 0.
    """
    lines = [f"{name:<10} OpenML {number}" for name, number in KNOWN.items()]
    told = {"known": [{"name": name, "openml": number} for name, number in KNOWN.items()]}
    say(json, told, "\n".join([*lines, "Any other of OpenML can be fetched by its number."]))


@reads_files
def info(
    data: DataFile,
    json: Json = False,
    *,
    reading: Reading,
) -> None:
    r"""Say what is in a file: rows, features, labels, how often they come, what is missing.

    \b
    Examples:
      setwise datasets info books.csv --label-column tags --separator ";"
      setwise datasets info yeast.arff --json

    Exit status: 0 fine; 2 the file or an option is wrong.
    """
    _say(json, reading.read(data))


def fetch(
    name: Annotated[str, typer.Argument(help="A name of `setwise datasets list`, or a number.")],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="A new folder, which `setwise fit` reads as it is."),
    ] = None,
    labels: Annotated[
        str | None, typer.Option(help="Its labels, commas between; by default OpenML's targets.")
    ] = None,
    version: Annotated[int | None, typer.Option(help="Of a name that is not listed.")] = None,
    cache: Annotated[
        Path | None, typer.Option(help="Where files are kept; by default the user's cache folder.")
    ] = None,
    url: Annotated[str | None, typer.Option(help="Another server with OpenML's interface.")] = None,
    json: Json = False,
) -> None:
    r"""Fetch a data set from OpenML, once; later it is read from the cache.

    \b
    Examples:
      setwise datasets fetch yeast -o yeast
      setwise fit yeast --target f1 --test-share 0.3 -o model.skops
      setwise datasets fetch 40595 --json

    Exit status: 0 fine; 2 there is no network, no such data set, or its file is damaged.
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
    order = np.argsort(-counts, kind="stable")
    frequent = [(str(data.label_names[i]), int(counts[i])) for i in order[:MOST_FREQUENT]]
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
        "most_frequent_labels": dict(frequent),
    }
    width = max(len(name) for name, _ in frequent)
    lines = [f"  {name:<{width}}  {count}" for name, count in frequent]
    say(json_wanted, told, "\n".join([str(data), "most frequent labels, by rows:", *lines]))


def write_folder(data: Any, path: Path) -> None:
    """Write X, Y and meta.json; the folder appears when it is complete, and must be new."""
    import json
    import os
    from uuid import uuid4

    import numpy as np
    from scipy.sparse import csr_array, issparse, save_npz

    from setwise.atomic_write import PARTIAL

    beside = path.with_name(f".{path.name}.{uuid4().hex}{PARTIAL}")
    beside.mkdir()
    if issparse(data.X):
        save_npz(beside / "X.npz", csr_array(data.X))
    else:
        np.save(beside / "X.npy", data.X, allow_pickle=False)
    save_npz(beside / "Y.npz", csr_array(data.Y))
    if data.Y_specific is not None:
        save_npz(beside / "Y_specific.npz", csr_array(data.Y_specific))
    meta = {
        "name": data.name,
        "source": data.source,
        "n": data.n_rows,
        "d": data.n_features,
        "l": data.n_labels,
        "label_names": data.label_names.tolist(),
        "feature_names": None if data.feature_names is None else data.feature_names.tolist(),
    }
    if data.hierarchy is not None:
        meta["hierarchy_edges"] = data.hierarchy.tolist()
    if data.edge_lengths is not None:
        meta["hierarchy_lengths"] = data.edge_lengths.tolist()
    if data.split is not None:
        meta["split"] = {name: {"indices": rows.tolist()} for name, rows in data.split.items()}
    known = {key: value for key, value in meta.items() if value is not None}
    (beside / "meta.json").write_text(json.dumps(known, ensure_ascii=False), encoding="utf-8")
    os.rename(beside, path)


for _name, _command in (("list", list_known), ("info", info), ("fetch", fetch)):
    datasets.command(_name, help=help_of(_command))(_command)
