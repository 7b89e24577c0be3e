r"""Average precision of detections, COCO's and Pascal VOC's."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from groundstate.compute.display import Displayed
from groundstate.errors import DataError, ShapeError

Floats = NDArray[np.float64]
Interpolation = Literal["101", "all"]
COCO = np.linspace(0.5, 0.95, 10)
LEVELS = np.linspace(0.0, 1.0, 101)  # COCO's, to the last bit
AREAS = {
    "all": (0.0, 1e10),
    "small": (0.0, 32.0**2),
    "medium": (32.0**2, 96.0**2),
    "large": (96.0**2, 1e10),
}


@dataclass(frozen=True)
class DetectionScores(Displayed):
    """Average precision (AP) and recall (AR) of detections; NaN where no truth counts.

    Attributes
    ----------
    ap : mean over classes and IoU thresholds
    ap50, ap75 : at one threshold
    ap_small, ap_medium, ap_large : of truths below 32², up to 96² and above 96² pixels
    ar_1, ar_10, ar : recall of the 1, 10 and all allowed detections of a class and image, mean over
        classes and thresholds
    ar_small, ar_medium, ar_large : by size
    classes : labels, in order
    per_class : ``(K,)``, AP of each
    thresholds : ``(T,)``
    precision : ``(T, K, 101)``, the best precision at a recall of 0, 0.01, ..., 1 or above
    """

    ap: float
    ap50: float
    ap75: float
    ap_small: float
    ap_medium: float
    ap_large: float
    ar_1: float
    ar_10: float
    ar: float
    ar_small: float
    ar_medium: float
    ar_large: float
    classes: list[Any] = field(repr=False)
    per_class: Floats = field(repr=False)
    thresholds: Floats = field(repr=False)
    precision: Floats = field(repr=False)


def average_precision_detection(
    truths: Sequence[Mapping[str, Any]],
    predictions: Sequence[Mapping[str, Any]],
    *,
    thresholds: Any = None,
    interpolation: Interpolation = "101",
    max_detections: int = 100,
    masks: bool = False,
) -> DetectionScores:
    r"""Average precision of detections, the area under precision against recall, as COCO defines it.

    In each image and class the detections, best score first, each take the free truth they overlap
    most, if the IoU reaches the threshold; one truth counts once. Over all images, in order of the
    score, :math:`p(r)` is the largest precision at a recall of r or more, and
    :math:`\mathrm{AP} = \frac1{101}\sum_{k=0}^{100}p(k/100)`, or :math:`\int_0^1p(r)\,dr`.

    Parameters
    ----------
    truths : for each image ``boxes`` (n, 4) and ``labels`` (n,); optional ``iscrowd`` (n,), a region
        that any number of detections may share, neither right nor wrong, ``ignore`` (n,), a truth
        that does not count, ``area`` (n,), by which it is small or large, and ``masks`` (n, H, W)
    predictions : for each image ``boxes``, ``labels``, ``scores`` (n,), and ``masks``
    thresholds : of the IoU; 0.5, 0.55, ..., 0.95 by default, 0.5 for Pascal VOC
    interpolation : ``"101"`` recalls (COCO), or ``"all"`` steps of the curve (VOC since 2010)
    max_detections : the best of an image and class that count
    masks : overlap of the masks instead of the boxes

    Returns
    -------
    `DetectionScores`; the 12 numbers of COCO's summary, and AP of every class

    Examples
    --------
    >>> truth = {"boxes": [[0, 0, 10, 10], [20, 20, 30, 30]], "labels": [1, 1]}
    >>> found = {"boxes": [[0, 0, 10, 10], [50, 50, 60, 60], [20, 20, 30, 30]],
    ...          "labels": [1, 1, 1], "scores": [0.9, 0.8, 0.7]}
    >>> round(average_precision_detection([truth], [found]).ap, 6)
    0.834983
    >>> round(average_precision_detection([truth], [found], interpolation="all").ap, 6)
    0.833333
    """
    gathered = DetectionAccumulator(thresholds, max_detections, masks)
    gathered.update(truths, predictions)
    return gathered.scores(interpolation)


class DetectionAccumulator:
    """Average precision of images that come in batches or shards: matched detections are gathered.

    Parameters as in :func:`average_precision_detection`.

    Examples
    --------
    >>> truth = {"boxes": [[0, 0, 10, 10]], "labels": ["cat"]}
    >>> found = {"boxes": [[0, 0, 10, 10]], "labels": ["cat"], "scores": [0.9]}
    >>> one, two = DetectionAccumulator(), DetectionAccumulator()
    >>> one.update([truth], [found]); two.update([truth], [{"boxes": [], "labels": [], "scores": []}])
    >>> round((one + two).scores().ap, 6)
    0.50495
    """

    def __init__(
        self, thresholds: Any = None, max_detections: int = 100, masks: bool = False
    ) -> None:
        self.thresholds = (
            COCO if thresholds is None else np.atleast_1d(np.asarray(thresholds, float))
        )
        if not ((self.thresholds > 0) & (self.thresholds <= 1)).all():
            raise ValueError(f"thresholds are IoUs above 0 and at most 1, got {thresholds}")
        if max_detections < 1:
            raise ValueError(f"max_detections is at least 1, got {max_detections}")
        self.max_detections, self.masks = max_detections, masks
        self._parts: list[dict[str, Any]] = []

    def update(
        self, truths: Sequence[Mapping[str, Any]], predictions: Sequence[Mapping[str, Any]]
    ) -> None:
        """Match the detections of further images."""
        if len(truths) != len(predictions):
            raise ShapeError(
                f"truths and predictions need one entry for each image, got {len(truths)} and "
                f"{len(predictions)}"
            )
        if len(truths):
            self._parts.append(
                self._matched(_Rows(truths, "truths"), _Rows(predictions, "predictions"))
            )

    def __add__(self, other: DetectionAccumulator) -> DetectionAccumulator:
        same = np.array_equal(self.thresholds, other.thresholds) and self.masks == other.masks
        if not same or self.max_detections != other.max_detections:
            raise ValueError("accumulators with different settings do not merge")
        return self.together([self, other])

    @staticmethod
    def together(parts: Sequence[DetectionAccumulator]) -> DetectionAccumulator:
        """All images of accumulators with the same settings, those that come twice counted twice."""
        if not parts:
            raise DataError("no images yet: call update with truths and predictions first")
        first = parts[0]
        both = DetectionAccumulator(first.thresholds, first.max_detections, first.masks)
        both._parts = [matched for part in parts for matched in part._parts]
        return both

    def scores(self, interpolation: Interpolation = "101") -> DetectionScores:
        """Precision and recall over all images so far."""
        if interpolation not in ("101", "all"):
            raise ValueError(f"interpolation must be '101' or 'all', got {interpolation!r}")
        if not self._parts:
            raise DataError("no images yet: call update with truths and predictions first")
        from groundstate.nn.detection.match_numba import curves

        found = _join([part["label"] for part in self._parts])
        true = _join([part["truth"] for part in self._parts])
        classes = np.unique(true)
        known = np.isin(found, classes)  # a class without truths has no precision
        code = np.searchsorted(classes, found[known])
        score = np.concatenate([part["score"] for part in self._parts])[known]
        order = np.lexsort((-score, code))
        state = np.concatenate([part["state"] for part in self._parts], 2)[:, :, known][:, :, order]
        rank = np.concatenate([part["rank"] for part in self._parts])[known][order]
        counts = np.concatenate([part["counts"] for part in self._parts], 1)
        of = np.searchsorted(classes, true)
        K, T, A = len(classes), len(self.thresholds), len(AREAS)
        positives = np.stack([np.bincount(of, weights=each, minlength=K) for each in counts])
        ends = np.searchsorted(code[order], np.arange(K), side="right")
        tops = np.array([1, 10, self.max_detections])
        precision, under, recall = (
            np.zeros((A, T, K, 101)),
            np.zeros((A, T, K)),
            np.zeros((A, T, K, 3)),
        )
        curves(state, rank, ends, positives, tops, LEVELS, precision, under, recall)
        nothing = positives == 0  # (areas, classes)
        ap = precision.mean(-1) if interpolation == "101" else under
        ap = np.where(nothing[:, None], np.nan, ap)
        recall = np.where(nothing[:, None, :, None], np.nan, recall)
        half, most = (np.isclose(self.thresholds, level) for level in (0.5, 0.75))
        return DetectionScores(
            _mean(ap[0]), _mean(ap[0][half]), _mean(ap[0][most]),
            _mean(ap[1]), _mean(ap[2]), _mean(ap[3]),
            _mean(recall[0, ..., 0]), _mean(recall[0, ..., 1]), _mean(recall[0, ..., 2]),
            _mean(recall[1, ..., 2]), _mean(recall[2, ..., 2]), _mean(recall[3, ..., 2]),
            classes.tolist(), ap[0].mean(0), self.thresholds, precision[0],
        )  # fmt: skip

    def _matched(self, true: _Rows, found: _Rows) -> dict[str, Any]:
        """Detections of a batch by class, image and score, and which of them are right."""
        from groundstate.nn.detection import match_numba as kernels

        n = len(true.counts)
        classes, codes = np.unique(_join([true.labels, found.labels]), return_inverse=True)
        of_true, of_found = np.split(codes, [len(true.labels)])
        group, key = of_found * n + found.image, of_true * n + true.image
        scores = found.column("scores")
        if not np.isfinite(scores).all():
            raise DataError("scores of predictions hold NaN or infinity")
        order = np.lexsort((-scores, group))
        starts = np.flatnonzero(np.diff(group[order], prepend=-1))
        rank = np.arange(len(order)) - np.repeat(starts, np.diff(starts, append=len(order)))
        order, rank = order[rank < self.max_detections], rank[rank < self.max_detections]
        rows = np.argsort(key, kind="stable")
        groups = _groups(group[order], key[rows])
        crowd = true.column("iscrowd", False)[rows]
        skip = crowd | true.column("ignore", False)[rows]
        if self.masks:
            overlap, sizes, areas = _mask_overlaps(true, found, order, rows, groups, crowd)
        else:
            sizes, areas = _sizes(found.boxes[order]), _sizes(true.boxes[rows])
            pairs = (groups[:, 1] - groups[:, 0]) * (groups[:, 3] - groups[:, 2])
            overlap = np.empty(int(pairs.sum()))
            kernels.overlaps(found.boxes[order], true.boxes[rows], crowd, groups, overlap)
        given = true.column("area", np.nan)[rows]
        areas = np.where(np.isnan(given), areas, given)
        bounds = np.array(list(AREAS.values()))
        skips = skip | (areas < bounds[:, :1]) | (areas > bounds[:, 1:])
        outside = (sizes < bounds[:, :1]) | (sizes > bounds[:, 1:])
        state = np.zeros((len(bounds), len(self.thresholds), len(order)), np.uint8)
        kernels.match(overlap, groups, crowd, skips, outside, self.thresholds, state)
        return {"label": classes[of_found][order], "score": scores[order], "rank": rank, "state": state,
                "truth": classes[of_true][rows], "counts": ~skips}  # fmt: skip


class _Rows:
    """The boxes of all images in one table."""

    def __init__(self, images: Sequence[Mapping[str, Any]], name: str) -> None:
        self.images, self.name = images, name
        boxes, labels = [], []
        for i, image in enumerate(images):
            lacking = [key for key in ("boxes", "labels") if key not in image]
            if lacking:
                raise DataError(f"{name}[{i}] needs {lacking[0]!r}, it has {sorted(image)}")
            box, label = (
                np.asarray(_host(image["boxes"]), float),
                np.asarray(_host(image["labels"])),
            )
            box = box.reshape(-1, 4) if box.size == 0 else box
            if box.ndim != 2 or box.shape[1] != 4 or label.shape != box.shape[:1]:
                raise ShapeError(
                    f"{name}[{i}] needs boxes (n, 4) and labels (n,), got {box.shape} and {label.shape}"
                )
            boxes.append(box)
            labels.append(label)
        self.counts = np.array([len(box) for box in boxes])
        self.image = np.repeat(np.arange(len(images)), self.counts)
        self.boxes = np.concatenate(boxes)
        if not np.isfinite(self.boxes).all():
            raise DataError(f"boxes of {name} hold NaN or infinity")
        self.labels = _join(labels)

    def column(self, key: str, default: Any = None) -> Any:
        """One value for each box: the default where an image does not say."""
        if default is None and any(key not in image for image in self.images):
            lacking = next(i for i, image in enumerate(self.images) if key not in image)
            raise DataError(f"{self.name}[{lacking}] needs {key!r}, one for each box")
        out = np.array(np.broadcast_to(0.0 if default is None else default, self.image.shape))
        ends = self.counts.cumsum()
        for i, image in enumerate(self.images):
            if key in image:
                values = np.asarray(_host(image[key]))
                if values.shape != (self.counts[i],):
                    raise ShapeError(
                        f"{self.name}[{i}] has {self.counts[i]} boxes but {key} of shape {values.shape}"
                    )
                out[ends[i] - self.counts[i] : ends[i]] = values
        return out

    def masks(self, i: int) -> Floats:
        """Masks of an image as rows of 0 and 1.  # (n, H · W)"""
        if "masks" not in self.images[i]:
            raise DataError(f"{self.name}[{i}] needs 'masks' (n, H, W)")
        found = np.asarray(_host(self.images[i]["masks"])) > 0
        if len(found) != self.counts[i]:
            raise ShapeError(f"{self.name}[{i}] has {self.counts[i]} boxes but {len(found)} masks")
        return found.reshape(len(found), -1 if found.size else 0).astype(np.float64)


