r"""Who looked at the test rows, when and why: an append-only file beside the data.

The test rows are known by a hash of their content that does not depend on their order. After M
looks an interval at level :math:`1-\delta` no longer holds for the look that was picked; the
simultaneous one at level :math:`1-\delta/M` does (union bound).
"""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import numpy as np

from groundstate.compute.display import Displayed
from groundstate.compute.weight_line.hashing import row_hash
from groundstate.errors import DataError, StoreError
from groundstate.evaluate.audit.repeated_looks import BLIND, Adjusted, adjust, adjust_share
from groundstate.evaluate.metrics import METRICS, bounds_of
from groundstate.evaluate.rows import columns
from groundstate.math.stats.interval import Interval

Purpose = Literal["report", "select"]
PURPOSES = ("report", "select")


@dataclass(frozen=True)
class Look(Displayed):
    """One look at a test set.

    Attributes
    ----------
    time : str
        UTC, ISO 8601.
    test : str
        Hash of the test rows and their target.
    n : int
        Number of test rows.
    number : int
        1 for the first look at this test set.
    model, settings : str
        Name of the model, and a hash of its settings.
    purpose : ``"report"`` or ``"select"``
    scores : dict
        For each metric ``{"value", "low", "high", "level"}``; the ends may be None.
    """

    time: str
    test: str
    n: int
    number: int
    model: str
    settings: str
    purpose: str
    scores: dict[str, dict[str, float | None]]

    @property
    def clean(self) -> bool:
        """Whether nobody had looked before."""
        return self.number == 1


@dataclass
class Ledger(Displayed):
    r"""An append-only list of looks at test sets, one JSON object per line.

    Writers lock the file, and a line that a crash left unfinished is cut off by the next writer.
    Each line holds a hash of the one before it, so that :meth:`verify` sees edits and deletions.

    Parameters
    ----------
    path
        The file; it appears with the first look.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ledger = Ledger(f"{folder}/looks.jsonl")
    ...     X, y = np.arange(10.0)[:, None], np.arange(10) % 2
    ...     first = ledger.record(X, y, "ridge", scores={"accuracy": 0.9})
    ...     again = ledger.record(X[::-1], y[::-1], "forest", scores={"accuracy": 0.8})
    >>> first.clean, again.clean, again.number
    (True, False, 2)
    """

    path: Path | str

    def __post_init__(self) -> None:
        self.path = Path(self.path)

    @classmethod
    def beside(cls, table: str | os.PathLike[str]) -> Ledger:
        """The ledger of a data file: ``table.csv`` has ``table.csv.ledger.jsonl``."""
        return cls(Path(f"{os.fspath(table)}.ledger.jsonl"))

    def record(
        self,
        X: Any,
        y: Any,
        model: Any,
        *,
        scores: Mapping[str, Any],
        settings: Any = None,
        purpose: Purpose = "report",
        time: str | None = None,
    ) -> Look:
        """Write one look down.

        Parameters
        ----------
        X, y : the test rows and their target, or None and the hash that :func:`rows_id` gives
        model : an estimator or a name
        scores : metric to number, :class:`Interval`, or dict with "value"
        settings : what is hashed as settings; the parameters of an estimator by default
        purpose : ``"report"`` for a final number, ``"select"`` when the look chooses something
        """
        if purpose not in PURPOSES:
            raise ValueError(f"purpose must be 'report' or 'select', got {purpose!r}")
        if X is None:
            test, n = _known(y)
        else:
            test, n = rows_id(X, y), len(np.asarray(y))
        name = model if isinstance(model, str) else type(model).__name__
        if settings is None and hasattr(model, "get_params"):
            settings = model.get_params(deep=True)
        entry = {
            "time": time or datetime.now(UTC).isoformat(timespec="seconds"),
            "test": test,
            "n": n,
            "model": name,
            "settings": settings_id(settings),
            "purpose": purpose,
            "scores": {str(k): _score(v) for k, v in scores.items()},
        }
        return self._append(entry)

    def looks(self, test: str | None = None) -> list[Look]:
        """All looks in the order they were made, or those at one test set."""
        return [look for look, _ in self._read() if test is None or look.test == test]

    def count(self, X: Any, y: Any = None) -> int:
        """How often these test rows (or this hash) have been looked at."""
        test = X if isinstance(X, str) else rows_id(X, y)
        return len(self.looks(test))

    def adjusted(self, look: Look, metric: str | None = None, level: float = 0.95) -> Adjusted:
        """The score of a look, corrected for all looks at its test set so far."""
        metric = next(iter(look.scores)) if metric is None else metric
        if metric not in look.scores:
            raise DataError(f"the look has no {metric!r}, only {sorted(look.scores)}")
        m = max(len(self.looks(look.test)), look.number)
        found = look.scores[metric]
        kind = METRICS.get(metric)
        if kind is not None and kind.is_share and found["value"] is not None:
            return adjust_share(found["value"] * look.n, look.n, m, level)
        return adjust(
            Interval(
                _number(found["value"]),
                _number(found["low"]),
                _number(found["high"]),
                found["level"] or 0.95,
                "stored",
            ),
            m,
            level,
            bounds_of(metric),
        )

    def verify(self) -> bool:
        """Whether no finished line was changed, moved or removed since it was written."""
        before = ""
        for _, (line, chain) in self._read():
            if chain != _digest(before):
                return False
            before = line
        return True

    def __str__(self) -> str:
        looks = self.looks()
        sets = len({look.test for look in looks})
        return f"{len(looks)} looks at {sets} test sets in {self.path}. {BLIND}"

    def _read(self) -> Iterator[tuple[Look, tuple[str, str]]]:
        path = Path(self.path)
        if not path.exists():
            return
        times: dict[str, int] = {}
        text = path.read_bytes()
        for i, raw in enumerate(text[: text.rfind(b"\n") + 1].splitlines()):
            try:
                entry = json.loads(raw)
                chain = entry.pop("chain")
                times[entry["test"]] = times.get(entry["test"], 0) + 1
                look = Look(number=times[entry["test"]], **entry)
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise StoreError(
                    f"line {i + 1} of {path} is no entry of a ledger ({error}); restore the file"
                ) from error
            yield look, (raw.decode(), chain)

    def _append(self, entry: dict[str, Any]) -> Look:
        path = Path(self.path)
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise StoreError(f"cannot open the ledger {path}: {error.strerror}") from error
        with os.fdopen(handle, "r+b", buffering=0) as stream, _locked(stream):
            text = stream.read() or b""
            whole = text.rfind(b"\n") + 1  # what a crash left behind has no line end
            lines = text[:whole].splitlines()
            entry["chain"] = _digest(lines[-1].decode() if lines else "")
            line = json.dumps(entry, sort_keys=True, allow_nan=False).encode() + b"\n"
            try:
                stream.truncate(whole)
                stream.seek(whole)
                if stream.write(line) != len(line):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                os.fsync(stream.fileno())
            except OSError as error:
                stream.truncate(whole)
                raise StoreError(f"cannot write to the ledger {path}: {error.strerror}") from error
            number = 1 + sum(json.loads(each)["test"] == entry["test"] for each in lines)
        del entry["chain"]
        return Look(number=number, **entry)


