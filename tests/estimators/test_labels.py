"""Laws of reading y: every form of the same labels gives the same sets, and the way back exists."""

import re

import numpy as np
import pandas
import pytest
import scipy.sparse
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.exceptions import DataConversionWarning
from sklearn.preprocessing import MultiLabelBinarizer

from setwise.labels import LabelNames, read_labels
from tests.support.turns import in_turn

DTYPES = [bool, np.int8, np.uint8, np.int64, np.float32, np.float64, object]
FORMATS = ["bsr", "coo", "csc", "csr", "dia", "dok", "lil"]
WIDE = np.random.default_rng(3).integers(0, 2, (4, 300))
WIDE_SPARSE = WIDE * (np.arange(300) % 13 == 0)

matrices = hnp.arrays(
    np.int64,
    st.tuples(st.integers(1, 6), st.integers(2, 5)),
    elements=st.integers(0, 1),
)
classes = st.one_of(
    st.lists(st.integers(-(2**40), 2**40), min_size=1),
    st.lists(
        st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])), min_size=1
    ),
    st.lists(st.booleans(), min_size=1),
    st.lists(st.integers(-99, 99).map(float), min_size=1),
)


class Frame:
    """What read_labels knows of a data frame."""

    def __init__(self, values, columns):
        self.values, self.columns = values, columns

    def to_numpy(self):
        return np.asarray(self.values)


def assert_refused(y, *words):
    """ValueError whose message has every one of the words."""
    with pytest.raises(ValueError, match="(?s)" + "".join(f"(?=.*{word})" for word in words)):
        read_labels(y)


def assert_sets(sets, expected):
    assert sets.dtype == np.uint8
    assert sets.flags.c_contiguous
    assert sets.flags.writeable
    np.testing.assert_array_equal(sets, expected)


def assert_canonical(sets, expected):
    """CSR of ones: in order, nothing stored twice, no stored zero."""
    assert isinstance(sets, scipy.sparse.csr_array)
    assert sets.dtype == np.uint8
    assert (sets.data == 1).all()
    for row, labels in enumerate(np.split(sets.indices, sets.indptr[1:-1])):
        np.testing.assert_array_equal(labels, np.flatnonzero(expected[row]))


# --------------------------------------------------------------------------------------- columns


@pytest.mark.parametrize("dtype", DTYPES)
@given(y=matrices)
@example(y=WIDE)
@example(y=np.asfortranarray(WIDE))
def test_columns_of_every_type_give_the_same_sets(dtype, y):
    columns = y.astype(dtype)
    sets, names = read_labels(columns)
    assert_sets(sets, y)
    assert names == LabelNames(np.arange(y.shape[1]))
    assert_sets(names.encode(columns), y)
    assert not np.shares_memory(sets, columns)
    decoded = names.decode(sets)
    assert decoded.dtype == np.int64
    np.testing.assert_array_equal(decoded, y)


@given(y=matrices)
def test_lists_of_numbers_are_columns(y):
    for nested in (
        y.tolist(),
        [tuple(row) for row in y.tolist()],
        list(y),
        y.astype(bool).tolist(),
    ):
        sets, names = read_labels(nested)
        assert_sets(sets, y)
        assert names == LabelNames(np.arange(y.shape[1]))


@in_turn("form", FORMATS)
@in_turn("kind", ["array", "matrix"])
@given(y=matrices, dtype=st.sampled_from([bool, np.uint8, np.int64, np.float32]))
@example(y=WIDE_SPARSE, dtype=np.uint8)
def test_sparse_columns_of_every_format_give_the_same_sets(form, kind, y, dtype):
    given = getattr(scipy.sparse, f"{form}_{kind}")(y.astype(dtype))
    sets, names = read_labels(given)
    assert_canonical(sets, y)
    assert_canonical(names.encode(given), y)
    assert names == read_labels(y)[1]
    decoded = names.decode(sets)
    assert isinstance(decoded, scipy.sparse.csr_array)
    assert decoded.dtype == np.int64
    np.testing.assert_array_equal(decoded.toarray(), y)


