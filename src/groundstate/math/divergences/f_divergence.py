r"""f-divergences :math:`D_f(p\|q) = \sum_k q_kf(p_k/q_k)` of tables, and Rényi's."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from groundstate.math.arrays import takes_arrays
from groundstate.math.info.pmf import Pmf, in_base, pmfs, weighted


@takes_arrays("p", "q", finite=False)
def f_divergence(
    p: Any,
    q: Any,
    f: Callable[[Tensor], Tensor],
    *,
    slope: float = math.inf,
    dim: int = -1,
    logits: bool = False,
) -> Any:
    r""":math:`D_f(p\|q) = \sum_k q_kf(p_k/q_k)` for a convex f with f(1) = 0.

    Parameters
    ----------
    p, q : tables (weights, counts or log-weights)
    f : function of a tensor of ratios; its value at 0 counts where p is 0
    slope : :math:`\lim_{t\to\infty}f(t)/t`, the price of a unit of p where q is 0
    dim, logits : as in `kl`

    Examples
    --------
    >>> round(f_divergence([0.5, 0.5], [0.9, 0.1], lambda t: t * t.log()), 6)  # KL
    0.510826
    """
    a, b = _both(p, q, dim, logits)
    some = b.p > 0
    ratio = torch.where(some, a.p, 1.0) / torch.where(some, b.p, 1.0)
    value = f(ratio)
    if bool(value.detach().isnan().any()):
        raise ValueError(
            "f gives NaN for some ratio p/q; at 0 write t log t as torch.special.xlogy(t, t)"
        )
    beyond = weighted(torch.where(some, 0.0, a.p), torch.full_like(a.p, slope))
    return (weighted(b.p, value) + beyond).sum(dim)


@takes_arrays("p", "q", finite=False)
def tv(p: Any, q: Any, *, dim: int = -1, logits: bool = False) -> Any:
    r"""Total variation :math:`\tfrac12\sum_k|p_k - q_k|`, the largest difference of any event.

    >>> round(tv([0.5, 0.5], [0.9, 0.1]), 6)
    0.4
    """
    a, b = _both(p, q, dim, logits)
    return 0.5 * (a.p - b.p).abs().sum(dim)


@takes_arrays("p", "q", finite=False)
def hellinger(p: Any, q: Any, *, dim: int = -1, logits: bool = False) -> Any:
    r"""Hellinger distance :math:`\sqrt{\tfrac12\sum_k(\sqrt{p_k} - \sqrt{q_k})^2}`, in [0, 1].

    >>> round(hellinger([0.5, 0.5], [0.9, 0.1]), 6)
    0.32492
    """
    a, b = _both(p, q, dim, logits)
    squared = 0.5 * (_root(a.p) - _root(b.p)).square().sum(dim)
    return _root(squared)


@takes_arrays("p", "q", finite=False)
def chi2(p: Any, q: Any, *, dim: int = -1, logits: bool = False) -> Any:
    r""":math:`\chi^2(p\|q) = \sum_k (p_k - q_k)^2/q_k`, infinite where q is 0 and p is not.

    >>> round(chi2([0.5, 0.5], [0.9, 0.1]), 6)
    1.777778
    """
    a, b = _both(p, q, dim, logits)
    some = b.p > 0
    inside = torch.where(some, (a.p - b.p).square() / torch.where(some, b.p, 1.0), 0.0)
    return (inside + torch.where(~some & (a.p > 0), math.inf, 0.0)).sum(dim)


@takes_arrays("p", "q", finite=False)
def renyi(
    p: Any,
    q: Any,
    alpha: float,
    *,
    base: float | None = None,
    dim: int = -1,
    logits: bool = False,
) -> Any:
    r""":math:`R_\alpha(p\|q) = \frac1{\alpha-1}\log\sum_kp_k^\alpha q_k^{1-\alpha}`, growing in α.

    α = 1 is KL, α = ∞ the logarithm of the largest ratio p/q, α = 0 minus the logarithm of q's
    mass on p's support.

    >>> [round(renyi([0.5, 0.5], [0.9, 0.1], a), 6) for a in (0.5, 1, 2)]
    [0.223144, 0.510826, 1.021651]
    """
    if not alpha >= 0:
        raise ValueError(f"alpha must be at least 0, got {alpha!r}")
    a, b = _both(p, q, dim, logits)
    if alpha == 1:
        value = weighted(a.p, torch.where(a.p > 0, a.log, 0.0) - b.log).sum(dim)
        return in_base(value.clamp_min(0.0), base)
    here = a.p > 0
    log_p = torch.where(here, a.log, 0.0)
    if math.isinf(alpha):
        value = torch.where(here, log_p - b.log, -math.inf).amax(dim)
    else:
        terms = torch.where(here, alpha * log_p + (1 - alpha) * b.log, -math.inf)
        value = torch.logsumexp(terms, dim) / (alpha - 1)
    return in_base(value, base)


def _both(p: Tensor, q: Tensor, dim: int, logits: bool) -> tuple[Pmf, Pmf]:
    a, b = pmfs(p, q, dim, logits=logits)
    first, second = torch.broadcast_tensors(a.p, b.p)
    return Pmf(first, a.log.expand(first.shape)), Pmf(second, b.log.expand(first.shape))


def _root(x: Tensor) -> Tensor:
    """Square root with gradient 0 at 0."""
    some = x != 0
    return torch.where(some, torch.where(some, x, 1.0).sqrt(), 0.0)
