"""Quality on real data with its official splits: `python -m benchmarks quality --data FOLDER`.

The folder is as in `benchmarks.data`. Without the option nothing is measured. Every method sees the
same training and test rows as they are stored; nothing is tuned on the test rows. Rows are stored
as they are made.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from benchmarks.data import load
from benchmarks.rows import machine
from setwise.study.methods import METHODS, Question
from setwise.targets import get_target

SETS = ("emotions", "scene", "yeast", "medical", "enron", "slashdot", "bibtex")
TARGETS = ("f1", "jaccard", "subset", "hamming")
# Trees keep a number for each class in each leaf: with more classes they do not fit in memory.
MOST_CLASSES = 1000
# As they stand in the table, and as studies know them.
COMPARED = {
    "SetClassifierCV": "auto",
    "one-vs-rest logistic": "one_vs_rest",
    "classifier chain": "chain",
    "tuned thresholds": "thresholds",
    "TargetDecoder(one-vs-rest)": "one_vs_rest_decoded",
    "random forest": "forest",
    "TargetDecoder(random forest)": "forest_decoded",
    "CatalogClassifier(extra trees)": "extra_trees_catalog",
}


def quality(data: Path | None = None, sets: Sequence[str] = SETS) -> Iterator[dict[str, Any]]:
    """A row for each set and method."""
    for name in sets if data is not None else ():
        assert data is not None
        if not (data / name).exists():
            print(f"{name} is not in {data}: skipped")
            continue
        X, Y, X_test, Y_test = load(data / name)
        n_sets = len(np.unique(Y, axis=0))
        question = Question(get_target("f1"), 0, X.shape[0], sparse.issparse(X))
        for method, known_as in COMPARED.items():
            if known_as == "extra_trees_catalog" and n_sets > MOST_CLASSES:
                continue
            began = time.perf_counter()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                model = METHODS[known_as].make(question).fit(X, sparse.csr_array(Y))
                y_pred = model.predict(X_test)
            losses = {t: get_target(t).loss(y_pred, Y_test).mean() for t in TARGETS}
            yield {
                "set": name, "method": method,
                **{f"{target} utility": 1.0 - float(loss) for target, loss in losses.items()},
                "seconds": time.perf_counter() - began,
                "chosen": str(getattr(model, "best_params_", "")), **machine(),
            }  # fmt: skip
