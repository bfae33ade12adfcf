"""From a file to rows: the formats of the field, read into one `Dataset`.

`read` recognises a format and reads it; the `schema` of what it gives reads other files into the
same columns, whole or in parts. `fetch` gets data sets from OpenML. A malformed file is a
`DataError` that names the file and the line.
"""

from setwise.datasets.arff import read_arff
from setwise.datasets.convert import convert
from setwise.datasets.dataset import Dataset
from setwise.datasets.folder import read_folder
from setwise.datasets.reading import fetch, read
from setwise.datasets.schema import Schema
from setwise.datasets.sparse_text import read_extreme, read_libsvm
from setwise.datasets.table_schema import read_table
from setwise.files import DataError

__all__ = [
    "DataError",
    "Dataset",
    "Schema",
    "convert",
    "fetch",
    "read",
    "read_arff",
    "read_extreme",
    "read_folder",
    "read_libsvm",
    "read_table",
]
