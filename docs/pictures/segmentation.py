"""Pictures of masks: scenes, what a segmenter finds, how tiles are blended."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import torch
from common import COLOURS, figure
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure

from groundstate import Segmenter
from groundstate.data import make_shapes
from groundstate.infer.tiles import _starts, _weight

MAP = ListedColormap(["#f3f4f6", *COLOURS[:3]])
NAMES = ("background", "circle", "square", "triangle")


@cache
def fitted() -> tuple[Any, Any]:
    """A small U-Net and scenes that it has not seen."""
    shapes = {"n_objects": 1, "radius": (0.2, 0.35), "tilt": 0.0}
    train = make_shapes(300, 32, random_state=0, **shapes)
    model = Segmenter(
        network_params={"base": 8, "depth": 3}, max_epochs=20, lr=5e-3, schedule="onecycle",
        val_fraction=0.0, patience=None, random_state=0,
    )  # fmt: skip
    return model.fit(train.images, train.semantic), make_shapes(4, 32, random_state=1, **shapes)


def _mask(ax: Any, mask: Any, title: str = "") -> None:
    ax.imshow(mask, cmap=MAP, vmin=0, vmax=3, interpolation="nearest", rasterized=True)
    ax.set(title=title, xticks=[], yticks=[])


def segmentation_scenes() -> Figure:
    """Scenes of ``make_shapes`` with boxes, and the labels of their pixels."""
    scenes = make_shapes(5, 64, (1, 3), random_state=0)
    fig = Figure(figsize=(8.4, 3.5), layout="constrained")
    for column, pair in zip(scenes, fig.subplots(2, 5).T):
        pair[0].imshow(column.image.transpose(1, 2, 0), rasterized=True)
        for (left, top, right, bottom), label in zip(column.boxes - 0.5, column.labels):
            x, y = [left, right, right, left, left], [top, top, bottom, bottom, top]
            pair[0].plot(x, y, color=COLOURS[label - 1], linewidth=1.2)
        pair[0].set(xticks=[], yticks=[])
        _mask(pair[1], column.semantic)
    return fig


def segmentation_found() -> Figure:
    """New scenes: picture, mask, what was found, and how sure the network is of it."""
    model, scenes = fitted()
    p = model.predict_proba(scenes.images)
    titles = ("picture", "mask", "found", "probability of the label")
    fig = Figure(figsize=(7.6, 7.4), layout="constrained")
    for i, row in enumerate(fig.subplots(4, 4)):
        named = titles if i == 0 else ("",) * 4
        row[0].imshow(scenes.images[i].transpose(1, 2, 0), rasterized=True)
        row[0].set(title=named[0], xticks=[], yticks=[])
        _mask(row[1], scenes.semantic[i], named[1])
        _mask(row[2], p[i].argmax(0), named[2])
        row[3].imshow(p[i].max(0), cmap="viridis", vmin=0.25, vmax=1, rasterized=True)
        row[3].set(title=named[3], xticks=[], yticks=[])
    return fig


def segmentation_tiles() -> Figure:
    """Weights of three tiles along an axis, which add up to one where they are blended."""
    fig, axes = figure(1, height=2.4)
    size, tile, margin = 160, 64, 12
    starts = _starts(size, tile, margin, 8)
    total = np.zeros(size)
    for start in starts:
        total[start : start + tile] += _weight(
            [start], [size], [tile], [margin], torch.zeros(1)
        ).numpy()
    for start, colour in zip(starts, (*COLOURS, *COLOURS)):
        weight = _weight([start], [size], [tile], [margin], torch.zeros(1)).numpy()
        share = weight / total[start : start + tile]
        axes[0].fill_between(
            range(start, start + tile), share, color=colour, alpha=0.45, linewidth=0
        )
        axes[0].plot([start, start + tile - 1], [-0.06, -0.06], color=colour, linewidth=3)
    axes[0].set(xlabel="pixel", ylabel="weight of a tile", ylim=(-0.1, 1.05))
    return fig


def segmentation_overlap() -> Figure:
    """Mean IoU and boundary distance of a disc that is moved: overlap falls, distance grows."""
    from groundstate.evaluate.metrics import dice, hausdorff, iou

    y, x = np.mgrid[:64, :64] - 31.5
    disc = x**2 + y**2 <= 16**2
    moves = range(0, 33, 2)
    moved = [np.roll(disc, m, 1) for m in moves]
    fig, axes = figure(2, height=2.8)
    for name, metric, colour in (("IoU", iou, COLOURS[0]), ("Dice", dice, COLOURS[1])):
        axes[0].plot(
            moves, [metric(disc[None], m[None])[1] for m in moved], color=colour, label=name
        )
    axes[0].set(xlabel="disc of radius 16 moved by", ylim=(0, 1.02))
    axes[0].legend(frameon=False)
    axes[1].plot(
        moves, [hausdorff(disc, m) for m in moved], color=COLOURS[2], label="furthest point"
    )
    far = [hausdorff(disc, m, percentile=95) for m in moved]
    axes[1].plot(moves, far, color=COLOURS[3], label="95 % of the points")
    axes[1].set(xlabel="moved by", ylabel="Hausdorff distance")
    axes[1].legend(frameon=False)
    return fig


PICTURES = {
    "segmentation_scenes": segmentation_scenes,
    "segmentation_found": segmentation_found,
    "segmentation_tiles": segmentation_tiles,
    "segmentation_overlap": segmentation_overlap,
}
