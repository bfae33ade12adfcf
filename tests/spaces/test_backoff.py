"""Laws of the space that backs off, beyond those that every space keeps."""

import numpy as np
import pytest

from setwise.consistency import certify
from setwise.consistency.naming import chosen_surrogate
from setwise.consistency.theorems import covering
from setwise.decoders import MinimumRisk
from setwise.distributions import OfSpace
from setwise.spaces import Backoff, Catalog, Cube, Forest, Paths, Sized, Slice
from setwise.spaces.space import all_sets
from setwise.targets import FBeta, get_target
from tests.support import cases, oracle
from tests.support.turns import in_turn

BASES = {
    "cube": Cube(5),
    "sized": Sized(5, [0.3, 0.0, 1.0, -np.inf, 0.2]),
    "closed": Forest([-1, 0, 0, -1, 3], closed=True),
    "chain": Forest.chain(5, np.tile(np.eye(2), (5, 1, 1))),
    "catalog": Catalog(all_sets(5)[::3], np.linspace(-1.0, 1.0, 11)),
}
every_base = in_turn("base", BASES.values(), ids=BASES)


def over(base, n_sets=4, largest=5.0, seed=0):
    """The base with bonuses, of which one is 0, for some of its sets."""
    rng = np.random.default_rng(seed)
    sets = rng.permutation(base.enumerate())[:n_sets]
    return Backoff(base, sets, np.append(0.0, rng.uniform(0.0, largest, n_sets - 1)))


@every_base
def test_no_bonus_is_the_base(base):
    """With bonuses of 0 every answer is the base's."""
    rng = np.random.default_rng(1)
    space, scores = (
        over(base).with_parameters([*base.parameters, *np.zeros(4)]),
        rng.normal(size=(6, 5)),
    )
    np.testing.assert_array_equal(space.log_partition(scores), base.log_partition(scores))
    np.testing.assert_allclose(space.marginals(scores), base.marginals(scores), rtol=1e-14)
    np.testing.assert_array_equal(space.most_likely(scores), base.most_likely(scores))


@every_base
@in_turn("bonus", [1e-300, 1e-12, 30.0, 800.0, 1e5])
def test_a_bonus_of_any_size_gives_the_enumerated_likelihood(base, bonus):
    """log s(y) of every set and its slopes: e^bonus, or that less 1, is never taken alone."""
    rng = np.random.default_rng(2)
    sets = base.enumerate()
    space = Backoff(base, sets[:2], [bonus, 0.5 * bonus])
    scores = np.tile(rng.normal(size=5), (len(sets), 1))
    own = oracle.by_itself(space)
    law = oracle.set_probability(own, scores[0])
    value, by_score, by_parameter = space.negative_log_likelihood(scores, sets)
    with np.errstate(divide="ignore"):
        known = np.log(oracle.as_float(law))
    place = [int(np.flatnonzero((own.sets == row).all(axis=1))[0]) for row in sets]
    seen = known[place] > -700.0
    np.testing.assert_allclose(-value[seen], known[place][seen], rtol=1e-9, atol=1e-15)
    for found, features in ((by_score, own.score_features), (by_parameter, own.parameter_features)):
        slopes = -oracle.as_float(oracle.centred(features, law))[place]
        np.testing.assert_allclose(found, slopes, rtol=1e-9, atol=1e-13)
    assert np.isfinite(value).all()


def test_what_a_likely_set_lacks_of_certainty_is_kept():
    """-log s(y) and its slopes of a set that is all but certain are accurate to themselves."""
    scores, y = np.full((1, 4), 24.0), np.ones((1, 4), np.uint8)
    space = Backoff(Cube(4), [[1, 1, 1, 1], [1, 1, 1, 0]], [3.0, 1.0])
    value, by_score, by_parameter = space.negative_log_likelihood(scores, y)
    rest = np.exp(-3.0) * (np.expm1(4.0 * np.log1p(np.exp(-48.0))) + np.exp(-48.0) * np.expm1(1.0))
    np.testing.assert_allclose(value, np.log1p(rest), rtol=1e-12)
    np.testing.assert_allclose(by_parameter[0, 0], -rest / (1.0 + rest), rtol=1e-12)
    np.testing.assert_allclose(by_score[0, 0], -2.0 * np.exp(-51.0), rtol=1e-9)


@every_base
@in_turn("target", ["hamming", "f1", "jaccard", "subset"])
def test_predictions_have_the_least_risk(base, target):
    """Of all label sets (of those of the space, for targets that no sums decide)."""
    rng = np.random.default_rng(3)
    space, scores = over(base), rng.normal(size=(8, 5))
    law = np.array(
        [oracle.as_float(oracle.set_probability(oracle.by_itself(space), row)) for row in scores]
    )
    sets = space.enumerate()
    candidates = sets if target == "jaccard" else all_sets(5)
    judge = get_target(target)
    loss = np.array([judge.loss(np.broadcast_to(y, sets.shape), sets) for y in candidates])
    found = MinimumRisk(target).decode(OfSpace(space, scores), return_risk=True)
    np.testing.assert_allclose(found.risk, (law @ loss.T).min(axis=1), rtol=1e-9, atol=1e-10)


