"""The figures of the README, from stored rows and the demo: `python -m benchmarks.readme`."""

from __future__ import annotations

import json
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
# Methods of the rows of quality, as the README calls them.
SHOWN = {
    "SetClassifierCV": "`SetClassifierCV`",
    "one-vs-rest logistic": "one-vs-rest logistic regression",
    "classifier chain": "classifier chain",
    "tuned thresholds": "tuned thresholds",
    "random forest": "random forest",
    "TargetDecoder(random forest)": "`TargetDecoder(random forest)`",
    "CatalogClassifier(extra trees)": "`CatalogClassifier(extra trees)`",
}
QUALITY = re.compile(r"(?<=\n)\| \| emotions .*?\n(?=\n)", re.DOTALL)
REGRETS = re.compile(r"(?<=```text\n)Exact regret.*?(?=```)", re.DOTALL)


def quality() -> str:
    """Mean F1 by method and data set."""
    lines = (ROOT / "benchmarks" / "results" / "quality.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    sets = list(dict.fromkeys(row["set"] for row in rows))
    values = {(row["method"], row["set"]): row["f1 utility"] for row in rows}
    table = ["| | " + " | ".join(sets) + " |", "|---" * (len(sets) + 1) + "|"]
    for method, title in SHOWN.items():
        found = [values.get((method, name)) for name in sets]
        cells = ["–" if value is None else f"{value:.3f}" for value in found]
        table.append("| " + " | ".join([title, *cells]) + " |")
    return "\n".join(table) + "\n"


def main() -> None:
    """Put both tables in their places."""
    from setwise.cli.demo import demonstrated, table

    text = QUALITY.sub(lambda _: quality(), README.read_text())
    README.write_text(REGRETS.sub(lambda _: table(demonstrated()) + "\n", text))


if __name__ == "__main__":
    main()
