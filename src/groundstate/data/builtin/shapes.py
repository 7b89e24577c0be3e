"""Scenes of circles, squares and triangles with their boxes and masks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundstate.compute.random import Key, RandomState

SHAPES = ("circle", "square", "triangle")
F32 = NDArray[np.float32]
F64 = NDArray[np.float64]

_SMALLEST = 3.0  # radius in pixels below which the shapes cannot be told apart
_TRIES = 400  # places tried for a shape
_CONTRAST = 0.35  # of a shape's colour to the background, in the channel where it is largest


@dataclass(frozen=True)
class Scene:
    """One picture and what is on it.

    Attributes
    ----------
    image : (3, H, W) float32 in [0, 1]
    boxes : (k, 4) float32, left, top, right and bottom edge of the visible pixels of a shape
    labels : (k,) int64, 1 circle, 2 square, 3 triangle (``SHAPES`` from 1 on)
    masks : (k, H, W) bool, the visible pixels of each shape
    semantic : (H, W) int64, the label of each pixel, 0 background
    """

    image: F32
    boxes: F32
    labels: NDArray[np.int64]
    masks: NDArray[np.bool_]
    semantic: NDArray[np.int64]


@dataclass(frozen=True)
class Scenes:
    """Pictures of one size; ``scenes[i]`` is a ``Scene``.

    Attributes
    ----------
    images : (n, 3, H, W) float32 in [0, 1]
    boxes, labels, masks : lists of n arrays as in ``Scene``
    semantic : (n, H, W) int64
    """

    images: F32
    boxes: list[F32]
    labels: list[NDArray[np.int64]]
    masks: list[NDArray[np.bool_]]
    semantic: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, i: int) -> Scene:
        return Scene(self.images[i], self.boxes[i], self.labels[i], self.masks[i], self.semantic[i])

    def __iter__(self) -> Iterator[Scene]:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        height, width = self.semantic.shape[1:]
        return f"Scenes(n={len(self)}, {height} x {width}, shapes={sum(map(len, self.labels))})"


def make_shapes(
    n: int = 100,
    size: int | tuple[int, int] = 64,
    n_objects: int | tuple[int, int] = (1, 3),
    *,
    radius: tuple[float, float] = (0.1, 0.2),
    overlap: float = 0.05,
    tilt: float = 15.0,
    noise: float = 0.03,
    random_state: RandomState = None,
) -> Scenes:
    r"""Draw scenes of circles, squares and triangles of random place, size and colour.

    A shape covers the pixels whose centre lies inside it; a later one hides what is under it, and
    boxes and masks are those of the visible part. The colour does not tell the shape. Scene i does
    not depend on n.

    Parameters
    ----------
    n : scenes
    size : side in pixels, or (height, width)
    n_objects : shapes of a scene, or (least, most)
    radius : least and largest one of the circle around a shape, in shorter sides of the picture; where
        there is little room, shapes get smaller, down to 3 pixels
    overlap : largest intersection over union of the boxes of two shapes when they are placed
    tilt : largest turn in degrees, to both sides
    noise : standard deviation of the noise on every pixel and channel
    random_state : source of the draws

    Examples
    --------
    >>> scenes = make_shapes(10, size=48, n_objects=2, random_state=0)
    >>> scenes
    Scenes(n=10, 48 x 48, shapes=20)
    >>> scenes[0].image.shape, scenes[0].boxes.shape, scenes[0].masks.shape
    ((3, 48, 48), (2, 4), (2, 48, 48))
    >>> bool((scenes[0].semantic[scenes[0].masks[1]] == scenes[0].labels[1]).all())
    True
    """
    height, width = (size, size) if isinstance(size, int) else size
    least, most = (n_objects, n_objects) if isinstance(n_objects, int) else n_objects
    if n < 0 or min(height, width) < 16 or not 0 <= least <= most:
        raise ValueError(
            "make_shapes needs n >= 0, size >= 16 and 0 <= n_objects (least <= most), got "
            f"n={n}, size={size}, n_objects={n_objects}"
        )
    if not 0 <= overlap <= 1 or noise < 0 or tilt < 0:
        raise ValueError(
            "make_shapes needs 0 <= overlap <= 1, noise >= 0 and tilt >= 0, got "
            f"overlap={overlap}, noise={noise}, tilt={tilt}"
        )
    if not 0 < radius[0] <= radius[1] < 0.5:
        raise ValueError(f"make_shapes needs 0 < radius < 0.5 (least <= largest), got {radius}")
    key = Key.of(random_state)
    side = min(height, width)
    reach = (max(_SMALLEST + 1, side * radius[0]), max(_SMALLEST + 1.5, side * radius[1]))
    rest = (least, most), reach, overlap, tilt, noise
    scenes = [_scene(key.fold("scene", i).numpy(), height, width, *rest) for i in range(n)]
    return Scenes(
        np.stack([s.image for s in scenes]) if n else np.zeros((0, 3, height, width), np.float32),
        [s.boxes for s in scenes],
        [s.labels for s in scenes],
        [s.masks for s in scenes],
        np.stack([s.semantic for s in scenes]) if n else np.zeros((0, height, width), np.int64),
    )


def _scene(
    rng: np.random.Generator, height: int, width: int, objects: tuple[int, int],
    reach: tuple[float, float], overlap: float, tilt: float, noise: float,
) -> Scene:  # fmt: skip
    k = int(rng.integers(objects[0], objects[1] + 1))
    labels = rng.integers(1, len(SHAPES) + 1, k)
    rows, columns = np.mgrid[:height, :width] + 0.5
    ground = rng.uniform(0.2, 0.8, 3)
    slope = rng.uniform(-0.1, 0.1, 2)  # light from one side
    light = slope[0] * (rows / height - 0.5) + slope[1] * (columns / width - 0.5)
    image = ground[:, None, None] + light
    instance = np.full((height, width), -1)
    boxes: list[Any] = []
    for i, label in enumerate(labels):
        angle = np.deg2rad(rng.uniform(-tilt, tilt))
        inside, box = _placed(rng, label, angle, rows, columns, boxes, instance, reach, overlap)
        boxes.append(box)
        instance[inside] = i
        image[:, inside] = _colour(rng, ground)[:, None] + 0.5 * light[inside]
    image = np.clip(image + noise * rng.standard_normal(image.shape), 0, 1)
    masks = instance == np.arange(k)[:, None, None]
    semantic = np.concatenate([[0], labels])[instance + 1]
    visible = np.array([_box(m) for m in masks], np.float32).reshape(k, 4)
    return Scene(image.astype(np.float32), visible, labels, masks, semantic)


def _placed(
    rng: np.random.Generator, label: int, angle: float, rows: F64, columns: F64,
    boxes: list[F64], instance: NDArray[Any], reach: tuple[float, float], overlap: float,
) -> tuple[NDArray[np.bool_], F64]:  # fmt: skip
    """Pixels and box of a shape that hides no other one too much; smaller with every failed try."""
    height, width = rows.shape
    for trial in range(_TRIES):
        radius = max(_SMALLEST, rng.uniform(*reach) * 0.98**trial)
        y, x = (rng.uniform(radius + 1, length - radius - 1) for length in (height, width))
        inside = _inside(label, rows - y, columns - x, radius, angle)
        box = _box(inside)
        if any(_box_overlap(box, other) > overlap for other in boxes):
            continue
        hidden = instance[inside]
        left = [(instance == i).sum() - (hidden == i).sum() for i in set(hidden.tolist()) - {-1}]
        if all(count >= 9 for count in left):  # what is under it stays to be seen
            return inside, box
    raise ValueError(
        f"no room for {len(boxes) + 1} shapes on {height} x {width} pixels with overlap={overlap}; "
        "take fewer n_objects, a larger size or a larger overlap"
    )


def _inside(label: int, y: F64, x: F64, radius: float, angle: float) -> NDArray[np.bool_]:
    """Which points (relative to the centre) a shape with this radius of its outer circle covers."""
    if label == 1:
        return x * x + y * y <= radius * radius
    corners = 4 if label == 2 else 3
    # the normals of the sides: of a square right, down, left, up; of a triangle the first one down
    first = 0.0 if corners == 4 else np.pi / 2
    turns = first + angle + 2 * np.pi * np.arange(corners) / corners
    reach = radius * np.cos(np.pi / corners)
    far = np.max([np.cos(t) * x + np.sin(t) * y for t in turns], axis=0)
    return np.asarray(far <= reach)


def _colour(rng: np.random.Generator, ground: F64) -> F64:
    """A colour that stands out from the background."""
    while True:
        colour = rng.uniform(0, 1, 3)
        if np.abs(colour - ground).max() >= _CONTRAST:
            return np.asarray(colour)


def _box(mask: NDArray[np.bool_]) -> F64:
    rows, columns = np.flatnonzero(mask.any(1)), np.flatnonzero(mask.any(0))
    return np.array([columns[0], rows[0], columns[-1] + 1, rows[-1] + 1], np.float64)


def _box_overlap(a: F64, b: F64) -> float:
    shared = np.clip(np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2]), 0, None).prod()
    return float(shared / ((a[2:] - a[:2]).prod() + (b[2:] - b[:2]).prod() - shared))
