r"""A network learns to sample a given energy, without data: :math:`\min_g KL(p_g \| e^{-e}/Z)`."""

from __future__ import annotations

import math
from typing import Any

import torch
from scipy.stats import chi2
from torch import Tensor

from groundstate.energy.base import Energy
from groundstate.learn.base import Batch, Rule, Terms
from groundstate.learn.rules.negatives.generators import PushForward


def bandwidth(d: int) -> float:
    r"""h: the median of :math:`\|a - b\|^2` for standard normal a and b, :math:`2\,\mathrm{med}\,\chi^2_d`.

    Examples
    --------
    >>> round(bandwidth(2), 2)
    2.77
    """
    return 2 * float(chi2.median(d))


def auto_weight(d: int, alpha: float = 1.5) -> float:
    r""":math:`\lambda = 1.6\big/\bigl(4u[(1+4u)^{-d/2-1} - (1+2u(1+\alpha))^{-d/2-1}]\bigr)`,
    :math:`u = 1/h`.

    Without the factor 1.6, found by trial, the spread term pushes a normal cloud apart exactly as
    hard as its entropy would.

    Examples
    --------
    >>> round(auto_weight(2), 1)
    27.5
    """
    u = 1 / bandwidth(d)
    power = -d / 2 - 1
    return 1.6 / (4 * u * ((1 + 4 * u) ** power - (1 + 2 * u * (1 + alpha)) ** power))


def wider(x: Tensor, alpha: float, generator: torch.Generator | None = None) -> Tensor:
    r"""As many draws of :math:`N(0, \alpha I)` as there are rows: the target in whitened coordinates."""
    s = torch.randn(x.shape, generator=generator, device=x.device, dtype=x.dtype)
    return s * math.sqrt(alpha)


def whitened_mmd(x: Tensor, s: Tensor) -> Tensor:
    r"""MMD² of :math:`L^{-1}(x - \mu_g)` and s, with :math:`k = \exp(-\|\cdot\|^2/h)`.

    :math:`\mu_g` and :math:`LL^\top = \Sigma_g` are the moments of the batch (1/M), held fixed. In the
    coordinates of the samples themselves the pull towards a wider cloud does not fade as they
    shrink, which is what a kernel of fixed width does.

    Parameters
    ----------
    x : generated rows ``(M, d)``
    s : draws of the target, in whitened coordinates ``(M, d)``; no gradient passes
    """
    with torch.no_grad():
        mean = x.mean(0)
        centred = x - mean
        cov = centred.T @ centred / len(x)
        scale = cov.diagonal().mean()
        eye = torch.eye(x.shape[1], device=x.device, dtype=x.dtype)
        # rows in one line have no inverse; a share of the mean variance is added
        chol = torch.linalg.cholesky(cov + (1e-6 * scale + 1e-30) * eye)
    w = torch.linalg.solve_triangular(chol, (x - mean).T, upper=False).T
    s = s.detach()
    h = bandwidth(x.shape[1])

    def kernel(a: Tensor, b: Tensor) -> Tensor:
        squared = a.square().sum(1)[:, None] + b.square().sum(1)[None] - 2 * a @ b.T
        return torch.exp(-squared / h)

    n, m = len(w), len(s)
    inside = (kernel(w, w).sum() - n) / (n * (n - 1))
    target = (kernel(s, s).sum() - m) / (m * (m - 1))
    return inside + target - 2 * kernel(w, s).mean()


class ReverseKL(Rule):
    r""":math:`L = E\,e(g(\varepsilon))/T + \lambda\,MMD^2(s, g)`. Lowers the energy of what a sampler
    draws and raises their entropy, by pulling them towards a normal cloud α times as wide.

    :math:`s \sim N(\mu_g, \alpha\Sigma_g)` has the moments of the draws themselves: the largest entropy
    for them, plus :math:`\tfrac d2\ln\alpha`. The energy is given and stays as it is; rows of the
    batch only say how many draws to make.

    Parameters
    ----------
    sampler : ``PushForward``
    weight : λ, or "auto"; 0 lets all draws fall into a minimum
    alpha : above 1
    T : temperature

    Examples
    --------
    >>> from groundstate.learn.rules.negatives.generators import Affine
    >>> ReverseKL(PushForward(Affine(2), 2)).weight_of(2) > 27
    True
    """

    is_objective = False

    def __init__(
        self,
        sampler: PushForward,
        weight: float | str = "auto",
        alpha: float = 1.5,
        T: float = 1.0,
    ) -> None:
        super().__init__()
        if not alpha > 1:
            raise ValueError(f"alpha must be above 1, or the target is no wider, got {alpha}")
        if weight != "auto" and (isinstance(weight, str) or weight < 0):
            raise ValueError(f"weight must be 'auto' or a number of at least 0, got {weight!r}")
        self.sampler, self.weight, self.alpha, self.T = sampler, weight, alpha, T
        self.over = "x"

    def weight_of(self, d: int) -> float:
        """λ for draws of d coordinates."""
        return auto_weight(d, self.alpha) if self.weight == "auto" else float(self.weight)

    def forward(
        self, energy: Energy, batch: Batch, *, generator: torch.Generator | None = None
    ) -> Terms:
        x = self.sampler.draw(len(batch["x"]), generator=generator)
        e = energy(x=x) / self.T
        spread = self.spread(x, generator)
        return Terms(e + spread, lambda: (e, -spread.expand_as(e)), exact=False, is_objective=False)

    def spread(self, x: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """λ MMD² of the draws to the wider cloud, a scalar."""
        weight = self.weight_of(x.shape[1])
        if weight == 0 or len(x) < 2:
            return x.new_zeros(())
        return weight * whitened_mmd(x, wider(x, self.alpha, generator))

    def is_exact(self, energy: Energy, batch: Batch) -> bool:
        return False

    def reason_against(self, energy: Any, batch: Batch) -> str | None:
        if set(energy.spaces) != {"x"} or not energy.spaces["x"].is_real:
            return "a sampler learns through its draws, which needs one real variable x"
        if any(p.requires_grad for p in energy.parameters()):
            return "the energy is given here; hold it first with energy.requires_grad_(False)"
        return None
