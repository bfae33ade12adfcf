"""Which labels a set of k labels should have: the most or the least probable ones.

With independent labels (or any law where a label of higher score is more likely than another, all
else equal), exchanging a predicted label for a more probable one moves tp upwards in law, with the
predicted and the true size as they were. So if the loss does not rise with tp, whatever the true
size, the k most probable labels are the best k; if it does not fall, the k least probable ones. If
it falls for one true size and rises for another, neither need be.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from setwise.targets.measure import Array, Fraction

# Steps of the loss that are only rounding.
ROUNDING = 1e-12
SIZES_AT_ONCE = 2**14


def directions(measure, n_labels: int, name: str) -> tuple[Array, Array]:
    """For each predicted size whether the most probable labels are best, else the least probable.

    Where tp does not matter, the most probable ones are taken. Raises where neither are best.
    """
    if isinstance(measure, Fraction) and _plainly_rises(measure):
        return np.ones(n_labels + 1, dtype=bool), np.zeros(n_labels + 1, dtype=bool)
    falls, rises = np.full((2, n_labels + 1), -1)
    for size, n_true, tp in _steps(measure, n_labels):
        loss = measure.of_counts(*_counts(size, n_true, tp, n_labels))
        change = measure.of_counts(*_counts(size, n_true, tp + 1, n_labels)) - loss
        for found, happens in ((falls, change < -ROUNDING), (rises, change > ROUNDING)):
            found[size[happens]] = n_true[happens]
    both = np.flatnonzero((falls >= 0) & (rises >= 0))
    if len(both):
        size = int(both[0])
        raise ValueError(
            f"{name} is not monotone in tp: with {size} predicted labels its loss falls as tp "
            f"grows if {falls[size]} are true, but rises if {rises[size]} are. The top (or bottom) "
            f"{size} labels by probability are then not the best {size}, and there is no exact "
            f"minimum-risk decoding from marginals; use decode_catalog with listed label sets"
        )
    return rises < 0, rises >= 0


def _plainly_rises(measure: Fraction) -> bool:
    """Whether 1 - loss is c tp / D with c > 0 and a D that never rises with tp, as in F-beta.

    tp up and the sizes as they are means fp and fn down and tn up. D is 0 only where tp, fp and fn
    are, so that no convention stands in the way.
    """
    hits = measure.denominator - measure.numerator
    constant, tp, fp, fn, tn = measure.denominator
    only_hits = hits[1] > 0.0 and not hits[[0, 2, 3, 4]].any()
    return bool(only_hits and min(tp, fp, fn) > 0.0 <= min(constant, tn) and tp + tn <= fp + fn)


def _steps(measure, n_labels: int) -> Iterator[tuple[Array, Array, Array]]:
    """(size, n_true, tp) where the step from tp to tp + 1 has to be looked at."""
    sizes = np.arange(n_labels + 1)
    if not isinstance(measure, Fraction):
        for size in sizes:
            n_true, tp = np.meshgrid(sizes, np.arange(size), indexing="ij")
            yield _possible(np.full(tp.size, size), n_true.ravel(), tp.ravel(), n_labels)
        return
    # The sign of the slope in tp is linear in n_true, so its ends decide; a value set by convention
    # where the denominator is 0 stands at an end of the range of tp, for n_true in an interval
    # over which its neighbours are linear: so again the ends decide.
    for part in np.array_split(sizes, 1 + len(sizes) // SIZES_AT_ONCE):
        ends = np.stack([0 * part, part, n_labels - part, 0 * part + n_labels], axis=1)
        n_true = np.clip(ends[:, :, None] + np.arange(-2, 3), 0, n_labels).reshape(len(part), -1)
        size = np.broadcast_to(part[:, None], n_true.shape)
        low, high = _range(size, n_true, n_labels)
        for tp in (low, low + 1, high - 2, high - 1):
            yield _possible(size.ravel(), n_true.ravel(), tp.ravel(), n_labels)


def _possible(size: Array, n_true: Array, tp: Array, n_labels: int) -> tuple[Array, Array, Array]:
    low, high = _range(size, n_true, n_labels)
    inside = (tp >= low) & (tp < high)
    return size[inside], n_true[inside], tp[inside]


def _range(size: Array, n_true: Array, n_labels: int) -> tuple[Array, Array]:
    """The least and the largest tp."""
    return np.maximum(0, size + n_true - n_labels), np.minimum(size, n_true)


def _counts(size: Array, n_true: Array, tp: Array, n_labels: int) -> list[Array]:
    counts = (tp, size - tp, n_true - tp, n_labels - n_true - size + tp)
    return [count.astype(np.float64) for count in counts]
