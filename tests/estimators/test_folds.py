"""Laws of the folds: they part the rows, and every label is spread over them."""

from collections import Counter

import numpy as np
import pytest
import scipy.sparse
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score

from setwise.estimators.folds import StratifiedLabelSets, drawn_groups
from tests.support.turns import in_turn

matrices = hnp.arrays(
    np.uint8,
    st.tuples(st.integers(6, 40), st.integers(2, 6)),
    elements=st.integers(0, 1),
)
splits = st.integers(2, 6)
seeds = st.integers(0, 2**32 - 1)


def skewed(seed, n_rows=600, n_labels=40):
    """Label sets in which a few labels are frequent and most are rare."""
    random = np.random.default_rng(seed)
    share = 0.5 / np.arange(1, n_labels + 1)
    return (random.random((n_rows, n_labels)) < share).astype(np.int64)


def counts_of(y, folds, n_splits):
    """How often each label is in each fold, (n_splits, l)."""
    return np.stack([y[folds == fold].sum(axis=0) for fold in range(n_splits)])


def deviation(counts):
    """The distance of each count from its label's mean."""
    return np.abs(counts - counts.mean(axis=0))


def sets_of(y, folds, n_splits):
    """How often each label set is in each fold."""
    return [Counter(map(bytes, y[folds == fold])) for fold in range(n_splits)]


# ------------------------------------------------------------------------------------- guaranteed


@given(y=matrices, n_splits=splits, seed=seeds, shuffle=st.booleans())
@example(y=np.ones((6, 2), np.uint8), n_splits=6, seed=0, shuffle=True)
@example(y=np.zeros((7, 2), np.uint8), n_splits=5, seed=0, shuffle=False)
def test_the_folds_part_the_rows_in_sizes_that_differ_by_at_most_one(y, n_splits, seed, shuffle):
    before = y.copy()
    splitter = StratifiedLabelSets(n_splits, shuffle=shuffle, random_state=seed)
    parts = list(splitter.split(np.zeros((len(y), 1)), y))
    assert len(parts) == splitter.get_n_splits() == n_splits
    tests = np.concatenate([test for _, test in parts])
    np.testing.assert_array_equal(np.sort(tests), np.arange(len(y)))
    for train, test in parts:
        np.testing.assert_array_equal(np.sort(np.append(train, test)), np.arange(len(y)))
        assert (np.diff(train) > 0).all()
        assert (np.diff(test) > 0).all()
    assert np.ptp([len(test) for _, test in parts]) <= 1
    np.testing.assert_array_equal(y, before)


@given(
    y=st.lists(st.sampled_from("aaaabbcde"), min_size=6, max_size=60), n_splits=splits, seed=seeds
)
def test_with_one_class_a_row_each_class_is_as_even_as_can_be(y, n_splits, seed):
    folds = StratifiedLabelSets(n_splits, random_state=seed).assign(y)
    indicators = np.array(y)[:, None] == np.unique(y)
    assert (np.ptp(counts_of(indicators, folds, n_splits), axis=0) <= 1).all()
    assert np.ptp(np.bincount(folds, minlength=n_splits)) <= 1


@given(y=matrices, n_splits=splits, seed=seeds, shuffle=st.booleans(), data=st.data())
def test_another_order_of_rows_gives_folds_with_the_same_label_sets(
    y, n_splits, seed, shuffle, data
):
    splitter = StratifiedLabelSets(n_splits, shuffle=shuffle, random_state=seed)
    order = np.array(data.draw(st.permutations(range(len(y)))))
    expected = sets_of(y, splitter.assign(y), n_splits)
    assert sets_of(y[order], splitter.assign(y[order]), n_splits) == expected


@given(y=matrices, n_splits=splits, seed=seeds)
def test_every_form_of_the_same_labels_gives_the_same_folds(y, n_splits, seed):
    splitter = StratifiedLabelSets(n_splits, random_state=seed)
    folds = splitter.assign(y)
    forms = [y.astype(float), y.tolist(), scipy.sparse.csr_array(y), scipy.sparse.coo_matrix(y)]
    for form in forms:
        np.testing.assert_array_equal(splitter.assign(form), folds)


# -------------------------------------------------------------------------------------- the spread


@in_turn("n_splits", [2, 5, 10])
@in_turn("seed", range(5))
def test_labels_are_spread_more_evenly_than_by_chance(n_splits, seed):
    y = skewed(seed)
    ours = deviation(counts_of(y, StratifiedLabelSets(n_splits).assign(y), n_splits))
    chance = np.empty(len(y), dtype=int)
    for fold, (_, test) in enumerate(KFold(n_splits, shuffle=True, random_state=seed).split(y)):
        chance[test] = fold
    theirs = deviation(counts_of(y, chance, n_splits))
    assert ours.max() <= 2.0
    assert ours.max() < theirs.max() / 2
    assert ours.mean() < theirs.mean() / 2
    # Of each label by itself, up to what the remainder of a division leaves.
    assert (ours.max(axis=0) <= np.maximum(theirs.max(axis=0), 1.0)).all()


