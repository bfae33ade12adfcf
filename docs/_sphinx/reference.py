"""A page for each public name, made from ``__all__``, and links to it from code in the text."""

import importlib
import inspect
import re
from collections import Counter
from pathlib import Path

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.transforms import SphinxTransform

import setwise

# What is public but not loaded by `from setwise import *`.
APART = ("setwise.dask", "setwise.nn", "setwise.nn.functional", "setwise.report")
# What the classes of these modules fill.
ROLES = {
    "targets": setwise.targets.Target,
    "spaces": setwise.spaces.Space,
    "surrogates": setwise.surrogates.Surrogate,
    "distributions": setwise.distributions.Distribution,
}
# A bar that is not within backticks.
BAR = re.compile(r"\|(?=(?:[^`]*`[^`]*`)*[^`]*$)")
FOLDER = Path(__file__).parents[1] / "api"


def public_modules():
    """The modules whose ``__all__`` is public, the package itself first."""
    loaded = (name for name in setwise.__all__ if inspect.ismodule(getattr(setwise, name)))
    return ["setwise", *sorted([*(f"setwise.{name}" for name in loaded), *APART])]


def public_names():
    """For each public module the names of what it holds, each object under its shortest."""
    homes, found = {}, {}
    for module in public_modules():
        loaded = importlib.import_module(module)
        objects = {name: getattr(loaded, name) for name in loaded.__all__}
        found[module] = [
            homes.setdefault(id(thing), f"{module}.{name}")
            for name, thing in sorted(objects.items())
            if not inspect.ismodule(thing)
        ]
    return found


def _filenames(names):
    """Names that differ by case only, told apart: not every disk does."""
    seen = Counter()
    changed = {}
    for name in sorted(names):
        seen[name.lower()] += 1
        if seen[name.lower()] > 1:
            changed[name] = f"{name}-{seen[name.lower()]}"
    return changed


def _underlined(title):
    return f"{title}\n{'=' * len(title)}\n"


def _page(module, names):
    """A module: what it says of itself, and its names; those shown elsewhere link there."""
    own = [name for name in names if name.rpartition(".")[0] == module]
    parts = [_underlined(module), f".. automodule:: {module}\n   :no-members:\n"]
    # (Names are relative to the package: autosummary would put a current module before them.)
    parts.append(".. currentmodule:: setwise\n")
    parts += [_table(own, "   :toctree: .\n")] * bool(own)
    parts += [_table([name for name in names if name not in own], "")] * (len(own) < len(names))
    return "\n".join(parts)


def _table(names, option):
    listed = "".join(f"   ~{name.removeprefix('setwise.')}\n" for name in names)
    return f".. autosummary::\n{option}\n{listed}"


def _index(modules):
    rows = "".join(
        f"   * - :py:mod:`{module}`\n"
        f"     - {inspect.getdoc(importlib.import_module(module)).splitlines()[0]}\n"
        for module in modules
    )
    entries = "".join(f"   {module}\n" for module in modules)
    return (
        f"{_underlined('API')}\nEvery public name has a page, with an example that runs.\n\n"
        f".. list-table::\n   :widths: 25 75\n\n{rows}\n.. toctree::\n   :hidden:\n\n{entries}"
    )


def _write(path, text):
    # (A page that has not changed keeps its time, and is not read again.)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def _prepare(app, config):
    names = public_names()
    every = {name for group in names.values() for name in group}
    config.autosummary_filename_map = changed = _filenames(every)
    FOLDER.mkdir(exist_ok=True)
    for old in FOLDER.glob("setwise*.rst"):  # of names that are gone
        if old.stem not in {*names, *(changed.get(name, name) for name in every)}:
            old.unlink()
    for module, group in names.items():
        _write(FOLDER / f"{module}.rst", _page(module, group))
    _write(FOLDER / "index.rst", _index(names))
    # (By itself it would look at the pages of the last build, and miss new modules.)
    config.autosummary_generate = [f"api/{module}.rst" for module in names]


def _skip(app, kind, name, member, skip, options):
    """Leave out what scikit-learn adds to estimators, and fields: the class describes them."""
    if re.fullmatch(r"set_\w+_request|get_metadata_routing|_.*", name):
        return True
    is_method = callable(member) or isinstance(member, (property, classmethod, staticmethod))
    return True if kind == "class" and not is_method else None


def _formulas(app, kind, name, thing, options, lines):
    """Write indented formulas as they stand, and bars as bars: in docstrings they are no markup."""
    written, inside, section = [], False, ""
    for before, line in zip(["", *lines], lines, strict=False):
        if line and set(line) == {"-"}:
            section = before
        block = line.startswith("    ") and not section
        if block and not before and not inside:
            written += ["::", ""]
        inside = block or (inside and not line)
        plain = not inside and section != "Examples"
        written.append(BAR.sub(r"\\|", line) if plain else line)
    lines[:] = written


def _by_role(app, kind, name, thing, options, lines):
    """A method that fills a role is documented once, in the role: show that."""
    module, _, rest = name.removeprefix("setwise.").partition(".")
    role = ROLES.get(module)
    if kind in ("method", "property") and not any(lines) and role is not None:
        told = getattr(role, rest.rpartition(".")[2], None)
        lines[:] = (inspect.getdoc(told) or "").splitlines()


class LinkNames(SphinxTransform):
    """Turn public names that are written as code into links to their pages."""

    default_priority = 400

    def apply(self, **kwargs):
        """Wrap each such literal in a reference."""
        here = self.env.current_document.docname
        names = {name for group in public_names().values() for name in group}
        short = Counter(name.rpartition(".")[2] for name in names)
        by_short = {
            name.rpartition(".")[2]: name for name in names if short[name.rpartition(".")[2]] == 1
        }
        for node in list(self.document.findall(nodes.literal)):
            if any(isinstance(above, (nodes.title, nodes.reference, pending_xref))
                   for above in _above(node)):  # fmt: skip
                continue
            text, called, _ = node.astext().partition("(")
            target = text if text in names else f"setwise.{text}"
            if target not in names and (text[:1].isupper() or called):
                target = by_short.get(text)
            if target not in names or target == here.rpartition("/")[2]:
                continue
            link = pending_xref(
                "", refdomain="py", reftype="obj", reftarget=target, refexplicit=True, refdoc=here
            )
            node.replace_self(link)
            link += node


def _above(node):
    while node.parent is not None:
        node = node.parent
        yield node


def setup(app):
    """Write the pages before the sources are found."""
    app.connect("config-inited", _prepare, priority=100)
    app.connect("autodoc-skip-member", _skip)
    app.connect("autodoc-process-docstring", _by_role, priority=90)
    app.connect("autodoc-process-docstring", _formulas, priority=100)  # before numpydoc
    app.add_transform(LinkNames)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
