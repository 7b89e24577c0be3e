r"""Scores of what is drawn into pictures, masks and boxes, for many weightings of the pictures at once.

A mask is judged by counts of its pixels, so that the intersection over union of class k,
:math:`h_k/(t_k+p_k-h_k)` of hits, true and predicted pixels of all pictures, follows from weighted sums.
Average precision ranks the boxes of all pictures; a weight of 2 is the picture twice.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from groundstate.compute.random import Key
from groundstate.evaluate.rows import Floats
from groundstate.math.info.overlap import label_counts
from groundstate.math.stats.bootstrap import interval_of
from groundstate.math.stats.interval import Interval
from groundstate.nn.detection.precision import DetectionAccumulator

TITLES = {
    "iou": "intersection of true and predicted pixels over their union, mean of the classes",
    "dice": "twice the common pixels over true and predicted ones, mean of the classes",
    "pixel_accuracy": "share of pixels that are labelled right",
    "ap50": "area under precision against recall of boxes that overlap by half or more",
    "ap": "average precision, mean over overlaps from 0.5 to 0.95 (COCO)",
    "ar": "share of objects found among 100 boxes of a picture, mean over overlaps",
}


class Judged(ABC):
    """Pictures whose answers were compared with the truth."""

    @abstractmethod
    def __len__(self) -> int:
        """Number of pictures."""

    @abstractmethod
    def scores(self, weights: Floats) -> dict[str, Floats]:
        """Every score for each weighting of the pictures by whole numbers.  # (B, N) -> (B,)"""

    @classmethod
    @abstractmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Pictures of several parts, one after the other."""

    def per_picture(self, name: str) -> Floats:
        """The score of every picture alone, NaN where it has none.  # (N,)"""
        return self.scores(np.eye(len(self)))[name]


@dataclass(frozen=True, eq=False)
class JudgedMasks(Judged):
    """Hits, true and predicted pixels of every class in every picture.

    >>> judged = JudgedMasks.of(np.array([[[0, 1]], [[1, 1]]]), np.array([[[0, 1]], [[0, 1]]]), 2)
    >>> {k: v.round(3).tolist() for k, v in judged.scores(np.ones((1, 2))).items()}
    {'iou': [0.583], 'dice': [0.733], 'pixel_accuracy': [0.75]}
    """

    counts: tuple[Floats, Floats, Floats]  # (N, K) each

    @classmethod
    def of(
        cls, truth: NDArray[Any], predictions: NDArray[Any], classes: int, ignore: int | None = None
    ) -> JudgedMasks:
        """From class numbers of the pixels, ``(N, H, W)`` each."""
        return cls(label_counts(truth, predictions, classes, by_image=True, ignore_index=ignore))

    def __len__(self) -> int:
        return len(self.counts[0])

    def scores(self, weights: Floats) -> dict[str, Floats]:
        hit, true, predicted = (weights @ c for c in self.counts)
        return {
            "iou": _mean_ratio(hit, true + predicted - hit),
            "dice": _mean_ratio(2 * hit, true + predicted),
            "pixel_accuracy": hit.sum(-1) / np.maximum(true.sum(-1), 1),
        }

    @classmethod
    def joined(cls, parts: Sequence[JudgedMasks]) -> JudgedMasks:
        a, b, c = (np.concatenate([p.counts[i] for p in parts]) for i in range(3))
        return cls((a, b, c))


def _mean_ratio(above: Floats, below: Floats) -> Floats:
    """Mean over the classes that occur, in the masks or in the answers."""
    there = below > 0
    ratio = np.where(there, above / np.maximum(below, 1e-12), 0.0)
    return np.asarray(ratio.sum(-1) / np.maximum(there.sum(-1), 1))


@dataclass(frozen=True, eq=False)
class JudgedBoxes(Judged):
    """Matched boxes of every picture."""

    pictures: list[DetectionAccumulator]

    @classmethod
    def of(
        cls, truths: Sequence[Mapping[str, Any]], predictions: Sequence[Mapping[str, Any]]
    ) -> JudgedBoxes:
        """From ``boxes`` and ``labels`` of each picture, and ``scores`` of the answers."""
        found = []
        for truth, predicted in zip(truths, predictions, strict=True):
            found.append(DetectionAccumulator())
            found[-1].update([truth], [predicted])
        return cls(found)

    def __len__(self) -> int:
        return len(self.pictures)

    def scores(self, weights: Floats) -> dict[str, Floats]:
        rows = []
        for w in weights:
            index = np.repeat(np.arange(len(self)), w.astype(np.intp))
            found = DetectionAccumulator.together([self.pictures[i] for i in index]).scores()
            rows.append((found.ap50, found.ap, found.ar))
        table = np.asarray(rows, np.float64).reshape(len(weights), 3)
        return {name: table[:, i] for i, name in enumerate(("ap50", "ap", "ar"))}

    @classmethod
    def joined(cls, parts: Sequence[JudgedBoxes]) -> JudgedBoxes:
        return cls([one for part in parts for one in part.pictures])


def drawn_intervals(
    judged: Judged, level: float, key: Key, n: int = 400
) -> tuple[dict[str, Interval], dict[str, Floats]]:
    """Every score with the interval of n resamples of the pictures, and the resampled scores.

    The same key draws the same pictures, so that the draws of two models are pairs.
    """
    size = len(judged)
    drawn = key.numpy().multinomial(size, np.full(size, 1 / size), n).astype(np.float64)
    whole, draws = judged.scores(np.ones((1, size))), judged.scores(drawn)
    found = {
        name: interval_of(float(value[0]), draws[name], level, "percentile").within((0.0, 1.0))
        for name, value in whole.items()
    }
    return found, draws
