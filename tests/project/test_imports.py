"""Starting is quick, and what the top level promises is there."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import groundstate
from groundstate.lazy import declared
from groundstate.registry import import_all

INIT = Path(groundstate.__file__)


HEAVY = ("torch", "numpy", "scipy", "sklearn", "numba", "matplotlib", "pandas", "polars", "optuna")


def loaded(code: str) -> set[str]:
    """Modules that a fresh interpreter has imported after a line of code."""
    line = f"{code}; import sys; print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", line], capture_output=True, text=True, check=True)
    return set(done.stderr.split())


def test_import_leaves_torch_alone() -> None:
    assert not loaded("import groundstate") & set(HEAVY)


def test_help_loads_nothing_heavy() -> None:
    code = "import contextlib, sys; sys.argv[1:] = ['--help']; from groundstate.cli import main"
    exits = "with contextlib.suppress(SystemExit): main()"
    assert not loaded(f"exec({code!r} + chr(10) + {exits!r})") & set(HEAVY)


ANSWERS = """
import numpy as np, torch
from groundstate import LogisticRegression, infer, learn
from groundstate.energy import LinearEnergy
from groundstate.learn.fit import candidates

rows = np.random.default_rng(0)
X = rows.normal(size=(60, 3))
y = (X[:, 0] + rows.normal(size=60) > 0).astype(int)
energy = LinearEnergy(3, 2).double()
data = {"x": torch.tensor(X), "y": torch.tensor(y)}
history = learn.fit(energy, data, learn.SoftMin(), learn.LBFGS(tol=1e-8), penalty=learn.L2(1.0))
given = {"x": data["x"][:2]}
answers = {
    "newton": LogisticRegression().fit(X, y).coef_.ravel().tolist(),
    "lbfgs": LogisticRegression(solver="lbfgs").fit(X, y).coef_.ravel().tolist(),
    "steps": history.n_iter,
    "solvers": [type(s).__name__ for s in candidates(energy, learn.SoftMin())],
    **{op: infer.explain(energy, op, "y", given) for op in ("minimise", "marginalise", "sample")},
    "marginal": energy.marginal("y", method=infer.Enumerate())(**given).tolist(),
    "minimal": energy.minimal("y", method=infer.Enumerate())(**given).tolist(),
}
"""


def test_an_estimator_loads_what_it_runs_and_answers_as_with_everything_loaded() -> None:
    """A linear model does not draw, knows no other family, and depends on no other import."""
    code = f"{ANSWERS}\nimport json, sys; print(json.dumps([answers, *sys.modules]))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    alone, *found = json.loads(done.stdout)
    assert not set(found) & {"matplotlib", "polars", "optuna"}
    families = {name.split(".")[2] for name in found if name.startswith("groundstate.models.")}
    assert not families & {"trees", "ensembles", "svm", "generative", "vision", "text", "graphs"}
    assert sum(name.startswith("groundstate.") for name in found) < 320
    for room in ("energy", "infer", "learn"):
        import_all(f"groundstate.{room}")
    scope: dict[str, Any] = {}
    exec(ANSWERS, scope)
    together = json.loads(json.dumps(scope["answers"]))
    for name in ("newton", "lbfgs", "marginal", "minimal"):
        assert alone.pop(name) == pytest.approx(together.pop(name), rel=1e-9), name
    assert alone == together


@pytest.mark.parametrize("name", groundstate._EXPORTS)
def test_export_resolves(name: str) -> None:
    assert getattr(groundstate, name) is getattr(import_module(groundstate._EXPORTS[name]), name)


@pytest.mark.parametrize("name", groundstate._ROOMS)
def test_room_resolves(name: str) -> None:
    assert getattr(groundstate, name) is import_module(f"groundstate.{name}")


PACKAGES = sorted(
    ".".join(("groundstate", *file.parent.relative_to(INIT.parent).parts))
    for file in INIT.parent.rglob("__init__.py")
    if "lazy(__name__)" in file.read_text()
)


@pytest.mark.parametrize("name", PACKAGES)
def test_a_lazy_package_gives_what_it_declares(name: str) -> None:
    package = import_module(name)
    homes = declared(str(package.__file__))
    assert homes and set(homes) <= set(package.__all__)
    for export, home in homes.items():
        if home == name:  # a module of its own
            assert getattr(package, export) is import_module(f"{name}.{export}")
        else:
            assert getattr(package, export) is getattr(import_module(home), export)


def test_an_export_is_not_hidden_by_the_module_of_its_name() -> None:
    module = import_module("groundstate.learn.fit")
    assert groundstate.learn.fit is module.fit is not module


def test_dir_and_all_agree() -> None:
    assert dir(groundstate) == sorted(groundstate.__all__)
    assert {*groundstate._EXPORTS, *groundstate._ROOMS} < set(groundstate.__all__)


def test_unknown_name_suggests_a_near_one() -> None:
    with pytest.raises(AttributeError, match="did you mean 'KMeans'"):
        _ = groundstate.KMean
    with pytest.raises(AttributeError, match=r"no attribute 'qqq'$"):
        _ = groundstate.qqq


def test_version_is_the_installed_one() -> None:
    from importlib.metadata import version

    assert groundstate.__version__ == version("groundstate")


def test_estimators_of_arrays_do_without_polars() -> None:
    """A machine for training may have no reader of tables."""
    code = """
import sys
sys.modules["polars"] = None
import groundstate, numpy as np
for name in groundstate._EXPORTS:
    if name[0].isupper() and name not in ("TableGenerator", "TablePredictor"):
        getattr(groundstate, name)
X, y = np.eye(4), [0, 1, 0, 1]
print(groundstate.LogisticRegression().fit(X, y).predict(X).tolist())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[0, 1, 0, 1]"


def test_short_names_of_folders_are_imported_from() -> None:
    for name in groundstate._FOLDERS:
        short = importlib.import_module(f"groundstate.{name}")
        assert short is importlib.import_module(f"{groundstate._EXPORTS[name]}.{name}")
        assert short.__spec__.name == short.__name__  # importing by the short name leaves no trace
    from groundstate.vision import boxes, filters

    from groundstate.nn.detection import boxes as module

    assert boxes is module
    assert importlib.import_module("groundstate.vision.filters") is filters
    with pytest.raises(ModuleNotFoundError, match="No module named 'groundstate.visoin'"):
        importlib.import_module("groundstate.visoin")
    with pytest.raises(ModuleNotFoundError, match="No module named 'groundstate.vision.nothing'"):
        importlib.import_module("groundstate.vision.nothing")
