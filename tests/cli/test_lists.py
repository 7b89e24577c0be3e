"""``models``, ``run``, ``bench`` and the program itself."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import groundstate
from groundstate import registry
from groundstate.bench import Benchmark
from groundstate.experiments import Claim, Experiment, Result
from groundstate.registry import ExperimentRow, Registry


def test_models_lists_the_registry(call: Any) -> None:
    done = call("models", "--json")
    assert sorted(row["name"] for row in done.json) == registry.models.names()
    text = call("models").out
    assert all(name in text for name in registry.models.names())


@pytest.mark.parametrize("name", registry.models.names())
def test_every_model_is_explained(name: str, call: Any) -> None:
    told = call("models", name, "--json").json
    assert told["name"] == name and told["energy"]["formula"] and told["rule"]["words"]
    assert told["solver"]["name"] and told["inference"]
    text = call("models", name).out
    for heading in ("Energy: ", "Learning rule: ", "Solver: ", "Inference"):
        assert heading in text


def test_a_saved_model_is_explained(call: Any, fitted: Path) -> None:
    done = call("models", fitted / "model.gs")
    assert done.code == 0 and "columns of the table become" in done.out and "Learned: " in done.out


def test_unknown_model_suggests_one(call: Any) -> None:
    done = call("models", "KMenas")
    assert done.code == 2 and done.error.count("\n") == 1 and "there is no model" in done.error


@pytest.fixture
def shelf(monkeypatch: pytest.MonkeyPatch) -> Iterator[Registry[ExperimentRow]]:
    """Three small experiments: one holds, one fails, one breaks."""
    from groundstate.cli import run

    rows = Registry("experiment", ExperimentRow, None)

    def add(id: str, theme: str, claims: list[Claim] | None) -> None:
        def body(seed: int = 0, *, quick: bool = False) -> Result:
            if claims is None:
                raise RuntimeError("broken")
            return Result(claims, {"seed": seed}, lambda figure: None)

        body.__name__ = body.__qualname__ = id.replace("-", "_")
        made = Experiment(body, id, theme, f"title of {id}")
        rows.register(id, theme=theme, title=made.title)(made)

    add("TST-X-good", "first", [Claim.below("error", 0.1, 1.0)])
    add("TST-X-bad", "second", [Claim.below("error", 2.0, 1.0), Claim.equal("n", 1, 1)])
    add("TST-X-broken", "third", None)
    monkeypatch.setattr(run, "experiments", rows)
    yield rows


def test_run_lists(call: Any, shelf: Any) -> None:
    assert [row["id"] for row in call("run", "--list", "--json").json] == [
        "TST-X-bad",
        "TST-X-broken",
        "TST-X-good",
    ]
    assert "title of TST-X-good" in call("run").out


def test_run_prints_claims_and_verdict(call: Any, shelf: Any, tmp_path: Path) -> None:
    done = call("run", "TST-X-good", "--pictures", tmp_path / "p")
    assert done.code == 0
    assert "holds  error: 0.1 (below 1)" in done.out and "verdict: holds" in done.out
    assert (tmp_path / "p" / "TST-X-good.svg").read_text().startswith("<?xml")
    assert call("run", "good", "--seed", 4, "--json").json["numbers"] == {"seed": 4}


def test_a_failed_claim_is_exit_code_one(call: Any, shelf: Any) -> None:
    done = call("run", "TST-X-bad")
    assert done.code == 1 and "FAILS  error: 2 (below 1)" in done.out
    assert "verdict: FAILS" in done.out


def test_run_all_survives_a_broken_one(call: Any, shelf: Any) -> None:
    done = call("run", "--all")
    assert done.code == 1 and "1 of 3 experiments hold" in done.out
    assert "RuntimeError: broken" in done.out and "1/2" in done.out


def test_run_of_a_theme(call: Any, shelf: Any) -> None:
    done = call("run", "--all", "--theme", "first")
    assert done.code == 0 and "1 of 1 experiments hold" in done.out
    wrong = call("run", "--all", "--theme", "fifth")
    assert wrong.code == 2 and "themes: first, second, third" in wrong.error


def test_run_refuses_what_it_cannot_do(call: Any, shelf: Any) -> None:
    assert "did you mean 'TST-X-good'" in call("run", "TST-X-goood").error
    assert call("run", "good", "--device", "cuda").code == 2


def test_the_registered_experiments_are_listed(call: Any) -> None:
    done = call("run", "--list", "--json", "--theme", "energy")
    assert [row["id"] for row in done.json] == [
        row.name for row in registry.experiments if row.theme == "energy"
    ]


def test_bench_lists_measures_and_keeps(
    call: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from groundstate.bench import benchmark
    from groundstate.cli import bench as command

    adding = Benchmark(
        name="adding",
        title="Sum of a list",
        sizes={"small": 10, "medium": 100, "large": 1000},
        data=lambda size, seed: {"x": list(range(size))},
        ours=lambda values: sum(values["x"]),
        peers={"loop": lambda values: sum(v for v in values["x"])},
        score=lambda values, result: float(result),
        score_name="sum",
        better="high",
    )
    found = {"adding": adding}
    monkeypatch.setattr(command, "discover", lambda: found)
    monkeypatch.setattr(benchmark, "discover", lambda where=None: found)
    assert call("bench", "--list", "--json").json[0]["sizes"] == ["small", "medium", "large"]
    out = tmp_path / "adding.csv"
    options = ("--sizes", "small", "--repeats", 1, "--out", out)
    done = call("bench", "adding", *options)
    assert done.code == 0, done.error
    assert "Sum of a list" in done.out and str(out) in done.out
    header, *rows = out.read_text().splitlines()
    assert "machine" in header and len(rows) == 2 and ",loop," in rows[1]
    wrong = call("bench", "ading")
    assert wrong.code == 2 and "did you mean 'adding'?" in wrong.error
    assert call("bench", "adding", "--sizes", "huge").code == 2


def test_version_and_bare_call(call: Any) -> None:
    assert call("--version").out == f"groundstate {groundstate.__version__}\n"
    assert "fit" in call("--help").out


@pytest.mark.parametrize("name", ["fit", "predict", "infer", "sample", "models", "run", "bench"])
def test_every_command_has_the_common_options(name: str, call: Any) -> None:
    text = call(name, "--help").out
    for option in ("--json", "--seed", "--device", "--no-progress"):
        assert option in text


def test_help_imports_nothing_heavy() -> None:
    import subprocess

    code = (
        "import sys\nfrom groundstate.cli.app import app\n"
        "print(*sorted({'torch', 'sklearn', 'polars', 'numpy', 'matplotlib'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
