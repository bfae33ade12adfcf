"""Bad input raises ValueError that says what was wrong, where, and what is expected."""

import re

import numpy as np
import pytest
import scipy.sparse

import setwise
from setwise.decoders import MostLikely
from setwise.distributions import OfSpace
from setwise.spaces import Catalog, Cube, Forest, Paths, Sized, Slice
from setwise.surrogates import BinaryRelevance, CompSum, Constrained, GeneralizedCrossEntropy
from setwise.targets import (
    CountTarget,
    FBeta,
    Hamming,
    Jaccard,
    LinearFractional,
    PrecisionAtK,
    RecallAtK,
    TableTarget,
    TreeDistance,
)
from tests.support import oracle
from tests.support.turns import in_turn

SCORES, Y_TRUE = np.zeros((3, 4)), np.zeros((3, 4), dtype=int)
SURROGATES = {
    "comp-sum": CompSum(FBeta(), Cube(4), q=0.5),
    "constrained": Constrained(Hamming(), Cube(4)),
    "binary relevance": BinaryRelevance(),
}
every_surrogate = in_turn("surrogate", SURROGATES.values(), ids=SURROGATES)


def assert_refused(action, *words):
    """ValueError whose message has every one of the words, in any order and case."""
    pattern = "(?is)" + "".join(f"(?=.*(?:{word}))" for word in words)
    with pytest.raises(ValueError, match=pattern):
        action()


def changed(array, position, value):
    """A copy with one entry replaced."""
    copy = np.array(array, dtype=float)
    copy[position] = value
    return copy


# ------------------------------------------------------------------------------------- batches


@every_surrogate
def test_scores_of_the_wrong_shape_are_refused(surrogate):
    """The message has the shape that came and the one that is expected."""
    assert_refused(
        lambda: surrogate.value_and_gradient(np.zeros(4), Y_TRUE),
        "scores",
        r"\(4,\)|1-d|one dim|1 dim",
        "shape|dim",
    )
    assert_refused(
        lambda: surrogate.value_and_gradient(np.zeros((3, 4, 1)), Y_TRUE),
        "scores",
        r"\(3, 4, 1\)|3-d|3 dim|shape",
    )


def test_scores_for_another_number_of_labels_are_refused():
    for name in ("comp-sum", "constrained"):
        surrogate = SURROGATES[name]
        assert_refused(
            lambda s=surrogate: s.value_and_gradient(np.zeros((3, 5)), Y_TRUE), "scores", "5", "4"
        )


@every_surrogate
def test_label_sets_for_another_number_of_labels_are_refused(surrogate):
    assert_refused(
        lambda: surrogate.value_and_gradient(SCORES, np.zeros((3, 5), dtype=int)),
        "y_true|label",
        "5",
        "4",
    )


@every_surrogate
def test_different_numbers_of_rows_are_refused(surrogate):
    assert_refused(
        lambda: surrogate.value_and_gradient(SCORES, Y_TRUE[:2]), "rows?|shape", "3", "2"
    )


@every_surrogate
@in_turn("value", [2, -1, 0.5, np.nan])
def test_labels_outside_zero_and_one_are_refused(surrogate, value):
    """What: the value; where: row and column; expected: 0 or 1."""
    assert_refused(
        lambda: surrogate.value_and_gradient(SCORES, changed(Y_TRUE, (1, 2), value)),
        "y_true|label",
        re.escape(str(value)),
        r"row 1|\(1, 2\)|\[1, 2\]",
        "0 (and|or) 1|0/1|0, 1",
    )


@every_surrogate
def test_sparse_labels_outside_zero_and_one_are_refused(surrogate):
    y_true = scipy.sparse.csr_array(changed(Y_TRUE, (1, 2), 3))
    assert_refused(
        lambda: surrogate.value_and_gradient(SCORES, y_true),
        "y_true|label",
        "3",
        "0 (and|or) 1|0/1|0, 1",
    )


