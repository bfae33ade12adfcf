"""Studies in a hierarchy: it is kept whole, its names are the labels', its figures evaluation's."""

import numpy as np
import pandas as pd
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.neighbors import KNeighborsClassifier

from setwise import Taxonomy
from setwise.evaluation import by_level, evaluate
from setwise.report import write
from setwise.study import Scale, Study, in_hierarchy, leaderboard, load
from setwise.targets import TreeDistance

PATHS = ["art", "art/film", "art/film/noir", "law", "law/civil"]
TREE = Taxonomy.from_paths(PATHS)
LENGTHS = Taxonomy.from_parents(TREE.parents, PATHS, [1.0, 2.0, 0.5, 1.0, 4.0])
DAG = Taxonomy([[0, 1], [0, 2], [1, 3], [2, 3], [3, 4]], PATHS, [1.0, 2.0, 3.0, 4.0, 5.0])


@pytest.fixture(scope="module")
def data():
    generator = np.random.default_rng(0)
    X = generator.normal(size=(60, 4))
    return X, (X @ generator.normal(size=(4, 5)) > 0.8).astype(int)


def make(X, Y, targets, **more):
    methods = {"neighbours": KNeighborsClassifier(5), "nothing": DummyClassifier()}
    return Study(X, Y, methods=methods, targets=targets, folds=2, **more)


def test_a_tree_distance_brings_its_taxonomy_and_its_names(data, tmp_path):
    results = make(data[0], LENGTHS.close(data[1]), [TreeDistance(LENGTHS)]).run(tmp_path)
    assert results.label_names == tuple(PATHS)
    assert results.taxonomy.parents.tolist() == LENGTHS.parents.tolist()
    assert results.taxonomy.lengths.tolist() == LENGTHS.lengths.tolist()
    assert results.taxonomy.names.tolist() == PATHS


def test_names_of_y_are_kept_and_must_be_those_of_the_taxonomy(data, tmp_path):
    Y = TREE.close(data[1])
    numbered = Taxonomy.from_parents(TREE.parents)
    named = pd.DataFrame(Y, columns=list("vwxyz"))
    assert make(data[0], named, ["f1"], taxonomy=numbered).run(tmp_path).label_names == (
        "v", "w", "x", "y", "z",
    )  # fmt: skip
    with pytest.raises(ValueError, match="1 of y_true is 'x' and of taxonomy 'art/film'"):
        make(data[0], pd.DataFrame(Y, columns=["art", "x", *PATHS[2:]]), ["f1"], taxonomy=TREE)


def test_a_hierarchy_with_several_parents_is_kept_whole(data, tmp_path):
    make(data[0], data[1], ["f1"], taxonomy=DAG).run(tmp_path)
    stored = load(tmp_path).taxonomy
    assert stored.edges.tolist() == DAG.edges.tolist()
    assert stored.lengths_of_edges.tolist() == DAG.lengths_of_edges.tolist()
    assert stored.names.tolist() == PATHS
    make(data[0], data[1], ["f1"], taxonomy=DAG.spanning_tree()).run(tmp_path / "tree")
    assert load(tmp_path / "tree").taxonomy.note == DAG.spanning_tree().note


@pytest.mark.parametrize("taxonomy", [TREE, LENGTHS, DAG], ids=["tree", "lengths", "dag"])
def test_figures_in_the_hierarchy_are_those_of_evaluation(data, taxonomy, tmp_path):
    results = make(data[0], data[1], ["f1"], taxonomy=taxonomy).run(tmp_path)
    for found, outcome in zip(in_hierarchy(results), results.outcomes, strict=True):
        pair = outcome.y_pred, results.y_true
        expected = evaluate(*pair, taxonomy=taxonomy, n_bootstrap=0)
        assert (found.method, found.target) == (outcome.method, outcome.target)
        for name in ("recall", "f1"):
            assert getattr(found, name) == pytest.approx(expected[f"hierarchical {name}"].value)
        np.testing.assert_array_equal(found.levels.f1, by_level(*pair, taxonomy).f1)
        assert found.closed == pytest.approx(expected["closed predictions"].value)
        assert found.distance == pytest.approx(expected["tree distance"].value)
    nothing = in_hierarchy(results)[1]
    if nothing.levels.predicted.sum() == 0:
        assert nothing.precision is None


