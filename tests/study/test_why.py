"""What a study says about columns: from held-out rows, the same numbers again, drawn and in the schema."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

import groundstate as gs
from groundstate.report import why as page
from groundstate.study.assess import assess
from groundstate.study.facts import report_facts
from groundstate.study.why import with_why


def _frame(n: int = 160) -> pl.DataFrame:
    rng = np.random.default_rng(0)
    size = rng.normal(size=n)
    colour = rng.choice(["red", "blue"], n)
    y = 2 * size + 1.5 * (colour == "red") + 0.2 * rng.normal(size=n)
    return pl.DataFrame({
        "size": size, "twin": size + 0.01 * rng.normal(size=n), "colour": colour,
        "noise": rng.normal(size=n), "y": y,
    })  # fmt: skip


@pytest.fixture(scope="module", params=["nested", "holdout"])
def found(request: Any) -> Any:
    frame = _frame()
    made = assess(
        "Ridge", frame, target="y", design=request.param, folds=3, repeats=1, seeds=0, bootstrap=0,
        ledger=None,
    )  # fmt: skip
    return made


def test_importance_profiles_and_background(found: Any) -> None:
    made = found
    told = with_why(made)
    importance = told.explained["importance"]
    assert importance["columns"][0]["columns"] == ["size", "twin"]
    assert importance["columns"][0]["lo"] > 0
    assert {c["column"] for c in told.explained["dependence"]} >= {"size", "colour"}
    assert told.explained["models"] == (3 if made.design.kind == "nested" else 1)
    assert [p["name"] for p in told.columns["profiles"]] == ["size", "twin", "colour", "noise", "y"]
    assert isinstance(told.model, gs.TablePredictor)
    why = told.model.explain(_frame().head(2))
    np.testing.assert_allclose(why.base + why.values.sum(1), why.prediction, atol=1e-9)
    again = with_why(made)
    assert again.explained == told.explained and again.columns == told.columns


def test_no_curve_is_drawn_of_rows_that_do_not_exist() -> None:
    rng = np.random.default_rng(1)
    begun = np.datetime64("2020-01-01") + rng.integers(0, 900, 160).astype("timedelta64[D]")
    lasted = rng.integers(1, 6, 160)
    frame = pl.DataFrame({
        "begun": begun, "ended": begun + lasted.astype("timedelta64[D]"),
        "size": rng.normal(size=160), "y": 8.0 * lasted + rng.normal(size=160),
    })  # fmt: skip
    made = assess("Ridge", frame, target="y", folds=3, repeats=1, seeds=0, bootstrap=0, ledger=None)
    facts = report_facts(with_why(made))
    explained = facts["explained"]
    assert explained["importance"]["columns"][0]["columns"] == ["begun", "ended"]
    assert [curve["column"] for curve in explained["dependence"]] == ["size"]
    assert set(explained["impossible"]) == {"begun", "ended"}
    captions = {drawn.name: drawn.caption for drawn in page.draw(facts)}
    assert "set alone make rows that do not exist" in captions["dependence"]


def test_the_page_shows_them(found: Any) -> None:
    made = found
    facts = report_facts(with_why(made))
    assert [p.name for p in page.draw(facts)] == ["importance", "dependence", "profiles"]
    told = page.importance(facts)
    assert "size, twin" in told and 'data-key="explained.importance.columns.0.value"' in told
    assert 'data-key="columns.profiles.0.relation.value"' in page.profiles(facts)
    bare = report_facts(made)
    bare["explained"] = bare["columns"] = None
    assert page.draw(bare) == [] and page.importance(bare) == "" == page.profiles(bare)
