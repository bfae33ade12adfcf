"""Hierarchies from what users have: nothing becomes a label unasked, what is wrong is said."""

import gzip
import io
import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from setwise import Taxonomy
from tests.support.turns import in_turn

NAN = float("nan")
ABC = {"a": None, "b": "a", "c": "a"}


def parents_of(taxonomy):
    """The parents of each label by name, sorted; of a root none."""
    names = taxonomy.names.tolist()
    found = {name: [] for name in names}
    for above, child in taxonomy.edges.tolist():
        if above >= 0:
            found[names[child]].append(names[above])
    return {name: sorted(above) for name, above in found.items()}


TREE = {"a": [], "b": ["a"], "c": ["a"]}


# -------------------------------------------------------------------------------------------- edges


@pytest.mark.parametrize(
    "columns",
    [
        ["pa", "ch"],
        [0, 1],
        ["parent", "child"],
        ["Parent ID", "id"],
        ["source", "target"],
        ["from", "to"],
        ["is_a", "term"],
        ["parentName", "label"],
    ],
)
def test_a_frame_of_edges_is_taken_by_the_words_for_its_columns(columns):
    """In any order if the words are known, by place if not; lengths too."""
    frame = pd.DataFrame([["a", "b"], ["a", "c"]], columns=columns)
    assert parents_of(Taxonomy.from_edges(frame)) == TREE
    long = frame.assign(weight=[0.5, 2.0])
    assert Taxonomy.from_edges(long).over(["a", "b", "c"]).lengths.tolist() == [1.0, 0.5, 2.0]
    if columns not in (["pa", "ch"], [0, 1]):
        back = long[long.columns[::-1]]
        assert parents_of(Taxonomy.from_edges(back)) == TREE
        assert Taxonomy.from_edges(back).over(["a", "b", "c"]).lengths.tolist() == [1.0, 0.5, 2.0]


@pytest.mark.parametrize("nothing", [None, "", NAN, np.nan, pd.NA, np.float64("nan"), pd.NaT])
def test_what_is_nothing_is_the_virtual_root(nothing):
    assert parents_of(Taxonomy.from_edges([(nothing, "a"), ("a", "b"), ("a", "c")])) == TREE
    assert parents_of(Taxonomy.from_parents([nothing, "a", "a"], ["a", "b", "c"])) == TREE
    assert parents_of(Taxonomy.from_parents({**ABC, "a": nothing})) == TREE
    found = Taxonomy.from_parents([nothing, 0, 0])
    assert found.parents.tolist() == [-1, 0, 0]
    assert Taxonomy.from_parents(value for value in [nothing, 0]).parents.tolist() == [-1, 0]


@pytest.mark.parametrize("minus", [-1, np.int64(-1), -1.0])
def test_the_number_minus_one_is_the_virtual_root(minus):
    """Unless it is among the names; and 1.0, as a column with gaps has it, is 1."""
    found = Taxonomy.from_edges([(minus, 0), (0, 1), (0.0, 2.0)])
    assert found.names.tolist() == [0, 1, 2]
    assert found.names.dtype.kind == "i"
    assert found.parents.tolist() == [-1, 0, 0]
    assert Taxonomy.from_edges([(minus, 0)], names=[-1, 0]).parents.tolist() == [-1, 0]
    assert Taxonomy.from_parents({0: minus, 1: 0}).parents.tolist() == [-1, 0]
    gaps = pd.DataFrame({"parent": [None, 0, 0], "child": [0, 1, 2]})
    assert Taxonomy.from_edges(gaps).names.dtype.kind == "i"


# ------------------------------------------------------------------------------------------ parents


@pytest.mark.parametrize(
    "parents",
    [
        [None, 0, 0],
        [-1.0, 0, 0],
        np.array([NAN, 0.0, 0.0]),
        pd.Series([NAN, 0, 0]),
        pd.Series([None, 0, 0], dtype="Int64"),
        (None, 0, np.int32(0)),
    ],
)
def test_roots_stand_beside_numbers(parents):
    assert parents_of(Taxonomy.from_parents(parents, ["a", "b", "c"])) == TREE