def test_distances_are_by_the_lengths_of_the_target(data, tmp_path):
    """Also by those of a study that is read again."""
    Y = TREE.close(data[1])
    target = TreeDistance(TREE, lengths=0.5**TREE.levels)
    study = make(data[0], Y, {"tree": target, "f1": "f1"}, taxonomy=TREE)
    for results in (study.run(tmp_path), load(tmp_path)):
        for found, outcome in zip(in_hierarchy(results), results.outcomes, strict=True):
            differ = abs(TREE.close(outcome.y_pred) - TREE.close(results.y_true).astype(int))
            lengths = target.lengths if outcome.target == "tree" else TREE.lengths
            assert found.distance == pytest.approx((differ @ lengths).mean())
            assert found.unit == ("units of length" if outcome.target == "tree" else "edges")


def test_label_sets_are_closed_once_each(data, tmp_path, monkeypatch):
    results = make(data[0], data[1], ["f1", "hamming"], taxonomy=DAG).run(tmp_path)
    placed = in_hierarchy(results)
    n_closed = []
    close = Taxonomy.close
    monkeypatch.setattr(Taxonomy, "close", lambda *given: n_closed.append(1) or close(*given))
    assert in_hierarchy(results)[0].distance == placed[0].distance
    assert len(n_closed) == 1 + len(results.outcomes)
    n_closed.clear()
    evaluate(results.outcomes[0].y_pred, results.y_true, taxonomy=DAG, n_bootstrap=0)
    assert len(n_closed) == 2
    n_closed.clear()
    write(results, tmp_path / "report.html", board=leaderboard(results), placed=placed)
    assert not n_closed
    with pytest.raises(ValueError, match="in the hierarchy are not of these outcomes"):
        write(results, tmp_path / "report.html", placed=placed[1:])


def test_without_a_hierarchy_there_are_no_such_figures(data, tmp_path):
    assert in_hierarchy(make(*data, ["f1"]).run(tmp_path)) == ()


def test_the_leaderboard_has_distances_in_units_of_the_lengths(data, tmp_path):
    Y = TREE.close(data[1])
    targets = {"edges": TreeDistance(TREE), "lengths": TreeDistance(LENGTHS), "f1": "f1"}
    results = make(data[0], Y, targets).run(tmp_path)
    board = leaderboard(results, n_bootstrap=0)
    for standing in board:
        if standing.target == "f1":
            assert standing.distance is None
            assert standing.unit is None
            continue
        taxonomy = TREE if standing.target == "edges" else LENGTHS
        outcome = next(o for o in results.outcomes
                       if (o.method, o.target) == (standing.method, standing.target))  # fmt: skip
        differ = abs(outcome.y_pred.toarray().astype(int) - results.y_true.toarray())
        assert standing.distance == pytest.approx((differ @ taxonomy.lengths).mean())
    assert {s.unit for s in board.of("edges")} == {"edges"}
    assert {s.unit for s in board.of("lengths")} == {"units of length"}
    assert f"{board.of('edges')[0].distance:.4g} edges" in str(board)
    assert "distance" not in str(leaderboard(make(data[0], Y, ["f1"]).run(tmp_path / "f1")))


def test_a_scale_knows_what_counts_as_loss_1():
    assert Scale.of(TreeDistance(LENGTHS)) == Scale(8.5, "units of length")
    assert Scale.of(TreeDistance(TREE, largest=3.0)).distance(0.5) == 1.5
    assert Scale.of("f1") is None
