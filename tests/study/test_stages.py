"""One race: stages that are whole, a choice judged without its rows, a clock that only cuts."""

from __future__ import annotations

import runpy
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from groundstate.compute.random import Key
from groundstate.errors import DataError
from groundstate.evaluate.metrics import metric
from groundstate.study import assess, report_facts
from groundstate.study.assess import Assessment
from groundstate.study.candidates import candidates_of
from groundstate.study.design import Size
from groundstate.study.progress import Watch
from groundstate.study.question import ask
from groundstate.study.race.clock import Clock, OutOfTime
from groundstate.study.race.field import Entrant, Race, race_of
from groundstate.study.race.names import CANDIDATES, DONE, FIRST, TUNED
from groundstate.study.race.stages import Stages
from groundstate.study.tuning import Search

QUICK: Any = {"seeds": 0, "bootstrap": 0, "repeats": 1, "ledger": None}


def rows(n: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    return X, X[:, 0] + 0.5 * rng.normal(size=n)


def test_every_stage_is_a_whole_assessment_and_says_what_is_missing() -> None:
    seen: list[Assessment] = []
    last = assess("Ridge", *rows(60), tuner=Search(2), folds=3, seen=seen.append, **QUICK)
    assert [found.stage for found in seen][:2] == [FIRST, TUNED] and seen[-1] is last
    assert last.stage == DONE and not last.unfinished and seen[0].unfinished
    for found in seen:
        assert report_facts(found)["stage"] == found.stage and "r2" in found.scores


def test_a_model_is_chosen_soon_among_the_candidates_so_far(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Those that would take longer are compared after it."""
    answers = iter([1e9, -1e9, 1e9])
    monkeypatch.setattr(Clock, "until_soon", lambda self: next(answers))
    seen: list[Assessment] = []
    models = "Ridge,KNeighborsRegressor,DecisionTreeRegressor,Lasso"
    assess(models, *rows(60), folds=3, tuner=Search(2), seen=seen.append, **QUICK)
    shown = [[entry.name for entry in found.board.entries] for found in seen]
    assert [found.stage for found in seen][:4] == [FIRST, CANDIDATES, CANDIDATES, TUNED]
    assert "the other candidates" in seen[1].unfinished and "tuning" in seen[1].unfinished
    assert set(shown[1]) == {"Ridge", "KNeighborsRegressor", "Lasso", "dummy"}
    assert "the other candidates" not in seen[2].unfinished and len(shown[2]) == 5


def test_a_third_of_the_time_is_soon() -> None:
    clock = Clock(60.0, Clock.now() - 10.0)
    assert 9.0 < clock.until_soon() < 10.1 and Clock(None).until_soon() == np.inf


def test_a_candidate_that_takes_longer_than_expected_is_compared_after_the_choice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is stopped where a model is awaited, and not left out for time that there is."""
    run, stopped = Race.run, []

    def slow(self: Race, entrants: Any, n_jobs: int = 1) -> None:
        if "DecisionTreeRegressor" in entrants and not stopped:
            stopped.append(True)
            raise OutOfTime
        run(self, entrants, n_jobs)

    monkeypatch.setattr(Race, "run", slow)
    seen: list[Assessment] = []
    models = "Ridge,KNeighborsRegressor,DecisionTreeRegressor"
    last = assess(
        models, *rows(60), folds=3, tuner=Search(1), seen=seen.append, budget=900.0, **QUICK
    )
    shown = [[entry.name for entry in found.board.entries] for found in seen]
    assert [found.stage for found in seen][:2] == [FIRST, CANDIDATES] and stopped
    assert "DecisionTreeRegressor" not in shown[1]
    assert "DecisionTreeRegressor" in [entry.name for entry in last.board.entries]
    assert "DecisionTreeRegressor" not in str(last.skipped)


def test_answers_that_nobody_hears_are_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    from groundstate.study.race.stages import Stages

    monkeypatch.delattr(Stages, "_interim")
    found = assess("Ridge,KNeighborsRegressor", *rows(60), folds=3, tuner=Search(2), **QUICK)
    assert found.stage == DONE and found.chosen == "Ridge"


def test_rows_set_aside_stay_closed_until_the_choice_is_made() -> None:
    seen: list[Assessment] = []
    last = assess("Ridge", *rows(2100), test=0.1, tuner=Search(2), seen=seen.append, **QUICK)
    first = seen[0]
    assert first.stage == FIRST and not set(first.judged) & set(last.judged)
    assert last.ledger["log"] == ["report"] and last.design.kind == "holdout"


def test_rows_of_a_fold_do_not_choose_what_answers_them() -> None:
    """Other targets in a fold change what the other folds are answered by, never its own rows."""
    X, y = rows(60)

    def chosen(y: Any) -> list[str]:
        named: Any = dict.fromkeys(("metric", "test", "groups", "time", "weights", "positive",
                                    "cost_fp", "cost_fn", "device", "seeds", "bootstrap"))  # fmt: skip
        question = ask(X, y, target=None, folds=3, repeats=1, level=0.95, budget=None, seed=0,
                       design="nested", **named)  # fmt: skip
        sides = [(np.flatnonzero(np.arange(60) % 3 != i), np.flatnonzero(np.arange(60) % 3 == i))
                 for i in range(3)]  # fmt: skip
        race = race_of(question, np.arange(60), None, Key.of(0), metric("r2"), sides)
        models = candidates_of("Ridge", "regression")
        race.run({name: Entrant(model, name) for name, model in models.items()})
        race.losses["Ridge"] = np.where(np.arange(60) % 3 == 0, 9.0, 0.0)
        race.losses["dummy"] = np.ones(60)
        return [race.choose(np.setdiff1d(race.judged, part)) for part in race.parts]

    assert chosen(y) == ["Ridge", "dummy", "dummy"]


def test_the_clock_cuts_and_says_so() -> None:
    with pytest.raises(OutOfTime), Clock(0.2).limit():
        while True:
            pass
    assert Clock(None).allows(1e9) and not Clock(1.0).allows(2.0)
    found = assess("Ridge", *rows(60), tuner=Search(2), budget=1e-3, ledger=None)
    assert found.chosen == "Ridge" and "tuning" in found.unfinished and not found.developed.params


def test_an_alarm_waits_for_imports_and_compilations() -> None:
    """An exception inside them would leave modules and compilers half made for the rest of the run."""
    import types

    library = types.ModuleType("numba.pretended")
    code = "def work(until, now):\n    while now() < until: pass\n    return 'whole'"
    exec(code, library.__dict__)
    got = ""
    with pytest.raises(OutOfTime), Clock(0.2).limit():
        got = library.work(time.monotonic() + 0.4, time.monotonic)
        while True:
            pass
    assert got == "whole"


def test_what_waited_for_a_compilation_has_its_time_again() -> None:
    import types

    library = types.ModuleType("numba.pretended")
    exec("def work(until, now):\n    while now() < until: pass", library.__dict__)
    clock = Clock(100.0)
    with clock.limit(0.001):  # 0.09 s
        library.work(time.monotonic() + 0.3, time.monotonic)
        time.sleep(0.01)


def test_a_fit_is_timed_without_compiling() -> None:
    from groundstate.compute.foreign.numba import event
    from groundstate.evaluate.stopwatch import Stopwatch

    what = {"dispatcher": SimpleNamespace(py_func=rows)}
    with Stopwatch() as watch, event.trigger_event("numba:compile", data=what):
        time.sleep(0.3)
    assert watch.seconds < 0.25


def test_the_first_answer_is_a_linear_model_beside_a_constant() -> None:
    """Nothing in it waits for loops to be compiled; what comes later is compared with more."""
    seen: list[Assessment] = []
    models = "DecisionTreeRegressor,Ridge"
    last = assess(models, *rows(60), tuner=None, folds=3, seen=seen.append, **QUICK)
    first = report_facts(seen[0])
    assert first["stage"] == FIRST and len(first["candidates"]["entries"]) == 2
    assert set(last.baselines) == {"dummy", "stump", "linear"}
    assert len(report_facts(last)["candidates"]["entries"]) == 3


def test_a_quick_study_has_a_sixth_of_the_usual_time_and_keeps_typical_rows() -> None:
    from groundstate.study.job import _budget, run

    assert _budget(None, False, True) == "quick" and _budget("5s", False, True) == 5.0
    assert _budget(None, False, False) == "auto" and _budget(None, True, False) is None
    X, y = rows(60)
    found = run({"a": X[:, 0], "b": X[:, 1], "y": y}, "y", model="Ridge", quick=True, ledger="none")
    assert found.model.background_ is not None


def test_models_that_were_left_out_are_not_counted_as_compared() -> None:
    from groundstate.study.verdict import _compared_models

    entries = [{"name": n, "score": s} for n, s in (("A", 0.1), ("B", None), ("dummy", 0.2))]
    assert _compared_models({"candidates": {"entries": entries}}) == ["A"]


def test_progress_is_the_share_of_the_time_and_never_falls() -> None:
    """Late stages are not near the beginning, and parts that are left out are not waited for."""
    from groundstate.study.progress import Step, Watch

    told: list[Any] = []
    watch, clock = Watch(told.append), Clock(100.0)
    watch.plan({"quick": 1.0, "slow": 50.0, "last": 1.0}, clock)
    for spent, part in ((1.0, "quick"), (3.0, ""), (4.0, "last"), (5.0, "")):
        clock.begun = clock.now() - spent
        with watch("a part", part):
            watch._measured += 1.0 if part else 0.0  # a nominal second takes a second here
        if part == "quick":
            watch.expect("slow", 0.0)
    shares = [step.done for step in told if isinstance(step, Step)]
    assert shares == sorted(shares) and shares[0] < 0.05
    assert shares[1] == pytest.approx(0.75, abs=0.02) and shares[-1] == 0.99
    assert told[1].left == pytest.approx(1.0, abs=0.1) and told[-1].left < 0.1


def test_a_simple_model_that_is_a_candidate_is_fitted_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from groundstate.study.race.field import Race

    entered: list[str] = []
    run = Race.run

    def noted(self: Race, entrants: Any, n_jobs: int = 1) -> None:
        entered.extend(entrants)
        run(self, entrants, n_jobs)

    monkeypatch.setattr(Race, "run", noted)
    found = assess("Ridge", *rows(60), folds=3, **{**QUICK, "repeats": 2})
    assert entered.count("Ridge") == 2 and "linear" not in entered
    assert found.baselines["linear"]["r2"] == found.scores["r2"]


def test_quick_candidates_are_not_compared_in_several_processes() -> None:
    """Starting them takes longer than a small budget has; dear ones beside them change nothing."""
    from groundstate.study.design import choose_design, usual_workers

    X, y = rows(150)
    design = choose_design(X, y, task="regression", key=Key.of(0))
    assert design.kind == "nested" and usual_workers(5.0, design) == 1
    assert usual_workers(100.0, design) >= 1


def test_no_model_in_time_is_not_called_columns_that_do_not_help(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from groundstate.study.race import stages

    monkeypatch.setattr(stages.Stages, "_enter", lambda self, name, **_: self.late.append(name))
    found = assess("Ridge", *rows(60), budget=1e-3, tuner=None, **QUICK)
    words = report_facts(found)["verdict"][1]
    assert found.chosen == "dummy" and "longer --budget" in words


def test_what_ends_a_study_is_spared_from_its_budget() -> None:
    clock = Clock(20.0)
    before = clock.left()
    clock.keep("report", 3.0)
    clock.keep("intervals", 2.0)
    assert clock.left() < before - 3.5 and not clock.allows(16.0)
    clock.keep("refit", 1e9)
    assert clock.left() > 9.0  # never more than half


def test_dear_candidates_are_left_out_of_a_small_budget() -> None:
    from groundstate.study.design import first_candidate

    models = candidates_of("auto", "regression", n_rows=300)
    size = Size(300, 10)
    cost = {name: size.of(model) for name, model in models.items()}
    assert max(cost, key=lambda name: cost[name]) == "TabularMLPRegressor"
    assert {"ExtraTreesRegressor", "SVR", "GaussianProcessRegressor"} <= set(models)
    assert first_candidate(models, size) == "Ridge"
    found = assess("auto", *rows(80), budget=4.0, tuner=None, **QUICK)
    assert "TabularMLPRegressor" in str(found.skipped) and found.chosen != "dummy"


def test_the_script_of_a_study_that_was_short_of_time_gives_its_numbers(tmp_path: Path) -> None:
    import groundstate

    X, y = rows(80)
    frame = {"a": X[:, 0], "b": X[:, 1], "y": y}
    found = groundstate.study(frame, "y", budget=6.0, tune=3, ledger="none")
    left_out = found.facts["skipped"]
    assert "TabularMLPRegressor" in str(left_out) and "clock" not in str(left_out)
    found.report(tmp_path / "out", keep_model=False)
    script = runpy.run_path(str(tmp_path / "out" / "reproduce.py"))
    assert "TabularMLPRegressor" in script["SETTINGS"]["without"]
    assert script["SETTINGS"]["thorough"] and "budget" not in script["SETTINGS"]
    again = script["main"](frame)
    assert again == {name: found.facts[name] for name in again}


def test_parts_are_left_out_when_asked() -> None:
    parts = "KNeighborsRegressor,stump,explanation,refits,learning curve,diagnosis,#1"
    names = "Ridge,KNeighborsRegressor"
    found = assess(names, *rows(60), tuner=Search(2), repeats=1, ledger=None, without=parts)
    assert [entry.name for entry in found.board] == ["Ridge", "dummy"]
    assert "stump" not in found.baselines and "linear" in found.baselines
    assert found.explained is None and found.variation is None
    assert found.curve is None and found.diagnosis is None and not found.unfinished
    assert found.developed.tuned is not None and len(found.developed.tuned.trials) == 1
    assert "explanation (--without)" in str(found.skipped)
    with pytest.raises(DataError, match="did you mean 'Ridge'"):
        assess(names, *rows(60), without="Rigde", ledger=None)


def test_fits_are_expected_to_take_as_long_as_those_before_them() -> None:
    from groundstate.study.race.plan import Pace

    quick, slow, one = Pace(), Pace(), Pace()
    for _ in range(20):
        quick.saw(1.0, 0.01)
        slow.saw(1.0, 100.0)
    one.saw(0.05, 0.5)  # ten times nominal, but too short to tell
    assert (quick.of(3.0), slow.of(3.0)) == (1.5, 15.0) and 3.0 < one.of(3.0) < 6.0


def test_a_machine_of_usual_speed_has_time_for_every_kind_of_model() -> None:
    """Declared costs of all candidates together stay inside what a minute leaves for comparing."""
    for task, k in (("regression", 2), ("classification", 2), ("classification", 3)):
        models = candidates_of("auto", task, n_rows=1000)
        cost = {name: 5 * Size(800, 10, k).of(model) for name, model in models.items()}
        assert sum(cost.values()) < 30.0 and max(cost.values()) < 0.4 * 30.0


def test_what_nobody_named_is_tried_with_settings_for_tables() -> None:
    name = "HistGradientBoostingRegressor"
    unasked = candidates_of("auto", "regression")[name].estimator
    named = candidates_of(name, "regression")[name].estimator
    assert unasked.max_leaf_nodes < named.max_leaf_nodes == 31
    assert unasked.max_iter > named.max_iter == 100
    classes = candidates_of("auto", "classification")
    assert classes["HistGradientBoostingClassifier"].estimator.l2_regularization > 0
    assert unasked.l2_regularization == 0
    assert classes["RandomForestClassifier"].estimator.min_samples_leaf == 3
    own = candidates_of("RandomForestClassifier", "classification")["RandomForestClassifier"]
    assert own.estimator.min_samples_leaf == 1


def test_settings_of_the_next_best_candidates_are_tried_where_there_is_time() -> None:
    from groundstate.study.race import stages

    X, y = rows(60)
    models = "Ridge,KNeighborsRegressor,RandomForestRegressor,SVR"
    kept: list[Stages] = []

    class Kept(Stages):
        def __iter__(self) -> Iterator[Assessment]:
            kept.append(self)
            return super().__iter__()

    def tried(**options: Any) -> tuple[list[str], Assessment]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(stages, "Stages", Kept)
            found = assess(models, X, y, tuner=Search(3), **{**QUICK, **options})
        return [name for name in kept[-1].race.losses if "#" in name], found

    whole, found = tried()
    assert [name.rpartition("#")[2] for name in whole] == [str(i + 1) for i in range(9)]
    by = [name.partition(" ")[0] for name in whole]
    assert len(set(by)) == 3 and len(set(by[:3])) == 1
    order = sorted(set(by), key=lambda name: kept[-1].race.risk(name, kept[-1].race.judged))
    assert by[::3] == order
    assert found.developed.tuned is not None and len(found.developed.tuned.trials) == 3
    less, _ = tried(without="#2,#4,#5,#6")
    assert [name.rpartition("#")[2] for name in less] == ["1", "3", "7", "8", "9"]
    assert set(less) <= set(whole)


def test_only_as_many_further_settings_are_tried_as_fit() -> None:
    from groundstate.study.race.settings import Plan, _shorten

    race = SimpleNamespace(entries={"a": SimpleNamespace(fit_seconds=0.2)}, splits=[0] * 5)
    plan = Plan("a", None, [{}] * 10, 10)
    assert plan.numbers[0] == "#11" and plan.labels[-1] == "a #20"
    for budget, fitting in ((40.0, 10), (15.0, 5), (5.0, 0)):
        clock = Clock(budget)
        _shorten(plan, race, clock, 1)  # type: ignore[arg-type]
        assert clock.left_out == plan.numbers[fitting:]
    some = Clock(15.0, without=["#11", "#12"])
    _shorten(plan, race, some, 1)  # type: ignore[arg-type]
    assert some.left_out == plan.numbers[7:]


def test_tuning_leaves_time_to_fit_the_ensemble() -> None:
    from groundstate.study.race.blend import ENSEMBLE
    from groundstate.study.race.stages import Stages

    def blended(seconds: float) -> Stages:
        clock = Clock(20.0)
        clock.keep("refit", 0.5)
        entries = {ENSEMBLE: SimpleNamespace(fit_seconds=seconds)}
        race = SimpleNamespace(
            blend=lambda names: {"a": 0.5, "b": 0.5}, entries=entries, drop=lambda name: None
        )
        question = SimpleNamespace(settings=SimpleNamespace(spec="auto"))
        stages = Stages(question, {}, None, None, 1, None, Watch(None), clock)  # type: ignore[arg-type]
        stages.race, stages.eligible = race, {"a", "b"}  # type: ignore[assignment]
        stages._blend()
        return stages

    quick, dear = blended(2.0), blended(8.0)
    assert ENSEMBLE in quick.eligible and quick.clock.took["refit"] == 3.0
    assert ENSEMBLE not in dear.eligible and dear.clock.took["refit"] == 0.5 and dear.skipped


def test_stopping_keeps_the_report_of_the_last_stage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from typer.testing import CliRunner

    from groundstate.cli.app import app
    from groundstate.study.race import stages

    def stop(*args: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(stages, "explained", stop)
    words = ["fit", "iris", "-m", "LogisticRegression", "--tune", "0", "-o", str(tmp_path / "out")]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 130 and "missing: the explanation" in done.stderr
    assert {"report.html", "report.json", "model.gs"} <= {
        p.name for p in (tmp_path / "out").iterdir()
    }
