"""The figures of the README, from stored rows and the demo: `python -m benchmarks.readme`."""

from __future__ import annotations

import re
from math import isnan, nan
from pathlib import Path
from statistics import fmean

from benchmarks.rows import load

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
# Methods of the rows of rivals, as the README calls them.
SHOWN = {
    "one-vs-rest": "one-vs-rest logistic regression, cut at 0.5",
    "tuned one-vs-rest": "the same, tuned",
    "TargetDecoder(tuned one-vs-rest)": '**`TargetDecoder`**`(tuned one-vs-rest, "f1")`',
    "SetClassifierCV": '**`SetClassifierCV`**`("f1")`',
    "SetBooster": '**`SetBooster`**`("f1")`',
    "SetEnsemble": '**`SetEnsemble`**`("f1")`',
}
RIVALS = re.compile(r"(?<=\n)\| F1 \| .*?\n(?=\n)", re.DOTALL)
REGRETS = re.compile(r"(?<=```text\n)Exact regret.*?(?=```)", re.DOTALL)


def rivals() -> str:
    """F1 by method and data set, the best in bold, then the means of micro and macro F1.

    Methods that have no row are left out; a dash is what was not measured.
    """
    rows = load("rivals")
    sets = list(dict.fromkeys(row["set"] for row in rows))
    by = {(row["method"], row["set"]): row for row in rows}
    methods = [name for name in SHOWN if any(row["method"] == name for row in rows)]
    columns = [[by.get((m, name), {}).get("samples f1", nan) for m in methods] for name in sets]
    for average in ("micro f1", "macro f1"):
        values = [[by.get((m, name), {}).get(average, nan) for name in sets] for m in methods]
        columns.append([fmean(own) for own in values])
    table = ["| F1 | " + " | ".join([*sets, "micro", "macro"]) + " |"]
    table.append("|---" * (len(columns) + 1) + "|")
    for place, method in enumerate(methods):
        cells = []
        for column in columns:
            value = f"{column[place]:.3f}"
            best = f"{max(one for one in column if one == one):.3f}"
            cells.append(
                "–" if isnan(column[place]) else f"**{value}**" if value == best else value
            )
        table.append("| " + " | ".join([SHOWN[method], *cells]) + " |")
    return "\n".join(table) + "\n"


def main() -> None:
    """Put both tables in their places."""
    from setwise.cli.demo import demonstrated, table

    text = RIVALS.sub(lambda _: rivals(), README.read_text())
    README.write_text(REGRETS.sub(lambda _: table(demonstrated()) + "\n", text))


if __name__ == "__main__":
    main()
