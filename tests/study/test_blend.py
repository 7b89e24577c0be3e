"""The ensemble of the race: weights by held-out answers, judged without its own rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import groundstate
from groundstate import KNeighborsClassifier, LogisticRegression, Ridge, TablePredictor
from groundstate.compute.random import Key
from groundstate.evaluate.metrics import metric
from groundstate.models.tables.ensemble import TableEnsemble
from groundstate.study.candidates import candidates_of
from groundstate.study.question import ask
from groundstate.study.race.blend import ENSEMBLE, greedy, log_losses
from groundstate.study.race.field import Entrant, Race, race_of

N = 90


def table() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 3))
    return X, X[:, 0] + np.sign(X[:, 1]) + 0.4 * rng.normal(size=N)


def raced(y: Any, models: str = "Ridge,DecisionTreeRegressor", measure: str = "r2") -> Race:
    X, _ = table()
    named: Any = dict.fromkeys(("metric", "test", "groups", "time", "weights", "positive",
                                "cost_fp", "cost_fn", "device", "seeds", "bootstrap"))  # fmt: skip
    question = ask(X, y, target=None, folds=3, repeats=1, level=0.95, budget=None, seed=0,
                   design="nested", **named)  # fmt: skip
    sides = [(np.flatnonzero(np.arange(N) % 3 != i), np.flatnonzero(np.arange(N) % 3 == i))
             for i in range(3)]  # fmt: skip
    race = race_of(question, np.arange(N), None, Key.of(0), metric(measure), sides)
    task = "regression" if measure == "r2" else "classification"
    race.run({n: Entrant(m, n) for n, m in candidates_of(models, task).items()})
    return race


def test_greedy_weights_lower_the_risk_and_never_raise_it() -> None:
    rng = np.random.default_rng(1)
    E = rng.normal(size=(6, 400)) * np.arange(1, 7)[:, None]
    G = E @ E.T / 400
    a = greedy(G)
    assert np.isclose(a.sum(), 1) and (a >= 0).all()
    assert a @ G @ a < np.diag(G).min()
    flat = np.linalg.solve(G, np.ones(6))
    best = 1 / flat.sum()  # of all weights that add up to one
    assert best - 1e-12 <= a @ G @ a <= 1.1 * best


def test_where_log_loss_chooses_it_weighs_the_members() -> None:
    """One that is certain and now and then wrong is not worth the same by log loss as by Brier's."""
    rng = np.random.default_rng(2)
    right = rng.uniform(size=300) < 0.93
    p = np.stack([np.where(right, 1.0, 0.0), rng.uniform(0.55, 0.8, 300)])  # of the true class
    G = (1 - p) @ (1 - p).T / 300
    by_squares, by_logs = greedy(G), greedy(G, risks=log_losses(p, np.ones(300)))

    def loss(a: Any) -> float:
        return float(-np.log(np.maximum(a @ p, 1e-15)).mean())

    assert 0 < by_logs[0] < 1 and loss(by_logs) < loss(by_squares)
    grid = [loss(np.array([a, 1 - a])) for a in np.linspace(0, 1, 201)]
    assert loss(by_logs) < min(grid) * 1.02
    twice = greedy(G, risks=log_losses(np.c_[p, p[:, :40]], np.ones(340)))
    weight = np.ones(300)
    weight[:40] = 2
    assert np.array_equal(twice, greedy(G, risks=log_losses(p, weight)))


@pytest.mark.parametrize("metric_name", ["log_loss", "brier"])
def test_the_metric_of_the_race_weighs_its_members(metric_name: str) -> None:
    _, y = table()
    labels = np.where(y > 0, "yes", "no")
    race = raced(labels, "LogisticRegression,KNeighborsClassifier", metric_name)
    names = ["KNeighborsClassifier", "LogisticRegression"]
    members = race.blend(names)
    p = np.stack([np.asarray(race.predictions[n].probability)[np.arange(N), race.truth]
                  for n in names])  # fmt: skip
    risks = log_losses(p, np.ones(N)) if metric_name == "log_loss" else None
    G = sum(race._blend._grams)  # type: ignore[union-attr]
    expected = {n: a for n, a in zip(names, greedy(G, risks=risks)) if a}  # type: ignore[arg-type]
    assert (members or {max(expected): 1.0}) == pytest.approx(expected)


