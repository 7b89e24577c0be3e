"""The ranked table of candidates."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

from groundstate.compute.display import Displayed, Table
from groundstate.errors import DataError


@dataclass(frozen=True)
class Entry:
    """One candidate.

    Attributes
    ----------
    name : str
    score, low, high : float
        Score on held-out folds of the training rows, with its interval; NaN when it failed.
    cv_scores : tuple of float
        The score of each fold.
    fit_seconds : float
        Time of one fit, the mean over folds.
    tied_with_best : bool
        It cannot be told apart from the best.
    notes : tuple of str
        Warnings and failures, one sentence each.
    test_score, test_low, test_high : float or None
        Filled in by the one look at the test rows.
    reported : float or None
        Score by the metric that is reported, where candidates are ranked by another one.
    """

    name: str
    score: float
    low: float
    high: float
    cv_scores: tuple[float, ...] = ()
    fit_seconds: float = 0.0
    tied_with_best: bool = False
    notes: tuple[str, ...] = ()
    test_score: float | None = None
    test_low: float | None = None
    test_high: float | None = None
    reported: float | None = None

    @property
    def failed(self) -> bool:
        """Whether the candidate could not be scored."""
        return math.isnan(self.score)


@dataclass(frozen=True)
class Standings(Displayed):
    """Candidates by their score on validation rows, never by their score on test rows.

    Parameters
    ----------
    entries
        In any order; they are sorted, failures last, equal scores in the given order.
    metric
        Name of the metric.
    greater_is_better
        Its direction.
    level
        Confidence of the intervals.

    Examples
    --------
    >>> board = Standings((Entry("a", 0.8, 0.7, 0.9), Entry("b", 0.9, 0.8, 1.0)), "accuracy")
    >>> [entry.name for entry in board], board.best.name
    (['b', 'a'], 'b')
    >>> Standings.from_json(board.to_json()) == board
    True
    """

    entries: tuple[Entry, ...]
    metric: str
    greater_is_better: bool = True
    level: float = 0.95

    def _facts(self) -> dict[str, object]:
        return {"candidates": len(self.entries), "metric": self.metric, "level": self.level}

    def _table(self) -> Table:
        """Candidates, best first, with intervals of both scores."""
        rows = [
            (
                e.name,
                _between(e.score, e.low, e.high),
                _between(e.test_score, e.test_low, e.test_high),
            )
            for e in self.entries
        ]
        return ("model", self.metric, "held-out rows"), rows

    def __post_init__(self) -> None:
        names = [entry.name for entry in self.entries]
        if len(set(names)) < len(names):
            raise DataError(f"two candidates have the same name among {names}; rename one")
        sign = -1 if self.greater_is_better else 1
        ranked = sorted(self.entries, key=lambda e: (e.failed, 0 if e.failed else sign * e.score))
        object.__setattr__(self, "entries", tuple(ranked))

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def __getitem__(self, name: str) -> Entry:
        for entry in self.entries:
            if entry.name == name:
                return entry
        raise DataError(f"no candidate is called {name!r}; there are {[e.name for e in self]}")

    @property
    def best(self) -> Entry:
        """The candidate with the best validation score."""
        if not self.entries or self.entries[0].failed:
            raise DataError("no candidate could be scored")
        return self.entries[0]

    @property
    def tied(self) -> tuple[str, ...]:
        """Names of those that cannot be told apart from the best, the best included."""
        return tuple(entry.name for entry in self.entries if entry.tied_with_best)

    def with_entry(self, name: str, **changes: Any) -> Standings:
        """A copy in which one entry has other values, such as its test score."""
        changed = [replace(e, **changes) if e.name == name else e for e in self.entries]
        self[name]
        return replace(self, entries=tuple(changed))

    def to_dict(self, *, times: bool = True) -> dict[str, Any]:
        """Plain JSON values, NaN as None; without times equal runs give equal bytes."""
        rows = [{k: _plain(v) for k, v in asdict(entry).items()} for entry in self.entries]
        for row in rows if not times else ():
            del row["fit_seconds"]
        return {
            "metric": self.metric,
            "greater_is_better": self.greater_is_better,
            "level": self.level,
            "entries": rows,
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Standings:
        """The board of :meth:`to_dict`."""
        try:
            entries = tuple(
                Entry(**{k: _back(k, v) for k, v in row.items()}) for row in values["entries"]
            )
            rest = {k: values[k] for k in ("metric", "greater_is_better", "level")}
            return cls(entries, **rest)
        except (KeyError, TypeError, AttributeError) as error:
            raise DataError(f"this is not a stored leaderboard: {error}") from error

    def to_json(self, *, times: bool = True) -> str:
        """JSON text of :meth:`to_dict`."""
        return json.dumps(self.to_dict(times=times), indent=2, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Standings:
        """The board of :meth:`to_json`."""
        try:
            return cls.from_dict(json.loads(text))
        except json.JSONDecodeError as error:
            raise DataError(f"this is not a stored leaderboard: {error}") from error


def _between(score: float | None, low: float | None, high: float | None) -> str:
    if score is None or low is None or high is None:
        return ""
    return "failed" if math.isnan(score) else f"{score:.4g} ({low:.4g} to {high:.4g})"


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _back(name: str, value: Any) -> Any:
    if isinstance(value, list):
        return tuple(math.nan if item is None else item for item in value)
    return math.nan if value is None and name in ("score", "low", "high") else value
