"""Functions run in another process, which is forked from a clean one that has the library loaded."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from multiprocessing import get_context
from typing import Any

LOADED = ("tests.contracts.test_rows", "tests.contracts.test_generator")  # what its tests import


@cache
def _server() -> Any:
    context = get_context("forkserver")
    context.set_forkserver_preload(list(LOADED))
    return context


def elsewhere(function: Callable[..., Any], *given: Any) -> int:
    """Exit code of another process that calls a function of a module; its answers go to files."""
    process = _server().Process(target=function, args=given)
    process.start()
    process.join()
    found: int = process.exitcode
    return found
