"""The inside of models in the report: members of mixtures, rows explained, worth of features."""

import csv
from xml.etree import ElementTree

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier

from setwise import SetClassifier, SetEnsemble, explain, feature_importance
from setwise.evaluation import evaluate, reliability
from setwise.report import draw, write
from setwise.study import Study, load, members_of
from setwise.study.members import WHOLE, merged
from tests.support.small_models import few_trees

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(120, 4))
Y = (X @ RANDOM.normal(size=(4, 3)) + RANDOM.normal(size=(120, 3)) > 0.4).astype(int)
HOSTILE = ["<b>", "</svg><script>x</script>", "\u202ename", "a&b"]


@pytest.fixture(scope="module")
def mixture():
    members = {
        "linear": SetClassifier(alpha=0.01),
        "flat": SetClassifier(alpha=3.0),
        "by label": OneVsRestClassifier(LogisticRegression()),
    }
    return SetEnsemble(members=members, cv=2).fit(X[:80], Y[:80])


def test_members_have_the_reliability_of_what_is_mixed(mixture):
    found = members_of(mixture, X[80:], Y[80:])
    assert [own.name for own in found] == [*mixture.members_, WHOLE]
    for own, told in zip(found, mixture.contributions_, strict=False):
        law = mixture.members_[own.name].predict_distribution(X[80:])
        law = law.tempered(told["temperature"])
        expected = reliability(np.clip(law.marginals(), 0, 1), Y[80:])
        assert own.expected_error == pytest.approx(expected.expected_error, abs=1e-9)
        assert (own.weight, own.log_loss) == (told["weight"], told["log_loss"])
    whole = reliability(mixture.predict_proba(X[80:]), Y[80:])
    assert found[-1].expected_error == pytest.approx(whole.expected_error, abs=1e-12)
    assert found[-1].log_loss == mixture.log_loss_


def test_folds_together_are_the_curve_of_all_their_entries(mixture):
    parts = [members_of(mixture, X[rows], Y[rows]) for rows in (slice(80, 95), slice(95, 120))]
    together, whole = merged(parts), members_of(mixture, X[80:], Y[80:])
    for a, b in zip(together, whole, strict=True):
        np.testing.assert_array_equal(a.reliability.count, b.reliability.count)
        np.testing.assert_allclose(a.reliability.frequency, b.reliability.frequency, atol=1e-12)
        assert a.expected_error == pytest.approx(b.expected_error)
        assert (a.weight, a.log_loss) == pytest.approx((b.weight, b.log_loss))


def test_the_page_of_an_evaluation_tells_of_members_features_and_rows(mixture, tmp_path):
    judged = evaluate(
        mixture.predict(X[80:]), Y[80:], probability=mixture.predict_proba(X[80:]), n_bootstrap=0
    )
    members = members_of(mixture, X[80:], Y[80:])
    rows = explain(mixture, X[80:82], background=X[:80], feature_names=HOSTILE, labels=[0, 2])
    worth = feature_importance(mixture, X[80:], Y[80:], feature_names=HOSTILE, n_repeats=2)
    write(
        {"mine": judged}, tmp_path / "page.html", members={"mine": members},
        explained={"7": rows[0], "<i>8": rows[1]}, importance=worth, tables=tmp_path / "tables",
    )  # fmt: skip
    page = (tmp_path / "page.html").read_text()
    assert "<script>x" not in page
    assert "<i>8" not in page
    for id_ in ("mixture", "explained"):
        assert f'<section id="{id_}"' in page
    with (tmp_path / "tables" / "mixture.csv").open(newline="") as file:
        table = list(csv.DictReader(file))
    assert [row["member"] for row in table] == [own.name for own in members]
    errors = [float(row["expected calibration error"]) for row in table]
    assert errors == pytest.approx([own.expected_error for own in members])
    with (tmp_path / "tables" / "explained.csv").open(newline="") as file:
        added = [float(row["added to the log-odds"]) for row in csv.DictReader(file)]
    expected = np.concatenate([row.contributions.ravel() for row in rows])
    assert added == pytest.approx(expected[expected != 0.0].tolist())


def test_members_of_something_else_are_refused(mixture, tmp_path):
    judged = evaluate(mixture.predict(X[80:]), Y[80:], n_bootstrap=0)
    with pytest.raises(ValueError, match="'other' is none of mine"):
        write({"mine": judged}, tmp_path / "page.html", members={"other": ()})
    assert not (tmp_path / "page.html").exists()


def test_a_study_keeps_what_the_members_of_a_mixture_bring(tmp_path, monkeypatch):
    few_trees(monkeypatch)
    study = Study(X, Y, methods=["catalog", "ensemble"], targets=["f1", "hamming"], folds=2)
    results = study.run(tmp_path / "study")
    by_name = {(outcome.method, outcome.target): outcome.members for outcome in results.outcomes}
    assert by_name["catalog", "f1"] == ()
    members = by_name["ensemble", "f1"]
    assert [own.name for own in members][-1] == WHOLE
    assert sum(own.weight for own in members[:-1]) == pytest.approx(1.0)
    outcome = next(own for own in results.outcomes if own.members)
    whole = reliability(outcome.probability, results.y_true)
    assert members[-1].expected_error == pytest.approx(whole.expected_error, abs=1e-6)
    again = load(tmp_path / "study")
    for one, other in zip(results.outcomes, again.outcomes, strict=True):
        assert str(one.members) == str(other.members)
    write(results, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert page.count("Mixture without it") == 2


def test_a_picture_by_itself_is_whole_and_holds_names_as_text(tmp_path):
    model = SetClassifier(alpha=0.01).fit(X, [list(np.array(HOSTILE[:3])[y == 1]) for y in Y])
    (row,) = explain(model, X[:1], labels=HOSTILE[:3], feature_names=HOSTILE, background=X)
    draw(row, tmp_path / "why.svg")
    tree = ElementTree.parse(tmp_path / "why.svg")
    tags = {element.tag.rpartition("}")[2] for element in tree.iter()}
    assert tags <= {"svg", "style", "title", "text", "rect", "line"}
    texts = "".join(tree.getroot().itertext())
    assert "<b>" in texts
    assert "\\u202ename" in texts
    bars = [one for one in tree.iter() if one.get("class") in ("raises", "lowers")]
    assert len(bars) == np.count_nonzero(row.contributions)
