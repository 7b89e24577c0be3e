"""The page in a real browser: without network, without errors, with the numbers of report.json.

Runs where Chromium is installed (Debian: ``apt install chromium``); elsewhere there is nothing to
collect, and the checks on the text of the page stand alone.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from groundstate.report import page, report
from groundstate.report.cells import at
from groundstate.study import assess_tuned
from groundstate.study.numbers import show, show_beside, show_cell

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)


def _shown(path: Path, *options: str) -> subprocess.CompletedProcess[str]:
    assert BROWSER is not None
    command = [
        BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
        "--host-resolver-rules=MAP * ~NOTFOUND", "--enable-logging=stderr", "--log-level=0",
        f"--user-data-dir={path.parent / 'profile'}", *options, path.as_uri(),
    ]  # fmt: skip
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def _value(told: Any, key: str) -> Any:
    for part in key.split("."):
        told = told[int(part)] if isinstance(told, list) else told[part]
    return told


if BROWSER is not None:

    @pytest.mark.slow
    def test_page_in_a_browser(tmp_path: Path) -> None:
        found = assess_tuned("iris", models="GaussianNB", test=0.3, tune=3, seeds=2, bootstrap=4)
        told, drawn = report(found)
        path = tmp_path / "report.html"
        path.write_text(page(told, drawn))
        done = _shown(path, "--dump-dom")
        assert "CONSOLE" not in done.stderr, done.stderr
        cells = re.findall(r'<span data-key="([^"]+)">([^<]*)</span>', done.stdout)
        assert len(cells) > 40
        for key, text in cells:
            key, text = unescape(key), unescape(text)
            value = _value(told, key) if not key.startswith("tuning.importance") else None
            if value is None:
                continue
            metric = key.split(".")[1] if key.startswith("scores.") else ""
            expected = {show(value, kind) for kind in (metric, "accuracy", "", "p")}
            if key.startswith("explained.importance"):
                columns = told["explained"]["importance"]["columns"]
                expected = {show_beside(value, max(abs(c["value"]) for c in columns))}
            assert text in expected | {f"{value:,}", show_cell(value)}, (key, text, value)
        assert done.stdout.count("<svg") == len(drawn)
        picture = tmp_path / "page.png"
        _shown(path, f"--screenshot={picture}", "--window-size=390,3000")
        assert picture.stat().st_size > 20_000


def test_every_number_on_the_page_is_taken_from_the_facts() -> None:
    told, drawn = report(assess_tuned("iris", models="GaussianNB", test=0.3, seeds=2, bootstrap=4))
    text = page(told, drawn)
    for name in told["scores"]:
        assert (
            f'data-key="scores.{name}.value">{at(told, f"scores.{name}.value", name).text}<' in text
        )
