"""A file becomes the blocks of what `read` reads of it, a few rows at a time."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array, issparse, save_npz, vstack

from setwise.blocks import FolderBlocks
from setwise.blocks.folder import BlockWriter
from setwise.datasets import convert, read, schema, sparse_text
from setwise.datasets.convert import schema_of
from setwise.taxonomy import Taxonomy

CSV = "size,colour,about,tags\n" + "".join(
    f"{i / 4},{('red', 'blue', '')[i % 3]},{('a good book', 'law of art')[i % 2]},"
    f"{';'.join(n for k, n in enumerate(('art', 'law', 'sea')) if (i + k) % (k + 2) == 0)}\n"
    for i in range(23)
)
ARFF = "@relation 'drawn: -C 2'\n@attribute a {0,1}\n@attribute b {0,1}\n@attribute x numeric\n"
ARFF += "@data\n" + "".join(f"{i % 2},{i // 2 % 2},{i / 8}\n" for i in range(23))
LIBSVM = "".join(f"{i % 3},{3 + i % 2} 1:{i / 8} {2 + i % 4}:1\n" for i in range(23))
EXTREME = "23 5 4\n" + "".join(f"{i % 4} {i % 5}:{1 + i / 8}\n" for i in range(23))
TABLE = {"label_column": "tags", "separator": ";"}
CASES = {
    "listed.csv": (CSV, {**TABLE, "drop": ["colour", "about"]}),
    "categories.csv": (CSV, {**TABLE, "categorical": ["colour"], "drop": ["about"]}),
    "auto.csv": (CSV, {**TABLE, "categorical": "auto"}),
    "text.csv": (CSV, {**TABLE, "text": ["about"], "categorical": ["colour"]}),
    "plain.arff": (ARFF, {}),
    "plain.libsvm": (LIBSVM, {}),
    "plain.txt": (EXTREME, {}),
}


def rows_of(blocks):
    parts = [blocks.load(number) for number in range(len(blocks))]
    X = [part.inputs for part in parts]
    X = vstack(X).toarray() if issparse(X[0]) else np.concatenate(X)
    return X, vstack([part.sets for part in parts]).toarray()


def dense(matrix):
    return matrix.toarray() if issparse(matrix) else matrix


@pytest.mark.parametrize("kept", [None, 1], ids=["kept", "read again"])
@pytest.mark.parametrize("name", CASES)
def test_blocks_are_the_rows_that_read_gives(tmp_path, monkeypatch, name, kept):
    """Also of files of which nothing is kept while they are looked through."""
    if kept:
        monkeypatch.setattr(schema, "MOST_KEPT", kept)
        monkeypatch.setattr(sparse_text, "BLOCK_ROWS", 4)
    text, options = CASES[name]
    file = tmp_path / name
    file.write_text(text)
    data = read(file, **options)
    blocks = convert(file, tmp_path / "blocks", rows=10, **options)
    assert [len(blocks.load(number).weights) for number in range(len(blocks))] == [10, 10, 3]
    X, Y = rows_of(blocks)
    np.testing.assert_array_equal(X, dense(data.X))
    np.testing.assert_array_equal(Y, dense(data.Y))
    assert issparse(blocks.load(0).inputs) == issparse(data.X)
    assert blocks.names.names.tolist() == data.label_names.tolist()
    again = schema_of(FolderBlocks.open(tmp_path / "blocks")).read(file)
    np.testing.assert_array_equal(dense(again.X), X)
    np.testing.assert_array_equal(dense(again.Y), Y)


def test_a_folder_of_arrays_and_its_parts(tmp_path):
    rng, folder = np.random.default_rng(0), tmp_path / "arrays"
    folder.mkdir()
    X, Y = rng.random((20, 3)), (rng.random((20, 2)) < 0.5).astype(np.uint8)
    np.save(folder / "X.npy", X)
    save_npz(folder / "Y.npz", csr_array(Y))
    np.testing.assert_array_equal(rows_of(convert(folder, tmp_path / "all", rows=7))[0], X)
    (folder / "meta.json").write_text(
        '{"split": {"train": {"range": [0, 12]}, "test": {"indices": [19, 13]}}}'
    )
    for part, rows in (("train", range(12)), ("test", [13, 19])):
        found = rows_of(convert(folder, tmp_path / part, rows=7, part=part))
        np.testing.assert_array_equal(found[0], X[rows])
        np.testing.assert_array_equal(found[1], Y[rows])
    for part in (None, "others"):
        with pytest.raises(ValueError, match=r"the parts train, test: name one .*part="):
            convert(folder, tmp_path / "none", part=part)
    assert not (tmp_path / "none").exists()


def test_an_interrupted_conversion_goes_on_where_it_was(tmp_path, monkeypatch):
    file, folder = tmp_path / "books.csv", tmp_path / "blocks"
    file.write_text(CSV)
    options = CASES["categories.csv"][1]
    plain, calls = BlockWriter.add, 0

    def interrupted(self, *block):
        nonlocal calls
        calls += 1
        if calls == 3:
            raise KeyboardInterrupt
        plain(self, *block)

    monkeypatch.setattr(BlockWriter, "add", interrupted)
    with pytest.raises(KeyboardInterrupt):
        convert(file, folder, rows=4, **options)
    with pytest.raises(ValueError, match="not complete"):
        FolderBlocks.open(folder)
    blocks = convert(file, folder, rows=4, **options)
    assert calls == 3 + 4
    np.testing.assert_array_equal(rows_of(blocks)[0], dense(read(file, **options).X))
    with pytest.raises(ValueError, match="blocks: this is there already"):
        convert(file, folder, rows=4, **options)


def test_a_conversion_begun_from_another_file_is_not_gone_on_with(tmp_path, monkeypatch):
    file, folder = tmp_path / "books.csv", tmp_path / "blocks"
    file.write_text(CSV)
    monkeypatch.setattr(BlockWriter, "finish", lambda self: None)
    convert(file, folder, **CASES["listed.csv"][1])
    with pytest.raises(ValueError, match=r"begun from something else \(block_rows\)"):
        convert(file, folder, rows=5, **CASES["listed.csv"][1])
    file.write_text(CSV + "1,red,a,art\n")
    with pytest.raises(ValueError, match=r"begun from something else \(source\)"):
        convert(file, folder, **CASES["listed.csv"][1])


def test_a_malformed_file_leaves_no_blocks_that_can_be_opened(tmp_path):
    file = tmp_path / "books.csv"
    file.write_text(CSV + "1,red\n")
    with pytest.raises(ValueError, match=r"books\.csv, line 25"):
        convert(file, tmp_path / "blocks", rows=4, **CASES["listed.csv"][1])
    with pytest.raises((ValueError, FileNotFoundError)):
        FolderBlocks.open(tmp_path / "blocks")


def test_parts_are_placed_in_a_taxonomy(tmp_path):
    file = tmp_path / "shop.csv"
    file.write_text(
        "x,cats\n" + "".join(f"{i},{('home/hoses', 'toys')[i % 2]}\n" for i in range(9))
    )
    options = {"label_column": "cats", "separator": ";"}
    taxonomy = Taxonomy.from_paths(["home/hoses", "toys"], missing="add")
    blocks = convert(
        file,
        tmp_path / "b",
        rows=4,
        **options,
        placed=lambda data: data.under(taxonomy, close=True),
    )
    expected = read(file, **options).under(taxonomy, close=True)
    np.testing.assert_array_equal(rows_of(blocks)[1], dense(expected.Y))
    assert blocks.about["hierarchy_edges"] == expected.hierarchy.tolist()