def test_stored_zeros_are_dropped_and_the_order_is_mended_in_a_copy():
    data, indices, indptr = np.array([1.0, 1.0, 0.0]), np.array([2, 0, 1]), np.array([0, 2, 3])
    given = scipy.sparse.csr_array((data, indices, indptr), shape=(2, 3))
    sets, _ = read_labels(given)
    assert_canonical(sets, np.array([[1, 0, 1], [0, 0, 0]]))
    np.testing.assert_array_equal(given.indices, [2, 0, 1])
    np.testing.assert_array_equal(given.data, [1.0, 1.0, 0.0])


def test_a_sparse_column_is_one_label():
    sets, names = read_labels(scipy.sparse.csr_array([[1], [0]]))
    assert not names.one_dimensional
    assert_canonical(sets, np.array([[1], [0]]))
    assert_sets(names.encode(np.array([[1], [0]])), [[1], [0]])


# ---------------------------------------------------------------------------------------- frames


@given(y=matrices)
def test_a_frame_keeps_the_names_of_its_columns(y):
    columns = [f"label {i}" for i in range(y.shape[1])]
    for values in (y, y.astype(bool), y.astype(object)):
        sets, names = read_labels(Frame(values, columns))
        assert_sets(sets, y)
        assert names == LabelNames(columns)
        assert_sets(names.encode(Frame(values, columns)), y)
        assert_sets(names.encode(y), y)


def test_names_that_are_tuples_stay_tuples():
    columns = [("colour", "red"), ("colour", "blue")]
    sets, names = read_labels(Frame([[1, 0]], columns))
    assert names.names.tolist() == columns
    assert_sets(names.encode(Frame([[1, 0]], columns)), sets)


def test_a_frame_with_other_columns_is_refused():
    names = read_labels(Frame([[1, 0]], ["red", "blue"]))[1]
    with pytest.raises(ValueError, match=r"not among the labels: 'green'; .*'red', 'blue'"):
        names.encode(Frame([[1, 0]], ["red", "green"]))
    with pytest.raises(ValueError, match="order"):
        names.encode(Frame([[1, 0]], ["blue", "red"]))
    with pytest.raises(ValueError, match=r"2 columns.*\(1, 3\)"):
        names.encode(Frame([[1, 0, 0]], ["red", "blue", "green"]))


def test_pandas_frames_and_series():
    frame = pandas.DataFrame({"a": [0, 1], "b": [True, True]})
    assert_sets(read_labels(frame)[0], [[0, 1], [1, 1]])
    assert read_labels(frame.astype("Int64"))[1] == LabelNames(["a", "b"])
    assert read_labels(pandas.Series(["x", "y", "x"]))[1] == LabelNames(["x", "y"], True)
    assert_sets(read_labels(pandas.Series([["x"], ["y", "x"]]))[0], [[1, 0], [1, 1]])
    assert_refused(frame.astype("Int64").mask(frame == 0), r"y\[0, 0\]", "NA")
    assert_refused(pandas.Series(["x", None]), r"y\[1\]", "missing")


# ------------------------------------------------------------------------------------ label lists


@given(
    rows=st.one_of(
        st.lists(st.sets(st.sampled_from(["b", "a", "cc", "ä"])), min_size=1),
        st.lists(st.sets(st.integers(-3, 12)), min_size=1),
    ).filter(lambda rows: any(rows))
)
def test_label_lists_agree_with_scikit_learn(rows):
    binarizer = MultiLabelBinarizer()
    expected = binarizer.fit_transform(rows)
    sets, names = read_labels(rows)
    assert_sets(sets, expected)
    assert names.names.tolist() == binarizer.classes_.tolist()
    assert not names.one_dimensional
    assert_sets(names.encode(rows), expected)
    assert_sets(names.encode(expected), expected)


