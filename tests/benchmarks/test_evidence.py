"""The machinery of the evidence: tuning, ranks, resuming and the page."""

import json
import random
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy import sparse
from scipy.stats import ttest_1samp
from sklearn.base import BaseEstimator, ClassifierMixin

from benchmarks.data import load
from benchmarks.evidence import findings, page, unit, work
from benchmarks.evidence.gains import Gain, gain
from benchmarks.evidence.ranks import by_kind, means, ranking
from benchmarks.evidence.tuning import MEASURES, Question, Recipe, answers, beyond, choose
from setwise.targets import get_target


class Cut(ClassifierMixin, BaseEstimator):
    """Predicts the labels whose feature is above a cut: nothing is learnt."""

    def __init__(self, C):
        self.C = C

    def fit(self, X, y):
        return self

    def predict(self, X):
        return (X > self.C).astype(np.int64)


CUTS = [{"C": C} for C in (0.1, 0.3, 0.5, 0.7, 0.9)]


@pytest.fixture
def problem():
    generator = np.random.default_rng(0)
    X = generator.random((60, 4))
    return X, (X + 0.3 * generator.normal(size=X.shape) > 0.6).astype(np.int64)


def test_settings_are_the_best_of_the_grid_for_each_measure(problem):
    X, Y = problem
    asked = Question("f1", 0, len(Y), False)
    chosen = choose(Recipe(lambda asked, C: Cut(C), lambda _: CUTS), X, Y, asked, tuple(MEASURES))
    for name, measure in MEASURES.items():
        values = [measure(Y, Cut(s["C"]).predict(X)) for s in CUTS]
        assert chosen[name] == (CUTS[int(np.argmax(values))], False)
    assert len({settings["C"] for settings, _ in chosen.values()}) > 1


def test_a_grid_is_widened_while_the_best_is_at_its_end(problem):
    X, Y = problem
    asked = Question("f1", 0, len(Y), False)
    for first, reached in ((0.05, [0.05, 0.1, 0.2, 0.4]), (0.1, [0.1, 0.2, 0.4, 0.8])):
        grid = [{"C": first}, {"C": 2.0 * first}]
        recipe = Recipe(lambda asked, C: Cut(C), lambda _, grid=grid: grid)
        ((settings, at_edge),) = choose(recipe, X, Y, asked, ("f1",)).values()
        values = [MEASURES["f1"](Y, Cut(C).predict(X)) for C in reached]
        assert settings["C"] == pytest.approx(reached[int(np.argmax(values))])
        assert at_edge == (first == 0.05)


def test_the_penalty_beyond_an_end_is_as_far_again_with_the_same_other_settings():
    tried = [{"C": C, "scaling": how} for how in (None, "rows") for C in (0.1, 1.0, 10.0)]
    chosen = [tried[0], tried[1], tried[5], tried[5], {"epochs": 20}]
    assert beyond(tried, chosen) == [
        {"C": pytest.approx(0.01), "scaling": None}, {"C": 100.0, "scaling": "rows"},
    ]  # fmt: skip


def test_measures_are_the_utilities_of_targets(problem):
    X, Y = problem
    Y, guess = Y.copy(), Cut(0.7).predict(X)
    Y[0] = guess[0] = 0
    for name, measure in MEASURES.items():
        assert measure(Y, guess) == pytest.approx(get_target(name).utility(guess, Y), abs=1e-12)


def test_an_answer_a_target_with_a_model_for_each_where_one_does_not_serve_all(problem):
    X, Y = problem
    made = []

    def make(asked, C):
        made.append((asked.target, C))
        return Cut(C)

    recipe = Recipe(make, lambda _: CUTS[:1], serves_all=False, targets=("f1", "subset"))
    found = list(answers(recipe, X, Y, X[:5], 0))
    assert [one.target for one in found] == ["f1", "subset"]
    assert made == [("f1", 0.1), ("subset", 0.1)]
    assert all((one.sets.toarray() == Cut(0.1).predict(X[:5])).all() for one in found)