def test_f_beta_is_decoded_where_sets_are_too_many_to_list():
    """From P(label, size), which is the base's and the listed sets' by their shares."""
    rng = np.random.default_rng(4)
    sets = (rng.random((9, 40)) < 0.1).astype(np.uint8)
    space, scores = (
        Backoff(Sized(40, np.zeros(9)), sets, np.full(9, 6.0)),
        rng.normal(-2, 1, (5, 40)),
    )
    joint, size = OfSpace(space, scores).label_sizes()
    np.testing.assert_allclose(size.sum(axis=1), 1.0, rtol=1e-10)
    np.testing.assert_allclose(joint.sum(axis=1), space.marginals(scores), rtol=1e-9)
    risk = MinimumRisk(FBeta(2.0))
    assert risk.decodes(space)
    decided = risk.decode_scores(scores, space, return_risk=True)
    expected = space.expectation("f2")
    # E[loss of a fixed prediction] is that of the true set where the two are exchanged.
    swapped = FBeta(0.5).on(space)
    mean = space.mean(swapped, scores, decided.sets, "loss")
    np.testing.assert_allclose(decided.risk, mean.value, rtol=1e-9)
    assert expected.target == risk.target
    for target in ("jaccard", "f1"):
        assert MinimumRisk(target).decodes(space) == (target == "f1")
    with pytest.raises(ValueError, match=r"no exact minimum-risk decoding on Backoff of 9 sets"):
        MinimumRisk("jaccard").prepare(space)


@every_base
def test_samples_are_sets_of_the_base(base):
    space = over(base)
    drawn = space.sample(200, np.random.default_rng(0))
    assert base.contains(drawn).all()
    assert len(np.unique(drawn, axis=0)) > 5


def test_the_most_likely_set_is_not_taken_for_another():
    """A listed set that is the base's own most likely keeps its bonus; ties go to the base."""
    space = Backoff(Cube(2), [[1, 0], [0, 1]], [1.0, 1.0])
    scores = np.array([[0.4, -0.3], [-0.4, 0.3], [0.4, 0.3], [0.1, 0.1], [-2.0, -2.0]])
    expected = [[1, 0], [0, 1], [1, 0], [1, 0], [0, 0]]
    np.testing.assert_array_equal(space.most_likely(scores), expected)
    level = Backoff(Cube(2), [[0, 0]], [4.0])
    np.testing.assert_array_equal(level.most_likely([[1.0, 1.0]]), [[1, 1]])


def test_what_is_not_a_backoff_is_refused():
    base, sets = Slice(3, 1), [[1, 0, 0], [0, 1, 0]]
    for arguments, words in (
        (("cube", sets), "score for each label, such as Cube"),
        ((Catalog(sets, joint=True), sets), "score for each label"),
        ((base, [[1, 1, 0]]), r"\[1, 1, 0\], row 0, is not in Slice\(3, 1\)"),
        ((base, [[1, 0]]), "3"),
        ((base, np.empty((0, 3))), "at least one label set"),
        ((base, [*sets, sets[0]]), "must not list a label set twice, but rows 0 and 2"),
        ((base, sets, [1.0]), r"bonus must be of shape \(2,\)"),
        ((base, sets, [1.0, -0.5]), r"bonus must not be negative, but bonus\[1\] is -0.5"),
        ((base, sets, [1.0, np.inf]), "bonus must be finite"),
        ((base, sets, [1.0, -np.inf]), "bonus must be finite"),
    ):
        with pytest.raises(ValueError, match=words):
            Backoff(*arguments)
    with pytest.raises(ValueError, match="bonus must not be negative"):
        Backoff(base, sets).with_parameters([-np.inf, 0.0, 0.0, -1.0])


def test_a_bonus_is_not_taken_for_an_even_space():
    """Theorems on sets of one size ask that none is raised, whatever the numbers are."""
    full, sets = Sized(4, [-np.inf, -np.inf, 0.7]), all_sets(4)[[3, 5]]
    assert full.is_even
    assert Backoff(full, sets).is_even
    assert not Backoff(full, sets, [0.7, 0.7]).is_even
    words = str(certify("precision@2", "logistic", Backoff(full, sets, [0.7, 0.7])))
    assert "Theorem K" not in words


def test_labels_decided_one_by_one_are_not_covered_by_a_bonus():
    """The labels more likely than not are the prediction only where no set is raised."""
    for base in (Paths([-1, 0, 0]), Forest([-1, 0, 0], closed=True)):
        choice, target = chosen_surrogate("binary_relevance"), get_target("hamming")
        sets = base.enumerate()[:1]
        assert covering(target, choice, base) is not None
        assert covering(target, choice, Backoff(base, sets, [1.0])) is None
    assert covering(target, choice, Backoff(Paths([-1, -1, 1]), [[1, 0, 0]])) is None


def test_cases_favour_sets_of_every_base():
    rng = np.random.default_rng(0)
    names = [name for name in cases.EVERY_SPACE if name.startswith("backoff")]
    assert len(names) >= 5
    for name in names:
        case = cases.EVERY_SPACE[name](4, rng)
        assert (case.space.bonus >= 0.0).all()
        assert case.space.contains(case.space.sets).all()
