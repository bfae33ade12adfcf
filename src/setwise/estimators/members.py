"""Members of a mixture: how they are fitted to some rows, and what they said of rows held out."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from setwise.distributions import Distribution
from setwise.estimators.target_decoder import TargetDecoder
from setwise.estimators.wrapped import weights_of
from setwise.labels import LabelNames

Array = NDArray[Any]

# Trees of a forest by which the time of all is estimated.
PILOT = 5


class Member(NamedTuple):
    """A fitted estimator, what models like it said of rows held out, by fold, and its power."""

    name: str
    estimator: Any
    laws: list[Distribution]
    power: float = 1.0

    def law(self, given: Distribution) -> Any:
        """A distribution of the estimator's as it is mixed."""
        return given if self.power == 1.0 else given.tempered(self.power)


@dataclass(frozen=True, eq=False)
class Given:
    """What `fit` was given, and members fitted to some of its rows."""

    X: Any
    sets: Array
    names: LabelNames
    sample_weight: Any = None
    weights: Array = field(init=False)

    def __post_init__(self):
        vars(self).update(weights=weights_of(self.sample_weight, self.sets))

    def fit(self, member: Any, rows: Any) -> Any:
        """A clone of the member, fitted to some rows."""
        rows = np.arange(len(self.sets))[rows]
        y: Any = self.sets[rows].argmax(axis=1) if self.names.one_dimensional else self.sets[rows]
        # (A dense column would be taken for classes; a sparse one is a label.)
        y = csr_array(y) if y.ndim == 2 and y.shape[1] == 1 else y
        params = {} if self.sample_weight is None else {"sample_weight": self.weights[rows]}
        with warnings.catch_warnings():
            # Warnings of single members, and of single folds, are of no use to who asked for all.
            warnings.simplefilter("ignore", UserWarning)
            return copy_of(member).fit(_safe_indexing(self.X, rows), y, **params)


def copy_of(member: Any) -> Any:
    """A clone, of which the type checker knows nothing."""
    return clone(member)


def wrapped(member: Any, target: Any) -> Any:
    """A classifier with `predict_distribution`, if need be by `TargetDecoder`."""
    if hasattr(member, "predict_distribution"):
        return member
    if not hasattr(member, "predict_proba"):
        raise ValueError(
            f"a member of an ensemble must have predict_distribution or predict_proba, but "
            f"{member!r} has neither"
        )
    return TargetDecoder(member, target)


def within(member: Any, seconds: float, rows: Given) -> Any:
    """The member with settings by which its fit takes about so long at most; None if none do.

    What has a ``time_budget`` keeps it. Of a forest a few trees are grown, to see how long
    they take.
    """
    if not np.isfinite(seconds):
        return member
    params = member.get_params()
    if "time_budget" in params:
        return copy_of(member).set_params(time_budget=max(seconds, 0.01))
    name = next((n for n in ("n_estimators", "estimator__n_estimators") if n in params), None)
    if name is None:
        return member
    begun = time.monotonic()
    rows.fit(copy_of(member).set_params(**{name: PILOT}), slice(None))
    affordable = int(PILOT * (seconds - (time.monotonic() - begun)) / (time.monotonic() - begun))
    return (
        copy_of(member).set_params(**{name: min(params[name], affordable)})
        if affordable > 0
        else None
    )


def settled(fitted: Any) -> Any:
    """The same estimator, to be fitted again with what it chose; others as they are."""
    return fitted.settled() if hasattr(fitted, "settled") else fitted


def seen_before(sets: Array, train: Array, test: Array) -> Array:
    """Of each row held out, whether its label set is that of a row trained on."""
    known = {row.tobytes() for row in np.packbits(sets[train], axis=1)}
    return np.array([row.tobytes() in known for row in np.packbits(sets[test], axis=1)])
