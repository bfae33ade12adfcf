"""A tree over very many labels: how it is made, what is trained in it, and the search through it.

Every node stands for the labels of the leaves below it. Its classifier estimates the probability
that one of them is true, given that one below its parent is; the probability of a label is the
product of those on its path (a probabilistic label tree; Jasinska et al., 2016). Products only fall
along a path, so a search that leaves out what is below a node of less than some probability finds
every label above it, exactly. Nodes are numbered level by level: the children of one stand
together, and a row goes through all of them at once.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array, vstack
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import normalize

from setwise.distributions.shortlist import Shortlist
from setwise.estimators.newton import solve_binary_relevance
from setwise.estimators.newton_passes import LANES
from setwise.kernels import inner, kernel
from setwise.sparse import rows_of, tidied
from setwise.targets.measure import Array
from setwise.threads import for_rows
from setwise.validation import real_vector

# Halves are exchanged so often at most.
EXCHANGES = 20
# Bytes that training holds for each label of a batch: a row (label set, curvature, score) and a
# feature (about a dozen numbers).
ROW_BYTES, FEATURE_BYTES = 12, 112
# A search lists more labels by lowering its floor by this factor, down to the least.
LOWER, LOWEST = 0.25, 1e-9
# Entries of a shortlist that there is room for at first, on average.
ROOM = 64


@dataclass(frozen=True, eq=False)
class LabelTree:
    """A trained tree over l labels of N nodes, the root first.

    Parameters
    ----------
    first : array of shape (N + 1,)
        The children of node v are the nodes from first[v] to first[v + 1] - 1.
    label : array of shape (N,)
        The label of a leaf, -1 for other nodes.
    weights : CSR array of shape (n_features, N)
        Weights of the classifier of each node, given that one below its parent is true.
    intercept : array of shape (N,)
    company : array of shape (N,)
        The mean number of true labels below a node, where there is one.
    """

    first: Any
    label: Any
    weights: Any
    intercept: Any
    company: Any

    def __post_init__(self):
        n_nodes = len(self.label)
        first, label = (np.ascontiguousarray(p, np.int64) for p in (self.first, self.label))
        weights = tidied(self.weights, "weights").astype(np.float32)
        numbers = [real_vector(p, n_nodes, "weights") for p in (self.intercept, self.company)]
        grows = len(first) == n_nodes + 1 and (first[1:] >= first[:-1]).all()
        # (Children behind their parents: so no search goes round in circles.)
        is_tree = grows and first[-1] == n_nodes and (first[:-1] > np.arange(n_nodes)).all()
        is_leaf = label >= 0
        named = np.array_equal(np.sort(label[is_leaf]), np.arange(np.count_nonzero(is_leaf)))
        named = named and np.array_equal(np.diff(first) == 0, is_leaf) and first[0] == 1
        if not is_tree or not named or weights.shape[1] != n_nodes:
            raise ValueError("the nodes of a label tree must be numbered level by level")
        vars(self).update(
            first=first, label=label, weights=weights,
            intercept=numbers[0].astype(np.float64), company=numbers[1].astype(np.float64),
        )  # fmt: skip

    @property
    def n_labels(self) -> int:
        """Number of labels."""
        return int(np.count_nonzero(self.label >= 0))

    @property
    def parents(self) -> Array:
        """The parent of each node, -1 for the root, (N,)."""
        return parents_of(self.first)

    def shortlist(self, inputs: Any, floor: float, least: int, unseen: float) -> Shortlist:
        """Every label of a probability of at least ``floor``, of CSR inputs (n, d).

        Rows with fewer than ``least`` such labels list more. Nodes below the floor are entered all
        the same, for the sum of what is there, where their probability times the number of labels
        below is above ``unseen``. Cost: what is entered; it does not depend on the number of labels
        otherwise.
        """
        parts: dict[int, tuple[Any, Array]] = {}
        arrays = _read(self.first, self.label, self.intercept, self.company, self._leaves())
        columns = _read(self.weights.indptr, self.weights.indices, self.weights.data)

        def run(start: int, stop: int) -> None:
            done, tails, found = 0, np.zeros((stop - start, 4)), []
            room = ROOM * (stop - start) + 2 * self.n_labels
            while done < stop - start:
                rows = inputs[start + done : stop]
                ends, labels = np.zeros(rows.shape[0] + 1, np.int64), np.empty(room, np.int32)
                values = np.empty(room, np.float32)
                places = (part.astype(np.int64, copy=False) for part in (rows.indptr, rows.indices))
                given = _read(*places, rows.data.astype(np.float32, copy=False))
                settings = floor, min(least, self.n_labels), unseen
                out = ends, labels, values, tails[done:]
                many = search_rows(given, columns, arrays, *settings, out)
                kept = slice(0, ends[many])
                shape = (many, self.n_labels)
                found.append(csr_array((values[kept], labels[kept], ends[: many + 1]), shape))
                done += many
            parts[start] = vstack(found), tails

        for_rows(run, inputs.shape[0], least=16)
        lists, tails = zip(*(parts[start] for start in sorted(parts)), strict=True)
        table: Any = csr_array(vstack(lists))
        table.sort_indices()
        known, estimated, most, floors = np.concatenate(tails).T
        return Shortlist(table, known + np.minimum(estimated, most), floors, known, known + most)

    def _leaves(self) -> Array:
        """The number of leaves below each node, (N,)."""
        return sums_below((self.label >= 0).astype(np.float64), self.parents)


def _read(*arrays: Array) -> tuple[Array, ...]:
    """The same for reading only: one kernel serves arrays that can be written to or cannot."""
    views = tuple(array.view() for array in arrays)
    for view in views:
        view.flags.writeable = False
    return views


def parents_of(first: Array) -> Array:
    """The parent of each node, -1 for the root."""
    return np.concatenate([[-1], np.repeat(np.arange(len(first) - 1), np.diff(first))])


def sums_below(values: Array, parents: Array) -> Array:
    """The sum of the values of each node and all below it."""
    total = values.copy()
    for node in range(len(total) - 1, 0, -1):
        total[parents[node]] += total[node]
    return total


@kernel
def search_rows(given, columns, arrays, floor, least, unseen, out):
    """Search the tree for each row; returns how many rows there was room for.

    ``given`` and ``columns`` are the parts of the CSR inputs, and of the weights by feature.
    ``out``: ends of the shortlists, their labels and probabilities, and of each row what is known
    of the labels outside (n, 4): the sum of those that were met; of the others an estimate and the
    most it can be; and a probability that all of them are below. Nodes are entered in the order of
    their numbers, so that the weights of a feature are gone through once.
    """
    (ends, places, _), (starts, _, _) = given, columns
    first, label, intercept, company, leaves = arrays
    stops, labels, values, tails = out
    scores = np.empty(np.diff(first).max())
    queue, chances = np.empty(len(label), np.int64), np.empty(len(label))
    ahead = np.empty(np.diff(ends).max(), np.int64)
    for row in range(len(ends) - 1):
        lowest, begun = floor, stops[row]
        while True:
            at, head, tail = begun, 0, 1
            queue[0], chances[0] = 0, 1.0
            known = estimated = most = 0.0
            for k in range(ends[row + 1] - ends[row]):
                ahead[k] = starts[places[ends[row] + k]]
            while head < tail:
                node, chance = queue[head], chances[head]
                low, high, head = first[node], first[node + 1], head + 1
                if at + high - low > len(labels):
                    return row
                _score(given, columns, row, ahead, intercept, low, high, scores)
                for child in range(low, high):
                    p = chance / (1.0 + np.exp(-scores[child - low]))
                    is_leaf = label[child] >= 0
                    if p >= lowest and is_leaf:
                        labels[at], values[at] = label[child], min(p, 1.0)
                        at += 1
                    elif not is_leaf and (p >= lowest or p * leaves[child] > unseen):
                        queue[tail], chances[tail] = child, p
                        tail += 1
                    elif is_leaf:
                        known += p
                    else:
                        estimated += p * company[child]
                        most += p * leaves[child]
            if at - begun >= least or lowest <= LOWEST:
                break
            lowest *= LOWER
        stops[row + 1] = at
        tails[row, 0], tails[row, 1], tails[row, 2] = known, estimated, most
        tails[row, 3] = lowest
    return len(ends) - 1


@inner
def _score(given, columns, row, ahead, intercept, low, high, scores):
    """Scores of the nodes from low to high, of a row; ``ahead`` of its entries moves with them."""
    (ends, places, inputs), (starts, nodes, weights) = given, columns
    for child in range(low, high):
        scores[child - low] = intercept[child]
    for k in range(ends[row + 1] - ends[row]):
        entry = ends[row] + k
        left, last, value, step = ahead[k], starts[places[entry] + 1], inputs[entry], 1
        while left + step < last and nodes[left + step] < low:
            left, step = left + step, 2 * step
        right = min(left + step, last)
        while left < right:
            middle = (left + right) // 2
            if nodes[middle] < low:
                left = middle + 1
            else:
                right = middle
        while left < last and nodes[left] < high:
            scores[nodes[left] - low] += weights[left] * value
            left += 1
        ahead[k] = left


# ------------------------------------------------------------------------------------ the structure


def grown(
    inputs: Any, sets: Any, weights: Array, arity: int, max_leaves: int, seed: int
) -> tuple[Array, Array]:
    """The tree of labels with alike inputs, as ``first`` and ``label`` of `LabelTree`.

    Labels stand for the mean inputs of their rows, by weight. They are halved again and again, by
    two means and in equal parts, until parts have at most ``max_leaves`` labels; the halves that
    are kept leave each node at most ``arity`` children.
    """
    n_labels = sets.shape[1]
    halvings = max(0, int(np.ceil(np.log2(max(n_labels / max_leaves, 1.0)))))
    step, generator = max(1, int(np.log2(arity))), np.random.default_rng(seed)
    counted = sets.astype(np.float32)
    counted.data *= weights[rows_of(sets)]
    features: Any = normalize(csr_array(counted.T) @ inputs, copy=False)
    order, parts = np.arange(n_labels), [np.array([0, n_labels])]
    for halving in range(halvings):
        cuts = [0]
        for start, stop in pairwise(parts[-1]):
            part = order[start:stop]
            order[start:stop] = part[_halved(features[part], generator)]
            cuts += [(start + stop) // 2, stop]
        cuts = np.array(cuts)
        if halving % step == halvings % step and halving:
            parts.append(cuts)
        else:
            parts[-1] = cuts
    return _numbered(parts, order)


def _halved(features: Any, generator: Any) -> Array:
    """The labels in the order of two equal halves, by two means on the sphere."""
    n, half = features.shape[0], features.shape[0] // 2
    side = np.zeros(n, bool)
    side[generator.permutation(n)[:half]] = True
    for _ in range(EXCHANGES):
        means = [np.asarray(features[which].sum(axis=0)).ravel() for which in (side, ~side)]
        one, other = (mean / max(float(np.linalg.norm(mean)), 1e-30) for mean in means)
        gain = features @ (one - other)
        now = np.zeros(n, bool)
        now[np.argsort(-gain, kind="stable")[:half]] = True
        if (now == side).all():
            break
        side = now
    return np.concatenate([np.flatnonzero(side), np.flatnonzero(~side)])


def _numbered(parts: list[Array], order: Array) -> tuple[Array, Array]:
    """Nodes level by level: the root, the ranges of each list of cuts, the labels."""
    inner = [cuts for cuts in parts if len(cuts) > 2]
    levels = [np.array([0, len(order)]), *inner, np.arange(len(order) + 1)]
    first, count = [], 1
    for upper, lower in pairwise(levels):
        first.append(count + np.searchsorted(lower, upper[:-1]))
        count += len(lower) - 1
    label = np.full(count, -1)
    label[count - len(order) :] = order
    return np.concatenate([*first, np.full(len(order) + 1, count)]), label


# ------------------------------------------------------------------------------------- the training


class Settings(NamedTuple):
    """How the classifiers of a tree are trained."""

    penalty: float
    tol: float
    max_iter: int
    least_weight: float
    memory: float


def trained(
    structure: tuple[Array, Array], inputs: Any, sets: Any, row_weights: Array, how: Settings,
    tell: Callable[[int, int], None],
) -> tuple[LabelTree, int]:  # fmt: skip
    """Classifiers for all nodes, and the most steps that a batch of them took.

    They are logistic regressions of the rows that have a label below their parent. Each minimises
    the sum of its rows' losses and penalty / 2 times the squares of its weights; weights below
    ``least_weight`` are dropped. The children of a node are trained together, in as many batches as
    memory asks for.
    """
    first, label = structure
    n_nodes, parents = len(label), parents_of(first)
    reached = _reached(sets, label, parents)
    mass = np.asarray(reached.T @ row_weights)
    own = np.where(label >= 0, mass, 0.0)
    company = np.divide(sums_below(own, parents), mass, out=np.ones(n_nodes), where=mass > 0)
    columns, intercept, found, stopped, steps = reached.tocsc(), np.zeros(n_nodes), [], 0, 1
    batches = list(_batches(first, columns, inputs, how.memory))
    for turn, (rows, low, high) in enumerate(batches):
        tell(turn, len(batches))
        part, used = _narrowed(inputs[rows])
        y_true = np.zeros((len(rows), high - low), np.uint8)
        for child in range(low, high):
            members = columns.indices[columns.indptr[child] : columns.indptr[child + 1]]
            y_true[np.searchsorted(rows, members), child - low] = 1
        weights = row_weights[rows]
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", ConvergenceWarning)
            total = weights.sum()
            settings = how.penalty / total, True, how.tol * _rarest(weights @ y_true, total)
            settings = *settings, how.max_iter
            solution = solve_binary_relevance(part, y_true, weights, *settings)
        stopped, steps = stopped + len(caught), max(steps, solution.n_iter)
        intercept[low:high] = solution.intercept
        kept = np.abs(solution.weights) >= how.least_weight
        feature, child = np.nonzero(kept)
        found.append((solution.weights[kept].astype(np.float32), used[feature], child + low))
    if stopped:
        warnings.warn(
            f"training has not converged for {stopped} of {len(batches)} batches of labels: after "
            f"{how.max_iter} iterations their gradient was above tol = {how.tol:g} times the share "
            f"of the rarest label; raise max_iter or penalty",
            ConvergenceWarning,
            stacklevel=3,
        )
    values, feature, node = (np.concatenate(part) for part in zip(*found, strict=True))
    weights = csr_array((values, (feature, node)), shape=(inputs.shape[1], n_nodes))
    return LabelTree(first, label, weights, intercept, np.maximum(company, 1.0)), steps


def _rarest(mass: Array, total: float) -> float:
    """The share of the rarer state of the rarest label that has both.

    Gradients of mean losses are no larger than that, whatever they are worth.
    """
    rarer = np.minimum(mass, total - mass)
    return float(rarer[rarer > 0.0].min(initial=total)) / total


def _reached(sets: Any, label: Array, parents: Array) -> Any:
    """Which nodes have a true label at or below them, for each row, CSR (n, N)."""
    leaf = np.empty(sets.shape[1], np.int64)
    leaf[label[label >= 0]] = np.flatnonzero(label >= 0)
    entries = [(rows_of(sets), leaf[sets.indices])]
    while len(entries[-1][0]):
        row, node = entries[-1]
        above = parents[node] >= 0
        entries.append((row[above], parents[node[above]]))
    row, node = (np.concatenate(part) for part in zip(*entries, strict=True))
    shape = (sets.shape[0], len(label))
    reached = csr_array((np.ones(len(row)), (row, node)), shape=shape)
    reached.data[:] = 1.0
    return reached


def _batches(
    first: Array, columns: Any, inputs: Any, memory: float
) -> Iterator[tuple[Array, int, int]]:
    """Rows to train on and a range of nodes, children of one, that share them, within memory."""
    for node in np.flatnonzero(np.diff(first)):
        rows = columns.indices[columns.indptr[node] : columns.indptr[node + 1]]
        # All rows at the root: some may have no label.
        rows = np.arange(inputs.shape[0]) if node == 0 else np.sort(rows)
        if not len(rows):
            continue
        features = min(inputs.shape[1], int(np.diff(inputs.indptr)[rows].sum()))
        label_bytes = ROW_BYTES * len(rows) + FEATURE_BYTES * (features + 1)
        batch = max(LANES, int(memory / label_bytes) // LANES * LANES)
        for low in range(first[node], first[node + 1], batch):
            yield rows, low, min(low + batch, int(first[node + 1]))


def _narrowed(inputs: Any) -> tuple[Any, Array]:
    """CSR inputs without features that no row has, and which are left."""
    used = np.unique(inputs.indices)
    places = np.searchsorted(used, inputs.indices).astype(inputs.indices.dtype)
    return csr_array((inputs.data, places, inputs.indptr), (inputs.shape[0], len(used))), used
