"""Workers and clients that are killed at random moments; see `make test-deep`."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from setwise import SetClassifier
from setwise.blocks import MemoryBlocks
from tests.support.profile import THOROUGH

distributed = pytest.importorskip("distributed")
array = pytest.importorskip("dask.array")

from setwise import dask as on_dask  # noqa: E402
from tests.dask.test_dask import same  # noqa: E402

pytestmark = [
    pytest.mark.filterwarnings("default"),
    pytest.mark.skipif(not THOROUGH, reason="takes minutes: make test-deep"),
]
N, ROWS, KILLS = 4000, 500, 10
SETTINGS = {"space": "sized", "tol": 1e-5, "scaling": "standard", "alpha": 1e-4}
# A client of its own: begins a fit, says when it is in the middle of it, and never ends it.
CLIENT = """
import sys, time
from distributed import Client
from setwise import dask as on_dask
from setwise.estimators import checkpoint
from tests.dask.test_dask_kills import SETTINGS, chunked
checkpoint.BETWEEN, passes, plain = 0.0, 0, on_dask.DaskBlocks.sum
def slow(self, function, *parameters):
    global passes
    passes += 1
    if passes == 12:
        print("in the middle", flush=True)
        time.sleep(600)
    return plain(self, function, *parameters)
on_dask.DaskBlocks.sum = slow
kept = {"checkpoint": sys.argv[2]} if len(sys.argv) > 2 else {}
with Client(sys.argv[1]) as client:
    on_dask.SetClassifier(**SETTINGS, client=client).fit(*chunked(), **kept)
"""


def drawn():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 12))
    Y = (X @ rng.normal(size=(12, 6)) + 2.0 * rng.normal(size=(N, 6)) > 1.5).astype(np.uint8)
    return X, Y


def chunked():
    return tuple(array.from_array(part, chunks=(ROWS, -1)) for part in drawn())


@pytest.fixture(scope="module")
def expected():
    return SetClassifier(**SETTINGS).fit(MemoryBlocks.of(*drawn(), rows=ROWS))


def seconds_of(call):
    begun = time.monotonic()
    found = call()
    return time.monotonic() - begun, found


def killed_meanwhile(cluster, chance, latest, call):
    """What the call gives, and whether a worker was killed before it ended."""
    struck = threading.Event()

    def strike():
        alive = [worker.pid for worker in cluster.workers.values() if worker.pid]
        if alive:
            os.kill(chance.choice(alive), signal.SIGKILL)
            struck.set()

    timer = threading.Timer(chance.uniform(0.0, latest), strike)
    timer.start()
    try:
        found = call()
        return found, struck.is_set()
    finally:
        timer.cancel()
        timer.join()


def test_workers_killed_at_ten_random_moments_leave_the_bits_equal(cluster, client, expected):
    def fit():
        return on_dask.SetClassifier(**SETTINGS, client=client).fit(*chunked())

    same(fit(), expected)
    latest, model = seconds_of(fit)
    same(model, expected)
    chance, kills = random.Random(20), 0
    for _ in range(4 * KILLS):
        model, was_killed = killed_meanwhile(cluster, chance, latest, fit)
        same(model, expected)
        kills += was_killed
        if kills == KILLS:
            break
        client.wait_for_workers(2, timeout=300)
    assert kills == KILLS


def test_trees_are_grown_anew_where_a_worker_is_killed(cluster, client):
    pytest.importorskip("xgboost")
    settings = {"space": "sized", "subsample": 1.0, "colsample": 1.0, "n_estimators": 60}

    def fit():
        return on_dask.SetBooster(**settings, patience=None, client=client).fit(*chunked())

    X = drawn()[0]
    fit()
    latest, model = seconds_of(fit)
    expected, chance = model.to_local().predict_proba(X), random.Random(3)
    for _ in range(6):
        model, was_killed = killed_meanwhile(cluster, chance, latest, fit)
        # (Bins of XGBoost depend on which worker has which rows.)
        np.testing.assert_allclose(model.to_local().predict_proba(X), expected, atol=0.05)
        if was_killed:
            return
    pytest.fail("no worker was killed in the middle")


@pytest.mark.parametrize("resumes", [False, True])
def test_a_client_that_is_killed_leaves_a_cluster_for_the_next(
    cluster, client, expected, resumes, tmp_path
):
    kept = [str(tmp_path / "fit.npz")] if resumes else []
    words = [sys.executable, "-c", CLIENT, cluster.scheduler_address, *kept]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "in the middle\n"
        process.send_signal(signal.SIGKILL)
    again = on_dask.SetClassifier(**SETTINGS, client=client)
    if not resumes:
        same(again.fit(*chunked()), expected)
        return
    again.fit(*chunked(), checkpoint=kept[0])
    assert again.n_iter_ < expected.n_iter_
    assert again.objective_ == pytest.approx(expected.objective_, rel=1e-6)
    assert not (tmp_path / "fit.npz").exists()
