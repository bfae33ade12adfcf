"""A study on disk: one file that is only ever added to, so that whatever is finished stays.

    results.jsonl  what the study is; then a line for each unit that was finished or has failed
    summary.txt    how far it has come

A line is JSON with a checksum, written at once and flushed to disk. A kill can cut no more than the
line that is being written, which then does not count: its unit is done again. Of several lines
about one unit the last counts. Arrays are NumPy archives without pickles, so reading runs nothing.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import warnings
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from setwise.atomic_write import remove_partial, write_whole
from setwise.taxonomy import Taxonomy

RESULTS, LOCK = "results.jsonl", ".lock"
# Format 1 was a folder of files, with study.json.
FORMAT, OLD = 2, "study.json"
# Values up to this many characters are shown where two studies differ.
SHOWN = 60


class Unit(NamedTuple):
    """The unit of work: one method, trained and decoded for one target, on one fold."""

    method: str
    target: str
    fold: int

    def __str__(self) -> str:
        return f"{self.method} for {self.target}, fold {self.fold}"


@dataclass(frozen=True)
class Finished:
    """What a unit found: the predictions for the rows held out, and what is to be told of them.

    ``y_pred`` is CSR (n, l), ``probability`` float32 (n, l) or None, ``losses`` (n,); ``settings``
    is JSON; ``seconds`` were spent on this unit, without the fit where that was another's.
    """

    y_pred: csr_array
    probability: NDArray[np.float32] | None
    losses: NDArray[np.float64]
    guarantee: str
    settings: Mapping[str, Any]
    fit_seconds: float
    predict_seconds: float
    seconds: float


@dataclass(frozen=True)
class Asked:
    """What a study is.

    Attributes
    ----------
    identity : mapping
        What the figures depend on, as JSON.
    told : mapping
        Name, label names, methods, targets, rows trained on, what is said of the hierarchy, the
        scales of tree distances, question and versions.
    y_true : CSR array of shape (n, l)
    fold : array of shape (n,)
    taxonomy : Taxonomy or None
        Over the labels; its names are those told.
    """

    identity: Mapping[str, Any]
    told: Mapping[str, Any]
    y_true: csr_array
    fold: NDArray[np.intp]
    taxonomy: Taxonomy | None

    @property
    def units(self) -> list[Unit]:
        """All units, in the order of methods, folds, targets."""
        return [
            Unit(method, target, fold)
            for method in self.told["methods"]
            for fold in range(len(self.told["n_train"]))
            for target in self.told["targets"]
        ]


@dataclass
class Stored:
    """What a folder holds: the study, its finished units, why others failed, unreadable lines.

    ``length`` is that of the file in bytes, without a last line that is not whole.
    """

    asked: Asked
    finished: dict[Unit, Finished] = field(default_factory=dict)
    failed: dict[Unit, str] = field(default_factory=dict)
    damaged: list[str] = field(default_factory=list)
    length: int = 0


def prepare(folder: Path, asked: Asked) -> Stored:
    """Make it the folder of that study, or raise if it is another's; what is stored already."""
    remove_partial(folder)
    if not _is_study(folder):
        others = sorted(entry.name for entry in folder.iterdir() if entry.name != LOCK)
        if others:
            raise ValueError(
                f"{str(folder)!r} holds no study but is not empty (there is {others[0]!r}); "
                f"name a new or an empty folder"
            )
        write_whole(folder / RESULTS, _asked_line(asked))
        return Stored(asked)
    stored = read(folder)
    different = _differences(stored.asked.identity, asked.identity)
    if different:
        raise ValueError(
            f"{str(folder)!r} holds another study and is left as it is. What differs: "
            f"{'; '.join(different)}. Choose another folder, or remove this one to begin anew"
        )
    os.truncate(folder / RESULTS, stored.length)
    if stored.damaged:
        warn_of_damage(stored)
        kept = [_unit_line(unit, found) for unit, found in stored.finished.items()]
        write_whole(folder / RESULTS, b"".join([_asked_line(asked), *kept]))
    elif stored.asked.told != asked.told:
        _append(folder, _asked_line(asked))
    return stored


def _differences(stored: Mapping[str, Any], asked: Mapping[str, Any]) -> list[str]:
    """What differs between two studies, in words; long values are not shown."""
    found = []
    for name in dict.fromkeys([*stored, *asked]):
        before, now = (json.dumps(of.get(name, "nothing")) for of in (stored, asked))
        if before != now:
            short = max(len(before), len(now)) <= SHOWN
            found.append(f"{name}: {before}, now {now}" if short else f"{name}: another")
    return found


def store(folder: Path, unit: Unit, found: Finished | str) -> None:
    """Keep what a unit found, or why it failed."""
    _append(folder, _unit_line(unit, found))


def read(folder: Path) -> Stored:
    """What a folder holds, or a ValueError if there is no study in it that can be read."""
    if not _is_study(folder):
        raise ValueError(f"there is no study in {str(folder)!r}: it has no {RESULTS}")
    stored: Any = None
    length = 0
    with open(folder / RESULTS, "rb") as file:
        for number, line in enumerate(file, 1):
            if not line.endswith(b"\n"):
                break  # Being written, or cut by a kill.
            length += len(line)
            if not line.strip():
                continue
            try:
                record, arrays = _decoded(line)
                if stored is None:
                    stored = Stored(_asked_of(record, arrays))
                elif "told" in record:
                    stored.asked = _asked_of(record, arrays)
                else:
                    _take(stored, record, arrays)
            except Exception as error:
                # Whatever is wrong with a line, it is not what was written.
                reason = f"{type(error).__name__}: {error}"
                if stored is None:
                    raise ValueError(
                        f"the study in {str(folder)!r} cannot be read: line {number} of {RESULTS}, "
                        f"which says what the study is, is damaged ({reason})"
                    ) from error
                stored.damaged.append(f"line {number} of {folder / RESULTS} ({reason})")
    if stored is None:
        raise ValueError(f"the study in {str(folder)!r} cannot be read: {RESULTS} is damaged")
    stored.length = length
    return stored


