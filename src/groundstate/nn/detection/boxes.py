r"""Boxes ``(x1, y1, x2, y2)`` in pixels, width :math:`x_2 - x_1`: overlap, offsets, suppression.

The public name of this module is ``groundstate.vision.boxes``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from groundstate.errors import DataError, ShapeError
from groundstate.math.arrays import takes_arrays
from groundstate.nn.detection.nms import batched_nms, nms, soft_nms

__all__ = [
    "area", "batched_nms", "check", "clip", "convert", "decode", "encode", "giou", "iou", "nms",
    "soft_nms",
]  # fmt: skip

LARGEST = math.log(1000 / 16)  # of a log-size offset: no decoded side grows more than 62.5 times


@takes_arrays("boxes")
def area(boxes: Any) -> Any:
    r""":math:`\max(x_2-x_1, 0)\max(y_2-y_1, 0)` of boxes ``(..., 4)``; degenerate ones have none.

    >>> area([[0, 0, 10, 5], [3, 3, 1, 9]])
    array([50.,  0.])
    """
    sides = (_four(boxes, "boxes")[..., 2:] - boxes[..., :2]).clamp(min=0)
    return sides[..., 0] * sides[..., 1]


@takes_arrays("a", "b")
def iou(a: Any, b: Any, *, paired: bool = False) -> Any:
    r"""Intersection over union, :math:`|A\cap B|/|A\cup B|`; 0 where both boxes have no area.

    Parameters
    ----------
    a, b : boxes ``(..., N, 4)`` and ``(..., M, 4)``
    paired : a and b are matched one by one (and broadcast) instead of all with all

    Returns
    -------
    ``(..., N, M)``, or the common leading shape where ``paired``

    Examples
    --------
    >>> iou([[0, 0, 10, 10]], [[5, 5, 15, 15], [1, 1, 11, 11]]).round(6)
    array([[0.142857, 0.680672]])
    """
    one, two = _matched(a, b, paired)
    return _overlap(one, two)[0]


@takes_arrays("a", "b")
def giou(a: Any, b: Any, *, paired: bool = False) -> Any:
    r"""Generalised IoU, :math:`\mathrm{IoU} - (|H| - |A\cup B|)/|H|` with the hull H of both boxes.

    Between −1 and 1, and it falls further as disjoint boxes part, so :math:`1 - \mathrm{GIoU}` is a
    loss with a gradient everywhere. Arguments as in :func:`iou`.

    Examples
    --------
    >>> giou([[0, 0, 10, 10]], [[5, 5, 15, 15]]).round(6)
    array([[-0.079365]])
    """
    one, two = _matched(a, b, paired)
    overlap, union = _overlap(one, two)
    corners = torch.minimum(one[..., :2], two[..., :2]), torch.maximum(one[..., 2:], two[..., 2:])
    sides = (corners[1] - corners[0]).clamp(min=0)
    hull = sides[..., 0] * sides[..., 1]
    return overlap - (hull - union) / torch.where(hull > 0, hull, 1.0)


@takes_arrays("boxes")
def clip(boxes: Any, size: tuple[int, int]) -> Any:
    """Boxes ``(..., 4)`` cut at the border of an image of ``size`` (height, width).

    >>> clip([[-2.0, 3.0, 50.0, 8.0]], (6, 20))
    array([[ 0.,  3., 20.,  6.]])
    """
    height, width = size
    x, y = _four(boxes, "boxes")[..., 0::2].clamp(0, width), boxes[..., 1::2].clamp(0, height)
    return torch.stack([x[..., 0], y[..., 0], x[..., 1], y[..., 1]], -1)


@takes_arrays("boxes")
def convert(boxes: Any, source: str, target: str = "xyxy") -> Any:
    """Boxes ``(..., 4)`` in another form.

    Parameters
    ----------
    boxes : in the form ``source``
    source, target : "xyxy" (two corners), "xywh" (corner and sides, COCO) or "cxcywh" (centre and
        sides, YOLO)

    Examples
    --------
    >>> convert([2, 3, 10, 20], "xywh")
    array([ 2.,  3., 12., 23.])
    >>> convert([2, 3, 12, 23], "xyxy", "cxcywh")
    array([ 7., 13., 10., 20.])
    """
    forms = ("xyxy", "xywh", "cxcywh")
    for form in (source, target):
        if form not in forms:
            raise ValueError(f"a form of boxes is one of {', '.join(forms)}, got {form!r}")
    first, second = _four(boxes, "boxes")[..., :2], boxes[..., 2:]
    if source == target:
        return boxes.clone()
    if source == "xyxy":
        low, side = first, second - first
    else:
        low, side = (first, second) if source == "xywh" else (first - second / 2, second)
    ends = {"xyxy": (low, low + side), "xywh": (low, side), "cxcywh": (low + side / 2, side)}
    return torch.cat(ends[target], -1)


@takes_arrays("boxes", "anchors")
def encode(boxes: Any, anchors: Any, weights: Sequence[float] = (1.0, 1.0, 1.0, 1.0)) -> Any:
    r"""Offsets from anchors to boxes,
    :math:`t = \left(\frac{x-x_a}{w_a}, \frac{y-y_a}{h_a}, \log\frac w{w_a}, \log\frac h{h_a}\right)`
    with centres x, y, each times its weight.

    Parameters
    ----------
    boxes, anchors : ``(..., 4)``, matched one by one (and broadcast); a side that is not positive
        is an error
    weights : (1, 1, 1, 1) of proposals, (10, 10, 5, 5) of the head behind them

    Returns
    -------
    ``(..., 4)``; :func:`decode` undoes it

    Examples
    --------
    >>> encode([0, 0, 20, 10], [0, 0, 10, 10]).round(6)
    array([0.5     , 0.      , 0.693147, 0.      ])
    """
    (x, side), (origin, unit) = _centred(check(boxes)), _centred(check(anchors, "anchors"))
    offsets = torch.cat([(x - origin) / unit, (side / unit).log()], -1)
    return offsets * offsets.new_tensor(weights)


@takes_arrays("offsets", "anchors")
def decode(
    offsets: Any,
    anchors: Any,
    weights: Sequence[float] = (1.0, 1.0, 1.0, 1.0),
    largest: float = LARGEST,
) -> Any:
    r"""Boxes at ``offsets`` from ``anchors``: :math:`x = x_a + w_a t_x`, :math:`w = w_a e^{t_w}`.

    Parameters
    ----------
    offsets, anchors : ``(..., 4)``, matched one by one (and broadcast)
    weights : those of :func:`encode`
    largest : bound of the log-size offsets, so that no exponential overflows

    Examples
    --------
    >>> decode([0.5, 0, math.log(2), 0], [0, 0, 10, 10]).round(6)
    array([ 0.,  0., 20., 10.])
    """
    origin, unit = _centred(_four(anchors, "anchors"))
    offsets = _four(offsets, "offsets") / offsets.new_tensor(weights)
    centre = origin + offsets[..., :2] * unit
    half = unit * offsets[..., 2:].clamp(max=largest).exp() / 2
    return torch.cat([centre - half, centre + half], -1)


@takes_arrays("boxes")
def check(boxes: Any, name: str = "boxes") -> Any:
    """The boxes ``(..., 4)`` themselves if all have a positive width and height, else an error.

    Examples
    --------
    >>> check([[0, 0, 10, 5]])
    array([[ 0.,  0., 10.,  5.]])
    """
    bad = (_four(boxes, name)[..., 2:] <= boxes[..., :2]).any(-1)
    if bool(bad.any()):
        where = bad.nonzero()[0].tolist()
        found = ", ".join(f"{value:g}" for value in boxes[tuple(where)].tolist())
        place = name + "".join(f"[{index}]" for index in where)
        raise DataError(
            f"{place} = ({found}) has no positive width and height; boxes are (x1, y1, x2, y2) with "
            "x1 < x2 and y1 < y2 (`convert` reads other forms)"
        )
    return boxes


def _four(boxes: Tensor, name: str) -> Tensor:
    if boxes.ndim < 1 or boxes.shape[-1] != 4:
        raise ShapeError(f"{name} need shape (..., 4), got {tuple(boxes.shape)}")
    return boxes


def _matched(a: Tensor, b: Tensor, paired: bool) -> tuple[Tensor, Tensor]:
    """Both with one box axis to broadcast over."""
    _four(a, "a"), _four(b, "b")
    if paired:
        return a, b
    for name, boxes in (("a", a), ("b", b)):
        if boxes.ndim < 2:
            raise ShapeError(
                f"{name} need shape (..., N, 4) to be compared all with all, got "
                f"{tuple(boxes.shape)}; pass paired=True to compare box by box"
            )
    return a[..., :, None, :], b[..., None, :, :]


def _overlap(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """Intersection over union, and the area of the union."""
    sides = torch.minimum(a[..., 2:], b[..., 2:]) - torch.maximum(a[..., :2], b[..., :2])
    sides = sides.clamp(min=0)
    common = sides[..., 0] * sides[..., 1]
    union = area(a) + area(b) - common
    return common / torch.where(union > 0, union, 1.0), union


def _centred(boxes: Tensor) -> tuple[Tensor, Tensor]:
    """Centres and sides.  # (..., 2), (..., 2)"""
    side = boxes[..., 2:] - boxes[..., :2]
    return boxes[..., :2] + side / 2, side
