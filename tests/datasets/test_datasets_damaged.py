"""Laws of damaged files: an error that names file and line, and nothing else; bounded memory."""

import bz2
import gzip
import io
import random
import resource
import subprocess
import sys
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from setwise.datasets import DataError, Dataset, read
from tests.support import dataset_files as files

HEAD = b"@relation r\n@attribute x numeric\n@attribute y {0,1}\n@data\n"
LAST = {"labels": -1}
B = {"labels": ["b"]}
LISTED = {"label_column": "b", "separator": ";"}

# Name, content, options, and what the message says.
DAMAGED = [
    ("a.arff", b"", {}, r"a\.arff: the file ends before @data"),
    ("a.arff", HEAD[:-6], LAST, r"a\.arff, line 3: the file ends before @data"),
    ("a.arff", HEAD, LAST, r"a\.arff: no rows"),
    ("a.arff", HEAD + b"1,1\n1\n", LAST, r"line 6: 1 values, but 2 attributes"),
    ("a.arff", HEAD + b"1,1,1\n", LAST, r"line 5: 3 values, but 2 attributes"),
    ("a.arff", HEAD + b"%\n\n1,2\n", LAST, r"line 7: attribute 'y' must be 0 or 1, but it is 2"),
    ("a.arff", HEAD + b"x,1\n", LAST, r"line 5: attribute 'x' is 'x', which is not a number"),
    ("a.arff", HEAD + b"1_0,1\n", LAST, r"line 5: attribute 'x' is '1_0', which is not a number"),
    ("a.arff", HEAD + b"1e999,1\n", LAST, r"line 5: attribute 'x' must be a finite number"),
    ("a.arff", HEAD + b"'1,1\n", LAST, r"line 5: a quote that is not closed"),
    ("a.arff", HEAD + b"{0 1,1 1\n", LAST, r"line 5: a sparse row that does not end with '}'"),
    ("a.arff", HEAD + b"{0 1,0 2}\n", LAST, r"line 5: index 0 is there twice"),
    ("a.arff", HEAD + b"{0 1 1,1}\n", LAST, r"line 5: expected is '{index value"),
    ("a.arff", HEAD + b"{-1 1}\n", LAST, r"line 5: expected is '{index value"),
    ("a.arff", HEAD + b"{1000000000 1}\n", LAST, r"line 5: index 1000000000; expected is 0 to 1"),
    ("a.arff", HEAD + b"{" + b"9" * 30 + b" 1}\n", LAST, r"line 5: index \d+; expected is 0 to 1"),
    ("a.arff", HEAD.replace(b"{0,1}", b"{1,0}") + b"{0 1}", LAST, r"line 3: .* sparse rows"),
    ("a.arff", HEAD.replace(b" y ", b" x "), LAST, r"line 3: attribute 'x' is declared twice"),
    ("a.arff", HEAD.replace(b"{0,1}", b"{0,0}"), LAST, r"line 3: .* the value '0' twice"),
    ("a.arff", HEAD.replace(b"{0,1}", b"{0,1"), LAST, r"line 3: .* no closing '}'"),
    ("a.arff", HEAD.replace(b"{0,1}", b"{a,b}"), LAST, r"line 3: label 'y' must be declared {0,1}"),
    ("a.arff", HEAD.replace(b"numeric", b"matrix"), LAST, r"line 2: .* the type 'matrix'"),
    ("a.arff", HEAD.replace(b"numeric", b"string"), LAST, r"line 2: .*text=\['x'\]"),
    ("a.arff", HEAD.replace(b" x ", b" caf\xe9 "), LAST, r"line 2: not utf-8 text: byte 0xe9"),
    ("a.arff", HEAD, {"labels": 2}, r"2 labels, but 2 attributes"),
    ("a.arff", HEAD, {"labels": ["z"]}, r"line 4: no attribute 'z'; known are 'x', 'y'"),
    ("a.arff", HEAD.replace(b" r\n", b" 'r: -C 9'\n"), {}, r"9 labels, but 2 attributes"),
    ("a.arff", HEAD + b"1,1\n", {}, r"line 4: which attributes are labels\?"),
    ("a.arff", files.CLUS.replace(b"@4", b"@5"), {}, r"line 5: unknown label '5'"),
    ("a.arff", files.CLUS.replace(b"@4", b"@1/2"), {}, r"line 5: label '1/2' is listed twice"),
    ("a.csv", b"x,b\0\n1,\n", {"labels": ["b\0"]}, r"line 2: label 'b.*' is unknown"),
    ("a.svm", b"1 3:x\n", {}, r"a\.svm, line 1: the value of '3:x' is no finite number"),
    ("a.svm", b"1 3:1\n1 3\n", {}, r"line 2: expected is index:value, not '3'"),
    ("a.svm", b"1 1:1\n1 -3:1\n", {}, r"line 2: index -3"),
    ("a.svm", b"1 1000000000:1\n", {}, r"line 1: index 1000000000; expected is 0 to 16777216"),
    ("a.svm", b"1 " + b"9" * 40 + b":1\n", {}, r"line 1: index"),
    ("a.svm", b"1 3:1 3:2\n", {}, r"line 1: index 3 is there twice"),
    ("a.svm", b"1,1 3:1\n", {}, r"line 1: label '1' is listed twice"),
    ("a.svm", b"1,,2 3:1\n", {}, r"line 1: an empty label"),
    ("a.svm", b"1 1:2:3 4\n", {}, r"line 1: the value of '1:2:3'"),
    ("a.svm", b"1 0:1\n", {"zero_based": False}, r"an index is 0"),
    ("a.svm", b"2 1:1\n", {"labels": ["1"]}, r"line 1: unknown label '2'; known are '1'"),
    ("a.svm", b"\xff 1:1\n", {}, r"line 1: not utf-8"),
    ("a.txt", b"2 3 2\n0 1:1\n", {}, r"a\.txt, line 2: the file ends after 1 rows, .* says 2"),
    ("a.txt", b"1 3 2\n0 1:1\n1 1:1\n", {}, r"line 3: more rows than the 1"),
    ("a.txt", b"1 1000000000 2\n0 1:1\n", {}, r"line 1: 1000000000 features"),
    ("a.txt", b"1 2 1000000000\n0 1:1\n", {}, r"line 1: 1000000000 labels"),
    ("a.txt", b"1 3 2\n2 1:1\n", {}, r"line 2: unknown label '2'; known are '0', '1'"),
    ("a.txt", b"1 3 2\n0 3:1\n", {}, r"line 2: index 3; expected is 0 to 2"),
    ("a.txt", b"hello\n", {}, r"a\.txt: the format is not recognised"),
    ("a.csv", b"", B, r"a\.csv, line 1: the file is empty"),
    ("a.csv", b"a,b\n", B, r"a\.csv: no rows"),
    ("a.csv", b"a,b\n1,1\n1\n", B, r"line 3: 1 cells, but 2 columns"),
    ("a.csv", b"a,b\n1,1,1\n", B, r"line 2: 3 cells, but 2 columns"),
    ("a.csv", b'a,b\n"1,1\n', B, r"line 2: no table: unexpected end of data"),
    ("a.csv", b"a,a,b\n1,1,1\n", B, r"line 1: two columns are named 'a'"),
    ("a.csv", b"a;b\n1;1\n", B, r"line 1: no column 'b'.* is the delimiter ';'\?"),
    ("a.csv", b'a,b\n1,1\n"x\ny",1\n', B, r"line 4: column 'a' is 'x\\ny', which is not a number"),
    ("a.csv", b"a,b,c,d,e\nx,1,y,2,z\n", B, r"these columns are not numbers either: 'c', 'e'$"),
    ("a.csv", b"a,b\ninf,1\n", B, r"line 2: column 'a' is infinite"),
    ("a.csv", b"a,b\n1,2\n", B, r"line 2: label 'b' is '2'; a column of labels has only 0 and 1"),
    ("a.csv", b"a,b\n1,\n", B, r"line 2: label 'b' is unknown"),
    ("a.csv", b"a,b\n1,x;x\n", LISTED, r"line 2: label 'x' is listed twice"),
    ("a.csv", b"a,b\n1,x;;y\n", LISTED, r"line 2: an empty label"),
    ("a.csv", b"a,b\n1,x\n1,?\n", LISTED, r"line 3: label 'b' is unknown"),
    ("a.csv", b"a,b\n1,1\n\xff,1\n", B, r"line 3: not utf-8 text"),
    (
        "a.csv",
        b"a,b\nthe,1\n",
        B | {"text": ["a"], "text_options": {"stop_words": "english"}},
        "empty",
    ),
    ("a.parquet", b"PAR1 and no more", B, r"a\.parquet: damaged or no Parquet file"),
    ("a.arff.gz", gzip.compress(files.MEKA)[:-9], {}, r"a\.arff\.gz: damaged or cut off"),
    ("a.arff.bz2", bz2.compress(files.MEKA)[:-9], {}, r"a\.arff\.bz2: damaged or cut off"),
    ("a.arff.xz", b"no such thing", {}, r"a\.arff\.xz: damaged or cut off"),
]


