"""
Boosted trees and a mixture
===========================

If labels depend on the features in a nonlinear way, trees learn more than linear models.
``SetBooster`` grows boosted trees on the exact likelihood of label sets, and ``SetEnsemble`` mixes
several models, with weights found on held-out rows. (They need XGBoost: ``pip install
'setwise[boost]'``.)
"""

import matplotlib.pyplot as plt
import numpy as np

from setwise import SetBooster, SetClassifier, SetEnsemble

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, size=(900, 5))
hidden = np.column_stack(
    [X[:, 0] * X[:, 1] > 0, np.hypot(X[:, 0], X[:, 2]) < 0.6, X[:, 3] > 0.2, X[:, 3] + X[:, 4] > 0]
)
Y = np.where(rng.random(hidden.shape) < 0.1, ~hidden, hidden).astype(int)
X_train, Y_train, X_test, Y_test = X[:600], Y[:600], X[600:], Y[600:]

# %%
linear = SetClassifier("f1", alpha=1e-3)
trees = SetBooster("f1", n_estimators=40, n_jobs=1)
mixture = SetEnsemble("f1", members={"linear": linear, "trees": trees}, cv=3, random_state=0)
scores = {}
for name, model in {"linear": linear, "boosted trees": trees, "mixture": mixture}.items():
    scores[name] = model.fit(X_train, Y_train).score(X_test, Y_test)
    print(f"{name:14s} mean F1 {scores[name]:.3f}")
for part in mixture.contributions_:
    print(part)

# %%
# Two labels are linear in the features and two are not, so the trees get most of the weight. The
# gain of their splits shows which features matter.

_, (left, right) = plt.subplots(1, 2, figsize=(8, 3.2))
left.bar(list(scores), list(scores.values()))
left.set(ylim=(0, 1), title="mean F1 of 300 rows held out")
right.bar([f"x{i}" for i in range(5)], trees.feature_importances_)
right.set(title="gain of the splits of the trees")
plt.tight_layout()
plt.show()
