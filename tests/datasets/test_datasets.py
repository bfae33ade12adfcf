"""Laws of the readers: what is in a file is in the data set, and a second file has its columns."""

import gzip
import json
import lzma
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.datasets import dump_svmlight_file, load_svmlight_file
from sklearn.feature_extraction.text import TfidfVectorizer

from setwise import SetClassifier
from setwise.datasets import DataError, Dataset, read
from setwise.persistence import load, save
from tests.support import dataset_files as files
from tests.support.turns import in_turn


def dense(matrix):
    return matrix.toarray() if sparse.issparse(matrix) else np.asarray(matrix)


def write(folder, name):
    """One of the small files, and how it is read."""
    content, options = files.FILES[name]
    path = folder / name
    path.write_bytes(content)
    return path, options


def assert_same_rows(one, other):
    np.testing.assert_array_equal(dense(one.X), dense(other.X))
    np.testing.assert_array_equal(dense(one.Y), dense(other.Y))
    assert one.label_names.tolist() == other.label_names.tolist()


# --------------------------------------------------------------------------------- what files hold


@pytest.mark.parametrize("suffix", ["", ".gz", ".bz2", ".xz"])
def test_a_meka_file_has_the_labels_that_its_relation_says(suffix, tmp_path):
    data = read(write(tmp_path, f"meka.arff{suffix}")[0])
    assert data.name == "songs"
    assert data.label_names.tolist() == ["calm", "very loud"]
    # The first value of a nominal attribute is where its features are 0.
    assert data.feature_names.tolist() == ["tempo", "key=major", "key=no key", "length"]
    np.testing.assert_array_equal(
        dense(data.X), [[0.5, 0, 0, 1000], [math.nan, 0, 1, -2], [7, 1, 0, 0.5]]
    )
    np.testing.assert_array_equal(data.Y, [[0, 1], [1, 1], [1, 0]])
    assert data.has_missing


def test_meka_labels_may_be_last(tmp_path):
    path = tmp_path / "last.arff"
    path.write_bytes(files.MULAN_SPARSE.replace(b"texts", b"'texts: -C -2'"))
    assert read(path).label_names.tolist() == ["news", "sport"]


def test_a_mulan_file_has_the_labels_and_the_hierarchy_of_its_xml(tmp_path):
    (tmp_path / "texts.xml").write_bytes(files.XML)
    for name in ("texts.arff", "texts-train.arff", "texts_test.arff"):
        (tmp_path / name).write_bytes(files.MULAN_SPARSE)
        data = read(tmp_path / name)
        assert sparse.issparse(data.X)
        assert data.feature_names.tolist() == ["sun", "rain", "wind"]
        np.testing.assert_array_equal(
            dense(data.X), [[1.5, 1, 0], [0, 0, 0], [0, 0, -1e-3], [math.nan, 0, 0]]
        )
        np.testing.assert_array_equal(dense(data.Y), [[1, 0], [0, 0], [0, 1], [1, 0]])
        assert data.hierarchy.tolist() == [[0, 1]]
        assert data.parents.tolist() == [-1, 0]


def test_labels_of_dense_arff_stand_anywhere_and_in_either_order_of_values(tmp_path):
    data = read(write(tmp_path, "dense.arff")[0], labels=["owl", "wren"])
    assert data.label_names.tolist() == ["wren", "owl"]
    np.testing.assert_array_equal(data.Y, [[1, 0], [0, 1]])
    np.testing.assert_array_equal(data.X, [[0.25], [-3]])


def test_a_clus_file_is_closed_upwards(tmp_path):
    data = read(write(tmp_path, "clus.arff")[0])
    assert data.label_names.tolist() == ["1", "1/2", "1/2/3", "4"]
    assert data.hierarchy.tolist() == [[0, 1], [1, 2]]
    np.testing.assert_array_equal(
        dense(data.Y_specific), [[0, 1, 0, 1], [0, 0, 1, 0], [0, 0, 0, 1]]
    )
    np.testing.assert_array_equal(dense(data.Y), [[1, 1, 0, 1], [1, 1, 1, 0], [0, 0, 0, 1]])


