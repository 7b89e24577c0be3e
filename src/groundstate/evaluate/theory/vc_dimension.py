r"""Vapnik-Chervonenkis dimension: how many points a class can label in every way."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from groundstate.errors import DataError

Named = Literal["halfspaces", "intervals", "boxes", "sine"]
Rule = Callable[[NDArray[Any], NDArray[Any]], bool]


def vc_dimension(cls: Named, d: int = 1) -> float:
    r"""Known dimensions: half-spaces d + 1, intervals 2, axis boxes 2d, signs of sines infinite.

    Examples
    --------
    >>> vc_dimension("halfspaces", 2), vc_dimension("boxes", 3), vc_dimension("sine")
    (3, 6, inf)
    """
    known = {"halfspaces": d + 1, "intervals": 2, "boxes": 2 * d, "sine": math.inf}
    if cls not in known:
        raise DataError(f"known classes are {', '.join(known)}, got {cls!r}")
    return known[cls]


def shatters(cls: Named | Rule, points: Any) -> bool:
    r"""Whether a class gives the points all :math:`2^n` labellings.

    Parameters
    ----------
    cls : ``"halfspaces"``, ``"intervals"`` (of the line), ``"boxes"`` (along the axes), or a
        function of points and labels (0 or 1) that says whether some member labels them so
    points : (n, d), at most 16 of them

    Examples
    --------
    >>> shatters("halfspaces", [[0, 0], [1, 0], [0, 1]])
    True
    >>> shatters("halfspaces", [[0, 0], [1, 0], [0, 1], [1, 1]])
    False
    """
    X = np.asarray(points, np.float64)
    X = X[:, None] if X.ndim == 1 else X
    if X.ndim != 2 or not 1 <= len(X) <= 16:
        raise DataError(f"points have shape (n, d) with 1 to 16 rows, got {X.shape}")
    rules: dict[str, Rule] = {"halfspaces": _halfspace, "intervals": _box, "boxes": _box}
    if callable(cls):
        rule = cls
    elif cls in rules:
        rule = rules[cls]
    else:
        raise DataError(
            f"cls is one of {', '.join(rules)} or a function of points and labels, got {cls!r}"
        )
    if cls == "intervals" and X.shape[1] != 1:
        raise DataError(f"intervals are of the line, the points have {X.shape[1]} coordinates")
    return all(rule(X, np.array(labels)) for labels in product((0, 1), repeat=len(X)))


def _halfspace(X: NDArray[Any], labels: NDArray[Any]) -> bool:
    """Feasibility of sign(y) (w x + b) >= 1 as a linear program."""
    from scipy.optimize import linprog

    sign = 2.0 * labels - 1.0
    rows = -sign[:, None] * np.column_stack([X, np.ones(len(X))])
    found = linprog(
        np.zeros(X.shape[1] + 1), rows, -np.ones(len(X)), bounds=[(None, None)] * (X.shape[1] + 1)
    )
    return bool(found.status == 0)


def _box(X: NDArray[Any], labels: NDArray[Any]) -> bool:
    """The smallest box around the ones holds no zero."""
    ones = X[labels == 1]
    if not len(ones):
        return True
    inside = ((ones.min(0) <= X) & (ones.max(0) >= X)).all(1)
    return not bool((inside & (labels == 0)).any())
