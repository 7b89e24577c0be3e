"""Pictures of detectors: their parts, anchors and what they take, proposals of a scene."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from common import COLOURS, Plain, figure
from matplotlib.figure import Figure

from groundstate.data import make_shapes
from groundstate.experiments.architectures.detect import NAMES, draw_objects
from groundstate.nn import (
    RCNN,
    RPN,
    AnchorGenerator,
    AnchorMatcher,
    FastRCNN,
    MaskRCNN,
    draw_detector,
    draw_fast_rcnn,
    draw_rcnn,
    draw_rpn,
)
from groundstate.nn.detection.boxes import iou
from groundstate.nn.detection.regions import selective_search
from groundstate.nn.detection.sampling import balanced_sample


def detection_rcnn() -> Any:
    """Faster R-CNN with a mask branch, for pictures of 96 × 96."""
    with torch.random.fork_rng(devices=[]):
        net = MaskRCNN(4, fpn=64, sizes=(18, 22, 26, 33), levels=3, hidden=256, mask=32)
    return Plain(draw_detector(net, (96, 96)))


def detection_region_cnn() -> Any:
    """R-CNN for pictures of 96 × 96."""
    with torch.random.fork_rng(devices=[]):
        return Plain(draw_rcnn(RCNN(4, crop=32, hidden=256, proposals=500), (96, 96)))


def detection_fast_rcnn() -> Any:
    """Fast R-CNN for pictures of 96 × 96."""
    with torch.random.fork_rng(devices=[]):
        return Plain(draw_fast_rcnn(FastRCNN(4, hidden=256, proposals=500), (96, 96)))


def detection_regions() -> Figure:
    """A scene, its segments, and what is left of them while similar neighbours merge."""
    scene = make_shapes(1, size=96, n_objects=4, random_state=3)[0]
    found = selective_search(scene.image, scale=20, min_size=10)
    n = len(found.merges) + 1
    cuts = [n, max(n // 3, 4), 3]
    fig, axes = figure(4, height=2.5)
    axes[0].imshow(np.clip(scene.image.transpose(1, 2, 0), 0, 1), extent=(0, 96, 96, 0))
    for box in found.boxes:
        _outline(axes[0], box, color=COLOURS[1], lw=0.6)
    axes[0].set(title=f"{len(found.boxes)} boxes")
    for ax, k in zip(axes[1:], cuts, strict=True):
        shade = np.random.default_rng(0).permutation(k)
        ax.imshow(shade[found.labels(k)], cmap="tab20", extent=(0, 96, 96, 0), rasterized=True)
        ax.set(title=f"{k} regions")
    for ax in axes:
        ax.set(xlim=(-2, 98), ylim=(98, -2), xticks=[], yticks=[])
    return fig


def detection_rpn() -> Any:
    """Region proposals with nine anchors at each cell."""
    with torch.random.fork_rng(devices=[]):
        return Plain(draw_rpn(RPN(256, 9), AnchorGenerator()))


def _outline(ax: Any, box: Any, **style: Any) -> None:
    x1, y1, x2, y2 = (float(v) for v in box)
    ax.plot([x1, x2, x2, x1, x1], [y1, y1, y2, y2, y1], **style)


def detection_anchors() -> Figure:
    """The anchors of one cell, and those that take a shape, leave it, or are ignored."""
    scene = make_shapes(1, size=96, n_objects=3, random_state=3)[0]
    anchors = AnchorGenerator((16, 24, 34), rounded=False)
    (boxes,) = anchors([(12, 12)], (96, 96))
    own = AnchorMatcher(0.6, 0.3)(iou(torch.from_numpy(scene.boxes), boxes))
    fig, axes = figure(3, height=3.0)
    at = (12 * 6 + 6) * 9
    for i, box in enumerate(boxes[at : at + 9]):
        _outline(axes[0], box, color=COLOURS[i % 3], lw=1.2)
    axes[0].set(title="nine anchors of one cell")
    for box, taken in zip(boxes, own.tolist(), strict=True):
        if taken >= 0:
            _outline(axes[1], box, color=COLOURS[0], lw=0.8)
    axes[1].set(title=f"{int((own >= 0).sum())} of {len(own)} take a shape")
    label = torch.where(own >= 0, 1, torch.where(own == -1, 0, -1))
    chosen = balanced_sample(label, 64, random_state=0)
    for box, c, picked in zip(boxes, label.tolist(), chosen.tolist(), strict=True):
        if picked:
            _outline(axes[2], box, color=COLOURS[0] if c else COLOURS[1], lw=0.7, alpha=0.8)
    axes[2].set(title="a balanced sample of 64")
    for ax in axes:
        ax.imshow(np.clip(scene.image.transpose(1, 2, 0), 0, 1), extent=(0, 96, 96, 0), alpha=0.7)
        ax.set(xlim=(-12, 108), ylim=(108, -12), xticks=[], yticks=[])
    return fig


def detection_found() -> Figure:
    """What a detector with masks found in four new scenes, as ``bench/scripts/detector_gpu.py`` kept it."""
    kept = json.loads((Path(__file__).parent / "detected.json").read_text())
    new = make_shapes(8, size=96, random_state=1000)
    fig = Figure(figsize=(8.0, 4.2), layout="constrained")
    for i, (scene, told) in enumerate(list(zip(new, kept, strict=True))[:4]):
        known = {"boxes": scene.boxes, "labels": NAMES[scene.labels - 1], "masks": scene.masks}
        found = {k: np.array(v) for k, v in told.items() if k != "masks"}
        found["masks"] = np.stack([_filled(runs, scene.image.shape[1:]) for runs in told["masks"]])
        for row, (title, objects) in enumerate((("drawn", known), ("found", found))):
            ax = fig.add_subplot(2, 4, 4 * row + i + 1)
            draw_objects(ax, scene.image, objects)
            ax.set(ylabel=title if i == 0 else "")
    return fig


def _filled(runs: list[int], shape: Any) -> Any:
    """A mask from the places where its flat values change."""
    flat = np.zeros(int(np.prod(shape)) + 1, int)
    flat[runs] = 1 - 2 * (np.arange(len(runs)) % 2)
    return flat.cumsum()[:-1].reshape(shape).astype(bool)


PICTURES = {
    "detection_found": detection_found,
    "detection_rcnn": detection_rcnn,
    "detection_rpn": detection_rpn,
    "detection_anchors": detection_anchors,
}
