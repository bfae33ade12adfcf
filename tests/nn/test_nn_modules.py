"""Laws of the torch modules: conventions, masks, learnt spaces, devices, schedules, errors."""

import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest

from tests.support.turns import in_turn

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from setwise.nn import (  # noqa: E402
    ExpectedLoss,
    LearnableSpace,
    QSchedule,
    SurrogateLoss,
    functional,
)
from setwise.spaces import Catalog, Cube, Forest, Paths, Sized, Slice  # noqa: E402
from setwise.spaces.symmetric import count_rows  # noqa: E402
from setwise.surrogates import CompSum  # noqa: E402
from setwise.targets import (  # noqa: E402
    CountTarget,
    Hamming,
    LinearFractional,
    TableTarget,
    TreeDistance,
)

torch.set_num_threads(1)
pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit.script:DeprecationWarning")

BACKENDS = ("compiled", "torch")
LEARNABLE = {
    "sized": Sized(5, [0.1, 0.4, -np.inf, -0.2]),
    "chain": Forest.chain(5),
    "hierarchy": Forest([-1, 0, 0, 1, 1], closed=True),
    "catalog": Catalog(np.eye(5, dtype=int), [0.3, -0.1, 0.0, -np.inf, 0.2]),
    "joint catalog": Catalog(np.tri(5, dtype=int), joint=True),
}


@pytest.fixture
def batch():
    """Logits and true label sets of 6 rows and 5 labels, the empty and the full set among them."""
    generator = torch.Generator().manual_seed(3)
    logits = torch.randn(6, 5, generator=generator, dtype=torch.float64)
    y_true = torch.rand(6, 5, generator=generator) < 0.4
    y_true[0], y_true[1] = False, True
    return logits, y_true


def gradient_of(loss, logits, *labels, **options):
    logits = logits.detach().clone().requires_grad_()
    value = loss(logits, *labels, **options)
    return value.detach(), torch.autograd.grad(value.sum(), logits)[0]


# ----------------------------------------------------------------------------- torch's conventions


@pytest.mark.parametrize("backend", BACKENDS)
def test_reductions_are_of_the_rows(batch, backend):
    rows = ExpectedLoss("f1", reduction="none", backend=backend)(*batch)
    assert rows.shape == (6,)
    torch.testing.assert_close(ExpectedLoss("f1", reduction="sum")(*batch), rows.sum())
    torch.testing.assert_close(ExpectedLoss("f1")(*batch), rows.mean())


@in_turn("backend", BACKENDS)
@in_turn(
    "dtype",
    [
        torch.bool,
        torch.uint8,
        torch.int32,
        torch.int64,
        torch.float16,
        torch.bfloat16,
        torch.float32,
        torch.float64,
    ],
)
def test_labels_of_any_type_give_the_same_loss(batch, dtype, backend):
    logits, y_true = batch
    loss = ExpectedLoss("f1", backend=backend)
    torch.testing.assert_close(loss(logits, y_true.to(dtype)), loss(logits, y_true))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_computed_in_float32_also_under_autocast(batch, dtype, backend):
    """The loss of the rounded logits, not a rounded loss; the gradient goes back in their type."""
    logits, y_true = batch[0].to(dtype), batch[1]
    for space in (Cube(5), Catalog(np.tri(5, dtype=int))):
        loss = ExpectedLoss("f1", space, backend=backend)
        value, gradient = gradient_of(loss, logits, y_true)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            automatic, _ = gradient_of(loss, logits, y_true)
        assert value.dtype == automatic.dtype == torch.float32
        assert gradient.dtype == dtype
        torch.testing.assert_close(automatic, value, rtol=0, atol=0)
        torch.testing.assert_close(loss(logits.float(), y_true), value, rtol=0, atol=0)


