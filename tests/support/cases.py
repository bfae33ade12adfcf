"""The examples every law runs on: each space and each target of the package beside its oracle.

A case keeps the arguments it was built from, so that the package's object, the oracle's description
and the same case under another order of the labels all come from one place. `SPACES` and `TARGETS`
map a name to a builder that draws the arguments from a generator; `PAIRS` are the combinations that
must be exact.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from setwise.spaces import SPACES as REGISTRY
from setwise.spaces import Backoff, Catalog, Cube, Forest, Paths, Sized, Slice
from setwise.targets import (
    BalancedAccuracy,
    CostSensitive,
    CountTarget,
    FBeta,
    GMean,
    Hamming,
    Jaccard,
    LinearFractional,
    Precision,
    PrecisionAtK,
    Recall,
    RecallAtK,
    TableTarget,
    TreeDistance,
    ZeroOne,
)
from tests.support import oracle

# ------------------------------------------------------------------- one case and its permutations


def permuted_parents(parents, order):
    """Parents after the labels are listed in `order` (new label j was label order[j])."""
    new_of_old = {int(old): new for new, old in enumerate(order)}
    return [new_of_old[parents[old]] if parents[old] >= 0 else -1 for old in order]


PERMUTATIONS: dict[str, Callable] = {
    "parents": permuted_parents,
    "potentials": lambda values, order: None if values is None else np.asarray(values)[order],
    "weights": lambda values, order: None if values is None else np.asarray(values)[order],
    "miss": lambda values, order: np.asarray(values)[order],
    "false_alarm": lambda values, order: np.asarray(values)[order],
    "lengths": lambda values, order: None if values is None else np.asarray(values)[order],
    "sets": lambda sets, order: np.asarray(sets)[:, order],
    "favoured": lambda sets, order: np.asarray(sets)[:, order],
}


def permuted_arguments(arguments: dict, order) -> dict:
    """What belongs to a label moves with it; everything else stays."""
    return {
        name: PERMUTATIONS[name](value, order) if name in PERMUTATIONS else value
        for name, value in arguments.items()
    }


@dataclass(frozen=True)
class SpaceCase:
    """A space of the package, and the same space enumerated."""

    make: Callable
    describe: Callable
    arguments: dict
    on_paths: bool = False

    @cached_property
    def space(self):
        return self.make(**self.arguments)

    @cached_property
    def oracle(self) -> oracle.Space:
        return self.describe(**self.arguments)

    @property
    def n_labels(self) -> int:
        return self.oracle.sets.shape[1]

    @property
    def n_scores(self) -> int:
        return len(self.arguments["sets"]) if self.joint else self.n_labels

    @property
    def joint(self) -> bool:
        return self.arguments.get("joint", False)

    def permuted(self, order) -> SpaceCase:
        arguments = permuted_arguments(self.arguments, order)
        return SpaceCase(self.make, self.describe, arguments, self.on_paths)


@dataclass(frozen=True)
class TargetCase:
    """A target of the package, and its definition."""

    make: Callable
    describe: Callable
    arguments: dict

    @cached_property
    def target(self):
        return self.make(**self.arguments)

    def oracle_on(self, case: SpaceCase) -> oracle.Target:
        """The definition on a space: tree distance is divided by the diameter on paths."""
        if self.describe is oracle.tree_distance and case.on_paths:
            lengths = self.arguments["lengths"]
            lengths = np.ones(case.n_labels) if lengths is None else lengths
            return self.describe(
                **self.arguments, normaliser=oracle.diameter(case.oracle.sets, lengths)
            )
        return self.describe(**self.arguments)

    def permuted(self, order) -> TargetCase:
        return TargetCase(self.make, self.describe, permuted_arguments(self.arguments, order))


# ------------------------------------------------------------------------------------------- spaces


def with_infinities(values, rng, keep) -> np.ndarray:
    """About a fifth of the values become minus infinity, never those at `keep`."""
    values = np.array(values, dtype=float)
    lost = rng.random(values.shape) < 0.2
    lost[keep] = False
    values[lost] = -np.inf
    return values


def random_parents(n_labels: int, rng, n_roots: int = 1) -> list[int]:
    """A random forest in a random order of the labels."""
    parents = [-1 if node < n_roots else int(rng.integers(-1, node)) for node in range(n_labels)]
    return permuted_parents(parents, rng.permutation(n_labels))


def random_potentials(parents, rng, infinite: bool) -> np.ndarray:
    """Potentials of size one; where some are minus infinity, one random label set stays possible.

    The rows of the roots mean nothing, so they hold numbers that would show if they were used.
    """
    potentials = rng.normal(size=(len(parents), 2, 2))
    if infinite:
        states = rng.integers(0, 2, size=len(parents))
        possible = np.zeros(potentials.shape, dtype=bool)
        for child, parent in enumerate(parents):
            possible[child, states[child], states[parent]] = True
        potentials = with_infinities(potentials, rng, possible)
    potentials[[child for child, parent in enumerate(parents) if parent < 0]] = 7.0
    return potentials


def random_sets(n_labels: int, rng, size: int | None = None) -> np.ndarray:
    """Between two and twelve different label sets in random order, all of one size if asked."""
    sets = oracle.all_sets(n_labels) if size is None else oracle.slice_of(n_labels, size).sets
    n_sets = int(rng.integers(2, min(12, len(sets)) + 1))
    return sets[rng.permutation(len(sets))[:n_sets]]


def cube(n_labels, rng):
    return SpaceCase(Cube, oracle.cube, {"n_labels": n_labels})


def sized(n_labels, rng):
    keep = rng.integers(0, n_labels + 1)
    bias = with_infinities(rng.normal(scale=2, size=n_labels + 1), rng, keep)
    return SpaceCase(Sized, oracle.sized, {"n_labels": n_labels, "bias": bias})


def sized_up_to(n_labels, rng):
    """A bias shorter than the labels: larger sets are impossible."""
    bias = rng.normal(scale=2, size=int(rng.integers(2, n_labels + 1)))
    return SpaceCase(Sized, oracle.sized, {"n_labels": n_labels, "bias": bias})


def slice_of(n_labels, rng):
    size = int(rng.integers(1, n_labels))
    return SpaceCase(Slice, oracle.slice_of, {"n_labels": n_labels, "size": size})


def chain(n_labels, rng):
    parents = list(range(-1, n_labels - 1))
    potentials = random_potentials(parents, rng, infinite=bool(rng.integers(2)))
    return SpaceCase(Forest, oracle.forest, {"parents": parents, "potentials": potentials})


def chain_without_potentials(n_labels, rng):
    return SpaceCase(
        Forest, oracle.forest, {"parents": list(range(-1, n_labels - 1)), "potentials": None}
    )


def tree(n_labels, rng):
    parents = random_parents(n_labels, rng)
    potentials = random_potentials(parents, rng, infinite=True)
    return SpaceCase(Forest, oracle.forest, {"parents": parents, "potentials": potentials})


def hierarchy(n_labels, rng):
    parents = random_parents(n_labels, rng)
    return SpaceCase(
        Forest, oracle.forest, {"parents": parents, "potentials": None, "closed": True}
    )


def hierarchy_with_potentials(n_labels, rng):
    parents = random_parents(n_labels, rng)
    potentials = random_potentials(parents, rng, infinite=False)
    return SpaceCase(
        Forest, oracle.forest, {"parents": parents, "potentials": potentials, "closed": True}
    )


def paths(n_labels, rng):
    return SpaceCase(
        Paths, oracle.paths, {"parents": random_parents(n_labels, rng), "leaves_only": False}, True
    )


def leaf_paths(n_labels, rng):
    parents = random_parents(n_labels, rng, n_roots=2)
    return SpaceCase(Paths, oracle.paths, {"parents": parents, "leaves_only": True}, True)


def _catalog(n_labels, rng, joint, size=None):
    sets = random_sets(n_labels, rng, size)
    bias = with_infinities(rng.normal(size=len(sets)), rng, rng.permutation(len(sets))[:2])
    return SpaceCase(Catalog, oracle.catalog, {"sets": sets, "bias": bias, "joint": joint})


def catalog(n_labels, rng):
    return _catalog(n_labels, rng, joint=False)


def catalog_without_bias(n_labels, rng):
    return SpaceCase(
        Catalog, oracle.catalog, {"sets": random_sets(n_labels, rng), "bias": None, "joint": False}
    )


def joint_catalog(n_labels, rng):
    return _catalog(n_labels, rng, joint=True)


def joint_catalog_without_bias(n_labels, rng):
    return SpaceCase(
        Catalog, oracle.catalog, {"sets": random_sets(n_labels, rng), "bias": None, "joint": True}
    )


def sized_at_one_size(n_labels, rng):
    bias = np.full(n_labels + 1, -np.inf)
    bias[rng.integers(1, n_labels)] = rng.normal()
    return SpaceCase(Sized, oracle.sized, {"n_labels": n_labels, "bias": bias})


def catalog_of_one_size(n_labels, rng):
    return _catalog(n_labels, rng, joint=False, size=int(rng.integers(1, n_labels)))


def joint_catalog_of_one_size(n_labels, rng):
    return _catalog(n_labels, rng, joint=True, size=int(rng.integers(1, n_labels)))


def backoff_to(base: Callable) -> Callable:
    """Some sets of a space with a bonus each, of which some are 0."""

    def case(n_labels, rng):
        own = base(n_labels, rng)
        n_sets = int(rng.integers(1, min(8, own.oracle.size) + 1))
        favoured = own.oracle.sets[rng.permutation(own.oracle.size)[:n_sets]]
        bonus = rng.exponential(2.0, n_sets) * (rng.random(n_sets) < 0.8)
        return SpaceCase(
            lambda favoured, bonus, **rest: Backoff(own.make(**rest), favoured, bonus),
            lambda favoured, bonus, **rest: oracle.backoff(own.describe(**rest), favoured, bonus),
            own.arguments | {"favoured": favoured, "bonus": bonus},
            own.on_paths,
        )

    return case


SPACES: dict[str, Callable] = {
    "cube": cube,
    "sized": sized,
    "sized up to": sized_up_to,
    "slice": slice_of,
    "chain": chain,
    "chain without potentials": chain_without_potentials,
    "tree": tree,
    "hierarchy": hierarchy,
    "hierarchy with potentials": hierarchy_with_potentials,
    "paths": paths,
    "leaf paths": leaf_paths,
    "catalog": catalog,
    "catalog without bias": catalog_without_bias,
    "joint catalog": joint_catalog,
    "joint catalog without bias": joint_catalog_without_bias,
    "backoff to cube": backoff_to(cube),
    "backoff to sized": backoff_to(sized),
    "backoff to tree": backoff_to(tree),
    "backoff to paths": backoff_to(paths),
}


def registered(make: Callable) -> Callable:
    """A case of a kind of space that has no definition of its own here: described by itself."""

    def case(n_labels, rng):
        parents = random_parents(n_labels, rng)
        return SpaceCase(
            lambda parents: make(np.array(parents)),
            lambda parents: oracle.by_itself(make(np.array(parents))),
            {"parents": parents},
        )

    return case


# The kinds of the registry, each defined above in several variants; any other is added.
DEFINED = {"cube", "slice", "sized", "chain", "closed", "paths", "list", "backoff"}
SPACES |= {name: registered(make) for name, make in REGISTRY.items() if name not in DEFINED}

ONE_SIZE_SPACES: dict[str, Callable] = {
    "slice": slice_of,
    "sized at one size": sized_at_one_size,
    "catalog of one size": catalog_of_one_size,
    "joint catalog of one size": joint_catalog_of_one_size,
    "backoff of one size": backoff_to(sized_at_one_size),
}

FOREST_NAMES = (
    "chain",
    "chain without potentials",
    "tree",
    "hierarchy",
    "hierarchy with potentials",
    "backoff to tree",
)
PATHS_NAMES = ("paths", "leaf paths", "backoff to paths")
CONSTANT_PARAMETERS = (
    "cube",
    "slice",
    "paths",
    "leaf paths",
)  # nothing to train: any parameter gradient is zero


# ------------------------------------------------------------------------------------------ targets


def target_builder(make, describe, **arguments):
    """A target that does not depend on the draw."""
    return lambda rng, case: TargetCase(make, describe, arguments)


def fraction(numerator, denominator, empty=1.0):
    return target_builder(
        LinearFractional,
        oracle.linear_fractional,
        numerator=numerator,
        denominator=denominator,
        empty=empty,
    )


def weighted_hamming(rng, case):
    return TargetCase(
        Hamming, oracle.hamming, {"weights": rng.uniform(0.1, 3.0, size=case.n_labels)}
    )


def cost_sensitive(rng, case):
    miss, false_alarm = rng.uniform(0.0, 3.0, size=(2, case.n_labels))
    costs = {"miss": miss, "false_alarm": false_alarm}
    return TargetCase(CostSensitive, oracle.cost_sensitive, costs)


def f_of_random_beta(rng, case):
    beta, empty = float(rng.uniform(0.2, 3.0)), float(rng.uniform())
    return TargetCase(FBeta, oracle.f_beta, {"beta": beta, "empty": empty})


def random_fraction(rng, case):
    """Real coefficients with 0 <= numerator <= denominator, coefficient by coefficient."""
    denominator = rng.uniform(0.05, 2.0, size=5)
    numerator = denominator * rng.uniform(0.0, 1.0, size=5)
    return fraction(tuple(numerator), tuple(denominator))(rng, case)


def own_parents(rng, case):
    """The hierarchy of the space where it has one, otherwise a random one."""
    return case.arguments.get("parents") or random_parents(case.n_labels, rng)


def tree_distance(rng, case):
    lengths = rng.uniform(0.2, 2.0, size=case.n_labels)
    return TargetCase(
        TreeDistance, oracle.tree_distance, {"parents": own_parents(rng, case), "lengths": lengths}
    )


def uneven_tree_distance(rng, case):
    """Edges of which some are a thousand times as long as others."""
    lengths = 10.0 ** rng.uniform(-3.0, 0.0, size=case.n_labels)
    return TargetCase(
        TreeDistance, oracle.tree_distance, {"parents": own_parents(rng, case), "lengths": lengths}
    )


def tree_distance_in_edges(rng, case):
    return TargetCase(
        TreeDistance, oracle.tree_distance, {"parents": own_parents(rng, case), "lengths": None}
    )


def table(rng, case):
    """Random losses for every pair of label sets: not symmetric, not zero on the diagonal."""
    sets = oracle.all_sets(case.n_labels)
    sets = sets[rng.permutation(len(sets))]
    return TargetCase(
        TableTarget, oracle.table, {"sets": sets, "losses": rng.random((len(sets), len(sets)))}
    )


def geometric_mean_loss(tp, fp, fn, tn):
    """1 - sqrt(sensitivity x specificity), with 0/0 = 1."""
    tp, fp, fn, tn = (np.asarray(count, dtype=float) for count in (tp, fp, fn, tn))
    true, false = tp + fn, tn + fp
    sensitivity = np.where(true > 0, tp / np.where(true > 0, true, 1.0), 1.0)
    specificity = np.where(false > 0, tn / np.where(false > 0, false, 1.0), 1.0)
    return 1.0 - np.sqrt(sensitivity * specificity)


def squared_error_share(tp, fp, fn, tn):
    """((fp + 2 fn) / 2 l)^2: convex in the errors and not symmetric."""
    return ((fp + 2.0 * fn) / (2.0 * (tp + fp + fn + tn))) ** 2


def more_than_one_error(tp, fp, fn, tn):
    """1 where two or more labels are wrong."""
    return np.asarray(fp + fn > 1, dtype=float)


TARGETS: dict[str, Callable] = {
    "hamming": target_builder(Hamming, oracle.hamming),
    "weighted hamming": weighted_hamming,
    "cost-sensitive": cost_sensitive,
    "f1": target_builder(FBeta, oracle.f_beta),
    "f2": target_builder(FBeta, oracle.f_beta, beta=2.0),
    "f0.5": target_builder(FBeta, oracle.f_beta, beta=0.5),
    "f1 empty 0": target_builder(FBeta, oracle.f_beta, empty=0.0),
    "f of random beta": f_of_random_beta,
    "jaccard": target_builder(Jaccard, oracle.jaccard),
    "jaccard empty 0": target_builder(Jaccard, oracle.jaccard, empty=0.0),
    "subset": target_builder(ZeroOne, oracle.subset),
    "precision": fraction((0, 0, 1, 0, 0), (0, 1, 1, 0, 0)),
    "precision of rows": target_builder(Precision, oracle.precision),
    "recall of rows": target_builder(Recall, oracle.recall),
    "recall": fraction((0, 0, 0, 1, 0), (0, 1, 0, 1, 0)),
    "specificity": fraction((0, 0, 1, 0, 0), (0, 0, 1, 0, 1)),
    "negative predictive value": fraction((0, 0, 0, 1, 0), (0, 0, 0, 1, 1), empty=0.5),
    "accuracy": fraction((0, 0, 1, 1, 0), (0, 1, 1, 1, 1)),
    "f1 of the negatives": fraction((0, 0, 1, 1, 0), (0, 0, 1, 1, 2)),
    "tversky": fraction((0, 0, 0.3, 0.7, 0), (0, 1, 0.3, 0.7, 0)),
    "smoothed f1": fraction((0, 0, 1, 1, 0), (1, 2, 1, 1, 0)),
    "mixed signs": fraction((0, 0, 1, 1, 0), (0, 3, 1, 1, 2)),
    "irrational": fraction(
        (0.1, 0, 2**0.5, np.pi / 2, 0.2), (0.5, np.e, 2**0.5 + 0.1, np.pi / 2, 5**-0.5)
    ),
    "random fraction": random_fraction,
    "tree distance": tree_distance,
    "tree distance in edges": tree_distance_in_edges,
    "geometric mean": target_builder(CountTarget, oracle.counts, function=geometric_mean_loss),
    "squared error share": target_builder(CountTarget, oracle.counts, function=squared_error_share),
    "more than one error": target_builder(CountTarget, oracle.counts, function=more_than_one_error),
    "balanced accuracy": target_builder(BalancedAccuracy, oracle.balanced_accuracy),
    "g-mean": target_builder(GMean, oracle.g_mean),
    "table": table,
}

COUNT_NAMES = (
    "geometric mean", "squared error share", "more than one error", "balanced accuracy", "g-mean",
)  # fmt: skip
TREE_NAMES = ("tree distance", "tree distance in edges")


def only_size(case: SpaceCase) -> int:
    """The size all label sets of the space share."""
    return int(case.oracle.sets[0].sum())


def precision_at_k(rng, case):
    return TargetCase(PrecisionAtK, oracle.precision_at_k, {"k": only_size(case)})


def recall_at_k(rng, case):
    return TargetCase(RecallAtK, oracle.recall_at_k, {"k": only_size(case)})


def recall_at_k_empty_0(rng, case):
    return TargetCase(RecallAtK, oracle.recall_at_k, {"k": only_size(case), "empty": 0.0})


AT_K_TARGETS: dict[str, Callable] = {
    "precision@k": precision_at_k,
    "recall@k": recall_at_k,
    "recall@k empty 0": recall_at_k_empty_0,
}

EVERY_TARGET = TARGETS | AT_K_TARGETS
EVERY_SPACE = SPACES | ONE_SIZE_SPACES

# A function of the counts need not be exact on a forest; test_surrogates accepts a refusal there.
PAIRS = [
    (target, space)
    for target in TARGETS
    for space in SPACES
    if not (target in COUNT_NAMES and space in FOREST_NAMES)
] + [(target, space) for target in AT_K_TARGETS for space in ONE_SIZE_SPACES]

MOST_LABELS = {"table": 5}


def by_space(pairs) -> list[tuple[str, tuple[str, ...]]]:
    """Each space with its targets, those of few labels apart: laws draw once for all of them."""
    found: dict[tuple[str, int | None], list[str]] = {}
    for target, space in pairs:
        found.setdefault((space, MOST_LABELS.get(target)), []).append(target)
    return [(space, tuple(targets)) for (space, _), targets in found.items()]


def pair_id(pair: tuple[str, str]) -> str:
    return " on ".join(pair)


def group_id(group: tuple[str, tuple[str, ...]]) -> str:
    space, targets = group
    return f"{len(targets)} targets on {space}"
