"""A data set as a folder of arrays, the one format that needs no options to be read again."""

from __future__ import annotations

import json
import os
from pathlib import Path
from uuid import uuid4

import numpy as np
from scipy.sparse import csr_array, issparse, save_npz

from setwise.atomic_write import PARTIAL
from setwise.datasets import Dataset


def write_folder(data: Dataset, path: Path) -> None:
    """Write X, Y and meta.json; the folder appears when it is complete, and must be new."""
    beside = path.with_name(f".{path.name}.{uuid4().hex}{PARTIAL}")
    beside.mkdir()
    if issparse(data.X):
        save_npz(beside / "X.npz", csr_array(data.X))
    else:
        np.save(beside / "X.npy", data.X, allow_pickle=False)
    save_npz(beside / "Y.npz", csr_array(data.Y))
    if data.Y_specific is not None:
        save_npz(beside / "Y_specific.npz", csr_array(data.Y_specific))
    meta = {
        "name": data.name,
        "source": data.source,
        "n": data.n_rows,
        "d": data.n_features,
        "l": data.n_labels,
        "label_names": data.label_names.tolist(),
        "feature_names": None if data.feature_names is None else data.feature_names.tolist(),
    }
    if data.hierarchy is not None:
        meta["hierarchy_edges"] = data.hierarchy.tolist()
    if data.edge_lengths is not None:
        meta["hierarchy_lengths"] = data.edge_lengths.tolist()
    if data.split is not None:
        meta["split"] = {name: {"indices": rows.tolist()} for name, rows in data.split.items()}
    known = {key: value for key, value in meta.items() if value is not None}
    (beside / "meta.json").write_text(json.dumps(known, ensure_ascii=False), encoding="utf-8")
    os.rename(beside, path)
