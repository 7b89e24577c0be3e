"""Every Python block of the README and of the hand-written pages runs as printed."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^(?P<indent> *)```python\n(?P<code>.*?)^(?P=indent)```", re.M | re.S)


def blocks() -> list[tuple[str, str]]:
    """Code blocks by page and line number."""
    found = []
    for page in PAGES:
        text = page.read_text()
        for match in BLOCK.finditer(text):
            line = text.count("\n", 0, match.start()) + 2
            name = f"{page.relative_to(ROOT)}:{line}"
            found.append((name, "\n" * (line - 1) + textwrap.dedent(match["code"])))
    return found


@pytest.mark.parametrize(("name", "code"), [pytest.param(n, c, id=n) for n, c in blocks()])
def test_snippet_runs(
    name: str, code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # a snippet may save files
    exec(compile(code, str(ROOT / name.rpartition(":")[0]), "exec"), {"__name__": "__main__"})


def test_the_readme_has_its_two_commands_and_an_example() -> None:
    text = (ROOT / "README.md").read_text()
    assert "make demo" in text and "make test" in text
    assert any(name.startswith("README.md") for name, _ in blocks())
