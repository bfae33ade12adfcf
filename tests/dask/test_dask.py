"""On a cluster of processes: the same bits as in memory, whatever happens to the workers."""

from __future__ import annotations

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import joblib
import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV

from setwise import SetBooster, SetClassifier, SetClassifierCV, get_target, load
from setwise.blocks import MemoryBlocks
from setwise.estimators.blocked import BlockRows
from setwise.study import Study, leaderboard, work

distributed = pytest.importorskip("distributed")
dask = pytest.importorskip("dask")
array = pytest.importorskip("dask.array")
frame = pytest.importorskip("dask.dataframe")
pandas = pytest.importorskip("pandas")

from setwise import dask as on_dask  # noqa: E402
from setwise.dask import blocks as dask_blocks  # noqa: E402
from setwise.dask.booster import OnCluster  # noqa: E402

pytestmark = pytest.mark.filterwarnings("default")
N, ROWS = 240, 70
SETTINGS = {"space": "sized", "tol": 0.05, "scaling": "standard"}


def drawn():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 5))
    Y = (X @ rng.normal(size=(5, 3)) + rng.normal(size=(N, 3)) > 0.6).astype(np.uint8)
    return X, Y


def chunked(X, Y):
    return array.from_array(X, chunks=(ROWS, 2)), array.from_array(Y, chunks=(ROWS, 3))


def delayed_blocks(X, Y, form=np.asarray):
    starts = range(0, N, ROWS)
    pairs = [(form(X[a : a + ROWS]), form(Y[a : a + ROWS])) for a in starts]
    return [dask.delayed(pair) for pair in pairs]


def same(one, other):
    np.testing.assert_array_equal(one.coef_, other.coef_)
    np.testing.assert_array_equal(one.intercept_, other.intercept_)


@pytest.fixture(scope="module")
def expected():
    return SetClassifier(**SETTINGS).fit(MemoryBlocks.of(*drawn(), rows=ROWS))


def test_arrays_frames_and_delayed_blocks_give_the_bits_of_the_fit_in_memory(client, expected):
    X, Y = drawn()
    dX, dY = chunked(X, Y)
    model = on_dask.SetClassifier(**SETTINGS, client=client).fit(dX, dY)
    same(model, expected)
    fX, fY = (pandas.DataFrame(part).add_prefix(name) for part, name in ((X, "x"), (Y, "y")))
    ends = [*range(0, N, ROWS), N - 1]
    fX, fY = (frame.from_pandas(part, npartitions=1).repartition(ends) for part in (fX, fY))
    of_frames = on_dask.SetClassifier(**SETTINGS).fit(fX, fY)
    same(of_frames, expected)
    assert of_frames.classes_.tolist() == ["y0", "y1", "y2"]
    assert of_frames.predict(fX).compute().shape == (N, 3)
    of_delayed = on_dask.SetClassifier(**SETTINGS).fit(delayed_blocks(X, Y))
    same(of_delayed, expected)
    parts = of_delayed.predict([dask.delayed(X[:9]), dask.delayed(X[9:])])
    np.testing.assert_array_equal(np.concatenate(dask.compute(*parts)), expected.predict(X))
    few = {"tol": 0.05}
    sparse = SetClassifier(**few).fit(MemoryBlocks.of(csr_array(X), csr_array(Y), rows=ROWS))
    same(on_dask.SetClassifier(**few).fit(delayed_blocks(X, Y, csr_array)), sparse)


def test_predictions_are_lazy_and_a_model_leaves_dask(client, expected, tmp_path):
    X, Y = drawn()
    dX, dY = chunked(X, Y)
    model = on_dask.SetClassifier(**SETTINGS).fit(dX, dY)
    for name in ("predict", "predict_proba"):
        lazy = getattr(model, name)(dX)
        assert isinstance(lazy, array.Array)
        assert (lazy.shape, lazy.chunks[0]) == ((N, 3), dX.chunks[0])
        np.testing.assert_array_equal(lazy.compute(), getattr(expected, name)(X))
    model.to_local().save(tmp_path / "model.skops")
    np.testing.assert_array_equal(load(tmp_path / "model.skops").predict(X), expected.predict(X))
    copy = clone(model.set_params(alpha=0.5))
    assert (copy.alpha, copy.get_params()["alpha"]) == (0.5, 0.5)
    assert not hasattr(copy, "coef_")


