"""``groundstate fit SERIES --forecast N``: forecasts with bands, a page, a model that goes on."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import groundstate
from groundstate.cli.app import app
from groundstate.errors import DataError
from groundstate.study.forecast import study_forecast


def written(path: Path, names: tuple[str, ...] = ("a", "b")) -> Path:
    lines = ["id,time,value"]
    for k, name in enumerate(names):
        x = 5 + np.sin(np.arange(90) / 3 + k) + 0.05 * np.random.default_rng(k).normal(size=90)
        lines += [f"{name},{t},{v}" for t, v in enumerate(x)]
    path.write_text("\n".join(lines) + "\n")
    return path


def test_the_folder_of_a_forecast(tmp_path: Path) -> None:
    source, out = written(tmp_path / "series.csv"), tmp_path / "out"
    command = ["fit", str(source), "--forecast", "6", "--model", "AutoRegressor", "--out", str(out)]
    done = CliRunner().invoke(app, [*command, "--json"])
    assert done.exit_code == 0, done.output
    facts = json.loads((out / "report.json").read_text())
    assert facts["chosen"] == "AutoRegressor" and facts["error"] < facts["naive"]
    table = pl.read_csv(out / "forecast.csv")
    assert (
        table.columns == ["id", "step", "column", "mean", "lower", "upper"] and table.height == 12
    )
    assert bool((table["lower"] <= table["upper"]).all())
    page = (out / "report.html").read_text()
    assert page.count("<figure>") == 2 and "<svg" in page and "<script" not in page
    assert facts["ledger"] == {"looks": 1, "clean": True, "recorded": True}
    asked = ["predict", str(out / "model.gs"), str(source)]
    told = CliRunner().invoke(app, [*asked, "--level", "0.95", "--out", str(tmp_path / "more.csv")])
    assert told.exit_code == 0, told.output
    assert pl.read_csv(tmp_path / "more.csv").equals(table)  # the same series, the same future
    shorter = tmp_path / "shorter.csv"
    shorter.write_text("\n".join(source.read_text().split("\n")[:60]))
    went = CliRunner().invoke(
        app, ["predict", str(out / "model.gs"), str(shorter), "--level", "0.5"]
    )
    assert went.exit_code == 0 and went.output.count("\n") == 7, went.output
    bad = CliRunner().invoke(app, [*asked, "--level", "2"])
    assert bad.exit_code == 2 and "share between 0 and 1" in bad.output
    model = groundstate.load(out / "model.gs")
    np.testing.assert_allclose(
        model.predict(steps=6).reshape(-1), table["mean"].to_numpy(), rtol=1e-8
    )


def test_the_end_is_not_seen_before_it_is_looked_at() -> None:
    x = 5 + np.sin(np.arange(90) / 3)
    one = study_forecast({"time": np.arange(90), "v": x}, 5, model="AutoRegressor")
    y = x.copy()
    y[-5:] += 100
    two = study_forecast({"time": np.arange(90), "v": y}, 5, model="AutoRegressor")
    assert one.errors == two.errors and two.error > 50 > one.error
    assert "not less than" not in one.verdict


def test_what_cannot_be_is_refused() -> None:
    table = {"time": np.arange(20), "v": np.arange(20.0)}
    with pytest.raises(DataError, match="has 20 items; forecasts of 6 steps"):
        study_forecast(table, 6)
    with pytest.raises(
        DataError, match="no forecaster here; use auto or AutoRegressor, Forecaster"
    ):
        study_forecast(table, 2, model="Ridge")
