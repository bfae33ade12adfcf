"""Mixtures: weights at the optimum of their problem, members, temperatures, what is kept."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from setwise import CatalogClassifier, SetClassifier, SetEnsemble, load, trusted_types
from setwise.decoders import PopulationRule
from setwise.distributions import Independent, Listed, OfSpace
from setwise.estimators import set_ensemble
from setwise.estimators.leaf_forest import LeafForest
from setwise.estimators.members import members_of
from setwise.estimators.mixing import mixture_weights, temperature
from setwise.estimators.mixture_decoder import MixtureDecoder
from setwise.spaces import Sized
from setwise.spaces.space import all_sets
from setwise.targets import get_target


def problem(n=120, seed=0, n_labels=3):
    """Inputs, and label sets that depend on them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    Y = (X @ rng.normal(size=(4, n_labels)) + rng.normal(size=(n, n_labels)) > 0.2).astype(int)
    return X, Y


def members():
    """Two quick ones of different kinds."""
    forest = RandomForestClassifier(15, min_samples_leaf=3, random_state=0)
    return {"linear": SetClassifier(alpha=0.01), "forest": CatalogClassifier(forest)}


# ------------------------------------------------------------------------------------- weights


@given(seed=st.integers(0, 10**6), n_members=st.integers(2, 5))
def test_weights_are_at_the_optimum(seed, n_members):
    rng = np.random.default_rng(seed)
    chance = rng.uniform(0.0, 1.0, (40, n_members)) ** rng.uniform(0.5, 4.0, n_members)
    chance[rng.uniform(size=chance.shape) < 0.1] = 0.0
    mass = rng.uniform(0.1, 2.0, 40)
    with np.errstate(divide="ignore"):
        weights = mixture_weights(np.log(chance), mass)
    rows = chance.any(axis=1)
    chance, share = chance[rows], mass[rows] / mass[rows].sum()
    # The conditions of Karush, Kuhn and Tucker: no member would gain by more weight.
    gain = (share / (chance @ weights)) @ chance
    assert weights.sum() == pytest.approx(1.0)
    assert (gain <= 1.0 + 1e-6).all()
    np.testing.assert_allclose(gain[weights > 0], 1.0, atol=1e-6)
    value = share @ np.log(chance @ weights)

    def softmax_loss(free):
        w = np.exp(free - free.max())
        return -share @ np.log(chance @ (w / w.sum()))

    other = minimize(softmax_loss, np.zeros(n_members), method="Nelder-Mead",
                     options={"xatol": 1e-9, "fatol": 1e-13, "maxiter": 20_000})  # fmt: skip
    assert value >= -other.fun - 1e-8


def test_permuting_members_permutes_weights():
    rng = np.random.default_rng(1)
    logs = np.log(rng.uniform(0.05, 1.0, (60, 4)))
    order = np.array([2, 0, 3, 1])
    weights = mixture_weights(logs, np.ones(60))
    np.testing.assert_allclose(
        mixture_weights(logs[:, order], np.ones(60)), weights[order], atol=1e-7
    )


def test_a_member_that_brings_nothing_has_weight_0():
    logs = np.log(np.c_[np.full(30, 0.5), np.full(30, 0.4)])
    np.testing.assert_array_equal(mixture_weights(logs, np.ones(30)), [1.0, 0.0])


# -------------------------------------------------------------------------------- temperatures


@pytest.mark.parametrize("kind", ["independent", "listed", "of a space"])
def test_a_tempered_law_is_its_power_scaled(kind):
    rng = np.random.default_rng(2)
    sets = all_sets(3)
    law = {
        "independent": Independent(rng.uniform(0.1, 0.9, (5, 3))),
        "listed": Listed(sets, rng.dirichlet(np.ones(8), 5)),
        "of a space": OfSpace(Sized(3, [0.1, 0.4, -0.3, 0.2]), rng.normal(size=(5, 3))),
    }[kind]

    def chances(one):
        logs = [one.log_probability(np.tile(y, (5, 1))) for y in sets]
        return np.exp(np.array(logs).T)

    raised = chances(law) ** 1.7
    np.testing.assert_allclose(
        chances(law.tempered(1.7)), raised / raised.sum(axis=1, keepdims=True), atol=1e-12
    )


