"""What every target offers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable

import numpy as np

from setwise.sparse import row_ranges, tidy_sets
from setwise.targets.measure import ROUNDING
from setwise.validation import label_matrix, real_vector, same_rows

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from setwise.targets.measure import Form, Fraction, Measure, Of
    from setwise.taxonomy import Taxonomy


@runtime_checkable
class Target(Protocol):
    """The loss a prediction is judged by, in [0, 1]; its utility is 1 - loss.

    ``form`` says how the value depends on the predicted set; `measure` gives it in that form.

    Examples
    --------
    >>> from setwise.targets import FBeta
    >>> FBeta().form, FBeta().loss([[1, 1, 0]], [[1, 0, 0]]).round(3)
    ('linear_fractional', array([0.333]))
    """

    form: ClassVar[Form]

    def measure(self, n_labels: int, of: Of) -> Measure:
        """Loss or utility over label sets of ``n_labels`` labels."""
        ...

    def loss(self, y_pred: ArrayLike, y_true: ArrayLike) -> NDArray[np.float64]:
        """The loss of each row, (n,); of sparse label sets some rows at a time are made dense."""
        if hasattr(y_pred, "tocsr") and hasattr(y_true, "tocsr"):
            sets: Any = [tidy_sets(y_pred, "y_pred"), tidy_sets(y_true, "y_true")]
            ranges = list(row_ranges(*sets[0].shape)) if sets[0].shape[1] else []
            if len(ranges) > 1 and sets[0].shape == sets[1].shape:
                return np.concatenate([self.loss(*(s[rows] for s in sets)) for rows in ranges])
        predicted = label_matrix(y_pred, None, "y_pred")
        true = label_matrix(y_true, predicted.shape[1], "y_true")
        same_rows(y_pred=predicted, y_true=true)
        losses = np.asarray(self.measure(predicted.shape[1], "loss").rows(predicted, true))
        # A sum of weights that add up to 1 may end a rounding above it.
        return np.where((losses > 1.0) & (losses < 1.0 + ROUNDING), 1.0, losses)

    def on(self, space: Any) -> Target:
        """This target on the given space, or a ValueError where it has no meaning there."""
        self.measure(space.n_labels, "loss")
        return self

    def utility(self, y_pred: Any, y_true: Any, sample_weight: Any = None) -> float:
        """The value of all rows together: 1 - their mean loss, unless the target says otherwise.

        Parameters
        ----------
        y_pred, y_true : array or CSR matrix of shape (n, n_labels)
        sample_weight : array of shape (n,), optional
        """
        losses = self.loss(y_pred, y_true)
        return 1.0 - float(np.average(losses, weights=row_weights(sample_weight, len(losses))))

    def row_losses(self, y_pred: Any, y_true: Any) -> NDArray[np.float64]:
        """Losses of the rows, (n,), with the mean 1 - `utility`.

        Their spread tells how sure that is. They are the losses themselves, unless the target
        judges all rows together; then each row's share in the value, to first order.
        """
        return self.loss(y_pred, y_true)

    def refuse_labels(self, n_labels: int) -> None:
        """Raise where the target is not defined for so many labels."""
        self.measure(n_labels, "loss")


# What a target must have; the rest it may take from `Target`.
MEMBERS = ("form", "measure", "loss", "on")


def method_of(target: Target, name: str) -> Callable[..., Any]:
    """A method of the target, or that of `Target` for one that was written without it."""
    own = getattr(target, name, None)
    return partial(getattr(Target, name), target) if own is None else own


def row_weights(sample_weight: Any, n_rows: int) -> NDArray[np.float64]:
    """The weight of each row, (n,): none negative, not all 0; ones if there are none."""
    weights = np.ones(n_rows)
    if sample_weight is not None:
        weights = real_vector(sample_weight, n_rows, "sample_weight")
    if (weights < 0).any() or weights.sum() <= 0:
        raise ValueError(
            "a utility is of rows whose weights are not negative and not all 0, but "
            + ("one is negative" if (weights < 0).any() else "there is no such row")
        )
    return weights


def require_labels(target: Target, expected: int, n_labels: int) -> None:
    """Raise unless a target made for ``expected`` labels meets that many."""
    if expected != n_labels:
        raise ValueError(
            f"{target} is defined for {expected} labels, but the label sets have {n_labels}"
        )


# Facts about a target that other packages go by, in place of its class.


def judges_all_rows(target: Target) -> bool:
    """Whether all rows are judged together, as by macro-F1, so that a single row has no loss."""
    return target.form == "population"


def averages_labels(target: Target) -> bool:
    """Whether each label is judged over all rows, so that rare ones weigh more than their rows."""
    return judges_all_rows(target) and target.average != "micro"  # type: ignore


def predicted_size(target: Target) -> int | None:
    """The one size that predictions must have (precision@k, recall@k), None where any will do."""
    return getattr(target, "predicted_size", None)


def hierarchy_of(target: Target) -> Taxonomy | None:
    """The hierarchy that predictions must respect (tree distance), None where there is none."""
    from setwise.taxonomy import Taxonomy

    found = getattr(target, "hierarchy", None)
    return found if isinstance(found, Taxonomy) else None


def utility_quotient(target: Target) -> Fraction | None:
    """1 - loss as a quotient of linear functions of the counts, whatever the number of labels.

    Of precision@k and recall@k at predictions of k labels; None for a target that is no quotient.
    """
    found = getattr(target, "utility_quotient", None)
    if found is None and target.form == "linear_fractional":
        return target.measure(1, "utility")  # type: ignore
    return found


def rates_mean(target: Target) -> str | None:
    """How the shares found of the true and of the false entries are averaged, where they are.

    "arithmetic" (balanced accuracy), "geometric" (G-mean) or None.
    """
    return getattr(target, "rates_mean", None)


def beta_of(target: Target) -> float | None:
    """The weight of recall against precision in F-beta, None for other targets."""
    return getattr(target, "f_beta", None)


def is_hamming(target: Target) -> bool:
    """Whether the loss is the plain share of labels that differ."""
    return getattr(target, "is_hamming", False) is True


def follows_from_marginals(target: Target, n_labels: int) -> bool:
    """Whether the expected loss of a prediction follows from the marginals of the true labels.

    So it is for a sum over labels that does not depend on how many labels are true.
    """
    if target.form != "additive":
        return False
    measure, n_true = target.measure(n_labels, "loss"), np.arange(n_labels + 1.0)
    scale, constant = measure.scale(n_true), measure.constant(n_true)  # type: ignore
    return bool((scale == scale[0]).all() and (constant == constant[0]).all())


def label_weights(target: Target, n_labels: int) -> NDArray[np.float64] | None:
    """The weight of each label where the loss is the total of those that differ, else None."""
    if not follows_from_marginals(target, n_labels):
        return None
    measure: Any = target.measure(n_labels, "loss")
    one, (when_false, when_true) = np.ones(1), measure.values
    plain = measure.scale(one)[0] == 1.0 and measure.constant(one)[0] == 0.0
    differs = not when_false[0].any() and np.array_equal(when_false, when_true[::-1])
    return when_false[1] if plain and differs else None


def is_linear_at_size(target: Target, n_labels: int) -> bool:
    """Whether among predictions of one size the loss is a constant less a gain for each label.

    Every sum over labels is. A quotient of the counts is where its denominator does not change
    with tp when fp = k - tp, fn = n_true - tp and tn = n_false - k + tp: F-beta, not Jaccard.
    """
    if target.form == "linear_fractional":
        below = target.measure(n_labels, "loss").denominator  # type: ignore
        return bool(abs(below @ [0, 1, -1, -1, 1]) <= 1e-12 * np.abs(below).max())
    return target.form == "additive"