@pytest.mark.parametrize(("name", "content", "options", "message"), DAMAGED)
def test_the_error_names_the_file_and_the_line(name, content, options, message, tmp_path):
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=message) as caught:
        read(tmp_path / name, **options)
    assert caught.value.file == name
    assert str(caught.value).startswith(name)


@pytest.mark.parametrize(
    ("xml", "message"),
    [
        (b"<labels>", r"r\.xml, line 1: no XML"),
        (b"<labels/>", "no <label>"),
        (b"<labels>\n<label/></labels>", "expected are <label name=...>.*not <label name=None>"),
        (
            b'<labels><label name="y"/><label name="y"/></labels>',
            "no two alike, not <label name='y'>",
        ),
        (b'<labels><label name="z"/></labels>', r"r\.arff, line 4: no attribute"),
        (b'<labels><other name="z"/></labels>', "inside <labels>, .*not <other"),
        (b'<!DOCTYPE x [<!ENTITY e "e">]><labels><label name="&e;"/></labels>', "document type"),
        (b'<?xml version="1.0" encoding="none"?><labels/>', "no XML"),
    ],
)
def test_the_error_names_the_xml_file(xml, message, tmp_path):
    (tmp_path / "r.arff").write_bytes(HEAD + b"1,1\n")
    (tmp_path / "r.xml").write_bytes(xml)
    with pytest.raises(DataError, match=message):
        read(tmp_path / "r.arff")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("X.npz", None, "neither X.npz nor X.npy"),
        ("Y.npz", None, r"there is no Y\.npz"),
        ("Y.npz", b"no zip", r"Y\.npz: damaged"),
        ("Y.npz", files.packed(np.array([[2, 0]] * 3)), "only 0 and 1"),
        ("Y.npz", files.packed(np.ones((2, 2))), "same number of rows"),
        ("Y.npz", files.packed(np.ones((3, 3))), r"meta\.json: 'l' is 2, but there are 3"),
        ("meta.json", b"[" * 100_000, r"meta\.json: no JSON"),
        ("meta.json", b"{\n\n1}", r"meta\.json, line 3: no JSON"),
        ("meta.json", b'{"label_names": ["a", "a"]}', "labels 0 and 1 are both 'a'"),
        ("meta.json", b'{"label_names": ["a"]}', "1 labels are expected"),
        ("meta.json", b'{"hierarchy_edges": 5}', "must be a list of edges"),
        ("meta.json", b'{"hierarchy_edges": "x"}', "must be a list of edges .* whole numbers"),
        ("meta.json", b'{"split": {"file": "../other.npz"}}', "there is no file"),
        ("meta.json", b'{"split": {"train": {"range": [0, 3000000000]}}}', "the range of 'train'"),
        ("meta.json", b'{"split": {"train": {"indices": [7]}}}', "rows from 0 to 2"),
        ("meta.json", b'{"split": {"train": {"indices": {}}}}', "whole numbers"),
    ],
)
def test_the_error_names_what_is_wrong_in_a_folder(name, content, message, tmp_path):
    for other, data in files.folder_files().items():
        if other != name and other != "Y_specific.npz":
            (tmp_path / other).write_bytes(data)
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=message):
        read(tmp_path, format="folder")


