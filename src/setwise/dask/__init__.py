"""Training and prediction on a Dask cluster, by the same sums over blocks as on one machine.

Blocks of rows stay with the workers; weights go out, sums come back by a tree, and the solver runs
here. Sums are taken in an order that does not depend on the workers, so that the coefficients are
the same to the last bit, whoever computed what (on processors of one kind). A block that is lost
with its worker is computed again. Needs ``pip install 'setwise[dask]'``.
"""

from setwise.dask.blocks import DaskBlocks
from setwise.dask.booster import SetBooster
from setwise.dask.estimators import SetClassifier, SetClassifierCV, TargetDecoder

__all__ = ["DaskBlocks", "SetBooster", "SetClassifier", "SetClassifierCV", "TargetDecoder"]
