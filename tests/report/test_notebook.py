"""A study under the running cell of a notebook."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import groundstate
from groundstate.study.assess import Assessment

QUICK: Any = {"tune": 0, "seeds": 0, "bootstrap": 0, "repeats": 1, "ledger": "none", "folds": 3,
              "model": "Ridge,KNeighborsRegressor"}  # fmt: skip


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a kernel would show, one display after the other."""
    pages: list[str] = []

    def display(page: str, display_id: bool) -> Any:
        pages.append(page)
        return SimpleNamespace(update=pages.append)

    module: Any = ModuleType("IPython")
    module.version_info = (9, 0)  # what matplotlib asks for
    module.get_ipython = lambda: SimpleNamespace(kernel=object())
    module.display = SimpleNamespace(HTML=str, display=display)
    monkeypatch.setitem(sys.modules, "IPython", module)
    return pages


def table() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=80)
    return {"x": x, "z": rng.normal(size=80), "y": 2 * x + rng.normal(size=80)}


def test_it_shows_what_runs_and_what_is_known(
    shown: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    found = groundstate.study(table(), target="y", **QUICK)
    assert shown[0] == "starting" and shown[-1] == ""  # the study is shown in its place
    running = [page for page in shown if "comparing KNeighborsRegressor" in page]
    assert running and running[0].startswith("<b>first answer:</b> Ridge")
    assert "% comparing KNeighborsRegressor, about" in running[0]
    out = capsys.readouterr()
    assert out.out == "" and out.err == ""
    assert "Missing" not in found._repr_html_()


def test_stopping_the_cell_keeps_what_is_there(shown: list[str]) -> None:
    def stop(found: Assessment) -> None:
        raise KeyboardInterrupt

    found = groundstate.study(table(), target="y", seen=stop, **QUICK)
    assert isinstance(found, groundstate.studies.Study)
    assert found.facts["stage"] == "first answer" and shown[-1] == ""
    assert "Missing: the other candidates" in found._repr_html_()
    assert found.predict(table()).shape == (80,)


def test_elsewhere_an_interrupt_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "IPython", raising=False)

    def stop(found: Assessment) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        groundstate.study(table(), target="y", seen=stop, **QUICK)
