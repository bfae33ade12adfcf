"""What the laws of the torch losses draw: a pair of the registries, and its loss as a function."""

import numpy as np

from tests.support import cases
from tests.support.examples import true_sets
from tests.support.profile import THOROUGH

POWERS = (-1.0, -0.5, 0.0, 0.3, 0.5, 0.7, 1.0)
TINY = 1e-6  # where the value is an integral over q
BACKENDS = ("compiled", "torch")
# One target of each form, on every space.
FORMS = ("hamming", "f1", "subset", "geometric mean", "table", "tree distance", "precision@k")
REPRESENTATIVES = [pair for pair in cases.PAIRS if THOROUGH or pair[0] in FORMS]


def drawn(pair, seed, n_rows=4):
    """A case of the registries: target, space, scores and true label sets."""
    target_name, space_name = pair
    rng = np.random.default_rng(seed)
    case = cases.EVERY_SPACE[space_name](4, rng)
    target = cases.EVERY_TARGET[target_name](rng, case).target
    inside = target_name in cases.TREE_NAMES and case.space.is_closed
    y_true = true_sets(case, rng, inside, n_rows).astype(np.uint8)
    return target, case.space, rng.normal(size=(n_rows, case.n_scores)), y_true


def function_of(target, space, backend, surrogate, **settings):
    from setwise.nn import functional

    def loss(logits, y_true, parameters):
        return functional.surrogate_loss(
            logits, y_true, target, space, surrogate, parameters=parameters, reduction="none",
            backend=backend, **settings,
        )  # fmt: skip

    return loss
