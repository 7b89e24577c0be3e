"""The ledger docs/coverage.toml: every entry points at objects, tests and, for a run, the run."""

from __future__ import annotations

import ast
import re
import tomllib
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from groundstate import registry

ROOT = Path(__file__).resolve().parents[2]
LEDGER: dict[str, dict[str, Any]] = tomllib.loads((ROOT / "docs" / "coverage.toml").read_text())


def listed(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value


@cache
def named_in(file: str) -> frozenset[str]:
    """Names of the test functions of a file, those of classes as Class::name."""
    names: set[str] = set()
    for node in ast.parse((ROOT / file).read_text()).body:
        if isinstance(node, ast.FunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.ClassDef):
            names |= {f"{node.name}::{f.name}" for f in node.body if isinstance(f, ast.FunctionDef)}
    return frozenset(name for name in names if "test" in name.lower())


def resolve(path: str) -> object:
    module, _, attributes = path.partition(":")
    found: object = import_module(module)
    for name in attributes.split(".") if attributes else []:
        found = getattr(found, name)
    return found


def problems(entry: dict[str, Any], runs: set[str]) -> list[str]:
    found = [f"unknown key {key!r}" for key in entry if key not in {"object", "test", "run"}]
    if "object" not in entry and "run" not in entry:
        found.append("neither object nor run")
    if "test" not in entry:
        found.append("no test")
    for path in listed(entry.get("object", [])):
        try:
            resolve(path)
        except (ImportError, AttributeError) as error:
            found.append(f"{path}: {error}")
    for node in listed(entry.get("test", [])):
        file, _, name = re.sub(r"\[.*\]$", "", node).partition("::")
        if not (ROOT / file).is_file():
            found.append(f"no file {file}")
        elif name not in named_in(file):
            found.append(f"no test {name!r} in {file}")
    found += [f"no experiment {run}" for run in listed(entry.get("run", [])) if run not in runs]
    return found


def test_every_entry_resolves() -> None:
    runs = set(registry.experiments.names())
    bad = {key: faults for key, entry in LEDGER.items() if (faults := problems(entry, runs))}
    assert not bad, "\n".join(f"[{key}] {'; '.join(faults)}" for key, faults in bad.items())


def test_ids_have_the_form_of_the_ledger() -> None:
    assert [key for key in LEDGER if not re.fullmatch(r"[A-Z]{2,4}-[A-Za-z0-9-]+", key)] == []


@pytest.mark.parametrize(
    ("entry", "fault"),
    [
        ({"object": "groundstate.errors:Unsupported"}, "no test"),
        ({"test": "tests/project/test_coverage.py::test_the_check_itself"}, "neither object"),
        ({"object": "groundstate.errors:Nope", "test": []}, "Nope"),
        ({"object": [], "test": "tests/project/test_nowhere.py::test_x"}, "no file"),
        ({"object": [], "test": "tests/project/test_coverage.py::test_x"}, "no test 'test_x'"),
        ({"run": "ENE-X-nothing", "test": []}, "no experiment ENE-X-nothing"),
        ({"object": [], "test": [], "run": [], "note": ""}, "unknown key 'note'"),
    ],
)
def test_the_check_itself(entry: dict[str, Any], fault: str) -> None:
    assert any(fault in found for found in problems(entry, set()))


def test_a_good_entry_passes() -> None:
    good = {
        "object": ["groundstate.errors:Unsupported", "groundstate.registry:Registry.register"],
        "test": "tests/project/test_coverage.py::test_the_check_itself[entry0-no test]",
        "run": "ENE-X-collapse",
    }
    assert problems(good, {"ENE-X-collapse"}) == []
