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

    Examples
    --------
    >>> mask = torch.tensor([[[1.0, 1.0, 0.0, 0.0]]])
    >>> dice(mask, mask.flip(-1)), dice(mask, mask).round(decimals=4)
    (tensor(1.), tensor(0.))
    """
    p, target = _masks(pred, y, "dice")
    return reduce(dice_rows(p, target), sample_weight, reduction)


def dice_rows(p: Tensor, y: Tensor) -> Tensor:
    both = (p * y).sum(2)  # (N, C)
    return (1 - 2 * both / (p.square().sum(2) + y.square().sum(2) + EPS)).mean(1)


def jaccard(
    pred: Tensor,
    y: Tensor,
    sample_weight: Tensor | None = None,
    reduction: Reduction = "mean",
) -> Tensor:
    r""":math:`\ell = 1 - \langle p, y\rangle/(\|p\|^2 + \|y\|^2 - \langle p, y\rangle +
    \varepsilon)`: one minus intersection over union.

    With J the score, :math:`\mathrm{Dice} = 2J/(1 + J)`.

    Parameters
    ----------
    pred, y, sample_weight, reduction : see ``dice``

    Examples
    --------
    >>> a = torch.tensor([[[1.0, 1.0, 0.0]]])
    >>> jaccard(a, torch.tensor([[[0.0, 1.0, 1.0]]]))
    tensor(0.6667)
    """
    p, target = _masks(pred, y, "jaccard")
    both = (p * target).sum(2)
    union = p.square().sum(2) + target.square().sum(2) - both + EPS
    return reduce((1 - both / union).mean(1), sample_weight, reduction)


def _masks(pred: Tensor, y: Tensor, name: str) -> tuple[Tensor, Tensor]:
    """Two tables of masks ``(N, C, positions)``."""
    y = torch.as_tensor(y, device=pred.device)
    if pred.ndim < 2:
        raise ShapeError(f"{name} needs masks (N, C, ...), got shape {tuple(pred.shape)}")
    if y.shape != pred.shape:
        _, flat = labels(pred, y, name)
        hot = functional.one_hot(flat, pred.shape[1]).to(pred.dtype)
        y = hot.view(*y.shape, pred.shape[1]).movedim(-1, 1)
    y = binary(pred, y, name)
    shape = (pred.shape[0], pred.shape[1], -1)
    return pred.reshape(shape), y.reshape(shape)


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
    p = torch.sigmoid(s)
    loss = _power(p + y - 2 * p * y, gamma) * ce  # 1 − p_t
    return loss if alpha is None else loss * (alpha * y + (1 - alpha) * (1 - y))


def _power(base: Tensor, gamma: float) -> Tensor:
    return torch.ones_like(base) if gamma == 0 else base**gamma
