r"""Networks as rows of boxes: one box per layer that changes a shape, with the shapes."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from math import log2, sqrt

from groundstate.nn.inspect.draw import FADED, HIGH, INK, LOW, MARGIN, Drawing
from groundstate.nn.inspect.summary import LayerRow, Summary

COLOURS = {"Conv": HIGH, "Pool": LOW, "Linear": "#4c9f70", "Upsample": "#a05195"}
GAP, TALL = 16.0, 120.0


def draw_layers(layers: Summary | Mapping[str, Summary], *, most: int = 40) -> Drawing:
    """A network as a row of boxes, or several one below the other for comparison.

    The height of a box grows with the side of its map and its width with the number of channels; a
    linear layer is a bar. Convolution, pooling and linear layers are drawn; norm, activation and
    dropout keep the shape and are left out. Beyond ``most`` boxes the middle is left out.

    Parameters
    ----------
    layers : of ``summary(net, shape)``, or several by title
    most : boxes in a row

    Examples
    --------
    >>> from groundstate.nn import summary
    >>> from torch import nn
    >>> net = nn.Sequential(nn.Conv2d(1, 6, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(864, 10))
    >>> picture = draw_layers(summary(net, (1, 28, 28)))
    >>> picture.nodes, picture.edges
    (4, 3)
    """
    several = {"": layers} if isinstance(layers, Summary) else layers
    parts: list[str] = []
    nodes = edges = 0
    width, y = 0.0, MARGIN
    for title, table in several.items():
        if title:
            parts.append(_text(MARGIN, y, title, 13, "start"))
            y += 14
        x, boxes = MARGIN, _boxes(table, most)
        for i, (shape, row) in enumerate(boxes):
            wide, high = _size(shape)
            if i:
                parts.append(
                    f'<path class="edge" d="M{x - GAP:g} {y + TALL / 2:g}H{x:g}" stroke="{INK}"/>'
                )
                edges += 1
            parts.append(_box(x, y + (TALL - high) / 2, wide, high, row))
            middle = x + wide / 2
            label = "×".join(map(str, shape))
            parts.append(_text(middle, y + (TALL + high) / 2 + 11, label, 8))
            if row is not None:
                parts.append(_text(middle, y + (TALL - high) / 2 - 4, _word(row), 8))
            nodes += 1
            x += wide + GAP
        width, y = max(width, x), y + TALL + 34
    body = "\n".join(parts)
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width + MARGIN:g} {y:g}" '
        f'font-family="sans-serif">\n{body}\n</svg>\n'
    )
    return Drawing(svg, nodes, edges)


def _boxes(table: Summary, most: int) -> list[tuple[tuple[int, ...], LayerRow | None]]:
    found: list[tuple[tuple[int, ...], LayerRow | None]] = [(table.input_size, None)]
    found += [(r.output_shape, r) for r in table.rows if _colour(r) is not None and r.output_shape]
    if len(found) <= most:
        return found
    half = most // 2
    return found[:half] + found[-half:]


def _colour(row: LayerRow) -> str | None:
    return next((colour for word, colour in COLOURS.items() if word in row.kind), None)


def _word(row: LayerRow) -> str:
    return row.kind.replace("Adaptive", "").replace("2d", "").replace("Transpose", "ᵀ").lower()


def _size(shape: tuple[int, ...]) -> tuple[float, float]:
    channels = shape[0] if len(shape) > 1 else 1
    side = shape[-1] if len(shape) > 1 else sqrt(max(1, shape[0]))
    return 16 + 5 * log2(max(1, channels)), 12 + 13 * log2(max(1, side)) * 0.9


def _box(x: float, y: float, wide: float, high: float, row: LayerRow | None) -> str:
    colour = FADED if row is None else _colour(row)
    name = "input" if row is None else f"{row.name}: {row.kind}, {row.trainable:,} parameters"
    return (
        f'<rect class="node" x="{x:g}" y="{y:g}" width="{wide:g}" height="{high:g}" '
        f'fill="{colour}" fill-opacity="0.55" stroke="{INK}"><title>{escape(name)}</title></rect>'
    )


def _text(x: float, y: float, text: str, size: float, anchor: str = "middle") -> str:
    return (
        f'<text x="{x:g}" y="{y:g}" font-size="{size:g}" fill="{INK}" '
        f'text-anchor="{anchor}">{escape(text)}</text>'
    )
