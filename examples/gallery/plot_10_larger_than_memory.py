"""
Files larger than memory
========================

A model remembers how its training file was read: the columns, their order, the categories. The same
``schema`` reads other files in parts, so that predicting needs the memory of one part, whatever the
size of the file. On the command line ``setwise predict`` does the same.
"""

import tempfile
import tracemalloc
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from setwise import SetClassifier
from setwise.datasets import read

rng = np.random.default_rng(0)
weights = rng.normal(size=(8, 4))
moods = np.array(["calm", "dark", "glad", "wild"])
folder = Path(tempfile.mkdtemp())


def written(name, n_rows):
    """A table of songs with their moods in one column."""
    X = rng.normal(size=(n_rows, 8)).round(3)
    Y = X @ weights + rng.normal(size=(n_rows, 4)) > 1.0
    lines = (",".join([*map(str, x), ";".join(moods[y])]) for x, y in zip(X, Y, strict=True))
    header = ",".join([*(f"x{i}" for i in range(8)), "moods"])
    (folder / name).write_text("\n".join([header, *lines, ""]))
    return folder / name


songs = read(written("songs.csv", 1000), label_column="moods", separator=";")
model = SetClassifier("f1").fit(songs.X, songs.Y)

# %%
# ``chunks`` yields the rows of a file in parts of at most so many.


def predicted_in_parts(path, rows=2000):
    """How often each label is predicted, with one part in memory at a time."""
    total = np.zeros(4, dtype=int)
    for part in songs.schema.chunks(path, rows):
        total += model.predict(part.X).sum(axis=0)
    return total


def predicted_at_once(path):
    """The same, with all rows in memory."""
    return model.predict(songs.schema.read(path).X).sum(axis=0)


sizes = [4_000, 8_000, 16_000]
peaks = {predicted_in_parts: [], predicted_at_once: []}
for size in sizes:
    path = written(f"{size}.csv", size)
    answers = []
    for way, peak in peaks.items():
        tracemalloc.start()
        answers.append(way(path))
        peak.append(tracemalloc.get_traced_memory()[1] / 2**20)
        tracemalloc.stop()
    assert (answers[0] == answers[1]).all()
    print(f"{size:6d} rows: {dict(zip(moods.tolist(), answers[0].tolist(), strict=True))}")

# %%
# With all rows at once memory grows with the file; in parts it does not.

_, axis = plt.subplots(figsize=(7, 3.6))
for way, peak in peaks.items():
    axis.plot(sizes, peak, "o-", label=way.__name__.replace("_", " "))
axis.set(xlabel="rows of the file", ylabel="memory at its peak (MB)", ylim=(0, None))
axis.legend()
plt.tight_layout()
plt.show()
