"""Predictions by the names of the labels."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cache
from importlib.metadata import PackageNotFoundError, metadata
from typing import Any

from setwise.labels import named_sets
from setwise.targets.registry import get_target
from setwise.targets.target import hierarchy_of


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
    """What every classifier of label sets has beside `predict`: its answer in names."""

    target: Any
    classes_: Any
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
