"""Run what is missing, then write the pages: `python -m benchmarks.evidence --data FOLDER`."""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.evidence import findings, page
from benchmarks.evidence.work import Unit, answered, changed, run, stored

# Those of the first run; any folder of data sets will do.
SETS = ("emotions", "scene", "yeast", "medical", "slashdot", "enron", "bibtex", "reuters21578")
MODULES = ("methods", "networks", "peers")
SPLITS = ("official", "0", "1", "2")


def every(sets: list[str], splits: list[str], kinds: list[str], seeds: int) -> list[Unit]:
    """All units, small sets and official splits first."""
    modules = [import_module(f"benchmarks.evidence.{name}") for name in MODULES]
    known = {kind: named for module in modules for kind, named in module.KINDS.items()}
    methods = [(kind, name) for kind, named in known.items() for name in named]
    return [
        Unit(name, split, kind, method, seed)
        for split in splits
        for name in sets
        for kind, method in methods
        if not kinds or kind in kinds or method in kinds
        for seed in range(seeds)
    ]


def checked(units: list[Unit], *given: Any) -> None:
    """Run units that have rows a second time; ends with 1 if a figure other than time differs."""
    differ = 0
    for unit in units:
        before = [row for row in stored() if Unit.of(row) == unit]
        told = changed(before, answered(unit, *given)) if before else []
        differ += bool(told)
        said = "no rows yet" if not before else "; ".join(told) or "the same"
        print(f"{unit.set}, {unit.split}, {unit.method}: {said}", flush=True)
    sys.exit(int(differ > 0))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="folder of data sets; without it only the page")
    parser.add_argument("--sets", nargs="*", default=list(SETS))
    parser.add_argument("--splits", nargs="*", default=list(SPLITS))
    parser.add_argument("--methods", nargs="*", default=[], help="kinds or methods; all by default")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--peers", type=Path, help="folder of environments, one for each peer")
    parser.add_argument("--limit", type=float, default=3600.0, help="seconds for a unit")
    parser.add_argument("--jobs", type=int, default=1, help="units at once, of one thread each")
    parser.add_argument("--again", action="store_true", help="also what has rows: replace them")
    parser.add_argument(
        "--check", action="store_true", help="only what has rows: are they so again?"
    )
    given = parser.parse_args()
    if given.data is not None:
        units = every(given.sets, given.splits, given.methods, given.seeds)
        units = [unit for unit in units if (given.data / unit.set).exists()]
        folders = sorted(given.peers.iterdir()) if given.peers else []
        found = {folder.name: folder / "bin" / "python" for folder in folders if folder.is_dir()}
        here = [unit for unit in units if unit.kind != "peer" or unit.method.split(":")[0] in found]
        if len(here) < len(units):
            missing = sorted({u.method for u in units if u not in here})
            print(f"skipped, since their environments are not there: {', '.join(missing)}")
        if given.check:
            checked(here, given.data, found, given.limit)
        run(here, given.data, found, given.limit, given.jobs, again=given.again)
    page.write()
    findings.write()


if __name__ == "__main__":
    main()
