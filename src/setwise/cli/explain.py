"""`setwise explain MODEL DATA --row 3`: which features raised and lowered the labels of a row."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from setwise.cli.fit import Fitted, load_fitted
from setwise.cli.options import can_write, command, echo, names, numbers, say
from setwise.spelling import counted, known_names

# How the file of a picture begins.
PICTURE = (b"<svg", "a picture")
# Rows of a kind that are explained; features, rows and repeats for what features are worth.
N_EXPLAINED, MOST_FEATURES, MOST_ROWS, N_REPEATS = 2, 12, 500, 3


@command(
    data="A file with the same columns as the training file (labels are not needed).",
    row="Row numbers, comma-separated; the first row is 0.",
    labels="Labels to explain, comma-separated. Default: the predicted ones.",
    output="Also draw the explanation to this SVG file.",
)
def explain(
    model: Path,
    data: Path,
    *,
    row: str = "0",
    labels: str = "",
    output: Path | None = None,
    unseen_categories: Literal["refuse", "zeros"] | None = None,
    json: bool = False,
) -> None:
    r"""Show which features made the labels of a row likely or unlikely.

    Prints what each feature adds to the log-odds of a label, log P - log(1 - P), strongest first;
    positive numbers make the label more likely. The contributions add up to the difference between
    the log-odds of this row and of a base: the mean training row, or for boosted trees their
    average output. They are exact for linear models, XGBoost's own contributions for boosted trees,
    and the sum of its members' contributions for a mixture.

    \b
    Examples:
      setwise explain model.skops new.csv --row 3
      setwise explain model.skops new.csv --row 3 --labels art,law -o why.svg
      setwise explain model.skops new.csv --row 0,1,2 --json

    Exit status: 0 success; 2 the file or model cannot be read, or the model cannot be explained.
    """
    can_write(output, (model, data), PICTURE)
    if output is not None and output.suffix.lower() not in ("", ".svg"):
        raise ValueError(
            f"--output is a picture as SVG, so its name ends in .svg, not in {output.suffix}"
        )
    expected = "--row must be numbers of rows from 0, such as 3 or 0,1"
    wanted = numbers(row, int, expected)
    if min(wanted) < 0:
        raise ValueError(f"{expected}, not {row!r}")
    if output is not None and len(wanted) > 1:
        raise ValueError("--output is a picture of one --row")
    fitted = load_fitted(model)
    inputs, chosen = _rows(fitted, data, wanted, unseen_categories)
    found = explained(fitted, inputs, names(labels) or None, chosen)
    if output is not None:
        from setwise.report import draw

        draw(found[0], output)
        echo(f"wrote {output}", err=True)
    told = {"rows": [{"row": n, **one.to_dict()} for n, one in zip(wanted, found, strict=True)]}
    say(json, told, "\n\n".join(f"row {n}\n{one}" for n, one in zip(wanted, found, strict=True)))


def _rows(fitted: Fitted, data: Path, wanted: list[int], unseen: str | None) -> tuple[Any, Any]:
    """Some rows of a file, in the order asked for; and None.

    Where predictions depend on the rows that come together, all of them, and the numbers of these.
    """
    from setwise.datasets.schema import stacked

    together = getattr(fitted.classifier, "depends_on_batch_", False)
    parts, kept, first = [], {}, 0
    for part in fitted.chunks(data, fitted.rows_at_once, unseen_categories=unseen):
        for row in set(wanted) - kept.keys():
            if first <= row < first + part.n_rows:
                kept[row] = part.X[[row - first]]
        first += part.n_rows
        if together:
            parts.append(part.X)
        elif len(kept) == len(set(wanted)):
            break
    if len(kept) < len(set(wanted)):
        last = f", of which the last is {first - 1}" if first else ""
        raise ValueError(
            f"{data.name} has {counted(first, 'row')}{last}: there is no row {max(wanted)}"
        )
    if together:
        return stacked(parts), wanted
    return stacked([kept[row] for row in wanted]), None


def explained(
    fitted: Fitted, inputs: Any, labels: list[str] | None = None, rows: list[int] | None = None
) -> list[Any]:
    """Explanations of rows by the names of the file: its columns, its categories, its labels."""
    import numpy as np

    from setwise.datasets.category_codes import CategoryCodes
    from setwise.estimators import explain

    of_file = np.array(fitted.label_names, object)
    columns, coded = fitted.schema.feature_names, {}
    if isinstance(fitted.model[0], CategoryCodes):
        inner: Any = getattr(fitted.schema, "schema", fitted.schema)
        coded = inner.features.coded
        columns = list(coded)
    wanted = None
    if labels is not None:
        for label in labels:
            if label not in fitted.label_names:
                raise ValueError(f"there is no label {label!r}; {known_names(label, of_file)}")
        wanted = [fitted.label_names.index(label) for label in labels]
    found = explain(
        fitted.model, inputs, rows=rows, labels=wanted, background=fitted.mean_row,
        feature_names=columns,
    )  # fmt: skip
    kinds = [getattr(kind, "values", None) for kind in coded.values()]
    return [
        replace(one, labels=of_file[one.labels.astype(int)], values=_named(one.values, kinds))
        for one in found
    ]


def _named(values: Any, kinds: list[Any]) -> Any:
    """The values of a row with categories by name."""
    if not kinds:
        return values
    import numpy as np

    named = values.astype(object)
    for place, categories in enumerate(kinds):
        if categories is not None and len(categories) > 2 and not np.isnan(values[place]):
            named[place] = str(categories[int(values[place])])
    return named


def inside(fitted: Fitted, rows: Any, y_pred: Any, seed: int) -> dict[str, Any]:
    """Arguments of `setwise.report.write`; none of what cannot be told of a model.

    Explained are the rows with most wrong labels and some with as many as most rows have; features
    that say most of these are shuffled, to see what they are worth.
    """
    import numpy as np

    from setwise.estimators import feature_importance
    from setwise.estimators.explaining import UnexplainableError
    from setwise.report.material import ALONE
    from setwise.sparse import dense_rows
    from setwise.study import members_of

    found: dict[str, Any] = {}
    if hasattr(fitted.classifier, "members_"):
        found["members"] = {ALONE: members_of(fitted.model, rows.X, rows.Y)}
    wrong = (dense_rows(rows.Y) != dense_rows(y_pred)).sum(axis=1)
    order = np.argsort(-wrong, kind="stable")
    chosen = np.r_[order[:N_EXPLAINED], order[len(order) // 2 :][:N_EXPLAINED]]
    chosen = list(dict.fromkeys(chosen.tolist()))
    try:
        told = explained(fitted, rows.X, rows=chosen)
    except UnexplainableError:
        return found
    found["explained"] = dict(zip(map(str, chosen), told, strict=True))
    if len(told[0].feature_names) == rows.n_features:
        strength = np.sum([np.abs(one.contributions).sum(axis=0) for one in told], axis=0)
        features = np.argsort(-strength, kind="stable")[:MOST_FEATURES]
        features = features[strength[features] > 0].tolist()
        if not features:
            return found
        some = np.random.default_rng(seed).permutation(rows.n_rows)[:MOST_ROWS]
        worth = feature_importance(
            fitted.model, rows.X[some], rows.Y[some], features=features,
            n_repeats=N_REPEATS, random_state=seed, feature_names=told[0].feature_names,
        )  # fmt: skip
        found["importance"] = replace(worth, labels=np.array(fitted.label_names, object))
    return found
