"""Laws of files: what is saved comes back, and nothing but data comes out of one."""

import copy
import io
import json
import os
import pickle
import stat
import subprocess
import sys
import threading
import zipfile
from dataclasses import dataclass, fields, is_dataclass

import numpy as np
import pytest
import scipy.sparse
import skops.io
from hypothesis import given
from hypothesis import strategies as st
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import (
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from setwise import persistence
from setwise.decoders import MinimumRisk, MostLikely, Thresholds, TopK
from setwise.estimators import CatalogClassifier, SetClassifier, SetClassifierCV, TargetDecoder
from setwise.estimators.folds import StratifiedLabelSets
from setwise.forests import PlainTree
from setwise.labels import LabelNames
from setwise.persistence import load, save, trusted_types
from setwise.spaces import Backoff, Catalog, Cube, Forest, Paths, Sized, Slice
from setwise.surrogates import BinaryRelevance, CompSum, Constrained
from setwise.targets import (
    CountTarget,
    FBeta,
    Hamming,
    Jaccard,
    LinearFractional,
    PrecisionAtK,
    RecallAtK,
    TableTarget,
    TreeDistance,
    ZeroOne,
)
from tests.support.turns import in_turn

TREE = "sklearn.tree._tree.Tree"
RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(40, 3))
Y = (X @ RANDOM.normal(size=(3, 3)) + 0.3 * RANDOM.normal(size=(40, 3)) > 0).astype(np.int64)
PROBABILITY = RANDOM.random((5, 3))

SPACES = [
    Cube(3),
    Sized(3, [0.5, -np.inf, 1.0]),
    Slice(3, 2),
    Forest([-1, 0, 0], RANDOM.normal(size=(3, 2, 2))),
    Forest([-1, 0, 0], closed=True),
    Forest.chain(3),
    Paths([-1, 0, 0]),
    Paths([-1, 0, 0], leaves_only=True),
    Catalog([[1, 0, 0], [0, 1, 1]], [0.0, -0.5]),
    Backoff(Sized(3, [0.5, 0.0, 1.0]), [[1, 0, 0], [0, 1, 1]], [0.0, 2.5]),
]
TARGETS = [
    FBeta(2.0, empty=0.0),
    Jaccard(),
    Hamming(),
    Hamming([1.0, 2.0, 3.0]),
    ZeroOne(),
    PrecisionAtK(2),
    RecallAtK(1),
    LinearFractional([0, 0, 0.3, 0.7, 0], [0, 1, 0.3, 0.7, 0]),
    TreeDistance([-1, 0, 0], [1.0, 2.0, 0.5]),
    TableTarget([[0, 0, 0], [1, 0, 1]], [[0.0, 1.0], [0.25, 0.0]]),
]
OTHERS = [
    MostLikely(Forest.chain(3)),
    TopK(2),
    Thresholds("f1", "micro", cv=3),
    CompSum("f1", Sized(3, [0.0, 1.0]), q=0.5),
    Constrained(Hamming(), Cube(3), margin="hinge"),
    BinaryRelevance("hinge"),
    Catalog([[1, 0, 0], [0, 1, 1]], joint=True),
    LabelNames(["a", "b"], one_dimensional=True),
    LabelNames([("a", 1), ("b", 2)]),
    LabelNames([2, 1, 7]),
    StratifiedLabelSets(4, random_state=None),
]


def back(value, folder, **options):
    """Saved and loaded."""
    save(value, folder / "saved.skops", **options)
    return load(folder / "saved.skops", **options)


def assert_same(one, other):
    """The same type, and the same values in all fields."""
    assert type(one) is type(other)
    if is_dataclass(one):
        for field in fields(one):
            if field.compare:
                assert_same(getattr(one, field.name), getattr(other, field.name))
    elif isinstance(one, np.ndarray):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
    elif isinstance(one, tuple):
        for a, b in zip(one, other, strict=True):
            assert_same(a, b)
    elif not hasattr(one, "__dict__"):
        assert one == other


