"""Writing a look at judged rows into a ledger, and what earlier looks make of the score."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundstate.errors import StoreError
from groundstate.evaluate.audit.ledger import Ledger, adjust, adjust_share
from groundstate.evaluate.rows import take
from groundstate.math.stats.interval import Interval
from groundstate.study.question import Question


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
    if path is not None:
        ledger = Ledger(path)
        try:
            look = ledger.record(
                take(question.X, judged),
                question.y[judged],
                model,
                scores=scores,
                settings={"params": params, "seed": settings.seed, "metric": settings.metric},
            )
            looks = len({(seen.model, seen.settings) for seen in ledger.looks(look.test)})
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


__all__ = ["noted"]
