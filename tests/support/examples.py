"""What hypothesis draws: a space, a target, scores and true label sets; and how answers are
compared.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tests.support import cases, oracle
from tests.support.profile import THOROUGH

N_ROWS = 5
FEWER = settings.default.max_examples // 3  # for laws that repeat on every pair what others check
TOLERANCE = (
    1e-9  # relative, and as a share of the uniform utility: the accuracy the package promises
)
SPECIAL_Q = (0.0, 1.0, -1.0, 1e-3, -1e-3, 1e-6, -1e-6, 1e-9, -1e-9, 1e-12, -1e-12)
MOST_LABELS = 8 if THOROUGH else 6  # an enumeration takes twice as long for each
LARGEST_SUM = 300.0  # of |scores| in a row, where the loss grows like exp(2 sum|h|)


@dataclass(frozen=True)
class Example:
    """One draw: the case of a space, the case of a target, a batch of scores and of true label
    sets.
    """

    space: cases.SpaceCase
    target: cases.TargetCase
    scores: np.ndarray
    y_true: np.ndarray

    @cached_property
    def definition(self) -> oracle.Target:
        return self.target.oracle_on(self.space)

    def uniform_utility(self) -> np.ndarray:
        """M(0) of each row."""
        sets = self.space.oracle.sets
        return np.array(
            [
                float(oracle.uniform_mean(self.definition.utilities(sets, row)))
                for row in self.y_true
            ]
        )

    def answers(self, loss) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """`loss(space, target, scores, y_true)` of the oracle, row by row: values and the two
        gradients.
        """
        rows = [
            loss(self.space.oracle, self.definition, row, true)
            for row, true in zip(self.scores, self.y_true, strict=True)
        ]
        return (
            np.array([row.value for row in rows]),
            np.array([row.score_gradient for row in rows]),
            np.array([row.parameter_gradient for row in rows]),
        )


class ByTarget(dict[str, Example]):
    """Examples by the names of their targets; shown by the names alone."""

    def __repr__(self) -> str:
        return f"examples of {', '.join(self)}"


def generators():
    return st.integers(0, 2**32 - 1).map(np.random.default_rng)


def exponents():
    """q in [-1, 1], the special and the tiny ones as often as the others."""
    return st.sampled_from(SPECIAL_Q) | st.floats(-1.0, 1.0)


def score_arrays(n_rows: int, n_scores: int, largest: float = 50.0):
    """Scores of several magnitudes, up to `largest`."""
    unit = hnp.arrays(
        np.float64, (n_rows, n_scores), elements=st.floats(-1.0, 1.0, allow_subnormal=False)
    )
    return st.builds(np.multiply, unit, st.sampled_from((0.1, 1.0, 5.0, largest)))


def limited(scores: np.ndarray, joint: bool) -> np.ndarray:
    """Scores whose exponentials stay representable: 2 sum|h| <= 600, or 2 |h| <= 600 for joint
    scores.
    """
    size = np.abs(scores).max(axis=1) if joint else np.abs(scores).sum(axis=1)
    return scores * np.minimum(1.0, LARGEST_SUM / np.maximum(size, 1e-300))[:, None]


def true_sets(case: cases.SpaceCase, rng, inside: bool, n_rows: int = N_ROWS) -> np.ndarray:
    """True label sets: the empty, the full, one of the space, and any others; only the space's if
    `inside`.
    """
    members = case.oracle.sets[rng.integers(case.oracle.size, size=n_rows)]
    if inside:
        return members
    y_true = rng.integers(0, 2, size=(n_rows, case.n_labels))
    y_true[0], y_true[1], y_true[2] = 0, 1, members[0]
    return y_true


@st.composite
def examples_of_targets(
    draw, space_name, names, largest=50.0, grows=False, most_labels=MOST_LABELS, n_rows=N_ROWS
):
    """An example of each target on one space with the same scores, by the target's name.

    ``grows`` keeps exp(2 sum|h|) representable.
    """
    rng = draw(generators())
    most = min(most_labels, *(cases.MOST_LABELS.get(name, 8) for name in names))
    case = cases.EVERY_SPACE[space_name](draw(st.integers(2, most)), rng)
    scores = draw(score_arrays(n_rows, case.n_scores, LARGEST_SUM if grows else largest))
    scores = limited(scores, case.joint) if grows else scores
    found = ByTarget()
    for name in names:
        target = cases.EVERY_TARGET[name](rng, case)
        inside = name in cases.TREE_NAMES and space_name in cases.PATHS_NAMES
        found[name] = Example(case, target, scores, true_sets(case, rng, inside, n_rows))
    return found


def examples(pair, **options):
    """An example of a pair (target name, space name); options of `examples_of_targets`."""
    target_name, space_name = pair
    return examples_of_targets(space_name, (target_name,), **options).map(
        lambda found: found[target_name]
    )


@st.composite
def space_examples(draw, space_name, largest=50.0, n_rows=N_ROWS):
    """A space and scores, for laws that need no target."""
    rng = draw(generators())
    case = cases.EVERY_SPACE[space_name](draw(st.integers(2, MOST_LABELS)), rng)
    return case, draw(score_arrays(n_rows, case.n_scores, largest))


def assert_agrees(actual, expected, floor, tolerance=TOLERANCE):
    """|actual - expected| <= tolerance (largest |expected| of the row + floor of the row), and no
    NaN.
    """
    actual, expected = np.asarray(actual, dtype=float), np.asarray(expected, dtype=float)
    assert actual.shape == expected.shape, f"shape {actual.shape}, expected {expected.shape}"
    if expected.size == 0:
        return
    flat_actual, flat_expected = (
        actual.reshape(len(expected), -1),
        expected.reshape(len(expected), -1),
    )
    allowed = tolerance * (np.abs(flat_expected).max(axis=1) + np.asarray(floor))
    error = np.abs(flat_actual - flat_expected).max(axis=1)
    worst = np.argmax(np.nan_to_num(error / np.maximum(allowed, 1e-320), nan=np.inf))
    assert (error <= allowed).all(), (
        f"row {worst}: {flat_actual[worst]} instead of {flat_expected[worst]}, "
        f"off by {error[worst]:.3g}, allowed {allowed[worst]:.3g}"
    )
