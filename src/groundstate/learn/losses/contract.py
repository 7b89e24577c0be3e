r"""The one contract of all losses: ``loss(pred, y, sample_weight=None, reduction="mean")``.

First one value per example, then ``"none"`` (weighted values), ``"sum"`` :math:`\sum w_i\ell_i` or
``"mean"`` :math:`\sum w_i\ell_i/\sum w_i`. Outputs of one example add. With further axes the class
axis is the second one, ``(N, C, ...)``, and every position is an example. Predictions are scores
(logits) :math:`s = -e`, high is good.
"""

from __future__ import annotations

import torch
from torch import Tensor

from groundstate.errors import DataError, ShapeError
from groundstate.learn.base import Reduction
from groundstate.math.losses import loss_of
from groundstate.nn.heads.base import check_support

REDUCTIONS = ("none", "sum", "mean")


def reduce(
    loss: Tensor,
    sample_weight: Tensor | None = None,
    reduction: Reduction = "mean",
    *,
    share: Tensor | None = None,
) -> Tensor:
    r"""Values ``(B, ...)`` to weighted values, their sum, or :math:`\sum w\ell/\sum w`.

    Parameters
    ----------
    loss : values of the examples; positions of a row may follow the first axis
    sample_weight : ``(B,)``, for all positions of a row, or one per value
    reduction : "none", "sum" or "mean"
    share : weights that the values already contain (of their classes, zeros for ignored ones); the
        mean divides by them too

    Examples
    --------
    >>> reduce(torch.tensor([1.0, 4.0]), torch.tensor([2.0, 1.0]))
    tensor(2.)
    """
    if reduction not in REDUCTIONS:
        raise ValueError(f"reduction must be one of {', '.join(REDUCTIONS)}, got {reduction!r}")
    weight = None
    if sample_weight is not None:
        weight = torch.as_tensor(sample_weight, dtype=loss.dtype, device=loss.device)
        wrong = ~(weight >= 0)
        if bool(wrong.any()):
            at = wrong.nonzero()[0].tolist()
            raise DataError(
                f"sample_weight[{', '.join(map(str, at))}] is {weight[tuple(at)].item():g}, but "
                "weights count rows and are at least 0; drop a row by the weight 0"
            )
        if weight.shape != loss.shape:
            if weight.ndim != 1 or weight.shape[0] != loss.shape[0]:
                raise ShapeError(
                    f"sample_weight has shape {tuple(weight.shape)}, but there are {loss.shape[0]} "
                    f"rows; give one weight per row, shape ({loss.shape[0]},)"
                )
            weight = weight.view(-1, *(1,) * (loss.ndim - 1)).expand_as(loss)
        # what has no weight has no say, even where it is infinite
        loss = torch.where(weight == 0, 0.0, loss) * weight
    if reduction == "none":
        return loss
    if reduction == "sum":
        return loss.sum()
    if share is not None:
        weight = share if weight is None else weight * share
    return loss.sum() / (loss.numel() if weight is None else weight.sum())


def outputs(pred: Tensor, y: Tensor, name: str) -> Tensor:
    """A real target like the predictions, ``(B, ...)``, finite."""
    y = torch.as_tensor(y, device=pred.device).to(pred.dtype)
    if y.ndim + 1 == pred.ndim and pred.shape[-1] == 1:
        y = y.unsqueeze(-1)
    if y.shape != pred.shape:
        raise ShapeError(
            f"{name} compares equal shapes, got predictions {tuple(pred.shape)} and targets "
            f"{tuple(y.shape)}; reshape one of them, nothing is broadcast"
        )
    check_support(y, "real", 1, f"the loss {name!r}")
    return y


def per_example(values: Tensor) -> Tensor:
    """The sum of each row's outputs, ``(B,)``."""
    return values.flatten(1).sum(1) if values.ndim > 1 else values


def summed(name: str, pred: Tensor, y: Tensor, **options: float) -> Tensor:
    """A loss of the one table, its outputs added per row, ``(B,)``."""
    return per_example(loss_of(name, **options).value(pred, y))


def labels(
    pred: Tensor, y: Tensor, name: str, ignore_index: int | None = None
) -> tuple[Tensor, Tensor]:
    """Scores ``(M, C)`` and labels ``(M,)`` of all positions; labels 0 to C − 1 are checked."""
    y = torch.as_tensor(y, device=pred.device)
    if pred.ndim < 2 or y.shape != pred.shape[:1] + pred.shape[2:]:
        raise ShapeError(
            f"{name} needs scores (N, C, ...) and labels (N, ...), got {tuple(pred.shape)} and "
            f"{tuple(y.shape)}"
        )
    known = y if ignore_index is None else torch.where(y == ignore_index, 0, y)
    check_support(known, "labels", pred.shape[1], f"the loss {name!r}")
    return pred.movedim(1, -1).reshape(-1, pred.shape[1]), y.reshape(-1).long()


def probabilities(y: Tensor, name: str) -> None:
    """Refuse targets ``(N, C, ...)`` that are no probabilities of C classes, with the first row."""
    wrong = ~((y >= 0).all(1) & ((y.sum(1) - 1).abs() < 1e-2))  # room for half precision
    if bool(wrong.any()):
        at = wrong.nonzero()[0].tolist()
        row = y.movedim(1, -1)[tuple(at)]
        raise DataError(
            f"the target of the loss {name!r} in row {at[0]} has the entries {row.tolist()}, whose sum "
            f"is {row.sum().item():g}; probabilities are at least 0 and add up to 1"
        )


def binary(pred: Tensor, y: Tensor, name: str) -> Tensor:
    """Targets in [0, 1] in the shape of the predictions."""
    y = outputs(pred, y, name)
    outside = (y < 0) | (y > 1)
    if bool(outside.any()):
        at = outside.nonzero()[0].tolist()
        raise DataError(
            f"y[{', '.join(map(str, at))}] is {y[tuple(at)].item():g}, but the loss {name!r} needs "
            "values in [0, 1]; map the two classes to 0 and 1"
        )
    return y
