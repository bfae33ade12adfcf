"""What `guarantee_` claims, tried by exact computation on small problems: no claim may be false.

A model stands for each combination of target, space, surrogate, decoder and features of the labels:
not fitted, but with scores put in by hand. What it claims of its predictions (`Claim`) is attacked
with distributions over the true label sets, all of which are enumerated.
"""

from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np
import pytest
from hypothesis import settings
from scipy.optimize import minimize
from scipy.special import expit, softmax, xlogy

from setwise import SetClassifier, SetClassifierCV, load
from setwise.consistency.conditional import Weights
from setwise.consistency.naming import loss_matrix
from setwise.consistency.setting import WRONG, Effort, Setting, worst_ratio, worst_regret
from setwise.decoders import MinimumRisk
from setwise.estimators.choice import space_for
from setwise.estimators.claim import log_loss_of
from setwise.estimators.guarantee import claim_of_sets
from setwise.estimators.training import Training
from setwise.labels import LabelNames
from setwise.spaces import Catalog, Cube, Forest, Paths, Sized, Slice
from setwise.spaces.space import all_sets
from setwise.surrogates import BinaryRelevance, CompSum, Constrained, constrained
from setwise.surrogates.names import SURROGATES
from setwise.targets import CountTarget, FBeta, Hamming, TableTarget, TreeDistance, get_target
from setwise.targets.target import hierarchy_of, predicted_size
from tests.support.cases import squared_error_share
from tests.support.decision_oracle import number_of

# Combinations tried in a group, by the profile: 240, or all.
TRIED = 40 * settings.default.max_examples
EFFORT = Effort(draws=12 * settings.default.max_examples, kept=6, variations=4, rounds=6)
LABELS = (2, 3, 4)
TREE = [-1, 0, 0, 1]


def targets(n_labels):
    losses = np.random.default_rng(4).random((2**n_labels, 2**n_labels))
    names = ("hamming", "f1", "f0.5", "jaccard", "subset", "precision@1", "recall@1", "recall@2")
    return [
        *map(get_target, names),
        Hamming([1.0, 2.0, 5.0, 0.5][:n_labels]),
        FBeta(1.0, empty=0.0),
        CountTarget(squared_error_share),
        TableTarget(all_sets(n_labels), losses),
        TreeDistance(TREE[:n_labels], [1.0, 2.0, 0.5, 3.0][:n_labels]),
    ]


def spaces(n_labels):
    chain, tree = list(range(-1, n_labels - 1)), TREE[:n_labels]
    potentials = np.random.default_rng(0).normal(size=(n_labels, 2, 2))
    listed = all_sets(n_labels)[[1, 2, 3]] if n_labels == 2 else all_sets(n_labels)[[1, 3, 4, 6, 7]]
    bias = np.array([0.0, 1.0, 0.5, -0.5, 0.2])[: len(listed)]
    return [
        Cube(n_labels),
        Sized(n_labels, [1.0, 0.0, 0.3, 1.0, 0.5][: n_labels + 1]),
        Sized(n_labels, [0.0, 1.0, 0.5][:n_labels]),
        Slice(n_labels, 1),
        Slice(n_labels, min(2, n_labels - 1)),
        Forest(chain, potentials),
        Forest(tree, closed=True),
        Paths(tree),
        Paths(tree, leaves_only=True),
        Catalog(listed, bias),
        Catalog([[0, 1, 0, 1][:n_labels], [1, 0, 1, 1][:n_labels]]),
        Catalog([[0, 1, 0, 1][:n_labels]]),
        Catalog(listed, joint=True),
    ]


MADE = {
    "binary relevance, squared hinge": lambda target, space: BinaryRelevance("squared_hinge"),
    "binary relevance, hinge": lambda target, space: BinaryRelevance("hinge"),
    "comp-sum -.5": lambda target, space: CompSum(target, space, -0.5),
    "logistic subset": lambda target, space: CompSum("subset", space, 0.0),
    "rho .5": lambda target, space: Constrained(target, space, "rho", 0.5),
    "another target": lambda target, space: CompSum("f2", space, 1.0),
}
FEATURES = ("none", "of full rank", "one column", "of lower rank")
DECODERS = ("minimum_risk", "most_likely", "marginals")


def features_of(name, n_scores):
    rng = np.random.default_rng(1)
    if name == "none":
        return None
    if name == "one column":
        return rng.normal(size=(n_scores, 1))
    square = rng.normal(size=(n_scores, n_scores))
    return square if name == "of full rank" else square[:, 1:] @ rng.normal(size=(n_scores - 1, 4))


