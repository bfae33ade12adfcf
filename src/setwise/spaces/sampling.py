"""A uniform sample of the label sets of a space too large to list."""

from __future__ import annotations

import numpy as np

from setwise.spaces.cube import Cube
from setwise.spaces.forest import Forest
from setwise.spaces.listing import SetList
from setwise.spaces.sized import Sized, log_binomial
from setwise.spaces.space import Array, Space


def sampled_listing(space: Space, n_samples: int, seed: int) -> SetList:
    """``n_samples`` sets of a space, drawn uniformly by a generator of that seed."""
    sets = sample(space, n_samples, np.random.default_rng(seed))
    return SetList(space, sets, is_sample=True)


def sample(space: Space, n_samples: int, generator: np.random.Generator) -> Array:
    """Sets drawn uniformly from the support, with replacement, (n_samples, l)."""
    if isinstance(space, Cube):
        return generator.integers(0, 2, (n_samples, space.n_labels), dtype=np.uint8)
    if isinstance(space, Sized):
        log_counts = log_binomial(space.n_labels, space.sizes)
        shares = np.exp(log_counts - space.log_size)
        sizes = generator.choice(space.sizes, n_samples, p=shares / shares.sum())
        ranks = generator.random((n_samples, space.n_labels)).argsort(axis=1).argsort(axis=1)
        return (ranks < sizes[:, None]).astype(np.uint8)
    if isinstance(space, Forest):
        return _sample_forest(space, n_samples, generator)
    sets = space.enumerate()
    return sets[generator.integers(0, len(sets), n_samples)]


def _sample_forest(space: Forest, n_samples: int, generator: np.random.Generator) -> Array:
    """Parents before children, each from its law given its parent."""
    flat = space.tempered(0.0)
    moments = flat.moments(np.zeros((1, space.n_labels)), features=True)
    joint = moments.features.reshape(space.n_labels, 2, 2)
    sets = np.zeros((n_samples, space.n_labels), dtype=np.uint8)
    for label in flat.nodes.labels[1:]:
        parent = space.parents[label]
        if parent < 0:
            present = np.full(n_samples, moments.on[0, label])
        else:
            mass = joint[label].sum(axis=0)
            given = joint[label, 1] / np.where(mass > 0, mass, 1.0)
            present = given[sets[:, parent]]
        sets[:, label] = generator.random(n_samples) < present
    return sets
