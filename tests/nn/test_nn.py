"""Laws of the torch losses: values and exact gradients are those of the NumPy core, both ways."""

import numpy as np
import pytest

from tests.support import cases, oracle
from tests.support.nn_cases import BACKENDS, REPRESENTATIVES, TINY, drawn, function_of
from tests.support.profile import THOROUGH
from tests.support.turns import in_turn, told

torch = pytest.importorskip("torch")

from setwise.nn import ExpectedLoss, SurrogateLoss  # noqa: E402
from setwise.spaces import Catalog, Forest  # noqa: E402
from setwise.surrogates import BinaryRelevance, CompSum, Constrained, Logistic  # noqa: E402
from setwise.targets import TableTarget  # noqa: E402

torch.set_num_threads(1)
# Torch's own forward derivatives are scripted, and warn about that.
pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit.script:DeprecationWarning")

CORE = 1e-9  # how far torch operations in float64 may be from the core; the promise is 1e-6
MARGINS = ("exponential", "squared_hinge", "hinge", "rho")
POWERS = (-1.0, 0.5, 0.0, TINY)


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


@in_turn("group", cases.by_space(cases.PAIRS), ids=cases.group_id)
def test_torch_operations_are_the_core(group):
    """Every target on every space: values and both gradients at every kind of q.

    One target of each form meets on every space the expected loss (q = 1), two other q and a
    margin, at random; each of the others, whose form has been met, one of these, on every third
    space.
    """
    space_name, target_names = group
    for name in target_names:
        pair = (name, space_name)
        if THOROUGH or pair in REPRESENTATIVES or cases.PAIRS.index(pair) % 3 == 0:
            with told(target=name):
                assert_operations_are_the_core(pair)


def assert_operations_are_the_core(pair):
    seed = cases.PAIRS.index(pair)
    powers, margins = (np.random.default_rng(seed).permutation(all) for all in (POWERS, MARGINS))
    is_expected = True
    if not THOROUGH:
        powers, margins = powers[:2], margins[:1]
    if pair not in REPRESENTATIVES:
        kind = ("power", "power", "expected", "margin")[seed % 4]
        powers, margins = powers[: kind == "power"], margins[: kind == "margin"]
        is_expected = kind == "expected"
    target, space, scores, y_true = drawn(pair, seed)

    def answers(surrogate, **settings):
        loss = function_of(target, space, "torch", surrogate, **settings)
        return torch_answers(loss, space.parameters, scores, y_true)

    for q in powers:
        core = CompSum(target, space, q).value_and_gradients(scores, y_true)
        assert_same(answers("comp_sum", q=q), core)
    if is_expected:
        moment = space.expectation(target).moment(scores, y_true, 1.0, "loss")
        assert_same(answers("expected_loss"), (moment.value, moment.scores, moment.parameters))
    for margin in margins.tolist():
        core = Constrained(target, space, margin, 0.7).value_and_gradients(scores, y_true)
        assert_same(answers("constrained", margin=margin, rho=0.7), core)


@in_turn("space_name", cases.SPACES)
@in_turn("backend", BACKENDS)
def test_the_likelihood_is_the_paper_logistic_loss_of_subset(space_name, backend):
    _, space, scores, y_true = drawn(("subset", space_name), 3)
    found = torch_answers(
        function_of("f1", space, backend, "likelihood"), space.parameters, scores, y_true
    )
    core = Logistic("subset", space, "paper")
    assert_same(found, core.value_and_gradients(scores, y_true))


@in_turn("backend", BACKENDS)
@in_turn("space_name", cases.SPACES)
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


@pytest.mark.parametrize("target", ["f1", "jaccard", "specificity", "hamming"])
@pytest.mark.parametrize("q", [0.5, 1.0])
def test_quotients_on_a_large_forest_are_the_core(target, q):
    """More sets than are listed: a log-partition for each node of a rule."""
    rng = np.random.default_rng(0)
    parents = [-1, 0, 0, 1, 1, 2, 2, 0, -1, 8, 8]
    space = Forest(parents, rng.normal(size=(11, 2, 2)))
    scores, y_true = rng.normal(size=(3, 11)), rng.integers(0, 2, size=(3, 11), dtype=np.uint8)
    y_true[0] = 0
    target = cases.TARGETS[target](rng, cases.cube(4, rng)).target
    core = CompSum(target, space, q).value_and_gradients(scores, y_true)
    loss = function_of(target, space, "torch", "comp_sum", q=q)
    assert_same(torch_answers(loss, space.parameters, scores, y_true), core)


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
