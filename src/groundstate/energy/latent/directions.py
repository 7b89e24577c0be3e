r"""Components with heavy tails and on the sphere: Student t and von Mises-Fisher."""

from __future__ import annotations

import math

import numpy as np
import torch
from scipy.optimize import brentq
from scipy.special import ive, psi
from torch import Tensor, nn

from groundstate.compute.foreign.torch import standard_gamma
from groundstate.energy.latent.families import Family


class StudentT(Family):
    r"""Multivariate t with diagonal scale; :math:`u = (\nu+d)/(\nu+\delta^2)` weighs far rows down."""

    name = "student_t"

    def __init__(self, k: int, d: int, alpha: float = 1e-3, reg: float = 1e-6) -> None:
        super().__init__(k, d, alpha)
        self.reg = reg
        self.mean = nn.Parameter(torch.zeros(k, d))
        self.variance = nn.Parameter(torch.ones(k, d))
        self.nu = nn.Parameter(torch.full((k,), 10.0))

    def _far(self, x: Tensor) -> Tensor:
        return ((x[:, None] - self.mean).square() / self.variance).sum(-1)  # δ², (B, k)

    def log_prob(self, x: Tensor) -> Tensor:
        nu, d = self.nu, self.d
        constant = (
            torch.lgamma((nu + d) / 2) - torch.lgamma(nu / 2) - 0.5 * d * (nu * math.pi).log()
        )
        return (
            constant - 0.5 * self.variance.log().sum(1)
            - 0.5 * (nu + d) * torch.log1p(self._far(x) / nu)
        )  # fmt: skip

    def stats(self, x: Tensor, r: Tensor) -> dict[str, Tensor]:
        u = (self.nu + self.d) / (self.nu + self._far(x))
        ru, diff = r * u, x[:, None] - self.mean.detach()
        return {
            "n": r.sum(0), "u": ru.sum(0), "log": (r * (u.log() - u)).sum(0),
            "x": torch.einsum("bk,bkj->kj", ru, diff),
            "xx": torch.einsum("bk,bkj->kj", ru, diff.square()),
        }  # fmt: skip

    def update(self, sums: dict[str, Tensor]) -> None:
        n, u = (sums[key].clamp_min(1e-300) for key in ("n", "u"))
        step = sums["x"] / u[:, None]
        variance = (sums["xx"] - u[:, None] * step.square()) / n[:, None]
        for z in range(self.k):
            old = float(self.nu[z])
            half = (old + self.d) / 2
            rest = float(sums["log"][z] / n[z]) + psi(half) - math.log(half) + 1
            self.nu[z] = _degrees(rest)
        self.mean.add_(step)
        self.variance.copy_(variance.clamp_min(0) + self.reg)

    def draw(self, z: Tensor, generator: torch.Generator) -> Tensor:
        mean, scale, nu = (
            self.mean.detach()[z],
            self.variance.detach()[z].sqrt(),
            self.nu.detach()[z],
        )
        noise = torch.randn(mean.shape, generator=generator, dtype=mean.dtype, device=mean.device)
        gamma = standard_gamma(nu / 2, generator=generator)
        return mean + scale * noise / (2 * gamma / nu).sqrt()[:, None]


def _degrees(rest: float) -> float:
    r"""ν of :math:`\log\frac\nu2 - \psi(\frac\nu2) + rest = 0`, within [0.1, 1000]."""

    def gap(nu: float) -> float:
        return float(math.log(nu / 2) - psi(nu / 2) + rest)

    if gap(0.1) * gap(1e3) > 0:
        return 1e3 if gap(1e3) > 0 else 0.1
    return float(brentq(gap, 0.1, 1e3))


class VonMisesFisher(Family):
    r"""Directions: :math:`p(x\mid z) \propto e^{\kappa_z m_z^\top x}` on the unit sphere."""

    name, wants = "von_mises_fisher", "rows of length one"

    def __init__(self, k: int, d: int, alpha: float = 1e-3) -> None:
        super().__init__(k, d, alpha)
        self.mean = nn.Parameter(torch.ones(k, d) / math.sqrt(d))
        self.kappa = nn.Parameter(torch.ones(k))

    def bad(self, x: Tensor) -> Tensor:
        off = (x.square().sum(1, keepdim=True) - 1).abs() > 1e-3
        return off.expand_as(x)

    def _log_constant(self) -> Tensor:
        v = 0.5 * self.d - 1
        kappa = self.kappa.detach().double().clamp_min(1e-8).cpu().numpy()
        bessel = np.log(np.maximum(ive(v, kappa), 1e-300)) + kappa
        log_c = v * np.log(kappa) - 0.5 * self.d * math.log(2 * math.pi) - bessel
        return torch.from_numpy(log_c).to(self.kappa)

    def log_prob(self, x: Tensor) -> Tensor:
        return x @ (self.mean * self.kappa[:, None]).T + self._log_constant()

    def update(self, sums: dict[str, Tensor]) -> None:
        length = sums["x"].norm(dim=1)
        r = (length / sums["n"].clamp_min(1e-300)).clamp(1e-8, 1 - 1e-9)
        self.mean.copy_(sums["x"] / length.clamp_min(1e-300)[:, None])
        d = self.d
        kappa = r * (d - r**2) / (1 - r**2)
        for _ in range(2):  # Newton on A(κ) = r̄
            at = kappa.double().cpu().numpy()
            ratio = torch.from_numpy(ive(d / 2, at) / ive(d / 2 - 1, at)).to(kappa)
            slope = 1 - ratio**2 - (d - 1) / kappa * ratio
            step = (ratio - r) / slope
            kappa = torch.where(torch.isfinite(step), kappa - step, kappa).clamp_min(1e-8)
        self.kappa.copy_(kappa)
