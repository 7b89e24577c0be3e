r"""Two classes: cross-entropy from logits, the default, or from probabilities."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from groundstate.errors import DataError
from groundstate.learn.base import Reduction
from groundstate.learn.losses.contract import binary, per_example, reduce, summed


def bce(
    pred: Tensor, y: Tensor, sample_weight: Tensor | None = None, reduction: Reduction = "mean"
) -> Tensor:
    r""":math:`\ell = -y\log\sigma(s) - (1-y)\log(1-\sigma(s)) = \max(s,0) - sy + \log(1+e^{-|s|})`.

    From logits s, so nothing overflows and :math:`\partial\ell/\partial s = \sigma(s) - y`. A
    network that is trained with it ends without a sigmoid.

    Parameters
    ----------
    pred : logits, ``(B,)`` or ``(B, m)``; the outputs of a row add
    y : 0, 1 or a probability, in the shape of ``pred``
    sample_weight : ``(B,)``
    reduction : "mean", "sum" or "none"

    Examples
    --------
    >>> bce(torch.tensor([0.0, 2.0, -2.0]), torch.ones(3), reduction="none")
    tensor([0.6931, 0.1269, 2.1269])
    """
    return reduce(summed("log_loss", pred, binary(pred, y, "bce")), sample_weight, reduction)


def bce_from_probability(
    pred: Tensor, y: Tensor, sample_weight: Tensor | None = None, reduction: Reduction = "mean"
) -> Tensor:
    r""":math:`\ell = -y\log q - (1-y)\log(1-q)` from probabilities q, logarithms cut at −100.

    For predictions that come as probabilities; a network is better trained with ``bce``.

    Parameters
    ----------
    pred : probabilities
    y, sample_weight, reduction : see ``bce``

    Examples
    --------
    >>> bce_from_probability(torch.tensor([0.9, 0.1, 0.0]), torch.ones(3), reduction="none")
    tensor([  0.1054,   2.3026, 100.0000])
    """
    y = binary(pred, y, "bce_from_probability")
    outside = torch.lt(pred, 0) | torch.gt(pred, 1)
    if bool(outside.any()):
        raise DataError(
            "predictions of bce_from_probability must lie in [0, 1]; these look like logits, for "
            "which there is bce"
        )
    rows = per_example(functional.binary_cross_entropy(pred, y, reduction="none"))
    return reduce(rows, sample_weight, reduction)
