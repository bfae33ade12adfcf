"""SetClassifier for tree distance: closed predictions of least expected distance, true claims."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import setwise
from setwise import SetClassifier, SetClassifierCV, Taxonomy
from setwise.estimators.training import Objective
from setwise.spaces import Catalog, Cube, Forest, Paths
from setwise.targets import TreeDistance
from tests.support import cases
from tests.support.command import run
from tests.support.examples import generators

SURROGATES = [
    "likelihood", "binary_relevance", "logistic", "sum_exponential", "generalized_cross_entropy",
    "mean_absolute_error", "constrained_exponential",
]  # fmt: skip
KINDS = {"closed": cases.hierarchy, "paths": cases.paths, "leaf paths": cases.leaf_paths}
ANIMALS = Taxonomy.from_paths(
    ["animals", "animals/mammals", "animals/birds", "plants", "plants/trees"]
)
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def drawn(taxonomy, kind="closed", n_rows=60, seed=0):
    """Features, and the most likely sets of noisy linear scores."""
    rng = np.random.default_rng(seed)
    space = Forest(taxonomy, closed=True) if kind == "closed" else Paths(taxonomy)
    X = rng.normal(size=(n_rows, 3))
    scores = X @ rng.normal(size=(3, taxonomy.n_labels)) + rng.normal(size=(n_rows, 1))
    return X, space.most_likely(scores + 0.3 * rng.normal(size=scores.shape)).astype(int)


@pytest.mark.parametrize("surrogate", SURROGATES)
@settings(max_examples=6)
@given(rng=generators(), kind=st.sampled_from(["closed", "paths"]), n_labels=st.integers(2, 9))
def test_every_prediction_is_closed(surrogate, rng, kind, n_labels):
    parents = cases.hierarchy(n_labels, rng).arguments["parents"]
    taxonomy = Taxonomy.from_parents(parents, lengths=rng.uniform(0.2, 3.0, n_labels))
    X, Y = drawn(taxonomy, kind, 25, int(rng.integers(1000)))
    model = SetClassifier(TreeDistance(taxonomy), surrogate, max_iter=30).fit(X, Y)
    assert taxonomy.is_closed(model.predict(10.0 * rng.normal(size=(50, 3)))).all()
    model = SetClassifier(TreeDistance(taxonomy), surrogate, decoder="marginals", max_iter=5)
    assert taxonomy.is_closed(model.fit(X, Y).predict(rng.normal(size=(20, 3)))).all()


@pytest.mark.parametrize("space", ["closed", "paths", "catalog", "sized", "cube", "forest"])
def test_predicted_is_the_closed_set_of_least_expected_distance(space):
    X, Y = drawn(ANIMALS, "paths")
    lengths = np.array([0.5, 2.0, 1.0, 1.5, 0.3])
    model = SetClassifier(TreeDistance(ANIMALS, lengths), space=space, alpha=0.1).fit(X, Y)
    closed = Forest(ANIMALS, closed=True).enumerate()
    probability = model.predict_proba(X)
    differ = probability[:, None] * (1 - closed) + (1 - probability[:, None]) * closed
    risk = differ @ lengths
    chosen = model.predict(X)
    place = (chosen[:, None] == closed).all(axis=2).argmax(axis=1)
    assert (closed[place] == chosen).all()
    np.testing.assert_allclose(risk[np.arange(len(X)), place], risk.min(axis=1), atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@given(rng=generators(), n_labels=st.integers(2, 9))
def test_the_likelihood_is_the_enumerated_one(kind, rng, n_labels):
    case = KINDS[kind](n_labels, rng)
    space = type(case.space)(case.arguments["parents"], **{
        name: case.arguments[name] for name in ("closed", "leaves_only") if name in case.arguments
    })  # fmt: skip
    y_true = case.oracle.sets[rng.integers(case.oracle.size, size=7)].astype(np.uint8)
    scores, weights, rows = rng.normal(size=(7, n_labels)), rng.random(7), slice(0, 7)
    value, gradient, by_parameter = Objective(None, space, y_true, weights).sums(
        rows, scores, np.empty(0)
    )
    signs, true = 2.0 * case.oracle.sets - 1.0, 2.0 * y_true - 1.0
    mass = np.exp(scores @ signs.T)
    log_probability = (true * scores).sum(axis=1) - np.log(mass.sum(axis=1))
    mean = mass @ signs / mass.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(value, -weights @ log_probability, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(gradient, weights[:, None] * (mean - true), rtol=1e-9, atol=1e-12)
    assert len(by_parameter) == 0


@pytest.mark.parametrize("kind", ["closed", "paths"])
def test_training_begins_where_labels_are_as_frequent_as_in_the_rows(kind):
    Y = np.repeat(drawn(ANIMALS, kind)[1].astype(np.uint8), 1000, axis=0)
    space = Forest(ANIMALS, closed=True) if kind == "closed" else Paths(ANIMALS)
    start = Objective(None, space, Y, np.ones(len(Y))).start()
    np.testing.assert_allclose(space.marginals(start[None])[0], Y.mean(axis=0), atol=1e-3)


def test_the_space_follows_the_label_sets():
    X, paths = drawn(ANIMALS, "paths")
    several = paths.copy()
    several[0] = 1
    target = TreeDistance(ANIMALS)
    for surrogate in ("likelihood", "logistic", "constrained_exponential"):
        assert isinstance(SetClassifier(target, surrogate).fit(X, paths).space_, Paths)
        found = SetClassifier(target, surrogate).fit(X, several).space_
        assert isinstance(found, Forest)
        assert found.closed
    assert isinstance(SetClassifier(target, space="closed").fit(X, paths).space_, Forest)
    with pytest.raises(ValueError, match="row 0 is not in Paths"):
        SetClassifier(target, space="paths").fit(X, several)


@pytest.mark.parametrize("surrogate", ["likelihood", "mean_absolute_error"])
def test_potentials_of_closed_sets_stay_as_they_are(surrogate):
    X, Y = drawn(ANIMALS)
    given_potentials = np.random.default_rng(1).normal(size=(5, 2, 2))
    space = Forest(ANIMALS, given_potentials, closed=True)
    model = SetClassifier(TreeDistance(ANIMALS), surrogate, space).fit(X, Y)
    np.testing.assert_array_equal(model.space_.potentials, space.potentials)


def test_fixed_potentials_change_intercepts_only():
    """They add to what labels weigh, so the law learnt is the same."""
    X, Y = drawn(ANIMALS)
    potentials = np.random.default_rng(1).normal(size=(5, 2, 2))
    plain, other = (
        SetClassifier(TreeDistance(ANIMALS), space=space, alpha=0.1, tol=1e-7).fit(X, Y)
        for space in (Forest(ANIMALS, closed=True), Forest(ANIMALS, potentials, closed=True))
    )
    np.testing.assert_allclose(plain.predict_proba(X), other.predict_proba(X), atol=1e-5)
    np.testing.assert_allclose(plain.coef_, other.coef_, atol=1e-5)


def test_what_is_said_to_be_guaranteed():
    (X, closed), (_, paths) = drawn(ANIMALS), drawn(ANIMALS, "paths")
    target = TreeDistance(ANIMALS)

    def said(surrogate, Y):
        return SetClassifier(target, surrogate).fit(X, Y).guarantee_

    for surrogate in ("logistic", "generalized_cross_entropy", "mean_absolute_error"):
        assert said(surrogate, paths).startswith("Consistent")
    assert said("mean_absolute_error", closed).startswith("Consistent")
    assert said("likelihood", closed).startswith("Predictions are best for TreeDistance")
    for surrogate in ("logistic", "generalized_cross_entropy", "constrained_exponential"):
        words = said(surrogate, closed)
        assert words.startswith("No theorem")
        assert "counterexample over three labels" in words


def test_label_sets_that_are_not_closed_are_refused_with_what_they_lack():
    X, Y = drawn(ANIMALS)
    Y[:5] = 0
    Y[3, 4] = 1
    for model in (SetClassifier, SetClassifierCV):
        with pytest.raises(ValueError, match="row 3 of y has 'plants/trees' without 'plants'"):
            model(TreeDistance(ANIMALS)).fit(X, Y)
    model = SetClassifier(TreeDistance(ANIMALS)).fit(X, ANIMALS.close(Y))
    assert model.predict(X).shape == Y.shape
    weights = np.ones(len(X))
    weights[3] = 0.0
    SetClassifier(TreeDistance(ANIMALS)).fit(X, Y, weights)


def test_names_are_closed_to_label_sets():
    expected = [[1, 1, 0, 0, 0], [0, 0, 0, 1, 1]]
    assert ANIMALS.close([["animals/mammals"], ["plants/trees"]]).tolist() == expected
    assert ANIMALS.close(["animals/mammals", "plants/trees"]).tolist() == expected
    with pytest.raises(ValueError, match="not among the labels: 'fungi'"):
        ANIMALS.close([["fungi"]])


def test_labels_of_y_and_taxonomy_must_be_the_same():
    pandas = pytest.importorskip("pandas")
    X, Y = drawn(ANIMALS)
    frame = pandas.DataFrame(Y, columns=ANIMALS.names)
    target = TreeDistance(ANIMALS)
    assert (SetClassifier(target).fit(X, frame).classes_ == ANIMALS.names).all()
    turned = frame[frame.columns[::-1]]
    with pytest.raises(ValueError, match="columns of y must be in the order of the labels"):
        SetClassifier(target).fit(X, turned)
    ordered = TreeDistance(ANIMALS.over(turned.columns))
    found = SetClassifier(ordered).fit(X, turned).predict(X)
    assert (found[:, ::-1] == SetClassifier(target).fit(X, frame).predict(X)).all()
    with pytest.raises(ValueError, match=r"y must have .* 5 columns"):
        SetClassifier(target).fit(X, Y[:, :4])
    with pytest.raises(ValueError, match="one class for each row"):
        SetClassifier(target).fit(X, ANIMALS.names[Y[:, 3]])


@pytest.mark.parametrize(
    "space", [Cube(5), "cube", "sized", Catalog(np.eye(5, dtype=int)), Paths([-1, -1, 0, 0, 0])],
    ids=str,
)  # fmt: skip
def test_what_may_predict_open_sets_is_refused(space):
    X, Y = drawn(ANIMALS)
    with pytest.raises(ValueError, match="need not be closed"):
        SetClassifier(TreeDistance(ANIMALS), "logistic", space).fit(X, Y)


def test_spaces_of_a_taxonomy_need_one():
    X, Y = drawn(ANIMALS)
    with pytest.raises(ValueError, match="space='closed' is made from the taxonomy"):
        SetClassifier("f1", space="closed").fit(X, Y)
    model = SetClassifier("f1", space=Forest(ANIMALS, closed=True)).fit(X, Y)
    assert ANIMALS.is_closed(model.for_target(TreeDistance(ANIMALS)).predict(X)).all()


def test_missing_features_are_refused_as_elsewhere():
    X, Y = drawn(ANIMALS)
    X[4, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        SetClassifier(TreeDistance(ANIMALS)).fit(X, Y)


@pytest.mark.parametrize(("kind", "first"), [("closed", "closed"), ("paths", "paths")])
def test_folds_choose_among_the_space_of_the_taxonomy_and_the_list(kind, first):
    X, Y = drawn(ANIMALS, kind)
    model = SetClassifierCV(TreeDistance(ANIMALS), alphas=[0.1, 0.01], cv=3).fit(X, Y)
    assert [row["space"] for row in model.cv_results_[::2]] == [first, "catalog"]
    assert ANIMALS.is_closed(model.predict(X)).all()


def test_a_saved_classifier_knows_its_taxonomy(tmp_path):
    X, Y = drawn(ANIMALS)
    model = SetClassifier(TreeDistance(ANIMALS)).fit(X, Y)
    model.save(tmp_path / "model.skops")
    again = setwise.load(tmp_path / "model.skops")
    assert (again.predict(X) == model.predict(X)).all()
    assert again.target_.taxonomy.names.tolist() == ANIMALS.names.tolist()


def test_methods_of_studies_that_know_the_target_predict_closed_sets():
    from setwise.study.methods import METHODS, Question

    X, Y = drawn(ANIMALS, "paths")
    question = Question(TreeDistance(ANIMALS), 0, len(X), False)
    for name in ("auto", "binary_relevance", "logistic", "mean_absolute_error", "catalog"):
        model = METHODS[name].make(question).fit(X, Y)
        assert ANIMALS.is_closed(model.predict(X)).all(), name


def test_the_command_learns_from_a_file_with_a_hierarchy(tmp_path, capfd):
    X, Y = drawn(ANIMALS, "paths")
    ends = [ANIMALS.names[row.nonzero()[0][-1]] for row in Y]
    lines = ["@relation life", *(f"@attribute x{i} numeric" for i in range(3))]
    lines += [f"@attribute class hierarchical {','.join(ANIMALS.names)}", "@data"]
    lines += [",".join([*map(str, row), end]) for row, end in zip(X, ends, strict=True)]
    (tmp_path / "life.arff").write_text("\n".join(lines))
    words = ("fit", tmp_path / "life.arff", "--target", "tree", "--no-cv")
    status, out, _ = run(capfd, *words, "-o", tmp_path / "model.skops")
    assert status == 0
    assert "likelihood on Paths of 5 labels" in out
    model = setwise.load(tmp_path / "model.skops").model
    assert ANIMALS.is_closed(model.predict(X)).all()