def rows_of(values):
    """Rows of a table method -> set -> value, for F1."""
    return [
        {"set": name, "split": "official", "kind": "ours" if method == "a" else "peer",
         "method": method, "seed": 0, "target": "f1", "f1": value, "settings": {"C": 1.0},
         "f1 interval": [value - 0.1, value + 0.1], "rows": 100, "test_rows": 50,
         "at_edge": False, "fit_seconds": 1.0, "predict_seconds": 0.1}
        for method, by_set in values.items() for name, value in by_set.items()
    ]  # fmt: skip


VALUES = {
    "a": {"s1": 0.9, "s2": 0.8, "s3": 0.7},
    "b": {"s1": 0.9, "s2": 0.7, "s3": 0.6},
    "c": {"s1": 0.5, "s2": 0.9, "s3": 0.1},
    "d": {"s1": 0.99},
}


def test_mean_ranks_with_ties_and_without_those_that_lack_a_set():
    found = ranking(rows_of(VALUES), "f1", list(VALUES))
    assert found.methods == ["a", "b", "c"]
    assert found.ranks == pytest.approx([4.5 / 3, 6.5 / 3, 7 / 3])
    assert found.sets == ["s1", "s2", "s3"]


def test_the_first_is_compared_on_the_splits_that_both_have_with_holms_correction():
    shifted = {"a": {"s1": 0.85, "s2": 0.8}, "b": {"s1": 0.8, "s2": 0.8}, "c": {"s1": 0.3}}
    again = {"a": {"s1": 0.8, "s2": 0.7}, "b": {"s1": 0.6, "s2": 0.65}, "c": {"s1": 0.4}}
    rows = rows_of(VALUES) + [{**row, "split": "0"} for row in rows_of(shifted)]
    rows += [{**row, "split": "1"} for row in rows_of(again)]
    found = ranking(rows, "f1", ["a", "b", "c"])
    raw = [gain(rows, "f1", "a", other).p for other in found.methods[1:]]
    low, high = sorted(raw)
    expected = {low: min(2 * low, 1.0), high: min(max(2 * low, high), 1.0)}
    assert found.against == [None, *(pytest.approx(expected[p]) for p in raw)]


def test_sets_are_compared_by_signed_ranks_with_holms_correction():
    names = [f"s{i}" for i in range(1, 7)]
    values = {"a": dict.fromkeys(names, 0.8)}
    values["b"] = {name: 0.7 - 0.01 * i for i, name in enumerate(names)}
    values["c"] = {name: 0.79 - 0.001 * i for i, name in enumerate(names)} | {"s6": 0.9}
    found = ranking(rows_of(values), "f1", list(values))
    assert found.methods == ["a", "c", "b"]
    # Of the 2^6 signs of six ranks one has all on one side; 14 have at most the sixth there.
    assert found.over_sets == [None, pytest.approx(2 * 14 / 64), pytest.approx(2 * 2 / 64)]


def test_splits_and_seeds_are_averaged():
    rows = rows_of({"a": {"s": 0.2}}) + rows_of({"a": {"s": 0.6}})
    assert means(rows, "f1") == {("s", "a"): pytest.approx(0.4)}


def test_methods_are_compared_on_splits_that_all_have():
    rows = rows_of({"a": {"s": 0.2}, "b": {"s": 0.3}})
    rows += [{**row, "split": "0"} for row in rows_of({"a": {"s": 1.0}})]
    assert means(rows, "f1") == {("s", "a"): 0.2, ("s", "b"): 0.3}
    assert means(rows, "f1", ["a"]) == {("s", "a"): pytest.approx(0.6)}
    rows += [{**row, "split": "1"} for row in rows_of({"c": {"s": 0.5}})]
    assert means(rows, "f1") == {("s", "a"): 0.2, ("s", "b"): 0.3}


def test_splits_that_most_have_count_and_who_lacks_them_is_not_ranked():
    names = ["a", "b", "c", "d", "e"]
    rows = rows_of({name: {"s": 0.1 * i, "t": 0.5} for i, name in enumerate(names)})
    more = rows_of({name: {"s": 0.9 - 0.1 * i} for i, name in enumerate(names[:4])})
    rows += [{**row, "split": "0"} for row in more]
    found = ranking(rows, "f1", names)
    assert sorted(found.methods) == names[:4]
    assert found.values[0] == pytest.approx(0.45)
    assert found.left_out == {"e": 1}