def standing(target, space, surrogate, decoder="auto", features=None):
    """A classifier whose scores are the inputs, times the features of the labels if there are."""
    width = space.n_scores if features is None else features.shape[1]
    model = SetClassifier(target, surrogate, space, decoder, label_features=features)
    training = model._training(model.surrogate, target)
    model.space_ = space_for(space, training, False, space.enumerate(), None)
    training.loss(model.space_)
    model.classes_ = np.arange(space.n_labels)
    model._names, model._scaling, model._features = LabelNames(model.classes_), None, features
    model._unseen, model._held_out, model._has_intercept = None, None, True
    model.coef_, model.intercept_, model.n_features_in_ = np.eye(width), np.zeros(width), width
    model._decode_by(MinimumRisk(target), training, model.space_)
    return model


@cache
def every_combination():
    return [one for n in LABELS for one in product(targets(n), spaces(n), DECODERS, FEATURES)]


def combinations(surrogate):
    """All that can be trained with a surrogate, in an order that follows from its name."""
    every = every_combination()
    order = np.random.default_rng(len(surrogate)).permutation(len(every))
    for place in order[:TRIED]:
        target, space, decoder, named = every[place]
        features = features_of(named, space.n_scores)
        try:
            trained = MADE[surrogate](target, space) if surrogate in MADE else surrogate
            yield standing(target, space, trained, decoder, features)
        except ValueError:
            # Refused, so nothing is claimed.
            continue


# ------------------------------------------------------------------------ bounded by the divergence


def law_of(model, inputs):
    """The law that is decoded, over all label sets: a softmax, or labels one by one, (n, 2^l)."""
    everything, scores = all_sets(model.space_.n_labels), model._scores(inputs)
    if model._trained.is_by_label:
        on = expit(scores)[:, None]
        return np.where(everything == 1, on, 1.0 - on).prod(axis=2)
    law = np.zeros((len(inputs), len(everything)))
    law[:, number_of(model.space_.enumerate())] = softmax(
        Weights.of(model.space_).at(scores)[:, 0], axis=1
    )
    return law


def losses_of(model, claim):
    """Losses of all predictions that count (columns) against all truths, and which truths count."""
    target, space = model.target_, model.space_
    sets = truths = all_sets(space.n_labels)
    hierarchy, size = hierarchy_of(target), predicted_size(target)
    counts = np.ones(len(truths), bool) if hierarchy is None else hierarchy.is_closed(truths)
    if hierarchy is not None:
        sets = sets[hierarchy.is_closed(sets)]
    if size is not None:
        sets = sets[sets.sum(axis=1) == size]
    if claim.is_among:
        sets = space.enumerate()
    losses = np.zeros((len(truths), len(sets)))
    for column, row in enumerate(sets):
        losses[counts, column] = target.loss(np.tile(row, (counts.sum(), 1)), truths[counts])
    return sets, losses, counts


def assert_bounded(model, claim, rng, n_rows=40):
    """The regret is at most m + (1 - m) sqrt(2 KL) for truths near, far, and partly outside."""
    inputs = rng.choice([0.3, 1.0, 3.0], (n_rows, 1)) * rng.normal(size=(n_rows, len(model.coef_)))
    law, (sets, losses, counts) = law_of(model, inputs), losses_of(model, claim)
    predicted = model.predict(inputs)
    column = np.array([np.flatnonzero((sets == row).all(axis=1))[0] for row in predicted])
    rows, inside = np.arange(n_rows), law > 0.0

    def regret_of(p):
        risks = p @ losses
        return risks[rows, column] - risks.min(axis=1)

    if not (inside & counts).any():
        # No true label set that the target judges can be learnt.
        return
    if counts[inside.any(axis=0)].all():
        assert regret_of(law).max() <= 1e-9, "wrong though the learnt law is the true one"
    for step, missed in product((0.0, 0.1, 0.5, 2.0), (0.0, 0.2, 0.7)):
        other = np.log(np.maximum(law, 1e-300)) + step * rng.normal(size=law.shape)
        # Away from what is predicted, which is where the regret grows.
        other += step * losses[:, column].T
        within = softmax(np.where(inside & counts, other, -np.inf), axis=1)
        beyond = rng.dirichlet(np.full(len(counts), 0.3), n_rows) * ~inside * counts
        total = beyond.sum(axis=1, keepdims=True)
        m = np.where(total > 0, missed, 0.0)
        p = (1.0 - m) * within + m * beyond / np.where(total > 0, total, 1.0)
        divergence = (xlogy(within, within) - xlogy(within, np.where(inside, law, 1.0))).sum(axis=1)
        bound = m[:, 0] + (1.0 - m[:, 0]) * np.sqrt(2.0 * np.maximum(divergence, 0.0))
        assert (regret_of(p) <= bound + 1e-9).all(), (step, missed)


