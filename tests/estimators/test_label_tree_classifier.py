"""Trees over very many labels: what is listed is exact, what is outside is bounded."""

import tracemalloc
import warnings

import joblib
import numpy as np
import pytest
from scipy.sparse import csr_array, random_array
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

import setwise
from setwise import LabelTreeClassifier, SetClassifier
from setwise.blocks import MemoryBlocks
from setwise.estimators.label_tree import LabelTree, grown, search_rows
from setwise.targets import get_target
from tests.support.turns import in_turn

QUICK = {"max_leaves": 8, "arity": 4, "tol": 1e-3, "calibration": None}


def problem(n=200, n_features=20, n_labels=40, seed=0, cut=0.9):
    """Sparse inputs and the label sets that depend on them; some rows have none."""
    generator = np.random.default_rng(seed)
    X = random_array((n, n_features), density=0.3, random_state=generator, dtype=np.float32).tocsr()
    Y = csr_array((X @ generator.normal(size=(n_features, n_labels)) > cut).astype(np.uint8))
    return X, Y


X, Y = problem()


def unit_rows(inputs):
    """The rows divided by their lengths."""
    dense = inputs.toarray().astype(np.float64)
    length = np.linalg.norm(dense, axis=1, keepdims=True)
    return dense / np.where(length > 0, length, 1.0)


def every_probability(tree, inputs):
    """The product of the probabilities on the path of each label, one by one, (n, l)."""
    scores = inputs @ tree.weights.toarray() + tree.intercept
    found = np.empty((len(inputs), tree.n_labels))
    for leaf in np.flatnonzero(tree.label >= 0):
        node, p = leaf, np.ones(len(inputs))
        while node > 0:
            p, node = p * expit(scores[:, node]), tree.parents[node]
        found[:, tree.label[leaf]] = p
    return found


@pytest.mark.parametrize("unseen", [0.0, 0.1, 100.0])
@pytest.mark.parametrize("floor", [0.001, 0.05, 0.3])
def test_every_label_above_the_floor_is_listed_with_its_probability(floor, unseen):
    model = LabelTreeClassifier(floor=floor, at_least=1, unseen=unseen, **QUICK).fit(X, Y)
    given, expected = model.predict_distribution(X), every_probability(model.tree_, unit_rows(X))
    listed = given.probability.toarray()
    clear = np.abs(expected - floor) > 1e-6
    np.testing.assert_array_equal((listed > 0)[clear & (expected > floor)], True)
    outside = np.where(listed > 0, 0.0, expected)
    assert outside.max() <= floor + 1e-6
    np.testing.assert_allclose(listed[listed > 0], expected[listed > 0], atol=1e-5)
    total = outside.sum(axis=1)
    assert (given.least_tail <= total + 1e-5).all()
    assert (total <= given.most_tail + 1e-5).all()
    if unseen == 0.0:
        np.testing.assert_allclose(given.most_tail, given.least_tail)


def test_no_label_set_is_better_by_more_than_the_gap_says():
    few = csr_array(Y[:, :6])
    options = {
        "floor": 0.4,
        "at_least": 1,
        "unseen": 1.0,
        "calibration": None,
        "max_leaves": 2,
        "arity": 2,
    }
    model = LabelTreeClassifier("f1", **options).fit(X, few)
    p = every_probability(model.tree_, unit_rows(X))
    sets = np.array([[int(bit) for bit in f"{number:06b}"] for number in range(64)])
    f1 = 1.0 - np.array([get_target("f1").loss(sets, np.tile(row, (64, 1))) for row in sets])
    law = np.where(sets == 1, p[:, None], 1.0 - p[:, None]).prod(axis=2)
    expected = law @ f1
    taken = model.predict(X).toarray() @ (2 ** np.arange(5, -1, -1))
    regret = expected.max(axis=1) - expected[np.arange(len(p)), taken]
    assert regret.max() > 0.0
    assert (regret <= model.gap(X) + 1e-6).all()


