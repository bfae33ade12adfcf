"""Formulas as MathML, which browsers draw themselves: no script, no font, no network."""

from docutils.nodes import SkipNode
from latex2mathml.converter import convert


def _inline(page, node):
    page.body.append(convert(node.astext()))
    raise SkipNode  # the children are what was converted


def _block(page, node):
    formula = convert(node.astext(), display="block")
    page.body.append(f'<div class="formula">{formula}</div>')
    raise SkipNode


def setup(app):
    """Add the way of writing formulas that ``html_math_renderer = "mathml"`` asks for."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
