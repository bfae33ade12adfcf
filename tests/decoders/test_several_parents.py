"""Labels with several parents: a spanning tree is chosen and said so, and all edges are kept to."""

import itertools
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import setwise
from setwise import SetClassifier, SetClassifierCV, Taxonomy
from setwise.decoders import MinimumRisk
from setwise.estimators import CatalogClassifier, TargetDecoder
from setwise.spaces import Catalog, Forest, Paths
from setwise.targets import TreeDistance

SHARED = Taxonomy.from_edges([["a", "d"], ["b", "d"], ["b", "e"], ["c", "e"]])
LEFT_OUT = "2 of 4 edges.*'d' under 'b', 'e' under 'c'"


def of_shared() -> TreeDistance:
    with pytest.warns(UserWarning, match=LEFT_OUT):
        return TreeDistance(SHARED)


@pytest.mark.parametrize(
    "make", [TreeDistance, Paths, lambda taxonomy: Forest(taxonomy, closed=True)]
)
def test_a_spanning_tree_is_chosen_with_a_warning(make):
    with pytest.warns(UserWarning, match=LEFT_OUT):
        found = make(SHARED)
    np.testing.assert_array_equal(found.parents, SHARED.spanning_tree().parents)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make(SHARED.spanning_tree())


def test_tree_distance_keeps_the_whole_hierarchy():
    target = of_shared()
    assert sorted(target.hierarchy.edges.tolist()) == sorted(SHARED.edges.tolist())
    assert target.hierarchy.names.tolist() == SHARED.names.tolist()
    assert TreeDistance(target.taxonomy).hierarchy.is_tree
    with pytest.raises(ValueError, match="cycle"):
        TreeDistance([-1, 0], left_out=[[1, 0]])


