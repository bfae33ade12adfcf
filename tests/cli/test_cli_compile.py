"""`setwise compile` leaves nothing to compile for the calls it stands for."""

import json
import os
import subprocess
import sys

from setwise import kernel_cache
from setwise.cli import main

# Tables as they are, but only one model, of few kernels.
COMPILED = """
import json, sys
from numba.core import event
from setwise import SetClassifier
from setwise.cli import main
module = sys.modules["setwise.cli.compile"]
_, X, Y = next(module.trials())
module.trials = lambda: [(SetClassifier("subset"), X, Y)]
module.compile_losses = lambda: None
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

    module = sys.modules["setwise.cli.compile"]
    monkeypatch.setattr(module, "trials", losing)
    monkeypatch.setattr(module, "compile_losses", lambda: None)
    monkeypatch.setattr(kernel_cache, "_candidates", lambda: [tmp_path])
    monkeypatch.setattr(kernel_cache._Cache, "_save_overload", full)
    kernel_cache.cache_folder.cache_clear()
    try:
        assert main(["compile"]) == 2
    finally:
        kernel_cache.cache_folder.cache_clear()
        kernel_cache._say_lost.cache_clear()
    assert "cannot keep compiled kernels" in capsys.readouterr().err
