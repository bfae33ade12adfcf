"""The figures of the README, from stored rows and the demo: `python -m benchmarks.readme`."""

from __future__ import annotations

import re
from math import isnan, nan
from pathlib import Path
from statistics import fmean

from benchmarks.evidence.work import stored

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
# Methods of the evidence, as the README calls them.
SHOWN = {
    "one-vs-rest": "one-vs-rest logistic regression, cut at 0.5",
    "boosting: XGBoost": "XGBoost",
    "gfm: GFM": "GFM, a maximiser of F1",
    "boomer: logistic-non-decomposable": "BOOMER (boosted rules)",
    "TargetDecoder(one-vs-rest)": "**setwise** `TargetDecoder(one-vs-rest)`",
    "SetClassifierCV": "**setwise** `SetClassifierCV`",
    "SetEnsemble": "**setwise** `SetEnsemble`",
}
RIVALS = re.compile(r"(?<=\n)\| F1 \| .*?\n(?=\n)", re.DOTALL)
REGRETS = re.compile(r"(?<=```text\n)Exact regret.*?(?=```)", re.DOTALL)


def rivals() -> str:
    """F1 by method and data set, the best in bold, then the means of micro and macro F1.

    Of official splits, each method asked for the measure of the column. Methods that have no row
    are left out; a dash is what was not measured.
    """
    rows = [row for row in stored() if row["split"] == "official" and "failed" not in row]
    by = {(row["method"], row["set"], row["target"]): row for row in rows if row["seed"] == 0}
    sets = list(dict.fromkeys(row["set"] for row in rows if row["method"] == "SetEnsemble"))
    methods = [name for name in SHOWN if any(row["method"] == name for row in rows)]

    def value(method: str, name: str, target: str) -> float:
        return by.get((method, name, target), {}).get(target, nan)

    columns = [[value(method, name, "f1") for method in methods] for name in sets]
    for target in ("micro_f1", "macro_f1"):
        columns.append([fmean(value(method, name, target) for name in sets) for method in methods])
    table = ["| F1 | " + " | ".join([*sets, "micro", "macro"]) + " |"]
    table.append("|---" * (len(columns) + 1) + "|")
    for place, method in enumerate(methods):
        cells = []
        for column in columns:
            shown = f"{column[place]:.3f}"
            best = f"{max(one for one in column if one == one):.3f}"
            cells.append(
                "–" if isnan(column[place]) else f"**{shown}**" if shown == best else shown
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
