"""`setwise fit DATA --target f1 -o model.skops`: train a model, and say what is known of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from setwise.cli.options import (
    DataFile,
    Json,
    Reading,
    Seed,
    TargetName,
    TestFile,
    TestShare,
    concerning,
    held_out,
    names,
    reads_files,
    target_for,
)
from setwise.cli.output import MODEL, can_write, say

if TYPE_CHECKING:
    from setwise.cli.model_file import Fitted
    from setwise.datasets import Dataset
    from setwise.study import Scale

MEAN = (
    "a missing feature takes its mean over the training rows, in this model and in what it predicts"
)


@reads_files
def fit(
    data: DataFile,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Where the model goes, by custom .skops.")
    ],
    target: TargetName = "f1",
    test: TestFile = None,
    test_share: TestShare = None,
    surrogate: Annotated[
        str,
        typer.Option(
            help="What is trained on: likelihood, binary_relevance, logistic, mean_absolute_error, "
            "...; several with commas are tried."
        ),
    ] = "likelihood",
    space: Annotated[
        str,
        typer.Option(
            help="Label sets that are weighed: auto, catalog, joint, sized, forest, cube, of a "
            "hierarchy paths, closed; several with commas are tried."
        ),
    ] = "auto",
    alpha: Annotated[
        str | None, typer.Option(help="Penalty of the weights; several with commas are tried.")
    ] = None,
    cv: Annotated[
        bool, typer.Option("--cv/--no-cv", help="Whether cross-validation chooses all this.")
    ] = True,
    folds: Annotated[
        int | None, typer.Option(help="Of the cross-validation; by default by the number of rows.")
    ] = None,
    seed: Seed = 0,
    json: Json = False,
    *,
    reading: Reading,
) -> None:
    r"""Train a model for a target and write it to one file, with the columns it was trained on.

    Prints what was chosen, how good it is, and what is guaranteed. With rows to test on (a second
    file, a share, or the file's own split) the model is trained on the others.

    Missing features take their mean over the training rows.

    Labels may stand in a hierarchy: the file's own, that of --taxonomy, or the one that path names
    say. Every prediction for the target tree has all that stands above its labels.

    \b
    Examples:
      setwise fit books.csv --label-column tags --separator ";" -o model.skops
      setwise fit music.csv --label-prefix is_ --target jaccard --test-share 0.3 -o model.skops
      setwise fit posts.csv --labels spam,ad --text-columns title,body -o model.skops
      setwise fit yeast.arff --test yeast-test.arff --target subset -o model.skops
      setwise fit big.csv --label-prefix is_ --no-cv --alpha 0.01 --json -o model.skops
      setwise fit shop.csv --label-column cats --path-separator / --close --target tree -o m.skops
      setwise fit genes.arff --target tree --test-share 0.3 -o model.skops

    Exit status: 0 fine; 2 the file or an option is wrong; 130 interrupted, nothing is written.
    """
    can_write(output, (data, test, reading.xml, reading.taxonomy), MODEL)
    if test is not None and test_share is not None:
        raise ValueError("--test and --test-share exclude each other")
    rows = held_out(reading.read(data, test), test_share, seed)
    judged = target_for(target, rows)
    estimator = _estimator(judged, surrogate, space, alpha, cv, folds, seed, rows.X)
    with concerning(f"--target {target} --surrogate {surrogate} --space {space}"):
        fitted = _trained(estimator, rows, judged, data)
    from setwise.persistence import save

    save(fitted, output)
    say(json, {**fitted.about, "output": str(output)}, _words(rows, fitted, output))


def _estimator(
    target: Any, surrogate: str, space: str, alpha: str | None, cv: bool, folds: int | None,
    seed: int, X: Any,
) -> Any:  # fmt: skip
    """A classifier that is not fitted; it shows its progress on a terminal."""
    import sys

    from scipy.sparse import issparse

    from setwise.estimators import SetClassifier, SetClassifierCV

    shown = sys.stderr.isatty()
    surrogates, alphas = names(surrogate), _numbers(alpha)
    spaces: Any = names(space)
    if cv:
        return SetClassifierCV(
            target,
            surrogates=surrogates,
            spaces="auto" if spaces == ["auto"] else spaces,
            alphas=alphas,
            cv=folds,
            random_state=seed,
            verbose=shown,
        )
    for option, given in (("surrogate", surrogates), ("space", spaces), ("alpha", alphas or [0.0])):
        if len(given) != 1:
            raise ValueError(f"--no-cv takes one --{option}, but there are {len(given)}")
    if folds is not None:
        raise ValueError("--folds is for cross-validation, which --no-cv switches off")
    return SetClassifier(
        target,
        surrogates[0],
        spaces[0],
        alpha=1e-3 if alphas is None else alphas[0],
        scaling=None if issparse(X) else "standard",
        random_state=seed,
        verbose=shown,
    )


def _numbers(words: str | None) -> list[float] | None:
    if words is None:
        return None
    try:
        return [float(word) for word in words.split(",")]
    except ValueError:
        raise ValueError(f"--alpha must be numbers such as 0.1,0.01, not {words!r}") from None


def _trained(estimator: Any, data: Dataset, target: Any, path: Path) -> Fitted:
    from scipy.sparse import csr_array
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline

    from setwise.cli.model_file import Fitted
    from setwise.study import Scale

    train = data.train() if data.split is not None and "train" in data.split else data
    model = make_pipeline(SimpleImputer(keep_empty_features=True), estimator)
    # (A dense column would be taken for classes; a sparse one is a label.)
    model.fit(train.X, csr_array(train.Y) if train.n_labels == 1 else train.Y)
    assert data.schema is not None
    plain = Fitted(model, data.schema, target)
    scale, loss = Scale.of(target), getattr(estimator, "best_loss_", None)
    about = {
        "setwise": _version(),
        "data": path.name,
        "rows": train.n_rows,
        "features": train.n_features,
        "labels": train.n_labels,
        "target": str(target),
        "chosen": _chosen(plain),
        "by_cross_validation": hasattr(estimator, "best_loss_"),
        "cross_validated_loss": loss,
        "missing_features": int(_count_missing(train.X)),
        "missing_rule": MEAN,
        "unit": None if scale is None else scale.unit,
        "cross_validated_distance": None if scale is None or loss is None else scale.distance(loss),
        "test": _tested(plain, data) if data.split is not None and "test" in data.split else None,
        "guarantee": plain.guarantee,
    }
    return Fitted(model, data.schema, target, about)


def _version() -> str:
    from setwise import __version__

    return __version__


def _chosen(fitted: Fitted) -> dict[str, Any]:
    classifier = fitted.classifier
    return {
        "surrogate": str(classifier.surrogate),
        "space": str(classifier.space_),
        "scaling": classifier.scaling,
        "alpha": float(classifier.alpha),
        "decoder": classifier.decoder_,
    }


def _count_missing(X: Any) -> int:
    import numpy as np

    return np.isnan(X.data if hasattr(X, "tocsr") else X).sum()


def _tested(fitted: Fitted, data: Dataset) -> dict[str, Any]:
    """The mean loss on the test rows, with its interval."""
    from setwise.evaluation import evaluate
    from setwise.study import Scale

    test = data.test()
    judged = evaluate(fitted.model.predict(test.X), test.Y, targets=[fitted.target])
    figure = judged[f"loss: {fitted.target}"]
    told = {"rows": test.n_rows, "loss": figure.value, "low": figure.low, "high": figure.high}
    scale = Scale.of(fitted.target)
    return told if scale is None else {**told, "distance": scale.distance(figure.value)}


def _words(data: Dataset, fitted: Fitted, output: Path) -> str:
    from setwise.study import Scale

    about, chosen, scale = fitted.about, fitted.about["chosen"], Scale.of(fitted.target)
    by = "chosen by cross-validation" if about["by_cross_validation"] else "as asked"
    lines = [
        str(data),
        f"trained for {about['target']} on {about['rows']} rows: {chosen['surrogate']} on "
        f"{chosen['space']}, alpha {chosen['alpha']:.3g}, scaling {chosen['scaling']} ({by})",
    ]
    loss, test = about["cross_validated_loss"], about["test"]
    if loss is not None:
        lines.append(
            f"cross-validated: {_scored(loss, scale)} (the choice was made by it, so a little "
            f"optimistic)"
        )
    if test is not None:
        ends = f"95 % interval of the score {1 - test['high']:.4f} to {1 - test['low']:.4f}"
        lines.append(f"on {test['rows']} test rows: {_scored(test['loss'], scale)}, {ends}")
    missing = about["missing_features"]
    if missing:
        lines.append(f"missing features ({missing} in training): {MEAN}")
    lines.append(f"guarantee: {about['guarantee']}")
    lines.append(f"wrote {output}")
    return "\n".join(lines)


def _scored(loss: float, scale: Scale | None) -> str:
    distance = "" if scale is None else f", mean tree distance {scale.said(loss)}"
    return f"mean loss {loss:.4f}, score {1 - loss:.4f}{distance}"