def clus(tmp_path, values, *rows):
    """A Clus file of one feature."""
    lines = [f"{number},{row}" for number, row in enumerate(rows)]
    head = f"@attribute x numeric\n@attribute c hierarchical {values}\n@data\n"
    (tmp_path / "clus.arff").write_text(head + "\n".join(lines))
    return tmp_path / "clus.arff"


@pytest.mark.parametrize("options", [{}, {"dag": True}])
@pytest.mark.parametrize("values", ["root/a,root/b,a/c,b/c,c/d", "a/c,b/c,c/d"])
def test_the_edges_of_a_clus_dag(values, options, tmp_path):
    """Recognised by its root, or by an edge that leads on from another; closed upwards."""
    data = read(clus(tmp_path, values, "c", "b", "d@a"), **options)
    order = [data.label_names.tolist().index(name) for name in "abcd"]
    assert len(data.label_names) == 4
    np.testing.assert_array_equal(
        dense(data.Y)[:, order], [[1, 1, 1, 0], [0, 1, 0, 0], [1, 1, 1, 1]]
    )
    with pytest.raises(ValueError, match=r"'c' has '[ab]' and '[ab]'; Taxonomy"):
        data.parents  # noqa: B018
    assert not data.taxonomy.is_tree


@pytest.mark.parametrize(
    ("values", "row", "names"),
    [
        ("1,1/1,1/2,2,2/1", "1/2@2", ["1", "1/1", "1/2", "2", "2/1"]),
        ("root,root/a,a,a/b", "root/a", ["root", "root/a", "a", "a/b"]),
        ("1/1,1/2,2/1", "1/2@2/1", ["1", "1/1", "1/2", "2", "2/1"]),
        ("01/02,02/01/03", "02/01", ["01", "01/02", "02", "02/01", "02/01/03"]),
        ("a/c,b/d", "a/c@b", ["a", "a/c", "b", "b/d"]),
    ],
)
def test_clus_paths_are_not_taken_for_edges(values, row, names, tmp_path):
    """Those that list what stands above, have three parts, a label named as its parent, or end."""
    for options in ({}, {"dag": False}):
        assert read(clus(tmp_path, values, row), **options).label_names.tolist() == names


@pytest.mark.parametrize(
    ("values", "options", "message"),
    [
        ("a,a/b,b/c", {}, "line 2: .* as 'b' is not among them, but 'a' is no edge; say dag=True"),
        ("root/a,b", {}, "as 'root' is not among them, but 'b' is no edge"),
        ("1/2,2/3,3/1", {}, "such edges would go in a circle; say dag=True"),
        ("root/a,a/b,b/a", {}, "line 2: the edges go in a circle: '[ab]', '[ab]', '[ab]'"),
        ("1/2,2/1", {"dag": True}, "line 2: the edges go in a circle"),
        ("a/b,b/root", {"dag": True}, "'b/root' is no edge"),
        ("a/b,b/c/d", {"dag": True}, "'b/c/d' is no edge"),
    ],
)
def test_a_clus_file_that_could_be_either_or_goes_round_is_refused(
    values, options, message, tmp_path
):
    with pytest.raises(DataError, match=message):
        read(clus(tmp_path, values, "a"), **options)


def test_a_libsvm_file(tmp_path):
    data = read(write(tmp_path, "rows.svm")[0])
    assert data.label_names.tolist() == ["1", "2", "10"]
    np.testing.assert_array_equal(
        dense(data.X), [[0.5, 0, 1e-3, 0], [0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 5]]
    )
    np.testing.assert_array_equal(dense(data.Y), [[1, 1, 0], [0, 0, 0], [0, 0, 1], [0, 1, 1]])
    assert data.feature_names is None


@given(seed=st.integers(0, 10_000))
def test_libsvm_agrees_with_scikit_learn(seed, tmp_path_factory):
    rng = np.random.default_rng(seed)
    X = sparse.random(12, 7, 0.4, format="csr", random_state=rng)
    X.data *= 10.0 ** rng.integers(-20, 20, len(X.data))
    Y = rng.random((12, 4)) < 0.4
    path = tmp_path_factory.mktemp("svm") / "rows.svm"
    dump_svmlight_file(X, Y.astype(int), str(path), multilabel=True, zero_based=False)
    theirs, labels = load_svmlight_file(str(path), multilabel=True, n_features=7)
    if not any(labels):
        return
    data = read(path, n_features=7, labels=["0", "1", "2", "3"], zero_based=False)
    # (An empty line is no row for either: one without labels and features is lost in the format.)
    np.testing.assert_array_equal(dense(data.X), dense(theirs))
    expected = [[float(label in row) for label in range(4)] for row in labels]
    np.testing.assert_array_equal(dense(data.Y), expected)


