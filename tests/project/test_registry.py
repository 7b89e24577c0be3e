"""Registries: rows by decorator, discovery by being there, errors that help."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import pytest

from groundstate.errors import Unsupported
from groundstate.registry import ModelRow, Registry, Row


def test_decorator_adds_a_row_and_returns_the_object() -> None:
    models = Registry("model", ModelRow, None)

    @models.register(family="linear", task="regression", role="regressor")
    class Line:
        """A straight line.

        More words.
        """

    assert models["Line"].obj is Line
    assert models["Line"].summary == "A straight line"
    assert models["Line"].path.endswith(":test_decorator_adds_a_row_and_returns_the_object.<locals>"
                                        ".Line")  # fmt: skip
    assert models.names() == ["Line"] and "Line" in models and len(models) == 1


def test_names_are_unique_but_a_reload_is_fine() -> None:
    rows = Registry("tool", Row, None)

    def one() -> None: ...
    def two() -> None: ...

    rows.register("a")(one)
    rows.register("a")(one)
    with pytest.raises(ValueError, match="the tool name 'a' of .*two is taken by .*one"):
        rows.register("a")(two)


def test_unknown_metadata_is_refused() -> None:
    with pytest.raises(TypeError, match="colour"):
        Registry("tool", Row, None).register(colour="red")(test_unknown_metadata_is_refused)


def test_unknown_name_says_what_there_is() -> None:
    rows = Registry("experiment", Row, None)
    with pytest.raises(Unsupported, match="no experiment named 'x'; there are: none yet"):
        rows["x"]
    rows.register("ENE-X-collapse")(test_unknown_name_says_what_there_is)
    with pytest.raises(Unsupported, match="did you mean 'ENE-X-collapse'"):
        rows["ENE-X-colapse"]


def test_discovery_finds_new_files_and_passes_failures_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "gs_shelf"
    (package / "inner").mkdir(parents=True)
    (package / "__init__.py").write_text(
        "from groundstate.registry import Registry, Row\nrows = Registry('row', Row, 'gs_shelf')\n"
    )
    (package / "inner" / "__init__.py").write_text("")
    (package / "__main__.py").write_text("raise SystemExit(1)\n")
    book = package / "inner" / "book.py"
    book.write_text("import gs_no_such_module\n")
    monkeypatch.syspath_prepend(tmp_path)
    shelf = __import__("gs_shelf")
    try:
        with pytest.raises(ModuleNotFoundError, match="gs_no_such_module"):
            len(shelf.rows)
        book.write_text(
            "from gs_shelf import rows\n\n@rows.register()\ndef novel():\n    'A novel.'\n"
        )
        assert shelf.rows.names() == ["novel"]
    finally:
        for name in [name for name in sys.modules if name.startswith("gs_shelf")]:
            del sys.modules[name]


def test_other_threads_wait_until_all_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "slowly_found"
    package.mkdir()
    (package / "__init__.py").write_text(
        "import threading\nfrom groundstate.registry import Registry, Row\n"
        "tools = Registry('tool', Row, 'slowly_found')\n"
        "begun, go = threading.Event(), threading.Event()\n"
    )
    (package / "only.py").write_text(
        "from slowly_found import begun, go, tools\nbegun.set()\ngo.wait(10)\n"
        "assert 'late' not in tools  # a module being found may ask\n"
        "tools.register('late')(lambda: 1)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    import slowly_found  # type: ignore[import-not-found]

    found: list[list[str]] = []
    threads = [
        threading.Thread(target=lambda: found.append(slowly_found.tools.names())) for _ in "ab"
    ]
    threads[0].start()
    assert slowly_found.begun.wait(10)
    threads[1].start()
    slowly_found.go.set()
    for thread in threads:
        thread.join(10)
    assert found == [["late"], ["late"]]
