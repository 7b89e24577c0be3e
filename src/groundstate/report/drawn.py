"""Pictures of a study of masks or boxes: what was drawn, beside what the model draws."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from groundstate.compute.rows import count, to_device
from groundstate.data.images.masks import IGNORED
from groundstate.report.style import GROUPS, INK
from groundstate.report.svg import Picture, inline_svg
from groundstate.study.numbers import label, show
from groundstate.study.rows.drawn import Drawing, Masks
from groundstate.study.rows.job import RowAssessment
from groundstate.study.rows.source import part_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SHOWN = 6  # pictures of each kind
_SURE = 0.5  # score from which a box is drawn
_PAINTS = ("#2f80ed", "#f2994a", *GROUPS[2:])  # variables of the page do not reach into pixels


def drawn_rows(found: RowAssessment) -> list[Picture]:
    """The judged pictures that went worst, and typical ones."""
    assert found.drawn is not None
    metric = found.settings["metric"]
    each = found.drawn.per_picture(metric)
    known = np.flatnonzero(np.isfinite(each))
    order = known[np.argsort(each[known], kind="stable")]
    if not len(order):
        return []
    middle = max(0, len(order) // 2 - _SHOWN // 2)
    made = []
    for name, title, index in (
        ("worst", "The worst pictures", order[:_SHOWN]),
        ("typical", "Typical pictures", order[middle : middle + _SHOWN]),
    ):
        made.append(_grid(found, name, title, index, each[index]))
    return made


def _grid(
    found: RowAssessment, name: str, title: str, index: NDArray[np.intp], scores: Any
) -> Picture:
    task = Drawing.of(found.source)
    metric = found.settings["metric"]
    pixels = [_pixels(part_of(found.rows, np.array([i]))) for i in index]
    classes = task.classes if isinstance(task, Masks) else None

    def draw(figure: Figure) -> None:
        axes = figure.subplots(2 if classes is None else 3, len(index), squeeze=False)
        for column, i in enumerate(index):
            for ax in axes[:, column]:
                ax.set_axis_off()
                ax.imshow(pixels[column], cmap="gray", rasterized=True)
            axes[0, column].set_title(show(float(scores[column])), fontsize=8, color=INK)
            if classes is not None:
                _mask(axes[1, column], found.truth[i], classes)
                _mask(axes[2, column], np.asarray(found.prediction)[i], classes)
            else:
                names = _names(found)
                _boxes(axes[0, column], found.truth[i].boxes, found.truth[i].labels, None, names)
                predicted = found.prediction[i]
                _boxes(
                    axes[1, column],
                    predicted["boxes"],
                    predicted["labels"],
                    predicted["scores"],
                    names,
                )

    rows = "picture, mask as it was drawn, mask by the model" if classes is not None else (
        f"objects as they were marked, and as the model finds them (scores of {_SURE} or more)"
    )  # fmt: skip
    caption = f"From above: {rows}; {label(metric)} of each picture alone. No model had seen them."
    size = np.mean([picture.shape[:2] for picture in pixels], axis=0)
    tall = 6.6 / len(index) * float(np.clip(size[0] / size[1], 0.5, 2.0))
    height = 0.3 + (2 if classes is None else 3) * (tall + 0.08)
    svg = inline_svg(name, (7.0, height), draw, wide=True)
    data = {"rows": found.judged[index].tolist(), metric: [float(s) for s in scores]}
    return Picture(name, title, caption, svg, data, True)


def _pixels(rows: Any) -> NDArray[np.float64]:
    """One picture as ``(H, W)`` or ``(H, W, 3)`` in [0, 1]."""
    assert count(rows) == 1
    shown: Any = to_device(rows, torch.device("cpu"))
    values = np.asarray(shown.float())[0].transpose(1, 2, 0)
    values = values / 255 if values.max() > 1 else values
    return np.clip(values[..., :3] if values.shape[2] >= 3 else values[..., 0], 0, 1)


def _mask(ax: Axes, labels: Any, classes: NDArray[Any]) -> None:
    """Labels in colours over the picture; the first class, the background, stays as it is."""
    codes = np.searchsorted(classes, np.where(labels == IGNORED, classes[0], labels))
    over = np.zeros((*codes.shape, 4))
    for k in range(1, len(classes)):
        over[codes == k] = (*_rgb(_PAINTS[(k - 1) % len(_PAINTS)]), 0.6)
    ax.imshow(over, rasterized=True)


def _rgb(colour: str) -> tuple[float, float, float]:
    from matplotlib.colors import to_rgb

    r, g, b = to_rgb(colour)
    return r, g, b


def _names(found: RowAssessment) -> list[Any]:
    return sorted({name for truth in found.source.y for name in truth.labels})


def _boxes(ax: Axes, boxes: Any, labels: Any, scores: Any, names: list[Any]) -> None:
    from matplotlib.patches import Rectangle

    for j, (x1, y1, x2, y2) in enumerate(np.asarray(boxes)):
        if scores is not None and scores[j] < _SURE:
            continue
        own = labels[j].item() if isinstance(labels[j], np.generic) else labels[j]
        colour = GROUPS[names.index(own) % len(GROUPS)]
        box = Rectangle((x1 - 0.5, y1 - 0.5), x2 - x1, y2 - y1, fill=False, color=colour, lw=1.2)
        ax.add_patch(box)
        text = str(own) if scores is None else f"{own} {scores[j]:.2f}"
        ax.text(x1, y1 - 1, text, fontsize=5, color=colour, clip_on=True)
