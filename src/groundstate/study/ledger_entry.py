"""Writing a look at held-out rows into a ledger, and what earlier looks make of the score."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundstate.data import available
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
        if Path(name).exists():
            return Path(Ledger.beside(name).path)
        if name in available():
            return None
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
    looks, recorded = 1, False
    used = {"params": params, "seed": settings.seed, "metric": settings.metric}
    if path == SESSION:
        seen = _seen.setdefault(rows_id(take(question.X, judged), question.y[judged]), set())
        seen.add((model, settings_id(used)))
        looks, recorded = len(seen), True
    elif path is not None:
        ledger = Ledger(path)
        try:
            look = ledger.record(
                take(question.X, judged),
                question.y[judged],
                model,
                scores=scores,
                settings=used,
            )
            looks = len({(each.model, each.settings) for each in ledger.looks(look.test)})
            recorded = True
        except StoreError as error:
            skip(f"the ledger: {error}")
    found = scores[measure.name]
    if measure.is_share and question.groups is None:
        after = adjust_share(found.estimate * len(judged), len(judged), looks, settings.level)
    else:
        after = adjust(found, looks, settings.level, measure.bounds)
    wide = after.simultaneous
    return {
        "looks": looks,
        "clean": looks == 1,
        "recorded": recorded,
        "simultaneous": {
            "metric": measure.name,
            "lo": wide.low,
            "hi": wide.high,
            "level": wide.level,
            "optimism": after.optimism,
        },
    }
