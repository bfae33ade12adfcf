"""What makes two studies the same: everything that their figures depend on, as text and digests."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from math import isfinite
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

Identity = dict[str, Any]
# Values up to this many characters are shown in the message; of others only that they differ.
SHOWN = 60


def digest(identity: Mapping[str, Any]) -> str:
    """One number for all of it."""
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()


def array_digest(array: Any) -> str:
    """The content of a dense or CSR array; the same numbers in another type are others."""
    parts = [array.data, array.indices, array.indptr] if issparse(array) else [array]
    found = hashlib.sha256(str(array.shape).encode())
    for part in parts:
        if part.dtype.kind in "iu" and part is not array:
            part = part.astype(np.int64)
        found.update(part.dtype.str.encode())
        found.update(np.ascontiguousarray(part).tobytes())
    return found.hexdigest()


def described(value: Any) -> Any:
    """A value as JSON that is the same in every process: estimators and targets by their settings.

    Arrays stand as digests, functions by their name and compiled code. What has no better way is
    its type and `repr`, without addresses.
    """
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if isfinite(value) else repr(value)
    if isinstance(value, np.generic):
        return described(value.item())
    if isinstance(value, np.random.RandomState):
        return described(value.get_state(legacy=False))
    if issparse(value):
        return array_digest(csr_array(value))
    if isinstance(value, np.ndarray) and value.dtype != object:
        return array_digest(value)
    if isinstance(value, Mapping):
        return {str(key): described(part) for key, part in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [described(part) for part in value]
    if isinstance(value, set | frozenset):
        return sorted(json.dumps(described(part), sort_keys=True) for part in value)
    kind = value if isinstance(value, type) else type(value)
    name = f"{kind.__module__}.{kind.__qualname__}"
    if isinstance(value, type):
        return name
    if hasattr(value, "__code__"):
        code = value.__code__
        body = hashlib.sha256(code.co_code + _plain(repr(code.co_consts)).encode()).hexdigest()
        return f"{value.__module__}.{value.__qualname__} {body}"
    if hasattr(value, "get_params"):
        return {name: described(value.get_params(deep=False))}
    if is_dataclass(value):
        return {
            name: {field.name: described(getattr(value, field.name)) for field in fields(value)}
        }
    return f"{name} {_plain(repr(value))}"


def differences(stored: Identity, asked: Identity) -> list[str]:
    """What differs between two studies, in words."""
    found = []
    for name in dict.fromkeys([*stored, *asked]):
        if name not in asked:
            found.append(f"{name}: only in the folder")
        elif name not in stored:
            found.append(f"{name}: not in the folder")
        elif stored[name] != asked[name]:
            values = [json.dumps(part[name]) for part in (stored, asked)]
            short = max(map(len, values)) <= SHOWN
            found.append(f"{name}: {values[0]}, now {values[1]}" if short else f"{name}: another")
    return found


def _plain(text: str) -> str:
    return re.sub(r" at 0x[0-9a-fA-F]+", "", text)