@every_surrogate
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_scores_that_are_not_finite_are_refused(surrogate, value):
    assert_refused(
        lambda: surrogate.value_and_gradient(changed(SCORES, (2, 1), value), Y_TRUE),
        "scores",
        "nan" if np.isnan(value) else "inf",
        r"row 2|\(2, 1\)|\[2, 1\]",
        "finite",
    )


def test_losses_of_different_shapes_are_refused():
    assert_refused(
        lambda: Hamming().loss(np.zeros((2, 3)), np.zeros((2, 4))),
        "y_pred|y_true|shape|labels",
        "3",
        "4",
    )


def test_predicted_labels_outside_zero_and_one_are_refused():
    assert_refused(
        lambda: FBeta().loss(changed(Y_TRUE, (1, 2), 2), Y_TRUE),
        "y_pred",
        "2",
        "0 (and|or) 1|0/1|0, 1",
    )


@in_turn("method", ["log_partition", "marginals", "most_likely"])
@in_turn(
    "space",
    [
        Cube(4),
        Sized(4, np.zeros(3)),
        Forest([-1, 0, 0, 1]),
        Paths([-1, 0, 0, 1]),
        Catalog(np.eye(4, dtype=int)),
    ],
    ids=lambda space: type(space).__name__,
)
def test_spaces_refuse_scores_that_do_not_fit(space, method):
    assert_refused(lambda: getattr(space, method)(np.zeros((2, 5))), "scores", "5", "4")
    assert_refused(
        lambda: getattr(space, method)(np.full((2, 4), np.nan)), "scores", "nan", "finite"
    )


# -------------------------------------------------------------------------------------- spaces


@pytest.mark.parametrize("size", [5, -1])
def test_a_slice_larger_than_its_labels_is_refused(size):
    assert_refused(lambda: Slice(4, size), "size", str(size), "4")


@pytest.mark.parametrize("n_labels", [0, -3])
def test_a_space_without_labels_is_refused(n_labels):
    assert_refused(lambda: Cube(n_labels), "n_labels|label", str(n_labels))


def test_biases_for_impossible_sizes_are_refused():
    assert_refused(lambda: Sized(3, np.zeros(5)), "bias", "5", "4|3")


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_biases_that_are_nan_or_plus_infinity_are_refused(value):
    """Minus infinity is legal, the others are not."""
    assert_refused(
        lambda: Sized(3, np.array([0.0, value])), "bias", "nan" if np.isnan(value) else "inf"
    )
    assert_refused(lambda: Catalog(np.eye(3, dtype=int), bias=np.array([0.0, value, 0.0])), "bias")


def test_a_space_where_nothing_is_possible_is_refused():
    assert_refused(lambda: Sized(3, np.full(4, -np.inf)), "bias|size", "finite|empty|no |-inf")
    assert_refused(
        lambda: Catalog(np.eye(3, dtype=int), bias=np.full(3, -np.inf)),
        "bias|set",
        "finite|empty|no |-inf",
    )


CYCLES = {"of two": [1, 0], "of three": [-1, 2, 3, 1], "of one": [-1, 1]}


@pytest.mark.parametrize("make", [Forest, Paths, TreeDistance], ids=lambda make: make.__name__)
@pytest.mark.parametrize("parents", CYCLES.values(), ids=CYCLES)
def test_a_cycle_in_a_hierarchy_is_refused(make, parents):
    assert_refused(lambda: make(parents), "parents|hierarchy", "cycle|itself|ancestor")


@pytest.mark.parametrize("make", [Forest, Paths, TreeDistance], ids=lambda make: make.__name__)
@pytest.mark.parametrize("parents", [[-1, 7], [-1, -2]], ids=("too large", "too small"))
def test_a_parent_that_does_not_exist_is_refused(make, parents):
    assert_refused(lambda: make(parents), "parent", str(parents[1]), "label|1|-1")


