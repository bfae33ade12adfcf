"""
Text: TF-IDF and a linear model
===============================

Tag short texts with a ``TfidfVectorizer`` and a ``SetClassifier`` in one pipeline. The features
stay sparse, and the tags are plain lists of words.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline

from setwise import SetClassifier

words = {
    "economy": ["bank", "market", "trade", "price", "tax", "debt", "growth", "wage"],
    "health": ["doctor", "hospital", "virus", "nurse", "vaccine", "diet", "sleep", "heart"],
    "politics": ["vote", "party", "law", "minister", "reform", "campaign", "senate", "treaty"],
    "science": ["study", "cell", "planet", "data", "energy", "model", "physics", "gene"],
    "sport": ["match", "team", "goal", "coach", "league", "race", "medal", "player"],
}
tags = sorted(words)
filler = [
    "the",
    "new",
    "says",
    "after",
    "first",
    "people",
    "time",
    "report",
    "year",
    "city",
    "today",
    "plan",
]
rng = np.random.default_rng(0)


def article():
    """A dozen words: most from the subjects of the article, the rest from anywhere."""
    chosen = rng.choice(tags, size=rng.choice([1, 2, 3], p=[0.5, 0.35, 0.15]), replace=False)
    subject = [word for tag in chosen for word in words[tag]]
    text = [*rng.choice(subject, 7), *rng.choice(filler, 8), rng.choice(words[rng.choice(tags)])]
    return " ".join(text), sorted(chosen.tolist())


texts, labels = zip(*(article() for _ in range(800)), strict=True)
print(texts[0], "→", labels[0])

# %%
model = make_pipeline(TfidfVectorizer(), SetClassifier("f1", scaling="rows"))
model.fit(texts[:600], labels[:600])
print("mean F1 on 200 texts held out:", round(model.score(texts[600:], labels[600:]), 3))
rows = model[:-1].transform(["vaccine trade deal lifts market", "minister visits hospital ward"])
print(model[-1].predict_sets(rows))

# %%
# The weights show which words are evidence for a tag.

names = np.array(model[0].get_feature_names_out())
weights = model[-1].coef_
_, axes = plt.subplots(1, 5, figsize=(10, 3))
for axis, tag, row in zip(axes, tags, weights, strict=True):
    top = np.argsort(row)[-6:]
    axis.barh(names[top], row[top])
    axis.set_title(tag)
    axis.set_xticks([])
plt.tight_layout()
plt.show()
