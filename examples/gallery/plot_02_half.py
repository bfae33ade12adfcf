"""
What F1 costs you at 0.5
========================

Most classifiers predict the labels whose probability is above 0.5. That is best for the accuracy
of each label, but not for F1, *even if the probabilities are perfect*. Here they are perfect,
because the labels are drawn from them.
"""

import matplotlib.pyplot as plt
import numpy as np

from setwise import get_target
from setwise.decoders import MinimumRisk

rng = np.random.default_rng(0)
talkative = rng.normal(-2.0, 1.5, size=(4000, 1))  # some rows have many labels, most have few
probability = 1 / (1 + np.exp(-(talkative + rng.normal(size=(4000, 12)))))
Y = (rng.random(probability.shape) < probability).astype(int)
f1 = get_target("f1")

# %%
# No single threshold is as good as deciding row by row, because the best threshold for a row
# depends on all its probabilities.

thresholds = np.linspace(0.05, 0.8, 31)
cut = [1 - f1.loss(probability > t, Y).mean() for t in thresholds]
decided = 1 - f1.loss(MinimumRisk("f1").decode(probability), Y).mean()
half = 1 - f1.loss(probability > 0.5, Y).mean()
print(f"cut at 0.5 {half:.3f}   best threshold {max(cut):.3f}   MinimumRisk {decided:.3f}")

# %%
_, axis = plt.subplots(figsize=(7, 4))
axis.plot(thresholds, cut, label="one threshold for all")
axis.axhline(decided, color="C1", label="MinimumRisk('f1'), row by row")
axis.plot([0.5], [half], "o", color="C0")
axis.annotate("cut at 0.5", (0.5, half), xytext=(0.53, half + 0.01))
axis.set(xlabel="threshold", ylabel="mean F1 of 4,000 rows")
axis.legend(loc="lower left")
plt.tight_layout()
plt.show()
