r"""A linear map of a Gaussian with Gaussian noise: :math:`x = Wz + b + \varepsilon`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from groundstate.math.arrays import as_tensor, to_numpy
from groundstate.math.distributions.gaussian.algebra import Moments, condition, marginal


@dataclass(frozen=True)
class LinearJoint:
    """The joint distribution of [x; z].

    Attributes
    ----------
    joint : ``Moments`` of dimension d + l, x first
    d : dimension of x
    """

    joint: Moments
    d: int

    @property
    def marginal(self) -> Any:
        r""":math:`N(b + Wm,\ R + WSW^\top)`, the distribution of x."""
        return marginal(self.joint, range(self.d))

    def posterior(self, x: Any) -> Any:
        """The distribution of z given x ``(..., d)``."""
        return condition(self.joint, range(self.d), x)


def linear_joint(W: Any, b: Any = 0.0, prior: Any = None, noise: Any = 1.0) -> LinearJoint:
    r"""The joint of :math:`x = Wz + b + \varepsilon` and z, for :math:`z \sim N(m, S)` and
    :math:`\varepsilon \sim N(0, R)`.

    Parameters
    ----------
    W : ``(d, l)``
    b : ``(d,)``
    prior : ``(m, S)``, or a number s for :math:`N(0, s^2 I)`; None is :math:`N(0, I)`
    noise : variance of the noise, a number or ``(d, d)``

    Examples
    --------
    >>> from scipy.stats import multivariate_normal
    >>> p = linear_joint([[1.0], [2.0]], [0.5, -1.0], prior=2.0)
    >>> round(float(multivariate_normal(*p.marginal).logpdf([2.0, 1.0])), 6)
    -3.604186
    >>> p.posterior([2.0, 1.0]).mean.round(6)
    array([1.047619])
    """
    flat = [W, b, noise, *(prior if isinstance(prior, tuple | list) else (prior,))]
    like = next((v for v in flat if isinstance(v, Tensor)), None)
    W = as_tensor(W, "W", like)
    if W.ndim < 2:
        raise ValueError(f"W must be a matrix (d, l), got shape {tuple(W.shape)}")
    d, latent = W.shape[-2:]
    b = as_tensor(b, "b", like).to(W.dtype).expand(d)
    eye = torch.eye(latent, dtype=W.dtype, device=W.device)
    if isinstance(prior, tuple | list):
        m, S = (as_tensor(part, "prior", like).to(W.dtype) for part in prior)
    else:
        m = torch.zeros(latent, dtype=W.dtype, device=W.device)
        scale = as_tensor(1.0 if prior is None else prior, "prior", like)
        S = scale.to(W.dtype) ** 2 * eye
    R = as_tensor(noise, "noise", like).to(W.dtype)
    R = R * torch.eye(d, dtype=W.dtype, device=W.device) if R.ndim == 0 else R
    cross = W @ S  # (d, l)
    mean = torch.cat([(W @ m.unsqueeze(-1)).squeeze(-1) + b, m], -1)
    top = torch.cat([cross @ W.mT + R, cross], -1)
    joint = Moments(mean, torch.cat([top, torch.cat([cross.mT, S], -1)], -2))
    return LinearJoint(joint if like is not None else to_numpy(joint), d)
