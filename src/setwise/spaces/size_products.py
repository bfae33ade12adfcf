"""Elementary symmetric polynomials of many rows side by side, as plain products.

The recursion is that of `symmetric`, without its scaling: weights e^(2 h) are multiplied as they
are, of `LANES` rows at a time. Of many rows that takes a fifth of the time, and is as accurate,
since only positive numbers are added, unless a product is too large or too small for a float. Such
rows say so, and are left to `symmetric`.
"""

from __future__ import annotations

import numpy as np

from setwise.kernels import exp, view_kernel
from setwise.lanes import load_row, room_in_lanes, store_row
from setwise.targets.measure import Array

# Rows that go through the recursion side by side, and fewest that a thread takes.
LANES, FEWEST_ROWS = 16, 512
# Between these the weight of all sets, with some of them left out or made up for, is a float; where
# it is not on the way, the identity that is checked at the end fails by more than rounding.
LEAST, MOST, ROUNDING = 1e-130, 1e130, 1e-6
# Scores whose weight is a float; `exp` takes others as if they were no larger.
LARGEST = 354.0


def products_room(n_labels: int, largest: int) -> list[Array]:
    """What `product_rows` works in, for sizes up to ``largest``."""
    counts = n_labels, n_labels, (n_labels + 1) * (largest + 1), largest + 1, 2
    return room_in_lanes(LANES, *counts)


@view_kernel
def product_rows(start, stop, scores, factor, law, line, rest, table, adjoint, known):
    """``law`` as `moments_rows` has it, with A relative to the largest bias; NaN where it fails.

    ``factor`` (K + 1,) is e^(bias - largest bias). The last five are `products_room`: table (j, k)
    is over the sets of size k of the first j labels.
    """
    (log_partition, on, off, sizes), n_labels, width = law, scores.shape[1], len(factor)
    for b in range(LANES):
        known[0, b], known[1, b] = 0.0, 1.0
    zero, one = load_row(known, 0, LANES), load_row(known, 1, LANES)
    for first in range(start, stop, LANES):
        for b in range(LANES):
            # (Lanes beyond the last row repeat it.)
            row = first + b if first + b < stop else stop - 1
            for i in range(n_labels):
                line[i, b] = 2.0 * scores[row, i]
        for k in range(width):
            store_row(table, k, zero if k > 0 else one)
        for j in range(n_labels):
            weight, here = exp(load_row(line, j, LANES)), (j + 1) * width
            store_row(line, j, weight)
            last = load_row(table, here - width, LANES)
            store_row(table, here, last)
            for k in range(1, width):
                same = load_row(table, here - width + k, LANES)
                store_row(table, here + k, same + weight * last)
                last = same
        total, here = zero, n_labels * width
        for k in range(width):
            total = total + factor[k] * load_row(table, here + k, LANES)
        share = one / total
        for k in range(width):
            store_row(adjoint, k, factor[k] * share)
            store_row(table, here + k, factor[k] * share * load_row(table, here + k, LANES))
        for j in range(n_labels - 1, -1, -1):
            weight, here = load_row(line, j, LANES), j * width
            present, after = zero, load_row(adjoint, 0, LANES)
            last = load_row(table, here, LANES)
            absent = after * last
            for k in range(1, width):
                above, same = load_row(adjoint, k, LANES), load_row(table, here + k, LANES)
                present = present + above * last
                absent = absent + above * same
                store_row(adjoint, k - 1, after + weight * above)
                after, last = above, same
            store_row(line, j, weight * present)
            store_row(rest, j, absent)
        store_row(known, 0, total)
        for b in range(LANES):
            row = first + b
            if row < stop:
                mass, whole = known[0, b], adjoint[0, b]
                is_known = LEAST < mass < MOST and abs(whole - 1.0) < ROUNDING
                log_partition[row] = np.log(mass) if is_known else np.nan
                for i in range(n_labels):
                    on[row, i], off[row, i] = line[i, b], rest[i, b]
                    score = scores[row, i]
                    log_partition[row] -= score if abs(score) <= LARGEST else np.nan
                for k in range(width):
                    sizes[row, k] = table[n_labels * width + k, b]