def test_an_extreme_file_and_its_splits(tmp_path):
    path, _ = write(tmp_path, "rows.txt")
    (tmp_path / "train.txt").write_text("1 4\n3 2\n")
    (tmp_path / "test.txt").write_text("2 3\n4 1\n")
    splits = {"train_split": tmp_path / "train.txt", "test_split": tmp_path / "test.txt"}
    data = read(path, **splits, split_column=1)
    expected = [[1, 0, 0, 0, 0.5], [0, 2, 0, 0, 0], [0, 0, 0, 4, 0], [0, 0, 0, 0, 0]]
    np.testing.assert_array_equal(dense(data.X), expected)
    np.testing.assert_array_equal(dense(data.Y), [[1, 0, 1], [0, 0, 0], [0, 1, 0], [0, 0, 1]])
    assert data.split["train"].tolist() == [3, 1]
    np.testing.assert_array_equal(dense(data.test().X), dense(data.X)[[2, 0]])


@pytest.mark.parametrize("name", ["columns.csv", "columns.tsv"])
def test_a_table_with_a_column_for_each_label(name, tmp_path):
    path, options = write(tmp_path, name)
    data = read(path, **options)
    np.testing.assert_array_equal(data.X, [[1], [2.5], [math.nan]])
    np.testing.assert_array_equal(data.Y, [[0, 1], [1, 1], [0, 0]])
    assert data.label_names.tolist() == ["y_a", "y_b"]


def test_a_table_with_text_categories_and_a_list_of_labels(tmp_path):
    path, options = write(tmp_path, "texts.csv")
    data = read(path, **options)
    vectorizer = TfidfVectorizer()
    terms = vectorizer.fit_transform(['a good, old "book"', "the law\n of books", "new"])
    names = [f"body:{term}" for term in vectorizer.get_feature_names_out()]
    assert data.feature_names.tolist() == ["pages", "kind=x", "kind=y", *names]
    np.testing.assert_array_equal(dense(data.X[:, :3]), [[3, 1, 0], [math.nan, 0, 1], [4.5, 1, 0]])
    np.testing.assert_allclose(dense(data.X[:, 3:]), dense(terms), rtol=1e-15)
    assert data.label_names.tolist() == ["art", "law"]
    np.testing.assert_array_equal(dense(data.Y), [[1, 1], [0, 1], [0, 0]])


class Weekday:
    """A kind of column that the package does not have: a feature for each day."""

    days = ("mon", "tue", "wed")
    width = 3

    def code(self, text):
        return self.days.index(text) + 1.0 if text in self.days else None

    def wrong(self, text):
        return f"is {text!r}, which is no day"

    def feature_names(self, column):
        return [f"{column}:{day}" for day in self.days]


def test_another_kind_of_column_needs_only_a_class(tmp_path):
    path = tmp_path / "days.csv"
    path.write_text("day,pages,y\nwed,1,0\nmon,2,1\n?,3,1\n")
    data = read(path, labels=["y"], kinds={"day": Weekday()})
    assert data.feature_names.tolist() == ["day:mon", "day:tue", "day:wed", "pages"]
    lost = [math.nan] * 3
    np.testing.assert_array_equal(dense(data.X), [[0, 0, 1, 1], [1, 0, 0, 2], [*lost, 3]])
    path.write_text("day,pages,y\nsun,1,0\n")
    with pytest.raises(DataError, match="line 2: column 'day' is 'sun', which is no day"):
        read(path, labels=["y"], kinds={"day": Weekday()})


