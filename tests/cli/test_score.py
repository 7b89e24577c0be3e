"""``score``, ``impute``, ``export``, and intervals and sets of ``predict``."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from groundstate import GaussianMixture, GaussianNB, TablePredictor, data


@pytest.fixture(scope="module")
def numbers(call: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of a model of numbers, with the rows it learned from and new ones."""
    folder = tmp_path_factory.mktemp("numbers")
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 2))
    frame = pl.DataFrame({"a": x[:, 0], "b": x[:, 1], "y": x @ [1.0, 2.0] + rng.normal(size=400)})
    frame[:200].write_csv(folder / "old.csv")
    frame[200:].write_csv(folder / "new.csv")
    done = call("fit", folder / "old.csv", "-t", "y", "-m", "Ridge", "-o", folder / "out", "--tune", 0,
                "--seeds", 0, "--bootstrap", 0, "--repeats", 1, "--ledger", "none")  # fmt: skip
    assert done.code == 0, done.error
    return folder


def rows(done: Any) -> pl.DataFrame:
    assert done.code == 0, done.error
    return pl.read_csv(io.StringIO(done.out))


def test_score_of_new_rows(call: Any, numbers: Path) -> None:
    model, new = numbers / "out" / "model.gs", numbers / "new.csv"
    told = call("score", model, new, "--json").json
    assert told["rows"] == 200 and told["target"] == "y" and told["estimator"] == "Ridge"
    truth = pl.read_csv(new)["y"].to_numpy()
    predicted = rows(call("predict", model, new))["y"].to_numpy()
    rmse = told["scores"]["rmse"]
    assert rmse["value"] == pytest.approx(np.sqrt(np.square(truth - predicted).mean()))
    assert rmse["lo"] < rmse["value"] < rmse["hi"]
    assert told["promised"]["agrees"] and told["share_seen"] == 0
    assert abs(told["coverage"]["covered"] - 0.9) < 0.08
    assert told["constant"]["rmse"] == pytest.approx(truth.std())
    text = call("score", model, new).out
    assert "which agrees" in text and "hold it in" in text and "warning" not in text


def test_score_warns_of_rows_it_learned_from(call: Any, numbers: Path) -> None:
    model = numbers / "out" / "model.gs"
    done = call("score", model, numbers / "old.csv")
    assert done.code == 0 and "learned from 100% of these rows" in done.out


def test_rows_that_are_equal_by_chance_were_not_learned_from() -> None:
    from groundstate.study.single_rows import seen_rows, share_seen

    rng = np.random.default_rng(0)
    few = pl.DataFrame({"a": rng.integers(0, 12, 600), "b": rng.integers(0, 12, 600)})
    kept = seen_rows(data.read(few[:400]), ["a", "b"])
    assert kept["alike"] > 0.8
    assert share_seen(kept, data.read(few[400:])) == 0.0
    many = pl.DataFrame({"a": rng.integers(0, 30, 900), "b": rng.integers(0, 30, 900)})
    kept = seen_rows(data.read(many[:600]), ["a", "b"])
    assert share_seen(kept, data.read(many[600:])) == 0.0
    assert share_seen(kept, data.read(many[:600])) == 1.0


def test_labels_that_the_model_does_not_know_are_named(call: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=120)
    label = np.where(x > 0, "rich", "poor").astype(object)
    pl.DataFrame({"x": x, "y": label}).write_csv(tmp_path / "old.csv")
    label[:10] = "wealthy"
    pl.DataFrame({"x": x + 0.01, "y": label}).write_csv(tmp_path / "new.csv")
    done = call("fit", tmp_path / "old.csv", "-t", "y", "-m", "GaussianNB", "--quick", "--budget", "none",
                "--ledger", "none", "-o", tmp_path / "out")  # fmt: skip
    assert done.code == 0, done.error
    text = call("score", tmp_path / "out" / "model.gs", tmp_path / "new.csv").out
    assert (
        "'wealthy' is no class of the model, so that 10 rows of 120 can only be answered wrongly"
        in text
    )
    assert "drift" in text  # also from a quick study


def test_score_sees_drift(call: Any, numbers: Path, tmp_path: Path) -> None:
    model, old = numbers / "out" / "model.gs", numbers / "old.csv"
    told = call("score", model, numbers / "new.csv", "--train", old, "--json").json
    assert told["drift"]["sentence"].startswith("No drift found")
    moved = pl.read_csv(numbers / "new.csv").with_columns(pl.col("a") + 2)
    moved.write_csv(tmp_path / "moved.csv")
    text = call("score", model, tmp_path / "moved.csv", "--train", old).out
    assert "The rows drifted" in text and "most 'a'" in text
    assert "does not agree: these rows differ" in text


