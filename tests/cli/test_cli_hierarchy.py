"""Hierarchies on the command line: from a file or from path names, closed on request."""

import csv
import json

import numpy as np
import pytest

from setwise import Taxonomy
from setwise.evaluation import evaluate
from setwise.persistence import load
from setwise.study import Scale
from setwise.study import load as load_study
from setwise.targets import TreeDistance
from tests.support.command import QUICK, found, run

LEAVES = ["Home/Garden/Hoses", "Home/Garden/Seeds", "Home/Lamps", "Toys/Games/Cards", "Toys/Dolls"]
ORDER = [
    "Home", "Home/Garden", "Home/Garden/Hoses", "Home/Garden/Seeds", "Home/Lamps", "Toys",
    "Toys/Dolls", "Toys/Games", "Toys/Games/Cards",
]  # fmt: skip
LISTED = ("--label-column", "cats", "--separator", ";")
PATHS = (*LISTED, "--path-separator", "/", "--close")
TAXONOMY = """parent,child,length
,Home,2
Home,Home/Garden,1
Home/Garden,Home/Garden/Hoses,0.5
Home/Garden,Home/Garden/Seeds,0.5
Home,Home/Lamps,1
,Toys,2
Toys,Toys/Games,1
Toys/Games,Toys/Games/Cards,0.5
Toys,Toys/Dolls,1
Toys,Toys/Trains,1
"""


def write_shop(path, n_rows=60, seed=0, close=False):
    """Rows of four features and one or two leaves, or with close these and all above them."""
    generator = np.random.default_rng(seed)
    centres = 2 * np.random.default_rng(1).normal(size=(len(LEAVES), 4))
    lines = ["a,b,c,d,cats"]
    for _ in range(n_rows):
        first, other = generator.integers(len(LEAVES), size=2)
        x = centres[first] + generator.normal(size=4)
        cats = {LEAVES[first], *([LEAVES[other]] if generator.random() < 0.3 else [])}
        if close:
            cats |= {"/".join(cat.split("/")[:n]) for cat in cats for n in (1, 2)}
        lines.append(",".join([*map(str, x.round(3)), ";".join(sorted(cats))]))
    path.write_text("\n".join(lines) + "\n")
    return path


