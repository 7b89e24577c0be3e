r"""Densities on an even grid, and sums of independent variables by the Fourier transform.

.. math:: p_{X+Y}(s) = \int p_X(t)\,p_Y(s - t)\,dt
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.distributions import Distribution, constraints

from groundstate.math.arrays import as_tensor
from groundstate.math.distributions.calculus.cumulative import cdf


class GridDensity(Distribution):
    r"""A density known at equal steps, linear between them and zero outside; or probabilities of the points.

    The values are divided by their integral (trapezoid rule), or by their sum for a ``pmf``.

    Parameters
    ----------
    x : ``(n,)`` equally spaced points
    p : ``(n,)`` values, not negative
    pmf : the points carry probabilities, and nothing lies between them

    Examples
    --------
    >>> p = GridDensity(torch.linspace(0, 2, 3).double(), [0.0, 1.0, 0.0])
    >>> p.log_prob(torch.tensor([0.5, 1.0]).double()).exp().tolist(), p.mean.item()
    ([0.5, 1.0], 1.0)
    """

    arg_constraints: dict[str, constraints.Constraint] = {}

    def __init__(self, x: Any, p: Any, *, pmf: bool = False) -> None:
        self.x, self.pmf = even(x), pmf
        values = as_tensor(p, "p", self.x).to(self.x.dtype)
        if values.shape != self.x.shape or bool((values.detach() < 0).any()):
            raise ValueError(
                f"p must be one number of at least 0 per point, got shapes {tuple(values.shape)} and "
                f"{tuple(self.x.shape)}"
            )
        self.step = float(self.x[1] - self.x[0])
        total = values.sum() if pmf else torch.trapezoid(values, dx=self.step)
        if not float(total.detach()) > 0:
            raise ValueError("p integrates to 0; the grid misses the distribution")
        self.p = values / total
        super().__init__(validate_args=False)
        mass = self.p if pmf else 0.5 * self.step * (self.p[1:] + self.p[:-1])
        self._below = torch.cat([mass.new_zeros(1), mass.cumsum(0)])

    def __repr__(self) -> str:
        kind = "probabilities" if self.pmf else "densities"
        ends = f"{float(self.x[0]):.4g} to {float(self.x[-1]):.4g}"
        return f"{type(self).__name__}({len(self.x)} {kind}, {ends})"

    @property
    def support(self) -> Any:
        return constraints.interval(float(self.x[0]), float(self.x[-1]))

    def _weight(self) -> Tensor:
        if self.pmf:
            return self.p
        w = self.p * self.step
        return torch.cat([0.5 * w[:1], w[1:-1], 0.5 * w[-1:]])

    @property
    def mean(self) -> Tensor:
        return (self._weight() * self.x).sum()

    @property
    def variance(self) -> Tensor:
        return (self._weight() * (self.x - self.mean).square()).sum()

    def _place(self, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        at = (value - self.x[0]) / self.step
        inside = (at >= 0) & (at <= len(self.x) - 1)
        cell = at.detach().floor().clamp(0, len(self.x) - 2).long()
        return cell, at - cell, inside

    def log_prob(self, value: Tensor) -> Tensor:
        value = torch.as_tensor(value).to(self.x)
        if self.pmf:
            near = ((value - self.x[0]) / self.step).round()
            hit = ((value - self.x[0]) / self.step - near).abs() < 1e-6
            hit = hit & (near >= 0) & (near < len(self.x))
            found = self.p[near.clamp(0, len(self.x) - 1).long()]
            return torch.where(hit, found, 0.0).log()
        cell, t, inside = self._place(value)
        density = self.p[cell] * (1 - t) + self.p[cell + 1] * t
        return torch.where(inside, density, 0.0).log()

    def cdf(self, value: Tensor) -> Tensor:
        """P(X ≤ value): quadratic between the points, or a staircase."""
        value = torch.as_tensor(value).to(self.x)
        if self.pmf:
            count = ((value - self.x[0]) / self.step + 1e-9).floor().long() + 1
            return self._below[count.clamp(0, len(self.x))]
        cell, t, _ = self._place(value)
        t = t.clamp(0, 1)
        grown = self.p[cell] * t + 0.5 * (self.p[cell + 1] - self.p[cell]) * t.square()
        return (self._below[cell] + self.step * grown).clamp(0, 1)

    def icdf(self, value: Tensor) -> Tensor:
        """The quantile function: the root of the quadratic in its cell."""
        q = torch.as_tensor(value).to(self.x) * self._below[-1].detach()
        cell = torch.searchsorted(self._below.detach(), q.detach().contiguous(), right=False) - 1
        cell = cell.clamp(0, len(self._below) - 2)
        if self.pmf:
            return self.x[cell]
        a = 0.5 * (self.p[cell + 1] - self.p[cell]) * self.step
        b, c = self.p[cell] * self.step, (q - self._below[cell]).clamp(min=0)
        root = (b.square() + 4 * a * c).clamp(min=0).sqrt()
        t = 2 * c / (b + root).clamp(min=torch.finfo(q.dtype).tiny)
        return self.x[cell] + self.step * t.clamp(0, 1)

    def draw(self, n: int, generator: torch.Generator) -> Tensor:
        """``(n,)`` by inversion, from an explicit generator."""
        u = torch.rand(n, generator=generator, device=generator.device, dtype=self.x.dtype)
        return self.icdf(u.to(self.x.device))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        u = torch.rand(torch.Size(sample_shape), dtype=self.x.dtype, device=self.x.device)
        return self.icdf(u)


def convolve(f: Any, g: Any, grid: Any, *, pmf: bool = False) -> GridDensity:
    r"""The distribution of X + Y for independent X and Y, by the Fourier transform.

    Gaussian smoothing is the special case of a Normal ``g``.

    Parameters
    ----------
    f, g : torch distributions, ``GridDensity``, functions x ↦ density, or values on the grid
    grid : ``(n,)`` equally spaced points that hold nearly all of both
    pmf : f and g are probabilities of the points

    Returns
    -------
    ``GridDensity`` on the 2n − 1 points that sums of two grid points can take

    Examples
    --------
    >>> from torch.distributions import Uniform
    >>> two = convolve(Uniform(0.0, 1.0), Uniform(0.0, 1.0), torch.linspace(-1, 2, 3001).double())
    >>> two.log_prob(torch.tensor([0.5, 1.0]).double()).exp().round(decimals=2).tolist()
    [0.5, 1.0]
    """
    x = even(grid)
    a, b = (_values(part, x, name, pmf) for part, name in ((f, "f"), (g, "g")))
    n = len(x)
    size = 1 << (2 * n - 1).bit_length()
    both = torch.fft.irfft(torch.fft.rfft(a, size) * torch.fft.rfft(b, size), size)[: 2 * n - 1]
    sums = 2 * x[0] + (x[1] - x[0]) * torch.arange(2 * n - 1, dtype=x.dtype, device=x.device)
    noise = 1e-15 * float(both.detach().max()) * n  # rounding of the transform, of either sign
    return GridDensity(sums, torch.where(both > noise, both, 0.0), pmf=pmf)


def _values(part: Any, x: Tensor, name: str, pmf: bool) -> Tensor:
    if isinstance(part, Distribution):
        values = _mass(part, x) if pmf or not _unbounded(part) else part.log_prob(x).exp()
        if not pmf and not _unbounded(part):
            values = values / (x[1] - x[0])
    else:
        values = as_tensor(part(x) if callable(part) else part, name, x).to(x.dtype)
    if values.shape != x.shape:
        raise ValueError(f"{name} has shape {tuple(values.shape)} on a grid of {len(x)} points")
    total = values.sum() * (1.0 if pmf else float(x[1] - x[0]))
    if not float(total.detach()) > 0:
        raise ValueError(f"the grid misses all of {name}; widen it")
    if not pmf and isinstance(part, Distribution) and abs(float(total.detach()) - 1) > 0.02:
        raise ValueError(
            f"the grid holds {float(total.detach()):.3f} of {name} in place of 1; widen it, or take "
            "smaller steps"
        )
    return values / total


def _unbounded(part: Distribution) -> bool:
    return part.support is constraints.real or isinstance(part.support, type(constraints.real))


def _mass(part: Distribution, x: Tensor) -> Tensor:
    """What lies within half a step of each point: a density may jump at the ends of its support."""
    half = 0.5 * (x[1] - x[0])
    edges = torch.cat([x - half, x[-1:] + half])
    return cdf(part, edges).diff()


def even(x: Any) -> Tensor:
    """A grid of at least two points at equal steps, ascending, or an error."""
    grid = as_tensor(x, "grid")
    if grid.ndim != 1 or len(grid) < 2:
        raise ValueError(f"the grid must be a list of at least two points, got {tuple(grid.shape)}")
    steps = grid.diff()
    if not bool((steps > 0).all()) or float(steps.max() - steps.min()) > 1e-3 * float(steps.mean()):
        raise ValueError("the grid must ascend in equal steps; use linspace")
    return torch.linspace(
        float(grid[0]), float(grid[-1]), len(grid), dtype=grid.dtype, device=grid.device
    )
