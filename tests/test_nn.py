"""Laws of the torch losses: values and exact gradients are those of the NumPy core, both ways."""

import cases
import numpy as np
import oracle
import pytest
from examples import true_sets

torch = pytest.importorskip("torch")
from torch.autograd import gradcheck, gradgradcheck  # noqa: E402

from setwise.expectation import expectation  # noqa: E402
from setwise.nn import ExpectedLoss, SurrogateLoss, functional  # noqa: E402
from setwise.nn.tensors.values import LARGEST_TABLE  # noqa: E402
from setwise.spaces import Catalog, Cube, Forest, Sized, Slice  # noqa: E402
from setwise.surrogates import BinaryRelevance, CompSum, Constrained, Logistic  # noqa: E402
from setwise.targets import CountTarget, TableTarget  # noqa: E402

torch.set_num_threads(1)
# Torch's own forward derivatives are scripted, and warn about that.
pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit.script:DeprecationWarning")

CORE = 1e-9  # how far torch operations in float64 may be from the core; the promise is 1e-6
TINY = 1e-6
POWERS = (-1.0, -0.3, 0.0, TINY, 0.4, 1.0)
BACKENDS = ("compiled", "torch")
MARGINS = ("exponential", "squared_hinge", "hinge", "rho")

REGISTERED = ("hamming", "subset", "jaccard", "f1", "f2", "f0.5")
AT_K = ("precision@2", "recall@2")
GRADCHECK_SPACES = {
    "cube": Cube(3),
    "sized": Sized(3, [0.3, -0.2, -np.inf, 0.5]),
    "slice": Slice(3, 2),
    "chain": Forest.chain(3, np.random.default_rng(0).normal(size=(3, 2, 2))),
    "hierarchy": Forest([-1, 0, 0], closed=True),
    "paths": cases.Paths([-1, 0, 0]),
    "catalog": Catalog([[1, 0, 0], [0, 1, 1], [1, 1, 0], [0, 0, 0]], [0.2, -np.inf, 0.1, -0.4]),
    "joint catalog": Catalog([[1, 0, 0], [0, 1, 1], [1, 1, 0]], [0.2, -0.3, 0.1], joint=True),
}
AT_K_SPACES = {
    "slice": Slice(3, 2),
    "catalog of pairs": Catalog([[1, 1, 0], [0, 1, 1]], [0.2, -0.1]),
}
REGISTERED_PAIRS = [
    *((target, space) for target in REGISTERED for space in GRADCHECK_SPACES.items()),
    *((target, space) for target in AT_K for space in AT_K_SPACES.items()),
]


def pair_name(pair):
    return f"{pair[0]} on {pair[1][0]}"


def drawn(pair, seed, n_rows=4):
    """A case of the registries: target, space, scores and true label sets."""
    target_name, space_name = pair
    rng = np.random.default_rng(seed)
    case = cases.EVERY_SPACE[space_name](4, rng)
    target = cases.EVERY_TARGET[target_name](rng, case).target
    inside = target_name in cases.TREE_NAMES and space_name in cases.PATHS_NAMES
    y_true = true_sets(case, rng, inside, n_rows).astype(np.uint8)
    return target, case.space, rng.normal(size=(n_rows, case.n_scores)), y_true


def torch_answers(loss, parameters, scores, y_true):
    """Values and gradients by scores and by parameters, from logits that are twice the scores."""
    logits = torch.tensor(2.0 * scores, requires_grad=True)
    own = torch.tensor(parameters, requires_grad=True)
    values = loss(logits, torch.tensor(y_true), own)
    wanted = (logits, own) if len(parameters) else (logits,)
    gradients = torch.autograd.grad(values.sum(), wanted, allow_unused=True)
    by_parameter = gradients[1] if len(wanted) == 2 else None
    return (
        values.detach().numpy(),
        2.0 * gradients[0].numpy(),
        np.zeros(len(parameters)) if by_parameter is None else by_parameter.numpy(),
    )