def test_a_series_with_an_index_of_names_is_a_mapping():
    assert parents_of(Taxonomy.from_parents(pd.Series(ABC))) == TREE
    assert Taxonomy.from_parents(pd.Series(ABC)[::-1]).names.tolist() == ["c", "b", "a"]
    assert parents_of(Taxonomy.from_parents(pd.Series(ABC)[::-1], ["a", "b", "c"])) == TREE
    assert Taxonomy.from_parents(pd.Series([20, -1], index=[10, 20])).parents.tolist() == [1, -1]
    with pytest.raises(ValueError, match="labels 0 and 1 are both 'a'"):
        Taxonomy.from_parents(pd.Series([None, "a"], index=["a", "a"]))


def test_a_mapping_may_name_several_parents_and_leave_out_the_roots():
    """The latter where no entry is a root; an entry of lengths is that of each edge."""
    several = {"b": "a", "c": ["a"], "d": ["b", "c"]}
    expected = {"a": [], "b": ["a"], "c": ["a"], "d": ["b", "c"]}
    found = Taxonomy.from_parents(several)
    assert parents_of(found) == expected
    assert found.names.tolist() == ["b", "c", "d", "a"]
    for parents in ({**several, "a": []}, {**several, "a": None}, {**several, "a": [None]}):
        assert parents_of(Taxonomy.from_parents(parents)) == expected
    ordered = Taxonomy.from_parents(several, ["a", "b", "c", "d"], [4.0, 1.0, 2.0, 3.0])
    assert ordered.names.tolist() == ["a", "b", "c", "d"]
    assert ordered.lengths_of_edges.tolist() == [4.0, 1.0, 2.0, 3.0, 3.0]