@pytest.mark.parametrize("backend", BACKENDS)
def test_rows_and_columns_in_any_memory_order_give_the_same_loss(batch, backend):
    logits, y_true = batch
    loss = ExpectedLoss("jaccard", backend=backend)
    turned = logits.T.contiguous().T, y_true.T.contiguous().T
    torch.testing.assert_close(loss(*turned), loss(logits, y_true))


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_empty_batch_has_no_loss(backend):
    loss = ExpectedLoss("f1", Cube(3), backend=backend)
    value, gradient = gradient_of(loss, torch.zeros(0, 3), torch.zeros(0, 3))
    assert value == 0.0
    assert gradient.shape == (0, 3)


@pytest.mark.parametrize("backend", BACKENDS)
def test_sample_weight_multiplies_the_loss_of_its_row(batch, backend):
    weight = torch.tensor([0.0, 1.0, 2.0, 0.5, 3.0, 1.0])
    rows = ExpectedLoss("f1", reduction="none", backend=backend)(*batch)
    found = ExpectedLoss("f1", backend=backend)(*batch, sample_weight=weight)
    torch.testing.assert_close(found, (rows * weight).mean())


@pytest.mark.parametrize("backend", BACKENDS)
def test_weight_of_labels_is_weighted_hamming(batch, backend):
    weight = torch.tensor([1.0, 2.0, 0.0, 3.0, 0.5])
    found = ExpectedLoss("hamming", weight=weight, backend=backend)(*batch)
    torch.testing.assert_close(found, ExpectedLoss(Hamming(weight.numpy()))(*batch))


@pytest.mark.parametrize("surrogate", ["comp_sum", "expected_loss", "likelihood", "constrained"])
def test_the_functions_are_the_modules(batch, surrogate):
    settings = {"q": 0.3} if surrogate == "comp_sum" else {}
    module = SurrogateLoss("f1", Slice(5, 2), surrogate, **settings)
    function = functional.surrogate_loss(*batch, "f1", Slice(5, 2), surrogate, **settings)
    torch.testing.assert_close(module(*batch), function, rtol=0, atol=0)
    torch.testing.assert_close(
        ExpectedLoss("f1")(*batch), functional.expected_loss(*batch, "f1"), rtol=0, atol=0
    )


def test_a_module_can_be_copied_pickled_and_shown(batch):
    loss = SurrogateLoss("f1", LearnableSpace(LEARNABLE["sized"]), "logistic")
    value = loss(*batch)
    for twin in (copy.deepcopy(loss), pickle.loads(pickle.dumps(loss))):
        torch.testing.assert_close(twin(*batch), value)
        assert repr(twin) == repr(loss)
    assert "f1, logistic, q=0, reduction=mean" in repr(loss)
    assert "exponential constrained" in repr(SurrogateLoss("f1", Cube(2), "constrained"))


def test_the_caller_s_tensors_are_not_changed(batch):
    logits, y_true = batch[0].clone(), batch[1].clone()
    ExpectedLoss("f1")(logits.requires_grad_(), y_true).backward()
    torch.testing.assert_close(logits.detach(), batch[0], rtol=0, atol=0)
    torch.testing.assert_close(y_true, batch[1], rtol=0, atol=0)


def test_a_second_derivative_where_parameters_are_used_by_nothing(batch):
    """The potentials of a forest of roots belong to no edge."""
    logits = batch[0].clone().requires_grad_()
    space = LearnableSpace(Forest([-1] * 5))
    value = SurrogateLoss("f1", space, "logistic")(logits, batch[1])
    first = torch.autograd.grad(value, [logits, space.values], create_graph=True)
    second = torch.autograd.grad(first[0].square().sum(), logits)[0]
    assert (first[1] == 0.0).all()
    assert second.abs().max() > 0.0


def test_backward_twice_gives_the_gradient_twice(batch):
    logits = batch[0].clone().requires_grad_()
    loss = ExpectedLoss("f1")(logits, batch[1])
    loss.backward(retain_graph=True)
    once = logits.grad.clone()
    loss.backward()
    torch.testing.assert_close(logits.grad, 2.0 * once)


