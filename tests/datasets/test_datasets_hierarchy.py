"""Laws of labels in a taxonomy: found by name, closed on request, read again from other files."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from setwise import Taxonomy
from setwise.datasets import Dataset, read
from setwise.persistence import load, save
from setwise.taxonomy import raised
from tests.support import cases
from tests.support.examples import generators

SHOP = b"x,cats\n1,Home/Garden/Hoses\n2,Toys;Home/Lamps\n3,\n"


def test_the_taxonomy_of_a_data_set_has_the_names_of_its_labels():
    data = Dataset([[1.0]], [[1, 1]], None, ["art", "art/film"], hierarchy=[[0, 1]])
    assert data.taxonomy.names.tolist() == ["art", "art/film"]
    assert data.taxonomy.parents.tolist() == data.parents.tolist() == [-1, 0]
    lengths = Dataset([[1.0]], [[1, 1]], hierarchy=[[-1, 0], [0, 1]], edge_lengths=[3.0, 2.0])
    assert lengths.rows([0]).taxonomy.lengths.tolist() == [3.0, 2.0]


def test_the_taxonomy_of_a_data_set_without_a_hierarchy_is_refused():
    with pytest.raises(ValueError, match="books has no hierarchy; under"):
        Dataset([[1.0]], [[1]], name="books").taxonomy  # noqa: B018


@pytest.mark.parametrize("dense", [False, True])
def test_labels_under_a_taxonomy_are_found_by_name_and_closed(dense):
    Y = np.array([[1, 0], [0, 1]])
    data = Dataset([[1.0], [2.0]], Y if dense else sparse.csr_array(Y), None, ["c", "b"])
    taxonomy = Taxonomy.from_edges([["a", "b", 2.0], ["b", "c", 3.0], ["a", "d", 4.0]])
    found = data.under(taxonomy, close=True)
    assert found.label_names.tolist() == ["a", "b", "c", "d"]
    assert sparse.csr_array(found.Y).toarray().tolist() == [[1, 1, 1, 0], [1, 1, 0, 0]]
    assert sparse.csr_array(found.Y_specific).toarray().tolist() == [[0, 0, 1, 0], [0, 1, 0, 0]]
    assert found.taxonomy.lengths.tolist() == taxonomy.lengths.tolist()
    with pytest.raises(ValueError, match="row 0 of shop has 'c' without 'b' above it"):
        replace(data, name="shop").under(taxonomy)
    with pytest.raises(ValueError, match="'b' is not among its 2 labels; known are 'a', 'c'"):
        data.under(Taxonomy.from_edges([["a", "c"]]))


def test_labels_as_they_were_written_outlast_a_second_taxonomy():
    Y, written = [[1, 1], [1, 0]], [[0, 1], [1, 0]]
    data = Dataset([[1.0], [2.0]], Y, None, ["a", "b"], Y_specific=written)
    found = data.under(Taxonomy.from_edges([["a", "b"], ["z", "a"]], ["b", "a", "z"]), close=True)
    assert found.Y.tolist() == [[1, 1, 1], [0, 1, 1]]
    assert found.Y_specific.tolist() == [[1, 0, 0], [0, 1, 0]]


def test_what_is_no_taxonomy_is_refused():
    with pytest.raises(ValueError, match=r"from_parents\(parents, names\), not a list"):
        Dataset([[1.0]], [[1, 1]]).under([-1, 0])


@given(generators(), st.booleans())
def test_raised_probabilities_are_the_largest_of_a_label_and_those_below(rng, several):
    parents = cases.hierarchy(int(rng.integers(2, 8)), rng).arguments["parents"]
    taxonomy = Taxonomy([[0, 2], [1, 2], [0, 3], [2, 4], [1, 4]]) if several else None
    taxonomy = taxonomy or Taxonomy.from_parents(parents)
    probability = rng.random((4, taxonomy.n_labels))
    below = taxonomy.ancestors.toarray().T
    expected = np.stack([(below * row).max(axis=1) for row in probability])
    np.testing.assert_array_equal(raised(probability, taxonomy), expected)


def test_a_schema_under_a_taxonomy_reads_what_the_first_file_had_not(tmp_path):
    first, second = tmp_path / "shop.csv", tmp_path / "more.csv"
    first.write_bytes(SHOP)
    second.write_bytes(b"x,cats\n4,Home/Garden\n")
    data = read(first, label_column="cats", separator=";")
    taxonomy = Taxonomy.from_paths(data.label_names, missing="add")
    schema = data.under(taxonomy, close=True).schema
    save(schema, tmp_path / "schema.skops")
    again = load(tmp_path / "schema.skops")
    found = again.read(second)
    listed = found.label_names[found.Y.toarray()[0] == 1].tolist()
    assert sorted(listed) == ["Home", "Home/Garden"]
    assert [part.Y for part in again.chunks(second)] == [None]
