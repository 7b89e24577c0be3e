"""Writing a look at held-out rows into a ledger, and what earlier looks make of the score."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundstate.data.builtin.load import is_builtin
from groundstate.errors import StoreError
from groundstate.evaluate.audit.ledger import Ledger, adjust, adjust_share, rows_id, settings_id
from groundstate.evaluate.rows import take
from groundstate.math.stats.interval import Interval
from groundstate.study.question import Question

SESSION = ":session:"  # looks at rows that are in no file are counted while the process lives
_seen: dict[str, set[tuple[str, str]]] = {}


def ledger_of(source: Any, given: str | Path | None = "auto") -> str | Path | None:
    """Where looks at a table are counted.

    ``"auto"`` is the file beside a data file, nowhere for a built-in table, and for arrays, frames
    and tables in memory this session. ``None`` and ``"none"`` count nothing.
    """
    if given != "auto":
        return None if given == "none" else given
    if isinstance(source, (str, os.PathLike)):
        name = os.fspath(source)
        if is_builtin(name):
            return None
        if Path(name).exists():
            return Path(Ledger.beside(Path(name)).path)
    return SESSION


def noted(
    path: str | Path | None,
    question: Question,
    judged: NDArray[np.intp],
    model: str,
    params: dict[str, Any],
    scores: dict[str, Interval],
    skip: Callable[[str], None],
) -> dict[str, Any]:
    """Record the look and correct the headline score for looks by other models or settings.

    The same model with the same settings learns nothing from a second look, so that it counts
    once, and running a job again gives the same report.
    """
    settings, measure = question.settings, question.measure
    used = {"params": params, "seed": settings.seed, "metric": settings.metric}
    test = "" if path is None else rows_id(take(question.X, judged), question.y[judged])
    shared = measure.is_share and question.groups is None
    return counted(
        path, test, len(judged), model, used, scores, measure.name, settings.level, skip,
        share=shared, bounds=measure.bounds,
    )  # fmt: skip


def counted(
    path: str | Path | None,
    test: str,
    n: int,
    model: str,
    used: dict[str, Any],
    scores: dict[str, Interval],
    metric: str,
    level: float,
    skip: Callable[[str], None],
    *,
    share: bool,
    bounds: tuple[float, float],
) -> dict[str, Any]:
    """The same for n rows of any kind.

    Parameters
    ----------
    path : the ledger, ``SESSION`` or None
    test : hash of the rows, by ``rows_id``
    model, used : what looked, and its settings
    scores, metric : what it saw, and the headline score among them
    share, bounds : whether that is a share of the rows, and its least and largest value
    """
    looks, recorded, problem = looked(path, test, model, used, scores)
    if problem:
        skip(problem)
    found = scores[metric]
    if share:
        after = adjust_share(found.estimate * n, n, looks, level)
    else:
        after = adjust(found, looks, level, bounds)
    wide = after.simultaneous
    return {
        "looks": looks,
        "clean": looks == 1,
        "recorded": recorded,
        "simultaneous": {
            "metric": metric,
            "lo": wide.low,
            "hi": wide.high,
            "level": wide.level,
            "optimism": after.optimism,
        },
    }


def looked(
    path: str | Path | None, test: str, model: str, used: dict[str, Any], scores: dict[str, Any]
) -> tuple[int, bool, str]:
    """Record a look; how many models or settings have looked by now, whether that is written down, and
    why not."""
    if path == SESSION:
        seen = _seen.setdefault(test, set())
        seen.add((model, settings_id(used)))
        return len(seen), True, ""
    if path is None:
        return 1, False, ""
    ledger = Ledger(path)
    try:
        look = ledger.record(None, test, model, scores=scores, settings=used)
        return len({(each.model, each.settings) for each in ledger.looks(look.test)}), True, ""
    except StoreError as error:
        return 1, False, f"the ledger: {error}"
