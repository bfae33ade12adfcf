"""The most likely label set of a space."""

from __future__ import annotations

from dataclasses import dataclass

from setwise.spaces.space import Array, Space


@dataclass(frozen=True)
class MostLikely:
    """The label set with the highest weight: argmax over the space of y' · scores + g(y').

    Sign on the cube, best size then top labels on a sized space, max-product on a forest, the best
    row of a list; ties as the space breaks them. The minimum-risk decision for subset 0/1 loss, and
    the one the guarantees of the comp-sum and constrained surrogates speak of.

    Examples
    --------
    >>> from setwise.spaces import Cube
    >>> MostLikely(Cube(3)).decode([[2.0, -1.0, 0.5]])
    array([[1, 0, 1]], dtype=uint8)
    """

    space: Space

    def __post_init__(self):
        if not isinstance(self.space, Space):
            raise ValueError(f"a space is an object such as Cube(10), but this is {self.space!r}")

    def decode(self, scores) -> Array:
        """The most likely set of each row of scores, (n, l)."""
        return self.space.most_likely(scores)