def test_score_says_what_is_missing(call: Any, numbers: Path, tmp_path: Path) -> None:
    pl.read_csv(numbers / "new.csv").drop("y").write_csv(tmp_path / "bare.csv")
    done = call("score", numbers / "out" / "model.gs", tmp_path / "bare.csv")
    assert done.code == 2 and "has no column 'y' with the truth" in done.error


def test_intervals_of_predictions_hold_the_truth(call: Any, numbers: Path) -> None:
    model, new = numbers / "out" / "model.gs", numbers / "new.csv"
    found = rows(call("predict", model, new, "--interval"))
    truth = pl.read_csv(new)["y"]
    inside = ((found["low"] <= truth) & (truth <= found["high"])).mean()
    assert (
        0.82 < inside < 0.98
        and ((found["low"] + found["high"]) / 2 - found["y"]).abs().max() < 1e-6
    )
    wide = rows(call("predict", model, new, "--interval", "--level", 0.99))
    assert (wide["high"] - wide["low"]).min() > (found["high"] - found["low"]).max()
    done = call("predict", model, new, "--set")
    assert done.code == 2 and "ask for an interval" in done.error


def test_sets_and_probabilities_of_classes(call: Any, fitted: Path, mixed: Path) -> None:
    chosen = json.loads((fitted / "report.json").read_text())["chosen"]
    done = call("predict", fitted / "model.gs", mixed, "--set", "--level", 0.95)
    if chosen == "LinearSVC":  # it gives no probabilities
        assert done.code == 2 and "no errors on held-out rows" in done.error
        return
    found = rows(done)
    members = [set(s.split(" | ")) for s in found["set"]]
    assert all(y in s for y, s in zip(found["bought"], members))
    assert {frozenset(s) for s in members} <= {
        frozenset(p) for p in (("yes",), ("no",), ("yes", "no"))
    }
    told = call("score", fitted / "model.gs", mixed, "--json").json
    assert told["scores"]["accuracy"]["value"] > 0.7 and told["share_seen"] > 0.5
    assert told["coverage"]["kind"] == "set" and told["positive"] in ("yes", "no")


def test_impute_keeps_every_observed_cell(call: Any, tmp_path: Path) -> None:
    iris = data.load("iris").frame
    rng = np.random.default_rng(0)
    holes = iris.with_columns(
        pl.when(pl.Series(rng.random(150) < 0.2)).then(None).otherwise(pl.col(name)).alias(name)
        for name in iris.columns[:2]
    )
    holes.write_csv(tmp_path / "holes.csv")
    found = rows(call("impute", tmp_path / "holes.csv"))
    assert found.columns == holes.columns and not sum(found.null_count().row(0))
    for name in holes.columns:
        known = holes[name].is_not_null()
        assert found[name].filter(known).to_list() == holes[name].filter(known).to_list()
    gone = holes[iris.columns[0]].is_null()
    error = (found[iris.columns[0]] - iris[iris.columns[0]]).filter(gone).abs().mean()
    assert error < 0.6 * iris[iris.columns[0]].std()
    drawn = rows(call("impute", tmp_path / "holes.csv", "--mode", "sample", "--seed", 1))
    assert (
        drawn[iris.columns[0]].filter(~gone).to_list()
        == iris[iris.columns[0]].filter(~gone).to_list()
    )
    assert "min (the best value) or sample" in call("impute", "iris", "--mode", "x").error


def test_impute_fills_the_target_of_a_predictor(call: Any, numbers: Path, tmp_path: Path) -> None:
    new = pl.read_csv(numbers / "new.csv")
    part = new.with_columns(
        pl.when(pl.int_range(pl.len()) < 50).then(None).otherwise(pl.col("y")).alias("y")
    )
    part.write_csv(tmp_path / "part.csv")
    found = rows(call("impute", numbers / "out" / "model.gs", tmp_path / "part.csv"))
    own = rows(call("predict", numbers / "out" / "model.gs", numbers / "new.csv"))
    assert found["y"][:50].to_list() == pytest.approx(own["y"][:50].to_list())
    assert found["y"][50:].to_list() == new["y"][50:].to_list()


def test_export_prints_the_script(call: Any, numbers: Path, tmp_path: Path) -> None:
    text = (numbers / "out" / "reproduce.py").read_text()
    assert call("export", numbers / "out").out == text
    assert call("export", numbers / "out" / "model.gs", "--out", tmp_path / "again.py").code == 0
    assert (tmp_path / "again.py").read_text() == text
    done = call("export", tmp_path / "nowhere")
    assert done.code == 2 and "holds no reproduce.py" in done.error


