"""True label sets for tree distance: closed, by the taxonomy's names, and paths where those are."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier

from setwise import SetClassifier, SetClassifierCV, Taxonomy
from setwise.decoders import MinimumRisk
from setwise.estimators import CatalogClassifier, TargetDecoder
from setwise.targets import TreeDistance

LIFE = Taxonomy.from_paths(["animals", "animals/birds", "animals/mammals", "plants"])
ESTIMATORS = {
    "SetClassifier": SetClassifier(TreeDistance(LIFE)),
    "SetClassifierCV": SetClassifierCV(TreeDistance(LIFE), alphas=[0.1], cv=2),
    "TargetDecoder": TargetDecoder(OneVsRestClassifier(LogisticRegression()), TreeDistance(LIFE)),
    "CatalogClassifier": CatalogClassifier(LogisticRegression(), TreeDistance(LIFE)),
}
every_estimator = pytest.mark.parametrize("name", ESTIMATORS)


def data():
    X = np.random.default_rng(0).normal(size=(60, 3))
    number = np.digitize(X[:, 0], [-0.5, 0.5])
    return X, [[["animals/birds"], ["animals/mammals"], ["plants"]][i] for i in number]


@every_estimator
def test_lists_are_read_by_the_names_of_the_taxonomy(name):
    X, lists = data()
    closed = [[*row, "animals"] if "/" in row[0] else row for row in lists]
    # A label that never occurs is there all the same.
    closed = [["animals"] if "animals/birds" in row else row for row in closed]
    model = ESTIMATORS[name].fit(X, closed)
    assert model.predict(X).shape == (60, 4)
    assert model.classes_.tolist() == LIFE.names.tolist()
    assert model.score(X, closed) == model.score(X, LIFE.close(closed)) > 0.8


@every_estimator
def test_label_sets_that_are_not_closed_are_refused(name):
    X, lists = data()
    missing = "row 0 of y has 'animals/[a-z]+' without 'animals' above it.*Taxonomy.close"
    first = next(i for i, row in enumerate(lists) if row != ["plants"])
    X, lists = X[first:], lists[first:]
    with pytest.raises(ValueError, match=missing):
        ESTIMATORS[name].fit(X, lists)
    model = ESTIMATORS[name].fit(X, LIFE.close(lists))
    with pytest.raises(ValueError, match=missing):
        model.score(X, lists)


@every_estimator
def test_columns_in_another_order_are_refused(name):
    pd = pytest.importorskip("pandas")
    X, lists = data()
    frame = pd.DataFrame(LIFE.close(lists), columns=LIFE.names)
    ESTIMATORS[name].fit(X, frame)
    with pytest.raises(ValueError, match="columns of y must be in the order"):
        ESTIMATORS[name].fit(X, frame[LIFE.names[::-1]])
    with pytest.raises(ValueError, match="not among the labels: 'fungi'"):
        ESTIMATORS[name].fit(X, frame.rename(columns={"plants": "fungi"}))


def test_numbers_are_names_too():
    pd = pytest.importorskip("pandas")
    # Label 2 stands in column 1.
    named = Taxonomy.from_edges([[0, 2, 10.0], [0, 1, 1.0]])
    assert named.names.tolist() == [0, 2, 1]
    X = np.random.default_rng(1).normal(size=(40, 2))
    rows = [{0, 2} if x > 0 else {0, 1} for x in X[:, 0]]
    model = SetClassifier(TreeDistance(named)).fit(X, rows)
    assert model.classes_.tolist() == [0, 2, 1]
    sets = named.close(model.predict(X))
    assert (sets[:, 1] == (X[:, 0] > 0)).mean() > 0.9
    frame = pd.DataFrame([[1, 0, 1]] * 40, columns=[0, 1, 2])
    with pytest.raises(ValueError, match="in the order of the labels, 0, 2, 1"):
        SetClassifier(TreeDistance(named)).fit(X, frame)


def test_a_taxonomy_without_names_takes_those_of_the_columns():
    pd = pytest.importorskip("pandas")
    X, lists = data()
    frame = pd.DataFrame(LIFE.close(lists), columns=["a", "b", "c", "d"])
    model = SetClassifier(TreeDistance(LIFE.parents)).fit(X, frame)
    assert model.classes_.tolist() == ["a", "b", "c", "d"]


def test_a_taxonomy_of_one_label():
    X, _ = data()
    y = (X[:, :1] > 0).astype(int)
    model = SetClassifier(TreeDistance([-1])).fit(X, y)
    assert (model.predict(X) == y).mean() > 0.9


@pytest.mark.parametrize(
    "surrogate", ["logistic", "sum_exponential", "mean_absolute_error", "constrained_exponential"]
)
def test_classifiers_on_paths_refuse_other_sets(surrogate):
    X, lists = data()
    Y = LIFE.close(lists)
    SetClassifier(TreeDistance(LIFE), surrogate, "paths").fit(X, Y)
    Y[5] = 0
    with pytest.raises(ValueError, match=r"row 5 is not in Paths of 4 labels.*'closed'"):
        SetClassifier(TreeDistance(LIFE), surrogate, "paths").fit(X, Y)


def test_edits_of_listed_sets_are_closed():
    # Of all sets one label away, one without a root would be the best.
    lengths = [10.0, 0.1, 10.0, 10.0, 10.0]
    sets = [[1, 1, 1, 1, 1], [0, 0, 1, 0, 0], [0, 0, 0, 1, 0], [0, 0, 0, 0, 1]]
    taxonomy = Taxonomy.from_parents([-1, 0, -1, -1, -1])
    decoder = MinimumRisk(TreeDistance(taxonomy, lengths))
    for over in ("edits", "all"):
        found = decoder.decode_catalog([[0.4, 0.2, 0.2, 0.2]], sets, over=over)
        assert taxonomy.is_closed(found).all()


@pytest.mark.parametrize("name", ["SetClassifier", "TargetDecoder", "CatalogClassifier"])
def test_for_another_target_labels_are_those_of_the_taxonomy(name):
    pd = pytest.importorskip("pandas")
    X, lists = data()
    frame = pd.DataFrame(LIFE.close(lists), columns=LIFE.names)
    turned = clone(ESTIMATORS[name]).set_params(target="hamming").fit(X, frame[LIFE.names[::-1]])
    with pytest.raises(ValueError, match=r"those that were trained on.*Taxonomy.over"):
        turned.for_target(TreeDistance(LIFE))
    ordered = turned.for_target(TreeDistance(LIFE.over(turned.classes_)))
    expected = clone(ESTIMATORS[name]).fit(X, frame).predict(X)
    assert (ordered.predict(X)[:, ::-1] == expected).mean() > 0.95
    by_number = clone(ESTIMATORS[name]).set_params(target="hamming").fit(X, LIFE.close(lists))
    assert LIFE.is_closed(by_number.for_target(TreeDistance(LIFE)).predict(X)).all()


def test_a_list_of_open_sets_is_no_list_to_predict_from():
    X, lists = data()
    Y = LIFE.close(lists)
    Y[0] = [0, 1, 0, 0]
    model = CatalogClassifier(LogisticRegression(), "hamming", over="list").fit(X, Y)
    with pytest.raises(ValueError, match="'animals/birds' without 'animals'"):
        model.for_target(TreeDistance(LIFE))
    model = CatalogClassifier(LogisticRegression(), "hamming").fit(X, Y)
    assert LIFE.is_closed(model.for_target(TreeDistance(LIFE)).predict(X)).all()
