"""Laws of what torch operations keep and carry: tables go to a device once, graphs stay small."""

import copy
import pickle
import shutil

import numpy as np
import pytest

from tests.support.profile import THOROUGH
from tests.support.turns import in_turn

torch = pytest.importorskip("torch")
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

from setwise.nn import ExpectedLoss, LearnableSpace, SurrogateLoss  # noqa: E402
from setwise.spaces import Catalog, Cube, Forest, Sized  # noqa: E402
from setwise.targets import CountTarget, Hamming  # noqa: E402

torch.set_num_threads(1)
pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit.script:DeprecationWarning")

ERRORS = CountTarget(lambda tp, fp, fn, tn: (fp + fn) / (tp + fp + fn + tn))
SPACES = {
    "cube": Cube(6),
    "sized": Sized(6, np.zeros(4)),
    "star": Forest([-1, *[0] * 5]),
    "hierarchy": Forest([-1, 0, 0, 1, 3, -1], closed=True),
    "catalog": Catalog(np.tri(6, dtype=int)),
    "joint catalog": Catalog(np.tri(6, dtype=int), joint=True),
}
SURROGATES = [
    *(("comp_sum", {"q": q}) for q in (0.0, 0.5)),
    ("expected_loss", {}),
    ("likelihood", {}),
    ("constrained", {}),
    ("constrained", {"margin": "hinge"}),
]


class Operations(TorchDispatchMode):
    """Counts operations, and notes those that bring a tensor from the CPU to another device."""

    def __init__(self):
        super().__init__()
        self.count, self.carried = 0, []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        self.count += 1
        given = [a for a in args if isinstance(a, torch.Tensor) and a.device.type == "cpu"]
        # (Torch's own derivatives carry single numbers.)
        if given and isinstance(out, torch.Tensor) and out.device.type != "cpu" and out.ndim:
            self.carried.append((str(function), tuple(out.shape)))
        return out


def operations(loss, n_labels, mask=False):
    """Those of a second call and its backward pass on the `meta` device."""
    logits = torch.empty(4, n_labels, device="meta", requires_grad=True)
    y_true = torch.empty(4, n_labels, device="meta")
    options = {"mask": torch.empty(4, n_labels, device="meta") > 0} if mask else {}
    loss(logits, y_true, **options).sum().backward()
    with Operations() as found:
        loss(logits, y_true, **options).sum().backward()
    assert logits.grad.device.type == "meta"
    return found


@in_turn("space_name", SPACES)
@in_turn(("surrogate", "settings"), SURROGATES)
def test_tables_are_carried_to_a_device_once(space_name, surrogate, settings):
    """And no tensor stays behind: on the `meta` device operations check that all are there.

    Every target meets every space and every surrogate, though not every pair of them.
    """
    space, turn = SPACES[space_name], list(SPACES).index(space_name)
    turn += SURROGATES.index((surrogate, settings))
    every = ["f1", "subset", Hamming(np.arange(1.0, 7.0)), ERRORS]
    if surrogate == "likelihood":
        every = every[:1]
    elif isinstance(space, Forest):
        every = every[:-1]
    for target in every if THOROUGH else [every[turn % len(every)]]:
        learnt = isinstance(space, Sized | Catalog)
        given = LearnableSpace(space) if learnt else space
        loss = SurrogateLoss(target, given, surrogate, **settings).to("meta")
        assert operations(loss, 6).carried == [], target
        if isinstance(space, Cube):
            assert operations(loss, 6, mask=True).carried == [], target


def test_the_operations_of_a_forest_grow_with_its_depth():
    """All labels of a level at once: linear in the levels, whatever the labels of each."""

    def count(parents):
        return operations(ExpectedLoss("hamming", Forest(parents)).to("meta"), len(parents)).count

    assert count(list(range(-1, 31))) < 2.2 * count(list(range(-1, 15)))
    assert count([-1, *[0] * 60]) == count([-1, *[0] * 30])


@pytest.mark.parametrize("parents", [[-1, 0, 1, 2, 3, 4, 5], [2, 4, -1, 1, -1, 3, 0], [-1] * 7])
def test_chains_in_any_order_are_a_forest(parents):
    """Beside the kernels, which go label by label."""
    rng = np.random.default_rng(0)
    space = Forest(parents, rng.normal(size=(7, 2, 2)))
    logits, y_true = torch.tensor(rng.normal(size=(5, 7))), torch.tensor(rng.integers(0, 2, (5, 7)))
    for surrogate in ("likelihood", "expected_loss"):
        ours, core = (
            SurrogateLoss("hamming", space, surrogate, backend=backend)(logits, y_true)
            for backend in ("torch", "compiled")
        )
        torch.testing.assert_close(ours, core, rtol=1e-12, atol=1e-12)


