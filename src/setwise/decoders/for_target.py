"""The decoder of a target: row by row, or for all rows together.

Estimators ask both kinds the same questions. `MinimumRisk` decides each row by itself and is ready
as it is. `Together` decides from the marginals of all rows, by a rule that is fitted to what a
model says of rows it was not trained on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

from setwise.decoders.minimum_risk import MinimumRisk
from setwise.decoders.population_rule import NEED_SETS, RULES, PopulationRule
from setwise.distributions import Listed
from setwise.spaces.space import Space
from setwise.spelling import argument
from setwise.targets.additive import CostSensitive
from setwise.targets.measure import Array
from setwise.targets.registry import get_target
from setwise.targets.target import Target, judges_all_rows
from setwise.validation import require_one_of


class HeldOut(NamedTuple):
    """Marginals (n, l) of rows that were not trained on, their label sets and weights."""

    probability: Array
    sets: Array
    weights: Array


@dataclass(eq=False)
class Together:
    """Decides for a measure of all rows together, from their marginals.

    Where there are no rows to fit the rule to, it decides each batch by the batch's own marginals.
    """

    rule: PopulationRule
    is_of_whole: ClassVar[bool] = True

    @property
    def target(self) -> Target:
        """What all rows together are judged by."""
        return get_target(self.rule.target)

    @property
    def depends_on_batch(self) -> bool:
        """Whether what is predicted for a row depends on the rows that come with it."""
        return self.rule.depends_on_batch

    def fitted(self, held_out: Callable[[], HeldOut | None]) -> Together:
        """The same with its rule fitted to rows held out, if it needs any and there are some.

        Refused where there are none and the rule asked for goes by their label sets.
        """
        if self.depends_on_batch:
            return self
        found = held_out()
        if found is None:
            if self.rule.rule in NEED_SETS:
                raise ValueError(
                    f"{argument('decoder', self.rule.rule)} is found by rows with known label sets "
                    f"that were not trained on, and there are none here; 'batch' and 'auto' go by "
                    f"the probabilities of the rows to be predicted"
                )
            return Together(replace(self.rule, rule="batch"))
        return Together(replace(self.rule).fit(*found))

    def decode(self, distribution: Any) -> Any:
        """The label sets of all rows, from a distribution or from marginals, (n, l)."""
        given = distribution
        given = given.marginals() if hasattr(given, "marginals") else given
        if self.depends_on_batch:
            return replace(self.rule).fit(given).decode(given)
        return self.rule.decode(given)

    def decode_catalog(self, posterior: Any, sets: Any, over: str = "all") -> Any:
        """The label sets of all rows for a posterior over listed label sets."""
        self.require_over(over, sets)
        return self.decode(Listed(sets, posterior))

    def covers_all(self, n_labels: int) -> bool:
        """Any label set may be predicted."""
        return True

    def require_over(self, over: str, sets: Any) -> None:
        """Raise where predictions are to be among listed sets: thresholds know of no list."""
        if over != "all":
            raise ValueError(
                f"for {self.target} labels are decided one by one, so any label set may come of "
                f"it; use over='all' or over='auto', not {over!r}"
            )

    def prepare(self, space: Space) -> None:
        """Refuse a budget of more labels than there are; every space has marginals."""
        self.rule.require_room(space.n_labels)

    def decodes(self, space: Space) -> bool:
        """On every space."""
        return True


@dataclass(eq=False)
class AtCosts:
    """Decides each label by the costs that stand for a measure of all rows together.

    Where a model was trained for these costs, by the sign of its scores.
    """

    target: Target
    costs: CostSensitive
    is_of_whole: ClassVar[bool] = False
    depends_on_batch: ClassVar[bool] = False

    def __post_init__(self):
        self._risk = MinimumRisk(self.costs)

    def fitted(self, held_out: Callable[[], HeldOut | None]) -> AtCosts:
        """The same: the costs are known."""
        return self

    def decode(self, distribution: Any) -> Any:
        """The label sets of least expected cost, from a distribution or from marginals, (n, l)."""
        return self._risk.decode(distribution)

    def prepare(self, space: Space) -> None:
        """Check that there are costs for the labels of the space."""
        self._risk.prepare(space)

    def decodes(self, space: Space) -> bool:
        """On every space: the marginals are enough."""
        return True


Decoder = MinimumRisk | Together | AtCosts


def decoder_of(target: Any, rule: Any = "auto") -> MinimumRisk | Together:
    """The decoder of a target, by name or as an object.

    ``rule`` is for a measure of all rows: one of `RULES`, or a `PopulationRule` of that measure
    with settings.
    """
    target = get_target(target)
    is_rule = isinstance(rule, PopulationRule)
    if not judges_all_rows(target):
        if is_rule:
            raise ValueError(
                f"{rule!r} decides for measures of all rows together, such as 'macro_f1', but the "
                f"target is {target}"
            )
        return MinimumRisk(target)
    if not is_rule:
        require_one_of(rule, RULES, "decoder")
        return Together(PopulationRule(target, rule))
    # (By what they say of themselves: parts may be arrays, and nan is not equal to itself.)
    if repr(get_target(rule.target)) != repr(target):
        raise ValueError(
            f"the decoder {rule!r} decides for {get_target(rule.target)}, but the target is "
            f"{target}: both must name the same measure"
        )
    return Together(replace(rule, target=target))


def with_target(rule: Any, target: Any) -> Any:
    """What a model was to be decoded by, for another target; a `PopulationRule` takes it over."""
    both = isinstance(rule, PopulationRule) and judges_all_rows(get_target(target))
    return replace(rule, target=target) if both else rule
