"""The command as a process: killed, interrupted, unread, and resumed."""

import json
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from setwise.cli import main
from setwise.study import load
from tests.support.command import LISTED, QUICK, rows, write_listed

COMMAND = [sys.executable, "-c", "import sys; from setwise.cli import main; sys.exit(main())"]
METHODS = "binary_relevance,catalog"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("processes")
    write_listed(place / "books.csv", *rows(60))
    words = ("fit", place / "books.csv", *LISTED, *QUICK, "-o", place / "model.skops")
    assert main([str(word) for word in words]) == 0
    return place


def begin(folder, *words, **options):
    """A process at work in the folder."""
    return subprocess.Popen([*COMMAND, *words], cwd=folder, stderr=subprocess.PIPE, **options)


def wait_for(condition, process):
    """Until something is so, or the process has ended."""
    while not condition() and process.poll() is None:
        time.sleep(0.005)


@pytest.fixture(scope="module")
def long_file(folder):
    """More rows than are predicted before a signal comes."""
    header, *lines = (folder / "books.csv").read_bytes().splitlines(keepends=True)
    (folder / "long.csv").write_bytes(header + b"".join(lines) * 20_000)
    return "long.csv"


def test_a_kill_while_predictions_are_written_leaves_the_old_file(folder, long_file):
    out = folder / "old.csv"
    out.write_text("old")
    words = ("predict", "model.skops", long_file, "-o", "old.csv")
    process = begin(folder, *words)
    wait_for(lambda: any(folder.glob(".old.csv.*")), process)
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert out.read_text() == "old"


def test_nobody_reads_the_output_and_nobody_complains(folder, long_file):
    with begin(folder, "predict", "model.skops", long_file, stdout=subprocess.PIPE) as process:
        assert process.stdout.read(5) == b"tags\n"
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 1


def test_a_pipe_is_written_to_by_its_name(folder):
    words = (*COMMAND, "predict", "model.skops", "books.csv", "-o", "/dev/stdout")
    done = subprocess.run(words, cwd=folder, capture_output=True)
    assert done.returncode == 0
    assert done.stdout.startswith(b"tags\n")


def test_a_closed_output_is_named(folder):
    words = (*COMMAND, "predict", "model.skops", "books.csv")
    line = 'exec "$@" >&-'
    done = subprocess.run(["sh", "-c", line, "sh", *words], cwd=folder, capture_output=True)
    assert done.returncode == 2
    assert done.stderr == b"setwise: the standard output is closed; name a file (-o)\n"


def test_an_interrupted_study_says_how_to_go_on(folder):
    words = ("compare", "books.csv", *LISTED, "--folds", "20", "-o", "interrupted")
    # (Tests that run in the background of a shell are told to ignore an interrupt.)
    listen = {"preexec_fn": lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)}
    process = begin(folder, *words, stdout=subprocess.DEVNULL, **listen)
    file = folder / "interrupted" / "results.jsonl"
    wait_for(lambda: file.exists() and b'"finished"' in file.read_bytes(), process)
    process.send_signal(signal.SIGINT)
    said = process.communicate()[1].decode()
    assert process.returncode == 130
    assert said.startswith("setwise: interrupted\n")
    assert "Nothing finished is lost" in said
    assert "Traceback" not in said


# Commands in processes that are forked from one where everything is loaded, and killed after so
# many new units and a while; the last is left to end.
KILLER = """
import os, random, signal, sys, time
from pathlib import Path
import setwise.report, setwise.study
from setwise.cli import main

words, seed, kills = sys.argv[3:], int(sys.argv[1]), int(sys.argv[2])
chance = random.Random(seed)
file = Path("killed", "results.jsonl")

def count():
    return file.read_bytes().count(b'"finished"') if file.exists() else 0

done = 0
while done < kills:
    before, wanted = count(), chance.choice([0, 1, 1])
    process = os.fork()
    if process == 0:
        os._exit(main(words))
    ended = lambda: os.waitid(os.P_PID, process, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    while count() < before + wanted and not ended():
        time.sleep(0.002)
    time.sleep(chance.uniform(0.0, 0.05))
    os.kill(process, signal.SIGKILL)
    _, status = os.waitpid(process, 0)
    done += 1
    print(count(), os.WIFSIGNALED(status), file=sys.stderr)
sys.exit(main(words))
"""


def test_ten_kills_and_the_study_is_that_without_one(folder):
    words = ["compare", "books.csv", *LISTED, "--methods", METHODS, "--targets", "f1,subset"]
    words += ["--folds", "8", "--json", "-o"]
    killer = [sys.executable, "-c", KILLER, "7", "10", *words, "killed"]
    killed = subprocess.run(killer, cwd=folder, capture_output=True, text=True, check=False)
    assert killed.returncode == 0, killed.stderr
    whole = subprocess.run(
        [*COMMAND, *words, "whole"], cwd=folder, capture_output=True, text=True, check=True
    )
    stops = [line.split() for line in killed.stderr.splitlines()]
    assert sum(signalled == "True" for _, signalled in stops) == 10
    assert 0 < int(stops[-1][0]) < 32
    boards = [json.loads(done.stdout)["leaderboard"] for done in (killed, whole)]
    assert boards[0] == boards[1]
    for mine, other in zip(*(load(folder / name).outcomes for name in ("killed", "whole"))):  # noqa: B905
        assert (mine.method, mine.target, mine.guarantee) == (
            other.method, other.target, other.guarantee,
        )  # fmt: skip
        assert mine.settings == other.settings
        np.testing.assert_array_equal(mine.y_pred.toarray(), other.y_pred.toarray())
        np.testing.assert_array_equal(mine.losses, other.losses)
        np.testing.assert_array_equal(mine.probability, other.probability)
    assert (folder / "killed" / "report.html").read_text().startswith("<!")
