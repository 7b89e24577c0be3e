"""Synthetic twins of tables: columns of every kind come back, gaps are filled, files answer the same."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.stats import ks_2samp, kstest
from tests.models.generative.test_base import GaussianGenerator

import groundstate
from groundstate.errors import DataError
from groundstate.models.generative.tables.columns import LevelColumn, NumberColumn
from groundstate.models.generative.tables.table_generator import TableGenerator

N = 500


def table() -> pl.DataFrame:
    rng = np.random.default_rng(0)
    kind = rng.choice(["a", "b", "c"], N, p=[0.5, 0.3, 0.2])
    size = np.exp(rng.normal(size=N)) + 3 * (kind == "a")
    age = [None if rng.random() < 0.2 else int(v) for v in rng.integers(0, 90, N)]
    fee = np.where(rng.random(N) < 0.4, 0.0, rng.exponential(5, N))
    first = datetime(2020, 1, 1)
    return pl.DataFrame(
        {
            "id": np.arange(1, N + 1),
            "kind": kind,
            "size": size,
            "age": age,
            "fee": fee,
            "day": [first + timedelta(days=float(d)) for d in rng.uniform(0, 900, N)],
            "rooms": rng.integers(1, 6, N),
            "always": ["x"] * N,
        }
    )


@pytest.fixture(scope="module")
def model() -> TableGenerator:
    return TableGenerator(GaussianGenerator(max_iter=40, random_state=0)).fit(table())


def test_columns_come_back_as_they_were(model: TableGenerator) -> None:
    real, twin = table(), model.sample(N, random_state=0)
    assert twin.columns == real.columns and len(twin) == N
    assert twin["id"].to_list() == list(range(1, N + 1))
    assert set(twin["always"]) == {"x"} and set(twin["kind"]) <= {"a", "b", "c"}
    assert twin["age"].dtype.is_integer() and twin["rooms"].dtype.is_integer()
    assert 0.1 < twin["age"].null_count() / N < 0.32
    assert set(twin["rooms"].to_list()) <= {1, 2, 3, 4, 5}
    assert (twin["fee"] == 0).mean() == pytest.approx(0.4, abs=0.08)
    for name in ("size", "fee"):
        assert ks_2samp(twin[name].to_numpy(), real[name].to_numpy()).pvalue > 1e-3
        assert real[name].min() <= twin[name].min() and twin[name].max() <= real[name].max()
    assert twin["day"].dtype == pl.Datetime("us")
    assert real["day"].min() <= twin["day"].min()
    assert twin.equals(model.sample(N, random_state=0))
    assert pl.concat(list(model.iter_samples(N, random_state=0))).equals(twin)


def test_scores_of_numbers_are_normal_and_undone() -> None:
    rng = np.random.default_rng(1)
    x = np.where(rng.random(2000) < 0.3, 0.0, rng.exponential(size=2000))
    column = NumberColumn.learned("x", x, np.ones(2000), integer=False, date=False)
    z = column.scores(x, rng.uniform(size=2000))
    assert kstest(z, "norm").pvalue > 0.01
    np.testing.assert_allclose(column.values(z), x, atol=0.05)
    assert (column.values(z)[x == 0] == 0).all()
    # the density of the scores and their slope make a distribution of x
    grid = np.linspace(x.min(), x.max(), 20_001)[1:]
    density = (
        np.exp(-0.5 * column.scores(grid) ** 2)
        / np.sqrt(2 * np.pi)
        * np.exp(column.log_slope(grid))
    )
    keep = grid > 1e-3
    assert np.trapezoid(density[keep], grid[keep]) == pytest.approx(0.7, abs=0.02)


@pytest.mark.parametrize("decimals", [1, 2, None])
def test_numbers_come_back_with_the_decimals_of_the_column(decimals: int | None) -> None:
    x = np.random.default_rng(3).exponential(size=300)
    x = x if decimals is None else np.round(x, decimals)
    column = NumberColumn.learned("x", x, np.ones(300), integer=False, date=False)
    made = column.values(np.linspace(-2, 2, 101))
    assert column.decimals == decimals
    rounded = np.round(made, 6 if decimals is None else decimals)
    assert np.array_equal(rounded, made) == (decimals is not None)


def test_rare_levels_share_one() -> None:
    values = [f"v{i}" for i in range(60) for _ in range(1 + (i < 30))]
    column = LevelColumn.learned("v", values, np.ones(len(values)), number=False, integer=False)
    words = column.words([*values, "new"])
    assert words[-1] is None and "(other)" in words
    back = column.values([w for w in words if w is not None], np.random.default_rng(0))
    assert set(back) <= set(values) and back[0] == values[0]


def test_gaps_are_filled_and_the_rest_stays(model: TableGenerator) -> None:
    gaps = (
        table()
        .head(20)
        .with_columns(
            pl.when(pl.int_range(20) < 5).then(None).otherwise(pl.col("size")).alias("size"),
            pl.when(pl.int_range(20) == 7).then(None).otherwise(pl.col("kind")).alias("kind"),
        )
    )
    filled = model.impute(gaps, random_state=0)
    assert (
        filled["size"].null_count()
        == filled["kind"].null_count()
        == filled["age"].null_count()
        == 0
    )
    assert filled["size"].to_list()[5:] == gaps["size"].to_list()[5:]
    assert filled["kind"].to_list()[:7] == gaps["kind"].to_list()[:7]
    without = model.impute(gaps.drop("fee"), random_state=0)
    assert without["fee"].null_count() == 0
    assert np.isfinite(model.score_samples(table())).all() and model.log_prob_kind_ == "bound"


def test_files_and_refusals(model: TableGenerator, tmp_path: Any) -> None:
    back = groundstate.load(model.save(tmp_path / "twin.gs"))
    assert back.sample(9, random_state=2).equals(model.sample(9, random_state=2))
    with pytest.raises(DataError, match="no column is left"):
        TableGenerator(GaussianGenerator()).fit({"id": list(range(30)), "one": ["a"] * 30})


def test_days_and_truths_are_written_as_they_were(tmp_path: Any) -> None:
    rng = np.random.default_rng(5)
    lines = ["day,hour,member,left"]
    for _ in range(200):
        d = datetime(2021, 3, 1) + timedelta(days=int(rng.integers(0, 700)))
        h = d + timedelta(hours=int(rng.integers(0, 24)))
        gone = "" if rng.random() < 0.3 else "true"
        lines.append(f"{d:%Y-%m-%d},{h:%Y-%m-%d %H:%M:%S},{str(rng.random() < 0.4).lower()},{gone}")
    (tmp_path / "rows.csv").write_text("\n".join(lines))
    model = TableGenerator(GaussianGenerator(max_iter=5, random_state=0)).fit(tmp_path / "rows.csv")
    twin = model.sample(60, random_state=0)
    assert twin.schema["day"] == pl.Date and twin.schema["hour"] == pl.Datetime("us")
    assert twin.schema["member"] == pl.Boolean and twin["hour"].dt.minute().max() == 0
    gaps = pl.DataFrame({"day": ["2021-05-01", None], "member": [None, True]})
    full = model.impute(gaps, random_state=0)
    assert full["day"].dtype == pl.Date and str(full["day"][0]) == "2021-05-01"
    assert full["member"].dtype == pl.Boolean and full["member"][1] is True
    assert full.null_count().sum_horizontal().item() == 0


def test_rows_given_values_of_columns(model: TableGenerator) -> None:
    given = model.sample(300, {"kind": "c", "rooms": 2}, random_state=0)
    assert set(given["kind"]) == {"c"} and set(given["rooms"]) == {2}
    assert given.schema == model.sample(1, random_state=0).schema
    assert given["id"].to_list() == list(range(1, 301))
    assert 0 < given["age"].null_count() < 300  # missing as often as it was
    assert given.equals(model.sample(300, {"kind": "c", "rooms": 2}, random_state=0))
    for wrong, word in (({"kind": "z"}, "was never 'z'"), ({"colour": 1}, "is no column")):
        with pytest.raises(DataError, match=word):
            model.sample(3, wrong)


def test_blocks_are_the_rows_of_one_call(
    model: TableGenerator, monkeypatch: pytest.MonkeyPatch
) -> None:
    from groundstate.models.generative.base import GenerativeEstimator
    from groundstate.models.generative.tables import gaps

    monkeypatch.setattr(GenerativeEstimator, "_block", 20)
    monkeypatch.setattr(gaps, "BLOCK", 20)
    for y in (None, {"kind": "a"}):
        parts = list(model.iter_samples(50, y, random_state=3))
        assert [len(p) for p in parts] == [20, 20, 10]
        assert pl.concat(parts).equals(model.sample(50, y, random_state=3))


def test_several_draws_of_gaps_are_numbered(model: TableGenerator) -> None:
    gaps = table().head(3).with_columns(pl.lit(None, pl.Float64).alias("size"))
    drawn = model.infer({"x": gaps}, "x", "sample", n=4, random_state=0)
    assert drawn["draw"].to_list() == [1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4]
    assert drawn["size"].n_unique() > 3 and set(drawn["kind"]) == set(gaps["kind"])
    one = model.infer({"x": gaps}, "x", "sample", random_state=0)
    assert one.equals(drawn.filter(pl.col("draw") == 1).drop("draw"))


def test_a_misspelt_column_is_not_left_out_in_silence(model: TableGenerator) -> None:
    rows = table().head(3)
    with pytest.raises(DataError, match="'knd', which is not known, and lacks 'kind'; rename"):
        model.impute(rows.rename({"kind": "knd"}))
    extra = rows.drop("rooms").with_columns(pl.lit(1.0).alias("price"))
    assert model.impute(extra)["rooms"].null_count() == 0  # what is new beside a gap is ignored