# ------------------------------------------------------------------------- the way there and back


@pytest.mark.parametrize("value", SPACES + TARGETS + OTHERS, ids=str)
def test_what_is_saved_comes_back(value, tmp_path):
    loaded = back(value, tmp_path)
    assert_same(loaded, value)
    assert str(loaded) == str(value)


@pytest.mark.parametrize("space", SPACES, ids=str)
def test_a_space_that_comes_back_computes_the_same(space, tmp_path):
    scores = RANDOM.normal(size=(4, space.n_scores))
    loaded = back(space, tmp_path)
    np.testing.assert_array_equal(loaded.log_partition(scores), space.log_partition(scores))
    np.testing.assert_array_equal(loaded.marginals(scores), space.marginals(scores))
    assert loaded.log_size == space.log_size


@pytest.mark.parametrize("target", TARGETS[:-1], ids=str)
def test_a_decoder_that_comes_back_decides_the_same_and_brings_no_cache(target, tmp_path):
    decoder = MinimumRisk(target)
    fresh = back(decoder, tmp_path)
    expected = decoder.decode(PROBABILITY)
    assert decoder._kept
    loaded = back(decoder, tmp_path)
    assert not loaded._kept
    assert decoder._kept
    for one in (fresh, loaded):
        np.testing.assert_array_equal(one.decode(PROBABILITY), expected)


def test_a_surrogate_that_comes_back_computes_the_same(tmp_path):
    scores, y_true = RANDOM.normal(size=(4, 3)), Y[:4]
    for surrogate in (CompSum("f1", Cube(3), q=0.5), Constrained(Hamming(), Forest.chain(3))):
        loaded = back(surrogate, tmp_path)
        for one, other in zip(
            loaded.value_and_gradient(scores, y_true),
            surrogate.value_and_gradient(scores, y_true),
            strict=True,
        ):
            np.testing.assert_array_equal(one, other)


def test_what_was_fitted_comes_back(tmp_path):
    fitted = Thresholds("f1", "macro").fit(PROBABILITY, PROBABILITY > 0.4)
    loaded = back(fitted, tmp_path)
    np.testing.assert_array_equal(loaded.thresholds_, fitted.thresholds_)
    assert loaded.value_ == fitted.value_
    np.testing.assert_array_equal(loaded.decode(PROBABILITY), fitted.decode(PROBABILITY))