def test_the_temperature_of_a_law_that_is_right_is_1_and_of_a_sharp_one_below():
    rng = np.random.default_rng(3)
    p = rng.uniform(0.05, 0.95, (4000, 3))
    y, mass = (rng.uniform(size=p.shape) < p).astype(np.uint8), np.ones(4000)
    assert temperature([Independent(p)], [y], [mass]) == pytest.approx(1.0, abs=0.1)
    sharp = Independent(p).tempered(3.0)
    assert temperature([sharp], [y], [mass]) == pytest.approx(1 / 3, abs=0.05)


# ------------------------------------------------------------------------------------ ensembles


def test_a_mixture_of_one_member_is_that_member():
    X, Y = problem()
    member = SetClassifier(alpha=0.01)
    one = SetEnsemble(members={"linear": member}, calibrate=False).fit(X, Y)
    alone = clone(member).set_params(random_state=one.members_["linear"].random_state).fit(X, Y)
    np.testing.assert_array_equal(one.weights_, [1.0])
    np.testing.assert_allclose(one.predict_proba(X), alone.predict_proba(X), atol=1e-12)
    np.testing.assert_array_equal(one.predict(X), alone.predict(X))


def test_the_mixture_is_at_least_as_likely_as_its_best_member_on_held_out_rows():
    X, Y = problem(200, seed=4)
    model = SetEnsemble(members=members(), cv=3).fit(X, Y)
    alone = min(one["log_loss"] for one in model.contributions_)
    learnt = min(one["log_loss_without"] for one in model.contributions_)
    assert model.is_equal_ or model.log_loss_ <= min(alone, learnt) + 1e-9
    assert [one["member"] for one in model.contributions_] == ["linear", "forest"]
    assert model.weights_.sum() == pytest.approx(1.0)
    assert "held-out rows" in model.guarantee_
    # Thresholds on marginals are no set of least expected loss: another theorem speaks of them.
    assert "Pinsker" not in model.for_target("macro_f1").guarantee_
    assert "among the sets of" in model.for_target("jaccard").guarantee_
    assert "among the sets of" not in model.for_target("subset").guarantee_


def test_lists_give_sets_that_nobody_has_seen_a_probability():
    X, Y = problem(160, seed=3, n_labels=6)
    kinds = {"mild": SetClassifier(alpha=0.1), "free": SetClassifier(alpha=0.01)}
    model = SetEnsemble("f1", kinds, cv=4).fit(X, Y)
    law, every = model.predict_distribution(X[:2]), np.array(list(np.ndindex((2,) * 6)))
    chance = np.exp([law.log_probability(np.tile(one, (2, 1))) for one in every])
    known = {tuple(one) for one in Y.tolist()}
    assert len(known) < 64
    assert (chance > 0.0).all()
    np.testing.assert_allclose(chance.sum(axis=0), 1.0, atol=1e-9)
    # What is known of each label stays what the members say of it.
    laws = [one.law(one.estimator.predict_distribution(X[:2])) for one in model._mixed]
    told = sum(w * own.marginals() for w, own in zip(model.weights_, laws, strict=True))
    np.testing.assert_allclose(chance.T @ every, told, atol=1e-9)
    np.testing.assert_allclose(model.predict_proba(X[:2]), told, atol=1e-12)
    assert sum(one["independent"] for one in model.contributions_) > 0.0


def test_a_member_that_knows_sets_nobody_has_seen_is_heard():
    # Nearly every row has a set of its own: lists know little, and a mixture loses no more.
    X, Y = problem(90, seed=8, n_labels=9)
    kinds = {"list": SetClassifier(alpha=0.1), "all": SetClassifier(space="sized", alpha=0.1)}
    model = SetEnsemble("f1", kinds, cv=3).fit(X, Y)
    told = model.contributions_
    assert model.log_loss_ <= min(one["log_loss"] for one in told) + 1e-9
    assert model.weights_[1] > 0.0
    assert told[1]["independent"] == 0.0


def test_nothing_is_claimed_where_labels_are_decided_as_though_independent():
    X, Y = problem(60, seed=11, n_labels=20)
    kinds = [SetClassifier(space="sized", alpha=0.1), SetClassifier(space="catalog", alpha=0.1)]
    model = SetEnsemble("jaccard", members=kinds, cv=2).fit(X, Y)
    assert "No theorem" in model.guarantee_
    assert "Pinsker" in model.for_target("f1").guarantee_
    assert "Pinsker" in model.for_target("hamming").guarantee_


