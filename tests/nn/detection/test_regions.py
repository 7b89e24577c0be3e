"""Segments of pictures and selective search: skimage's segments, the merge rule, recall."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from groundstate.errors import DataError, ShapeError
from groundstate.nn.detection.boxes import iou
from groundstate.nn.detection.regions import felzenszwalb, selective_search


def noisy(seed: int) -> Any:
    rng = np.random.default_rng(seed)
    image = rng.uniform(size=(3, 40, 50))
    image[:, 10:25, 10:30] += 0.8
    image[:, 20:35, 25:45] -= 0.5
    return image


def rectangles(seed: int) -> Any:
    """Separated rectangles of their own colours on a grid, and their boxes."""
    rng = np.random.default_rng(seed)
    image, boxes = np.full((3, 96, 96), 0.1), []
    for row in range(3):
        for column in range(3):
            high, wide = rng.integers(8, 26, 2)
            y, x = 32 * row + rng.integers(2, 31 - high), 32 * column + rng.integers(2, 31 - wide)
            image[:, y : y + high, x : x + wide] = rng.uniform(0.3, 1, (3, 1, 1))
            boxes.append((x, y, x + wide, y + high))
    return image, np.array(boxes, float)


@pytest.mark.parametrize(
    ("seed", "settings", "sizes"),
    [  # sizes of skimage.segmentation.felzenszwalb(image, scale, sigma, min_size, channel_axis=0)
        (
            0,
            (100, 0.8, 20),
            [
                113,
                81,
                91,
                67,
                62,
                27,
                270,
                48,
                146,
                182,
                45,
                47,
                31,
                24,
                195,
                26,
                23,
                95,
                119,
                21,
                73,
                73,
                23,
                30,
                40,
                48,
            ],
        ),
        (
            1,
            (50, 0.5, 10),
            [
                74,
                12,
                38,
                61,
                15,
                36,
                29,
                25,
                55,
                19,
                24,
                20,
                17,
                16,
                26,
                15,
                16,
                67,
                16,
                113,
                39,
                34,
                14,
                16,
                27,
                12,
                25,
                22,
                19,
                45,
                29,
                55,
                19,
                32,
                55,
                27,
                12,
                16,
                20,
                47,
                19,
                32,
                15,
                30,
                38,
                79,
                20,
                14,
                22,
                18,
                15,
                46,
                25,
                36,
                51,
                38,
                36,
                66,
                23,
                19,
                22,
                51,
                26,
            ],
        ),
        (2, (300, 1.0, 30), [1342, 52, 99, 208, 47, 252]),
    ],
)
def test_segments_are_those_of_skimage(seed: int, settings: Any, sizes: list[int]) -> None:
    segments = felzenszwalb(noisy(seed), *settings)
    assert np.bincount(segments.ravel()).tolist() == sizes


def test_segments_cover_the_picture_and_are_large_enough() -> None:
    segments = felzenszwalb(noisy(0), 30, 0.5, 15)
    assert segments.shape == (40, 50) and np.bincount(segments.ravel()).min() >= 15
    assert (np.unique(segments) == np.arange(segments.max() + 1)).all()
    fewer = felzenszwalb(noisy(0), 1000, 0.5, 15)
    assert fewer.max() < segments.max()
    grey = noisy(0).mean(0)
    np.testing.assert_array_equal(felzenszwalb(grey), felzenszwalb(torch.tensor(grey)[None]))


@pytest.mark.parametrize("seed", range(3))
def test_n_segments_give_2n_minus_1_boxes_and_the_last_is_the_picture(seed: int) -> None:
    found = selective_search(noisy(seed))
    n = found.segments.max() + 1
    assert found.regions.shape == (2 * n - 1, 4) and found.merges.shape == (n - 1, 2)
    assert found.regions[-1].tolist() == found.boxes[-1].tolist() == [0, 0, 50, 40]
    assert len(np.unique(found.boxes, axis=0)) == len(found.boxes)
    assert {tuple(b) for b in found.boxes} == {tuple(b) for b in found.regions}
    assert sorted(found.merges.ravel()) == list(range(2 * n - 2))  # everything merges once


def test_each_step_merges_the_most_similar_neighbours() -> None:
    from groundstate.nn.detection.regions import _histograms

    image = noisy(1)
    found = selective_search(image)
    segments, total = found.segments, found.segments.size
    n = segments.max() + 1
    hist = dict(enumerate(_histograms(image, segments, n)))
    masks = {i: segments == i for i in range(n)}

    def box(mask: Any) -> int:
        rows, columns = np.nonzero(mask)
        return (np.ptp(rows) + 1) * (np.ptp(columns) + 1)

    def touch(a: Any, b: Any) -> bool:
        wide = np.pad(a, 1)
        near = np.any(
            [wide[1 + i : 41 + i, 1 + j : 51 + j] for i in (-1, 0, 1) for j in (-1, 0, 1)], 0
        )
        return bool((near & b).any())

    for step, (i, j) in enumerate(found.merges):
        values = {}
        for a in masks:
            for b in masks:
                if a < b and touch(masks[a], masks[b]):
                    size = masks[a].sum() + masks[b].sum()
                    fill = box(masks[a] | masks[b]) - size
                    values[a, b] = np.minimum(hist[a], hist[b]).sum() + 2 - (size + fill) / total
        best = max(values.values())
        assert values[i, j] == pytest.approx(best, abs=1e-9)
        assert found.similarity[step] == pytest.approx(best, abs=1e-9)
        one, two = masks.pop(i), masks.pop(j)
        masks[n + step] = one | two
        hist[n + step] = (hist.pop(i) * one.sum() + hist.pop(j) * two.sum()) / (one | two).sum()


@pytest.mark.parametrize("seed", range(5))
def test_every_separated_rectangle_is_found(seed: int) -> None:
    image, boxes = rectangles(seed)
    found = selective_search(image, min_size=20)
    assert (iou(boxes, found.boxes).max(1) >= 0.5).all()
    bytes_ = selective_search((255 * image).astype(np.uint8), min_size=20)
    assert (iou(boxes, bytes_.boxes).max(1) >= 0.5).all()


def test_cuts_of_the_hierarchy_are_nested() -> None:
    found = selective_search(noisy(0))
    n = found.segments.max() + 1
    np.testing.assert_array_equal(found.labels(n), found.segments)
    for k in range(1, n):
        coarse, fine = found.labels(k), found.labels(k + 1)
        assert coarse.max() + 1 == k
        assert len(np.unique(np.stack([coarse.ravel(), fine.ravel()]), axis=1).T) == k + 1
    with pytest.raises(ValueError, match="k is from 1 to the"):
        found.labels(0)


def test_a_constant_picture_is_one_region() -> None:
    found = selective_search(np.full((3, 12, 9), 0.5))
    assert found.boxes.tolist() == [[0, 0, 9, 12]] and found.merges.shape == (0, 2)
    assert selective_search(np.zeros((1, 1))).boxes.tolist() == [[0, 0, 1, 1]]


def test_bad_pictures_are_refused() -> None:
    with pytest.raises(ShapeError, match=r"at most 4 channels, got \(40, 50, 3\)"):
        selective_search(noisy(0).transpose(1, 2, 0))
    with pytest.raises(DataError, match="NaN or infinity"):
        felzenszwalb(np.full((4, 4), np.nan))
    with pytest.raises(ValueError, match="scale is positive"):
        felzenszwalb(np.zeros((4, 4)), scale=0)
