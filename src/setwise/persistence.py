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
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

import numpy as np
from scipy.sparse import issparse

from setwise.archives import refuse_large_model
from setwise.atomic_write import write_whole
from setwise.files import DataError
from setwise.forests import in_compiled_trees, in_plain_trees, is_forest
from setwise.sparse import well_formed

PACKAGE = __name__.partition(".")[0]
ONLY = f"only types of {PACKAGE}, and data and estimators that skops trusts, are made from a file"
# The parts of the package whose objects are in files.
SAVED = (
    "cli.fit", "datasets", "decoders", "distributions", "estimators", "labels", "spaces",
    "surrogates", "targets", "taxonomy",
)  # fmt: skip
# When skops is imported it walks through all of scikit-learn, where these import torch and others:
# seconds, and most of a gigabyte, for nothing. They hold no estimators.
ADAPTERS = [f"sklearn.externals.array_api_compat.{name}" for name in ("cupy", "dask", "torch")]
# Types that skops does not trust by itself and that hold nothing but data.
PLAIN = (
    "builtins.frozenset", "numpy.dtype",
    "scipy.sparse._csc.csc_array", "scipy.sparse._csc.csc_matrix",
    "scipy.sparse._csr.csr_array", "scipy.sparse._csr.csr_matrix",
    "sklearn.calibration._CalibratedClassifier", "sklearn.calibration._SigmoidCalibration",
    "sklearn.metrics._scorer._PassthroughScorer",
    "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
    "sklearn.neural_network._stochastic_optimizers.SGDOptimizer",
    "sklearn.utils._metadata_requests.MetadataRequest",
    "sklearn.utils._metadata_requests.MethodMetadataRequest",
)  # fmt: skip


