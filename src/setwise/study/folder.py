"""A study on disk: what was asked, and a file for each finished unit, written as it is finished.

A unit is one file, which appears whole or not at all; a line of a common file could be cut in half
by a kill, and rows of several processes mix. Everything is JSON or NumPy archives without pickles,
so reading a folder runs nothing.

    study.json     what the study is, its question and the versions it ran with
    study.npz      true label sets of the held-out rows, their folds, the hierarchy
    units/*.npz    predictions, probabilities, losses and what is told of each finished unit
    failed/*.json  the error of each unit that failed last time
    summary.txt    how far it has come
"""

from __future__ import annotations

import io
import json
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from setwise.atomic_write import remove_partial, write_whole
from setwise.study.identity import Identity, differences, digest
from setwise.study.lock import LOCK
from setwise.study.unit import Finished, Unit
from setwise.taxonomy import Taxonomy

FORMAT = 1


@dataclass(frozen=True)
class Asked:
    """What a study is, as far as its folder knows.

    Attributes
    ----------
    identity : mapping
        What the figures depend on; see `setwise.study.identity`.
    told : mapping
        Name, label names, methods, targets, rows trained on, what is said of the hierarchy, the
        scales of tree distances, question and versions.
    y_true : CSR array of shape (n, l)
    fold : array of shape (n,)
    taxonomy : Taxonomy or None
        Over the labels; its names are those told.
    """

    identity: Identity
    told: dict[str, Any]
    y_true: csr_array
    fold: NDArray[np.intp]
    taxonomy: Taxonomy | None

    @property
    def digest(self) -> str:
        """One number for the identity."""
        return digest(self.identity)

    @property
    def units(self) -> list[Unit]:
        """All units, in the order of methods, folds, targets."""
        return [
            Unit(method, target, fold)
            for method in self.told["methods"]
            for fold in range(len(self.told["n_train"]))
            for target in self.told["targets"]
        ]

    def shape(self, fold: int) -> tuple[int, int]:
        """Of the label sets held out in a fold."""
        n_labels: Any = self.y_true.shape
        return int(np.count_nonzero(self.fold == fold)), n_labels[1]


