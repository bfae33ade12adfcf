"""How estimators, spaces and targets are shown: on short lines, with links to their pages."""

import re

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.utils import estimator_html_repr

import setwise
from setwise import spaces, targets
from setwise.estimators import named_sets

KINDS = [name for name in setwise.estimators.__all__ if isinstance(getattr(setwise, name), type)]


@pytest.mark.parametrize("name", KINDS)
def test_the_html_representation_leads_to_the_page_of_the_class(name, monkeypatch):
    kind = getattr(setwise, name)
    given = [LogisticRegression()] if name in ("TargetDecoder", "CatalogClassifier") else []
    model = kind(*given)
    monkeypatch.setattr(named_sets, "documentation", lambda: "https://example.org/docs")
    assert model._get_doc_link() == f"https://example.org/docs/api/setwise.{name}.html"
    assert model._get_doc_link() in estimator_html_repr(model)


def test_without_an_address_there_is_no_link(monkeypatch):
    monkeypatch.setattr(named_sets, "documentation", lambda: "")
    model = setwise.SetClassifier()
    assert model._get_doc_link() == ""
    assert "?" not in re.findall(r"<a [^>]*>([^<]*)<", estimator_html_repr(model))


def test_the_address_is_that_of_the_metadata(monkeypatch):
    from email.message import Message

    told = Message()
    told["Project-URL"] = "Paper, https://example.org/paper"
    told["Project-URL"] = "Documentation, https://example.org/docs/"
    monkeypatch.setattr(named_sets, "metadata", lambda _: told)
    assert named_sets.documentation.__wrapped__() == "https://example.org/docs"


@pytest.mark.parametrize("n_labels", [3, 300])
def test_spaces_and_targets_are_shown_on_one_short_line(n_labels):
    parents = np.arange(-1, n_labels - 1)
    sets = np.eye(n_labels, dtype=int)
    weights = np.full(n_labels, 1.0)
    objects = [
        spaces.Cube(n_labels), spaces.Slice(n_labels, 2), spaces.Sized(n_labels, weights),
        spaces.Forest(parents), spaces.Forest(parents, closed=True), spaces.Paths(parents),
        spaces.Catalog(sets), spaces.Catalog(sets, weights, joint=True),
        spaces.Backoff(spaces.Sized(n_labels, weights), sets, weights),
        targets.Hamming(weights), targets.CostSensitive(weights, weights),
        targets.TableTarget(sets, 1 - sets), targets.TreeDistance(parents),
        *map(setwise.get_target, ["f1", "jaccard", "subset", "macro_f1", "precision@2"]),
    ]  # fmt: skip
    for thing in objects:
        assert "\n" not in repr(thing)
        assert len(repr(thing)) <= 160, thing
        assert len(str(thing)) <= 60
    model = setwise.SetClassifier(targets.Hamming(weights), space=spaces.Catalog(sets))
    assert len(repr(model)) <= 400


def test_what_stands_at_its_default_is_not_shown():
    assert repr(targets.Hamming()) == "Hamming()"
    assert repr(spaces.Paths([-1, 0])) == "Paths(parents=[-1, 0])"
    assert eval(repr(spaces.Catalog([[0, 1], [1, 1]], joint=True)), vars(spaces)).joint
