r"""The last layer of a mixture density: features to weights, means and scales."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from groundstate.math.distributions.mixture_fused import head_nll, head_parameters

WEIGHTS = ("learned", "uniform")
COVARIANCES = ("isotropic", "diagonal", "constant")


class MixtureHead(nn.Module):
    r"""Features h to :math:`\log\pi_z(h)`, :math:`\mu_z(h)`, :math:`\sigma_z(h)` of K Gaussians.

    All are linear in h but for the softmax of the weights and
    :math:`\sigma_z = \sigma_{min} + e^{a_z}`. Leading axes of h are free: rows, or rows and
    positions of an autoregressive model.

    Parameters
    ----------
    d_in : number of features
    k : number of components
    d : number of coordinates of the outcome
    weights : "learned", or "uniform" for :math:`\pi_z = 1/K`
    covariance : "isotropic" (one scale per component), "diagonal" (one per coordinate), or
        "constant" (one per component that does not depend on h)
    min_scale : :math:`\sigma_{min}`
    generator : source of the initial weights

    Examples
    --------
    >>> log_pi, mu, sigma = MixtureHead(8, 3, 2)(torch.zeros(5, 4, 8))
    >>> log_pi.shape, mu.shape, sigma.shape
    (torch.Size([5, 4, 3]), torch.Size([5, 4, 3, 2]), torch.Size([5, 4, 3, 1]))
    """

    def __init__(
        self,
        d_in: int,
        k: int,
        d: int = 1,
        weights: str = "learned",
        covariance: str = "isotropic",
        min_scale: float = 1e-3,
        *,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        if weights not in WEIGHTS:
            raise ValueError(f"weights must be one of {', '.join(WEIGHTS)}, got {weights!r}")
        if covariance not in COVARIANCES:
            raise ValueError(
                f"covariance must be one of {', '.join(COVARIANCES)}, got {covariance!r}"
            )
        self.d_in, self.k, self.d = d_in, k, d
        self.weights, self.covariance, self.min_scale = weights, covariance, float(min_scale)
        scales = k * d if covariance == "diagonal" else k
        self.sizes = (k * d, scales, k if weights == "learned" else 0)
        given = sum(self.sizes) - (scales if covariance == "constant" else 0)
        self.linear = nn.utils.skip_init(nn.Linear, d_in, given)
        generator = generator or torch.Generator().manual_seed(0)
        noise = torch.randn(given, d_in, generator=generator)
        with torch.no_grad():
            # small: at the start the outcome hardly depends on the features
            self.linear.weight.copy_(0.1 * noise / max(1, d_in) ** 0.5)
            self.linear.bias.zero_()
        if covariance == "constant":
            self.log_scale = nn.Parameter(torch.zeros(k, 1))

    def config(self) -> dict[str, Any]:
        return {
            "d_in": self.d_in, "k": self.k, "d": self.d, "weights": self.weights,
            "covariance": self.covariance, "min_scale": self.min_scale,
        }  # fmt: skip

    @torch.no_grad()
    def start(self, weights: Tensor, means: Tensor, scales: Tensor) -> None:
        """Let the outcome be this mixture whatever the features: ``(k,)``, ``(k, d)``, ``(k,)``."""
        bias, (first, second, _) = self.linear.bias, self.sizes
        bias[:first] = means.reshape(-1)
        raw = (scales - self.min_scale).clamp_min(1e-3 * self.min_scale + 1e-12).log()
        if self.covariance == "constant":
            self.log_scale.copy_(raw[:, None])
        else:
            bias[first : first + second] = raw.repeat_interleave(second // self.k)
        if self.weights == "learned":
            bias[-self.k :] = weights.clamp_min(1e-6).log()

    def outputs(self, h: Tensor) -> Tensor:
        """Means, raw scales and logits side by side, ``(..., K(d + s + 1))``."""
        out: Tensor = self.linear(h)
        if self.covariance != "constant":
            return out
        mean, _, logits = out.split([self.sizes[0], 0, self.sizes[2]], -1)
        scale = self.log_scale.flatten().expand(*out.shape[:-1], self.k)
        return torch.cat([mean, scale, logits], -1)

    def forward(self, h: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return head_parameters(self.outputs(h), self.sizes, self.k, self.min_scale)

    def nll(self, h: Tensor, y: Tensor) -> Tensor:
        r""":math:`-\log\sum_z\pi_zN(y; \mu_z, \sigma_z^2)`, ``(B,)``, in one fused pass."""
        return head_nll(self.outputs(h), y, self.sizes, self.k, self.min_scale)
