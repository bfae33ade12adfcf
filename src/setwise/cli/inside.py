"""What a report tells of the inside of a model: members of a mixture, and what features say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from setwise.cli.explain import explained

if TYPE_CHECKING:
    from setwise.cli.fit import Fitted
    from setwise.datasets import Dataset

# Rows of a kind that are explained; features, rows and repeats for what features are worth.
N_EXPLAINED, MOST_FEATURES, MOST_ROWS, N_REPEATS = 2, 12, 500, 3


def inside(fitted: Fitted, rows: Dataset, y_pred: Any, seed: int) -> dict[str, Any]:
    """Arguments of `setwise.report.write`; none of what cannot be told of a model.

    Explained are the rows with most wrong labels and some with as many as most rows have; features
    that say most of these are shuffled, to see what they are worth.
    """
    import numpy as np

    from setwise.estimators import feature_importance
    from setwise.estimators.explaining import UnexplainableError
    from setwise.report.material import ALONE
    from setwise.study import members_of

    found: dict[str, Any] = {}
    if hasattr(fitted.classifier, "members_"):
        found["members"] = {ALONE: members_of(fitted.model, rows.X, rows.Y)}
    true, predicted = (np.asarray(getattr(sets, "toarray", lambda own=sets: own)(), int)
                       for sets in (rows.Y, y_pred))  # fmt: skip
    wrong = np.abs(true - predicted).sum(axis=1)
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
        from dataclasses import replace

        found["importance"] = replace(worth, labels=np.array(fitted.label_names, object))
    return found
