"""The page: all sections in one file that loads nothing and runs one known script."""

from __future__ import annotations

import os
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from setwise.atomic_write import write_whole
from setwise.evaluation import Evaluation
from setwise.report import labels, leaderboards, probability, words
from setwise.report.hierarchy import hierarchy
from setwise.report.material import Material, material_of
from setwise.study import InHierarchy, Leaderboard, Results

# Name of the template, title, and what fills it; a section that has nothing to show is left out.
SECTIONS: tuple[tuple[str, str, Callable[[Material], Any]], ...] = (
    ("question", "What was asked", lambda _: True),
    ("leaderboards", "Leaderboards", leaderboards.leaderboards),
    ("figures", "All figures", leaderboards.figures),
    ("guarantees", "What is guaranteed", leaderboards.guarantees),
    ("labels", "Labels", labels.labels),
    ("cooccurrence", "Labels that come together", labels.cooccurrence),
    ("sizes", "Sizes of label sets", labels.sizes),
    ("calibration", "Calibration", probability.calibration),
    ("precision_recall", "Precision and recall", probability.precision_recall),
    ("regret", "Regret", leaderboards.regret),
    ("timing", "Time", leaderboards.timing),
    ("hierarchy", "Hierarchy", hierarchy),
    ("reproduction", "How to repeat it", lambda material: material.trained),
)
# What templates write numbers and names with.
FILTERS = ("count", "interval", "isolated", "name", "percent", "prose", "seconds", "share", "small")


def write(
    judged: Results | Evaluation | Mapping[str, Evaluation],
    path: str | os.PathLike[str],
    *,
    name: str = "",
    label_names: Sequence[Any] | None = None,
    board: Leaderboard | None = None,
    placed: Sequence[InHierarchy] | None = None,
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
    board : Leaderboard, optional
        The leaderboard of these results, if it has been made already.
    placed : sequence of InHierarchy, optional
        What `in_hierarchy` gives of these results, if that has been made already.

    Notes
    -----
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
    material = material_of(judged, name, label_names, board, placed)
    write_whole(place, _page(material).encode())


def _page(material: Material) -> str:
    environment = _environment()
    style = environment.get_template("style.css").render()
    loader: Any = environment.loader
    script = loader.get_source(environment, "script.js")[0]
    filled = [(id_, title, section(material)) for id_, title, section in SECTIONS]
    return environment.get_template("page.html").render(
        results=material.results,
        material=material,
        verdict=leaderboards.verdict(material),
        sections=[(id_, title, content) for id_, title, content in filled if content],
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
    environment.filters |= {name: getattr(words, name) for name in FILTERS}
    environment.globals["decimals_for"] = words.decimals_for
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "allow_nan": False}
    return environment


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
