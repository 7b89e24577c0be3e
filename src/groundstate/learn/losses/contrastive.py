r"""Contrast by similarity: a row should be nearer to its other view than to all the other rows.

All of them are cross-entropies of a table of similarities :math:`s_{ij} = q_i^\top k_j/\tau`,

.. math:: \ell_i = -\frac1{|P_i|}\sum_{p \in P_i}s_{ip} + \log\sum_{j \ne i}e^{s_{ij}},

the rule ``InBatch`` with the energy :math:`e = -\mathrm{sim}/\tau`. The table is never kept: a block of
its rows at a time is made, in the forward and again in the backward pass.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from groundstate.compute.reduce import gather_with_gradient
from groundstate.errors import DataError, ShapeError
from groundstate.learn.base import Reduction
from groundstate.learn.losses.contract import reduce

CELLS = 2**24  # similarities of one block, 64 MiB in float32
TILE = 2**12  # side of a square block


def nt_xent(
    z1: Tensor,
    z2: Tensor,
    sample_weight: Tensor | None = None,
    reduction: Reduction = "mean",
    *,
    temperature: float = 0.5,
    block: int | None = None,
    gather: bool = False,
) -> Tensor:
    r""":math:`\ell_i = -\log\frac{\exp(\cos(z_i, z_{p(i)})/\tau)}{\sum_{j \ne i}\exp(\cos(z_i, z_j)/\tau)}`
    over the 2N views of N rows, the loss of SimCLR: the other view of a row among all others.

    Memory is that of a few tiles of the table of similarities, not :math:`(2N)^2`.

    Parameters
    ----------
    z1, z2 : embeddings of the two views, ``(N, D)``; their lengths do not matter
    sample_weight : of the rows, ``(N,)``
    reduction : "mean" is that over the 2N views; "none" gives each row the mean of its two views, ``(N,)``
    temperature : τ
    block : side of a tile of the table, or under ``gather`` views that are compared with all others at
        once; None is what fits 64 MiB, on a GPU 256 MiB
    gather : under ``torch.distributed``, hold the own views against those of all processes; each one has
        the loss of its own rows, and gradients flow back to the others

    Examples
    --------
    >>> a = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    >>> round(nt_xent(a, a, temperature=1.0).item(), 6), round(nt_xent(3 * a, a).item(), 6)
    (0.551445, 0.239545)
    """
    _alike(z1, z2, "nt_xent")
    scale = _root(temperature)
    a, b = (_unit(z, scale) for z in (z1, z2))
    every, first = gather_with_gradient(torch.stack((a, b), 1)) if gather else (None, 0)
    n = len(z1) if every is None else len(every)
    if n < 2:
        raise DataError("nt_xent contrasts rows with each other: it needs at least two of them")
    keys = torch.cat((a, b)) if every is None else every.transpose(0, 1).reshape(2 * n, -1)
    own = torch.arange(first, first + len(z1), device=z1.device)
    itself = torch.cat((own, own + n))
    other = torch.cat((own + n, own))
    if every is None and 2 / temperature < (
        80 if a.dtype == torch.float32 else 700
    ):  # no underflow
        loss = _Views.apply(keys, 1 / temperature, block)
    else:
        loss = _Contrast.apply(torch.cat((a, b)), keys, other, None, itself, block)
    return reduce(0.5 * (loss[: len(z1)] + loss[len(z1) :]), sample_weight, reduction)


def info_nce(
    query: Tensor,
    key: Tensor,
    sample_weight: Tensor | None = None,
    reduction: Reduction = "mean",
    *,
    negatives: Tensor | None = None,
    temperature: float = 0.1,
    symmetric: bool = False,
    block: int | None = None,
    gather: bool = False,
) -> Tensor:
    r""":math:`\ell_i = -\log\frac{\exp(\cos(q_i, k_i)/\tau)}{\sum_j\exp(\cos(q_i, k_j)/\tau)}`: each query
    finds its own key among those of all rows.

    Parameters
    ----------
    query, key : pairs, ``(N, D)``
    sample_weight, reduction : of the rows
    negatives : further keys that belong to nobody, ``(M, D)``
    temperature : τ
    symmetric : the mean with that of keys which find their query
    block, gather : see ``nt_xent``

    Examples
    --------
    >>> a = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    >>> info_nce(a, a, temperature=1.0)  # log(1 + exp(-1))
    tensor(0.3133)
    """
    _alike(query, key, "info_nce")
    if symmetric and negatives is not None:
        raise ValueError("negatives are keys, which find no query; use symmetric=False with them")
    scale = _root(temperature)
    q, k = (_unit(z, scale) for z in (query, key))
    loss = pairs(q, k, negatives=_scaled(negatives, q, scale), block=block, gather=gather)
    if symmetric:
        loss = 0.5 * (loss + pairs(k, q, block=block, gather=gather))
    return reduce(loss, sample_weight, reduction)


def pairs(
    q: Tensor,
    k: Tensor,
    *,
    negatives: Tensor | None = None,
    block: int | None = None,
    gather: bool = False,
) -> Tensor:
    r""":math:`-q_i^\top k_i + \log\sum_je^{q_i^\top k_j}` of each row, ``(N,)``, as the embeddings are.

    >>> a = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    >>> pairs(a, a)
    tensor([0.3133, 0.3133])
    """
    keys, first = gather_with_gradient(k) if gather else (k, 0)
    if negatives is not None:
        keys = torch.cat((keys, negatives))
    own = torch.arange(first, first + len(q), device=q.device)
    loss: Tensor = _Contrast.apply(q, keys, own, None, None, block)
    return loss


def supcon(
    z: Tensor,
    y: Tensor,
    sample_weight: Tensor | None = None,
    reduction: Reduction = "mean",
    *,
    temperature: float = 0.1,
    block: int | None = None,
) -> Tensor:
    r""":math:`\ell_i = -\frac1{|P_i|}\sum_{p \in P_i}\log\frac{\exp(\cos(z_i, z_p)/\tau)}
    {\sum_{j \ne i}\exp(\cos(z_i, z_j)/\tau)}`: the positives :math:`P_i` are the other rows of one's class.

    Rows that are alone with their label have no positive: the mean leaves them out.

    Parameters
    ----------
    z : embeddings, ``(B, D)``
    y : labels, ``(B,)``
    sample_weight, reduction : of the rows
    temperature : τ
    block : see ``nt_xent``

    Examples
    --------
    Two rows of each label are the two views of ``nt_xent``:

    >>> z = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
    >>> round(supcon(z, torch.tensor([0, 1, 0, 1]), temperature=1.0).item(), 6)
    0.551445
    """
    if z.ndim != 2 or y.shape != z.shape[:1]:
        raise ShapeError(
            f"supcon needs embeddings (B, D) and labels (B,), got {tuple(z.shape)} and "
            f"{tuple(y.shape)}"
        )
    _, index = torch.unique(y, return_inverse=True)
    others = torch.bincount(index)[index] - 1  # positives of each row
    if not bool((others > 0).any()):
        raise DataError("supcon needs two rows of one label, every row is alone with its own")
    unit = _unit(z, _root(temperature))
    itself = torch.arange(len(z), device=z.device)
    loss = _Contrast.apply(unit, unit, None, index, itself, block)
    has = (others > 0).to(loss.dtype)
    return reduce(loss * has, sample_weight, reduction, share=has)


def contrastive_pair(
    a: Tensor,
    b: Tensor,
    y: Tensor,
    sample_weight: Tensor | None = None,
    reduction: Reduction = "mean",
    *,
    margin: float = 1.0,
) -> Tensor:
    r""":math:`\ell = y\,d^2 + (1 - y)\,(m - d)_+^2`, :math:`d = \|a - b\|`: pairs of one kind are pulled
    together, others pushed apart up to the margin.

    Parameters
    ----------
    a, b : embeddings, ``(B, D)``
    y : ``(B,)``, 1 for pairs that belong together, else 0
    sample_weight, reduction : of the pairs
    margin : m

    Examples
    --------
    >>> a, b = torch.zeros(2, 1), torch.full((2, 1), 0.5)
    >>> contrastive_pair(a, b, torch.tensor([1, 0]), margin=2.0, reduction="none")
    tensor([0.2500, 2.2500])
    """
    _alike(a, b, "contrastive_pair", 1)
    if y.shape != a.shape[:1]:
        raise ShapeError(f"y has one entry for each of {len(a)} pairs, got {tuple(y.shape)}")
    if not margin > 0:
        raise ValueError(f"the margin must be positive, got {margin}")
    same = y.to(a.dtype)
    if not bool(((same == 0) | (same == 1)).all()):
        raise DataError("y is 1 for pairs that belong together and 0 for others")
    d2 = (a - b).square().sum(1)
    zero = d2 == 0  # the root has no slope there
    d = torch.where(zero, 0.0, torch.where(zero, 1.0, d2).sqrt())
    return reduce(
        same * d2 + (1 - same) * functional.relu(margin - d).square(), sample_weight, reduction
    )


class _Views(torch.autograd.Function):
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
        total = z.new_zeros(len(z))
        kept = None
        for rows, columns in _tiles(len(z), side):
            s = _powers(z, rows, columns, c)
            total[rows] += s.sum(1)
            if rows != columns:
                total[columns] += s.sum(0)
            kept = s if side >= len(z) else None
        ctx.c, ctx.side = c, side
        ctx.save_for_backward(z, total, kept)
        return total.log() + c - torch.cat((near, near))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        z, total, kept = ctx.saved_tensors
        n = len(z) // 2
        u = grad / total
        out = torch.zeros_like(z)
        for rows, columns in _tiles(len(z), ctx.side):
            s = _powers(z, rows, columns, ctx.c) if kept is None else kept.clone()
            s.mul_(u[rows, None] + u[columns])
            out[rows].addmm_(s, z[columns])
            if rows != columns:
                out[columns].addmm_(s.T, z[rows])
        both = (grad[:n] + grad[n:])[:, None]
        out[:n] -= both * z[n:]
        out[n:] -= both * z[:n]
        return out, None, None


def _powers(z: Tensor, rows: slice, columns: slice, c: float) -> Tensor:
    """exp(s - c) of some rows with some columns, nothing for oneself; no power is above one."""
    with torch.autocast(z.device.type, enabled=False):
        s = torch.addmm(z.new_full((1,), -c), z[rows], z[columns].T).exp_()
    return s.fill_diagonal_(0.0) if rows == columns else s


def _tiles(n: int, side: int) -> Iterator[tuple[slice, slice]]:
    """Rows and columns of the tiles of a table ``(n, n)`` on and above its diagonal."""
    spans = _spans(n, side)
    for i, rows in enumerate(spans):
        for columns in spans[i:]:
            yield rows, columns


class _Contrast(torch.autograd.Function):
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
    with torch.autocast(q.device.type, enabled=False):
        return q @ k.T


def _positives(label: Tensor, rows: slice, dtype: torch.dtype) -> Tensor:
    """Shares of the positives of some rows, each row adds up to one where it has any."""
    same = (label[rows, None] == label).to(dtype)
    same[:, rows].fill_diagonal_(0.0)
    return same.div_(same.sum(1, keepdim=True).clamp_(min=1))


def _alike(a: Tensor, b: Tensor, name: str, least: int = 0) -> None:
    if a.shape != b.shape or a.ndim != 2 or len(a) < least:
        raise ShapeError(
            f"{name} needs two tables (N, D) of one shape, got {tuple(a.shape)} and "
            f"{tuple(b.shape)}"
        )


def _root(temperature: float) -> float:
    """A factor on both sides of a product, so that the product is divided by τ."""
    if not temperature > 0:
        raise ValueError(f"the temperature must be positive, got {temperature}")
    return float(temperature**-0.5)


def _unit(z: Tensor, scale: float) -> Tensor:
    """Unit vectors times a factor; halves are taken as float32, in which sums of exponentials are kept."""
    wide = z if z.dtype in (torch.float32, torch.float64) else z.float()
    return functional.normalize(wide, dim=1) * scale


def _scaled(z: Tensor | None, like: Tensor, scale: float) -> Tensor | None:
    if z is None:
        return None
    if z.ndim != 2 or z.shape[1] != like.shape[1]:
        raise ShapeError(f"negatives are (M, {like.shape[1]}) like the keys, got {tuple(z.shape)}")
    return _unit(z, scale)