def _mask_overlaps(
    true: _Rows, found: _Rows, order: Any, rows: Any, groups: Any, crowd: Any
) -> tuple[Floats, Floats, Floats]:
    """IoU of the masks of every group, and the areas of detected and true masks."""
    sizes, areas = np.zeros(len(found.image)), np.zeros(len(true.image))
    tables = []
    for i in range(len(true.counts)):
        a, b = found.masks(i), true.masks(i)
        if len(a) and len(b) and a.shape[1] != b.shape[1]:
            raise ShapeError(f"masks of image {i} have {a.shape[1]} and {b.shape[1]} pixels")
        sizes[found.image == i], areas[true.image == i] = a.sum(1), b.sum(1)
        tables.append(a @ b.T if len(a) and len(b) else np.zeros((len(a), len(b))))
    first_found, first_true = (np.cumsum(each.counts) - each.counts for each in (found, true))
    parts = [np.zeros(0)]
    for d, d_end, g, g_end in groups:
        if g < g_end:
            image, one, two = true.image[rows[g]], order[d:d_end], rows[g:g_end]
            common = tables[image][np.ix_(one - first_found[image], two - first_true[image])]
            union = sizes[one][:, None] + np.where(crowd[g:g_end], 0, areas[two] - common)
            parts.append((common / np.maximum(union, 1)).ravel())
    return np.concatenate(parts), sizes[order], areas[rows]


