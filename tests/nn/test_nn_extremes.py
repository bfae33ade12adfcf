"""Laws of the torch losses at logits of any size: finite, right, and the same both ways."""

import itertools
from functools import partial

import numpy as np
import pytest

from tests.support import cases, oracle
from tests.support.nn_cases import REPRESENTATIVES
from tests.support.profile import THOROUGH
from tests.support.turns import in_turn

torch = pytest.importorskip("torch")
from torch.autograd import gradgradcheck  # noqa: E402

from setwise.nn import ExpectedLoss, SurrogateLoss, functional  # noqa: E402
from setwise.spaces import Catalog, Cube, Forest, Paths, Sized, Slice  # noqa: E402

torch.set_num_threads(1)
pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit.script:DeprecationWarning")

BACKENDS = ("compiled", "torch")
DTYPES = (torch.float32, torch.float64)
QUOTIENTS = ("f1", "f2", "f0.5", "jaccard", "specificity", "precision", "tversky")
SMALL_SPACES = {
    "cube": Cube(3),
    "sized": Sized(3, [0.3, -0.2, -np.inf, 0.5]),
    "slice": Slice(3, 2),
    "chain": Forest.chain(3, np.random.default_rng(0).normal(size=(3, 2, 2))),
    "hierarchy": Forest([-1, 0, 0], closed=True),
    "paths": Paths([-1, 0, 0]),
    "catalog": Catalog([[1, 0, 0], [0, 1, 1], [1, 1, 0], [0, 0, 0]], [0.2, -np.inf, 0.1, -0.4]),
    "joint catalog": Catalog([[1, 0, 0], [0, 1, 1], [1, 1, 0]], [0.2, -0.3, 0.1], joint=True),
}


def target_of(name):
    rng = np.random.default_rng(0)
    return cases.EVERY_TARGET[name](rng, cases.cube(4, rng))


def mixed_logits(n_rows, n_scores, seed=0):
    """Every size from 0 to 1e4, mixed in each row."""
    rng = np.random.default_rng(seed)
    sizes = [0.0, 1e-3, 1, 3, 10, 20, 45, 60, 89, 95, 100, 104, 300, 745, 1e4]
    return rng.choice([-1.0, 1.0], (n_rows, n_scores)) * rng.choice(sizes, (n_rows, n_scores))


def enumerated(name, y_true):
    """The expected loss on the cube as a plain sum over all label sets."""
    sets = oracle.all_sets(y_true.shape[1])
    losses = [target_of(name).target.loss(sets, np.repeat(y[None], len(sets), 0)) for y in y_true]
    signs, table = torch.tensor(2.0 * sets - 1.0), torch.tensor(np.array(losses))

    def expected(logits):
        return (torch.softmax(logits / 2.0 @ signs.T, -1) * table).sum(-1)

    return expected


def derivatives(loss, logits, order):
    """A row's loss summed, and its derivatives along fixed directions."""
    x = logits.clone().requires_grad_()
    answers, value = [], loss(x)
    answers.append(value.detach())
    for step in range(order):
        direction = torch.linspace(0.3, 1.7, x.shape[1], dtype=x.dtype).roll(step)
        more = step + 1 < order
        (gradient,) = torch.autograd.grad(value.sum(), x, create_graph=more)
        answers.append(gradient.detach())
        value = (gradient * direction).sum(-1)
    return answers


def assert_near(found, expected, tolerance):
    """Values and gradients agree, as a share of each and of the largest."""
    for one, other in zip(found, expected, strict=True):
        size = float(1.0 + other.abs().max())
        torch.testing.assert_close(
            one.double(), other.double(), rtol=tolerance, atol=tolerance * size
        )


