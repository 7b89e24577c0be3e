"""Losses and gradients of tables of similarities that are never kept: a tile or a block at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

CELLS = 2**24  # similarities of one block, 64 MiB in float32
TILE = 2**12  # side of a square block
SHORTEST = 1e-12  # of a vector whose direction is asked


class Views(torch.autograd.Function):
    r"""Losses ``(2N,)`` of all views :math:`|z|^2 = c` against each other.

    The table is symmetric: tiles on and above its diagonal are made, each for the sums of its rows and of
    its columns, and the gradient is one product,
    :math:`\sum_je^{s_{ij} - c}(u_i + u_j)\,z_j` less the positives, with
    :math:`u_i = g_ie^{c - \log\sum_{j \ne i}e^{s_{ij}}}`.
    """

    @staticmethod
    def forward(ctx: Any, z: Tensor, c: float, block: int | None) -> Tensor:
        n = len(z) // 2
        side = (TILE if z.device.type == "cpu" else 2 * TILE) if block is None else block
        near = (z[:n] * z[n:]).sum(1)
        kept = None
        if side >= len(z):  # one tile alone is small enough to be kept
            kept = _powers(z, slice(len(z)), slice(len(z)), c)
            total = kept.sum(1)
        else:
            total = z.new_zeros(len(z))
            for rows, columns in _tiles(len(z), side):
                s = _powers(z, rows, columns, c)
                total[rows] += s.sum(1)
                if rows != columns:
                    total[columns] += s.sum(0)
        ctx.c, ctx.side = c, side
        ctx.save_for_backward(z, total, kept)
        return total.log().add_(c).view(2, n).sub_(near).view(-1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        z, total, kept = ctx.saved_tensors
        n = len(z) // 2
        u = grad / total
        if kept is not None:
            out = (kept * (u[:, None] + u)) @ z
        else:
            out = torch.zeros_like(z)
            for rows, columns in _tiles(len(z), ctx.side):
                s = _powers(z, rows, columns, ctx.c).mul_(u[rows, None] + u[columns])
                out[rows].addmm_(s, z[columns])
                if rows != columns:
                    out[columns].addmm_(s.T, z[rows])
        both = (grad[:n] + grad[n:])[:, None]
        out[:n].addcmul_(both, z[n:], value=-1)
        out[n:].addcmul_(both, z[:n], value=-1)
        return out, None, None


class Unit(torch.autograd.Function):
    r"""Unit vectors :math:`u = z/\|z\|` times a factor s, in one step each way:
    :math:`\partial u^\top g = s\,(g - u\,u^\top g)/\|z\|`."""

    @staticmethod
    def forward(ctx: Any, z: Tensor, scale: float) -> Tensor:
        factor = scale / torch.linalg.vector_norm(z, dim=1, keepdim=True).clamp_(min=SHORTEST)
        out = z * factor
        ctx.square = scale**2
        ctx.save_for_backward(out, factor)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        u, factor = ctx.saved_tensors
        along = (u * grad).sum(1, keepdim=True).div_(-ctx.square)
        return torch.addcmul(grad, u, along).mul_(factor), None


def _powers(z: Tensor, rows: slice, columns: slice, c: float) -> Tensor:
    """exp(s - c) of some rows with some columns, nothing for oneself; no power is above one."""
    with _wide(z):
        s = torch.addmm(z.new_full((1,), -c), z[rows], z[columns].T).exp_()
    return s.fill_diagonal_(0.0) if rows == columns else s


def _tiles(n: int, side: int) -> Iterator[tuple[slice, slice]]:
    """Rows and columns of the tiles of a table ``(n, n)`` on and above its diagonal."""
    spans = _spans(n, side)
    for i, rows in enumerate(spans):
        for columns in spans[i:]:
            yield rows, columns


class Contrast(torch.autograd.Function):
    """Losses ``(n,)`` of rows q against all keys k; blocks of the table are made twice, never kept.

    The positives are one key by its place (``at``), or all of one's own label but oneself.
    """

    @staticmethod
    def forward(
        ctx: Any,
        q: Tensor,
        k: Tensor,
        at: Tensor | None,
        label: Tensor | None,
        itself: Tensor | None,
        block: int | None,
    ) -> Tensor:
        size = max(1, CELLS // max(1, len(k))) if block is None else block
        total, loss = q.new_empty(len(q)), q.new_empty(len(q))
        kept = None
        for rows in _spans(len(q), size):
            s = _products(q[rows], k)
            if at is not None:
                wanted = s.gather(1, at[rows, None])[:, 0]
            else:
                assert label is not None
                wanted = _positives(label, rows, s.dtype).mul_(s).sum(1)
            if itself is not None:
                s.scatter_(1, itself[rows, None], -torch.inf)
            top = s.amax(1, keepdim=True)
            s.sub_(top).exp_()
            part = s.sum(1)
            total[rows] = part.log() + top[:, 0]
            loss[rows] = total[rows] - wanted
            if size >= len(q):  # one block alone is small enough to be kept
                kept = s.div_(part[:, None])
        ctx.size = size
        ctx.save_for_backward(q, k, at, label, itself, total, kept)
        return loss

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        q, k, at, label, itself, total, kept = ctx.saved_tensors
        to_q = torch.empty_like(q)
        to_k = torch.zeros_like(k)
        for rows in _spans(len(q), ctx.size):
            if kept is None:
                p = _products(q[rows], k).sub_(total[rows, None]).exp_()
                if itself is not None:
                    p.scatter_(1, itself[rows, None], 0.0)
                p.mul_(grad[rows, None])
            else:
                p = kept * grad[:, None]
            if at is not None:
                p.scatter_add_(1, at[rows, None], -grad[rows, None])
            else:
                p.sub_(_positives(label, rows, p.dtype).mul_(grad[rows, None]))
            torch.mm(p, k, out=to_q[rows])
            to_k.addmm_(p.T, q[rows])
        return to_q, to_k, None, None, None, None


def _spans(n: int, size: int) -> list[slice]:
    return [slice(i, min(i + size, n)) for i in range(0, n, size)]


def _products(q: Tensor, k: Tensor) -> Tensor:
    with _wide(q):
        return q @ k.T


def _wide(z: Tensor) -> AbstractContextManager[Any]:
    """Products in the precision of z; a context that changes nothing costs as much as a small table."""
    kind = z.device.type
    return torch.autocast(kind, enabled=False) if torch.is_autocast_enabled(kind) else nullcontext()


def _positives(label: Tensor, rows: slice, dtype: torch.dtype) -> Tensor:
    """Shares of the positives of some rows, each row adds up to one where it has any."""
    same = (label[rows, None] == label).to(dtype)
    same[:, rows].fill_diagonal_(0.0)
    return same.div_(same.sum(1, keepdim=True).clamp_(min=1))
