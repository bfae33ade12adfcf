"""The command in this process, and small files for it."""

import json
import sys
from io import BytesIO, TextIOWrapper

import numpy as np
import typer

from setwise.cli import app, main

LABELS = np.array(["art", "law", "war"])
LISTED = ("--label-column", "tags", "--separator", ";")
QUICK = ("--no-cv", "--alpha", "0.01")
# What is typed for each command, those of groups too, and what Typer knows of it.
EVERY_COMMAND = {
    words: command
    for name, one in typer.main.get_command(app).commands.items()
    for words, command in (
        {(name, own): inner for own, inner in one.commands.items()}
        if hasattr(one, "commands")
        else {(name,): one}
    ).items()
}


def run(capfd, *words, stdin=None):
    """Status, output and complaints of a command."""
    before = sys.stdin
    if stdin is not None:
        sys.stdin = TextIOWrapper(BytesIO(stdin))
    try:
        status = main([str(word) for word in words])
    finally:
        sys.stdin = before
    printed = capfd.readouterr()
    return status, printed.out, printed.err


def found(capfd, *words):
    """The JSON that a command prints."""
    status, out, err = run(capfd, *words, "--json")
    assert status == 0, err
    return json.loads(out)


def rows(n_rows=80, seed=0, missing=0.0):
    """Features of three decimals, and label sets that depend on them."""
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(n_rows, 4)).round(3)
    weights = np.random.default_rng(1).normal(size=(4, 3))
    Y = X @ weights + generator.normal(size=(n_rows, 3)) > 0.5
    X[generator.random(X.shape) < missing] = np.nan
    return X, Y


def write_listed(path, X, Y, names=LABELS):
    """A table with the labels of a row in one column."""
    lines = ["a,b,c,d,tags"]
    for x, y in zip(X, Y, strict=True):
        cells = ["" if np.isnan(value) else repr(float(value)) for value in x]
        lines.append(",".join([*cells, ";".join(names[y])]))
    path.write_text("\n".join(lines) + "\n")
    return path
