"""Pictures as whole numbers 0 to 255: a quarter of the memory of real numbers, or none at all where
they are in a file that the operating system maps.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import interpolate

from groundstate.compute.rows.unread import Unread
from groundstate.errors import DataError, ShapeError

_LUMA = (0.299, 0.587, 0.114)  # of red, green, blue, as Pillow weighs them


@dataclass(frozen=True, eq=False, repr=False)
class Pixels(Unread):
    """Pictures of 8 bits; ``to`` makes them real numbers in [0, 1] on the device.

    Parameters
    ----------
    values : array of uint8, ``(N, C, H, W)``, which may be a memory map
    index : which of them are the rows, int64 ``(n,)``; None is all
    channels : 1 or 3, to which ``to`` converts; None leaves them
    size : (height, width) to which ``to`` resizes; None leaves it
    dtype : of the real numbers

    Examples
    --------
    >>> rows = Pixels(np.full((3, 1, 2, 2), 255, np.uint8))
    >>> rows, rows[1:].to(torch.device("cpu")).shape
    (3 pictures of 1 x 2 x 2 in 8 bits, torch.Size([2, 1, 2, 2]))
    """

    values: NDArray[np.uint8]
    index: NDArray[np.int64] | None = None
    channels: int | None = None
    size: tuple[int, int] | None = None
    dtype: torch.dtype = torch.float32
    in_memory = False

    def __post_init__(self) -> None:
        if self.values.dtype != np.uint8 or self.values.ndim != 4:
            raise DataError(
                "pictures of 8 bits are arrays of uint8 (n, channels, height, width), got "
                f"{self.values.dtype} {self.values.shape}"
            )

    @property
    def picture(self) -> tuple[int, int, int]:
        """Channels, height and width that ``to`` gives."""
        c, h, w = self.values.shape[1:]
        size = (h, w) if self.size is None else self.size
        return (c if self.channels is None else self.channels, *size)

    def __len__(self) -> int:
        return len(self.values) if self.index is None else len(self.index)

    def take(self, index: Tensor) -> Self:
        at = index.cpu().numpy()
        return replace(self, index=at if self.index is None else self.index[at])

    @classmethod
    def join(cls, parts: Sequence[Self]) -> Self:
        first = parts[0]
        if any(p.picture != first.picture for p in parts):
            listed = sorted({p.picture for p in parts})
            raise DataError(f"pictures of different forms cannot be joined, such as {listed[:3]}")
        if all(p.values is first.values for p in parts):
            at = [np.arange(len(p)) if p.index is None else p.index for p in parts]
            return replace(first, index=np.concatenate(at))
        return replace(first, values=np.concatenate([p.raw() for p in parts]), index=None)

    def raw(self) -> NDArray[np.uint8]:
        """The stored pictures of the rows."""
        found: NDArray[np.uint8] = self.values if self.index is None else self.values[self.index]
        return found

    def to(self, device: torch.device, *, non_blocking: bool = False) -> Tensor:
        """Real numbers in [0, 1], ``(n, *picture)``; bytes travel, the device divides."""
        raw = self.raw()
        if not raw.flags.writeable or not raw.flags.c_contiguous:  # torch shares neither
            raw = np.array(raw)
        moved = torch.from_numpy(raw).to(device, non_blocking=non_blocking)
        return resized(recoloured(moved.to(self.dtype) / 255, self.channels), self.size)

    def floating(self, dtype: torch.dtype) -> Self:
        return self if dtype == self.dtype else replace(self, dtype=dtype)

    def hashes(self) -> NDArray[np.uint64]:
        at = range(len(self.values)) if self.index is None else self.index.tolist()
        return np.array([_digest(self.values[i]) for i in at], dtype=np.uint64)

    def describe(self) -> str:
        return f"{len(self)} pictures of {' x '.join(map(str, self.picture))} in 8 bits"


def recoloured(x: Tensor, channels: int | None) -> Tensor:
    """Pictures ``(n, C, H, W)`` in grey (1) or colour (3); a fourth channel, alpha, is dropped.

    >>> recoloured(torch.ones(1, 1, 2, 2), 3).shape
    torch.Size([1, 3, 2, 2])
    """
    c = x.shape[1]
    if channels is None or c == channels:
        return x
    if c in (2, 4) and channels in (1, 3):
        x, c = x[:, :-1], c - 1
        if c == channels:
            return x
    if (c, channels) == (1, 3):
        return x.expand(-1, 3, -1, -1)
    if (c, channels) == (3, 1):
        return torch.einsum("nchw,c->nhw", x, x.new_tensor(_LUMA))[:, None]
    raise ShapeError(
        f"pictures of {c} channels have no form in {channels}: grey has 1, colour 3, with alpha "
        "one more"
    )


def resized(x: Tensor, size: tuple[int, int] | None) -> Tensor:
    """Pictures ``(n, C, H, W)`` in another size, bilinear; smaller ones are averaged first.

    >>> resized(torch.ones(1, 1, 4, 4), (2, 3)).shape
    torch.Size([1, 1, 2, 3])
    """
    if size is None or tuple(x.shape[2:]) == tuple(size) or not len(x):
        return x if len(x) or size is None else x.new_zeros(0, x.shape[1], *size)
    return interpolate(x, size=tuple(size), mode="bilinear", align_corners=False, antialias=True)


def _digest(picture: NDArray[Any]) -> int:
    found = hashlib.blake2b(np.ascontiguousarray(picture).data, digest_size=8)
    return int.from_bytes(found.digest(), "little")
