"""Torch losses of tree distance on a taxonomy: those of NumPy, on both ways, for a network too."""

import cases
import numpy as np
import pytest
from examples import generators
from hypothesis import given, settings
from hypothesis import strategies as st

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
@settings(max_examples=20)
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
            with pytest.raises(ValueError, match="row 1 of target has 1 without 0 above it"):
                on_closed(logits, open_sets)
            assert torch.isfinite(on_closed(logits, several))
            with pytest.raises(ValueError, match="row 1 is none of the Paths"):
                on_paths(logits, several)
