"""`setwise evaluate`: all figures of a model on a file, or of predictions against the truth."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from setwise.cli.options import Json, Reading, Seed, concerning, names, reads_files, target_for
from setwise.cli.output import note, say

if TYPE_CHECKING:
    from setwise.datasets import Dataset
    from setwise.targets import Target

# Of so many entries (rows times labels) or fewer, probabilities are judged too.
MOST_PROBABILITIES = 50_000_000
PROBABLE = "; a label less probable than one under it is as probable as the most probable of these"


@reads_files
def evaluate(
    model: Annotated[Path | None, typer.Argument(help="A file that `setwise fit` wrote.")] = None,
    data: Annotated[
        Path | None, typer.Argument(help="A file with the same columns and the true labels.")
    ] = None,
    predictions: Annotated[
        Path | None, typer.Option(help="Instead: a table of predicted labels.")
    ] = None,
    truth: Annotated[
        Path | None, typer.Option(help="With it: a table of true labels, row for row.")
    ] = None,
    probabilities: Annotated[
        Path | None, typer.Option(help="With it: the probability of each label, for calibration.")
    ] = None,
    targets: Annotated[
        str | None,
        typer.Option(help="Further targets, commas between, tree too; their losses are added."),
    ] = None,
    part: Annotated[
        str | None,
        typer.Option(help="Part of a file that has a split: test (default there), train, or all."),
    ] = None,
    resamples: Annotated[int, typer.Option(help="Behind the intervals; 0 for none.", min=0)] = 1000,
    confidence: Annotated[float, typer.Option(help="Level of the intervals.")] = 0.95,
    seed: Seed = 0,
    json: Json = False,
    *,
    reading: Reading,
) -> None:
    r"""Print every figure of a prediction with its interval: a model's, or one in a file.

    A model reads the file as it read its training file. With --predictions and --truth, the options
    below say which columns of both tables are labels; of the predictions of `setwise predict`,
    the same options that read the training file.

    Where there is a hierarchy (the model's, the data's, that of --taxonomy or --path-separator),
    figures of it are added: hierarchical precision, recall and F1, F1 on each level, tree distance
    (by the spanning tree where labels have several parents).

    With --close, predictions as well as true label sets get all that stands above their labels, and
    a label is at least as probable as each label under it.

    \b
    Examples:
      setwise evaluate model.skops new.csv
      setwise evaluate model.skops new.csv --targets f2,precision@1 --json
      setwise evaluate --predictions out.csv --truth new.csv --label-column tags --separator ";"
      setwise evaluate model.skops new.csv --taxonomy topics.csv --close

    Exit status: 0 fine; 2 a file or an option is wrong.
    """
    if (model is None) == (predictions is None):
        raise ValueError("evaluate either MODEL DATA, or --predictions P --truth T")
    wanted = names(targets or "")
    options: dict[str, Any] = {
        "n_bootstrap": resamples,
        "confidence": confidence,
        "random_state": seed,
    }
    if predictions is not None:
        if truth is None or data is not None:
            raise ValueError("--predictions goes with --truth, and without DATA")
        sample = _of_files(predictions, truth, probabilities, reading)
    else:
        own = replace(reading, taxonomy=None, path_separator=None, close=False)
        if truth is not None or probabilities is not None or own != Reading():
            raise ValueError(
                "a model reads the file as it read its training file: --truth, --probabilities and "
                "options of reading go with --predictions"
            )
        if model is None or data is None:
            raise ValueError("evaluate MODEL DATA: there is no DATA")
        sample = _of_model(model, data, part, reading)
    if reading.close:
        sample = sample.closed()
    _say(json, sample, wanted, options)


class Sample(NamedTuple):
    """Predicted and true label sets, a name for each, what is known beside them."""

    y_pred: Any
    data: Dataset
    probability: Any = None
    target: Target | None = None
    n_completed: int | None = None

    def closed(self) -> Sample:
        """With all above predicted labels, at least as probable; counts what lacked some."""
        from setwise.datasets.dataset import raised
        from setwise.targets.target import predicted_size

        taxonomy, known, target = self.data.taxonomy, self.probability, self.target
        n_completed = int((~taxonomy.is_closed(self.y_pred)).sum())
        k = None if target is None else predicted_size(target)
        if n_completed and k is not None:
            note(f"the loss of {target}, of sets of {k}, is left out: --close adds labels")
            target = None
        return Sample(
            taxonomy.close(self.y_pred),
            self.data,
            None if known is None else raised(known, taxonomy),
            target,
            n_completed,
        )


def _say(json_wanted: bool, sample: Sample, wanted: list[str], options: dict[str, Any]) -> None:
    """Print all figures, and of which sets and in what tree distance is counted."""
    from setwise.evaluation import evaluate as figures
    from setwise.study.results import Scale, unit_of

    data = sample.data
    chosen = [] if sample.target is None else [sample.target]
    for target in (target_for(name, data) for name in wanted):
        if str(target) not in map(str, chosen):
            chosen.append(target)
    taxonomy = None if data.hierarchy is None else data.taxonomy
    judged = figures(
        sample.y_pred,
        data.Y,
        probability=sample.probability,
        targets=chosen,
        taxonomy=taxonomy,
        **options,
    )
    told, words = judged.to_dict(), [str(judged)]
    if sample.n_completed is not None:
        told["completed_predictions"] = sample.n_completed
        words.append(
            f"--close: {sample.n_completed} of {data.n_rows} predictions lacked labels above "
            f"theirs and got them" + PROBABLE * (sample.probability is not None)
        )
    if taxonomy is not None:
        tree = taxonomy.spanning_tree()
        unit = unit_of(tree.lengths)
        told |= {"tree_distance_unit": unit, "tree_distance_note": tree.note, "distances": {}}
        words.append(
            f"tree distance: of the sets with all above their labels, the length of the edges on "
            f"which prediction and truth differ, in {unit}"
            + f"; by the spanning tree: {tree.note}"
            * (not taxonomy.is_tree)
        )
    for target in chosen:
        scale, name = Scale.of(target), f"loss: {target}"
        if scale is not None:
            told["distances"][name] = scale.distance(judged[name].value)
            words.append(
                f"{name} is {scale.said(judged[name].value)} a row, of the sets as "
                f"{'predicted' if sample.n_completed is None else 'completed by --close'}; a loss "
                f"of 1 is {scale.said(1.0)}"
            )
    say(json_wanted, told, "\n".join(words))


def _of_model(model: Path, data: Path, part: str | None, reading: Reading) -> Sample:
    from setwise.cli.model_file import load_fitted
    from setwise.datasets.dataset import TaxonomySchema, spread
    from setwise.targets.target import hierarchy_of

    fitted = load_fitted(model)
    schema: Any = fitted.schema
    closed = reading.close
    if closed and isinstance(schema, TaxonomySchema):
        schema, reading = replace(schema, close=True), replace(reading, close=False)
    with concerning("with --close" if closed else "without --close"):
        rows: Any = schema.read(data)
    own = hierarchy_of(fitted.target)
    if own is not None:
        rows = replace(rows, hierarchy=own.edges, edge_lengths=own.lengths_of_edges)
    if rows.hierarchy is not None and (reading.taxonomy or reading.path_separator):
        raise ValueError(
            f"{model.name} knows the hierarchy of its labels; --taxonomy and --path-separator are "
            f"for a model without one"
        )
    rows = reading.placed(rows)
    if part != "all" and (part is not None or (rows.split and "test" in rows.split)):
        rows = rows.part(part or "test")
    known = fitted.has_probability and rows.n_rows * rows.n_labels <= MOST_PROBABILITIES
    found = [fitted.model.predict(rows.X), fitted.probability(rows.X) if known else None]
    if rows.label_names.tolist() != fitted.label_names:
        found = [
            None if values is None else spread(values, fitted.label_names, rows.label_names)
            for values in found
        ]
    return Sample(found[0], rows, found[1], fitted.target)


def _of_files(
    predictions: Path, truth: Path, probabilities: Path | None, reading: Reading
) -> Sample:
    import numpy as np

    from setwise.cli.tables import ProbabilityFile, label_tables
    from setwise.datasets import Dataset
    from setwise.datasets.dataset import spread

    (y_pred, y_true), labels = label_tables([predictions, truth], reading)
    if y_pred.shape[0] != y_true.shape[0]:
        raise ValueError(
            f"{predictions.name} has {y_pred.shape[0]} rows and {truth.name} has "
            f"{y_true.shape[0]}: a row of one must be a row of the other"
        )
    known = None
    if probabilities is not None:
        known = ProbabilityFile.opened(probabilities).aligned(labels, y_true.shape[0])
    # (Of a data set, its labels are needed here and not its features.)
    nothing = np.zeros((y_true.shape[0], 1))
    data = reading.placed(Dataset(nothing, y_true, None, labels, name=truth.name))
    y_pred = spread(y_pred, labels, data.label_names)
    return Sample(y_pred, data, known if known is None else spread(known, labels, data.label_names))
