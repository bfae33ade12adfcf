"""A fit on blocks is the fit in memory, whatever the blocks are."""

from __future__ import annotations

import numpy as np
import pandas
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold

from setwise import (
    CatalogClassifier,
    LabelTreeClassifier,
    SetBooster,
    SetClassifier,
    SetClassifierCV,
    SetEnsemble,
    TargetDecoder,
    get_target,
)
from setwise.blocks import Block, MemoryBlocks
from setwise.blocks.memory import Whole
from setwise.estimators import block_folds
from setwise.estimators.block_folds import BlockFolds
from setwise.estimators.blocked import BlockRows
from setwise.estimators.checkpoint import Lasting
from setwise.estimators.moments import moments, products
from setwise.estimators.seen import Seen
from setwise.estimators.solver import Fitting, _Search
from setwise.labels import LabelNames
from setwise.targets import TreeDistance

SETTINGS = (
    {},
    {"space": "sized"},
    {"space": "joint"},
    {"space": "forest"},
    {"space": "backoff", "scaling": "rows"},
    {"surrogate": "logistic", "scaling": "standard"},
    {"surrogate": "generalized_cross_entropy", "target": "jaccard"},
    {"surrogate": "constrained_exponential", "target": "hamming"},
    {"fit_intercept": False, "space": "cube"},
)


def drawn(seed, n=90, d=5, n_labels=4):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.6)
    noise = rng.normal(size=(n, n_labels))
    Y = (X @ rng.normal(size=(d, n_labels)) + noise > 0.7).astype(np.uint8)
    return X, Y


def blocks_of(X, Y, *ends, weights=None, names=None):
    n = Y.shape[0]
    whole = Block(X, Y, np.ones(n) if weights is None else weights)
    parts = [whole.take(slice(*pair)) for pair in zip((0, *ends), (*ends, n), strict=True)]
    names = LabelNames(np.arange(Y.shape[1])) if names is None else names
    return MemoryBlocks(names, X.shape[1], blocks=parts)


def same(one, other):
    np.testing.assert_array_equal(one.coef_, other.coef_)
    np.testing.assert_array_equal(one.intercept_, other.intercept_)
    np.testing.assert_array_equal(one.space_.parameters, other.space_.parameters)


@pytest.mark.parametrize("form", [np.asarray, csr_array])
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_one_block_is_the_fit_in_memory_to_the_last_bit(settings, form):
    X, Y = drawn(0)
    model = SetClassifier(**settings)
    same(model.fit(form(X), Y), SetClassifier(**settings).fit(blocks_of(form(X), form(Y))))
    assert isinstance(model.guarantee_, str)


@pytest.mark.parametrize("settings", [*SETTINGS, {"surrogate": "binary_relevance"}], ids=str)
def test_the_same_blocks_give_the_same_bits_and_others_the_same_model(settings):
    X, Y = drawn(1)
    settings = {"tol": 1e-7, **settings}
    cut = blocks_of(csr_array(X), csr_array(Y), 20, 21, 70)
    one = SetClassifier(**settings, n_jobs=1).fit(cut)
    same(one, SetClassifier(**settings, n_jobs=3).fit(cut))
    whole = SetClassifier(**settings).fit(csr_array(X), Y)
    np.testing.assert_allclose(one.coef_, whole.coef_, atol=1e-3)
    np.testing.assert_allclose(one.objective_, whole.objective_, rtol=1e-6)


def test_empty_blocks_and_rows_of_no_weight_are_as_if_not_there():
    X, Y = drawn(2)
    weights = np.random.default_rng(2).integers(0, 3, len(Y)).astype(float)
    kept = weights > 0
    plain = SetClassifier().fit(X[kept], Y[kept], weights[kept])
    same(plain, SetClassifier().fit(blocks_of(X, Y, weights=weights)))
    odd = blocks_of(X, Y, 0, 0, 50, 50, len(Y), weights=weights)
    np.testing.assert_allclose(SetClassifier().fit(odd).coef_, plain.coef_, atol=1e-9)