def test_scores_and_other_targets_are_those_of_the_model_in_memory(client):
    X, Y = drawn()
    names = [pandas.DataFrame(Y, columns=list("abc")), pandas.DataFrame(X).add_prefix("x")]
    fY, fX = (frame.from_pandas(part, npartitions=3) for part in names)
    model = on_dask.SetClassifier(**SETTINGS).fit(fX, fY)
    here = model.to_local()
    assert model.score(fX, fY) == here.score(names[1], names[0])
    assert model.score([dask.delayed(X[:9]), dask.delayed(X[9:])], Y) == model.score(fX, fY)
    with pytest.raises(ValueError, match="columns"):
        model.score(fX, fY[list("cba")])
    other = model.for_target("recall@1")
    assert isinstance(other.predict(fX), array.Array)
    expected = here.for_target("recall@1").predict(names[1])
    np.testing.assert_array_equal(other.predict(fX).compute(), expected)


def test_frames_must_have_the_columns_of_the_fit(client):
    X, Y = drawn()
    fX, fY = (frame.from_pandas(pandas.DataFrame(p).add_prefix("c"), npartitions=2) for p in (X, Y))
    model = on_dask.SetClassifier(**SETTINGS)
    with pytest.raises(NotFittedError):
        model.predict(fX)
    model.fit(fX, fY)
    assert model.to_local().feature_names_in_.tolist() == ["c0", "c1", "c2", "c3", "c4"]
    for name in ("predict", "predict_proba"):
        with pytest.raises(ValueError, match="X must have the columns 'c0', 'c1'"):
            getattr(model, name)(fX[["c1", "c0", "c2", "c3", "c4"]])


def test_a_search_on_a_cluster_is_that_on_blocks_in_memory(client):
    X, Y = drawn()
    settings = {"alphas": [0.3, 0.1], "spaces": ["sized"], "cv": 2, "tol": 0.1}
    there = on_dask.SetClassifierCV(**settings).fit(*chunked(X, Y))
    here = SetClassifierCV(**settings).fit(MemoryBlocks.of(X, Y, rows=ROWS))
    same(there, here)
    assert there.best_params_ == here.best_params_
    assert there.best_loss_ == here.best_loss_


def test_two_fits_at_once_do_not_disturb_each_other(client, expected):
    X, Y = drawn()
    others = {**SETTINGS, "alpha": 0.1}
    plain = SetClassifier(**others).fit(MemoryBlocks.of(X, Y, rows=ROWS))
    with ThreadPoolExecutor(2) as pool:
        settings = (SETTINGS, others)
        fits = [
            pool.submit(on_dask.SetClassifier(**one, client=client).fit, *chunked(X, Y))
            for one in settings
        ]
        for fit, model in zip(fits, (expected, plain), strict=True):
            same(fit.result(), model)


def test_a_worker_that_is_killed_leaves_the_coefficients_equal(
    cluster, client, expected, monkeypatch
):
    """In the middle of a fit: its blocks are computed again, and nothing hangs."""
    plain, passes = dask_blocks.DaskBlocks.sum, 0

    def killing(self, function, *parameters):
        nonlocal passes
        passes += 1
        if passes == 5:
            os.kill(next(iter(cluster.workers.values())).pid, signal.SIGKILL)
        return plain(self, function, *parameters)

    monkeypatch.setattr(dask_blocks.DaskBlocks, "sum", killing)
    model = on_dask.SetClassifier(**SETTINGS, client=client).fit(*chunked(*drawn()))
    assert passes > 5
    same(model, expected)


def test_lost_results_are_asked_for_again_and_given_up_in_the_end(client, monkeypatch):
    X, Y = drawn()
    blocks = on_dask.DaskBlocks.of(client, *chunked(X, Y))
    lost = distributed.scheduler.KilledWorker("task", client.nthreads(), 3)
    plain, left = dask_blocks.result_of, 2

    def losing(client, asked):
        nonlocal left
        left -= 1
        if left >= 0:
            raise lost
        return plain(client, asked)

    monkeypatch.setattr(dask_blocks, "result_of", losing)
    assert blocks.sum(rows_of) == (N,)
    left = 10**9
    with pytest.raises(RuntimeError, match="lost 11 times over the same computation"):
        blocks.sum(rows_of)


def rows_of(block):
    return (len(block.weights),)