def test_a_parquet_file_is_the_table_it_was_made_from(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    table = {
        "pages": [3, None, 4],
        "old": [True, False, True],
        "kind": arrow.array(["x", "y", "x"]).dictionary_encode(),
        "tags": [["art", "law"], ["law"], []],
    }
    parquet.write_table(arrow.table(table), tmp_path / "books.parquet")
    data = read(tmp_path / "books.parquet", label_column="tags", categorical="auto")
    assert data.feature_names.tolist() == ["pages", "old", "kind=x", "kind=y"]
    np.testing.assert_array_equal(dense(data.X), [[3, 1, 1, 0], [math.nan, 0, 0, 1], [4, 1, 1, 0]])
    np.testing.assert_array_equal(dense(data.Y), [[1, 1], [0, 1], [0, 0]])
    parts = list(data.schema.chunks(tmp_path / "books.parquet", rows=2))
    np.testing.assert_array_equal(np.vstack([dense(part.X) for part in parts]), dense(data.X))


def test_a_folder(tmp_path):
    for name, content in files.folder_files().items():
        (tmp_path / name).write_bytes(content)
    data = read(tmp_path)
    np.testing.assert_array_equal(dense(data.X), [[1, 0], [0, 2.5], [3, 4]])
    np.testing.assert_array_equal(dense(data.Y), [[1, 0], [1, 1], [1, 1]])
    np.testing.assert_array_equal(dense(data.Y_specific), [[1, 0], [0, 1], [0, 1]])
    assert str(data) == (
        "small: 3 rows, 2 features, 2 labels, 1.67 labels per row, 2 distinct sets; "
        "train 2, test 1; a hierarchy"
    )


def test_the_format_is_recognised_by_content_where_the_name_says_nothing(tmp_path):
    for content, name in (
        (files.MEKA, "arff"),
        (files.LIBSVM, "libsvm"),
        (files.EXTREME, "extreme"),
        (gzip.compress(files.EXTREME), "extreme"),
    ):
        path = tmp_path / ("data.gz" if content[:2] == b"\x1f\x8b" else "data")
        path.write_bytes(content)
        assert read(path).schema.format == name


def test_a_second_file_is_the_test_part(tmp_path):
    path, options = write(tmp_path, "sparse.arff")
    data = read(path, test=path, **options)
    assert data.n_rows == 8
    assert_same_rows(data.train(), data.test())


# ------------------------------------------------------------------------------------ second files


@pytest.mark.parametrize("name", files.FILES)
def test_a_saved_schema_reads_the_same_columns(name, tmp_path):
    path, options = write(tmp_path, name)
    data = read(path, **options)
    save(data.schema, tmp_path / "schema.skops")
    schema = load(tmp_path / "schema.skops")
    assert_same_rows(schema.read(path), data)
    unlabelled = schema.read(path, labels=False)
    assert unlabelled.Y is None
    np.testing.assert_array_equal(dense(unlabelled.X), dense(data.X))
    for rows in (1, 2, 100):
        parts = list(schema.chunks(path, rows=rows, labels=True))
        assert all(part.n_rows <= rows for part in parts)
        np.testing.assert_array_equal(np.vstack([dense(p.X) for p in parts]), dense(data.X))
        np.testing.assert_array_equal(np.vstack([dense(p.Y) for p in parts]), dense(data.Y))


def test_columns_are_found_by_name_and_labels_need_not_be_there(tmp_path):
    path, options = write(tmp_path, "texts.csv")
    data = read(path, **options)
    other = tmp_path / "other.csv"
    other.write_text("body,more,kind,pages\nthe old law,?,y,8\n")
    row = data.schema.read(other, labels=False)
    names = data.feature_names.tolist()
    found = {names[i]: value for i, value in enumerate(dense(row.X)[0]) if value}
    assert set(found) == {"pages", "kind=y", "body:the", "body:old", "body:law"}
    with pytest.raises(DataError, match=r"other\.csv, line 1: no column 'tags'"):
        data.schema.read(other)


def test_what_the_first_file_did_not_have_is_refused_with_its_line(tmp_path):
    path, options = write(tmp_path, "texts.csv")
    schema = read(path, **options).schema
    other = tmp_path / "other.csv"
    other.write_text("pages,kind,body,tags\n1,x,a,law\n1,z,a,law\n")
    with pytest.raises(DataError, match="line 3: column 'kind' has the new category 'z'"):
        schema.read(other)
    other.write_text("pages,kind,body,tags\n1,x,a,war\n")
    with pytest.raises(DataError, match="line 2: unknown label 'war'; known are 'art', 'law'"):
        schema.read(other)
    zeros = read(path, **options, unseen_categories="zeros").schema
    other.write_text("pages,kind,body\n1,z,a\n")
    np.testing.assert_array_equal(dense(zeros.read(other, labels=False).X)[0, 1:3], [0, 0])


def test_unknown_labels_are_refused_or_their_rows_left_out(tmp_path):
    path = tmp_path / "songs.arff"
    path.write_bytes(files.MEKA.replace(b"1,1,?", b"1,?,?"))
    with pytest.raises(DataError, match=r"songs\.arff, line 11: label 'very loud' is unknown"):
        read(path)
    data = read(path, unknown_labels="leave_out")
    np.testing.assert_array_equal(data.Y, [[0, 1], [1, 0]])
    np.testing.assert_array_equal(dense(data.X)[:, 0], [0.5, 7])
    assert data.schema.read(path, labels=False).n_rows == 3


def test_a_model_and_its_schema_predict_for_a_file_without_labels(tmp_path):
    rng = np.random.default_rng(0)
    words = {"art": "paint museum", "law": "court judge"}
    lines = ["body,tags"]
    for _ in range(40):
        tags = [tag for tag in words if rng.random() < 0.5]
        lines.append(f"{' '.join(words[t] for t in tags)} page,{';'.join(tags)}")
    (tmp_path / "books.csv").write_text("\n".join(lines))
    data = read(tmp_path / "books.csv", label_column="tags", separator=";", text=["body"])
    model = SetClassifier("f1").fit(data.X, data.Y)
    (tmp_path / "new.csv").write_text("body\nthe judge in court\na museum and a judge in court\n")
    new = data.schema.read(tmp_path / "new.csv", labels=False)
    np.testing.assert_array_equal(dense(model.predict(new.X)), [[0, 1], [1, 1]])


# -------------------------------------------------------------------------------------- the numbers


@given(
    values=st.lists(
        st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(10**20), 10**20)
    )
)
def test_numbers_are_read_as_python_reads_each(values, tmp_path_factory):
    """In every format, however they are written."""
    folder = tmp_path_factory.mktemp("numbers")
    values = [1.0, *values]
    for style in ("{!r}", "{:.3f}", "{:g}", "{:+.17e}"):
        texts = [style.format(value) for value in values]
        head = "@relation 'r: -C 1'\n@attribute y {0,1}\n@attribute x real\n@data\n"
        written = {
            "a.csv": "x,y\n" + "".join(f"{text},1\n" for text in texts),
            "dense.arff": head + "".join(f"1,{text}\n" for text in texts),
            "sparse.arff": head + "".join(f"{{0 1,1 {text}}}\n" for text in texts),
            "a.svm": "".join(f"1 1:{text}\n" for text in texts),
        }
        for name, content in written.items():
            (folder / name).write_text(content)
            data = read(folder / name, **({"labels": ["y"]} if name == "a.csv" else {}))
            np.testing.assert_array_equal(dense(data.X)[:, 0], [float(text) for text in texts])


