r"""The Matérn function of any smoothness, by Bessel functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from scipy.special import gammaln, kve
from torch import Tensor


def bessel_decay(t: Tensor, nu: float) -> Tensor:
    r""":math:`2^{1-\nu}t^\nu K_\nu(t)/\Gamma(\nu)`, which is one at zero, for distances t.

    Its slope is :math:`-2^{1-\nu}t^\nu K_{\nu-1}(t)/\Gamma(\nu)`. Computed on the CPU.

    Examples
    --------
    >>> t = torch.tensor([0.0, 1.0, 2.0]).double()
    >>> bool((bessel_decay(t, 1.5) - (1 + t) * torch.exp(-t)).abs().max() < 1e-14)
    True
    """
    out: Tensor = _Decay.apply(t, nu)
    return out


class _Decay(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, t: Tensor, nu: float) -> Tensor:
        ctx.save_for_backward(t)
        ctx.nu = nu
        return torch.where(t == 0, 1.0, _term(t, nu, nu))

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, None]:
        (t,) = ctx.saved_tensors
        return g * torch.where(t == 0, 0.0, -_term(t, ctx.nu, ctx.nu - 1)), None


def _term(t: Tensor, nu: float, order: float) -> Tensor:
    """2^{1-ν} t^ν K_order(t) / Γ(ν), where t is positive."""
    x = t.detach().cpu().double().numpy()
    safe = np.where(x == 0, 1.0, x)
    log = (1 - nu) * np.log(2) + nu * np.log(safe) - gammaln(nu) - safe
    return torch.from_numpy(np.exp(log) * kve(order, safe)).to(t)
