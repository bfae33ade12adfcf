"""What a decoder decided."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

# Expected losses that differ by no more count as equal. (Those by quadrature have an error of up to
# 1e-10; on few labels, and between sizes that share nodes, it is far smaller.)
TIE = 1e-11


class Decisions(NamedTuple):
    """Label sets with their expected loss, and the least expected loss of any other set.

    ``second_risk`` is inf where there is no other set to predict.
    """

    sets: Any
    risk: NDArray[np.float64]
    second_risk: NDArray[np.float64]