def test_a_certain_true_label_has_a_gradient_in_float32():
    """Where a factor is a subnormal number its reciprocal overflows."""
    for size in np.arange(80.0, 112.0):
        logits = torch.tensor([[-1.0, size]], dtype=torch.float32, requires_grad=True)
        ExpectedLoss("f1", backend="torch")(logits, torch.tensor([[1, 1]])).backward()
        assert logits.grad[0, 0].item() == pytest.approx(-0.0655373, rel=1e-5)
        assert -1e-30 < logits.grad[0, 1] <= 0.0


@in_turn("dtype", DTYPES)
@in_turn("name", QUOTIENTS)
def test_large_random_logits_have_gradients(name, dtype):
    target, generator = target_of(name).target, torch.Generator().manual_seed(0)
    y_true = torch.rand(60, 20, generator=generator) < 0.3

    powers = (0.0, 0.003, 0.5) if name in ("f1", "specificity") else (0.0, 0.5)
    settings = [{"surrogate": "comp_sum", "q": q} for q in powers]
    settings.append({"surrogate": "expected_loss"})
    for size, setting in itertools.product((1.0, 60.0, 3000.0), settings):
        logits = size * torch.randn(60, 20, generator=generator, dtype=dtype)
        core, ours = (
            derivatives(
                partial(
                    functional.surrogate_loss, y_true=y_true, target=target, backend=backend,
                    reduction="none", **setting,
                ),
                logits, 1,
            )
            for backend in BACKENDS
        )  # fmt: skip
        assert_near(ours, core, 1e-9 if dtype == torch.float64 else 1e-5)


@in_turn("backend", ["auto", "torch"])
@in_turn("name", QUOTIENTS)
def test_three_derivatives_are_those_of_the_plain_sum(name, backend):
    """At every size of the logits, for every true set, in float64 and in float32."""
    y_true = np.tile(oracle.all_sets(3), (8, 1))
    logits = torch.tensor(mixed_logits(len(y_true), 3))
    expected = derivatives(enumerated(name, y_true), logits, 3)
    loss = ExpectedLoss(target_of(name).target, backend=backend, reduction="none")
    for dtype, tolerance in ((torch.float64, 1e-9), (torch.float32, 3e-6)):
        found = derivatives(lambda x: loss(x, torch.tensor(y_true)), logits.to(dtype), 3)
        for order, (ours, theirs) in enumerate(zip(found, expected, strict=True)):
            assert torch.isfinite(ours).all(), (order, dtype)
            difference = float((ours.double() - theirs).abs().max())
            assert difference < tolerance, (order, dtype, difference)


@in_turn(
    ("name", "size"),
    [*itertools.product(("f1", "specificity"), (3.0, 15.0, 45.0)), ("f2", 15.0), ("jaccard", 45.0)],
)
def test_second_derivatives_are_right_at_large_logits(name, size):
    logits = torch.tensor([[-1.0, size, 0.3], [size, -size, 2.0]], dtype=torch.float64)
    for y_true in ([[1, 1, 0], [0, 1, 1]], [[0, 0, 0], [1, 1, 1]]):
        loss = partial(
            functional.expected_loss, y_true=torch.tensor(y_true), target=target_of(name).target
        )
        assert gradgradcheck(loss, (logits.requires_grad_(),))


def test_a_hessian_on_the_default_backend_is_finite():
    def loss(logits):
        return ExpectedLoss("f1")(logits, torch.tensor([[1, 1]]))

    for size in (45.0, 60.0, 100.0, 1e4):
        found = torch.autograd.functional.hessian(loss, torch.tensor([[-1.0, size]]))
        assert torch.isfinite(found).all()
        assert found[0, 0, 0, 0].item() == pytest.approx(-0.030286, rel=1e-4)