def test_nodes_are_trained_to_the_minimum_on_the_rows_that_reach_their_parent():
    model = LabelTreeClassifier(penalty=0.3, least_weight=0.0, **QUICK).fit(X, Y)
    tree, inputs, known = model.tree_, unit_rows(X), Y.toarray()
    below = np.zeros((len(tree.label), Y.shape[1]), bool)
    for leaf in np.flatnonzero(tree.label >= 0):
        node = leaf
        while node >= 0:
            below[node, tree.label[leaf]] = True
            node = tree.parents[node]
    is_true = np.array([known[:, labels].any(axis=1) for labels in below])
    weights = tree.weights.toarray()
    for node in range(1, len(tree.label)):
        parent = tree.parents[node]
        rows = np.ones(len(inputs), bool) if parent == 0 else is_true[parent]
        truth = is_true[node, rows]
        if truth.all() or not truth.any():
            assert (weights[:, node] == 0).all()
            continue
        error = expit(inputs[rows] @ weights[:, node] + tree.intercept[node]) - truth
        slope = inputs[rows].T @ error + 0.3 * weights[:, node]
        rarer = min(truth.sum(), (~truth).sum())
        assert max(np.abs(slope).max(), abs(error.sum())) <= 1e-3 * rarer


def test_a_flat_tree_is_binary_relevance():
    flat = LabelTreeClassifier(
        max_leaves=40, penalty=2.0, least_weight=0.0, floor=1e-9, tol=1e-6, sparse_output=False,
        calibration=None,
    ).fit(X, Y)  # fmt: skip
    plain = SetClassifier(
        surrogate="binary_relevance", alpha=2.0 / X.shape[0], scaling="rows", tol=1e-6
    ).fit(X, Y)
    assert (flat.tree_.parents[1:] == 0).all()
    np.testing.assert_allclose(flat.predict_proba(X), plain.predict_proba(X), atol=1e-4)


def test_batches_of_labels_give_the_same_model():
    at_once, batched = (
        LabelTreeClassifier(max_leaves=100, memory=memory, tol=1e-6, least_weight=0.0).fit(*wide)
        for wide in [problem(n_labels=100, seed=3)]
        for memory in (1.0, 1e-6)
    )
    difference = at_once.tree_.weights - batched.tree_.weights
    assert np.abs(difference.data).max(initial=0.0) < 1e-3


def test_each_label_is_a_leaf_and_no_node_has_too_many_children():
    for n_labels in (1, 2, 5, 17, 100):
        inputs, sets = problem(n=50, n_labels=n_labels, seed=n_labels)
        first, label = grown(inputs, sets, np.ones(50), 4, 6, seed=1)
        assert sorted(label[label >= 0]) == list(range(n_labels))
        children = np.diff(first)
        parents = np.flatnonzero(children)
        last = label[first[parents]] >= 0
        assert children[parents[last]].max() <= 6
        assert children[parents[~last]].max(initial=0) <= 4
        assert first[0] == 1
        assert first[-1] == len(label)


