"""Bounds hold, as tightly as is said, on both scales; slips of print are shown to be slips."""

import numpy as np
import pytest

from setwise.consistency import Effort, bound
from setwise.consistency.naming import chosen_surrogate
from setwise.consistency.setting import Setting, sampled_regrets, worst_ratio
from setwise.consistency.theorems import covering
from setwise.spaces import Cube, Slice
from setwise.surrogates import CompSum, Constrained
from setwise.surrogates.names import SURROGATES
from setwise.targets import get_target
from tests.support import oracle

F_BREAKS = (0.517, 0.055, 0.001, 0.004, 0.241, 0.128, 0.05, 0.004)


def test_bounds_hold_on_random_draws_and_ratios_are_tight_where_the_paper_is():
    """On sets of one label each, precision@1 takes every expected utility: every target at once."""
    hard = Effort(draws=1500, kept=24, variations=8, rounds=60)
    for surrogate, least in (
        ("logistic", 0.98), ("sum_exponential", 0.98), ("mean_absolute_error", 0.98),
        ("constrained_exponential", 0.98), ("constrained_hinge", 0.98), ("constrained_rho", 0.98),
    ):  # fmt: skip
        setting = Setting.of("precision@1", surrogate, Slice(2, 1), "joint")
        gamma = bound(surrogate, setting.space)
        assert least < worst_ratio(setting, gamma, hard, seed=0)[0].merit[0] <= 1.0 + 1e-6


@pytest.mark.parametrize(("q", "ratio"), [(0.3, 0.84), (0.5, 0.71), (0.9, 0.51)])
def test_the_bound_of_generalised_cross_entropy_is_slack(q, ratio):
    setting = Setting.of("precision@1", "generalized_cross_entropy", Slice(2, 1), "joint", q)
    gamma = bound("generalized_cross_entropy", setting.space, q=q)
    hard = Effort(draws=1500, kept=24, variations=8, rounds=60)
    assert worst_ratio(setting, gamma, hard, seed=0)[0].merit[0] == pytest.approx(ratio, abs=0.01)


def test_the_squared_hinge_needs_the_root_of_two_not_one_and_not_two():
    setting = Setting.of("precision@1", "constrained_squared_hinge", Slice(2, 1), "joint")
    hard = Effort(draws=1500, kept=24, variations=8, rounds=60)
    against = worst_ratio(setting, bound("constrained_squared_hinge"), hard, seed=0)[0].merit[0]
    assert 2.0 * against == pytest.approx(np.sqrt(2.0), abs=0.01)  # so sqrt(t) is exceeded
    proved = covering(setting.target, setting.choice, setting.space, "joint").gamma
    assert proved.coefficient == pytest.approx(np.sqrt(2.0))


def test_the_printed_constant_of_binary_relevance_is_false_and_the_true_one_holds():
    """eta = 1 and a score just below 0: the label is missed, regret 1, while t = ln 2."""
    setting = Setting.of("hamming", "binary_relevance", Cube(1))
    p, scores = np.array([[0.0, 1.0]]), np.array([[-1e-12]])
    place, regret = setting.worst_predictions(p, scores)
    paid = setting.value(p, scores)[0] - setting.optimum(p[0]).value
    assert setting.sets[place[0]].tolist() == [0]
    assert regret[0] == 1.0
    assert paid == pytest.approx(np.log(2.0))
    printed = bound("binary_relevance", Cube(1), as_printed=True)
    assert regret[0] > printed(paid)
    assert regret[0] <= bound("binary_relevance", Cube(1))(paid)


@pytest.mark.parametrize("surrogate", [name for name in SURROGATES if name != "binary_relevance"])
def test_a_bound_on_the_unit_scale_is_the_same_bound(surrogate):
    """Gamma_unit(t) = Gamma_paper(|Y|^(1-q) t)."""
    gamma = bound(surrogate, Cube(3))
    setting = Setting.of("f1", surrogate, Cube(3))
    factor = np.exp(setting.choice.log_unit(np.log(8.0)))
    assert gamma.on("unit")(0.02) == pytest.approx(gamma(0.02 * factor))
    assert gamma.on("unit").on("paper")(0.02) == pytest.approx(gamma(0.02))


def test_the_unit_factor_is_that_of_the_surrogates_themselves():
    law = np.array(F_BREAKS)
    sets = oracle.all_sets(3)
    first, second = np.array([[0.3, -0.2, 0.5]]), np.array([[-1.0, 0.4, 0.1]])
    for make in (
        *(lambda scale, q=q: CompSum("f1", Cube(3), q, scale) for q in (-1.0, 0.0, 0.7, 1.0)),
        lambda scale: Constrained("f1", Cube(3), "squared_hinge", scale=scale),
    ):
        change = {}
        for scale in ("unit", "paper"):
            ends = [
                make(scale).value_and_gradient(np.tile(scores, (8, 1)), sets)[0]
                for scores in (first, second)
            ]
            change[scale] = law @ (ends[0] - ends[1])
        factor = np.exp(chosen_surrogate(make("unit")).log_unit(np.log(8.0)))
        assert change["paper"] == pytest.approx(factor * change["unit"], rel=1e-9)


def test_bounds_that_depend_on_the_space_ask_for_it():
    for surrogate in ("mean_absolute_error", "generalized_cross_entropy", "binary_relevance"):
        with pytest.raises(ValueError, match="pass a space"):
            bound(surrogate)
    with pytest.raises(ValueError, match="no bound for q"):
        bound(CompSum("f1", Cube(2), -0.5))


def test_hamming_bounds_hold_on_many_draws():
    for surrogate in ("logistic", "constrained_squared_hinge"):
        setting = Setting.of("hamming", surrogate, Cube(3))
        gamma = covering(setting.target, setting.choice, setting.space).gamma
        paid, regret = sampled_regrets(setting, 2000, seed=5)
        assert (regret <= gamma(paid) + 1e-6).all()


def test_bounds_on_spaces_beyond_floating_point_are_finite_where_they_are_of_use():
    """2^3000 label sets: the constant on one scale is beyond floating point, on the other not."""
    wide = covering(get_target("hamming"), chosen_surrogate("logistic"), Cube(3000)).gamma
    assert wide.on("unit").coefficient == pytest.approx(np.sqrt(4 * 3000))
    assert wide.on("unit").on("paper").log_coefficient == pytest.approx(wide.log_coefficient)
    absolute = bound("mean_absolute_error", Cube(3000))
    assert absolute(0.0) == 0.0
    assert str(absolute) == "n t = e^2079 t"