def test_potentials_of_the_wrong_shape_are_refused():
    assert_refused(
        lambda: Forest([-1, 0, 0], potentials=np.zeros((2, 2, 2))),
        "potentials",
        r"\(2, 2, 2\)",
        r"\(3, 2, 2\)",
    )
    assert_refused(
        lambda: Forest([-1, 0], potentials=np.full((2, 2, 2), np.nan)), "potentials", "nan"
    )


def test_duplicate_rows_in_a_catalog_are_refused():
    """Where: both rows."""
    assert_refused(
        lambda: Catalog(np.array([[0, 1], [1, 1], [0, 1]])),
        "duplicate|twice|repeat|same",
        "2",
        "row|set",
    )


def test_a_catalog_without_rows_is_refused():
    assert_refused(
        lambda: Catalog(np.zeros((0, 3), dtype=int)), "catalog|sets", "empty|no |at least one|0"
    )


def test_a_catalog_of_other_numbers_is_refused():
    assert_refused(lambda: Catalog(np.array([[0, 2]])), "sets|label", "2", "0 (and|or) 1|0/1|0, 1")


def test_a_catalog_with_too_few_biases_is_refused():
    assert_refused(lambda: Catalog(np.eye(3, dtype=int), bias=np.zeros(2)), "bias", "2", "3")


def test_too_many_sets_to_enumerate_are_refused():
    assert_refused(
        lambda: Cube(30).enumerate(), "enumerate|list|sets|rows", r"2\*\*20|1048576|1,048,576|2\^20"
    )


def test_membership_of_other_numbers_is_refused():
    assert_refused(
        lambda: Slice(3, 1).contains(np.array([[0, 2, 0]])), "2", "0 (and|or) 1|0/1|0, 1"
    )
    assert_refused(lambda: Slice(3, 1).contains(np.array([[0, 1]])), "2", "3")


def test_parameters_of_the_wrong_length_are_refused():
    assert_refused(
        lambda: Sized(3, np.zeros(4)).with_parameters(np.zeros(3)), "parameters|bias", "3", "4"
    )


# ------------------------------------------------------------------------------------- targets


@pytest.mark.parametrize(
    "name", ["f-one", "precision", "precision@", "precision@x", "", "recall@0"]
)
def test_an_unknown_name_is_refused(name):
    """The message repeats the name and lists what is known."""
    assert_refused(
        lambda: setwise.get_target(name),
        re.escape(name),
        "hamming|precision@|recall@|positive|at least 1",
    )


@pytest.mark.parametrize("make", [PrecisionAtK, RecallAtK], ids=lambda make: make.__name__)
@pytest.mark.parametrize("k", [0, -2])
def test_a_k_below_one_is_refused(make, k):
    assert_refused(lambda: make(k), "k", str(k), "1|positive")


@pytest.mark.parametrize("target", [PrecisionAtK(5), RecallAtK(5)], ids=("precision@5", "recall@5"))
def test_a_k_larger_than_the_labels_is_refused(target):
    assert_refused(lambda: target.loss(Y_TRUE, Y_TRUE), "5", "4")
    assert_refused(lambda: CompSum(target, Slice(4, 2)), "5", "size|label|k")


@pytest.mark.parametrize("empty", [-0.1, 1.5, np.nan])
def test_a_utility_outside_the_unit_interval_is_refused(empty):
    for make in (FBeta, Jaccard):
        assert_refused(lambda make=make: make(empty=empty), "empty", str(empty), "0.*1")
    assert_refused(lambda: RecallAtK(1, empty=empty), "empty", str(empty), "0.*1")


@pytest.mark.parametrize("beta", [0.0, -1.0, np.nan, np.inf])
def test_a_beta_that_is_not_positive_is_refused(beta):
    assert_refused(lambda: FBeta(beta), "beta", str(beta), "positive|> 0|above 0|greater")


