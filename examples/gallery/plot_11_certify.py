"""
Is what I train consistent with what I report?
==============================================

``certify`` answers with a theorem, or with a distribution for which the loss, even if it is
minimised perfectly, leads to a wrong prediction. Such distributions are not rare: the picture
shows many.
"""

import matplotlib.pyplot as plt
import numpy as np

from setwise.consistency import Distribution, best_in_class, certify, regret
from setwise.spaces import Cube
from setwise.surrogates import Logistic

found = certify("f1", "logistic")
print(found)

# %%
# With a different loss, the answer is different.

print(certify("f1", "mean_absolute_error"))

# %%
# Every point of the triangle is a distribution over three label sets: no label, the first label
# only, both labels. At each point the loss is minimised exactly. If the label set it then predicts
# is not the best for F1, the point is coloured by how much F1 that costs.

sets = np.array([[0, 0], [1, 0], [1, 1]])
loss = Logistic("f1", Cube(2))
steps = 24
points = [
    (i / steps, j / steps, 1 - (i + j) / steps)
    for i in range(steps + 1)
    for j in range(steps + 1 - i)
]
lost = []
for point in points:
    truth = Distribution(sets, point)
    scores = best_in_class(loss, truth).scores
    predicted = Cube(2).most_likely(np.atleast_2d(scores))[0]
    lost.append(regret("f1", Cube(2), truth, predicted))
print(f"wrong on {np.mean(np.array(lost) > 1e-6):.0%} of the triangle, by up to {max(lost):.2f}")

# %%
corners = np.array([[0, 0], [1, 0], [0.5, 0.866]])
place = np.array(points) @ corners
_, axis = plt.subplots(figsize=(6, 5))
drawn = axis.scatter(*place.T, c=lost, cmap="Reds", s=70, edgecolors="0.8", linewidths=0.4)
for corner, name in zip(corners, ["no label", "first label", "both labels"], strict=True):
    up = corner[1] > 0
    axis.text(corner[0], corner[1] + (0.05 if up else -0.08), name, ha="center")
plt.colorbar(drawn, label="F1 lost by minimising the logistic loss perfectly", shrink=0.8)
axis.set_axis_off()
axis.set_aspect("equal")
plt.tight_layout()
plt.show()
