r"""Divergences of coins: how far one share is from another, and how far it may be.

.. math:: \mathrm{kl}(p, q) = p\log\frac pq + (1-p)\log\frac{1-p}{1-q}
"""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor

from groundstate.math.arrays import takes_arrays

_STEPS = 80  # Newton needs under ten; the bisection guard ends any case


@takes_arrays("p", "q")
def kl_bernoulli(p: Any, q: Any) -> Any:
    r""":math:`\mathrm{kl}(p,q) = p\log\frac pq + (1-p)\log\frac{1-p}{1-q}` in nats, elementwise.

    Zero where p = q, infinite where q excludes what p allows, never NaN.

    Parameters
    ----------
    p, q : shares in [0, 1]

    Examples
    --------
    >>> round(kl_bernoulli(0.1, 0.2), 6), kl_bernoulli(0.0, 0.0), kl_bernoulli(0.5, 1.0)
    (0.03669, 0.0, inf)
    """
    _check(p, "p")
    _check(q, "q")
    return _kl(p, q)


@takes_arrays("p", "c", finite=False)
def kl_bernoulli_inv(p: Any, c: Any, side: Literal["upper", "lower"] = "upper") -> Any:
    r"""The largest (or smallest) q with :math:`\mathrm{kl}(p, q) \le c`.

    Newton's method, kept inside a bracket by bisection; differentiable in p and c by the implicit
    function theorem, :math:`dq = (dc - \partial_p\mathrm{kl}\,dp)/\partial_q\mathrm{kl}`.

    Parameters
    ----------
    p : shares in [0, 1]
    c : non-negative
    side : ``"upper"`` for :math:`q \ge p`, ``"lower"`` for :math:`q \le p`

    Examples
    --------
    >>> round(kl_bernoulli_inv(0.1, 0.0149045), 6)
    0.159576
    """
    if side not in ("upper", "lower"):
        raise ValueError(f"side must be 'upper' or 'lower', got {side!r}")
    _check(p, "p")
    if not bool((c.detach() >= 0).all()):
        raise ValueError("c must be non-negative: it is the divergence allowed")
    p, c = torch.broadcast_tensors(p, c)
    return _upper(p, c) if side == "upper" else 1 - _upper(1 - p, c)


def _kl(p: Tensor, q: Tensor) -> Tensor:
    def part(a: Tensor, b: Tensor) -> Tensor:
        some = a > 0
        safe = torch.where(some, a, torch.ones_like(a))
        return torch.where(some, -safe * torch.log1p((b - safe) / safe), torch.zeros_like(a))

    p, q = torch.broadcast_tensors(p, q)
    return (part(p, q) + part(1 - p, 1 - q)).clamp_min(0)


def _upper(p: Tensor, c: Tensor) -> Tensor:
    with torch.no_grad():
        low, high = p.clone(), (p + (c / 2).sqrt()).clamp_max(1)  # Pinsker holds the root
        q = 0.5 * (low + high)
        for _ in range(_STEPS):
            gap = _kl(p, q) - c
            high, low = torch.where(gap > 0, q, high), torch.where(gap > 0, low, q)
            step = q - gap * q * (1 - q) / (q - p)
            inside = (step > low) & (step < high)
            new = torch.where(inside, step, 0.5 * (low + high))
            if torch.equal(new, q):
                break
            q = new
        edge = (c == 0) | (p == 1)
        q = torch.where(c.isinf(), torch.ones_like(q), torch.where(edge, p, q))
    if not (p.requires_grad or c.requires_grad):
        return q
    slope = (q - p.detach()) / (q * (1 - q))
    flat = ~(slope.isfinite() & (slope > 0))
    step = (_kl(p, q) - c) / torch.where(flat, torch.ones_like(slope), slope)
    return torch.where(flat, p, q - step)  # a last step, whose gradient is the implicit one


def _check(p: Tensor, name: str) -> None:
    if not bool(((p.detach() >= 0) & (p.detach() <= 1)).all()):
        raise ValueError(f"{name} must be shares between 0 and 1")
