"""What every classifier of label sets has: names of labels, a score by its target, a file."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cache
from importlib.metadata import PackageNotFoundError, metadata
from typing import Any

from sklearn.metrics import accuracy_score
from sklearn.utils.validation import check_is_fitted

from setwise.labels import LabelNames, named_sets
from setwise.persistence import save
from setwise.targets.registry import get_target
from setwise.targets.target import Target, hierarchy_of, method_of
from setwise.targets.truth import encode_truth


@cache
def documentation() -> str:
    """The address of the site, as the package's metadata has it; empty where they have none."""
    try:
        links = metadata("setwise").get_all("Project-URL") or []
    except PackageNotFoundError:
        return ""
    named = dict(str(link).split(", ", 1) for link in links)
    return named.get("Documentation", "").rstrip("/")


class NamedSets(ABC):
    """What every classifier of label sets has beside `predict`."""

    target: Any
    classes_: Any
    target_: Target
    _names: LabelNames
    # Where scikit-learn's HTML representation leads to; see `documentation`.
    _doc_link_module = "setwise"

    @property
    def _doc_link_template(self) -> str:
        return f"{home}/api/setwise.{{estimator_name}}.html" if (home := documentation()) else ""

    @abstractmethod
    def predict(self, X) -> Any:
        """The label sets, or classes, to predict."""

    def predict_sets(self, X, *, most_specific: bool = False) -> list[tuple[Any, ...]]:
        """The names of the labels to predict, a tuple for each row.

        What `predict` says, in the names that `fit` was given: those of the columns of a data
        frame, the labels of lists, the numbers of the columns of an array. They come in the order
        of ``classes_``, as from scikit-learn's ``MultiLabelBinarizer.inverse_transform``; a class
        of a one-dimensional y is a tuple of one.

        Parameters
        ----------
        X : as `predict` takes it
        most_specific : bool, default False
            Whether to leave out every label that stands above another of the same set, where the
            target has a hierarchy (`TreeDistance`); `Taxonomy.close` adds them again.
        """
        predicted: Any = self.predict(X)
        if most_specific:
            taxonomy = hierarchy_of(get_target(self.target))
            if taxonomy is None:
                raise ValueError(
                    f"most_specific=True needs a hierarchy of the labels, and the target "
                    f"{self.target} has none; TreeDistance(taxonomy) has one"
                )
            predicted = taxonomy.most_specific(predicted)
        if predicted.ndim == 1:
            return [(name,) for name in predicted.tolist()]
        return named_sets(predicted, self.classes_.tolist())

    def score(self, X, y, sample_weight=None) -> float:
        """The utility of the target, or the accuracy of classes; y in any form of `fit`.

        Of most targets 1 - the mean loss; of a measure of all rows together its value.
        """
        return self._score_of(self.predict(X), y, sample_weight)

    def _score_of(self, y_pred: Any, y: Any, sample_weight: Any) -> float:
        """The same of what was predicted."""
        names, target = self._judged()
        if names.one_dimensional:
            return float(accuracy_score(y, y_pred, sample_weight=sample_weight))
        return method_of(target, "utility")(y_pred, encode_truth(target, names, y), sample_weight)

    def _judged(self) -> tuple[LabelNames, Target]:
        """The names of the labels of a fitted model, and what its predictions are judged by."""
        check_is_fitted(self, "classes_")
        return self._names, self.target_

    def save(self, path) -> None:
        """Write the model to a file that holds data only; `setwise.load` reads it."""
        save(self, path)
