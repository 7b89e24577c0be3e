r"""Tables of probabilities: read once, normalised once, with :math:`0\log 0 = 0`.

A table is divided by its sum, so counts are welcome; or it holds unnormalised log-weights.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor

from groundstate.errors import ShapeError


class Pmf(NamedTuple):
    """Probabilities and their logarithms along one axis; the logarithm of 0 is −inf."""

    p: Tensor
    log: Tensor


class Estimate(NamedTuple):
    """A value and its standard error; the error is 0 where the value is exact."""

    value: Tensor
    stderr: Tensor


def pmf(table: Tensor, name: str = "p", dim: int = -1, *, logits: bool = False) -> Pmf:
    """Normalise weights, or unnormalised log-weights, along ``dim``.

    >>> pmf(torch.tensor([3.0, 1.0])).p.tolist(), pmf(torch.zeros(2), logits=True).p.tolist()
    ([0.75, 0.25], [0.5, 0.5])
    """
    if table.ndim == 0 or table.shape[dim] == 0:
        raise ShapeError(
            f"{name} must hold one weight for each value, got shape {tuple(table.shape)}"
        )
    if logits:
        total = torch.logsumexp(table, dim, keepdim=True)
        if not bool(torch.isfinite(total.detach()).all()):
            raise ValueError(
                f"{name} must hold log-weights below +inf with at least one above -inf in each table"
            )
        log = table - total
        return Pmf(log.exp(), log)
    if not bool(torch.isfinite(table.detach()).all()):
        raise ValueError(f"{name} holds NaN or infinity; drop or fill these entries before calling")
    if bool((table.detach() < 0).any()):
        raise ValueError(
            f"{name} has negative entries; weights are counts or probabilities, and log-weights "
            "need logits=True"
        )
    mass = table.sum(dim, keepdim=True)
    if not bool((mass.detach() > 0).all()):
        raise ValueError(f"{name} sums to zero along axis {dim}; a distribution needs some weight")
    p = table / mass
    return Pmf(p, logarithm(p))


def pmfs(p: Tensor, q: Tensor, dim: int = -1, *, logits: bool = False) -> tuple[Pmf, Pmf]:
    """Two tables over the same values, whose other axes broadcast."""
    a, b = pmf(p, "p", dim, logits=logits), pmf(q, "q", dim, logits=logits)
    same_values(a.p, b.p, dim)
    return a, b


def same_values(p: Tensor, q: Tensor, dim: int) -> None:
    """Refuse tables of different numbers of values, which would broadcast or fail in torch."""
    if p.shape[dim] != q.shape[dim]:
        raise ShapeError(
            f"p and q must be over the same values, got {p.shape[dim]} and {q.shape[dim]} of them "
            f"along axis {dim}"
        )
    try:
        torch.broadcast_shapes(p.shape, q.shape)
    except RuntimeError:
        raise ShapeError(
            f"p {tuple(p.shape)} and q {tuple(q.shape)} have axes that do not broadcast"
        ) from None


def logarithm(p: Tensor) -> Tensor:
    """log p, −inf with gradient 0 where p is 0."""
    some = p > 0
    return torch.where(some, torch.where(some, p, 1.0).log(), -math.inf)


def weighted(p: Tensor, value: Tensor) -> Tensor:
    """p · value with 0 · (±inf) = 0, in the gradient too."""
    p, value = torch.broadcast_tensors(p, value)
    return p * torch.where(p > 0, value, 0.0)


def in_base(value: Any, base: float | None) -> Any:
    """Nats as units of another base: 2 gives bits."""
    if base is None:
        return value
    if not (base > 0 and base != 1 and math.isfinite(base)):
        raise ValueError(f"base must be positive and not 1 (2 gives bits), got {base!r}")
    return value / math.log(base)


def average(each: Tensor, base: float | None, stderr: bool) -> Tensor | Estimate:
    """Mean over draws, with its standard error where asked."""
    each = in_base(each, base)
    value = each.mean(0)
    return Estimate(value, each.std(0) / math.sqrt(len(each))) if stderr else value


def exact(value: Tensor, base: float | None, stderr: bool) -> Tensor | Estimate:
    """A value without error, with that error where asked."""
    value = in_base(value, base)
    return Estimate(value, torch.zeros_like(value)) if stderr else value
