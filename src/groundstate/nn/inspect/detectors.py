r"""Drawings of detectors as SVG: what flows from the picture to boxes, classes and masks."""

from __future__ import annotations

from html import escape
from itertools import pairwise
from typing import Any

from groundstate.nn.detection.anchors import AnchorGenerator
from groundstate.nn.detection.fast_rcnn import FastRCNN
from groundstate.nn.detection.rcnn import FasterRCNN
from groundstate.nn.detection.region_cnn import RCNN
from groundstate.nn.detection.rpn import RPN
from groundstate.nn.inspect.draw import HIGH, INK, LOW, Drawing

WIDE, HIGH_ROW, GAP = 132.0, 46.0, 34.0
PALE = {"data": "#eef2f7", "net": "#dbe7f5", "choice": "#fbe9d3"}
Box = tuple[float, float, float, float]  # left, top, width, height


class Blocks:
    """Boxes with text and arrows between them, on a grid of columns and rows."""

    def __init__(self) -> None:
        self.shapes: list[str] = []
        self.lines: list[str] = []
        self.right = self.low = 0.0

    def box(self, column: float, row: float, lines: list[str], kind: str = "net") -> Box:
        """A box of one of the kinds: data, a network with weights, a choice without any."""
        left, top = 12 + column * (WIDE + GAP), 12 + row * (HIGH_ROW + 18)
        stroke = {"net": HIGH, "choice": LOW}.get(kind, INK)
        self.shapes.append(
            f'<rect class="node" x="{left:g}" y="{top:g}" width="{WIDE:g}" height="{HIGH_ROW:g}" rx="6" '
            f'fill="{PALE[kind]}" stroke="{stroke}"/>'
        )
        first = top + HIGH_ROW / 2 + 4 - 6.5 * (len(lines) - 1)
        for i, line in enumerate(lines):
            weight = "600" if i == 0 else "400"
            self.shapes.append(
                f'<text x="{left + WIDE / 2:g}" y="{first + 13 * i:g}" font-size="{11 if i == 0 else 9.5}" '
                f'font-weight="{weight}" fill="#223" text-anchor="middle">{escape(line)}</text>'
            )
        self.right, self.low = max(self.right, left + WIDE), max(self.low, top + HIGH_ROW)
        return left, top, WIDE, HIGH_ROW

    def arrow(self, a: Box, b: Box) -> None:
        """From the right of one box to the left of another, or from its foot where that is below."""
        if b[0] > a[0] + a[2]:
            start, end = (a[0] + a[2], a[1] + a[3] / 2), (b[0], b[1] + b[3] / 2)
            middle = (start[0] + end[0]) / 2
            path = f"M{start[0]:g} {start[1]:g}H{middle:g}V{end[1]:g}H{end[0] - 5:g}"
            tip = f"{end[0] - 6:g},{end[1] - 3.5:g} {end[0]:g},{end[1]:g} {end[0] - 6:g},{end[1] + 3.5:g}"
        else:
            x, y = b[0] + b[2] / 2, b[1]
            path = f"M{x:g} {a[1] + a[3]:g}V{y - 5:g}"
            tip = f"{x - 3.5:g},{y - 6:g} {x:g},{y:g} {x + 3.5:g},{y - 6:g}"
        self.lines.append(f'<path class="edge" d="{path}" fill="none" stroke="{INK}"/>')
        self.shapes.append(f'<polygon points="{tip}" fill="{INK}"/>')

    def chain(self, *boxes: Box) -> None:
        """Arrows from each box to the next."""
        for a, b in pairwise(boxes):
            self.arrow(a, b)

    def drawing(self) -> Drawing:
        body = "\n".join([*self.lines, *self.shapes])
        nodes = sum('class="node"' in s for s in self.shapes)
        return Drawing(
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.right + 12:g} {self.low + 12:g}" '
            f'font-family="sans-serif">\n{body}\n</svg>\n',
            nodes,
            len(self.lines),
        )


def draw_rpn(head: RPN, anchors: AnchorGenerator | None = None) -> Drawing:
    """Region proposals: a 3×3 window over the feature map, two sibling layers, k anchors of a cell.

    Examples
    --------
    >>> draw_rpn(RPN(256, 9)).nodes
    6
    """
    blocks, k = Blocks(), head.k
    channels = head.bbox_pred.in_channels
    start = blocks.box(0, 0.5, ["feature map", f"{channels} × H × W"], "data")
    window = blocks.box(1, 0.5, ["3×3 conv, ReLU", f"{channels} numbers a cell"])
    scores = f"{2 * k} scores, softmax" if head.softmax else f"{k} logits, sigmoid"
    object_ = blocks.box(2, 0, ["1×1 conv", f"objectness: {scores}"])
    offsets = blocks.box(2, 1, ["1×1 conv", f"{4 * k} offsets tx ty tw th"])
    per_cell = f"{k} at each cell"
    if anchors is not None:
        per_cell = f"{len(anchors.sizes[0])} sizes × {len(anchors.ratios)} ratios a cell"
    fixed = blocks.box(3, 1.5, ["anchors", per_cell], "data")
    chosen = blocks.box(3, 0.25, ["best, moved, cut", "without overlaps (NMS)"], "choice")
    blocks.chain(start, window, object_, chosen)
    blocks.arrow(window, offsets)
    blocks.arrow(offsets, chosen)
    blocks.lines.append(
        f'<path class="edge" d="M{fixed[0] + WIDE / 2:g} {fixed[1]:g}V{chosen[1] + HIGH_ROW:g}" '
        f'fill="none" stroke="{INK}" stroke-dasharray="3 3"/>'
    )
    return blocks.drawing()


