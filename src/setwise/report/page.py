"""The page: all sections in one file that loads nothing and runs one known script."""

from __future__ import annotations

import inspect
import os
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from setwise.atomic_write import write_whole
from setwise.estimators.explanation import Explanation
from setwise.estimators.permuting import Importance
from setwise.evaluation import Evaluation
from setwise.report import labels, leaderboards, probability, words
from setwise.report.examples import examples
from setwise.report.explained import drawn
from setwise.report.explained import explained as explained_rows
from setwise.report.hierarchy import hierarchy
from setwise.report.material import Material, material_of
from setwise.report.tables import SMALL, TABLES, csv_of, link_of
from setwise.study import InHierarchy, Leaderboard, MemberFigures, Results

# Name of the template, title, and what fills it; a section that has nothing to show is left out.
SECTIONS: tuple[tuple[str, str, Callable[[Material], Any]], ...] = (
    ("question", "The question", lambda _: True),
    ("leaderboards", "Leaderboards", leaderboards.leaderboards),
    ("methods", "The methods", leaderboards.methods),
    ("figures", "All measures", leaderboards.figures),
    ("examples", "Example rows", examples),
    ("explained", "Feature effects", explained_rows),
    ("labels", "Labels", labels.labels),
    ("cooccurrence", "Labels that occur together", labels.cooccurrence),
    ("sizes", "Labels per row", labels.sizes),
    ("calibration", "Calibration", probability.calibration),
    ("mixture", "Members of the mixture", probability.mixture),
    ("precision_recall", "Precision and recall", probability.precision_recall),
    ("regret", "Regret", leaderboards.regret),
    ("timing", "Time", leaderboards.timing),
    ("hierarchy", "Hierarchy", hierarchy),
    ("reproduction", "How to reproduce this", lambda material: material.trained),
)


def write(
    judged: Results | Evaluation | Mapping[str, Evaluation],
    path: str | os.PathLike[str],
    *,
    name: str = "",
    label_names: Sequence[Any] | None = None,
    row_names: Sequence[Any] | None = None,
    board: Leaderboard | None = None,
    placed: Sequence[InHierarchy] | None = None,
    members: Mapping[str, Sequence[MemberFigures]] | None = None,
    explained: Mapping[Any, Explanation] | None = None,
    importance: Importance | None = None,
    tables: str | os.PathLike[str] | None = None,
) -> None:
    """Write the report of a study, or of predictions that were evaluated, as one HTML file.

    The file is complete or not there: it is written beside its place and then moved.

    Parameters
    ----------
    judged : Results, Evaluation, or mapping from names to Evaluations
        Of a study, finished or not; or what `setwise.evaluation.evaluate` returned for one
        prediction, or for several of the same rows, by name. The leaderboard is of the targets
        that all were asked for, or of F1, Jaccard, Hamming loss and subset accuracy.
    path : str or path
        Where the file goes; one that is there is replaced.
    name : str, optional
        Of the data, of evaluations; a study has its own.
    label_names : sequence, optional
        What the labels are called, of evaluations; by default the columns of their data frames,
        else the names of the taxonomy, else numbers. A study has its own.
    row_names : sequence, optional
        What the rows are called, of evaluations; by default their numbers. A study has its own.
    board : Leaderboard, optional
        The leaderboard of these results, if it has been made already.
    placed : sequence of InHierarchy, optional
        What `in_hierarchy` gives of these results, if that has been made already.
    members : mapping from names to what `members_of` gives, optional
        Of evaluations of a `SetEnsemble`, by their names: weights, log-losses and reliability of
        its members. (A study has its own.)
    explained : mapping from names of rows to Explanation, optional
        What `setwise.explain` gives of some rows.
    importance : Importance, optional
        What `setwise.feature_importance` gives.
    tables : str or path, optional
        A folder for the tables of the page as CSV files with all digits, one a section, such as
        ``leaderboards.csv``; made if need be, files of these names are replaced. The page itself
        has a link to each, but to that of the labels, which may be large.

    Notes
    -----
    In CSV, text that a spreadsheet would run (it begins with =, +, - or @) has an apostrophe first.

    Equal results give equal bytes. Names from data are text wherever they stand, the page may
    neither load nor send anything, and runs no script but its own (a Content-Security-Policy says
    so to the browser).

    Examples
    --------
    >>> from setwise.evaluation import evaluate
    >>> y_true = [[1, 0, 0], [0, 1, 1], [1, 0, 1], [0, 0, 1]]
    >>> y_pred = [[1, 1, 0], [0, 1, 0], [1, 0, 1], [0, 1, 1]]
    >>> write(evaluate(y_pred, y_true), "page.html", name="Four rows")  # doctest: +SKIP
    """
    place = Path(path)
    if place.is_dir():
        raise ValueError(f"the report cannot be written: {str(place)!r} is a folder")
    if not place.parent.is_dir():
        raise ValueError(f"the report cannot be written: there is no folder {str(place.parent)!r}")
    material = replace(
        material_of(judged, name, label_names, row_names, board, placed),
        members=members or {}, explained=explained or {}, importance=importance,
    )  # fmt: skip
    if unknown := [one for one in material.members if one not in material.results.methods]:
        raise ValueError(
            f"members must be of evaluations that are reported, but {unknown[0]!r} is none of "
            f"{', '.join(material.results.methods)}"
        )
    filled = [(id_, title, section(material)) for id_, title, section in SECTIONS]
    sections = [(id_, title, content) for id_, title, content in filled if content]
    write_whole(place, _page(material, sections).encode())
    if tables is not None:
        folder = Path(tables)
        folder.mkdir(parents=True, exist_ok=True)
        for id_, _, content in sections:
            if id_ in TABLES and (text := csv_of(TABLES[id_](material, content))):
                write_whole(folder / f"{id_}.csv", text.encode())


