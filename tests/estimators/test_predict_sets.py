"""Predictions by the names of the labels: the way back from what `fit` was given."""

import numpy as np
import pandas
import pytest
from scipy.sparse import csr_array
from sklearn.linear_model import LogisticRegression
from sklearn.multioutput import MultiOutputClassifier
from sklearn.preprocessing import MultiLabelBinarizer

from setwise import CatalogClassifier, SetClassifier, SetClassifierCV, TargetDecoder, Taxonomy
from setwise.targets import TreeDistance

NAMES = ["war", "art", "law"]  # (not sorted, to tell the two orders apart)
X = np.random.default_rng(0).normal(size=(60, 4))
Y = (X @ np.random.default_rng(1).normal(size=(4, 3)) > 0.3).astype(int)
MODELS = {
    "SetClassifier": lambda target="f1": SetClassifier(target),
    "SetClassifierCV": lambda target="f1": SetClassifierCV(target, alphas=[0.1], cv=2),
    "TargetDecoder": lambda target="f1": TargetDecoder(
        MultiOutputClassifier(LogisticRegression()), target
    ),
    "CatalogClassifier": lambda target="f1": CatalogClassifier(LogisticRegression(), target),
}
every_model = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)


@every_model
def test_sets_of_lists_are_what_the_binarizer_gives_back(model):
    lists = [[name for name, there in zip(NAMES, row, strict=True) if there] for row in Y]
    fitted = model().fit(X, lists)
    binarizer = MultiLabelBinarizer().fit(lists)
    sets = fitted.predict_sets(X)
    assert sets == [tuple(map(str, row)) for row in binarizer.inverse_transform(fitted.predict(X))]
    assert {type(name) for labels in sets for name in labels} == {str}


@every_model
@pytest.mark.parametrize("form", ["frame", "array", "sparse"])
def test_the_names_are_the_columns_in_their_order_or_their_numbers(model, form):
    given = {"frame": pandas.DataFrame(Y, columns=NAMES), "array": Y, "sparse": csr_array(Y)}
    names = NAMES if form == "frame" else [0, 1, 2]
    fitted = model().fit(X, given[form])
    predicted = fitted.predict(X)
    expected = [tuple(names[label] for label in np.flatnonzero(row)) for row in predicted]
    assert fitted.predict_sets(X) == expected
    assert fitted.set_params(sparse_output=True).fit(X, given[form]).predict_sets(X) == expected


@every_model
def test_a_class_is_a_set_of_one(model):
    classes = np.array(NAMES)[Y.argmax(axis=1)]
    base = model()
    if isinstance(base, TargetDecoder):
        base = TargetDecoder(LogisticRegression())
    fitted = base.fit(X, classes)
    assert fitted.predict_sets(X) == [(name,) for name in fitted.predict(X).tolist()]


@every_model
def test_most_specific_sets_close_to_the_predictions(model):
    taxonomy = Taxonomy.from_paths(["a", "a/b", "a/c"])
    lists = [["a", "a/b"] if row[0] else ["a", "a/c"] if row[1] else ["a"] for row in Y]
    fitted = model(TreeDistance(taxonomy)).fit(X, lists)
    short = fitted.predict_sets(X, most_specific=True)
    assert taxonomy.close([set(labels) for labels in short]).tolist() == fitted.predict(X).tolist()
    assert max(map(len, short)) < max(map(len, fitted.predict_sets(X)))


@every_model
def test_most_specific_needs_a_hierarchy(model):
    with pytest.raises(ValueError, match=r"most_specific.*hierarchy.*TreeDistance\(taxonomy\)"):
        model().fit(X, Y).predict_sets(X, most_specific=True)


@pytest.mark.parametrize("name", ["SetClassifier", "SetClassifierCV"])
@pytest.mark.parametrize("sparse", [False, True])
def test_missing_features_are_refused_with_how_to_fill_them(name, sparse):
    gaps = X.copy()
    gaps[3, 1] = np.nan
    gaps = csr_array(gaps) if sparse else gaps
    hint = rf"Input X contains NaN.*make_pipeline\(SimpleImputer\(\), {name}\(\.\.\.\)\)"
    fitted = MODELS[name]().fit(X, Y)
    with pytest.raises(ValueError, match=hint):
        MODELS[name]().fit(gaps, Y)
    if name == "SetClassifier":
        with pytest.raises(ValueError, match=hint):
            fitted.predict_sets(gaps)
