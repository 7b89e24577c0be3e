"""One race: stages that are whole, a choice judged without its rows, a clock that only cuts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from groundstate.compute.random import Key
from groundstate.evaluate.metrics import metric
from groundstate.study import assess, report_facts
from groundstate.study.assess import Assessment
from groundstate.study.candidates import candidates_of
from groundstate.study.question import ask
from groundstate.study.race.clock import Clock, OutOfTime
from groundstate.study.race.field import Entrant, race_of
from groundstate.study.race.stages import DONE, FIRST, TUNED
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