@pytest.mark.parametrize(
    "model",
    [
        OneVsRestClassifier(LogisticRegression()),
        RidgeClassifier(),
        make_pipeline(StandardScaler(), RidgeClassifier()),
        GridSearchCV(RidgeClassifier(), {"alpha": [0.1, 1.0]}, cv=StratifiedLabelSets(3)),
        OneVsRestClassifier(CalibratedClassifierCV(LogisticRegression(), cv=2)),
        MLPClassifier((2,), tol=1.0, random_state=0),
        MLPClassifier((2,), solver="sgd", tol=1.0, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_scikit_learn_estimators_come_back(model, tmp_path):
    model.fit(X, Y)
    loaded = back(model, tmp_path)
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


def test_objects_inside_of_others_come_back_and_stay_one(tmp_path):
    decoder = MinimumRisk("jaccard")
    decoder.decode(PROBABILITY)
    objects = np.empty((1, 2), dtype=object)
    objects[0, 0], objects[0, 1] = decoder, ("a", decoder)
    model = make_pipeline(StandardScaler(), RidgeClassifier()).fit(X, Y)
    model.extra_ = {
        "list": [decoder, (decoder, 1)],
        "objects": objects,
        "sparse": scipy.sparse.csr_array(Y),
        "masked": np.ma.masked_array(objects, [[True, False]]),
        "sets": frozenset([1, 2]),
        "type": np.dtype("float32"),
    }
    extra = back(model, tmp_path).extra_
    first = extra["list"][0]
    assert_same(first, decoder)
    assert not first._kept
    assert extra["list"][1] == (first, 1)
    assert extra["list"][1][0] is first
    assert extra["objects"][0, 0] is first
    assert extra["objects"][0, 1][1] is first
    assert extra["masked"].data[0, 1][1] is first
    assert extra["masked"].mask.tolist() == [[True, False]]
    np.testing.assert_array_equal(extra["sparse"].toarray(), Y)
    assert extra["sets"] == frozenset([1, 2])
    assert extra["type"] == np.float32
    assert model.extra_["list"][0] is decoder
    assert decoder._kept


def test_metadata_requests_come_back(tmp_path):
    import sklearn

    with sklearn.config_context(enable_metadata_routing=True):
        model = RidgeClassifier().set_fit_request(sample_weight=True)
        loaded = back(model, tmp_path)
        assert str(loaded.get_metadata_routing()) == str(model.get_metadata_routing())


@pytest.mark.parametrize("kind", [RandomForestClassifier, ExtraTreesClassifier])
def test_forests_come_back_as_plain_numbers(kind, tmp_path):
    """skops does not trust their trees: what a tree holds is not checked when it predicts."""
    gaps = np.where(RANDOM.random(X.shape) < 0.1, np.nan, X)
    model = kind(3, random_state=0).fit(gaps, Y)
    loaded = back(CatalogClassifier(model, "f1").fit(gaps, Y), tmp_path)
    np.testing.assert_allclose(loaded.posterior(gaps).sum(axis=1), 1.0)
    loaded = back(model, tmp_path)
    np.testing.assert_array_equal(loaded.predict(gaps), model.predict(gaps))
    np.testing.assert_array_equal(loaded.decision_path(gaps)[0].data, 1)
    assert str(loaded.get_params()) == str(model.get_params())
    for one, own in zip(loaded.estimators_, model.estimators_, strict=True):
        for part in ("nodes", "values"):
            again, before = (tree.tree_.__getstate__()[part] for tree in (one, own))
            np.testing.assert_array_equal(again, before)
    (tmp_path / "file").write_bytes(skops.io.dumps(model))
    assert_refused(tmp_path / "file", "nothing in it was run", TREE)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"left_child": 10**6}, "the child of one other"),
        ({"left_child": 0}, "the child of one other"),
        ({"right_child": -7}, "the child of one other"),
        ({"feature": 3}, "a feature that is not there"),
        ({"feature": -1}, "a feature that is not there"),
        ({"max_depth": 0}, "must be its depth"),
        ({"n_features": 99}, "of other features than the forest"),
        ({"n_features": -1}, "must be a whole number"),
        ({"n_classes": np.array([2, 2, 2, 2])}, "values of a tree must be"),
        ({"n_classes": np.array([2, 2, 0])}, "counts of at least 1"),
        ({"values": np.zeros((1, 1, 1))}, "values of a tree must be"),
        ({"nodes": np.zeros(3)}, "as this version of scikit-learn has them"),
        ({"nodes": None}, "must be an array"),
    ],
    ids=str,
)
def test_a_tree_that_leads_out_of_itself_is_refused(change, message, tmp_path):
    model = RandomForestClassifier(2, random_state=0).fit(X, Y)
    parts = vars(PlainTree.of(model.estimators_[1].tree_)).copy()
    ((name, value),) = change.items()
    if name in parts:
        parts[name] = value
    else:
        parts["nodes"] = parts["nodes"].copy()
        parts["nodes"][name][0] = value
    wrong = object.__new__(PlainTree)
    vars(wrong).update(parts)
    harmful = copy.copy(model)
    harmful.estimators_ = [model.estimators_[0], copy.copy(model.estimators_[1])]
    for place, own in enumerate((PlainTree.of(model.estimators_[0].tree_), wrong)):
        harmful.estimators_[place] = copy.copy(model.estimators_[place])
        harmful.estimators_[place].tree_ = own
    (tmp_path / "file").write_bytes(skops.io.dumps(harmful))
    assert_refused(tmp_path / "file", message)


