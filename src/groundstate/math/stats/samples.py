"""Lists of numbers as the tests and intervals take them, or one sentence on what they hold instead."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundstate.errors import DataError


def sample(values: Any, name: str, least: int = 1) -> NDArray[np.float64]:
    """At least so many finite numbers, ``(n,)``.

    >>> sample([1, 2], "a").tolist()
    [1.0, 2.0]
    """
    try:
        x = np.asarray(values, np.float64)
    except (TypeError, ValueError):
        raise DataError(f"{name} must be a list of numbers, got {values!r:.60}") from None
    if x.ndim != 1 or len(x) < least:
        count = {1: "one number", 2: "two numbers"}.get(least, f"{least} numbers")
        raise DataError(f"{name} must be a list of at least {count}, got shape {x.shape}")
    if not np.isfinite(x).all():
        raise DataError(f"{name} has missing or infinite values; leave those rows out")
    return x
