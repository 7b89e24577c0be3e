"""Trajectories as people have them: lists of times and states, or one table with an id column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundstate.errors import DataError, ShapeError

Trajectory = tuple[NDArray[np.float64], NDArray[np.float64]]  # times (m,), states (m, d)


def trajectories_of(data: Any) -> list[Trajectory]:
    """Times and states of every trajectory, in the order of time.

    Parameters
    ----------
    data : a list of pairs ``(t, Y)``, a pair ``(t, Y)`` with states ``(n, m, d)`` on common times, a table
        with columns id, t, y…, or the path of such a file
    """
    if isinstance(data, str) or hasattr(data, "__fspath__"):
        from groundstate.data import read

        data = read(str(data)).frame
    if hasattr(data, "columns"):
        return _grouped(data)
    if isinstance(data, tuple) and len(data) == 2 and np.ndim(data[1]) == 3:
        return [_checked(data[0], one, i) for i, one in enumerate(np.asarray(data[1]))]
    if isinstance(data, Sequence) and data and all(len(pair) == 2 for pair in data):
        return [_checked(t, y, i) for i, (t, y) in enumerate(data)]
    raise DataError(
        "trajectories are a list of (t, Y), a pair (t, Y) with Y (n, m, d), or a table with the columns "
        "id, t and one for each entry of the state"
    )


def _grouped(table: Any) -> list[Trajectory]:
    import narwhals as nw

    frame = nw.from_native(table, eager_only=True)
    names = frame.columns
    missing = [c for c in ("id", "t") if c not in names]
    states = [c for c in names if c not in ("id", "t")]
    if missing or not states:
        raise DataError(
            f"a table of trajectories has the columns id, t and the states, got {', '.join(names)}"
        )
    ids = frame["id"].to_numpy()
    t = np.asarray(frame["t"].to_numpy(), dtype=np.float64)
    Y = np.column_stack([np.asarray(frame[c].to_numpy(), dtype=np.float64) for c in states])
    found = []
    for one in dict.fromkeys(ids.tolist()):
        own = np.flatnonzero(ids == one)
        own = own[np.argsort(t[own], kind="stable")]
        found.append(_checked(t[own], Y[own], one))
    return found


def _checked(t: Any, y: Any, name: Any) -> Trajectory:
    t = np.asarray(t, dtype=np.float64)
    y = np.asarray(y, dtype=np.float64)
    y = y[:, None] if y.ndim == 1 else y
    if t.ndim != 1 or y.ndim != 2 or len(t) != len(y) or len(t) < 2:
        raise ShapeError(
            f"trajectory {name} needs at least 2 times (m,) and states (m, d), got {t.shape} and {y.shape}"
        )
    if not np.isfinite(t).all() or not np.isfinite(y).all():
        raise DataError(f"trajectory {name} holds NaN or infinity; drop those times")
    if not (np.diff(t) > 0).all():
        raise DataError(f"the times of trajectory {name} must rise, each above the last")
    return t, y
