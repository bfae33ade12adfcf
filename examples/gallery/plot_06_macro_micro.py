"""
Macro and micro F1
==================

Micro and macro averages are computed from the decisions in all rows together, so a single row has
no best label set. Instead, setwise finds the best thresholds for the measure, on held-out rows.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import f1_score

from setwise import SetClassifierCV

rng = np.random.default_rng(3)
rare = np.linspace(0.3, 2.4, 8)  # the later a label, the rarer it is
X = rng.normal(size=(1500, 6))
Y = (X @ rng.normal(size=(6, 8)) * 0.6 + rng.normal(size=(1500, 8)) > rare).astype(int)
X_train, Y_train, X_test, Y_test = X[:900], Y[:900], X[900:], Y[900:]
print("share of rows with each label:", Y.mean(axis=0).round(2))

# %%
# One fit, three ways to decide: the learnt probabilities are the same, only the thresholds change.

model = SetClassifierCV("macro_f1", cv=3).fit(X_train, Y_train)
chances = model.predict_proba(X_test)
predictions = {
    "cut at 0.5": chances > 0.5,
    "for micro F1": model.for_target("micro_f1").predict(X_test),
    "for macro F1": model.predict(X_test),
}
for name, predicted in predictions.items():
    scores = [f1_score(Y_test, predicted, average=a, zero_division=0) for a in ("micro", "macro")]
    print(f"{name:14s} micro F1 {scores[0]:.3f}   macro F1 {scores[1]:.3f}")

# %%
# With a cut at 0.5, rare labels are hardly ever predicted. Macro F1 counts them as much as
# frequent labels, and micro F1 benefits from them as well.

_, axis = plt.subplots(figsize=(7.5, 3.6))
for offset, (name, predicted) in zip((-0.27, 0, 0.27), predictions.items(), strict=True):
    each = f1_score(Y_test, predicted, average=None, zero_division=0)
    axis.bar(np.arange(8) + offset, each, 0.27, label=name)
axis.set_xticks(range(8), [f"{share:.0%}" for share in Y.mean(axis=0)])
axis.set(xlabel="labels, by the share of rows that have them", ylabel="F1 of the label")
axis.legend()
plt.tight_layout()
plt.show()
