"""Starting is quick, and what the top level promises is there."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path

import pytest

import groundstate

INIT = Path(groundstate.__file__)


def best_of_three(*command: str) -> tuple[float, str]:
    """Shortest wall time of three runs, and the last output."""
    env = {**os.environ, "TERM": "dumb"}
    best, output = float("inf"), ""
    for _ in range(3):
        start = time.perf_counter()
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=env)
        best, output = min(best, time.perf_counter() - start), done.stdout
    return best, output


def test_import_is_quick_and_leaves_torch_alone() -> None:
    code = "import groundstate, sys; print(*({'torch', 'numpy', 'sklearn'} & set(sys.modules)))"
    seconds, loaded = best_of_three(sys.executable, "-c", code)
    assert loaded.strip() == ""
    empty, _ = best_of_three(sys.executable, "-c", "pass")
    assert seconds - empty < 0.2


def test_help_answers_in_half_a_second() -> None:
    command = Path(sys.executable).with_name("groundstate")
    seconds, text = best_of_three(str(command), "--help")
    assert seconds < 0.5
    assert "fit" in text


@pytest.mark.parametrize("name", groundstate._EXPORTS)
def test_export_resolves(name: str) -> None:
    assert getattr(groundstate, name) is getattr(import_module(groundstate._EXPORTS[name]), name)


@pytest.mark.parametrize("name", groundstate._ROOMS)
def test_room_resolves(name: str) -> None:
    assert getattr(groundstate, name) is import_module(f"groundstate.{name}")


def test_types_see_the_same_names_as_the_running_program() -> None:
    seen: dict[str, str] = {}
    for node in ast.walk(ast.parse(INIT.read_text())):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            for line in node.body:
                assert isinstance(line, ast.ImportFrom) and line.module
                for alias in line.names:
                    assert alias.asname == alias.name  # the form that re-exports
                    seen[alias.name] = line.module
    assert seen == groundstate._EXPORTS


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