def draw(explanation: Explanation, path: str | os.PathLike[str]) -> None:
    """Write the picture of an explanation by itself, as an SVG file in light and dark colours.

    Parameters
    ----------
    explanation : Explanation
        Of one row, as `setwise.explain` gives it.
    path : str or path
        Where the file goes; one that is there is replaced.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from setwise import SetClassifier, explain
    >>> X, Y = [[0.0], [1.0], [0.2], [0.9]], [[1, 0], [0, 1], [1, 0], [1, 1]]
    >>> (row,) = explain(SetClassifier(alpha=0.1).fit(X, Y), [[0.5]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     draw(row, f"{folder}/why.svg")
    ...     pathlib.Path(folder, "why.svg").read_text()[:4]
    '<svg'
    """
    style = _environment().get_template("picture.css").render()
    head, _, rest = str(drawn(explanation)).partition(">")
    opened = head.replace("<svg", '<svg xmlns="http://www.w3.org/2000/svg"', 1)
    whole = f"{opened}><style>{style}</style>{rest}\n"
    write_whole(Path(path), whole.encode())


def _page(material: Material, sections: Sequence[tuple[str, str, Any]]) -> str:
    environment = _environment()
    style = environment.get_template("style.css").render()
    loader: Any = environment.loader
    script = loader.get_source(environment, "script.js")[0]
    found = {id_: list(TABLES[id_](material, here)) for id_, _, here in sections if id_ in SMALL}
    return environment.get_template("page.html").render(
        results=material.results,
        material=material,
        verdict=leaderboards.verdict(material),
        sections=sections,
        links={id_: link_of(rows) for id_, rows in found.items() if rows},
        style=Markup(style),
        script=Markup(script),
        # The page may show its own style and run its own script, and nothing else.
        policy=f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; "
        "img-src data:; base-uri 'none'; form-action 'none'",
        data=labels.label_data(material),
    )


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("setwise.report"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    # Templates write numbers and names with the functions of `words`.
    environment.filters |= dict(inspect.getmembers(words, inspect.isfunction))
    environment.globals["decimals_for"] = words.decimals_for
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "allow_nan": False}
    return environment


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
