"""Data sets with their splits, from a folder that has a folder for each.

Such a folder holds X.npz (CSR) or X.npy, Y.npz (CSR 0/1) and meta.json with the official split.
Needs numpy and scipy only, so that methods in environments of their own read the same rows.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

# Of sets without an official split: the seed of the order, and the share to train on.
ORDER, SHARE = 7, 0.7


def load(folder: Path, split: int | None = None) -> tuple[Any, Any, Any, Any]:
    """X and Y to train on, X and Y to test on.

    The official split (rows to choose settings by are trained on), or with a number a random one of
    as many rows.
    """
    stored = folder / "X.npz"
    X = sparse.csr_array(sparse.load_npz(stored)) if stored.exists() else np.load(folder / "X.npy")
    Y = sparse.load_npz(folder / "Y.npz").toarray().astype(np.int64)
    train, test = parts(folder, len(Y))
    if split is not None:
        both = np.random.default_rng([ORDER, split]).permutation(np.concatenate([train, test]))
        train, test = np.split(both, [len(train)])
    return X[train], Y[train], X[test], Y[test]


def parts(folder: Path, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows to train on and rows to test on, by the official split."""
    split = json.loads((folder / "meta.json").read_text())["split"]
    if split is None:
        order = np.random.default_rng(ORDER).permutation(n_rows)
        first, second = np.split(order, [int(SHARE * n_rows)])
        return first, second
    train, test = (rows(split[part], folder) for part in ("train", "test"))
    if "valid" in split:
        train = np.concatenate([train, rows(split["valid"], folder)])
    return train, test


def rows(part: dict[str, Any], folder: Path) -> np.ndarray:
    """The rows of one part of a split."""
    if "range" in part:
        return np.arange(*part["range"])
    if "indices" in part:
        return np.array(part["indices"])
    return np.load(folder / part["file"])
