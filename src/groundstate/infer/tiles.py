r"""Scores of pictures that are larger than memory or than those that were learned from, by tiles."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product

import torch
from torch import Tensor
from torch.nn.functional import pad

Scores = Callable[[Tensor], Tensor]


def tiled(
    scores: Scores, x: Tensor, tile: int | Sequence[int], *, align: int = 1, batch: int = 4
) -> Tensor:
    r"""Scores of a picture from overlapping tiles, blended where they meet.

    A tile knows nothing about what lies beyond its border: up to a margin m, which is measured, its
    scores differ from those of the whole picture. The margin (at most a quarter of the tile) is left
    out, and the rest overlaps with its neighbours by as much again, with weights that fall linearly
    to zero. Where m is within a quarter of the tile the result is that of the whole picture.

    Parameters
    ----------
    scores : from pictures ``(n, C, *spatial)`` of any size to ``(n, K, *spatial)``, in evaluation mode
    x : pictures ``(n, C, *spatial)``, whose sides may be smaller than the tile
    tile : side, or one for each spatial axis; rounded up to a multiple of ``align``
    align : pixels between places at which the network sees the same, :math:`2^\text{depth}` for a
        U-Net; tiles start at multiples of it
    batch : tiles computed at once

    Returns
    -------
    Tensor ``(n, K, *spatial)``

    Examples
    --------
    >>> conv = torch.nn.Conv2d(1, 2, 3, padding=1)
    >>> x = torch.rand(1, 1, 50, 70)
    >>> with torch.no_grad():
    ...     bool(torch.allclose(tiled(conv, x, 16), conv(x), atol=1e-6))
    True
    """
    spatial = x.shape[2:]
    sides = [tile] * len(spatial) if isinstance(tile, int) else list(tile)
    if len(sides) != len(spatial) or min(sides) < 1 or align < 1:
        raise ValueError(
            f"tile is a positive side or one for each of {len(spatial)} spatial axes, got {tile!r}"
        )
    short = [-s % align for s in spatial]  # a network that pads sees the same picture
    before = [s // 2 for s in short]
    whole = pad(x, [v for s, b in zip(reversed(short), reversed(before)) for v in (b, s - b)])
    sides = [min(t + -t % align, n) for t, n in zip(sides, whole.shape[2:])]
    margins = [
        0 if t == n else min(_margin(scores, whole, axis, t, align), t // 4)
        for axis, (t, n) in enumerate(zip(sides, whole.shape[2:]))
    ]
    starts = [_starts(n, t, m, align) for n, t, m in zip(whole.shape[2:], sides, margins)]
    out, total = None, torch.zeros(whole.shape[2:], dtype=x.dtype, device=x.device)
    for group in _grouped(list(product(*starts)), batch):
        windows = [_window(at, sides) for at in group]
        found = scores(torch.cat([whole[(slice(None), slice(None), *w)] for w in windows]))
        if out is None:
            out = found.new_zeros(len(x), found.shape[1], *whole.shape[2:])
        for at, window, part in zip(group, windows, found.split(len(x))):
            weight = _weight(at, whole.shape[2:], sides, margins, x)
            out[(slice(None), slice(None), *window)] += part * weight
            total[window] += weight
    assert out is not None
    out /= total
    for axis, (b, n) in enumerate(zip(before, spatial), start=2):
        out = out.narrow(axis, b, n)
    return out


def _starts(n: int, tile: int, margin: int, align: int) -> list[int]:
    """Places of tiles along an axis: the parts inside their margins overlap."""
    overlap = max(1, margin, tile // 8)
    step = max(align, (tile - 2 * margin - overlap) // align * align)
    starts = list(range(0, max(n - tile, 0) + 1, step))
    if starts[-1] + tile < n:
        starts.append(n - tile)
    return starts


def _weight(
    at: Sequence[int], size: Sequence[int], sides: Sequence[int], margins: Sequence[int], x: Tensor
) -> Tensor:
    """Of the pixels of a tile: 0 in its margins, then rising to 1; at the picture's own border 1."""
    weight = torch.ones((), dtype=x.dtype, device=x.device)
    for start, n, tile, margin in zip(at, size, sides, margins):
        ramp = max(1, margin, tile // 8)
        place = torch.arange(tile, dtype=x.dtype, device=x.device)
        first = torch.full_like(place, ramp) if start == 0 else place - margin + 1
        last = torch.full_like(place, ramp) if start + tile == n else tile - margin - place
        one = torch.minimum(first, last).clamp(1e-6, ramp) / ramp
        weight = weight[..., None] * one
    return weight


def _window(at: Sequence[int], sides: Sequence[int]) -> tuple[slice, ...]:
    return tuple(slice(start, start + side) for start, side in zip(at, sides))


def _margin(scores: Scores, x: Tensor, axis: int, tile: int, align: int) -> int:
    """How far into an aligned tile the pixels beyond its border have a say, along one axis.

    Pixels beyond are NaN, which every operation hands on: what is NaN inside depended on them.
    """
    beyond = tile // 4 + -(tile // 4) % align
    shape = [min(n, 2 * align) for n in x.shape[2:]]
    shape[axis] = tile + 2 * beyond
    probe = x.new_zeros(1, x.shape[1], *shape)
    probe.narrow(axis + 2, 0, beyond).fill_(torch.nan)
    probe.narrow(axis + 2, beyond + tile, beyond).fill_(torch.nan)
    bad = scores(probe).isnan().movedim(axis + 2, 0).flatten(1).any(1)
    inside = bad[beyond : beyond + tile]
    if not inside.any():
        return 0
    if inside.all():
        return tile
    good = (~inside).nonzero()[:, 0]
    return int(max(good[0], tile - 1 - good[-1]))


def _grouped(items: list[tuple[int, ...]], size: int) -> Iterator[list[tuple[int, ...]]]:
    return (items[at : at + size] for at in range(0, len(items), size))
