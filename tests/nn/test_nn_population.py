"""The loss of a measure of all rows in torch: binary relevance with costs, set by an update."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from setwise.nn import ExpectedLoss, PopulationLoss  # noqa: E402
from setwise.surrogates import BinaryRelevance  # noqa: E402
from setwise.surrogates.metro import costs_at  # noqa: E402
from setwise.targets import CostSensitive, get_target  # noqa: E402


def drawn(n=12, n_labels=3, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, n_labels)), rng.integers(0, 2, (n, n_labels))


@pytest.mark.parametrize("margin", ["logistic", "exponential", "hinge", "squared_hinge"])
def test_value_and_gradient_are_those_of_binary_relevance_with_the_costs(margin):
    scores, truth = drawn()
    loss = PopulationLoss("macro_f1", 3, margin, reduction="none").double()
    loss.update(torch.tensor(scores), torch.tensor(truth))
    false_alarm, miss = loss.costs.numpy()
    own = BinaryRelevance(margin, CostSensitive(miss, false_alarm))
    value, gradient = own.value_and_gradient(scores, truth)
    logits = torch.tensor(scores, requires_grad=True)
    found = loss(logits, torch.tensor(truth))
    found.sum().backward()
    np.testing.assert_allclose(found.detach().numpy(), value, rtol=1e-10)
    np.testing.assert_allclose(logits.grad.numpy(), gradient, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("target", ["macro_f1", "micro_jaccard", "balanced_accuracy", "g_mean"])
def test_an_update_sets_the_costs_of_the_value_reached(target):
    scores, truth = drawn(seed=1)
    weights, loss = np.random.default_rng(2).random(12), PopulationLoss(target, 3).double()
    value = loss.update(*map(torch.tensor, (scores, truth, weights)))
    judge, predicted = get_target(target), scores >= 0
    assert value == pytest.approx(judge.utility(predicted, truth, weights))
    true = truth == 1
    parts = predicted & true, predicted & ~true, ~predicted & true, ~predicted & ~true
    costs = costs_at(target, np.stack([weights @ part for part in parts]))
    np.testing.assert_allclose(loss.costs, [costs.false_alarm, costs.miss], rtol=1e-12)
    again = PopulationLoss(target, 3)
    again.load_state_dict(loss.float().state_dict())
    assert torch.equal(again.costs, loss.costs)


def test_it_begins_as_cross_entropy():
    scores, truth = (torch.tensor(part) for part in drawn())
    expected = torch.nn.functional.binary_cross_entropy_with_logits(scores, truth.double())
    found = PopulationLoss("macro_f1", 3).double()(scores, truth)
    assert torch.allclose(found / 3, expected)


def test_a_training_loop_with_updates_beats_plain_cross_entropy():
    torch.manual_seed(0)
    X = torch.randn(900, 5)
    Y = (X @ torch.randn(5, 4) - 2.5 + 2 * torch.randn(900, 4) > 0).int()
    reached = {}
    for updates in (False, True):
        torch.manual_seed(1)
        model, loss = torch.nn.Linear(5, 4), PopulationLoss("macro_f1", 4)
        optimizer = torch.optim.Adam(model.parameters(), 0.1)
        for _ in range(4):
            for _ in range(30):
                optimizer.zero_grad()
                loss(model(X[:300]), Y[:300]).backward()
                optimizer.step()
            if updates:
                loss.update(model(X[300:600]), Y[300:600])
        reached[updates] = get_target("macro_f1").utility(
            (model(X[600:]) >= 0).numpy(), Y[600:].numpy()
        )
    assert reached[True] > reached[False] + 0.02


def test_what_cannot_be_is_refused():
    with pytest.raises(ValueError, match="whole population"):
        PopulationLoss("f1", 3)
    with pytest.raises(ValueError, match="margin"):
        PopulationLoss("macro_f1", 3, "rho")
    with pytest.raises(ValueError, match="shape"):
        PopulationLoss("macro_f1", 3)(torch.zeros(2, 4), torch.zeros(2, 4))
    with pytest.raises(ValueError, match=r"macro_f1 judges all rows.*setwise\.nn\.PopulationLoss"):
        ExpectedLoss("macro_f1")(torch.zeros(2, 3), torch.zeros(2, 3))