def assert_same(found, core, tolerance=CORE):
    """Values, score gradients and summed parameter gradients agree."""
    value, by_score, by_parameter = core
    size = 1.0 + np.abs(value).max()
    np.testing.assert_allclose(found[0], value, rtol=tolerance, atol=tolerance * size)
    np.testing.assert_allclose(found[1], by_score, rtol=tolerance, atol=tolerance * size)
    np.testing.assert_allclose(
        found[2], by_parameter.sum(axis=0), rtol=tolerance, atol=tolerance * size
    )


def function_of(target, space, backend, surrogate, **settings):
    def loss(logits, y_true, parameters):
        return functional.surrogate_loss(
            logits, y_true, target, space, surrogate, parameters=parameters, reduction="none",
            backend=backend, **settings,
        )  # fmt: skip

    return loss


@pytest.mark.parametrize("pair", cases.PAIRS, ids=cases.pair_id)
def test_torch_operations_are_the_core(pair):
    """Every target on every space: comp-sum (one q each time), the expected loss, constrained."""
    seed = cases.PAIRS.index(pair)
    target, space, scores, y_true = drawn(pair, seed)
    q = POWERS[seed % len(POWERS)]
    found = torch_answers(
        function_of(target, space, "torch", "comp_sum", q=q), space.parameters, scores, y_true
    )
    assert_same(found, CompSum(target, space, q).value_and_gradients(scores, y_true))
    found = torch_answers(
        function_of(target, space, "torch", "expected_loss"), space.parameters, scores, y_true
    )
    moment = expectation(target, space).moment(scores, y_true, 1.0, "loss")
    assert_same(found, (moment.value, moment.scores, moment.parameters))
    margin = MARGINS[seed % len(MARGINS)]
    found = torch_answers(
        function_of(target, space, "torch", "constrained", margin=margin, rho=0.7),
        space.parameters, scores, y_true,
    )  # fmt: skip
    core = Constrained(target, space, margin, 0.7)
    assert_same(found, core.value_and_gradients(scores, y_true))


@pytest.mark.parametrize("space_name", cases.SPACES)
@pytest.mark.parametrize("backend", BACKENDS)
def test_the_likelihood_is_the_paper_logistic_loss_of_subset(space_name, backend):
    _, space, scores, y_true = drawn(("subset", space_name), 3)
    found = torch_answers(
        function_of("f1", space, backend, "likelihood"), space.parameters, scores, y_true
    )
    core = Logistic("subset", space, "paper")
    assert_same(found, core.value_and_gradients(scores, y_true))


@pytest.mark.parametrize("pair", REGISTERED_PAIRS, ids=pair_name)
@pytest.mark.parametrize("q", [q for q in POWERS if q != TINY])
def test_gradients_are_right_for_every_registered_target_and_space(q, pair):
    """`gradcheck` by logits and parameters, of kernels and of torch operations."""
    target, (_, space) = pair
    rng = np.random.default_rng(4)
    logits = torch.tensor(rng.normal(size=(2, space.n_scores)), requires_grad=True)
    y_true = torch.tensor(space.enumerate()[[0, -1]])
    free = np.flatnonzero(np.isfinite(space.parameters))
    values = torch.tensor(space.parameters[free], requires_grad=True)

    for backend in BACKENDS:
        rows = function_of(target, space, backend, "comp_sum", q=q)

        def loss(logits, values, rows=rows):
            parameters = torch.tensor(space.parameters)
            parameters = parameters.scatter(0, torch.tensor(free), values)
            return rows(logits, y_true, parameters if len(free) else None)

        assert gradcheck(loss, (logits, values), fast_mode=True)


@pytest.mark.parametrize("space_name", ["cube", "sized", "chain"])
def test_gradients_are_right_for_tiny_q(space_name):
    """Where the value is an integral over q, so that no small difference is divided by q."""
    pair = ("f1", (space_name, GRADCHECK_SPACES[space_name]))
    test_gradients_are_right_for_every_registered_target_and_space(TINY, pair)


