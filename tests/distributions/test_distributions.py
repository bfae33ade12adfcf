"""Laws of the distributions: each answer is the enumerated one, and no set beats the decision."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

import setwise
from setwise.decoders import MinimumRisk
from setwise.distributions import Distribution, Independent, Listed, Mixture, OfSpace
from setwise.spaces import Backoff, Catalog, Cube, Forest, Paths, Sized, Slice
from setwise.targets import CountTarget, FBeta, LinearFractional, TableTarget, TreeDistance
from tests.support import cases, oracle
from tests.support import decision_oracle as decisions
from tests.support.examples import FEWER, generators
from tests.support.turns import in_turn

N_ROWS = 3


# ------------------------------------------------------------ what is drawn, and its enumeration


def every_probability(distribution) -> np.ndarray:
    """P of each of the 2^l sets in counting order, (n, 2^l), by asking for one set at a time."""
    n, n_labels = len(distribution), distribution.n_labels
    sets = oracle.all_sets(n_labels)
    logs = [distribution.log_probability(np.tile(row, (n, 1))) for row in sets]
    return np.exp(np.stack(logs, axis=1))


def independent(rng, n_labels):
    p = rng.choice([0.0, 0.3, 0.5, 1.0, rng.random(), rng.random()], size=(N_ROWS, n_labels))
    return Independent(p), np.array([decisions.independent_law(row) for row in p])


def sparse_independent(rng, n_labels):
    made, law = independent(rng, n_labels)
    return Independent(scipy.sparse.csr_array(made.probability)), law


def listed(rng, n_labels):
    n_sets = int(rng.integers(1, min(8, 2**n_labels) + 1))
    sets = oracle.all_sets(n_labels)[rng.permutation(2**n_labels)[:n_sets]]
    posterior = rng.dirichlet(np.full(n_sets, 0.5), size=N_ROWS)
    return Listed(sets, posterior), np.array([decisions.listed_law(sets, row) for row in posterior])


def of_space(name):
    def make(rng, n_labels):
        case = cases.EVERY_SPACE[name](n_labels, rng)
        scores = rng.normal(scale=1.5, size=(N_ROWS, case.n_scores))
        laws = [
            decisions.listed_law(case.oracle.sets, oracle.set_probability(case.oracle, row))
            for row in scores
        ]
        return OfSpace(case.space, scores), np.array(laws)

    return make


def mixture(*makers):
    def make(rng, n_labels):
        members, laws = zip(*(maker(rng, n_labels) for maker in makers), strict=True)
        weights = rng.dirichlet(np.ones(len(members)))
        return Mixture(members, weights), np.tensordot(weights, np.array(laws), axes=1)

    return make


SINGLE = {
    "independent": independent,
    "sparse independent": sparse_independent,
    "listed": listed,
    **{name: of_space(name) for name in cases.EVERY_SPACE},
}
MIXTURES = {
    "two independent": mixture(independent, independent),
    "independent and sparse": mixture(independent, sparse_independent),
    "two lists": mixture(listed, listed),
    "independent and list": mixture(independent, listed),
    "cube and slice": mixture(of_space("cube"), of_space("slice")),
    "tree and list": mixture(of_space("tree"), listed),
    "mixtures": mixture(mixture(listed, independent), independent),
}
KINDS = SINGLE | MIXTURES
every_kind = in_turn("kind", KINDS)


@st.composite
def drawn(draw, kind, most_labels=5):
    rng = draw(generators())
    return KINDS[kind](rng, draw(st.integers(2, most_labels)))


def agree(actual, expected, tolerance=1e-12):
    actual = actual.toarray() if scipy.sparse.issparse(actual) else actual
    np.testing.assert_allclose(actual, np.asarray(expected, dtype=float), rtol=0, atol=tolerance)


# ------------------------------------------------------------------------------------- the answers


@pytest.mark.parametrize("scale", [0.0, 0.01, 0.05, 0.5])
def test_sizes_that_are_left_out_are_improbable(scale):
    rng = np.random.default_rng(3)
    probability = scale * rng.random((3, 80))
    joint, size = Independent(probability).label_sizes()
    law = np.array([poisson_binomial(row) for row in probability])
    assert law[:, size.shape[1] :].sum(axis=1).max() <= 1e-16
    assert (size.shape[1] < 60) == (scale < 0.1)
    np.testing.assert_allclose(size, law[:, : size.shape[1]], atol=1e-15)
    np.testing.assert_allclose(joint.sum(axis=1), probability, atol=1e-14)
    np.testing.assert_allclose(joint.sum(axis=2), size * np.arange(size.shape[1]), atol=1e-14)


@pytest.mark.parametrize("bonus", [0.0, 40.0])
def test_a_listed_set_may_be_larger_than_any_other_that_is_probable(bonus):
    """On a space that backs off, whether the set itself is probable or not."""
    sets = np.array([[1, 1, 1, 1, 0], [1, 0, 0, 0, 0]])
    space, scores = Backoff(Cube(5), sets, [bonus, 1.0]), np.full((2, 5), -24.0)
    given, law = OfSpace(space, scores), every_probability(OfSpace(space, scores))
    joint, size = given.label_sizes()
    every = oracle.all_sets(5)
    of_size = every.sum(axis=1)[:, None] == np.arange(size.shape[1])
    np.testing.assert_allclose(size, law @ of_size, atol=1e-15)
    np.testing.assert_allclose(joint[:, :, 0], (law * every[:, 0]) @ of_size, atol=1e-15)
    assert not MinimumRisk("f1").decode(given).any()


def poisson_binomial(row):
    """P of each number of independent labels, by convolution."""
    law = np.ones(1)
    for p in row:
        law = np.convolve(law, [1.0 - p, p])
    return law


@every_kind
@settings(max_examples=FEWER)
@given(data=st.data())
def test_every_answer_is_the_enumerated_one(kind, data):
    """Marginals, P of each set, P(label, size), the list, the most likely set and the next."""
    distribution, law = data.draw(drawn(kind))
    sets = oracle.all_sets(distribution.n_labels)
    assert isinstance(distribution, Distribution)
    assert len(distribution) == len(law)
    agree(distribution.marginals(), law @ sets)
    agree(every_probability(distribution), law)
    sizes = np.arange(distribution.n_labels + 1)
    is_size = (sets.sum(axis=1)[:, None] == sizes).astype(float)
    found = distribution.label_sizes()
    if found is not None:
        joint, size = (np.zeros((len(law), len(sizes), *shape)) for shape in (sets.shape[1:], ()))
        joint[:, : found[0].shape[1]], size[:, : found[1].shape[1]] = found
        agree(joint, np.einsum("nk,ks,ki->nsi", law, is_size, sets))
        agree(size, law @ is_size)
    found = distribution.listed()
    if found is not None:
        agree([decisions.listed_law(found[0], row) for row in found[1]], law)
    found = distribution.most_likely(second=True)
    if found is not None:
        agree(np.exp(found[1]), law.max(axis=1))
        agree(np.exp(distribution.log_probability(found[0])), law.max(axis=1))
        agree(np.exp(found[2]), np.sort(law, axis=1)[:, -2])


@every_kind
def test_rows_are_distributions_of_their_own(kind):
    distribution, law = KINDS[kind](np.random.default_rng(1), 4)
    for rows in (slice(1, None), np.array([2, 0])):
        agree(every_probability(distribution[rows]), law[rows])
        agree(distribution[rows].marginals(), law[rows] @ oracle.all_sets(4))


@in_turn("kind", SINGLE)
@in_turn("target", ["f1", "jaccard", "subset", "hamming", "f2"])
def test_a_mixture_of_one_member_is_that_member(kind, target):
    member, law = SINGLE[kind](np.random.default_rng(2), 4)
    alone = Mixture([member], [1.0])
    agree(alone.marginals(), law @ oracle.all_sets(4))
    agree(every_probability(alone), every_probability(member))
    own, mixed = (MinimumRisk(target).decode(one, return_risk=True) for one in (member, alone))
    for first, second in zip(own, mixed, strict=True):
        agree(first, second.toarray() if scipy.sparse.issparse(second) else second)


def test_a_mixture_on_paths_measures_the_distance_of_paths():
    """Also where each member has made the same space for itself."""
    parents, rng = [-1, 0, 0, 1], np.random.default_rng(0)
    target = TreeDistance(parents)
    members = [OfSpace(Paths(parents), rng.normal(size=(5, 4))) for _ in range(2)]
    own, mixed = (
        MinimumRisk(target).decode(one, return_risk=True)
        for one in (members[0], Mixture(members, [1.0, 0.0]))
    )
    agree(own.risk, mixed.risk)
    other = OfSpace(Paths(parents, leaves_only=True), members[1].scores)
    assert Mixture([members[0], other], [1.0, 0.0]).space is None


@pytest.mark.parametrize("target", ["f1", "hamming", "jaccard", "subset", "recall@2"])
def test_decisions_are_sparse_where_all_members_are(target):
    p = np.array([[0.9, 0.0, 0.4], [0.0, 0.2, 0.8]])
    members = [Independent(scipy.sparse.csr_array(q)) for q in (p, p**2)]
    found = MinimumRisk(target).decode(Mixture(members, [0.5, 0.5]))
    assert isinstance(found, scipy.sparse.csr_array)
    assert found.dtype == np.uint8
    dense = Mixture([members[0], Independent(p**2)], [0.5, 0.5])
    assert isinstance(MinimumRisk(target).decode(dense), np.ndarray)
    agree(found, MinimumRisk(target).decode(dense))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Listed([[1, 0], [0, 1]], [[0.5, 0.5]])[0], "slice"),
        (lambda: MinimumRisk("f1").decode(Listed([[1]], [[1.0]])[1:]), "at least one row"),
        (lambda: Mixture(3, [1.0]), "sequence of distributions"),
        (lambda: MinimumRisk("f1").decode(Cube(3)), "probability"),
    ],
)
def test_what_is_no_distribution_is_refused_in_a_sentence(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("kind", MIXTURES)
def test_the_order_of_the_members_does_not_matter(kind):
    distribution, _ = MIXTURES[kind](np.random.default_rng(3), 4)
    turned = Mixture(distribution.distributions[::-1], distribution.weights[::-1])
    agree(turned.marginals(), distribution.marginals())
    agree(every_probability(turned), every_probability(distribution))
    for target in ("f1", "hamming", "subset"):
        first, second = (
            MinimumRisk(target).decode(one, return_risk=True) for one in (distribution, turned)
        )
        agree(first.risk, second.risk)


# --------------------------------------------------------------------------------------- decisions

TREE = [-1, 0, 0, 1]


def tree_target(n_labels):
    return TreeDistance(TREE[:n_labels]), oracle.tree_distance(TREE[:n_labels], np.ones(n_labels))


TARGETS = {
    "hamming": lambda n: (setwise.get_target("hamming"), oracle.hamming()),
    "f1": lambda n: (FBeta(), oracle.f_beta(1.0, 1.0)),
    "f2 empty 0": lambda n: (FBeta(2.0, empty=0.0), oracle.f_beta(2.0, 0.0)),
    "f1 by its coefficients": lambda n: (
        LinearFractional([0, 0, 1, 1, 0], [0, 2, 1, 1, 0]),
        oracle.f_beta(1.0, 1.0),
    ),
    "jaccard": lambda n: (setwise.get_target("jaccard"), oracle.jaccard()),
    "subset": lambda n: (setwise.get_target("subset"), oracle.subset()),
    "precision@2": lambda n: (setwise.get_target("precision@2"), oracle.precision_at_k(2)),
    "recall@2": lambda n: (setwise.get_target("recall@2"), oracle.recall_at_k(2)),
    "tree distance": tree_target,
    "counts": lambda n: (
        CountTarget(cases.squared_error_share),
        oracle.counts(cases.squared_error_share),
    ),
}
LISTS = ("two lists", "tree and list")
OVER_THE_LIST = ("jaccard", "counts", "f1 by its coefficients")


@in_turn("name", TARGETS)
@in_turn("kind", MIXTURES)
@settings(max_examples=FEWER)
@given(rng=generators())
def test_no_label_set_has_less_risk_under_a_mixture(kind, name, rng):
    """Of all sets that may be predicted; on a list, of the list unless sums of it are enough."""
    n_labels = 4
    distribution, law = MIXTURES[kind](rng, n_labels)
    target, definition = TARGETS[name](n_labels)
    candidates = decisions.allowed_numbers(
        n_labels,
        size=2 if "@2" in name else None,
        parents=TREE if name == "tree distance" else None,
    )
    if kind in LISTS and name in OVER_THE_LIST:
        candidates = decisions.number_of(distribution.listed()[0])
    answer = MinimumRisk(target).decode(distribution, return_risk=True)
    table = decisions.loss_table(definition, n_labels)
    chosen = decisions.number_of(np.asarray(answer.sets))
    for row, number in enumerate(chosen):
        decision = decisions.decide(table, law[row], candidates)
        assert decision.risk_of(number) <= decision.least + 1e-10
        assert answer.risk[row] == pytest.approx(float(decision.risk_of(number)), abs=1e-10)
        assert answer.second_risk[row] == pytest.approx(decision.second(number), abs=1e-10)


def test_a_table_is_decided_over_every_set_of_a_small_mixture():
    rng = np.random.default_rng(4)
    distribution, law = MIXTURES["two independent"](rng, 3)
    losses = rng.random((8, 8))
    answer = MinimumRisk(TableTarget(oracle.all_sets(3), losses)).decode(distribution, True)
    agree(answer.risk, (losses @ law.T).min(axis=0))


@pytest.mark.parametrize("target", ["f1", "jaccard", "subset", "recall@3", "hamming"])
def test_decoding_a_distribution_is_decoding_what_it_is_made_of(target):
    rng, decoder = np.random.default_rng(5), MinimumRisk(target)
    p, scores = rng.random((6, 7)), rng.normal(size=(6, 7))
    for given_as in (p, scipy.sparse.csr_array(p)):
        agree(decoder.decode(Independent(given_as)), decoder.decode(p), 0)
    for space in (Cube(7), Sized(7, np.zeros(5)), Slice(7, 3), Forest.chain(7)):
        own = decoder.decode(OfSpace(space, scores), return_risk=True)
        other = decoder.decode_scores(scores, space, return_risk=True)
        for first, second in zip(own, other, strict=True):
            np.testing.assert_array_equal(first, second)
    sets, posterior = np.eye(7, dtype=int), rng.dirichlet(np.ones(7), size=6)
    if target in ("f1", "hamming", "subset"):
        over_all = decoder.decode_catalog(posterior, sets, over="all")
        np.testing.assert_array_equal(decoder.decode(Listed(sets, posterior)), over_all)


def test_many_labels_of_a_mixture_are_decided_for_f_beta():
    """Forty labels: against the best labels of each size, by the formula on drawn rows."""
    rng = np.random.default_rng(6)
    members = [Independent(rng.random((2, 40)) ** power) for power in (2, 6)]
    answer = MinimumRisk("f1").decode(Mixture(members, [0.3, 0.7]), return_risk=True)
    loss = decisions.f_beta_of_counts()
    for row, chosen in enumerate(answer.sets):
        risks = [
            decisions.risk_by_counting(member.probability[row], chosen, loss) for member in members
        ]
        assert answer.risk[row] == pytest.approx(0.3 * risks[0] + 0.7 * risks[1], abs=1e-12)
    again = MinimumRisk("f1").decode(Mixture([members[0]] * 2, [0.5, 0.5]))
    np.testing.assert_array_equal(again, MinimumRisk("f1").decode(members[0]))


# ------------------------------------------------------------------------------------------ refused


def test_what_a_mixture_cannot_decide_is_refused_by_name():
    p = np.full((2, 13), 0.3)
    mixed = Mixture([Independent(p), Independent(p**2)], [0.5, 0.5])
    for target in ("jaccard", "subset"):
        words = f"(?s){target}.*mixture of 2 distributions.*lists.*F-beta"
        with pytest.raises(ValueError, match=words):
            MinimumRisk(target).decode(mixed)
    assert MinimumRisk("f1").decode(mixed).shape == (2, 13)


HALF = Independent([[0.5, 0.5]])


@pytest.mark.parametrize(
    ("members", "weights", "words"),
    [
        ([], [], "a mixture needs a sequence of distributions"),
        ([[[0.5, 0.5]]], [1.0], r"needs a sequence of distributions.*\['list'\]"),
        ([HALF, Independent([[0.5]])], [0.5, 0.5], r"same rows and labels.*\(1, 2\), \(1, 1\)"),
        ([HALF], [0.5], r"add up to 1, but they are \[0.5\]"),
        ([HALF, HALF], [1.0], r"shape \(2,\)"),
        ([HALF, HALF], [1.5, -0.5], "nonnegative"),
        ([HALF, HALF], [np.nan, 1.0], "nonnegative"),
    ],
)
def test_bad_mixtures_are_refused(members, weights, words):
    with pytest.raises(ValueError, match=words):
        Mixture(members, weights)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Independent([[0.5, 1.5]]), r"probability\[0, 1\] is 1.5"),
        (lambda: Listed([[1, 0], [1, 0]], [[0.5, 0.5]]), "rows 0 and 1"),
        (lambda: Listed([[1, 0]], [[0.5]]), "row 0 adds up to 0.5"),
        (lambda: OfSpace("cube", [[0.0]]), "a space is an object"),
        (lambda: OfSpace(Cube(2), [[0.0]]), r"scores must have shape \(n, 2\)"),
        (lambda: OfSpace(Cube(2), np.zeros((0, 2))), "at least one row"),
        (lambda: HALF.log_probability([[1, 0], [0, 1]]), "one row for each of the 1 rows"),
        (lambda: HALF.log_probability([[1, 2]]), r"sets\[0, 1\] is 2"),
        (lambda: OfSpace(Catalog([[1, 0]]), [[0.0, 0.0]]).log_probability([[1]]), r"\(n, 2\)"),
    ],
)
def test_bad_input_is_refused(make, words):
    with pytest.raises(ValueError, match=words):
        make()


@pytest.mark.parametrize("other", ["independent", "sized", "mixed"])
def test_a_mixture_among_listed_sets_is_the_law_given_that_it_is_one_of_them(other):
    rng = np.random.default_rng(5)
    some, _ = listed(rng, 4)
    bias = [0.2, -0.1, 0.4]
    rest = {
        "independent": [Independent(rng.uniform(0.05, 0.95, (N_ROWS, 4)))],
        "sized": [OfSpace(Sized(4, bias), rng.normal(size=(N_ROWS, 4)))],
    }
    rest["mixed"] = [*rest["independent"], *rest["sized"]]
    members = [some, *rest[other]]
    law = Mixture(members, rng.dirichlet(np.ones(len(members))))
    # (Sized sets of four labels can be listed as well, but are more.)
    sets, posterior = law.among_listed(8)
    logs = [law.log_probability(np.tile(row, (N_ROWS, 1))) for row in sets]
    chance = np.exp(np.stack(logs, axis=1))
    np.testing.assert_array_equal(sets, some.sets)
    np.testing.assert_allclose(posterior, chance / chance.sum(axis=1, keepdims=True), atol=1e-9)
    assert Mixture(rest[other][:1], [1.0]).among_listed(8) is None