@st.composite
def hierarchies(draw):
    """A hierarchy of up to 7 labels in any order, lengths, and probabilities of its labels."""
    n = draw(st.integers(2, 7))
    pairs = [pair for pair in itertools.combinations(range(n), 2) if draw(st.booleans())]
    order = np.array(draw(st.permutations(range(n))))
    lengths = np.array(draw(st.lists(st.floats(0.1, 3.0), min_size=n, max_size=n)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    edges = order[np.array(pairs, dtype=int).reshape(-1, 2)]
    return Taxonomy(edges, np.arange(n)), lengths, rng.random((6, n))


@given(hierarchies())
def test_the_set_of_least_risk_is_the_best_of_all_closed_ones(drawn):
    hierarchy, lengths, probability = drawn
    n = hierarchy.n_labels
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        target = TreeDistance(hierarchy, lengths)
    sets = np.array(list(itertools.product([0, 1], repeat=n)), dtype=np.uint8)
    has_all = [all(one[a] >= one[b] for a, b in hierarchy.edges if a >= 0) for one in sets]
    closed = sets[has_all].astype(float)
    wrong = np.where(closed[:, None] == 1, 1.0 - probability, probability)
    risk = wrong @ lengths / lengths.sum()
    found = MinimumRisk(target).decode(probability, return_risk=True)
    np.testing.assert_allclose(found.risk, risk.min(axis=0), atol=1e-8)
    at = [closed.tolist().index(one) for one in found.sets.astype(float).tolist()]
    np.testing.assert_allclose(risk[at, range(6)], risk.min(axis=0), atol=1e-8)
    if not hierarchy.is_tree:
        assert np.isnan(found.second_risk).all()


def test_small_gains_and_near_ties_are_not_rounded_away():
    # Halved lengths, or very uneven ones, make gains of many sizes.
    edges = [["a", "b"], ["a", "x"], ["b", "c"], ["x", "c"], ["a", "t"]]
    uneven = Taxonomy.from_edges(edges, names=["a", "b", "x", "c", "t"])
    with pytest.warns(UserWarning, match="left out"):
        target = TreeDistance(uneven, [1e6, 1.0, 1.0, 5.0, 1e-4])
    decoder = MinimumRisk(target)
    assert decoder.decode([[0.99, 0.6, 0.3, 0.58, 0.9]]).tolist() == [[1, 1, 1, 1, 1]]
    assert decoder.decode([[0.99, 0.6, 0.3, 0.53, 0.9]]).tolist() == [[1, 1, 0, 0, 1]]
    with pytest.warns(UserWarning, match="left out"):
        even = MinimumRisk(TreeDistance(SHARED))
    # d gains as much as its parents lose, but for the last digits.
    order = [SHARED.names.tolist().index(name) for name in "abcde"]
    for more, expected in ((1e-7, [1, 1, 0, 1, 0]), (-1e-7, [0, 0, 0, 0, 0])):
        found = even.decode(np.array([[0.4, 0.4, 0.1, 0.7 + more, 0.1]])[:, np.argsort(order)])
        assert found[:, order].tolist() == [expected]


@pytest.mark.parametrize(
    ("left_out", "message"),
    [
        ([0, 1], r"of shape \(m, 2\), but it is \[0, 1\]"),
        ([[0, 5]], r"left_out must be edges .* labels from 0 to 2, .* it is \[\[0, 5\]\]"),
        ([[-2, 1]], r"between labels from 0 to 2"),
        ([[0.0, 1.0]], "dtype float64"),
        ([["a", "b"]], "dtype <U1"),
        ([[0, 1, 2]], r"of shape \(m, 2\), but it is \[\[0, 1, 2\]\]"),
        ("ab", "dtype <U2"),
        ([[2, 0]], "cycle"),
    ],
)
def test_edges_left_out_are_edges(left_out, message):
    with pytest.raises(ValueError, match=message):
        TreeDistance([-1, 0, 1], left_out=left_out)
    assert TreeDistance([-1, 0, 1], left_out=[]).hierarchy.is_tree


def data(seed: int):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(200, 4))
    wanted = X @ rng.normal(size=(4, 5)) + rng.normal(size=(200, 5)) > 0.7
    return X, SHARED.close(wanted.astype(int))


@pytest.mark.parametrize("space", ["closed", "catalog", "sized", "cube", "forest"])
def test_predictions_are_closed_under_every_edge(space, tmp_path):
    target, open_in_tree = of_shared(), 0
    for seed in range(4):
        X, Y = data(seed)
        model = SetClassifier(target, space=space).fit(X, Y)
        assert SHARED.is_closed(model.predict(X)).all()
        by_tree = model.for_target(TreeDistance(SHARED.spanning_tree())).predict(X)
        open_in_tree += (~SHARED.is_closed(by_tree)).sum()
    # The tree alone does not see to it.
    assert open_in_tree > 0 or space in ("catalog", "forest")
    assert "spanning tree, which leaves out 2 edges" in model.guarantee_
    model.save(tmp_path / "model.skops")
    again = setwise.load(tmp_path / "model.skops")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_predictions_of_all_estimators_are_closed_under_every_edge():
    from sklearn.linear_model import LogisticRegression
    from sklearn.multiclass import OneVsRestClassifier

    target, (X, Y) = of_shared(), data(0)
    for model in (
        SetClassifierCV(target, alphas=[0.01, 0.1], cv=2),
        TargetDecoder(OneVsRestClassifier(LogisticRegression()), target),
        CatalogClassifier(LogisticRegression(), target),
    ):
        assert SHARED.is_closed(model.fit(X, Y).predict(X)).all()


def test_what_cannot_be_closed_is_refused():
    target, (X, Y) = of_shared(), data(0)
    with pytest.raises(ValueError, match=r"several parents.*need not be closed.*likelihood"):
        SetClassifier(target, "logistic").fit(X, Y)
    listed = Catalog(np.unique(Y, axis=0))
    assert SHARED.is_closed(
        SetClassifier(target, "mean_absolute_error", listed).fit(X, Y).predict(X)
    ).all()
    Y[3] = [0, 1, 1, 0, 0]
    assert SHARED.names[[1, 2]].tolist() == ["d", "b"]
    with pytest.raises(ValueError, match="row 3 of y has 'd' without 'a' above it"):
        SetClassifier(target).fit(X, Y)