@given(text=st.text(alphabet="0123456789.eE+-", min_size=1, max_size=24))
def test_what_python_takes_for_no_number_is_refused(text, tmp_path_factory):
    folder = tmp_path_factory.mktemp("numbers")
    (folder / "a.csv").write_text(f"x,y\n{text},1\n")
    (folder / "a.svm").write_text(f"1 1:{text}\n")
    for path, options in ((folder / "a.csv", {"labels": ["y"]}), (folder / "a.svm", {})):
        try:
            expected = float(text)
            finite = math.isfinite(expected)
        except ValueError:
            finite = False
        if finite:
            assert dense(read(path, **options).X).tolist() == [[expected]]
        else:
            with pytest.raises(DataError, match=r"line [12]: "):
                read(path, **options)


@given(seed=st.integers(0, 10_000))
def test_quick_and_slow_ways_of_arff_agree(seed, tmp_path_factory):
    """A quoted number takes the slow way."""
    rng = np.random.default_rng(seed)
    folder = tmp_path_factory.mktemp("arff")
    head = "@relation 'r: -C 1'\n@attribute y {0,1}\n@attribute a real\n@attribute b {0,1}\n@data\n"
    values = rng.integers(0, 2, (5, 3)) * np.array([1, rng.normal(), 1])
    rows = [",".join(f"{v:g}" for v in row) for row in values]
    pairs = ["{" + ",".join(f"{i} {v:g}" for i, v in enumerate(row) if v) + "}" for row in values]
    quoted = ["{},'{}',{}".format(*row.split(",")) for row in rows]
    found = []
    for name, body in (("dense", rows), ("sparse", pairs), ("quoted", quoted)):
        (folder / f"{name}.arff").write_text(head + "\n".join(body))
        found.append(read(folder / f"{name}.arff"))
    for other in found[1:]:
        assert_same_rows(found[0], other)


