"""Tables of any columns as numbers of comparable scale, so that distances between rows mean something."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundstate.errors import DataError

Floats = NDArray[np.float64]
RARE = 30  # levels of a category that get a column each


@dataclass(frozen=True, eq=False)
class RowFeatures:
    """Columns of mean 0 and spread 1 over real rows; a category is one-hot, a date the time since 1970,
    a missing number the mean and a one in a column of its own.

    Attributes
    ----------
    names : columns of a frame, or None for arrays
    levels : by column of a frame, its most frequent levels; None for numbers
    mean, scale : of the numbers, ``(d,)``
    gaps : numbers that are missing in some real row

    Examples
    --------
    >>> import pandas as pd
    >>> real = pd.DataFrame({"kind": ["a", "b", "b"], "size": [1.0, 2.0, 3.0]})
    >>> RowFeatures.learned(real).of(real).round(2).tolist()
    [[0.0, 1.0, -1.22], [1.0, 0.0, 0.0], [1.0, 0.0, 1.22]]
    """

    names: list[str] | None
    levels: dict[str, list[Any] | None]
    mean: Floats
    scale: Floats
    gaps: frozenset[str] = frozenset()

    @classmethod
    def learned(cls, real: Any) -> RowFeatures:
        """From real rows: a frame, or an array ``(n, ...)``."""
        frame = _frame(real)
        if frame is None:
            rows = _numbers(real)
            return cls(None, {}, *_moments(rows))
        levels: dict[str, list[Any] | None] = {}
        means, scales, gaps = [], [], set()
        for name in frame.columns:
            column = frame[name]
            if column.dtype.is_numeric() or column.dtype.is_temporal():
                levels[name] = None
                values = _float(column)[:, None]
                if np.isnan(values).any():
                    gaps.add(name)
                m, s = _moments(values)
                means.append(m[0])
                scales.append(s[0])
            else:
                words, counts = np.unique(_words(column), return_counts=True)
                levels[name] = words[np.argsort(-counts, kind="stable")][:RARE].tolist()
        made = np.array(means), np.array(scales), frozenset(gaps)
        return cls(list(frame.columns), levels, *made)

    def of(self, rows: Any) -> Floats:
        """Features ``(n, D)`` of rows."""
        if self.names is None:
            return np.asarray((_numbers(rows) - self.mean) / self.scale)
        frame = _frame(rows)
        if frame is None or not set(self.names) <= set(frame.columns):
            got = "no frame" if frame is None else f"columns {list(frame.columns)[:5]}"
            raise DataError(
                f"rows must have the columns {self.names[:5]} of the real ones, got {got}"
            )
        parts: list[Floats] = []
        numbers = 0
        for name in self.names:
            kept = self.levels[name]
            if kept is None:
                values = (_float(frame[name]) - self.mean[numbers]) / self.scale[numbers]
                parts.append(np.nan_to_num(values)[:, None])
                if name in self.gaps:
                    parts.append(np.isnan(values)[:, None].astype(np.float64))
                numbers += 1
            else:
                parts.append((_words(frame[name])[:, None] == np.array(kept)).astype(np.float64))
        return np.concatenate(parts, 1)


def _frame(rows: Any) -> Any:
    if not hasattr(rows, "columns"):
        return None
    import narwhals as nw

    frame = nw.from_native(rows, eager_only=True, pass_through=True)
    return frame if isinstance(frame, nw.DataFrame) else None


def _float(column: Any) -> Floats:
    import narwhals as nw

    if column.dtype.is_temporal():
        column = column.cast(nw.Datetime("us")).dt.timestamp("us")
    return np.asarray(column.cast(nw.Float64).to_numpy(), np.float64)


def _words(column: Any) -> NDArray[np.str_]:
    return np.array(["" if v is None or v != v else str(v) for v in column.to_list()])


def _numbers(rows: Any) -> Floats:
    values = np.asarray(rows.detach().cpu() if hasattr(rows, "detach") else rows)
    if values.dtype.kind not in "fiub":
        raise DataError("rows must be numbers, or a frame with columns of categories")
    values = values.astype(np.float64).reshape(len(values), -1)
    if not np.isfinite(values).all():
        raise DataError("rows hold NaN or infinity; leave them out, or pass a frame")
    return values


def _moments(rows: Floats) -> tuple[Floats, Floats]:
    mean, scale = np.nanmean(rows, 0), np.nanstd(rows, 0)
    mean = np.nan_to_num(mean)
    return mean, np.where(np.nan_to_num(scale) > 0, scale, 1.0)
