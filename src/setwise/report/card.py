"""A model card: what a fitted model is for, what is guaranteed, and how good it was found to be."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from setwise.evaluation import Evaluation, per_label
from setwise.evaluation.figure import interval, number
from setwise.report import words
from setwise.study import Scale
from setwise.targets import get_target

TITLE = "Model card"
# A longer table of labels is folded.
MOST_OPEN = 30
# What acts as Markdown wherever it stands.
MARKS = re.compile(r"([\\`*_\[\]|#~])")
FOLDED = """

<details>
<summary>Full statement</summary>

{}

</details>"""
USE = """```python
import setwise

model = setwise.load("{file}")
label_sets = model.predict(X)
```"""


def card(
    model: Any,
    evaluation: Evaluation | None = None,
    *,
    target: Any = None,
    label_names: Sequence[Any] | None = None,
    data: Mapping[str, Any] | None = None,
    trained_on: bool = False,
    use: str = USE.format(file="model.skops"),
) -> Any:
    """The card of a fitted model, in Markdown: ``card(model).save("README.md")``.

    It is a ``Card`` of skops, so that sections can be added.

    Parameters
    ----------
    model : estimator
        Fitted, or a pipeline that ends with one.
    evaluation : Evaluation, optional
        What `evaluate` found on rows that were not trained on: all figures with their intervals,
        and a table of the labels.
    target : Target or str, optional
        By default the model's own.
    label_names : sequence, optional
        By default the model's ``classes_``.
    data : mapping, optional
        What is to be said of the data: names, sizes, where they come from.
    trained_on : bool
        Whether the model was trained on rows of the evaluation; the card says so.
    use : str
        How the model is loaded, in Markdown.

    Examples
    --------
    >>> from setwise import SetClassifier
    >>> X = [[0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [0.0, 0.9], [0.9, 0.1]]
    >>> Y = [[0, 1], [1, 0], [1, 1], [0, 1], [1, 0]]
    >>> model = SetClassifier("f1").fit(X, Y)
    >>> print(card(model, data={"rows": 5}).render().strip())
    # Model card
    <BLANKLINE>
    This model predicts a set of labels for each row. It is judged by **F1**: ...
    """
    from skops.card import Card

    last = model[-1] if hasattr(model, "steps") else model
    judge = get_target(last.target if target is None else target)
    names = last.classes_ if label_names is None else label_names
    measure = words.measure_of(str(judge), Scale.of(judge))
    written = Card(model, template=None)
    first = (
        f"This model predicts a set of labels for each row. It is judged by "
        f"**{_text(measure.title)}**: {_text(measure.meaning)}."
    )
    first_words, rest = map(_literal, words.first_sentence(words.prose(last.guarantee_)))
    proved = first_words + (FOLDED.format(rest) if rest else "")
    written.add(folded=False, **{TITLE: first})
    written.add(folded=False, **{f"{TITLE}/What is guaranteed": proved})
    written.add(folded=False, **{f"{TITLE}/How to use it": use})
    if evaluation is not None:
        which = (
            "rows, some or all used for training" if trained_on else "rows not used for training"
        )
        _judged(written, evaluation, names, which)
    if data:
        known = {"what": [*map(_text, data)], "value": [*map(_text, data.values())]}
        _add_table(written, "Data", known)
    settings = model.get_params(deep=False)
    shown = {"setting": [*map(_text, settings)], "value": [*map(_text, settings.values())]}
    _add_table(written, "Settings", shown, folded=True)
    return written


def _judged(written: Any, evaluation: Evaluation, names: Sequence[Any], which: str) -> None:
    """Figures with their intervals, and a table of the labels; ``which`` rows they are of."""
    rows = list(evaluation.values())
    level = f"{100 * evaluation.confidence:g} % confidence interval"
    figures = {
        "measure": [_text(row.name) for row in rows],
        "value": [number(row.value) for row in rows],
        level: [_text(interval(row.low, row.high)) for row in rows],
        "better": [row.better or "" for row in rows],
    }
    n_rows = words.count(evaluation.n_rows)
    _add_table(written, f"Results on {n_rows} {which}", figures)
    found = per_label(
        evaluation.sample.predicted, evaluation.sample.true,
        zero_division=evaluation.options.zero_division,
    )  # fmt: skip
    labels = {
        "label": [_text(name) for name in names],
        **{name: getattr(found, name).tolist() for name in ("support", "predicted")},
        **{name: [*map(number, getattr(found, name))] for name in ("precision", "recall", "f1")},
    }
    _add_table(written, "Labels", labels, folded=len(names) > MOST_OPEN)


def _add_table(written: Any, title: str, table: Mapping[str, Any], folded: bool = False) -> None:
    place = f"{TITLE}/{title}"
    written.add_table(folded=folded, **{place: table})
    written.select(place).title = title  # (skops calls a table by its whole place)


def _text(value: Any) -> str:
    """A name as text, in one line and not too long."""
    return _literal(words.plain(value))


def _literal(text: str) -> str:
    """Text that stays text: neither HTML nor Markdown."""
    return MARKS.sub(r"\\\1", escape(text, quote=False))