def test_lists_tuples_and_arrays_of_labels_are_read_alike():
    expected = [[1, 1, 0], [0, 0, 0], [0, 0, 1]]
    for labels in (["a", "b", "c"], [0, 1, 7], [4.0, 5.0, 6.0]):
        lists = [labels[:2], [], labels[2:]]
        objects = np.empty(3, dtype=object)
        objects[:] = lists
        for y in (lists, tuple(map(tuple, lists)), objects, [np.array(row) for row in lists]):
            sets, names = read_labels(y)
            assert_sets(sets, expected)
            assert names.names.tolist() == labels


def test_label_lists_of_equal_length_are_no_matrix_if_they_are_text():
    sets, names = read_labels([["a", "b"], ["c", "a"]])
    assert_sets(sets, [[1, 1, 0], [1, 0, 1]])
    assert not names.one_dimensional
    assert not read_labels([["a"], ["b"]])[1].one_dimensional


def test_an_unknown_label_is_refused_by_name():
    names = read_labels([["a"], ["b", "c"]])[1]
    with pytest.raises(ValueError, match=r"not among the labels: 'd', 'e'; .*'a', 'b', 'c'"):
        names.encode([["e", "a"], ["d"]])
    assert_sets(names.encode([[], []]), np.zeros((2, 3)))


# ------------------------------------------------------------------------------- one class a row


@given(y=classes)
def test_each_row_is_the_set_of_its_class(y):
    for rows in (y, tuple(y), np.array(y), np.array(y, dtype=object)):
        sets, names = read_labels(rows)
        assert names.one_dimensional
        assert names.names.tolist() == sorted(set(y))
        assert_sets(sets, np.array(y)[:, None] == np.unique(y))
        assert_sets(names.encode(rows), sets)
        for form in (sets, scipy.sparse.csr_array(sets)):
            decoded = names.decode(form)
            assert decoded.dtype == np.array(y).dtype
            assert decoded.tolist() == y


def test_unknown_classes_are_refused_by_name():
    names = read_labels([1, 5, 3])[1]
    with pytest.raises(ValueError, match=r"not among the labels: 2, 4; .*1, 3, 5"):
        names.encode([1, 4, 2])
    with pytest.raises(ValueError, match="not among the labels: '1'"):
        names.encode(["1"])


@pytest.mark.parametrize("y", [[0, 1, 1, 0], ["b", "a", "b", "c"], [2.0, 5.0, 2.0, 2.0]])
def test_a_column_of_classes_is_flattened_with_a_warning_as_in_scikit_learn(y):
    for column in (np.array(y)[:, None], Frame(np.array(y)[:, None], ["name"])):
        with pytest.warns(DataConversionWarning, match="column-vector y"):
            sets, names = read_labels(column)
        assert names == read_labels(y)[1]
        assert_sets(sets, read_labels(y)[0])
        with pytest.warns(DataConversionWarning, match="column-vector y"):
            assert_sets(names.encode(column), sets)


def test_the_other_form_is_refused():
    one, many = read_labels(["a", "b"])[1], read_labels([["a"], ["b"]])[1]
    for y in ([[1, 0]], scipy.sparse.csr_array([[1, 0]])):
        with pytest.raises(ValueError, match=r"one class for each row.*\(1, 2\)"):
            one.encode(y)
    with pytest.raises(ValueError, match=r"one class for each row.*list of labels"):
        one.encode([["a"]])
    with pytest.raises(ValueError, match=r"2 columns.*list of labels.*y\[0\] is 'a'"):
        many.encode(["a", "b"])


def test_decoding_a_row_without_one_class_is_refused():
    names = read_labels(["a", "b"])[1]
    for form in (np.array, scipy.sparse.csr_array):
        with pytest.raises(ValueError, match=r"row 1 .* has 0"):
            names.decode(form([[1, 0], [0, 0]]))
        with pytest.raises(ValueError, match=r"row 0 .* has 2"):
            names.decode(form([[1, 1], [0, 1]]))
        with pytest.raises(ValueError, match=r"2 columns.*\(1, 3\)"):
            names.decode(form([[1, 0, 0]]))
        with pytest.raises(ValueError, match=r"sets\[0, 1\] is 2"):
            names.decode(form([[0, 2]]))


