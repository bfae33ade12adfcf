"""Laws of taxonomies: one hierarchy from every form, closure, refusals that say what and where."""

import json
import tracemalloc

import numpy as np
import pandas
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

import setwise
from setwise import Taxonomy
from setwise.spaces import Forest, Paths
from setwise.targets import TreeDistance
from tests.support import cases, oracle
from tests.support.examples import generators
from tests.support.turns import in_turn

ANIMALS = ["animals", "animals/mammals", "plants", "animals/birds", "animals/mammals/cats"]
ANIMAL_PARENTS = [-1, 0, -1, 0, 1]


def test_one_hierarchy_from_every_form(tmp_path):
    """Path names, parents by number and by name, edges, a description and files."""
    edges = [["animals", ANIMALS[1]], ["animals", ANIMALS[3]], [ANIMALS[1], ANIMALS[4]]]
    columns = [[ANIMALS.index(a), ANIMALS.index(b)] for a, b in edges]
    by_name = [ANIMALS[above] if above >= 0 else None for above in ANIMAL_PARENTS]
    meta = {"name": "zoo", "l": 5, "label_names": ANIMALS, "hierarchy_edges": columns}
    (tmp_path / "meta.json").write_text(json.dumps(meta))
    (tmp_path / "names.txt").write_text("\n".join(ANIMALS))
    beside = {**meta, "label_names": None, "label_names_file": "names.txt"}
    (tmp_path / "beside.json").write_text(json.dumps(beside))
    rows = list(zip(ANIMALS, (name or "" for name in by_name), strict=True))
    (tmp_path / "parents.csv").write_text("label,parent\n" + "\n".join(map(",".join, rows)))
    (tmp_path / "edges.tsv").write_text("# of the zoo\n\n" + "\n".join(map("\t".join, edges)))
    (tmp_path / "edges.txt").write_text("\n".join(map(" ".join, edges)))
    (tmp_path / "paths.txt").write_text("\n".join(ANIMALS))
    for found in (
        Taxonomy.from_paths(ANIMALS),
        Taxonomy.from_paths([name.replace("/", "::") for name in ANIMALS], "::"),
        Taxonomy.from_parents(ANIMAL_PARENTS, ANIMALS),
        Taxonomy.from_parents(by_name, ANIMALS),
        Taxonomy.from_parents(dict(zip(ANIMALS, by_name, strict=True))),
        Taxonomy.from_parents(dict(zip(ANIMALS[::-1], by_name[::-1], strict=True)), ANIMALS),
        Taxonomy.from_edges(edges, ANIMALS),
        Taxonomy.from_edges([*edges, ["zoo", "plants"]], ANIMALS, root="zoo"),
        Taxonomy.from_edges([*edges, [None, "plants"]]).over(ANIMALS),
        Taxonomy.from_meta(meta),
        Taxonomy.from_meta(tmp_path / "meta.json"),
        Taxonomy.from_meta(tmp_path / "beside.json"),
        Taxonomy.read(tmp_path / "parents.csv"),
        Taxonomy.read(tmp_path / "edges.tsv", names=ANIMALS),
        Taxonomy.read(tmp_path / "edges.txt", names=ANIMALS),
        Taxonomy.read(tmp_path / "paths.txt"),
        Taxonomy(columns, ANIMALS),
    ):
        assert [name.replace("::", "/") for name in found.names] == ANIMALS
        assert found.parents.tolist() == ANIMAL_PARENTS
        assert found.lengths.tolist() == [1.0] * 5
        assert found.levels.tolist() == [0, 1, 0, 1, 2]
        assert (found.depth, found.roots.tolist(), found.leaves.tolist()) == (3, [0, 2], [2, 3, 4])
        assert found.is_tree
        assert str(found) == "Taxonomy of 5 labels on 3 levels, a tree with 2 roots"


def test_labels_without_names_are_called_by_their_numbers():
    assert Taxonomy.from_parents([1, -1, 1]).names.tolist() == [0, 1, 2]
    assert Taxonomy([[1, 0], [1, 2]]).parents.tolist() == [1, -1, 1]


