"""Bootstrap weightings of rows; see :mod:`groundstate.math.stats.resample`."""

from __future__ import annotations

from groundstate.math.stats.resample import Cells, counts, merge

__all__ = ["Cells", "counts", "merge"]