def test_tables_are_not_part_of_what_is_saved():
    loss = ExpectedLoss("f1", Cube(40), backend="torch")
    before = len(pickle.dumps(loss))
    loss(torch.zeros(2, 40), torch.ones(2, 40))
    loss(torch.zeros(2, 40, dtype=torch.float64), torch.ones(2, 40))
    assert loss.state_dict() == {}
    assert len(pickle.dumps(loss)) == before < 2000
    twin = copy.deepcopy(loss)
    torch.testing.assert_close(
        twin(torch.zeros(2, 40), torch.ones(2, 40)), loss(torch.zeros(2, 40), torch.ones(2, 40))
    )


def test_a_first_call_in_inference_mode_or_in_a_transform_leaves_tables_for_training():
    for target in ("f1", "hamming"):
        for first in (torch.inference_mode(), torch.no_grad()):
            loss = ExpectedLoss(target, Cube(5), backend="torch")
            with first:
                loss(torch.zeros(2, 5), torch.ones(2, 5))
            loss(torch.zeros(2, 5, requires_grad=True), torch.ones(2, 5)).backward()
        loss = ExpectedLoss(target, Cube(5), backend="torch")
        torch.func.vmap(torch.func.grad(lambda x, c=loss: c(x[None], torch.ones(1, 5))))(
            torch.zeros(2, 5)
        )
        loss(torch.zeros(2, 5, requires_grad=True), torch.ones(2, 5)).backward()


@in_turn("backend", ["auto", "torch"])
@in_turn("surrogate", ["expected_loss", "logistic", "likelihood", "constrained"])
@in_turn("dtype", [torch.bool, torch.uint8, torch.float32])
def test_labels_made_in_inference_mode_can_be_trained_on(surrogate, backend, dtype):
    with torch.inference_mode():
        y_true, mask = torch.ones(4, 3).to(dtype), torch.rand(4, 3) < 0.7
    for space, options in ((Cube(3), {"mask": mask}), (Sized(3, [0.0, 0.0]), {})):
        logits = torch.zeros(4, 3, requires_grad=True)
        SurrogateLoss("f1", space, surrogate, backend=backend)(logits, y_true, **options).backward()
        assert torch.isfinite(logits.grad).all()


def kept_numbers(loss, n_rows, n_labels, **options):
    """Numbers of float32 that the graph keeps for each logit."""
    logits = torch.randn(n_rows, n_labels, requires_grad=True)
    y_true, kept = torch.rand(n_rows, n_labels) < 0.2, {}

    def pack(tensor):
        # (A tensor of a transform has no address; it is its own.)
        place = (
            id(tensor)
            if torch._C._functorch.is_functorch_wrapped_tensor(tensor)
            else (tensor.untyped_storage().data_ptr())
        )
        kept[place] = tensor
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        value = loss(logits, y_true, **options)
    total = sum(tensor.numel() * tensor.element_size() for tensor in kept.values())
    value.backward()
    return total / 4 / logits.numel()


@in_turn(
    ("surrogate", "settings", "most"),
    [
        ("expected_loss", {}, 5),
        ("logistic", {}, 4),
        ("comp_sum", {"q": 0.5}, 9),
        ("comp_sum", {"q": 0.003}, 9),
        ("constrained", {}, 12),
    ],
)
@in_turn("target", ["f1", "jaccard", "hamming", "subset"])
@in_turn("masked", [False, True])
def test_on_the_cube_a_loss_keeps_a_few_numbers_for_each_logit(
    target, surrogate, settings, most, masked
):
    loss = SurrogateLoss(target, Cube(60), surrogate, backend="torch", **settings)
    options = {"mask": torch.rand(100, 60) < 0.9} if masked else {}
    assert kept_numbers(loss, 100, 60, **options) < most + masked


@pytest.mark.skipif(not THOROUGH, reason="takes long: `test_torch_compile_sees_one_graph` is quick")
@pytest.mark.skipif(shutil.which("c++") is None, reason="torch.compile needs a C++ compiler")
def test_a_compiled_loss_is_the_loss():
    """By inductor, for values and gradients."""
    loss = ExpectedLoss("f1", Cube(6), backend="torch")
    torch.compiler.reset()
    compiled = torch.compile(loss, fullgraph=True)
    logits, y_true = torch.randn(4, 6, requires_grad=True), torch.rand(4, 6) < 0.4
    found, expected = (
        (value.detach(), torch.autograd.grad(value, logits)[0])
        for value in (compiled(logits, y_true), loss(logits, y_true))
    )
    torch.testing.assert_close(found, expected)
