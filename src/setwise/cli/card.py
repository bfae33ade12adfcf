"""`setwise card model.skops new.csv -o card.md`: what a model is for, and how good it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from setwise.cli.evaluate import of_model
from setwise.cli.fit import load_fitted
from setwise.cli.options import can_write, command, say
from setwise.cli.reading import Reading

CARD = (b"# Model card", "a model card")


@command(
    data="Rows with true labels that the model was not trained on; the model is judged on these.",
    output="Where to write the card; usually README.md or card.md.",
    resamples="Number of bootstrap resamples for the confidence intervals; 0 for no intervals.",
)
def card(
    model: Path,
    data: Path | None = None,
    *,
    output: Path,
    resamples: int = 1000,
    seed: int = 0,
    json: bool = False,
) -> None:
    r"""Write a model card: what the model is for and how good it is.

    The card is Markdown. It states the measure, what is guaranteed, the data and the settings. With
    DATA, it also has all measures with confidence intervals and a table of the labels.

    \b
    Examples:
      setwise card model.skops new.csv -o card.md
      setwise card model.skops -o README.md

    Exit status: 0 success; 2 a file or an option is wrong.
    """
    can_write(output, (model, data), CARD)
    from setwise.atomic_write import write_whole
    from setwise.evaluation import evaluate
    from setwise.report import card as made

    fitted, judged, is_seen = load_fitted(model), None, False
    names = fitted.label_names
    about = {key: fitted.about[key] for key in ("data", "rows", "features", "labels", "setwise")
             if key in fitted.about}  # fmt: skip
    if data is not None:
        rows, y_pred, probability, target, part = of_model(fitted, model, data, None, Reading())
        is_seen = part.trained_on
        judged = evaluate(
            y_pred, rows.Y, probability=probability, targets=[target], n_bootstrap=resamples,
            random_state=seed,
        )  # fmt: skip
        about["judged on"] = data.name
        names = rows.label_names
    written: Any = made(
        fitted.model, judged, target=fitted.target, label_names=names, data=about,
        trained_on=is_seen, use=f"`setwise predict {model.name} new.csv -o predictions.csv`",
    )  # fmt: skip
    write_whole(output, f"{written.render().strip()}\n".encode())
    told = {**about, "target": str(fitted.target), "output": str(output)}
    say(json, told, f"wrote {output}")
