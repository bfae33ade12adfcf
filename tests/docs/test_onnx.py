"""The guide to the estimators runs, and its ONNX recipe gives the scores of the model."""

import re
from types import SimpleNamespace

import numpy as np
import pytest

from setwise.decoders import MinimumRisk, MostLikely
from setwise.estimators import SetClassifier
from tests.support.pages import DOCS, walk

GUIDE = (DOCS / "estimators.md").read_text()
BEFORE, ONNX = GUIDE.split("## Serving elsewhere: ONNX")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("guide")


@pytest.fixture(scope="module")
def scope(folder):
    """What the blocks before those of ONNX leave behind."""
    return walk(BEFORE, folder, "docs/estimators.md")[0]


@pytest.fixture(scope="module")
def with_onnx(scope, folder):
    """What all blocks leave behind."""
    pytest.importorskip("onnx")
    return walk(ONNX, folder, "docs/estimators.md", dict(scope))[0]


def test_every_block_of_the_guide_runs(scope):
    assert scope["model"].predict(scope["X_new"]).shape == scope["Y_new"].shape


def test_the_guide_has_a_heading_for_each_estimator_and_the_choice():
    headings = re.findall(r"^#+ (.*)$", GUIDE, flags=re.MULTILINE)
    for name in ("SetClassifier", "TargetDecoder", "CatalogClassifier", "How `auto` chooses"):
        assert name in headings


@pytest.mark.parametrize("name", ["model", "likelihood", "relevance", "own_loss"])
def test_the_onnx_recipe_gives_the_scores_of_the_model(name, with_onnx):
    """The blocks compare the label sets themselves."""
    X, model = with_onnx["X_new"], with_onnx[name]
    scores = with_onnx["scores_of"](model, X)
    assert scores.dtype == np.float32
    np.testing.assert_allclose(scores, model.decision_function(X), rtol=1e-5, atol=1e-5)


def test_the_table_of_decoders_is_what_predict_does(with_onnx):
    X, Y, X_new = (with_onnx[name] for name in ("X", "Y", "X_new"))
    likely = SetClassifier("f1", decoder="most_likely").fit(X, Y)
    scores = with_onnx["scores_of"](likely, X_new)
    decided = MostLikely(likely.space_).decode(scores)
    np.testing.assert_array_equal(decided, likely.predict(X_new))
    marginals = SetClassifier("f1", decoder="marginals").fit(X, Y)
    probability = marginals.space_.marginals(with_onnx["scores_of"](marginals, X_new))
    decided = MinimumRisk("f1").decode(np.clip(probability, 0.0, 1.0))
    np.testing.assert_array_equal(decided, marginals.predict(X_new))
    own = with_onnx["own_loss"]
    np.testing.assert_array_equal(with_onnx["scores_of"](own, X_new) > 0, own.predict(X_new))
    classes = with_onnx["classes"]
    best = with_onnx["scores_of"](classes, X_new).argmax(axis=1)
    np.testing.assert_array_equal(classes.classes_[best], classes.predict(X_new))
    for target in ("hamming", "subset"):
        plain = SetClassifier(target, "binary_relevance").fit(X, Y)
        signs = with_onnx["scores_of"](plain, X_new) > 0
        np.testing.assert_array_equal(signs, plain.predict(X_new))


def test_features_of_labels_are_part_of_the_matrix(with_onnx):
    X, Y = with_onnx["X"], with_onnx["Y"]
    features = np.random.default_rng(0).normal(size=(4, 2))
    model = SetClassifier("f1", label_features=features).fit(X, Y)
    plain = SimpleNamespace(coef_=features @ model.coef_, intercept_=features @ model.intercept_)
    scores = with_onnx["scores_of"](plain, X)
    np.testing.assert_allclose(scores, model.decision_function(X), rtol=1e-5, atol=1e-5)


def test_the_onnx_file_runs_elsewhere(with_onnx, folder):
    runtime = pytest.importorskip("onnxruntime")
    with_onnx["onnx"].checker.check_model(with_onnx["to_onnx"](with_onnx["model"]), full_check=True)
    session = runtime.InferenceSession(folder / "model.onnx", providers=["CPUExecutionProvider"])
    for rows in (with_onnx["X_new"], with_onnx["X_new"][:1]):
        (scores,) = session.run(["scores"], {"X": rows.astype(np.float32)})
        expected = with_onnx["model"].decision_function(rows)
        np.testing.assert_allclose(scores, expected, rtol=1e-5, atol=1e-5)
