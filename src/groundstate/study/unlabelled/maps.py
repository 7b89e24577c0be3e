"""A map of the rows in two dimensions, chosen by how many true neighbours it keeps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.manifold import trustworthiness

from groundstate.compute.random import Key
from groundstate.data import Table
from groundstate.evaluate import train_test
from groundstate.evaluate.fitting import random_names, with_seed
from groundstate.models.tables.table import TablePredictor
from groundstate.registry import models as registered

F64 = NDArray[np.float64]
LINEAR = "two widest directions"
_ROWS = 1_000
_NEIGHBOURS = 10
_LEAST = 100  # rows that need more than their two widest directions


@dataclass(frozen=True)
class Map:
    """Coordinates ``at`` (m, 2) of the rows ``rows`` (m,), and how far maps can be trusted by name."""

    name: str
    rows: NDArray[np.int64]
    at: F64
    trust: dict[str, float]


def map_of(model: TablePredictor, table: Table, key: Key) -> Map:
    """The map, among the linear one and the registered embeddings, that keeps most neighbours.

    It shows at most 1,000 rows. Trust is one minus the penalty for rows that are among the 10
    nearest on the map but not in the table (trustworthiness, Venna & Kaski 2001).
    """
    rows = np.arange(table.n_rows)
    if table.n_rows > _ROWS:
        chosen = train_test(table, test=_ROWS / table.n_rows, key=key.fold("map")).test_rows
        rows = np.sort(chosen)
    X = model.prepare(table.take(rows))
    maps = {LINEAR: _linear(X)}
    k = min(_NEIGHBOURS, (len(X) - 1) // 2)
    if X.shape[1] > 2 and len(X) >= _LEAST:
        maps |= _embeddings(X, key)
    trust = {
        name: float(trustworthiness(X, at, n_neighbors=k)) if k >= 1 else 1.0
        for name, at in maps.items()
    }
    best = max(trust, key=lambda name: trust[name])
    return Map(best, rows, maps[best], trust)


def _linear(X: F64) -> F64:
    X = X - X.mean(0)
    _, _, directions = np.linalg.svd(X, full_matrices=False)
    # a direction has no sign: its largest entry is made positive, or pictures would flip
    turn = np.sign(np.take_along_axis(directions, np.abs(directions).argmax(1)[:, None], 1))
    at = X @ (directions * turn)[:2].T  # (m, 1 or 2)
    return at if at.shape[1] == 2 else np.stack([at[:, 0], np.zeros(len(at))], 1)


def _embeddings(X: F64, key: Key) -> dict[str, F64]:
    found: dict[str, F64] = {}
    for row in registered:
        if row.role != "embedding" or not row.auto:
            continue
        made: Any = row.obj()
        made = with_seed(made, random_names(made, unset=True), key.fold(row.name))
        found[row.name] = np.asarray(made.fit_transform(X), np.float64)
    return found