@pytest.mark.parametrize(
    ("model", "compiled"),
    [
        (KNeighborsClassifier(), "sklearn.neighbors._kd_tree.KDTree"),
        (HistGradientBoostingClassifier(max_iter=2), "TreePredictor"),
        (DecisionTreeClassifier(), TREE),
    ],
    ids=lambda value: type(value).__name__,
)
def test_compiled_parts_that_check_nothing_are_refused_inside_of_our_own(model, compiled, tmp_path):
    """Their arrays are read without looking, so a file made to do harm could crash the process."""
    decoder = CatalogClassifier(model).fit(X, Y)
    with pytest.raises(ValueError, match=rf"CatalogClassifier cannot be saved.*{compiled}"):
        save(decoder, tmp_path / "file")
    (tmp_path / "file").write_bytes(skops.io.dumps(decoder))
    assert_refused(tmp_path / "file", "nothing in it was run", compiled)


# ----------------------------------------------------------------------------------------- the file


def test_the_file_is_replaced_at_once_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "saved.skops"
    save(Cube(2), path)
    before = path.read_bytes()

    def fail(*_):
        raise OSError("no space left")

    for name in ("replace", "fsync"):
        with monkeypatch.context() as patched:
            patched.setattr(os, name, fail)
            with pytest.raises(OSError, match="no space"):
                save(Cube(3), path)
    with pytest.raises(ValueError, match="cannot be saved"):
        save(CountTarget(max), path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["saved.skops"]
    save(Cube(3), str(path))
    assert load(str(path)) == Cube(3)
    assert os.listdir(tmp_path) == ["saved.skops"]


@pytest.mark.skipif(os.name != "posix", reason="file modes and links of POSIX")
def test_a_file_has_the_mode_of_any_other_and_a_link_stays_one(tmp_path):
    (tmp_path / "plain").touch()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    save(Cube(2), tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    modes = {stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("plain", "real")}
    assert len(modes) == 1


def test_a_missing_file_is_missing(tmp_path):
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "nothing")


def test_without_skops_the_message_says_how_to_install_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "skops.io", None)
    with pytest.raises(ImportError, match="pip install skops"):
        save(Cube(2), tmp_path / "file")
    with pytest.raises(ImportError, match="pip install skops"):
        load(tmp_path / "file")


# -------------------------------------------------------------------------------- refused on saving


def lenient(tp, fp, fn, tn):
    return (fp + fn > 1) * 1.0


@dataclass(frozen=True)
class Foreign:
    value: int = 1


def test_a_function_is_refused_on_saving(tmp_path):
    own = f"{__name__}.lenient"
    for function, name in ((lenient, own), (lambda *_: 0.0, "<lambda>")):
        for value in (CountTarget(function), MinimumRisk(CountTarget(function))):
            with pytest.raises(ValueError, match=rf"cannot be saved.*{name}.*function is code"):
                save(value, tmp_path / "file")
    with pytest.raises(ValueError, match="lambda"):
        save(CountTarget(lambda *_: 0.0), tmp_path / "file", trusted=[f"{__name__}.<lambda>"])
    assert not os.listdir(tmp_path)


def test_a_function_that_is_named_comes_back_by_its_name(tmp_path):
    loaded = back(CountTarget(lenient), tmp_path, trusted=[f"{__name__}.lenient"])
    assert loaded.function is lenient


def test_other_types_are_refused_on_saving_unless_named(tmp_path):
    for value in (
        Foreign(),
        [Foreign()],
        make_pipeline(RidgeClassifier()).set_params(memory=Foreign()),
    ):
        with pytest.raises(ValueError, match=r"cannot be saved.*test_persistence\.Foreign"):
            save(value, tmp_path / "file")
    assert back(Foreign(2), tmp_path, trusted=f"{__name__}.Foreign") == Foreign(2)
    with pytest.raises(ValueError, match="trusted must be a list of names"):
        save(Foreign(), tmp_path / "file", trusted=[Foreign])


