"""The exported script, run in a process of its own, gives scores and predictions again."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import groundstate

QUICK = {"tune": 2, "seeds": 0, "bootstrap": 0, "repeats": 1, "thorough": True}
ASK = """
import json, runpy, sys
found = runpy.run_path(sys.argv[1])["study"](sys.argv[2])
answers = found.predict(sys.argv[2]).tolist()
print(json.dumps({"scores": found.facts["scores"], "answers": answers}))
"""


def orders(rng: np.random.Generator, n: int) -> tuple[pl.DataFrame, str]:
    """Dates, a free text, a category, money with signs, and gaps."""
    days = np.datetime64("2023-01-01") + rng.integers(0, 500, n)
    good = rng.random(n) < 0.5
    words = np.where(good, "fast and friendly delivery", "late parcel, broken box")
    frame = {
        "ordered": days.astype(str),
        "sent": (days + rng.integers(0, 9, n)).astype(str),
        "review": [f"{w} number {i % 7} {'again' * (i % 3)}" for i, w in enumerate(words)],
        "shop": rng.choice(["north", "south", "east"], n),
        "price": [f"${v:,.2f}" for v in rng.gamma(2, 900, n)],
        "kept": np.where(good ^ (rng.random(n) < 0.1), "yes", "no"),
    }
    gaps = pl.when(pl.int_range(pl.len()) % 11 != 3).then(pl.col("shop")).alias("shop")
    return pl.DataFrame(frame).with_columns(gaps), "kept"


def flowers(rng: np.random.Generator, n: int) -> tuple[pl.DataFrame, str]:
    """Numbers, and three classes."""
    X = rng.normal(size=(n, 3)).round(3)
    kind = np.array(["a", "b", "c"])[np.digitize(X[:, 0] + 0.3 * rng.normal(size=n), [-0.5, 0.5])]
    return pl.DataFrame({f"x{j}": X[:, j] for j in range(3)} | {"kind": kind}), "kind"


def houses(rng: np.random.Generator, n: int) -> tuple[pl.DataFrame, str]:
    """Values, with a category of many levels and yes or no."""
    size, town = rng.gamma(9, 12, n).round(1), rng.integers(0, 12, n)
    garden = rng.random(n) < 0.4
    value = 2.5 * size + 9 * town + 20 * garden + rng.normal(size=n)
    frame = {"size": size, "town": [f"town {t}" for t in town],
             "garden": np.where(garden, "yes", "no"), "value": value.round(2)}  # fmt: skip
    return pl.DataFrame(frame), "value"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "model"),
    [
        (orders, "LogisticRegression,RandomForestClassifier"),
        (flowers, "KNeighborsClassifier,LogisticRegression"),
        (houses, "Ridge,HistGradientBoostingRegressor"),
    ],
)
def test_scores_and_predictions_come_again(tmp_path: Path, make: Any, model: str) -> None:
    frame, target = make(np.random.default_rng(0), 120)
    table = tmp_path / "rows.csv"
    frame.write_csv(table)
    found = groundstate.study(table, target, model=model, ledger="none", **QUICK)
    found.report(tmp_path / "out")
    done = subprocess.run(
        [sys.executable, "-c", ASK, str(tmp_path / "out" / "reproduce.py"), str(table)],
        capture_output=True, text=True, cwd=tmp_path, timeout=900,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    again = json.loads(done.stdout)
    assert again["scores"] == json.loads((tmp_path / "out" / "report.json").read_text())["scores"]
    kept = groundstate.load(tmp_path / "out" / "model.gs").predict(str(table))
    assert again["answers"] == np.asarray(kept).tolist() == found.predict(str(table)).tolist()
