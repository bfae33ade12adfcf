"""From a file to a model, predictions and figures, by the command."""

import csv
import io
import json

import numpy as np
import pytest
from scipy.sparse import csr_array, save_npz

from setwise import SetClassifier, load
from setwise.cli.fit import Fitted
from setwise.datasets import read
from setwise.decoders import MinimumRisk
from setwise.evaluation import evaluate
from tests.support.command import LABELS, LISTED, QUICK, found, rows, run, write_listed

READ = {"label_column": "tags", "separator": ";"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A file with missing features, another, and a model of the first."""
    from setwise.cli import main

    place = tmp_path_factory.mktemp("files")
    write_listed(place / "books.csv", *rows(missing=0.05))
    write_listed(place / "new.csv", *rows(60, seed=1))
    words = ("fit", place / "books.csv", *LISTED, *QUICK, "-o", place / "model.skops")
    assert main([str(word) for word in words]) == 0
    return place


def lists(text, separator=";"):
    """The label lists of a table that the command wrote."""
    header, *lines = csv.reader(io.StringIO(text))
    assert len(header) == 1
    return [line[0].split(separator) if line[0] else [] for line in lines]


def test_predicting_the_training_file_is_model_predict(folder, capfd):
    fitted = load(folder / "model.skops")
    data = read(folder / "books.csv", **READ)
    assert data.has_missing
    expected = fitted.model.predict(data.X)
    status, out, _ = run(capfd, "predict", folder / "model.skops", folder / "books.csv")
    assert status == 0
    assert lists(out) == [LABELS[row == 1].tolist() for row in expected]


def test_the_model_is_that_of_python_on_features_without_gaps(folder, tmp_path, capfd):
    words = ("fit", folder / "new.csv", *LISTED, *QUICK, "-o", tmp_path / "m.skops")
    assert run(capfd, *words)[0] == 0
    data = read(folder / "new.csv", **READ)
    model = SetClassifier("f1", alpha=0.01, scaling="standard", random_state=0)
    model.fit(data.X, data.Y)
    np.testing.assert_allclose(
        load(tmp_path / "m.skops").model.predict_proba(data.X), model.predict_proba(data.X)
    )


def test_missing_features_are_the_mean_of_the_training_rows(folder, tmp_path, capfd):
    data = read(folder / "books.csv", **READ)
    means = np.nanmean(data.X, axis=0)
    fitted = load(folder / "model.skops")
    gaps = np.full((1, 4), np.nan)
    np.testing.assert_allclose(
        fitted.model.predict_proba(gaps), fitted.model.predict_proba(means[None])
    )
    # So also where the training file had none missing.
    words = ("fit", folder / "new.csv", *LISTED, *QUICK, "-o", tmp_path / "m.skops")
    told = found(capfd, *words)
    assert told["missing_features"] == 0
    (tmp_path / "gaps.csv").write_text("a,b,c,d\n,?,NA,0.5\n")
    status, out, _ = run(capfd, "predict", tmp_path / "m.skops", tmp_path / "gaps.csv")
    assert (status, len(lists(out))) == (0, 1)


@pytest.mark.parametrize("format", ["labels", "columns", "json", "probabilities"])
def test_every_format_says_the_same(format, folder, capfd):
    fitted = load(folder / "model.skops")
    X = read(folder / "new.csv", **READ).X
    words = ("predict", folder / "model.skops", folder / "new.csv", "--format", format)
    status, out, _ = run(capfd, *words)
    assert status == 0
    y_pred = fitted.model.predict(X)
    if format == "labels":
        assert lists(out) == [LABELS[row == 1].tolist() for row in y_pred]
    elif format == "json":
        told = [json.loads(line)["labels"] for line in out.splitlines()]
        assert told == [LABELS[row == 1].tolist() for row in y_pred]
    else:
        header, *lines = csv.reader(io.StringIO(out))
        assert header == LABELS.tolist()
        expected = y_pred if format == "columns" else fitted.model.predict_proba(X)
        np.testing.assert_array_equal(np.array(lines, float), expected)


@pytest.mark.parametrize("n_rows", [1, 3, 1000])
def test_no_row_is_lost_however_the_file_is_parted(n_rows, folder, capfd, monkeypatch):
    whole = run(capfd, "predict", folder / "model.skops", folder / "new.csv")
    monkeypatch.setattr(Fitted, "rows_at_once", n_rows)
    assert run(capfd, "predict", folder / "model.skops", folder / "new.csv") == whole


def test_the_standard_input_is_read_as_the_file(folder, capfd):
    from_file = run(capfd, "predict", folder / "model.skops", folder / "new.csv")
    text = (folder / "new.csv").read_bytes()
    assert run(capfd, "predict", folder / "model.skops", "-", stdin=text) == from_file


def test_a_file_without_rows_gives_none(folder, tmp_path, capfd):
    (tmp_path / "none.csv").write_text("a,b,c,d\n")
    status, out, _ = run(capfd, "predict", folder / "model.skops", tmp_path / "none.csv")
    assert (status, out) == (0, "tags\n")


def test_predictions_are_read_by_the_options_of_the_training_file(folder, tmp_path, capfd):
    out = tmp_path / "predictions.csv"
    run(capfd, "predict", folder / "model.skops", folder / "new.csv", "-o", out)
    words = ("evaluate", "--predictions", out, "--truth", folder / "new.csv", *LISTED)
    by_files = found(capfd, *words)["figures"]
    by_model = found(capfd, "evaluate", folder / "model.skops", folder / "new.csv")["figures"]
    assert by_files.items() <= by_model.items()
    data = read(folder / "new.csv", **READ)
    y_pred = load(folder / "model.skops").model.predict(data.X)
    expected = evaluate(y_pred, data.Y)
    assert by_files["instance f1"]["value"] == expected["instance f1"].value
    assert by_files["instance f1"]["low"] == expected["instance f1"].low
    for nothing in (0.0, 1.0, float("nan")):
        figures = found(capfd, *words, "--zero-division", nothing)["figures"]
        expected = evaluate(y_pred, data.Y, zero_division=nothing).to_dict()["figures"]
        assert figures == expected
    right = evaluate(y_pred, data.Y, zero_division=1.0)["instance f1"].value
    assert by_model["loss: f1"]["value"] == pytest.approx(1 - right)
    status, _, complaint = run(capfd, *words, "--zero-division", 0.5)
    assert status == 2
    assert "zero_division must be 0.0, 1.0 or nan" in complaint.replace(
        "--zero-division", "zero_division"
    )


def test_columns_and_probabilities_are_evaluated_too(folder, tmp_path, capfd):
    model, new = folder / "model.skops", folder / "new.csv"
    out = {kind: tmp_path / f"{kind}.csv" for kind in ("columns", "probabilities")}
    for kind, path in out.items():
        run(capfd, "predict", model, new, "--format", kind, "-o", path)
    data = read(new, **READ)
    truth = tmp_path / "truth.csv"
    np.savetxt(
        truth, data.Y.toarray(), fmt="%d", delimiter=",", header=",".join(LABELS), comments=""
    )
    words = ("evaluate", "--predictions", out["columns"], "--truth", truth)
    words += ("--probabilities", out["probabilities"], "--labels", "art,law,war")
    by_files = found(capfd, *words)["figures"]
    by_model = found(capfd, "evaluate", model, new)["figures"]
    assert by_files["brier score"] == by_model["brier score"]
    assert by_files.keys() == by_model.keys() - {"loss: f1"}


def test_a_test_file_is_held_out(folder, tmp_path, capfd):
    out = tmp_path / "m.skops"
    words = ("fit", folder / "books.csv", *LISTED, *QUICK, "--test", folder / "new.csv", "-o", out)
    told = found(capfd, *words)
    assert (told["rows"], told["test"]["rows"]) == (80, 60)
    judged = found(capfd, "evaluate", out, folder / "new.csv")["figures"]["loss: f1"]
    assert told["test"]["loss"] == judged["value"]
    again = load(folder / "model.skops").model.predict_proba(np.zeros((1, 4)))
    np.testing.assert_array_equal(load(out).model.predict_proba(np.zeros((1, 4))), again)


def test_fit_says_what_was_chosen_and_what_is_guaranteed(folder, tmp_path, capfd):
    words = ("fit", folder / "books.csv", *LISTED, "--test-share", 0.25, "--folds", 2)
    words += ("--alpha", "0.1,0.01", "--space", "catalog", "--target", "jaccard")
    status, out, err = run(capfd, *words, "-o", tmp_path / "m.skops")
    assert (status, err) == (0, "")
    fitted = load(tmp_path / "m.skops")
    assert "trained for jaccard on 60 rows: likelihood on Catalog" in out
    test = fitted.about["test"]
    assert f"on 20 test rows: Jaccard {1 - test['loss']:.4f}, 95 % confidence" in out
    assert f"interval {1 - test['high']:.4f} to {1 - test['low']:.4f}" in out
    assert "guarantee: Predictions are best for " in out
    assert "(--precise prints the full statement)" in out
    assert "nats" not in out
    _, out, _ = run(capfd, *words, "--precise", "-o", tmp_path / "m.skops")
    assert f"guarantee: {fitted.guarantee}" in out
    assert "column's mean over the training rows" in out
    assert fitted.about["cross_validated_loss"] == fitted.model.steps[-1][1].best_loss_


def test_a_single_label_is_a_label(tmp_path, capfd):
    """Not two classes: in a column of its own, written as words, and through every command."""
    X, Y = rows()
    lines = ["a,b,c,d,is_law", *(",".join([*map(str, x), "yes" if y[1] else "no"])
                                 for x, y in zip(X, Y, strict=True))]  # fmt: skip
    (tmp_path / "one.csv").write_text("\n".join(lines))
    one, model = tmp_path / "one.csv", tmp_path / "one.skops"
    words = ("fit", one, "--labels", "is_law", *QUICK, "--test-share", "0.3", "-o", model)
    status, out, err = run(capfd, *words)
    assert (status, err) == (0, "")
    assert "trained for f1" in out
    fitted, data = load(model), read(one, labels=["is_law"])
    expected = SetClassifier("f1", alpha=0.01, scaling="standard", random_state=0)
    train = data.split_off(0).train()
    expected.fit(train.X, csr_array(train.Y))
    probability = expected.predict_proba(data.X)
    assert probability.shape == (80, 1)
    np.testing.assert_allclose(fitted.probability(data.X), probability)
    _, out, _ = run(capfd, "predict", model, one, "--format", "probabilities")
    written = [float(line) for line in out.splitlines()[1:]]
    np.testing.assert_allclose(written, probability[:, 0])
    _, out, _ = run(capfd, "predict", model, one)
    assert lists(out) == [["is_law"] if p >= 0.5 else [] for p in written]
    assert found(capfd, "evaluate", model, one)


def test_labels_in_columns_text_and_categories(tmp_path, capfd):
    X, Y = rows(40)
    lines = ["title,cover,x,is_art,is_law,id"]
    for i, (x, y) in enumerate(zip(X, Y, strict=True)):
        words = " ".join(np.array(["painter", "judge"])[y[:2]]) or "nothing"
        lines.append(
            f"{words},{'soft' if x[0] > 0 else 'hard'},{x[1]},{int(y[0])},{int(y[1])},r{i}"
        )
    (tmp_path / "b.csv").write_text("\n".join(lines))
    words = ("fit", tmp_path / "b.csv", "--label-prefix", "is_", "--text-columns", "title")
    words += ("--categorical", "cover", "--drop", "id", *QUICK, "-o", tmp_path / "m.skops")
    assert run(capfd, *words)[0] == 0
    (tmp_path / "new.csv").write_text('cover,title,x\nsoft,"the judge, the painter",0\nhard,,1\n')
    words = ("predict", tmp_path / "m.skops", tmp_path / "new.csv", "--json")
    status, out, _ = run(capfd, *words)
    first = json.loads(out.splitlines()[0])
    assert (status, first) == (0, {"labels": ["is_art", "is_law"]})


def test_info_counts(folder, capfd):
    told = found(capfd, "datasets", "info", folder / "books.csv", *LISTED)
    data = read(folder / "books.csv", **READ)
    assert (told["rows"], told["features"], told["labels"]) == (80, 4, 3)
    assert told["missing_values"] is True
    counts = np.asarray(data.Y.sum(axis=0)).ravel()
    assert told["most_frequent_labels"] == dict(zip(LABELS.tolist(), counts.tolist(), strict=True))
    assert run(capfd, "datasets", "info", folder / "books.csv", *LISTED)[1].startswith(str(data))


@pytest.mark.parametrize("command", [("datasets", "info"), ("fit",)])
@pytest.mark.parametrize("text", [(), ("--text-columns", "words")])
def test_features_that_number_the_rows_are_named(command, text, tmp_path, capfd):
    lines = ["id,left,year,half,lost,words,tags"]
    for row in range(12):
        lost = "" if row == 5 else row
        cells = (row + 7, 100 - row, 2000 + row // 2, row / 2, lost, f"w{row}", "ab"[row % 2])
        lines.append(",".join(map(str, cells)))
    (file := tmp_path / "numbered.csv").write_text("\n".join(lines) + "\n")
    words = [*command, file, "--label-column", "tags", *text]
    words += [*QUICK, "-o", tmp_path / "m.skops"] if command == ("fit",) else []
    drop = () if text else ("words",)
    status, _, err = run(capfd, *words, *(("--drop", "words") if drop else ()))
    (said,) = [line for line in err.splitlines() if "row numbers" in line]
    assert status == 0
    assert "columns 'id', 'left': " in said
    assert said.endswith("--drop id,left")
    status, _, err = run(capfd, *words, "--drop", ",".join(["id", "left", *drop]))
    assert (status, "row numbers" in err) == (0, False)


def test_info_lists_the_labels_that_occur_most_first(tmp_path, capfd):
    """A label that never occurs is the last of ten, and beyond ten not there."""
    Y = np.tril(np.ones((11, 12), int), -1)
    (tmp_path / "steps.csv").write_text(
        "\n".join(
            [",".join(["x", *(f"is_{k}" for k in range(12))])]
            + [",".join(map(str, [row, *labels])) for row, labels in enumerate(Y)]
        )
    )
    told = found(capfd, "datasets", "info", tmp_path / "steps.csv", "--label-prefix", "is_")
    assert list(told["most_frequent_labels"].values()) == list(range(10, 0, -1))


# ------------------------------------------------------------------------------------------ decode


@pytest.fixture(scope="module")
def probability():
    return np.random.default_rng(3).random((50, 3)).round(4)


def write_probabilities(path, probability):
    """In the format of the name."""
    if path.suffix == ".npy":
        np.save(path, probability)
    elif path.name == "sparse.npz":
        save_npz(path, csr_array(probability))
    elif path.suffix == ".npz":
        np.savez(path, probability=probability)
    elif path.suffix == ".parquet":
        import pandas

        pandas.DataFrame(probability, columns=LABELS).to_parquet(path)
    else:
        delimiter = "\t" if path.suffix == ".tsv" else ","
        header = "" if path.stem == "bare" else delimiter.join(LABELS)
        np.savetxt(path, probability, delimiter=delimiter, header=header, comments="", fmt="%.4f")
    return path


@pytest.mark.parametrize(
    "name", ["p.csv", "p.tsv", "bare.csv", "p.npy", "p.npz", "sparse.npz", "p.parquet"]
)
def test_decode_is_the_decoder_for_every_format(name, probability, tmp_path, capfd):
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    path = write_probabilities(tmp_path / name, probability)
    status, out, _ = run(capfd, "decode", path, "--target", "f1")
    expected = MinimumRisk("f1").decode(probability)
    named = name in ("p.csv", "p.tsv", "p.parquet")
    names = LABELS if named else np.array(["0", "1", "2"])
    assert status == 0
    assert lists(out) == [names[row == 1].tolist() for row in expected]


def test_rounding_beyond_one_is_one(tmp_path, capfd):
    (tmp_path / "p.csv").write_text("art,law\n1.0000000000000002,-1e-9\n")
    assert run(capfd, "decode", tmp_path / "p.csv")[:2] == (0, "labels\nart\n")


def test_decode_reads_what_predict_writes(folder, capfd):
    words = ("predict", folder / "model.skops", folder / "new.csv", "--format", "probabilities")
    text = run(capfd, *words)[1]
    status, out, _ = run(capfd, "decode", "-", "--target", "f2", "--json", stdin=text.encode())
    X = read(folder / "new.csv", **READ).X
    probability = load(folder / "model.skops").model.predict_proba(X)
    expected = MinimumRisk("f2").decode(probability)
    told = [json.loads(line)["labels"] for line in out.splitlines()]
    assert status == 0
    assert told == [LABELS[row == 1].tolist() for row in expected]
