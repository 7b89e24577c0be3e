r"""Regions of a feature map in one shape: RoI pooling, RoI align, crops of images.

On a CPU compiled loops sum or maximise over the pixels of every cell (`roi_numba`), on a GPU one kernel
does (`roi_triton`, where Triton is installed). Elsewhere, in half precision on a CPU and in the tests of
those a map is a table of pixels ``(B · H · W, C)``, and torch sums or maximises over bags of its rows.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from groundstate.compute.foreign.fused import fused
from groundstate.math.arrays import to_numpy
from groundstate.nn.detection.fixed_sum import fixed_sum
from groundstate.nn.detection.region_arguments import arguments


def roi_align(
    features: Any,
    boxes: Any,
    size: int | tuple[int, int],
    scale: float = 1.0,
    sampling_ratio: int = 2,
    aligned: bool = True,
) -> Any:
    r"""Every region cut into ``size`` cells, each the mean of bilinear samples.

    Cell (p, q) averages ``sampling_ratio``² points spread evenly in it. With ``aligned`` pixel i
    covers [i, i+1) with its value at the centre (a shift by half a pixel); without it, values stand
    on whole numbers and regions are at least one pixel wide (Mask R-CNN's first version). Points
    further than one pixel outside the map count 0. The gradient reaches the features, not the boxes.

    Parameters
    ----------
    features : ``(B, C, H, W)``
    boxes : a list of ``(n_i, 4)``, one for each image, or ``(R, 5)`` with the image's index first;
        corners ``(x1, y1, x2, y2)``
    size : cells of a region, (height, width) or one number for both
    scale : from the boxes' coordinates to the map's, 1/16 behind a stride of 16
    sampling_ratio : points along each side of a cell; 0 takes as many as the cell has pixels
    aligned : whether coordinates are shifted by half a pixel

    Returns
    -------
    ``(R, C, *size)``

    Examples
    --------
    >>> grid = torch.arange(1.0, 17.0).view(1, 1, 4, 4)
    >>> roi_align(grid, [torch.tensor([[0.0, 0.0, 4.0, 4.0]])], 2)[0, 0].tolist()
    [[3.5, 5.5], [11.5, 13.5]]
    """
    if sampling_ratio < 0:
        raise ValueError(f"sampling_ratio is at least 0 (as many as pixels), got {sampling_ratio}")
    maps, image, corners, (rows, columns), array = arguments(features, boxes, size)
    corners = corners * scale - (0.5 if aligned else 0.0)
    if fused(maps):
        return _FusedAlign.apply(maps, image, corners, (rows, columns), sampling_ratio, aligned)
    places = _places(maps, image, corners, (rows, columns), sampling_ratio, aligned)
    out = _Align.apply(maps, *places) if _compiled(maps) else _align(maps, *places)
    return to_numpy(out) if array else out


def roi_pool(features: Any, boxes: Any, size: int | tuple[int, int], scale: float = 1.0) -> Any:
    r"""Every region cut into ``size`` cells of whole pixels, each with its largest value.

    Corners are rounded to pixels and included (the box (0, 0, 3, 3) is 4 × 4), cell p of P takes
    rows :math:`\lfloor ph/P\rfloor` to :math:`\lceil (p+1)h/P\rceil - 1`; empty cells are 0.

    Parameters
    ----------
    features, boxes, size, scale : as in :func:`roi_align`

    Returns
    -------
    ``(R, C, *size)``

    Examples
    --------
    >>> grid = torch.arange(1.0, 17.0).view(1, 1, 4, 4)
    >>> roi_pool(grid, [torch.tensor([[0.0, 0.0, 3.0, 3.0]])], 2)[0, 0].tolist()
    [[6.0, 8.0], [14.0, 16.0]]
    """
    maps, image, corners, (rows, columns), array = arguments(features, boxes, size)
    scaled = corners * scale
    if fused(maps):
        return _FusedPool.apply(maps, image, scaled, (rows, columns))
    whole = (scaled.sign() * (scaled.abs() + 0.5).floor()).long()  # halves go away from 0
    height, width = maps.shape[2:]
    top, below = _cells(whole[:, 1], whole[:, 3], rows, height)
    left, right = _cells(whole[:, 0], whole[:, 2], columns, width)
    edges = (image, top, below, left, right)
    out = _Pool.apply(maps, *edges) if _compiled(maps) else _pool(maps, *edges)
    return to_numpy(out) if array else out


def crop_resize(images: Any, boxes: Any, size: int | tuple[int, int] = 227) -> Any:
    r"""Every region of an image warped to one shape whatever its aspect, by bilinear sampling.

    R-CNN feeds such crops to a network of a fixed input size. The centre of the crop's pixel i is
    the point :math:`x_1 + (i + ½)w/\mathrm{size}` of the image; what lies outside the image repeats
    its border.

    Parameters
    ----------
    images : ``(B, C, H, W)``, or one ``(C, H, W)``
    boxes : as in :func:`roi_align`; ``(n, 4)`` for one image
    size : of a crop, (height, width) or one number for both

    Returns
    -------
    ``(R, C, *size)``

    Examples
    --------
    >>> image = torch.arange(1.0, 17.0).view(1, 4, 4)
    >>> crop_resize(image, torch.tensor([[1.0, 1.0, 3.0, 3.0]]), 2).flatten().tolist()
    [6.0, 7.0, 10.0, 11.0]
    """
    if getattr(images, "ndim", 0) == 3:
        images, boxes = images[None], [boxes]
    maps, image, corners, (rows, columns), array = arguments(images, boxes, size)
    height, width = maps.shape[2:]
    low, side = corners[:, :2], corners[:, 2:] - corners[:, :2]
    x = low[:, :1] + side[:, :1] * _middles(columns, corners)
    y = low[:, 1:] + side[:, 1:] * _middles(rows, corners)
    shape = (len(corners), rows, columns)
    grid = torch.stack(
        [(2 * x / width - 1)[:, None].expand(shape), (2 * y / height - 1)[..., None].expand(shape)],
        -1,
    ).to(maps.dtype)
    out = maps.new_empty(len(corners), maps.shape[1], rows, columns)
    for b in range(len(maps)):
        here = image == b
        wanted = grid[here].reshape(1, -1, columns, 2)
        if wanted.numel():
            found = F.grid_sample(
                maps[b : b + 1], wanted, padding_mode="border", align_corners=False
            )
            out = out.index_put((here,), found[0].unflatten(1, (-1, rows)).transpose(0, 1))
    return to_numpy(out) if array else out


def _places(
    maps: Tensor, image: Tensor, corners: Tensor, cells: tuple[int, int], ratio: int, aligned: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """The image of every region; rows and columns that its cells read, each with how much."""
    low, side = corners[:, :2], corners[:, 2:] - corners[:, :2]
    if not aligned:
        side = side.clamp(min=1.0)
    height, width = maps.shape[2:]
    down, of_rows = _samples(low[:, 1], side[:, 1], cells[0], height, ratio)
    across, of_columns = _samples(low[:, 0], side[:, 0], cells[1], width, ratio)
    return image, down, of_rows, across, of_columns


def _samples(
    low: Tensor, side: Tensor, cells: int, pixels: int, ratio: int
) -> tuple[Tensor, Tensor]:
    """Pixels that the samples of each cell read along one axis, and how much.  # (R, P, 2s)"""
    cell = (side / cells)[:, None, None]
    count = cell.new_full((), ratio) if ratio else (side / cells).ceil()[:, None, None]
    most = ratio or max(int(count.max()) if len(low) else 1, 1)
    k = torch.arange(most, dtype=low.dtype, device=low.device)
    step = torch.arange(cells, device=low.device)[:, None] + (k + 0.5) / count.clamp(min=1)
    at = low[:, None, None] + cell * step  # (R, P, s)
    counts = (at >= -1) & (at <= pixels) & (k < count)
    at = at.clamp(0, pixels - 1)
    floor = at.floor()
    share = torch.stack([1 - at + floor, at - floor], -1) * (counts / count.clamp(min=1))[..., None]
    index = torch.stack([floor, floor + 1], -1).long().clamp(max=pixels - 1)
    return index.flatten(2), share.flatten(2)


def _cells(first: Tensor, last: Tensor, cells: int, pixels: int) -> tuple[Tensor, Tensor]:
    """Where each cell of whole pixels begins and ends along one axis.  # (R, P), (R, P)"""
    side = (last - first + 1).clamp(min=1)[:, None]
    p = torch.arange(cells, device=first.device)
    begin = first[:, None] + p * side // cells
    end = first[:, None] - (-(p + 1) * side) // cells
    begin, end = begin.clamp(0, pixels), end.clamp(0, pixels)
    return begin, torch.maximum(begin, end)


def _middles(cells: int, like: Tensor) -> Tensor:
    return (torch.arange(cells, dtype=like.dtype, device=like.device) + 0.5) / cells


def _compiled(maps: Tensor) -> bool:
    return maps.device.type == "cpu" and maps.dtype in (torch.float32, torch.float64)


class _Align(torch.autograd.Function):
    """`_align` in compiled loops."""

    @staticmethod
    def forward(ctx: Any, maps: Tensor, image: Tensor, *places: Tensor) -> Tensor:
        from groundstate.nn.detection.roi_numba import align

        down, of_rows, across, of_columns = places
        given = (image, down, of_rows.to(maps.dtype), across, of_columns.to(maps.dtype))
        ctx.places, pixels = [each.numpy() for each in given], _pixels(maps)
        ctx.shape = pixels.shape
        out = maps.new_empty(len(image), maps.shape[1], down.shape[1], across.shape[1])
        align(pixels.numpy(), *ctx.places, out.numpy())
        return out

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> Any:
        from groundstate.nn.detection.roi_numba import align_back

        out = grads[0].new_zeros(ctx.shape)
        align_back(grads[0].contiguous().numpy(), *ctx.places, out.numpy())
        return out.permute(0, 3, 1, 2).contiguous(), None, None, None, None, None


def _align(
    maps: Tensor, image: Tensor, down: Tensor, of_rows: Tensor, across: Tensor, of_columns: Tensor
) -> Tensor:
    r""":math:`\sum_{ab} u_a v_b\,f[i_a, j_b]` of every cell.  # (R, C, P, Q)"""
    bags, shares = _bags(maps.shape[3], maps.shape[2], image, down, of_rows, across, of_columns)
    found = F.embedding_bag(
        bags, _table(maps), per_sample_weights=shares.to(maps.dtype), mode="sum"
    )
    found = found.view(-1, down.shape[1], across.shape[1], maps.shape[1])
    return found.permute(0, 3, 1, 2).contiguous()


def _bags(
    width: int, height: int, image: Tensor, down: Tensor, of_rows: Tensor, across: Tensor,
    of_columns: Tensor,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The pixels that every cell reads, and how much.  # (R · P · Q, 4 s²)"""
    start = image[:, None, None, None, None] * (height * width)
    index = start + (down * width)[:, :, None, :, None] + across[:, None, :, None, :]
    share = of_rows[:, :, None, :, None] * of_columns[:, None, :, None, :]  # (R, P, Q, 2s, 2s)
    return index.flatten(0, 2).flatten(1), share.flatten(0, 2).flatten(1)


class _FusedAlign(torch.autograd.Function):
    """`_align` in one kernel; backwards a pixel gathers from its cells, so that no additions race."""

    @staticmethod
    def forward(
        ctx: Any, maps: Tensor, image: Tensor, corners: Tensor, cells: tuple[int, int], ratio: int,
        aligned: bool,
    ) -> Tensor:  # fmt: skip
        from groundstate.nn.detection.roi_triton import align

        ctx.save_for_backward(image, corners)
        ctx.shape, ctx.rest = maps.shape, (cells, ratio, aligned)
        return align(_pixels(maps), image, corners, cells, ratio, None if aligned else 1.0)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> Any:
        image, corners = ctx.saved_tensors
        images, channels, height, width = ctx.shape
        places = _places(grads[0].new_empty(0, 0, height, width), image, corners, *ctx.rest)
        bags, shares = _bags(width, height, *places)
        pixel, order = bags.flatten().int().sort(stable=True)
        ends = torch.arange(images * height * width + 1, dtype=torch.int32, device=pixel.device)
        found = F.embedding_bag(
            order // bags.shape[1], _table(grads[0]), torch.searchsorted(pixel, ends), mode="sum",
            per_sample_weights=shares.flatten()[order].to(grads[0].dtype), include_last_offset=True,
        )  # fmt: skip
        out = found.view(images, height, width, channels).permute(0, 3, 1, 2).contiguous()
        return out, None, None, None, None, None


class _Pool(torch.autograd.Function):
    """`_pool` in compiled loops."""

    @staticmethod
    def forward(ctx: Any, maps: Tensor, image: Tensor, *edges: Tensor) -> Tensor:
        from groundstate.nn.detection.roi_numba import pool

        top, _, left, right = edges
        pixels, size = _pixels(maps), (top.shape[1], left.shape[1])
        out = maps.new_empty(len(image), maps.shape[1], *size)
        first = torch.empty(len(image), *size, maps.shape[1], dtype=torch.int32)
        arrays = [each.numpy() for each in (image, *edges)]
        pool(pixels.numpy(), *arrays, out.numpy(), first.numpy())
        ctx.save_for_backward(image, top, left, right, first)
        ctx.shape = pixels.shape
        return out

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> Any:
        from groundstate.nn.detection.roi_numba import pool_back

        out = grads[0].new_zeros(ctx.shape)
        arrays = [each.numpy() for each in (grads[0].contiguous(), *ctx.saved_tensors)]
        pool_back(*arrays, out.numpy())
        return out.permute(0, 3, 1, 2).contiguous(), None, None, None, None, None


class _FusedPool(torch.autograd.Function):
    """`_pool` in one kernel; backwards the additions race, but of whole numbers."""

    @staticmethod
    def forward(
        ctx: Any, maps: Tensor, image: Tensor, corners: Tensor, cells: tuple[int, int]
    ) -> Tensor:
        from groundstate.nn.detection.roi_triton import pool

        out, first = pool(_pixels(maps), image, corners, cells)
        ctx.save_for_backward(first)
        ctx.shape = maps.shape
        return out

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> Any:
        (first,) = ctx.saved_tensors
        images, channels, height, width = ctx.shape
        own = torch.arange(channels, device=first.device)[:, None, None]
        place = torch.where(first >= 0, first.long() * channels + own, -1)
        size = images * height * width * channels
        out = fixed_sum(grads[0].flatten(), place.flatten(), size)
        out = out.view(images, height, width, channels).permute(0, 3, 1, 2).contiguous()
        return out, None, None, None


def _pool(
    maps: Tensor, image: Tensor, top: Tensor, below: Tensor, left: Tensor, right: Tensor
) -> Tensor:
    """The largest value of every cell, 0 where it is empty.  # (R, C, P, Q)"""
    height, width = maps.shape[2:]
    rows, columns = top.shape[1], left.shape[1]
    high, wide = (below - top)[:, :, None], (right - left)[:, None, :]
    count = (high * wide).flatten()  # pixels of every cell  # (R · P · Q,)
    cell = torch.repeat_interleave(count)
    ends = count.cumsum(0)
    within = torch.arange(len(cell), device=cell.device) - (ends - count)[cell]
    wide = wide.expand(-1, rows, -1).flatten()[cell]
    region, at = cell // (rows * columns), cell % (rows * columns)
    row = top[region, at // columns] + within // wide
    column = left[region, at % columns] + within % wide
    pixel = (image[region] * height + row) * width + column
    found = F.embedding_bag(pixel, _table(maps), ends - count, mode="max")
    return found.view(-1, rows, columns, maps.shape[1]).permute(0, 3, 1, 2).contiguous()


def _pixels(maps: Tensor) -> Tensor:
    """The channels of every pixel side by side.  # (B, H, W, C)"""
    return maps.detach().permute(0, 2, 3, 1).contiguous()


def _table(maps: Tensor) -> Tensor:
    """A row for every pixel.  # (B · H · W, C)"""
    return maps.permute(0, 2, 3, 1).reshape(-1, maps.shape[1])