def refused(words, *given, error=ValueError, kind=on_dask.SetClassifier, **settings):
    model = kind(**settings)
    with pytest.raises(error, match=words):
        model.fit(*given)
    assert not hasattr(model, "classes_")


def test_blocks_that_cannot_be_trained_on_are_refused_in_a_sentence(client):
    X, Y = drawn()
    dX, dY = chunked(X, Y)
    good = (X[:9], Y[:9])
    refused("block 1: X has the shape", [dask.delayed(p) for p in (good, (X[:9, :2], Y[:9]))])
    refused("block 1: Y has the shape", [dask.delayed(p) for p in (good, (X[:9], Y[:8]))])
    single = X[:9].astype(np.float32), Y[:9]
    refused("all blocks must hold X alike", [dask.delayed(p) for p in (good, single)])
    refused("block 0: Y must hold only 0 and 1", [dask.delayed((X[:9], 2 * Y[:9]))])
    refused("block 0 must be", [dask.delayed(5)])
    refused("same chunks of rows", dX, dY.rechunk((N, 3)))
    refused("must be a Dask array", X, Y)
    refused("at least one", [])
    refused("block 0: Y must have two dimensions, but its shape is", dX, dY[:, 0])
    refused("takes no y", MemoryBlocks.of(X, Y), Y)
    missing = dask.delayed(np.load)("/nowhere/X.npy")
    refused("nowhere", [dask.delayed(good), missing], error=FileNotFoundError)


def test_workers_without_the_package_are_named(client):
    def hide():
        import sys

        sys.hidden = {n: sys.modules.pop(n) for n in list(sys.modules) if n.startswith("setwise")}
        sys.modules["setwise"] = None  # type: ignore

    def show():
        import sys

        sys.modules.pop("setwise")
        sys.modules.update(sys.hidden)

    client.run(hide)
    try:
        refused("lack setwise; install setwise", *chunked(*drawn()), error=RuntimeError)
    finally:
        client.run(show)


def test_a_cluster_without_workers_is_refused(monkeypatch):
    monkeypatch.setattr(dask_blocks, "PATIENCE", 0.1)
    with (
        distributed.LocalCluster(n_workers=0, processes=False, dashboard_address=":0") as empty,
        distributed.Client(empty, set_as_default=False) as lonely,
    ):
        refused("no worker for 0.1 s", *chunked(*drawn()), error=RuntimeError, client=lonely)


GROWN = {
    "n_estimators": 6, "subsample": 1.0, "colsample": 1.0, "max_depth": 3, "max_bin": 256,
}  # fmt: skip


@pytest.mark.parametrize(("n_rows", "fraction"), [(5, 0.2), (60, 0.02)])
def test_boosters_hold_out_rows_of_few_unless_chance_leaves_none(n_rows, fraction):
    X, Y = drawn()
    blocks = MemoryBlocks.of(X[:n_rows], Y[:n_rows], rows=4)
    rows, found = BlockRows.of(blocks, get_target("f1")), []
    for seed in range(12):
        model = SimpleNamespace(validation_fraction=fraction, patience=3, _seed=seed)
        held = OnCluster(model, None).held(rows)
        found.append(held is not None)
        if held is not None:
            assert min(part.n_rows for part in held) > 0
            assert sum(part.n_rows for part in held) == n_rows
    assert set(found) == {True, False}


@pytest.mark.parametrize("space", ["catalog", "sized", "cube"])
def test_trees_of_a_cluster_are_those_of_one_machine(client, space, tmp_path):
    pytest.importorskip("xgboost")
    X, Y = drawn()
    weights = np.random.default_rng(1).integers(0, 3, N).astype(float)
    # Of few values: where there are more than bins, XGBoost has other bins on a cluster.
    X = X.round(1)
    X[::9, 0] = np.nan
    settings = {**GROWN, "space": space, "patience": None}
    here = SetBooster(**settings).fit(X, Y, weights)
    dW = array.from_array(weights, chunks=ROWS)
    there = on_dask.SetBooster(**settings, client=client).fit(*chunked(X, Y), dW)
    np.testing.assert_allclose(there.space_.parameters, here.space_.parameters, atol=1e-5)
    lazy = there.predict_proba(chunked(X, Y)[0])
    assert isinstance(lazy, array.Array)
    np.testing.assert_allclose(lazy.compute(), here.predict_proba(X), atol=1e-5)
    assert there.n_iter_ == here.n_iter_ == 6
    there.to_local().save(tmp_path / "trees.skops")
    loaded = load(tmp_path / "trees.skops")
    assert type(loaded) is SetBooster
    np.testing.assert_array_equal(loaded.predict(X), there.predict(chunked(X, Y)[0]).compute())