def test_a_list_is_decided_by_where_another_member_has_none():
    X, Y = problem(90, seed=21, n_labels=20)
    Y[:, 6:] = 0
    Y[::3, 9] = 1
    kinds = {"sized": SetClassifier(space="sized", alpha=0.1), "seen": SetClassifier(alpha=0.1)}
    for target in ("jaccard", "subset"):
        model = SetEnsemble(target, members=kinds, cv=2, calibrate=False).fit(X, Y)
        model.weights_ = np.array([0.4, 0.6])
        sized, seen = (one.predict_distribution(X) for one in model.members_.values())
        chance = 0.6 * seen.listed()[1]
        for k, one in enumerate(sets := seen.listed()[0]):
            chance[:, k] += 0.4 * np.exp(sized.log_probability(np.tile(one, (90, 1))))
        decided, judge = model.predict(X), get_target(target)
        candidates = [*sets]
        order = np.argsort(-(chance @ sets), axis=1, kind="stable")
        for row, own in enumerate(decided):
            if target == "jaccard":
                # Beside the listed sets, the most probable labels.
                tops = [
                    np.isin(np.arange(20), order[row, : k + 1]) for k in range(sets.sum(1).max())
                ]
                candidates = [*sets, *np.array(tops, int)]
            risk = [judge.loss(np.tile(one, (len(sets), 1)), sets) @ chance[row]
                    for one in (own, *candidates)]  # fmt: skip
            assert any((own == one).all() for one in candidates)
            assert risk[0] <= min(risk) + 1e-9


def test_without_xgboost_the_others_are_mixed(monkeypatch):
    monkeypatch.setattr("setwise.estimators.members.find_spec", lambda name: None)
    assert list(members_of("auto", "f1", 0)) == ["linear", "extra trees"]


def test_the_same_mixture_serves_every_target():
    X, Y = problem(150, seed=5)
    model = SetEnsemble(members=members(), cv=3).fit(X, Y)
    for target in ("jaccard", "subset", "hamming", "precision@1", "macro_f1", "micro_f1"):
        other = model.for_target(target)
        assert 0.0 < other.score(X, Y) <= 1.0
        np.testing.assert_array_equal(other.predict_proba(X), model.predict_proba(X))


def test_members_may_be_any_classifiers_with_probabilities():
    X, Y = problem(100, seed=6)
    plain = OneVsRestClassifier(LogisticRegression())
    model = SetEnsemble("jaccard", members=[plain, SetClassifier(space="sized")], cv=3).fit(X, Y)
    assert model.predict(X).shape == Y.shape
    with pytest.raises(ValueError, match="neither"):
        SetEnsemble(members=[object()]).fit(X, Y)


def test_classes_are_predicted_by_the_mixture():
    X, Y = problem(120, seed=7)
    names = np.array(["a", "b", "c"])[Y.argmax(axis=1)]
    model = SetEnsemble(members=members(), cv=3).fit(X, names)
    assert set(model.predict(X)) <= {"a", "b", "c"}
    assert model.score(X, names) > 0.7


def test_a_class_that_a_fold_does_not_have():
    X, Y = problem(60, seed=26)
    names = np.array(["a", "b"])[Y[:, 0]].astype(object)
    names[5] = "rare"
    model = SetEnsemble(members=quick(), cv=2).fit(X, names)
    assert model.predict_proba(X).shape == (60, 3)
    assert np.isfinite(model.log_loss_)


def test_importances_are_the_mean_of_those_that_have_some():
    X, Y = problem(90, seed=24)
    forests = [CatalogClassifier(LeafForest(10, random_state=k)) for k in (0, 1)]
    model = SetEnsemble(members=[SetClassifier(alpha=0.1), *forests], cv=2, calibrate=False)
    model.fit(X, Y)
    model.weights_ = np.array([0.5, 0.2, 0.3])
    own = [one.estimator_.feature_importances_ for one in list(model.members_.values())[1:]]
    np.testing.assert_allclose(np.sum(own, axis=1), 1.0, atol=1e-12)
    np.testing.assert_allclose(model.feature_importances_, 0.4 * own[0] + 0.6 * own[1], atol=1e-12)
    linear = SetEnsemble(members=[SetClassifier(alpha=0.1)], cv=2).fit(X, Y)
    assert not hasattr(linear, "feature_importances_")


def test_a_file_holds_the_mixture(tmp_path):
    X, Y = problem(80, seed=8)
    model = SetEnsemble(members={"a": SetClassifier(), "b": SetClassifier(space="sized")}, cv=3)
    model.fit(X, Y).save(tmp_path / "mixture.skops")
    again = load(tmp_path / "mixture.skops", trusted=trusted_types())
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.contributions_ == model.contributions_


