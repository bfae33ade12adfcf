"""The one error of the readers."""

from __future__ import annotations

import os
from typing import NoReturn


class DataError(ValueError):
    """A file does not hold what it should; the message names the file and, if known, the line.

    Attributes
    ----------
    file : str
        Name of the file, without its folder.
    line : int or None
        Number of the line, from 1; for files without lines, such as Parquet, None.
    reason : str
        What is wrong and what is expected.

    Examples
    --------
    >>> print(DataError("data/birds.arff", 17, "3 values, but 5 attributes are declared"))
    birds.arff, line 17: 3 values, but 5 attributes are declared
    """

    def __init__(self, file: str | os.PathLike[str], line: int | None, reason: str):
        self.file = os.path.basename(os.fspath(file)) or os.fspath(file)
        self.line = line
        self.reason = reason
        place = self.file if line is None else f"{self.file}, line {line}"
        super().__init__(f"{place}: {reason}")

    def __reduce__(self):
        return type(self), (self.file, self.line, self.reason)


def refuse(file: str | os.PathLike[str], line: int | None, reason: str) -> NoReturn:
    """Raise a `DataError`."""
    raise DataError(file, line, reason)


def shown(value: object, most: int = 60) -> str:
    """A value from a file, for a message: quoted, and cut if it is long."""
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
    return repr(text if len(text) <= most else text[:most] + "…")
