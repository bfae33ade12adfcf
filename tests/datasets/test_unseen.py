"""What a later file has that the first had not: refused with its line, or read and counted."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from scipy.sparse import csr_array

from setwise import Taxonomy
from setwise.datasets import DataError, read

COVERS, TAGS = ["soft", "hard"], ["art", "law"]
# Cover and labels of each row of the first file, and of another that has something new.
FIRST = [("soft", ["art", "law"]), ("hard", ["law"]), ("soft", ["art"]), ("hard", ["art", "law"])]
OTHER = [("tin", ["art"]), ("soft", ["law", "opera"]), ("tin", ["opera"]), ("silk", ["jazz"])]
LISTED = {"label_column": "tags", "separator": ";", "categorical": ["cover"]}


def table(path, rows, mark):
    lines = [mark.join([str(i), cover, ";".join(tags)]) for i, (cover, tags) in enumerate(rows)]
    path.write_text("\n".join([mark.join(["pages", "cover", "tags"]), *lines]) + "\n")


def parquet(path, rows, lists=False):
    tags = [labels if lists else ";".join(labels) for _, labels in rows]
    columns = {"pages": range(len(rows)), "cover": [cover for cover, _ in rows], "tags": tags}
    columns["pages"] = list(columns["pages"])
    pyarrow.parquet.write_table(pa.table(columns), path)


def clus(path, rows):
    covers = dict.fromkeys([*COVERS, *(cover for cover, _ in rows)])
    head = f"@relation r\n@attribute pages numeric\n@attribute cover {{{','.join(covers)}}}\n"
    head += "@attribute tags hierarchical art,law\n@data\n"
    lines = [f"{i},{cover},{'@'.join(tags)}" for i, (cover, tags) in enumerate(rows)]
    path.write_text(head + "\n".join(lines) + "\n")


def libsvm(path, rows):
    path.write_text("".join(f"{','.join(t)} 1:{i}\n" for i, (_, t) in enumerate(rows)))


# How a file of each format is written, its suffix and the options of the first.
FORMATS = {
    "CSV": (lambda path, rows: table(path, rows, ","), "csv", LISTED),
    "TSV": (lambda path, rows: table(path, rows, "\t"), "tsv", LISTED),
    "Parquet": (parquet, "parquet", LISTED),
    "Parquet with lists": (lambda path, rows: parquet(path, rows, True), "parquet", LISTED),
    "ARFF": (clus, "arff", {}),
    "LIBSVM": (libsvm, "svm", {}),
}
every_format = pytest.mark.parametrize("format", FORMATS)
with_categories = pytest.mark.parametrize("format", [name for name in FORMATS if name != "LIBSVM"])


def files(tmp_path, format, rows=OTHER):
    """The first file as a data set, and the path of the other."""
    write, suffix, options = FORMATS[format]
    first, other = tmp_path / f"first.{suffix}", tmp_path / f"other.{suffix}"
    write(first, FIRST)
    write(other, rows)
    return read(first, **options), other


def dense(matrix):
    return matrix.toarray() if hasattr(matrix, "toarray") else matrix


@with_categories
def test_a_new_category_is_refused_with_the_option_or_zero_in_all_features(format, tmp_path):
    known = [(cover, ["art"]) for cover, _ in OTHER]
    data, other = files(tmp_path, format, known)
    with pytest.raises(DataError, match=r"new category 'tin'.*unseen_categories='zeros'"):
        data.schema.read(other)
    found = data.schema.read(other, unseen_categories="zeros")
    of_cover = [i for i, name in enumerate(data.feature_names) if name.startswith("cover=")]
    soft = next((i for i in of_cover if data.feature_names[i] == "cover=soft"), None)
    expected = np.zeros((4, data.n_features))
    expected[:, 0] = range(4)
    if soft is not None:  # (of ARFF the first category is where all features are 0)
        expected[1, soft] = 1
    np.testing.assert_array_equal(dense(found.X), expected)
    assert found.unseen.categories == {"cover": {"tin": 2, "silk": 1}}
    # In parts and whole, the same is counted.
    parts = list(data.schema.chunks(other, 1, unseen_categories="zeros"))
    assert sum((part.unseen for part in parts[1:]), parts[0].unseen) == found.unseen


@every_format
def test_a_new_label_is_refused_with_the_option_or_a_column_of_its_own(format, tmp_path):
    known = [("soft", tags) for _, tags in OTHER]
    data, other = files(tmp_path, format, known)
    hint = r"unknown label 'opera'; known are 'art', 'law' \(unseen_labels='missed'"
    with pytest.raises(DataError, match=hint):
        data.schema.read(other)
    found = data.schema.read(other, unseen_labels="missed")
    assert found.label_names.tolist() == ["art", "law", "jazz", "opera"]
    sets = [[1, 0, 0, 0], [0, 1, 0, 1], [0, 0, 0, 1], [0, 0, 1, 0]]
    np.testing.assert_array_equal(dense(found.Y), sets)
    assert found.unseen.labels == {"opera": 2, "jazz": 1}
    # Its own schema reads into its columns.
    np.testing.assert_array_equal(dense(found.schema.read(other).Y), sets)


@every_format
def test_nothing_new_is_nothing_else(format, tmp_path):
    data, other = files(tmp_path, format, FIRST)
    options = {"unseen_labels": "missed"}
    if format != "LIBSVM":
        options["unseen_categories"] = "zeros"
    found = data.schema.read(other, **options)
    assert not found.unseen
    np.testing.assert_array_equal(dense(found.X), dense(data.X))
    np.testing.assert_array_equal(dense(found.Y), dense(data.Y))


@every_format
def test_a_second_file_to_test_on_may_have_new_labels(format, tmp_path):
    known = [("soft", tags) for _, tags in OTHER]
    _, other = files(tmp_path, format, known)
    _, suffix, options = FORMATS[format]
    both = read(tmp_path / f"first.{suffix}", test=other, unseen_labels="missed", **options)
    assert both.label_names.tolist() == ["art", "law", "jazz", "opera"]
    assert dense(both.train().Y)[:, 2:].sum() == 0
    assert dense(both.test().Y)[:, 2:].sum(axis=0).tolist() == [1, 2]
    with pytest.raises(ValueError, match=r"unseen_labels='missed' is for .* second file"):
        read(tmp_path / f"first.{suffix}", unseen_labels="missed", **options)


def test_a_new_number_of_an_extreme_file_is_a_new_label(tmp_path):
    first, other = tmp_path / "a.txt", tmp_path / "b.txt"
    first.write_text("2 3 2\n0 1:1\n0,1 2:1\n")
    other.write_text("2 3 2\n0,7 1:1\n1 2:1\n")
    schema = read(first).schema
    with pytest.raises(DataError, match=r"line 2: unknown label '7'; .*unseen_labels='missed'"):
        schema.read(other)
    found = schema.read(other, unseen_labels="missed")
    assert found.label_names.tolist() == ["0", "1", "7"]
    assert found.unseen.labels == {"7": 1}
    for again in (found, found.schema.read(other)):
        np.testing.assert_array_equal(dense(again.Y), [[1, 0, 1], [0, 1, 0]])
    other.write_text("1 3 4\n0 1:1\n")
    with pytest.raises(DataError, match=r"3 features and 4 labels, but 3 .* at most 2 labels"):
        schema.read(other)


def test_a_new_label_stands_by_itself_in_a_taxonomy(tmp_path):
    data, other = files(tmp_path, "CSV", [("soft", tags) for _, tags in OTHER])
    taxonomy = Taxonomy.from_edges([["all", "art"], ["all", "law"]])
    schema = data.under(taxonomy, close=True).schema
    found = schema.read(other, unseen_labels="missed")
    names = found.label_names.tolist()
    assert names == [*taxonomy.names.tolist(), *found.unseen.labels]
    assert found.taxonomy.parents[[names.index("opera"), names.index("jazz")]].tolist() == [-1, -1]
    assert found.taxonomy.is_closed(found.Y).all()
    assert found.unseen.labels == {"opera": 2, "jazz": 1}
    np.testing.assert_array_equal(dense(found.schema.read(other).Y), dense(found.Y))


def test_a_sparse_row_cannot_leave_out_what_is_new(tmp_path):
    head = "@relation r\n@attribute x numeric\n@attribute c {{{}}}\n@attribute y {{0,1}}\n@data\n"
    (tmp_path / "a.arff").write_text(head.format("soft,hard") + "{0 1,2 1}\n{1 hard}\n")
    (tmp_path / "b.arff").write_text(head.format("tin,soft,hard") + "{0 1,2 1}\n")
    schema = read(tmp_path / "a.arff", labels=["y"]).schema
    with pytest.raises(DataError, match="first value 'tin', which the sparse rows of ARFF leave"):
        schema.read(tmp_path / "b.arff", unseen_categories="zeros")


@pytest.mark.parametrize("name", ["unseen_categories", "unseen_labels"])
def test_another_rule_is_refused(name, tmp_path):
    data, other = files(tmp_path, "CSV")
    with pytest.raises(ValueError, match=f"{name} must be one of 'refuse', "):
        data.schema.read(other, **{name: "ignore"})


def test_of_many_known_names_the_nearest_are_named(tmp_path):
    rows = [("soft", [f"label {i}" for i in range(80)])]
    table(tmp_path / "a.csv", rows, ",")
    table(tmp_path / "b.csv", [("soft", ["lable 7"])], ",")
    schema = read(tmp_path / "a.csv", **LISTED).schema
    with pytest.raises(DataError, match=r"80 are known, the nearest 'label 7', ") as error:
        schema.read(tmp_path / "b.csv")
    assert "more" not in str(error.value)


# ---------------------------------------------------------------------------------- the separator

WRONG = {
    ";": ["up;it", "up", "it;up", ""],
    "|": ["up|it", "it"],
    "/": ["up/it", "it", "up", "it/on", "on/up"],
    " ": ["up it", "it", "up", "it on", "on up"],
    ",": ["up, it", "it", "up"],
}
FINE = {
    "paths, a label a row": ["home/garden", "home/garden/hoses", "toys/games", "home", "toys"],
    "names of two words": ["science fiction", "fiction", "old art"],
    "now and then": ["up", "it", "on", "off", "a;b"],
    "separated": ["up,it", "up;it", "it,up"],
    "empty": ["up", "", ""],
}


def written(tmp_path, lists, suffix):
    quoted = [f'"{text}"' for text in lists]
    if suffix == "parquet":
        columns = {"x": list(range(len(lists))), "tags": lists}
        pyarrow.parquet.write_table(pa.table(columns), tmp_path / "a.parquet")
    else:
        mark = {"csv": ",", "tsv": "\t"}[suffix]
        lines = [f"{i}{mark}{text}" for i, text in enumerate(quoted)]
        (tmp_path / f"a.{suffix}").write_text("\n".join([f"x{mark}tags", *lines]) + "\n")
    return tmp_path / f"a.{suffix}"


@pytest.mark.parametrize("suffix", ["csv", "tsv", "parquet"])
@pytest.mark.parametrize("mark", WRONG)
def test_a_wrong_separator_is_noticed(mark, suffix, tmp_path):
    path = written(tmp_path, WRONG[mark], suffix)
    chosen = ";" if mark == "," else ","
    example = WRONG[mark][0]
    with pytest.warns(UserWarning, match=f"'{example}' is read as one label".replace("|", r"\|")):
        read(path, label_column="tags", separator=chosen)
    read(path, label_column="tags", separator=mark)


@pytest.mark.parametrize("lists", FINE.values(), ids=FINE)
def test_a_right_separator_is_not_doubted(lists, tmp_path):
    read(written(tmp_path, lists, "csv"), label_column="tags", separator=",")


def test_a_wrong_separator_of_libsvm_is_noticed(tmp_path):
    (tmp_path / "a.svm").write_text("1;2 1:0.5\n2 1:1\n")
    with pytest.warns(UserWarning, match="'1;2' is read as one label.*commas between"):
        read(tmp_path / "a.svm")


# ------------------------------------------------------------------------------- columns to keep


@with_categories
def test_columns_are_given_back_as_they_are_written(format, tmp_path):
    data, other = files(tmp_path, format)
    found = list(data.schema.texts(other, ["cover", "pages"]))
    assert found == [(cover, str(i)) for i, (cover, _) in enumerate(OTHER)]
    with pytest.raises(DataError, match=r"no (column|attribute) 'covers'; known are"):
        list(data.schema.texts(other, ["covers"]))


def test_texts_are_not_read_as_numbers(tmp_path):
    (tmp_path / "a.csv").write_text('id,x,y\n007,1.50,1\n"a, b",NA,0\n,?,1\n')
    schema = read(tmp_path / "a.csv", labels=["y"], drop=["id"]).schema
    found = list(schema.texts(tmp_path / "a.csv", ["x", "id"]))
    assert found == [("1.50", "007"), ("NA", "a, b"), ("?", "")]
    whole = pa.table({"id": [2**60 + 1, None], "x": [0.1, 2.0], "y": [0, 1]})
    pyarrow.parquet.write_table(whole, tmp_path / "a.parquet")
    schema = read(tmp_path / "a.parquet", labels=["y"], drop=["id"]).schema
    found = list(schema.texts(tmp_path / "a.parquet", ["id", "x"]))
    assert found == [(str(2**60 + 1), "0.1"), ("", "2")]


def test_a_sparse_row_leaves_out_a_zero_or_the_first_value(tmp_path):
    path = tmp_path / "a.arff"
    text = "@relation r\n@attribute x numeric\n@attribute c {soft,hard}\n@attribute y {0,1}\n"
    path.write_text(text + "@data\n{0 1.5,2 1}\n{1 hard}\n")
    schema = read(path, labels=["y"]).schema
    assert list(schema.texts(path, ["x", "c"])) == [("1.5", "soft"), ("0", "hard")]


def test_files_without_names_have_no_columns_to_keep(tmp_path):
    libsvm(tmp_path / "a.svm", FIRST)
    with pytest.raises(ValueError, match="'libsvm' has no columns with names"):
        read(tmp_path / "a.svm").schema.texts(tmp_path / "a.svm", ["id"])


def test_labels_of_sparse_and_dense_sets_are_counted_alike():
    from setwise.datasets import Dataset
    from setwise.datasets.schema import with_new_labels

    Y = np.array([[1, 1, 0], [0, 1, 1]])
    for sets in (Y, csr_array(Y)):
        data = with_new_labels(Dataset(np.ones((2, 1)), sets, None, ["a", "b", "c"]), 2)
        assert data.unseen.labels == {"b": 2, "c": 1}
