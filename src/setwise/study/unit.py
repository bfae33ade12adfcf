"""The unit of work: one method, trained and decoded for one target, on one fold."""

from __future__ import annotations

import hashlib
import io
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array


class Unit(NamedTuple):
    """The names of a method and a target, and the number of a fold."""

    method: str
    target: str
    fold: int

    @property
    def file_name(self) -> str:
        """A name for its file: readable, and different for different units."""
        readable = [re.sub(r"[^A-Za-z0-9_@.-]", "_", part)[:40] for part in self[:2]]
        number = hashlib.sha256(json.dumps(self[:2]).encode()).hexdigest()[:8]
        return f"{'-'.join(readable)}-{number}-{self.fold}"

    def __str__(self) -> str:
        return f"{self.method} for {self.target}, fold {self.fold}"


@dataclass(frozen=True)
class Finished:
    """What a unit found: the predictions for the rows held out, and what is to be told of them.

    Attributes
    ----------
    y_pred : CSR array of shape (n, l)
    probability : float32 array of shape (n, l) or None
    losses : array of shape (n,)
    guarantee : str
    settings : mapping
        JSON.
    fit_seconds, predict_seconds : float
    seconds : float
        Spent on this unit; without the fit where that was another's.
    """

    y_pred: csr_array
    probability: NDArray[np.float32] | None
    losses: NDArray[np.float64]
    guarantee: str
    settings: Mapping[str, Any]
    fit_seconds: float
    predict_seconds: float
    seconds: float

    def to_bytes(self, unit: Unit, study: str) -> bytes:
        """A NumPy archive, with the unit and the study's digest in it."""
        arrays: dict[str, Any] = {
            "indices": self.y_pred.indices.astype(np.int32),
            "indptr": self.y_pred.indptr.astype(np.int64),
            "losses": self.losses,
        }
        if self.probability is not None:
            arrays["probability"] = self.probability
        told = {
            "study": study,
            "unit": list(unit),
            # An archive that has lost an entry of its table of contents is whole for all it knows.
            "arrays": list(arrays),
            "guarantee": self.guarantee,
            "settings": dict(self.settings),
            "fit_seconds": self.fit_seconds,
            "predict_seconds": self.predict_seconds,
            "seconds": self.seconds,
        }
        arrays["told"] = np.frombuffer(json.dumps(told).encode(), np.uint8)
        file = io.BytesIO()
        np.savez_compressed(file, **arrays)
        return file.getvalue()

    @classmethod
    def from_bytes(cls, data: bytes, unit: Unit, study: str, shape: tuple[int, int]) -> Finished:
        """Read what `to_bytes` wrote, or a ValueError.

        The archive keeps a checksum of each array, and all of them are read; that it belongs to the
        unit and the study, and fits the rows held out, is checked too.
        """
        try:
            with np.load(io.BytesIO(data), allow_pickle=False) as archive:
                arrays = {name: archive[name] for name in archive.files}
            told = json.loads(arrays.pop("told").tobytes())
            if sorted(arrays) != sorted(told["arrays"]):
                raise ValueError(f"it holds {sorted(arrays)}")
            found = cls._checked(arrays, told, shape)
        except Exception as error:
            # Whatever is wrong with a file, it is not what was written.
            raise ValueError(f"it is damaged ({type(error).__name__}: {error})") from error
        if told["study"] != study or told["unit"] != list(unit):
            raise ValueError("it belongs to another study")
        return found

    @classmethod
    def _checked(cls, arrays: dict[str, Any], told: dict[str, Any], shape: Any) -> Finished:
        probability = arrays.get("probability")
        indices, indptr, losses = (arrays[name] for name in ("indices", "indptr", "losses"))
        y_pred = csr_array((np.ones(len(indices), np.uint8), indices, indptr), shape=shape)
        y_pred.check_format(full_check=True)
        if losses.shape != shape[:1] or losses.dtype != np.float64:
            raise ValueError(f"losses have the shape {losses.shape}")
        if probability is not None and (
            probability.shape != shape or probability.dtype != np.float32
        ):
            raise ValueError(f"probabilities have the shape {probability.shape}")
        return cls(
            y_pred,
            probability,
            losses,
            str(told["guarantee"]),
            dict(told["settings"]),
            float(told["fit_seconds"]),
            float(told["predict_seconds"]),
            float(told["seconds"]),
        )
