r"""Likelihoods of real columns around a mean: normal, Student's t, and logistic on a grid."""

from __future__ import annotations

import math
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch import distributions as D
from torch.distributions import Distribution

from groundstate.math.distributions.columns import DiscretizedLogistic
from groundstate.nn.heads.likelihoods.base import Likelihood

Scale = float | Literal["learned", "per_dim"]
FLOOR = (
    1e-3  # of learned scales: without it one well-fitted column takes the likelihood to infinity
)


class ScaledLikelihood(Likelihood):
    """Likelihoods with a scale that is fixed, one learned number, or one per column."""

    def __init__(self, d: int, scale: Scale = 1.0, floor: float = FLOOR) -> None:
        super().__init__(d)
        if isinstance(scale, str):
            if scale not in ("learned", "per_dim"):
                raise ValueError(f"scale is a number, 'learned' or 'per_dim', got {scale!r}")
            start = torch.zeros(1 if scale == "learned" else d)
            self.log_scale = nn.Parameter(start)
        elif not scale > 0:
            raise ValueError(f"scale is a standard deviation and must be positive, got {scale}")
        if not floor > 0:
            raise ValueError(f"floor keeps a learned scale positive, got {floor}")
        self.scale: Scale = scale if isinstance(scale, str) else float(scale)
        self.floor = float(floor)

    def config(self) -> dict[str, Any]:
        return {**super().config(), "scale": self.scale, "floor": self.floor}

    def scales(self, like: Tensor) -> Tensor:
        """The scale of every column, ``(d,)``; a learned one is floor + exp(log_scale)."""
        if isinstance(self.scale, str):
            return (self.floor + self.log_scale.exp()).expand(like.shape[-1])
        return like.new_full((like.shape[-1],), self.scale)

    def cell_variance(self) -> float:
        with torch.no_grad():
            return float(self.scales(torch.zeros(self.d)).double().square().mean())

    def mean(self, out: Tensor) -> Tensor:
        return self._checked(out)


class GaussianLikelihood(ScaledLikelihood):
    r"""Normal columns, :math:`-\log p = \|x - \hat x\|^2/(2\sigma^2) + \tfrac d2\log 2\pi\sigma^2`.

    Parameters
    ----------
    d : columns
    scale : σ, "learned" (one number) or "per_dim"; learned ones begin at 1
    floor : smallest learned σ

    Attributes
    ----------
    log_scale : Parameter ``(1,)`` or ``(d,)`` where the scale is learned

    Examples
    --------
    >>> round(GaussianLikelihood(2, 0.5)(torch.zeros(1, 2), torch.ones(1, 2)).item(), 4)
    4.4516
    """

    name = "gaussian"

    def distribution(self, out: Tensor) -> Distribution:
        sigma = self.scales(out).expand_as(out)
        return D.Independent(D.Normal(out, sigma, validate_args=False), 1, validate_args=False)

    def log_prob(self, out: Tensor, x: Tensor) -> Tensor:
        if not isinstance(self.scale, str):  # nothing to learn: numbers instead of tensors
            volume = self.d * (math.log(self.scale) + 0.5 * math.log(2 * math.pi))
            square = (x - self._checked(out)).square().sum(-1)
            return square * (-0.5 / self.scale**2) - volume
        sigma = self.scales(self._checked(out))
        constant = sigma.log().sum() + 0.5 * self.d * math.log(2 * math.pi)
        return -0.5 * ((x - out) / sigma).square().sum(-1) - constant


class StudentTLikelihood(ScaledLikelihood):
    r"""Columns with heavy tails, :math:`(x_j - \hat x_j)/s \sim t_\nu`: outliers pull little.

    Parameters
    ----------
    d, scale, floor : as in ``GaussianLikelihood``
    df : ν, above 1 so that there is a mean

    Examples
    --------
    >>> round(StudentTLikelihood(1, df=3.0)(torch.zeros(1, 1), torch.ones(1, 1)).item(), 4)
    1.5763
    """

    name = "student_t"

    def __init__(self, d: int, scale: Scale = 1.0, floor: float = FLOOR, df: float = 5.0) -> None:
        super().__init__(d, scale, floor)
        if not df > 1:
            raise ValueError(f"df must be above 1, so that there is a mean, got {df}")
        self.df = float(df)

    def config(self) -> dict[str, Any]:
        return {**super().config(), "df": self.df}

    def distribution(self, out: Tensor) -> Distribution:
        scale = self.scales(out).expand_as(out)
        t = D.StudentT(torch.full_like(out, self.df), out, scale, validate_args=False)
        return D.Independent(t, 1, validate_args=False)


class DiscretizedLogisticLikelihood(ScaledLikelihood):
    r"""Pixels on a grid of [−1, 1]: the mass that a logistic distribution has in the pixel's bin.

    Parameters
    ----------
    d, floor : as in ``GaussianLikelihood``
    scale : s of the logistic; "per_dim" by default
    bins : of the grid

    Examples
    --------
    >>> p = DiscretizedLogisticLikelihood(1, scale=0.1).double()
    >>> round(p.log_prob(torch.zeros(1, 1).double(), torch.zeros(1, 1).double()).item(), 6)
    -3.931954
    """

    name = "discretized_logistic"

    def __init__(
        self, d: int, scale: Scale = "per_dim", floor: float = FLOOR, bins: int = 256
    ) -> None:
        super().__init__(d, scale, floor)
        self.bins = bins

    def config(self) -> dict[str, Any]:
        return {**super().config(), "bins": self.bins}

    def distribution(self, out: Tensor) -> Distribution:
        return DiscretizedLogistic(out, self.scales(out), self.bins)

    def mean(self, out: Tensor) -> Tensor:
        return self._checked(out).clamp(-1.0, 1.0)

    def check(self, x: Tensor) -> None:
        self._refuse(
            x,
            ~(x.abs() <= 1 + 1e-6),
            f"discretized_logistic is a distribution on {self.bins} values from -1 to 1; use "
            "scale='minmax'",
        )
