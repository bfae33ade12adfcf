"""What a joint model costs is known before it is begun, and what fits is trained."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from setwise.estimators import SetClassifier, SetClassifierCV, cost
from setwise.estimators.design import Rows
from setwise.spaces import Sized
from tests.estimators.test_set_classifier_cv import drawn


def quick(kind, **settings):
    return kind("f1", **settings, **({"alphas": [0.1], "cv": 2} if kind is SetClassifierCV else {}))


def classifier(model):
    return getattr(model, "best_estimator_", model)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("kind", [SetClassifier, SetClassifierCV])
def test_beyond_a_small_limit_of_memory_labels_are_trained_by_themselves(kind, form, monkeypatch):
    X, Y = drawn(0)
    monkeypatch.setattr(cost, "memory", lambda: 1000)
    with pytest.warns(UserWarning, match="GB, more than a quarter of the memory there is"):
        model = quick(kind).fit(form(X), Y)
    assert classifier(model).surrogate_ == "binary_relevance"
    assert "every label is trained by itself" in model.choice_
    assert model.predict(X).shape == Y.shape


@pytest.mark.parametrize("kind", [SetClassifier, SetClassifierCV])
def test_a_list_that_takes_too_many_operations_gives_way_to_sizes(kind, monkeypatch):
    """And sizes, where they take too many as well, to labels by themselves."""
    X, Y = drawn(1, n_labels=9)
    monkeypatch.setattr(
        cost, "MOST_OPERATIONS", 8.0 * Y.size * Y.sum(axis=1).max() + 4 * X.size * 9
    )
    with pytest.warns(UserWarning, match="weighed by their size"):
        model = quick(kind).fit(X, Y)
    assert isinstance(classifier(model).space_, Sized)
    assert classifier(model).surrogate_ == "likelihood"
    monkeypatch.setattr(cost, "MOST_OPERATIONS", 1.0)
    with pytest.warns(UserWarning, match="operations a pass over the data, so every label"):
        model = quick(kind).fit(X, Y)
    assert classifier(model).surrogate_ == "binary_relevance"


@pytest.mark.parametrize("kind", [SetClassifier, SetClassifierCV])
def test_what_fits_and_what_was_asked_for_is_trained_as_it_was(kind, monkeypatch):
    X, Y = drawn(2)
    assert quick(kind).fit(X, Y).choice_ is None
    monkeypatch.setattr(cost, "memory", lambda: 1000)
    name = "surrogate" if kind is SetClassifier else "surrogates"
    asked = quick(kind, **{name: "likelihood"}).fit(X, Y)
    assert asked.choice_ is None
    assert classifier(asked).surrogate_ == "likelihood"


def test_thousands_of_labels_and_features_are_estimated_without_an_array_of_them():
    """20,000 rows by 10,000 features with 5,000 labels: 7.6 GB, as it was seen to take."""
    X = sparse.csr_array((20_000, 10_000))
    Y = np.zeros((20_000, 5_000), np.uint8)
    plan = cost.affordable(Rows(X, Y, np.ones(len(Y))))
    needed = 8 * 10_000 * 5_000 * (2 * 3 + cost.ARRAYS)
    assert needed == pytest.approx(7.6e9)
    assert (plan.surrogate == "binary_relevance") == (needed > cost.memory() / 4)


def test_the_memory_is_that_of_the_control_group_if_that_has_less(tmp_path, monkeypatch):
    whole = cost.memory()
    (tmp_path / "small").write_text("123456\n")
    (tmp_path / "none").write_text("max\n")
    monkeypatch.setattr(cost, "CONTROL_GROUPS", (str(tmp_path / "none"), str(tmp_path / "missing")))
    assert cost.memory() >= whole
    monkeypatch.setattr(cost, "CONTROL_GROUPS", (str(tmp_path / "none"), str(tmp_path / "small")))
    assert cost.memory() == 123456


def test_where_the_system_says_nothing_of_its_memory_a_model_is_trained_all_the_same(
    monkeypatch, tmp_path
):
    """As on Windows, and where what limits a container cannot be read."""
    monkeypatch.delattr(cost.os, "sysconf")
    monkeypatch.setattr(cost, "CONTROL_GROUPS", (str(tmp_path), str(tmp_path / "missing")))
    assert cost.memory() > 2**30
    assert SetClassifier("f1").fit(*drawn(0)).choice_ is None