def test_a_second_fit_forgets_the_columns_of_the_first():
    X, Y = problem(60, seed=8)
    model = SetEnsemble(members=[SetClassifier(alpha=0.1)], cv=2)
    model.fit(pd.DataFrame(X, columns=list("abcd")), Y)
    assert list(model.feature_names_in_) == list("abcd")
    model.fit(X[:, :3], Y)
    assert not hasattr(model, "feature_names_in_")
    assert model.n_features_in_ == 3


def test_an_interrupt_keeps_the_members_trained(monkeypatch):
    X, Y = problem(80, seed=9)
    fit, calls = CatalogClassifier.fit, []

    def interrupted(self, *args, **kwargs):
        calls.append(0)
        raise KeyboardInterrupt

    monkeypatch.setattr(CatalogClassifier, "fit", interrupted)
    with pytest.warns(UserWarning, match="interrupted: the mixture is of 1"):
        model = SetEnsemble(members=members(), cv=3, on_interrupt="finish").fit(X, Y)
    assert list(model.members_) == ["linear"]
    assert model.stopped_ == "interrupt"
    with pytest.raises(KeyboardInterrupt):
        SetEnsemble(members=members(), cv=3).fit(X, Y)
    monkeypatch.setattr(CatalogClassifier, "fit", fit)


def test_an_interrupt_keeps_a_member_that_was_tried_on_no_fold(monkeypatch):
    X, Y = problem(80, seed=9)
    fit, calls = SetClassifier.fit, []

    def interrupted(self, *rest):
        calls.append(0)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return fit(self, *rest)

    monkeypatch.setattr(SetClassifier, "fit", interrupted)
    with pytest.warns(UserWarning, match="interrupted: the mixture is of 1"):
        model = SetEnsemble(members=members(), cv=3, on_interrupt="finish").fit(X, Y)
    assert list(model.members_) == ["linear"]
    np.testing.assert_array_equal(model.predict(X), model.members_["linear"].predict(X))
    # It decides as the member does, so it has a guarantee as well.
    assert "Pinsker" in model.guarantee_


def test_a_budget_that_is_too_small_leaves_the_first_member():
    X, Y = problem(80, seed=10)
    with pytest.warns(UserWarning, match="too little time was left: the mixture is of 1"):
        model = SetEnsemble("macro_f1", members=members(), cv=3, time_budget=1e-3).fit(X, Y)
    assert model.stopped_ == "time_budget"
    assert model.predict(X).shape == Y.shape
    assert model.contributions_[0]["weight"] == 1.0
    whole = SetEnsemble(members=members(), cv=3, time_budget=1e4).fit(X, Y)
    assert whole.stopped_ is None
    assert list(whole.members_) == ["linear", "forest"]


# --------------------------------------------------------------------- members, folds and folders


def quick():
    """Two members that take milliseconds, of different kinds."""
    return {"a": SetClassifier(alpha=0.1), "b": CatalogClassifier(LeafForest(10))}


def test_permuting_members_permutes_what_is_told_of_them():
    X, Y = problem(100, seed=12)
    # (Members without a seed have one by their place.)
    kinds = {"a": SetClassifier(alpha=0.1), "b": SetClassifier(space="sized", alpha=0.03),
             "c": CatalogClassifier(LeafForest(10, random_state=0))}  # fmt: skip
    told = []
    for order in ("abc", "cab"):
        model = SetEnsemble(members={name: kinds[name] for name in order}, cv=3).fit(X, Y)
        told.append({one["member"]: one["weight"] for one in model.contributions_})
    assert told[0] == pytest.approx(told[1], abs=1e-7)


@pytest.mark.parametrize("target", ["f1", "subset", "macro_f1"])
@pytest.mark.parametrize("seed", range(3))
def test_learnt_weights_lose_no_more_than_equal_ones_beyond_chance(target, seed, monkeypatch):
    X, Y = problem(90, seed=seed)
    model, seen, original = SetEnsemble(target, members=quick(), cv=3), {}, MixtureDecoder.losses

    def losses(self, mixtures, truth):
        found = original(self, mixtures, truth)
        seen[tuple(mixtures[0].weights)] = found.mean(), found
        return found

    monkeypatch.setattr(MixtureDecoder, "losses", losses)
    model.fit(X, Y)
    told = np.array([one["log_loss"] for one in model.contributions_])
    assert model.log_loss_ <= told.min() + 1e-9
    if seen:
        (mean, rows), (equal, rows_equal) = seen[tuple(model.weights_)], seen[(0.5, 0.5)]
        assert mean <= equal + (rows - rows_equal).std() / np.sqrt(len(rows)) + 1e-12


