r"""Pushes of all pairs by a grid and Fourier transforms.

The sum :math:`\phi(x) = \sum_j e^{-\varepsilon(\|x - y_j\|^2)}` over all rows gives both
:math:`Z = \sum_i\phi(y_i) - n` and the pushes, :math:`-\tfrac12\nabla\phi(y_i)`. Every row spreads a
charge over six nodes of each axis by a B-spline of degree five, one convolution on the grid sums over
all rows, and the same spline and its derivative bring the sum back to the rows. What the two splines
smooth away is divided out between the transforms, whose kernel is used again while the grid keeps its
shape. The spacing is 0.375 at most, and there are at least 100 nodes along a side: forces are right to
a percent and better, by two transforms where interpolation by three polynomials a box (Linderman and
others) needs nine larger ones and leaves an error of three percent.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from groundstate.math.manifold.divergence import PairEnergy

SPACING, LEAST, ORDER = 0.375, 100, 6
STEPS = 8  # spacings between one and its half: a kernel serves many steps of a growing map
EDGE = 16  # empty nodes between the map and its periodic images
FIXED = 2.0**40  # charges are added as whole numbers, whose sum has no order


class Grid:
    """Sums over all rows of a kernel of their distance, for maps of one or two dimensions."""

    def __init__(self, pair: PairEnergy) -> None:
        self.pair = pair
        self._key: tuple[Any, ...] = ()
        self._spectrum, self._shift = torch.empty(0), 0.0
        self._powers = torch.empty(0, dtype=torch.bool)

    def __call__(self, Y: Tensor) -> tuple[Tensor, Tensor]:
        """Pushes ``(n, p)`` and Z of coordinates ``(n, p)``."""
        n, p = Y.shape
        low, high = Y.amin(0), Y.amax(0)
        spacing, nodes, size = plan(float((high - low).amax()))
        spectrum, shift = self.spectrum(spacing, nodes, size, p, Y)
        at = (Y - (low + high) / 2) / spacing + nodes / 2
        first = at.floor()
        weight, slope = self._splines(at - first)  # (n, p, 6) each
        place = (first.long() - (ORDER // 2 - 1))[..., None] + torch.arange(ORDER, device=Y.device)
        if p == 1:
            flat, value, slopes = place[:, 0], weight[:, 0], [slope[:, 0]]
        else:
            flat = (place[:, 0, :, None] * nodes + place[:, 1, None]).flatten(1)  # (n, 36)
            value = (weight[:, 0, :, None] * weight[:, 1, None]).flatten(1)
            slopes = [
                (slope[:, 0, :, None] * weight[:, 1, None]).flatten(1),
                (weight[:, 0, :, None] * slope[:, 1, None]).flatten(1),
            ]
        charge = torch.zeros(nodes**p, dtype=torch.int64, device=Y.device)
        charge.index_add_(0, flat.flatten(), (value.flatten() * FIXED).round().long())
        grid = (charge.double() / FIXED).to(Y.dtype).view((nodes,) * p)
        field = convolved(grid, spectrum, size).reshape(-1)[flat]  # (n, 6^p)
        phi = (field * value).sum(1, dtype=torch.float64)
        push = torch.stack([(field * one).sum(1) for one in slopes], 1) * (-0.5 / spacing)
        return push, phi.sum() + n * (n * shift) - n * self.own

    def _splines(self, t: Tensor) -> tuple[Tensor, Tensor]:
        """`splines` as polynomials, in the few operations that a device likes."""
        if self._powers.dtype != t.dtype or self._powers.device != t.device:
            at = torch.linspace(0, 1, ORDER, dtype=torch.float64)
            table = torch.linalg.solve(torch.vander(at, increasing=True), splines(at)[0])
            self._powers = table.to(t.device, t.dtype)  # (power, node)
        t = t[..., None]
        weight = self._powers[-1]
        slope = (ORDER - 1) * self._powers[-1]
        for k in range(ORDER - 2, -1, -1):
            weight = torch.addcmul(self._powers[k], weight, t)
            if k:
                slope = torch.addcmul(k * self._powers[k], slope, t)
        return weight, slope

    @property
    def own(self) -> float:
        """What a row adds to the sum at its own place."""
        return float(self.pair.similarity(torch.zeros((), dtype=torch.float64)))

    def spectrum(
        self, spacing: float, nodes: int, size: int, p: int, like: Tensor
    ) -> tuple[Tensor, float]:
        """Transform of the kernel over those of two splines, and the constant taken off the kernel.

        Without the middle of its values the kernel of a small map, which hardly varies, keeps its
        digits.
        """
        key = (spacing, nodes, size, p, like.dtype, like.device)
        if key != self._key:
            step = torch.arange(size, dtype=torch.float64)
            s = (torch.minimum(step, size - step) * spacing).square()
            frequency = torch.fft.fftfreq(size, dtype=torch.float64)
            smooth = torch.sinc(frequency) ** (2 * ORDER)
            if p == 2:
                s, smooth = s[:, None] + s, smooth[:, None] * smooth
            far = torch.tensor(p * (nodes * spacing) ** 2, dtype=torch.float64)
            self._shift = 0.5 * (self.own + float(self.pair.similarity(far)))
            dims = tuple(range(p))
            kernel = torch.fft.rfftn(self.pair.similarity(s) - self._shift, dim=dims).real
            smooth = smooth[..., : size // 2 + 1]
            self._spectrum = (kernel / smooth).to(like.device, like.dtype)
            self._key = key
        return self._spectrum, self._shift


def convolved(grid: Tensor, spectrum: Tensor, size: int) -> Tensor:
    """Sums at the nodes of charges at the nodes."""
    p, nodes = grid.ndim, grid.shape[0]
    dims = tuple(range(p))
    back = torch.fft.irfftn(
        torch.fft.rfftn(grid, s=(size,) * p, dim=dims) * spectrum, s=(size,) * p, dim=dims
    )
    return back[(slice(nodes),) * p]


def plan(extent: float) -> tuple[float, int, int]:
    """Spacing of the nodes, nodes of a side, and the size of the transforms, for a map so wide.

    >>> plan(100.0)
    (0.375, 276, 600)
    """
    extent = max(extent, 1e-12)
    spacing = SPACING
    if extent < LEAST * SPACING:
        spacing = 2.0 ** (math.floor(STEPS * math.log2(extent / LEAST)) / STEPS)
    nodes = math.ceil(extent / spacing) + ORDER + 2
    nodes += -nodes % 4  # the same grid while a map grows a little
    return spacing, nodes, _smooth(2 * nodes + 2 * EDGE)


def _smooth(least: int) -> int:
    """The smallest even product of 2, 3 and 5 that is not below."""
    best = 1 << (least - 1).bit_length()
    five = 2
    while five < best:
        three = five
        while three < best:
            two = three
            while two < least:
                two *= 2
            best = min(best, two)
            three *= 3
        five *= 5
    return best


def splines(t: Tensor) -> tuple[Tensor, Tensor]:
    """Weights of six nodes and their slopes, ``(..., 6)``, for a place t in [0, 1) past the third.

    >>> weight, slope = splines(torch.tensor([0.25], dtype=torch.float64))
    >>> round(float(weight.sum()), 12), abs(round(float(slope.sum()), 12))
    (1.0, 0.0)
    """
    weight = [1 - t, t]
    before = weight
    for k in range(3, ORDER + 1):
        before = weight
        inside = [((t + j) * before[k - 2 - j] + (k - j - t) * before[k - 1 - j]) / (k - 1)
                  for j in range(k - 2, 0, -1)]  # fmt: skip
        weight = [(1 - t) * before[0] / (k - 1), *inside, t * before[-1] / (k - 1)]
    zero = torch.zeros_like(t)
    slope = [a - b for a, b in zip([zero, *before], [*before, zero], strict=True)]
    return torch.stack(weight, -1), torch.stack(slope, -1)
