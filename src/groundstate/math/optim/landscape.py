r"""A loss over a plane through parameter space, :math:`L(\theta + au + bv)`, and paths on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from groundstate.math.optim.flat import Flat, Loss, Params

Directions = str | tuple[Any, Any]


@dataclass(frozen=True)
class Landscape:
    """A loss on a grid of a plane.

    Attributes
    ----------
    a, b : coordinates along both directions, ``(n,)``
    values : loss, ``(n, n)``, rows by b
    batches : the same for single batches, ``(B, n, n)``; empty without them
    origin : the centre θ, ``(d,)``
    directions : u and v, ``(2, d)``
    path : coordinates (a, b) of given parameters, projected on the plane, ``(T, 2)``
    path_values : their loss, ``(T,)``
    """

    a: Tensor
    b: Tensor
    values: Tensor
    batches: Tensor
    origin: Tensor
    directions: Tensor
    path: Tensor
    path_values: Tensor

    @property
    def minima(self) -> Tensor:
        """Inner grid points below all eight neighbours, as (a, b), ``(m, 2)``."""
        around = _neighbours(self.values)
        return self._points((self.values[1:-1, 1:-1] < around).all(0))

    @property
    def saddles(self) -> Tensor:
        """Inner grid points where, going round, the loss rises above and falls below theirs four
        times or more, as (a, b), ``(m, 2)``.
        """
        above = _neighbours(self.values) > self.values[1:-1, 1:-1]
        changes = (above != above.roll(1, 0)).sum(0)
        return self._points(changes >= 4)

    def _points(self, inside: Tensor) -> Tensor:
        row, column = inside.nonzero().T
        return torch.stack([self.a[column + 1], self.b[row + 1]], 1)


def _neighbours(values: Tensor) -> Tensor:
    """The eight neighbours of inner points in cyclic order, ``(8, n-2, n-2)``."""
    n, m = values.shape
    ring = [(0, 0), (0, 1), (0, 2), (1, 2), (2, 2), (2, 1), (2, 0), (1, 0)]
    return torch.stack([values[i : n - 2 + i, j : m - 2 + j] for i, j in ring])


def landscape(
    loss: Loss,
    params: Params,
    *data: Any,
    directions: Directions = "random",
    extent: float | tuple[float, float] = 1.0,
    n: int = 41,
    path: Sequence[Params] = (),
    batches: Sequence[tuple[Any, ...]] = (),
    chunk: int = 256,
    seed: int = 0,
) -> Landscape:
    r"""Evaluate a loss on a grid of a plane through θ, many points at once.

    Parameters
    ----------
    loss : ``loss(params, *data)``, a scalar that ``torch.func.vmap`` can batch over parameters
    params : θ, the centre: a tensor, or name to tensor
    data : handed to the loss
    directions : "random": two random directions in which every filter (row of a weight) has the norm
        of θ's own; "pca": the two main directions of ``path``; two integers: those flat
        coordinates; two sets of parameters: the directions towards them (two more solutions)
    extent : a and b go from −extent to extent, or from low to high
    n : grid points per direction
    path : parameters along a run, projected on the plane
    batches : data of single batches, whose own landscapes are evaluated too
    chunk : points evaluated at once
    seed : of random directions

    Examples
    --------
    >>> bowl = landscape(lambda x: (x**2).sum(), torch.zeros(3), directions=(0, 2), n=5)
    >>> bowl.values[2].tolist(), bowl.minima.tolist()
    ([1.0, 0.25, 0.0, 0.25, 1.0], [[0.0, 0.0]])
    """
    if n < 3:
        raise ValueError(f"n must be at least 3 grid points, got {n}")
    flat = Flat(params)
    origin = flat.start
    run = (
        torch.stack([flat.vector(p) for p in path])
        if len(path)
        else origin.new_zeros(0, len(origin))
    )
    plane = _plane(flat, directions, run, seed)  # (2, d)
    low, high = (-extent, extent) if isinstance(extent, int | float) else extent
    i = torch.arange(n, dtype=origin.dtype, device=origin.device)
    axis = (low * (n - 1 - i) + high * i) / (n - 1)  # exactly 0 in the middle, unlike linspace
    b, a = torch.meshgrid(axis, axis, indexing="ij")
    grid = torch.stack([a.reshape(-1), b.reshape(-1)], 1)  # (n², 2)
    shape = (n, n)

    def over(points: Tensor, given: tuple[Any, ...]) -> Tensor:
        f = flat.loss(loss, given)
        each = torch.func.vmap(f, chunk_size=chunk)
        with torch.no_grad():
            # the points of a chunk are made when it is due: n² copies of θ would not fit
            pieces = [each(origin + c @ plane) for c in points.split(chunk)]
        return torch.cat(pieces)

    offset = run - origin
    coordinates = (
        torch.linalg.lstsq(plane.T, offset.T).solution.T if len(run) else run.new_zeros(0, 2)
    )
    own = batched = origin.new_zeros(0)
    if len(run):
        f = flat.loss(loss, data)
        with torch.no_grad():
            own = torch.stack([f(p) for p in run])
    if batches:
        batched = torch.stack([over(grid, tuple(rows)).view(shape) for rows in batches])
    return Landscape(
        axis, axis, over(grid, data).view(shape), batched, origin, plane, coordinates, own
    )


def _plane(flat: Flat, directions: Directions, run: Tensor, seed: int) -> Tensor:
    d, like = flat.start.numel(), flat.start
    if directions == "random":
        generator = torch.Generator().manual_seed(seed)
        return torch.stack([_filter_normalised(flat, generator) for _ in range(2)])
    if directions == "pca":
        if len(run) < 3:
            raise ValueError(f"directions='pca' needs a path of at least 3 points, got {len(run)}")
        _, s, V = torch.linalg.svd(run - run.mean(0), full_matrices=False)
        if len(s) < 2 or not float(s[1]) > 1e-12 * float(s[0]):
            raise ValueError("the path is a straight line, so it spans no plane; use 'random'")
        return V[:2]
    if isinstance(directions, str) or len(directions) != 2:
        raise ValueError(
            "directions must be 'random', 'pca', two indices or two sets of parameters, got "
            f"{directions!r}"
        )
    first, second = directions
    if isinstance(first, int) and isinstance(second, int):
        if not (0 <= first < d and 0 <= second < d and first != second):
            raise ValueError(f"indices must be two of 0 to {d - 1}, got {directions}")
        plane = like.new_zeros(2, d)
        plane[0, first] = plane[1, second] = 1.0
        return plane
    return torch.stack([flat.vector(first) - like, flat.vector(second) - like])


def _filter_normalised(flat: Flat, generator: torch.Generator) -> Tensor:
    pieces = []
    for part, shape in zip(flat.start.split(flat.sizes), flat.shapes, strict=True):
        noise = torch.randn(shape, generator=generator).to(part)
        own = part.reshape(shape)
        if len(shape) < 2:  # a bias is one filter
            own, noise = own.reshape(1, -1), noise.reshape(1, -1)
        else:
            own, noise = own.reshape(shape[0], -1), noise.reshape(shape[0], -1)
        pieces.append(
            (noise * own.norm(dim=1, keepdim=True) / noise.norm(dim=1, keepdim=True)).reshape(-1)
        )
    return torch.cat(pieces)