@in_turn("n_splits", [2, 5, 10])
@in_turn("seed", range(5))
def test_labels_with_enough_positives_are_in_every_fold(n_splits, seed):
    """Not guaranteed, but so on data like these, down to labels with one positive a fold."""
    y = skewed(seed)
    enough = y.sum(axis=0) >= n_splits
    assert (y.sum(axis=0) < 2 * n_splits)[enough].any() or n_splits == 2
    counts = counts_of(y, StratifiedLabelSets(n_splits).assign(y), n_splits)
    assert (counts[:, enough] > 0).all()


@pytest.mark.parametrize("seed", range(5))
def test_labels_that_come_together_are_spread_too(seed):
    """Rows of a few prototypes with noise, so that labels depend on each other."""
    random = np.random.default_rng(seed)
    prototypes = random.random((30, 25)) < 0.2
    y = prototypes[random.integers(30, size=500)] ^ (random.random((500, 25)) < 0.02)
    counts = counts_of(y, StratifiedLabelSets(5).assign(y), 5)
    assert deviation(counts).max() <= 3.0
    assert (counts[:, y.sum(axis=0) >= 5] > 0).all()


def test_no_folds_can_have_every_label_of_a_triangle():
    """Each label has two rows, but two of the three rows share a fold, and so all of a label."""
    y = np.array([[1, 0, 1], [1, 1, 0], [0, 1, 1]])
    counts = counts_of(y, StratifiedLabelSets(2).assign(y), 2)
    assert (counts == 0).any()


def test_rows_without_labels_fill_the_smaller_folds():
    y = np.zeros((10, 2), dtype=int)
    y[:3, 0] = 1
    folds = StratifiedLabelSets(5).assign(y)
    assert len(set(folds[:3])) == 3
    np.testing.assert_array_equal(np.bincount(folds), 2)


# ----------------------------------------------------------------------------------------- chance


def test_the_seed_decides():
    y = skewed(0)
    folds = StratifiedLabelSets(random_state=3).assign(y)
    np.testing.assert_array_equal(StratifiedLabelSets(random_state=3).assign(y), folds)
    assert (StratifiedLabelSets(random_state=4).assign(y) != folds).any()
    drawn = StratifiedLabelSets(random_state=np.random.RandomState(3)).assign(y)
    np.testing.assert_array_equal(drawn, folds)


def test_without_shuffle_there_is_no_chance_and_equal_rows_go_in_turn():
    y = skewed(0)
    folds = StratifiedLabelSets(shuffle=False, random_state=1).assign(y)
    np.testing.assert_array_equal(StratifiedLabelSets(shuffle=False).assign(y), folds)
    np.testing.assert_array_equal(
        StratifiedLabelSets(3, shuffle=False).assign(["a"] * 7), [0, 1, 2, 0, 1, 2, 0]
    )


# ------------------------------------------------------------------------------------ as a splitter


def test_scikit_learn_takes_it_for_a_splitter():
    random = np.random.default_rng(0)
    X, y = random.normal(size=(60, 3)), skewed(1, 60, 3)
    splitter = StratifiedLabelSets(3)
    assert len(cross_val_score(RidgeClassifier(), X, y, cv=splitter)) == 3
    classes = np.where(X[:, 0] > 0, "yes", "no")
    search = GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=splitter).fit(X, classes)
    assert clone(search).cv == splitter
    assert "split2_test_score" in search.cv_results_


def test_X_may_be_left_out_or_be_a_list():
    y = skewed(0, 12, 3)
    splitter = StratifiedLabelSets(2)
    for X in (None, ["text"] * 12, scipy.sparse.csr_array((12, 4))):
        tests = [test for _, test in splitter.split(X, y)]
        np.testing.assert_array_equal(tests[0], np.flatnonzero(splitter.assign(y) == 0))


@pytest.mark.parametrize("n_splits", [1, 0, -3, 2.5, "5", True])
def test_a_number_of_folds_that_is_none_is_refused(n_splits):
    with pytest.raises(ValueError, match=r"n_splits must be a whole number of at least 2"):
        StratifiedLabelSets(n_splits)


def test_bad_data_is_refused():
    splitter = StratifiedLabelSets(5)
    with pytest.raises(ValueError, match=r"5 folds .* y has n_samples = 4"):
        next(splitter.split(np.zeros((4, 1)), skewed(0, 4, 2)))
    with pytest.raises(ValueError, match=r"X has 3 and y has 6"):
        next(splitter.split(np.zeros((3, 1)), skewed(0, 6, 2)))
    with pytest.raises(ValueError, match="the target y is None"):
        next(splitter.split(np.zeros((6, 1)), None))
    with pytest.raises(ValueError, match="Unknown label type"):
        next(splitter.split(np.zeros((6, 1)), np.linspace(0, 1, 6)))


@given(
    groups=hnp.arrays(np.int64, st.integers(1, 30), elements=st.integers(0, 8)),
    fraction=st.floats(0.05, 0.9),
    seed=seeds,
)
def test_groups_are_drawn_whole_until_they_are_enough_rows(groups, fraction, seed):
    held = drawn_groups(groups, fraction, seed)
    assert not held.all()
    assert not set(groups[held]) & set(groups[~held])
    wanted = round(fraction * len(groups))
    drawn = [np.count_nonzero(groups == group) for group in set(groups[held])]
    enough = sum(drawn) >= wanted or len(set(groups[~held])) == 1
    assert enough
    assert not drawn or sum(drawn) - max(drawn) < wanted
