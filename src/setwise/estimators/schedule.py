"""In which order members of a mixture are fitted, and how time is shared among them.

Each member is fitted to all rows and without the first fold; then all of them without the second
fold, and so on, while there is time: a mixture is judged by the folds that all its members have.
Where time is limited and a single part is held out, a member is fitted once, without that part; so
it is where there is time for less than half of the rows.
A fit that ended for want of time is repeated where much more time turns out to be left.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np

from setwise.distributions import Distribution
from setwise.estimators.finished import Finished
from setwise.estimators.members import (
    ALL_WORK,
    GROWTH,
    Given,
    Member,
    affordable,
    budgeted,
    compact,
    rows_within,
    settled,
    was_cut,
)
from setwise.estimators.running import Watch

# Of the time that is left to a member, what its fit may take, with folds to come and without.
OF_SHARE, OF_ONE = 0.3, 0.8
# Rows held out that members are asked for where time is limited and one part is held out.
MOST_ASKED = 2_000
# How much longer than the last fold the next one may take, and how much more time than before is
# worth another fit.
SLOWER, MORE = 1.25, 1.25


@dataclass(eq=False)
class Tried:
    """A member that is fitted, and what models like it said of the first folds."""

    number: int
    name: str
    member: Any
    estimator: Any
    n_rows: int
    # Whether it ended for want of time, and whether it was fitted without what is held out.
    is_cut: bool
    is_once: bool
    # What the fit took, and the last fold (of which a fit is the first guess).
    seconds: float
    of_fold: float
    # Time that is kept for its other folds.
    kept: float = 0.0
    laws: list[Distribution] = field(default_factory=list)
    n_folds: int = 0

    def rows_within(self, seconds: float) -> int:
        """How many rows it could learn from in so long; as many as before if time cut its training.

        (It learns more of these then.)
        """
        if was_cut(self.estimator):
            return self.n_rows
        known = self.n_rows**GROWTH, self.seconds
        return int(self.n_rows * affordable(ALL_WORK * seconds, known, known))

    @property
    def fitted(self) -> Member:
        """As it is mixed."""
        return Member(self.name, self.estimator, self.laws)

    @cached_property
    def again(self) -> Any:
        """The same, to be fitted again with what it chose."""
        return settled(self.estimator)


@dataclass(eq=False)
class Schedule:
    """Fits of members, one after the other, as time allows."""

    rows: Given
    splits: list[Any]
    watch: Watch
    finished: Finished
    budget: float = np.inf
    tried: list[Tried] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    n_repeated: int = 0

    def __post_init__(self):
        # The rows that members learn from; of some, the first as chance has them.
        self.n_splits, self.pool, self.is_once = len(self.splits), self.rows.order, False
        if len(self.splits) == 1 and self.budget < np.inf:
            self._hold_out_once()

    def _hold_out_once(self) -> None:
        """From now on members are fitted once, without the first part that is held out."""
        train, test = self.splits[0]
        self.splits, self.is_once = [(train, test[:MOST_ASKED])], True
        self.pool = self.pool[np.isin(self.pool, train)]

    @property
    def judged(self) -> list[Tried]:
        """Those that were tried on a fold at least."""
        return [one for one in self.tried if one.n_folds]

    @property
    def found(self) -> list[Tried]:
        """Those that were tried on a fold at least; if there are none, the first one."""
        return self.judged or self.tried[:1]

    @property
    def cut(self) -> list[str]:
        """What there was no time for, in words."""
        told, most = [], len(self.pool)
        for one in self.found:
            if one.n_rows < most:
                told.append(f"{one.name} learnt from {one.n_rows:,} of {most:,} rows")
            elif one.is_cut:
                told.append(f"{one.name} ended early")
        n_folds = min((one.n_folds for one in self.judged), default=0)
        if n_folds < self.n_splits:
            told.append(f"{n_folds} of {self.n_splits} folds were held out")
        known = [one.name for one in self.found]
        missing = [name for name in self.names if name not in known]
        return told + ([f"left out: {', '.join(missing)}"] if missing else [])

    def train(self, members: dict[str, Any]) -> None:
        """Fit them in their order, while there is time."""
        self.names = list(members)
        for number, (name, member) in enumerate(members.items()):
            n_left, begun = len(members) - number, time.monotonic()
            free = self.watch.left - sum(one.kept for one in self.tried)
            share = max(free, 0.0) / n_left
            one = self._fitted(number, name, member, share * (OF_ONE if self.is_once else OF_SHARE))
            self.tried.append(one)
            # From now on there is a model to end with.
            self.watch.kept = 0.0
            # (The first one may take the time of the others for its first fold.)
            self._fold(one, self.watch.left / (1 if number == 0 else n_left))
            more = SLOWER * one.of_fold * (len(self.splits) - 1)
            one.kept = min(more, max(begun + share - time.monotonic(), 0.0))
        for _ in self.splits[1:]:
            if not all([self._fold(one, self.watch.left) for one in self.judged]):
                break
        while self._repeat():
            pass

    def _repeat(self) -> bool:
        """Fits that were cut once more, where much more time is left; whether there was one."""
        if self.watch.left == np.inf:
            # Only a member's own budget has cut it, which would do so again.
            return False
        n_before = self.n_repeated
        cut = [one for one in self.judged if one.is_cut]
        for place, one in enumerate(cut):
            share, folds = self.watch.left / (len(cut) - place), one.n_folds * one.of_fold
            seconds = share * (OF_ONE if self.is_once else one.seconds / (one.seconds + folds))
            if seconds < MORE * one.seconds:
                continue
            self.n_repeated += 1
            again = self._fitted(one.number, one.name, one.member, seconds, one)
            while again.n_folds < one.n_folds and self._fold(again, self.watch.left):
                pass
            if again.n_folds == one.n_folds:
                self.tried[self.tried.index(one)] = again
        return self.n_repeated > n_before

    def _fitted(
        self, number: int, name: str, member: Any, seconds: float, before: Tried | None = None
    ) -> Tried:
        """The member fitted in about so long, or as it is stored; ``before``, with less time."""
        self.watch.words = f"{name}: all rows"
        self.watch.step()
        begun, make = time.monotonic(), partial(self._to_all, name, member, seconds, before)
        found = self.finished.fit(number, make, self.budget, before is not None)
        if found[3] and not self.is_once:
            self._hold_out_once()
        of_fold = 0.0 if self.is_once else time.monotonic() - begun
        return Tried(number, name, member, *found, of_fold)

    def _to_all(
        self, name: str, member: Any, seconds: float, before: Tried | None
    ) -> tuple[Any, int, bool, bool, float]:
        """What `Tried` has of a fit: it, its rows, whether it was cut, or once, and its seconds."""
        begun, n_rows = time.monotonic(), len(self.pool)
        if before is not None:
            n_rows = min(n_rows, before.rows_within(seconds))
        elif seconds < np.inf:
            n_rows = rows_within(name, member, seconds, self.rows, self.pool)
            if 2 * n_rows < len(self.pool) and not (self.is_once or self.tried):
                # There is time for few rows only: more of them are worth more than folds.
                self._hold_out_once()
                more = OF_ONE / OF_SHARE
                n_rows = min(int(more ** (1.0 / GROWTH) * n_rows), len(self.pool))
                seconds *= more
        if seconds < np.inf:
            member = budgeted(member, seconds - (time.monotonic() - begun))
        self.watch.step()
        is_part = n_rows < len(self.rows.sets)
        fitted = self.rows.fit(member, self.pool[:n_rows] if is_part else slice(None), name)
        is_cut, took = n_rows < len(self.pool) or was_cut(fitted), time.monotonic() - begun
        return fitted, n_rows, is_cut, self.is_once, took

    def _fold(self, one: Tried, left: float) -> bool:
        """What the member says of the next fold, fitted without it, if there is time for that."""
        fold, begun = one.n_folds, time.monotonic()
        stored, (train, test) = f"{one.number}-{fold}", self.splits[fold]
        if left < SLOWER * one.of_fold and not self.finished.has(stored):
            return False
        where = f"fold {fold + 1} of {len(self.splits)}"
        self.watch.words = f"{one.name}: {where}"
        self.watch.step()

        def said() -> list[Distribution]:
            fitted = one.estimator
            if not one.is_once:
                part = train[np.isin(train, self.pool[: one.n_rows])]
                fitted = self.rows.fit(one.again, part, one.name, f"without {where}")
            return self.rows.laws(fitted, test)

        one.laws += [compact(law) for law in self.finished.once(stored, said)]
        one.n_folds, one.of_fold = fold + 1, time.monotonic() - begun
        return True
