"""Scenes of shapes: boxes, labels and masks say the same, and scenes do not depend on their number."""

from __future__ import annotations

import numpy as np
import pytest

from groundstate.data import SHAPES, make_shapes


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("size", [48, (40, 72)])
def test_boxes_labels_and_masks_agree(seed: int, size: int | tuple[int, int]) -> None:
    height, width = (size, size) if isinstance(size, int) else size
    scenes = make_shapes(12, size, (0, 4), overlap=0.3, random_state=seed)
    assert scenes.images.shape == (12, 3, height, width) and scenes.images.dtype == np.float32
    assert scenes.images.min() >= 0 and scenes.images.max() <= 1
    for scene in scenes:
        k = len(scene.labels)
        assert 0 <= k <= 4 and set(scene.labels.tolist()) <= {1, 2, 3}
        assert scene.boxes.shape == (k, 4) and scene.masks.shape == (k, height, width)
        assert (scene.masks.sum(0) <= 1).all()  # a pixel shows one shape
        semantic = np.zeros((height, width), np.int64)
        for mask, label, box in zip(scene.masks, scene.labels, scene.boxes, strict=True):
            semantic[mask] = label
            y, x = np.nonzero(mask)
            assert box.tolist() == [x.min(), y.min(), x.max() + 1, y.max() + 1]
            assert mask.sum() >= 9
        np.testing.assert_array_equal(semantic, scene.semantic)


def test_areas_are_those_of_the_shapes() -> None:
    scenes = make_shapes(200, 96, 1, tilt=0, random_state=0)
    filled: dict[int, list[float]] = {1: [], 2: [], 3: []}
    for scene in scenes:
        x0, y0, x1, y1 = scene.boxes[0]
        filled[int(scene.labels[0])].append(scene.masks[0].sum() / ((x1 - x0) * (y1 - y0)))
    for label, share in zip((1, 2, 3), (np.pi / 4, 1.0, 0.5), strict=True):
        assert np.mean(filled[label]) == pytest.approx(share, abs=0.03), SHAPES[label - 1]


def test_a_scene_depends_on_its_seed_and_number_alone() -> None:
    few, many = make_shapes(3, 32, random_state=5), make_shapes(8, 32, random_state=5)
    np.testing.assert_array_equal(few.images, many.images[:3])
    np.testing.assert_array_equal(few[2].boxes, many[2].boxes)
    assert not np.array_equal(few.images, make_shapes(3, 32, random_state=6).images)


def test_shapes_stand_out_and_lie_apart() -> None:
    scenes = make_shapes(30, 64, 3, overlap=0.0, noise=0.0, random_state=0)
    for scene in scenes:
        ground = scene.image[:, scene.semantic == 0].mean(1)
        for mask in scene.masks:
            assert np.abs(scene.image[:, mask].mean(1) - ground).max() > 0.2
        a, b = scene.boxes[0], scene.boxes[1]
        assert (np.minimum(a[2:], b[2:]) <= np.maximum(a[:2], b[:2])).any()


def test_radius() -> None:
    large = make_shapes(20, 64, 1, radius=(0.3, 0.4), random_state=0)
    sides = np.concatenate([b[:, 2:] - b[:, :2] for b in large.boxes])
    assert sides.min() > 0.3 * 64 and sides.max() <= 0.8 * 64 + 1
    small = make_shapes(20, 64, 1, random_state=0)
    assert max((b[:, 2:] - b[:, :2]).max() for b in small.boxes) <= 0.4 * 64 + 1


def test_bad_arguments() -> None:
    with pytest.raises(ValueError, match="size >= 16"):
        make_shapes(1, 8)
    with pytest.raises(ValueError, match="overlap=-0.1"):
        make_shapes(1, overlap=-0.1)
    with pytest.raises(ValueError, match="0 < radius < 0.5"):
        make_shapes(1, radius=(0.3, 0.2))
    with pytest.raises(ValueError, match="no room for .* take fewer n_objects"):
        make_shapes(1, 16, 12, overlap=0.0, random_state=0)
    assert len(make_shapes(0)) == 0
