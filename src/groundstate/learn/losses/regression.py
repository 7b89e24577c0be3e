r"""Losses of real outcomes: squared, absolute, Huber, quantile.

A constant prediction that minimises them is the mean, the median, something between, the quantile.
"""

from __future__ import annotations

import torch
from torch import Tensor

from groundstate.learn.base import Reduction
from groundstate.learn.losses.contract import outputs, per_example, reduce


def squared(
    pred: Tensor, y: Tensor, sample_weight: Tensor | None = None, reduction: Reduction = "mean"
) -> Tensor:
    r""":math:`\ell = \|\hat y - y\|^2`, without ½ and without root; least for the mean.

    Parameters
    ----------
    pred, y : ``(B,)`` or ``(B, m)``; the outputs of a row add
    sample_weight : ``(B,)``
    reduction : "mean", "sum" or "none"

    Examples
    --------
    >>> squared(torch.tensor([1.0, 2.0, 3.0]), torch.tensor([1.0, 0.0, 7.0]), reduction="sum")
    tensor(20.)
    """
    return reduce(squared_rows(pred, outputs(pred, y, "squared")), sample_weight, reduction)


def squared_rows(pred: Tensor, y: Tensor) -> Tensor:
    return per_example((pred - y).square())


def absolute(
    pred: Tensor, y: Tensor, sample_weight: Tensor | None = None, reduction: Reduction = "mean"
) -> Tensor:
    r""":math:`\ell = \|\hat y - y\|_1`; least for the median.

    Parameters
    ----------
    pred, y, sample_weight, reduction : see ``squared``

    Examples
    --------
    >>> absolute(torch.tensor([1.0, 2.0, 3.0]), torch.tensor([1.0, 0.0, 7.0]), reduction="sum")
    tensor(6.)
    """
    return reduce(absolute_rows(pred, outputs(pred, y, "absolute")), sample_weight, reduction)


def absolute_rows(pred: Tensor, y: Tensor) -> Tensor:
    return per_example((pred - y).abs())


def huber(
    pred: Tensor,
    y: Tensor,
    sample_weight: Tensor | None = None,
    reduction: Reduction = "mean",
    *,
    delta: float = 1.0,
) -> Tensor:
    r""":math:`\ell = \tfrac12r^2` where :math:`|r| \le \delta`, else
    :math:`\delta(|r| - \tfrac12\delta)`, with :math:`r = \hat y - y`.

    Parameters
    ----------
    pred, y, sample_weight, reduction : see ``squared``
    delta : residuals beyond it count linearly

    Examples
    --------
    >>> huber(torch.tensor([0.5, 3.0]), torch.zeros(2), reduction="none")
    tensor([0.1250, 2.5000])
    """
    if not delta > 0:
        raise ValueError(f"delta must be positive, got {delta}")
    y = outputs(pred, y, "huber")
    return reduce(huber_rows(pred, y, delta), sample_weight, reduction)


def huber_rows(pred: Tensor, y: Tensor, delta: float = 1.0) -> Tensor:
    return per_example(torch.nn.functional.huber_loss(pred, y, reduction="none", delta=delta))


def quantile(
    pred: Tensor,
    y: Tensor,
    sample_weight: Tensor | None = None,
    reduction: Reduction = "mean",
    *,
    q: float = 0.5,
) -> Tensor:
    r""":math:`\ell = \max(q(y - \hat y),\,(q - 1)(y - \hat y))`; least for the q-quantile.

    Parameters
    ----------
    pred, y, sample_weight, reduction : see ``squared``
    q : in (0, 1); one half is half of ``absolute``

    Examples
    --------
    >>> quantile(torch.tensor([0.0, 0.0]), torch.tensor([1.0, -1.0]), reduction="none", q=0.9)
    tensor([0.9000, 0.1000])
    """
    y = outputs(pred, y, "quantile")
    return reduce(quantile_rows(pred, y, check_share(q)), sample_weight, reduction)


def quantile_rows(pred: Tensor, y: Tensor, q: float = 0.5) -> Tensor:
    gap = y - pred
    return per_example(torch.maximum(q * gap, (q - 1) * gap))


def check_share(q: float) -> float:
    if not 0 < q < 1:
        raise ValueError(f"q must lie in (0, 1), got {q}; 0.9 is the 90 % quantile")
    return q


__all__ = ["absolute", "huber", "quantile", "squared"]
