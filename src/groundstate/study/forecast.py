"""The study of series: which forecaster is better on the end that was set aside, and the future."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from groundstate.compute.rows import Ragged
from groundstate.data import read
from groundstate.data.messages import count
from groundstate.data.sequences.ahead import dates_ahead
from groundstate.data.sequences.long import LongTable, read_long
from groundstate.data.sequences.roles import roles_of
from groundstate.data.sequences.season import season_of
from groundstate.data.tables.schema import unknown_column
from groundstate.errors import DataError
from groundstate.evaluate.audit.ledger import rows_id
from groundstate.models.sequences.auto_regressor import AutoRegressor
from groundstate.models.sequences.forecaster import Forecaster
from groundstate.models.sequences.forecaster_role import Forecast
from groundstate.study.ledger_entry import ledger_of, looked

_ORIGINS = 24  # items from which candidates forecast when they are compared, at most
_MOST = 20_000_000  # numbers in the windows of an autoregression
_LAST, _SEASON = "repeating the last item", "repeating the last season"


@dataclass(frozen=True, repr=False)
class ForecastStudy:
    """What was found about series and what comes next.

    Attributes
    ----------
    table : the series, without holes
    steps : items ahead
    season : items after which the series repeat themselves; 1 where they do not
    errors : mean absolute error of each candidate before the end, over several items to start from
    settings : of each candidate, where some were chosen
    chosen : name of the candidate with the least
    error, naive, seasonal, coverage : of the chosen one on the end: mean absolute error, that of repeating
        the last item and the last season, and the share of items within the band
    look : its forecasts of the end, ``(n, steps, F)``
    made : the future behind the last items, ``(n, steps, F)``
    model : the chosen forecaster, fitted to all items
    about : names of columns and the number of steps, which the file of the model keeps
    notes : what was understood of the table
    ledger : how many models looked at the end; None where that is not counted
    """

    table: LongTable
    steps: int
    season: int
    errors: dict[str, float]
    settings: dict[str, dict[str, Any]]
    chosen: str
    error: float
    naive: float
    seasonal: float
    coverage: float
    look: Forecast
    made: Forecast
    model: Any
    about: dict[str, Any]
    notes: list[str] = field(default_factory=list)
    ledger: dict[str, Any] | None = None

    @property
    def dates(self) -> list[list[str] | None]:
        """The dates of the steps of each series, where its own are evenly spaced."""
        found = dates_ahead(self.table, self.steps)
        return [None if dates is None else dates.astype(str).tolist() for dates in found]

    @property
    def better_than_dummy(self) -> bool:
        """Whether the chosen model forecasts better than repeating what was: before the end, where
        several forecasts are compared, than any way to repeat it, and at the end than the worst."""
        repeated = min(e for name, e in self.errors.items() if name in (_LAST, _SEASON))
        return self.errors[self.chosen] < repeated and self.error < max(self.naive, self.seasonal)

    @property
    def verdict(self) -> str:
        than = [(self.naive, _LAST)]
        if self.season > 1:
            than.append((self.seasonal, f"{_SEASON} of {self.season}"))
        compared = " and ".join(
            f"{1 - self.error / other:.0%} less than {name} ({other:.4g})"
            if self.error < other
            else f"not less than {name} ({other:.4g})"
            for other, name in than
        )
        return (
            f"{self.chosen} forecasts the last {self.steps} items with a mean absolute error of "
            f"{self.error:.4g}, {compared}; its band of {self.made.level:.0%} held "
            f"{self.coverage:.0%} of them."
        )

    def facts(self) -> dict[str, Any]:
        """The numbers as plain data."""
        return {
            "steps": self.steps, "series": len(self.table.rows), "columns": list(self.table.names),
            "season": self.season, "chosen": self.chosen, "settings": self.settings,
            "errors": self.errors, "error": self.error, "naive": self.naive, "seasonal": self.seasonal,
            "better_than_dummy": self.better_than_dummy, "coverage": self.coverage,
            "level": self.made.level, "verdict": self.verdict, "notes": self.notes,
            "mean": self.made.mean.tolist(), "lower": self.made.lower.tolist(),
            "upper": self.made.upper.tolist(), "dates": self.dates, "ledger": self.ledger,
        }  # fmt: skip


def study_forecast(
    source: Any, steps: int, *, model: str = "auto", id: str | None = None, time: str | None = None,
    target: str | None = None, level: float = 0.9, seed: int = 0, device: Any = None,
    ledger: str | Path | None = "auto",
) -> ForecastStudy:  # fmt: skip
    """Compare forecasters on the items before the end, look at the end once, and go on behind it.

    Dates that an evenly spaced series leaves out are put in, and missing values are filled; what was
    made up judges nothing. Bands are as wide as the errors before the end ask for.

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
        given, id=id, time=time, target=None, features=None if target is None else [target],
        fill=True,
    )  # fmt: skip
    rows, shortest = table.rows, int(table.rows.lengths.min())
    if shortest < 4 * steps + 4:
        raise DataError(
            f"the shortest series has {shortest} items; forecasts of {steps} steps are compared on two "
            f"ends of that length and need at least {4 * steps + 4}"
        )
    apart = max(steps, min(4 * steps, shortest // 4))  # items that compare, before those that judge
    known = _before(rows, steps)
    season = season_of([x for part in _before(rows, steps + apart) for x in part.T])
    makers = _candidates(model, steps, shortest - steps - apart, table, season, seed, device)
    judging = _Comparison(known, _made(table, steps), steps, apart)
    fitted = {
        name: [candidate.fit(_before(rows, steps + apart)) for candidate in several]
        for name, several in makers.items()
    }
    scores = {name: [judging.error(one) for one in several] for name, several in fitted.items()}
    errors = {name: min(own) for name, own in scores.items()}
    errors |= {_LAST: judging.repeated(1)}
    if season > 1:
        errors |= {_SEASON: judging.repeated(season)}
    chosen = min(scores, key=lambda name: min(scores[name]))
    best = fitted[chosen][int(np.argmin(scores[chosen]))]
    band = best.calibrate(known, steps, level, apart).band_
    settings = {
        name: {"p": several[int(np.argmin(scores[name]))].p}
        for name, several in makers.items() if name == "AutoRegressor"
    }  # fmt: skip
    truth, real = _end(rows, steps, steps), ~_last(_mask(table), table, steps)
    look = _banded(best.fit(known), band).forecast(steps, level=level)
    made = _banded(best.fit(_before(rows, 0)), band).forecast(steps, level=level)
    last = _end(rows, steps + 1, 1)
    season_ago = np.take(_end(rows, steps + season, season), np.arange(steps) % season, 1)
    inside = (look.lower <= truth) & (truth <= look.upper)
    error = _mean(np.abs(look.mean - truth), real)
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
        table, steps, season, errors, settings, chosen, error, _mean(np.abs(last - truth), real),
        _mean(np.abs(season_ago - truth), real), _mean(inside, real), look, made, best, about,
        _notes(table), seen,
    )  # fmt: skip


class _Comparison:
    """Errors of forecasts that start at several items before the end of each series."""

    def __init__(
        self, known: list[NDArray[Any]], made: list[NDArray[np.bool_]], steps: int, apart: int
    ) -> None:
        stride = max(1, (apart - steps) // (_ORIGINS - 1))
        self.starts = list(
            range(apart, steps - 1, -stride)
        )  # items before the end of what is known
        self.known, self.steps = known, steps
        self.truth = self._each(lambda part, at: part[len(part) - at :][:steps])
        self.real = ~np.stack([m[len(m) - at :][:steps] for at in self.starts for m in made])

    def _each(self, ask: Any) -> NDArray[Any]:
        return np.stack([ask(part, at) for at in self.starts for part in self.known])

    def error(self, model: Any) -> float:
        """Mean absolute error of a fitted model."""
        back = model.p if isinstance(model, AutoRegressor) else model.context
        pasts = [part[: len(part) - at][-back:] for at in self.starts for part in self.known]
        return _mean(np.abs(model.predict(pasts, self.steps) - self.truth), self.real)

    def repeated(self, season: int) -> float:
        """That of repeating the last items."""
        again = np.arange(self.steps) % season
        made = self._each(lambda part, at: part[len(part) - at - season : len(part) - at][again])
        return _mean(np.abs(made - self.truth), self.real)


def _candidates(
    model: str, steps: int, items: int, table: LongTable, season: int, seed: int, device: Any
) -> dict[str, list[Any]]:
    """Unfitted models by name, each with the settings that compete."""
    most = max(1, min((items - 1) // 3, max(24, _MOST // len(table.rows.values))))
    context = max(1, min(max(24, 2 * steps, season), items - steps - 4))
    known: dict[str, list[Any]] = {}
    if len(table.names) == 1:
        backs = {min(most, p) for p in (12, 24, season + 1, 2 * season + 1, 7 * season + 1)}
        known["AutoRegressor"] = [AutoRegressor(p, device=device) for p in sorted(backs)]
    known["Forecaster"] = [
        Forecaster(steps, context, lr=0.01, max_epochs=60, random_state=seed, device=device)
    ]
    if model == "auto":
        return known
    if model not in known:
        raise DataError(f"model={model!r} is no forecaster here; use auto or {', '.join(known)}")
    return {model: known[model]}


def _notes(table: LongTable) -> list[str]:
    """What was made up, in words."""
    notes = []
    if table.added:
        left = (
            "whose date was left out was" if table.added == 1 else "whose dates were left out were"
        )
        notes.append(f"{count(table.added, 'item')} {left} put in and filled from around")
    missing = int(_mask(table).sum()) - table.added * len(table.names)
    if missing:
        was = "was" if missing == 1 else "were"
        notes.append(f"{count(missing, 'missing value')} {was} filled from around")
    return notes


def _mask(table: LongTable) -> NDArray[np.bool_]:
    """Which values were made up, ``(N, F)``."""
    empty = np.zeros(tuple(table.rows.values.shape), bool)
    return empty if table.made is None else table.made


def _made(table: LongTable, cut: int) -> list[NDArray[np.bool_]]:
    """The same of each series, without its last items."""
    parts = np.split(_mask(table), table.rows.offsets[1:-1].tolist())
    return [part[: len(part) - cut] for part in parts]


def _last(mask: NDArray[np.bool_], table: LongTable, steps: int) -> NDArray[np.bool_]:
    """The same of the last items, ``(series, steps, F)``."""
    ends = table.rows.offsets[1:].numpy()
    return np.stack([mask[end - steps : end] for end in ends])


def _banded(model: Any, band: float) -> Any:
    """The fitted model with the width of its bands."""
    model.band_ = band
    return model


def _mean(values: NDArray[Any], real: NDArray[np.bool_]) -> float:
    return float(values[real].mean() if real.any() else values.mean())


def _before(rows: Ragged, cut: int) -> list[Any]:
    parts = rows.values.split(rows.lengths.tolist())
    return [part[: len(part) - cut].numpy() for part in parts]


def _end(rows: Ragged, back: int, n: int) -> Any:
    """n items that begin so many before the end of each series, ``(series, n, F)``."""
    parts = rows.values.split(rows.lengths.tolist())
    return np.stack([part[len(part) - back :][:n].numpy() for part in parts])
