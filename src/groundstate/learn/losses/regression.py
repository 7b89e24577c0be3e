r"""Losses of real outcomes: squared, absolute, Huber, quantile.

A constant prediction that minimises them is the mean, the median, something between, the quantile.
"""

from __future__ import annotations

from torch import Tensor

from groundstate.learn.base import Reduction
from groundstate.learn.losses.contract import outputs, reduce, summed


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
    >>> import torch
    >>> squared(torch.tensor([1.0, 2.0, 3.0]), torch.tensor([1.0, 0.0, 7.0]), reduction="sum")
    tensor(20.)
    """
    return reduce(squared_rows(pred, outputs(pred, y, "squared")), sample_weight, reduction)


def squared_rows(pred: Tensor, y: Tensor) -> Tensor:
    return 2 * summed("squared_error", pred, y)


def absolute(
    pred: Tensor, y: Tensor, sample_weight: Tensor | None = None, reduction: Reduction = "mean"
) -> Tensor:
    r""":math:`\ell = \|\hat y - y\|_1`; least for the median.

    Parameters
    ----------
    pred, y, sample_weight, reduction : see ``squared``

    Examples
    --------
    >>> import torch
    >>> absolute(torch.tensor([1.0, 2.0, 3.0]), torch.tensor([1.0, 0.0, 7.0]), reduction="sum")
    tensor(6.)
    """
    rows = summed("absolute_error", pred, outputs(pred, y, "absolute"))
    return reduce(rows, sample_weight, reduction)


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
    >>> import torch
    >>> huber(torch.tensor([0.5, 3.0]), torch.zeros(2), reduction="none")
    tensor([0.1250, 2.5000])
    """
    rows = summed("huber", pred, outputs(pred, y, "huber"), delta=delta)
    return reduce(rows, sample_weight, reduction)


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
    >>> import torch
    >>> quantile(torch.tensor([0.0, 0.0]), torch.tensor([1.0, -1.0]), reduction="none", q=0.9)
    tensor([0.9000, 0.1000])
    """
    rows = summed("quantile", pred, outputs(pred, y, "quantile"), q=q)
    return reduce(rows, sample_weight, reduction)