@in_turn("dtype", [torch.float32, torch.float64])
@in_turn("q", [0.0, 0.005, 0.05, 0.5, 1.0, -1.0])
@in_turn("target", ["f1", "hamming", "jaccard", CountTarget(lambda tp, fp, fn, tn: fp / (1 + fp))])
def test_the_gradient_of_a_mean_is_the_mean_of_gradients_whatever_is_made_of_it(target, q, dtype):
    """Also of labels that do not fill the lanes of a kernel, and times what an optimiser scales by.

    The reference: losses of rows, summed one by one by torch.
    """
    generator = torch.Generator().manual_seed(5)
    logits = torch.randn(7, 11, generator=generator, dtype=torch.float64).to(dtype)
    y_true = torch.rand(7, 11, generator=generator) < 0.4
    mean, rows = (
        SurrogateLoss(target, surrogate="comp_sum", q=q, reduction=reduction)
        for reduction in ("mean", "none")
    )
    value, wanted = gradient_of(lambda x, y: (rows(x, y) * torch.ones(7)).sum() / 7, logits, y_true)
    for factor in (1.0, 1024.0, 1.0 + 2.0**-12):
        found, gradient = gradient_of(lambda x, y, f=factor: f * mean(x, y), logits, y_true)
        torch.testing.assert_close(found, factor * value)
        torch.testing.assert_close(gradient, factor * wanted)


@in_turn("place", [0, 7, 8, 10])
@in_turn("entry", [np.nan, np.inf, -np.inf])
@in_turn("q", [0.0, 0.5, 1.0])
@in_turn("target", ["f1", "hamming"])
def test_logits_that_are_not_finite_are_named_wherever_they_stand(target, q, entry, place):
    logits = torch.full((3, 11), torch.finfo(torch.float32).max)
    loss = SurrogateLoss(target, surrogate="comp_sum", q=q)
    assert not loss(logits, torch.ones(3, 11)).isnan()
    logits[1, place] = entry
    with pytest.raises(ValueError, match=rf"input must be finite, but input\[1, {place}\]"):
        loss(logits, torch.ones(3, 11))


# ------------------------------------------------------------------------------------------- masks


def squared_share(tp, fp, fn, tn):
    return ((fp + 2.0 * fn) / (2.0 * (tp + fp + fn + tn))) ** 2


MASKED_TARGETS = {
    "f1": "f1",
    "jaccard": "jaccard",
    "subset": "subset",
    "hamming": "hamming",
    "true negatives below": LinearFractional([0, 0, 1, 1, 0], [0, 3, 1, 1, 2]),
    "specificity": LinearFractional([0, 0, 1, 0, 0], [0, 0, 1, 0, 1]),
    "counts": CountTarget(squared_share),
}
SURROGATES = [
    *(("comp_sum", {"q": q}) for q in (-1.0, 0.0, 0.5, 1.0)),
    ("expected_loss", {}),
    ("likelihood", {}),
    ("constrained", {}),
    ("constrained", {"margin": "squared_hinge"}),
    ("binary_relevance", {}),
]


@in_turn("backend", BACKENDS)
@in_turn(("surrogate", "settings"), SURROGATES)
@in_turn("name", MASKED_TARGETS)
def test_a_masked_row_is_the_row_of_its_known_labels(batch, name, surrogate, settings, backend):
    """The target over the known labels only, their number included; nothing known is no loss."""
    logits, y_true = batch
    mask = torch.rand(6, 5, generator=torch.Generator().manual_seed(1)) < 0.6
    mask[0], mask[1] = False, True
    target = MASKED_TARGETS[name]
    loss = SurrogateLoss(target, None, surrogate, reduction="none", backend=backend, **settings)
    values, gradient = gradient_of(loss, logits, y_true, mask=mask)
    assert values[0] == 0.0
    assert (gradient[~mask] == 0.0).all()
    for row in range(1, 6):
        known = mask[row]
        value, part = gradient_of(loss, logits[row : row + 1, known], y_true[row : row + 1, known])
        torch.testing.assert_close(values[row : row + 1], value)
        torch.testing.assert_close(gradient[row, known], part[0])


