"""Laws of sparse input: a matrix with entries outside of it is refused wherever it comes in."""

from functools import cache, partial

import numpy as np
import pytest
from scipy.sparse import bsr_array, coo_array, csc_array, csr_array, csr_matrix, lil_array
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier

from setwise import CatalogClassifier, SetClassifier, SetClassifierCV, TargetDecoder, Taxonomy
from setwise.cli import main
from setwise.datasets import Dataset
from setwise.decoders import MinimumRisk, Thresholds, TopK
from setwise.distributions import Independent, Listed, OfSpace
from setwise.estimators.folds import StratifiedLabelSets
from setwise.evaluation import (
    by_level,
    compare,
    evaluate,
    per_label,
    precision_recall,
    propensities,
    reliability,
)
from setwise.labels import LabelNames, read_labels
from setwise.spaces import SPACES, Catalog, Cube
from setwise.spaces.chow_liu import chow_liu
from setwise.sparse import tidied
from setwise.study import Study
from setwise.surrogates import BinaryRelevance, CompSum, Constrained
from setwise.targets import TableTarget, get_target
from tests.support.turns import in_turn

RANDOM = np.random.default_rng(0)
P = RANDOM.random((48, 4))
X = P + 1.0
Y = np.tile(Cube(4).enumerate(), (3, 1)).astype(np.int64)
SETS, POSTERIOR = Y[:16], np.full((48, 16), 1 / 16)
PAIRS = np.tile([1, 1, 0, 0], (48, 1))
PARENTS = np.array([-1, 0, 0, 1])
TREE, QUICK = Taxonomy.from_parents([-1] * 4), {"n_bootstrap": 20}
INNER = {
    SetClassifier: {},
    SetClassifierCV: {"alphas": [0.1], "cv": 2},
    TargetDecoder: {"estimator": OneVsRestClassifier(LogisticRegression())},
    CatalogClassifier: {"estimator": LogisticRegression()},
}


@cache
def fitted(kind):
    return kind(target="f1", **INNER[kind]).fit(X, Y)


def of_estimator(kind):
    def fit(X, y):
        return kind(target="f1", **INNER[kind]).fit(X, y)

    def asked(method, *arguments):
        return getattr(fitted(kind), method)(*arguments)

    methods = ("predict", "predict_proba", "decision_function", "predict_distribution")
    return {
        "fit X": (X, lambda m: fit(m, Y)),
        "fit y": (Y, lambda m: fit(X, m)),
        "score X": (X, lambda m: asked("score", m, Y)),
        "score y": (Y, lambda m: asked("score", X, m)),
        **{f"{method} X": (X, partial(asked, method)) for method in methods},
    }


# What takes a sparse matrix: one that it takes, and the call.
ENTRIES = {
    "Dataset X": (X, lambda m: Dataset(m, Y)),
    "Dataset Y": (Y, lambda m: Dataset(X, m)),
    "Study X": (X, lambda m: Study(m, Y, methods=["auto"], targets=["f1"])),
    "Study Y": (Y, lambda m: Study(X, m, methods=["auto"], targets=["f1"])),
    "read_labels y": (Y, read_labels),
    "LabelNames.encode": (Y, LabelNames(range(4)).encode),
    "LabelNames.decode": (Y, LabelNames(list("abcd")).decode),
    "StratifiedLabelSets": (Y, StratifiedLabelSets(2).assign),
    "chow_liu sets": (Y, chow_liu),
    "Taxonomy.close Y": (Y, TREE.close),
    "Taxonomy.is_closed Y": (Y, TREE.is_closed),
    "Taxonomy.refuse_open Y": (Y, TREE.refuse_open),
    "TableTarget sets": (SETS, lambda m: TableTarget(m, 1.0 - np.eye(16))),
    "Catalog sets": (SETS, Catalog),
    "MinimumRisk.decode": (P, MinimumRisk("f1").decode),
    "MinimumRisk.risk probability": (P, lambda m: MinimumRisk("f1").risk(m, Y)),
    "MinimumRisk.risk sets": (Y, lambda m: MinimumRisk("f1").risk(P, m)),
    "decode_catalog sets": (SETS, lambda m: MinimumRisk("f1").decode_catalog(POSTERIOR, m)),
    "TopK.decode": (P, TopK(2).decode),
    "Thresholds.fit scores": (P, lambda m: Thresholds("f1", "micro").fit(m, csr_array(Y))),
    "Thresholds.fit y_true": (Y, lambda m: Thresholds("f1", "micro").fit(csr_array(P), m)),
    "Thresholds.fit dense": (Y, lambda m: Thresholds("f1", "micro").fit(P, m)),
    "Thresholds.fit_probability": (P, Thresholds("f1", "micro").fit_probability),
    "Thresholds.decode": (P, lambda m: Thresholds("f1", "micro").fit(P, Y).decode(m)),
    "Independent": (P, Independent),
    "Independent sets": (Y, Independent(P).log_probability),
    "Listed sets": (SETS, lambda m: Listed(m, POSTERIOR)),
    "OfSpace sets": (Y, OfSpace(Cube(4), P).log_probability),
    "evaluate y_pred": (Y, lambda m: evaluate(m, Y, **QUICK)),
    "evaluate y_true": (Y, lambda m: evaluate(Y, m, **QUICK)),
    "evaluate probability": (P, lambda m: evaluate(Y, Y, probability=m, **QUICK)),
    "evaluate scores": (P, lambda m: evaluate(Y, Y, scores=m, **QUICK)),
    "compare y_pred_b": (Y, lambda m: compare(Y, m, Y, **QUICK)),
    "compare y_true": (Y, lambda m: compare(Y, Y, m, **QUICK)),
    "per_label y_pred": (Y, lambda m: per_label(m, Y)),
    "by_level y_true": (Y, lambda m: by_level(Y, m, TREE)),
    "reliability": (P, lambda m: reliability(m, Y)),
    "precision_recall": (P, lambda m: precision_recall(m, Y)),
    "propensities": (Y, propensities),
    "BinaryRelevance": (Y, lambda m: BinaryRelevance().value_and_gradient(P, m)),
    "CompSum": (Y, lambda m: CompSum("f1", Cube(4)).value_and_gradient(P, m)),
    "Constrained": (Y, lambda m: Constrained("f1", Cube(4)).value_and_gradient(P, m)),
    **{
        f"{name} {which}": (PAIRS, partial(lambda t, w, m: t.loss(**{**BOTH, w: m}), target, which))
        for name in ("hamming", "f1", "jaccard", "subset", "precision@2", "recall@2")
        for target in [get_target(name)]
        for which in ("y_pred", "y_true")
    },
    **{f"{name} contains": (Y, make(PARENTS).contains) for name, make in SPACES.items()},
    **{
        f"{kind.__name__} {name}": entry
        for kind in INNER
        for name, entry in of_estimator(kind).items()
    },
}
BOTH = {"y_pred": PAIRS, "y_true": PAIRS}
FORMATS = (csr_array, csr_matrix, csc_array, bsr_array, coo_array, lil_array)


