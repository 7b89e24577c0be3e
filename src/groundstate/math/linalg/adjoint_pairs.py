r"""Operators on grids that come in adjoint pairs: gradient and divergence, Fourier, interpolate and splat."""

from __future__ import annotations

from itertools import product
from math import prod
from typing import Any

import torch
from torch import Tensor

from groundstate.errors import ShapeError
from groundstate.math.arrays import as_tensor
from groundstate.math.linalg.operator import GridOperator, LinearOperator

BOUNDARIES = ("periodic", "dirichlet")
NORMS = ("ortho", "backward", "forward")


def _grid(shape: Any) -> tuple[int, ...]:
    sizes = (shape,) if isinstance(shape, int) else tuple(int(n) for n in shape)
    if not sizes or min(sizes) < 1:
        raise ShapeError(f"a grid has one or more sizes of at least 1, got {shape!r}")
    return sizes


def _boundary(boundary: str) -> str:
    if boundary not in BOUNDARIES:
        raise ValueError(f"boundary must be one of {', '.join(BOUNDARIES)}, got {boundary!r}")
    return boundary


class Gradient(GridOperator):
    r"""Forward differences along every axis of a grid, :math:`(Gf)_a = (f_{\cdot+1_a} - f)/h`.

    ``"periodic"`` goes round: a grid gives ``(d, *grid)``. ``"dirichlet"`` has zeros all around the
    grid and takes the differences to them on both sides, so that an axis of n points has n + 1
    differences: ``(d, *(n + 1))``, and the Laplacian is :math:`(1, -2, 1)` up to the border.

    Parameters
    ----------
    grid : sizes of the grid, any number of axes
    boundary : "periodic" or "dirichlet"
    spacing : h

    Examples
    --------
    >>> Gradient(3)([1.0, 2.0, 4.0]).tolist(), Gradient(3, "dirichlet")([1.0, 2.0, 4.0]).tolist()
    ([[1.0, 2.0, -3.0]], [[1.0, 1.0, 2.0, -4.0]])
    """

    def __init__(self, grid: Any, boundary: str = "periodic", spacing: float = 1.0) -> None:
        self.grid, self.boundary, self.spacing = _grid(grid), _boundary(boundary), spacing
        edges = self.grid if boundary == "periodic" else tuple(n + 1 for n in self.grid)
        self._set(self.grid, (len(self.grid), *edges))

    def _apply(self, x: Tensor) -> Tensor:
        d = len(self.grid)
        f = x.reshape(*x.shape[:-1], *self.grid)
        if self.boundary == "periodic":
            parts = [f.roll(-1, a - d) - f for a in range(d)]
        else:
            f = torch.nn.functional.pad(f, (1, 1) * d)
            parts = [self._edges(f.diff(dim=a - d), a) for a in range(d)]
        return torch.stack(parts, -d - 1).reshape(*x.shape[:-1], -1) / self.spacing

    def _edges(self, differences: Tensor, axis: int) -> Tensor:
        """Of the differences in the padded grid those that start at a point or at the zero before it."""
        for a in range(len(self.grid)):
            if a != axis:
                differences = differences.narrow(a - len(self.grid), 0, self.grid[a] + 1)
        return differences

    def _adjoint(self, y: Tensor) -> Tensor:
        d = len(self.grid)
        parts = y.reshape(*y.shape[:-1], *self.out_shape).unbind(-d - 1)
        total: Tensor | None = None
        for a, g in enumerate(parts):
            if self.boundary == "periodic":
                back = g.roll(1, a - d) - g
            else:  # the first row of the other axes belongs to the zeros around the grid
                for other in range(d):
                    if other != a:
                        g = g.narrow(other - d, 1, self.grid[other])
                back = -g.diff(dim=a - d)
            total = back if total is None else total + back
        assert total is not None
        return total.reshape(*y.shape[:-1], -1) / self.spacing


class Divergence(GridOperator):
    r"""Backward differences of a field, summed over axes: :math:`-G^*` exactly.

    Parameters
    ----------
    grid, boundary, spacing : as in ``Gradient``

    Examples
    --------
    >>> Divergence(3)([[1.0, 2.0, -3.0]]).tolist()
    [4.0, 1.0, -5.0]
    """

    def __init__(self, grid: Any, boundary: str = "periodic", spacing: float = 1.0) -> None:
        self.gradient = Gradient(grid, boundary, spacing)
        self._set(self.gradient.out_shape, self.gradient.in_shape)

    def _apply(self, x: Tensor) -> Tensor:
        return -self.gradient._adjoint(x)

    def _adjoint(self, y: Tensor) -> Tensor:
        return -self.gradient._apply(y)


class Laplacian(GridOperator):
    r""":math:`-G^*G`, the sum of second differences :math:`(1, -2, 1)/h^2`: symmetric, not positive.

    Parameters
    ----------
    grid, boundary, spacing : as in ``Gradient``

    Examples
    --------
    >>> Laplacian(3, "dirichlet").to_dense().tolist()
    [[-2.0, 1.0, 0.0], [1.0, -2.0, 1.0], [0.0, 1.0, -2.0]]
    """

    def __init__(self, grid: Any, boundary: str = "periodic", spacing: float = 1.0) -> None:
        self.gradient = Gradient(grid, boundary, spacing)
        self._set(self.gradient.in_shape, self.gradient.in_shape)

    def _apply(self, x: Tensor) -> Tensor:
        return -self.gradient._adjoint(self.gradient._apply(x))

    def _adjoint(self, y: Tensor) -> Tensor:
        return self._apply(y)

    @property
    def H(self) -> LinearOperator:
        return self


