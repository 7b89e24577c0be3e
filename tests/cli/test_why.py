"""``predict --why`` and ``drift``."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import groundstate


@pytest.fixture(scope="module")
def model(tmp_path_factory: Any) -> Path:
    rng = np.random.default_rng(0)
    folder = tmp_path_factory.mktemp("why")
    rows = pl.DataFrame({"size": rng.normal(size=90), "colour": rng.choice(["red", "blue"], 90)})
    y = np.where((rows["colour"] == "red").to_numpy(), "yes", "no")
    rows.write_csv(folder / "rows.csv")
    fitted = groundstate.TablePredictor(groundstate.LogisticRegression()).fit(rows, y)
    fitted.keep_background(rows, 20).save(folder / "kept.gs")
    fitted.background_ = None
    fitted.save(folder / "bare.gs")
    return folder


def test_predictions_come_with_their_reasons(call: Any, model: Path) -> None:
    done = call("predict", model / "kept.gs", model / "rows.csv", "--why")
    assert done.code == 0, done.error
    told = pl.read_csv(io.StringIO(done.out))
    assert told.height == 90 and (told["why_1"] == "colour").all()
    assert told["why"][0].startswith("colour = ")
    up = told.filter(pl.col("y") == "yes")["amount_1"]
    assert (up > 0).all()


def test_reasons_as_json(call: Any, model: Path) -> None:
    done = call("predict", model / "kept.gs", model / "rows.csv", "--why", "--json")
    first = json.loads(done.out)[0]["why"]
    assert first["units"] == "log-odds" and first["exact"] is True
    amounts = sum(part["amount"] for part in first["columns"])
    assert first["base"] + amounts == pytest.approx(first["prediction"])


def test_typical_rows_may_be_named(call: Any, model: Path, tmp_path: Path) -> None:
    few = tmp_path / "few.csv"
    few.write_text("size,colour\n0.1,red\n0.2,blue\n")
    done = call("predict", model / "bare.gs", few, "--why")
    assert done.code == 2 and "--background" in done.error
    done = call("predict", model / "bare.gs", few, "--why", "--background", model / "rows.csv")
    assert done.code == 0, done.error
    assert call("predict", model / "bare.gs", model / "rows.csv", "--why").code == 0


def test_drift_of_two_files(call: Any, model: Path, tmp_path: Path) -> None:
    rows = pl.read_csv(model / "rows.csv")
    moved = tmp_path / "moved.csv"
    rows.with_columns(pl.col("size") + 2, pl.col("colour").str.replace("red", "crimson")).write_csv(
        moved
    )
    done = call("drift", model / "rows.csv", moved)
    assert done.code == 0 and done.out.startswith("The rows drifted: ")
    assert call("drift", model / "rows.csv", "--test", moved, "--strict").code == 4
    found = json.loads(call("drift", model / "rows.csv", moved, "--json").out)
    assert found["drifted"] and {c["name"] for c in found["columns"] if c["drifted"]} == {
        "size",
        "colour",
    }
    same = call("drift", model / "rows.csv", model / "rows.csv", "--strict")
    assert same.code == 0 and same.out.startswith("No drift found")


def test_drift_refuses_in_one_sentence(call: Any, model: Path) -> None:
    assert "name one table" in call("drift", model / "rows.csv").error
    done = call("drift", model / "rows.csv", model / "rows.csv", "--columns", "sise")
    assert done.code == 2 and "size" in done.error


def test_sampled_reasons_say_their_error_and_what_is_done(call: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    rows = pl.DataFrame({f"x{j}": rng.normal(size=300) for j in range(6)})
    y = np.where(rows["x0"] + rows["x1"] * rows["x2"] > 0, "yes", "no")
    fitted = groundstate.TablePredictor(groundstate.KNeighborsClassifier()).fit(rows, y)
    fitted.keep_background(rows).save(tmp_path / "near.gs")
    rows.write_csv(tmp_path / "rows.csv")
    done = call("predict", tmp_path / "near.gs", tmp_path / "rows.csv", "--why", "--proba")
    assert done.code == 0, done.error
    assert "amounts are sampled: standard error 0.0" in done.error
    assert pl.read_csv(io.StringIO(done.out)).height == 300
    rows.head(3).write_csv(tmp_path / "few.csv")
    done = call("predict", tmp_path / "near.gs", tmp_path / "few.csv", "--why", "--json")
    assert "sampled" not in done.error
    assert json.loads(done.out)[0]["why"]["method"] == "enumerate"
