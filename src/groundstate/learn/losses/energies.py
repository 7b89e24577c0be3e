r"""Losses on tables of energies, one column a value: the target against the best of the others."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from groundstate.learn.base import Reduction, reduced


def in_float(e: Tensor) -> Tensor:
    """Half-precision energies as float32: sums of exponentials are never taken in less."""
    return e.float() if e.dtype in (torch.float16, torch.bfloat16) else e


def margin_loss(
    e: Tensor,
    y: Tensor,
    m: float = 1.0,
    cost: Tensor | None = None,
    T: float = 0.0,
    reduction: Reduction = "mean",
) -> Tensor:
    r""":math:`L = \max_k\,[m\,\Delta(y,k) + e_y - e_k]` on a table of energies.

    With the default :math:`\Delta = 1(k \ne y)` this is
    :math:`\max(0, m + e_y - e_{\text{best wrong}})`. ``T`` > 0 replaces the maximum by
    :math:`T\log\sum\exp(\cdot/T)`.

    Parameters
    ----------
    e : Tensor, ``(B, K)``
        Energies, low is good.
    y : Tensor, ``(B,)`` int64
        Targets; −1 marks a missing one, whose loss is 0.
    m : float > 0
        The margin.
    cost : Tensor, ``(K, K)`` or ``(B, K)``, optional
        :math:`\Delta(y, k) \ge 0`: rows by target, or already one row of costs per row.
    T : float, default=0
    reduction : {"mean", "sum", "none"}

    Examples
    --------
    >>> e = torch.tensor([[1.0, 2.0, 3.0]]).repeat(3, 1)
    >>> margin_loss(e, torch.arange(3), reduction="none")
    tensor([0., 2., 3.])
    """
    return reduced(margin_rows(e, y, check_margin(m), cost, T), reduction)


def margin_rows(e: Tensor, y: Tensor, m: float, cost: Tensor | None, T: float) -> Tensor:
    """`margin_loss` of every row."""
    e = in_float(e)
    at = y.clamp(min=0)[:, None]
    target = e.gather(1, at)[:, 0]
    if cost is not None and cost.shape[0] != e.shape[0]:
        cost = cost[at[:, 0]]  # (B, K)
    if T > 0:
        delta = torch.full_like(e, m).scatter(1, at, 0.0) if cost is None else m * cost
        loss = target + T * torch.logsumexp((delta - e) / T, 1)
    else:
        wrong = (e if cost is None else e - m * cost).scatter(1, at, torch.inf).min(1).values
        # relu, not clamp: the subgradient at the kink is 0.
        loss = functional.relu(target - wrong + (m if cost is None else 0.0))
    return loss.masked_fill(y < 0, 0.0)


def check_margin(m: float) -> float:
    if not m > 0:
        raise ValueError(f"the margin must be positive, got m={m}")
    return float(m)


def perceptron_loss(e: Tensor, y: Tensor, reduction: Reduction = "mean") -> Tensor:
    r""":math:`L = e_y - \min_k e_k \ge 0` on a table of energies.

    Parameters
    ----------
    e : Tensor, ``(B, K)``
        Energies, low is good.
    y : Tensor, ``(B,)`` int64
        Targets; −1 marks a missing one, whose loss is 0.
    reduction : {"mean", "sum", "none"}

    Examples
    --------
    >>> e = torch.tensor([[1.0, 2.0, 3.0]]).repeat(3, 1)
    >>> perceptron_loss(e, torch.arange(3), reduction="none")
    tensor([0., 1., 2.])
    """
    return reduced(perceptron_rows(e, y), reduction)


def perceptron_rows(e: Tensor, y: Tensor) -> Tensor:
    """`perceptron_loss` of every row."""
    # min(dim) sends the gradient to one winner, the lowest index; amin would share it among ties.
    best = e.min(1).values
    return (e.gather(1, y.clamp(min=0)[:, None])[:, 0] - best).masked_fill(y < 0, 0.0)
