"""Sequences of different length in one tensor, and back."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from groundstate.compute.rows import Ragged
from groundstate.errors import DataError, ShapeError


def pad_batch(rows: Ragged | Sequence[Tensor], fill: float = 0.0) -> tuple[Tensor, Tensor]:
    """Rows in one tensor ``(n, T, ...)`` and the mask of what is real, ``(n, T)``.

    >>> x, mask = pad_batch([torch.ones(1), torch.ones(3)])
    >>> x.tolist(), mask.int().tolist()
    ([[1.0, 0.0, 0.0], [1.0, 1.0, 1.0]], [[1, 0, 0], [1, 1, 1]])
    """
    ragged = (
        rows if isinstance(rows, Ragged) else Ragged.of(list(rows), rows[0].dtype if rows else None)
    )
    x = ragged.padded(fill)
    return x, torch.arange(x.shape[1], device=x.device) < ragged.lengths[:, None]


def unpad(x: Tensor, lengths: Tensor) -> Ragged:
    """The real items of padded rows ``(n, T, ...)``."""
    if len(lengths) != len(x):
        raise ShapeError(f"{len(x)} rows need a length each, got {len(lengths)}")
    real = torch.arange(x.shape[1], device=x.device) < lengths[:, None]
    offsets = torch.cat((lengths.new_zeros(1), lengths.cumsum(0)))
    return Ragged(x[real], offsets)


def bucketed(
    lengths: Tensor, batch_size: int, *, window: int = 50, generator: torch.Generator | None = None
) -> list[Tensor]:
    """Row numbers of batches in which rows are of about the same length, in random order.

    Rows are shuffled, sorted by length within ``window`` batches, cut, and the batches shuffled: a
    row meets others from pass to pass, and little is filled up.

    >>> batches = bucketed(torch.tensor([9, 1, 8, 2]), 2)
    >>> sorted(sorted(b.tolist()) for b in batches)
    [[0, 2], [1, 3]]
    """
    if batch_size < 1:
        raise ValueError(f"batch_size must be at least 1, got {batch_size}")
    generator = generator or torch.Generator().manual_seed(0)
    order = torch.randperm(len(lengths), generator=generator)
    at_home = lengths.cpu()
    batches: list[Tensor] = []
    for part in order.split(batch_size * window):
        by_length = part[torch.argsort(at_home[part], stable=True)]
        batches += list(by_length.split(batch_size))
    return [batches[i] for i in torch.randperm(len(batches), generator=generator).tolist()]


def pack_rows(lengths: Sequence[int] | Tensor, size: int) -> list[list[int]]:
    """Which short texts share a row of ``size`` positions, longest first, each row filled as far
    as it goes; ``nn.masks.document`` keeps them apart.

    >>> pack_rows([3, 5, 2, 4], 7)
    [[1, 2], [3, 0]]
    """
    sizes = [int(n) for n in lengths]
    longest = max(sizes, default=0)
    if longest > size:
        raise DataError(f"a text of {longest} tokens does not fit into rows of {size}; cut it")
    rows: list[list[int]] = []
    left: list[int] = []
    for i in sorted(range(len(sizes)), key=lambda i: (-sizes[i], i)):
        home = next((r for r, free in enumerate(left) if free >= sizes[i]), None)
        if home is None:
            rows.append([])
            left.append(size)
            home = len(rows) - 1
        rows[home].append(i)
        left[home] -= sizes[i]
    return rows