# --------------------------------------------------------------------------------------- consistent


def setting_of(model):
    """The conditional problem of a model, its scores confined to what label features give.

    Features of full rank confine nothing: the problem is that of the scores themselves.
    """
    # Truths of every kind, but where a theorem needs closed sets or paths, or a likelihood its own.
    every = None if hierarchy_of(model.target_) else all_sets(model.space_.n_labels)
    trained = model._trained.surrogate, model.space_
    setting = Setting.of(model.target_, *trained, q=model.q, truths=every)
    if is_free(model):
        return setting
    parts = {
        name: Weights(
            getattr(setting, name).features @ model._features, getattr(setting, name).offset
        )
        for name in ("scored", "weights")
    }
    return replace(setting, **parts)


def is_free(model):
    features = model._features
    return features is None or np.linalg.matrix_rank(features) == len(features)


def assert_consistent(model, claim, rng, seed):
    """No distribution is found whose minimiser predicts wrongly, or whose regret beats the rate."""
    setting = setting_of(model)
    inputs = rng.normal(size=(20, len(model.coef_)))
    ahead = setting.shortfalls(model._scores(inputs) if is_free(model) else inputs)
    for row, predicted in zip(ahead, model.predict(inputs), strict=True):
        place = np.flatnonzero((setting.sets == predicted).all(axis=1))[0]
        assert row[place] <= 1e-9, "the prediction is not the one the theorem speaks of"
    worst, _ = worst_regret(setting, EFFORT, seed)
    for p in worst.p[:2] if worst.regret[0] > WRONG else ():
        best = setting.optimum(p, seed)
        minimisers = np.array([best.scores, *best.others])
        _, regrets = setting.worst_predictions(np.tile(p, (len(minimisers), 1)), minimisers)
        assert regrets.max() <= WRONG, f"the minimiser of {p} predicts wrongly"
    if claim.gamma is not None and is_free(model):
        rated, _ = worst_ratio(setting, claim.gamma, EFFORT, seed)
        paid = float(setting.value(rated.p[:1], rated.scores[:1])[0])
        allowed = claim.gamma(paid - setting.optimum(rated.p[0], seed).infimum)
        assert rated.regret[0] <= max(WRONG, allowed * (1.0 + 1e-6)), rated.p[0]


@pytest.mark.parametrize("surrogate", [*SURROGATES, *MADE])
def test_no_claim_is_false(surrogate):
    kinds, rng = set(), np.random.default_rng(0)
    for number, model in enumerate(combinations(surrogate)):
        claim = model._claim()
        kinds.add(claim.kind)
        what = (str(model._trained), model.target_, model.space_, model.decoder_, model._features)
        try:
            if claim.kind == "bounded":
                assert_bounded(model, claim, rng)
            elif claim.kind == "consistent":
                assert_consistent(model, claim, rng, number)
        except AssertionError as error:
            raise AssertionError(f"{claim} is false of {what}: {error}") from None
    assert kinds - {"nothing"} or surrogate in ("another target", "binary relevance, hinge")


# -------------------------------------------------------------------------- what takes a claim away


def test_nothing_is_claimed_of_a_loss_that_is_sampled(monkeypatch):
    """A theorem covers the exact loss, and what minimises the sampled one predicts wrongly."""
    sets, joint = all_sets(3), Catalog(all_sets(3), joint=True)
    training = Training("constrained_squared_hinge", Hamming())

    def claim(space):
        return claim_of_sets(training, Hamming(), space, "most_likely")

    assert claim(Cube(3)).kind == claim(joint).kind == "consistent"
    monkeypatch.setattr(constrained, "LISTED", 4)
    assert claim(Cube(3)).kind == "nothing"
    assert "4096 label sets drawn from Cube(3)" in str(claim(Cube(3)))
    # A list is gone through, however long.
    assert claim(joint).kind == "consistent"
    loss = Constrained("hamming", Cube(3), "squared_hinge", n_samples=16)
    losses = loss_matrix(Hamming(), sets, sets)
    regrets = []
    for p in np.random.default_rng(0).dirichlet(np.ones(8), 12):

        def risk(scores, p=p):
            value, gradient = loss.value_and_gradient(np.tile(scores, (8, 1)), sets)
            return p @ value, p @ gradient

        found = Cube(3).most_likely([minimize(risk, np.zeros(3), jac=True).x])[0]
        regrets.append((p @ losses)[number_of([found])[0]] - (p @ losses).min())
    assert max(regrets) > WRONG