@pytest.mark.parametrize("q", [0.0, 0.4, 1.0])
@pytest.mark.parametrize(
    "pair", [p for p in REGISTERED_PAIRS if p[0] in ("f1", "hamming", "subset")], ids=pair_name
)
def test_second_derivatives_are_right(pair, q):
    """`gradgradcheck` through torch operations, which the kernels hand over to."""
    target, (_, space) = pair
    logits = torch.tensor(
        np.random.default_rng(5).normal(size=(2, space.n_scores)), requires_grad=True
    )
    y_true = torch.tensor(space.enumerate()[[0, -1]])
    loss = SurrogateLoss(target, space, "comp_sum", q=q, reduction="none")
    assert gradgradcheck(lambda x: loss(x, y_true), (logits,), fast_mode=True)


def test_a_second_derivative_that_has_no_way_says_so():
    """More labels than a table of counts may have: the kernels serve, their derivative does not."""
    target = CountTarget(lambda tp, fp, fn, tn: 1.0 * (fp + fn > 1))
    logits = torch.zeros(1, 200, requires_grad=True)
    loss = SurrogateLoss(target)(logits, torch.zeros(1, 200))
    (gradient,) = torch.autograd.grad(loss, logits, retain_graph=True)
    assert torch.isfinite(gradient).all()
    with pytest.raises(ValueError, match=f"torch operations.*{LARGEST_TABLE}"):
        torch.autograd.grad(loss, logits, create_graph=True)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("space_name", cases.SPACES)
def test_the_expected_loss_is_the_loss_of_a_random_label_set(space_name, backend):
    """sum_{y'} s(y') L(y', y) with s enumerated, z from half the logits."""
    rng = np.random.default_rng(6)
    case = cases.SPACES[space_name](4, rng)
    logits, y_true = rng.normal(size=(6, case.n_scores)), rng.integers(0, 2, size=(6, 4))
    expected = [
        oracle.set_probability(case.oracle, row / 2.0)
        @ oracle.f_beta().losses(case.oracle.sets, true)
        for row, true in zip(logits, y_true, strict=True)
    ]
    loss = ExpectedLoss("f1", case.space, reduction="none", backend=backend)
    found = loss(torch.tensor(logits), torch.tensor(y_true))
    np.testing.assert_allclose(found.numpy(), np.array(expected, dtype=float), rtol=1e-10)


def test_the_mean_absolute_error_is_the_expected_loss_less_a_constant():
    """M(0) - M and 1 - M differ by 1 - M(0), which depends on the true set alone."""
    generator = torch.Generator().manual_seed(0)
    y_true = torch.rand(50, 6, generator=generator) < 0.3
    logits = torch.randn(2, 50, 6, generator=generator, dtype=torch.float64)
    one, other = ExpectedLoss("f2", reduction="none"), SurrogateLoss("f2", reduction="none")
    gap = [one(x, y_true) - other(x, y_true) for x in logits]
    torch.testing.assert_close(gap[0], gap[1])
    assert one.q == other.q == 1.0


def test_logits_of_the_cube_are_log_odds():
    """With Hamming loss and one label the expected loss is 1 - sigmoid(logit) of a true label."""
    logits = torch.linspace(-5, 5, 7)[:, None]
    found = ExpectedLoss("hamming", reduction="none")(logits, torch.ones(7, 1))
    torch.testing.assert_close(found, 1.0 - torch.sigmoid(logits[:, 0]))


@pytest.mark.parametrize("margin", ["logistic", "exponential", "hinge", "squared_hinge"])
def test_binary_relevance_takes_logits_as_scores(margin):
    rng = np.random.default_rng(1)
    scores, y_true = rng.normal(size=(5, 4)), rng.integers(0, 2, size=(5, 4))
    logits = torch.tensor(scores, requires_grad=True)
    loss = SurrogateLoss("f1", None, "binary_relevance", margin=margin, reduction="none")
    values = loss(logits, torch.tensor(y_true))
    value, gradient = BinaryRelevance(margin).value_and_gradient(scores, y_true)
    np.testing.assert_allclose(values.detach().numpy(), value, rtol=1e-12)
    (found,) = torch.autograd.grad(values.sum(), logits)
    np.testing.assert_allclose(found.numpy(), gradient, rtol=1e-12)