REFUSED = {
    "a mapping of edges": (lambda: Taxonomy.from_edges({"a": "b"}), "are a dict.*from_parents"),
    "the name of a file": (lambda: Taxonomy.from_edges("edges.csv"), "are a str.*Taxonomy.read"),
    "text for an edge": (lambda: Taxonomy.from_edges(["ab", "cd"]), "edge 0 is 'ab'"),
    "numbers for edges": (lambda: Taxonomy.from_edges([1, 2]), "edge 0 is 1"),
    "no edge": (lambda: Taxonomy.from_edges([]), "there is no edge"),
    "no edge in a frame": (
        lambda: Taxonomy.from_edges(pd.DataFrame({"parent": [], "child": []})),
        "there is no edge",
    ),
    "another column": (
        lambda: Taxonomy.from_edges(
            pd.DataFrame([["a", "b", 1]], columns=["parent", "child", "n"])
        ),
        "it has 'n' too",
    ),
    "four columns": (lambda: Taxonomy.from_edges(pd.DataFrame([[0, 1, 2, 3]])), "4 columns: 0, 1"),
    "one known column": (
        lambda: Taxonomy.from_edges(pd.DataFrame([["a", "b"]], columns=["label", "mother"])),
        "of 'label', 'mother' none is one of parents",
    ),
    "two columns of labels": (
        lambda: Taxonomy.from_edges(
            pd.DataFrame([["a", "b", "c"]], columns=["id", "name", "parent_id"])
        ),
        "several columns of labels, 'id', 'name': .* occur in none",
    ),
    "a list for a label": (
        lambda: Taxonomy.from_edges([["a", ["b"]]]),
        r"edge 0 has \('a', \['b'\]\)",
    ),
    "a child that is nothing": (
        lambda: Taxonomy.from_edges([["a", None]]),
        "edge 0: the child None is not among the 1 labels",
    ),
    "a length that is nothing": (
        lambda: Taxonomy.from_edges([["a", "b", NAN]]),
        "edge 0, 'a' to 'b', must be a positive number, but it is nan",
    ),
    "a sparse matrix of edges": (
        lambda: Taxonomy.from_edges(csr_array([[0, 1]])),
        "are a csr_array",
    ),
    "a root that is a label": (
        lambda: Taxonomy.from_edges([["r", "a"]], names=["r", "a"], root="r"),
        "'r' is among the names",
    ),
    "two columns of one name": (
        lambda: Taxonomy.from_edges(pd.DataFrame([["a", "b"]], columns=["x", "x"])),
        "must differ, but they are 'x', 'x'",
    ),
    "an entry of nothing": (lambda: Taxonomy.from_parents({None: "a", "a": ""}), "of nothing"),
    "no parents": (lambda: Taxonomy.from_parents([]), "they are empty"),
    "no parents in a mapping": (lambda: Taxonomy.from_parents({}), "they are empty"),
    "half a parent": (
        lambda: Taxonomy.from_parents([-1, 0.5]),
        r"parents\[1\] must be .* but it is 0.5",
    ),
    "a parent that is True": (
        lambda: Taxonomy.from_parents([-1, True]),
        r"parents\[1\] must be .* but it is True",
    ),
    "a list of parents in a list": (
        lambda: Taxonomy.from_parents([[], [0]]),
        r"parents\[0\] must be .* but it is \[\]",
    ),
    "a parent beyond the labels": (
        lambda: Taxonomy.from_parents([-1, 5]),
        r"parents\[1\] must be -1, None or a label from 0 to 1, but it is 5",
    ),
    "a frame of parents": (
        lambda: Taxonomy.from_parents(pd.DataFrame({"parent": [-1, 0]})),
        "are a DataFrame; Taxonomy.from_edges",
    ),
    "a parent without an entry beside a root": (
        lambda: Taxonomy.from_parents({"a": None, "b": "x"}),
        "parent 'x' of 'b' is not among the 2 labels",
    ),
    "a parent that is not among the names": (
        lambda: Taxonomy.from_parents({"b": "a", "c": "x"}, ["a", "b", "c"]),
        "parent 'x' of 'c' is not among the 3 labels",
    ),
    "a dict in a mapping": (
        lambda: Taxonomy.from_parents({"a": [{}]}),
        "the entry of 'a' has \\({}, 'a'\\)",
    ),
    "a cycle by names": (
        lambda: Taxonomy.from_parents([2, 0, 1], ["a", "b", "c"]),
        "cycle '[abc]' -> '[abc]' -> '[abc]' -> '[abc]'$",
    ),
    "None among paths": (lambda: Taxonomy.from_paths([None, "a"]), r"paths\[0\] is None"),
    "NaN among paths": (lambda: Taxonomy.from_paths(["a", NAN]), r"paths\[1\] is nan"),
    "a number among paths": (lambda: Taxonomy.from_paths(["a", 1]), r"paths\[1\] is 1"),
    "a path for paths": (lambda: Taxonomy.from_paths("a/b"), "are a str"),
    "a frame of paths": (
        lambda: Taxonomy.from_paths(pd.DataFrame({"path": ["a"]})),
        "are a DataFrame",
    ),
    "no paths": (lambda: Taxonomy.from_paths([]), "there are no paths"),
    "named edges of a description": (
        lambda: Taxonomy.from_meta({"name": "zoo", "hierarchy_edges": [[0, 1], ["a", "b"]]}),
        "edges must be whole numbers",
    ),
    "no edges in a description": (
        lambda: Taxonomy.from_meta({"hierarchy_edges": 5}),
        r"edges must be whole numbers .* but their shape is \(\)",
    ),
    "no names in a description": (
        lambda: Taxonomy.from_meta({"hierarchy_edges": [], "label_names": 5}),
        "names must be a list with one name for each label, but it is 5",
    ),
    "no description": (lambda: Taxonomy.from_meta(5), "meta must be a mapping or a path"),
    "another number of names in a description": (
        lambda: Taxonomy.from_meta({"l": 3, "hierarchy_edges": [], "label_names": ["a"]}),
        "l = 3 labels, but 1 names",
    ),
}


