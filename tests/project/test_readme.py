"""Every Python block of the README and of the hand-written pages runs as printed."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^(?P<indent> *)```python\n(?P<code>.*?)^(?P=indent)```", re.M | re.S)


def blocks(page: Path) -> list[str]:
    """Code blocks of a page, each padded so that tracebacks show its real lines."""
    text = page.read_text()
    return [
        "\n" * (text.count("\n", 0, match.start()) + 1) + textwrap.dedent(match["code"])
        for match in BLOCK.finditer(text)
    ]


WITH_CODE = [page for page in PAGES if blocks(page)]


@pytest.mark.parametrize("page", WITH_CODE, ids=lambda page: str(page.relative_to(ROOT)))
def test_snippets_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The blocks of a page run in order, as somebody who reads it from the top would run them."""
    monkeypatch.chdir(tmp_path)  # a snippet may save files
    namespace = {"__name__": "__main__"}
    for code in blocks(page):
        exec(compile(code, str(page), "exec"), namespace)


def test_the_readme_has_its_two_commands_and_an_example() -> None:
    text = (ROOT / "README.md").read_text()
    assert "make demo" in text and "make test" in text
    assert len(blocks(ROOT / "README.md")) >= 2
