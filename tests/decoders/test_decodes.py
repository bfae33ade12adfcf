"""`MinimumRisk.decodes` says what decoding does: a way that is promised is there, and no other."""

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier

from setwise import CatalogClassifier, SetClassifier
from setwise.decoders import MinimumRisk
from setwise.spaces import Catalog, Cube, Forest, Paths, Sized, Slice
from setwise.spaces.space import all_sets
from setwise.targets import CountTarget, TableTarget, get_target
from tests.support.cases import TARGETS


def spaces(n_labels):
    rng = np.random.default_rng(0)
    chain, star = list(range(-1, n_labels - 1)), [-1] + [0] * (n_labels - 1)
    sets = np.unique(rng.integers(0, 2, size=(12, n_labels)), axis=0)
    pairs = np.eye(n_labels, dtype=int)[1:]
    pairs[:, 0] = 1
    return {
        "cube": Cube(n_labels), "sized": Sized(n_labels, rng.normal(size=n_labels + 1)),
        "slice": Slice(n_labels, 2), "chain": Forest(chain, rng.normal(size=(n_labels, 2, 2))),
        "closed chain": Forest(chain, closed=True), "closed star": Forest(star, closed=True),
        "paths": Paths(star), "list": Catalog(sets), "joint": Catalog(sets, joint=True),
        "pairs": Catalog(pairs),
    }  # fmt: skip


def targets(n_labels):
    case = SimpleNamespace(n_labels=n_labels, arguments={"parents": [-1] + [0] * (n_labels - 1)})
    rng = np.random.default_rng(0)
    every = {name: make for name, make in TARGETS.items() if name != "table" or n_labels <= 5}
    few = np.tri(3, n_labels, -1, dtype=int)
    return {
        **{name: make(rng, case).target for name, make in every.items()},
        **{name: get_target(name) for name in ("precision@2", "recall@2", "recall@1")},
        "a table of few sets": TableTarget(few, 1.0 - np.eye(3)),
        "not monotone": CountTarget(lambda tp, fp, fn, tn: (tp == 1) * 1.0),
    }


@pytest.mark.parametrize("n_labels", [3, 20])
@pytest.mark.parametrize("space", spaces(3))
def test_decodes_is_true_where_decoding_works_and_only_there(n_labels, space):
    given = spaces(n_labels)[space]
    scores = np.full((1, given.n_scores), 0.1)
    for name, target in targets(n_labels).items():
        try:
            MinimumRisk(target).decode_scores(scores, given)
            works = True
        except ValueError:
            works = False
        assert MinimumRisk(target).decodes(given) == works, name


@pytest.mark.parametrize("over", ["list", "edits", "all", "auto"])
def test_what_may_be_predicted_from_a_list_is_settled_when_it_is_fitted(over):
    """A table without the full set has no loss for the edits of its last sets."""
    rng, listed = np.random.default_rng(0), all_sets(3)[:-1]
    table = TableTarget(listed, rng.random((7, 7)))
    for target in (*targets(3).values(), table):
        for sets in (listed, all_sets(3), np.tri(3, 3, -1, dtype=np.uint8)):
            model = CatalogClassifier(DummyClassifier(strategy="prior"), target, over=over)
            X = np.zeros((len(sets), 1))
            try:
                model.fit(X, sets)
            except ValueError:
                continue
            assert model.predict(X).shape == sets.shape


def test_recall_on_a_large_forest_is_decoded_by_its_marginals():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    Y = (X @ rng.normal(size=(3, 20)) + rng.normal(size=(60, 20)) > 0.5).astype(int)
    model = SetClassifier("recall@2", space="forest", alpha=1.0, tol=1e-2).fit(X, Y)
    assert model.decoder_ == "marginals"
    assert (model.predict(X).sum(axis=1) == 2).all()
    assert "No theorem" in model.guarantee_