def test_the_best_of_many_settings_is_judged_without_the_rows_that_chose_it() -> None:
    """Thirty settings that are all alike: the luckiest looks better than an average that is."""
    _, y = table()
    race = raced(y)
    rng = np.random.default_rng(0)
    race.losses["Ridge"] = np.full(N, 1.2)
    race.predictions = dict.fromkeys([ENSEMBLE, *(f"Ridge #{i + 1}" for i in range(30))],
                                     race.predictions["Ridge"]) | race.predictions  # fmt: skip
    for i in range(30):
        race.entrants[f"Ridge #{i + 1}"] = Entrant(None, "Ridge", {}, earns=True)
        race.losses[f"Ridge #{i + 1}"] = 0.8 + 0.5 * rng.normal(size=N)
    race.entrants[ENSEMBLE] = Entrant(None, ENSEMBLE, earns=True)
    race.losses[ENSEMBLE] = 0.78 + 0.1 * rng.normal(size=N)
    settings = [name for name in race.losses if "#" in name]
    lucky = min(settings, key=lambda n: race.risk(n, race.judged))
    assert race.risk(lucky, race.judged) < race.risk(ENSEMBLE, race.judged) - 0.04
    assert race.choose(among={"Ridge", lucky}) == lucky
    assert race.choose(among={"Ridge", ENSEMBLE, *settings}) == ENSEMBLE
    for name in settings[:15]:  # when they differ for sure, the best of them stays
        race.losses[name] = race.losses[name] - 0.4
    assert race.choose(among={"Ridge", ENSEMBLE, *settings}) in settings[:15]


def test_rows_of_a_fold_do_not_weigh_the_members_that_answer_them() -> None:
    """Other answers for the rows of a part change no answer of the ensemble for that part."""
    _, y = table()
    names = ["Ridge", "DecisionTreeRegressor"]
    race = raced(y)
    assert race.blend(names)
    before = race.predictions[ENSEMBLE].values
    part = race.parts[0]
    moved = race.truth.copy()
    moved[part] += 5.0
    race.truth = moved
    race.blend(names)
    after = race.predictions[ENSEMBLE].values
    assert np.array_equal(before[part], after[part]) and not np.array_equal(before, after)


def test_the_ensemble_must_earn_its_place() -> None:
    _, y = table()
    race = raced(y)
    race.blend(["Ridge", "DecisionTreeRegressor"])
    usual = race.choose(among={"Ridge", "DecisionTreeRegressor"})
    gain, error = race.gain(ENSEMBLE, usual, race.judged)
    assert (race.choose() == ENSEMBLE) == (gain > error)
    rest = np.setdiff1d(race.judged, race.parts[0])
    inside = race.risk(ENSEMBLE, rest)  # weights of one of two parts each
    assert inside != race.losses[ENSEMBLE][rest].mean()


def test_a_model_and_its_copy_make_no_ensemble() -> None:
    _, y = table()
    race = raced(y)
    race.predictions["DecisionTreeRegressor"] = race.predictions["Ridge"]
    assert race.blend(["Ridge", "DecisionTreeRegressor"]) == {} and ENSEMBLE not in race.losses


@pytest.fixture
def ensemble() -> TableEnsemble:
    rng = np.random.default_rng(0)
    rows = {"size": rng.normal(size=60), "kind": np.array(["a", "b", "c"])[rng.integers(0, 3, 60)]}
    y = np.where(rows["size"] + (rows["kind"] == "a") > 0, "yes", "no")
    parts = [("line", TablePredictor(LogisticRegression())),
             ("near", TablePredictor(KNeighborsClassifier(5)))]  # fmt: skip
    model = TableEnsemble(parts, weights=[3, 1]).fit(rows, y)
    return model.keep_background({k: v[:20] for k, v in rows.items()})


