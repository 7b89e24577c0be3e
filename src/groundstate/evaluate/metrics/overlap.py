r"""Overlap of masks and distance of shapes: IoU, Dice, pixel accuracy, Hausdorff."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import scipy.ndimage
import scipy.spatial
from numpy.typing import NDArray

from groundstate.errors import DataError, ShapeError
from groundstate.math.info.overlap import label_counts

Floats = NDArray[np.float64]
Pool = Literal["image", "pooled"]


def iou(
    y: Any, pred: Any, *, n_classes: int | None = None, pool: Pool = "image",
    ignore_index: int | None = None,
) -> Floats:  # fmt: skip
    r"""Intersection over union of every class, :math:`TP/(TP + FP + FN)`.

    Parameters
    ----------
    y, pred : ``(N, ...)`` whole numbers; one label per pixel
    n_classes : one more than the largest label by default
    pool : ``"image"`` averages over images, ``"pooled"`` counts all pixels first
    ignore_index : label of pixels that do not count

    Returns
    -------
    ``(n_classes,)``; a class in neither y nor pred scores 1

    Examples
    --------
    >>> iou([[1, 1, 0, 0]], [[1, 0, 0, 0]]).round(6).tolist()
    [0.666667, 0.5]
    """
    hit, true, predicted = _counts(y, pred, n_classes, pool, ignore_index)
    return _over(hit, true + predicted - hit).mean(0)


def dice(
    y: Any, pred: Any, *, n_classes: int | None = None, pool: Pool = "image",
    ignore_index: int | None = None,
) -> Floats:  # fmt: skip
    r"""Dice coefficient of every class, :math:`2TP/(2TP + FP + FN) = 2\,\mathrm{IoU}/(1+\mathrm{IoU})`.

    Arguments as in :func:`iou`; the second identity holds for each image, and for pooled counts.

    Examples
    --------
    >>> dice([[1, 1, 0, 0]], [[1, 0, 0, 0]]).round(6).tolist()
    [0.8, 0.666667]
    """
    hit, true, predicted = _counts(y, pred, n_classes, pool, ignore_index)
    return _over(2 * hit, true + predicted).mean(0)


def mean_iou(
    y: Any, pred: Any, *, n_classes: int | None = None, ignore_index: int | None = None
) -> dict[str, float]:
    """IoU averaged over classes, by image and pooled over all pixels.

    >>> mean_iou([[1, 1, 0, 0]], [[1, 0, 0, 0]])["pooled"].__round__(6)
    0.583333
    """
    options = {"n_classes": n_classes, "ignore_index": ignore_index}
    return {
        "image": float(iou(y, pred, pool="image", **options).mean()),
        "pooled": float(iou(y, pred, pool="pooled", **options).mean()),
    }


def pixel_accuracy(y: Any, pred: Any, *, ignore_index: int | None = None) -> float:
    """Proportion of the pixels of all images whose label is right.

    Parameters
    ----------
    y, pred, ignore_index : as in :func:`iou`

    Examples
    --------
    >>> pixel_accuracy([[1, 1, 0, 255]], [[1, 0, 0, 0]], ignore_index=255).__round__(6)
    0.666667
    """
    hit, true, _ = _counts(y, pred, None, "pooled", ignore_index)
    if not true.sum():
        raise DataError("no pixel counts: there are none, or all have ignore_index")
    return float(hit.sum() / true.sum())


def hausdorff(
    a: Any,
    b: Any,
    *,
    directed: bool = False,
    percentile: float = 100.0,
    sampling: Any = None,
    boundary: bool = False,
) -> float:
    r"""How far the furthest point of one set is from the other set.

    :math:`H(A, B) = \max\{\max_a\min_b\|a-b\|,\ \max_b\min_a\|a-b\|\}`.

    Parameters
    ----------
    a, b : points ``(n, d)`` and ``(m, d)``, or two boolean masks of one shape
    directed : only from a to b
    percentile : 95 forgives the furthest twentieth of the points
    sampling : size of a pixel along each axis, for masks
    boundary : look at the outline of the masks only

    Examples
    --------
    >>> a, b = [(0, 0), (1, 0), (0, 1)], [(0, 0), (3, 0)]
    >>> hausdorff(a, b, directed=True), hausdorff(b, a, directed=True), hausdorff(a, b)
    (1.0, 2.0, 2.0)
    """
    one, two = np.asarray(a), np.asarray(b)
    if not 0 < percentile <= 100:
        raise ValueError(f"percentile is above 0 and at most 100, got {percentile}")
    if one.dtype == bool and two.dtype == bool:
        if one.shape != two.shape:
            raise ShapeError(f"masks need one shape, got {one.shape} and {two.shape}")
        if not one.any() or not two.any():
            raise DataError("the Hausdorff distance of an empty mask is not defined")
        if boundary:
            one, two = (m & ~scipy.ndimage.binary_erosion(m) for m in (one, two))
        there = scipy.ndimage.distance_transform_edt(~two, sampling=sampling)[one]
        back = scipy.ndimage.distance_transform_edt(~one, sampling=sampling)[two]
    else:
        one, two = np.atleast_2d(one.astype(np.float64)), np.atleast_2d(two.astype(np.float64))
        if one.size == 0 or two.size == 0:
            raise DataError("the Hausdorff distance of an empty set is not defined")
        if one.shape[1] != two.shape[1]:
            raise ShapeError(f"points need one dimension, got {one.shape[1]} and {two.shape[1]}")
        there = scipy.spatial.cKDTree(two).query(one)[0]
        back = scipy.spatial.cKDTree(one).query(two)[0]
    far = [float(np.percentile(d, percentile)) for d in ((there,) if directed else (there, back))]
    return max(far)


def _counts(
    y: Any, pred: Any, n_classes: int | None, pool: str, ignore_index: int | None
) -> tuple[Floats, Floats, Floats]:
    """Hits, true and predicted pixels of each class in each image.  # (N, K)"""
    if pool not in ("image", "pooled"):
        raise ValueError(f"pool must be 'image' or 'pooled', got {pool!r}")
    by_image = pool == "image" and np.ndim(y) > 1
    return label_counts(y, pred, n_classes, by_image=by_image, ignore_index=ignore_index)


def _over(above: Floats, below: Floats) -> Floats:
    """Ratios; what is empty in both is a perfect match."""
    return np.where(below > 0, above / np.maximum(below, 1), 1.0)