def test_what_skops_cannot_write_is_refused(tmp_path):
    endless = []
    endless.append(endless)
    for value, why in (
        (iter([1]), "iterator"),
        ({"lock": threading.Lock()}, "lock"),
        (endless, "holds itself"),
    ):
        with pytest.raises(ValueError, match=f"cannot be saved: .*{why}"):
            save(value, tmp_path / "file")
    assert not os.listdir(tmp_path)


# ------------------------------------------------------------------------------- refused on loading


class Harm:
    """Whoever unpickles it makes a folder."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return os.mkdir, (self.path,)


def json_node(value):
    return {
        "__class__": "str",
        "__module__": "builtins",
        "__loader__": "JsonNode",
        "content": json.dumps(value),
        "is_json": True,
    }


def node(module, name, loader, **content):
    return {"__class__": name, "__module__": module, "__loader__": loader, **content}


def tuple_node(*values):
    return node("builtins", "tuple", "TupleNode", content=[json_node(value) for value in values])


def dict_node(**values):
    names = [node("builtins", "str", "TypeNode") for _ in values]
    return node(
        "builtins",
        "dict",
        "DictNode",
        content=values,
        key_types=node("builtins", "list", "ListNode", content=names),
    )


def write(path, schema, **files):
    """A skops file by hand."""
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("schema.json", json.dumps({**schema, "protocol": 2}))
        for name, data in files.items():
            file.writestr(name, data)


def npy(array):
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def array_node():
    return node("numpy", "ndarray", "NdArrayNode", type="numpy", file="array")


def assert_refused(path, *words):
    pattern = "(?s)" + "".join(f"(?=.*{word})" for word in ("was not loaded", *words))
    with pytest.raises(ValueError, match=pattern):
        load(path)


def test_files_by_hand_are_read(tmp_path):
    """So that what is refused below is refused for its content."""
    write(
        tmp_path / "a",
        node("setwise.spaces.cube", "Cube", "ObjectNode", content=dict_node(n_labels=json_node(3))),
    )
    assert load(tmp_path / "a") == Cube(3)
    write(tmp_path / "b", array_node(), array=npy(np.arange(3)))
    np.testing.assert_array_equal(load(tmp_path / "b"), np.arange(3))
    made = node("setwise.spaces.cube", "Cube", "ConstructorFromReduceNode", content=tuple_node(4))
    write(tmp_path / "c", made)
    assert load(tmp_path / "c") == Cube(4)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickle_is_refused_and_does_not_run(protocol, tmp_path):
    harm = tmp_path / "harm"
    (tmp_path / "file").write_bytes(pickle.dumps(Harm(harm), protocol))
    assert_refused(tmp_path / "file", "zip")
    assert not harm.exists()


def test_a_pickle_inside_is_refused_and_does_not_run(tmp_path):
    harm = tmp_path / "harm"
    data = npy(np.array([Harm(harm)], dtype=object))
    write(tmp_path / "array", array_node(), array=data)
    assert_refused(tmp_path / "array", "Python objects")
    with zipfile.ZipFile(tmp_path / "raw", "w") as file:
        file.writestr("schema.json", pickle.dumps(Harm(harm), 0))
    assert_refused(tmp_path / "raw")
    sparse = node("scipy.sparse._csr", "csr_array", "SparseMatrixNode", type="scipy", file="array")
    write(tmp_path / "sparse", sparse, array=data)
    assert_refused(tmp_path / "sparse")
    assert not harm.exists()


CALLS = {
    "posix.mkdir": ("posix", "mkdir"),
    "os.mkdir": ("os", "mkdir"),
    "what setwise imports": ("setwise.persistence", "import_module"),
    "a module that setwise imports": ("setwise.persistence", "os"),
    "a class that setwise imports": ("setwise.persistence", "Path"),
    "a pool that setwise imports": ("setwise.threads", "ThreadPoolExecutor"),
    "a function of setwise": ("setwise.persistence", "load"),
    "a function of setwise that writes": ("setwise.atomic_write", "write_whole"),
    "a kernel of setwise": ("setwise.kernels", "sum_rows"),
    "what is run as a program": ("setwise.__main__", "main"),
    "a module that is not there": ("setwise.nonsense", "Thing"),
    "a class that is not there": ("setwise.spaces.cube", "Nonsense"),
    "a method": ("setwise.spaces.forest.Forest", "chain"),
    "a name that begins alike": ("setwise_foreign.cube", "Cube"),
    "no module": ("", "Cube"),
}
LOADERS = {
    "called": lambda module, name: node(
        module, name, "ConstructorFromReduceNode", content=tuple_node("harm")
    ),
    "filled": lambda module, name: node(
        module, name, "ObjectNode", content=dict_node(value=json_node(1))
    ),
    "function": lambda module, name: node(module, name, "FunctionNode"),
    "type": lambda module, name: node(module, name, "TypeNode"),
    "array": lambda module, name: array_node() | {"__class__": name, "__module__": module},
    "list": lambda module, name: node(module, name, "ListNode", content=[json_node("harm")]),
    "loss": lambda module, name: node(
        module, name, "LossNode", content=tuple_node(), __reduce__={"args": tuple_node("harm")}
    ),
}


@pytest.mark.parametrize("loader", LOADERS.values(), ids=LOADERS)
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_nothing_but_data_of_setwise_is_made(call, loader, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "file"
    inner = loader(*call)
    for schema in (inner, node("builtins", "list", "ListNode", content=[inner])):
        write(path, schema, array=npy(np.array("harm")))
        assert_refused(path, call[1])
    assert os.listdir(tmp_path) == ["file"]


def test_methods_and_partial_calls_are_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cube = node(
        "setwise.spaces.cube", "Cube", "ObjectNode", content=dict_node(n_labels=json_node(3))
    )
    method = node(
        "setwise.spaces.cube", "Cube", "MethodNode", content={"func": "enumerate", "obj": cube}
    )
    write(tmp_path / "file", method)
    assert_refused(tmp_path / "file", "Cube.enumerate")
    caller = node("operator", "methodcaller", "OperatorFuncNode", attrs=tuple_node("mkdir", "harm"))
    write(tmp_path / "file", caller)
    assert_refused(tmp_path / "file", "operator.methodcaller")
    assert os.listdir(tmp_path) == ["file"]


def test_a_foreign_skops_file_is_refused_by_the_name_of_its_type(tmp_path):
    for value, name in (
        (Foreign(), "tests.test_persistence.Foreign"),
        ({"deep": [(os.system,)]}, "posix.system|nt.system"),
        (lenient, "tests.test_persistence.lenient"),
        (make_pipeline(RidgeClassifier()).set_params(memory=Foreign()), "Foreign"),
    ):
        (tmp_path / "file").write_bytes(skops.io.dumps(value))
        assert_refused(tmp_path / "file", "nothing in it was run", name, "trusted=")


def own(module, name, **values):
    return node(f"setwise.{module}", name, "ObjectNode", content=dict_node(**values))


IMPOSSIBLE = {
    "a negative number of labels": (own("spaces.cube", "Cube", n_labels=json_node(-1)), "n_labels"),
    "no number of labels": (own("spaces.cube", "Cube"), "n_labels"),
    "a field too many": (
        own("spaces.cube", "Cube", n_labels=json_node(3), harm=json_node(1)),
        "Cube has no harm",
    ),
    "parents outside of the forest": (
        own("spaces.forest", "Forest", parents=array_node()),
        r"parents\[1\] must be",
    ),
    "an unknown target": (
        own("decoders.minimum_risk", "MinimumRisk", target=json_node("harm")),
        "no target named 'harm'",
    ),
}


@pytest.mark.parametrize(("schema", "words"), IMPOSSIBLE.values(), ids=IMPOSSIBLE)
def test_impossible_values_are_refused_as_by_the_constructor(schema, words, tmp_path):
    deep = node("builtins", "tuple", "TupleNode", content=[schema])
    for root in (schema, deep):
        write(tmp_path / "file", root, array=npy(np.array([-1, 10**9])))
        assert_refused(tmp_path / "file", words)


def test_a_cache_in_a_file_is_not_used(tmp_path):
    target, kept = json_node("f1"), dict_node(harm=json_node(1))
    schema = own("decoders.minimum_risk", "MinimumRisk", target=target, _kept=kept)
    write(tmp_path / "file", schema)
    assert not load(tmp_path / "file")._kept


def test_a_sparse_matrix_that_points_outside_of_itself_is_refused(tmp_path):
    matrix = scipy.sparse.csr_array(Y)
    save({"matrix": matrix}, tmp_path / "file")
    matrix.indices[0] = 10**8
    (tmp_path / "file").write_bytes(skops.io.dumps({"matrix": matrix}))
    assert_refused(tmp_path / "file", "indices")


@in_turn("value", SPACES + TARGETS + OTHERS, ids=str)
def test_types_to_trust_are_enough_to_read_any_object_by_skops_alone(value):
    data = skops.io.dumps(value)
    assert set(skops.io.get_untrusted_types(data=data)) <= set(trusted_types())
    assert str(skops.io.loads(data, trusted=trusted_types())) == str(value)


@pytest.mark.parametrize(
    "model",
    [
        SetClassifier("f1"),
        SetClassifier("f1", "binary_relevance"),
        SetClassifier("hamming", space="forest"),
        SetClassifier("f1", space="catalog"),
        SetClassifierCV("jaccard", alphas=[0.1], cv=2),
        TargetDecoder(OneVsRestClassifier(LogisticRegression()), target="f1"),
        CatalogClassifier(LogisticRegression(), target="f1"),
    ],
    ids=str,
)
def test_types_to_trust_are_enough_to_serve_any_model_by_skops_alone(model):
    data = skops.io.dumps(model.fit(X, Y))
    assert set(skops.io.get_untrusted_types(data=data)) <= set(trusted_types())
    served = skops.io.loads(data, trusted=trusted_types())
    np.testing.assert_array_equal(served.predict(X), model.predict(X))


def test_types_to_trust_are_in_order_and_are_what_load_trusts():
    names = trusted_types()
    assert names == sorted(set(names))
    assert all(name in persistence.PLAIN or persistence._is_own(name) for name in names)


def test_mlflow_serves_a_model_with_the_types_to_trust(tmp_path):
    mlflow = pytest.importorskip("mlflow.sklearn")
    model = SetClassifier("f1").fit(X, Y)
    options = {"serialization_format": "skops", "skops_trusted_types": trusted_types()}
    mlflow.save_model(model, tmp_path / "served", **options)
    served = mlflow.load_model(str(tmp_path / "served"))
    np.testing.assert_array_equal(served.predict(X), model.predict(X))


def zipped(path, members, **options):
    """A zip file of these members, by name."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, **options) as file:
        for name, data in members.items():
            file.writestr(name, data)


