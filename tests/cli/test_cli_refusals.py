"""What cannot be done is one line that names file and line, status 2, and changes nothing."""

import json
import re
import stat
import sys
from pathlib import Path

import numpy as np
import pytest

import setwise
from setwise.cli import main
from setwise.study import METHODS
from tests.support.command import EVERY_COMMAND, LISTED, QUICK, rows, run, write_listed


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("refusals")
    write_listed(place / "books.csv", *rows(40))
    words = ("fit", place / "books.csv", *LISTED, *QUICK, "-o", place / "model.skops")
    assert main([str(word) for word in words]) == 0
    setwise.save(setwise.SetClassifier(), place / "bare.skops")
    (place / "pickle.skops").write_bytes(b"\x80\x04K\x01.")
    for name, text in FILES.items():
        (place / name).write_bytes(text)
    np.save(place / "flat.npy", np.ones(3))
    return place


FILES = {
    "empty.csv": b"",
    "header.csv": b"a,b,c,d,tags\n",
    "short.csv": b"a,b,c,d,tags\n1,2,3,4,art\n1,2,3,4\n",
    "word.csv": b"a,b,c,d,tags\n1,2,3,4,art\n1,2,three,4,law\n",
    "quote.csv": b'a,b,c,d,tags\n1,2,3,4,"art\n',
    "latin.csv": b"a,b,c,d,tags\n1,2,3,4,\xe9\n",
    "other.csv": b"a,b,c,tags\n1,2,3,art\n",
    "unknown.csv": b"a,b,c,d,tags\n1,2,3,4,art\n1,2,3,4,opera\n",
    "cut.csv.gz": b"\x1f\x8b\x08\x00",
    "data.bin": bytes(range(256)),
    "half.arff": b"@relation r\n@attribute x numeric\n@attribute y {0,1}\n@data\n1,1\n2,2\n",
    "p.csv": b"art,law\n0.5,0.5\n0.5,1.5\n",
    "words.csv": b"art,law\n0.5,0.5\n0.5,often\n",
    "ragged.csv": b"0.5,0.5\n0.5\n",
    "twice.csv": b"art,art\n0.5,0.5\n",
    "one.csv": b"tags\nart\n",
    "damaged.npy": b"\x93NUMPY",
    "few.txt": b"art law\n",
    "tree.txt": b"all art\nall law\nart war\n",
}
FIT = ("fit", "{}", *LISTED, *QUICK, "-o", "out.skops")
COMMANDS = [
    ((FIT[0], "none.csv", *FIT[2:]), "there is no file 'none.csv'"),
    ((FIT[0], "empty.csv", *FIT[2:]), "empty.csv, line 1: "),
    ((FIT[0], "header.csv", *FIT[2:]), "header.csv: no row"),
    ((FIT[0], "short.csv", *FIT[2:]), "short.csv, line 3: 4 cells, but 5 columns"),
    ((FIT[0], "word.csv", *FIT[2:]), "line 3: column 'c' is 'three', which is not a number"),
    ((FIT[0], "word.csv", *FIT[2:]), "(--text-columns c), or leave it out (--drop c)"),
    ((FIT[0], "quote.csv", *FIT[2:]), "quote.csv, line 2: "),
    ((FIT[0], "latin.csv", *FIT[2:]), "such as --encoding latin-1"),
    ((FIT[0], "cut.csv.gz", *FIT[2:]), "cut.csv.gz: damaged or cut off"),
    ((FIT[0], "data.bin", *FIT[2:]), "data.bin: the format is not recognised"),
    ((FIT[0], ".", *FIT[2:]), "a folder without X.npz"),
    (("fit", "half.arff", "--labels", "y", "-o", "out.skops"), "half.arff, line 6: "),
    (("fit", "books.csv", "-o", "out.skops"), "which columns are labels? Say one of --labels"),
    (("fit", "books.csv", *LISTED, "--labels", "a", "-o", "o"), "which columns are labels?"),
    (("fit", "books.csv", "--label-column", "genre", "-o", "o"), "line 1: no column 'genre'"),
    (("fit", "books.csv", *LISTED, "--target", "f", "-o", "o"), "recall@5, tree"),
    # What is misspelt is said before a file is read, be it large.
    (("fit", "short.csv", *LISTED, "--target", "f", "-o", "o"), "did you mean 'f1'?"),
    (("compare", "short.csv", *LISTED, "--targets", "f1,jacard", "-o", "o"), "'jaccard'?"),
    (("evaluate", "model.skops", "short.csv", "--targets", "jacard"), "'jaccard'?"),
    (("fit", "short.csv", *LISTED, "--scaling", "None", "-o", "o"),
     "--scaling must be of auto, none, standard, rows, not 'None'"),
    (("predict", "model.skops", "books.csv", "--unseen-categories", "no"), "'--unseen-categories'"),
    (("evaluate", "model.skops", "books.csv", "--unseen-labels", "no"), "'--unseen-labels'"),
    (("fit", "books.csv", *LISTED, "--unknown-labels", "no", "-o", "o"), "'--unknown-labels'"),
    (("fit", "books.csv", *LISTED, "--target", "tree", "-o", "o"), "--taxonomy FILE names one, or"),
    (("fit", "books.csv", *LISTED, "--close", "-o", "o"), "--close adds what stands above labels"),
    (("fit", "books.csv", *LISTED, "--path-separator", "/", "-o", "o"), "'/' is in no label of bo"),
    (("fit", "books.csv", *LISTED, "--taxonomy", "none.csv", "-o", "o"), "none.csv"),
    (("fit", "books.csv", *LISTED, "--taxonomy", "few.txt", "-o", "o"), "'war' is not among its 2"),
    (("fit", "books.csv", *LISTED, "--taxonomy", "tree.txt", "-o", "o"), "without --close: "),
    (("fit", "books.csv", *LISTED, "--taxonomy", "tree.txt", "-o", "tree.txt"), "would be lost"),
    (("fit", "books.csv", *LISTED, "--taxonomy", "tree.txt", "--path-separator", "/", "-o", "o"),
     "exclude each other"),
    (("evaluate", "model.skops", "books.csv", "--targets", "tree"), "books has no hierarchy"),
    (("evaluate", "model.skops", "books.csv", "--taxonomy", "tree.txt"), "without --close: "),
    (("decode", "p.csv", "--target", "tree"), "needs a hierarchy; --taxonomy FILE names one"),
    (("decode", "p.csv", "--target", "tree", "--taxonomy", "tree.txt"), "none for 'all', 'war'"),
    (("decode", "p.csv", "--taxonomy", "tree.txt"), "are for --target tree"),
    (("fit", "books.csv", *LISTED, "--surrogate", "magic", "-o", "o"), "surrogate"),
    (("fit", "books.csv", *LISTED, "--space", "outer", "-o", "o"), "space"),
    (("fit", "books.csv", *LISTED, "--alpha", "few", "-o", "o"), "--alpha must be numbers"),
    (("fit", "books.csv", *LISTED, *QUICK, "--space", "cube,sized", "-o", "o"), "one --space"),
    (("fit", "books.csv", *LISTED, "--folds", "1", "-o", "o"), "value for '--folds'"),
    (("fit", "books.csv", *LISTED, "-o", "none/out.skops"), "no folder 'none'"),
    (("fit", "books.csv", *LISTED, "-o", "."), "is a folder"),
    (("fit", "books.csv", *LISTED), "Missing option"),
    (("predict", "none.skops", "books.csv"), "none.skops"),
    (("predict", ".", "books.csv"), "not a model that `setwise fit` wrote"),
    (("predict", "books.csv", "books.csv"), "damaged, or no file that setwise saved"),
    (("predict", "pickle.skops", "books.csv"), "pickle.skops' was not loaded"),
    (("predict", "bare.skops", "books.csv"), "expected is a model that `setwise fit` wrote"),
    (("predict", "model.skops", "none.csv"), "there is no file 'none.csv'"),
    (("predict", "model.skops", "other.csv"), "other.csv, line 1: no column 'd'"),
    (("predict", "model.skops", "short.csv"), "short.csv, line 3: 4 cells"),
    (("predict", "model.skops", "books.csv", "--format", "xml"), "value for '--format'"),
    (("predict", "model.skops", "books.csv", "--separator", "a"), "choose another --separator"),
    (("predict", "model.skops", "books.csv", "--separator", ""), "choose another --separator"),
    (("evaluate",), "either MODEL and DATA, or --predictions and --truth, but was given none"),
    (("evaluate", "model.skops"), "but was given MODEL only"),
    (("evaluate", "model.skops", "unknown.csv"), "unknown.csv, line 3: unknown label 'opera'"),
    (("evaluate", "model.skops", "books.csv", "--labels", "a"), "as it read its training file"),
    (("evaluate", "model.skops", "books.csv", "--part", "test"), "fit FIRST --test SECOND"),
    (("evaluate", "--predictions", "books.csv"), "--truth"),
    (("evaluate", "--predictions", "one.csv", "--truth", "books.csv", *LISTED), "has 1 rows"),
    (("evaluate", "--predictions", "one.csv", "--truth", "books.csv"), "which columns are labels"),
    (("decode", "none.csv"), "there is no file 'none.csv'"),
    (("decode", "empty.csv"), "empty.csv, line 1: the file is empty"),
    (("decode", "p.csv"), "p.csv, line 3: label 'law' is 1.5; expected is a probability"),
    (("decode", "words.csv"), "words.csv, line 3: label 'law' is 'often'"),
    (("decode", "ragged.csv"), "ragged.csv, line 2: 1 cells, but 2 columns"),
    (("decode", "twice.csv"), "twice.csv, line 1: two columns are named 'art'"),
    (("decode", "flat.npy"), "of shape (3,)"),
    (("decode", "damaged.npy"), "damaged.npy: damaged, or no array of numbers"),
    (("decode", "p.csv", "--target", "magic"), "no target named 'magic'"),
    (("compare", "books.csv", *LISTED, "-o", "model.skops"), "must be a folder"),
    (("compare", "books.csv", *LISTED, "-o", "."), "holds no study but is not empty"),
    (("compare", "books.csv", *LISTED, "-o", "s", "--methods", "magic"), "no method named 'magic'"),
    (("compare", "books.csv", *LISTED, "-o", "s", "--targets", "f1,f1"), "may be there once"),
    (("compare", "books.csv", *LISTED, "-o", "s", "--report", "no/r.html"), "no folder 'no'"),
    (("fit", "books.csv", *LISTED, "-o", "books.csv"), "'books.csv' is read, and would be lost"),
    (("fit", "books.csv", *LISTED, "-o", "word.csv"), "'word.csv' is there and is not a model"),
    (("predict", "model.skops", "books.csv", "-o", "./books.csv"), "is read, and would be lost"),
    (("compare", "books.csv", *LISTED, "-o", "s", "--report", "p.csv"), "is not a page"),
    (("decode", "p.csv", "-o", "p.csv"), "is read, and would be lost"),
    (("fit", "books.csv", *LISTED, "--test-share", "1.5", "-o", "m"), "--test-share must be betw"),
    (("datasets", "info", "none.csv"), "there is no file 'none.csv'"),
    (("datasets", "fetch", "birds", "--url", "file:///etc"), "must begin with http"),
    (("demo", "-o", "none/report.html"), "no folder 'none'"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "complaint"), COMMANDS)