def test_weights_that_are_not_weights_are_refused():
    assert_refused(
        lambda: Hamming([1.0, -1.0]), "weight", "-1", "positive|negative|>= 0|at least 0|nonneg"
    )
    assert_refused(lambda: CompSum(Hamming([1.0, 2.0, 3.0]), Cube(4)), "weights?|Hamming", "3", "4")
    assert_refused(lambda: Hamming([1.0, 2.0, 3.0]).loss(Y_TRUE, Y_TRUE), "weights?", "3", "4")


def test_a_fraction_needs_five_coefficients_twice():
    assert_refused(
        lambda: LinearFractional((0, 1, 1), (0, 1, 1, 1, 1), empty=1.0), "numerator", "3", "5|five"
    )
    assert_refused(
        lambda: LinearFractional((0, 1, 1, 1, 1), (0, 1), empty=1.0), "denominator", "2", "5|five"
    )


def test_a_tree_needs_a_length_for_each_label():
    assert_refused(lambda: TreeDistance([-1, 0, 0], lengths=[1.0, 2.0]), "lengths", "2", "3")
    assert_refused(
        lambda: TreeDistance([-1, 0], lengths=[1.0, -2.0]),
        "lengths",
        "-2",
        "positive|negative|> 0|>= 0",
    )


def test_a_table_must_be_square_and_in_the_unit_interval():
    sets = oracle.all_sets(2)
    assert_refused(lambda: TableTarget(sets, np.zeros((4, 3))), "losses", r"\(4, 3\)", r"\(4, 4\)")
    assert_refused(lambda: TableTarget(sets, np.full((4, 4), 1.5)), "losses", "1.5", "0.*1")
    assert_refused(
        lambda: TableTarget(sets[[0, 1, 0]], np.zeros((3, 3))),
        "duplicate|twice|repeat|same",
        "row|set",
    )


def test_a_table_judges_only_the_sets_it_lists():
    table = TableTarget(oracle.all_sets(3)[:5], np.zeros((5, 5)))
    assert_refused(
        lambda: table.loss(np.array([[1, 1, 1]]), np.array([[0, 0, 0]])),
        "table|list",
        "row 0|1, 1, 1|1 1 1|111",
    )
    assert_refused(
        lambda: CompSum(table, Cube(3)), "TableTarget|table", "Cube", "list|cover|sets|Catalog"
    )


def test_a_table_without_an_excluded_set_of_a_list_is_refused_when_it_is_paired():
    """Not when it is used: sums over a list go over its excluded sets too."""
    sets = oracle.all_sets(2)
    table, bias = TableTarget(sets[:3], np.zeros((3, 3))), [0.0, 0.0, 0.0, -np.inf]
    for make in (CompSum, Constrained):
        assert_refused(
            lambda make=make: make(table, Catalog(sets, bias)), "TableTarget", "cover", "Catalog"
        )
    inside = CompSum(table, Sized(2, [0.0, 0.0, -np.inf]))
    assert np.isfinite(inside.value_and_gradient(np.zeros((1, 2)), sets[:1])[0]).all()


def test_a_tree_distance_over_other_labels_is_refused():
    assert_refused(
        lambda: CompSum(TreeDistance([-1, 0, 0]), Cube(4)), "TreeDistance|parents", "3", "4"
    )


# ---------------------------------------------------------------------------------- surrogates


@pytest.mark.parametrize("q", [1.5, -1.01, np.nan, np.inf])
def test_q_outside_its_interval_is_refused(q):
    assert_refused(lambda: CompSum(FBeta(), Cube(3), q=q), r"\bq\b", re.escape(str(q)), r"-1.*1")


@pytest.mark.parametrize("q", [0.0, 1.0, -0.5])
def test_generalized_cross_entropy_is_strictly_between_zero_and_one(q):
    assert_refused(
        lambda: GeneralizedCrossEntropy(FBeta(), Cube(3), q=q), r"\bq\b", re.escape(str(q)), r"0.*1"
    )