@pytest.mark.parametrize(
    "surrogate", ["sum_exponential", "mean_absolute_error", "constrained_hinge"]
)
@pytest.mark.parametrize("features", FEATURES)
def test_classes_whose_scores_are_confined_have_no_theorem(surrogate, features):
    X = np.random.default_rng(0).normal(size=(60, 4))
    y = np.array(["a", "b", "c"])[X[:, :3].argmax(axis=1)]
    model = SetClassifier("precision@1", surrogate, label_features=features_of(features, 3))
    model.set_params(tol=0.5)
    claim = model.fit(X, y)._claim()
    free = features in ("none", "of full rank")
    assert claim.kind == ("consistent" if free else "nothing")
    assert ("confine the 3 scores" in str(claim)) == (not free)


def test_without_an_intercept_an_input_of_zeros_is_not_covered():
    X = np.random.default_rng(0).normal(size=(40, 3))
    Y = (X > 0).astype(int)
    for intercept in (True, False):
        model = SetClassifier("hamming", "logistic", fit_intercept=intercept).fit(X, Y)
        assert ("an input of zeros" in model.guarantee_) == (not intercept)


# ------------------------------------------------------------------------------ figures of new rows


def drawn(n_rows=120):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n_rows, 3))
    return X, (X @ rng.normal(size=(3, 3)) + 0.5 * rng.normal(size=(n_rows, 3)) > 0.3).astype(int)


def test_no_figure_of_the_training_rows_is_quoted():
    X, Y = drawn()
    for model in (SetClassifier(), SetClassifier(surrogate="binary_relevance")):
        words = model.fit(X, Y).guarantee_
        assert "guarantee_on(X, y)" in words
        assert "a bound of" not in words


@pytest.mark.parametrize("surrogate", ["likelihood", "binary_relevance"])
def test_the_bound_is_that_of_the_rows_given(surrogate):
    X, Y = drawn()
    model = SetClassifier("f1", surrogate).fit(X[:60], Y[:60])
    distribution, weights = model.predict_distribution(X[60:]), np.arange(1.0, 61.0)
    mean = -np.average(distribution.log_probability(Y[60:]), weights=weights)
    words = model.guarantee_on(X[60:], Y[60:], weights)
    assert f"{mean:.4f} nats on the rows given. That is a bound of {np.sqrt(2 * mean):.3f}" in words
    assert ("says nothing" in words) == (2 * mean >= 1.0)
    sure = SetClassifier("f1", surrogate, alpha=1e-6).fit(X, X > 0)
    assert "says nothing" not in sure.guarantee_on(X, X > 0)


def test_label_sets_without_probability_count_in_full():
    X, Y = drawn()
    model = SetClassifier("f1", space=Catalog([[0, 0, 0], [1, 0, 0], [1, 1, 1]]))
    listed = model.space.contains(Y)
    model.fit(X[listed], Y[listed])
    found = log_loss_of(model.predict_distribution(X).log_probability(Y), np.ones(len(Y)))
    assert found["impossible"] == pytest.approx((~listed).mean())
    bound = found["impossible"] + listed.mean() * np.sqrt(2.0 * found["log_loss"])
    words = model.guarantee_on(X, Y)
    assert f"without {100 * found['impossible']:.3g} % of them" in words
    assert f"a bound of {bound:.3f}" in words
    nothing = model.guarantee_on(X[~listed], Y[~listed])
    assert "without 100 % of them" in nothing
    assert "a bound of 1.000: no regret is above 1, so it says nothing" in nothing


def test_cross_validation_quotes_the_log_loss_of_rows_held_out(tmp_path):
    X, Y = drawn()
    model = SetClassifierCV("f1", alphas=[0.1, 0.01], cv=3, spaces=["cube"]).fit(X, Y)
    chosen = min(model.cv_results_, key=lambda row: row["loss"])
    logs = []
    for train, test in model._splitter(len(X)).split(X, Y):
        one = SetClassifier("f1", space="cube", alpha=chosen["alpha"], scaling="standard")
        one.fit(X[train], Y[train])
        logs.append(one.predict_distribution(X[test]).log_probability(Y[test]))
    expected = -np.concatenate(logs).mean()
    assert chosen["held_out"]["log_loss"] == pytest.approx(expected, abs=1e-2)
    said = f"{chosen['held_out']['log_loss']:.4f} nats on the held-out rows of the folds"
    assert said in model.guarantee_
    model.save(tmp_path / "model.skops")
    assert load(tmp_path / "model.skops").guarantee_ == model.guarantee_


def test_a_claim_without_figures_reads_the_same_with_rows():
    X, Y = drawn()
    model = SetClassifier("f1", "mean_absolute_error").fit(X, Y)
    assert model.guarantee_on(X, Y) == model.guarantee_