def array_file(values, save=np.save):
    buffer = io.BytesIO()
    save(buffer, values)
    return buffer.getvalue()


def array_state(name, number=0):
    kind = {"__class__": "ndarray", "__module__": "numpy", "__loader__": "NdArrayNode"}
    return {**kind, "type": "numpy", "file": name, "__id__": number}


def many_states(count):
    kind = {"__class__": "list", "__module__": "builtins", "__loader__": "ListNode"}
    return {**kind, "content": [array_state("a.npy", number) for number in range(count)]}


LARGE = np.zeros(2**22)
BOMBS = {
    "a large array": (array_state("a.npy"), {"a.npy": array_file(LARGE)}),
    "an array read often": (many_states(400), {"a.npy": array_file(LARGE[: 2**16])}),
    "a large sparse array": (
        {**array_state("a.npz"), "__loader__": "SparseMatrixNode", "type": "scipy"},
        {"a.npz": array_file(LARGE, np.savez_compressed)},
    ),
    "a large sparse array by another name": (
        {**array_state("a.bin"), "__loader__": "SparseMatrixNode", "type": "scipy"},
        {"a.bin": array_file(LARGE, np.savez_compressed)},
    ),
    "long JSON": ({"content": [[]] * 2**21}, {}),
    "a header that promises more": (
        array_state("a.npy"),
        {"a.npy": array_file(LARGE[:1]).replace(b"(1,), }  ", b"(9999,),}")},
    ),
}