def test_what_stands_where_labels_are_unknown_does_not_matter(batch):
    logits, y_true = batch
    mask = torch.rand(6, 5, generator=torch.Generator().manual_seed(2)) < 0.6
    other = torch.where(mask, logits, 7.0), y_true ^ ~mask
    for backend in BACKENDS:
        loss = ExpectedLoss("f2", backend=backend)
        torch.testing.assert_close(loss(*other, mask=mask), loss(logits, y_true, mask=mask))


@in_turn("backend", BACKENDS)
@in_turn(("surrogate", "settings"), SURROGATES)
def test_unknown_labels_may_be_marked_by_anything(batch, surrogate, settings, backend):
    """-1, NaN and infinities where nothing is known: neither refused nor seen in the gradient."""
    logits, y_true = batch
    mask = torch.rand(6, 5, generator=torch.Generator().manual_seed(2)) < 0.6
    loss = SurrogateLoss("f1", None, surrogate, backend=backend, **settings)
    wanted = gradient_of(loss, logits, y_true, mask=mask)
    for no_logit, no_label in ((torch.nan, -1.0), (torch.inf, torch.nan)):
        marked = torch.where(mask, logits, no_logit), torch.where(mask, y_true.double(), no_label)
        torch.testing.assert_close(gradient_of(loss, *marked, mask=mask), wanted)


def test_weights_of_known_labels_are_those_of_a_smaller_hamming_loss(batch):
    logits, y_true = batch
    weight, mask = torch.tensor([1.0, 2.0, 0.3, 3.0, 0.5]), torch.ones(6, 5, dtype=torch.bool)
    mask[:, 2], mask[3, 0] = False, False
    values = ExpectedLoss("hamming", weight=weight, reduction="none")(logits, y_true, mask=mask)
    for row in range(6):
        known = mask[row]
        one = ExpectedLoss(Hamming(weight[known].numpy()))
        torch.testing.assert_close(
            values[row], one(logits[row : row + 1, known], y_true[row : row + 1, known])
        )


def test_the_mean_is_over_rows_with_a_known_label(batch):
    mask = torch.ones(6, 5, dtype=torch.bool)
    mask[:4] = False
    rows = ExpectedLoss("f1", reduction="none")(*batch)
    torch.testing.assert_close(ExpectedLoss("f1")(*batch, mask=mask), rows[4:].mean())


@in_turn("backend", BACKENDS)
@in_turn("target", ["f1", "hamming", "subset"])
@in_turn("q", [-1.0, 0.0, 0.003, 0.5, 1.0])
def test_a_batch_without_known_labels_has_no_loss(batch, target, q, backend):
    loss = SurrogateLoss(target, None, "comp_sum", q=q, backend=backend)
    mask = torch.zeros(6, 5, dtype=torch.bool)
    value, gradient = gradient_of(loss, 1e4 * batch[0].sign(), batch[1], mask=mask)
    assert value == 0.0
    assert (gradient == 0.0).all()


@pytest.mark.parametrize("space", [Slice(5, 2), *LEARNABLE.values(), Paths([-1, 0, 0, 1, 1])])
def test_a_mask_is_refused_on_other_spaces(batch, space):
    with pytest.raises(ValueError, match="a mask needs all label sets"):
        ExpectedLoss("f1", space)(*batch, mask=torch.ones(6, 5, dtype=torch.bool))


@pytest.mark.parametrize(
    "target",
    [TreeDistance([-1, 0, 0, 1, 1]), TableTarget(np.tri(5, dtype=int), np.zeros((5, 5)))],
)
def test_a_mask_is_refused_for_targets_that_need_every_label(batch, target):
    space = Cube(5) if isinstance(target, TreeDistance) else Catalog(np.tri(5, dtype=int))
    with pytest.raises(ValueError, match="mask"):
        ExpectedLoss(target, space)(*batch, mask=torch.ones(6, 5, dtype=torch.bool))