def test_missing_parents_of_path_names_are_added_after_the_listed_ones():
    found = Taxonomy.from_paths(["01/02/05", "01", "03/01"], missing="add")
    assert found.names.tolist() == ["01/02/05", "01", "03/01", "01/02", "03"]
    assert found.parents.tolist() == [3, -1, 4, 1, -1]


def test_lengths_come_along():
    """From edges, from parents, through another order, into the target; a root's edge counts."""
    edges = [["", "a", 3.0], ["a", "b", 0.5], ["a", "c", "2"]]
    found = Taxonomy.from_edges(edges)
    assert found.lengths.tolist() == [3.0, 0.5, 2.0]
    assert found.over(["c", "a", "b"]).lengths.tolist() == [2.0, 3.0, 0.5]
    assert found.over(["c", "a", "b"]).parents.tolist() == [1, -1, 1]
    given_parents = Taxonomy.from_parents([-1, 0, 0], lengths=[3.0, 0.5, 2.0])
    for taxonomy in (found, given_parents):
        target = TreeDistance(taxonomy)
        assert target.loss([[1, 1, 0]], [[1, 0, 1]]) == pytest.approx(2.5 / 5.5)
    assert TreeDistance(found, lengths=[1.0, 1.0, 1.0]).lengths.tolist() == [1.0, 1.0, 1.0]
    assert Paths(found).parents.tolist() == Forest(found).parents.tolist() == [-1, 0, 0]


# ------------------------------------------------------------------------------------------ closure


@st.composite
def hierarchies(draw, several=True):
    """A hierarchy of random order, edges from lower to higher in some hidden order, as a dict."""
    rng = draw(generators())
    n_labels = draw(st.integers(1, 12))
    hidden = rng.permutation(n_labels)
    edges = []
    for place in range(1, n_labels):
        most = min(place, 3 if several else 1)
        above = rng.choice(place, size=int(rng.integers(0, most + 1)), replace=False)
        edges += [[int(hidden[a]), int(hidden[place])] for a in above]
    return Taxonomy(edges, np.arange(n_labels)), rng


def above(taxonomy, label):
    """The label and all above it, straight from the edges."""
    found = {label}
    while True:
        more = {int(a) for a, b in taxonomy.edges if b in found and a >= 0} - found
        if not more:
            return found
        found |= more


@given(drawn=hierarchies())
def test_closing_adds_exactly_what_stands_above(drawn):
    """Dense and CSR; the caller's sets stay; a closed set stays as it is."""
    taxonomy, rng = drawn
    n_labels = taxonomy.n_labels
    sets = (rng.random((6, n_labels)) < 0.3).astype(np.uint8)
    expected = np.zeros_like(sets)
    for row, labels in enumerate(sets):
        for label in np.flatnonzero(labels):
            expected[row, list(above(taxonomy, int(label)))] = 1
    before = sets.copy()
    np.testing.assert_array_equal(taxonomy.close(sets), expected)
    np.testing.assert_array_equal(sets, before)
    rows = scipy.sparse.csr_array(sets)
    assert isinstance(taxonomy.close(rows), scipy.sparse.csr_array)
    np.testing.assert_array_equal(taxonomy.close(rows).toarray(), expected)
    np.testing.assert_array_equal(taxonomy.close(expected), expected)
    is_closed = (sets == expected).all(axis=1)
    for given_sets in (sets, rows, sets.astype(bool), scipy.sparse.coo_matrix(sets)):
        np.testing.assert_array_equal(taxonomy.is_closed(given_sets), is_closed)
    reach = [[int(j in above(taxonomy, i)) for j in range(n_labels)] for i in range(n_labels)]
    np.testing.assert_array_equal(taxonomy.ancestors.toarray(), reach)


