r"""Contrast by similarity: a row should be nearer to its other view than to all the other rows.

All of them are cross-entropies of a table of similarities :math:`s_{ij} = q_i^\top k_j/\tau`,

.. math:: \ell_i = -\frac1{|P_i|}\sum_{p \in P_i}s_{ip} + \log\sum_{j \ne i}e^{s_{ij}},

the rule ``InBatch`` with the energy :math:`e = -\mathrm{sim}/\tau`. The table is never kept: a block of
its rows at a time is made, in the forward and again in the backward pass.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from groundstate.compute.reduce import gather_with_gradient
from groundstate.errors import DataError, ShapeError
from groundstate.learn.base import Reduction
from groundstate.learn.losses.contract import reduce
from groundstate.learn.losses.similarities import Contrast, Unit, Views

_DEEPEST = {torch.float32: 80, torch.float64: 700}  # powers whose exponential is not zero


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
    rows = len(z1)
    views = _unit(torch.cat((z1, z2)), _root(temperature))
    if not gather and rows > 1 and 2 / temperature < _DEEPEST[views.dtype]:  # no underflow
        loss = Views.apply(views, 1 / temperature, block)
    else:
        every, first = views.view(2, rows, -1).transpose(0, 1), 0
        if gather:
            every, first = gather_with_gradient(every.contiguous())
        n = len(every)
        if n < 2:
            raise DataError("nt_xent contrasts rows with each other: it needs at least two of them")
        keys = every.transpose(0, 1).reshape(2 * n, -1)
        own = torch.arange(first, first + rows, device=z1.device)
        itself, other = torch.cat((own, own + n)), torch.cat((own + n, own))
        loss = Contrast.apply(views, keys, other, None, itself, block)
    if sample_weight is None and reduction == "mean":
        return loss.mean()
    return reduce(0.5 * (loss[:rows] + loss[rows:]), sample_weight, reduction)


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
    loss: Tensor = Contrast.apply(q, keys, own, None, None, block)
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
    loss = Contrast.apply(unit, unit, None, index, itself, block)
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
    unit: Tensor = Unit.apply(wide, scale)
    return unit


def _scaled(z: Tensor | None, like: Tensor, scale: float) -> Tensor | None:
    if z is None:
        return None
    if z.ndim != 2 or z.shape[1] != like.shape[1]:
        raise ShapeError(f"negatives are (M, {like.shape[1]}) like the keys, got {tuple(z.shape)}")
    return _unit(z, scale)
