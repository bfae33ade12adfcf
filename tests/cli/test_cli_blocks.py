"""Folders of blocks on the command line: converted, trained on, predicted for."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from setwise.__main__ import run as command
from setwise.blocks.folder import FolderBlocks
from setwise.estimators.solver import _Search
from tests.support.command import LISTED, QUICK, found, rows, run, write_listed
from tests.support.profile import THOROUGH

SEARCHED = ("--alpha", "0.1,0.01", "--space", "sized", "--folds", 2)


@pytest.fixture
def table(tmp_path):
    return write_listed(tmp_path / "books.csv", *rows(120, missing=0.05))


@pytest.fixture
def blocks(table, tmp_path, capfd):
    folder = tmp_path / "blocks"
    told = found(capfd, "convert", table, *LISTED, "--rows", 50, "-o", folder)
    assert (told["rows"], told["features"], told["labels"], told["blocks"]) == (120, 4, 3, 3)
    assert told["missing_features"] > 0
    return folder


def test_a_model_of_blocks_is_that_of_the_file_and_predicts_both(table, blocks, tmp_path, capfd):
    models = tmp_path / "blocks.skops", tmp_path / "file.skops"
    told = found(capfd, "fit", blocks, *QUICK, "-o", models[0])
    plain = found(capfd, "fit", table, *LISTED, *QUICK, "-o", models[1])
    same = ("rows", "features", "labels", "missing_features", "chosen", "target")
    assert {key: told[key] for key in same} == {key: plain[key] for key in same}
    written = []
    for number, (model, data) in enumerate((m, d) for m in models for d in (blocks, table)):
        status, _, err = run(capfd, "predict", model, data, "-o", tmp_path / f"{number}.csv")
        assert status == 0
        assert f"{told['missing_features']} missing feature values replaced by" in err
        written.append((tmp_path / f"{number}.csv").read_bytes())
    assert len(set(written)) == 1
    assert not list(tmp_path.glob("*.checkpoint"))


def test_cross_validation_takes_blocks(blocks, tmp_path, capfd):
    options = "--alpha", "0.1,0.01", "--space", "sized", "--folds", 2
    told = found(capfd, "fit", blocks, *options, "-o", tmp_path / "model.skops")
    assert told["by_cross_validation"]
    assert 0.0 < told["cross_validated_loss"] < 1.0


def test_an_interrupted_training_says_how_to_go_on(blocks, tmp_path, capfd, monkeypatch):
    model, passes, plain = tmp_path / "model.skops", 0, FolderBlocks.sum

    def interrupted(self, function, *parameters):
        nonlocal passes
        passes += 1
        if passes == 9:
            raise KeyboardInterrupt
        return plain(self, function, *parameters)

    monkeypatch.setattr(FolderBlocks, "sum", interrupted)
    status, _, err = run(capfd, "fit", blocks, *QUICK, "-o", model)
    assert status == 130
    assert "the same command goes on from" in err
    assert not model.exists()
    monkeypatch.undo()
    assert run(capfd, "fit", blocks, *QUICK, "-o", model)[0] == 0
    assert sorted(path.name for path in tmp_path.glob("model*")) == ["model.skops"]


@pytest.mark.parametrize(("options", "kept"), [(QUICK, "checkpoint"), (SEARCHED, "search")])
def test_an_interrupt_before_the_model_is_written_loses_nothing(
    blocks, tmp_path, capfd, monkeypatch, options, kept
):
    model, steps = tmp_path / "model.skops", []

    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("setwise.persistence.save", interrupted)
        assert run(capfd, "fit", blocks, *options, "-o", model)[0] == 130
    assert [path.name for path in tmp_path.glob("model*")] == [f"model.skops.{kept}"]
    plain = _Search.after_step
    monkeypatch.setattr(_Search, "after_step", lambda self: steps.append(1) or plain(self))
    assert run(capfd, "fit", blocks, *options, "-o", model)[0] == 0
    assert len(steps) <= 1
    assert [path.name for path in tmp_path.glob("model*")] == ["model.skops"]


def test_a_process_that_is_interrupted_at_any_moment_ends_with_130(monkeypatch):
    class Interrupting:
        def find_spec(self, name, *_):
            if name == "setwise.cli":
                raise KeyboardInterrupt

    hidden = {name for name in sys.modules if name.startswith("setwise.cli")}
    for name in hidden:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr("setwise.cli", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Interrupting(), *sys.meta_path])
    assert command() == 130


@pytest.mark.skipif(not THOROUGH, reason="takes a minute: make test-deep")
@pytest.mark.parametrize("options", [QUICK, SEARCHED])
def test_interrupts_at_random_moments_end_with_130_and_lose_nothing(blocks, tmp_path, options):
    """As processes of their own, from soon after their beginning to after their end."""
    model = tmp_path / "model.skops"
    words = [sys.executable, "-m", "setwise", "fit", blocks, *options, "-o", model]
    words, quiet = [str(word) for word in words], {"stderr": subprocess.DEVNULL}
    begun = time.monotonic()
    assert subprocess.run(words, stdout=subprocess.DEVNULL, **quiet).returncode == 0
    whole, chance = time.monotonic() - begun, random.Random(5)
    for _ in range(8):
        model.unlink(missing_ok=True)
        with subprocess.Popen(words, stdout=subprocess.DEVNULL, **quiet) as process:
            time.sleep(chance.uniform(0.2, whole))
            process.send_signal(signal.SIGINT)
            # (A search ends with the best model so far.)
            assert process.wait() in (0, 130)
        assert process.returncode == 130 or model.exists()
    assert subprocess.run(words, stdout=subprocess.DEVNULL, **quiet).returncode == 0
    assert [path.name for path in tmp_path.glob("model*")] == ["model.skops"]


def test_what_does_not_go_with_blocks_is_refused(table, blocks, tmp_path, capfd):
    model = tmp_path / "model.skops"
    for options, words in (
        (("--test-share", 0.3), "--test-share are for files"),
        (("--test", table), "--test-share are for files"),
        (LISTED, "options of reading belong to `setwise convert`"),
    ):
        status, _, err = run(capfd, "fit", blocks, *options, *QUICK, "-o", model)
        assert (status, model.exists()) == (2, False)
        assert words in err
    status, _, err = run(capfd, "convert", table, *LISTED, "--rows", 0, "-o", tmp_path / "none")
    assert (status, (tmp_path / "none").exists()) == (2, False)
    assert "--rows" in err
    assert "blocks: this is there already" in run(capfd, "convert", table, *LISTED, "-o", blocks)[2]
    assert run(capfd, "fit", blocks, *QUICK, "-o", model)[0] == 0
    for words in (("evaluate", model, blocks), ("card", model, blocks, "-o", tmp_path / "a.md")):
        status, _, err = run(capfd, *words)
        assert status == 2
        assert "blocks: a folder of blocks, for which labels are predicted but not evaluated" in err
        assert f"setwise predict {model} {blocks} -o predictions.csv" in err
    X, Y = rows(20)
    other = write_listed(tmp_path / "other.csv", X, Y, np.array(["sea", "sky", "sun"]))
    assert run(capfd, "convert", other, *LISTED, "-o", tmp_path / "other")[0] == 0
    status, _, err = run(capfd, "predict", model, tmp_path / "other")
    assert status == 2
    assert "its labels are not those of the model: 'sea', 'sky', 'sun'" in err
    (blocks / "00001.X.npy").unlink()
    status, _, err = run(capfd, "fit", blocks, *QUICK, "-o", tmp_path / "second.skops")
    assert (status, (tmp_path / "second.skops").exists()) == (2, False)
    assert "blocks: block 1 is not whole: no file 00001.X.npy" in err