def test_an_empty_block_may_hold_its_inputs_in_another_way():
    X, Y = drawn(2)
    for full, form in ((X, csr_array), (csr_array(X), np.asarray)):
        plain = blocks_of(full, Y)
        nothing = Block(form(X[:0]), Y[:0], np.ones(0))
        mixed = MemoryBlocks(plain.names, 5, blocks=[*plain.blocks, nothing])
        same(SetClassifier().fit(mixed), SetClassifier().fit(plain))
        settings = {"alphas": [0.1, 0.01], "spaces": ["sized"]}
        searched = (SetClassifierCV(**settings).fit(blocks) for blocks in (mixed, plain))
        same(*(search.best_estimator_ for search in searched))


def test_blocks_of_one_row_and_labels_in_one_block_only():
    X, Y = drawn(3, n=24)
    Y[:18, 2] = 0
    Y[:6] = 0
    plain = SetClassifier(tol=1e-6).fit(X, Y)
    for blocks in (MemoryBlocks.of(X, Y, rows=1), blocks_of(X, Y, 6, 18)):
        np.testing.assert_allclose(
            SetClassifier(tol=1e-6).fit(blocks).coef_, plain.coef_, atol=1e-5
        )


def test_classes_of_a_one_dimensional_y():
    X, _ = drawn(4)
    y = np.where(X[:, 0] > 0, "up", "down")
    plain = SetClassifier("hamming").fit(X, y)
    cut = SetClassifier("hamming").fit(MemoryBlocks.of(X, y, rows=40))
    np.testing.assert_allclose(cut.coef_, plain.coef_, atol=1e-8)
    assert cut.predict(X).tolist() == plain.predict(X).tolist()


@pytest.mark.parametrize("form", [np.asarray, csr_array])
def test_moments_are_those_of_all_rows(form):
    X, Y = drawn(5)
    X[:, 2] += 1e3
    weights = np.random.default_rng(5).random(len(Y))
    mass, mean = weights.sum(), weights @ X / weights.sum()
    away = X - mean
    for rows in (Whole(Block(form(X), Y, weights)), MemoryBlocks.of(form(X), Y, weights, rows=7)):
        found = moments(rows, mass)
        np.testing.assert_allclose(found[0], mean)
        np.testing.assert_allclose(found[1], weights @ away**2 / mass)
        product = rows.sum(products, mean)[0] / mass
        np.testing.assert_allclose(product, away.T @ (away * weights[:, None]) / mass, atol=1e-6)


@pytest.mark.parametrize("n_labels", [11, 700])
def test_the_catalog_of_seen_sets_is_that_of_all_rows(n_labels):
    rng = np.random.default_rng(6)
    Y, weights = (rng.random((200, n_labels)) < 2.2 / n_labels).astype(np.uint8), rng.random(200)
    sets, place, counts = np.unique(Y, axis=0, return_inverse=True, return_counts=True)
    for form in (np.asarray, csr_array):
        parts = [Seen.of(form(Y[a : a + 30]), weights[a : a + 30]) for a in range(0, 200, 30)]
        seen = sum(parts[1:], parts[0])
        np.testing.assert_array_equal(seen.sets.toarray(), sets)
        np.testing.assert_array_equal(seen.counts, counts)
        np.testing.assert_allclose(seen.weights, np.bincount(place.ravel(), weights))


def refused(words, blocks, **settings):
    model = SetClassifier(**settings)
    with pytest.raises(ValueError, match=words):
        model.fit(blocks)
    assert not hasattr(model, "coef_")


