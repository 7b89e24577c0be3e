"""``groundstate fit --generate``, ``sample`` and ``infer`` on its model: a synthetic twin of a table."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from groundstate.cli.app import app

N = 600


def rows() -> pl.DataFrame:
    rng = np.random.default_rng(0)
    kind = rng.choice(["a", "b"], N)
    size = np.where(kind == "a", 3.0, 0.0) + rng.normal(size=N)
    return pl.DataFrame({"kind": kind, "size": size, "weight": 2 * size + 0.3 * rng.normal(size=N)})


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, list(arguments))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    here = tmp_path_factory.mktemp("twin")
    rows().write_csv(here / "rows.csv")
    done = run(
        "fit", str(here / "rows.csv"), "--generate", "--model", "AutoregressiveDensity", "--out",
        str(here / "out"), "--no-progress",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert "AutoregressiveDensity makes rows" in done.output and "near copies" in done.output
    return here


def test_the_folder_holds_a_twin_and_the_report(folder: Path) -> None:
    out = folder / "out"
    facts = json.loads((out / "report.json").read_text())
    assert facts["chosen"] == "AutoregressiveDensity" and facts["better_than_independent_columns"]
    assert facts["rows"]["training"] == 360 and facts["rows"]["held-out"] == 120
    low, high = facts["held_out"]["accuracy_of_telling_apart"][1:]
    assert low < 0.6 and high < facts["independent_columns"]["accuracy_of_telling_apart"][0] + 0.2
    twin = pl.read_csv(out / "synthetic.csv")
    assert twin.columns == ["kind", "size", "weight"] and len(twin) == N
    assert np.corrcoef(twin["size"], twin["weight"])[0, 1] > 0.8
    page = (out / "report.html").read_text()
    assert facts["candidates"][0]["learned_of_real"] > 0.5 and "size" in facts["columns_learned"]
    for word in (
        "Faithful and private?",
        "What can be learned from it?",
        "Candidates",
        "<svg",
        "What it makes",
        "is anything forgotten",
    ):
        assert word in page
    assert "study_generators" in (out / "reproduce.py").read_text()
    cells = [cell for cell in re.findall(r"<td>([^<]*)</td>", page) if " to " in cell]
    assert any("−" in cell for cell in cells)
    assert not [cell for cell in cells if re.search(r"(^|[ (])-\d|\d\.\d{4}", cell)]


def test_draws_and_gaps(folder: Path) -> None:
    model = str(folder / "out" / "model.gs")
    done = run("sample", model, "-n", "25", "--out", str(folder / "new.csv"), "--no-progress")
    assert done.exit_code == 0, done.output
    assert pl.read_csv(folder / "new.csv").shape == (25, 3)
    done = run("sample", model, "-n", "30", "--y", "kind=a", "--no-progress")
    assert done.exit_code == 0, done.output
    given = pl.read_csv(done.output.encode())
    assert given.shape == (30, 3) and set(given["kind"]) == {"a"} and given["size"].mean() > 1.5
    gaps = rows().head(10).with_columns(pl.lit(None, pl.Float64).alias("weight"))
    gaps.write_csv(folder / "gaps.csv")
    done = run(
        "infer",
        model,
        str(folder / "gaps.csv"),
        "--mode",
        "sample",
        "--out",
        str(folder / "full.csv"),
    )
    assert done.exit_code == 0, done.output
    full = pl.read_csv(folder / "full.csv")
    assert full["weight"].null_count() == 0
    np.testing.assert_allclose(full["size"], gaps["size"])
    assert full["kind"].to_list() == gaps["kind"].to_list()


def test_refusals(folder: Path) -> None:
    model = str(folder / "out" / "model.gs")
    done = run("sample", model, "--y", "a")
    assert done.exit_code == 2 and "kind=VALUE" in done.output
    done = run("sample", model, "--y", "kind=z")
    assert done.exit_code == 2 and "it was" in done.output
    source = str(folder / "rows.csv")
    done = run("fit", source, "--generate", "--target", "kind", "--out", str(folder / "no"))
    assert done.exit_code == 2 and "--y COLUMN=VALUE" in done.output
    done = run(
        "fit", source, "--generate", "--quick", "--groups", "kind", "--out", str(folder / "no")
    )
    assert done.exit_code == 2 and "no use for --groups, --quick" in done.output
    done = run("infer", model, str(folder / "gaps.csv"), "--free", "z")
    assert done.exit_code == 2 and "--free x" in done.output
    done = run(
        "fit",
        str(folder / "rows.csv"),
        "--generate",
        "--model",
        "Ridge",
        "--out",
        str(folder / "no"),
    )
    assert done.exit_code == 2 and "is no generator" in done.output and not (folder / "no").exists()
    rows().head(30).write_csv(folder / "few.csv")
    done = run("fit", str(folder / "few.csv"), "--generate", "--out", str(folder / "no"))
    assert done.exit_code == 2 and "at least 100 rows" in done.output
