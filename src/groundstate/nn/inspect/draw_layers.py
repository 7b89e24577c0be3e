r"""Networks as rows of boxes: one box per layer that changes a shape, with the shapes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from math import log2, sqrt

from torch import nn

from groundstate.nn.inspect.draw import FADED, HIGH, INK, LOW, MARGIN, Drawing
from groundstate.nn.inspect.receptive import ReceptiveField, receptive_field
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


def draw_receptive_field(
    net: nn.Module, layers: Sequence[str], input_shape: Sequence[int], unit: int | None = None
) -> Drawing:
    """The window of the input that one unit sees, growing from layer to layer.

    Parameters
    ----------
    net : a network of images or signals
    layers : names of its layers, in their order; one panel each
    input_shape : shape of one example, ``(C, *spatial)``
    unit : place of the unit on every axis of its map; by default the one over the middle

    Examples
    --------
    >>> from torch import nn
    >>> net = nn.Sequential(*(nn.Conv2d(1, 1, 3, padding=1) for _ in range(3)))
    >>> draw_receptive_field(net, ["0", "1", "2"], (1, 9, 9)).nodes  # input and window, three times
    6
    """
    h, w = input_shape[-2:] if len(input_shape) > 2 else (1, input_shape[-1])
    cell = min(14.0, 180 / max(h, w))
    parts: list[str] = []
    for i, name in enumerate(layers):
        field = receptive_field(net, name, input_shape)
        x0, y0 = MARGIN + i * (w * cell + 30), MARGIN + 16
        parts.append(_square(x0, y0, w * cell, h * cell, FADED, 0.25))
        spans = [_span(field, axis, side, unit) for axis, side in ((-2, h), (-1, w))]
        (top, tall), (left, wide) = spans
        parts.append(
            _square(x0 + left * cell, y0 + top * cell, wide * cell, tall * cell, HIGH, 0.5)
        )
        parts.append(_text(x0 + w * cell / 2, y0 - 6, f"{name}: {wide:g} pixels", 9))
    width = MARGIN + len(layers) * (w * cell + 30) + MARGIN
    body = "\n".join(parts)
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} '
        f'{h * cell + 2 * MARGIN + 20:g}" font-family="sans-serif">\n{body}\n</svg>\n'
    )
    return Drawing(svg, 2 * len(layers), 0)


def _span(field: ReceptiveField, axis: int, side: int, unit: int | None) -> tuple[float, float]:
    """First pixel and size of a window on one axis, within the input."""
    if field.size is None or side == 1:
        return 0.0, float(side)
    size, jump, start = (v[axis] if isinstance(v, tuple) else v for v in field)
    at = round((side / 2 - size / 2 - start) / jump) if unit is None else unit
    low = max(0.0, start + at * jump)
    return low, min(float(side), start + at * jump + size) - low


def _square(x: float, y: float, wide: float, high: float, fill: str, ink: float) -> str:
    return (
        f'<rect class="node" x="{x:g}" y="{y:g}" width="{wide:g}" height="{high:g}" fill="{fill}" '
        f'fill-opacity="{ink:g}" stroke="{INK}" stroke-width="0.7"/>'
    )


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
