"""Estimators in files that run nothing when they are read.

A pickle is a program. The files written here are skops files: numbers, and the names of the types
they belong to. Types of this package are made anew by their constructors, so what is read passes
the same checks as what a user types, and only what the constructor takes is written: caches and
compiled rules are not.
"""

from __future__ import annotations

import copy
import inspect
import os
from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from setwise.atomic_write import write_whole

PACKAGE = __name__.partition(".")[0]
# Types that skops does not trust by itself and that hold nothing but data.
PLAIN = (
    "builtins.frozenset",
    "numpy.dtype",
    "scipy.sparse._csc.csc_array",
    "scipy.sparse._csc.csc_matrix",
    "scipy.sparse._csr.csr_array",
    "scipy.sparse._csr.csr_matrix",
    "sklearn.calibration._CalibratedClassifier",
    "sklearn.calibration._SigmoidCalibration",
    "sklearn.metrics._scorer._PassthroughScorer",
    "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
    "sklearn.neural_network._stochastic_optimizers.SGDOptimizer",
    "sklearn.utils._metadata_requests.MetadataRequest",
    "sklearn.utils._metadata_requests.MethodMetadataRequest",
)


def save(estimator: Any, path: str | os.PathLike[str], *, trusted: Iterable[str] = ()) -> None:
    """Write an estimator, or any object of this package, to a file.

    The file appears whole or not at all: it is written beside its place, flushed to disk, and then
    takes the place of what was there.

    Parameters
    ----------
    estimator : object
        A fitted or unfitted estimator, target, space, decoder, or a scikit-learn estimator, also
        one that holds any of these.
    path : str or path
        Where to write; by custom the name ends in ``.skops``.
    trusted : list of str, optional
        Further types that may be in the file, such as "sklearn.tree._tree.Tree"; `load` has to be
        told the same. See there.

    Raises
    ------
    ValueError
        If the estimator holds what `load` would refuse; the message names it. A function is such a
        thing, so a `CountTarget` cannot be saved: its file would have to hold code. (With
        ``trusted=["module.function"]`` the *name* of a function is saved, and `load` imports it.)

    Examples
    --------
    >>> import tempfile
    >>> from setwise.decoders import MinimumRisk
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(MinimumRisk("f2"), f"{folder}/decoder.skops")
    ...     load(f"{folder}/decoder.skops")
    MinimumRisk(target=FBeta(beta=2.0, empty=1.0))
    """
    trusted, skops = _names(trusted), _skops()
    what = type(estimator).__name__
    try:
        data = skops.dumps(_mapped(estimator, _bare, {}))
        foreign = _foreign(data, trusted)
    except RecursionError as error:
        raise ValueError(f"this {what} cannot be saved: something in it holds itself") from error
    except Exception as error:
        raise ValueError(f"this {what} cannot be saved: {error}") from error
    if foreign:
        raise ValueError(
            f"this {what} cannot be saved: it holds {', '.join(foreign)}, and only types of "
            f"{PACKAGE}, and data and estimators that skops trusts, are made from a file. A "
            f"function is code, which a file must not bring along. A type that you trust can be "
            f"named: trusted={foreign}, here and in load"
        )
    write_whole(Path(os.path.realpath(path)), data)


def load(path: str | os.PathLike[str], *, trusted: Iterable[str] = ()) -> Any:
    """Read what `save` wrote, without running anything from the file.

    A file that holds any type but those of this package, those that skops trusts (numbers, arrays,
    containers, scikit-learn's estimators) and a few plain containers is refused before anything of
    it is made. The objects of this package are then made by their constructors and the sparse
    matrices checked, so that a file with impossible values is refused too. The file is not signed:
    whether its numbers are the ones that were saved, only its source can tell.

    Parameters
    ----------
    path : str or path
        A file written by `save`.
    trusted : list of str, optional
        Further types that may be in the file. Trees of scikit-learn's forests need
        "sklearn.tree._tree.Tree": their arrays are not checked by scikit-learn, and a file made to
        do harm can crash the process. Name types only if you trust who wrote the file.

    Returns
    -------
    object
        Equal to what was saved, but for caches.

    Raises
    ------
    ValueError
        If the file is a pickle or damaged, or holds another type; the message names it.
    FileNotFoundError
        If there is no such file.
    """
    trusted, skops = _names(trusted), _skops()
    data = Path(path).read_bytes()
    try:
        foreign = _foreign(data, trusted)
        if not foreign:
            loaded = skops.loads(data, trusted=[*_unknown_to_skops(data), *trusted])
            return _mapped(loaded, _made_anew, {})
    except Exception as error:
        raise ValueError(
            f"{os.fspath(path)!r} was not loaded: it is damaged, or no file that {PACKAGE} saved "
            f"({type(error).__name__}: {error})"
        ) from error
    raise ValueError(
        f"{os.fspath(path)!r} was not loaded, and nothing in it was run: it holds "
        f"{', '.join(foreign)}, and only types of {PACKAGE}, and data and estimators that skops "
        f"trusts, are made from a file. If you trust who wrote it: load(path, trusted={foreign})"
    )


def _skops() -> Any:
    try:
        import skops.io
    except ImportError as error:
        raise ImportError("to save and load, install skops: pip install skops") from error
    return skops.io


# ------------------------------------------------------------------------------ which types may be