class FailsWithout(SetClassifier):
    """A classifier that cannot learn from fewer than so many rows."""

    def fit(self, X, y, sample_weight=None):
        if len(X) < 80:
            raise ValueError("too few rows")
        return super().fit(X, y, sample_weight)


def test_a_failure_names_the_member_and_the_fold():
    X, Y = problem(80, seed=13)
    mixture = SetEnsemble(members={**quick(), "odd": FailsWithout(alpha=0.1)}, cv=3)
    with pytest.raises(ValueError, match="'odd' could not be fitted without fold 1 of 3: too few"):
        mixture.fit(X, Y)
    with pytest.raises(ValueError, match="too few") as told:
        mixture.fit(X[:60], Y[:60])
    assert "'odd'" in told.value.__notes__[0]


def test_weights_of_rows_are_refused_where_a_member_takes_none():
    X, Y = problem(60, seed=14)
    mixture = SetEnsemble(members={**quick(), "near": CatalogClassifier(KNeighborsClassifier())})
    with pytest.raises(ValueError, match="'near' takes none: KNeighborsClassifier"):
        mixture.fit(X, Y, np.ones(60))
    twice = SetEnsemble(members=quick(), cv=2).fit(X, Y, np.full(60, 2.0))
    once = SetEnsemble(members=quick(), cv=2).fit(X, Y)
    assert twice.weights_ == pytest.approx(once.weights_, abs=0.05)


def test_rows_of_weight_0_are_not_there():
    X, Y = problem(90, seed=25)
    mass = np.repeat([0.0, 1.0], [30, 60])
    with_them = SetEnsemble(members=quick(), cv=2).fit(X, Y, mass)
    without = SetEnsemble(members=quick(), cv=2).fit(X[30:], Y[30:], mass[30:])
    np.testing.assert_array_equal(with_them.weights_, without.weights_)
    np.testing.assert_array_equal(with_them.predict_proba(X), without.predict_proba(X))
    splits = [(np.arange(30, 90), np.arange(30))]
    with pytest.raises(ValueError, match="cv must hold out rows of positive weight"):
        SetEnsemble(members=quick(), cv=splits).fit(X, Y, mass)


@pytest.mark.parametrize("kind", ["one class", "rare labels", "three rows", "sparse"])
def test_unusual_rows(kind):
    X, Y = problem(60, seed=15)
    if kind == "one class":
        Y = np.full(60, "only")
    elif kind == "rare labels":
        Y[:, 1], Y[0, 1], Y[:, 2] = 0, 1, 0
    elif kind == "three rows":
        X, Y = X[:3], np.eye(3, dtype=int)
    else:
        X = csr_array(np.where(X > 0, X, 0.0))
    model = SetEnsemble(members=quick()).fit(X, Y)
    assert model.predict(X).shape == Y.shape
    assert np.isfinite([one["log_loss"] for one in model.contributions_]).all()
    if kind == "one class":
        assert set(model.predict(X)) == {"only"}


def test_of_many_rows_one_part_is_held_out(monkeypatch):
    monkeypatch.setattr("setwise.estimators.members.MANY", 50)
    monkeypatch.setattr("setwise.estimators.members.MOST_HELD", 10)
    X, Y = problem(90, seed=16)
    model = SetEnsemble(members=quick()).fit(X, Y)
    assert len(model._out_of_fold.sets) == 10


def test_laws_in_parts_are_those_of_all_rows(monkeypatch):
    X, Y = problem(90, seed=17)
    whole = SetEnsemble(members=quick(), cv=2).fit(X, Y)
    monkeypatch.setattr("setwise.estimators.members.ROWS", 7)
    monkeypatch.setattr(set_ensemble, "ROWS", 7)
    parts = SetEnsemble(members=quick(), cv=2).fit(X, Y)
    np.testing.assert_allclose(parts.weights_, whole.weights_, atol=1e-7)
    np.testing.assert_array_equal(parts.predict(X), whole.predict(X))