def test_options_that_are_none_are_a_value_error(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"a,b\n1,1\n")
    for options, message in (
        ({"format": "xls"}, "format must be one of"),
        ({"colour": 1}, "has no option colour; it has labels"),
        ({}, "which columns are labels"),
        ({"labels": "b"}, "label_column='b'"),
        (B | {"dtype": "int8"}, "dtype"),
        (B | {"encoding": "none"}, "encoding"),
        (B | {"unknown_labels": "guess"}, "unknown_labels"),
        (B | {"delimiter": "::"}, "delimiter must be one ASCII character"),
        (B | {"delimiter": "§"}, "delimiter must be one ASCII character, but it is '§'"),
        (B | {"text": ["a"], "text_options": {"tokenizer": str.split}}, "options of text"),
        (B | {"text": ["a"], "text_options": {"token_pattern": "("}}, "text was not turned"),
    ):
        with pytest.raises(ValueError, match=message):
            read(tmp_path / "a.csv", **options)
    schema = read(tmp_path / "a.csv", **B).schema
    with pytest.raises(DataError, match="this is a folder; expected is a file"):
        schema.read(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"nothing\.csv"):
        read(tmp_path / "nothing.csv")


# ---------------------------------------------------------------------------------------- any bytes


def assert_read_or_refused(path, options):
    """A valid data set that its schema reads again, or a DataError."""
    try:
        data = read(path, **options)
    except DataError:
        return
    assert isinstance(data, Dataset)
    assert str(data)
    again = data.schema.read(path)
    one, other = (m.X.toarray() if sparse.issparse(m.X) else m.X for m in (data, again))
    np.testing.assert_array_equal(one, other)
    assert (data.Y != again.Y).sum() == 0
    parts = list(data.schema.chunks(path, rows=2))
    assert sum(part.n_rows for part in parts) == data.n_rows


