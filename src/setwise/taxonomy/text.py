"""The text of a file."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

GZIP = b"\x1f\x8b"
# What a compressed file may unfold to: no taxonomy is larger.
MOST_BYTES = 2**30


def text_of(path: Path, what: str) -> str:
    """UTF-8 text, unpacked if it is compressed by gzip, without a byte order mark.

    ``what`` says in messages what is looked for.
    """
    if path.is_dir():
        raise ValueError(
            f"{what} must be a file, but {path} is a folder (Taxonomy.from_meta takes the folder "
            f"of a data set, with its meta.json)"
        )
    if not path.exists():
        raise FileNotFoundError(f"{what} is looked for in the file {path}, but it is not there")
    data = path.read_bytes()
    if data.startswith(GZIP):
        data = _unpacked(path)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ValueError(
            f"line {line} of {path} must be UTF-8 text, but it has the byte "
            f"{data[error.start]:#04x}; save the file in UTF-8"
        ) from error


def _unpacked(path: Path) -> bytes:
    try:
        with gzip.open(path) as file:
            data = file.read(MOST_BYTES + 1)
    except (EOFError, OSError, zlib.error) as error:
        raise ValueError(f"{path} is damaged: it cannot be unpacked ({error})") from error
    if len(data) > MOST_BYTES:
        raise ValueError(f"{path} unpacks to more than {MOST_BYTES} bytes, as no taxonomy does")
    return data
