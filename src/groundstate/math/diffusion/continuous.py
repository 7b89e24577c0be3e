r"""Diffusions in continuous time: t = 0 data, t = 1 noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

Kind = Literal["vp", "ve", "subvp"]
KINDS: tuple[Kind, ...] = ("vp", "ve", "subvp")


@dataclass(frozen=True)
class ContinuousSchedule:
    r""":math:`dx = f(t)\,x\,dt + g(t)\,dw`, so that :math:`x_t = a(t)\,x_0 + s(t)\,\epsilon`.

    "vp" keeps the variance, :math:`f = -\tfrac12\beta`, :math:`g^2 = \beta`,
    :math:`\beta(t) = \beta_{\min} + t(\beta_{\max} - \beta_{\min})`, :math:`a^2 = \bar\alpha(t) =
    e^{-\int_0^t\beta}`, :math:`s^2 = 1 - \bar\alpha`; "subvp" has :math:`s = 1 - \bar\alpha`,
    :math:`g^2 = \beta(1 - \bar\alpha^2)`; "ve" adds noise alone, :math:`f = 0`, :math:`s =
    \sigma_{\min}(\sigma_{\max}/\sigma_{\min})^t`.

    Parameters
    ----------
    kind : "vp", "ve" or "subvp"
    beta_min, beta_max : of "vp" and "subvp"
    sigma_min, sigma_max : of "ve"

    Examples
    --------
    >>> ContinuousSchedule("vp").alpha_bar(torch.tensor([0.5, 1.0], dtype=torch.float64))
    tensor([7.9064e-02, 4.3186e-05], dtype=torch.float64)
    """

    kind: Kind = "vp"
    beta_min: float = 0.1
    beta_max: float = 20.0
    sigma_min: float = 0.01
    sigma_max: float = 50.0

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"kind must be one of {', '.join(KINDS)}, got {self.kind!r}")
        if not 0 <= self.beta_min <= self.beta_max or self.beta_max == 0:
            raise ValueError(
                f"needs 0 ≤ beta_min ≤ beta_max, got {self.beta_min} and {self.beta_max}"
            )
        if not 0 < self.sigma_min < self.sigma_max:
            raise ValueError(
                f"needs 0 < sigma_min < sigma_max, got {self.sigma_min} and {self.sigma_max}"
            )

    def beta(self, t: Tensor) -> Tensor:
        """β(t) of "vp" and "subvp"."""
        return self.beta_min + t * (self.beta_max - self.beta_min)

    def alpha_bar(self, t: Tensor) -> Tensor:
        """a(t)², the share of the signal that is left."""
        if self.kind == "ve":
            return torch.ones_like(t)
        return torch.exp(-self.beta_min * t - 0.5 * t.square() * (self.beta_max - self.beta_min))

    def signal_noise(self, t: Tensor, like: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """a(t) and s(t), shaped to multiply rows ``like``."""
        if like is not None:
            t = shaped(t, like)
        bar = self.alpha_bar(t)
        if self.kind == "ve":
            return bar, self.sigma_min * (self.sigma_max / self.sigma_min) ** t
        return bar.sqrt(), (1 - bar).sqrt() if self.kind == "vp" else 1 - bar

    def drift(self, x: Tensor, t: Tensor) -> Tensor:
        """f(t) x."""
        if self.kind == "ve":
            return torch.zeros_like(x)
        return -0.5 * self.beta(shaped(t, x)) * x

    def diffusion(self, t: Tensor) -> Tensor:
        """g(t)."""
        if self.kind == "ve":
            grows = math.log(self.sigma_max / self.sigma_min)
            return self.signal_noise(t)[1] * math.sqrt(2 * grows)
        if self.kind == "vp":
            return self.beta(t).sqrt()
        return (self.beta(t) * (1 - self.alpha_bar(t).square())).sqrt()

    def snr(self, t: Tensor) -> Tensor:
        a, s = self.signal_noise(t)
        return (a / s).square()

    def log_snr(self, t: Tensor) -> Tensor:
        return self.snr(t).log()

    @property
    def prior_std(self) -> float:
        """Standard deviation of the noise that sampling starts from, at t = 1."""
        return self.sigma_max if self.kind == "ve" else 1.0


def shaped(t: Tensor, like: Tensor) -> Tensor:
    """Times ``(B,)`` or a scalar as a factor of rows ``(B, ...)``."""
    t = t.to(like)
    return t.reshape(*t.shape, *(1,) * (like.ndim - t.ndim)) if t.ndim else t
