"""Which method is best for which target? Every method on the same rows, stored as it goes.

`METHODS` has the methods that are known by name.

>>> METHODS["binary_relevance"].name
'binary_relevance'
"""

from setwise.study.folder import Summary, load, summary
from setwise.study.leaderboard import InHierarchy, Leaderboard, Standing, in_hierarchy, leaderboard
from setwise.study.members import MemberFigures, members_of
from setwise.study.methods import METHODS, Method
from setwise.study.results import KnownTruth, Outcome, Results, Scale
from setwise.study.study import Study

__all__ = [
    "METHODS",
    "InHierarchy",
    "KnownTruth",
    "Leaderboard",
    "MemberFigures",
    "Method",
    "Outcome",
    "Results",
    "Scale",
    "Standing",
    "Study",
    "Summary",
    "in_hierarchy",
    "leaderboard",
    "load",
    "members_of",
    "summary",
]
