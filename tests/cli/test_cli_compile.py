"""`setwise compile` leaves nothing to compile for the calls it stands for."""

import json
import os
import subprocess
import sys

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
