"""Laws of the targets: each loss is its definition, lies in [0, 1], and says what 0/0 means."""

import itertools
import tracemalloc
from dataclasses import dataclass

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

import setwise
from setwise import get_target
from setwise.spaces import Catalog, Cube, Forest, Paths, Slice
from setwise.targets import (
    TARGETS,
    CountTarget,
    FBeta,
    Hamming,
    Jaccard,
    LinearFractional,
    PrecisionAtK,
    RecallAtK,
    TableTarget,
    Target,
    TreeDistance,
    ZeroOne,
)
from setwise.targets.measure import Counts
from setwise.targets.target import (
    beta_of,
    hierarchy_of,
    is_hamming,
    predicted_size,
    utility_quotient,
)
from tests.support import cases, oracle
from tests.support.examples import generators
from tests.support.turns import in_turn

FORMS = {
    "hamming": "additive",
    "weighted hamming": "additive",
    "cost-sensitive": "additive",
    "f1": "linear_fractional",
    "f of random beta": "linear_fractional",
    "jaccard": "linear_fractional",
    "subset": "subset",
    "tversky": "linear_fractional",
    "tree distance": "additive",
    "geometric mean": "counts",
    "table": "table",
    "precision@k": "additive",
    "recall@k": "additive",
}


def drawn_case(name, n_labels, rng):
    """A target that stands by itself, and label sets it can judge."""
    case = (
        cases.slice_of(n_labels, rng) if name in cases.AT_K_TARGETS else cases.cube(n_labels, rng)
    )
    return cases.EVERY_TARGET[name](rng, case), case.oracle.sets


def expected_losses(definition, y_pred, y_true):
    pairs = zip(y_pred.tolist(), y_true.tolist(), strict=True)
    return np.array([float(definition.loss(tuple(a), tuple(b))) for a, b in pairs])


@in_turn("name", cases.EVERY_TARGET)
@given(rng=generators(), n_labels=st.integers(2, 8))
def test_loss_is_its_definition(name, rng, n_labels):
    """target.loss(y_pred, y_true) against the scalar formula, on pairs that include empty and full
    sets.
    """
    target, sets = drawn_case(name, min(n_labels, cases.MOST_LABELS.get(name, 8)), rng)
    everything = oracle.all_sets(sets.shape[1])
    y_pred, y_true = (
        sets[rng.integers(len(sets), size=40)],
        everything[rng.integers(len(everything), size=40)],
    )
    y_pred[:2], y_true[:4:2], y_true[1:4:2] = sets[[0, -1]], 0, 1
    losses = target.target.loss(y_pred, y_true)
    definition = target.describe(**target.arguments)
    np.testing.assert_allclose(
        losses, expected_losses(definition, y_pred, y_true), rtol=1e-13, atol=1e-15
    )


@in_turn("name", cases.EVERY_TARGET)
@given(rng=generators())
def test_loss_is_between_zero_and_one(name, rng):
    """For every pair of label sets; a distance is zero at the truth."""
    target, sets = drawn_case(name, 4, rng)
    everything = oracle.all_sets(4)
    pairs = np.array(list(itertools.product(range(len(sets)), range(len(everything)))))
    losses = target.target.loss(sets[pairs[:, 0]], everything[pairs[:, 1]])
    assert losses.min() >= 0
    assert losses.max() <= 1
    if target.target.form == "subset" or name in ("hamming", "weighted hamming", *cases.TREE_NAMES):
        np.testing.assert_array_equal(target.target.loss(everything, everything), 0)


@in_turn(("name", "form"), FORMS.items())
def test_form_says_how_the_expectation_is_taken(name, form):
    target, _ = drawn_case(name, 4, np.random.default_rng(0))
    assert target.target.form == form


@pytest.mark.parametrize(
    "name", ["hamming", "f2", "jaccard", "subset", "tree distance", "squared error share", "table"]
)
def test_sparse_label_sets_give_the_same_loss(name):
    target, sets = drawn_case(name, 4, np.random.default_rng(1))
    y_pred, y_true = sets, sets[::-1]
    dense = target.target.loss(y_pred, y_true)
    sparse = target.target.loss(scipy.sparse.csr_array(y_pred), scipy.sparse.csr_matrix(y_true))
    np.testing.assert_array_equal(sparse, dense)


# ----------------------------------------------------------------------------------- named targets

NAMED = {
    "hamming": oracle.hamming(),
    "f1": oracle.f_beta(1.0),
    "f2": oracle.f_beta(2.0),
    "f0.5": oracle.f_beta(0.5),
    "jaccard": oracle.jaccard(),
    "subset": oracle.subset(),
}


