r"""The parts of a transformer and how they are joined, as boxes."""

from __future__ import annotations

from html import escape

from torch import nn

from groundstate.errors import Unsupported
from groundstate.nn.attention.gpt import GPT
from groundstate.nn.attention.transformer import Transformer, TransformerDecoder, TransformerEncoder
from groundstate.nn.inspect.draw import HIGH, INK, LOW, Drawing

WIDE, HIGH_BOX, GAP, COLUMN = 170.0, 26.0, 18.0, 260.0
GREEN, VIOLET = "#4c9f70", "#a05195"
Part = tuple[str, str]  # what it is, its colour


def draw_transformer(net: nn.Module) -> Drawing:
    """An encoder, a decoder, both together, or a language model: from the tokens up to the scores.

    Parameters
    ----------
    net : ``Transformer``, ``TransformerEncoder``, ``TransformerDecoder`` or ``GPT``

    Examples
    --------
    >>> from groundstate.nn import Transformer
    >>> picture = draw_transformer(Transformer(11, 13, 8, 2, 3))
    >>> picture.nodes, picture.edges
    (11, 10)
    """
    feed, attend = ("position-wise network", GREEN), ("self-attention", HIGH)
    causal, cross = ("causal self-attention", HIGH), ("attention to the source", LOW)
    scores = [("linear map", INK), ("softmax", INK)]
    first = [("tokens", INK), ("embedding + positions", VIOLET)]
    columns: list[tuple[list[Part], list[Part], list[Part], int]]
    if isinstance(net, Transformer):
        columns = [
            ([("source", INK), first[1]], [attend, feed], [], net.layers),
            (
                [("target, shifted by one", INK), first[1]],
                [causal, cross, feed],
                scores,
                net.layers,
            ),
        ]
    elif isinstance(net, GPT):
        columns = [(first, [causal, feed], scores, net.layers)]
    elif isinstance(net, TransformerDecoder):
        columns = [([("target", INK)], [causal, cross, feed], [], net.layers)]
    elif isinstance(net, TransformerEncoder):
        columns = [([("vectors", INK)], [attend, feed], [], net.layers)]
    else:
        raise Unsupported(
            f"draw_transformer takes Transformer, its encoder or decoder, or GPT, got "
            f"{type(net).__name__}"
        )
    tallest = max(len(a) + len(b) + len(c) for a, b, c, _ in columns)
    height = (tallest + 1) * (HIGH_BOX + GAP)
    parts: list[str] = []
    nodes = edges = 0
    ends: list[tuple[float, float]] = []
    look: tuple[float, float] | None = None
    for i, (below, block, above, layers) in enumerate(columns):
        x, y = 40 + i * COLUMN, height
        tops: list[float] = []
        for j, (name, colour) in enumerate([*below, *block, *above]):
            y = height - j * (HIGH_BOX + GAP)
            parts.append(_box(x, y, name, colour))
            nodes += 1
            if j:
                parts.append(_arrow(x + WIDE / 2, y + HIGH_BOX + GAP, x + WIDE / 2, y + HIGH_BOX))
                edges += 1
            if len(below) <= j < len(below) + len(block):
                tops.append(y)
            if name == cross[0]:
                look = (x, y + HIGH_BOX / 2)
        parts.append(
            f'<rect x="{x - 12:g}" y="{min(tops) - 8:g}" width="{WIDE + 24:g}" '
            f'height="{max(tops) - min(tops) + HIGH_BOX + 16:g}" rx="8" fill="none" '
            f'stroke="{INK}" stroke-dasharray="4 3"/>'
            f'<text x="{x - 18:g}" y="{min(tops) + 8:g}" font-size="12" text-anchor="end" '
            f'fill="{INK}">{layers}×</text>'
        )
        ends.append((x + WIDE, min(tops) + HIGH_BOX / 2))
    if look is not None and len(columns) == 2:
        (x, y), middle = ends[0], ends[0][0] + 30
        parts.append(
            f'<path class="edge" d="M{x:g} {y:g}H{middle:g}V{look[1]:g}H{look[0]:g}" fill="none" '
            f'stroke="{LOW}" stroke-width="1.6"/>'
        )
        edges += 1
    width = 40 + len(columns) * COLUMN
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height + 50:g}" '
        f'font-family="sans-serif">\n' + "\n".join(parts) + "\n</svg>\n"
    )
    return Drawing(svg, nodes, edges)


def _box(x: float, y: float, name: str, colour: str) -> str:
    return (
        f'<rect class="node" x="{x:g}" y="{y:g}" width="{WIDE:g}" height="{HIGH_BOX:g}" rx="4" '
        f'fill="white" stroke="{colour}" stroke-width="1.6"/>'
        f'<text x="{x + WIDE / 2:g}" y="{y + 17:g}" font-size="11" text-anchor="middle" '
        f'fill="{INK}">{escape(name)}</text>'
    )


def _arrow(x: float, y: float, x2: float, y2: float) -> str:
    return f'<path class="edge" d="M{x:g} {y:g}L{x2:g} {y2:g}" stroke="{INK}"/>'
