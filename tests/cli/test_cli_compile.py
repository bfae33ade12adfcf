"""`setwise compile` compiles and keeps what it is asked for, and says so where it cannot."""

import json
import os
import subprocess
import sys

from setwise import first_calls, kernel_cache
from setwise.cli import main

# Only one model, of few kernels, none of which is installed.
COMPILED = """
import json
from pathlib import Path
from numba.core import event
from setwise import SetClassifier, first_calls, kernel_cache
from setwise.cli import main
kernel_cache.INSTALLED = Path("nowhere")
first_calls.trials = lambda: [(SetClassifier("subset"), *first_calls.table())]
first_calls.compile_losses = first_calls.compile_modules = lambda: None
with event.install_recorder("numba:compile") as seen:
    status = main(["compile", "--json"])
print(json.dumps([status, len(seen.buffer)]))
"""


def test_a_first_call_after_it_compiles_nothing(tmp_path):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-W", "ignore", "-c", COMPILED]
    before, after = (
        [
            json.loads(line)
            for line in subprocess.check_output(command, env=environment).splitlines()
        ]
        for _ in range(2)
    )
    assert before[0]["folder"] == str(tmp_path / "setwise")
    assert before[1][0] == 0
    assert before[1][1] > 0
    assert after[1] == [0, 0]


def test_what_could_not_be_kept_is_not_called_kept(monkeypatch, tmp_path, capsys):
    def full(*_):
        raise OSError("no space left on device")

    def losing():
        kernel_cache._Cache(kernel_cache.prune).save_overload((), None)
        return iter(())

    monkeypatch.setattr(first_calls, "trials", losing)
    # (No real kernel may take the folder of this test for its own.)
    for rest in ("losses", "products", "modules"):
        monkeypatch.setattr(first_calls, f"compile_{rest}", lambda: None)
    monkeypatch.setattr(kernel_cache, "_candidates", lambda: [tmp_path])
    monkeypatch.setattr(kernel_cache._Cache, "_save_overload", full)
    kernel_cache.cache_folder.cache_clear()
    try:
        assert main(["compile"]) == 2
    finally:
        kernel_cache.cache_folder.cache_clear()
        kernel_cache._lost.clear()
    assert "only you can write to (no space left on device)" in capsys.readouterr().err
