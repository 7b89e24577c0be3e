"""``assess``, ``tune``, ``compare``, ``board`` and ``ledger``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from groundstate import data
from groundstate.evaluate import Ledger

QUICK = ("--test", "0.25", "--tune", "0", "--seeds", "0", "--bootstrap", "0")


def test_assess_keeps_no_model(call: Any, tmp_path: Path) -> None:
    done = call("assess", "iris", "-m", "GaussianNB", "-o", tmp_path / "o", *QUICK)
    assert done.code == 0, done.error
    names = {p.name for p in (tmp_path / "o").iterdir()}
    assert "report.html" in names and "model.gs" not in names


def test_settings_of_tune_give_assess_the_same_validation_risk(call: Any, tmp_path: Path) -> None:
    best = tmp_path / "best.json"
    design = ("--test", "0.25", "--metric", "log_loss")
    done = call("tune", "iris", "-m", "LogisticRegression", "--trials", 3, "-o", best, *design)
    assert done.code == 0 and "best of 3 settings" in done.out
    found = json.loads(best.read_text())
    options = (*design, "--tune", "0", "--seeds", "0", "--bootstrap", "0", "--json")
    told = call("assess", "iris", "--params", best, "-o", tmp_path / "o", *options).json
    entry = next(e for e in told["candidates"]["entries"] if e["name"] == "LogisticRegression")
    assert -np.mean(entry["cv_scores"]) == pytest.approx(found["score"], rel=1e-6)
    assert told["design"]["models"] == ["LogisticRegression", "dummy"]


def test_a_stopped_search_goes_on(call: Any, tmp_path: Path) -> None:
    store = tmp_path / "search.db"
    command = ("tune", "iris", "-m", "LogisticRegression", "--storage", store, "--json")
    first = call(*command, "--trials", 2).json
    again = call(*command, "--trials", 4).json
    assert again["trials"][:2] == first["trials"] and len(again["trials"]) == 4
    whole = call("tune", "iris", "-m", "LogisticRegression", "--trials", 4, "--json").json
    assert whole == again


def test_wrong_files_and_settings_are_said(call: Any, tmp_path: Path) -> None:
    bad = tmp_path / "bad"
    bad.write_text("hello")
    truth, said = tmp_path / "truth.csv", tmp_path / "said.csv"
    truth.write_text("x,y\n" + "".join(f"{i},{'ab'[i % 2]}\n" for i in range(30)))
    said.write_text("y\n" + "a\n" * 30)
    odd = tmp_path / "odd.json"
    odd.write_text('{"model": "GaussianNB", "params": {"CC": 3}}')
    book = tmp_path / "looks.jsonl"
    Ledger(book).record([[0.0]], [1], "m", scores={"accuracy": 1.0})
    for command, words in (
        (("tune", "iris", "-m", "SVC", "--storage", bad), "file is not a database"),
        (("tune", "iris", "-m", "SVC", "--storage", "foo://a:b@c/d"), "foo://c/d needs a driver"),
        (("compare", truth, said, bad, "-t", "y"), "is not a groundstate file"),
        (("compare", truth, said, truth, "-t", "y", "--metric", "log_loss"), "predict --proba"),
        (("compare", truth, said, truth, "-t", "y", "--level", "7"), "between 0 and 1"),
        (("assess", "iris", "--params", bad), "does not hold settings as written by tune"),
        (("assess", "iris", "--params", odd, "-o", tmp_path / "o"), "has a setting 'CC'"),
        (("ledger", said), "is no entry of a ledger"),
        (("ledger", book, "--metric", "auc"), "no look has a 'auc'; there are accuracy"),
    ):
        done = call(*command)
        assert done.code == 2 and words in done.error, (command, done.error, done.exception)
        assert done.error.count("\n") == 1 and not done.out


def test_tune_refuses_several_models(call: Any) -> None:
    done = call("tune", "iris", "-m", "LogisticRegression,SVC")
    assert done.code == 2 and "one model" in done.error


@pytest.fixture(scope="module")
def runs(call: Any, tmp_path_factory: Any) -> Path:
    root = tmp_path_factory.mktemp("runs")
    for name in ("GaussianNB", "BernoulliNB"):
        assert call("fit", "iris", "-m", name, "-o", root / name, *QUICK).code == 0
    return Path(root)


def test_compare_models_and_prediction_files(call: Any, runs: Path, tmp_path: Path) -> None:
    good, bad = runs / "GaussianNB" / "model.gs", runs / "BernoulliNB" / "model.gs"
    told = call("compare", "iris", good, bad, "-t", "target", "--json").json
    assert told["loss"]["verdict"] == "A" and told["loss"]["p"] < 0.01
    said = tmp_path / "said.csv"
    assert call("predict", bad, "iris", "--out", said).code == 0
    again = call("compare", "iris", good, said, "-t", "target", "--json").json
    assert again["loss"]["difference"] == pytest.approx(told["loss"]["difference"])
    shown = call("compare", "iris", good, bad, "-t", "target")
    assert "GaussianNB is better on 150 rows" in shown.out
    assert call("compare", "iris", good, good, "-t", "target").code == 2


def test_compare_takes_the_target_of_the_models(call: Any, runs: Path, tmp_path: Path) -> None:
    good, bad = runs / "GaussianNB" / "model.gs", runs / "BernoulliNB" / "model.gs"
    named = call("compare", "iris", good, bad, "-t", "target", "--json").json
    assert call("compare", "iris", good, bad, "--json").json == named
    rows = tmp_path / "rows.csv"
    data.read("iris").frame.write_csv(rows)
    last = call("compare", good, bad, rows, "--json").json
    assert last["loss"] == named["loss"] and last["a"] == str(good)
    said = tmp_path / "said.csv"
    assert call("predict", bad, "iris", "--out", said).code == 0
    assert call("compare", rows, good, said, "--json").json["loss"] == named["loss"]
    refused = call("compare", rows, said, rows)
    assert refused.code == 2 and "name it with --target" in refused.error


def test_board_ranks_runs_of_one_table(call: Any, runs: Path) -> None:
    told = call("board", runs, "--json").json
    assert [entry["model"] for entry in told] == ["GaussianNB", "BernoulliNB"]
    assert told[0]["tied"] and told[0]["value"] > told[1]["value"]
    assert "GaussianNB" in call("board", runs).out
    assert call("board", runs / "GaussianNB" / "nothing").code == 2


def test_board_judges_submissions(call: Any, runs: Path, tmp_path: Path) -> None:
    folder = tmp_path / "contest"
    (folder / "submissions").mkdir(parents=True)
    truth = data.load("iris")
    truth.frame.write_csv(folder / "test.csv")
    for name in ("GaussianNB", "BernoulliNB"):
        out = folder / "submissions" / f"{name}.csv"
        assert call("predict", runs / name / "model.gs", "iris", "--proba", "--out", out).code == 0
    told = call("board", folder, "--json").json
    assert [p["name"] for p in told["places"]] == ["GaussianNB", "BernoulliNB"]
    assert [p["group"] for p in told["places"]] == [1, 2] and told["looks"] == 2
    assert told["places"][0]["answer"] == told["places"][0]["value"]
    assert "GaussianNB" in (folder / "board.html").read_text()
    by_loss = call("board", folder, "--metric", "log_loss", "--mechanism", "ladder", "--json").json
    assert by_loss["metric"] == "log_loss" and by_loss["mechanism"] == "ladder"
    shown = call("board", folder)
    assert shown.code == 0 and "hold for all at once" in shown.out
    looks = call("ledger", folder / "board.ledger.jsonl", "--json").json
    assert looks["intact"] and len(looks["looks"]) == 2  # the same files: no further look
    for wrong, words in (
        (("--mechanism", "open"), "mechanism must be one of"),
        (("--metric", "rmse"), "rmse is a metric for regression"),
        (("--labels", "none.csv"), "none.csv"),
        (("--final",), "there are no fresh labels"),
        (("--level", "2"), "between 0 and 1"),
    ):
        done = call("board", folder, *wrong)
        assert done.code == 2 and words in done.error and done.error.count("\n") == 1, done.error
    assert call("board", tmp_path).code == 2


def test_ledger_lists_looks_with_adjusted_intervals(call: Any, mixed: Path, tmp_path: Path) -> None:
    book = tmp_path / "looks.jsonl"
    for name in ("GaussianNB", "LogisticRegression"):
        options = ("-t", "bought", "-m", name, "--ledger", book, *QUICK)
        assert call("assess", mixed, "-o", tmp_path / name, *options).code == 0
    told = call("ledger", book, "--metric", "accuracy", "--json").json
    assert told["intact"] and [look["look"] for look in told["looks"]] == [1, 2]
    for look in told["looks"]:
        assert look["simultaneous_lo"] < look["lo"] < look["hi"] < look["simultaneous_hi"]
    assert "all at once" in call("ledger", book).out
    assert call("ledger", tmp_path / "none.jsonl").code == 2


def test_a_leak_leaves_with_4_when_strict(call: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=80), np.arange(80) % 2
    path = tmp_path / "leak.csv"
    rows = [f"{a:.4f},{b + 0.001 * i},{'ab'[b]}" for i, (a, b) in enumerate(zip(x, y))]
    path.write_text("x,after,y\n" + "\n".join(rows) + "\n")
    options = ("-t", "y", "-m", "GaussianNB", *QUICK)
    assert call("assess", path, "-o", tmp_path / "o", *options).code == 0
    done = call("assess", path, "-o", tmp_path / "o", "--strict", *options)
    assert done.code == 4 and "after" in done.error


def test_budget_and_its_words(call: Any, tmp_path: Path) -> None:
    done = call("assess", "iris", "-m", "GaussianNB", "-o", tmp_path / "o", "--budget", "soon")
    assert done.code == 2 and "60s, 2m or 1h" in done.error
