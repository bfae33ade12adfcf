"""Every public name is documented by a sentence and an example that runs."""

import importlib
import inspect

import pytest

import setwise

PARTS = (*(f"setwise.{name}" for name in setwise.__all__), "setwise.report")
MODULES = ("setwise", *(part for part in PARTS if part.rpartition(".")[2] not in setwise._NAMES))


def public():
    """Names and objects of the public modules, each object once."""
    found = {}
    for module in MODULES:
        loaded = importlib.import_module(module)
        for name in loaded.__all__:
            thing = getattr(loaded, name)
            if not inspect.ismodule(thing):
                found.setdefault(id(thing), (f"{module}.{name}", thing))
    return found.values()


@pytest.mark.parametrize(("name", "thing"), [pytest.param(*pair, id=pair[0]) for pair in public()])
def test_every_public_name_has_an_example(name, thing):
    """Of a constant, the examples of its module use it."""
    module, _, own = name.rpartition(".")
    if callable(thing):
        text = inspect.getdoc(thing)
        assert text.splitlines()[0].strip()
        assert ">>>" in text
    else:
        text = inspect.getdoc(importlib.import_module(module))
        assert any(own in line for line in text.splitlines() if line.startswith(">>>"))


def test_the_networks_have_examples_too():
    pytest.importorskip("torch")
    from setwise import nn
    from setwise.nn import functional

    for module in (nn, functional):
        for name in module.__all__:
            thing = getattr(module, name)
            assert inspect.ismodule(thing) or ">>>" in inspect.getdoc(thing), name
