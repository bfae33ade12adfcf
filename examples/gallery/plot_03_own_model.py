"""
Keep your model, decide for your measure
========================================

Keep the classifier you have. ``TargetDecoder`` turns its probabilities into the label sets that
are best for your measure; the classifier itself does not change.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_multilabel_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neighbors import KNeighborsClassifier

from setwise import TargetDecoder, get_target

X, Y = make_multilabel_classification(
    900, n_features=30, n_classes=10, n_labels=2, allow_unlabeled=False, random_state=0
)
X_train, Y_train, X_test, Y_test = X[:600], Y[:600], X[600:], Y[600:]
models = {
    "logistic regression": OneVsRestClassifier(LogisticRegression(max_iter=1000)),
    "random forest": RandomForestClassifier(100, random_state=0),
    "nearest neighbours": KNeighborsClassifier(15),
}

# %%
# ``fit`` trains the classifier as usual. ``for_target`` uses the same fit for another measure.

measures = ["f1", "jaccard"]
before, after = np.zeros((2, 3)), np.zeros((2, 3))
for column, model in enumerate(models.values()):
    decoder = TargetDecoder(model, "f1").fit(X_train, Y_train)
    plain = decoder.estimator_.predict(X_test)
    for row, measure in enumerate(measures):
        before[row, column] = 1 - get_target(measure).loss(plain, Y_test).mean()
        after[row, column] = decoder.for_target(measure).score(X_test, Y_test)
print("gain in F1:     ", dict(zip(models, (after - before)[0].round(3).tolist(), strict=True)))
print("gain in Jaccard:", dict(zip(models, (after - before)[1].round(3).tolist(), strict=True)))

# %%
_, axes = plt.subplots(1, 2, figsize=(8, 3.6), sharey=True)
for axis, measure, old, new in zip(axes, measures, before, after, strict=True):
    place = np.arange(3)
    axis.bar(place - 0.2, old, 0.4, label="its own predict")
    axis.bar(place + 0.2, new, 0.4, label=f'TargetDecoder(…, "{measure}")')
    axis.set_xticks(place, [name.replace(" ", "\n") for name in models])
    axis.set(title=f"mean {measure}", ylim=(0, 1))
    axis.legend(loc="upper right")
plt.tight_layout()
plt.show()
