r"""Margins: the target's score must win by a distance; at the kink the subgradient is 0."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional

from groundstate.errors import DataError
from groundstate.learn.base import Reduction
from groundstate.learn.losses.contract import labels, outputs, reduce, summed
from groundstate.learn.losses.energies import margin_loss, perceptron_loss


def hinge(
    pred: Tensor, y: Tensor, sample_weight: Tensor | None = None, reduction: Reduction = "mean"
) -> Tensor:
    r""":math:`\ell = \max(0, 1 - ys)` with labels :math:`y = \pm1`.

    Parameters
    ----------
    pred : scores, ``(B,)`` or ``(B, m)``
    y : −1 or 1, in the shape of ``pred``
    sample_weight : ``(B,)``
    reduction : "mean", "sum" or "none"

    Examples
    --------
    >>> hinge(torch.tensor([2.0, 0.5, -1.0]), torch.ones(3), reduction="none")
    tensor([0.0000, 0.5000, 2.0000])
    """
    rows = summed("hinge", pred, _coins(pred, y, "hinge"))
    return reduce(rows, sample_weight, reduction)


def squared_hinge(
    pred: Tensor, y: Tensor, sample_weight: Tensor | None = None, reduction: Reduction = "mean"
) -> Tensor:
    r""":math:`\ell = \max(0, 1 - ys)^2` with labels :math:`y = \pm1`.

    Parameters
    ----------
    pred, y, sample_weight, reduction : see ``hinge``

    Examples
    --------
    >>> squared_hinge(torch.tensor([2.0, 0.5, -1.0]), torch.ones(3), reduction="none")
    tensor([0.0000, 0.2500, 4.0000])
    """
    rows = summed("squared_hinge", pred, _coins(pred, y, "squared_hinge"))
    return reduce(rows, sample_weight, reduction)


def _coins(pred: Tensor, y: Tensor, name: str) -> Tensor:
    y = outputs(pred, y, name)
    bad = y.abs() != 1
    if bool(bad.any()):
        at = bad.nonzero()[0].tolist()
        raise DataError(
            f"y[{', '.join(map(str, at))}] is {y[tuple(at)].item():g}, but {name} needs -1 or 1; "
            "turn labels 0 and 1 into 2 * y - 1"
        )
    return 0.5 * (y + 1)


def multiclass_margin(
    pred: Tensor,
    y: Tensor,
    sample_weight: Tensor | None = None,
    reduction: Reduction = "mean",
    *,
    m: float = 1.0,
    form: Literal["max", "sum"] = "max",
) -> Tensor:
    r""":math:`\ell = \max(0, m - s_y + \max_{k \ne y}s_k)` ("max", Crammer and Singer), or
    :math:`\tfrac1C\sum_{k \ne y}\max(0, m - s_y + s_k)` ("sum", torch's ``MultiMarginLoss``).

    Parameters
    ----------
    pred : scores, ``(N, C, ...)``
    y : labels ``(N, ...)``
    sample_weight, reduction : see ``hinge``
    m : the margin, positive
    form : the best wrong class, or all of them

    Examples
    --------
    >>> s = -torch.tensor([[1.0, 2.0, 3.0]]).repeat(3, 1)
    >>> multiclass_margin(s, torch.arange(3), reduction="none")
    tensor([0., 2., 3.])
    """
    if form not in ("max", "sum"):
        raise ValueError(f"form must be 'max' or 'sum', got {form!r}")
    s, flat = labels(pred, y, "multiclass_margin")
    if form == "max":
        loss = margin_loss(-s, flat, m, reduction="none")
    else:
        loss = functional.multi_margin_loss(s, flat, margin=m, reduction="none")
    return reduce(loss.view(y.shape), sample_weight, reduction)


def multiclass_margin_rows(s: Tensor, y: Tensor, m: float = 1.0) -> Tensor:
    return margin_loss(-s, y, m, reduction="none")


def perceptron(
    pred: Tensor, y: Tensor, sample_weight: Tensor | None = None, reduction: Reduction = "mean"
) -> Tensor:
    r""":math:`\ell = \max_k s_k - s_y = e_y - \min_k e_k`: a margin of zero.

    Parameters
    ----------
    pred : scores, ``(N, C, ...)``
    y : labels ``(N, ...)``
    sample_weight, reduction : see ``hinge``

    Examples
    --------
    >>> s = -torch.tensor([[1.0, 2.0, 3.0]]).repeat(3, 1)
    >>> perceptron(s, torch.arange(3), reduction="none")
    tensor([0., 1., 2.])
    """
    s, flat = labels(pred, y, "perceptron")
    loss = perceptron_loss(-s, flat, reduction="none")
    return reduce(loss.view(y.shape), sample_weight, reduction)


def zero_one(
    pred: Tensor, y: Tensor, sample_weight: Tensor | None = None, reduction: Reduction = "mean"
) -> Tensor:
    r""":math:`\ell = 1(\arg\max_k s_k \ne y)`, first index on ties: a metric, or what a search
    without gradients lowers.

    Its gradient is zero almost everywhere, so scores that ask for one are refused.

    Parameters
    ----------
    pred : scores, ``(N, C, ...)``
    y : labels ``(N, ...)``
    sample_weight, reduction : see ``hinge``

    Examples
    --------
    >>> zero_one(torch.tensor([[2.0, 1.0], [2.0, 1.0]]), torch.tensor([0, 1]))
    tensor(0.5000)
    """
    if pred.requires_grad and torch.is_grad_enabled():
        raise DataError(
            "the gradient of the 0-1 loss is zero almost everywhere; train with cross_entropy, "
            "hinge, multiclass_margin, perceptron, brier or squared_onehot, or detach the scores"
        )
    s, flat = labels(pred, y, "zero_one")
    wrong = (s.argmax(1) != flat).to(s.dtype)
    return reduce(wrong.view(y.shape), sample_weight, reduction)
