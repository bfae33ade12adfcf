"""`setwise compare` and `setwise demo`: which method is best for which target?"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import typer

from setwise.cli.options import (
    DONE,
    PAGE,
    PARTLY,
    can_write,
    command,
    given,
    names,
    option,
    say,
)
from setwise.cli.reading import Reading, held_out, refuse_unknown, target_for

# Known to `setwise.study`, which is too heavy to be asked for a line of help.
METHODS = (
    "binary_relevance", "logistic", "mean_absolute_error", "catalog", "auto", "booster",
    "ensemble", "one_vs_rest", "one_vs_rest_decoded", "chain", "thresholds", "forest",
    "forest_decoded", "extra_trees_catalog", "metro", "f_plug_in", "f_reduction",
    "pick_all_labels", "pick_all_labels_normalized", "pick_one_label", "one_vs_all_normalized",
)  # fmt: skip
# What is compared by default; the second where a target judges all rows together.
USUAL = ("binary_relevance", "logistic", "mean_absolute_error", "catalog")
FOR_ALL_ROWS = ("binary_relevance", "thresholds", "metro", "catalog")
# F1 of so many levels is printed.
MOST_LEVELS = 6


@command(
    output="A folder for the results; created if needed.",
    targets="Measures to compare for, comma-separated; see --target of `setwise fit`. tree needs a "
    "hierarchy.",
    methods=f"Methods, comma-separated: {', '.join(METHODS)}; or all, for every method that fits "
    f"the targets. Default: {', '.join(USUAL)}; for measures of all rows at once "
    f"{', '.join(FOR_ALL_ROWS)}.",
    folds="Number of cross-validation folds. Default: the file's own train/test split, or else 5.",
    report="Where to write the report. Default: report.html in the output folder.",
)
def compare(
    context: typer.Context,
    data: Path,
    *,
    output: Path,
    targets: str = "f1,hamming",
    methods: str | None = None,
    folds: int | None = None,
    test: Path | None = None,
    test_share: float | None = None,
    report: Path | None = None,
    zero_division: float = 0.0,
    jobs: int = 1,
    seed: int = 0,
    json: bool = False,
    reading: Reading,
) -> int:
    r"""Compare methods on your data and write a report.

    Trains every method for every target and judges it on held-out rows. Results are stored in the
    folder as they are finished, so a run that was interrupted resumes where it stopped when you
    repeat the command, with the same results.

    Missing feature values are replaced by the column's mean over the training rows of each fold;
    boosted trees handle them themselves.

    \b
    Examples:
      setwise compare books.csv --label-column tags --separator ";" --targets f1,jaccard -o study
      setwise compare yeast.arff --test yeast-test.arff --methods auto,booster,ensemble -o study
      setwise compare shop.csv --label-column cats --path-separator / --close --targets tree -o out
      setwise compare music.csv --label-prefix is_ --folds 10 --jobs 2 --report music.html -o study

    Exit status: 0 success; 1 a method failed, the others are reported; 2 the file or an option is
    wrong; 130 interrupted, finished results are kept.
    """
    from setwise.report import write
    from setwise.study import Study, in_hierarchy, leaderboard, summary
    from setwise.targets.registry import known_name

    page = output / "report.html" if report is None else report
    if report is not None:
        can_write(report, (data, test, reading.xml, reading.taxonomy), PAGE)
    refuse_unknown(*names(targets))
    rows = held_out(reading.read(data, test), test_share, seed)
    wanted, split = names(targets), rows.split or {}
    judged = {known_name(name): target_for(name, rows) for name in wanted}
    if len(judged) < len(wanted):
        raise ValueError(f"each of --targets may be there once, but they are {targets}")
    tried = _methods(methods, list(judged.values()))
    others = [name for name in _methods("all", list(judged.values())) if name not in tried]
    # The file's own split if nothing else is asked for.
    own = (split["train"], split["test"]) if {"train", "test"} <= split.keys() else 5
    study = Study(
        rows.X,
        rows.Y,
        methods=tried,
        targets=judged,
        folds=own if folds is None else folds,
        label_names=rows.label_names.tolist(),
        name=rows.name,
        taxonomy=None if rows.hierarchy is None else rows.taxonomy,
        zero_division=zero_division,
        seed=seed,
        question={"command": shlex.join(["setwise", *context.obj]), "data": data.name},
    )
    results = study.run(output, jobs=jobs)
    told, board, placed = summary(output), leaderboard(results), in_hierarchy(results)
    is_split = test_share is None and "train" in split
    fits = _fits(context, board, judged, len(split["train"]) if is_split else rows.n_rows)
    write(results, page, board=board, placed=placed)
    found = {
        "folder": str(output),
        "report": str(page),
        "units": told.n_units,
        "finished": told.n_finished,
        "failed": {str(unit): message for unit, message in told.failed.items()},
        "leaderboard": board.to_dict(),
        "hierarchy": [figures.to_dict() for figures in placed],
        "train": fits,
    }
    which = "the training rows" if is_split else "all rows"
    best = "".join(
        f"\nto train {fit['method']} for {name} on {which}:\n  {fit['command']}"
        for name, fit in fits.items()
    )
    left_out = f"\nnot tried: {', '.join(others)} (--methods tries them)" if others else ""
    say(json, found, f"{rows}\n{board}{_in_hierarchy(placed)}{left_out}{best}\nreport: {page}")
    return PARTLY if told.failed else DONE


def _methods(asked: str | None, targets: list[Any]) -> list[str]:
    """The names of the methods to compare."""
    from setwise.study import METHODS as KNOWN
    from setwise.targets.target import judges_all_rows

    if asked is None:
        return list(FOR_ALL_ROWS if any(map(judges_all_rows, targets)) else USUAL)
    if asked != "all":
        return names(asked)
    return [name for name in METHODS if all(map(KNOWN[name].serves, targets))]


def _fits(
    context: Any, board: Any, targets: Mapping[str, Any], n_rows: int
) -> dict[str, dict[str, str]]:
    """For each target the best method that `setwise fit` can train, and the command that does."""
    asked = given(context, ("seed", *(field.name for field in fields(Reading))))
    asked = [name for name in asked if name != "unseen_labels"]
    # (A flag has no value.)
    words = [
        option(name, value) if value is not True else f"--{name}"
        for name, value in ((name, context.params[name]) for name in asked)
    ]
    data, found = shlex.quote(str(context.params["data"])), {}
    for target, judge in targets.items():
        several = f"-{target}" if len(targets) > 1 else ""
        known = ((of.method, _settings(of.method, judge, n_rows)) for of in board.of(target))
        method, settings = next((own for own in known if own[1] is not None), ("", None))
        if settings is not None:
            for_target = [option("target", target), *settings]
            line = ["setwise fit", data, *words, *for_target, f"-o model{several}.skops"]
            found[target] = {"method": method, "command": " ".join(line)}
    return found


def _settings(method: str, target: Any, n_rows: int) -> list[str] | None:
    """What `setwise fit` is told to train a method on so many rows; None if it cannot."""
    from setwise.study.tuned_thresholds import cut_decoder
    from setwise.targets.target import judges_all_rows

    kinds = {"auto": [], "booster": ["--model booster"], "ensemble": ["--model ensemble"]}
    of_all = judges_all_rows(target)
    linear = {
        "logistic": ["--surrogate logistic", "--decoder most_likely"],
        "mean_absolute_error": ["--surrogate mean_absolute_error", "--decoder most_likely"],
        "catalog": ["--surrogate likelihood", "--space catalog"],
        "metro": [f"--surrogate {'metro' if of_all else 'binary_relevance'}"],
    }
    if not of_all:
        cut = f"--decoder {cut_decoder(target)}"
        linear["binary_relevance"] = ["--surrogate binary_relevance", cut]
    if method in linear:
        return [*linear[method], "--no-cv", f"--alpha {1 / n_rows!r}"]
    return kinds.get(method)


@command(output="Where to write the report.")
def demo(*, output: Path = Path("report.html"), jobs: int = 1, json: bool = False) -> None:
    r"""Compare methods where the best possible result is known.

    The data are simulated. Prints the regret of each method (its expected loss minus the smallest
    possible one) for four measures, and writes a report.

    \b
    Examples:
      setwise demo
      setwise demo -o demo.html --json

    Exit status: 0 success; 2 the report cannot be written there; 130 interrupted.
    """
    can_write(output, replaces=PAGE)
    from setwise.cli.demo import demonstrated, regrets, table
    from setwise.report import write

    results = demonstrated(jobs)
    write(results, output)
    told = {"report": str(output), "regret": regrets(results)}
    say(json, told, f"{table(results)}\n\nreport: {output}")


def _in_hierarchy(found: Sequence[Any]) -> str:
    """The figures of each method in the hierarchy, as a table; nothing without one."""
    if not found:
        return ""
    from setwise.evaluation.figure import aligned, number

    depth = len(found[0].levels.f1)
    levels = range(min(depth, MOST_LEVELS))
    of_levels, last = [f"f1 level {n}" for n in levels], "tree distance, with all above"
    lines = [["", "precision", "recall", "f1", *of_levels, "closed", last]]
    for target in dict.fromkeys(of.target for of in found):
        lines.append([target])
        for of in (of for of in found if of.target == target):
            three = ["-" if v is None else number(v) for v in (of.precision, of.recall, of.f1)]
            by_level = [number(of.levels.f1[n]) for n in levels]
            far = f"{of.distance:.4g} {of.unit}"
            lines.append([f"  {of.method}", *three, *by_level, f"{of.closed:.1%}", far])
    more = f"; {depth - MOST_LEVELS} more levels are in the report" if depth > MOST_LEVELS else ""
    head = f"in the hierarchy, label sets with all above their labels{more}"
    return f"\n{head}\n{aligned(lines)}"
