"""From a file to rows: the formats of the field, read into one `Dataset`.

`read` recognises a format and reads it; the `schema` of what it gives reads other files into the
same columns, whole or in parts. `fetch` gets data sets from OpenML. A malformed file is a
`DataError` that names the file and the line.
"""

from setwise.datasets.arff import ArffSchema, read_arff
from setwise.datasets.data_error import DataError
from setwise.datasets.dataset import Dataset
from setwise.datasets.extreme import ExtremeSchema, read_extreme
from setwise.datasets.folder import FolderSchema, read_folder
from setwise.datasets.libsvm import LibsvmSchema, read_libsvm
from setwise.datasets.openml import fetch
from setwise.datasets.reading import read
from setwise.datasets.schema import Schema
from setwise.datasets.table import TableSchema, read_table

__all__ = [
    "ArffSchema",
    "DataError",
    "Dataset",
    "ExtremeSchema",
    "FolderSchema",
    "LibsvmSchema",
    "Schema",
    "TableSchema",
    "fetch",
    "read",
    "read_arff",
    "read_extreme",
    "read_folder",
    "read_libsvm",
    "read_table",
]
