"""Cross-validation folds in which every label occurs about equally often."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, hstack
from sklearn.model_selection import check_cv
from sklearn.utils import check_random_state
from sklearn.utils.validation import _num_samples

from setwise.kernels import view_inner, view_kernel
from setwise.labels import read_labels
from setwise.validation import whole_number

# What it costs that a label is gone from a fold: more than all unevenness, which costs about 1 at
# most for each label of a row.
LOST = 2.0**20
# How often all rows are offered a better fold; later offers are rarely taken.
PASSES = 10
# Folds where nobody says how many.
USUAL = 5


@dataclass(frozen=True)
class StratifiedLabelSets:
    """A scikit-learn splitter that spreads the positives of every label evenly over the folds.

    Iterative stratification. The label with the fewest rows left deals them out: each row goes to
    the fold that has the fewest of that label, of those to the smallest. Then the label with the
    fewest rows left is next, and last the rows without labels. Two repairs follow. Each row moves
    to another fold if that lowers

        sum over labels and folds of (count - mean count)² / positives of the label,

    where the number of rows counts like one more label, and a label that is not in a fold outweighs
    all the rest. And rows move from the largest fold to the smallest until sizes differ by at most
    one, those first whose move makes this sum least. The cost is that of reading y, then O(l²) and
    O(number of positives * n_splits) for each of ten passes at most, and O(n) for each row that the
    second repair moves.

    **What is guaranteed.** The folds part the rows, and their sizes differ by at most one. With one
    class a row, the counts of a class in two folds differ by at most one. With several labels a row
    nobody can guarantee that, nor that a label with ``n_splits`` or more positives is in every
    fold: three labels that share three rows two by two cannot all be in both of two folds. There
    the counts are as even as this greedy search makes them. The same labels in another order of
    rows give folds with the same label sets.

    Parameters
    ----------
    n_splits : int, default 5
        Number of folds, at least 2.
    shuffle : bool, default True
        Whether chance decides between folds that are equally good, and between rows that have the
        same label set. Otherwise the lower fold and the earlier row come first.
    random_state : int, RandomState or None, default 0
        Seed of that chance; not used without ``shuffle``.

    References
    ----------
    Sechidis, Tsoumakas and Vlahavas (2011), On the stratification of multi-label data: the dealing
    out. The repairs are added here.

    Examples
    --------
    Two of eight rows have the rare label; each half gets one:

    >>> y = np.array([[1, 1], [1, 0], [0, 1], [0, 1], [0, 1], [0, 0], [0, 1], [0, 0]])
    >>> for train, test in StratifiedLabelSets(n_splits=2).split(None, y):
    ...     print(y[test].sum(axis=0), len(test))
    [1 3] 4
    [1 2] 4
    """

    n_splits: int = 5
    shuffle: bool = True
    random_state: Any = 0

    def __post_init__(self):
        vars(self).update(n_splits=whole_number(self.n_splits, "n_splits", 2))

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Number of folds; the arguments are not used."""
        return self.n_splits

    def split(
        self, X: Any, y: Any, groups: Any = None
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """The rows to train on and the rows to test on, in increasing order, for each fold.

        Of X, which may be None, only the number of rows is looked at; y is in any form of
        `setwise.labels.read_labels`; groups are not used.
        """
        folds = self.assign(y)
        n_rows = len(folds) if X is None else _num_samples(X)
        if n_rows != len(folds):
            raise ValueError(
                f"X and y must have the same number of rows, "
                f"but X has {n_rows} and y has {len(folds)}"
            )
        for fold in range(self.n_splits):
            yield np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)

    def assign(self, y: Any) -> NDArray[np.int64]:
        """The fold of each row, from 0 to n_splits - 1, (n,)."""
        sets: Any = csr_array(read_labels(y)[0])
        n_rows, n_labels = sets.shape
        if n_rows < self.n_splits:
            raise ValueError(
                f"{self.n_splits} folds need at least as many rows, but y has n_samples = {n_rows}"
            )
        random = check_random_state(self.random_state if self.shuffle else 0)
        # Rows in an order that depends on their label sets, and only among equal ones on more: each
        # label has a random 64-bit number, and rows are sorted by the sum of theirs.
        numbers = random.randint(0, 2**64, size=n_labels, dtype=np.uint64)
        among_equals = random.permutation(n_rows) if self.shuffle else np.arange(n_rows)
        order = np.lexsort((among_equals, sets.astype(np.uint64) @ numbers))
        turns = np.zeros(n_rows, int)
        if self.shuffle:
            turns = random.randint(self.n_splits, size=n_rows)
        # One more label, which every row has: its counts are the sizes of the folds.
        everyone = csr_array(np.ones((n_rows, 1), sets.dtype))
        rows = csr_array(hstack([sets[order], everyone]))
        by_row, by_label = (
            (part.indptr.astype(np.int64), part.indices.astype(np.int64))
            for part in (rows, rows.tocsc())
        )
        dealt, positives = np.full(n_rows, -1), np.diff(by_label[0])
        counts = np.zeros((n_labels + 1, self.n_splits), np.int64)
        _assign(*by_row, *by_label, positives, positives.copy(), turns, dealt, counts)
        folds = np.empty(n_rows, dtype=np.int64)
        folds[order] = dealt
        return folds


def at_most(n_splits: int, n_rows: int, random_state: Any) -> StratifiedLabelSets:
    """So many folds; one for each row where these are fewer."""
    if n_rows < 2:
        raise ValueError(
            f"cross-validation needs at least 2 rows of positive weight, but there are "
            f"n_samples = {n_rows}"
        )
    return StratifiedLabelSets(min(n_splits, n_rows), random_state=random_state)


