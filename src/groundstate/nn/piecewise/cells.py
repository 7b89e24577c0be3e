"""Intervals and convex polygons that are split by the zeros of affine maps."""

from __future__ import annotations

from importlib import import_module
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]
Bits = NDArray[np.uint8]
BACKENDS = ("numba", "reference")
TOL = 1e-12  # relative: a zero nearer to an end than this is at the end


class Cells(Protocol):
    """A partition of the domain that is refined layer by layer."""

    dimension: int

    def split(self, maps: F64) -> tuple[I64, Bits]:
        """Refine by the zeros of maps ``(R, D, n0 + 1)``: parents, and the sides ``(R', D)``."""
        ...

    def breakpoints(self) -> F64 | None: ...
    def polygons(self) -> list[F64] | None: ...


class Intervals:
    """Cells of a line, always in order."""

    dimension = 1

    def __init__(self, box: F64) -> None:
        self.low, self.high = box[:, 0].copy(), box[:, 1].copy()

    def split(self, maps: F64) -> tuple[I64, Bits]:
        w, c = maps[..., 0], maps[..., 1]
        low, high = self.low[:, None], self.high[:, None]
        zero = 0.0 - np.divide(c, w, out=np.full_like(c, -np.inf), where=w != 0)
        slack = TOL * np.maximum(np.abs(low), np.abs(high))
        zero[~((zero > low + slack) & (zero < high - slack))] = np.inf
        zero.sort(1)
        if zero.shape[1] > 1:  # units with a common joint make one
            with np.errstate(invalid="ignore"):
                again = np.diff(zero, axis=1) <= slack
            zero[:, 1:][again] = np.inf
            zero.sort(1)
        inside = np.isfinite(zero)
        counts = inside.sum(1) + 1
        parent = np.repeat(np.arange(len(counts)), counts)
        joints = zero[inside]  # row by row: in order along the line
        first = np.cumsum(counts) - counts
        low_, high_ = np.empty(len(parent)), np.empty(len(parent))
        inner = np.ones(len(parent), bool)
        inner[first] = False
        low_[first], low_[inner] = self.low, joints
        inner[:] = True
        inner[first + counts - 1] = False
        high_[first + counts - 1], high_[inner] = self.high, joints
        self.low, self.high = low_, high_
        middle = (low_ + high_)[:, None] / 2
        side = (w[parent] * middle + c[parent] > 0).astype(np.uint8)
        return parent, side

    def breakpoints(self) -> F64:
        return np.append(self.low, self.high[-1])

    def polygons(self) -> None:
        return None


class Polygons:
    """Convex cells of a plane."""

    dimension = 2

    def __init__(self, box: F64, backend: str = "numba") -> None:
        (a, b), (c, d) = box
        self.vertices = np.array([[a, c], [b, c], [b, d], [a, d]])
        self.ends = np.array([4])
        self.backend = backend

    def split(self, maps: F64) -> tuple[I64, Bits]:
        name = "polygons_numba" if self.backend == "numba" else "polygons_reference"
        kernel = import_module(f"groundstate.math.geometry.{name}")  # numba loads when it is needed
        lines = np.ascontiguousarray(maps)
        self.vertices, self.ends, parent, side = kernel.split_polygons(
            self.vertices, self.ends, lines
        )
        return parent, side

    def breakpoints(self) -> None:
        return None

    def polygons(self) -> list[F64]:
        return np.split(self.vertices, self.ends[:-1])
