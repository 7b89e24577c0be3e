"""Labels that stand in a graph, and nodes without one."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundstate.data.graphs.graph import Graph


def held_targets(X: Any) -> Any:
    """The labels that a graph, or each of a list of graphs, holds itself; None where there are none."""
    if isinstance(X, Graph):
        return X.y
    if isinstance(X, list | tuple) and X and all(isinstance(g, Graph) for g in X):
        found = [g.y for g in X]
        return None if any(y is None for y in found) else found
    return None


def labelled(y: Any) -> NDArray[np.bool_]:
    """Which nodes have a label: not −1, None, NaN or an empty text.

    >>> labelled([2, -1, 0]), labelled(["a", None, ""])
    (array([ True, False,  True]), array([ True, False, False]))
    """
    values = np.asarray(y, dtype=object) if isinstance(y, list) else np.asarray(y)
    if values.dtype.kind in "iu":
        return np.asarray(values != -1)
    if values.dtype.kind == "f":
        return ~np.isnan(values) & (values != -1)
    return np.array([v is not None and v != "" and v == v and v != -1 for v in values], dtype=bool)