@pytest.mark.parametrize(("state", "members"), BOMBS.values(), ids=BOMBS)
def test_a_file_that_unpacks_to_far_more_is_refused_before_it_is(
    state, members, tmp_path, monkeypatch
):
    monkeypatch.setattr("setwise.files.FREE_BYTES", 2**22)
    zipped(tmp_path / "file", {**members, "schema.json": json.dumps(state)})
    with monkeypatch.context() as patched:
        for name in ("loads", "get_untrusted_types"):
            patched.setattr(skops.io, name, None)
        assert_refused(tmp_path / "file", "(?:unpacks to|promises) more than")


def test_a_large_file_of_ones_own_is_read_with_a_larger_bound(tmp_path, monkeypatch):
    monkeypatch.setattr("setwise.files.FREE_BYTES", 2**16)
    (tmp_path / "file").write_bytes(skops.io.dumps(LARGE, compression=zipfile.ZIP_DEFLATED))
    assert_refused(tmp_path / "file", "max_bytes")
    np.testing.assert_array_equal(load(tmp_path / "file", max_bytes=2**26), LARGE)


def test_loading_imports_no_torch(tmp_path):
    """skops walks through all of scikit-learn, which would import it where it is installed."""
    save(MinimumRisk("f1"), tmp_path / "file")
    code = f"import sys, setwise; setwise.load({str(tmp_path / 'file')!r}); "
    code += "print([name for name in ('torch', 'dask', 'cupy') if name in sys.modules])"
    # What was hidden meanwhile can be imported again.
    code += "; print([name for name, module in sys.modules.items() if module is None])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("[]\n[]\n", "")


