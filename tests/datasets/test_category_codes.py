"""Categories as codes: what was read as 0/1 features is the column of the file again."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from setwise.datasets import read
from setwise.datasets.category_codes import CategoryCodes


@given(
    cells=st.lists(
        st.tuples(st.sampled_from(["red", "blue", "a=b", ""]), st.sampled_from(["1.5", "-2", ""])),
        min_size=3,
        max_size=12,
    ),
)
def test_codes_are_the_places_of_the_cells_among_the_categories(cells, tmp_path_factory):
    cells = [("red", "1"), ("blue", "2"), ("a=b", "3"), *cells]
    file = tmp_path_factory.mktemp("codes") / "file.csv"
    lines = [f"{kind},{size},{place % 2}" for place, (kind, size) in enumerate(cells)]
    file.write_text("\n".join(["kind,size,label", *lines]))
    data = read(file, labels=["label"], categorical=["kind"])
    codes = CategoryCodes.of(data.schema)
    assert codes.categorical == [0]
    found = codes.fit_transform(data.X)
    known = data.schema.features.coded["kind"].values.tolist()
    expected = [
        [known.index(kind) if kind else np.nan, float(size) if size else np.nan]
        for kind, size in cells
    ]
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(codes.transform(data.X.toarray()), expected)


def test_a_first_category_without_a_feature_is_code_0(tmp_path):
    """As in ARFF, whose sparse rows leave the first value out."""
    file = tmp_path / "file.arff"
    file.write_text(
        "@relation 'r: -C 1'\n@attribute y {0,1}\n@attribute c {red,blue,green}\n"
        "@attribute x numeric\n@data\n1,blue,2\n0,red,0\n1,green,?\n0,?,1\n"
    )
    data = read(file, labels=1)
    codes = CategoryCodes.of(data.schema)
    nan = np.nan
    expected = [[1, 2], [0, 0], [2, nan], [nan, 1]]
    np.testing.assert_array_equal(codes.fit_transform(data.X), expected)
    frame = codes.set_output(transform="pandas").transform(data.X)
    assert frame.columns.tolist() == ["c", "x"]
    np.testing.assert_array_equal(frame, expected)


def test_a_new_category_is_missing(tmp_path):
    for name, cells in {"first": "red,1\nblue,0\n", "new": "pink,1\nblue,0\n"}.items():
        (tmp_path / f"{name}.csv").write_text(f"kind,label\n{cells}")
    data = read(tmp_path / "first.csv", labels=["label"], categorical=["kind"])
    new = data.schema.read(tmp_path / "new.csv", unseen_categories="zeros")
    codes = CategoryCodes.of(data.schema).fit(data.X)
    blue = data.schema.features.coded["kind"].values.tolist().index("blue")
    np.testing.assert_array_equal(codes.transform(new.X)[:, 0], [np.nan, blue])


def test_numbers_and_text_are_left_as_they_are(tmp_path):
    (tmp_path / "a.csv").write_text("x,t,label\n1,good day,1\n2,bad day,0\n")
    plain = read(tmp_path / "a.csv", labels=["label"], drop=["t"])
    assert CategoryCodes.of(plain.schema) is None
    text = read(tmp_path / "a.csv", labels=["label"], text=["t"])
    assert CategoryCodes.of(text.schema) is None
    with pytest.raises(ValueError, match="must have the 4 features of the widths"):
        CategoryCodes([1, 3], [False, False]).fit(np.zeros((2, 3)))