def changed(attribute, position, value):
    """Another value in a copy of one of the arrays."""

    def damage(matrix):
        array = getattr(matrix, attribute).copy()
        array[position] = value
        setattr(matrix, attribute, array)

    return damage


def cut(attribute):
    def damage(matrix):
        setattr(matrix, attribute, getattr(matrix, attribute)[:-3])

    return damage


def of_floats(matrix):
    matrix.indices = matrix.indices.astype(float)


COMPRESSED = {
    "far beyond": changed("indices", 2, 10**9),
    "just beyond": changed("indices", 2, 48),
    "negative": changed("indices", 2, -5),
    "ends that decrease": changed("indptr", 2, 10**6),
    "an end below 0": changed("indptr", 1, -7),
    "a start above 0": changed("indptr", 0, 1),
    "an end beyond": changed("indptr", -1, 10**6),
    "too few ends": cut("indptr"),
    "too few places": cut("indices"),
    "too few values": cut("data"),
    "places that are floats": of_floats,
}
TRIPLES = {
    "far beyond": changed("col", 2, 10**9),
    "negative": changed("row", 2, -5),
    "too few values": cut("data"),
}


def in_a_list(matrix):
    matrix.rows[0] = [*matrix.rows[0][:-1], 10**6]


def damages():
    for kind in FORMATS[:4]:
        yield from ((kind, name, damage) for name, damage in COMPRESSED.items())
    yield from ((coo_array, name, damage) for name, damage in TRIPLES.items())
    yield lil_array, "far beyond", in_a_list


@in_turn(("good", "call"), ENTRIES.values(), ids=ENTRIES)
def test_entries_outside_of_a_matrix_are_refused_wherever_it_comes_in(good, call):
    """Every format is taken, and every damage of it is a ValueError that says what is wrong."""
    for kind in FORMATS:
        call(kind(good))
    for kind, _, damage in damages():
        matrix = kind(good)
        damage(matrix)
        with pytest.raises(ValueError, match="must be a sparse matrix whose entries lie inside"):
            call(matrix)


def test_order_and_repetition_are_looked_at_and_not_believed():
    """A matrix may say that it is sorted, and not be."""
    unsorted = csr_array((np.array([1.0, 2.0]), np.array([2, 0]), np.array([0, 2])), shape=(1, 3))
    unsorted.has_sorted_indices = unsorted.has_canonical_format = True
    np.testing.assert_array_equal(tidied(unsorted, "X").indices, [0, 2])
    twice = csr_array((np.ones(2), np.array([1, 1]), np.array([0, 2])), shape=(1, 3))
    twice.has_sorted_indices = twice.has_canonical_format = True
    with pytest.raises(ValueError, match="each entry once"):
        tidied(twice, "X")


def test_the_callers_matrix_stays_as_it_is():
    """Also one with more places than it uses, which scipy cuts where it checks."""
    matrix = csr_array(Y)
    before = matrix.indices = np.append(matrix.indices, np.int32(77))
    matrix.data = np.append(matrix.data, 1)
    np.testing.assert_array_equal(read_labels(matrix)[0].toarray(), Y)
    assert matrix.indices is before


@pytest.mark.parametrize("what", sorted(COMPRESSED.keys() - {"places that are floats"}))
def test_a_file_of_probabilities_is_checked_too(what, tmp_path, capsys):
    matrix = csr_array(P)
    COMPRESSED[what](matrix)
    parts = {name: getattr(matrix, name) for name in ("data", "indices", "indptr")}
    np.savez(tmp_path / "p.npz", format=b"csr", shape=(48, 4), _is_array=True, **parts)
    assert main(["decode", str(tmp_path / "p.npz"), "--target", "f1"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("setwise: p.npz: ")
    assert said.count("\n") == 1
