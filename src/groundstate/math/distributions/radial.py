r"""Kernels of a density in d dimensions, :math:`K(x) = k(\|x\|)/V_k(d)` with :math:`\int K = 1`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from groundstate.compute.foreign.torch import standard_gamma

KernelName = Literal["gaussian", "tophat", "epanechnikov", "exponential", "linear", "cosine"]
PROFILES: dict[str, Callable[[Tensor], Tensor]] = {
    "gaussian": lambda u: -0.5 * u.square(),
    "tophat": lambda u: torch.where(u < 1, 0.0, -torch.inf).to(u),
    "epanechnikov": lambda u: torch.log1p(-u.square().clamp_max(1.0)),
    "exponential": lambda u: -u,
    "linear": lambda u: torch.log1p(-u.clamp_max(1.0)),
    "cosine": lambda u: torch.where(u < 1, torch.cos(0.5 * math.pi * u.clamp_max(1.0)), 0.0).log(),
}
_RADII = 4096  # points of the table from which radii of "cosine" are drawn


def log_profile(kernel: KernelName, u: Tensor) -> Tensor:
    """log k at distances u in units of the bandwidth; -inf outside of where it lives.

    >>> log_profile("tophat", torch.tensor([0.5, 2.0])).tolist()
    [0.0, -inf]
    """
    return PROFILES[kernel](u)


def log_ball(d: int) -> float:
    r"""Log volume of the unit ball, :math:`\pi^{d/2}/\Gamma(d/2 + 1)`.

    >>> round(math.exp(log_ball(3)) * 3 / 4, 6) == round(math.pi, 6)
    True
    """
    return 0.5 * d * math.log(math.pi) - math.lgamma(0.5 * d + 1)


def log_volume(kernel: KernelName, d: int) -> float:
    r"""Log of :math:`V_k(d) = \int k(\|x\|)\,dx = dB_d\int_0^\infty r^{d-1}k(r)\,dr`, with the ball
    :math:`B_d`.

    >>> round(log_volume("linear", 1), 6), round(math.exp(log_volume("cosine", 1)) * math.pi, 6)
    (0.0, 4.0)
    """
    if kernel == "gaussian":
        return 0.5 * d * math.log(2 * math.pi)
    ball = log_ball(d)
    if kernel == "tophat":
        return ball
    if kernel == "epanechnikov":
        return ball + math.log(2 / (d + 2))
    if kernel == "linear":
        return ball - math.log(d + 1)
    if kernel == "exponential":
        return ball + math.lgamma(d + 1)
    return ball + math.log(d * _cosine_moment(d - 1))


def _cosine_moment(n: int) -> float:
    r""":math:`\int_0^1 r^n\cos(\pi r/2)\,dr`, by a quadrature that is exact to rounding."""
    nodes, weights = np.polynomial.legendre.leggauss(64 + n)
    r = 0.5 * (nodes + 1)
    return float(0.5 * weights @ (r**n * np.cos(0.5 * math.pi * r)))


def draw_radial(
    kernel: KernelName, n: int, d: int, generator: torch.Generator, p: float = 2.0
) -> Tensor:
    r"""Independent draws of K, ``(n, d)`` in double precision; of :math:`k(\|x\|_p)` for other norms.

    >>> x = draw_radial("tophat", 1000, 2, torch.Generator().manual_seed(0))
    >>> bool((x.norm(dim=1) < 1).all())
    True
    """
    device = generator.device
    noise = torch.randn(n, d, generator=generator, device=device, dtype=torch.float64)
    if kernel == "gaussian" and p == 2.0:
        return noise
    way = _ways(noise, p, generator)
    if kernel == "gaussian":
        return way * noise.norm(dim=1, keepdim=True)
    u = torch.rand(n, generator=generator, device=device, dtype=torch.float64)
    if kernel == "tophat":
        return way * u.pow(1 / d)[:, None]
    table, radii = _distribution(kernel, d)
    r = np.interp(u.cpu().numpy(), table, radii)
    return way * torch.from_numpy(r).to(device)[:, None]


def _ways(noise: Tensor, p: float, generator: torch.Generator) -> Tensor:
    r"""Points of the sphere :math:`\|x\|_p = 1`, as draws of :math:`k(\|x\|_p)` lie on it: those of
    :math:`e^{-\|x\|_p^p}` brought to length one.
    """
    if math.isinf(p):
        noise = 2 * torch.rand(noise.shape, generator=generator, device=noise.device).double() - 1
    elif p != 2.0:
        size = standard_gamma(torch.full_like(noise, 1 / p), generator=generator)
        noise = noise.sign() * size.pow(1 / p)
    return noise / torch.linalg.vector_norm(noise, p, dim=1, keepdim=True).clamp_min(1e-300)


def _distribution(kernel: KernelName, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Radii and the probability of a smaller one, by the trapezoidal rule."""
    end = 1.0 if kernel != "exponential" else d + 40.0 + 10 * math.sqrt(d)
    r = np.linspace(0.0, end, _RADII)
    k = torch.exp(log_profile(kernel, torch.from_numpy(r))).numpy()
    f = np.where(r > 0, r, 0.0) ** (d - 1) * k
    total = np.concatenate([[0.0], np.cumsum(0.5 * (f[1:] + f[:-1]))])
    return total / total[-1], r