def test_who_is_not_ranked_is_named_and_what_the_sets_cannot_tell():
    found = ranking(rows_of(VALUES), "f1", list(VALUES))
    assert found.left_out == {"d": 1}
    assert found.against == [None, None, None]
    # Demsar's table has 2.343 for three methods.
    assert found.critical == pytest.approx(2.343 * np.sqrt(3 * 4 / (6 * 3)), abs=1e-3)
    said = page._table(found)
    assert "lack one of the 3 sets, or splits of it: d (1)." in said
    assert f"differ by {found.critical:.1f} (Nemenyi)" in said


def test_chance_is_that_of_a_t_test_when_splits_share_no_rows():
    gains = [0.1, 0.3, 0.2, -0.1]
    found = Gain({"s": gains}, {"s": 0.0})
    assert found.p == pytest.approx(ttest_1samp(gains, 0.0).pvalue)
    assert Gain({"s": gains}, {"s": 0.5}).p > found.p
    assert Gain({"s": gains[:1], "r": gains[1:2]}, {"s": 0.5, "r": 0.5}).p is None
    assert Gain({"s": [0.0, 0.0, 0.0]}, {"s": 0.5}).p == 1.0


def test_two_splits_that_agree_by_chance_make_nothing_certain():
    assert Gain({"s": [0.01, 0.01 + 1e-15]}, {"s": 0.5}).p is None


def test_chance_is_rarely_taken_for_a_difference_though_splits_share_rows():
    # Two rules that are right as often, on six sets of rows, each split four times at random.
    generator = np.random.default_rng(0)
    told = 0
    for _ in range(200):
        gains = {}
        for name in range(6):
            ahead = generator.normal(size=150)  # of the one over the other, in each row
            splits = (generator.permutation(150)[:50] for _ in range(4))
            gains[name] = [float(ahead[rows].mean()) for rows in splits]
        told += Gain(gains, dict.fromkeys(gains, 0.5)).p < 0.05
    assert told <= 20


def test_findings_compare_methods_that_there_are(monkeypatch):
    pytest.importorskip("torch")
    from benchmarks.evidence import methods, networks

    known = {name for kinds in (methods.KINDS, networks.KINDS) for one in kinds.values()
             for name in one}  # fmt: skip
    asked = []
    monkeypatch.setattr(findings, "gain", lambda rows, name, *both: asked.extend(both))
    findings.parts([{**row, "peak_mib": 1.0} for row in rows_of({"SetEnsemble": {"s": 0.5}})])
    assert len(set(asked)) > 40
    assert set(asked) <= known


def test_the_distribution_balanced_loss_is_that_of_its_definition():
    torch = pytest.importorskip("torch")
    from benchmarks.evidence.networks import balanced

    n, count = 50, np.array([2.0, 40.0, 10.0])
    y = np.array([[1, 0, 1], [0, 1, 0]])
    scores = np.array([[0.3, -0.2, 1.0], [-1.0, 0.5, 0.2]])
    total = 0.0
    for row, truth in zip(scores, y, strict=True):
        repeat = sum(1 / count[j] for j in range(3) if truth[j])
        for j in range(3):
            weight = 0.1 + 1 / (1 + np.exp(-10 * (1 / count[j] / repeat - 0.2)))
            # A rare label's score is lowered: it has to be learnt higher.
            score = row[j] - 0.05 / 5 * np.log(n / count[j] - 1)
            p = 1 / (1 + np.exp(-score if truth[j] else 5 * score))
            total += weight * (1 - p) ** 2 * -np.log(p) / (1 if truth[j] else 5)
    found = balanced(torch.from_numpy(count), n)(torch.from_numpy(scores), torch.from_numpy(y))
    assert float(found) == pytest.approx(total / 2, rel=1e-6)


def test_a_loss_that_fixes_no_level_is_cut_so_that_as_many_labels_are_predicted(problem):
    torch = pytest.importorskip("torch")
    from benchmarks.evidence.networks import Network, two_way

    X, Y = problem
    logits, y = torch.from_numpy(X), torch.from_numpy(Y)
    assert float(two_way(logits, y)) == pytest.approx(float(two_way(logits + 3.0, y)))
    sets = Network("two-way", "f1", 3, 0).fit(X, Y).predict(X)
    assert sets.mean() == pytest.approx(Y.mean(), abs=0.02)


