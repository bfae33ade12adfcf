"""Figures of label sets in a taxonomy, against their definitions."""

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from setwise import Taxonomy
from setwise.evaluation import (
    by_level,
    compare,
    evaluate,
    per_label,
    precision_recall,
    reliability,
)
from setwise.targets import TreeDistance
from tests.support import cases
from tests.support.examples import generators
from tests.support.turns import in_turn

# A label under two others, and one deeper by one of its ways than by the other.
SEVERAL = Taxonomy([[0, 2], [1, 2], [0, 3], [2, 4], [1, 4]])


def with_ancestors(row, taxonomy):
    """The labels of a set and all above them, one edge at a time."""
    labels = set(np.flatnonzero(row).tolist())
    while True:
        above = {int(a) for a, b in taxonomy.edges if int(b) in labels and a >= 0}
        if above <= labels:
            return labels
        labels |= above


@st.composite
def judged(draw):
    rng = draw(generators())
    if draw(st.booleans()):
        n_labels = draw(st.integers(2, 8))
        parents = cases.hierarchy(n_labels, rng).arguments["parents"]
        taxonomy = Taxonomy.from_parents(parents, lengths=rng.uniform(0.1, 3.0, n_labels))
    else:
        taxonomy = SEVERAL
    share = rng.random()
    return taxonomy, *(rng.random((2, 6, taxonomy.n_labels)) < share).astype(int)


def f1(pairs, where=None):
    """2 |both| / (|predicted| + |true|) over all entries of labels in ``where``; 0 if none."""
    kept = [[s if where is None else s & where for s in pair] for pair in pairs]
    both = sum(len(a & b) for a, b in kept)
    size = sum(len(a) + len(b) for a, b in kept)
    return 2.0 * both / size if size else 0.0


@given(given_sets=judged())
def test_hierarchical_figures_are_those_of_sets_with_their_ancestors(given_sets):
    taxonomy, y_pred, y_true = given_sets
    pairs = [
        tuple(with_ancestors(row, taxonomy) for row in rows)
        for rows in zip(y_pred, y_true, strict=True)
    ]
    figures = evaluate(y_pred, csr_array(y_true), taxonomy=taxonomy, n_bootstrap=0)
    both = sum(len(a & b) for a, b in pairs)
    predicted, true = (sum(len(pair[side]) for pair in pairs) for side in (0, 1))
    found = {name: figure.value for name, figure in figures.items() if figure.group == "hierarchy"}
    assert found.pop("hierarchical precision") == pytest.approx(
        both / predicted if predicted else 0.0
    )
    assert found.pop("hierarchical recall") == pytest.approx(both / true if true else 0.0)
    assert found.pop("hierarchical f1") == pytest.approx(f1(pairs))
    levels = by_level(y_pred, y_true, taxonomy)
    for level in range(taxonomy.depth):
        where = set(np.flatnonzero(taxonomy.levels == level).tolist())
        assert found.pop(f"f1 on level {level}") == pytest.approx(f1(pairs, where))
        assert levels.f1[level] == pytest.approx(f1(pairs, where))
        assert levels.n_labels[level] == len(where)
    assert levels.both.sum() == both
    closed = [set(np.flatnonzero(row)) == pair[0] for row, pair in zip(y_pred, pairs, strict=True)]
    assert found.pop("closed predictions") == pytest.approx(np.mean(closed))
    lengths = dict(zip(range(taxonomy.n_labels), taxonomy.spanning_tree().lengths, strict=True))
    distance = np.mean([sum(lengths[label] for label in a ^ b) for a, b in pairs])
    assert found.pop("tree distance") == pytest.approx(distance)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        target = TreeDistance(taxonomy)
    losses = target.loss(taxonomy.close(y_pred), taxonomy.close(y_true))
    assert losses.mean() * target.lengths.sum() == pytest.approx(distance)
    assert not found


def test_without_a_taxonomy_there_are_no_such_figures():
    figures = evaluate([[1, 0]], [[1, 1]], n_bootstrap=0)
    assert "hierarchy" not in {figure.group for figure in figures.values()}


def test_two_predictions_are_compared_in_a_taxonomy():
    rng = np.random.default_rng(0)
    y_true, worse = (rng.random((2, 40, 5)) < 0.4).astype(int)
    comparison = compare(worse, y_true, y_true, taxonomy=SEVERAL, n_bootstrap=50)
    assert comparison["hierarchical f1"].b == 1.0
    assert comparison["f1 on level 2"].value > 0.0