def _names(trusted: Iterable[str]) -> list[str]:
    names = [trusted] if isinstance(trusted, str) else list(trusted)
    if not all(isinstance(name, str) for name in names):
        raise ValueError(
            f"trusted must be a list of names such as 'sklearn.tree._tree.Tree', not {names}"
        )
    return names


def _unknown_to_skops(data: bytes) -> list[str]:
    """The names in a file that skops does not trust by itself; nothing is made or imported."""
    return _skops().get_untrusted_types(data=data)


def _foreign(data: bytes, trusted: list[str]) -> list[str]:
    """The names in a file that nobody trusts, or could: a lambda is not found by its name."""
    known = {name for name in (*PLAIN, *trusted) if "<" not in name}
    return [name for name in _unknown_to_skops(data) if name not in known and not _is_own(name)]


def _is_own(name: str) -> bool:
    """Whether it is a class of this package that holds data, not just anything found in it.

    A module also has what it imports, and functions; skops would call these. Dataclasses,
    estimators and named tuples do nothing when they are made but check and keep their arguments.
    """
    module, _, attribute = name.rpartition(".")
    if module.partition(".")[0] != PACKAGE or "__" in name:
        return False
    try:
        found = getattr(import_module(module), attribute, None)
    except ImportError:
        return False
    return isinstance(found, type) and _of_package(found) and _holds_data(found)


def _of_package(kind: type) -> bool:
    return kind.__module__.partition(".")[0] == PACKAGE


def _holds_data(kind: type) -> bool:
    from sklearn.base import BaseEstimator

    return is_dataclass(kind) or issubclass(kind, BaseEstimator | tuple)


# -------------------------------------------------------------------- what is written and made anew


def _bare(value: Any, parts: dict[Any, Any]) -> Any:
    """An object of the package with nothing but what its constructor takes, and what was fitted."""
    bare = object.__new__(type(value))
    bare.__dict__.update(parts)
    return bare


def _made_anew(value: Any, parts: dict[Any, Any]) -> Any:
    """The same object by its constructor, which checks; caches in the file are not looked at."""
    unknown = vars(value).keys() - {field.name for field in fields(value)}
    if unknown and _is_frozen(value):
        raise ValueError(f"{type(value).__name__} has no {', '.join(sorted(unknown))}")
    made = type(value)(**{name: part for name, part in parts.items() if name not in unknown})
    made.__dict__.update({name: parts[name] for name in unknown})
    return made


def _mapped(
    given: Any, change: Callable[[Any, dict[Any, Any]], Any], seen: dict[int, tuple[Any, Any]]
) -> Any:
    """The value with ``change`` made to every dataclass of this package in it, inside first.

    What has no such part stays the same object, and what occurs twice is changed once.
    """
    if id(given) in seen:
        return seen[id(given)][1]
    value = _without_owner(given)
    old = _parts(value)
    new = {name: _mapped(part, change, seen) for name, part in old.items()}
    if _is_own_dataclass(value):
        result = change(value, new)
    elif any(new[name] is not part for name, part in old.items()):
        result = _with_parts(value, new)
    else:
        result = value
    # The value is kept too, so that its id is not given to another.
    seen[id(given)] = (given, result)
    return result


def _without_owner(value: Any) -> Any:
    """A metadata request with the name of its estimator instead of the estimator that holds it."""
    requests = type(value).__module__ == "sklearn.utils._metadata_requests"
    if not requests or isinstance(getattr(value, "owner", ""), str):
        return value
    named = copy.copy(value)
    named.owner = type(value.owner).__name__
    return named


def _is_own_dataclass(value: Any) -> bool:
    return is_dataclass(value) and not isinstance(value, type) and _of_package(type(value))


def _is_frozen(value: Any) -> bool:
    return type(value).__dataclass_params__.frozen


def _parts(value: Any) -> dict[Any, Any]:
    """What a value is made of, by name or number; nothing for what is not looked into."""
    if _is_own_dataclass(value):
        declared = {field.name: field.init for field in fields(value)}
        # What a frozen object has beyond its fields is a cache; others are fitted.
        others = not _is_frozen(value)
        return {k: part for k, part in vars(value).items() if declared.get(k, others)}
    if isinstance(value, dict):
        return dict(value)
    if isinstance(value, list | tuple | set | frozenset):
        return dict(enumerate(value))
    if isinstance(value, np.ndarray):
        return dict(enumerate(np.ma.getdata(value).flat)) if value.dtype == object else {}
    if hasattr(value, "check_format"):
        # A sparse matrix whose indices point outside of it would be read outside of it.
        value.check_format(full_check=True)
        return {}
    if not hasattr(value, "__dict__") or inspect.isroutine(value) or isinstance(value, type):
        return {}
    return dict(vars(value))


def _with_parts(value: Any, parts: dict[Any, Any]) -> Any:
    """A copy with other parts."""
    if isinstance(value, tuple) and hasattr(value, "_make"):
        return value._make(parts.values())  # type: ignore
    if isinstance(value, list | tuple | set | frozenset):
        return type(value)(parts.values())  # type: ignore
    changed = copy.copy(value)
    if isinstance(changed, dict):
        changed.update(parts)
    elif isinstance(changed, np.ndarray):
        changed = value.copy()
        entries = np.ma.getdata(changed).reshape(-1)
        for place, part in parts.items():
            entries[place] = part
    else:
        changed.__dict__.update(parts)
    return changed