def test_one_line_says_what_is_wrong_and_nothing_is_written(
    words, complaint, folder, capfd, monkeypatch
):
    monkeypatch.chdir(folder)
    before = [path for path in sorted(folder.iterdir()) if path.name != ".lock"]
    status, out, err = run(capfd, *words)
    assert status == 2
    assert err.startswith("setwise: ")
    assert err.count("\n") == 1
    assert complaint in err
    # Nothing is said in the words of Python, which do not help here.
    assert not re.search(r"\w=\S", err)
    assert out == ""
    # (A lock is what a study leaves where it looks.)
    assert [path for path in sorted(folder.iterdir()) if path.name != ".lock"] == before


def test_an_index_without_a_name_is_neither_label_nor_feature(tmp_path, capfd):
    table = tmp_path / "frame.csv"
    table.write_text(",a,is_law\n0,0.5,1\n1,0.25,0\n")
    status, _, err = run(capfd, "decode", table)
    assert status == 2
    assert "frame.csv, line 1: column 1 has no name" in err
    words = ("datasets", "info", table, "--label-prefix", "is_")
    status, _, err = run(capfd, *words)
    assert status == 2
    assert "has no name: the index of a data frame? Leave it out (--drop '')" in err
    status, out, _ = run(capfd, *words, "--drop", "")
    assert status == 0
    assert "1 feature," in out


