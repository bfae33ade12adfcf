"""Which method is best for which target? Every method on the same rows, stored as it goes."""

from setwise.study.leaderboard import Leaderboard, Standing, leaderboard
from setwise.study.results import KnownTruth, Outcome, Results

__all__ = ["KnownTruth", "Leaderboard", "Outcome", "Results", "Standing", "leaderboard"]