# ---------------------------------------------------------------------------------------- data sets


def test_the_split_off_is_the_documented_one():
    data = Dataset(np.arange(10.0)[:, None], np.eye(10))
    order = np.random.default_rng(7).permutation(10)
    split = data.split_off()
    assert split.train().X.ravel().tolist() == order[:7].tolist()
    assert split.test().X.ravel().tolist() == order[7:].tolist()
    with pytest.raises(ValueError, match="no split"):
        data.train()
    with pytest.raises(ValueError, match="both parts must have rows"):
        data.split_off(train=0.01)


@in_turn(
    ("change", "message"),
    [
        ({"X": [[1.0, math.inf]]}, r"X\[0, 1\] is inf"),
        ({"X": [[1.0, 2.0], [1.0, 2.0]]}, "same number of rows"),
        ({"X": np.zeros((0, 2)), "Y": np.zeros((0, 2))}, "at least one"),
        ({"Y": [[0, 2]]}, "only 0 and 1"),
        ({"feature_names": ["a"]}, "2 names"),
        ({"label_names": ["a", "a"]}, "labels 0 and 1 are both 'a'"),
        ({"split": {"train": [0], "test": [0]}}, "in the split twice"),
        ({"split": {"train": [1]}}, "rows from 0 to 0"),
        ({"hierarchy": [[0, 1], [1, 0]]}, "hierarchy .* the cycle '0' -> '1' -> '0'"),
        ({"hierarchy": [[0, 2]]}, r"hierarchy .* a child from 0 to 1, but it is \[0, 2\]"),
        ({"hierarchy": [[0, 1], [0, 1]]}, "hierarchy .* '1' under '0' is there 2 times"),
        ({"hierarchy": [[0, 1]], "edge_lengths": [0.0]}, "to '1' is 0.0"),
        ({"edge_lengths": [1.0]}, "edge_lengths"),
        ({"Y_specific": [[1, 1]]}, "every label of Y_specific"),
    ],
)
def test_a_data_set_that_does_not_fit_together_is_refused(change, message):
    right = {"X": [[1.0, 2.0]], "Y": [[0, 1]]}
    with pytest.raises(ValueError, match=message):
        Dataset(**right | change)


def test_the_callers_arrays_stay_as_they_are():
    X = sparse.csr_array(([1.0, 2.0], [1, 0], [0, 2]), shape=(1, 2))
    Y = np.array([[1, 0]])
    data = Dataset(X, Y)
    assert X.indices.tolist() == [1, 0]
    data.Y[0, 0] = 0
    assert Y.tolist() == [[1, 0]]


# ----------------------------------------------------------------------------- real files, if there

DATA = Path(__file__).parents[3] / "shared" / "data"
real = pytest.mark.skipif(not DATA.exists(), reason="needs ../shared/data")
NAMES = sorted(path.name for path in DATA.glob("*/") if path.is_dir()) if DATA.exists() else []


def stored(name):
    return read(DATA / name)


