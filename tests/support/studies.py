"""Results of studies, made without training: for the tests of reports."""

from dataclasses import replace
from functools import cache

import numpy as np
from scipy import sparse
from scipy.special import expit, logit

from setwise.decoders import MinimumRisk
from setwise.study import KnownTruth, Outcome, Results
from setwise.targets import get_target
from setwise.taxonomy import Taxonomy

LABELS = (
    "Science", "Physics", "Biology", "Genetics", "Arts", "Music",
    "Film", "Sport", "Football", "Tennis", "Politics", "Elections",
)  # fmt: skip
PARENTS = np.array([-1, 0, 0, 2, -1, 4, 4, -1, 7, 7, -1, 10])
TARGETS = ("f1", "hamming", "subset")
# How far each method's log-odds are from the truth, and whether it decodes for the target.
METHODS = {
    "binary relevance": (0.9, False),
    "logistic loss": (0.8, True),
    "mean absolute error": (0.6, True),
    "forest": (0.45, True),
    "catalog": (0.35, True),
}
GUARANTEES = {
    "binary relevance": "Consistent for Hamming loss, label by label; no theorem is known to cover "
    "other targets.",
    "logistic loss": "No theorem is known to cover the logistic loss with one score a label here.",
    "mean absolute error": "Consistent for every target; its regret is at most |Y| times that of "
    "the surrogate. The objective is not convex, and the solver may have stopped short.",
    "forest": "Likelihood and minimum risk: with divergence r, the regret is at most sqrt(2 r) "
    "(Pinsker's inequality).",
    "catalog": "Likelihood and minimum risk: with divergence r, the regret is at most sqrt(2 r) "
    "(Pinsker's inequality), whatever the target.",
}


def law(given_parent):
    """Every label set with each child's parent in it, and its probability in each row."""
    n_labels = given_parent.shape[1]
    sets = (np.arange(2**n_labels)[:, None] >> np.arange(n_labels)) & 1
    child = PARENTS >= 0
    sets = sets[(sets[:, child] <= sets[:, PARENTS[child]]).all(axis=1)]
    probability = np.ones((len(given_parent), len(sets)))
    for label in range(n_labels):
        allowed = 1 if PARENTS[label] < 0 else sets[:, PARENTS[label]]
        chance = given_parent[:, [label]] * allowed
        probability *= np.where(sets[:, label], chance, 1.0 - chance)
    return sets, probability


def losses_for(target, y_pred, sets):
    """The loss of each prediction for each set that may be true, (n, sets)."""
    pairs = len(y_pred), len(sets), sets.shape[1]
    predicted = np.broadcast_to(y_pred[:, None], pairs).reshape(-1, pairs[2])
    true = np.broadcast_to(sets[None], pairs).reshape(-1, pairs[2])
    return get_target(target).loss(predicted, true).reshape(pairs[:2])


@cache
def losses_between(target):
    """Of every set that may be true, for every other."""
    sets, _ = law(np.ones((1, len(PARENTS))))
    return losses_for(target, sets, sets)


@cache
def study(n_rows=360):
    """Five methods and three targets on data whose law is known, with a hierarchy.

    ``best`` is the best among the sets that may be true, which for F1 is not quite the best of all.
    """
    generator = np.random.default_rng(7)
    x = generator.normal(size=(n_rows, 6))
    odds = x @ generator.normal(size=(6, len(LABELS))) - np.where(PARENTS < 0, 0.9, 0.2)
    truth = expit(odds)
    sets, probability = law(truth)
    chosen = (probability.cumsum(axis=1) > generator.random((n_rows, 1))).argmax(axis=1)
    y_true = sets[chosen]
    outcomes, expected, surrogate, bound = [], {}, {}, {}
    for method, (noise, decodes) in METHODS.items():
        own = expit(logit(truth) + noise * generator.normal(size=truth.shape))
        _, own_law = law(own)
        marginals = np.clip(own_law @ sets, 0.0, 1.0)
        divergence = float(
            (probability * np.log(np.maximum(probability, 1e-300) / np.maximum(own_law, 1e-300)))
            .sum(axis=1).mean()
        )  # fmt: skip
        for target in TARGETS:
            y_pred = (marginals > 0.5).astype(int)
            if decodes:
                y_pred = MinimumRisk(target).decode(marginals)
            outcomes.append(
                Outcome(
                    method,
                    target,
                    sparse.csr_array(y_pred),
                    None if "error" in method else marginals.astype(np.float32),
                    GUARANTEES[method],
                    tuple({"alpha": 10.0**-fold, "space": "cube"} for fold in range(3)),
                    tuple(len(method) * 0.05 * (1.5 + fold) for fold in range(3)),
                    (0.004, 0.005, 0.006),
                )
            )
            losses = losses_for(target, y_pred, sets)
            expected[method, target] = float((losses * probability).sum(axis=1).mean())
            if method in ("forest", "catalog"):
                surrogate[method, target] = divergence
                bound[method, target] = float(np.sqrt(2 * divergence))
    best = {
        target: float((probability @ losses_between(target).T).min(axis=1).mean())
        for target in TARGETS
    }
    return Results(
        name="Newsroom topics",
        label_names=LABELS,
        y_true=sparse.csr_array(y_true),
        fold=np.arange(n_rows) % 3,
        n_train=(n_rows * 2 // 3,) * 3,
        targets=TARGETS,
        methods=tuple(METHODS),
        outcomes=tuple(outcomes),
        question={
            "command": "setwise compare topics.csv --targets f1,hamming,subset --folds 3 --seed 7",
            "data": "topics.csv",
            "split": "3 folds, every label spread evenly",
            "seed": 7,
        },
        versions={"setwise": "0.1.0", "python": "3.11.2", "numpy": "2.4.6", "threads": "2"},
        taxonomy=Taxonomy.from_parents(PARENTS, LABELS),
        truth=KnownTruth(best, expected, surrogate, bound),
    )


@cache
def wide(n_labels=2000, n_rows=300, n_methods=6, targets=("f1",)):
    """Many labels, few in a row, with probabilities."""
    generator = np.random.default_rng(3)
    chance = np.minimum(0.4, 2.0 / np.arange(1, n_labels + 1))
    y_true = (generator.random((n_rows, n_labels)) < chance).astype(np.int8)
    outcomes = []
    for method in range(n_methods):
        for target in targets:
            noise = generator.normal(size=y_true.shape)
            probability = expit(3 * y_true + logit(chance) + noise).astype(np.float32)
            y_pred = sparse.csr_array((probability > 0.4).astype(np.int8))
            outcomes.append(
                Outcome(
                    f"method {method}", target, y_pred, probability, "None.", ({},), (1.0,), (0.1,)
                )
            )
    return Results(
        "Many labels",
        tuple(f"label {label}" for label in range(n_labels)),
        sparse.csr_array(y_true),
        np.zeros(n_rows, int),
        (n_rows,),
        tuple(targets),
        tuple(f"method {method}" for method in range(n_methods)),
        tuple(outcomes),
        {"command": "setwise compare wide.arff"},
        {"setwise": "0.1.0"},
    )


def renamed(results, label_names=None, methods=None):
    """The same study with other names of labels or methods."""
    if label_names is not None:
        results = replace(results, label_names=tuple(label_names))
    if methods is not None:
        new = dict(zip(results.methods, methods, strict=True))
        outcomes = tuple(replace(o, method=new[o.method]) for o in results.outcomes)
        results = replace(results, methods=tuple(methods), outcomes=outcomes, truth=None)
    return results
