"""What people have as trajectories: lists of dicts or tuples of arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from groundstate.compute.rows import Ragged, Rows, Trajectories
from groundstate.data.reading import RowReader, as_list, real
from groundstate.errors import DataError

NAMES = ("observations", "actions", "rewards")


class TrajectoryRows(RowReader):
    """Episodes of different length."""

    kind = "trajectory"
    accepts = (
        "a list of dicts with 'observations' and perhaps 'actions' and 'rewards', or of such tuples"
    )

    def takes(self, value: Any) -> bool:
        if isinstance(value, Trajectories):
            return True
        rows = as_list(value)
        return bool(rows) and all(
            isinstance(r, Mapping) and "observations" in r for r in rows or ()
        )

    def read(self, value: Any) -> Rows:
        if isinstance(value, Trajectories):
            return value
        rows = as_list(value)
        if not rows or not all(isinstance(r, Mapping | tuple | list) for r in rows):
            raise DataError(f"got {type(value).__name__}, expected {self.accepts}")
        named = [
            dict(r) if isinstance(r, Mapping) else dict(zip(NAMES, r, strict=False)) for r in rows
        ]
        unknown = sorted({k for r in named for k in r} - set(NAMES))
        if unknown or any(r.keys() != named[0].keys() for r in named):
            raise DataError(
                f"every trajectory needs the same parts out of {', '.join(NAMES)}, got "
                f"{sorted({k for r in named for k in r})}"
            )
        parts = {name: _column([r[name] for r in named], name) for name in named[0]}
        return Trajectories(**parts)


def _column(values: list[Any], name: str) -> Ragged:
    whole = name == "actions" and all(np.asarray(v).dtype.kind in "iub" for v in values)
    rows = [np.asarray(v) if whole else real(v) for v in values]
    return Ragged.of(rows, None if whole else torch.float32)