def test_blocks_that_cannot_be_trained_on_are_refused_by_number():
    X, Y = drawn(7)
    ones, bad = np.ones(30), X[:30].copy()
    bad[:, 0] = np.nan
    good = Block(X[:30], Y[:30], ones)

    def with_bad(**changed):
        return MemoryBlocks(LabelNames(range(4)), 5, blocks=[good, good._replace(**changed)])

    refused(r"block 1: X has the shape \(30, 3\), but \(30, 5\)", with_bad(inputs=X[:30, :3]))
    refused(r"block 1: Y has the shape \(29, 4\)", with_bad(sets=Y[:29]))
    refused("block 1: X has the type int64", with_bad(inputs=np.ones((30, 5), np.int64)))
    refused("block 1: X must be finite .* but that is not so of 30 values", with_bad(inputs=bad))
    refused("block 1: Y must hold only 0 and 1", with_bad(sets=2 * np.ones((30, 4))))
    refused("block 1: weights must be finite", with_bad(weights=-ones))
    refused("all blocks must hold X alike", with_bad(inputs=csr_array(X[:30])))
    refused("all blocks must hold X alike", with_bad(inputs=X[:30].astype(np.float32)))
    refused("a row of positive weight", blocks_of(X, Y, weights=np.zeros(90)))
    refused("not trained on blocks", blocks_of(X, Y), surrogate="metro", target="macro_f1")
    with pytest.raises(ValueError, match="takes no y"):
        SetClassifier().fit(blocks_of(X, Y), Y)


def test_tree_distance_asks_for_closed_sets_of_its_own_labels():
    X, Y = drawn(8, n_labels=3)
    target = TreeDistance([-1, 0, 0])
    refused(
        "block|closed", blocks_of(X, np.eye(3, dtype=np.uint8)[np.arange(90) % 3]), target=target
    )
    Y[:, 0] |= Y[:, 1] | Y[:, 2]
    cut = SetClassifier(target).fit(blocks_of(X, Y, 40))
    np.testing.assert_allclose(cut.coef_, SetClassifier(target).fit(X, Y).coef_, atol=1e-5)


def test_an_interrupted_fit_goes_on_from_its_last_solution(tmp_path, monkeypatch):
    X, Y = drawn(9, n=200)
    kept, blocks = tmp_path / "fit.npz", blocks_of(X, Y, 80)
    settings = {"space": "sized", "scaling": "standard", "alpha": 1e-5, "tol": 1e-9}
    whole = SetClassifier(**settings).fit(blocks, checkpoint=kept)
    assert not kept.exists()
    passes = 0
    plain = MemoryBlocks.sum

    def counted(self, function, *parameters):
        nonlocal passes
        passes += 1
        if passes == whole.n_iter_:
            raise KeyboardInterrupt
        return plain(self, function, *parameters)

    monkeypatch.setattr(MemoryBlocks, "sum", counted)
    model = SetClassifier(**settings)
    with pytest.raises(KeyboardInterrupt):
        model.fit(blocks, checkpoint=kept)
    assert kept.exists()
    assert not hasattr(model, "coef_")
    monkeypatch.undo()
    model.fit(blocks, checkpoint=kept)
    assert model.n_iter_ < 0.8 * whole.n_iter_
    assert model.objective_ == pytest.approx(whole.objective_, rel=1e-9)
    assert not kept.exists()
    kept.write_bytes(b"no arrays")
    with pytest.raises(ValueError, match=r"fit\.npz: damaged, or no checkpoint of a fit"):
        model.fit(blocks, checkpoint=kept)


def test_a_checkpoint_that_cannot_be_written_is_refused_before_any_work(tmp_path):
    X, Y = drawn(9)
    for path in (tmp_path, tmp_path / "nowhere" / "fit.npz"):
        with pytest.raises(ValueError, match="a checkpoint must be a file in a folder"):
            SetClassifier().fit(X, Y, checkpoint=path)