@in_turn(("make", "message"), REFUSED.values(), ids=REFUSED)
def test_what_is_no_hierarchy_is_refused_with_its_place(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_long_cycle_is_shown_in_part():
    n_labels = 10_000
    with pytest.raises(ValueError, match=r"-> \.\.\. \(10000 labels\)$") as refusal:
        Taxonomy.from_parents((np.arange(n_labels) - 1) % n_labels)
    assert str(refusal.value).count("->") == 10
    with pytest.raises(ValueError, match="cycle") as refusal:
        Taxonomy.from_parents((np.arange(10) - 1) % 10)
    assert str(refusal.value).count("->") == 10
    assert "..." not in str(refusal.value)


def test_paths_without_the_separator_are_all_roots_and_a_warning_says_so():
    with pytest.warns(UserWarning, match="separator '/', so all 3 labels are roots; has 'a.b.c'"):
        found = Taxonomy.from_paths(["a", "a.b", "a.b.c"])
    assert len(found.roots) == 3
    assert Taxonomy.from_paths(["a"]).n_labels == 1


# -------------------------------------------------------------------------------------------- files


def read(tmp_path, text, **options):
    data = text if isinstance(text, bytes) else text.encode()
    (tmp_path / "file.txt").write_bytes(data)
    return Taxonomy.read(tmp_path / "file.txt", **options)


FILES = {
    "a byte order mark": "\ufeffparent,child\na,b\na,c\n",
    "quotes": '"parent","child"\n"a","b"\n"a","c"\n',
    "the words of graphs": "source,target\na,b\na,c",
    "spaces": "from to\na b\na   c",
    "labels first": "id,parent_id\na,\nb,a\nc,a\n",
    "tabs and a root at the end": "label\tparent\na\t\nb\ta\nc\ta\n",
    "terms": "term\tis_a\nb\ta\nc\ta\n",
    "semicolons": "parent;child\na;b\na;c\n",
    "bars": "a|b\na|c\n",
    "lengths": "parent,child,weight\na,b,1\na,c,1.0",
    "distances": "child distance parent\nb 1 a\nc 1 a",
    "comments": "# of the zoo\na,b # one\n\n  # more\na,c\t# two",
    "ends of lines": "a,b\r\na,c\r\n",
    "packed": gzip.compress(b"a,b\na,c\n"),
}


@pytest.mark.parametrize("text", FILES.values(), ids=FILES)
def test_a_file_of_edges_has_the_labels_it_names(text, tmp_path):
    found = read(tmp_path, text)
    assert parents_of(found) == TREE
    assert found.lengths.tolist() == [1.0, 1.0, 1.0]


def test_names_in_files_are_whole(tmp_path):
    """With # in them, commas in quotes, slashes, and -1 where names are no numbers."""
    found = read(tmp_path, 'lang,C#\nlang,"F#, ML"\nlang,"#1"\n#lang,x\n')
    assert found.names.tolist() == ["lang", "C#", "F#, ML", "#1"]
    assert read(tmp_path, "-1,0\n0,1\n0,2").parents.tolist() == [-1, 0, 0]
    assert read(tmp_path, "-1,0\n0,1", names=["-1", "0", "1"]).parents.tolist() == [-1, 0, 1]
    assert read(tmp_path, "-1,a\na,b").names.tolist() == ["-1", "a", "b"]
    assert read(tmp_path, "a,a/b\na/b,a/b/c").names.tolist() == ["a", "a/b", "a/b/c"]
    assert read(tmp_path, "class,cats\nclass,dogs").names.tolist() == ["class", "cats", "dogs"]


def test_lengths_come_by_any_of_their_names(tmp_path):
    for word in ("length", "Weight", "distance"):
        found = read(tmp_path, f"{word},child,parent\n0.5,b,a\n2,c,a\n")
        assert found.over(["a", "b", "c"]).lengths.tolist() == [1.0, 0.5, 2.0]


PATH_FILES = {
    "spaces": ["animals", "animals/big cats", "animals/big cats/snow leopards"],
    "commas": ["law", "law/civil, common", "law/civil, common/tax, duties"],
    "marks": ["a;b", "a;b/c|d;e"],
    "another separator": ["a", "a|b", "a|b|c"],
    "dots": ["a", "a.b c", "a.b c.d"],
}


@pytest.mark.parametrize(
    ("names", "separator"),
    list(zip(PATH_FILES.values(), "///|.", strict=True)),
    ids=PATH_FILES,
)
def test_path_names_may_have_what_parts_columns(names, separator, tmp_path):
    """Recognised if all that stands above them is there; else they are said to be paths."""
    options = {"separator": separator}
    expected = Taxonomy.from_paths(names, separator)
    for more in ({}, {"kind": "paths"}):
        found = read(tmp_path, "\n".join(names), **options, **more)
        assert found.names.tolist() == names
        assert found.parents.tolist() == expected.parents.tolist()
    quoted = read(tmp_path, "\n".join(f'"{name}"' for name in ["path", *names]), **options)
    assert quoted.names.tolist() == names
    added = read(tmp_path, names[-1], **options, missing="add", kind="paths")
    assert set(added.names.tolist()) == set(names)


FILES_REFUSED = {
    "other columns": ("parent,child,comment\na,b,c\n", {}, "line 1 .* it has 'comment' too"),
    "a header alone": ("parent,child\n", {}, "no edge below"),
    "two names of one label": ("id,name,parent\n1,a,\n", {}, "'id', 'name': .* occur in none"),
    "a parent of nobody": ("child,mother\nb,a\n", {}, "none is one of parents"),
    "four columns": ("a,b,c,d\na,e,f,g\n", {}, r"line 1: .* 2 or 3 columns .* it has 4: \['a'"),
    "a length that is none": ("a,b,1\n# x\na,c,far\n", {}, "length of line 3 of .*it is 'far'"),
    "a length below 0": ("a b 1\n\na c -2\n", {}, "length of line 3 of .*it is '-2'"),
    "another encoding": (
        "a,b\na,c\xe9\n".encode("latin-1"),
        {},
        "line 2: not utf-8 text: byte 0xe9 at position 4; save it so$",
    ),
    "a packed file cut off": (gzip.compress(b"a,b\n" * 9)[:-9], {}, "damaged"),
    "quotes that stay open": ('a,b\na,"c\n', {}, "line 2: no table"),
    "columns by two marks": ("a;b,c\nd;e,f\n", {}, "by ',' and by ';' alike"),
    "edges or paths": ("pets,cats\npets,cats/dogs\n", {}, "say kind='edges' or kind='paths'"),
    "a missing parent": ("a\nb/c\n", {}, "'b' of 'b/c'.*missing='add'"),
    "names of paths": ("a\na/b\n", {"names": ["a/b", "a"]}, "names and root .* Taxonomy.over"),
    "missing labels of edges": ("a,b\n", {"missing": "add"}, "'add' is for path names"),
    "no such kind": ("a,b\n", {"kind": "tree"}, "kind must be one of 'auto', 'edges', 'paths'"),
    "one column of edges": ("a\nb\n", {"kind": "edges"}, "it has one column"),
    "an outline": ("a\n\tb\n\t\tc\n", {}, "line 2: indented"),
    "an outline of spaces": ("a\n  b\n    c\n", {}, "line 2: indented"),
    "no paths but columns": ("a\na b\na b c\n", {}, "line 2: .*say kind='paths'"),
}


@pytest.mark.parametrize(("text", "options", "message"), FILES_REFUSED.values(), ids=FILES_REFUSED)
def test_a_file_that_is_no_hierarchy_is_refused_with_its_line(text, options, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        read(tmp_path, text, **options)


WORDS = st.text("ab ,;|#/\"'.-1é", min_size=1, max_size=6).map(str.strip).filter(bool)


@given(
    names=st.lists(WORDS, min_size=3, max_size=6, unique=True),
    mark=st.sampled_from("\t,;|"),
    data=st.data(),
)
def test_edges_in_quotes_are_read_whatever_their_names(names, mark, data, tmp_path_factory):
    """(A root without a row may not look like several labels, or like no parent.)"""
    assume(not {"|", ";"} & set(names[0]) and names[0] != "-1")
    above = [data.draw(st.integers(0, child)) for child in range(len(names) - 1)]
    edges = [(names[a], names[child + 1]) for child, a in enumerate(above)]
    text = [["parent", "child"], *edges]
    quoted = [mark.join('"' + end.replace('"', '""') + '"' for end in edge) for edge in text]
    found = read(tmp_path_factory.mktemp("edges"), "\n".join(quoted))
    assert parents_of(found) == {names[0]: [], **{child: [parent] for parent, child in edges}}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no lines"),
        (
            "a b\na c 2\n",
            "line 2: .* 2 columns, parted by ' ', as line 1 has, but it has 3",
        ),
        ("parent,size\na,3\n", "'parent', 'size' none is one of labels"),
        ("a b\nb a\n", "cycle"),
        (
            "label,parent\nanimals,\nbirds,animals\ncats,animls",
            r"parent 'animls' of 'cats' \(line 4 of .*\) has no row of its own.*misspelt",
        ),
        (
            "label,parent\nanimals,NA\ncats,animls",
            r"parent 'animls' of 'cats' \(line 3 of .*\) has no row",
        ),
        (
            "label,parent\na,\n\nb,a\nc,a|d",
            r"several parents of 'c' \(line 5 of .*\) must all be labels.* of 'a\|d' 'd' is none",
        ),
        (
            "id,name,parent_id\n1,2,\n2,1,1\n",
            "'id', 'name': the parents in 'parent_id' .*, but they occur in 'id', 'name'",
        ),
        (
            "id,name,parent_id\n1,a,\n2,b,c\n",
            "'id', 'name': the parents in 'parent_id' .*, but they occur in none",
        ),
        ('{"a": ["b","c"]}', "it has JSON, .*from_meta.*from_parents"),
        ('[["a", "b"], ["a", "c"]]', "it has JSON"),
        (json.dumps({"l": 99, "label_names": ["x" * 9] * 99}, indent=1), r"^.{,400}from_meta"),
        (f"a,b\n{'x' * 99},{'y' * 99},c", "^.{,300}$"),
        (f"parent,child,{'z' * 999}\na,b,c", "^.{,400}$"),
    ],
)
def test_a_file_that_cannot_be_read_as_a_hierarchy_says_where(text, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        read(tmp_path, text)


def test_a_root_of_a_file_that_never_occurs_is_refused(tmp_path):
    with pytest.raises(ValueError, match="but nothing stands under '7'"):
        read(tmp_path, "a b\na c", root=7)


def test_a_missing_file_and_a_folder_are_named(tmp_path):
    for look in (Taxonomy.read, Taxonomy.from_meta):
        with pytest.raises(FileNotFoundError, match=r"there is no file .*nowhere\.csv"):
            look(tmp_path / "nowhere.csv")
    with pytest.raises(FileNotFoundError, match=r"there is no file .*meta\.json"):
        Taxonomy.from_meta(tmp_path)
    with pytest.raises(ValueError, match="this is a folder; expected is a file"):
        Taxonomy.read(tmp_path)
    meta = {"name": "zoo", "hierarchy_edges": [[0, 1]], "label_names_file": "gone.txt"}
    (tmp_path / "meta.json").write_text(json.dumps(meta))
    with pytest.raises(FileNotFoundError, match=r"there is no file .*gone\.txt"):
        Taxonomy.from_meta(tmp_path)


# ------------------------------------------------------------------------------------------- tables


NUMBERED = {"1": [], "2": ["1"], "3": ["1"]}
ZOO = {"a": [], "b": [], "c": ["a", "b"]}
TABLES = {
    "whole numbers with a gap": ("label,parent\n1,\n2,1.0\n3,1.0", {}, NUMBERED),
    "whole numbers with -1 for the gap": ("label,parent\n1,-1.0\n2,1.0\n3,1.0", {}, NUMBERED),
    "edges of whole numbers": (",1\n1.0,2\n1.0,3", {}, NUMBERED),
    "versions": ("label,parent\n1.0,\nv2,1.0", {}, {"1.0": [], "v2": ["1.0"]}),
    "the word NA": ("id,parent\n1,NA\n2,1\n3,1", {}, NUMBERED),
    "a label called NA": ("id,parent\nNA,\nUS,NA", {}, {"NA": [], "US": ["NA"]}),
    "a listed label called NA": (
        *("child,parent\nUS,NA", {"names": ["NA", "US"]}),
        {"NA": [], "US": ["NA"]},
    ),
    "-1 above names": ("label,parent\na,-1\nb,a", {}, {"a": [], "b": ["a"]}),
    "bars between parents": ("id\tis_a\na\t\nb\t\nc\ta|b", {}, ZOO),
    "semicolons between parents": ("label,parent\na,\nb,\nc,a; b", {}, ZOO),
    "several parents without rows of roots": ("child,parent\nb,a\nc,a;b", {}, {**ZOO, "b": ["a"]}),
    "a label with a bar": ("label,parent\na|b,\nc,a|b", {}, {"a|b": [], "c": ["a|b"]}),
    "a root by number": ("parent,child\n0,1\n1,2\n1,3", {"root": 0}, NUMBERED),
    "a root by text": ("0 1\n1 2\n1 3", {"root": "0"}, NUMBERED),
    "the root -1": ("-1 1\n1 2\n1 3", {"root": -1}, NUMBERED),
    "ids and their names": (*("id,name,parent_id\n1,life,\n2,cats,1.0\n3,dogs,1.0", {}, NUMBERED),),
    "names and their ids": ("id,name,parent\n7,a,\n8,b,\n9,c,a;b", {}, ZOO),
}


@pytest.mark.parametrize(("text", "options", "expected"), TABLES.values(), ids=TABLES)
def test_a_table_has_no_labels_but_those_of_its_rows(text, options, expected, tmp_path):
    assert parents_of(read(tmp_path, text, **options)) == expected


@pytest.mark.parametrize("word", ["NA", "NaN", "nan", "None", "null", "<NA>"])
def test_words_for_no_parent_are_the_virtual_root(word, tmp_path):
    expected = {"a": [], "b": ["a"]}
    assert parents_of(read(tmp_path, f"label,parent\na,{word}\nb,a")) == expected
    frame = pd.DataFrame({"label": ["a", "b"], "parent": [word, "a"]})
    assert parents_of(Taxonomy.from_edges(frame)) == expected


@pytest.mark.parametrize("as_text", [False, True])
def test_a_frame_has_the_labels_of_its_file(as_text, tmp_path):
    """Ids with gaps among their parents, as numbers and as text."""
    text = "id,name,parent_id\n1,life,\n2,cats,1.0\n3,dogs,1.0\n"
    frame = pd.read_csv(io.StringIO(text), dtype=str if as_text else None)
    found = Taxonomy.from_edges(frame)
    assert found.names.tolist() == (["1", "2", "3"] if as_text else [1, 2, 3])
    assert found.parents.tolist() == read(tmp_path, text).parents.tolist() == [-1, 0, 0]


@pytest.mark.parametrize(
    "word", ["name", "Category", "class", "term", "node", "id", "path", "label"]
)
def test_a_word_above_path_names_is_no_label(word, tmp_path):
    """But where names stand under it, it is one."""
    assert read(tmp_path, f"{word}\na\na/b").names.tolist() == ["a", "a/b"]
    assert read(tmp_path, f"{word}\n{word}/b").names.tolist() == [word, f"{word}/b"]


def test_a_first_label_that_is_a_word_for_columns_stays_without_a_separator(tmp_path):
    with pytest.warns(UserWarning, match="all 2 labels are roots"):
        assert read(tmp_path, "class\norder").names.tolist() == ["class", "order"]


def test_edges_may_be_those_of_a_graph():
    networkx = pytest.importorskip("networkx")
    graph = networkx.DiGraph([("a", "b"), ("a", "c")])
    assert parents_of(Taxonomy.from_edges(graph.edges)) == {"a": [], "b": ["a"], "c": ["a"]}
    graph["a"]["c"]["weight"] = 2.0
    lengths = Taxonomy.from_edges(graph.edges(data="weight", default=1.0)).lengths
    assert lengths.tolist() == [1.0, 1.0, 2.0]


def test_an_edge_from_the_virtual_root_says_nothing_of_a_label_with_a_parent():
    for found in (
        Taxonomy.from_edges([["a", "b"], [None, "b"]]),
        Taxonomy.from_edges([[None, "b", 5.0], ["a", "b", 1.0]]).over(["a", "b"]),
        Taxonomy.from_parents({"a": None, "b": ["a", None]}),
    ):
        assert found.is_tree
        assert found.spanning_tree() is found
        assert found.parents.tolist() == [-1, 0]
        assert found.lengths.tolist() == [1.0, 1.0]
    several = Taxonomy.from_edges([["a", "c"], ["b", "c"], [None, "c"], [None, "b"]])
    assert "1 of 2 edges" in several.spanning_tree().note
    assert "virtual" not in several.spanning_tree().note


# --------------------------------------------------------------------------------------------- meta


def test_a_description_may_be_a_folder_and_have_lengths(tmp_path):
    meta = {"l": 3, "hierarchy_edges": [[0, 1], [0, 2]], "hierarchy_lengths": [0.5, 2.0]}
    (tmp_path / "meta.json").write_text(json.dumps(meta))
    for given_meta in (meta, tmp_path, tmp_path / "meta.json", str(tmp_path)):
        found = Taxonomy.from_meta(given_meta)
        assert found.names.tolist() == [0, 1, 2]
        assert found.lengths.tolist() == [1.0, 0.5, 2.0]
    with pytest.raises(ValueError, match=r"lengths must be of shape \(2,\)"):
        Taxonomy.from_meta({**meta, "hierarchy_lengths": [1.0]})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b", "no JSON"),
        ("[1]", "expected is an object .*, not a list"),
        ("{}", "no hierarchy_edges"),
    ],
)
def test_a_file_that_describes_no_hierarchy_is_refused(text, message, tmp_path):
    (tmp_path / "meta.json").write_text(text)
    with pytest.raises(ValueError, match=message):
        Taxonomy.from_meta(tmp_path)


def test_a_name_in_quotes_may_hold_a_line_end(tmp_path):
    file = tmp_path / "names.csv"
    file.write_text('parent,child\n,"a\nb"\n"a\nb",c\n')
    assert list(Taxonomy.read(file).names) == ["a\nb", "c"]
