"""``groundstate solve`` from a file to a folder."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import groundstate
from groundstate.cli.app import app

QUICK = '[pinn]\nhidden = [10]\nn_collocation = 40\noptimizer = "lbfgs"\nlbfgs_steps = 120\nresample = false\n'
SPRING = """
equation = "u.tt + k*u"
[domain]
t = [0, 2]
[[conditions]]
kind = "initial"
value = 1.0
[[conditions]]
kind = "initial"
value = 0.0
order = 1
"""

WAVE = (
    'equation = "u.t - u.x"\n[domain]\nt = [0, 1]\nx = [0, 1]\n[[conditions]]\nkind = "initial"\n'
)


def run(*arguments: str) -> tuple[int, str]:
    found = CliRunner().invoke(app, ["solve", *arguments])
    return found.exit_code, found.output


def test_a_spring(tmp_path: Path) -> None:
    file, out = tmp_path / "spring.toml", tmp_path / "out"
    file.write_text(SPRING + "[parameters]\nk = 4.0\n" + QUICK)
    code, text = run(str(file), "--out", str(out))
    assert code == 0, text
    assert "parameters: k: 4\n" in text and "coordinates: t: 0 to 2\n" in text and "{" not in text
    assert json.loads((out / "report.json").read_text())["kind"] == "ODE"
    model = groundstate.load(out / "model.gs")
    t = np.linspace(0, 2, 9)[:, None]
    assert np.abs(model.predict(t) - np.cos(2 * t[:, 0])).max() < 0.05
    page = (out / "report.html").read_text()
    assert "<svg" in page and "u.tt + k*u" in page
    assert json.loads((out / "report.json").read_text())["loss"]["equation"] < 1e-2


def test_a_coefficient_from_a_table(tmp_path: Path) -> None:
    file = tmp_path / "spring.toml"
    file.write_text('unknown = ["k"]\npositive = ["k"]\n' + SPRING + QUICK + "n_bootstrap = 2\n")
    t = np.linspace(0, 2, 30)
    (tmp_path / "seen.csv").write_text("t,u\n" + "\n".join(f"{a},{np.cos(2 * a)}" for a in t))
    code, text = run(
        str(file), "--out", str(tmp_path / "o"), "--data", str(tmp_path / "seen.csv"), "--json"
    )
    assert code == 0, text
    assert json.loads(text)["parameters"]["k"] == pytest.approx(4.0, rel=0.05)


@pytest.mark.parametrize(("text", "said"), [
    ("equation = 3", "domain"),
    ('problem = "nothing"', "library has burgers"),
    ('equation = "__import__(1)"\n[domain]\nx = [0, 1]', "functions are"),
    ('equation = "u.x"\n[domain]\nx = [0, 1]\n[[conditions]]\nkind = "odd"', "dirichlet"),
    ('problem = "heat"\n[pinn]\nspeed = 1', "no parameter of PINN"),
    ("= 3", "not TOML"),
    (WAVE + 'value = "sin(y)"', "'sin(y)' needs y; there are t, x"),
    (WAVE + 'value = "sin("', "is not an equation"),
    (WAVE + 'of = "v"', "about 'v'; the unknown functions are u"),
    (WAVE.replace("initial", "neumann") + 'on = "z=0"', "'z' is no coordinate"),
    (WAVE + '[pinn]\nhidden = "big"', "'hidden' parameter of PINN"),
])  # fmt: skip
def test_bad_files_are_one_sentence(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "p.toml"
    file.write_text(text)
    code, output = run(str(file))
    assert code == 2 and said in output


def test_a_place_that_takes_no_folder_is_found_before_the_work(tmp_path: Path) -> None:
    file = tmp_path / "spring.toml"
    file.write_text(SPRING + "[parameters]\nk = 4.0\n[pinn]\nlbfgs_steps = 1_000_000\n")
    code, text = run(str(file), "--out", str(file / "out"))
    assert code == 2 and "out" in text