@in_turn("dtype", DTYPES)
@in_turn("backend", BACKENDS)
@in_turn("space_name", SMALL_SPACES)
def test_extreme_logits_give_finite_values_and_gradients(space_name, backend, dtype):
    """±1e4 and sizes mixed in a row, for every true set; below q = 0 never NaN."""
    space = SMALL_SPACES[space_name]
    signs = oracle.all_sets(space.n_scores) * 2 - 1
    extremes = 1e4 * signs[np.random.default_rng(0).integers(len(signs), size=12)]
    extremes = np.concatenate([extremes, mixed_logits(20, space.n_scores)])
    y_true = oracle.all_sets(space.n_labels)[np.arange(len(extremes)) % 2**space.n_labels]
    for target in ("hamming", "f1", "jaccard", "subset"):
        for q in (0.0, 0.003, 0.5, -1.0) if target == "f1" else (0.0, 0.5, -1.0):
            loss = SurrogateLoss(target, space, "comp_sum", q=q, backend=backend, reduction="none")
            logits = torch.tensor(extremes, dtype=dtype, requires_grad=True)
            values = loss(logits, torch.tensor(y_true))
            (gradient,) = torch.autograd.grad(values.sum(), logits)
            if q >= 0:
                assert torch.isfinite(values).all(), (target, q)
                assert torch.isfinite(gradient).all(), (target, q)
            else:
                assert not torch.isnan(values).any(), (target, q)
                assert not torch.isnan(gradient).any(), (target, q)


@in_turn("pair", REPRESENTATIVES, ids=cases.pair_id)
def test_both_ways_agree_on_every_form_at_any_size(pair):
    """In float64 with sizes mixed in a row; float32 where rounding the logits does not decide."""
    target_name, space_name = pair
    rng = np.random.default_rng(cases.PAIRS.index(pair))
    case = cases.EVERY_SPACE[space_name](3, rng)
    target = cases.EVERY_TARGET[target_name](rng, case).target
    y_true = torch.tensor(case.oracle.sets[rng.integers(len(case.oracle.sets), size=16)])
    logits = torch.tensor(mixed_logits(16, case.n_scores, seed=1).astype(np.float32))
    settings = [{"surrogate": "comp_sum", "q": q} for q in (0.0, 0.3)]
    settings.append({"surrogate": "expected_loss"})
    if not THOROUGH:
        settings = settings[REPRESENTATIVES.index(pair) % 3 :][:1]
    if target_name == "subset":
        # (The likelihood is the same for every target.)
        settings.append({"surrogate": "likelihood"})
    for setting in settings:

        def answers(logits, backend, setting=setting):
            loss = partial(
                functional.surrogate_loss, y_true=y_true, target=target, space=case.space,
                backend=backend, reduction="none", **setting,
            )  # fmt: skip
            found = derivatives(loss, logits, 1)
            if setting["surrogate"] == "expected_loss" and backend == "torch":
                assert (found[0] >= 0.0).all()
                assert (found[0] <= 1.0).all()
            return found

        assert_near(answers(logits.double(), "torch"), answers(logits.double(), "compiled"), 1e-9)
        small = logits.clamp(-20.0, 20.0)
        assert_near(answers(small, "torch"), answers(small.double(), "compiled"), 2e-5)


@in_turn("margin", ["squared_hinge", "hinge", "rho"])
@in_turn("space_name", SMALL_SPACES)
def test_huge_logits_never_give_a_constrained_loss_that_is_not_a_number(space_name, margin):
    """A square may overflow to infinity, but a loss of 0 times that is 0."""
    space = SMALL_SPACES[space_name]
    signs = list(itertools.product((-1.0, 1.0), repeat=space.n_scores))
    logits = (1e30 * torch.tensor(signs)).requires_grad_()
    y_true = torch.tensor(space.enumerate()[np.arange(len(signs)) % len(space.enumerate())])
    for target in ("hamming", "f1", "subset"):
        loss = SurrogateLoss(
            target, space, "constrained", margin=margin, backend="torch", reduction="none"
        )
        values = loss(logits, y_true)
        assert not torch.isnan(values).any()
        assert not torch.isnan(torch.autograd.grad(values.sum(), logits)[0]).any()