def test_rounds_are_judged_by_the_rows_that_all_workers_hold_out(client):
    pytest.importorskip("xgboost")
    X, Y = drawn()
    settings = {**GROWN, "n_estimators": 40, "patience": 3, "learning_rate": 0.9, "space": "sized"}
    model = on_dask.SetBooster(**settings).fit(delayed_blocks(X, Y, csr_array))
    assert len(model.held_out_) == model.n_iter_ + 3 < 40
    assert model.held_out_[model.n_iter_ - 1] == min(model.held_out_)
    held = model.to_local()._out_of_fold
    assert len(held.sets) == pytest.approx(0.2 * N, rel=0.4)
    # The sample has all rows held out: it is judged as the workers judged them together.
    found = model.to_local()._held_out["log_loss"]
    assert found == pytest.approx(min(model.held_out_), rel=1e-5)
    by_target = on_dask.SetBooster(**settings, stopping="target").fit(delayed_blocks(X, Y))
    assert 0.0 < min(by_target.held_out_) < 0.6
    for_all = on_dask.SetBooster("macro_f1", **settings).fit(delayed_blocks(X, Y))
    assert not for_all.depends_on_batch_
    assert for_all.to_local().score(X, Y) > 0.5


def test_boosters_refuse_what_a_cluster_cannot_do(client):
    pytest.importorskip("xgboost")
    given, kind = chunked(*drawn()), on_dask.SetBooster
    refused("time_budget is for boosters in memory", *given, kind=kind, time_budget=1.0)
    refused("categorical_features is for", *given, kind=kind, categorical_features=[0])
    refused("no worker sees after a round", *given, kind=kind, target="macro_f1", stopping="target")
    refused("surrogate must be one of", *given, kind=kind, surrogate="nothing")
    refused("block 0 must be", [dask.delayed(5)], kind=kind)
    refused("X must be on a cluster", MemoryBlocks.of(*drawn()), kind=kind)


def test_a_search_of_scikit_learn_goes_over_a_cluster_by_joblib(client):
    X, Y = drawn()
    grid = {"alpha": [0.1, 0.01]}
    here = GridSearchCV(SetClassifier(**SETTINGS), grid, cv=3).fit(X, Y)
    with joblib.parallel_config("dask"):
        there = GridSearchCV(SetClassifier(**SETTINGS), grid, cv=3).fit(X, Y)
    assert there.best_params_ == here.best_params_
    same(there.best_estimator_, here.best_estimator_)


def test_a_study_goes_over_a_cluster_by_joblib(client, tmp_path, monkeypatch):
    X, Y = drawn()
    asked = {"methods": ["binary_relevance", "catalog"], "targets": ["f1", "subset"], "folds": 2}
    here = Study(X, Y, **asked).run(tmp_path / "here")
    # No unit is worked on in this process.
    monkeypatch.setattr(work.StudyPlan, "work", None)
    with joblib.parallel_config("dask"):
        there = Study(X, Y, **asked).run(tmp_path / "there")
    assert leaderboard(there) == leaderboard(here)


def test_any_estimator_of_dask_is_decoded_for_the_target(client, expected):
    X, Y = drawn()
    dX, dY = chunked(X, Y)
    model = on_dask.TargetDecoder(on_dask.SetClassifier(**SETTINGS), "hamming").fit(dX, dY)
    lazy = model.predict(dX)
    assert isinstance(lazy, array.Array)
    np.testing.assert_array_equal(lazy.compute(), expected.predict_proba(X) > 0.5)
    fitted = on_dask.TargetDecoder(expected, "hamming").predict(dX)
    assert isinstance(fitted, array.Array)
    np.testing.assert_array_equal(fitted.compute(), lazy.compute())
    copy = clone(model.set_params(estimator__alpha=0.5))
    assert (copy.estimator.alpha, copy.target) == (0.5, "hamming")
    assert not hasattr(copy, "estimator_")
    with pytest.raises(ValueError, match="measure of all rows together"):
        on_dask.TargetDecoder(model, "macro_f1")