NEW = {"size": [0.5, -1.0, 0.1], "kind": ["a", "b", "c"]}


def test_probabilities_are_the_weighted_mean_and_so_are_explanations(
    ensemble: TableEnsemble,
) -> None:
    a, b = (m.predict_proba(NEW) for m in ensemble.members_)
    p = ensemble.predict_proba(NEW)
    assert np.allclose(p, 0.75 * a + 0.25 * b)
    assert np.allclose(ensemble.estimator_.predict_proba(ensemble.prepare(NEW)), p)
    assert (ensemble.predict(NEW) == ensemble.classes_[p.argmax(1)]).all()
    assert np.allclose(ensemble.energy(NEW, ["yes"] * 3), -np.log(p[:, 1]))
    why = ensemble.explain(NEW, method="enumerate")
    single = [m.explain(NEW, ensemble.background_, method="enumerate") for m in ensemble.members_]
    assert why.columns == ("size", "kind")
    assert np.allclose(why.values, 0.75 * single[0].values + 0.25 * single[1].values)


def test_it_is_saved_cloned_and_takes_weights(ensemble: TableEnsemble, tmp_path: Path) -> None:
    from sklearn.base import clone

    loaded = groundstate.load(ensemble.save(tmp_path / "model.gs"))
    assert np.array_equal(loaded.predict_proba(NEW), ensemble.predict_proba(NEW))
    assert np.allclose(loaded.explain(NEW, method="enumerate").values,
                       ensemble.explain(NEW, method="enumerate").values)  # fmt: skip
    copied = clone(ensemble).set_params(line__estimator__C=0.1)
    assert copied.get_params()["line__estimator__C"] == 0.1
    rows, y = {"size": [0.0, 1.0, 2.0, 4.0]}, np.array([0.0, 1.0, 2.0, 7.0])
    model = TableEnsemble([("line", TablePredictor(Ridge()))])
    twice = model.fit({"size": [0.0, 1.0, 2.0, 4.0, 4.0]}, np.r_[y, 7.0]).predict(rows)
    assert np.allclose(model.fit(rows, y, sample_weight=[1, 1, 1, 2]).predict(rows), twice)


def test_a_study_chooses_and_keeps_an_ensemble(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two models that see half each: together they are better, and the folder holds both."""
    from groundstate.study import candidates
    from groundstate.study.single_rows import held_out_errors

    monkeypatch.setattr(candidates, "shortlist", lambda *a, **k: ["Ridge", "KNeighborsRegressor"])
    rng = np.random.default_rng(3)
    X = rng.normal(size=(200, 4))
    y = 2 * X[:, 0] + 4 * (X[:, 1] * X[:, 2] > 0) + 0.3 * rng.normal(size=200)
    frame = {**{f"x{j}": X[:, j] for j in range(4)}, "y": y}
    found = groundstate.study(frame, "y", tune=0, seeds=0, bootstrap=0, repeats=2, thorough=True)
    assert {"Ridge", "KNeighborsRegressor", ENSEMBLE, "dummy"} == {
        e.name for e in found.leaderboard
    }
    assert found.chosen == ENSEMBLE and found.facts["explained"] is not None
    members = found.facts["model"]["members"]
    assert np.isclose(sum(m["weight"] for m in members), 1) and len(members) == 2
    page = found.report(tmp_path / "out")
    assert "the weighted mean of the answers" in page.read_text()
    model = groundstate.load(tmp_path / "out" / "model.gs")
    assert np.allclose(model.predict(frame), found.predict(frame))
    assert held_out_errors(found.found) is not None
    assert len(found.interval(frame, 0.9)) == 200 and len(model.explain(frame).columns) == 4
