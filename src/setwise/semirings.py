"""Sums over label sets under different semirings.

A recursion over a space adds up the weights of label sets (``plus``) and multiplies the weights of
their parts (``times``). Weights are kept as logarithms, so ``times`` is always ``+`` and a semiring
is its ``plus``:

- ``log_plus``: log(e^a + e^b). The recursion gives the log-partition function; with all weights 0
  or -inf it counts, in logarithms, so that the number of subsets of 30,000 labels is no problem.
- ``max_plus``: the larger. The same recursion gives the weight of the most likely set.

What ``log_plus`` returns: both -inf gives -inf, one -inf gives the other, never NaN. (+inf does
not occur: weights are finite or -inf.)
"""

from numba.extending import register_jitable

from setwise.kernels import exp, log1p_unit

# e^LEAST is nothing beside 1.
LEAST = -700.0


@register_jitable
def log_plus(a, b):
    """log(e^a + e^b)."""
    high = a if a > b else b
    low = b if a > b else a
    gap = low - high
    # Not a number if both are -inf; the comparison then fails too, and -inf plus nothing is left.
    gap = gap if gap > LEAST else LEAST
    return high + log1p_unit(exp(gap))


@register_jitable
def max_plus(a, b):
    """The larger of the two."""
    return a if a > b else b
