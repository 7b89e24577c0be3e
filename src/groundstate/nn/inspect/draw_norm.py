"""Which values of a batch a normalisation layer takes together, as a cube."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from groundstate.errors import Unsupported
from groundstate.nn.blocks.norms import KINDS
from groundstate.nn.inspect.draw import HIGH, INK, MARGIN, Drawing

SIDE = 26.0


def norm_axes(kind: str, shape: tuple[int, int, int], groups: int = 2) -> NDArray[np.bool_]:
    """Cells of (examples, channels, positions) that share mean and variance with the last one.

    >>> [int(norm_axes(kind, (3, 4, 5)).sum()) for kind in ("batch", "layer", "instance", "group")]
    [15, 20, 5, 10]
    """
    if kind not in KINDS:
        raise Unsupported(f"norm {kind!r} is not known; use one of {', '.join(KINDS)}")
    n, c, _ = shape
    if c % groups:
        raise ValueError(f"{c} channels do not make {groups} equal groups")
    together = np.zeros(shape, bool)
    example = slice(None) if kind == "batch" else slice(n - 1, n)
    first = {"batch": c - 1, "instance": c - 1, "layer": 0, "group": c - c // groups}[kind]
    together[example, first:] = True
    return together


def draw_norm(kind: str, shape: tuple[int, int, int] = (4, 6, 5), groups: int = 2) -> Drawing:
    """The cube of examples × channels × positions, the values normalised together in colour.

    ``nodes`` of the drawing are the faces that are seen.

    >>> draw_norm("layer").nodes == 4 * 6 + 6 * 5 + 4 * 5
    True
    """
    together = norm_axes(kind, shape, groups)
    n, c, p = shape
    left, top = MARGIN + n * 0.866 * SIDE, MARGIN + 18 + p * SIDE

    def at(i: float, j: float, k: float) -> str:
        x, y = left + (j - i) * 0.866 * SIDE, top + (i + j) * 0.5 * SIDE - k * SIDE
        return f"{x:.1f},{y:.1f}"

    def face(cell: tuple[int, int, int], corners: list[tuple[int, int, int]], shade: float) -> str:
        points = " ".join(at(*corner) for corner in corners)
        fill, ink = (HIGH, shade) if together[cell] else ("#dde", shade)
        return (
            f'<polygon class="node" points="{points}" fill="{fill}" fill-opacity="{ink:g}" '
            f'stroke="{INK}" stroke-width="0.7"/>'
        )

    faces = [
        face((i, j, p - 1), [(i, j, p), (i, j + 1, p), (i + 1, j + 1, p), (i + 1, j, p)], 0.95)
        for i in range(n) for j in range(c)
    ] + [
        face((n - 1, j, k), [(n, j, k), (n, j + 1, k), (n, j + 1, k + 1), (n, j, k + 1)], 0.8)
        for j in range(c) for k in range(p)
    ] + [
        face((i, c - 1, k), [(i, c, k), (i + 1, c, k), (i + 1, c, k + 1), (i, c, k + 1)], 0.6)
        for i in range(n) for k in range(p)
    ]  # fmt: skip
    width = left + c * 0.866 * SIDE + MARGIN
    height = top + (n + c) * 0.5 * SIDE + MARGIN
    label = 'font-size="11" text-anchor="middle"'
    texts = [
        f'<text x="{width / 2:.1f}" y="18" {label} fill="{INK}">{kind} norm</text>',
        f'<text x="{left + (c - 2 * n) * 0.22 * SIDE:.1f}" y="{height - 12:.1f}" {label} '
        f'fill="{INK}">channels</text>',
        f'<text x="{width - 40:.1f}" y="{height - 12:.1f}" {label} fill="{INK}">examples</text>',
    ]
    body = "\n".join([*faces, *texts])
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'font-family="sans-serif">\n{body}\n</svg>\n'
    )
    return Drawing(svg, len(faces), 0)