@pytest.mark.parametrize("name", NAMED)
def test_a_name_gives_the_target_it_says(name):
    sets = oracle.all_sets(4)
    y_pred, y_true = np.repeat(sets, 16, axis=0), np.tile(sets, (16, 1))
    losses = get_target(name).loss(y_pred, y_true)
    np.testing.assert_allclose(losses, expected_losses(NAMED[name], y_pred, y_true), rtol=1e-14)


@pytest.mark.parametrize("k", [1, 3])
def test_a_name_carries_its_k(k):
    y_pred, y_true = (
        oracle.slice_of(5, k).sets,
        oracle.all_sets(5)[7 : 7 + len(oracle.slice_of(5, k).sets)],
    )
    for name, definition in (
        (f"precision@{k}", oracle.precision_at_k(k)),
        (f"recall@{k}", oracle.recall_at_k(k)),
    ):
        losses = get_target(name).loss(y_pred, y_true)
        np.testing.assert_allclose(losses, expected_losses(definition, y_pred, y_true), rtol=1e-14)


def test_every_name_of_the_registry_gives_a_target():
    """Names with a number in them are listed once, the number written as a star."""
    named = [get_target(name.replace("*", "2")) for name in TARGETS]
    forms = {"additive", "subset", "linear_fractional", "counts", "table"}
    assert {target.form for target in named} <= forms
    assert {name.replace("*", "2") for name in TARGETS} >= {"hamming", "f2", "jaccard", "subset"}
    assert setwise.get_target is get_target


@pytest.mark.parametrize(
    "target", [Hamming(), FBeta(0.5), Jaccard(), ZeroOne(), PrecisionAtK(2), TreeDistance([-1, 0])]
)
def test_an_object_is_its_own_name(target):
    assert get_target(target) is target


# ------------------------------------------------------------------------------------- conventions

NOTHING, SOMETHING = np.array([[0, 0, 0]]), np.array([[0, 1, 0]])


@pytest.mark.parametrize("empty", [1.0, 0.0, 0.4])
def test_nothing_true_and_nothing_predicted_has_utility_empty(empty):
    """`empty` is a utility everywhere: the loss there is 1 - empty."""
    for target in (
        FBeta(empty=empty),
        FBeta(beta=2.0, empty=empty),
        Jaccard(empty=empty),
        LinearFractional((0, 0, 0.3, 0.7, 0), (0, 1, 0.3, 0.7, 0), empty=empty),
    ):
        np.testing.assert_allclose(target.loss(NOTHING, NOTHING), 1 - empty, rtol=1e-15)
        np.testing.assert_array_equal(target.loss(SOMETHING, NOTHING), 1)
        np.testing.assert_array_equal(target.loss(NOTHING, SOMETHING), 1)
        np.testing.assert_array_equal(target.loss(SOMETHING, SOMETHING), 0)


@pytest.mark.parametrize("empty", [1.0, 0.0, 0.4])
def test_recall_with_no_true_label_has_utility_empty(empty):
    np.testing.assert_allclose(
        RecallAtK(1, empty=empty).loss(SOMETHING, NOTHING), 1 - empty, rtol=1e-15
    )


def test_the_default_utility_of_nothing_is_one():
    for target in (FBeta(), Jaccard(), get_target("f1"), get_target("jaccard")):
        np.testing.assert_array_equal(target.loss(NOTHING, NOTHING), 0)
    np.testing.assert_array_equal(get_target("recall@1").loss(SOMETHING, NOTHING), 0)


def test_the_arguments_are_predicted_then_true():
    """Precision and recall tell the order apart."""
    y_pred, y_true = np.array([[1, 1, 0, 0]]), np.array([[1, 0, 0, 0]])
    precision = LinearFractional((0, 0, 1, 0, 0), (0, 1, 1, 0, 0), empty=1.0)
    assert precision.loss(y_pred, y_true) == 0.5
    assert precision.loss(y_true, y_pred) == 0.0
    losses = np.array([[0.0, 0.25], [0.75, 0.0]])
    table = TableTarget(np.array([[1, 1, 0, 0], [1, 0, 0, 0]]), losses)
    assert table.loss(y_pred, y_true) == 0.25
    assert table.loss(y_true, y_pred) == 0.75


def test_tree_distance_counts_the_edges_between_two_nodes():
    """Root 0 with children 1 and 2, and 3 below 1: from {0,1,3} to {0,2} there are edges 3, 1 and
    2.
    """
    target = TreeDistance([-1, 0, 0, 1], lengths=[4.0, 1.0, 2.0, 0.5])
    loss = target.loss(np.array([[1, 1, 0, 1]]), np.array([[1, 0, 1, 0]]))
    np.testing.assert_allclose(loss, (0.5 + 1.0 + 2.0) / 7.5, rtol=1e-15)


