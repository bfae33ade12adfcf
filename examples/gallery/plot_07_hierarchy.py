"""
Labels in a hierarchy
=====================

If every dog is an animal, predictions should respect that, and mistaking a dog for a cat should
cost less than mistaking it for a car. A ``Taxonomy`` says which label implies which;
``TreeDistance`` measures how far apart two label sets are in the tree.
"""

import matplotlib.pyplot as plt
import numpy as np

from setwise import SetClassifier, Taxonomy
from setwise.evaluation import by_level
from setwise.targets import TreeDistance

children = {
    "animal": ["cat", "dog"],
    "dog": ["poodle", "terrier"],
    "vehicle": ["car", "bike"],
    "car": ["taxi", "van"],
}
edges = [(parent, child) for parent in children for child in children[parent]]
taxonomy = Taxonomy.from_edges(edges)
print(taxonomy)

rng = np.random.default_rng(0)
leaves = [name for name in taxonomy.names if name not in {above for above, _ in edges}]
centre = {name: rng.normal(size=6) for name in taxonomy.names}
above = {below: name for name, below in edges}


def place(leaf):
    """Near the centre of a leaf, which is near that of what stands above it."""
    total, name = 0, leaf
    while name is not None:
        total, name = total + centre[name], above.get(name)
    return total


ends = rng.choice(leaves, size=900)
X = np.array([place(leaf) for leaf in ends]) + 1.6 * rng.normal(size=(900, 6))
Y = taxonomy.close(
    np.array([[name == leaf for name in taxonomy.names] for leaf in ends], dtype=int)
)

# %%
# Every prediction is consistent with the tree: nothing is a poodle without being a dog. Deeper
# labels are less certain, so a prediction stops where going deeper would cost more than it gains.

target = TreeDistance(taxonomy)
model = SetClassifier(target).fit(X[:600], Y[:600])
predicted = model.predict(X[600:])
assert taxonomy.is_closed(predicted).all()
print(model.space_, "|", "mean distance", round(float(target.loss(predicted, Y[600:]).mean()), 3))
print(model.predict_sets(X[600:604], most_specific=True))

# %%
levels = by_level(predicted, Y[600:], taxonomy)
_, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), width_ratios=[2, 1])
depth = dict(zip(taxonomy.names, taxonomy.levels, strict=True))
x = {leaf: place for place, leaf in enumerate(leaves)}
for name in sorted(taxonomy.names, key=lambda name: -depth[name]):
    x.setdefault(name, np.mean([x[child] for parent, child in edges if parent == name] or 0))
share = dict(zip(taxonomy.names, predicted.mean(axis=0), strict=True))
for parent, child in edges:
    left.plot([x[parent], x[child]], [-depth[parent], -depth[child]], color="0.7", zorder=1)
for name in taxonomy.names:
    left.text(
        x[name],
        -depth[name],
        f"{name}\n{share[name]:.0%}",
        ha="center",
        va="center",
        bbox={"boxstyle": "round", "facecolor": plt.cm.Blues(0.15 + share[name] / 2)},
    )
left.set_axis_off()
left.set(xlim=(-0.8, len(leaves) - 0.2), ylim=(-2.5, 0.5), title="share of rows predicted so")
right.bar([f"level {level}" for level in range(len(levels.f1))], levels.f1)
right.set(ylim=(0, 1), title="F1 of each level")
plt.tight_layout()
plt.show()
