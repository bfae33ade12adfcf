"""Formulas as MathML, which browsers draw themselves: no script, no font, no network."""

import re

from docutils.nodes import SkipNode
from latex2mathml.converter import convert

# A prime is raised by itself; as an exponent it is raised twice, and too small to see.
PRIME = re.compile(r"<msup>(<mi>[^<]*</mi>)<mi>(&#x0203[2-4];)</mi></msup>")


def _formula(node, display):
    written = convert(node.astext(), display=display)
    return PRIME.sub(r'<mrow>\1<mo lspace="0" rspace="0">\2</mo></mrow>', written)


def _inline(page, node):
    page.body.append(_formula(node, "inline"))
    raise SkipNode  # the children are what was converted


def _block(page, node):
    page.body.append(f'<div class="formula">{_formula(node, "block")}</div>')
    raise SkipNode


def setup(app):
    """Add the way of writing formulas that ``html_math_renderer = "mathml"`` asks for."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
