"""What a study is the same by: its data, methods, targets and versions, as JSON."""

from __future__ import annotations

import hashlib
import json
import platform
import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from scipy.sparse import csr_array, issparse

from setwise.study.results import Results
from setwise.study.work import StudyPlan

LIBRARIES = ("numpy", "scipy", "scikit-learn", "numba")


def identity_of(plan: StudyPlan, study: Results) -> dict[str, Any]:
    """All that the figures depend on."""
    return {
        **library_versions(),
        "features (X)": described(plan.inputs),
        "label sets (Y)": described(plan.sets),
        "label names": study.label_names,
        "methods": list(plan.methods),
        "targets": list(plan.targets),
        "folds": described(plan.splits),
        "seed": int(plan.seed),
        "hierarchy": described(study.taxonomy),
        **{f"method {m.name!r}": described(m.make) for m in plan.methods.values() if m.own},
        **{f"target {name!r}": described(target) for name, target in plan.targets.items()},
    }


def described(value: Any) -> Any:
    """A value as JSON that is the same in every process: estimators and targets by their settings.

    Arrays stand as digests, functions by their name and compiled code. What has no better way is
    its type and `repr`, without addresses.
    """
    if isinstance(value, np.random.RandomState):
        value = value.get_state(legacy=False)
    if value is None or isinstance(value, bool | int | float | str):
        return value if value == value else "NaN"
    if issparse(value):
        value = csr_array(value)
        return described([value.shape, value.data, *map(np.int64, (value.indices, value.indptr))])
    if isinstance(value, np.ndarray) and value.dtype != object:
        return joblib.hash(np.ascontiguousarray(value))
    if isinstance(value, list | tuple | np.ndarray):
        return [described(part) for part in value]
    if isinstance(value, set | frozenset):
        return sorted(json.dumps(described(part)) for part in value)
    if isinstance(value, Mapping):
        return {str(key): described(part) for key, part in value.items()}
    name = f"{type(value).__module__}.{type(value).__qualname__}"
    if hasattr(value, "__code__"):
        code = value.__code__.co_code + _plain(value.__code__.co_consts).encode()
        return f"{value.__module__}.{value.__qualname__} {hashlib.sha256(code).hexdigest()}"
    if hasattr(value, "get_params") and not isinstance(value, type):
        return {name: described(value.get_params(deep=False))}
    if is_dataclass(value) and not isinstance(value, type):
        told = [part.name for part in fields(value) if part.init]
        return {name: {part: described(getattr(value, part)) for part in told}}
    return f"{name} {_plain(value)}"


def _plain(value: Any) -> str:
    return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value))


def library_versions() -> dict[str, str]:
    """The versions of setwise and of the libraries that compute."""
    from setwise import __version__

    return {"setwise": __version__, **{name: version(name) for name in LIBRARIES}}


def processor() -> str:
    """The processor's own name where the system tells it."""
    told = Path("/proc/cpuinfo")
    named = re.search(r"^model name\s*: (.*)$", told.read_text() if told.exists() else "", re.M)
    return named[1] if named else platform.processor() or platform.machine()