# ---------------------------------------------------------------------------------- learnt spaces


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", LEARNABLE)
def test_parameters_of_the_space_get_their_exact_gradient(batch, name, backend):
    space = LEARNABLE[name]
    loss = SurrogateLoss("f1", LearnableSpace(space), "comp_sum", q=0.4, backend=backend)
    loss.double()(*batch).backward()
    core = CompSum("f1", loss.space.current(), 0.4)
    _, _, expected = core.value_and_gradients(batch[0].numpy() / 2.0, batch[1].numpy())
    finite = np.isfinite(space.parameters)
    np.testing.assert_allclose(
        loss.space.values.grad.numpy(), expected.mean(axis=0)[finite], rtol=1e-9, atol=1e-12
    )


@pytest.mark.parametrize("name", LEARNABLE)
def test_learning_the_space_lowers_the_loss_and_decodes_with_what_was_learnt(batch, name):
    logits, y_true = batch[0].float(), torch.tensor(LEARNABLE[name].enumerate()[[0, 1, 0, 1, 0, 0]])
    space = LearnableSpace(LEARNABLE[name])
    loss = SurrogateLoss("f1", space, "likelihood")
    optimizer = torch.optim.SGD(loss.parameters(), lr=0.5)
    first = loss(logits, y_true)
    for _ in range(20):
        optimizer.zero_grad()
        loss(logits, y_true).backward()
        optimizer.step()
    assert loss(logits, y_true) < first - 1e-3
    learnt = space.current()
    np.testing.assert_array_equal(
        np.isneginf(learnt.parameters), np.isneginf(LEARNABLE[name].parameters)
    )
    expected = learnt.most_likely(logits.double().numpy() / 2.0)
    np.testing.assert_array_equal(loss.most_likely(logits).numpy(), expected)
    torch.testing.assert_close(
        loss.marginals(logits).double(),
        torch.tensor(learnt.marginals(logits.double().numpy() / 2.0)),
        rtol=1e-6, atol=1e-6,
    )  # fmt: skip


def test_the_learnt_values_travel_in_the_state_dict():
    loss = SurrogateLoss("f1", LearnableSpace(LEARNABLE["sized"]), "logistic")
    with torch.no_grad():
        loss.space.values.copy_(torch.tensor([1.0, 2.0, 3.0]))
    assert list(loss.state_dict()) == ["space.values", "space.places"]
    twin = SurrogateLoss("f1", LearnableSpace(LEARNABLE["sized"]), "logistic")
    twin.load_state_dict(loss.state_dict())
    np.testing.assert_array_equal(twin.space.current().bias, [1.0, 2.0, -np.inf, 3.0])


def test_a_learnable_space_may_begin_without_memory():
    """On the meta device first, as large models do; then loaded, or reset."""
    full = LearnableSpace(LEARNABLE["sized"])
    for fill in (lambda m: m.load_state_dict(full.state_dict()), lambda m: m.reset_parameters()):
        empty = LearnableSpace(LEARNABLE["sized"]).to("meta").to_empty(device="cpu")
        empty.places.fill_(10**6)
        fill(empty)
        torch.testing.assert_close(empty(), full())


def test_on_the_cube_the_likelihood_is_cross_entropy(batch):
    loss = SurrogateLoss("f1", surrogate="likelihood")
    wanted = nn.BCEWithLogitsLoss(reduction="none")(batch[0], batch[1].double()).sum(1).mean()
    torch.testing.assert_close(loss(*batch), wanted)


@pytest.mark.parametrize("make", [float, torch.tensor, lambda w: torch.tensor([[w] * 5])])
def test_pos_weight_is_as_in_cross_entropy(batch, make):
    pos_weight = make(2.5)
    loss = SurrogateLoss("hamming", surrogate="binary_relevance", pos_weight=pos_weight)
    each = nn.BCEWithLogitsLoss(reduction="none", pos_weight=torch.as_tensor(pos_weight))
    torch.testing.assert_close(loss(*batch), each(batch[0], batch[1].double()).sum(1).mean())


