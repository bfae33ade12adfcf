"""A model with the columns it was trained on: from a new file to label sets, in parts."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from setwise.datasets import Schema
from setwise.persistence import load
from setwise.targets import Target

# Rows are taken in parts of at most so many, and so many entries of features or labels.
MOST_ROWS, MOST_ENTRIES, LEAST_ROWS = 10_000, 2**23, 64
# Surrogates whose scores are log-probabilities.
LIKELIHOODS = ("auto", "likelihood", "binary_relevance")


class Part(NamedTuple):
    """Some rows of a file: what was read and the label sets predicted, (n, n_labels)."""

    data: Any
    y_pred: Any


@dataclass(frozen=True, eq=False)
class Fitted:
    r"""What `setwise fit` writes: a model, how its file was read, and what it was trained for.

    Parameters
    ----------
    model : estimator
        Predicts label sets, a column for each label of the schema.
    schema : Schema
        Reads other files into the same columns.
    target : Target
        What the model was trained for.
    about : mapping
        What was chosen and found in training, as JSON.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from setwise import SetClassifier, get_target
    >>> from setwise.datasets import read
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "books.csv")
    ...     _ = file.write_text("pages,tags\n120,art;law\n80,law\n130,art;law\n70,law\n")
    ...     data = read(file, label_column="tags", separator=";")
    ...     model = SetClassifier("f1").fit(data.X, data.Y)
    ...     fitted = Fitted(model, data.schema, get_target("f1"))
    ...     [part.y_pred.tolist() for part in fitted.parts(file)]
    [[[1, 1], [0, 1], [1, 1], [0, 1]]]
    """

    model: Any
    schema: Schema
    target: Target
    about: Mapping[str, Any] = field(default_factory=dict)

    @property
    def label_names(self) -> list[str]:
        """The names of the labels, in the order of the columns of a prediction."""
        return [str(name) for name in self.schema.label_names]

    @property
    def guarantee(self) -> str:
        """What is proved of the model, in words."""
        return str(self.classifier.guarantee_)

    @property
    def classifier(self) -> Any:
        """The classifier itself, chosen and behind whatever prepares its inputs."""
        steps = getattr(self.model, "steps", None)
        last = self.model if steps is None else steps[-1][1]
        return getattr(last, "best_estimator_", last)

    @property
    def has_probability(self) -> bool:
        """Whether the scores of the model are log-probabilities."""
        return self.classifier.surrogate in LIKELIHOODS

    def parts(self, path: str | os.PathLike[str], rows: int | None = None) -> Iterator[Part]:
        """Predictions for the rows of a file, in order and in parts that fit into memory.

        Labels of the file are not looked at, and need not be there.
        """
        for data in self.schema.chunks(path, self.rows_at_once if rows is None else rows):
            yield Part(data, self.model.predict(data.X))

    def probability(self, X: Any) -> NDArray[np.float64]:
        """The probability of each label, (n, n_labels), without what rounding adds beyond 1."""
        return np.clip(self.model.predict_proba(X), 0.0, 1.0)

    @property
    def rows_at_once(self) -> int:
        """How many rows of a file are predicted together."""
        widest = max(len(self.schema.label_names), self.classifier.n_features_in_)
        return max(LEAST_ROWS, min(MOST_ROWS, MOST_ENTRIES // widest))


def load_fitted(path: Path) -> Fitted:
    """What `setwise fit` wrote, or a ValueError."""
    if path.is_dir():
        raise ValueError(f"{str(path)!r} is a folder, not a model that `setwise fit` wrote")
    loaded = load(path)
    if not isinstance(loaded, Fitted):
        raise ValueError(
            f"{path.name} holds a {type(loaded).__name__} without the columns of a file; expected "
            f"is a model that `setwise fit` wrote"
        )
    return loaded