def test_a_damaged_file_is_refused(tmp_path):
    path = tmp_path / "file"
    save(Forest([-1, 0, 0]), path)
    data = path.read_bytes()
    for part in (b"", data[:1], data[: len(data) // 2], data[:-1], b"\0" * 100):
        path.write_bytes(part)
        assert_refused(path)
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("other.json", "{}")
    assert_refused(path, "schema.json")
    nested = json_node(1)
    for _ in range(200):
        nested = node("builtins", "list", "ListNode", content=[nested])
    write(path, nested)
    assert load(path)
    for schema in (
        {},
        {"__class__": "x"},
        node("a", "b", "NoSuchNode"),
        node("a", "b", "ObjectNode"),
    ):
        write(path, schema)
        assert_refused(path)


@given(place=st.floats(0, 1, exclude_max=True), byte=st.integers(0, 255))
def test_whatever_byte_is_changed_a_file_is_refused_or_read(place, byte, tmp_path_factory):
    path = tmp_path_factory.mktemp("files") / "file"
    save(MostLikely(Forest([-1, 0, 0])), path)
    data = bytearray(path.read_bytes())
    data[int(place * len(data))] = byte
    path.write_bytes(data)
    try:
        loaded = load(path)
    except ValueError:
        return
    assert_same(loaded, MostLikely(Forest([-1, 0, 0])))


def test_the_plain_types_hold_nothing_but_data():
    """Each is there, or the list would go stale unseen."""
    from importlib import import_module

    for name in persistence.PLAIN:
        module, _, attribute = name.rpartition(".")
        assert isinstance(getattr(import_module(module), attribute), type)