@pytest.mark.parametrize("surrogate", ["likelihood", "binary_relevance"])
def test_an_interrupted_fit_in_memory_leaves_a_checkpoint_too(tmp_path, monkeypatch, surrogate):
    X, Y = drawn(9, n=200)
    kept, passes, plain = tmp_path / "fit.npz", [], Whole.sum

    def counted(self, function, *parameters):
        passes.append(function)
        if len(passes) == 8:
            raise KeyboardInterrupt
        return plain(self, function, *parameters)

    settings = {"surrogate": surrogate, "space": "cube", "tol": 1e-8}
    with monkeypatch.context() as patch:
        patch.setattr(Whole, "sum", counted)
        with pytest.raises(KeyboardInterrupt):
            SetClassifier(**settings).fit(X, Y, checkpoint=kept)
    assert kept.exists()
    again, whole = SetClassifier(**settings), SetClassifier(**settings).fit(X, Y)
    np.testing.assert_allclose(again.fit(X, Y, checkpoint=kept).coef_, whole.coef_, atol=1e-5)
    assert not kept.exists()


def test_a_limit_of_steps_is_one_of_each_fit_that_goes_on(tmp_path):
    X, Y = drawn(9, n=200)
    kept = Lasting(tmp_path / "fit.npz")
    model = SetClassifier(space="cube", alpha=1e-4, tol=1e-9, max_iter=5)
    found = []
    for _ in range(2):
        with pytest.warns(ConvergenceWarning, match="stopped after 5 iterations"):
            found.append(clone(model).fit(X, Y, checkpoint=kept))
    assert [one.n_iter_ for one in found] == [5, 5]
    assert found[1].objective_ < found[0].objective_


def test_a_search_that_is_cut_off_goes_on_where_it_was(tmp_path, monkeypatch):
    X, Y = drawn(9, n=300)
    folder, blocks = tmp_path / "search", blocks_of(X, Y, 120)
    settings = {"alphas": [0.1, 0.01, 0.001], "spaces": ["catalog", "sized"]}
    ended, steps, sums = [], Fitting.solve, MemoryBlocks.sum

    def solved(self, *given):
        found = steps(self, *given)
        ended.append(found)
        return found

    monkeypatch.setattr(Fitting, "solve", solved)
    whole = SetClassifierCV(**settings).fit(blocks)
    n_fits = len(ended)
    for cut_at in (3, 12, 40, 70):
        passes = 0

        def cut(self, function, *parameters, cut_at=cut_at):
            nonlocal passes
            passes += function.__name__ == "value_and_gradient"
            if passes == cut_at:
                raise KeyboardInterrupt
            return sums(self, function, *parameters)

        ended.clear()
        with monkeypatch.context() as patch:
            patch.setattr(MemoryBlocks, "sum", cut)
            with pytest.raises(KeyboardInterrupt):
                SetClassifierCV(**settings).fit(blocks, checkpoint=folder)
        assert folder.is_dir()
        with pytest.raises(ValueError, match="holds another search and is left as it is"):
            SetClassifierCV(**{**settings, "alphas": [0.1]}).fit(blocks, checkpoint=folder)
        with pytest.raises(ValueError, match=r"What differs: .*sample"):
            SetClassifierCV(**settings).fit(blocks_of(X + 1e-9, Y, 120), checkpoint=folder)
        again = SetClassifierCV(**settings).fit(blocks, checkpoint=folder)
        assert not folder.exists()
        # No fit that had ended was made again.
        assert len(ended) == n_fits
        assert again.best_params_ == pytest.approx(whole.best_params_)
        np.testing.assert_allclose(again.coef_, whole.coef_, atol=1e-3)
        assert again.best_loss_ == pytest.approx(whole.best_loss_, abs=1e-3)


def test_a_search_that_ended_but_was_not_saved_is_the_same_to_the_last_bit(tmp_path, monkeypatch):
    X, Y = drawn(9, n=300)
    settings = {"alphas": [0.1, 0.01], "spaces": ["sized"], "scalings": ["standard"]}
    for given in ((blocks_of(X, Y, 120),), (X, Y)):
        folder = tmp_path / f"search {len(given)}"
        first = SetClassifierCV(**settings).fit(*given, checkpoint=Lasting(folder))
        assert folder.is_dir()
        with monkeypatch.context() as patch:
            patch.delattr(Fitting, "solve")
            second = SetClassifierCV(**settings).fit(*given, checkpoint=Lasting(folder))
        same(second.best_estimator_, first.best_estimator_)
        assert second.cv_results_ == first.cv_results_


