"""
Is what I train consistent for what I report?
=============================================

``certify`` answers with a theorem, or with a distribution on which the loss, minimised perfectly,
leads to a wrong prediction. Such distributions are not freaks: here is a whole triangle of them.
"""

import matplotlib.pyplot as plt
import numpy as np

from setwise.consistency import Distribution, best_in_class, certify, regret
from setwise.spaces import Cube
from setwise.surrogates import Logistic

found = certify("f1", "logistic")
print(found)

# %%
# The same question with a different loss has a different answer.

print(certify("f1", "mean_absolute_error"))

# %%
# Every point of the triangle is a distribution over three label sets: none, the first label alone,
# both labels. The loss is minimised exactly at each; where the most likely set of the minimiser is
# not the best for F1, the point is coloured by what that costs.

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