def _groups(group: Any, key: Any) -> Any:
    """First and end of the detections and of the truths of each image and class.  # (G, 4)"""
    starts = np.flatnonzero(np.diff(group, prepend=-1))
    name = group[starts]
    ends = np.append(starts[1:], len(group))[: len(starts)]
    first, last = np.searchsorted(key, name), np.searchsorted(key, name, side="right")
    return np.stack([starts, ends, first, last], 1)


def _sizes(boxes: Floats) -> Floats:
    sides = np.maximum(boxes[:, 2:] - boxes[:, :2], 0)
    return sides[:, 0] * sides[:, 1]


def _join(parts: list[Any]) -> Any:
    """Labels of one kind, all whole numbers or all words."""
    full = [part for part in parts if len(part)]
    kinds = {part.dtype.kind for part in full} - {"u", "b"}
    if len(kinds) > 1 and "i" in kinds:
        raise DataError("labels are words in one place and numbers in another; use one kind")
    return np.concatenate(full) if full else np.zeros(0, np.int64)


def _mean(values: Floats) -> float:
    """Over what is defined."""
    good = values[~np.isnan(values)]
    return float(good.mean()) if len(good) else math.nan


def _host(value: Any) -> Any:
    return value.detach().cpu().numpy() if isinstance(value, Tensor) else value
