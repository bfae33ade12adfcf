"""What a user hands over as y: label sets with names, and the way back.

The other modules know one form of label sets: 0/1 of type uint8 with a column for each label, an
array or CSR. Users have data frames, lists of names, sparse matrices, or one class a row.
`read_labels` turns all of these into the one form, and a `LabelNames` remembers how to return.
"""

from setwise.labels.names import LabelNames, read_labels

__all__ = ["LabelNames", "read_labels"]
