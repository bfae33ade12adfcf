"""A study, or predictions that were evaluated, as one page: an HTML file that needs nothing else.

`write` makes it from what `setwise.study` found or `setwise.evaluation.evaluate` returned. Figures
come from there; here they are only put into words, tables and pictures. `card` is the card of one
fitted model; `draw` makes a picture of why one row has its labels, by itself.
"""

from setwise.report.card import card
from setwise.report.page import draw, write

__all__ = ["card", "draw", "write"]