@dataclass(frozen=True)
class Folder:
    """Where a study keeps what it has."""

    path: Path

    def prepare(self, asked: Asked) -> None:
        """Make it the folder of that study, or raise if it is another's."""
        remove_partial(self.path)
        if (self.path / "study.json").exists():
            stored = self._manifest()["identity"]
            different = differences(stored, asked.identity)
            if different:
                raise ValueError(
                    f"{str(self.path)!r} holds another study and is left as it is. What differs: "
                    f"{'; '.join(different)}. Choose another folder, or remove this one to begin "
                    f"anew"
                )
        else:
            others = sorted(entry.name for entry in self.path.iterdir() if entry.name != LOCK)
            if others:
                raise ValueError(
                    f"{str(self.path)!r} holds no study but is not empty (there is {others[0]!r}); "
                    f"name a new or an empty folder"
                )
        arrays: dict[str, Any] = {
            "indices": asked.y_true.indices.astype(np.int32),
            "indptr": asked.y_true.indptr.astype(np.int64),
            "fold": asked.fold.astype(np.int64),
        }
        if asked.taxonomy is not None:
            arrays["edges"] = asked.taxonomy.edges
            arrays["lengths"] = asked.taxonomy.lengths_of_edges
        file = io.BytesIO()
        np.savez_compressed(file, **arrays)
        write_whole(self.path / "study.npz", file.getvalue())
        # Last, so that where it is, the rest is too.
        manifest = {"format": FORMAT, "identity": asked.identity, "told": asked.told}
        write_whole(self.path / "study.json", json.dumps(manifest, indent=1).encode())
        for name in ("units", "failed"):
            (self.path / name).mkdir(exist_ok=True)
            remove_partial(self.path / name)

    def asked(self) -> Asked:
        """What the study in the folder is, or a ValueError."""
        manifest = self._manifest()
        try:
            told = manifest["told"]
            with np.load(self.path / "study.npz", allow_pickle=False) as archive:
                arrays = {name: archive[name] for name in archive.files}
            fold, indices = arrays["fold"].astype(np.intp), arrays["indices"]
            shape = (len(fold), len(told["label_names"]))
            ones = np.ones(len(indices), np.uint8)
            y_true = csr_array((ones, indices, arrays["indptr"]), shape=shape)
            y_true.check_format(full_check=True)
            return Asked(manifest["identity"], told, y_true, fold, _taxonomy(arrays, told))
        except Exception as error:
            raise ValueError(
                f"the study in {str(self.path)!r} cannot be read: study.json or study.npz is "
                f"damaged ({type(error).__name__}: {error}); a run of the same study writes "
                f"study.npz anew"
            ) from error

    def store(self, unit: Unit, finished: Finished, study: str) -> None:
        """Keep what a unit found; an earlier failure is forgotten."""
        write_whole(self._file(unit), finished.to_bytes(unit, study))
        self._failure(unit).unlink(missing_ok=True)

    def store_failure(self, unit: Unit, message: str) -> None:
        """Keep why a unit failed."""
        told = {"unit": list(unit), "message": message}
        write_whole(self._failure(unit), json.dumps(told, indent=1).encode())

    def finished(self, asked: Asked, study: str) -> dict[Unit, Finished]:
        """What the finished units found; damaged files are named in a warning and left out."""
        found = {}
        for unit in asked.units:
            file = self._file(unit)
            if not file.exists():
                continue
            try:
                found[unit] = Finished.from_bytes(
                    file.read_bytes(), unit, study, asked.shape(unit.fold)
                )
            except (OSError, ValueError) as error:
                warnings.warn(
                    f"{file} does not count as finished: {error}. A run does this unit again "
                    f"({unit})",
                    stacklevel=2,
                )
        return found

    def has(self, unit: Unit) -> bool:
        """Whether there is a file of a finished unit; it is not read."""
        return self._file(unit).exists()

    def failed(self, asked: Asked) -> dict[Unit, str]:
        """Why units failed when they were last tried, of those not finished since."""
        found = {}
        for unit in asked.units:
            try:
                found[unit] = str(json.loads(self._failure(unit).read_bytes())["message"])
            except FileNotFoundError:
                continue
            except (OSError, ValueError, KeyError, TypeError):
                found[unit] = "the file of its error is damaged"
        return found

    def _manifest(self) -> dict[str, Any]:
        file = self.path / "study.json"
        if not file.exists():
            raise ValueError(f"there is no study in {str(self.path)!r}: it has no study.json")
        try:
            manifest = json.loads(file.read_bytes())
            known = manifest["format"] == FORMAT and isinstance(manifest["identity"], dict)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ValueError(
                f"{str(file)!r} is damaged ({type(error).__name__}: {error})"
            ) from error
        if not known:
            raise ValueError(
                f"{str(file)!r} is in the format {manifest['format']!r}, and this version of "
                f"setwise reads the format {FORMAT}"
            )
        return manifest

    def _file(self, unit: Unit) -> Path:
        return self.path / "units" / f"{unit.file_name}.npz"

    def _failure(self, unit: Unit) -> Path:
        return self.path / "failed" / f"{unit.file_name}.json"


def _taxonomy(arrays: dict[str, Any], told: dict[str, Any]) -> Taxonomy | None:
    """The hierarchy as stored: whole, or in studies before it was, the parents of a tree."""
    names = told["label_names"]
    if "parents" in arrays:
        return Taxonomy.from_parents(arrays["parents"], names)
    if "edges" not in arrays:
        return None
    return Taxonomy(arrays["edges"], names, arrays["lengths"], told["hierarchy_note"])