def listed(path):
    """The labels in each row of a table."""
    with open(path, newline="") as file:
        return [set(filter(None, row["cats"].split(";"))) for row in csv.DictReader(file)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("hierarchy")
    write_shop(place / "shop.csv")
    write_shop(place / "closed.csv", close=True)
    write_shop(place / "new.csv", 30, seed=5)
    (place / "tax.csv").write_text(TAXONOMY)
    return place


@pytest.fixture
def here(folder, monkeypatch):
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def model(here, capfd):
    """A model for tree distance in the hierarchy of path names."""
    words = ("fit", "shop.csv", *PATHS, *QUICK, "--target", "tree", "-o", "model.skops")
    assert run(capfd, *words)[0] == 0
    return here / "model.skops"


def test_path_names_bring_what_stands_above_them_as_labels(model):
    fitted = load(model)
    assert fitted.label_names == ORDER
    assert fitted.target.taxonomy.names.tolist() == ORDER
    assert fitted.target.parents.tolist() == [-1, 0, 1, 1, 0, -1, 5, 5, 7]


def test_predictions_have_all_above_their_labels(model, capfd):
    assert run(capfd, "predict", model, "new.csv", "-o", "own.csv")[0] == 0
    for cats in listed("own.csv"):
        assert {cat.rpartition("/")[0] for cat in cats} - {""} <= cats


def test_a_taxonomy_file_has_lengths_and_labels_that_never_occur(here, capfd):
    words = ("fit", "shop.csv", *LISTED, "--taxonomy", "tax.csv", "--close", *QUICK)
    told = found(capfd, *words, "--target", "tree", "--test-share", 0.3, "-o", "long.skops")
    expected = Taxonomy.read("tax.csv")
    fitted = load("long.skops")
    assert fitted.label_names == expected.names.tolist()
    assert "Toys/Trains" in fitted.label_names
    assert fitted.target.lengths.tolist() == expected.lengths.tolist()
    assert told["unit"] == "units of length"
    assert told["test"]["distance"] == pytest.approx(10.5 * told["test"]["loss"])


def test_a_label_of_the_taxonomy_may_come_with_the_test_file(here, capfd):
    (here / "trains.csv").write_text("a,b,c,d,cats\n1,2,3,4,Toys/Trains\n1,2,3,4,Toys/Dolls\n")
    words = ("fit", "shop.csv", *LISTED, "--taxonomy", "tax.csv", "--close", *QUICK)
    told = found(capfd, *words, "--target", "tree", "--test", "trains.csv", "-o", "test.skops")
    assert told["test"]["rows"] == 2
    figures = found(capfd, "evaluate", "test.skops", "trains.csv", "--resamples", 0)["figures"]
    assert figures["true size"]["value"] == 2.0


def test_closed_files_need_no_closing_and_open_ones_are_refused(here, capfd):
    for options in (("--path-separator", "/"), ("--taxonomy", "tax.csv")):
        words = (*LISTED, *options, *QUICK, "--target", "tree", "-o", "closed.skops")
        assert run(capfd, "fit", "closed.csv", *words)[0] == 0
        status, _, err = run(capfd, "fit", "shop.csv", *words)
        assert status == 2
        assert "without" in err
        assert err.startswith("setwise: without --close: label sets must be closed")
        assert run(capfd, "evaluate", "closed.skops", "new.csv", "--close")[0] == 0
        assert "--close" in run(capfd, "evaluate", "closed.skops", "new.csv")[2]


def test_what_fit_says_is_in_edges_too(here, capfd):
    words = ("fit", "shop.csv", *PATHS, *QUICK, "--target", "tree", "--test-share", 0.3)
    _, out, _ = run(capfd, *words, "-o", "said.skops")
    told = load("said.skops").about
    assert told["unit"] == "edges"
    assert f"mean tree distance {9 * told['test']['loss']:.4g} edges" in out


def test_evaluate_has_the_figures_of_the_hierarchy(model, capfd):
    told = found(capfd, "evaluate", model, "new.csv", "--targets", "tree,f1", "--resamples", 0)
    fitted = load(model)
    data = fitted.schema.read("new.csv")
    expected = evaluate(fitted.model.predict(data.X), data.Y, taxonomy=data.taxonomy, n_bootstrap=0)
    group = {name: figure.value for name, figure in expected.items() if figure.group == "hierarchy"}
    assert {"hierarchical f1", "f1 on level 2", "closed predictions", "tree distance"} <= set(group)
    for name, value in group.items():
        assert told["figures"][name]["value"] == value
    assert told["tree_distance_unit"] == "edges"
    losses = [name for name in told["figures"] if name.startswith("loss: ")]
    assert losses == ["loss: TreeDistance over 9 labels", "loss: f1"]
    distance = told["figures"]["tree distance"]["value"]
    assert told["figures"][losses[0]]["value"] == pytest.approx(distance / 9)
    assert told["distances"] == {losses[0]: pytest.approx(distance)}
    _, out, _ = run(capfd, "evaluate", model, "new.csv", "--resamples", 0)
    assert "differ, in edges" in out
    assert f"{losses[0]} is {distance:.4g} edges a row" in out


def test_a_model_without_a_hierarchy_is_judged_in_one(here, capfd):
    words = ("fit", "shop.csv", *LISTED, *QUICK, "-o", "flat.skops")
    assert run(capfd, *words)[0] == 0
    words = ("evaluate", "flat.skops", "new.csv", "--resamples", 0)
    assert "tree distance" not in found(capfd, *words)["figures"]
    told = found(capfd, *words, "--taxonomy", "tax.csv", "--close", "--targets", "tree")
    assert told["n_labels"] == 10
    fitted = load("flat.skops")
    taxonomy = Taxonomy.read("tax.csv")
    data = fitted.schema.read("new.csv").under(taxonomy, close=True)
    place = [taxonomy.names.tolist().index(name) for name in fitted.label_names]
    y_pred, probability = np.zeros(data.Y.shape, int), np.zeros(data.Y.shape)
    y_pred[:, place] = fitted.model.predict(data.X)
    probability[:, place] = fitted.probability(data.X)
    below = taxonomy.ancestors.toarray().T
    target = TreeDistance(taxonomy)
    expected = evaluate(
        taxonomy.close(y_pred),
        data.Y,
        probability=np.stack([(below * row).max(axis=1) for row in probability]),
        taxonomy=taxonomy,
        targets=["f1", target],
        n_bootstrap=0,
    )
    assert {name: figure["value"] for name, figure in told["figures"].items()} == pytest.approx(
        {name: figure.value for name, figure in expected.items()}
    )
    n_open = int((~taxonomy.is_closed(y_pred)).sum())
    assert told["completed_predictions"] == n_open > 0
    distance = told["figures"]["tree distance"]["value"]
    assert told["distances"] == {f"loss: {target}": pytest.approx(distance)}
    assert told["tree_distance_unit"] == "units of length"
    _, out, _ = run(capfd, *words, "--taxonomy", "tax.csv", "--close", "--targets", "tree")
    assert f"--close: {n_open} of 30 predictions lacked labels above theirs" in out
    assert "as probable as the most probable of these" in out
    assert f"is {distance:.4g} units of length a row, of the sets as completed by --close" in out


def test_open_predictions_have_two_distances_with_two_names(here, capfd):
    assert run(capfd, "fit", "shop.csv", *LISTED, *QUICK, "-o", "flat.skops")[0] == 0
    assert run(capfd, "predict", "flat.skops", "closed.csv", "-o", "open.csv")[0] == 0
    words = ("evaluate", "--predictions", "open.csv", "--truth", "closed.csv", "--resamples", 0)
    words = (*words, *LISTED, "--taxonomy", "tax.csv", "--targets", "tree")
    told = found(capfd, *words)
    (raw,) = told["distances"].values()
    assert raw > told["figures"]["tree distance"]["value"]
    assert "completed_predictions" not in told
    _, out, _ = run(capfd, *words)
    assert "tree distance: of the sets with all above their labels, the length" in out
    assert (
        f"is {raw:.4g} units of length a row, of the sets as predicted; a loss of 1 is 10.5" in out
    )


def test_predictions_in_a_file_are_closed_as_the_truth_is(here, capfd):
    assert run(capfd, "fit", "shop.csv", *LISTED, *QUICK, "-o", "flat.skops")[0] == 0
    assert run(capfd, "predict", "flat.skops", "new.csv", "-o", "open.csv")[0] == 0
    of_model = ("evaluate", "flat.skops", "new.csv", *PATHS[-3:], "--resamples", 0)
    expected = found(capfd, *of_model)
    words = ("evaluate", "--predictions", "open.csv", "--truth", "new.csv", "--resamples", 0)
    told = found(capfd, *words, *PATHS)
    assert told["completed_predictions"] == expected["completed_predictions"] > 0
    for name in ("instance f1", "micro f1", "predicted size", "tree distance"):
        assert told["figures"][name]["value"] == pytest.approx(expected["figures"][name]["value"])
    assert told["figures"]["closed predictions"]["value"] == 1.0


def test_a_loss_of_sets_of_one_size_is_left_out_where_they_are_closed(here, capfd):
    words = ("fit", "shop.csv", *LISTED, *QUICK, "--target", "precision@1", "-o", "first.skops")
    assert run(capfd, *words)[0] == 0
    words = ("evaluate", "first.skops", "new.csv", *PATHS[-3:], "--resamples", 0)
    status, out, err = run(capfd, *words)
    assert status == 0
    assert "loss: precision@1" not in out
    assert err == "the loss of precision@1, of sets of 1, is left out: --close adds labels\n"


def test_several_parents_are_judged_by_the_spanning_tree_and_its_lengths(here, capfd):
    edges = "parent,child,length\n,a,1\n,b,1\na,c,1\nb,c,5\n"
    (here / "dag.csv").write_text(edges)
    (here / "truth.csv").write_text("cats\na;b;c\na\n")
    (here / "guess.csv").write_text("cats\na\nb\n")
    words = ("evaluate", "--predictions", "guess.csv", "--truth", "truth.csv", *LISTED)
    words = (*words, "--taxonomy", "dag.csv", "--resamples", 0)
    told = found(capfd, *words)
    # (The edge of length 5 is left out.)
    assert told["tree_distance_unit"] == "edges"
    assert told["figures"]["tree distance"]["value"] == 2.0
    _, out, _ = run(capfd, *words)
    assert "in edges; by the spanning tree: each label keeps its deepest parent" in out


def test_what_cannot_be_trained_is_said_of_its_options(here, capfd):
    words = ("fit", "shop.csv", *PATHS, *QUICK, "--target", "f1", "--space", "closed")
    status, _, err = run(capfd, *words, "-o", "never.skops")
    assert status == 2
    assert err.startswith("setwise: --target f1 --space closed --alpha 0.01: ")
    assert "is made from the taxonomy of" in err


def test_a_model_keeps_the_hierarchy_it_has(model, capfd):
    status, _, err = run(capfd, "evaluate", model, "new.csv", "--taxonomy", "tax.csv")
    assert status == 2
    assert "model.skops knows the hierarchy of its labels" in err


def test_predictions_in_a_file_are_judged_in_the_hierarchy(model, capfd):
    assert run(capfd, "predict", model, "new.csv", "-o", "own.csv")[0] == 0
    words = ("evaluate", "--predictions", "own.csv", "--truth", "new.csv", "--resamples", 0)
    told = found(capfd, *words, *PATHS, "--targets", "tree")["figures"]
    expected = found(capfd, "evaluate", model, "new.csv", "--resamples", 0)["figures"]
    for name in ("hierarchical f1", "f1 on level 1", "tree distance", "instance f1"):
        assert told[name]["value"] == pytest.approx(expected[name]["value"])
    assert "without --close: " in run(capfd, *words, *PATHS[:-1])[2]


@pytest.mark.parametrize("named", [True, False])
def test_decode_finds_the_set_of_least_expected_distance(here, named, capfd):
    generator = np.random.default_rng(0)
    taxonomy = Taxonomy.read("tax.csv")
    probability = generator.random((20, 10)).round(3)
    order = generator.permutation(10) if named else np.arange(10)
    if named:
        lines = [taxonomy.names[order], *probability[:, order]]
        with open("p.csv", "w") as file:
            csv.writer(file).writerows(lines)
    else:
        np.save("p.npy", probability)
    file = "p.csv" if named else "p.npy"
    words = ("decode", file, "--target", "tree", "--taxonomy", "tax.csv", "--json")
    status, out, err = run(capfd, *words)
    assert status == 0, err
    from setwise.decoders import MinimumRisk

    sets = MinimumRisk(TreeDistance(taxonomy)).decode(probability)
    for line, row in zip(out.splitlines(), sets, strict=True):
        assert set(json.loads(line)["labels"]) == set(taxonomy.names[row == 1])


def test_decode_takes_the_hierarchy_of_path_names(model, capfd):
    words = ("predict", model, "new.csv", "--format", "probabilities", "-o", "probable.csv")
    assert run(capfd, *words)[0] == 0
    words = ("decode", "probable.csv", "--target", "tree", "--path-separator", "/", "--json")
    status, out, _ = run(capfd, *words)
    assert status == 0
    for line in out.splitlines():
        cats = set(json.loads(line)["labels"])
        assert {cat.rpartition("/")[0] for cat in cats} - {""} <= cats


def test_compare_shows_the_hierarchy_and_edges(here, capfd):
    words = ("compare", "shop.csv", *PATHS, "--methods", "catalog,one_vs_rest", "--folds", 2)
    told = found(capfd, *words, "--targets", "tree,f1", "-o", "study")
    results = load_study("study")
    assert results.label_names == tuple(ORDER)
    assert results.taxonomy.names.tolist() == ORDER
    assert results.scales == {"tree": Scale(9.0, "edges")}
    of_tree = [line for line in told["leaderboard"]["standings"] if line["target"] == "tree"]
    for line in of_tree:
        assert line["distance"] == pytest.approx(9 * line["value"])
    assert [(line["method"], line["target"]) for line in told["hierarchy"]] == [
        (outcome.method, outcome.target) for outcome in results.outcomes
    ]
    status, out, _ = run(capfd, *words, "--targets", "tree,f1", "-o", "study")
    assert status == 0
    assert f"{of_tree[0]['distance']:.4g} edges" in out
    assert "f1 level 2" in out
    assert "tree distance, as predicted" in out
    assert "tree distance, with all above" in out
    page = (here / "study" / "report.html").read_text()
    assert "the length of the edges on which prediction and truth differ" in page


@pytest.mark.parametrize("command", ["fit", "compare", "evaluate", "decode"])
def test_help_names_the_options_and_the_target(command, capfd):
    _, out, _ = run(capfd, command, "--help")
    for word in ("--taxonomy", "--path-separator", "tree"):
        assert word in out
    if command in ("fit", "compare"):
        examples = out.split("Examples:")[1].split("Exit status")[0]
        assert "--path-separator / --close" in examples
