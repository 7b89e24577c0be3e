"""Keys and values of the positions that a decoder has seen."""

from __future__ import annotations

import torch
from torch import Tensor

from groundstate.errors import ShapeError


class KVCache:
    """Room for the keys and values of all layers, filled position by position.

    Parameters
    ----------
    layers, rows, heads, length, dim_head : sizes; ``length`` positions at most
    window : keep only this many last positions, in their room
    device, dtype : of the tensors

    Attributes
    ----------
    length : positions seen so far

    Examples
    --------
    >>> cache = KVCache(1, rows=2, heads=1, length=8, dim_head=4)
    >>> k, v = cache.append(0, torch.ones(2, 1, 3, 4), torch.ones(2, 1, 3, 4))
    >>> k.shape, cache.length
    (torch.Size([2, 1, 3, 4]), 3)
    """

    def __init__(
        self,
        layers: int,
        rows: int,
        heads: int,
        length: int,
        dim_head: int,
        *,
        window: int | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        self.window = window
        room = length if window is None else min(length, window)
        shape = (2, layers, rows, heads, room, dim_head)
        self.store = torch.zeros(shape, device=device, dtype=dtype)
        self.seen = [0] * layers

    @property
    def length(self) -> int:
        return self.seen[-1]

    @property
    def rows(self) -> int:
        return self.store.shape[2]

    def append(self, layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Add positions to a layer, ``(rows, heads, T, dim_head)``; all that it may attend to."""
        room, start, new = self.store.shape[-2], self.seen[layer], k.shape[-2]
        self.seen[layer] = end = start + new
        if self.window is None and end > room:
            raise ShapeError(
                f"the cache has room for {room} positions, got {end}; make it longer, or use "
                "window= to forget the oldest"
            )
        keys, values = self.store[0, layer], self.store[1, layer]
        if end <= room:
            keys[:, :, start:end], values[:, :, start:end] = k, v
            return keys[:, :, :end], values[:, :, :end]
        if new > 1 and start:
            raise ShapeError("behind its window a cache takes one position at a time")
        # attention does not ask in which order keys stand, so the oldest makes room in place
        slots = torch.arange(end - min(new, room), end, device=k.device) % room
        keys[:, :, slots], values[:, :, slots] = k[:, :, -room:], v[:, :, -room:]
        return (keys, values) if new == 1 else (k, v)

    def __getitem__(self, rows: Tensor) -> KVCache:
        """A cache of these rows, kept or repeated, as beams need it."""
        picked = object.__new__(KVCache)
        picked.window, picked.seen = self.window, list(self.seen)
        two, layers, _, heads, room, dim = self.store.shape
        picked.store = self.store.new_empty(two, layers, len(rows), heads, room, dim)
        used = min(max(self.seen), room)  # the rest is written before it is read
        for given, made in zip(self.store.flatten(0, 1), picked.store.flatten(0, 1)):
            torch.index_select(given[:, :, :used], 0, rows, out=made[:, :, :used])
        return picked