# ------------------------------------------------------------------------------------------ names


def test_names_are_equal_by_value():
    names = LabelNames(["a", "b"])
    assert names == LabelNames(np.array(["a", "b"], dtype=object))
    assert hash(names) == hash(LabelNames(("a", "b")))
    others = [LabelNames(["b", "a"]), LabelNames(["a"]), LabelNames(["a", "b"], True), "ab"]
    assert all(names != other for other in others)
    assert LabelNames([0, 1]) != LabelNames(["0", "1"])
    assert names.n_labels == 2


def test_names_that_numpy_would_change_are_kept():
    assert LabelNames(["a\0", "a"]).names.tolist() == ["a\0", "a"]


@in_turn("large", [2**63, 2**63 + 1, 10**30, -(10**30), 10**400])
def test_whole_numbers_of_any_size_are_names(large):
    smaller, larger = sorted((large, 1))
    others = [[large, 1], np.array([large, 1], object)]
    frame = pandas.DataFrame(
        [[1, 0], [0, 1]], columns=pandas.Index([smaller, larger], dtype=object)
    )
    for y in ([{large}, {1}], [[large], [1, large]], frame, *others):
        sets, names = read_labels(y)
        found = names.names.tolist()
        assert found == [smaller, larger]
        assert {type(name) for name in found} == {int}
        np.testing.assert_array_equal(names.encode(y), sets)
    assert read_labels([{large}, {1, large}])[1].listed([[1, 0]]) == [(smaller,)]
    assert read_labels([2**63 + 1, 2**63, 1])[0].shape == (3, 3)


MISSING = (None, np.nan, pandas.NA, pandas.NaT)


@in_turn("missing", MISSING)
def test_a_label_without_a_name_is_refused(missing):
    for dtype in (None, object):
        columns = pandas.Index(["owl", missing], dtype=dtype)
        with pytest.raises(ValueError, match=r"a name, .*but that of label 1 is missing \("):
            read_labels(pandas.DataFrame([[0, 1], [1, 0]], columns=columns))
        with pytest.warns(DataConversionWarning):
            # The name of a column of classes is no label.
            classes = read_labels(pandas.DataFrame([[0], [1]], columns=columns[1:]))[1]
        assert classes.names.tolist() == [0, 1]
    with pytest.raises(ValueError, match="label 0 is missing"):
        LabelNames(np.array([np.nan, 1.0]))


def test_names_are_copied():
    given = np.array([1, 2])
    names = LabelNames(given)
    given[0] = 2
    assert names.names.tolist() == [1, 2]


@pytest.mark.parametrize("names", [[], "ab", 3, np.zeros((2, 2)), ["a", "a"], [1, 1.0]])
def test_bad_names_are_refused(names):
    with pytest.raises(ValueError, match="name"):
        LabelNames(names)


# ---------------------------------------------------------------------------------------- refusals