def test_binary_relevance_is_bce_with_logits_summed_over_labels():
    generator = torch.Generator().manual_seed(0)
    logits, weight = torch.randn(8, 3, generator=generator), torch.tensor([1.0, 2.0, 5.0])
    y_true = (torch.rand(8, 3, generator=generator) < 0.5).float()
    loss = SurrogateLoss("f1", None, "binary_relevance", pos_weight=weight, weight=[0.5, 1, 2])
    theirs = torch.nn.BCEWithLogitsLoss(
        pos_weight=weight, weight=torch.tensor([0.5, 1, 2]), reduction="none"
    )
    torch.testing.assert_close(loss(logits, y_true), theirs(logits, y_true).sum(1).mean())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("space_name", GRADCHECK_SPACES)
def test_extreme_logits_give_finite_values_and_gradients(space_name, backend, dtype):
    """±1e4, for empty and full label sets and any between; below q = 0 never NaN."""
    space = GRADCHECK_SPACES[space_name]
    signs = oracle.all_sets(space.n_scores) * 2 - 1
    extremes = 1e4 * signs[np.random.default_rng(0).integers(len(signs), size=12)]
    y_true = torch.tensor(oracle.all_sets(space.n_labels)[np.arange(12) % 2**space.n_labels])
    for target in ("hamming", "f1", "jaccard", "subset"):
        for q in (0.0, 0.003, 0.5, 1.0, -0.3, -1.0):
            loss = SurrogateLoss(target, space, "comp_sum", q=q, backend=backend, reduction="none")
            logits = torch.tensor(extremes, dtype=dtype, requires_grad=True)
            values = loss(logits, y_true)
            (gradient,) = torch.autograd.grad(values.sum(), logits)
            if q >= 0:
                assert torch.isfinite(values).all(), (target, q)
                assert torch.isfinite(gradient).all(), (target, q)
            else:
                assert not torch.isnan(values).any(), (target, q)
                assert not torch.isnan(gradient).any(), (target, q)


def test_a_table_serves_both_ways_and_refuses_a_set_it_does_not_list():
    sets = oracle.all_sets(2)
    target = TableTarget(sets[:3], np.random.default_rng(0).random((3, 3)))
    space = Catalog(sets[:3])
    logits, y_true = torch.randn(3, 2), torch.tensor(sets[:3])
    values = [
        ExpectedLoss(target, space, backend=backend, reduction="none")(logits, y_true)
        for backend in BACKENDS
    ]
    torch.testing.assert_close(*values)
    for backend in BACKENDS:
        with pytest.raises(ValueError, match=r"\[0\] = \[1, 1\] is not among"):
            ExpectedLoss(target, space, backend=backend)(logits[:1], torch.ones(1, 2))


@pytest.mark.parametrize("target", ["f1", "jaccard", "f0.7", "hamming"])
@pytest.mark.parametrize("n_labels", [60, 400])
def test_many_labels_in_float32_are_the_core_in_float64(n_labels, target):
    """The rules for 1/D chosen for each row: values to 1e-6, gradients to 1e-6 of the largest."""
    generator = torch.Generator().manual_seed(2)
    logits = torch.randn(40, n_labels, generator=generator) - torch.linspace(0, 4, 40)[:, None]
    y_true = torch.rand(40, n_labels, generator=generator) < torch.linspace(0, 0.6, 40)[:, None]
    answers = []
    for dtype, backend in ((torch.float32, "torch"), (torch.float64, "compiled")):
        x = logits.to(dtype).requires_grad_()
        values = ExpectedLoss(target, reduction="none", backend=backend)(x, y_true)
        answers.append((values.detach(), torch.autograd.grad(values.sum(), x)[0]))
    torch.testing.assert_close(answers[0][0].double(), answers[1][0], rtol=1e-6, atol=1e-6)
    largest = float(answers[1][1].abs().max())
    torch.testing.assert_close(
        answers[0][1].double(), answers[1][1], rtol=1e-5, atol=1e-6 * largest
    )
