"""Result rows: one JSON object a line, written as soon as it is known."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numba
import numpy as np

RESULTS = Path(__file__).parent / "results"


def machine() -> dict[str, Any]:
    """What the figures depend on: processor, threads, versions."""
    from setwise.study.identity import processor
    from setwise.threads import thread_count

    return {
        "processor": processor(),
        "threads": thread_count(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "numba": numba.__version__,
    }


def store(name: str, rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Write rows to results/NAME.jsonl, replacing what was there, and return them."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.jsonl"
    partial, kept = path.with_suffix(".partial"), []
    with partial.open("w") as file:
        for row in rows:
            kept.append(row)
            file.write(json.dumps(row) + "\n")
            file.flush()
    partial.replace(path)
    return kept


def load(name: str) -> list[dict[str, Any]]:
    """The stored rows of one measurement, none if it was never made."""
    path = RESULTS / f"{name}.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def table(rows: list[dict[str, Any]], columns: list[str]) -> str:
    """Rows as a Markdown table."""
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    for row in rows:
        lines.append("| " + " | ".join(_cell(row[column]) for column in columns) + " |")
    return "\n".join(lines)


def put(page: Path, name: str, text: str) -> None:
    """Put text made from the rows of a measurement in its place on a page."""
    begin, end = f"<!-- begin: rows of {name} -->\n", f"<!-- end: rows of {name} -->"
    before, rest = page.read_text().split(begin)
    page.write_text(before + begin + text + end + rest.split(end)[1])


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:.3g}" if isinstance(value, float) else str(value)
