"""`setwise evaluate`: all figures of a model on a file, or of predictions against the truth."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from setwise.cli.fit import Fitted, load_fitted
from setwise.cli.options import PAGE, can_write, command, concerning, echo, names, say, say_unseen
from setwise.cli.reading import Reading, refuse_unknown, target_for

# Of so many entries (rows times labels) or fewer, probabilities are judged too.
MOST_PROBABILITIES = 50_000_000
PROBABLE = "; a label less probable than one under it is as probable as the most probable of these"


@command(
    data="A file with the same columns as the training file, and the true labels.",
    predictions="Instead of MODEL and DATA: a table of predicted labels.",
    truth="With --predictions: a table of true labels, in the same row order.",
    probabilities="With --predictions: a table with the probability of each label, to check "
    "calibration.",
    targets="Further measures to report, comma-separated; tree works too.",
    part="Which part of a file with a train/test split to use: test (the default), train, or all. "
    "The file that `setwise fit --test-share` split has one too: test is the rows it held out.",
    resamples="Number of bootstrap resamples for the confidence intervals; 0 for no intervals.",
    confidence="Confidence level of the intervals.",
    report="Also write everything to an HTML page. For a model the page includes which features "
    "matter, for a mixture what each member contributes.",
)
def evaluate(
    model: Path | None = None,
    data: Path | None = None,
    *,
    predictions: Path | None = None,
    truth: Path | None = None,
    probabilities: Path | None = None,
    targets: str = "",
    part: str | None = None,
    resamples: int = 1000,
    confidence: float = 0.95,
    zero_division: float = 0.0,
    report: Path | None = None,
    seed: int = 0,
    json: bool = False,
    reading: Reading,
) -> None:
    r"""Measure how good predictions are, with confidence intervals.

    Judges either a model on a file with true labels, or a file of predictions (--predictions)
    against a file of true labels (--truth). A model reads the file the way it read its training
    file. For two files, the options below say which columns are labels; for files written by
    `setwise predict`, use the same options as for the training file.

    If the labels form a hierarchy (the model's, the data's, or given by --taxonomy or
    --path-separator), hierarchical precision, recall and F1, F1 per level, and the tree distance
    are added. If labels have several parents, the distance uses a spanning tree.

    With --close, missing ancestors are added to predicted and true label sets, and a label counts
    as at least as probable as each of its descendants.

    \b
    Examples:
      setwise evaluate model.skops new.csv
      setwise evaluate model.skops new.csv --targets f2,precision@1 --json
      setwise evaluate --predictions out.csv --truth new.csv --label-column tags --separator ";"
      setwise evaluate model.skops new.csv --taxonomy topics.csv --close
      setwise evaluate model.skops new.csv --report page.html

    Exit status: 0 success; 2 a file or an option is wrong.
    """
    refuse_unknown(*names(targets))
    can_write(report, (model, data, predictions, truth, probabilities), PAGE)
    target, judged_part = None, None
    fitted: Any = None if model is None else load_fitted(model)
    if model is not None and data is not None and predictions is None:
        own = {"taxonomy": None, "path_separator": None, "close": False}
        read = replace(reading, **own, unseen_categories=None, unseen_labels=None)
        if truth is not None or probabilities is not None or read != Reading():
            raise ValueError(
                "a model reads the file as it read its training file: --truth, --probabilities and "
                "options of reading go with --predictions"
            )
        found = of_model(fitted, model, data, part, reading)
        rows, y_pred, probability, target, judged_part = found
    elif model is None and predictions is not None and truth is not None:
        if reading.unseen_categories is not None or reading.unseen_labels is not None:
            raise ValueError(
                "--unseen-categories and --unseen-labels are for a model, which knows what it has "
                "seen; of two tables every label of either counts"
            )
        rows, y_pred, probability = _of_files(predictions, truth, probabilities, reading)
    else:
        files = {
            "MODEL": model, "DATA": data, "--predictions": predictions, "--truth": truth,
        }  # fmt: skip
        named = " and ".join(name for name, path in files.items() if path is not None)
        raise ValueError(
            f"evaluate needs either MODEL and DATA, or --predictions and --truth, but was "
            f"given {f'{named} only' if named else 'none of them'}"
        )
    n_completed = None
    if reading.close:
        from setwise.targets.target import predicted_size
        from setwise.taxonomy import raised

        taxonomy = rows.taxonomy
        n_completed = int((~taxonomy.is_closed(y_pred)).sum())
        y_pred = taxonomy.close(y_pred)
        probability = None if probability is None else raised(probability, taxonomy)
        k = None if target is None else predicted_size(target)
        if n_completed and k is not None:
            left_out = f"the loss of {target}, of sets of {k}, is left out: --close adds labels"
            echo(left_out, err=True)
            target = None
    from setwise.evaluation import evaluate as figures

    further = [target_for(name, rows) for name in names(targets)]
    own = [] if target is None else [target]
    judged = figures(
        y_pred,
        rows.Y,
        probability=probability,
        targets=list({str(one): one for one in [*own, *further]}.values()),
        taxonomy=None if rows.hierarchy is None else rows.taxonomy,
        zero_division=zero_division,
        n_bootstrap=resamples,
        confidence=confidence,
        random_state=seed,
    )
    told, words = _said(judged, rows, n_completed, probability is not None)
    if judged_part is not None and model is not None and data is not None:
        say_part(fitted, judged_part, part, rows.n_rows, model, data)
        told |= judged_part._asdict()
    if report is not None:
        from setwise.cli.explain import inside
        from setwise.report import write

        is_own = n_completed is None and not rows.unseen.labels
        more = inside(fitted, rows, y_pred, seed) if model is not None and is_own else {}
        write(judged, report, name=rows.name, label_names=rows.label_names.tolist(), **more)
        told, words = {**told, "report": str(report)}, f"{words}\nreport: {report}"
    say(json, told, words)


def _said(judged: Any, rows: Any, n_completed: int | None, probable: bool) -> tuple[Any, str]:
    """All figures, and of which sets and in what tree distance is counted; as JSON, in words."""
    from setwise.study.results import Scale, unit_of

    told, words = judged.to_dict(), [str(judged)]
    told |= {"unseen": rows.unseen.to_dict(), "missing_features": rows.n_missing}
    if n_completed is not None:
        told["completed_predictions"] = n_completed
        words.append(
            f"--close: {n_completed} of {rows.n_rows} predictions lacked labels above theirs and "
            f"got them{PROBABLE * probable}"
        )
    if rows.hierarchy is not None:
        tree = rows.taxonomy.spanning_tree()
        unit = unit_of(tree.lengths)
        told |= {"tree_distance_unit": unit, "tree_distance_note": tree.note, "distances": {}}
        spanning = "" if rows.taxonomy.is_tree else f"; by the spanning tree: {tree.note}"
        words.append(
            f"tree distance: of the sets with all above their labels, the length of the edges on "
            f"which prediction and truth differ, in {unit}{spanning}"
        )
    for target in judged.options.targets:
        scale, name = Scale.of(target), f"loss: {target}"
        if scale is not None:
            told["distances"][name] = scale.distance(judged[name].value)
            sets = "predicted" if n_completed is None else "completed by --close"
            words.append(
                f"{name} is {scale.said(judged[name].value)} a row, of the sets as {sets}; a loss "
                f"of 1 is {scale.said(1.0)}"
            )
    return told, "\n".join(words)


def of_model(
    fitted: Fitted, model: Path, data: Path, part: str | None, reading: Reading
) -> tuple[Any, ...]:
    """The rows of a file, what the model predicts for them, with what probability; its target.

    Last, which part of the file they are.
    """
    from setwise.blocks.folder import is_block_folder
    from setwise.datasets.taxonomy_schema import TaxonomySchema, spread
    from setwise.files import DataError
    from setwise.targets.target import hierarchy_of

    if is_block_folder(data):
        raise DataError(
            data, None,
            f"a folder of blocks, for which labels are predicted but not evaluated; name the file "
            f"that was converted, or run `setwise predict {model} {data} -o predictions.csv` and "
            f"evaluate --predictions predictions.csv --truth FILE"
        )  # fmt: skip
    schema: Any = fitted.schema
    close = reading.close
    if close and isinstance(schema, TaxonomySchema):
        schema, reading = replace(schema, close=True), replace(reading, close=False)
    with concerning("with --close" if close else "without --close"):
        rows: Any = schema.read(
            data,
            unseen_categories=reading.unseen_categories,
            unseen_labels=reading.unseen_labels,
        )
    target, own = fitted.target, hierarchy_of(fitted.target)
    if own is not None:
        rows = replace(rows, hierarchy=own.edges, edge_lengths=own.lengths_of_edges)
        target = target_for("tree", rows) if rows.unseen.labels else target
    if rows.hierarchy is not None and (reading.taxonomy or reading.path_separator):
        raise ValueError(
            f"{model.name} knows the hierarchy of its labels; --taxonomy and --path-separator are "
            f"for a model without one"
        )
    rows = reading.placed(rows)
    is_own = fitted.is_of(data)
    if is_own and rows.split is None:
        rows = fitted.split_again(rows)
    judged = "all"
    if part != "all" and (part is not None or "test" in (rows.split or {})):
        if part is not None and part not in (rows.split or {}):
            known = f"only {', '.join(rows.split)}" if rows.split else "no split"
            raise ValueError(
                f"--part {part} is for a file with a train/test split; {data.name} has {known}: "
                f"put the rows to test on into a second file, as `setwise fit FIRST --test SECOND` "
                f"does not train on them, and `setwise evaluate MODEL SECOND` judges them"
            )
        judged = part or "test"
        rows = rows.part(judged)
    y_pred, probability = fitted.model.predict(rows.X), None
    if fitted.has_probability and rows.n_rows * rows.n_labels <= MOST_PROBABILITIES:
        probability = fitted.probability(rows.X)
    if rows.label_names.tolist() != fitted.label_names:
        y_pred, probability = (
            None if values is None else spread(values, fitted.label_names, rows.label_names)
            for values in (y_pred, probability)
        )
    say_unseen(rows.unseen, rows.n_missing, fitted.fills_missing)
    return rows, y_pred, probability, target, JudgedPart(judged, is_own and judged != "test")


class JudgedPart(NamedTuple):
    """Which part of a file is judged, and whether the model is known to be trained on some of it.

    (Of a file that it was not trained on, nothing is known.)
    """

    part: str
    trained_on: bool


def say_part(
    fitted: Fitted, judged: JudgedPart, asked: str | None, n_rows: int, model: Path, data: Path
) -> None:
    """Say that only rows held out are judged; warn of training rows that nobody asked for."""
    if asked is not None:
        return
    if judged.part == "test" and fitted.about.get("held_out") is not None:
        echo(
            f"only the {n_rows} held-out rows of {data.name} are judged (--part all judges all)",
            err=True,
        )
    elif judged.trained_on:
        warnings.warn(
            f"{model.name} was trained on {data.name}, and on rows that a model has seen the "
            f"figures are usually better than on new ones; evaluate another file, or fit with "
            f"--test-share 0.25: then `setwise evaluate` of the same file judges the rows that "
            f"were held out",
            stacklevel=2,
        )


def _of_files(
    predictions: Path, truth: Path, probabilities: Path | None, reading: Reading
) -> tuple[Any, ...]:
    """The true label sets of a file, those predicted in another, and with what probability."""
    import numpy as np

    from setwise.cli.tables import ProbabilityFile, label_tables
    from setwise.datasets import Dataset
    from setwise.datasets.taxonomy_schema import spread

    (y_pred, y_true), labels = label_tables([predictions, truth], reading)
    n_rows = y_true.shape[0]
    if y_pred.shape[0] != n_rows:
        raise ValueError(
            f"{predictions.name} has {y_pred.shape[0]} rows and {truth.name} has {n_rows}: a row "
            f"of one must be a row of the other"
        )
    # (Of a data set, its labels are needed here and not its features.)
    rows = reading.placed(Dataset(np.zeros((n_rows, 1)), y_true, None, labels, name=truth.name))
    known = None
    if probabilities is not None:
        known = ProbabilityFile.opened(probabilities).aligned(labels, n_rows)
        known = spread(known, labels, rows.label_names)
    return rows, spread(y_pred, labels, rows.label_names), known
