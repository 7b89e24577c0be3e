"""Outlines of objects in files: polygons and run lengths, and the masks that they enclose."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundstate.errors import DataError

# polygons, each a flat list x, y, x, y, ... in pixels; or run lengths, {"size": [h, w], "counts": ...}
Outline = list[list[float]] | dict[str, Any]


def drawn(
    outlines: Sequence[Outline], size: tuple[int, int], wanted: tuple[int, int]
) -> NDArray[np.uint8]:
    """Masks of outlines in a picture of ``size``, as ``(m, *wanted)`` uint8.

    >>> drawn([[[0, 0, 2, 0, 2, 2, 0, 2]]], (4, 4), (2, 2))[0].tolist()
    [[1, 0], [0, 0]]
    """
    masks = np.zeros((len(outlines), *wanted), np.uint8)
    for mask, outline in zip(masks, outlines, strict=True):
        if isinstance(outline, dict):
            found = run_lengths(outline)
            rows = (np.arange(wanted[0]) + 0.5) * found.shape[0] / wanted[0]
            columns = (np.arange(wanted[1]) + 0.5) * found.shape[1] / wanted[1]
            mask[:] = found[rows.astype(int)][:, columns.astype(int)]
            continue
        for polygon in outline:
            mask |= _polygon(polygon, (wanted[0] / size[0], wanted[1] / size[1]), wanted)
    return masks


def _polygon(
    polygon: Sequence[float], scale: tuple[float, float], wanted: tuple[int, int]
) -> NDArray[np.uint8]:
    """Pixels whose centres a polygon encloses, by the even-odd rule on each line of pixels."""
    points = np.asarray(polygon, np.float64).reshape(-1, 2) * [scale[1], scale[0]]
    after = np.roll(points, -1, 0)
    y = np.arange(wanted[0])[:, None] + 0.5
    crosses = (points[:, 1] <= y) != (after[:, 1] <= y)  # (H, edges)
    height = np.where(after[:, 1] == points[:, 1], 1.0, after[:, 1] - points[:, 1])
    at = points[:, 0] + (y - points[:, 1]) / height * (after[:, 0] - points[:, 0])
    # the number of edges to the left of a pixel's centre: +1 at the first pixel behind each
    first = np.clip(np.ceil(at - 0.5), 0, wanted[1]).astype(int)
    turns = np.zeros((wanted[0], wanted[1] + 1), np.int64)
    row, edge = np.nonzero(crosses)
    np.add.at(turns, (row, first[row, edge]), 1)
    return (turns.cumsum(1)[:, :-1] % 2).astype(np.uint8)


def run_lengths(code: dict[str, Any]) -> NDArray[np.uint8]:
    """A mask from run lengths of 0, 1, 0, ... down the columns, as numbers or as COCO's text.

    >>> run_lengths({"size": [2, 3], "counts": [1, 2, 3]}).tolist()
    [[0, 1, 0], [1, 0, 0]]
    """
    height, width = (int(v) for v in code["size"])
    counts = code["counts"]
    runs = np.asarray(_unpacked(counts) if isinstance(counts, str | bytes) else counts, np.int64)
    if (runs < 0).any() or runs.sum() != height * width:
        raise DataError(
            f"run lengths that add up to {int(runs.sum())} do not fill a mask of {height} x {width}"
        )
    flat = np.repeat(np.arange(len(runs)) % 2, runs).astype(np.uint8)
    return flat.reshape(width, height).T


def _unpacked(text: str | bytes) -> list[int]:
    """COCO's text of run lengths: five bits a character, and differences from the fourth run on."""
    data = text.encode() if isinstance(text, str) else text
    runs: list[int] = []
    at = 0
    while at < len(data):
        value = shift = 0
        more = True
        while more:
            if at >= len(data):
                raise DataError("the text of run lengths ends inside a number")
            bits = data[at] - 48
            value |= (bits & 0x1F) << shift
            more = bool(bits & 0x20)
            at, shift = at + 1, shift + 5
        if bits & 0x10:
            value -= 1 << shift
        runs.append(value + (runs[-2] if len(runs) > 2 else 0))
    return runs
