r"""Sums and maxima of the pixels of regions on a GPU, one kernel each.

A program fills a row of cells of one region for a block of channels. Maps are read as
``(B, H, W, C)``, so that neighbouring threads read neighbouring channels of a pixel.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from groundstate.compute.foreign.triton import jit, tl

CHANNELS = 64  # of a program


@jit
def _align(
    maps, image, corners, out, C, H, W, P, Q, ratio,
    Least: tl.constexpr, Cells: tl.constexpr, Block: tl.constexpr, Exact: tl.constexpr,
):  # fmt: skip
    r, p = tl.program_id(0).to(tl.int64), tl.program_id(1)
    c = tl.program_id(2) * Block + tl.arange(0, Block)
    q = tl.arange(0, Cells)
    left, top = tl.load(corners + 4 * r), tl.load(corners + 4 * r + 1)
    wide, high = tl.load(corners + 4 * r + 2) - left, tl.load(corners + 4 * r + 3) - top
    if Least is not None:
        wide, high = tl.maximum(wide, Least), tl.maximum(high, Least)
    wide, high = wide / Q, high / P  # of a cell
    nx, ny = ratio, ratio
    if ratio == 0:
        nx, ny = tl.ceil(wide).to(tl.int32), tl.ceil(high).to(tl.int32)
    start = maps + tl.load(image + r) * H * W * C
    total = tl.zeros([Cells, Block], dtype=Exact)
    inside = (q < Q)[:, None] & (c < C)[None, :]
    half = tl.full([], 0.5, Exact)
    for a in range(ny):
        y = top + high * (p + (a + half) / ny)
        of_y = tl.where((y >= -1) & (y <= H), 1.0, 0.0)
        y = tl.minimum(tl.maximum(y, 0.0), H - 1.0)
        y0 = y.to(tl.int32)
        y1, v = tl.minimum(y0 + 1, H - 1), y - y0
        for b in range(nx):
            x = left + wide * (q + (b + half) / nx)
            of_x = tl.where((x >= -1) & (x <= W), of_y, 0.0)
            x = tl.minimum(tl.maximum(x, 0.0), W - 1.0)
            x0 = x.to(tl.int32)
            x1, u = tl.minimum(x0 + 1, W - 1), x - x0
            f00 = tl.load(start + (y0 * W + x0)[:, None] * C + c[None, :], inside, 0.0).to(Exact)
            f01 = tl.load(start + (y0 * W + x1)[:, None] * C + c[None, :], inside, 0.0).to(Exact)
            f10 = tl.load(start + (y1 * W + x0)[:, None] * C + c[None, :], inside, 0.0).to(Exact)
            f11 = tl.load(start + (y1 * W + x1)[:, None] * C + c[None, :], inside, 0.0).to(Exact)
            above = f00 * (1 - u)[:, None] + f01 * u[:, None]
            below = f10 * (1 - u)[:, None] + f11 * u[:, None]
            total += of_x[:, None] * ((1 - v) * above + v * below)
    total = total / tl.maximum(nx * ny, 1)
    place = out + ((r * C + c)[None, :] * P + p) * Q + q[:, None]
    tl.store(place, total.to(out.dtype.element_ty), inside)


@jit
def _cell(low, high, index, cells, pixels):
    """Whole pixels from and to which a cell goes between two corners; halves go away from 0."""
    first = tl.where(low < 0, -tl.floor(0.5 - low), tl.floor(low + 0.5)).to(tl.int32)
    last = tl.where(high < 0, -tl.floor(0.5 - high), tl.floor(high + 0.5)).to(tl.int32)
    side = tl.maximum(last - first + 1, 1)
    begin = tl.minimum(tl.maximum(first + index * side // cells, 0), pixels)
    end = tl.minimum(tl.maximum(first + ((index + 1) * side + cells - 1) // cells, 0), pixels)
    return begin, tl.maximum(begin, end)


@jit
def _pool(
    maps, image, corners, out, first, C, H, W, P, Q, Cells: tl.constexpr, Block: tl.constexpr,
):  # fmt: skip
    r, p = tl.program_id(0).to(tl.int64), tl.program_id(1)
    c = tl.program_id(2) * Block + tl.arange(0, Block)
    q = tl.arange(0, Cells)
    x0, x1 = _cell(tl.load(corners + 4 * r), tl.load(corners + 4 * r + 2), q, Q, W)
    y0, y1 = _cell(tl.load(corners + 4 * r + 1), tl.load(corners + 4 * r + 3), p, P, H)
    pixels = tl.load(image + r) * H * W
    best = tl.full([Cells, Block], -float("inf"), dtype=maps.dtype.element_ty)
    at = tl.full([Cells, Block], -1, dtype=tl.int32)
    widest = tl.max(tl.where(q < Q, x1 - x0, 0), 0)
    for y in range(y0, y1):
        for step in range(widest):
            x = x0 + step
            inside = (x < x1)[:, None] & (c < C)[None, :]
            pixel = pixels + y * W + x
            f = tl.load(maps + pixel[:, None] * C + c[None, :], inside, -float("inf"))
            larger = inside & ((f > best) | (at < 0))
            best = tl.where(larger, f, best)
            at = tl.where(larger, pixel[:, None].to(tl.int32), at)
    inside = (q < Q)[:, None] & (c < C)[None, :]
    place = ((r * C + c)[None, :] * P + p) * Q + q[:, None]
    tl.store(out + place, tl.where(at < 0, 0.0, best), inside)
    tl.store(first + place, at, inside)


def align(
    pixels: Tensor,
    image: Tensor,
    corners: Tensor,
    size: tuple[int, int],
    ratio: int,
    least: float | None,
) -> Tensor:
    """RoIAlign of maps ``(B, H, W, C)``; corners ``(R, 4)`` in their coordinates.  # (R, C, P, Q)"""
    height, width, channels = pixels.shape[1:]
    out = pixels.new_empty(len(corners), channels, *size)
    exact = tl.float64 if pixels.dtype == torch.float64 else tl.float32
    _align[_grid(out)](
        pixels, image, corners.contiguous(), out, channels, height, width, *size, ratio,
        Least=least, Cells=1 << (size[1] - 1).bit_length(), Block=CHANNELS, Exact=exact,
    )  # fmt: skip
    return out


def pool(
    pixels: Tensor, image: Tensor, corners: Tensor, size: tuple[int, int]
) -> tuple[Tensor, Tensor]:
    """RoIPool of maps ``(B, H, W, C)``, and the pixel of each value: −1 for none.  # (R, C, P, Q)"""
    height, width, channels = pixels.shape[1:]
    out = pixels.new_empty(len(image), channels, *size)
    first = torch.empty_like(out, dtype=torch.int32)
    _pool[_grid(out)](
        pixels, image, corners.contiguous(), out, first, channels, height, width, *size,
        Cells=1 << (size[1] - 1).bit_length(), Block=CHANNELS,
    )  # fmt: skip
    return out, first


def _grid(out: Tensor) -> Any:
    regions, channels, rows, _ = out.shape
    return regions, rows, -(-channels // CHANNELS)
