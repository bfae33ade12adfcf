"""The same losses in torch operations, for any device and derivatives of any order."""

from setwise.nn.tensors.batch import Batch
from setwise.nn.tensors.law import Law, law_of

__all__ = ["Batch", "Law", "law_of"]
