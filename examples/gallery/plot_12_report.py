"""
A report to send
================

A study trains every method for every measure on the same rows and stores the results in a folder.
``write`` turns them into one HTML file with leaderboards, confidence intervals, labels,
calibration and example rows. The file needs no network and no other files.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from setwise.report import write
from setwise.study import Study, leaderboard

rng = np.random.default_rng(0)
X = rng.normal(size=(240, 6))
Y = (X @ rng.normal(size=(6, 5)) + rng.normal(size=(240, 5)) > 1.0).astype(int)
study = Study(
    X,
    Y,
    methods=["binary_relevance", "catalog"],
    targets=["f1", "hamming"],
    folds=3,
    label_names=["art", "law", "music", "sport", "war"],
)
folder = Path(tempfile.mkdtemp())
results = study.run(folder / "study")
board = leaderboard(results)
print(board)

# %%
page = folder / "report.html"
write(results, page, board=board)
print(f"{page.name}: {page.stat().st_size // 1024} KB")

# %%
# The leaderboards of the report as a picture: the mean loss of each method on held-out rows.

_, axes = plt.subplots(1, 2, figsize=(8, 2.6))
for axis, target in zip(axes, results.targets, strict=True):
    rows = [standing for standing in board if standing.target == target]
    value = np.array([row.value for row in rows])
    reach = [value - [row.low for row in rows], [row.high for row in rows] - value]
    axis.errorbar(value, [row.method for row in rows], xerr=reach, fmt="o", capsize=4)
    axis.set(title=f"mean {target} loss", xlim=(0, None), ylim=(-0.5, len(rows) - 0.5))
    axis.invert_yaxis()
plt.tight_layout()
plt.show()