def test_a_fit_that_was_cut_off_at_its_end_is_not_taken_for_the_one_before(tmp_path, monkeypatch):
    X, Y = drawn(9, n=300)
    settings = {"alphas": [3.0, 0.001], "spaces": ["sized"], "scalings": ["standard"]}
    whole, after_step, ends = SetClassifierCV(**settings).fit(X, Y), _Search.after_step, []

    def cut(self):
        ends.extend([True] if after_step(self) else [])
        if len(ends) == 2:
            raise KeyboardInterrupt
        return self.best.gradient_norm <= self.tol

    with monkeypatch.context() as patch:
        patch.setattr(_Search, "after_step", cut)
        with pytest.raises(KeyboardInterrupt):
            SetClassifierCV(**settings).fit(X, Y, checkpoint=tmp_path / "search")
    again = SetClassifierCV(**settings).fit(X, Y, checkpoint=tmp_path / "search")
    losses = [[row["loss"] for row in one.cv_results_] for one in (whole, again)]
    assert losses[1] == pytest.approx(losses[0], abs=1e-3)
    assert again.best_params_ == whole.best_params_


def test_models_of_blocks_know_the_names_of_their_features(tmp_path):
    X, Y = drawn(9)
    frame = pandas.DataFrame(X, columns=list("abcde"))
    for model in (SetClassifier(), SetClassifierCV(alphas=[0.1, 0.01], cv=2)):
        model.fit(MemoryBlocks.of(frame, Y, rows=40))
        assert model.feature_names_in_.tolist() == list("abcde")
        # Blocks are arrays: so are inputs, as well as frames, which must have these columns.
        expected = model.predict(X)
        for form in (frame, csr_array(X)):
            np.testing.assert_array_equal(model.predict(form), expected)
        with pytest.raises(ValueError, match="feature names"):
            model.predict(frame[list("bacde")])
        model.fit(frame, Y)
        with pytest.warns(UserWarning, match="valid feature names"):
            model.predict(X)
        model.fit(MemoryBlocks.of(X, Y, rows=40))
        assert not hasattr(model, "feature_names_in_")


def test_a_fit_without_a_checkpoint_yet_begins_where_warm_start_says(tmp_path):
    X, Y = drawn(9, n=200)
    model = SetClassifier(space="sized", tol=1e-6, warm_start=True).fit(X, Y)
    assert model.n_iter_ > 5
    assert model.fit(X, Y, checkpoint=tmp_path / "fit.npz").n_iter_ <= 1


def test_penalties_are_chosen_on_blocks_as_in_memory_and_by_the_same_bits():
    X, Y = drawn(10, n=600)
    settings = {"alphas": [0.3, 0.03, 0.003], "spaces": ["sized"]}
    held = SetClassifierCV(**settings).fit(blocks_of(csr_array(X), csr_array(Y), 200, 201))
    again = SetClassifierCV(**settings).fit(blocks_of(csr_array(X), csr_array(Y), 200, 201))
    same(held.best_estimator_, again.best_estimator_)
    assert held.best_params_ == again.best_params_
    whole = SetClassifierCV(**settings, cv=3).fit(csr_array(X), Y)
    assert held.best_loss_ == pytest.approx(whole.best_loss_, abs=0.05)
    assert held.score(X, Y) == pytest.approx(whole.score(X, Y), abs=0.03)
    tried = {row["alpha"] for row in held.cv_results_}
    assert tried <= {0.3, 0.03, 0.003}
    assert "held-out rows" in held.guarantee_


def test_every_row_is_held_out_once_and_learnt_from_otherwise():
    X, Y = drawn(11)
    X[:, 0] = np.arange(90)
    folds = BlockFolds.of(BlockRows.of(blocks_of(X, Y, 7, 50), get_target("f1")), 4, 0)
    rows, fold_of = folds.sample
    assert sorted(rows.inputs[:, 0].tolist()) == list(range(90))
    for fold in range(4):
        part = folds.learnt(fold)
        seen = {x for block in part.blocks.each(tuple) for x in block[0][:, 0].tolist()}
        assert seen == set(range(90)) - set(rows.inputs[fold_of == fold, 0].tolist())
        assert part.n_rows == len(seen)


