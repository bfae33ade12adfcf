"""The command as a process: killed, interrupted, unread, and resumed."""

import os
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from setwise.cli import main
from setwise.study import leaderboard, load
from tests.support.command import LISTED, QUICK, rows, write_listed
from tests.support.forks import begin, command, wait_for, without_output

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")
COMMAND = [sys.executable, "-c", "import sys; from setwise.cli import main; sys.exit(main())"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("processes")
    write_listed(place / "books.csv", *rows(60))
    words = ("fit", place / "books.csv", *LISTED, *QUICK, "-o", place / "model.skops")
    assert main([str(word) for word in words]) == 0
    return place


@pytest.fixture(scope="module")
def long_file(folder):
    """More rows than are predicted before a signal comes."""
    header, *lines = (folder / "books.csv").read_bytes().splitlines(keepends=True)
    (folder / "long.csv").write_bytes(header + b"".join(lines) * 2_000)
    return "long.csv"


def test_a_kill_while_predictions_are_written_leaves_the_old_file(folder, long_file):
    out = folder / "old.csv"
    out.write_text("old")
    process = begin(command, folder, ("predict", "model.skops", long_file, "-o", "old.csv"))
    wait_for(lambda: any(folder.glob(".old.csv.*")), process)
    process.kill()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    assert out.read_text() == "old"


def test_nobody_reads_the_output_and_nobody_complains(folder, long_file):
    os.mkfifo(folder / "pipe")
    words = ("predict", "model.skops", long_file)
    process = begin(command, folder, words, folder / "pipe", folder / "complaints")
    with open(folder / "pipe", "rb", buffering=0) as pipe:
        assert pipe.read(5) == b"tags\n"
    process.join()
    assert process.exitcode == 1
    assert (folder / "complaints").read_bytes() == b""


def test_a_pipe_is_written_to_by_its_name(folder):
    os.mkfifo(folder / "named")
    words = ("predict", "model.skops", "books.csv", "-o", "/dev/stdout")
    process = begin(command, folder, words, folder / "named")
    with open(folder / "named", "rb") as pipe:
        assert pipe.read().startswith(b"tags\n")
    process.join()
    assert process.exitcode == 0


def test_a_closed_output_is_named(folder):
    words, said = ("predict", "model.skops", "books.csv"), folder / "closed"
    process = begin(without_output, folder, words, said)
    process.join()
    assert process.exitcode == 2
    assert said.read_text() == "setwise: the standard output is closed; name a file (-o)\n"


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_interrupted_study_says_how_to_go_on(jobs, folder):
    study = f"interrupted by {jobs}"
    words = ("compare", "books.csv", *LISTED, "--methods", "binary_relevance,one_vs_rest")
    words += ("--folds", "20", "--jobs", jobs, "-o", study)
    process = begin(command, folder, words, None, folder / f"said {jobs}")
    wait_for(lambda: n_finished(folder / study) > 0, process)
    os.kill(process.pid, signal.SIGINT)
    process.join()
    said = (folder / f"said {jobs}").read_text()
    assert process.exitcode == 130
    assert said.startswith("setwise: interrupted\n")
    assert "Nothing finished is lost" in said
    assert "Traceback" not in said


def n_finished(study):
    """How many units are stored."""
    file = study / "results.jsonl"
    return file.read_bytes().count(b'"finished"') if file.exists() else 0


def test_kills_and_the_study_is_that_without_one(folder):
    """Each kill comes after so many new units and a while; the last run is left to end."""
    words = ["compare", "books.csv", *LISTED, "--methods", "binary_relevance,catalog"]
    words += ["--targets", "f1,subset", "--folds", "8", "-o"]
    chance, stops = random.Random(7), []
    for _ in range(4):
        wanted = n_finished(folder / "killed") + chance.choice([0, 1, 1])
        process = begin(command, folder, [*words, "killed"])
        wait_for(lambda wanted=wanted: n_finished(folder / "killed") >= wanted, process)
        time.sleep(chance.uniform(0.0, 0.05))
        process.kill()
        process.join()
        assert process.exitcode == -signal.SIGKILL
        stops.append(n_finished(folder / "killed"))
    assert 0 < stops[-1] < 32
    for name in ("killed", "whole"):
        process = begin(command, folder, [*words, name])
        process.join()
        assert process.exitcode == 0
    killed, whole = (load(folder / name) for name in ("killed", "whole"))
    assert leaderboard(killed) == leaderboard(whole)
    for mine, other in zip(killed.outcomes, whole.outcomes, strict=True):
        assert (mine.method, mine.target, mine.guarantee) == (
            other.method, other.target, other.guarantee,
        )  # fmt: skip
        assert mine.settings == other.settings
        np.testing.assert_array_equal(mine.y_pred.toarray(), other.y_pred.toarray())
        np.testing.assert_array_equal(mine.losses, other.losses)
        np.testing.assert_array_equal(mine.probability, other.probability)
    assert (folder / "killed" / "report.html").read_text().startswith("<!")


def test_the_module_is_the_command():
    import setwise

    told = subprocess.run(
        [sys.executable, "-m", "setwise", "--version"], capture_output=True, text=True, check=True
    )
    assert told.stdout.strip() == setwise.__version__
