"""What somebody sees who brings tables that nobody here has tuned for."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import groundstate


def test_found_numbers_have_the_decimals_of_their_column(call: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(7)
    x = rng.normal(size=160)
    sold = [f"{2000 + 500 * v + 20 * e:.2f}" for v, e in zip(x, rng.normal(size=160), strict=True)]
    for i in range(7, 160, 20):
        sold[i] = ""
    rows = pl.DataFrame({"price": [f"${1000 + 300 * v:,.2f}" for v in x], "sold": sold})
    rows.write_csv(tmp_path / "money.csv")
    done = call("impute", tmp_path / "money.csv")
    assert done.code == 0, done.error
    filled = pl.read_csv(io.StringIO(done.out), infer_schema=False)
    assert filled["price"].equals(rows["price"])
    digits = filled["sold"].str.split(".").list.last().str.len_chars()
    assert filled["sold"].null_count() == 0 and digits.max() == 2


def test_a_score_of_rows_that_were_learned_does_not_say_that_they_differ(
    call: Any, tmp_path: Path
) -> None:
    rng = np.random.default_rng(7)
    X = rng.normal(size=(30, 60))
    rows = pl.DataFrame({f"g{j}": X[:, j] for j in range(60)} | {"y": X[:, 0]})
    rows.write_csv(tmp_path / "wide.csv")
    options = {"model": "Ridge", "quick": True, "ledger": "none"}
    groundstate.study(tmp_path / "wide.csv", "y", **options).report(tmp_path / "out")
    done = call("score", tmp_path / "out", tmp_path / "wide.csv")
    assert done.code == 0, done.error
    assert "of new rows, and it has learned from these" in done.out
    assert "differ:" not in done.out and "these rows differ" not in done.out
