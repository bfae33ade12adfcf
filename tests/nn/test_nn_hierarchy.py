"""Torch losses of tree distance on a taxonomy: those of NumPy, on both ways, for a network too."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import cases, oracle
from tests.support.examples import Example, assert_agrees, generators, score_arrays

torch = pytest.importorskip("torch")

from setwise import Taxonomy  # noqa: E402
from setwise.decoders import MinimumRisk  # noqa: E402
from setwise.nn import ExpectedLoss, SurrogateLoss  # noqa: E402
from setwise.spaces import Forest, Paths  # noqa: E402
from setwise.surrogates import CompSum  # noqa: E402
from setwise.targets import TreeDistance  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit.script:DeprecationWarning")
SPACES = {"closed": lambda taxonomy: Forest(taxonomy, closed=True), "paths": Paths}
every_space = pytest.mark.parametrize("make", SPACES.values(), ids=SPACES)


def drawn(rng, n_labels):
    parents = cases.hierarchy(n_labels, rng).arguments["parents"]
    return Taxonomy.from_parents(parents, lengths=rng.uniform(0.1, 2.0, n_labels))


@every_space
@pytest.mark.parametrize("backend", ["compiled", "torch"])
@given(rng=generators(), n_labels=st.integers(2, 40), q=st.sampled_from([0.0, 0.5, 1.0]))
def test_value_and_gradient_are_those_of_comp_sum(make, backend, rng, n_labels, q):
    """sigmoid(logit) is a label's probability where labels are free, so scores are half of them."""
    taxonomy = drawn(rng, n_labels)
    space, target = make(taxonomy), TreeDistance(taxonomy)
    logits = torch.tensor(3.0 * rng.normal(size=(5, n_labels)), requires_grad=True)
    y_true = space.most_likely(rng.normal(size=(5, n_labels)))
    loss = SurrogateLoss(
        target, space, "comp_sum", q=q, reduction="none", backend=backend
    )(logits, torch.tensor(y_true))  # fmt: skip
    loss.sum().backward()
    value, gradient = CompSum(target, space, q).value_and_gradient(
        logits.detach().numpy() / 2.0, y_true
    )
    np.testing.assert_allclose(loss.detach().numpy(), value, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(logits.grad.numpy(), gradient / 2.0, rtol=1e-7, atol=1e-10)


KINDS = {"closed": cases.hierarchy, "paths": cases.paths, "leaf paths": cases.leaf_paths}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("backend", ["compiled", "torch"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@given(data=st.data(), q=st.sampled_from([-1.0, -0.5]))
def test_sets_without_utility_weigh_nothing_at_negative_powers(kind, backend, dtype, data, q):
    """Both ways are the enumerated sum, utilities being fractions; what float32 cannot hold is
    infinite."""
    rng = data.draw(generators())
    case = KINDS[kind](data.draw(st.integers(2, 7)), rng)
    target = cases.uneven_tree_distance(rng, case)
    scores = data.draw(score_arrays(3, case.n_labels, 30.0)).astype(
        str(dtype).removeprefix("torch.")
    )
    y_true = case.oracle.sets[rng.integers(case.oracle.size, size=3)]
    value, gradient, _ = Example(case, target, scores, y_true).answers(
        partial(oracle.comp_sum, q=q, scale="unit")
    )
    logits = torch.tensor(2.0 * scores, requires_grad=True)
    loss = SurrogateLoss(
        target.target, case.space, "comp_sum", q=q, reduction="none", backend=backend
    )(logits, torch.tensor(y_true))  # fmt: skip
    loss.sum().backward()
    with np.errstate(over="ignore"):
        value, gradient = value.astype(scores.dtype), gradient.astype(scores.dtype)
    held = np.isfinite(value) & np.isfinite(gradient).all(axis=1)
    tolerance = 1e-9 if dtype == torch.float64 else 1e-5
    found, slope = loss.detach().numpy(), 2.0 * logits.grad.double().numpy()
    np.testing.assert_array_equal(np.isinf(value), np.isinf(found))
    assert_agrees(found[held], value[held], 1.0, tolerance)
    assert_agrees(slope[held], gradient[held], 1.0, tolerance)
    assert not np.isnan(slope).any()


@pytest.mark.parametrize("backend", ["compiled", "torch"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_no_rounding_of_a_utility_meets_the_weight_of_an_unlikely_path(backend, dtype):
    """Leaves as far apart as can be; then flat paths whose weights leave float32 little room."""
    logits = torch.tensor([[-27.46, 25.74, 18.02, -20.36]], dtype=dtype)
    space, target = Paths([3, 2, -1, 2], leaves_only=True), TreeDistance([3, 2, -1, 2])
    loss = SurrogateLoss(target, space, "sum_exponential", backend=backend)
    assert loss(logits, torch.tensor([[0, 1, 1, 0]])).item() == pytest.approx(-0.25, rel=1e-6)
    target = TreeDistance([-1] * 6, [0.92, 0.97, 0.46, 1.1, 0.56, 1.02])
    logits = torch.tensor([[-40.0, 40.0, -40.0, -40.0, 1.5, -40.0]], dtype=dtype)
    loss = SurrogateLoss(target, Paths([-1] * 6), "sum_exponential", backend=backend)
    # u (1 - 1 / (6 s)) of the four paths of weight e^-80 beside the second's.
    utilities = 1.0 - np.array([2.02, 1.56, 0.0, 2.12]) / 2.12
    expected = utilities.sum() * np.exp(80.0) / 36.0
    assert loss(logits, torch.tensor([[0, 0, 0, 1, 0, 0]])).item() == pytest.approx(
        expected, rel=1e-4
    )


@every_space
def test_a_network_learns_closed_sets(make):
    """From the likelihood on, the expected distance falls, and what is predicted is closed."""
    rng = np.random.default_rng(0)
    taxonomy = drawn(rng, 12)
    space, target = make(taxonomy), TreeDistance(taxonomy)
    X = torch.tensor(rng.normal(size=(200, 4)))
    y_true = space.most_likely(X.numpy() @ rng.normal(size=(4, 12)))
    layer = torch.nn.Linear(4, 12, dtype=torch.float64)
    torch.nn.init.zeros_(layer.weight)
    loss, expected = SurrogateLoss(target, space, "likelihood"), ExpectedLoss(target, space)
    before = expected(layer(X), torch.tensor(y_true)).item()
    optimizer = torch.optim.Adam(layer.parameters(), 0.1)
    for _ in range(60):
        optimizer.zero_grad()
        loss(layer(X), torch.tensor(y_true)).backward()
        optimizer.step()
    scores = layer(X).detach().numpy() / 2.0
    y_pred = MinimumRisk(target).decode_scores(scores, space)
    assert taxonomy.is_closed(y_pred).all()
    assert expected(layer(X), torch.tensor(y_true)).item() < before / 2.0
    assert target.on(space).loss(y_pred, y_true).mean() < before / 3.0


def test_torch_losses_refuse_what_is_not_closed():
    life = Taxonomy.from_paths(["animals", "animals/birds", "animals/mammals", "plants"])
    logits = torch.zeros((2, 4))
    open_sets = torch.tensor([[1, 1, 0, 0], [0, 1, 0, 0]])
    several = torch.tensor([[1, 1, 0, 0], [1, 1, 1, 0]])
    for surrogate in ("likelihood", "logistic", "expected_loss"):
        for backend in ("auto", "torch"):
            on_closed = SurrogateLoss(
                TreeDistance(life), Forest(life, closed=True), surrogate, backend=backend
            )
            on_paths = SurrogateLoss(TreeDistance(life), Paths(life), surrogate, backend=backend)
            with pytest.raises(ValueError, match="row 1 of target has 'animals/birds' without"):
                on_closed(logits, open_sets)
            assert torch.isfinite(on_closed(logits, several))
            with pytest.raises(ValueError, match="row 1 is none of the Paths"):
                on_paths(logits, several)


def test_torch_losses_ask_for_every_edge_of_a_hierarchy():
    several = Taxonomy.from_edges([["a", "b"], ["a", "c"], ["b", "d"], ["c", "d"]])
    with pytest.warns(UserWarning, match="left out"):
        target = TreeDistance(several)
    space = Forest(target.parents, closed=True)
    # d without c, which the spanning tree does not ask for.
    without = torch.tensor(several.close([["d"]])).clone()
    without[0, several.names.tolist().index("c")] = 0
    for surrogate in ("likelihood", "logistic", "expected_loss"):
        with pytest.raises(ValueError, match="has 'd' without 'c' above it"):
            SurrogateLoss(target, space, surrogate)(torch.zeros((1, 4)), without)


def test_other_targets_take_other_truths():
    tree, row = [-1, 0, 0], torch.tensor([[0, 1, 0], [0, 0, 0]])
    for space in (Forest(tree, closed=True), Paths(tree)):
        for target in ("f1", "hamming"):
            loss = SurrogateLoss(target, space, "logistic")(torch.zeros((2, 3)), row)
            value, _ = CompSum(target, space, 0.0).value_and_gradient(np.zeros((2, 3)), row.numpy())
            assert loss.item() == pytest.approx(value.mean(), rel=1e-5)


@pytest.mark.parametrize("backend", ["compiled", "torch"])
def test_a_path_to_an_inner_node_is_a_truth_of_paths_to_leaves(backend):
    tree, inner = [-1, 0, 0, 1], torch.tensor([[1, 1, 0, 0]])
    space = Paths(tree, leaves_only=True)
    loss = SurrogateLoss(TreeDistance(tree), space, "logistic", backend=backend)
    expected, _ = CompSum(TreeDistance(tree), space).value_and_gradient(
        np.zeros((1, 4)), inner.numpy()
    )
    assert loss(torch.zeros((1, 4)), inner).item() == pytest.approx(expected[0], rel=1e-5)
    likelihood = SurrogateLoss(TreeDistance(tree), space, "likelihood", backend=backend)
    with pytest.raises(ValueError, match="row 0 is none of the Paths"):
        likelihood(torch.zeros((1, 4)), inner)
