"""A model is its file, its export, its docs page and its row in the contract tests: all or none."""

from __future__ import annotations

import re
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import groundstate
from groundstate import registry

ROOT = Path(__file__).resolve().parents[2]
WRAPPERS = {
    "LatentDiffusion",
    "TableGenerator",
    "TablePredictor",
}  # around any estimator: no models of their own


def hooks() -> ModuleType:
    spec = spec_from_file_location("groundstate_docs_hooks", ROOT / "docs" / "hooks.py")
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_model_is_exported_from_its_own_file() -> None:
    wrong = {
        row.name: row.path
        for row in registry.models
        if row.path != f"{groundstate._EXPORTS.get(row.name)}:{row.name}"
    }
    assert not wrong, f"not in groundstate._EXPORTS under this path: {wrong}"


def test_every_exported_estimator_is_registered() -> None:
    estimators = {name for name, module in groundstate._EXPORTS.items() if name[0].isupper()}
    assert estimators - WRAPPERS == set(registry.models.names())


def test_every_model_has_a_page_in_the_site() -> None:
    pages = set(hooks().model_pages(ROOT / "docs"))
    missing = [row.name for row in registry.models if f"models/{row.name}.md" not in pages]
    assert not missing, f"write docs/models/<name>.md for {missing}"


def test_every_model_page_is_of_a_model() -> None:
    pages = {Path(page).stem for page in hooks().model_pages(ROOT / "docs")} - {"index"}
    assert pages <= set(registry.models.names())


def test_every_model_has_a_row_in_the_contract_tests() -> None:
    text = "\n".join(path.read_text() for path in (ROOT / "tests" / "contracts").glob("*.py"))
    missing = [row.name for row in registry.models if not re.search(rf"\b{row.name}\b", text)]
    assert not missing, f"add rows to the table in tests/contracts for {missing}"