@given(drawn=hierarchies())
def test_a_set_that_is_not_closed_is_named(drawn):
    """Row, label and the parent it lacks, the first row of several; dense and CSR say the same."""
    taxonomy, rng = drawn
    sets = (rng.random((6, taxonomy.n_labels)) < 0.3).astype(np.uint8)
    is_closed = taxonomy.is_closed(sets)
    said = set()
    for given_sets in (sets, scipy.sparse.csr_array(sets)):
        if is_closed.all():
            taxonomy.refuse_open(given_sets)
            continue
        with pytest.raises(ValueError, match="must be closed") as refusal:
            taxonomy.refuse_open(given_sets, "y_true")
        row = int(np.argmin(is_closed))
        words = str(refusal.value).split()
        label, missing = int(words[words.index("has") + 1]), int(words[words.index("without") + 1])
        assert f"row {row} of y_true" in str(refusal.value)
        assert [missing, label] in taxonomy.edges.tolist()
        assert (sets[row, label], sets[row, missing]) == (1, 0)
        said.add(str(refusal.value))
    assert len(said) <= 1


@given(drawn=hierarchies())
def test_levels_are_the_longest_ways_from_a_root(drawn):
    taxonomy, _ = drawn
    for label in range(taxonomy.n_labels):
        parents = [a for a, b in taxonomy.edges if b == label and a >= 0]
        expected = 1 + max(taxonomy.levels[parents]) if parents else 0
        assert taxonomy.levels[label] == expected


@given(drawn=hierarchies())
def test_a_spanning_tree_keeps_the_deepest_parent_and_says_what_it_drops(drawn):
    """Its edges are some of the hierarchy's, and every closed set stays closed."""
    taxonomy, rng = drawn
    tree = taxonomy.spanning_tree()
    assert tree.is_tree
    assert tree.spanning_tree() is tree
    for label, parent in enumerate(tree.parents):
        parents = [a for a, b in taxonomy.edges if b == label and a >= 0]
        assert parent in (parents or [-1])
        if parents:
            assert taxonomy.levels[parent] == max(taxonomy.levels[parents])
    assert tree.is_closed(taxonomy.close(rng.random((8, taxonomy.n_labels)) < 0.3)).all()
    dropped = len(taxonomy.edges) - taxonomy.n_labels
    if dropped:
        assert f"{dropped} of " in tree.note
        assert tree.note in str(tree)
    else:
        assert tree is taxonomy


def test_a_hierarchy_of_several_parents_serves_closure_but_no_tree():
    found = Taxonomy.from_edges([["a", "c"], ["b", "c"], ["c", "d"], ["a", "b"]])
    assert not found.is_tree
    assert str(found) == "Taxonomy of 4 labels on 4 levels, labels with several parents with 1 root"
    assert found.close([[0, 0, 0, 1]]).tolist() == [[1, 1, 1, 1]]
    with pytest.raises(ValueError, match=r"tree is needed.*'c' has 'a' and 'b'.*spanning_tree"):
        _ = found.parents
    tree = found.spanning_tree()
    assert Forest(tree, closed=True).parents.tolist() == [-1, 2, 0, 1]
    assert "1 of 4 edges" in tree.note
    assert "'c' under 'a'" in tree.note


@given(rng=generators(), n_labels=st.integers(1, 8))
def test_closed_sets_are_those_of_the_closed_forest(rng, n_labels):
    taxonomy = Taxonomy.from_parents(cases.random_parents(n_labels, rng))
    everything = oracle.all_sets(n_labels)
    expected = Forest(taxonomy, closed=True).contains(everything)
    np.testing.assert_array_equal(taxonomy.is_closed(everything), expected)


@pytest.mark.parametrize("parents", [[-1, 0], {"a": None, "b": "a"}], ids=["list", "mapping"])
def test_names_that_are_lists_are_refused(parents):
    with pytest.raises(ValueError, match=r"text or numbers, but label 0 has \['a'\]"):
        Taxonomy.from_parents(parents, [["a"], ["b"]])