def test_compare_names_warns_and_concludes_once(call: Any, numbers: Path, tmp_path: Path) -> None:
    other = tmp_path / "tree"
    made = call("fit", numbers / "old.csv", "-t", "y", "-m", "DecisionTreeRegressor", "-o", other,
                "--tune", 0, "--seeds", 0, "--bootstrap", 0, "--repeats", 1, "--ledger", "none")  # fmt: skip
    assert made.out.count("chosen model, after") == 1 and "tuned, after" not in made.out
    models = numbers / "out" / "model.gs", other / "model.gs"
    text = call("compare", numbers / "new.csv", *models, "-t", "y").out
    assert "Ridge is better on 200 rows" in text and "warning" not in text
    assert "squared error of Ridge minus DecisionTreeRegressor −" in text
    back = call("compare", numbers / "new.csv", *models[::-1], "-t", "y").out
    assert "Ridge is better on 200 rows" in back and "is better" in back.split("\n")[3]
    seen = call("compare", numbers / "old.csv", *models, "-t", "y")
    assert "warning: DecisionTreeRegressor learned from 100% of these rows" in seen.out
    same = call("compare", numbers / "new.csv", models[0], models[0], "-t", "y")
    assert same.code == 2 and "two different models" in same.error


def test_rows_of_some_classes_are_compared(call: Any, tmp_path: Path) -> None:
    iris = data.load("iris")
    TablePredictor(GaussianNB()).fit(iris.features, iris.y).save(tmp_path / "all.gs")
    iris.frame[:100].write_csv(tmp_path / "two.csv")  # the third species is not among them
    iris.frame[:100].select("target").write_csv(tmp_path / "right.csv")
    done = call(
        "compare", tmp_path / "two.csv", tmp_path / "all.gs", tmp_path / "right.csv", "-t", "target"
    )
    assert done.code == 0, done.error
    assert "right.csv: Accuracy 100.0%" in done.out


def test_impute_leaves_cells_as_written_and_says_what_it_left(call: Any, tmp_path: Path) -> None:
    days = [f"{i % 12 + 1:02d}/{i % 28 + 1:02d}/2020" for i in range(40)]
    lines = [f'joe{i}@x.com,"$1,2{i:02d}.50",{days[i]},{i if i != 7 else ""},' for i in range(40)]
    (tmp_path / "t.csv").write_text("mail,price,day,n,void\n" + "\n".join(lines) + "\n")
    done = call("impute", tmp_path / "t.csv")
    found, given = rows(done), pl.read_csv(tmp_path / "t.csv")
    assert found.drop("n").equals(given.drop("n"))
    assert found["n"].null_count() == 0 and found["n"][8] == 8
    assert "note: 'void' keeps its gaps: the model says nothing about them" in done.error


def test_impute_fills_labels_that_are_mostly_missing(call: Any, tmp_path: Path) -> None:
    decks = ["" if i % 5 else "AB"[i % 2] for i in range(60)]
    lines = [f"{i % 7},{i % 11},{deck}" for i, deck in enumerate(decks)]
    (tmp_path / "t.csv").write_text("fare,age,deck\n" + "\n".join(lines) + "\n")
    for mode in ("min", "sample"):
        done = call("impute", tmp_path / "t.csv", "--mode", mode)
        found = rows(done)["deck"].to_list()
        assert [new for new, old in zip(found, decks, strict=True) if old] == [
            d for d in decks if d
        ]
        assert set(found) == {"A", "B"} and "gaps" not in done.error


def test_infer_and_impute_read_a_row_by_the_units_of_the_model(call: Any, tmp_path: Path) -> None:
    lines = [f"{1 + i % 7} kg,{i % 7 * 2 + i % 3}" for i in range(60)]
    (tmp_path / "t.csv").write_text("weight,size\n" + "\n".join(lines) + "\n")
    density = TablePredictor(GaussianMixture(n_components=2, random_state=0))
    density.fit(data.read(str(tmp_path / "t.csv"))).save(tmp_path / "rows.gs")
    (tmp_path / "new.csv").write_text("weight,size\n500 g,\n")
    found = rows(call("infer", tmp_path / "rows.gs", tmp_path / "new.csv"))
    assert found["weight"].to_list() == [0.5] and found["size"].null_count() == 0
    found = rows(call("impute", tmp_path / "rows.gs", tmp_path / "new.csv"))
    assert found["weight"].to_list() == ["500 g"] and found["size"].null_count() == 0


def test_score_finds_the_truth_under_another_name(call: Any, numbers: Path, tmp_path: Path) -> None:
    model = numbers / "out" / "model.gs"
    new = pl.read_csv(numbers / "new.csv")
    new.rename({"y": "measured"}).write_csv(tmp_path / "renamed.csv")
    own = call("score", model, numbers / "new.csv", "--json").json
    other = call("score", model, tmp_path / "renamed.csv", "--target", "measured", "--json").json
    assert other["scores"] == own["scores"] and other["target"] == "measured"
    done = call("score", model, tmp_path / "renamed.csv")
    assert done.code == 2 and "its columns are 'a', 'b', 'measured'" in done.error
    new[:1].write_csv(tmp_path / "one.csv")
    assert call("score", model, tmp_path / "one.csv").out.startswith("1 row with the truth in 'y'")