def assert_holds(data, name, rows=slice(None)):
    """The rows of a compact folder, stored as float32."""
    whole = stored(name)
    np.testing.assert_array_equal(dense(data.X).astype(np.float32), dense(whole.X)[rows])
    np.testing.assert_array_equal(dense(data.Y), dense(whole.Y)[rows])
    assert data.label_names.tolist() == whole.label_names.tolist()
    assert data.feature_names.tolist() == whole.feature_names.tolist()
    if whole.hierarchy is not None:
        np.testing.assert_array_equal(dense(data.Y_specific), dense(whole.Y_specific)[rows])
        assert sorted(data.hierarchy.tolist()) == sorted(whole.hierarchy.tolist())


@real
@pytest.mark.parametrize("name", NAMES)
def test_folders_have_the_figures_of_their_meta(name):
    meta = json.loads((DATA / name / "meta.json").read_text())
    data = stored(name)
    found = (data.n_rows, data.n_features, data.n_labels, round(data.cardinality, 4))
    assert found == (meta["n"], meta["d"], meta["l"], meta["cardinality"])
    assert data.distinct_sets == meta["distinct_labelsets"]


@real
@pytest.mark.parametrize("name", ["emotions", "enron"])
def test_mulan_files_are_their_folders(name):
    raw = DATA / name / "raw"
    data = read(raw / f"{name}-train.arff", test=raw / f"{name}-test.arff")
    assert_holds(data, name)
    for part, rows in stored(name).split.items():
        np.testing.assert_array_equal(data.split[part], rows)


@real
def test_a_meka_file_is_its_folder():
    assert_holds(read(DATA / "slashdot" / "raw" / "Slashdot.arff"), "slashdot")


@real
def test_a_file_whose_labels_are_all_unknown_is_read_without_them():
    raw = DATA / "emotions" / "raw" / "meka"
    known = read(raw / "Music.arff")
    with pytest.raises(DataError, match="line 84"):
        read(raw / "Music_missing_classes.arff")
    unknown = known.schema.read(raw / "Music_missing_classes.arff", labels=False)
    np.testing.assert_array_equal(unknown.X, known.X)


@real
def test_clus_files_are_their_folders():
    raw = DATA / "cellcycle_fun" / "raw"
    first = read(raw / "cellcycle_FUN.train.arff.gz")
    split = stored("cellcycle_fun").split
    assert_holds(first, "cellcycle_fun", split["train"])
    for part in ("valid", "test"):
        other = first.schema.read(raw / f"cellcycle_FUN.{part}.arff.gz")
        assert_holds(other, "cellcycle_fun", split[part])
    raw = DATA / "enron_hmc" / "raw"
    both = read(raw / "Enron_corr_trainvalid.arff.gz", test=raw / "Enron_corr_test.arff.gz")
    assert_holds(both, "enron_hmc")


@real
def test_the_extreme_file_has_the_rows_of_its_folder_in_another_order():
    raw = DATA / "bibtex" / "raw"
    splits = {
        f"{a}_split": raw / f"bibtex_{b}Split.txt" for a, b in (("train", "tr"), ("test", "tst"))
    }
    data = read(raw / "Bibtex_data.txt.gz", **splits)
    whole = stored("bibtex")
    assert (data.n_rows, data.n_features, data.n_labels) == (7395, 1836, 159)
    assert data.cardinality == whole.cardinality
    assert data.distinct_sets == whole.distinct_sets
    assert (data.train().n_rows, data.test().n_rows) == (4880, 2515)
    for one, other in ((data.X, whole.X), (data.Y, whole.Y)):
        assert sorted(one.sum(axis=1).tolist()) == sorted(other.sum(axis=1).tolist())


def test_compression_is_by_suffix_in_any_case(tmp_path):
    (tmp_path / "A.ARFF.XZ").write_bytes(lzma.compress(files.MEKA))
    assert read(tmp_path / "A.ARFF.XZ").n_rows == 3


def test_indices_in_any_order_keep_their_values(tmp_path):
    """Also where a line has no labels, and the file is looked at twice."""
    (tmp_path / "rows.svm").write_text("1,2 1:0.5 3:0.25\n 4:2 2:1\n2 1:1\n")
    data = read(tmp_path / "rows.svm")
    expected = [[0.5, 0, 0.25, 0], [0, 1, 0, 2], [1, 0, 0, 0]]
    for found in (data, data.schema.read(tmp_path / "rows.svm")):
        np.testing.assert_array_equal(found.X.toarray(), expected)