def splits_of(cv: Any, X: Any, sets: NDArray[Any], random_state: Any, params: dict) -> Iterator:
    """Pairs of training and held-out rows: of a number of folds, or of a splitter as it is.

    None is five folds, fewer where there are fewer rows. ``params`` are handed to the splitter
    beside X and y, such as groups.
    """
    if cv is None or isinstance(cv, int | np.integer):
        if cv is None:
            folds = at_most(USUAL, len(sets), random_state)
        else:
            folds = StratifiedLabelSets(whole_number(cv, "cv", 2), random_state=random_state)
        # Sparse, because a single dense column would be one of classes.
        return folds.split(None, csr_array(sets))
    splitter: Any = check_cv(cv)
    return splitter.split(X, sets.astype(np.int64), **params)


# ---------------------------------------------------------------------------------------- kernels
# Rows are CSR (start, labels), columns are CSC (label_start, rows_of); the last label is in every
# row. counts[label, fold] belong to folds[row], which is -1 before a row is dealt. (A number as it
# is written has a type of its own, for which the compiler makes each part once more.)
FIRST, ONE = np.int64(0), np.int64(1)


@view_inner
def _deal_out(start, labels, label_start, rows_of, left, turns, folds, counts):
    """Deal the rows of the label that has the fewest left, label by label.

    ``left`` (n_labels + 1,), the number of rows of each, counts down to 0.
    """
    for _ in range(len(left)):
        rarest = FIRST
        for label in range(1, len(left)):
            if left[label] > 0 and (left[rarest] == 0 or left[label] < left[rarest]):
                rarest = label
        for place in range(label_start[rarest], label_start[rarest + 1]):
            row = rows_of[place]
            if folds[row] < 0:
                folds[row] = _neediest(counts, rarest, turns[row])
                _add(row, folds[row], ONE, start, labels, counts)
                for entry in range(start[row], start[row + 1]):
                    left[labels[entry]] -= 1


@view_inner
def _neediest(counts, label, turn):
    """The fold with the fewest of a label; of those the smallest, then the next from ``turn``."""
    n_splits, last = counts.shape[1], len(counts) - 1
    best = turn
    for step in range(1, n_splits):
        fold = (turn + step) % n_splits
        more = counts[label, fold] - counts[label, best]
        if more < 0 or (more == 0 and counts[last, fold] < counts[last, best]):
            best = fold
    return best


@view_inner
def _add(row, fold, step, start, labels, counts):
    """Count a row in a fold once more, or once less."""
    for entry in range(start[row], start[row + 1]):
        counts[labels[entry], fold] += step


@view_inner
def _harm(row, source, fold, start, labels, positives, counts):
    """What a move does to the counts: half the growth of sum (count - mean)² / positives.

    A label lost from a fold, or won, outweighs all the rest.
    """
    harm = 0.0
    for entry in range(start[row], start[row + 1]):
        label = labels[entry]
        here, there = counts[label, source], counts[label, fold]
        harm += (there - here + 1) / positives[label]
        harm += LOST * (here == 1) - LOST * (there == 0)
    return harm


@view_inner
def _improve(start, labels, positives, folds, counts):
    """Move each row to the fold where it does most good, if it does any; several times."""
    moved = 1
    for _ in range(PASSES):
        if moved == 0:
            break
        moved = 0
        for row in range(len(folds)):
            source = best = folds[row]
            least = -1e-9
            for fold in range(counts.shape[1]):
                if fold != source:
                    harm = _harm(row, source, fold, start, labels, positives, counts)
                    if harm < least:
                        best, least = fold, harm
            if best != source:
                _add(row, source, -ONE, start, labels, counts)
                _add(row, best, ONE, start, labels, counts)
                folds[row] = best
                moved += 1


@view_inner
def _even_out(start, labels, positives, folds, counts):
    """Move the row that does least harm from the largest fold to the smallest, until even."""
    last = len(counts) - 1
    while True:
        largest = smallest = folds[0]
        for fold in range(counts.shape[1] - 1, -1, -1):
            if counts[last, fold] >= counts[last, largest]:
                largest = fold
            if counts[last, fold] <= counts[last, smallest]:
                smallest = fold
        if counts[last, largest] - counts[last, smallest] <= 1:
            break
        best, least = folds[0], np.inf
        for row in range(len(folds)):
            if folds[row] == largest:
                harm = _harm(row, largest, smallest, start, labels, positives, counts)
                if harm < least:
                    best, least = row, harm
        _add(best, largest, -ONE, start, labels, counts)
        _add(best, smallest, ONE, start, labels, counts)
        folds[best] = smallest


@view_kernel
def _assign(start, labels, label_start, rows_of, positives, left, turns, folds, counts):
    """Fill ``folds``: deal the rows out, then move some."""
    _deal_out(start, labels, label_start, rows_of, left, turns, folds, counts)
    _improve(start, labels, positives, folds, counts)
    _even_out(start, labels, positives, folds, counts)


def drawn_groups(groups: Any, fraction: float, seed: int) -> NDArray[np.bool_]:
    """Which rows are held out, (n,): whole groups drawn by chance, until they are enough rows.

    The last group stays in any case.

    Examples
    --------
    >>> drawn_groups(["a", "b", "a", "c"], 0.5, seed=0)
    array([ True, False,  True,  True])
    """
    _, group, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    order = np.random.default_rng(seed).permutation(len(sizes))
    before = np.cumsum(sizes[order]) - sizes[order]
    return np.isin(group, order[:-1][before[:-1] < round(fraction * len(group))])
