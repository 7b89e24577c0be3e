r"""Drawings of networks as SVG: layered graphs, thinned ones, residual rows and their paths."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise, product
from pathlib import Path

import torch
from torch import Tensor, nn

from groundstate.errors import ShapeError, Unsupported
from groundstate.nn.inspect.trace import trace
from groundstate.nn.piecewise.collapse import flat_layers

GAP, STEP, RADIUS, MARGIN = 110.0, 44.0, 13.0, 34.0
LOW, HIGH, INK, FADED = "#d9822b", "#3b6fb6", "#556", "#ccd"


@dataclass(frozen=True)
class Drawing:
    """An SVG picture with the numbers of nodes and edges in it; notebooks show it."""

    svg: str
    nodes: int
    edges: int

    def __str__(self) -> str:
        return self.svg

    def _repr_svg_(self) -> str:
        return self.svg

    def save(self, path: str | Path) -> Path:
        """Write the picture to a file."""
        path = Path(path)
        path.write_text(self.svg, encoding="utf-8")
        return path


class Canvas:
    """Nodes and edges of a picture, with counts; edges are drawn under the nodes."""

    def __init__(self) -> None:
        self.edges: list[str] = []
        self.nodes: list[str] = []
        self.texts: list[str] = []
        self.width = self.height = 0.0

    def node(
        self, x: float, y: float, text: str = "", *, faded: bool = False, name: str = ""
    ) -> None:
        self._see(x, y)
        stroke = FADED if faded else INK
        title = f"<title>{escape(name)}</title>" if name else ""
        self.nodes.append(
            f'<circle class="node" cx="{x:g}" cy="{y:g}" r="{RADIUS:g}" fill="white" '
            f'stroke="{stroke}" stroke-width="1.4">{title}</circle>'
        )
        if text:
            self.text(x, y + 3, text, 9, FADED if faded else INK)

    def edge(
        self, a: tuple[float, float], b: tuple[float, float], weight: float = 0.0,
        strength: float = 0.5, name: str = "", bend: float = 0.0,
    ) -> None:  # fmt: skip
        colour = INK if weight == 0 else HIGH if weight > 0 else LOW
        middle = ((a[0] + b[0]) / 2, (a[1] + b[1]) / 2 - bend)
        path = f"M{a[0]:g} {a[1]:g}Q{middle[0]:g} {middle[1]:g} {b[0]:g} {b[1]:g}"
        title = f"<title>{escape(name)}</title>" if name else ""
        self.edges.append(
            f'<path class="edge" d="{path}" fill="none" stroke="{colour}" '
            f'stroke-width="{0.4 + 2.2 * strength:.2f}" stroke-opacity="{0.25 + 0.7 * strength:.2f}">'
            f"{title}</path>"
        )

    def arrow(
        self, a: tuple[float, float], b: tuple[float, float], weight: float = 0.0, name: str = ""
    ) -> None:
        """An edge from the rim of a node to the rim of another, with a head."""
        long = math.dist(a, b)
        u, v = (b[0] - a[0]) / long, (b[1] - a[1]) / long
        tip = (b[0] - u * (RADIUS + 1), b[1] - v * (RADIUS + 1))
        self.edge((a[0] + u * RADIUS, a[1] + v * RADIUS), tip, weight, 0.4, name)
        back = (tip[0] - 6 * u, tip[1] - 6 * v)
        colour = INK if weight == 0 else HIGH if weight > 0 else LOW
        corners = (tip, (back[0] - 3 * v, back[1] + 3 * u), (back[0] + 3 * v, back[1] - 3 * u))
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in corners)
        self.texts.append(f'<polygon points="{points}" fill="{colour}"/>')

    def text(self, x: float, y: float, text: str, size: float = 11, colour: str = INK) -> None:
        self._see(x, y)
        self.texts.append(
            f'<text x="{x:g}" y="{y:g}" font-size="{size:g}" fill="{colour}" '
            f'text-anchor="middle">{escape(text)}</text>'
        )

    def drawing(self) -> Drawing:
        size = f"{self.width + MARGIN:g} {self.height + MARGIN:g}"
        body = "\n".join([*self.edges, *self.nodes, *self.texts])
        svg = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size}" '
            f'font-family="sans-serif">\n{body}\n</svg>\n'
        )
        return Drawing(svg, len(self.nodes), len(self.edges))

    def _see(self, x: float, y: float) -> None:
        self.width, self.height = max(self.width, x), max(self.height, y)


def draw(
    net: nn.Module,
    x: Tensor | None = None,
    *,
    bias: bool = False,
    keep: Sequence[Sequence[bool]] | None = None,
) -> Drawing:
    r"""A dense network as a layered graph, with :math:`\sum_j D_{j-1}D_j` edges.

    Parameters
    ----------
    net : MLP, Linear, or Sequential of linear layers and layers without connections
    x : one row; nodes show its values, edges the contributions :math:`W_{kd}a_d` as titles
    bias : draw a constant-1 node per layer, with an edge to every unit that it feeds
    keep : per hidden layer, which units stay: the thinned network of a dropout mask. Dropped
        units are drawn faded, without edges

    Examples
    --------
    >>> from groundstate.nn import MLP
    >>> picture = draw(MLP(3, (4, 2), 2))
    >>> picture.nodes, picture.edges
    (11, 24)
    """
    linear = [m for m in flat_layers(net) if isinstance(m, nn.Linear)]
    if not linear:
        raise Unsupported(f"draw shows rows of linear layers, {type(net).__name__} has none")
    sizes = [linear[0].in_features, *(m.out_features for m in linear)]
    if any(a.out_features != b.in_features for a, b in pairwise(linear)):
        raise Unsupported(f"draw needs layers of matching widths, got sizes {sizes}")
    stays = _stays(sizes, keep)
    values = None if x is None else _values(net, x)
    canvas, tall = Canvas(), max(sizes) + bias
    at = [
        [
            (MARGIN + j * GAP, MARGIN + 14 + STEP * (i + (tall - bias - size) / 2))
            for i in range(size)
        ]
        for j, size in enumerate(sizes)
    ]
    for j, layer in enumerate(linear):
        weight = layer.weight.detach().double().cpu()
        b: Tensor | None = layer.bias
        top = float(weight.abs().max().clamp_min(1e-300))
        for k in range(sizes[j + 1]):
            if not stays[j + 1][k]:
                continue
            for d in range(sizes[j]):
                if stays[j][d]:
                    w = float(weight[k, d])
                    label = f"w = {w:.4g}"
                    if values is not None:
                        label += f", w·a = {w * values[j][d]:.4g}"
                    canvas.edge(at[j][d], at[j + 1][k], w, abs(w) / top, label)
            if bias and b is not None:
                one = (at[j][0][0], MARGIN + 14 + STEP * (tall - 1))
                canvas.edge(one, at[j + 1][k], b[k].item(), 0.3, f"b = {b[k].item():.4g}")
        if bias and b is not None:
            canvas.node(at[j][0][0], MARGIN + 14 + STEP * (tall - 1), "1", name="constant 1")
    for j, column in enumerate(at):
        title = "input" if j == 0 else "output" if j == len(linear) else f"hidden {j}"
        canvas.text(column[0][0], MARGIN - 14, title)
        for i, point in enumerate(column):
            text = "" if values is None else f"{values[j][i]:.2g}"
            canvas.node(*point, text, faded=not stays[j][i], name=f"{title}, unit {i}")
    return canvas.drawing()


def draw_residual(blocks: int, *, unravelled: bool = False) -> Drawing:
    r"""K residual blocks as a row with skips, or unravelled into their :math:`2^K` paths.

    The row has one node per state and block and three edges per block; unravelled there is one
    chain from x to the sum for every subset of the blocks.

    Examples
    --------
    >>> draw_residual(3).edges, draw_residual(3, unravelled=True).nodes
    (9, 14)
    """
    if not 1 <= blocks <= 6:
        raise ValueError(f"a row of 1 to 6 blocks can be drawn, got {blocks}")
    canvas = Canvas()
    if not unravelled:
        for k in range(blocks + 1):
            h = (MARGIN + 2 * k * GAP, MARGIN + 60)
            canvas.node(*h, f"h{k}" if k else "x")
            if k < blocks:
                f, nxt = (h[0] + GAP, h[1]), (h[0] + 2 * GAP, h[1])
                canvas.node(*f, f"f{k + 1}")
                canvas.edge(h, f)
                canvas.edge(f, nxt)
                canvas.edge(h, nxt, bend=110)
        return canvas.drawing()
    paths = sorted(product((False, True), repeat=blocks), key=sum)
    y0 = MARGIN + STEP * (len(paths) - 1) / 2
    start, end = (MARGIN, y0), (MARGIN + (blocks + 1) * GAP, y0)
    for i, path in enumerate(paths):
        here = start
        for k, used in enumerate(path):
            if used:
                there = (MARGIN + (k + 1) * GAP, MARGIN + STEP * i)
                canvas.edge(here, there)
                canvas.node(*there, f"f{k + 1}")
                here = there
        canvas.edge(here, end, bend=0.0 if here != start else 2 * (y0 - MARGIN))
    canvas.node(*start, "x")
    canvas.node(*end, "sum")
    return canvas.drawing()


def _stays(sizes: list[int], keep: Sequence[Sequence[bool]] | None) -> list[list[bool]]:
    everything = [[True] * size for size in sizes]
    if keep is None:
        return everything
    if [len(mask) for mask in keep] != sizes[1:-1]:
        raise ShapeError(
            f"keep needs one mask per hidden layer of widths {sizes[1:-1]}, "
            f"got lengths {[len(mask) for mask in keep]}"
        )
    return [everything[0], *([bool(k) for k in mask] for mask in keep), everything[-1]]


def _values(net: nn.Module, x: Tensor) -> list[list[float]]:
    row = x.reshape(1, -1)
    with torch.no_grad():
        seen = trace(net, row)
    return [row[0].tolist(), *(layer["a"][0].tolist() for layer in seen.values())]
