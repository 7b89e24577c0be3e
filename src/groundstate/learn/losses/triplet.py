r"""Triplets: an anchor should be nearer to its like than to anything else, by a margin."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional

from groundstate.errors import DataError, ShapeError
from groundstate.learn.base import Reduction
from groundstate.learn.losses.contract import reduce

Mine = Literal["all", "hard", "semihard"]
MINERS = ("all", "hard", "semihard")


def triplet(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    sample_weight: Tensor | None = None,
    reduction: Reduction = "mean",
    *,
    margin: float = 1.0,
    p: float = 2.0,
    squared: bool = False,
) -> Tensor:
    r""":math:`\ell = \max(0,\, d(A, P) - d(A, N) + m)`: zero once the margin is met.

    Parameters
    ----------
    anchor, positive, negative : embeddings, ``(B, D)``
    sample_weight : ``(B,)``
    reduction : "mean", "sum" or "none"
    margin : m
    p : of the norm :math:`d = \|\cdot\|_p`, at least 1
    squared : d is the square of the distance, else the distance itself

    Examples
    --------
    >>> a, p, n = torch.zeros(1, 2), torch.tensor([[1.0, 0.0]]), torch.tensor([[1.0, 1.0]])
    >>> triplet(a, p, n, margin=2.0, squared=True), triplet(a, p, n, margin=2.0)
    (tensor(1.), tensor(1.5858))
    """
    if not anchor.shape == positive.shape == negative.shape or anchor.ndim != 2:
        raise ShapeError(
            f"triplet needs three tables (B, D) of one shape, got {tuple(anchor.shape)}, "
            f"{tuple(positive.shape)} and {tuple(negative.shape)}"
        )
    near = _distance(anchor - positive, squared, p)
    far = _distance(anchor - negative, squared, p)
    return reduce(functional.relu(near - far + _margin(margin)), sample_weight, reduction)


def _margin(margin: float) -> float:
    if not margin > 0:
        raise ValueError(f"the margin must be positive, got {margin}")
    return margin


def _distance(gap: Tensor, squared: bool, p: float = 2.0) -> Tensor:
    if p != 2:
        if not p >= 1:
            raise ValueError(f"p is the order of a norm, at least 1, got {p}")
        d = torch.linalg.vector_norm(gap, p, -1)
        return d.square() if squared else d
    d2 = gap.square().sum(-1)
    if squared:
        return d2
    # the root has no slope at 0; there the distance counts as flat
    zero = d2 == 0
    return torch.where(zero, 0.0, torch.where(zero, 1.0, d2).sqrt())


def mine_triplets(
    embedding: Tensor,
    y: Tensor,
    mine: Mine = "hard",
    *,
    margin: float = 1.0,
    squared: bool = False,
) -> Tensor:
    """Rows (anchor, positive, negative) of a batch to learn from, ``(T, 3)``.

    Parameters
    ----------
    embedding : ``(B, D)``
    y : labels ``(B,)``
    mine : "all" valid triplets; "hard": the farthest positive and the nearest negative of every
        anchor; "semihard": for every pair the nearest negative that is farther than the positive
        but within the margin, where there is one
    margin, squared : see ``triplet``

    Examples
    --------
    >>> h = torch.tensor([[0.0], [1.0], [1.5], [9.0]])
    >>> mine_triplets(h, torch.tensor([0, 0, 1, 1]), "hard").tolist()
    [[0, 1, 2], [1, 0, 2], [2, 3, 1], [3, 2, 1]]
    """
    if mine not in MINERS:
        raise ValueError(f"mine must be 'all', 'hard' or 'semihard', got {mine!r}")
    if embedding.ndim != 2 or y.shape != embedding.shape[:1]:
        raise ShapeError(
            f"embeddings (B, D) and labels (B,) are needed, got {tuple(embedding.shape)} and "
            f"{tuple(y.shape)}"
        )
    with torch.no_grad():
        d = _distance(embedding[:, None] - embedding[None], squared)  # (B, B)
        same = y[:, None] == y[None]
        other = ~same
        positive = same & ~torch.eye(len(y), dtype=torch.bool, device=y.device)
        if mine == "hard":
            usable = positive.any(1) & other.any(1)
            far = torch.where(positive, d, -torch.inf).argmax(1)
            near = torch.where(other, d, torch.inf).argmin(1)
            rows = torch.arange(len(y), device=y.device)
            return torch.stack([rows, far, near], 1)[usable]
        if mine == "all":
            return (positive[:, :, None] & other[:, None, :]).nonzero()
        # of the sorted negatives of an anchor, the first one beyond each positive
        far, order = torch.where(other, d, torch.inf).sort(dim=1, stable=True)
        at = torch.searchsorted(far, d, right=True).clamp_(max=len(y) - 1)
        beyond = far.gather(1, at)
        fits = positive & (beyond > d) & (beyond < d + _margin(margin))
        pairs = fits.nonzero()  # (T, 2)
        nearest = order.gather(1, at)[pairs[:, 0], pairs[:, 1]]
        return torch.cat([pairs, nearest[:, None]], 1)


def triplet_batch(
    embedding: Tensor,
    y: Tensor,
    sample_weight: Tensor | None = None,
    reduction: Reduction = "mean",
    *,
    mine: Mine = "hard",
    margin: float = 1.0,
    squared: bool = False,
) -> Tensor:
    r"""The triplet loss of mined triplets of a labelled batch; the weight is the anchor's.

    Parameters
    ----------
    embedding : ``(B, D)``
    y : labels ``(B,)``
    sample_weight, reduction, margin, squared : see ``triplet``
    mine : see ``mine_triplets``

    Examples
    --------
    >>> h = torch.tensor([[0.0], [1.0], [1.5], [9.0]])
    >>> triplet_batch(h, torch.tensor([0, 0, 1, 1]), reduction="none")
    tensor([0.5000, 1.5000, 8.0000, 0.5000])
    """
    rows = mine_triplets(embedding, y, mine, margin=margin, squared=squared)
    if not len(rows):
        raise DataError(
            f"the batch holds no {mine} triplet: it needs two rows of one label and one of another"
            + (" within the margin" if mine == "semihard" else "")
        )
    a, p, n = (embedding[rows[:, i]] for i in range(3))
    weight = None if sample_weight is None else sample_weight[rows[:, 0]]
    return triplet(a, p, n, weight, reduction, margin=margin, squared=squared)