def test_a_literal_tree_over_listed_sets_is_judged_by_path_length():
    """TableTarget.from_tree: shortest path in the tree of rows, divided by the longest."""
    sets, parents, lengths = (
        oracle.all_sets(3)[[0, 1, 3, 4, 7]],
        [-1, 0, 1, 0, 1],
        [9.0, 1.0, 2.5, 0.5, 3.0],
    )
    pairs = np.array(list(itertools.product(range(5), repeat=2)))
    for given_lengths in (None, lengths):
        target = TableTarget.from_tree(sets, parents, lengths=given_lengths)
        expected = oracle.tree_table(parents, given_lengths)[pairs[:, 0], pairs[:, 1]]
        np.testing.assert_allclose(
            target.loss(sets[pairs[:, 0]], sets[pairs[:, 1]]), expected, rtol=1e-14
        )


def test_a_count_function_is_called_with_tp_fp_fn_tn():
    """Each count is told apart by its weight."""
    target = CountTarget(
        lambda tp, fp, fn, tn: (tp + 10.0 * fp + 100.0 * fn + 1000.0 * tn) / 10_000.0
    )
    loss = target.loss(
        np.array([[1, 1, 1, 0, 0, 0, 0, 0, 0, 0]]), np.array([[1, 0, 0, 1, 1, 1, 0, 0, 0, 0]])
    )
    np.testing.assert_allclose(loss, (1 + 20 + 300 + 4000) / 10_000, rtol=1e-15)


@pytest.mark.parametrize(
    ("space", "diameter"),
    [
        (Cube(3), 7.0),
        (Forest([-1, 0, 0], closed=True), 7.0),
        (Paths([-1, 0, 0]), 6.0),
        (Paths([-1, 0, 0], leaves_only=True), 6.0),
        (Slice(3, 1), 6.0),
        (Catalog([[1, 0, 0], [1, 1, 0]]), 2.0),
        (Cube(40), 44.0),
        (Slice(40, 2), 8.0),
    ],
)
def test_a_tree_distance_counts_no_more_than_one_on_its_space(space, diameter):
    """The largest distance given is refused below what two sets of the space are apart."""
    lengths = [1.0, 2.0, 4.0] + [1.0] * (space.n_labels - 3)
    parents = [-1] + [0] * (space.n_labels - 1)
    with pytest.raises(ValueError, match=rf"largest must be at least {diameter:g}.*but it is 0\.5"):
        TreeDistance(parents, lengths, largest=0.5).on(space)
    assert TreeDistance(parents, lengths, largest=diameter).on(space).largest == diameter


@dataclass(frozen=True)
class Smoothed(Target):
    """A target of a user's own, whose parameters have names that others of ours have too."""

    k: float = 1.0
    beta: float = 0.5
    hierarchy: str = "none"
    form = "counts"

    def measure(self, n_labels, of):
        def loss(tp, fp, fn, tn):
            return (fp + fn) / (self.k + 2 * tp + fp + fn)

        return Counts(loss, complement=of == "utility")


def test_facts_are_stated_and_not_guessed_from_names():
    target = Smoothed()
    assert predicted_size(target) is hierarchy_of(target) is beta_of(target) is None
    assert utility_quotient(target) is None
    assert not is_hamming(target)
    assert (predicted_size(PrecisionAtK(2)), beta_of(FBeta(2.0))) == (2, 2.0)
    assert is_hamming(Hamming())
    assert not is_hamming(Hamming([1.0, 2.0]))


@pytest.mark.parametrize("name", ["f1", "jaccard", "hamming", "subset", "precision@2", "recall@2"])
def test_sparse_sets_are_judged_as_dense_ones_without_a_dense_copy(name):
    generator = np.random.default_rng(0)
    n, n_labels = 600, 30_000
    columns = generator.integers(0, n_labels, (2, n, 2)) // 2 * 2 + np.arange(2)
    ends, ones = np.arange(0, 2 * n + 1, 2), np.ones(2 * n, np.uint8)
    y_pred, y_true = (
        scipy.sparse.csr_array((ones, part.ravel(), ends), (n, n_labels)) for part in columns
    )
    y_true = scipy.sparse.vstack([y_pred[: n // 2], y_true[n // 2 :]], format="csr")
    target = get_target(name)
    tracemalloc.start()
    losses = target.loss(y_pred, y_true)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    dense = target.loss(*(sets[:100].toarray() for sets in (y_pred, y_true)))
    np.testing.assert_array_equal(losses[:100], dense)
    assert (losses[: n // 2] == 0).all()
    assert (losses[n // 2 :] > 0).any()
    assert peak < 80 * 2**20
