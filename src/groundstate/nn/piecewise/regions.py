r"""The regions in which a ReLU network is affine: exact in one and two dimensions, and bounds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch import nn

from groundstate.errors import ShapeError, Unsupported
from groundstate.nn.piecewise.cells import BACKENDS, Cells, Intervals, Polygons
from groundstate.nn.piecewise.programs import Add, Affine, Keep, Op, Rectify, program

F64 = NDArray[np.float64]
Bits = NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class LinearRegions:
    r"""Regions of a network, :math:`f(x) = A_r x + c_r` in region r.

    Attributes
    ----------
    count : number of regions; of samples, of distinct patterns seen
    exact : False when they were counted on samples
    patterns : ``(R, units)`` uint8, which units are on
    slopes, offsets : A ``(R, D_out, n0)`` and c ``(R, D_out)``; None when sampled
    breakpoints : one input: ends of the regions in order, ``(R + 1,)``
    polygons : two inputs: corners of each region
    """

    count: int
    exact: bool
    patterns: Bits
    slopes: F64 | None = None
    offsets: F64 | None = None
    breakpoints: F64 | None = None
    polygons: list[F64] | None = None

    def __len__(self) -> int:
        return self.count


def linear_regions(
    net: nn.Module,
    domain: ArrayLike,
    *,
    samples: int = 10_000,
    seed: int = 0,
    backend: str = "numba",
) -> LinearRegions:
    r"""Regions of the domain in which the activation pattern of a ReLU network is constant.

    One input: the breakpoints of each layer are the zeros of its units on the intervals so far.
    Two inputs: convex polygons are cut by the line of each unit, cost regions × units. More inputs:
    distinct patterns on uniform samples, a lower estimate.

    Parameters
    ----------
    net : MLP or Sequential of Linear, (Leaky/P)ReLU, BatchNorm1d, Residual
    domain : (low, high) for every input, or one pair per input ``(n0, 2)``
    samples, seed : of the estimate in three and more dimensions
    backend : "numba" or "reference", the readable NumPy version for polygons

    Examples
    --------
    >>> from groundstate.nn.piecewise import construct
    >>> found = linear_regions(construct.folding(3, 1), (-0.5, 3.0))
    >>> found.count, found.breakpoints.tolist(), found.slopes[:, 0, 0].tolist()
    (4, [-0.5, 0.0, 1.0, 2.0, 3.0], [2.0, -1.0, 1.0, -1.0])
    """
    if backend not in BACKENDS:
        raise ValueError(f"backend must be one of {', '.join(BACKENDS)}, got {backend!r}")
    ops = list(program(net))
    n0 = _inputs(ops)
    box = np.asarray(domain, float)
    if box.shape == (2,):
        box = np.tile(box, (n0, 1))
    if box.shape != (n0, 2) or not (box[:, 0] < box[:, 1]).all() or not np.isfinite(box).all():
        raise ShapeError(
            f"domain needs (low, high) with low < high, once or for each of {n0} inputs, "
            f"got {np.asarray(domain).tolist()}"
        )
    if n0 > 2:
        return _sampled(ops, box, samples, seed)
    cells = Intervals(box) if n0 == 1 else Polygons(box, backend)
    maps, patterns = _walk(ops, cells)
    return LinearRegions(
        count=len(maps), exact=True, patterns=patterns, slopes=maps[..., :-1],
        offsets=maps[..., -1], breakpoints=cells.breakpoints(), polygons=cells.polygons(),
    )  # fmt: skip


def _inputs(ops: Sequence[Op]) -> int:
    for op in ops:
        if isinstance(op, Affine):
            return op.W.shape[1]
    raise Unsupported("linear regions need a network with a linear layer")


def _walk(ops: Sequence[Op], cells: Cells) -> tuple[F64, Bits]:
    """Affine maps ``(R, D, n0 + 1)`` and patterns of the cells, which are split on the way."""
    n0 = cells.dimension
    maps = np.eye(n0, n0 + 1)[None]
    kept: list[F64] = []
    patterns = np.empty((1, 0), np.uint8)
    for op in ops:
        if isinstance(op, Affine):
            maps = _affine(maps, op)
        elif isinstance(op, Rectify):
            parent, side = cells.split(maps)
            maps = maps[parent] * np.where(side, 1.0, op.slope)[..., None]
            kept = [skip[parent] for skip in kept]
            patterns = np.concatenate([patterns[parent], side], 1)
        elif isinstance(op, Keep):
            kept.append(maps)
        else:
            maps = _skipped(kept.pop(), maps, op)
    return maps, patterns


def _affine(maps: F64, op: Affine) -> F64:
    out: F64 = np.matmul(op.W, maps)
    out[..., -1] += op.b
    return out


def _skipped(skip: F64, branch: F64, op: Add) -> F64:
    for step in op.project:
        skip = _affine(skip, step)
    return skip + op.scale * branch


def _sampled(ops: Sequence[Op], box: F64, samples: int, seed: int) -> LinearRegions:
    rng = np.random.default_rng(seed)
    seen = np.empty((0, 0), np.uint8)
    for start in range(0, samples, 65_536):
        rows = min(65_536, samples - start)
        a = rng.uniform(box[:, 0], box[:, 1], size=(rows, len(box)))
        kept: list[F64] = []
        bits: list[Bits] = []
        for op in ops:
            if isinstance(op, Affine):
                a = a @ op.W.T + op.b
            elif isinstance(op, Rectify):
                bits.append((a > 0).astype(np.uint8))
                a = np.where(a > 0, a, op.slope * a)
            elif isinstance(op, Keep):
                kept.append(a)
            else:
                skip = kept.pop()
                for step in op.project:
                    skip = skip @ step.W.T + step.b
                a = skip + op.scale * a
        found = np.concatenate(bits, 1) if bits else np.empty((rows, 0), np.uint8)
        seen = np.unique(np.concatenate([seen, found]) if seen.size else found, axis=0)
    return LinearRegions(count=len(seen), exact=False, patterns=seen)


@dataclass(frozen=True)
class RegionBounds:
    """Between what numbers the most regions of a ReLU network of given widths lies."""

    lower: int
    upper: int


def shallow_regions(n: int, n0: int) -> int:
    r"""The most regions that n hyperplanes make in n0 dimensions, :math:`\sum_{j\le n_0}\binom nj`.

    >>> [shallow_regions(n, 2) for n in range(1, 9)]
    [2, 4, 7, 11, 16, 22, 29, 37]
    """
    return sum(math.comb(n, j) for j in range(n0 + 1))


def region_bounds(widths: Sequence[int], n0: int = 1) -> RegionBounds:
    r"""Bounds on the largest number of regions over all weights of a ReLU network.

    .. math:: \prod_{i<L}\Big\lfloor\frac{n_i}{n_0}\Big\rfloor^{n_0}\sum_{j\le n_0}\binom{n_L}{j}
        \;\le\; \max R \;\le\; \prod_l \sum_{j\le n_0}\binom{n_l}{j}

    The lower bound is attained by folding (Montúfar and others, 2014); where a layer is narrower
    than the input it says nothing and 1 is returned for its factor. Networks with random weights
    stay far below.

    Parameters
    ----------
    widths : of the hidden layers
    n0 : number of inputs

    Examples
    --------
    >>> region_bounds((8, 8, 8), 2)
    RegionBounds(lower=9472, upper=50653)
    """
    widths = tuple(widths)
    if not widths or min(widths) < 1 or n0 < 1:
        raise ValueError(f"widths and n0 are positive, got widths={widths}, n0={n0}")
    lower = shallow_regions(widths[-1], n0)
    for n in widths[:-1]:
        lower *= max(1, n // n0) ** n0
    return RegionBounds(lower, math.prod(shallow_regions(n, n0) for n in widths))
