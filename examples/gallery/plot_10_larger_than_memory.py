"""
Files larger than memory
========================

A model remembers how its training file was read: the columns, their order, the categories. The same
``schema`` reads other files in parts, so that predicting needs the memory of one part, whatever the
size of the file. On the command line ``setwise predict`` does the same.
"""

import tempfile
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
# ``chunks`` yields the rows of a file in parts of at most so many. Nothing of a part is kept but
# what is asked of it: here how often each label is predicted.


def predicted_in_parts(path, rows=2000):
    """Counts of the labels predicted, and the largest array of features that was in memory."""
    total, largest = np.zeros(4, dtype=int), 0
    for part in songs.schema.chunks(path, rows):
        total += model.predict(part.X).sum(axis=0)
        largest = max(largest, part.X.nbytes)
    return total, largest


sizes = [2_000, 4_000, 8_000, 16_000]
in_parts, at_once = [], []
for size in sizes:
    path = written(f"{size}.csv", size)
    whole = songs.schema.read(path)
    total, largest = predicted_in_parts(path)
    assert (total == model.predict(whole.X).sum(axis=0)).all()
    in_parts.append(largest / 2**20)
    at_once.append(whole.X.nbytes / 2**20)
    print(f"{size:6d} rows: {dict(zip(moods.tolist(), total.tolist(), strict=True))}")

# %%
# With all rows at once the features in memory grow with the file; in parts they do not.

_, axis = plt.subplots(figsize=(7, 3.6))
axis.plot(sizes, at_once, "o-", label="the whole file at once")
axis.plot(sizes, in_parts, "o-", label="in parts of 2,000 rows")
axis.set(xlabel="rows of the file", ylabel="features in memory (MB)", ylim=(0, None))
axis.legend()
plt.tight_layout()
plt.show()