@pytest.mark.parametrize("name", files.FILES)
@given(seeds=st.lists(st.integers(0, 2**32), min_size=6, max_size=6))
def test_whatever_is_changed_a_file_is_read_or_refused(name, seeds, tmp_path_factory):
    content, options = files.FILES[name]
    path = tmp_path_factory.mktemp("fuzz") / name
    for seed in seeds:
        path.write_bytes(files.damaged(content, random.Random(seed)))
        assert_read_or_refused(path, options)


@given(seeds=st.lists(st.integers(0, 2**32), min_size=6, max_size=6))
def test_whatever_is_changed_a_folder_or_xml_is_read_or_refused(seeds, tmp_path_factory):
    folder = tmp_path_factory.mktemp("fuzz")
    (folder / "r.arff").write_bytes(files.MULAN_SPARSE)
    whole = files.folder_files()
    for seed in seeds:
        chance = random.Random(seed)
        (folder / "r.xml").write_bytes(files.damaged(files.XML, chance))
        assert_read_or_refused(folder / "r.arff", {})
        changed = chance.choice(list(whole))
        for name, data in whole.items():
            (folder / name).write_bytes(files.damaged(data, chance) if name == changed else data)
        assert_read_or_refused(folder, {})


def test_a_column_of_lists_is_no_feature(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    for lists in ([[1.0], [2.0]], [[{"a": 1}], []]):
        parquet.write_table(arrow.table({"x": lists, "b": [0, 1]}), tmp_path / "a.parquet")
        with pytest.raises(DataError, match=r"a\.parquet: column 'x' (holds lists|has the type)"):
            read(tmp_path / "a.parquet", labels=["b"])


def test_a_quoted_cell_may_go_on_beyond_a_block(tmp_path, monkeypatch):
    """And the lines that follow keep their numbers, empty ones among them."""
    monkeypatch.setattr("setwise.datasets.table.BLOCK_BYTES", 16)
    rows = ["1,a,0", '2,"b\n\nc",1', "", "3,d,1", '"4",e,0', "5,f,1"]
    (tmp_path / "a.csv").write_text("\n".join(["x,t,b", *rows]))
    data = read(tmp_path / "a.csv", labels=["b"], drop=["t"])
    assert data.X.ravel().tolist() == [1, 2, 3, 4, 5]
    assert data.Y.ravel().tolist() == [0, 1, 1, 0, 1]
    for wrong, line in (("y,g,1", 10), ("6,g", 10), ("6,g,2", 10), ('6,"g"h,1', 10)):
        (tmp_path / "a.csv").write_text("\n".join(["x,t,b", *rows, wrong]))
        with pytest.raises(DataError, match=f"line {line}: "):
            read(tmp_path / "a.csv", labels=["b"], drop=["t"])


@given(seeds=st.lists(st.integers(0, 2**32), min_size=4, max_size=4))
def test_whatever_is_changed_a_parquet_file_is_read_or_refused(seeds, tmp_path_factory):
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    file = io.BytesIO()
    parquet.write_table(arrow.table({"x": [1.0, None], "b": [["p"], ["p", "q"]]}), file)
    path = tmp_path_factory.mktemp("fuzz") / "a.parquet"
    for seed in seeds:
        path.write_bytes(files.damaged(file.getvalue(), random.Random(seed)))
        assert_read_or_refused(path, {"label_column": "b"})


@given(
    content=st.binary(max_size=200), suffix=st.sampled_from(["", ".arff", ".svm", ".txt", ".csv"])
)
def test_bytes_that_are_no_file_are_refused(content, suffix, tmp_path_factory):
    path = tmp_path_factory.mktemp("fuzz") / f"a{suffix}"
    path.write_bytes(content)
    assert_read_or_refused(path, {"labels": ["b"]} if suffix in (".csv", ".arff") else {})


# ------------------------------------------------------------------------------------------- bounds

ASKED = """
import ast, resource, sys
from setwise.datasets import DataError, read
for path, options in ast.literal_eval(sys.argv[1]):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        read(path, **options)
    except DataError as error:
        print(error, end=" | ")
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def huge_matrix() -> bytes:
    """A zip file whose array promises 8 GB."""
    header = io.BytesIO()
    shape = {"descr": "<f8", "fortran_order": False, "shape": (10**9,)}
    np.lib.format.write_array_header_1_0(header, shape)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as packed:
        packed.writestr("data.npy", header.getvalue() + b"\0" * 64)
    return file.getvalue()


def asking():
    """Name, content, options, and what the message says; those that may need most come last."""
    return [
        ("a.txt", b"1 1000000000 2\n0 1:1\n", {}, "features"),
        ("b.txt", b"1000000000000 5 2\n0 1:1\n", {}, "ends after 1 rows"),
        ("a.svm", b"1 1000000000:1\n", {}, "index 1000000000"),
        ("a.arff", HEAD + b"{1000000000 1}\n", LAST, "index 1000000000"),
        ("X.npz", huge_matrix(), {"format": "folder"}, "promises more than it holds"),
        (
            "a.csv.bz2",
            bz2.compress(b"a,b\n" + b"1,1\n" * 2**20, 1),
            B | {"max_bytes": 2**20},
            "unpacks",
        ),
        ("a.csv.gz", gzip.compress(b"a,b\n" + b"1" * 2**27, 1), B, "line 2: longer than 67108864"),
    ]


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss is in KiB on Linux")
def test_a_small_file_that_asks_for_much_gets_little(tmp_path):
    files_that_ask = asking()
    asked = []
    for name, content, options, _ in files_that_ask:
        (tmp_path / name).write_bytes(content)
        asked.append((str(tmp_path if name == "X.npz" else tmp_path / name), options))
    done = subprocess.run(
        [sys.executable, "-c", ASKED, repr(asked)],
        capture_output=True,
        text=True,
        check=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (2**33, 2**33)),
    )
    for line, (name, *_, message) in zip(done.stdout.splitlines(), files_that_ask, strict=True):
        said, memory = line.rsplit(" | ", 1)
        assert message in said, name
        assert int(memory) < 300 * 2**10, name