def draw_detector(net: FasterRCNN, image: tuple[int, int] | None = None) -> Drawing:
    """Faster R-CNN, or Mask R-CNN, with its own sizes: one pass of the backbone, proposals from its
    maps, heads on the proposals.

    Parameters
    ----------
    net : the network
    image : height and width of a picture

    Examples
    --------
    >>> net = FasterRCNN(4, fpn=16, levels=2, sizes=(8, 16, 32), hidden=32)
    >>> draw_detector(net, (96, 96)).nodes
    9
    """
    blocks = Blocks()
    size = "H × W" if image is None else f"{image[0]} × {image[1]}"
    heads, channels = net.roi_heads, net.backbone.out_channels
    score: Any = heads.box_predictor.cls_score
    classes = score.out_features
    maps = f"{net.backbone.maps} maps" if net.backbone.maps > 1 else "one map"
    top = blocks.box(0, 1, ["picture", f"{net.in_channels} × {size}"], "data")
    body = type(net.backbone.body).__name__
    back = blocks.box(1, 1, ["backbone, once", body])
    features = blocks.box(
        2, 1, ["pyramid" if net.backbone.fpn else "feature map", f"{maps}, {channels} channels"]
    )
    proposer = blocks.box(3, 0, ["region proposals", f"{net.rpn.head.k} anchors a cell"])
    proposals = blocks.box(4, 0, ["best boxes, NMS", f"at most {net.rpn.after[1]}"], "choice")
    side = heads.features.size
    align = blocks.box(4, 1, ["RoIAlign", f"{channels} × {side} × {side} a region"], "choice")
    dense = blocks.box(5, 1, ["two dense layers", f"{score.in_features} units"])
    label = blocks.box(6, 0.5, ["classes", f"{classes} logits, softmax"])
    moved = blocks.box(6, 1.5, ["boxes", f"4 × {classes} offsets"])
    blocks.chain(top, back, features, align, dense, label)
    blocks.chain(features, proposer, proposals)
    blocks.arrow(proposals, align)
    blocks.arrow(dense, moved)
    if heads.mask_head is not None:
        fine = blocks.box(4, 2.5, ["RoIAlign", f"{channels} × 14 × 14 a region"], "choice")
        conv = blocks.box(
            5, 2.5, [f"{len(list(heads.mask_head.children()))} convolutions", "and one transposed"]
        )
        mask = blocks.box(6, 2.5, ["masks", f"{classes} × 28 × 28, sigmoid"])
        blocks.chain(features, fine, conv, mask)
    return blocks.drawing()


def draw_fast_rcnn(net: FastRCNN, image: tuple[int, int] | None = None) -> Drawing:
    """Fast R-CNN with its own sizes: regions from the picture, one pass of the backbone, a head.

    Parameters
    ----------
    net : the network
    image : height and width of a picture

    Examples
    --------
    >>> draw_fast_rcnn(FastRCNN(4, hidden=32), (96, 96)).nodes
    8
    """
    blocks = Blocks()
    size = "H × W" if image is None else f"{image[0]} × {image[1]}"
    channels, score = net.backbone.out_channels, net.roi_heads.box_predictor.cls_score
    classes: Any = score.out_features  # type: ignore[union-attr]
    units: Any = score.in_features  # type: ignore[union-attr]
    picture = blocks.box(0, 1, ["picture", f"{net.in_channels} × {size}"], "data")
    search = blocks.box(1, 0, ["selective search", f"at most {net.proposals.most}"], "choice")
    back = blocks.box(1, 1, ["backbone, once", type(net.backbone.body).__name__])
    features = blocks.box(2, 1, ["feature map", f"{channels} channels"], "data")
    pool = blocks.box(3, 1, ["RoI pooling", f"{channels} × 7 × 7 a region"], "choice")
    dense = blocks.box(4, 1, ["two dense layers", f"{units} units"])
    label = blocks.box(5, 0.5, ["classes", f"{classes} logits, softmax"])
    moved = blocks.box(5, 1.5, ["boxes", f"4 × {classes} offsets"])
    blocks.chain(picture, back, features, pool, dense, label)
    blocks.chain(picture, search, pool)
    blocks.arrow(dense, moved)
    return blocks.drawing()


def draw_rcnn(net: RCNN, image: tuple[int, int] | None = None) -> Drawing:
    """R-CNN with its own sizes: a warped crop and a pass of the network for every region.

    Parameters
    ----------
    net : the network
    image : height and width of a picture

    Examples
    --------
    >>> draw_rcnn(RCNN(4, crop=32, hidden=32), (96, 96)).nodes
    7
    """
    blocks = Blocks()
    size = "H × W" if image is None else f"{image[0]} × {image[1]}"
    crop: Any = net.heads.features.size
    classes, units = net.weight.shape
    picture = blocks.box(0, 0.5, ["picture", f"{net.in_channels} × {size}"], "data")
    search = blocks.box(1, 0.5, ["selective search", f"at most {net.proposals.most}"], "choice")
    warp = blocks.box(2, 0.5, ["crop and warp", f"{crop} × {crop} a region"], "choice")
    body = blocks.box(3, 0.5, ["network", "a pass for every region"])
    dense = blocks.box(4, 0.5, ["features", f"{units} of a region"], "data")
    label = blocks.box(5, 0, ["classes", f"{classes} linear SVMs"])
    moved = blocks.box(5, 1, ["boxes", f"4 × {classes} ridge regressions"])
    blocks.chain(picture, search, warp, body, dense, label)
    blocks.arrow(dense, moved)
    return blocks.drawing()
