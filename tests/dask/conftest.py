"""A cluster of two processes, for all laws of a module."""

import pytest


@pytest.fixture(scope="module")
def cluster():
    distributed = pytest.importorskip("distributed")
    from distributed.utils import get_mp_context

    get_mp_context().set_forkserver_preload(["setwise.dask", "setwise.study", "xgboost"])
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
    ) as made:
        yield made


@pytest.fixture(scope="module")
def client(cluster):
    from distributed import Client

    with Client(cluster) as made:
        yield made
