r"""Shapes are found, named and cut out of their scenes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from groundstate.compute.random import Key
from groundstate.data import make_shapes
from groundstate.experiments.base import COLOURS, Axes, Claim, Figure, Result, experiment
from groundstate.models.vision.object_detector import ObjectDetector
from groundstate.nn.detection.boxes import iou

SIDE, TRAIN, TEST, EPOCHS = 96, 500, 100, 7
NAMES = np.array(["circle", "square", "triangle"])
Found = Mapping[str, Any]


def scenes(n: int, key: Key) -> tuple[Any, list[tuple[Any, Any, Any]]]:
    """Pictures, and the boxes, names and masks of the shapes in each."""
    made = make_shapes(n, SIDE, (1, 3), random_state=key)
    rows = zip(made.boxes, made.labels, made.masks, strict=True)
    return made.images, [(boxes, NAMES[labels - 1], masks) for boxes, labels, masks in rows]


def mask_overlap(found: Sequence[Found], known: Sequence[tuple[Any, Any, Any]]) -> float:
    """Mean IoU of the masks of all shapes with the mask of the best detection on their box; 0 where a
    shape was not found.
    """
    each: list[float] = []
    for answer, (boxes, labels, masks) in zip(found, known, strict=True):
        sure = answer["scores"] > 0.5
        for box, label, mask in zip(boxes, labels, masks, strict=True):
            own = sure & (answer["labels"] == label)
            if not own.any():
                each.append(0.0)
                continue
            best = iou(box[None], answer["boxes"][own]).argmax()
            other = answer["masks"][own][best]
            each.append(float((mask & other).sum() / (mask | other).sum()))
    return float(np.mean(each))


def draw_objects(ax: Axes, image: Any, found: Found, threshold: float = 0.5) -> None:
    """A picture with the boxes, names and masks of the objects in it."""
    shown = np.asarray(image).transpose(1, 2, 0).copy()
    scores = found.get("scores", np.ones(len(found["boxes"])))
    for i in np.flatnonzero(np.asarray(scores) >= threshold):
        label = str(found["labels"][i])
        colour = COLOURS[int(np.flatnonzero(label == NAMES)[0])]
        if "masks" in found:
            paint = np.array([int(colour[j : j + 2], 16) for j in (1, 3, 5)]) / 255
            inside = np.asarray(found["masks"][i])
            shown[inside] = 0.4 * shown[inside] + 0.6 * paint
        x1, y1, x2, y2 = (float(v) for v in found["boxes"][i])
        ax.plot([x1, x2, x2, x1, x1], [y1, y1, y2, y2, y1], color=colour, lw=1.6)
        caption = label if "scores" not in found else f"{label} {scores[i]:.2f}"
        ax.text(x1, y1 - 1.5, caption, color=colour, fontsize=7, weight="bold")
    ax.imshow(np.clip(shown, 0, 1), extent=(0, shown.shape[1], shown.shape[0], 0))
    ax.set(xlim=(0, shown.shape[1]), ylim=(shown.shape[0], 0), xticks=[], yticks=[])


@experiment("ARC-x-detect", theme="architectures", title="Detect and segment shapes", slow=True)
def detect(seed: int = 0, *, quick: bool = False) -> Result:
    r"""The energy :math:`e(x, y) = \sum_b -\log p(c_b\mid x) + \sum_{b:c_b>0}\ell(t_b - t_b^*)` of a set
    of shapes is lowered on a balanced sample of anchors and proposals; the set of lowest energy in a
    new scene is found by taking the best class of each proposal and thinning out what overlaps. With
    a mask branch every shape is cut out too.

    500 scenes of 96 × 96 pixels with one to three circles, squares and triangles, Faster and Mask
    R-CNN on a small backbone, 7 epochs; 100 new scenes. A quick run learns one from 60 scenes in 4 epochs.
    """
    key = Key.of(seed)
    X, y = scenes(60 if quick else TRAIN, key.fold("train"))
    new, known = scenes(TEST, key.fold("test"))
    precision: dict[str, float] = {}
    strict: dict[str, float] = {}
    epochs: dict[str, int] = {}
    found: list[dict[str, Any]] = []
    for method in ("mask",) if quick else ("faster", "mask"):
        model = ObjectDetector(
            method,
            max_epochs=4 if quick else EPOCHS,
            random_state=key.fold("weights"),
            device="auto",
        )
        model.fit(X, y)
        scores = model.average_precision(new, known)
        precision[method], strict[method], epochs[method] = scores.ap50, scores.ap, model.n_iter_
        found = model.predict(new)
    overlap = mask_overlap(found, known)
    claims = [
        *(Claim.at_least(f"AP50 of the boxes, {name}", v, 0.9) for name, v in precision.items()),
        Claim.at_least("mean IoU of the masks", overlap, 0.8),
    ]
    numbers = {"AP50": precision, "mAP": strict, "mask IoU": overlap, "epochs": epochs}

    def draw(figure: Figure) -> None:
        axes = figure.subplots(2, 4)
        for i in range(4):
            boxes, labels, masks = known[i]
            draw_objects(axes[0, i], new[i], {"boxes": boxes, "labels": labels, "masks": masks})
            draw_objects(axes[1, i], new[i], found[i])
        axes[0, 0].set(ylabel="drawn")
        axes[1, 0].set(ylabel="found")

    return Result(claims, numbers, draw, size=(8.0, 4.2))