def warn_of_damage(stored: Stored) -> None:
    """Name the lines that do not count."""
    if stored.damaged:
        warnings.warn(
            f"damaged, and does not count as finished: {'; '.join(stored.damaged)}. A run does "
            f"such units again",
            stacklevel=3,
        )


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the folder's lock, or raise a ValueError if another run does.

    The lock is the operating system's and belongs to the open file, so it ends with the process,
    however that ends. The file stays: what it holds is the process to name in the message.
    """
    with open(folder / LOCK, "a+") as file:
        file.seek(0)
        if not _taken(file):
            raise ValueError(
                f"another run is at work in {str(folder)!r} (process {file.read().strip() or '?'})"
                f"; wait for it, or give this study a folder of its own"
            )
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        yield


def _taken(file: Any) -> bool:
    """Whether the lock is now ours."""
    try:
        try:
            import fcntl
        except ImportError:  # Windows
            import msvcrt

            # Far behind what is written, which others may then read.
            os.lseek(file.fileno(), 2**20, os.SEEK_SET)
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # pyright: ignore
            os.lseek(file.fileno(), 0, os.SEEK_SET)
        else:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


# --------------------------------------------------------------------------------------- the lines

_TOLD = ("guarantee", "settings", "fit_seconds", "predict_seconds", "seconds")


def _line(record: Mapping[str, Any], arrays: Mapping[str, Any] | None = None) -> bytes:
    if arrays is not None:
        file = io.BytesIO()
        np.savez_compressed(file, **arrays)
        record = {**record, "arrays": b64encode(file.getvalue()).decode("ascii")}
    body = json.dumps(record)
    return f'{{"sha256": "{_checksum(body)}", "record": {body}}}\n'.encode()


def _decoded(line: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    held = json.loads(line)
    record = held["record"]
    if held["sha256"] != _checksum(json.dumps(record)):
        raise ValueError("its checksum is another")
    if "arrays" not in record:
        return record, {}
    data = io.BytesIO(b64decode(record["arrays"]))
    with np.load(data, allow_pickle=False) as archive:
        return record, {name: archive[name] for name in archive.files}


def _checksum(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _append(folder: Path, line: bytes) -> None:
    """Add a line by one write, so that those of several processes do not mix.

    It begins with an empty one: a line that was cut by a kill before is then ended.
    """
    with open(folder / RESULTS, "ab", buffering=0) as file:
        file.write(b"\n" + line)
        os.fsync(file.fileno())


def _asked_line(asked: Asked) -> bytes:
    arrays = {**_parts(asked.y_true), "fold": asked.fold.astype(np.int64)}
    if asked.taxonomy is not None:
        arrays["edges"] = asked.taxonomy.edges
        arrays["lengths"] = asked.taxonomy.lengths_of_edges
    return _line({"format": FORMAT, "identity": asked.identity, "told": asked.told}, arrays)


def _asked_of(record: Mapping[str, Any], arrays: Mapping[str, Any]) -> Asked:
    told, fold, taxonomy = record["told"], arrays["fold"].astype(np.intp), None
    names = told["label_names"]
    if "edges" in arrays:
        taxonomy = Taxonomy(arrays["edges"], names, arrays["lengths"], told["hierarchy_note"])
    y_true = _sets(arrays, (len(fold), len(names)))
    return Asked(record["identity"], told, y_true, fold, taxonomy)


def _unit_line(unit: Unit, found: Finished | str) -> bytes:
    if isinstance(found, str):
        return _line({"unit": unit, "failed": found})
    told = {name: getattr(found, name) for name in _TOLD}
    arrays = {**_parts(found.y_pred), "losses": found.losses}
    if found.probability is not None:
        arrays["probability"] = found.probability
    return _line({"unit": unit, "finished": told}, arrays)


def _take(stored: Stored, record: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
    """Add what a line says of a unit."""
    unit = Unit(*record["unit"])
    if "failed" in record:
        stored.failed[unit] = record["failed"]
        return
    rows = int(np.count_nonzero(stored.asked.fold == unit.fold))
    shape = rows, len(stored.asked.told["label_names"])
    stored.finished[unit] = Finished(
        y_pred=_sets(arrays, shape),
        probability=arrays.get("probability"),
        losses=arrays["losses"],
        **record["finished"],
    )
    stored.failed.pop(unit, None)


def _parts(sets: csr_array) -> dict[str, Any]:
    return {"indices": sets.indices.astype(np.int32), "indptr": sets.indptr.astype(np.int64)}


def _sets(arrays: Mapping[str, Any], shape: tuple[int, int]) -> csr_array:
    ones = np.ones(len(arrays["indices"]), np.uint8)
    sets = csr_array((ones, arrays["indices"], arrays["indptr"]), shape=shape)
    sets.check_format(full_check=True)
    return sets


def _is_study(folder: Path) -> bool:
    if (folder / OLD).exists():
        raise ValueError(
            f"{str(folder)!r} holds a study of an earlier version of setwise, in many files "
            f"({OLD}, units), which this version does not read: run it again in a new folder"
        )
    return (folder / RESULTS).exists()
