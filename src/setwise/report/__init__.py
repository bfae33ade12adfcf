"""A study as one page that can be shown: a single HTML file that needs nothing else.

`write` makes it from what `setwise.study` found. Figures come from `setwise.evaluation` and from
the study's leaderboard; here they are only put into words, tables and pictures.
"""

from setwise.report.page import write

__all__ = ["write"]
