"""What `import setwise` costs, in units of `import numpy`."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

from benchmarks.rows import machine

ROUNDS = 30


def imports() -> Iterator[dict[str, Any]]:
    """One row: the shortest of interleaved fresh processes, the bare interpreter taken off."""
    commands = {"nothing": "pass", "numpy": "import numpy", "setwise": "import setwise"}
    best = dict.fromkeys(commands, float("inf"))
    for _ in range(ROUNDS):
        for name, command in commands.items():
            began = time.perf_counter()
            subprocess.run([sys.executable, "-c", command], check=True)
            best[name] = min(best[name], time.perf_counter() - began)
    loaded = subprocess.run(
        [sys.executable, "-c", "import setwise, sys; print(len(sys.modules))"],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    bare = best["nothing"]
    yield {
        "ratio": (best["setwise"] - bare) / (best["numpy"] - bare),
        "setwise_milliseconds": 1e3 * (best["setwise"] - bare),
        "numpy_milliseconds": 1e3 * (best["numpy"] - bare),
        "modules_loaded": int(loaded.stdout),
        "rounds": ROUNDS, **machine(),
    }  # fmt: skip