def test_on_the_cube_the_most_likely_set_has_the_labels_of_nonnegative_logits(batch):
    loss = ExpectedLoss("f1")
    torch.testing.assert_close(loss.most_likely(batch[0]), (batch[0] >= 0).to(torch.uint8))
    torch.testing.assert_close(loss.marginals(batch[0]), torch.sigmoid(batch[0]))


def test_true_sets_in_any_order_of_memory_are_taken_by_one_kernel(batch):
    """To compile another takes longer than most trainings of an example."""
    logits, y_true = batch[0], batch[1].bool()
    loss = SurrogateLoss("f1", Sized(5, [0.1, 0.4, 0.0, -0.2]), "logistic")
    expected, kinds = loss(logits, y_true), len(count_rows.signatures)
    assert kinds
    for other in (y_true.T.contiguous().T, y_true.repeat_interleave(2, 0)[::2]):
        assert not other.is_contiguous()
        torch.testing.assert_close(loss(logits, other), expected, rtol=0, atol=0)
    assert len(count_rows.signatures) == kinds


# ------------------------------------------------------------------ devices, compilers, transforms


@pytest.mark.parametrize(
    ("name", "surrogate", "settings"),
    [
        ("cube", "comp_sum", {"q": 0.0}),
        ("sized", "expected_loss", {}),
        ("chain", "likelihood", {}),
        ("joint catalog", "comp_sum", {"q": 0.5}),
    ],
)
def test_torch_compile_sees_one_graph(batch, name, surrogate, settings):
    space = Cube(5) if name == "cube" else LearnableSpace(LEARNABLE[name])
    loss = SurrogateLoss("f1", space, surrogate, backend="torch", **settings)
    torch.compiler.reset()
    compiled = torch.compile(loss, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(gradient_of(compiled, *batch), gradient_of(loss, *batch))


def test_torch_compile_needs_no_preparation(batch):
    """Without a space, kernels included: the tables are made on the way, and masks are compiled."""
    loss, mask = ExpectedLoss("f1"), batch[0] < 0.7
    torch.compiler.reset()
    compiled = torch.compile(loss, backend="eager")
    torch.testing.assert_close(compiled(*batch), loss(*batch))
    torch.testing.assert_close(compiled(*batch, mask=mask), loss(*batch, mask=mask))


def test_torch_func_differentiates_rows_one_by_one(batch):
    loss = ExpectedLoss("f1", Cube(5))
    per_row = torch.func.vmap(torch.func.grad(lambda x, y: loss(x[None], y[None])))(*batch)
    _, gradient = gradient_of(ExpectedLoss("f1", reduction="sum"), *batch)
    torch.testing.assert_close(per_row, gradient)


# --------------------------------------------------------------------------------------- schedules


def test_a_schedule_goes_from_start_to_end_and_stays():
    for kind in ("linear", "cosine"):
        schedule = QSchedule(10, start=-0.5, end=0.7, kind=kind)
        values = [schedule(step) for step in range(14)]
        assert values[0] == -0.5
        assert values[10:] == [0.7] * 4
        assert values == sorted(values)
        assert schedule(torch.tensor(3)) == values[3]
        assert values[3] < schedule(3.5) < values[4]
        assert QSchedule(10, kind=kind)(5) == pytest.approx(0.5)


def test_the_schedule_changes_the_loss_step_by_step(batch):
    loss, schedule = SurrogateLoss("f1", None, "comp_sum", q=0.0), QSchedule(4)
    for step in range(6):
        loss.q = schedule(step)
        expected = CompSum("f1", Cube(5), schedule(step))
        value, _ = expected.value_and_gradient(batch[0].numpy() / 2.0, batch[1].numpy())
        assert loss(*batch).item() == pytest.approx(value.mean(), rel=1e-12)


# ------------------------------------------------------------------------------------------ errors


@in_turn(
    ("make", "message"),
    [
        (lambda: SurrogateLoss("f1", surrogate="hinge"), "surrogate must be one of"),
        (lambda: SurrogateLoss("f1", surrogate="comp_sum"), "q must be a number"),
        (lambda: SurrogateLoss("f1", surrogate="comp_sum", q=2.0), "q must be a number in"),
        (lambda: SurrogateLoss("f1", surrogate="logistic", q=0.5), "'logistic' has q = 0"),
        (lambda: SurrogateLoss("f1", surrogate="likelihood", q=0.5), "has no q"),
        (lambda: SurrogateLoss("f1", surrogate="generalized_cross_entropy", q=1), "0 < q < 1"),
        (lambda: SurrogateLoss("f1", margin="hinge"), "has no margin"),
        (lambda: SurrogateLoss("f1", surrogate="constrained", margin="log"), "has the margins"),
        (lambda: ExpectedLoss("f1", reduction="max"), "reduction must be one of"),
        (lambda: ExpectedLoss("f1", backend="cuda"), "backend must be one of"),
        (lambda: ExpectedLoss("f1", "cube"), "a space is an object"),
        (lambda: ExpectedLoss("f1", weight=[1.0, 2.0]), "sample_weight"),
        (lambda: ExpectedLoss("f1", pos_weight=[1.0]), "belongs to surrogate='binary_relevance'"),
        (lambda: ExpectedLoss("hamming", weight=[-1.0, 2.0]), "weight must be a finite number"),
        (lambda: ExpectedLoss("precision@2", Cube(4)), "size 2 only"),
        (lambda: SurrogateLoss("f1", Slice(3, 1), "binary_relevance"), "label by label"),
        (lambda: LearnableSpace(Cube(3)), "nothing to learn"),
        (lambda: LearnableSpace(Slice(3, 1)), "nothing to learn"),
        (lambda: QSchedule(0), "steps must be a whole number"),
        (lambda: QSchedule(3, kind="step"), "kind must be"),
    ],
)
def test_settings_that_make_no_sense_are_refused_at_once(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@in_turn(
    ("change", "message"),
    [
        ({"input": torch.zeros(6, 4)}, r"input must have shape \(6, 5\)"),
        ({"input": torch.zeros(6, 5, dtype=torch.long)}, "dense tensor of floating-point logits"),
        ({"input": torch.full((6, 5), torch.nan)}, r"input\[0, 0\] is nan \(30 such"),
        ({"target": torch.zeros(5, 5)}, r"target must have shape \(6, 5\)"),
        ({"target": torch.full((6, 5), 0.5)}, r"target\[0, 0\] is 0.5"),
        ({"target": torch.full((6, 5), 2)}, r"target\[0, 0\] is 2"),
        (
            {"target": np.zeros((6, 5))},
            "target must be a dense tensor of 0 and 1, but it is ndarray",
        ),
        ({"target": torch.zeros(6, 5).to_sparse()}, "dense tensor of 0 and 1"),
        ({"target": torch.zeros(6, 5, device="meta")}, "on the device of the input, cpu"),
        ({"sample_weight": torch.full((6,), torch.nan)}, r"sample_weight\[0\] is nan"),
        ({"sample_weight": torch.full((6,), -1.0)}, r"sample_weight\[0\] is -1"),
        ({"mask": torch.ones(6, 5)}, "mask must be a dense tensor of bools"),
        ({"mask": torch.ones(5, dtype=torch.bool)}, r"mask must have shape \(6, 5\)"),
        ({"sample_weight": torch.ones(5)}, r"sample_weight must have shape \(6,\)"),
    ],
)
def test_what_comes_in_is_checked_where_that_is_cheap(batch, change, message):
    arguments = {"input": batch[0], "target": batch[1]} | change
    with pytest.raises(ValueError, match=message):
        ExpectedLoss("f1", Cube(5))(**arguments)


def test_q_of_a_loss_without_q_cannot_be_set():
    loss = ExpectedLoss("f1")
    with pytest.raises(ValueError, match="has no q"):
        loss.q = 0.5


def test_what_a_loss_is_made_of_stays_or_is_checked(batch):
    loss = SurrogateLoss("f1", surrogate="logistic")
    with pytest.raises(ValueError, match="reduction must be one of"):
        loss.reduction = "avg"
    with pytest.raises(ValueError, match="'logistic' has q = 0"):
        loss.q = 1.0
    with pytest.raises(AttributeError, match="make another loss"):
        loss.space = Cube(5)
    loss.reduction = "none"
    assert loss(*batch).shape == (6,)
    assert isinstance(ExpectedLoss("f1"), ExpectedLoss)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([0.0, 0.0, -np.inf], r"of the space are, but parameters\[2\] is -inf"),
        ([0.0, np.nan, 0.0], r"parameters\[1\] is nan"),
        ([0.0, 0.0], r"shape \(3,\)"),
    ],
)
def test_parameters_must_fit_the_space(batch, values, message, backend):
    with pytest.raises(ValueError, match=message):
        functional.expected_loss(
            *batch, "f1", Sized(5, [0.0, 0.0, 0.0]),
            parameters=torch.tensor(values), backend=backend,
        )  # fmt: skip