def test_unknown_margins_and_scales_are_refused():
    """The message lists the known ones."""
    assert_refused(
        lambda: Constrained(FBeta(), Cube(3), margin="huber"), "margin", "huber", "squared_hinge"
    )
    assert_refused(lambda: BinaryRelevance(margin="huber"), "margin", "huber", "logistic")
    assert_refused(lambda: CompSum(FBeta(), Cube(3), scale="log"), "scale", "log", "unit", "paper")
    assert_refused(
        lambda: Constrained(FBeta(), Cube(3), scale="log"), "scale", "log", "unit", "paper"
    )


@pytest.mark.parametrize("rho", [0.0, -1.0, np.nan])
def test_a_rho_that_is_not_positive_is_refused(rho):
    assert_refused(
        lambda: Constrained(FBeta(), Cube(3), margin="rho", rho=rho),
        "rho",
        str(rho),
        "positive|> 0|above 0|greater",
    )


OFF_SIZE = {
    "cube": Cube(4),
    "another size": Slice(4, 3),
    "two sizes": Sized(4, np.array([-np.inf, 0.0, 0.0])),
    "a list of several sizes": Catalog(np.array([[1, 1, 0, 0], [1, 0, 0, 0]])),
    "a chain": Forest.chain(4),
}


@in_turn("space", OFF_SIZE.values(), ids=OFF_SIZE)
@in_turn("target", [PrecisionAtK(2), RecallAtK(2)], ids=("precision@2", "recall@2"))
def test_precision_and_recall_at_k_are_refused_off_size_k(target, space):
    """Both names, and what would work instead."""
    for surrogate in (CompSum, Constrained):
        assert_refused(
            lambda surrogate=surrogate: surrogate(target, space),
            "precision@2|recall@2|PrecisionAtK|RecallAtK",
            f"{type(space).__name__}|Slice",
            "size 2|Slice",
        )


def test_a_count_function_on_a_large_forest_is_refused_naming_both():
    """A pair that cannot be exact: both names and the alternatives."""
    target = CountTarget(lambda tp, fp, fn, tn: (fp + fn) / (tp + fp + fn + tn))
    assert_refused(
        lambda: CompSum(target, Forest.chain(60)), "CountTarget", "Forest", "Cube|Sized|Catalog"
    )


def test_a_table_on_a_space_too_large_to_enumerate_is_refused_naming_both():
    target = TableTarget(np.eye(40, dtype=int), np.zeros((40, 40)))
    assert_refused(lambda: CompSum(target, Cube(40)), "TableTarget", "Cube", "Catalog")


def test_a_surrogate_takes_its_target_by_name():
    """A string is looked up in the registry; an unknown one is refused as in get_target."""
    rng = np.random.default_rng(0)
    scores, y_true = rng.normal(size=(4, 3)), rng.integers(0, 2, size=(4, 3))
    named, _ = CompSum("f1", Cube(3), q=1.0).value_and_gradient(scores, y_true)
    np.testing.assert_array_equal(
        named, CompSum(FBeta(), Cube(3), q=1.0).value_and_gradient(scores, y_true)[0]
    )
    assert_refused(lambda: CompSum("f-one", Cube(3)), "f-one", "hamming")


TAKE_A_SPACE = {
    "comp-sum": lambda space: CompSum("f1", space),
    "constrained": lambda space: Constrained("f1", space),
    "constrained by a list": lambda space: Constrained("f1", space, "hinge"),
    "most likely": MostLikely,
    "a distribution": lambda space: OfSpace(space, SCORES),
}


@in_turn("make", TAKE_A_SPACE.values(), ids=TAKE_A_SPACE)
@in_turn("space", [4, "cube", Cube])
def test_what_is_no_space_is_refused(make, space):
    assert_refused(lambda: make(space), "a space is an object", re.escape(repr(space)))
