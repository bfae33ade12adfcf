"""Members of a mixture, judged by themselves: how reliable the probabilities of each one are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from setwise.estimators.members import ROWS
from setwise.evaluation import Reliability, reliability
from setwise.evaluation.statistics import quotient
from setwise.sparse import dense_rows

WHOLE = "the mixture"


@dataclass(frozen=True)
class MemberFigures:
    """A member of a mixture, or the mixture itself.

    Attributes
    ----------
    name : str
    weight, temperature : float
        In the mixture; the temperature is the power of the member's law.
    log_loss : float or None
        Of the member alone, on the rows that training held out; of the mixture its own.
    log_loss_without : float or None
        That of the mixture of the others.
    reliability : Reliability
        Of its probabilities, with its temperature, on the rows judged.

    Examples
    --------
    >>> curve = reliability([[0.9, 0.2], [0.7, 0.1]], [[1, 0], [1, 1]], n_bins=2)
    >>> round(MemberFigures("linear", 0.6, 1.0, 1.2, 1.4, curve).expected_error, 3)
    0.275
    """

    name: str
    weight: float
    temperature: float
    log_loss: float | None
    log_loss_without: float | None
    reliability: Reliability

    @property
    def expected_error(self) -> float:
        """The mean gap between a probability and the share that is true."""
        return self.reliability.expected_error


def members_of(model: Any, X: Any, y_true: Any) -> tuple[MemberFigures, ...]:
    """The members of a fitted `SetEnsemble` on some rows, and last the mixture.

    Parameters
    ----------
    model : SetEnsemble, or a pipeline that ends in one
    X : as in `predict`
    y_true : 0/1 array or sparse matrix of shape (n, l)
        The true label sets, which were not trained on.

    Examples
    --------
    >>> from setwise import SetClassifier, SetEnsemble
    >>> X, Y = [[0.0], [1.0], [0.2], [0.9]] * 3, [[1, 0], [0, 1], [1, 0], [1, 1]] * 3
    >>> members = {"weak": SetClassifier(alpha=0.1), "strong": SetClassifier(alpha=0.01)}
    >>> mixture = SetEnsemble(members=members, cv=2).fit(X, Y)
    >>> [own.name for own in members_of(mixture, X, Y)]
    ['weak', 'strong', 'the mixture']
    """
    if hasattr(model, "steps"):
        X, model = model[:-1].transform(X) if len(model) > 1 else X, model[-1]
    found = []
    for told in model.contributions_:
        losses = (told["log_loss"], told["log_loss_without"])
        likely = _marginals(model.members_[told["member"]], told["temperature"], X)
        own = reliability(np.clip(likely, 0.0, 1.0), y_true)
        found.append(
            MemberFigures(told["member"], told["weight"], told["temperature"], *losses, own)
        )
    whole = reliability(np.clip(model.predict_proba(X), 0.0, 1.0), y_true)
    return (*found, MemberFigures(WHOLE, 1.0, 1.0, model.log_loss_, None, whole))


def _marginals(member: Any, power: float, X: Any) -> Any:
    """Those of a member with its temperature, some rows at a time, so that lists fit in memory."""
    found, n_rows = [], _num_samples(X)
    for first in range(0, n_rows, ROWS):
        rows = np.arange(first, min(first + ROWS, n_rows))
        law = member.predict_distribution(_safe_indexing(X, rows))
        likely = (law if power == 1.0 else law.tempered(power)).marginals()
        found.append(dense_rows(likely))
    return np.concatenate(found)


def merged(folds: Sequence[Sequence[MemberFigures]]) -> tuple[MemberFigures, ...]:
    """The figures of several folds as one: means, and the entries of all together."""
    names = list(dict.fromkeys(own.name for fold in folds for own in fold))
    # The mixture stays last.
    names.sort(key=lambda name: name == WHOLE)
    found = []
    for name in names:
        own = [one for fold in folds for one in fold if one.name == name]
        found.append(
            replace(
                own[0],
                weight=sum(one.weight for one in own) / len(folds),
                temperature=float(np.mean([one.temperature for one in own])),
                log_loss=_mean([one.log_loss for one in own]),
                log_loss_without=_mean([one.log_loss_without for one in own]),
                reliability=_together([one.reliability for one in own]),
            )
        )
    return tuple(found)


def _mean(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None


def _together(curves: list[Reliability]) -> Reliability:
    """The curve of all entries."""
    count = np.sum([one.count for one in curves], axis=0)
    sums = (
        np.sum([one.count * getattr(one, name) for one in curves], axis=0)
        for name in ("mean_probability", "frequency")
    )
    return Reliability(curves[0].edges, count, *(quotient(part, count, 0.0) for part in sums))
