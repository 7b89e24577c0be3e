r"""Many classes: cross-entropy with class weights, smoothing and soft targets, and KL divergence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional

from groundstate.errors import ShapeError
from groundstate.learn.base import Reduction
from groundstate.learn.losses.contract import labels, probabilities, reduce

ClassWeight = Tensor | Mapping[int, float] | Literal["balanced"] | None


def cross_entropy(
    pred: Tensor,
    y: Tensor,
    sample_weight: Tensor | None = None,
    reduction: Reduction = "mean",
    *,
    class_weight: ClassWeight = None,
    label_smoothing: float = 0.0,
    ignore_index: int | None = None,
) -> Tensor:
    r""":math:`\ell = -\log\mathrm{softmax}(s)_y = e_y + \log\sum_k e^{-e_k}` with scores
    :math:`s = -e`.

    The gradient :math:`\partial\ell/\partial s = p - \mathrm{onehot}(y)` sums to zero. The mean
    divides by the sum of the weights, class weights included.

    Parameters
    ----------
    pred : scores, ``(N, C)`` or ``(N, C, ...)``, where every position is an example
    y : labels ``(N, ...)``, or class probabilities in the shape of ``pred``
    sample_weight : ``(N,)``
    reduction : "mean", "sum" or "none"
    class_weight : ``(C,)``, label to weight (others 1), or "balanced" for
        :math:`n/(C n_c)` of the given labels
    label_smoothing : :math:`\varepsilon` of the target is spread evenly over the classes
    ignore_index : a label whose positions do not count

    Examples
    --------
    >>> s = torch.tensor([[1.0, 2.0, 3.0]]).repeat(3, 1)
    >>> cross_entropy(s, torch.arange(3), reduction="none")
    tensor([2.4076, 1.4076, 0.4076])
    """
    if not 0 <= label_smoothing <= 1:
        raise ValueError(f"label_smoothing must lie in [0, 1], got {label_smoothing}")
    y = torch.as_tensor(y, device=pred.device)
    if y.shape == pred.shape and y.is_floating_point() and pred.ndim > 1:
        return _soft(pred, y, sample_weight, reduction, class_weight, label_smoothing)
    s, flat = labels(pred, y, "cross_entropy", ignore_index)
    weight = weights_of(class_weight, flat, s, ignore_index)
    skip = -100 if ignore_index is None else ignore_index
    loss = functional.cross_entropy(
        s,
        flat,
        weight,
        ignore_index=skip,
        label_smoothing=label_smoothing,
        reduction="none",
    )
    share = None
    if weight is not None or ignore_index is not None:
        kept = (
            torch.ones_like(loss) if weight is None else weight[torch.where(flat == skip, 0, flat)]
        )
        share = torch.where(flat == skip, 0.0, kept).view(y.shape)
    return reduce(loss.view(y.shape), sample_weight, reduction, share=share)


def _soft(
    pred: Tensor,
    y: Tensor,
    sample_weight: Tensor | None,
    reduction: Reduction,
    class_weight: ClassWeight,
    label_smoothing: float,
) -> Tensor:
    probabilities(y, "cross_entropy")
    if class_weight == "balanced":
        raise ValueError("class_weight='balanced' counts labels; pass weights for soft targets")
    weight = weights_of(class_weight, None, pred, None)
    loss = functional.cross_entropy(
        pred, y.to(pred.dtype), weight, label_smoothing=label_smoothing, reduction="none"
    )
    share = None
    if weight is not None:  # of one-hot targets it is the weight of the label
        share = torch.tensordot(y.to(pred.dtype), weight, dims=([1], [0]))
    return reduce(loss, sample_weight, reduction, share=share)


def weights_of(
    class_weight: ClassWeight, y: Tensor | None, s: Tensor, ignore_index: int | None
) -> Tensor | None:
    """One weight per class, ``(C,)``, or None."""
    if class_weight is None:
        return None
    classes = s.shape[1]
    if isinstance(class_weight, str):
        if class_weight != "balanced" or y is None:
            raise ValueError(
                f"class_weight must be a tensor, a dict, 'balanced' or None, got {class_weight!r}"
            )
        kept = y if ignore_index is None else y[y != ignore_index]
        count = torch.bincount(kept, minlength=classes).to(s.dtype)
        return kept.numel() / (classes * count.clamp_min(1.0))
    if isinstance(class_weight, Mapping):
        unknown = [k for k in class_weight if not 0 <= k < classes]
        if unknown:
            raise ValueError(
                f"class_weight names the label {unknown[0]}; labels are 0 to {classes - 1}"
            )
        full = [float(class_weight.get(k, 1.0)) for k in range(classes)]
        return torch.tensor(full, dtype=s.dtype, device=s.device)
    weight = torch.as_tensor(class_weight, dtype=s.dtype, device=s.device)
    if weight.shape != (classes,):
        raise ShapeError(f"class_weight needs {classes} numbers, got shape {tuple(weight.shape)}")
    return weight


def nll(
    pred: Tensor, y: Tensor, sample_weight: Tensor | None = None, reduction: Reduction = "mean"
) -> Tensor:
    r""":math:`\ell = -\log p_y` from log-probabilities (not from probabilities or scores).

    Parameters
    ----------
    pred : log-probabilities, ``(N, C, ...)``
    y : labels ``(N, ...)``
    sample_weight, reduction : see ``cross_entropy``

    Examples
    --------
    >>> nll(torch.tensor([[0.1, 0.2, 0.7]]).log(), torch.tensor([2]))
    tensor(0.3567)
    """
    log_p, flat = labels(pred, y, "nll")
    loss = -log_p.gather(1, flat[:, None])[:, 0]
    return reduce(loss.view(y.shape), sample_weight, reduction)


def kl_divergence(
    pred: Tensor,
    y: Tensor,
    sample_weight: Tensor | None = None,
    reduction: Reduction = "mean",
    *,
    log_target: bool = False,
) -> Tensor:
    r""":math:`\ell = \mathrm{KL}(y\,\|\,q) = \sum_k y_k(\log y_k - \log q_k)` per example.

    Its mean is torch's "batchmean"; the mean over all elements is no divergence. In q the gradient
    is that of the cross-entropy.

    Parameters
    ----------
    pred : log-probabilities :math:`\log q`, ``(N, C, ...)``
    y : probabilities in the same shape, or their logarithms
    sample_weight, reduction : see ``cross_entropy``
    log_target : whether y holds logarithms

    Examples
    --------
    >>> q = torch.full((1, 3), 1 / 3).log()
    >>> kl_divergence(q, torch.tensor([[0.36, 0.48, 0.16]]))
    tensor(0.0853)
    """
    y = torch.as_tensor(y, device=pred.device).to(pred.dtype)
    if pred.ndim < 2 or y.shape != pred.shape:
        raise ShapeError(
            f"kl_divergence needs two tables (N, C, ...) of one shape, got {tuple(pred.shape)} and "
            f"{tuple(y.shape)}"
        )
    probabilities(y.exp() if log_target else y, "kl_divergence")
    terms = functional.kl_div(pred, y, reduction="none", log_target=log_target)
    return reduce(terms.sum(1), sample_weight, reduction)
