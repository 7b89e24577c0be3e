r"""Entropic barycentres of images: Sinkhorn whose kernel is a separable blur.

Costs are squared distances on the grid of pixels, the longer side having length 1. The kernel
:math:`e^{-|s-t|^2/\varepsilon}` factors over the axes, so a sum over all pixels is one sum along each.
"""

from __future__ import annotations

import warnings

import torch
from torch import Tensor

from groundstate.errors import NotConverged, ShapeError


def barycenter(
    images: Tensor, weights: Tensor, eps: float, debias: bool, tol: float, max_iter: int
) -> Tensor:
    r"""The image of least weighted :math:`\sum_kw_kOT_\varepsilon(p_k, p)`, in the log domain.

    Parameters
    ----------
    images : ``(k, h, w)`` or ``(k, n)`` histograms on an even grid, not negative
    weights : ``(k,)``, summing to 1
    eps : strength of the entropy
    debias : take the blur of ε back (Janati, Cuturi and Gramfort)
    tol : change of the image, in total mass, at which to stop
    """
    if images.ndim not in (2, 3):
        raise ShapeError(f"images must be (k, h, w) or (k, n), got shape {tuple(images.shape)}")
    seen = images.detach()
    space = tuple(range(1, images.ndim))
    if bool((seen < 0).any()) or not bool((seen.sum(space) > 0).all()):
        raise ValueError("images must be non-negative and not all zero")
    p = images / images.sum(space, keepdim=True)
    log_p = torch.where(p > 0, p, 1.0).log().masked_fill(p <= 0, -torch.inf)
    blurs = _blurs(p, eps)
    w = weights.reshape(-1, *(1,) * len(space))
    log_v, log_d = torch.zeros_like(p), torch.zeros_like(p[0])
    old = p.mean(0)
    for _ in range(max_iter):
        log_u = log_p - _blur(log_v, blurs)
        log_k = _blur(log_u, blurs)
        log_bar = log_d + (w * log_k).sum(0)
        log_v = log_bar - log_k
        if debias:
            log_d = 0.5 * (log_d + log_bar - _blur(log_d[None], blurs)[0])
        bar = (log_bar - log_bar.max()).exp()
        bar = bar / bar.sum()
        moved = float((bar - old).detach().abs().sum())
        old = bar
        if moved <= tol:
            return bar
    warnings.warn(
        f"the barycentre still moves by {moved:.1e} after {max_iter} steps, not {tol:.1e}; raise "
        "max_iter, tol or eps",
        NotConverged,
        stacklevel=4,
    )
    return old


def _blurs(p: Tensor, eps: float) -> list[Tensor]:
    """Logarithms of the kernel along each axis."""
    side = max(p.shape[1:])
    out = []
    for n in p.shape[1:]:
        at = torch.arange(n, dtype=p.dtype, device=p.device) / max(1, side - 1)
        out.append(-(at[:, None] - at[None, :]).square() / eps)
    return out


def _blur(log_v: Tensor, blurs: list[Tensor]) -> Tensor:
    for axis, kernel in enumerate(blurs, 1):
        moved = log_v.movedim(axis, -1)
        top = moved.amax(-1, keepdim=True)
        safe = torch.where(torch.isfinite(top), top, 0.0)
        direct = ((moved - safe).exp() @ kernel.exp()).log()
        lost = ~torch.isfinite(direct) & torch.isfinite(top)  # too far apart for a product
        if bool(lost.any()):
            direct = torch.logsumexp((moved - safe).unsqueeze(-2) + kernel, -1)
        log_v = (direct + safe).movedim(-1, axis)
    return log_v
