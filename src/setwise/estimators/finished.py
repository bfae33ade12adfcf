"""What of an ensemble is finished, in a folder, so that a second run goes on where one ended.

``ensemble.json`` says what the ensemble is. Beside it is a file for each fit that is finished: a
member fitted to all rows, or what one fitted to all folds but one says of that one. They appear
whole or not at all, and reading them runs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import joblib
import numpy as np

from setwise.persistence import load, save
from setwise.run_folder import begun_in

# Settings of members that change what is found only by how long they may take.
OF_TIME = ("time_budget", "n_jobs", "verbose", "on_interrupt")


@dataclass(frozen=True)
class Finished:
    """Fits that are finished, by name, in a folder; without one nothing is kept."""

    folder: Path | None = None

    def once(self, name: str, make: Callable[[], Any]) -> Any:
        """What is stored under a name; if nothing is, what ``make`` gives, which is then stored."""
        if self.folder is None:
            return make()
        file = self.folder / f"{name}.skops"
        if file.exists():
            return load(file)
        found = make()
        save(found, file)
        return found

    def fit(
        self, number: int, make: Callable[[], tuple], budget: float, is_new: bool
    ) -> tuple[Any, int, bool, bool, float]:
        """A fit of a member, as `Schedule` makes it: the third and fourth say that time changed it.

        Such a one is made anew where the budget is longer than it was, or if ``is_new``; what was
        said of folds by the one before goes with it.
        """
        name = f"{number}-all"
        if self.has(name) and not is_new:
            of_budget, found = self.once(name, tuple)
            if of_budget >= budget:
                return tuple(found)  # type: ignore
        found = make()
        if self.folder is not None:
            of_budget, file = budget if any(found[2:4]) else np.inf, self.folder / f"{name}.skops"
            # (The one before stays until this one is written.)
            for of_fold in set(self.folder.glob(f"{number}-*.skops")) - {file}:
                of_fold.unlink()
            save((of_budget, found), file)
        return found  # type: ignore

    def has(self, name: str) -> bool:
        """Whether something is stored under a name."""
        return self.folder is not None and (self.folder / f"{name}.skops").exists()


@contextmanager
def finished_in(folder: Any, identity: dict[str, str]) -> Iterator[Finished]:
    """The fits in a folder, which is locked meanwhile; raises if it is of another ensemble."""
    if folder is None:
        yield Finished()
        return
    with begun_in(Path(folder), identity, "ensemble") as place:
        yield Finished(place)


def identity_of(rows: Any, splits: list[Any], members: dict[str, Any]) -> dict[str, str]:
    """What the fits of an ensemble depend on, as digests."""
    parts = {
        "X": rows.X, "y": (rows.sets, rows.names.names), "sample_weight": rows.sample_weight,
        "folds": splits, "order of the members": list(members),
    }  # fmt: skip
    for name, member in members.items():
        given = member.get_params(deep=True).items()
        settings = {key: value for key, value in given if key.split("__")[-1] not in OF_TIME}
        parts[f"member {name!r}"] = {
            key: repr(value) if hasattr(value, "get_params") else value
            for key, value in settings.items()
        }
    return {name: str(joblib.hash(part)) for name, part in parts.items()}
