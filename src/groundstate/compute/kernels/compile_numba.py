"""How loops are compiled: two decorators, no collecting of garbage meanwhile, a line in the log.

What compiling costs is the text between the decorators: every array that a function takes, every
function that Python can call, every expression on whole arrays. So Python calls few functions
(`outer`), those call small ones that exist in compiled form alone (`inner`), and loops are written
out.
"""

from __future__ import annotations

import gc
import logging
import time
from functools import partial
from typing import Any

import numba

from groundstate.compute.foreign.numba import event, one_form

LOG = logging.getLogger("groundstate.compile")
SILENT = 1.0  # seconds of compiling that are not reported
FAST = {"nnan", "nsz", "contract"}  # the freedom that vector instructions need
_njit: Any = numba.njit


def inner(function: Any = None, **options: Any) -> Any:
    """A loop that compiled code alone calls: no wrappers, and its caller's cache holds it."""
    if function is None:
        return partial(inner, **options)
    settings = {"nogil": True, "error_model": "numpy", **options}
    return one_form(_njit(no_cpython_wrapper=True, no_cfunc_wrapper=True, **settings)(function))


def outer(function: Any = None, **options: Any) -> Any:
    """A function that Python calls, kept on disk."""
    if function is None:
        return partial(outer, **options)
    settings = {"nogil": True, "error_model": "numpy", **options}
    return _njit(cache=True, no_cfunc_wrapper=True, **settings)(function)


vector = inner(fastmath=FAST)


class _Compiling(event.Listener):
    """Logs once, for each folder of loops, that compiling them has taken longer than a moment.

    Python collects no garbage while our own loops compile: that took a quarter of the time, for
    objects that live until the end anyway. The compiler's lock is held from start to end.
    """

    def __init__(self) -> None:
        self.spent: dict[str, float] = {}
        self.logged: set[str] = set()
        self.depth, self.start, self.folder, self.collects = 0, 0.0, "", False

    def on_start(self, event: Any) -> None:
        if self.depth == 0:
            module = event.data["dispatcher"].py_func.__module__
            self.folder = module.rpartition(".")[0] if module.startswith("groundstate.") else ""
            self.start = time.perf_counter()
            self.collects = bool(self.folder) and gc.isenabled()
            if self.collects:
                gc.disable()
        self.depth += 1

    def on_end(self, event: Any) -> None:
        self.depth -= 1
        if self.depth == 0 and self.collects:
            gc.enable()
        if not self.folder:
            return
        spent = self.spent.get(self.folder, 0.0) + time.perf_counter() - self.start
        if self.depth == 0:
            self.spent[self.folder] = spent
        if spent > SILENT and self.folder not in self.logged:
            self.logged.add(self.folder)
            LOG.info(
                "compiling the loops of %s, which takes some seconds; they are kept on disk, so "
                "this happens once",
                self.folder,
            )


event.register("numba:compile", _Compiling())
