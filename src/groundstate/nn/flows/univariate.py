r"""Increasing maps of one number, :math:`z = g(x;\varphi)`, whose parameters φ a network gives."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor
from torch.nn import functional

from groundstate.math.arrays import takes_arrays

LOGIT = 50.0  # of a width or height at most: e^50 and sums of it are numbers in single precision
LIMIT = 3.0  # of a log-scale: a coupling cannot stretch more than e³ times


class Univariate(Protocol):
    """A family of increasing maps. φ = 0 is the identity; both directions return the values and the
    logarithm of the slope of that direction, entry by entry."""

    @property
    def size(self) -> int:
        """Numbers in φ."""
        ...

    def forward(self, x: Tensor, phi: Tensor) -> tuple[Tensor, Tensor | None]:
        """``x`` ``(...)`` and ``phi`` ``(..., size)``; no log-slope where it is 0 everywhere."""
        ...

    def inverse(self, z: Tensor, phi: Tensor) -> tuple[Tensor, Tensor | None]: ...


@dataclass(frozen=True)
class ShiftMap:
    """:math:`z = x + t`, which keeps volume.

    >>> ShiftMap().forward(torch.ones(1), torch.full((1, 1), 2.0))[0]
    tensor([3.])
    """

    @property
    def size(self) -> int:
        return 1

    def forward(self, x: Tensor, phi: Tensor) -> tuple[Tensor, Tensor | None]:
        return x + phi[..., 0], None

    def inverse(self, z: Tensor, phi: Tensor) -> tuple[Tensor, Tensor | None]:
        return z - phi[..., 0], None


@dataclass(frozen=True)
class AffineMap:
    r""":math:`z = xe^{s} + t` with :math:`s = 3\tanh(\hat s/3)` and φ = (ŝ, t).

    >>> z, log_slope = AffineMap().forward(torch.tensor([2.0]), torch.tensor([[0.504708, -1.0]]))
    >>> round(z.item(), 4), round(log_slope.item(), 4)
    (2.2974, 0.5)
    """

    @property
    def size(self) -> int:
        return 2

    def forward(self, x: Tensor, phi: Tensor) -> tuple[Tensor, Tensor | None]:
        s, t = phi.unbind(-1)
        s = torch.tanh(s / LIMIT) * LIMIT
        return torch.addcmul(t, x, s.exp()), s

    def inverse(self, z: Tensor, phi: Tensor) -> tuple[Tensor, Tensor | None]:
        s = LIMIT * torch.tanh(phi[..., 0] / -LIMIT)
        return (z - phi[..., 1]) * s.exp(), s


@dataclass(frozen=True)
class Spline:
    r"""A monotone rational-quadratic spline of K bins on :math:`[-B, B]`, the identity outside.

    φ holds K logits of widths, K of heights and K − 1 slopes before a softplus; widths, heights and
    slopes have the floor ``least``. In a bin of width w, height h and slopes a, b at its ends, with
    :math:`\xi = (x - x_k)/w` and :math:`s = h/w`,

    .. math:: z = z_k + h\,\frac{s\xi^2 + a\xi(1-\xi)}{s + (a + b - 2s)\,\xi(1-\xi)}.

    Its inverse is the root of a quadratic equation.

    >>> spline = Spline(bins=4)
    >>> z, log_slope = spline.forward(torch.tensor([0.3, 7.0]), torch.zeros(2, spline.size))
    >>> z.round(decimals=4).tolist(), log_slope.abs().max().item() < 1e-6
    ([0.30000001192092896, 7.0], True)
    """

    bins: int = 8
    bound: float = 5.0
    least: float = 1e-3

    def __post_init__(self) -> None:
        if self.bins < 2 or self.bins * self.least >= 1:
            raise ValueError(
                f"a spline needs at least 2 bins and bins * least < 1, got bins={self.bins}, "
                f"least={self.least}"
            )
        if not self.bound > 0:
            raise ValueError(f"bound is the half-width of the spline, > 0, got {self.bound}")

    @property
    def size(self) -> int:
        return 3 * self.bins - 1

    def forward(self, x: Tensor, phi: Tensor) -> tuple[Tensor, Tensor | None]:
        inside = x.abs() < self.bound
        at = x.clamp(-self.bound, self.bound)
        z, log_slope = bin_value(at, *self._bin(at, phi, 0))
        return torch.where(inside, z, x), torch.where(inside, log_slope, 0.0)

    def inverse(self, z: Tensor, phi: Tensor) -> tuple[Tensor, Tensor | None]:
        inside = z.abs() < self.bound
        at = z.clamp(-self.bound, self.bound)
        x, log_slope = bin_inverse(at, *self._bin(at, phi, 1))
        return torch.where(inside, x, z), torch.where(inside, -log_slope, 0.0)

    def _bin(self, v: Tensor, phi: Tensor, axis: int) -> tuple[Tensor, ...]:
        """Corner, width, height and end slopes of the bin that ``v`` lies in, on x (0) or z (1)."""
        K, span = self.bins, 2 * self.bound
        # softmax by hand: torch's is slow along short axes, and only one bin needs the division
        mass = phi[..., : 2 * K].clamp(-LOGIT, LOGIT).exp().unflatten(-1, (2, K))  # (..., 2, K)
        upto = mass.cumsum(-1)
        unit = (1 - K * self.least) / upto[..., -1:]  # (..., 2, 1)
        # knots are least·k + unit·upto; only those on the axis of v are compared
        steps = torch.arange(1, K, device=v.device, dtype=v.dtype) * self.least
        knots = torch.addcmul(steps, upto[..., axis, :-1], unit[..., axis, :])
        k = ((v / span + 0.5)[..., None] >= knots).sum(-1, keepdim=True)  # (..., 1)
        both = k[..., None].expand(*k.shape[:-1], 2, 1)
        part = mass.gather(-1, both)  # (..., 2, 1)
        left = ((upto.gather(-1, both) - part) * unit)[..., 0] + self.least * k
        part = (part * unit)[..., 0]
        size = span * (part + self.least)
        corner = span * left - self.bound
        slopes = functional.pad(phi[..., 2 * K :], (1, 1))  # the ends have slope 1
        ends = slopes.gather(-1, torch.cat((k, k + 1), -1))  # (..., 2)
        one = math.log(math.expm1(1 - self.least))  # softplus of it is 1 − least
        ends = functional.softplus(ends + one) + self.least
        return *corner.unbind(-1), *size.unbind(-1), *ends.unbind(-1)


def bin_value(
    x: Tensor, x0: Tensor, z0: Tensor, w: Tensor, h: Tensor, a: Tensor, b: Tensor
) -> tuple[Tensor, Tensor]:
    """z and log dz/dx in a bin with corner (x0, z0), size (w, h) and slopes a, b."""
    xi, s = (x - x0) / w, h / w
    mixed = xi * (1 - xi)
    below = s + (a + b - 2 * s) * mixed
    z = z0 + h * (s * xi.square() + a * mixed) / below
    slope = b * xi.square() + 2 * s * mixed + a * (1 - xi).square()
    return z, 2 * (s / below).log() + slope.log()


def bin_inverse(
    z: Tensor, x0: Tensor, z0: Tensor, w: Tensor, h: Tensor, a: Tensor, b: Tensor
) -> tuple[Tensor, Tensor]:
    """x and log dz/dx in that bin."""
    up, s = z - z0, h / w
    bend = a + b - 2 * s
    p = h * (s - a) + up * bend
    q = h * a - up * bend
    r = -s * up
    # in the form whose denominator never vanishes
    xi = -2 * r / (q + (q.square() - 4 * p * r).clamp_min(0).sqrt())
    mixed = xi * (1 - xi)
    slope = b * xi.square() + 2 * s * mixed + a * (1 - xi).square()
    return x0 + w * xi, 2 * (s / (s + bend * mixed)).log() + slope.log()


@takes_arrays("x", "knots_x", "knots_y", "slopes")
def rational_quadratic(
    x: Tensor, knots_x: Tensor, knots_y: Tensor, slopes: Tensor, *, inverse: bool = False
) -> tuple[Tensor, Tensor]:
    r"""A rational-quadratic spline through given knots, and the logarithm of its slope.

    Parameters
    ----------
    x : values ``(n,)`` between the first and the last knot
    knots_x, knots_y : ``(K + 1,)``, increasing
    slopes : at the knots, ``(K + 1,)``, positive
    inverse : whether to go from y to x; the log-slope is then that of the inverse

    Examples
    --------
    >>> y, log_slope = rational_quadratic([-0.6], [-1, -0.2, 1], [-1, 0, 1], [1, 0.5, 1])
    >>> y.round(4), log_slope.round(6)
    (array([-0.4375]), array([0.446287]))
    """
    on = knots_y if inverse else knots_x
    k = torch.searchsorted(on[1:-1].contiguous(), x.contiguous(), right=True)
    of = (knots_x[k], knots_y[k], knots_x.diff()[k], knots_y.diff()[k], slopes[k], slopes[k + 1])
    if not inverse:
        return bin_value(x, *of)
    found, log_slope = bin_inverse(x, *of)
    return found, -log_slope


UNIVARIATE = ("affine", "shift", "spline")


def univariate(name: str, bins: int = 8, bound: float = 5.0) -> Univariate:
    """A family by name; ``bins`` and ``bound`` are those of a spline.

    >>> univariate("affine")
    AffineMap()
    """
    if name == "spline":
        return Spline(bins, bound)
    if name not in UNIVARIATE:
        raise ValueError(f"the map must be one of {', '.join(UNIVARIATE)}, got {name!r}")
    return AffineMap() if name == "affine" else ShiftMap()
