r"""Losses for rare classes and segmentation: Dice, Jaccard, focal."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from groundstate.errors import ShapeError
from groundstate.learn.base import Reduction
from groundstate.learn.losses.contract import binary, labels, per_example, reduce

EPS = 1e-8


def dice(
    pred: Tensor,
    y: Tensor,
    sample_weight: Tensor | None = None,
    reduction: Reduction = "mean",
    *,
    squared_pred: bool = True,
    ignore_index: int | None = None,
) -> Tensor:
    r""":math:`\ell = 1 - 2\langle p, y\rangle/(\|p\|^2 + \|y\|^2 + \varepsilon)`, per class over
    positions, then the mean over classes.

    On sets it is :math:`1 - 2TP/(2TP + FP + FN)`: 0 for equal masks, 1 for disjoint ones.

    Parameters
    ----------
    pred : probabilities ``(N, C, ...)`` (or any masks in [0, 1])
    y : masks in the same shape, or labels ``(N, ...)`` that are turned into one mask per class
    sample_weight : ``(N,)``
    reduction : "mean", "sum" or "none"
    squared_pred : False divides by :math:`\sum p + \sum y + \varepsilon` instead
    ignore_index : a label of y whose positions do not count

    Examples
    --------
    >>> mask = torch.tensor([[[1.0, 1.0, 0.0, 0.0]]])
    >>> dice(mask, mask.flip(-1)), dice(mask, mask).round(decimals=4)
    (tensor(1.), tensor(0.))
    """
    p, target = _masks(pred, y, "dice", ignore_index)
    return reduce(dice_rows(p, target, squared_pred=squared_pred), sample_weight, reduction)


def dice_rows(p: Tensor, y: Tensor, *, squared_pred: bool = True) -> Tensor:
    both = (p * y).sum(2)  # (N, C)
    sizes = p.square().sum(2) + y.square().sum(2) if squared_pred else p.sum(2) + y.sum(2)
    return (1 - 2 * both / (sizes + EPS)).mean(1)


def jaccard(
    pred: Tensor,
    y: Tensor,
    sample_weight: Tensor | None = None,
    reduction: Reduction = "mean",
    *,
    ignore_index: int | None = None,
) -> Tensor:
    r""":math:`\ell = 1 - \langle p, y\rangle/(\|p\|^2 + \|y\|^2 - \langle p, y\rangle +
    \varepsilon)`: one minus intersection over union.

    With J the score, :math:`\mathrm{Dice} = 2J/(1 + J)`.

    Parameters
    ----------
    pred, y, sample_weight, reduction, ignore_index : see ``dice``

    Examples
    --------
    >>> a = torch.tensor([[[1.0, 1.0, 0.0]]])
    >>> jaccard(a, torch.tensor([[[0.0, 1.0, 1.0]]]))
    tensor(0.6667)
    """
    p, target = _masks(pred, y, "jaccard", ignore_index)
    both = (p * target).sum(2)
    union = p.square().sum(2) + target.square().sum(2) - both + EPS
    return reduce((1 - both / union).mean(1), sample_weight, reduction)


def _masks(pred: Tensor, y: Tensor, name: str, ignore_index: int | None) -> tuple[Tensor, Tensor]:
    """Two tables of masks ``(N, C, positions)``, both 0 at ignored positions."""
    y = torch.as_tensor(y, device=pred.device)
    if pred.ndim < 2:
        raise ShapeError(f"{name} needs masks (N, C, ...), got shape {tuple(pred.shape)}")
    shape = (pred.shape[0], pred.shape[1], -1)
    if y.shape == pred.shape:
        if ignore_index is not None:
            raise ShapeError(
                f"ignore_index={ignore_index} is a label, but {name} got one mask per class, "
                f"{tuple(y.shape)}; give labels (N, ...), or 0 in both masks where nothing counts"
            )
        return pred.reshape(shape), binary(pred, y, name).reshape(shape)
    labels(pred, y, name, ignore_index)
    p, target = pred.reshape(shape), y.reshape(len(y), -1).long()
    if ignore_index is not None:
        counts = target != ignore_index
        p, target = torch.where(counts[:, None], p, 0.0), torch.where(counts, target, p.shape[1])
    hot = functional.one_hot(target, p.shape[1] + 1)[..., :-1]
    return p, hot.movedim(-1, 1).to(p.dtype)


def focal(
    pred: Tensor,
    y: Tensor,
    sample_weight: Tensor | None = None,
    reduction: Reduction = "mean",
    *,
    gamma: float = 2.0,
    alpha: float | Tensor | None = None,
) -> Tensor:
    r""":math:`\ell = -\alpha_t(1 - p_t)^\gamma\log p_t`: cross-entropy that looks away from easy rows.

    :math:`\gamma = 0` is the cross-entropy.

    Parameters
    ----------
    pred : scores ``(N, C, ...)`` with labels, or logits in the shape of binary targets
    y : labels ``(N, ...)``, or 0 and 1 in the shape of ``pred``
    sample_weight, reduction : see ``dice``
    gamma : at least 0
    alpha : weight of the class: a number for ones (zeros get :math:`1 - \alpha`), or ``(C,)``

    Examples
    --------
    >>> s = torch.tensor([2.1972246])  # p = 0.9
    >>> focal(s, torch.ones(1))
    tensor(0.0011)
    """
    if not gamma >= 0:
        raise ValueError(f"gamma must be at least 0, got {gamma}")
    y = torch.as_tensor(y, device=pred.device)
    if y.shape == pred.shape:
        target = binary(pred, y, "focal")
        return reduce(per_example(_binary(pred, target, gamma, alpha)), sample_weight, reduction)
    s, flat = labels(pred, y, "focal")
    return reduce(focal_rows(s, flat, gamma, alpha).view(y.shape), sample_weight, reduction)


def focal_rows(
    s: Tensor, y: Tensor, gamma: float = 2.0, alpha: float | Tensor | None = None
) -> Tensor:
    ce = functional.cross_entropy(s, y, reduction="none")
    loss = _power(-torch.expm1(-ce), gamma) * ce
    if alpha is None:
        return loss
    weight = torch.as_tensor(alpha, dtype=s.dtype, device=s.device)
    return loss * (weight[y] if weight.ndim else weight)


def _binary(s: Tensor, y: Tensor, gamma: float, alpha: float | Tensor | None) -> Tensor:
    ce = functional.binary_cross_entropy_with_logits(s, y, reduction="none")
    missed = y * torch.sigmoid(-s) + (1 - y) * torch.sigmoid(s)  # 1 − p_t without its rounding
    loss = _power(missed, gamma) * ce
    return loss if alpha is None else loss * (alpha * y + (1 - alpha) * (1 - y))


def _power(base: Tensor, gamma: float) -> Tensor:
    if gamma == 0:
        return torch.ones_like(base)
    if gamma < 1:  # the slope of a root at 0 is infinite, and infinity times a loss of 0 is NaN
        base = base.clamp_min(torch.finfo(base.dtype).tiny)
    return base**gamma
