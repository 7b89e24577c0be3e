r"""Planes :math:`\{x : w^\top x + b = 0\}` in :math:`\mathbb R^p`: distances, feet, margins."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from groundstate.errors import ShapeError

F64 = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Hyperplane:
    r"""The plane :math:`w^\top x + b = 0`, of dimension p − 1; made by ``hyperplane``.

    Attributes
    ----------
    w : (p,) array, the normal
    b : float, the offset
    """

    w: F64
    b: float

    @property
    def dimension(self) -> int:
        """p − 1."""
        return len(self.w) - 1

    @property
    def length(self) -> float:
        r""":math:`\|w\|`."""
        size = float(np.abs(self.w).max())
        return size * math.sqrt(float(np.square(self.w / size).sum()))

    def signed_distance(self, x: ArrayLike) -> Any:
        r""":math:`(w^\top x + b)/\|w\|`: positive on the side that w points to.

        One number for a point ``(p,)``, ``(n,)`` for rows ``(n, p)``.
        """
        found = (self._rows(x) @ self.w + self.b) / self.length
        return float(found) if np.ndim(found) == 0 else found

    def project(self, x: ArrayLike) -> F64:
        r"""The nearest points of the plane, :math:`x - \frac{w^\top x + b}{\|w\|^2}\,w`."""
        rows = self._rows(x)
        away = np.asarray(self.signed_distance(rows))
        return np.asarray(rows - away[..., None] * (self.w / self.length))

    def margin(self, X: ArrayLike, y: ArrayLike) -> float:
        r"""The smallest :math:`y_i\,d(x_i)` for signs :math:`y_i = \pm1`; negative where a row is
        on the wrong side.
        """
        signs = np.asarray(y, float)
        if not np.isin(signs, (-1.0, 1.0)).all():
            raise ValueError(f"y must hold signs -1 and +1, got {np.unique(signs)[:4].tolist()}")
        return float((signs * self.signed_distance(X)).min())

    def _rows(self, x: ArrayLike) -> F64:
        rows = np.asarray(x, float)
        if rows.ndim not in (1, 2) or rows.shape[-1] != len(self.w):
            raise ShapeError(
                f"points of this plane have {len(self.w)} coordinates, got shape {rows.shape}"
            )
        return rows


def hyperplane(w: ArrayLike, b: float = 0.0) -> Hyperplane:
    r"""The plane :math:`\{x : w^\top x + b = 0\}`. Every multiple (cw, cb) is the same plane; c < 0
    swaps its sides.

    Parameters
    ----------
    w : (p,), not zero
    b : float

    Examples
    --------
    >>> plane = hyperplane([3.0, 4.0], -5.0)
    >>> plane.signed_distance([0.0, 0.0]), plane.project([0.0, 0.0]).round(12).tolist()
    (-1.0, [0.6, 0.8])
    >>> plane.margin([[0.0, 0.0], [3.0, 4.0]], [-1, 1])
    1.0
    """
    normal = np.asarray(w, float).reshape(-1)
    if not normal.any() or not np.isfinite(normal).all() or not math.isfinite(b):
        raise ValueError(
            f"a plane needs a finite normal w that is not zero and a finite b, got w={w!r}, b={b!r}"
        )
    return Hyperplane(normal, float(b))


def plane_distance(w: ArrayLike, c1: float, c2: float) -> float:
    r"""Distance of the parallel planes :math:`w^\top x = c_1` and :math:`w^\top x = c_2`,
    :math:`|c_2 - c_1|/\|w\|`.

    Examples
    --------
    >>> plane_distance([3.0, 4.0], -1.0, 1.0)
    0.4
    """
    return abs(c2 - c1) / hyperplane(w).length
