"""Blocks in the files of a folder: those that were written, whole or refused."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.sparse import csc_array, csr_array, issparse

from setwise import SetClassifier
from setwise.blocks import BlockWriter, FolderBlocks
from setwise.blocks.folder import MANIFEST, file_name
from tests.estimators.test_blocked import blocks_of, drawn, same

ABOUT = {"n_features": 5, "label_names": ["a", "b", "c", "d"], "name": "drawn"}


def written(folder, X, Y, *ends, weights=None):
    writer = BlockWriter(folder, ABOUT)
    for block in blocks_of(X, Y, *ends, weights=weights).blocks:
        writer.add(*block)
    return writer.finish()


@pytest.mark.parametrize(
    ("form", "dtype", "settings"),
    [
        (np.asarray, np.float32, {}),
        (np.asarray, np.float64, {"scaling": "rows"}),
        (csr_array, np.float32, {"scaling": "standard", "surrogate": "logistic"}),
        (csr_array, np.float64, {}),
    ],
)
def test_a_fit_from_the_disk_is_that_in_memory_to_the_last_bit(tmp_path, form, dtype, settings):
    X, Y = drawn(0)
    X, weights = form(X.astype(dtype)), np.random.default_rng(0).integers(0, 3, 90).astype(float)
    held = blocks_of(X, form(Y), 0, 30, 31, 90, weights=weights)
    blocks = written(tmp_path / "blocks", X, form(Y), 0, 30, 31, 90, weights=weights)
    assert (len(blocks), blocks.n_rows, blocks.n_missing) == (5, 90, 0)
    assert str(blocks) == "drawn: 90 rows, 5 features, 4 labels in 5 blocks"
    fitted = SetClassifier(**settings).fit(FolderBlocks.open(tmp_path / "blocks"))
    same(fitted, SetClassifier(**settings).fit(held))
    assert fitted.classes_.tolist() == ["a", "b", "c", "d"]


def test_what_is_loaded_is_what_was_written(tmp_path):
    X, Y = drawn(1)
    for number, form in enumerate((np.asarray, csr_array)):
        blocks = written(tmp_path / str(number), form(X), Y, 50)
        block = blocks.load(1)
        assert issparse(block.inputs) == (form is csr_array)
        inputs = block.inputs.toarray() if issparse(block.inputs) else block.inputs
        np.testing.assert_array_equal(inputs, X[50:])
        np.testing.assert_array_equal(block.sets.toarray(), Y[50:])
        changed = blocks.changed(lambda number, block: block.take([number]))
        np.testing.assert_array_equal(changed.load(1).sets.toarray(), Y[51:52])


def test_writing_goes_on_where_it_was_cut_off(tmp_path):
    X, Y = drawn(2)
    folder, parts = tmp_path / "blocks", blocks_of(X, Y, 30, 60).blocks
    BlockWriter(folder, ABOUT).add(*parts[0])
    with pytest.raises(ValueError, match="blocks: not complete"):
        FolderBlocks.open(folder)
    # A block that was being written when the process died.
    (folder / file_name(1, "X")).write_bytes(b"half")
    (folder / ".00001.Y.indices.npy.1234.partial").write_bytes(b"half")
    with pytest.raises(ValueError, match=r"begun from something else \(name\)"):
        BlockWriter(folder, {**ABOUT, "name": "other"})
    writer = BlockWriter(folder, ABOUT)
    assert writer.n_rows == 30
    for part in parts[1:]:
        writer.add(*part)
    same(SetClassifier().fit(writer.finish()), SetClassifier().fit(blocks_of(X, Y, 30, 60)))
    assert not list(folder.glob(".*partial"))
    with pytest.raises(ValueError, match="there already"):
        BlockWriter(folder, ABOUT)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "mine.txt").write_text("mine")
    with pytest.raises(ValueError, match="no folder of blocks"):
        BlockWriter(tmp_path / "other", ABOUT)
    with pytest.raises(ValueError, match=r"no folder of blocks: there is no blocks\.json"):
        FolderBlocks.open(tmp_path / "other")


def test_a_block_of_other_columns_or_types_is_not_written(tmp_path):
    writer = BlockWriter(tmp_path / "blocks", ABOUT)
    with pytest.raises(ValueError, match=r"inputs of shape \(3, 5\)"):
        writer.add(np.zeros((3, 4)), np.ones((3, 4), np.uint8))
    with pytest.raises(ValueError, match="int64"):
        writer.add(np.zeros((3, 5), np.int64), np.ones((3, 4), np.uint8))
    with pytest.raises(ValueError, match=r"Y must have .* 4 columns .* is \(3, 5\)"):
        writer.add(np.zeros((3, 5)), np.ones((3, 5), np.uint8))
    with pytest.raises(ValueError, match=r"Y must hold only 0 and 1, but Y\[0, 0\] is 2"):
        writer.add(np.zeros((3, 5)), 2 * np.ones((3, 4), np.uint8))
    for weights, message in (
        ([1.0, np.nan, 1.0], "weights must be finite"), ([1.0], r"of shape \(3,\)"),
        ([1.0, -1.0, 1.0], "weights must not be negative"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            writer.add(np.zeros((3, 5)), np.ones((3, 4), np.uint8), weights)
    assert writer.n_rows == 0
    assert [path.name for path in (tmp_path / "blocks").iterdir()] == [MANIFEST]
    with pytest.raises(ValueError, match="about must have n_features"):
        BlockWriter(tmp_path / "other", {"label_names": ["a"]})
    assert not (tmp_path / "other").exists()


def test_columns_that_are_stored_are_written_as_rows_and_stored_zeros_as_none(tmp_path):
    X, Y = drawn(5, n=5)
    sets = csr_array(np.ones(Y.shape, np.uint8))
    sets.data[:] = Y.ravel()
    writer = BlockWriter(tmp_path / "blocks", ABOUT)
    writer.add(csc_array(X), sets)
    block = writer.finish().load(0)
    np.testing.assert_array_equal(block.inputs.toarray(), X)
    np.testing.assert_array_equal(block.sets.toarray(), Y)


@pytest.mark.parametrize("name", ["X.data", "X.indices", "X.indptr", "Y.indices", "weights"])
@pytest.mark.parametrize("damage", ["missing", "flipped", "cut", "other array"])
def test_a_damaged_block_is_refused_by_name_and_nothing_is_fitted(tmp_path, name, damage):
    X, Y = drawn(3)
    folder = tmp_path / "blocks"
    written(folder, csr_array(X), Y, 45)
    path = folder / file_name(1, name)
    data = path.read_bytes()
    if damage == "missing":
        path.unlink()
    elif damage == "other array":
        np.save(path, np.zeros(3), allow_pickle=False)
    else:
        middle = len(data) - 5
        flipped = data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]
        path.write_bytes(flipped if damage == "flipped" else data[:-3])
    model = SetClassifier()
    with pytest.raises(ValueError, match=r"damaged|no file 00001"):
        model.fit(FolderBlocks.open(folder))
    assert not hasattr(model, "coef_")


def test_a_damaged_manifest_is_refused(tmp_path):
    X, Y = drawn(4)
    folder = tmp_path / "blocks"
    written(folder, X, Y)
    about = json.loads((folder / MANIFEST).read_text())
    for wrong in (
        {"setwise_blocks": 2}, {"label_names": []}, {"n_features": "5"}, {"blocks": [{"rows": 1}]},
        {"blocks": [{"rows": -1, "files": {}}]}, {"blocks": None},
    ):  # fmt: skip
        (folder / MANIFEST).write_text(json.dumps({**about, **wrong}))
        with pytest.raises(ValueError, match="damaged, or written by another version"):
            FolderBlocks.open(folder)
    (folder / MANIFEST).write_text("{")
    with pytest.raises(ValueError, match="no JSON"):
        FolderBlocks.open(folder)
    # Names of files come from the number and the array: none leads out of the folder.
    (folder / MANIFEST).write_text(
        json.dumps({**about, "blocks": [{"rows": 1, "files": {"../X": [1, 1]}}]})
    )
    with pytest.raises(ValueError, match="damaged"):
        FolderBlocks.open(folder)
