"""Reductions to single labels and sizes, on inputs of which each has a score of its own."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from setwise.consistency import Distribution, bayes
from setwise.estimators.reductions import LabelSizeClassifier, PickLabels
from setwise.spaces import Cube, Slice
from setwise.targets import get_target

SETS = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 1, 1], [1, 0, 1], [1, 1, 1]], np.uint8)
N_TIMES = 40


def finite_rows(seed, sets=SETS, n_inputs=5):
    """One-hot inputs, each with label sets in whole shares of its rows; and the shares."""
    rng = np.random.default_rng(seed)
    counts = rng.multinomial(N_TIMES, rng.dirichlet(np.full(len(sets), 0.6), n_inputs))
    inputs, chosen = np.nonzero(counts)
    times = counts[inputs, chosen]
    return (
        np.repeat(np.eye(n_inputs)[inputs], times, axis=0),
        np.repeat(sets[chosen], times, axis=0),
        counts / N_TIMES,
    )


def gains(counts, normalized, sets=SETS):
    """P(label), or E[y_j / |y|], of each input."""
    scale = np.maximum(sets.sum(axis=1), 1) if normalized else np.ones(len(sets))
    return counts @ (sets / scale[:, None])


@pytest.mark.parametrize("pick", ["all", "all_normalized", "one_vs_all_normalized"])
@pytest.mark.parametrize("k", [1, 2])
def test_the_labels_picked_have_the_largest_expected_gain(pick, k):
    """Precision@k by the marginals, recall@k by E[y_j / |y|]."""
    name = "precision" if pick == "all" else "recall"
    for seed in range(4):
        X, Y, shares = finite_rows(seed, SETS[1:])
        model = PickLabels(f"{name}@{k}", pick, alpha=1e-7).fit(X, Y)
        own = gains(shares, pick != "all", SETS[1:])
        predicted = model.predict(np.eye(len(own)))
        assert (predicted.sum(axis=1) == k).all()
        best = np.sort(own, axis=1)[:, -k:].sum(axis=1)
        np.testing.assert_allclose((own * predicted).sum(axis=1), best, atol=1e-6)


def test_one_label_drawn_is_the_normalized_loss_on_average():
    X, Y, shares = finite_rows(1, SETS[1:])
    many = np.repeat(np.arange(len(X)), 200)
    model = PickLabels("recall@1", "one", alpha=1e-7, random_state=3).fit(X[many], Y[many])
    found = model.decision_function(np.eye(len(shares)))
    np.testing.assert_allclose(found, gains(shares, True, SETS[1:]), atol=0.03)


def test_no_reduction_serves_precision_and_recall():
    """Label 0 is the likelier one, but only in the company of others."""
    sets = np.array([[1, 0, 1], [0, 1, 0], [1, 0, 0]], np.uint8)
    Y = np.repeat(sets, [11, 9, 1], axis=0)
    X = np.ones((len(Y), 1))
    assert PickLabels("precision@1", "all").fit(X, Y).predict(X[:1]).argmax() == 0
    for pick in ("all_normalized", "one_vs_all_normalized"):
        assert PickLabels("recall@1", pick).fit(X, Y).predict(X[:1]).argmax() == 1


def test_for_other_targets_as_many_labels_as_usual_are_picked():
    X, Y, _ = finite_rows(0)
    model = PickLabels("f1").fit(X, Y)
    assert model.n_predicted_ == round(Y.sum(axis=1).mean())
    assert model.score(X, Y) == pytest.approx(1 - get_target("f1").loss(model.predict(X), Y).mean())


@pytest.mark.parametrize("problems", ["binary", "multinomial"])
@pytest.mark.parametrize("target", ["f1", "f2", "recall@2", "precision@1", "hamming"])
def test_label_sizes_give_the_best_set(problems, target):
    for seed in range(4):
        X, Y, shares = finite_rows(seed)
        model = LabelSizeClassifier(target, problems, alpha=1e-7).fit(X, Y)
        predicted = model.predict(np.eye(len(shares)))
        k = {"recall@2": 2, "precision@1": 1}.get(target)
        space = Cube(3) if k is None else Slice(3, k)
        for row, share in zip(predicted, shares, strict=True):
            losses = get_target(target).loss(np.tile(row, (len(SETS), 1)), SETS)
            best = bayes(target, space, Distribution(SETS[share > 0], share[share > 0]))
            least = get_target(target).loss(np.tile(best, (len(SETS), 1)), SETS)
            assert share @ losses == pytest.approx(share @ least, abs=1e-3)


def test_label_sizes_are_the_shares_of_each_input():
    X, Y, shares = finite_rows(2)
    sizes = SETS.sum(axis=1)
    for problems in ("binary", "multinomial"):
        model = LabelSizeClassifier("f1", problems, alpha=1e-8).fit(X, Y)
        found = model.predict_distribution(np.eye(len(shares)))
        for size in range(1, 4):
            own = shares @ (SETS * (sizes == size)[:, None])
            np.testing.assert_allclose(found.joint[:, size], own, atol=2e-3)
        np.testing.assert_allclose(found.chance[:, 0], shares[:, 0], atol=2e-3)
        np.testing.assert_allclose(model.predict_proba(np.eye(5)), shares @ SETS, atol=5e-3)


@pytest.mark.parametrize("model", [PickLabels("recall@1"), LabelSizeClassifier()])
def test_one_class_a_row_and_no_label_at_all(model):
    with pytest.raises(ValueError, match="one class for each row"):
        model.fit(np.eye(3), [0, 1, 2])
    if isinstance(model, PickLabels):
        with pytest.raises(ValueError, match="every label set is empty"):
            model.fit(np.eye(3), np.zeros((3, 2), int))
    else:
        assert not model.fit(np.eye(3), np.zeros((3, 2), int)).predict(np.eye(3)).any()


@pytest.mark.parametrize("wrong", [PickLabels(pick="some"), LabelSizeClassifier(problems="some")])
def test_unknown_settings_are_refused(wrong):
    with pytest.raises(ValueError, match="must be one of"):
        wrong.fit(np.eye(3), np.eye(3, dtype=int))


EVERY = [
    *(PickLabels("recall@1", pick) for pick in ("all", "all_normalized", "one_vs_all_normalized")),
    *(LabelSizeClassifier("f1", problems) for problems in ("binary", "multinomial")),
]
every_reduction = pytest.mark.parametrize(
    "model", EVERY, ids=lambda model: str(list(vars(model).values())[1])
)


@every_reduction
def test_a_row_of_weight_three_is_three_rows_and_one_of_weight_zero_is_none(model):
    X, Y, _ = finite_rows(3, SETS[1:])
    times = np.arange(len(X)) % 4
    weighed = clone(model).fit(X, Y, sample_weight=times)
    many = np.repeat(np.arange(len(X)), times)
    repeated = clone(model).fit(X[many], Y[many])
    answer = "decision_function" if isinstance(model, PickLabels) else "predict_proba"
    found, expected = (getattr(fitted, answer)(np.eye(5)) for fitted in (weighed, repeated))
    np.testing.assert_allclose(found, expected, atol=1e-3)
    unweighed = getattr(clone(model).fit(X, Y), answer)(np.eye(5))
    assert np.abs(found - unweighed).max() > 0.01


def test_weights_count_in_how_many_labels_are_usual():
    X, Y = np.eye(3), np.array([[1, 0, 0], [1, 1, 1], [0, 1, 0]])
    assert PickLabels("f1").fit(X, Y, sample_weight=[1, 9, 0]).n_predicted_ == 3


@every_reduction
def test_a_data_frame_is_its_values_with_names(model):
    X, Y, _ = finite_rows(4, SETS[1:])
    frame = pd.DataFrame(X, columns=list("abcde"), index=np.arange(len(X))[::-1])
    named, plain = clone(model).fit(frame, Y), clone(model).fit(X, Y)
    np.testing.assert_array_equal(named.predict(frame), plain.predict(X))
    assert named.feature_names_in_.tolist() == list("abcde")
    assert named.n_features_in_ == plain.n_features_in_ == 5
    with pytest.raises(ValueError, match="feature names"):
        named.predict(frame[list("edcba")])
    with pytest.raises(ValueError, match="5 features"):
        plain.predict(X[:, :4])


@every_reduction
def test_rows_and_label_sets_must_be_as_many(model):
    with pytest.raises(ValueError, match="X has 5 and y has 3"):
        clone(model).fit(np.eye(5), SETS[1:4])


@pytest.mark.parametrize("kind", [PickLabels, LabelSizeClassifier])
@pytest.mark.parametrize("target", ["precision@4", "recall@4"])
def test_more_labels_than_there_are_cannot_be_asked_for(kind, target):
    with pytest.raises(ValueError, match=f"{target} needs at least 4 labels, but there are 3"):
        kind(target).fit(np.eye(6), SETS)
