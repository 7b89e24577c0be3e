r"""Non-maximum suppression: of boxes that overlap, the one with the best score stays."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from groundstate.compute.foreign.fused import fused
from groundstate.errors import ShapeError
from groundstate.math.arrays import takes_arrays

TILE = 2**25  # pairs of boxes that are compared at once on an accelerator


@takes_arrays("boxes", "scores")
def nms(boxes: Any, scores: Any, threshold: float = 0.5) -> Any:
    r"""Indices of the boxes that stay when, best score first, every box removes those behind it
    with :math:`\mathrm{IoU} > ` ``threshold``.

    Equal scores go by lower index. On a CPU every box is compared with those kept so far (compiled);
    elsewhere all pairs are compared, one bit each (by one kernel where Triton is installed, as it is
    with torch for NVIDIA's GPUs), and "kept = no kept box before it overlaps" is repeated until nothing
    changes.

    Parameters
    ----------
    boxes : ``(N, 4)``, corners ``(x1, y1, x2, y2)``; those without area remove nothing
    scores : ``(N,)``
    threshold : from 0 to 1

    Returns
    -------
    ``(K,)`` whole numbers, best score first

    Examples
    --------
    >>> boxes = [[0, 0, 10, 10], [1, 1, 11, 11], [50, 50, 60, 60]]
    >>> nms(boxes, [0.9, 0.8, 0.3]), nms(boxes, [0.9, 0.8, 0.3], threshold=0.7)
    (array([0, 2]), array([0, 1, 2]))
    """
    return _suppressed(boxes, scores, None, threshold)


@takes_arrays("boxes", "scores")
def batched_nms(boxes: Any, scores: Any, labels: Any, threshold: float = 0.5) -> Any:
    """:func:`nms` in which only boxes of one label remove each other.

    The same as moving every label's boxes apart by an offset, without its rounding.

    Parameters
    ----------
    boxes, scores, threshold : as in :func:`nms`
    labels : ``(N,)`` whole numbers: classes, images of a batch or levels of a pyramid

    Returns
    -------
    ``(K,)`` whole numbers, best score first

    Examples
    --------
    >>> boxes = [[0, 0, 10, 10], [1, 1, 11, 11], [0, 0, 10, 10]]
    >>> batched_nms(boxes, [0.9, 0.8, 0.7], [0, 1, 0])
    array([0, 1])
    """
    labels = torch.as_tensor(labels, device=boxes.device)
    if labels.shape != scores.shape or labels.is_floating_point():
        raise ShapeError(
            f"labels need shape {tuple(scores.shape)} and whole numbers, one for each box, got "
            f"{tuple(labels.shape)} {labels.dtype}"
        )
    return _suppressed(boxes, scores, labels, threshold)


@takes_arrays("boxes", "scores")
def soft_nms(
    boxes: Any,
    scores: Any,
    *,
    method: Literal["gaussian", "linear"] = "gaussian",
    sigma: float = 0.5,
    threshold: float = 0.3,
    lowest: float = 0.001,
) -> Any:
    r"""Suppression that lowers scores instead of removing boxes (Bodla et al. 2017).

    Best first, each box multiplies the score of the others by :math:`e^{-\mathrm{IoU}^2/\sigma}`
    ("gaussian"), or by :math:`1-\mathrm{IoU}` where the IoU is above ``threshold`` ("linear").

    Parameters
    ----------
    boxes, scores : ``(N, 4)`` and ``(N,)``
    method, sigma, threshold : the decay
    lowest : boxes whose score falls below it are dropped

    Returns
    -------
    indices ``(K,)`` and their lowered scores ``(K,)``, best first

    Examples
    --------
    >>> boxes = [[0, 0, 10, 10], [1, 1, 11, 11], [50, 50, 60, 60]]
    >>> keep, scores = soft_nms(boxes, [0.9, 0.8, 0.7], method="linear")
    >>> keep, scores.round(4)
    (array([0, 2, 1]), array([0.9   , 0.7   , 0.2555]))
    """
    _checked(boxes, scores, threshold)
    if method not in ("gaussian", "linear"):
        raise ValueError(f"method must be 'gaussian' or 'linear', got {method!r}")
    if sigma <= 0:
        raise ValueError(f"sigma must be positive, got {sigma}")
    width = sigma if method == "gaussian" else 0.0
    if boxes.device.type != "cpu":
        return _soften(boxes, scores, width, threshold, lowest)
    from groundstate.nn.detection.nms_numba import soften

    corners, sizes = _columns(boxes.detach().double())
    lowered = scores.detach().double().numpy().copy()
    picked = np.zeros(len(lowered), np.int64)
    count = soften(corners.numpy(), sizes.numpy(), lowered, width, threshold, lowest, picked)
    keep = torch.from_numpy(picked[:count])
    return keep, torch.from_numpy(lowered).to(scores.dtype)[keep]


def _suppressed(boxes: Tensor, scores: Tensor, labels: Tensor | None, threshold: float) -> Tensor:
    _checked(boxes, scores, threshold)
    boxes, scores = boxes.detach(), scores.detach()
    if boxes.dtype not in (torch.float32, torch.float64):
        boxes = boxes.float()
    order = scores.argsort(descending=True, stable=True)
    if boxes.device.type == "cpu" or not len(boxes):
        return order[_greedy(boxes, order, labels, threshold)]
    boxes, labels = boxes[order], None if labels is None else labels[order]
    if fused(boxes):
        from groundstate.nn.detection.nms_triton import kept

        return order[kept(*_columns(boxes), labels, threshold)]
    return order[_fixed_point(boxes, labels, threshold)]


def _greedy(boxes: Tensor, order: Tensor, labels: Tensor | None, threshold: float) -> Tensor:
    """Which places of ``order`` stay, one box after the other."""
    from groundstate.nn.detection.nms_numba import greedy

    n = len(order)
    keep, ends = np.zeros(n, np.bool_), np.array([n])
    if labels is None:
        place = torch.arange(n)
    else:
        place = labels[order].argsort(stable=True)  # groups, each with its best first
        ends = labels[order][place].unique_consecutive(return_counts=True)[1].cumsum(0).numpy()
    corners, sizes = _columns(boxes[order[place]])
    greedy(corners.numpy(), sizes.numpy(), ends, corners.numpy().dtype.type(threshold), keep)
    stays = torch.zeros(n, dtype=torch.bool)
    stays[place] = torch.from_numpy(keep)
    return stays


def _fixed_point(boxes: Tensor, labels: Tensor | None, threshold: float) -> Tensor:
    """Which of the sorted boxes stay: the one solution of kept = no kept box before it overlaps."""
    n = len(boxes)
    words = -(-n // 64)
    (x1, y1, x2, y2), size = _columns(boxes)
    place = torch.arange(n, device=boxes.device)
    bits = 2 ** torch.arange(8, dtype=torch.uint8, device=boxes.device)
    before = torch.zeros(n, 8 * words, dtype=torch.uint8, device=boxes.device)  # a bit for a pair
    step = max(64, TILE // max(n, 1))
    for start in range(0, n, step):
        end = min(start + step, n)
        row = slice(start, end)
        wide = torch.minimum(x2[row, None], x2[:end]) - torch.maximum(x1[row, None], x1[:end])
        high = torch.minimum(y2[row, None], y2[:end]) - torch.maximum(y1[row, None], y1[:end])
        common = wide.clamp_(min=0).mul_(high.clamp_(min=0))
        hit = common / (size[row, None] + size[:end] - common) > threshold
        hit &= place[:end] < place[row, None]
        if labels is not None:
            hit &= labels[:end] == labels[row, None]
        hit = torch.nn.functional.pad(hit, (0, -end % 8)).view(end - start, -1, 8)
        before[row, : hit.shape[1]] = (hit * bits).sum(-1, dtype=torch.uint8)
    pairs = before.view(torch.int64)  # (n, words)
    kept = torch.ones(n, dtype=torch.bool, device=boxes.device)
    while True:
        packed = (torch.nn.functional.pad(kept, (0, -n % 64)).view(-1, 8) * bits).sum(
            -1, dtype=torch.uint8
        )
        now = ((pairs & packed.view(torch.int64)) == 0).all(1)
        if torch.equal(now, kept):
            return kept
        kept = now


def _soften(
    boxes: Tensor, scores: Tensor, width: float, threshold: float, lowest: float
) -> tuple[Tensor, Tensor]:
    """Soft suppression on an accelerator, a step for each box."""
    (x1, y1, x2, y2), size = _columns(boxes.detach())
    left, place = scores.detach().clone(), torch.arange(len(boxes), device=boxes.device)
    picked, lowered = torch.zeros_like(place), torch.zeros_like(left)
    for count in range(len(boxes)):
        best = torch.where(left == left.max(), place, len(boxes)).min()
        picked[count], lowered[count] = best, left[best]
        wide = (torch.minimum(x2[best], x2) - torch.maximum(x1[best], x1)).clamp(min=0)
        high = (torch.minimum(y2[best], y2) - torch.maximum(y1[best], y1)).clamp(min=0)
        common = wide * high
        iou = torch.where(common > 0, common / (size[best] + size - common), 0.0)
        decay = (-iou.square() / width).exp() if width else torch.where(iou > threshold, 1 - iou, 1)
        left = torch.where(place == best, -torch.inf, left * decay)
    good = lowered >= lowest
    return picked[good], lowered[good]


def _columns(boxes: Tensor) -> tuple[Tensor, Tensor]:
    """Coordinates each in a row of memory, and areas.  # (4, N), (N,)"""
    columns = boxes.T.contiguous()
    sides = (columns[2:] - columns[:2]).clamp(min=0)
    return columns, sides[0] * sides[1]


def _checked(boxes: Tensor, scores: Tensor, threshold: float) -> None:
    if boxes.ndim != 2 or boxes.shape[1] != 4:
        raise ShapeError(f"boxes need shape (N, 4), got {tuple(boxes.shape)}")
    if scores.shape != boxes.shape[:1]:
        raise ShapeError(
            f"scores need shape {tuple(boxes.shape[:1])}, one for each box, got {tuple(scores.shape)}"
        )
    if not 0 <= threshold <= 1:
        raise ValueError(f"threshold is an IoU from 0 to 1, got {threshold}")