def test_rows_that_were_left_out_are_learnt_from_where_time_is_left(monkeypatch):
    monkeypatch.setattr("setwise.estimators.schedule.rows_within", lambda *_: 60)
    seen, fit = [], SetClassifier.fit
    monkeypatch.setattr(
        SetClassifier, "fit", lambda self, X, *rest: (seen.append(len(X)), fit(self, X, *rest))[1]
    )
    X, Y = problem(90, seed=18)
    model = SetEnsemble(members={"a": SetClassifier(alpha=0.1)}, cv=3, time_budget=1e3)
    model.fit(X, Y)
    # All rows and three folds, of 60 rows as was estimated; then of all.
    assert seen[0] == 60
    assert sum(seen[1:4]) == 120
    assert seen[4] == 90
    assert sum(seen[5:]) == 180
    assert model.cut_ == []
    assert model.stopped_ is None


def test_a_second_run_fits_only_what_is_not_finished(tmp_path, monkeypatch):
    X, Y = problem(80, seed=19)
    fit, calls = SetClassifier.fit, []

    def counted(self, X, *rest):
        calls.append(len(X))
        if len(calls) == 3:
            raise KeyboardInterrupt
        return fit(self, X, *rest)

    monkeypatch.setattr(SetClassifier, "fit", counted)
    mixture = SetEnsemble(members=quick(), cv=3, folder=tmp_path / "run")
    with pytest.raises(KeyboardInterrupt):
        clone(mixture).fit(X, Y)
    model = clone(mixture).fit(X, Y)
    # All rows and one fold were finished; of three, two were left.
    assert len(calls) == 5
    again = clone(mixture).set_params(time_budget=1e3, calibrate=True).fit(X, Y)
    assert len(calls) == 5
    assert again.contributions_ == model.contributions_
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    alone = SetEnsemble(members=quick(), cv=3).fit(X, Y)
    np.testing.assert_array_equal(alone.predict_proba(X), model.predict_proba(X))


def test_a_folder_of_other_work_is_refused_by_name(tmp_path):
    X, Y = problem(60, seed=20)
    mixture = SetEnsemble(members=quick(), cv=2, folder=tmp_path / "run").fit(X, Y)
    before = sorted(path.name for path in (tmp_path / "run").iterdir())
    with pytest.raises(ValueError, match="What differs: X: another"):
        clone(mixture).fit(X + 1.0, Y)
    members = {**quick(), "a": SetClassifier(alpha=0.2)}
    with pytest.raises(ValueError, match="What differs: member 'a': another"):
        clone(mixture).set_params(members=members).fit(X, Y)
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == before
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.tex").write_text("x")
    with pytest.raises(ValueError, match=r"not empty \(there is 'thesis.tex'\)"):
        clone(mixture).set_params(folder=tmp_path / "other").fit(X, Y)


def test_predictions_that_depend_on_the_batch_say_so():
    X, Y = problem(60, seed=22)
    model = SetEnsemble("macro_f1", members=quick(), cv=2).fit(X, Y)
    assert not model.depends_on_batch_
    assert model.for_target("macro_f1", "batch").depends_on_batch_
    assert not model.for_target("jaccard").depends_on_batch_


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"members": {}}, "members must be 'auto', a mapping .* at least one, not {}"),
        ({"members": "linear"}, "members must be 'auto', a mapping .* not 'linear'"),
        ({"members": [LogisticRegression]}, r"such as LogisticRegression\(\), not the class"),
        ({"decoder": "most_likely"}, "decoder='most_likely' cannot decide for f1"),
        ({"decoder": "batch"}, "decoder='batch' cannot decide for f1"),
        (
            {"target": "macro_f1", "decoder": PopulationRule("macro_f1", at_most=9)},
            "at_most must be at most the number of labels, which is 3",
        ),
    ],
)
def test_wrong_settings_are_refused_before_anything_is_trained(settings, message, monkeypatch):
    monkeypatch.setattr(SetClassifier, "fit", lambda *_: pytest.fail("was trained"))
    X, Y = problem(60, seed=23)
    with pytest.raises(ValueError, match=message):
        SetEnsemble(**{"members": quick(), **settings}).fit(X, Y)


def test_another_target_takes_no_rule_of_all_rows():
    X, Y = problem(60, seed=24)
    model = SetEnsemble(members=quick(), cv=2).fit(X, Y)
    with pytest.raises(ValueError, match="decoder='batch' cannot decide for jaccard"):
        model.for_target("jaccard", "batch")


@parametrize_with_checks([SetEnsemble(members=[SetClassifier(alpha=0.1, tol=1e-5)], cv=2)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)
