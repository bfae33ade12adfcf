"""Which label sets can be predicted, and how sums over them are taken."""

from setwise.spaces.catalog import Catalog
from setwise.spaces.cube import Cube
from setwise.spaces.forest import Forest
from setwise.spaces.paths import Paths
from setwise.spaces.sized import Sized, Slice
from setwise.spaces.space import Space

__all__ = ["Catalog", "Cube", "Forest", "Paths", "Sized", "Slice", "Space"]