def test_what_draws_from_the_generators_of_all_draws_the_same_again(folder, tmp_path, monkeypatch):
    class Drawn(Cut):
        def predict(self, X):
            return np.array([[random.getrandbits(1) for _ in range(4)] for _ in X])

    monkeypatch.setattr(unit, "recipe", lambda kind, method: Recipe(lambda asked: Drawn(0.5)))
    found = []
    for name in ("one", "two"):
        unit.run(folder / "toy", None, "peer", "drawn", 3, tmp_path / name)
        found.append(np.load(tmp_path / f"{name}.npz")["0 indices"])
    assert np.array_equal(*found)


def test_a_difference_is_of_rows_that_both_methods_have():
    rows = rows_of({"a": {"s1": 0.5, "s2": 0.9, "s3": 0.4}, "b": {"s1": 0.3, "s2": 1.0}})
    found = gain(rows, "f1", "a", "b")
    assert found.by_set == {"s1": [pytest.approx(0.2)], "s2": [pytest.approx(-0.1)]}
    assert str(found) == "+0.050 (1/1)"
    assert gain(rows, "f1", "a", "c") is None


def test_a_sentence_says_how_many_have_more_and_by_how_much():
    gains = {"x": {"f1": Gain({"s": [0.1]}, {})}, "y": {"f1": Gain({"s": [-0.2]}, {})}}
    assert findings.told(gains) == "- F1: 1 of 2 have more, 1 less; -0.200 (y) to +0.100 (x)."
    del gains["y"]
    assert findings.told(gains) == "- F1: 1 of 1 have more, 0 less; +0.100 (x)."


def test_costs_are_told_without_memory_where_it_was_not_measured():
    rows = rows_of({"one-vs-rest": {"s1": 0.5}, "a": {"s1": 0.5}})
    rows = [{**row, "peak_mib": None if row["method"] == "a" else 90.4} for row in rows]
    assert list(findings.costs(rows))[2:] == [
        "| one-vs-rest | 1.00 | 1.00 to 1.00 | 90 |", "| a | 1.00 | 1.00 to 1.00 | – |",
    ]  # fmt: skip


def test_we_are_behind_where_another_has_more_than_the_mixture():
    values = {
        "SetEnsemble": {"s1": 0.5, "s2": 0.9, "s3": 0.1},
        "a": {"s1": 0.55, "s2": 0.2, "s3": 0.0},
        "b": {"s1": 0.6, "s2": 0.8, "s3": 0.2},
        "c": {"s1": 0.52, "s2": 0.8, "s3": 0.0},
    }
    rows = rows_of(values)
    for row in rows:
        row["kind"] = "ours" if row["method"] in ("SetEnsemble", "a") else "peer"
    rows += [{**row, "split": "0"} for row in rows if row["set"] == "s3"]
    assert list(findings.behind(rows)) == [
        "- F1 on s1: b 0.600, c 0.520; SetEnsemble 0.500. That is within the interval of its 50 "
        "test rows, 0.400 to 0.600.",
        "- F1 on s3: b 0.200; SetEnsemble 0.100. That is within the interval of its 50 test rows, "
        "0.000 to 0.200; on 1 other splits it has -0.100.",
    ]


def test_ranks_by_kind_of_features():
    rows = [{**row, "is_sparse": row["set"] == "s3"} for row in rows_of(VALUES)]
    found = by_kind(rows, ["f1"], ["a", "b", "c"])
    assert found["sparse"] == {"a": 1.0, "b": 2.0, "c": 3.0}
    assert found["dense"] == {"a": 1.75, "b": 2.25, "c": 2.0}


@pytest.fixture
def folder(tmp_path, problem):
    X, Y = problem
    place = tmp_path / "data" / "toy"
    place.mkdir(parents=True)
    np.save(place / "X.npy", X)
    sparse.save_npz(place / "Y.npz", sparse.csr_array(Y.astype(np.uint8)))
    split = {"train": {"range": [0, 40]}, "test": {"range": [40, 60]}}
    (place / "meta.json").write_text(json.dumps({"split": split}))
    return tmp_path / "data"