def test_a_deep_and_wide_taxonomy_is_no_matter():
    """30,000 labels; nothing of size l x l is made."""
    n_labels = 30_000
    rng = np.random.default_rng(0)
    taxonomy = Taxonomy.from_parents([-1, *(rng.integers(k // 2 + 1) for k in range(n_labels - 1))])
    assert taxonomy.ancestors.nnz == (taxonomy.levels + 1).sum()
    sets = scipy.sparse.csr_array(np.eye(1, n_labels, n_labels - 1))
    assert taxonomy.close(sets).nnz == taxonomy.levels[-1] + 1
    assert TreeDistance(taxonomy).lengths.sum() == n_labels


@given(drawn=hierarchies())
def test_a_frame_is_taken_by_the_names_of_its_columns(drawn):
    """In any order; by place where they only count, or the labels do."""
    numbered, rng = drawn
    n_labels = numbered.n_labels
    names = np.array([f"label {k}" for k in range(n_labels)])
    named = Taxonomy(numbered.edges, names)
    sets = (rng.random((6, n_labels)) < 0.3).astype(np.uint8)
    closed, is_closed = numbered.close(sets), numbered.is_closed(sets)
    order = rng.permutation(n_labels)
    for taxonomy, columns in ((named, names), (numbered, np.arange(n_labels))):
        frame = pandas.DataFrame(sets, columns=columns)[columns[order]]
        np.testing.assert_array_equal(taxonomy.close(frame), closed)
        np.testing.assert_array_equal(taxonomy.is_closed(frame), is_closed)
        if is_closed.all():
            taxonomy.refuse_open(frame)
    for taxonomy, columns in ((named, None), (numbered, names)):
        frame = pandas.DataFrame(sets, columns=columns)
        np.testing.assert_array_equal(taxonomy.close(frame), closed)


def test_a_frame_with_other_columns_is_refused():
    found = Taxonomy.from_paths(ANIMALS)
    frame = pandas.DataFrame(np.zeros((2, 5), int), columns=[*ANIMALS[:4], "oaks"])
    for use in (found.close, found.is_closed, found.refuse_open):
        with pytest.raises(
            ValueError, match="label 'oaks' is not among the labels of the taxonomy"
        ):
            use(frame)
    with pytest.raises(ValueError, match=r"5 columns.*\(2, 4\)"):
        found.close(frame[ANIMALS[:4]])
    with pytest.raises(ValueError, match="labels 0 and 1 are both 'plants'"):
        found.close(frame.set_axis(["plants", "plants", *ANIMALS[:3]], axis=1))
    with pytest.raises(
        ValueError, match="label '1' and 1 more is not among the labels of the taxonomy"
    ):
        Taxonomy.from_parents([-1, 0], [1, 2]).close(pandas.DataFrame({"1": [0], "2": [1]}))


def test_label_lists_by_number_and_empty_ones_are_closed():
    """Of labels that are called by numbers; 0/1 rows with an entry for each label are a matrix."""
    found = Taxonomy.from_parents([-1, 0, 1, 0])
    named = Taxonomy.from_parents([-1, 0, 1, 0], ["a", "b", "c", "d"])
    expected = [[1, 1, 1, 0], [1, 0, 0, 1], [0, 0, 0, 0]]
    for lists in ([[2], [3, 0], []], [[2], np.array([3]), ()], [{2}, {3}, set()]):
        assert found.close(lists).tolist() == expected
    assert found.close([[2], [3]]).tolist() == expected[:2]
    assert found.close([[0, 0, 1, 0], [0, 0, 0, 1]]).tolist() == expected[:2]
    assert found.is_closed([[0, 1, 2], [2], []]).tolist() == [True, False, True]
    for taxonomy in (found, named):
        assert taxonomy.close([[], []]).tolist() == [[0] * 4] * 2
    many = Taxonomy.from_parents([-1, 0], [10, 20])
    assert many.close([[20], [10]]).tolist() == [[1, 1], [1, 0]]
    for wrong, message in (
        ([[7], [0]], "not among the labels: 7"),
        ([[0, 2, 0, 0]], r"Y\[0, 1\] is 2"),
        ([[0, 1], [1, 0]], r"4 columns.*\(2, 2\)"),
        ([[0, 1, 0, 0], [1, 0]], "must have 4 entries.*their lengths differ"),
        ([[0.5, 0, 0, 0]], "0.5"),
        ([[0.5]], r"4 columns.*\(1, 1\)"),
    ):
        with pytest.raises(ValueError, match=message):
            found.close(wrong)
    with pytest.raises(ValueError, match="or list labels, but their lengths differ"):
        named.close([[2], [3, 0]])


def test_sparse_sets_take_the_memory_of_the_answer():
    """Of a chain, whose lists of ancestors have l² / 2 entries."""
    n_labels = 10_000
    chain = Taxonomy.from_parents(np.arange(n_labels) - 1)
    sets = scipy.sparse.csr_array(np.eye(3, n_labels, n_labels // 2, dtype=np.uint8))
    chain.close(sets), chain.is_closed(sets)
    tracemalloc.start()
    closed = chain.close(sets)
    assert chain.is_closed(closed).all()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert closed.sum(axis=1, dtype=int).tolist() == [5001, 5002, 5003]
    assert most < 100 * closed.nnz


# ------------------------------------------------------------------------------------------- errors

REFUSED = {
    "a cycle": (
        lambda: Taxonomy.from_edges([*map(list, ["ab", "bc", "ca", "cd"])]),
        r"cycle 'a' -> 'b' -> 'c'",
    ),
    "a cycle below a root": (
        lambda: Taxonomy.from_edges([["r", "a"], ["a", "b"], ["b", "a"]]),
        "cycle '[ab]' -> '[ab]' -> '[ab]'",
    ),
    "a loop": (lambda: Taxonomy([[0, 1], [1, 1]], ["a", "b"]), "cycle 'b' -> 'b'$"),
    "a loop of parents": (lambda: Taxonomy.from_parents([0]), "cycle 0 -> 0$"),
    "an edge twice": (
        lambda: Taxonomy.from_edges([["a", "b"], ["a", "b"]]),
        "'b' under 'a' is there 2 times",
    ),
    "an unknown parent": (
        lambda: Taxonomy.from_parents(["", "x"], ["a", "b"]),
        "parent 'x' of 'b' is not among the 2 labels",
    ),
    "an unknown parent in a mapping": (
        lambda: Taxonomy.from_parents({"a": "q", "b": None}),
        "parent 'q' of 'a' is not among the 2 labels",
    ),
    "an unknown parent of an edge": (
        lambda: Taxonomy.from_edges([["x", "a"]], names=["a"]),
        "edge 0: the parent 'x' of 'a' is not among the 1 labels",
    ),
    "an unknown child": (
        lambda: Taxonomy.from_edges([["a", "b"]], ["a"]),
        "'b' is not among the 1",
    ),
    "a missing parent of a path": (
        lambda: Taxonomy.from_paths(["a", "b/c"]),
        "parent 'b' of 'b/c' is not among the 2 labels; missing='add'",
    ),
    "an empty part of a path": (lambda: Taxonomy.from_paths(["a//b"]), "'a//b'"),
    "one name twice": (
        lambda: Taxonomy.from_paths(["a", "b", "a"]),
        "labels 0 and 2 are both 'a'",
    ),
    "a label without a parent entry": (
        lambda: Taxonomy.from_parents({"a": None}, names=["a", "b"]),
        "'b' is not among",
    ),
    "names of another length": (
        lambda: Taxonomy.from_parents([-1, 0], ["a"]),
        "2 parents and 1 names",
    ),
    "parents by name without names": (lambda: Taxonomy.from_parents(["a"]), "need names"),
    "a negative length": (
        lambda: Taxonomy.from_edges([["a", "b", 1], ["a", "c", -2.0]]),
        "length of edge 1, 'a' to 'c', must be a positive number, but it is -2",
    ),
    "a length that is no number": (
        lambda: Taxonomy.from_edges([["a", "b", "far"]]),
        "length of edge 0, 'a' to 'b', must be a positive number, but it is 'far'",
    ),
    "rows of different lengths": (
        lambda: Taxonomy.from_edges([["a", "b", 1], ["a", "c"]]),
        r"edge 1 is \['a', 'c'\]",
    ),
    "a child that is no label": (lambda: Taxonomy([[0, 5]], ["a"]), r"edges\[0\].*\[0, 5\]"),
    "edges of the wrong shape": (lambda: Taxonomy([[0, 1, 2]]), r"\(1, 3\)"),
    "nothing": (lambda: Taxonomy([]), "at least one label"),
    "no hierarchy in a description": (
        lambda: Taxonomy.from_meta({"name": "zoo", "hierarchy_edges": None}),
        "'zoo' has no hierarchy_edges",
    ),
    "a label of another taxonomy": (
        lambda: Taxonomy.from_paths(["a"]).over(["a", "b"]),
        "'b' is not among the Taxonomy of 1 labels",
    ),
    "sets of another width": (
        lambda: Taxonomy.from_paths(["a"]).close([[0, 1]]),
        r"1 columns.*\(1, 2\)",
    ),
    "a misspelt parent in a frame": (
        lambda: Taxonomy.from_edges(
            pandas.DataFrame({"label": ["a", "b", "c"], "parent": [None, "a", "A"]})
        ),
        r"parent 'A' of 'c' \(row 2 of the data frame\) has no row of its own.*misspelt",
    ),
    "a root that never occurs": (
        lambda: Taxonomy.from_edges([["a", "b"]], root="zoo"),
        "root must be the parent of a label, but nothing stands under 'zoo'",
    ),
    "a root of a frame that never occurs": (
        lambda: Taxonomy.from_edges(pandas.DataFrame({"parent": [0], "child": [1]}), root=2),
        "but nothing stands under 2",
    ),
    "edges with lengths in a mapping": (
        lambda: Taxonomy.from_edges({("a", "b"): 2.0}),
        "they are a dict; Taxonomy.from_parents takes a mapping",
    ),
    "a 2 in a set": (lambda: Taxonomy.from_paths(["a"]).close([[2]]), r"Y\[0, 0\] is 2"),
}


@in_turn(("make", "message"), REFUSED.values(), ids=REFUSED)
def test_what_is_no_hierarchy_is_refused_with_its_place(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_taxonomy_comes_back_from_a_file(tmp_path):
    found = Taxonomy.from_edges([["a", "b", 0.5], ["a", "c", 2.0], ["b", "c", 1.0]])
    setwise.save(found, tmp_path / "taxonomy.skops")
    loaded = setwise.load(tmp_path / "taxonomy.skops")
    assert loaded.edges.tolist() == found.edges.tolist()
    assert loaded.names.tolist() == found.names.tolist()
    assert loaded.lengths_of_edges.tolist() == found.lengths_of_edges.tolist()


@given(generators())
def test_the_most_specific_labels_are_those_above_no_other_of_the_set(generator):
    """By enumeration of ancestors; and closing gives back what was closed."""
    n_labels = int(generator.integers(1, 9))
    edges = [
        [above, child]
        for child in range(1, n_labels)
        for above in range(child)
        if generator.random() < 0.4
    ]
    taxonomy = Taxonomy(np.array(edges).reshape(-1, 2), list(range(n_labels)))
    above: dict[int, set[int]] = {}
    for label in range(n_labels):
        own = [a for a, child in edges if child == label]
        above[label] = set(own).union(*(above[a] for a in own))
    Y = (generator.random((12, n_labels)) < 0.5).astype(int)
    expected = np.zeros_like(Y)
    for row, labels in zip(expected, Y, strict=True):
        there = np.flatnonzero(labels).tolist()
        row[[i for i in there if not any(i in above[j] for j in there)]] = 1
    found = taxonomy.most_specific(Y)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(
        taxonomy.most_specific(scipy.sparse.csr_array(Y)).toarray(), expected
    )
    np.testing.assert_array_equal(taxonomy.close(found), taxonomy.close(Y))