REFUSED = {
    "not given": (None, "requires y to be passed, but the target y is None"),
    "another number": ([[0, 1], [2, 0]], r"y\[1, 0\] is 2", "only 0 and 1"),
    "numbers as labels": ([(1, 2), (3, 4)], r"y\[0, 1\] is 2", r"make each row a Python set"),
    "another number in int8": (np.array([[0, -1]], np.int8), r"y\[0, 1\] is -1"),
    "another number, sparse": (scipy.sparse.csr_array([[0, 1], [3, 0]]), r"y\[1, 0\] is 3"),
    "257 is not 1": (np.array([[0, 257]]), r"y\[0, 1\] is 257"),
    "NaN": (np.array([[0, 1], [1, np.nan]]), r"y\[1, 1\] is nan"),
    "NaN, sparse": (scipy.sparse.csr_array([[np.nan, 1]]), r"y\[0, 0\] is nan"),
    "text in columns": (np.array([["a", "b"]]), "0/1"),
    "digits in columns": (np.array([["0", 1]], dtype=object), r"y\[0, 0\] is '0'"),
    "nothing in columns": (Frame([[1, None]], ["a", "b"]), r"y\[0, 1\] is None"),
    "continuous": ([0.5, 1.0], "Unknown label type: continuous", r"y\[0\] is 0.5"),
    "continuous columns": ([[0, 1], [0.25, 1]], "only 0 and 1", r"y\[1, 0\] is 0.25"),
    "class NaN": (np.array([1.0, np.nan]), "NaN", r"y\[1\]"),
    "class NaN in a list": ([1.0, np.nan], "NaN", r"y\[1\]"),
    "class infinite": (np.array([1.0, np.inf]), "inf", r"y\[1\]"),
    "class missing": (["a", None], r"y\[1\] is None", "missing"),
    "class masked": (np.ma.masked_array([1, 2], [False, True]), "row 1", "masked"),
    "complex": (np.array([1j, 0]), "Complex data not supported"),
    "complex in a list": ([1, 1j], r"y\[1\] is 1j", "of the type complex"),
    "complex columns": (np.array([[1j, 0]]), "Complex data not supported"),
    "complex, sparse": (scipy.sparse.csr_array([[1j, 0]]), "complex"),
    "dates": (np.array(["2020-01-01"], "M8[D]"), "Unknown label type", "of the type date"),
    "bytes": ([b"a", b"b"], r"y\[0\] is b'a'", "text"),
    "three dimensions": (np.zeros((2, 2, 2)), r"\(2, 2, 2\)"),
    "three dimensions in a list": ([[[0, 1]], [[1, 0]]], r"y\[0\]", "of the type list"),
    "no dimension": (np.array(1), r"shape is \(\)"),
    "one sparse dimension": (scipy.sparse.coo_array(np.ones(3)), r"\(3,\)"),
    "no rows": (np.zeros((0, 3)), r"\(0, 3\)", "one row"),
    "no rows in a list": ([], r"\(0,\)", "one row"),
    "no rows, sparse": (scipy.sparse.csr_array((0, 3)), r"\(0, 3\)", "one row"),
    "no labels": (np.zeros((3, 0)), r"\(3, 0\)", "one label"),
    "no labels in lists": ([[], []], "at least one label", "every row is empty"),
    "ragged 0/1": ([[0, 1], [1]], r"y\[0\] has 2", r"y\[1\] has 1", "set"),
    "ragged numbers": ([[0.5, 1.0], [3.0]], r"y\[0\] is 0.5", "whole"),
    "mixed classes": (["a", 1], r"y\[0\] is 'a' and y\[1\] is 1"),
    "mixed labels": ([["a"], ["b", 2]], r"y\[0\] is 'a'", r"y\[1\] is 2"),
    "mixed rows": ([1, [2]], r"y\[0\] is 1", "list of labels"),
    "text among lists": ([["a"], "b"], r"y\[1\] is 'b'", "list of labels"),
    "missing among labels": ([["a"], [None]], r"y\[1\] is None", "missing"),
    "text": ("abc", "cannot be a str"),
    "a dict": ({"a": 1}, "cannot be a dict"),
    "an iterator": (iter([1, 2]), "cannot be a"),
    "two columns of one name": (Frame([[0, 1]], ["a", "a"]), "own name", "'a'"),
    "a list for a name": (Frame([[0, 1]], ["a", ["b"]]), r"label 1 has \['b'\]"),
    "an entry twice": (
        scipy.sparse.coo_array(([1, 1], ([0, 0], [1, 1])), shape=(1, 2)),
        "each entry once",
    ),
}


@in_turn(("y", "words"), [(y, w) for y, *w in REFUSED.values()], ids=REFUSED)
def test_bad_y_is_refused(y, words):
    assert_refused(y, *words)


def test_a_message_lists_only_some_of_many_names():
    names = LabelNames(np.arange(1000))
    with pytest.raises(ValueError, match="1000 are known") as refused:
        names.encode([{-1}])
    assert len(str(refused.value)) < 300
    assert not re.search("500", str(refused.value))
