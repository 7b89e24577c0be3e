"""Fitted models that the studio shows, with the rows that belong to them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from groundstate.errors import DataError, Unsupported
from groundstate.models.traits import traits_of
from groundstate.registry import models as registered
from groundstate.store import load

MOST_POINTS = 1500  # rows drawn as points


@dataclass
class Loaded:
    """One fitted model, its name in the studio, and rows to show beside it.

    Attributes
    ----------
    key : str
    model : as it was loaded or fitted
    source : where it comes from, in words
    X, y : rows and labels that belong to it, or None
    lock : held while the model is asked: hooks and modes of networks are not for two at once
    """

    key: str
    model: Any
    source: str = ""
    X: Any = None
    y: Any = None
    lock: threading.RLock = field(default_factory=threading.RLock, repr=False)

    @cached_property
    def estimator(self) -> Any:
        """What learned; behind a preparation of columns, the estimator inside."""
        return self.model.estimator_ if traits_of(self.model).prepares else self.model

    @property
    def name(self) -> str:
        return type(self.estimator).__name__

    @cached_property
    def row(self) -> Any:
        """The model's row of the registry, None for another library's."""
        cls = type(self.estimator)
        return next((row for row in registered if row.obj is cls), None)

    @property
    def kind(self) -> str:
        """The kind of rows it takes: "table", "image", "text", ..."""
        return str(getattr(self.estimator, "rows", "table"))

    @cached_property
    def event(self) -> tuple[int, ...]:
        """Shape of one row."""
        shape: tuple[int, ...]
        if hasattr(self.estimator, "event_shape_"):
            shape = self.estimator.event_shape_
        elif self.kind == "table":
            shape = (getattr(self.estimator, "n_features_in_", 0),)
        else:
            shape = getattr(self.estimator.energy_.spaces["x"], "shape", ())
        return tuple(int(n) for n in shape)

    @cached_property
    def rows(self) -> NDArray[np.float64] | None:
        """The rows as the estimator sees them, ``(n, *event)``; None without rows of numbers."""
        if self.X is None:
            return None
        X = self.model.prepare(self.X) if traits_of(self.model).prepares else self.X
        X = X.toarray() if hasattr(X, "toarray") else X
        try:
            values = np.asarray(X, np.float64)
        except (TypeError, ValueError):
            return None
        return values.reshape(len(values), *self.event)

    @cached_property
    def columns(self) -> list[str]:
        """Names of the columns that the estimator sees."""
        if traits_of(self.model).prepares:
            return [str(name) for name in self.model.preparation_.feature_names_out()]
        names = getattr(self.estimator, "feature_names_in_", None)
        size = int(np.prod(self.event)) if self.event else 0
        return [f"x{j}" for j in range(size)] if names is None else [str(n) for n in names]

    @cached_property
    def points(self) -> NDArray[np.int64]:
        """Which rows are drawn: all, or some evenly spread over the file."""
        n = 0 if self.rows is None else len(self.rows)
        return np.unique(np.linspace(0, n - 1, min(n, MOST_POINTS)).round().astype(np.int64))

    @cached_property
    def labels(self) -> list[str] | None:
        """Labels of the drawn points in words, None where there are none or each is another."""
        if self.y is None or self.rows is None:
            return None
        y = np.asarray(self.y)
        words = [str(v) for v in y[self.points].tolist()]
        return words if len(set(words)) <= 20 else None


class NotHere(KeyError):
    """Nothing is called so in the studio; any other missing key is a bug, which must be seen."""


class Shelf:
    """The models that are there, by key; filled at the start and by fits that finish."""

    def __init__(self) -> None:
        self._held: dict[str, Loaded] = {}
        self._lock = threading.Lock()

    def __iter__(self) -> Iterator[Loaded]:
        with self._lock:
            return iter(list(self._held.values()))

    def __len__(self) -> int:
        return len(self._held)

    def __getitem__(self, key: str) -> Loaded:
        with self._lock:
            if key in self._held:
                return self._held[key]
        raise NotHere(key)

    def put(self, model: Any, name: str, source: str = "", X: Any = None, y: Any = None) -> Loaded:
        """Add a fitted model under a name of its own."""
        if not hasattr(model, "fit"):
            raise DataError(f"{name} holds a {type(model).__name__} and not a model")
        check_is_fitted(model)
        base = "".join(c if c.isalnum() or c in "-_" else "-" for c in name).strip("-") or "model"
        with self._lock:
            key, i = base, 2
            while key in self._held:
                key, i = f"{base}-{i}", i + 1
            self._held[key] = Loaded(key, model, source or name, X, y)
            return self._held[key]

    def add(self, what: Any) -> Loaded:
        """A model, a saved one by its path, or ``Loaded``."""
        if isinstance(what, Loaded):
            return self.put(what.model, what.key, what.source, what.X, what.y)
        if isinstance(what, str | Path):
            return self.put(load(str(what)), Path(what).stem, str(what))
        if isinstance(what, type):
            raise Unsupported(f"{what.__name__} is a class; give a fitted model")
        return self.put(what, type(what).__name__, "of this process")
