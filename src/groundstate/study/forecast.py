"""The study of series: which forecaster is better on the end that was set aside, and the future."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from groundstate.compute.rows import Ragged
from groundstate.data import read
from groundstate.data.sequences.ahead import dates_ahead
from groundstate.data.sequences.long import LongTable, read_long
from groundstate.data.sequences.roles import roles_of
from groundstate.data.tables.schema import unknown_column
from groundstate.errors import DataError
from groundstate.evaluate.audit.ledger import rows_id
from groundstate.models.sequences.auto_regressor import AutoRegressor
from groundstate.models.sequences.forecaster import Forecaster
from groundstate.models.sequences.forecaster_role import Forecast
from groundstate.study.ledger_entry import ledger_of, looked


@dataclass(frozen=True, repr=False)
class ForecastStudy:
    """What was found about series and what comes next.

    Attributes
    ----------
    table : the series
    steps : items ahead
    errors : mean absolute error of each candidate on the items before the set-aside end
    chosen : name of the candidate with the least
    error, naive, coverage : of the chosen one on the end: mean absolute error, that of repeating the
        last item, and the share of items within the band
    made : the future behind the last items, ``(n, steps, F)``
    model : the chosen forecaster, fitted to all items
    about : names of columns and the number of steps, which the file of the model keeps
    ledger : how many models looked at the end; None where that is not counted
    """

    table: LongTable
    steps: int
    errors: dict[str, float]
    chosen: str
    error: float
    naive: float
    coverage: float
    made: Forecast
    model: Any
    about: dict[str, Any]
    ledger: dict[str, Any] | None = None

    @property
    def dates(self) -> list[list[str] | None]:
        """The dates of the steps of each series, where its own are evenly spaced."""
        found = dates_ahead(self.table, self.steps)
        return [None if dates is None else dates.astype(str).tolist() for dates in found]

    @property
    def verdict(self) -> str:
        better = self.error < self.naive
        relative = f"{1 - self.error / self.naive:.0%} less than" if better else "not less than"
        return (
            f"{self.chosen} forecasts the last {self.steps} items with a mean absolute error of "
            f"{self.error:.4g}, {relative} repeating the last item ({self.naive:.4g}); its band of "
            f"{self.made.level:.0%} held {self.coverage:.0%} of them."
        )

    def facts(self) -> dict[str, Any]:
        """The numbers as plain data."""
        return {
            "steps": self.steps, "series": len(self.table.rows), "columns": list(self.table.names),
            "chosen": self.chosen, "errors": self.errors, "error": self.error, "naive": self.naive,
            "coverage": self.coverage, "level": self.made.level, "verdict": self.verdict,
            "mean": self.made.mean.tolist(), "lower": self.made.lower.tolist(),
            "upper": self.made.upper.tolist(), "dates": self.dates, "ledger": self.ledger,
        }  # fmt: skip


def study_forecast(
    source: Any, steps: int, *, model: str = "auto", id: str | None = None, time: str | None = None,
    target: str | None = None, level: float = 0.9, seed: int = 0, device: Any = None,
    ledger: str | Path | None = "auto",
) -> ForecastStudy:  # fmt: skip
    """Compare forecasters on the items before the end, look at the end once, and go on behind it.

    Parameters
    ----------
    source : long table: columns id (for several series), time and values; see ``data.read_long``
    steps : items ahead
    model : "auto", or a name: AutoRegressor (of one column) or Forecaster
    id, time : names of these columns; by default columns called so, else the one of dates and one of words
        that tells items of the same time apart
    target : the column to forecast, from itself alone; None takes all others
    level : probability of the bands
    seed, device : of the networks
    ledger : where looks at the end of the series are counted; "auto" is beside a file

    Examples
    --------
    >>> x = 5 + np.sin(np.arange(120) / 3)
    >>> found = study_forecast({"time": np.arange(120), "x": x}, 6, model="AutoRegressor")
    >>> found.chosen, found.error < found.naive, found.made.mean.shape
    ('AutoRegressor', True, (1, 6, 1))
    """
    given = read(source)
    id, time = roles_of(given, id, time)
    if target is not None and target not in given.columns:
        raise DataError(unknown_column(target, given.columns))
    table = read_long(
        given, id=id, time=time, target=None, features=None if target is None else [target]
    )
    rows, shortest = table.rows, int(table.rows.lengths.min())
    if shortest < 4 * steps + 4:
        raise DataError(
            f"the shortest series has {shortest} items; forecasts of {steps} steps are compared on two "
            f"ends of that length and need at least {4 * steps + 4}"
        )
    makers = _candidates(model, steps, shortest - 2 * steps, table, seed, device)
    errors = {}
    for name, candidate in makers.items():
        ahead = candidate.fit(_before(rows, 2 * steps)).forecast(steps, level=level)
        errors[name] = float(np.abs(ahead.mean - _end(rows, 2 * steps, steps)).mean())
    chosen = min(errors, key=lambda name: errors[name])
    best, truth = makers[chosen], _end(rows, steps, steps)
    look = best.fit(_before(rows, steps)).forecast(steps, level=level)
    last = _end(rows, steps + 1, 1)
    inside = (look.lower <= truth) & (truth <= look.upper)
    made = best.fit(rows).forecast(steps, level=level)
    error = float(np.abs(look.mean - truth).mean())
    counting = ledger_of(source, ledger)
    seen = None
    if counting is not None:
        test = rows_id(torch.from_numpy(truth.reshape(len(truth), -1)), np.arange(len(truth)))
        looks, recorded, _ = looked(
            counting, test, chosen, {"seed": seed, "steps": steps}, {"mae": error}
        )
        seen = {"looks": looks, "clean": looks == 1, "recorded": recorded}
    about = {"steps": steps, "id": id, "time": time, "columns": list(table.names), "level": level}
    return ForecastStudy(
        table, steps, errors, chosen, error, float(np.abs(last - truth).mean()),
        float(inside.mean()), made, best, about, seen,
    )  # fmt: skip


def _candidates(
    model: str, steps: int, items: int, table: LongTable, seed: int, device: Any
) -> dict[str, Any]:
    back = max(1, min(24, (items - 1) // 3))
    context = max(1, min(max(24, 2 * steps), items - steps - 4))
    known: dict[str, Any] = {}
    if len(table.names) == 1:
        known["AutoRegressor"] = AutoRegressor(back, device=device)
    known["Forecaster"] = Forecaster(
        steps, context, lr=0.01, max_epochs=60, random_state=seed, device=device
    )
    if model == "auto":
        return known
    if model not in known:
        raise DataError(f"model={model!r} is no forecaster here; use auto or {', '.join(known)}")
    return {model: known[model]}


def _before(rows: Ragged, cut: int) -> list[Any]:
    return [part[:-cut].numpy() for part in rows.values.split(rows.lengths.tolist())]


def _end(rows: Ragged, back: int, n: int) -> Any:
    """n items that begin so many before the end of each series, ``(series, n, F)``."""
    parts = rows.values.split(rows.lengths.tolist())
    return np.stack([part[len(part) - back :][:n].numpy() for part in parts])
