"""Which label sets can be predicted, and how sums over them are taken.

`SPACES` has a small example of every kind, made from the parent of each label.

>>> SPACES["paths"]([-1, 0, 0])
Paths(parents=[-1, 0, 0])
"""

from collections.abc import Callable

import numpy as np

from setwise.spaces.backoff import Backoff
from setwise.spaces.catalog import Catalog
from setwise.spaces.cube import Cube
from setwise.spaces.forest import Forest
from setwise.spaces.paths import Paths
from setwise.spaces.sized import Sized, Slice
from setwise.spaces.space import Array, Space, all_sets

__all__ = [
    "SPACES", "Backoff", "Catalog", "Cube", "Forest", "Paths", "Sized", "Slice", "Space",
    "register",
]  # fmt: skip


# A small example of each kind of space, from the parent of each label. The laws of the tests run on
# every kind that is registered.
SPACES: dict[str, Callable[[Array], Space]] = {
    "cube": lambda parents: Cube(len(parents)),
    "slice": lambda parents: Slice(len(parents), min(2, len(parents))),
    "sized": lambda parents: Sized(len(parents), [1.0, *np.zeros(len(parents) - 1), 1.0]),
    "chain": lambda parents: Forest.chain(len(parents), np.tile(np.eye(2), (len(parents), 1, 1))),
    "closed": lambda parents: Forest(parents, closed=True),
    "paths": lambda parents: Paths(parents),
    "list": lambda parents: Catalog(all_sets(len(parents))[1::2]),
    "backoff": lambda parents: _backoff(all_sets(len(parents))[1::3]),
}


def _backoff(sets: Array) -> Backoff:
    base = Sized(sets.shape[1], [1.0, *np.zeros(sets.shape[1])])
    return Backoff(base, sets, np.arange(len(sets)) / 2.0)


def register(name: str, example: Callable[[Array], Space]) -> None:
    """Make a kind of space known by name; ``example`` makes a small one from parents of labels.

    Examples
    --------
    >>> register("pairs", lambda parents: Slice(len(parents), 2))
    >>> SPACES["pairs"](np.array([-1, 0, 0]))
    Sized(n_labels=3, bias=[-inf, -inf, 0.0])
    >>> del SPACES["pairs"]
    """
    if name in SPACES:
        raise ValueError(f"there is already a space named {name!r}")
    SPACES[name] = example
