"""The pages: tables come from the package or the build stops, and nothing comes from a network."""

from __future__ import annotations

import re
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import yaml

from groundstate import registry
from groundstate.errors import Unsupported
from groundstate.registry import ModelRow, PartRow, Registry

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.fixture(scope="module")
def hooks() -> ModuleType:
    spec = spec_from_file_location("groundstate_docs_hooks_tested", DOCS / "hooks.py")
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_table_a_page_asks_for_exists(hooks: ModuleType) -> None:
    asked = {name for page in DOCS.rglob("*.md") for name in hooks.MARK.findall(page.read_text())}
    assert asked and asked <= set(hooks.TABLES)


def test_every_family_has_a_page(hooks: ModuleType) -> None:
    told = {family for families in hooks.FAMILIES.values() for family in families}
    assert told == {row.family for row in registry.models}
    pages = {path.stem for path in (DOCS / "families").glob("*.md")}
    assert pages == set(hooks.FAMILIES)
    for page in pages:
        assert f"{{{{ table: family-{page} }}}}" in (DOCS / "families" / f"{page}.md").read_text()


def test_an_unknown_table_stops_the_build(hooks: ModuleType) -> None:
    with pytest.raises(ValueError, match="asks for the table 'nope'; there are: models"):
        hooks.on_page_markdown("{{ table: nope }}", None, None, None)


def test_a_package_that_does_not_import_stops_the_build(
    hooks: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "models", Registry("model", ModelRow, "gs_no_such_package"))
    with pytest.raises(ModuleNotFoundError):
        hooks.on_page_markdown("{{ table: models }}", None, None, None)


def test_models_table_has_a_row_per_model(
    hooks: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = Registry("model", ModelRow, None)
    monkeypatch.setattr(registry, "models", rows)
    assert hooks.make("models") == "*No model is registered yet.*"

    @rows.register(family="linear", task="regression", role="regressor")
    class Line:
        """A line | with a bar."""

    assert hooks.make("models").splitlines()[-1] == (
        "| Line | linear | regression | regressor | table | A line \\| with a bar |"
    )


class Coin:
    """An energy of one finite variable."""

    spaces = {"x": None}


class Exactly:
    """A rule and a method at once, as far as the tables ask."""

    operations = frozenset({"minimise", "sample"})

    def reason_against(self, energy: Any, *question: Any) -> str | None:
        return "cannot sample" if question[0] == "sample" else None

    def is_exact(self, energy: Any, batch: Any) -> bool:
        return True


class Roughly(Exactly):
    def is_exact(self, energy: Any, batch: Any) -> bool:
        return False


class Never(Exactly):
    def reason_against(self, energy: Any, *question: Any) -> str | None:
        return "never"


def unsupported(energy: Any) -> Any:
    raise Unsupported("no such pair")


def test_cross_tables_ask_every_pair(hooks: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    energies = Registry("energy", PartRow, None)
    rules = Registry("rule", PartRow, None)
    energies.register(make=Coin, batch=lambda n, generator: {"x": [0] * n})(Coin)
    for name, make in {
        "a": lambda energy: Exactly(),
        "b": lambda energy: Roughly(),
        "c": lambda energy: Never(),
        "d": unsupported,
    }.items():
        rules.register(name, make=make)(Exactly)
    monkeypatch.setattr(registry, "energies", energies)
    monkeypatch.setattr(registry, "rules", rules)
    monkeypatch.setattr(registry, "methods", rules)
    assert hooks.make("cross").splitlines()[-1] == "| `Coin` | ● | ○ | – | – |"
    assert hooks.make("inference").splitlines()[-1] == ("| `Coin` | minimise | minimise | – | – |")


def test_benchmarks_table_shows_committed_results(
    hooks: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from groundstate import bench

    (tmp_path / "bench").mkdir()
    monkeypatch.setattr(hooks, "ROOT", tmp_path)
    assert hooks.make("benchmarks") == "*No result is committed yet.*"
    tiny = bench.Benchmark(
        "tiny", "Tiny", {"a": 1, "b": 2, "c": 3}, lambda s, seed: s, lambda d: d,
        {"peer": lambda d: d}, lambda d, r: r, "value",
    )  # fmt: skip
    table = bench.run(tiny, sizes=["b"], repeats=1)
    table.to_csv(tmp_path / "bench" / "results" / "tiny.csv")
    text = hooks.make("benchmarks")
    assert "### tiny" in text and "| b | **groundstate** |" in text and table.machine in text


def test_navigation_holds_every_page(hooks: ModuleType) -> None:
    settings = yaml.safe_load((DOCS.parent / "mkdocs.yml").read_text())
    config = SimpleNamespace(nav=settings["nav"], docs_dir=str(DOCS))
    shown = set(re.findall(r"[\w/.-]+\.md", str(hooks.on_config(config).nav)))
    assert shown == {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")}


def test_formulas_need_no_network() -> None:
    css = (DOCS / "assets" / "katex" / "katex.min.css").read_text()
    fonts = set(re.findall(r"url\(([^)]+)\)", css))
    assert fonts and all((DOCS / "assets" / "katex" / font).is_file() for font in fonts)
    settings = (DOCS.parent / "mkdocs.yml").read_text()
    assert "http" not in settings and "font: false" in settings


def test_display_formulas_stand_on_lines_of_their_own() -> None:
    """``$$ ... $$`` inside a line of text is not recognised and would be shown as source."""
    docs = Path(__file__).resolve().parents[2] / "docs"
    for page in sorted(docs.rglob("*.md")):
        for number, line in enumerate(page.read_text().splitlines(), 1):
            inside_text = re.match(r"\s*[^\s$].*\$\$.+\$\$", line)
            assert not inside_text, f"{page}:{number}: {line}"


def test_files_that_the_architecture_names_exist() -> None:
    page = (DOCS / "architecture.md").read_text()
    root = DOCS.parent
    named = set(re.findall(r"`([\w/]+\.py)`", page)) - {"*_numba.py"}
    assert len(named) > 20
    missing = [
        name for name in named
        if not (root / name).is_file() and not (root / "src" / "groundstate" / name).is_file()
    ]  # fmt: skip
    assert not missing, missing