def test_alike_labels_stand_together():
    generator = np.random.default_rng(0)
    sets = np.repeat(np.eye(4, dtype=np.uint8), 25, axis=0)
    truth = csr_array(np.kron(sets, np.ones((1, 8), np.uint8)))
    inputs = csr_array((sets + 0.01 * generator.random(sets.shape)).astype(np.float32))
    first, label = grown(inputs, truth, np.ones(100), 4, 8, seed=0)
    for node in range(1, 5):
        assert len(set(label[first[node] : first[node + 1]] // 8)) == 1


def test_weights_below_the_least_are_dropped():
    whole, few = (
        LabelTreeClassifier(least_weight=least, **QUICK).fit(X, Y) for least in (0.0, 0.5)
    )
    assert np.abs(few.tree_.weights.data).min() >= 0.5
    every, kept = (model.tree_.weights.toarray() for model in (whole, few))
    np.testing.assert_array_equal(np.where(np.abs(every) >= 0.5, every, 0), kept)
    assert few.density_ < whole.density_


def test_rows_list_at_least_so_many_labels_and_enough_for_the_target():
    model = LabelTreeClassifier(floor=0.9, at_least=3, **QUICK).fit(X, Y)
    assert np.diff(model.predict_proba(X).indptr).min() >= 3
    several = model.for_target("precision@12")
    assert (several.predict(X).sum(axis=1) == 12).all()
    assert several.gap(X).max() == 0.0


def test_a_row_of_weight_three_is_as_three_rows_and_one_of_weight_zero_is_not_there():
    weights = np.random.default_rng(0).integers(0, 4, X.shape[0])
    rows = np.repeat(np.arange(X.shape[0]), weights)
    options = QUICK | {"tol": 1e-5, "least_weight": 0.0}
    one = LabelTreeClassifier(**options).fit(X, Y, weights)
    other = LabelTreeClassifier(**options).fit(X[rows], Y[rows])
    np.testing.assert_array_equal(one.tree_.label, other.tree_.label)
    difference = one.predict_proba(X) - other.predict_proba(X)
    assert np.abs(difference.data).max(initial=0.0) < 1e-2


def test_the_seed_decides_the_tree_and_nothing_else_does():
    one, two = (LabelTreeClassifier(random_state=4, **QUICK).fit(X, Y) for _ in range(2))
    other = LabelTreeClassifier(random_state=5, **QUICK).fit(X, Y)
    np.testing.assert_array_equal(one.tree_.weights.toarray(), two.tree_.weights.toarray())
    assert not np.array_equal(one.tree_.label, other.tree_.label)


def test_no_array_of_rows_by_labels_is_made():
    # (Many rows: what is learnt has a share for each label, and takes the time.)
    n, n_labels = 3000, 800
    inputs, sets = problem(n, 50, n_labels, cut=6.5)
    assert sets.nnz < 20 * n
    model = LabelTreeClassifier(memory=0.002, tol=0.1, max_leaves=64)
    # (What is compiled and imported is not counted.)
    model.fit(inputs[:300], sets[:300]).score(inputs[:300], sets[:300])
    for work in (lambda: model.fit(inputs, sets), lambda: model.predict(inputs)):
        tracemalloc.start()
        work()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < n * n_labels * 4


@pytest.mark.parametrize("target", ["f1", "jaccard", "precision@3", "hamming", "macro_f1"])
def test_saved_and_loaded_models_predict_the_same(target, tmp_path):
    model = LabelTreeClassifier(target, **QUICK).fit(X, Y)
    model.save(tmp_path / "tree.skops")
    again = setwise.load(tmp_path / "tree.skops")
    np.testing.assert_array_equal(again.predict(X).toarray(), model.predict(X).toarray())
    assert again.guarantee_ == model.guarantee_
    assert again.score(X, Y) == model.score(X, Y) > 0.2


def test_one_kernel_serves_places_of_any_type_and_models_that_cannot_be_written(tmp_path):
    """To compile another takes longer than most fits."""
    model = LabelTreeClassifier(**QUICK).fit(X, Y)
    expected, kinds = model.predict(X).toarray(), len(search_rows.signatures)
    wide = X.copy()
    wide.indptr, wide.indices = (part.astype(np.int64) for part in (X.indptr, X.indices))
    np.testing.assert_array_equal(model.predict(wide).toarray(), expected)
    joblib.dump(model, tmp_path / "model")
    read = joblib.load(tmp_path / "model", mmap_mode="r")
    assert not read.tree_.first.flags.writeable
    np.testing.assert_array_equal(read.predict(X).toarray(), expected)
    assert len(search_rows.signatures) == kinds


def test_a_tree_that_goes_round_in_circles_is_refused():
    tree = LabelTreeClassifier(**QUICK).fit(X, Y).tree_
    parts = {name: getattr(tree, name) for name in ("label", "weights", "intercept", "company")}
    for first in (tree.first - 1, tree.first[:-1], np.zeros_like(tree.first), tree.first[::-1]):
        with pytest.raises(ValueError, match="numbered level by level"):
            LabelTree(first, **parts)


def test_targets_of_all_rows_together_are_fitted_to_rows_held_out():
    model = LabelTreeClassifier("macro_f1", **QUICK).fit(X, Y)
    assert "fitted to 40 rows" in model.guarantee_
    assert "each row was predicted by a model that was not trained on it" in model.guarantee_
    plain = LabelTreeClassifier("f1", **QUICK).fit(X, Y)
    assert model.score(X, Y) > plain.for_target("macro_f1").score(X, Y) - 0.1
    assert plain.for_target("macro_f1").depends_on_batch_
    assert not model.for_target("micro_f1").depends_on_batch_
    with pytest.raises(ValueError, match="gap is of label sets that are decided row by row"):
        model.gap(X)


def test_calibration_makes_the_expected_number_of_true_labels_right():
    """Of weak penalties on many features, trees are too sure of themselves."""
    inputs, sets = problem(900, 300, 60, seed=5, cut=3.0)
    train, test = slice(0, 600), slice(600, 900)
    options = {"max_leaves": 8, "penalty": 0.01, "floor": 0.05, "at_least": 1}
    raw, right = (
        LabelTreeClassifier(calibration=how, **options).fit(inputs[train], sets[train])
        for how in (None, "held_out")
    )
    np.testing.assert_array_equal(raw.tree_.weights.toarray(), right.tree_.weights.toarray())
    expected, truth = [], sets[test].sum(axis=1)
    for model in (raw, right):
        given = model.predict_distribution(inputs[test])
        expected.append((given.probability.sum(axis=1) + given.tail).mean())
        assert (given.least_tail <= given.tail + 1e-12).all()
    assert abs(expected[1] - truth.mean()) < 0.5 * abs(expected[0] - truth.mean())
    first = [model.predict_proba(inputs[test]).argmax(axis=1) for model in (raw, right)]
    np.testing.assert_array_equal(*first)
    assert right.score(inputs[test], sets[test]) > raw.score(inputs[test], sets[test])


def test_groups_are_held_out_whole_and_repeated_rows_do_not_make_it_certain():
    """Rows that are there thrice are known by heart: only new ones say how right a tree is."""
    inputs, sets = problem(500, 300, 40, seed=7, cut=2.5)
    flips = random_array(sets.shape, density=0.03, rng=np.random.default_rng(1)).tocsr() > 0
    sets = csr_array((sets != flips).astype(np.uint8))
    train, test = np.tile(np.arange(200), 3), slice(200, 500)
    options = {"max_leaves": 8, "penalty": 0.01, "floor": 0.05, "at_least": 1}
    surprise, slopes = [], []
    for groups in (None, train):
        model = LabelTreeClassifier(**options).fit(inputs[train], sets[train], groups=groups)
        listed = model.predict_distribution(inputs[test]).probability.toarray().astype(float)
        p, true = listed[listed > 0], sets[test].toarray()[listed > 0]
        surprise.append(-np.log(np.where(true, p, 1.0 - p)).mean())
        slopes.append(model.calibration_[0])
    assert surprise[1] < 0.7 * surprise[0]
    assert slopes[1] < 0.5 * slopes[0]
    with pytest.raises(ValueError, match="groups"):
        LabelTreeClassifier().fit(inputs[train], sets[train], groups=train[:-1])


def test_a_fit_that_is_cut_off_leaves_the_model_as_it_was(monkeypatch):
    def cut_off(*_):
        raise KeyboardInterrupt

    model = LabelTreeClassifier(max_leaves=8).fit(X, Y)
    before = model.predict_proba(X)
    monkeypatch.setattr(LabelTreeClassifier, "_trained", cut_off)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X[:, :7], Y[:, :9])
    assert (model.predict_proba(X) != before).nnz == 0


def test_names_of_labels_and_lists_are_taken():
    names = [[f"label {label}" for label in row.indices] for row in Y]
    model = LabelTreeClassifier(**QUICK).fit(X, names)
    assert model.classes_[0] == "label 0"
    assert set(model.predict_sets(X)[0]) <= set(model.classes_)


def test_labels_and_rows_without_any_are_learnt():
    sets = Y.tolil()
    sets[:, 7] = 0
    sets[:20] = 0
    model = LabelTreeClassifier(**QUICK).fit(X, csr_array(sets))
    assert model.predict(X)[:, [7]].sum() == 0
    none = LabelTreeClassifier(**QUICK).fit(X, csr_array(Y.shape, dtype=np.uint8))
    assert none.predict(X).nnz == 0


@in_turn(
    ("options", "message"),
    [
        ({"arity": 1}, "arity"),
        ({"floor": 0.0}, "floor"),
        ({"floor": 2.0}, "floor"),
        ({"penalty": -1.0}, "penalty"),
        ({"memory": 0}, "memory"),
        ({"unseen": -1.0}, "unseen"),
        ({"calibration": "sigmoid"}, "calibration"),
        ({"scaling": "standard"}, "scaling"),
        ({"validation_fraction": 1.0}, "validation_fraction"),
        ({"decoder": "most_likely"}, "decoder"),
        ({"n_jobs": 0}, "n_jobs"),
    ],
)
def test_bad_settings_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        LabelTreeClassifier("macro_f1" if "decoder" in options else "f1", **options).fit(X, Y)


@pytest.mark.parametrize("target", ["precision_samples", "recall_samples", "precision@41"])
def test_what_shortlists_cannot_decide_is_refused_before_anything_is_trained(target, monkeypatch):
    fitted = LabelTreeClassifier(**QUICK).fit(X, Y)
    monkeypatch.setattr(LabelTreeClassifier, "_trained", None)
    message = "every label|at least 41 labels"
    with pytest.raises(ValueError, match=message):
        LabelTreeClassifier(target, **QUICK).fit(X, Y)
    with pytest.raises(ValueError, match=message):
        fitted.for_target(target)


def test_bad_data_is_refused():
    with pytest.raises(ValueError, match="decoder must be one of 'auto', 'minimum_risk'"):
        LabelTreeClassifier("f1", "thresholds").fit(X, Y)
    model = LabelTreeClassifier(**QUICK)
    with pytest.raises(NotFittedError):
        model.predict(X)
    with pytest.raises(ValueError, match="rows"):
        model.fit(X, Y[:-1])
    tree = LabelTreeClassifier(setwise.targets.TreeDistance([-1] + 39 * [0]))
    closed = np.maximum(Y.toarray(), np.eye(40, dtype=np.uint8)[0])
    with pytest.raises(ValueError, match="hierarchy"):
        tree.fit(X, closed)
    with pytest.raises(ValueError, match="at least one non-zero"):
        model.fit(X, Y, np.zeros(X.shape[0]))
    fitted = model.fit(X, Y)
    with pytest.raises(ValueError, match="features"):
        fitted.predict(X[:, :-1])


def test_rows_that_list_more_labels_are_as_certain_as_what_they_list():
    model = LabelTreeClassifier("precision@5", floor=0.4, at_least=1, max_leaves=8).fit(X, Y)
    given = model.predict_distribution(X)
    assert given.floor.min() < given.floor.max()
    most = np.asarray(given.probability.max(axis=1).toarray()).ravel()
    assert (given.floor <= most + 1e-6).all()
    np.testing.assert_array_equal(model.gap(X), 0.0)


def test_the_guarantee_names_the_floor_of_the_probabilities_as_they_are_decided_by():
    model = LabelTreeClassifier("hamming", floor=0.45, max_leaves=8, calibration=None).fit(X, Y)
    assert "gap" not in model.guarantee_
    model.calibration_ = (1.0, 2.0, 1.0)
    assert "`gap(X)` says" in model.guarantee_


def test_inputs_beyond_single_precision_are_scaled_first_or_refused():
    plain = X.astype(np.float64)
    large = plain * 2.0**200
    one, other = (
        LabelTreeClassifier(**QUICK).fit(inputs, Y).predict_proba(inputs)
        for inputs in (plain, large)
    )
    np.testing.assert_array_equal(one.toarray(), other.toarray())
    with pytest.raises(ValueError, match="single precision"):
        LabelTreeClassifier(scaling=None, **QUICK).fit(large, Y)


def test_a_generator_is_asked_for_one_seed_a_fit():
    options = {**QUICK, "calibration": "held_out"}
    drawn = int(np.random.RandomState(3).randint(2**31 - 1))
    one, other = (
        LabelTreeClassifier(**options, random_state=seed).fit(X, Y).predict_proba(X)
        for seed in (np.random.RandomState(3), drawn)
    )
    assert (one != other).nnz == 0


def test_a_solver_that_stops_early_says_so_once():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        LabelTreeClassifier(max_leaves=8, max_iter=1, tol=1e-8, calibration=None).fit(X, Y)
    assert [entry.category for entry in caught] == [ConvergenceWarning]


@parametrize_with_checks([LabelTreeClassifier(sparse_output=False, least_weight=0.0, tol=1e-8)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("form", [csr_array, np.asarray])
def test_blocks_are_gathered_and_give_the_same_tree(form):
    weights = np.random.default_rng(3).integers(0, 3, X.shape[0]).astype(float)
    inputs = form(X) if form is csr_array else X.toarray()
    whole = LabelTreeClassifier(**QUICK).fit(inputs, Y, weights)
    blocks = MemoryBlocks.of(inputs, Y, weights, rows=70)
    cut = LabelTreeClassifier(**QUICK).fit(blocks)
    assert (cut.predict(X) != whole.predict(X)).nnz == 0
    np.testing.assert_array_equal(cut.tree_.weights.toarray(), whole.tree_.weights.toarray())
    with pytest.raises(ValueError, match="takes no y"):
        LabelTreeClassifier().fit(blocks, Y)
