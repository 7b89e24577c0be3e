r"""Classification as regression onto the probability simplex: the target is a corner,
:math:`\mathrm{onehot}(y)`.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from groundstate.learn.base import Reduction
from groundstate.learn.losses.contract import labels, reduce


def brier(
    pred: Tensor, y: Tensor, sample_weight: Tensor | None = None, reduction: Reduction = "mean"
) -> Tensor:
    r""":math:`\ell = \|\mathrm{softmax}(s) - \mathrm{onehot}(y)\|^2`, between 0 and 2.

    Least in expectation for the true probabilities, as cross-entropy, but bounded.

    Parameters
    ----------
    pred : scores, ``(N, C, ...)``
    y : labels ``(N, ...)``
    sample_weight : ``(N,)``
    reduction : "mean", "sum" or "none"

    Examples
    --------
    >>> brier(torch.zeros(1, 2), torch.tensor([0]))
    tensor(0.5000)
    """
    s, flat = labels(pred, y, "brier")
    return reduce(brier_rows(s, flat).view(y.shape), sample_weight, reduction)


def brier_rows(s: Tensor, y: Tensor) -> Tensor:
    return _distance(torch.softmax(s, 1), y)


def squared_onehot(
    pred: Tensor, y: Tensor, sample_weight: Tensor | None = None, reduction: Reduction = "mean"
) -> Tensor:
    r""":math:`\ell = \|s - \mathrm{onehot}(y)\|^2`: least squares onto the corners.

    The scores themselves are fitted, and the decision is their argmax, as in a ridge classifier.

    Parameters
    ----------
    pred, y, sample_weight, reduction : see ``brier``

    Examples
    --------
    >>> squared_onehot(torch.tensor([[0.5, 0.0, 0.5]]), torch.tensor([0]))
    tensor(0.5000)
    """
    s, flat = labels(pred, y, "squared_onehot")
    return reduce(squared_onehot_rows(s, flat).view(y.shape), sample_weight, reduction)


def squared_onehot_rows(s: Tensor, y: Tensor) -> Tensor:
    return _distance(s, y)


def _distance(p: Tensor, y: Tensor) -> Tensor:
    return (p - functional.one_hot(y, p.shape[1])).square().sum(1)
