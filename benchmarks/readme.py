"""The figures of the README, from stored rows and the demo: `python -m benchmarks.readme`."""

from __future__ import annotations

import re
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
    """F1 by method and data set, the best in bold, then the means of micro and macro F1."""
    rows = load("rivals")
    sets = list(dict.fromkeys(row["set"] for row in rows))
    by = {(row["method"], row["set"]): row for row in rows}
    columns = [[by[method, name]["samples f1"] for method in SHOWN] for name in sets]
    for average in ("micro f1", "macro f1"):
        columns.append([fmean(by[method, name][average] for name in sets) for method in SHOWN])
    table = ["| F1 | " + " | ".join([*sets, "micro", "macro"]) + " |"]
    table.append("|---" * (len(columns) + 1) + "|")
    for place, title in enumerate(SHOWN.values()):
        shown = [(f"{column[place]:.3f}", f"{max(column):.3f}") for column in columns]
        cells = [f"**{value}**" if value == best else value for value, best in shown]
        table.append("| " + " | ".join([title, *cells]) + " |")
    return "\n".join(table) + "\n"


def main() -> None:
    """Put both tables in their places."""
    from setwise.cli.demo import demonstrated, table

    text = RIVALS.sub(lambda _: rivals(), README.read_text())
    README.write_text(REGRETS.sub(lambda _: table(demonstrated()) + "\n", text))


if __name__ == "__main__":
    main()