class Fourier(GridOperator):
    r"""The discrete Fourier transform of a grid.

    With ``norm="ortho"`` it is unitary: adjoint and inverse are the same. With the default of NumPy
    (``"backward"``) the adjoint is n times the inverse.

    Parameters
    ----------
    grid : sizes of the grid
    norm : "ortho", "backward" or "forward", as in ``torch.fft``

    Examples
    --------
    >>> F = Fourier(4)
    >>> (F.H @ F).to_dense().real.round(12).tolist()[0]
    [1.0, 0.0, 0.0, 0.0]
    """

    def __init__(self, grid: Any, norm: str = "ortho") -> None:
        if norm not in NORMS:
            raise ValueError(f"norm must be one of {', '.join(NORMS)}, got {norm!r}")
        self.grid, self.norm = _grid(grid), norm
        self._set(self.grid, self.grid)
        self.is_complex = True

    def _apply(self, x: Tensor) -> Tensor:
        return self._by(torch.fft.fftn, x, self.norm)

    def _adjoint(self, y: Tensor) -> Tensor:
        other = {"ortho": "ortho", "backward": "forward", "forward": "backward"}[self.norm]
        return self._by(torch.fft.ifftn, y, other)

    def _by(self, transform: Any, x: Tensor, norm: str) -> Tensor:
        f = x.reshape(*x.shape[:-1], *self.grid)
        dims = tuple(range(-len(self.grid), 0))
        out: Tensor = transform(f, dim=dims, norm=norm).reshape(x.shape)
        return out


class Interpolate(GridOperator):
    r"""Values of a function on a grid at positions between its points, by linear weights
    :math:`\prod_a (1 - |p_a - i_a|)_+`.

    Differentiable in the function and in the positions.

    Parameters
    ----------
    grid : sizes of the grid
    positions : ``(n, d)`` in units of the grid, point i lying at i; ``(n,)`` on a line
    boundary : "periodic" goes round, "dirichlet" has zeros around the grid

    Examples
    --------
    >>> Interpolate(3, [0.5, 1.0, 1.25])([0.0, 2.0, 4.0]).tolist()
    [1.0, 2.0, 2.5]
    """

    def __init__(self, grid: Any, positions: Any, boundary: str = "dirichlet") -> None:
        self.grid, self.boundary = _grid(grid), _boundary(boundary)
        at = as_tensor(positions, "positions")
        at = at[:, None] if at.ndim == 1 else at
        if at.ndim != 2 or at.shape[1] != len(self.grid):
            raise ShapeError(
                f"positions must be (n, {len(self.grid)}) on a grid {self.grid}, "
                f"got shape {tuple(at.shape)}"
            )
        self.index, self.weight = self._corners(at)  # (2^d, n) both
        self._set(self.grid, (len(at),))

    def _corners(self, at: Tensor) -> tuple[Tensor, Tensor]:
        low = at.detach().floor()
        part = at - low
        indices, weights = [], []
        for corner in product((0, 1), repeat=len(self.grid)):
            index = torch.zeros(len(at), dtype=torch.int64, device=at.device)
            weight = torch.ones(len(at), dtype=at.dtype, device=at.device)
            for a, (size, up) in enumerate(zip(self.grid, corner)):
                i = low[:, a].to(torch.int64) + up
                weight = weight * (part[:, a] if up else 1 - part[:, a])
                if self.boundary == "periodic":
                    i = i % size
                else:
                    weight = torch.where((i >= 0) & (i < size), weight, 0.0)
                    i = i.clamp(0, size - 1)
                index = index * size + i
            indices.append(index)
            weights.append(weight)
        return torch.stack(indices), torch.stack(weights)

    def _apply(self, x: Tensor) -> Tensor:
        weight = self.weight.to(x.dtype)
        return (x[..., self.index.to(x.device)] * weight.to(x.device)).sum(-2)

    def _adjoint(self, y: Tensor) -> Tensor:
        weight = self.weight.to(y.dtype).to(y.device)
        out = torch.zeros(*y.shape[:-1], prod(self.grid), dtype=y.dtype, device=y.device)
        spread = (y[..., None, :] * weight).flatten(-2)
        return out.index_add(-1, self.index.flatten().to(y.device), spread)


class Splat(GridOperator):
    r"""Values at positions spread over the points of a grid around them: the exact transpose of
    ``Interpolate``, with the same weights.

    Inside the grid it keeps the sum.

    Parameters
    ----------
    grid, positions, boundary : as in ``Interpolate``

    Examples
    --------
    >>> Splat(3, [0.5, 1.25])([1.0, 4.0]).tolist()
    [0.5, 3.5, 1.0]
    """

    def __init__(self, grid: Any, positions: Any, boundary: str = "dirichlet") -> None:
        self.interpolate = Interpolate(grid, positions, boundary)
        self._set(self.interpolate.out_shape, self.interpolate.in_shape)

    def _apply(self, x: Tensor) -> Tensor:
        return self.interpolate._adjoint(x)

    def _adjoint(self, y: Tensor) -> Tensor:
        return self.interpolate._apply(y)
