"""A study on disk: one file that is only ever added to, so that whatever is finished stays.

``results.jsonl`` begins with a line that says what the study is; a line follows for each unit
(method, target, fold) that was finished or has failed. A line is JSON with a checksum. A kill can
cut no more than the line that is being written, which then does not count. Of several lines about
one unit the last counts. Arrays are NumPy archives without pickles, so reading runs nothing.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import warnings
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array, issparse

from setwise.atomic_write import naming, remove_partial, write_whole
from setwise.evaluation import Reliability
from setwise.run_folder import LOCK, differences
from setwise.study.members import MemberFigures
from setwise.study.results import Outcome, Results, Scale, joined
from setwise.taxonomy import Taxonomy

RESULTS = "results.jsonl"


class Unit(NamedTuple):
    """The unit of work: one method, trained and decoded for one target, on one fold."""

    method: str
    target: str
    fold: int

    def __str__(self) -> str:
        return f"{self.method} for {self.target}, fold {self.fold}"


@dataclass
class Summary:
    """What a folder holds, and how far its study is; printed, in words.

    Attributes
    ----------
    study : Results
        Without outcomes.
    identity : mapping
        What the figures depend on, as JSON.
    finished : dict of Unit to Outcome
        What each unit found, over the rows of its fold.
    failed : dict of Unit to str
        Units that failed when they were last tried, with the messages.
    damaged : list of str
        Lines that cannot be read.
    length : int
        Of the file in bytes, without a last line that is not whole.

    Examples
    --------
    >>> import tempfile
    >>> from setwise.study import Study
    >>> X, Y = [[0.0], [1.0]] * 4, [[1, 0], [0, 1]] * 4
    >>> study = Study(X, Y, methods=["binary_relevance"], targets=["f1"], folds=2)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     results = study.run(folder)
    ...     len(summary(folder).finished), summary(folder).failed
    (2, {})
    """

    study: Results
    identity: Mapping[str, Any]
    finished: dict[Unit, Outcome] = field(default_factory=dict)
    failed: dict[Unit, str] = field(default_factory=dict)
    damaged: list[str] = field(default_factory=list)
    length: int = 0

    @property
    def n_units(self) -> int:
        """Number of units in all."""
        return len(self.study.methods) * len(self.study.targets) * len(self.study.n_train)

    @property
    def n_finished(self) -> int:
        """Number of units that are finished."""
        return len(self.finished)

    @property
    def complete(self) -> bool:
        """Whether all units are finished."""
        return self.n_finished == self.n_units

    def __str__(self) -> str:
        told = f"{self.n_finished} of {self.n_units} units are finished"
        if self.failed:
            told += f", {len(self.failed)} failed and will be tried again at the next run:"
        # What failed alike in several folds is said once.
        alike: dict[tuple[str, str, str], list[str]] = {}
        for unit, why in self.failed.items():
            alike.setdefault((unit.method, unit.target, why), []).append(str(unit.fold))
        return "\n".join([told, *(
            f"- {method} for {target}, fold{'s' * (len(folds) > 1)} {', '.join(folds)}: {why}"
            for (method, target, why), folds in alike.items()
        )])  # fmt: skip

    def results(self) -> Results:
        """The study with the methods and targets that have finished all folds."""
        folds, outcomes = range(len(self.study.n_train)), []
        for method, target in product(self.study.methods, self.study.targets):
            found = [self.finished.get(Unit(method, target, fold)) for fold in folds]
            if None not in found:
                outcomes.append(joined(found))
        return replace(self.study, outcomes=tuple(outcomes))

    def take(self, record: Mapping[str, Any]) -> None:
        """Add what a line says of a unit."""
        unit, found = Unit(*record["unit"]), record.get("finished")
        if found is None:
            self.failed[unit] = record["failed"]
        elif len(found.losses) != np.count_nonzero(self.study.fold == unit.fold):
            raise ValueError("it is of other rows")
        else:
            self.finished[unit] = found
            self.failed.pop(unit, None)

    def warn_of_damage(self) -> None:
        """Name the lines that do not count, unless their units were done again."""
        if self.damaged and not self.complete:
            told = f"damaged, and does not count as finished: {'; '.join(self.damaged)}"
            warnings.warn(f"{told}. Running the study again repeats what is damaged", stacklevel=3)


def summary(folder: str | os.PathLike[str]) -> Summary:
    """How far the study in a folder is, by what is stored; a ValueError if none can be read.

    Examples
    --------
    >>> import tempfile
    >>> from setwise.study import Study
    >>> X, Y = [[0.0], [1.0]] * 4, [[1, 0], [0, 1]] * 4
    >>> study = Study(X, Y, methods=["binary_relevance"], targets=["f1"], folds=2)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     results = study.run(folder)
    ...     print(summary(folder))
    2 of 2 units are finished
    """
    file, found = Path(folder) / RESULTS, None
    if not file.exists():
        raise ValueError(f"there is no study in {str(folder)!r}: it has no {RESULTS}")
    with file.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            if not line.endswith(b"\n"):
                break  # Being written, or cut by a kill.
            try:
                record = _record(line)
                if found is None:
                    found = Summary(record["study"], record["identity"])
                else:
                    found.take(record)
            except Exception as error:
                # Whatever is wrong with a line, it is not what was written.
                if found is None:
                    break
                found.damaged.append(f"line {number} of {file} ({type(error).__name__}: {error})")
            found.length += len(line)
    if found is None:
        raise ValueError(
            f"the study in {str(folder)!r} cannot be read: the first line of {RESULTS}, which says "
            f"what the study is, is damaged or of another version of setwise"
        )
    return found


def load(folder: str | os.PathLike[str]) -> Results:
    """The results in a folder, of a study that is finished or not; nothing is run.

    Parameters
    ----------
    folder : str or path
        Where a study was run, also one that is running now.

    Returns
    -------
    Results
        With the methods and targets that have finished all folds.

    Examples
    --------
    >>> import tempfile
    >>> from setwise.study import Study
    >>> X, Y = [[0.0], [1.0]] * 4, [[1, 0], [0, 1]] * 4
    >>> study = Study(X, Y, methods=["binary_relevance"], targets=["f1"], folds=2)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     results = study.run(folder)
    ...     load(folder).methods
    ('binary_relevance',)
    """
    found = summary(folder)
    found.warn_of_damage()
    return found.results()


def prepare(folder: Path, study: Results, identity: Mapping[str, Any]) -> Summary:
    """Make it the folder of that study, or raise if it is another's; what is stored already."""
    if not (folder / RESULTS).exists():
        entries = (entry.name for entry in folder.iterdir())
        # (A first run that was killed may have left a part of the file.)
        own = (LOCK, f".{RESULTS}.")
        others = sorted(name for name in entries if not name.startswith(own))
        if others:
            raise ValueError(
                f"{str(folder)!r} holds no study but is not empty (there is {others[0]!r}); "
                f"name a new or an empty folder"
            )
        write_whole(folder / RESULTS, _line({"identity": identity, "study": study}))
    found = summary(folder)
    different = differences(found.identity, identity)
    if different:
        raise ValueError(
            f"{str(folder)!r} holds another study and is left as it is. What differs: "
            f"{'; '.join(different)}. Choose another folder, or remove this one to begin anew"
        )
    remove_partial(folder)
    os.truncate(folder / RESULTS, found.length)
    found.warn_of_damage()
    return found