def test_a_refusal_leaves_the_old_file(folder, tmp_path, capfd, monkeypatch):
    monkeypatch.chdir(folder)
    old = tmp_path / "old.csv"
    old.write_text("old")
    status, _, err = run(capfd, "predict", "model.skops", "word.csv", "-o", old)
    assert status == 2
    assert "word.csv, line 3" in err
    assert old.read_text() == "old"
    assert list(tmp_path.iterdir()) == [old]


def test_what_is_no_file_is_written_to_as_it_is(folder, capfd, tmp_path, monkeypatch):
    monkeypatch.chdir(folder)
    assert run(capfd, "predict", "model.skops", "books.csv", "-o", "/dev/null")[0] == 0
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)
    # A link keeps pointing to its file, which is replaced.
    (tmp_path / "real.csv").write_text("old")
    (tmp_path / "link.csv").symlink_to(tmp_path / "real.csv")
    run(capfd, "predict", "model.skops", "books.csv", "-o", tmp_path / "link.csv")
    assert (tmp_path / "link.csv").is_symlink()
    assert (tmp_path / "real.csv").read_text().startswith("tags\n")


def test_scores_that_are_no_probabilities_are_not_given_as_such(folder, tmp_path, capfd):
    model = tmp_path / "m.skops"
    words = ("fit", folder / "books.csv", *LISTED, *QUICK, "--surrogate", "mean_absolute_error")
    assert run(capfd, *words, "-o", model)[0] == 0
    words = ("predict", model, folder / "books.csv", "--format", "probabilities")
    status, out, err = run(capfd, *words)
    assert (status, out) == (2, "")
    assert "no log-probabilities" in err
    status, out, _ = run(capfd, "evaluate", model, folder / "books.csv", "--json")
    assert status == 0
    assert "brier score" not in json.loads(out)["figures"]


@pytest.mark.parametrize("words", [(), *EVERY_COMMAND], ids=" ".join)
def test_every_help_has_examples_and_exit_status(words, capfd):
    status, out, _ = run(capfd, *words, "--help")
    assert status == 0
    assert "\n  Examples:\n    setwise " in out
    assert "Exit status:" in out
    assert words == () or "--json" in out


def test_help_names_every_method(capfd):
    out = run(capfd, "compare", "--help")[1]
    assert tuple(METHODS) == sys.modules["setwise.cli.compare"].METHODS
    assert all(method in out for method in METHODS)
