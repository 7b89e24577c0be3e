"""``groundstate fit SERIES --forecast N``: forecasts with bands, a page, a model that goes on."""

from __future__ import annotations

import contextlib
import io
import json
from datetime import date, timedelta
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
    assert page.count("<figure>") == 4 and "<svg" in page and "<script" not in page
    assert facts["ledger"] == {"looks": 1, "clean": True, "recorded": True}
    asked = ["predict", str(out / "model.gs"), str(source)]
    told = CliRunner().invoke(app, [*asked, "--out", str(tmp_path / "more.csv")])
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


def test_a_series_of_dates_needs_no_names(tmp_path: Path) -> None:
    days = [str(date(2024, 1, 1) + timedelta(days=k)) for k in range(90)]
    value = 5 + np.sin(np.arange(90) / 3)
    lines = [
        f"{day},{v:.4f},{7 * k % 5}" for k, (day, v) in enumerate(zip(days, value, strict=True))
    ]
    source, out = tmp_path / "series.csv", tmp_path / "out"
    source.write_text("\n".join(["date,sold,other", *lines[::-1]]) + "\n")
    command = ["fit", str(source), "--forecast", "6", "--model", "AutoRegressor", "--out", str(out)]
    done = CliRunner().invoke(app, [*command, "--target", "sold", "--json"])
    assert done.exit_code == 0, done.output
    facts = json.loads(done.stdout)
    assert facts["columns"] == ["sold"] and facts["error"] < 0.1 * facts["naive"]
    told = CliRunner().invoke(app, ["predict", str(out / "model.gs"), str(source)])
    assert told.exit_code == 0, told.output
    assert told.stdout == (out / "forecast.csv").read_text()
    lines = pl.read_csv(told.stdout.encode(), try_parse_dates=True)
    assert lines["date"].to_list() == [date(2024, 3, 31) + timedelta(days=k) for k in range(6)]
    assert facts["dates"] == [["2024-03-31", *(f"2024-04-{k:02d}" for k in range(1, 6))]]
    assert "2024-03-31 to 2024-04-05" in (out / "report.html").read_text()
    script = CliRunner().invoke(app, ["export", str(out)])
    assert script.exit_code == 0, script.output
    looks = Path(f"{source}.ledger.jsonl").read_text()
    spoken = io.StringIO()
    with contextlib.redirect_stdout(spoken):
        exec(script.stdout.replace("sys.argv[1] if len(sys.argv) > 1 else ", ""), {})
    again = json.loads(spoken.getvalue())
    assert {**again, "ledger": None} == {k: facts[k] for k in again} | {"ledger": None}
    assert Path(f"{source}.ledger.jsonl").read_text() == looks  # which is no further look
    for extra, words in (
        (["--time", "when"], "there is no column 'when'"),
        (["--target", "price"], "there is no column 'price'"),
        (["--quick", "--metric", "mae"], "--forecast has no use for --metric, --quick"),
    ):
        bad = CliRunner().invoke(app, [*command, *extra])
        assert bad.exit_code == 2 and words in bad.output, bad.output


def test_series_are_told_apart_by_their_words() -> None:
    rng = np.random.default_rng(0)
    days = np.array([f"2024-01-{k:02d}" for k in range(1, 31)])
    table = {
        "day": np.tile(days, 2), "shop": np.repeat(["a", "b"], 30), "sold": rng.normal(size=60)
    }  # fmt: skip
    found = study_forecast(table, 2, model="AutoRegressor")
    assert found.table.ids is not None and found.table.ids.tolist() == ["a", "b"]
    assert (found.about["id"], found.about["time"]) == ("shop", "day")
    with pytest.raises(DataError, match="column 'shop' holds words and items are numbers"):
        study_forecast({name: values[:30] for name, values in table.items()}, 2)
    holed = study_forecast({**table, "sold": [None, *table["sold"][1:]]}, 2, model="AutoRegressor")
    assert holed.notes == ["1 missing value was filled from around"]
    with pytest.raises(DataError, match="column 'sold' holds no value at all"):
        study_forecast({**table, "sold": [*[None] * 30, *table["sold"][30:]]}, 2)
    with pytest.raises(DataError, match="'day', 'other' hold dates; name the one"):
        study_forecast({**table, "other": table["day"]}, 2)


def test_holes_are_filled_and_judge_nothing(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    t = np.arange(200)
    value = 50 + 8 * np.sin(2 * np.pi * t / 7) + rng.normal(size=200)
    days = np.datetime64("2024-01-01") + t
    kept = np.r_[0:80, 84:200]
    lines = [f"{days[i]},{'' if i in (120, 198) else round(value[i], 3)}" for i in kept]
    source, out = tmp_path / "series.csv", tmp_path / "out"
    source.write_text("\n".join(["day,sold", *lines]) + "\n")
    command = ["fit", str(source), "--forecast", "7", "--model", "AutoRegressor", "--out", str(out)]
    done = CliRunner().invoke(app, [*command, "--json"])
    assert done.exit_code == 0, done.output
    facts = json.loads(done.stdout)
    assert facts["notes"] == [
        "4 items whose dates were left out were put in and filled from around",
        "2 missing values were filled from around",
    ]
    assert facts["season"] == 7 and facts["error"] < facts["seasonal"] < facts["naive"]
    assert facts["dates"][0][0] == str(days[-1] + 1)
    assert "4 items whose dates" in (out / "report.html").read_text()
    told = CliRunner().invoke(app, ["predict", str(out / "model.gs"), str(source)])
    assert told.exit_code == 0 and told.stdout == (out / "forecast.csv").read_text()


@pytest.mark.parametrize(("kind", "least"), [("season", 0.82), ("walk", 0.82)])
def test_bands_hold_their_share_of_what_comes(kind: str, least: float) -> None:
    """Of 20 series; least squares with as many lags as a third of the items would hold far less."""
    held, better = [], []
    for seed in range(20):
        rng, t = np.random.default_rng(seed), np.arange(132)
        x = (
            100 * np.exp(0.006 * t) * (1 + 0.15 * np.sin(2 * np.pi * t / 12) + 0.03 * rng.normal(size=132))
            if kind == "season"
            else rng.normal(size=132).cumsum()
        )  # fmt: skip
        found = study_forecast({"time": t[:120], "x": x[:120]}, 12, model="AutoRegressor")
        made = found.made
        held.append(((made.lower <= x[120:, None]) & (x[120:, None] <= made.upper)).mean())
        better.append(found.better_than_dummy)
    assert np.mean(held) > least
    assert np.mean(better) > 0.9 if kind == "season" else np.mean(better) < 0.6


def test_nothing_better_than_what_was_is_said(tmp_path: Path) -> None:
    x = np.random.default_rng(4).normal(size=90).cumsum()
    source, out = tmp_path / "walk.csv", tmp_path / "out"
    source.write_text("\n".join(["x", *map(str, x)]) + "\n")
    command = ["fit", str(source), "--forecast", "6", "--model", "AutoRegressor", "--out", str(out)]
    done = CliRunner().invoke(app, [*command, "--json"])
    assert done.exit_code == 3 and (out / "report.html").exists(), done.output
    assert not json.loads((out / "report.json").read_text())["better_than_dummy"]