def test_functions_take_a_learnable_space(batch):
    space = LearnableSpace(LEARNABLE["sized"])
    value = functional.expected_loss(*batch, "f1", space)
    torch.testing.assert_close(value, ExpectedLoss("f1", space)(*batch))
    with pytest.raises(ValueError, match="one of the two"):
        functional.expected_loss(*batch, "f1", space, parameters=space())


def test_kernels_are_refused_where_they_cannot_serve():
    loss = ExpectedLoss("f1", backend="compiled")
    with pytest.raises(ValueError, match="runs on the CPU"):
        loss(torch.empty(2, 3, device="meta"), torch.empty(2, 3, device="meta"))


def test_a_quotient_that_leaves_the_unit_interval_for_fewer_labels_is_refused(batch):
    """tp / (1.5 l - 2.5) has a negative denominator for a single label."""
    shrinking = LinearFractional([0, 1, 0, 0, 0], [-2.5, 1.5, 1.5, 1.5, 1.5])
    mask = torch.ones(6, 5, dtype=torch.bool)
    mask[0, 1:] = False
    loss = ExpectedLoss(shrinking)
    assert torch.isfinite(loss(*batch))
    with pytest.raises(ValueError, match="negative denominator"):
        loss(*batch, mask=mask)


def test_without_torch_the_error_says_how_to_install_it():
    code = (
        "import sys; sys.modules['torch'] = None; import setwise; setwise.get_target('f1')\n"
        "try:\n    import setwise.nn\n"
        "except ModuleNotFoundError as error:\n    print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'setwise[torch]'" in done.stdout


def test_one_line_replaces_bce_in_a_training_loop():
    """From zero, gradient steps on the expected F1 loss learn a label set that depends on x."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(200, 3, generator=generator)
    y_true = (x @ torch.randn(3, 4, generator=generator)) > 0.5
    net, loss = nn.Linear(3, 4), ExpectedLoss("f1")
    nn.init.zeros_(net.weight)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.1)
    for _ in range(60):
        optimizer.zero_grad()
        loss(net(x), y_true).backward()
        optimizer.step()
    assert loss(net(x), y_true) < 0.2


@pytest.mark.parametrize("reduction", ["none", "mean"])
def test_what_comes_from_above_multiplies_each_row_also_where_it_is_no_number(reduction):
    logits = torch.randn(5, 4, generator=torch.Generator().manual_seed(0), requires_grad=True)
    truth, above = torch.eye(5, 4), torch.tensor([3.0, torch.nan, 0.0, torch.inf, 1.0])
    loss = SurrogateLoss("f1", reduction="none")
    (plain,) = torch.autograd.grad(loss(logits, truth).sum(), logits)
    if reduction == "mean":
        above, loss = torch.full((5,), torch.nan), SurrogateLoss("f1")
        (found,) = torch.autograd.grad(loss(logits, truth) * torch.nan, logits)
    else:
        (found,) = torch.autograd.grad((loss(logits, truth) * above).sum(), logits)
    torch.testing.assert_close(found, above[:, None] * plain, equal_nan=True)