def rows_id(X: Any, y: Any) -> str:
    """Hash of rows and their target, the same in any order.

    >>> X, y = np.arange(6.0).reshape(3, 2), np.array([0, 1, 1])
    >>> rows_id(X, y) == rows_id(X[[2, 0, 1]], y[[2, 0, 1]]), rows_id(X, y) == rows_id(X, 1 - y)
    (True, False)
    """
    hashes = np.sort(row_hash(*columns(X), np.asarray(y)))
    return f"{hashlib.sha256(hashes.astype('<u8').tobytes()).hexdigest()[:32]}-{len(hashes)}"


def settings_id(settings: Any) -> str:
    """Hash of settings: equal dictionaries in any order have equal hashes.

    >>> settings_id({"a": 1, "b": 2}) == settings_id({"b": 2, "a": 1})
    True
    """
    return _digest(json.dumps(settings, sort_keys=True, default=_storable))


def _known(test: Any) -> tuple[str, int]:
    try:
        return str(test), int(str(test).rsplit("-", 1)[1])
    except (IndexError, ValueError) as error:
        raise DataError(f"without X, y is a hash by rows_id(X, y), got {test!r}") from error


def _score(value: Any) -> dict[str, float | None]:
    ends: dict[str, float | None]
    if isinstance(value, Interval):
        ends = {"value": value.estimate, "low": value.low, "high": value.high, "level": value.level}
    elif isinstance(value, Mapping):
        ends = {k: value.get(k) for k in ("value", "low", "high", "level")}
    else:
        ends = {"value": float(value), "low": None, "high": None, "level": None}
    return {k: None if v is None or not math.isfinite(v) else float(v) for k, v in ends.items()}


def _number(value: float | None) -> float:
    return math.nan if value is None else value


def _storable(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    if hasattr(value, "get_params"):
        return {type(value).__name__: value.get_params(deep=False)}
    name = getattr(value, "__qualname__", None)
    return type(value).__name__ if name is None else name


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@contextmanager
def _locked(stream: Any) -> Iterator[None]:
    """Hold the file alone; the system gives it free when the process dies."""
    if sys.platform == "win32":
        import msvcrt

        stream.seek(0)
        msvcrt.locking(stream.fileno(), msvcrt.LK_LOCK, 1)
        try:
            yield
        finally:
            stream.seek(0)
            msvcrt.locking(stream.fileno(), msvcrt.LK_UNLCK, 1)
    else:
        import fcntl

        fcntl.flock(stream.fileno(), fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(stream.fileno(), fcntl.LOCK_UN)


__all__ = ["Adjusted", "Ledger", "Look", "adjust", "adjust_share", "rows_id", "settings_id"]