def test_a_random_split_has_the_rows_of_the_official_one_in_another_order(folder):
    official, other = load(folder / "toy"), load(folder / "toy", 1)
    assert [len(part) for part in official] == [len(part) for part in other] == [40, 40, 20, 20]
    both = [np.concatenate([one[0], one[2]]) for one in (official, other)]
    assert not np.array_equal(*both)
    assert np.array_equal(*(np.sort(one, axis=0) for one in both))
    assert all(np.array_equal(a, b) for a, b in zip(other, load(folder / "toy", 1), strict=True))


def in_this_process(command, **_):
    """What a process of its own does for a unit."""
    place, _, kind, method, seed, out = command[3:]
    unit.run(Path(place), None, kind, method, int(seed), Path(out))


def test_what_has_rows_is_not_run_again_and_a_failure_says_why(folder, tmp_path, monkeypatch):
    path = tmp_path / "rows.jsonl"
    units = [
        work.Unit("toy", "official", "peer", "one-vs-rest?", 0),
        work.Unit("toy", "official", "scikit-learn", "random forest", 0),
    ]
    work.run(units, folder, {}, 120.0, 1, path)
    rows = work.stored(path)
    assert "KeyError" in rows[0]["failed"]
    assert [row["target"] for row in rows[1:]] == list(MEASURES)
    low, high = rows[1]["f1 interval"]
    assert low <= rows[1]["f1"] <= high
    assert {row["f1"] for row in rows[1:]} == {rows[1]["f1"]}
    before = path.read_text()
    work.run(units, folder, {}, 120.0, 1, path)
    assert path.read_text() == before
    work.keep(units[0], [{**units[0]._asdict(), "failed": "again"}], path)
    with monkeypatch.context() as patch:
        patch.setattr(work.subprocess, "run", in_this_process)
        work.run(units[1:], folder, {}, 120.0, 1, path, again=True)
    again = work.stored(path)
    assert (len(again), again[0]["failed"]) == (len(rows), "again")
    assert work.changed(rows[1:], again[1:]) == []
    again[1]["f1"] += 0.1
    (told,) = work.changed(rows[1:], again[1:])
    assert told.startswith("f1, f1: ")


def test_every_figure_of_a_ranking_is_a_mean_of_stored_rows():
    """Found in the page by its headings, and computed here without the page's code."""
    rows = [row for row in work.stored() if "failed" not in row]
    measure, sets, ranked, checked = None, [], {}, 0
    for line in page.PAGE.read_text().splitlines():
        if line.startswith("#"):
            measure, ranked = line.strip("# ").split(",")[0], {}
        cells = [cell.strip(" *") for cell in line.strip("|").split("|")]
        if cells[0] == "method":
            sets = cells[1:-3]
        elif measure in MEASURES and line.startswith("| "):
            ranked[cells[0]] = cells[1 : 1 + len(sets)]
        elif measure in MEASURES and ranked and not line:
            for place, name in enumerate(sets):
                own = {method: {} for method in ranked}
                for row in rows:
                    if (row["set"], row["target"]) == (name, measure) and row["method"] in own:
                        own[row["method"]][row["split"], row["seed"]] = row[measure]
                shared = set.intersection(*(set(by) for by in own.values()))
                for method, shown in ranked.items():
                    value = np.mean([own[method][unit] for unit in sorted(shared)])
                    assert abs(float(shown[place]) - value) <= 5.1e-4, (measure, method, name)
                    checked += 1
            ranked = {}
    assert checked > 500


def test_the_pages_are_those_of_the_stored_rows(tmp_path, monkeypatch):
    monkeypatch.setattr(page, "PICTURES", tmp_path)
    save, kinds = Figure.savefig, set()

    def saved(figure, file, **options):
        """One picture of each kind: all of them take longer than the pages."""
        kind = file.stem.split("_")[1]
        if kind not in kinds:
            save(figure, file, **options)
        kinds.add(kind)

    monkeypatch.setattr(Figure, "savefig", saved)
    for module, name in ((page, "evidence.md"), (findings, "findings.md")):
        module.write(tmp_path / name)
        assert (tmp_path / name).read_text() == module.PAGE.read_text()
