"""
Files larger than memory
========================

``convert`` reads a file a few rows at a time and writes a folder of blocks. Training only needs
sums over blocks, so only a few blocks are in memory at once, and the result does not depend on how
the rows are split into blocks. On the command line, use ``setwise convert``, ``setwise fit`` and
``setwise predict``.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from setwise import SetClassifier
from setwise.blocks import FolderBlocks
from setwise.datasets import convert, read

rng = np.random.default_rng(0)
weights = rng.normal(size=(8, 4))
moods = np.array(["calm", "dark", "glad", "wild"])
folder = Path(tempfile.mkdtemp())
READ = {"label_column": "moods", "separator": ";"}


def written(n_rows):
    """A table of songs with their moods in one column."""
    X = rng.normal(size=(n_rows, 8)).round(3)
    Y = X @ weights + rng.normal(size=(n_rows, 4)) > 1.0
    lines = (",".join([*map(str, x), ";".join(moods[y])]) for x, y in zip(X, Y, strict=True))
    header = ",".join([*(f"x{i}" for i in range(8)), "moods"])
    path = folder / f"{n_rows}.csv"
    path.write_text("\n".join([header, *lines, ""]))
    return path


# %%
# Train on files of growing size, once as a whole and once in blocks of 1,000 rows. The model and
# its predictions are the same.

sizes = [1_000, 2_000, 4_000, 8_000]
in_blocks, at_once = [], []
for size in sizes:
    path = written(size)
    convert(path, folder / f"blocks {size}", rows=1000, **READ)
    blocks = FolderBlocks.open(folder / f"blocks {size}")
    model = SetClassifier("f1").fit(blocks)
    parts = [blocks.load(number).inputs for number in range(len(blocks))]
    whole = read(path, **READ)
    plain = SetClassifier("f1").fit(whole.X, whole.Y)
    same = np.mean(np.vstack([model.predict(part) for part in parts]) == plain.predict(whole.X))
    in_blocks.append(max(part.nbytes for part in parts) / 2**20)
    at_once.append(whole.X.nbytes / 2**20)
    print(f"{size} rows in {len(blocks)} blocks: {same:.2%} of the decisions are the same")

# %%
# If all rows are loaded at once, memory grows with the file; the size of a block does not.

_, axis = plt.subplots(figsize=(7, 3.6))
axis.plot(sizes, at_once, "o-", label="the whole file at once")
axis.plot(sizes, in_blocks, "o-", label="a block of 1,000 rows")
axis.set(xlabel="rows of the file", ylabel="features in memory (MB)", ylim=(0, None))
axis.legend()
plt.tight_layout()
plt.show()
