"""`gradcheck` and `gradgradcheck` of the torch losses: every target, space and q, both ways."""

import numpy as np
import pytest

from tests.support import cases
from tests.support.nn_cases import (
    BACKENDS,
    POWERS,
    REPRESENTATIVES,
    TINY,
    drawn,
    function_of,
)
from tests.support.profile import THOROUGH
from tests.support.turns import in_turn

torch = pytest.importorskip("torch")
from torch.autograd import gradcheck, gradgradcheck  # noqa: E402

from setwise import targets  # noqa: E402
from setwise.nn import SurrogateLoss  # noqa: E402
from setwise.nn.expected import LARGEST_TABLE  # noqa: E402
from setwise.targets import TARGETS, CountTarget, get_target  # noqa: E402

torch.set_num_threads(1)
# Torch's own forward derivatives are scripted, and warn about that.
pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit.script:DeprecationWarning")


def test_every_registered_target_is_among_the_cases():
    """A target that is added must be added to the cases, and is then checked like the others."""
    made = {name.replace("*", "2"): get_target(name.replace("*", "2")) for name in TARGETS}
    kinds = {
        type(cases.EVERY_TARGET[name](rng, cases.slice_of(4, rng)).target)
        for name in cases.EVERY_TARGET
        for rng in [np.random.default_rng(0)]
    }
    assert {type(target) for target in made.values()} <= kinds
    every = {kind for kind in vars(targets).values() if isinstance(kind, type)} - {targets.Target}
    # What judges all rows together has no loss of a row.
    assert {kind for kind in every if kind.form != "population"} == kinds


def parts(space, seed):
    """Logits of three rows and the parameters that are not -inf, and a way back to all of them."""
    rng = np.random.default_rng(seed)
    logits = torch.tensor(rng.normal(size=(3, space.n_scores)), requires_grad=True)
    free = np.flatnonzero(np.isfinite(space.parameters))
    if len(free) == 0:
        return logits, (), lambda: None

    def parameters(values):
        return torch.tensor(space.parameters).scatter(0, torch.tensor(free), values)

    return logits, (torch.tensor(space.parameters[free], requires_grad=True),), parameters


def assert_derivatives(check, pair, powers, backends, **options):
    """By logits and by parameters, of the comp-sum losses of a pair."""
    target, space, _, y_true = drawn(pair, cases.PAIRS.index(pair), 3)
    logits, values, parameters = parts(space, 4)
    for q in powers:
        for backend in backends:
            rows = function_of(target, space, backend, "comp_sum", q=q)

            def loss(logits, *values, rows=rows):
                return rows(logits, torch.tensor(y_true), parameters(*values))

            assert check(loss, (logits, *values), **options), (q, backend)


FAST = {"fast_mode": True, "check_undefined_grad": False}
TARGET_NAMES, SPACE_NAMES = list(cases.EVERY_TARGET), list(cases.EVERY_SPACE)


def in_turns(pair, powers=(0.0, 0.7)):
    """One q for each pair, where a space has several: each target and space meets every q."""
    target, space = pair
    if sum(other == space for _, other in REPRESENTATIVES) == 1:
        return powers
    turn = TARGET_NAMES.index(target) + SPACE_NAMES.index(space)
    return (powers[turn % len(powers)],)


@in_turn("pair", REPRESENTATIVES, ids=cases.pair_id)
def test_gradients_are_right_for_every_form_and_space(pair):
    """`gradcheck` by logits and parameters.

    (That torch operations and kernels agree is `test_torch_operations_are_the_core`, on every
    pair.)
    """
    powers, backends = ((-0.5, 0.0, 0.7), BACKENDS) if THOROUGH else (in_turns(pair), ("torch",))
    assert_derivatives(gradcheck, pair, powers, backends, **FAST)


@pytest.mark.parametrize("target", cases.TARGETS if THOROUGH else ["f1", "specificity", "hamming"])
def test_every_single_derivative_is_right_on_the_cube(target):
    """Without the random directions of the fast mode."""
    assert_derivatives(gradcheck, (target, "cube"), POWERS, BACKENDS)


@pytest.mark.parametrize("space_name", ["cube", "sized", "chain"])
def test_gradients_are_right_for_tiny_q(space_name):
    """Where the value is an integral over q, so that no small difference is divided by q."""
    assert_derivatives(gradcheck, ("f1", space_name), (TINY,), BACKENDS, **FAST)


SECOND = ("f1", "hamming", "subset", "geometric mean", "table")
WITH_PARAMETERS = ("sized", "chain", "catalog", "joint catalog")


@in_turn(
    "pair",
    [(t, s) for t in SECOND for s in ("cube", "slice", "hierarchy", *WITH_PARAMETERS)],
    ids=cases.pair_id,
)
def test_second_derivatives_are_right(pair):
    """By logits and by parameters, in torch operations, which the kernels hand over to."""
    if pair in cases.PAIRS:
        powers = (0.0, 0.5) if THOROUGH else in_turns(pair, (0.0, 0.5))
        assert_derivatives(gradgradcheck, pair, powers, ("torch",), fast_mode=True)


@pytest.mark.parametrize("space_name", ["cube", *WITH_PARAMETERS])
def test_every_single_second_derivative_is_right_on_the_default_backend(space_name):
    assert_derivatives(gradgradcheck, ("f1", space_name), (1.0,), ("auto",))


def test_a_second_derivative_that_has_no_way_says_so():
    """More labels than a table of counts may have: the kernels serve, their derivative does not."""
    target = CountTarget(lambda tp, fp, fn, tn: 1.0 * (fp + fn > 1))
    logits = torch.zeros(1, 200, requires_grad=True)
    loss = SurrogateLoss(target)(logits, torch.zeros(1, 200))
    (gradient,) = torch.autograd.grad(loss, logits, retain_graph=True)
    assert torch.isfinite(gradient).all()
    with pytest.raises(ValueError, match=f"torch operations.*{LARGEST_TABLE}"):
        torch.autograd.grad(loss, logits, create_graph=True)


def test_a_gradient_that_is_asked_for_again_is_the_same_and_leaves_the_first_alone():
    logits = torch.tensor([[0.3, -0.2, 1.0], [1.5, 0.0, -2.0]], requires_grad=True)
    loss = SurrogateLoss("f1")(logits, torch.tensor([[1, 0, 1], [0, 0, 1]]))
    (first,) = torch.autograd.grad(loss, logits, retain_graph=True)
    kept = first.clone()
    (second,) = torch.autograd.grad(3.0 * loss, logits, retain_graph=True)
    torch.testing.assert_close(second, 3.0 * kept)
    torch.testing.assert_close(first, kept, rtol=0.0, atol=0.0)
