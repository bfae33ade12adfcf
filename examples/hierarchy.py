"""Labels in a taxonomy: from the names of leaves to closed predictions, judged in edges.

    python examples/hierarchy.py

Goods of a shop stand on a shelf, a leaf of a taxonomy of path names, some of them on two. Printed
is how far predictions for other goods are from the truth: the mean number of edges on which they
differ, and hierarchical F1; beside it, of a logistic regression for each label, cut at one half and
closed.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier

from setwise import SetClassifier, Taxonomy
from setwise.evaluation import Evaluation, evaluate
from setwise.targets import TreeDistance

SHELVES = [
    f"{floor}/{aisle}/{shelf}"
    for floor, aisles in {
        "garden": ("plants", "tools"),
        "home": ("kitchen", "lights", "textiles"),
        "toys": ("games", "puzzles"),
    }.items()
    for aisle in aisles
    for shelf in ("low", "middle", "top")
]


def goods(seed: int, n_rows: int) -> tuple[NDArray[np.float64], list[list[str]]]:
    """Features, and the shelves of each row: its own and, of one row in five, another's too.

    Shelves of one aisle, and aisles of one floor, are near each other.
    """
    generator = np.random.default_rng(0)
    places = {
        part: generator.normal(size=8)
        for shelf in SHELVES
        for part in (shelf.split("/")[0], shelf.rpartition("/")[0], shelf)
    }
    generator = np.random.default_rng(seed)
    features, shelves = [], []
    for _ in range(n_rows):
        own = generator.choice(SHELVES, size=1 + (generator.random() < 0.2), replace=False)
        parts = [own[0].split("/")[0], own[0].rpartition("/")[0], own[0]]
        place = sum(places[part] for part in parts)
        features.append(place + generator.normal(size=8))
        shelves.append(own.tolist())
    return np.array(features), shelves


def main(n_train: int = 1_000, n_test: int = 1_000) -> dict[str, Evaluation]:
    """The figures of both ways on rows that were not trained on."""
    taxonomy = Taxonomy.from_paths(SHELVES, missing="add")
    X, shelves = goods(1, n_train)
    X_new, shelves_new = goods(2, n_test)
    # The names of leaves become label sets with all that stands above them.
    Y, Y_new = taxonomy.close(shelves), taxonomy.close(shelves_new)

    model = SetClassifier(TreeDistance(taxonomy), scaling="standard").fit(X, Y)
    flat = OneVsRestClassifier(LogisticRegression()).fit(X, Y)
    predicted = {
        "tree distance": model.predict(X_new),
        "one label at a time, closed": taxonomy.close(flat.predict(X_new)),
    }
    print(f"{taxonomy}\ntrained on {model.space_}")
    figures = {}
    for name, y_pred in predicted.items():
        found = evaluate(y_pred, Y_new, taxonomy=taxonomy, n_bootstrap=200)
        figures[name] = found
        distance, f1 = found["tree distance"], found["hierarchical f1"]
        print(
            f"{name:<28} {distance.value:.3f} edges [{distance.low:.3f}, {distance.high:.3f}], "
            f"hierarchical F1 {f1.value:.3f}"
        )
    return figures


if __name__ == "__main__":
    main()