def store(folder: Path, unit: Unit, found: Outcome | str) -> None:
    """Add what a unit found, or why it failed, and flush it to disk."""
    key = "failed" if isinstance(found, str) else "finished"
    file_name = folder / RESULTS
    with naming(file_name), open(file_name, "ab", buffering=0) as file:
        file.write(_line({"unit": unit, key: found}))
        os.fsync(file.fileno())


# --------------------------------------------------------------------------------------- the lines

# What is not JSON stands as {"$its kind": its parts}.
STORED = (MemberFigures, Outcome, Reliability, Results, Scale, Taxonomy)
KINDS: dict[str, Any] = {f"${kind.__name__}": kind for kind in STORED}


def _line(record: Mapping[str, Any]) -> bytes:
    return _framed(json.dumps(record, default=_parts).encode())


def _record(line: bytes) -> dict[str, Any]:
    body = line.partition(b'"record": ')[2][:-2]
    if line != _framed(body):
        raise ValueError("its checksum is another")
    return json.loads(body, object_hook=_whole)


def _framed(body: bytes) -> bytes:
    """A line of JSON with its checksum."""
    checksum = hashlib.sha256(body).hexdigest().encode()
    return b'{"sha256": "%s", "record": %s}\n' % (checksum, body)


def _parts(value: Any) -> dict[str, Any]:
    """Arrays as archives, label sets by their places, other objects by their fields."""
    if isinstance(value, np.ndarray):
        file = io.BytesIO()
        np.savez_compressed(file, value)
        return {"$array": b64encode(file.getvalue()).decode("ascii")}
    if issparse(value):
        return {"$sets": [value.shape, value.indices, value.indptr]}
    told = {part.name: getattr(value, part.name) for part in fields(value) if part.init}
    return {f"${type(value).__name__}": told}


def _whole(held: dict[str, Any]) -> Any:
    """What `_parts` was given; lists in the fields of objects are tuples."""
    value: Any
    kind, value = next(iter(held.items()), ("", None))
    if kind == "$array":
        with np.load(io.BytesIO(b64decode(value)), allow_pickle=False) as archive:
            return archive["arr_0"]
    if kind == "$sets":
        shape, indices, indptr = value
        return csr_array((np.ones(len(indices), np.uint8), indices, indptr), shape=shape)
    if kind in KINDS:
        return KINDS[kind](
            **{
                name: tuple(part) if isinstance(part, list) else part
                for name, part in value.items()
            }
        )
    return held
