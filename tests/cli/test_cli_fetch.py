"""`setwise datasets fetch`, from a stand-in for OpenML: what it writes is read without options."""

import json

import numpy as np
import pytest

from setwise import Taxonomy
from setwise.cli.datasets import KNOWN, write_folder
from setwise.datasets import DataError, Dataset, fetch, read
from tests.datasets.test_openml import server  # noqa: F401  (a fixture)
from tests.support.command import found, run


def test_what_was_fetched_is_a_folder_to_fit(server, tmp_path, capfd):  # noqa: F811
    place = ("--url", server.url, "--cache", tmp_path / "cache")
    told = found(capfd, "datasets", "fetch", 7, *place, "-o", tmp_path / "texts")
    assert told["name"] == "texts"
    expected = fetch(7, cache=tmp_path / "cache", url=server.url)
    again = read(tmp_path / "texts")
    np.testing.assert_array_equal(again.Y.toarray(), expected.Y.toarray())
    np.testing.assert_array_equal(again.X.toarray(), expected.X.toarray())
    assert again.label_names.tolist() == expected.label_names.tolist()
    assert again.feature_names.tolist() == expected.feature_names.tolist()
    assert found(capfd, "datasets", "info", tmp_path / "texts") == told
    status, _, err = run(capfd, "datasets", "fetch", 7, *place, "-o", tmp_path / "texts")
    assert status == 2
    assert "is there already" in err
    status, _, err = run(capfd, "datasets", "fetch", 8, *place)
    assert status == 2
    assert "Unknown dataset" in err


def test_a_known_name_is_not_another_data_set(server, tmp_path, capfd, monkeypatch):  # noqa: F811
    place = ("--url", server.url, "--cache", tmp_path / "cache")
    monkeypatch.setitem(KNOWN, "yeast", 7)
    status, _, err = run(capfd, "datasets", "fetch", "yeast", *place, "-o", tmp_path / "yeast")
    assert status == 2
    assert "OpenML 7 should be 'yeast', but it is 'texts'" in err
    assert not (tmp_path / "yeast").exists()
    monkeypatch.setitem(KNOWN, "texts", 7)
    assert found(capfd, "datasets", "fetch", "texts", *place)["name"] == "texts"


@pytest.mark.parametrize("split", [None, {"train": [2, 0], "test": [1]}])
def test_a_folder_keeps_split_and_hierarchy(split, tmp_path):
    data = Dataset(
        [[1.0, np.nan], [2.0, 0.5], [3.0, 1.0]],
        [[1, 0], [1, 1], [0, 0]],
        ["size", "été"],
        ["law", "law, civil"],
        split=split,
        hierarchy=[[0, 1]],
        name="books",
    )
    write_folder(data, tmp_path / "books")
    first = read(tmp_path / "books")
    for again in (first, first.schema.read(tmp_path / "books")):
        np.testing.assert_array_equal(again.X, data.X)
        np.testing.assert_array_equal(again.Y.toarray(), data.Y)
        assert again.label_names.tolist() == data.label_names.tolist()
        assert again.hierarchy.tolist() == [[0, 1]]
        kept = again.split and {name: rows.tolist() for name, rows in again.split.items()}
        assert kept == split
        assert again.edge_lengths is None


def test_a_folder_keeps_lengths_and_labels_as_they_were_written(tmp_path):
    data = Dataset([[1.0], [2.0]], [[0, 1], [0, 0]], None, ["law", "law, civil"], name="books")
    taxonomy = Taxonomy([[0, 1], [-1, 0]], data.label_names, [0.5, 2.0])
    placed = data.under(taxonomy, close=True)
    write_folder(placed, tmp_path / "books")
    first = read(tmp_path / "books")
    for again in (
        first,
        first.schema.read(tmp_path / "books"),
        Taxonomy.from_meta(tmp_path / "books"),
    ):
        found = getattr(again, "taxonomy", again)
        assert found.lengths.tolist() == [2.0, 0.5]
    np.testing.assert_array_equal(first.Y.toarray(), [[1, 1], [0, 0]])
    np.testing.assert_array_equal(first.Y_specific.toarray(), data.Y)


@pytest.mark.parametrize(
    "lengths", ["long", {"0": 1.0}, [1.0, 2.0], [[1.0]], [None], [0.0], [1e999], 3]
)
def test_lengths_that_are_not_those_of_the_edges_are_refused(lengths, tmp_path):
    data = Dataset([[1.0]], [[1, 1]], None, ["law", "civil"], hierarchy=[[0, 1]])
    write_folder(data, tmp_path / "books")
    file = tmp_path / "books" / "meta.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"hierarchy_lengths": lengths}))
    with pytest.raises(DataError, match="length"):
        read(tmp_path / "books")