def test_what_is_no_taxonomy_of_the_labels_is_refused():
    with pytest.raises(ValueError, match="as many labels as y_true, 2, but it has 5"):
        evaluate([[1, 0]], [[1, 1]], taxonomy=SEVERAL)
    with pytest.raises(ValueError, match="must be a Taxonomy, not"):
        by_level([[1, 0]], [[1, 1]], [-1, 0])
    with pytest.raises(ValueError, match="zero_division"):
        by_level([[1, 0]], [[1, 1]], Taxonomy.from_parents([-1, 0]), zero_division=2)


# ------------------------------------------------------------------------------------------- frames

NAMES = ["animals", "animals/birds", "plants"]
LIFE = Taxonomy.from_paths(NAMES)
Y_PRED, Y_TRUE = np.array([[1, 1, 0], [0, 0, 1]]), np.array([[1, 0, 0], [0, 0, 1]])
PRED, TRUE = (pd.DataFrame(sets, columns=NAMES) for sets in (Y_PRED, Y_TRUE))
BACK = NAMES[::-1]


def values(evaluation):
    return {name: figure.value for name, figure in evaluation.items()}


def test_frames_whose_columns_agree_are_their_arrays():
    """With each other and with the taxonomy; columns that only count agree with all names."""
    expected = values(evaluate(Y_PRED, Y_TRUE, taxonomy=LIFE, n_bootstrap=0))
    counted = pd.DataFrame(Y_PRED)
    numbered = Taxonomy(LIFE.edges)
    for y_pred, y_true, taxonomy in (
        (PRED, TRUE, LIFE),
        (PRED, Y_TRUE, LIFE),
        (counted, TRUE, LIFE),
        (PRED, TRUE, numbered),
        (PRED[BACK], TRUE[BACK], LIFE.over(BACK)),
    ):
        found = values(evaluate(y_pred, y_true, taxonomy=taxonomy, n_bootstrap=0))
        assert found == pytest.approx(expected)
    assert by_level(PRED, TRUE, LIFE).f1.tolist() == by_level(Y_PRED, Y_TRUE, LIFE).f1.tolist()


@in_turn(
    "judge",
    [
        lambda: evaluate(PRED[BACK], TRUE),
        lambda: evaluate(PRED, TRUE[BACK], taxonomy=LIFE),
        lambda: evaluate(Y_PRED, TRUE, probability=PRED[BACK]),
        lambda: evaluate(Y_PRED, TRUE, scores=PRED.set_axis(["a", "b", "c"], axis=1)),
        lambda: evaluate(PRED[BACK], Y_TRUE, probability=PRED),
        lambda: evaluate(pd.DataFrame(Y_PRED)[[2, 1, 0]], pd.DataFrame(Y_TRUE)),
        lambda: compare(PRED, PRED[BACK], Y_TRUE),
        lambda: compare(PRED, PRED[BACK], TRUE),
        lambda: by_level(PRED[BACK], TRUE, LIFE),
        lambda: per_label(PRED[BACK], TRUE),
        lambda: reliability(PRED[BACK], TRUE),
        lambda: precision_recall(PRED[BACK], TRUE),
    ],
)
def test_frames_whose_columns_differ_are_refused(judge):
    message = r"must have the same columns in the same order, but col.*\.to_numpy\(\) leaves out"
    with pytest.raises(ValueError, match=message):
        judge()


@pytest.mark.parametrize(
    "judge",
    [
        lambda: evaluate(PRED[BACK], TRUE[BACK], taxonomy=LIFE),
        lambda: evaluate(Y_PRED, TRUE[BACK], taxonomy=LIFE),
        lambda: compare(PRED[BACK], PRED[BACK], Y_TRUE, taxonomy=LIFE),
        lambda: by_level(PRED[BACK], TRUE[BACK], LIFE),
    ],
)
def test_columns_in_another_order_than_the_taxonomy_are_refused(judge):
    message = r"column 0 of y_true is 'plants' and of taxonomy 'animals'.*taxonomy.over\(columns\)"
    with pytest.raises(ValueError, match=message):
        judge()


def test_numbers_in_another_order_than_the_taxonomy_are_refused():
    frame = pd.DataFrame(Y_TRUE)
    with pytest.raises(ValueError, match="column 0 of y_true is 2 and of taxonomy 0"):
        evaluate(Y_PRED, frame[[2, 1, 0]], taxonomy=Taxonomy(LIFE.edges))
    with pytest.raises(ValueError, match="column 0 of taxonomy is 2 and of y_true 0"):
        evaluate(Y_PRED, frame, taxonomy=Taxonomy(LIFE.edges, [2, 1, 0]))
