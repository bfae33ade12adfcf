"""
Which measure, which decision
=============================

One row, one distribution over its label sets, six measures: six different best predictions. So the
best prediction is not defined until you name the measure.
"""

import matplotlib.pyplot as plt
import numpy as np

from setwise.consistency import Distribution, bayes, risks
from setwise.spaces import Cube, Slice

names = ["art", "law", "music", "news", "war"]
truth = Distribution(
    [[0, 0, 0, 0, 1], [0, 0, 0, 1, 0], [0, 1, 1, 1, 0], [1, 1, 0, 1, 0]], [0.35, 0.25, 0.10, 0.30]
)
print(truth)
print(
    "probability of each label:", dict(zip(names, truth.marginals().round(2).tolist(), strict=True))
)

# %%
# ``bayes`` compares all label sets (for precision@2, those with two labels) and returns the one
# with the smallest expected loss.

measures = dict.fromkeys(["hamming", "subset", "f1", "f2", "jaccard"], Cube(5))
measures["precision@2"] = Slice(5, 2)
best = np.array([bayes(measure, space, truth) for measure, space in measures.items()])
for (measure, space), row in zip(measures.items(), best, strict=True):
    chosen = [name for name, one in zip(names, row, strict=True) if one]
    print(f"{measure:12s} {', '.join(chosen):24s} loss {risks(measure, space, truth).min():.3f}")

# %%
_, axis = plt.subplots(figsize=(6, 3.6))
axis.imshow(best, cmap="Blues", vmax=1.6)
for (row, column), one in np.ndenumerate(best):
    if one:
        axis.text(column, row, "✓", ha="center", va="center", fontsize=13)
chance = [f"{name}\n{p:.0%}" for name, p in zip(names, truth.marginals(), strict=True)]
axis.set_xticks(range(5), chance)
axis.set_yticks(range(6), list(measures))
axis.set_title("The best label set of the same row")
plt.tight_layout()
plt.show()
