"""The page: all sections in one file that loads nothing and runs one known script."""

from __future__ import annotations

import json
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
from setwise.report.drawing import SCHEMES
from setwise.report.material import Material, material_of
from setwise.report.names import isolated, name, prose
from setwise.report.sections.hierarchy import hierarchy
from setwise.report.sections.labels import cooccurrence, label_data, labels, sizes
from setwise.report.sections.leaderboards import figures, leaderboards, regret
from setwise.report.sections.probability import calibration, precision_recall
from setwise.report.sections.summary import guarantees, question, reproduction, timing, verdict
from setwise.study import InHierarchy, Leaderboard, Results

Section = Callable[[Material], Mapping[str, Any] | None]
# Title, and what fills the template that bears the function's name.
SECTIONS: tuple[tuple[str, Section], ...] = (
    ("What was asked", question),
    ("Leaderboards", leaderboards),
    ("All figures", figures),
    ("What is guaranteed", guarantees),
    ("Labels", labels),
    ("Labels that come together", cooccurrence),
    ("Sizes of label sets", sizes),
    ("Calibration", calibration),
    ("Precision and recall", precision_recall),
    ("Regret", regret),
    ("Time", timing),
    ("Hierarchy", hierarchy),
    ("How to repeat it", reproduction),
)


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
    place = _place(path)
    material = material_of(judged, name, label_names, board, placed)
    write_whole(place, _page(material).encode())


def _page(material: Material) -> str:
    environment = _environment()
    present = [
        (section.__name__, title, content)
        for title, section in SECTIONS
        if (content := section(material)) is not None
    ]
    style = environment.get_template("style.css").render(schemes=SCHEMES)
    script = _script(environment)
    data = label_data(material) if material.results.outcomes else {}
    return environment.get_template("page.html").render(
        results=material.results,
        material=material,
        verdict=verdict(material),
        sections=present,
        style=Markup(style),
        script=Markup(script),
        policy=_policy(style, script),
        data=_json(data),
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
    environment.filters |= {"name": name, "prose": prose, "isolated": isolated}
    return environment


def _script(environment: Environment) -> str:
    """The page's own script, as it stands in its file."""
    loader: Any = environment.loader
    return loader.get_source(environment, "script.js")[0]


def _policy(style: str, script: str) -> str:
    """What the page may do: show its own style, run its own script, nothing else."""
    own = {kind: _fingerprint(text) for kind, text in (("style", style), ("script", script))}
    return (
        f"default-src 'none'; style-src {own['style']}; script-src {own['script']}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _fingerprint(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def _json(data: Any) -> Markup:
    """JSON that neither ends the element it stands in nor begins a comment."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    for letter in "<>&":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return Markup(text)


def _place(path: str | os.PathLike[str]) -> Path:
    """Where the file goes, or a ValueError where it cannot."""
    place = Path(path)
    if place.is_dir():
        raise ValueError(f"the report cannot be written: {str(place)!r} is a folder")
    if not place.parent.is_dir():
        raise ValueError(f"the report cannot be written: there is no folder {str(place.parent)!r}")
    return place