def save(estimator: Any, path: str | os.PathLike[str], *, trusted: Iterable[str] = ()) -> None:
    """Write an estimator, or any object of this package, to a file.

    The file appears whole or not at all. What `load` would refuse is refused with a ValueError that
    names it. A function is such a thing, so a `CountTarget` cannot be saved: its file would have to
    hold code. (With ``trusted=["module.function"]`` the *name* of a function is saved, and `load`
    imports it.)

    Parameters
    ----------
    estimator : object
        A fitted or unfitted estimator, target, space, decoder, or a scikit-learn estimator, also
        one that holds any of these.
    path : str or path
        Where to write; by custom the name ends in ``.skops``.
    trusted : list of str, optional
        Further types that may be in the file, such as "sklearn.neighbors._kd_tree.KDTree"; `load`
        has to be told the same. See there.

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
    what = f"this {type(estimator).__name__} cannot be saved"
    try:
        data = skops.dumps(_rebuilt(estimator, _bare, {}))
        foreign = _foreign(data, trusted)
    except RecursionError as error:
        raise ValueError(f"{what}: something in it holds itself") from error
    except Exception as error:
        raise ValueError(f"{what}: {error}") from error
    if foreign:
        raise ValueError(
            f"{what}: it holds {', '.join(foreign)}, and {ONLY}. A function is code, which a file "
            f"must not bring along. A type that you trust can be named: trusted={foreign}, here "
            f"and in load"
        )
    write_whole(Path(os.path.realpath(path)), data)


def load(
    path: str | os.PathLike[str], *, trusted: Iterable[str] = (), max_bytes: int | None = None
) -> Any:
    """Read what `save` wrote, without running anything from the file.

    A file that holds any type but those of this package, those that skops trusts (numbers, arrays,
    containers, scikit-learn's estimators) and a few plain containers is refused before anything of
    it is made, with a ValueError that names it; so is a pickle or a damaged file. The objects of
    this package are then made by their constructors and the sparse matrices checked, so that a file
    with impossible values is refused too. A file that unpacks to far more than its size is refused
    before any of it is unpacked. The file is not signed: whether its numbers are the ones
    that were saved, only its source can tell.

    Parameters
    ----------
    path : str or path
        A file written by `save`.
    trusted : list of str, optional
        Further types that may be in the file. Neighbours of scikit-learn need
        "sklearn.neighbors._kd_tree.KDTree", say: its arrays are not checked by scikit-learn, and a
        file made to do harm can crash the process. Name types only if you trust who wrote the file.
        (The trees of forests are saved as plain numbers, and checked.)
    max_bytes : int, optional
        How much the file may unpack to; by default 256 MiB and 200 times its size.

    Returns
    -------
    object
        Equal to what was saved, but for caches.

    Examples
    --------
    >>> import tempfile
    >>> from setwise.targets import FBeta
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(FBeta(2.0), f"{folder}/target.skops")
    ...     load(f"{folder}/target.skops")
    FBeta(beta=2.0, empty=1.0)
    """
    trusted, skops = _names(trusted), _skops()
    data, what = Path(path).read_bytes(), f"{os.fspath(path)!r} was not loaded"
    try:
        refuse_large_model(Path(path), data, max_bytes)
        foreign = _foreign(data, trusted)
        if not foreign:
            unknown = skops.get_untrusted_types(data=data)
            return _rebuilt(skops.loads(data, trusted=[*unknown, *trusted]), _made_anew, {})
    except DataError as error:
        raise ValueError(f"{what}: {error.reason}") from error
    except Exception as error:
        raise ValueError(
            f"{what}: it is damaged, or no file that {PACKAGE} saved "
            f"({type(error).__name__}: {error})"
        ) from error
    what += f", and nothing in it was run: it holds {', '.join(foreign)}"
    if all(name.startswith(f"{PACKAGE}.") for name in foreign):
        raise ValueError(
            f"{what}, which this version of {PACKAGE} does not have as a type of data. A file of "
            f"another version has to be made anew: fit the model again and save it"
        )
    raise ValueError(
        f"{what}, and {ONLY}. If you trust who wrote it: load(path, trusted={foreign})"
    )


def trusted_types() -> list[str]:
    """The types that a file of `save` may hold, for programs that read files by skops themselves.

    Such a program asks which types it may make. These hold data only: estimators, targets, spaces
    and what belongs to them, and a few plain containers. Where you can, read files by `load`: it
    makes objects by their constructors, which check what they are given, and skops does not.

    Returns
    -------
    list of str
        Names as ``skops.io.load(..., trusted=...)`` takes them, in order.

    Examples
    --------
    >>> "setwise.estimators.set_classifier.SetClassifier" in trusted_types()
    True
    """
    found = set(PLAIN)
    for part in SAVED:
        for module in _modules(f"{PACKAGE}.{part}"):
            names = (f"{module.__name__}.{name}" for name in vars(module))
            found |= {name for name in names if _is_own(name) and _named(name) == name}
    return sorted(found)


def _modules(name: str) -> list[Any]:
    """A module, and if it is a package all that it holds."""
    module = import_module(name)
    paths = getattr(module, "__path__", [])
    return [module, *(import_module(info.name) for info in iter_modules(paths, f"{name}."))]


def _named(name: str) -> str:
    """The name of a class where it is written, from any under which it is found."""
    module, _, attribute = name.rpartition(".")
    found = getattr(import_module(module), attribute)
    return f"{found.__module__}.{found.__qualname__}"


def _skops() -> Any:
    try:
        with _hidden(ADAPTERS):
            import skops.io
    except ImportError as error:
        raise ImportError("to save and load, install skops: pip install skops") from error
    return skops.io


@contextmanager
def _hidden(modules: Iterable[str]) -> Iterator[None]:
    """Let imports of these modules fail within the block, unless they are imported already."""
    missing = [name for name in modules if name not in sys.modules]
    sys.modules |= dict.fromkeys(missing)  # type: ignore
    try:
        yield
    finally:
        for name in missing:
            if sys.modules.get(name) is None:
                sys.modules.pop(name, None)


def _names(trusted: Iterable[str]) -> list[str]:
    names = [trusted] if isinstance(trusted, str) else list(trusted)
    if not all(isinstance(name, str) for name in names):
        raise ValueError(
            f"trusted must be a list of names such as 'sklearn.neighbors._kd_tree.KDTree', not "
            f"{names}"
        )
    return names


def _foreign(data: bytes, trusted: list[str]) -> list[str]:
    """The types in a file that nobody trusts, or could: a lambda is not found by its name.

    Nothing of the file is made or imported to tell.
    """
    known = {name for name in (*PLAIN, *trusted) if "<" not in name}
    unknown = _skops().get_untrusted_types(data=data)
    return [name for name in unknown if name not in known and not _is_own(name)]


def _is_own(name: str) -> bool:
    """Whether it is a class of this package that holds data, not just anything found in it.

    A module also has what it imports, and functions; skops would call these. Dataclasses,
    estimators and named tuples do nothing when they are made but check and keep their arguments.
    """
    from sklearn.base import BaseEstimator

    module, _, attribute = name.rpartition(".")
    if module.partition(".")[0] != PACKAGE or "__" in name:
        return False
    try:
        found = getattr(import_module(module), attribute, None)
    except ImportError:
        return False
    if not isinstance(found, type) or not _of_package(found):
        return False
    return is_dataclass(found) or issubclass(found, BaseEstimator | tuple)


def _of_package(kind: type) -> bool:
    return kind.__module__.partition(".")[0] == PACKAGE


def _bare(value: Any, parts: dict[str, Any]) -> Any:
    """An object of the package with nothing but what its constructor takes, and what was fitted."""
    bare = object.__new__(type(value))
    bare.__dict__.update(parts)
    return bare


def _made_anew(value: Any, parts: dict[str, Any]) -> Any:
    """The same object by its constructor, which checks, with what was fitted."""
    taken = {field.name for field in fields(value)}
    fitted = vars(value).keys() - taken
    if fitted and type(value).__dataclass_params__.frozen:
        raise ValueError(f"{type(value).__name__} has no {', '.join(sorted(fitted))}")
    made = type(value)(**{name: part for name, part in parts.items() if name in taken})
    made.__dict__.update({name: parts[name] for name in fitted})
    return made


def _rebuilt(value: Any, made: Callable[..., Any], done: dict[int, tuple[Any, Any]]) -> Any:
    """The value with ``made`` applied to every dataclass of this package in it, inside first.

    What occurs twice is changed once: ``done`` has each value by its id, and keeps it alive so
    that no other takes the id.
    """
    if id(value) in done:
        return done[id(value)][1]

    def rebuilt(parts: dict[Any, Any]) -> dict[Any, Any]:
        return {name: _rebuilt(part, made, done) for name, part in parts.items()}

    kind, changed = type(value), value
    if is_dataclass(value) and not isinstance(value, type) and _of_package(kind):
        # What a frozen object has beyond its fields is a cache; of others it was fitted.
        taken = {f.name: f.init for f in fields(value)}
        beyond = not kind.__dataclass_params__.frozen
        kept = {name: part for name, part in vars(value).items() if taken.get(name, beyond)}
        changed = made(value, rebuilt(kept))
    elif isinstance(value, dict):
        changed = copy.copy(value)
        changed.update(rebuilt(value))
    elif isinstance(value, list | tuple | set | frozenset):
        parts = rebuilt(dict(enumerate(value))).values()
        changed = value._make(parts) if hasattr(value, "_make") else kind(parts)  # type: ignore
    elif isinstance(value, np.ndarray) and value.dtype == object:
        changed = value.copy()
        entries = np.ma.getdata(changed).reshape(-1)
        for place, part in rebuilt(dict(enumerate(entries))).items():
            entries[place] = part
    elif issparse(value):
        well_formed(value, "a sparse matrix in it")
    elif hasattr(value, "__dict__") and not (inspect.isroutine(value) or isinstance(value, type)):
        own = dict(vars(value))
        if kind.__module__ == "sklearn.utils._metadata_requests" and "owner" in own:
            # A metadata request names its estimator; the estimator itself would hold it in turn.
            owner = own["owner"]
            own["owner"] = owner if isinstance(owner, str) else type(owner).__name__
        changed, forest = copy.copy(value), is_forest(value)
        own = in_plain_trees(own) if forest and made is _bare else own
        own = rebuilt(own)
        changed.__dict__.update(in_compiled_trees(own) if forest and made is _made_anew else own)
    done[id(value)] = (value, changed)
    return changed