def test_few_rows_are_sampled_of_many(monkeypatch):
    monkeypatch.setattr(block_folds, "MOST_ROWS", 30)
    X, Y = drawn(12, n=400)
    model = SetClassifierCV(alphas=[0.1, 0.01]).fit(blocks_of(X, Y, 100))
    assert model.score(X, Y) > 0.4
    sample = BlockFolds.of(BlockRows.of(blocks_of(X, Y, 100), get_target("f1")), 3, 0).sample[0]
    assert 10 < len(sample.sets) < 60


def test_measures_of_all_rows_have_thresholds_from_rows_held_out():
    X, Y = drawn(13, n=400)
    plain = SetClassifier("macro_f1").fit(X, Y)
    cut = SetClassifier("macro_f1").fit(blocks_of(X, Y, 150))
    assert not cut.depends_on_batch_
    assert cut.score(X, Y) == pytest.approx(plain.score(X, Y), abs=0.03)
    chosen = SetClassifierCV("macro_f1", alphas=[0.1, 0.01]).fit(blocks_of(X, Y, 150))
    assert chosen.score(X, Y) == pytest.approx(plain.score(X, Y), abs=0.03)


def test_a_search_on_blocks_refuses_splitters_and_groups():
    X, Y = drawn(14)
    with pytest.raises(ValueError, match="cv must be a number of folds"):
        SetClassifierCV(cv=KFold(3)).fit(blocks_of(X, Y))
    with pytest.raises(ValueError, match="takes none"):
        SetClassifierCV().fit(blocks_of(X, Y), groups=np.ones(90))
    with pytest.raises(ValueError, match=r"fold \d+ has none; use fewer"):
        SetClassifierCV(cv=80).fit(blocks_of(X, Y))


@pytest.mark.parametrize(
    "model",
    [
        SetBooster(), SetEnsemble(), TargetDecoder(LogisticRegression()),
        CatalogClassifier(LogisticRegression()),
    ],
    ids=lambda model: type(model).__name__,
)  # fmt: skip
def test_what_learns_from_arrays_only_says_so_of_blocks(model):
    if isinstance(model, SetBooster):
        pytest.importorskip("xgboost")
    X, Y = drawn(15)
    for given in ((blocks_of(X, Y),), (blocks_of(X, Y), Y)):
        with pytest.raises(ValueError, match="this estimator learns from arrays"):
            model.fit(*given)


@pytest.mark.parametrize(
    "model",
    [
        SetClassifier(), SetClassifierCV(alphas=[0.1], spaces=["catalog"], cv=2),
        LabelTreeClassifier(sparse_output=False),
    ],
    ids=lambda model: type(model).__name__,
)  # fmt: skip
def test_models_are_asked_block_by_block_and_say_so_of_blocks(model):
    X, Y = drawn(16)
    blocks = blocks_of(X, Y, 40, 70)
    model.fit(blocks)
    asked = ["predict", "predict_proba", "predict_distribution", "predict_sets"]
    asked += ["decision_function"] * hasattr(model, "decision_function")
    judged = ["score", *(["guarantee_on"] * hasattr(model, "guarantee_on"))]
    for name in (*asked, *judged):
        with pytest.raises(ValueError, match=r"blocks\.each\(tuple\)"):
            getattr(model, name)(blocks, *((Y,) if name in judged else ()))
    parts = [model.predict(X) for X, y, weights in blocks.each(tuple)]
    np.testing.assert_array_equal(np.concatenate(parts), model.predict(X))
    scores = [len(y) * model.score(X, y, weights) for X, y, weights in blocks.each(tuple)]
    assert sum(scores) / len(X) == pytest.approx(model.score(X, Y), abs=1e-12)
