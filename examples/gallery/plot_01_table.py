"""
Five minutes with a table
=========================

From a data frame with feature columns and 0/1 label columns to predicted label sets, probabilities
and scores with confidence intervals.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from setwise import SetClassifierCV
from setwise.evaluation import evaluate

rng = np.random.default_rng(0)
songs = pd.DataFrame(
    rng.normal(size=(600, 4)).round(2), columns=["tempo", "loudness", "length", "age"]
)
hidden = songs.to_numpy() @ rng.normal(size=(4, 5)) + rng.normal(size=(600, 5))
moods = pd.DataFrame((hidden > 0.8).astype(int), columns=["calm", "dark", "glad", "sad", "wild"])
songs.head(3)

# %%
# Name the measure you are judged by. Penalty, scaling and the space of label sets are chosen by
# cross-validation for that measure.

model = SetClassifierCV("f1", cv=3).fit(songs[:400], moods[:400])
model.predict_sets(songs[400:404])

# %%
# ``evaluate`` computes all common measures, each with a bootstrap confidence interval.

figures = evaluate(
    model.predict(songs[400:]), moods[400:].to_numpy(), probability=model.predict_proba(songs[400:])
)
shown = ["instance f1", "instance jaccard", "micro f1", "macro f1", "subset accuracy"]
for name in shown:
    print(
        f"{name:18s} {figures[name].value:.3f}  [{figures[name].low:.3f}, {figures[name].high:.3f}]"
    )

# %%
# The model says what is proved about its predictions.

print(model.guarantee_)

# %%
_, axis = plt.subplots(figsize=(7, 3))
values = np.array([figures[name].value for name in shown])
reach = np.array([[figures[name].low, figures[name].high] for name in shown]).T
axis.errorbar(values, shown, xerr=abs(reach - values), fmt="o", capsize=4)
axis.set(xlim=(0, 1), xlabel="value on 200 rows held out, with 95 % intervals")
axis.invert_yaxis()
plt.tight_layout()
plt.show()
