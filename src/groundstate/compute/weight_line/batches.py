"""Batches of rows as one index tensor and the places where it is cut."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Batches:
    r"""The batches of one epoch.

    Iterating gives ``(rows, weights)`` per batch; ``weights`` is None where every row counts one.

    Parameters
    ----------
    rows : Tensor of int64, (M,)
        Row numbers of all batches, one batch after the other.
    weights : Tensor of float64, (M,), or None
    sizes : list of int
        Entries per batch.

    Examples
    --------
    >>> import torch
    >>> for rows, weights in Batches.slices(torch.tensor([3, 1, 0, 2, 4]), 2):
    ...     print(rows.tolist(), weights)
    [3, 1] None
    [0, 2] None
    [4] None
    """

    rows: Tensor
    weights: Tensor | None
    sizes: list[int]

    @classmethod
    def slices(cls, rows: Tensor, batch_size: int) -> Batches:
        """Equal slices of a permutation."""
        full, rest = divmod(len(rows), batch_size)
        return cls(rows, None, [batch_size] * full + [rest] * (rest > 0))

    @classmethod
    def ragged(
        cls,
        rows: NDArray[np.int64],
        weights: NDArray[np.float64],
        offsets: NDArray[np.int64],
        device: torch.device,
    ) -> Batches:
        """Batches that begin at the offsets."""
        plain = bool((weights == 1.0).all())
        return cls(
            torch.from_numpy(rows).to(device),
            None if plain else torch.from_numpy(weights).to(device),
            np.diff(offsets).tolist(),
        )

    def __len__(self) -> int:
        return len(self.sizes)

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor | None]]:
        rows = self.rows.split(self.sizes)
        if self.weights is None:
            return ((r, None) for r in rows)
        return zip(rows, self.weights.split(self.sizes), strict=True)

    def totals(self) -> list[float]:
        """Weight of each batch, in one transfer."""
        if self.weights is None:
            return [float(size) for size in self.sizes]
        found: list[float]
        if self.weights.is_cpu and self.sizes and all(self.sizes):
            starts = np.cumsum([0, *self.sizes[:-1]])
            found = np.add.reduceat(self.weights.numpy(), starts).tolist()
            return found
        ends = torch.tensor(self.sizes).cumsum(0).to(self.weights.device) - 1
        summed = self.weights.cumsum(0)[ends]
        found = torch.diff(summed, prepend=summed.new_zeros(1)).tolist()
        return found

    def weights_or_ones(self) -> Tensor:
        """A weight for each entry."""
        if self.weights is not None:
            return self.weights
        return torch.ones(len(self.rows), dtype=torch.float64, device=self.rows.device)

    def of_full_size(self, batch_size: float) -> Batches:
        """Without the batch that is smaller, unless it is the only one.

        >>> import torch
        >>> Batches.slices(torch.arange(5), 2).of_full_size(2).sizes
        [2, 2]
        """
        if len(self.sizes) < 2:
            return self
        totals = self.totals()
        small = min(range(len(totals)), key=lambda i: (totals[i], -i))
        if totals[small] >= batch_size * (1 - 1e-9):
            return self
        if small < len(totals) - 1:  # the batches were reordered
            return self.reordered([i for i in range(len(totals)) if i != small])
        end = len(self.rows) - self.sizes[-1]
        weights = None if self.weights is None else self.weights[:end]
        return Batches(self.rows[:end], weights, self.sizes[:-1])

    def reordered(self, order: Sequence[int]) -> Batches:
        """The same batches in another order.

        >>> import torch
        >>> Batches.slices(torch.tensor([3, 1, 0]), 2).reordered([1, 0]).rows.tolist()
        [0, 3, 1]
        """
        rows = self.rows.split(self.sizes)
        weights = None if self.weights is None else self.weights.split(self.sizes)
        return Batches(
            torch.cat([rows[i] for i in order]),
            None if weights is None else torch.cat([weights[i] for i in order]),
            [self.sizes[i] for i in order],
        )

    def from_batch(self, start: int) -> Batches:
        """The batches from number ``start`` on: where an interrupted epoch resumes."""
        skip = sum(self.sizes[:start])
        weights = None if self.weights is None else self.weights[skip:]
        return Batches(self.rows[skip:], weights, self.sizes[start:])


def stack_batches(members: Sequence[Batches]) -> tuple[Tensor, Tensor]:
    """Batches of P members as rows (K, P, B) and weights (K, P, B), padded with weight zero.

    Step k of member p sees what it would see alone; members with fewer batches see no weight in
    the last steps.
    """
    steps = max(len(m) for m in members)
    width = max(max(m.sizes, default=0) for m in members)
    device = members[0].rows.device
    rows = torch.zeros(steps, len(members), width, dtype=torch.int64, device=device)
    weights = torch.zeros(steps, len(members), width, dtype=torch.float64, device=device)
    for p, member in enumerate(members):
        sizes = torch.tensor(member.sizes, device=device)
        k = torch.repeat_interleave(torch.arange(len(member), device=device), sizes)
        b = torch.arange(len(member.rows), device=device) - (sizes.cumsum(0) - sizes)[k]
        rows[k, p, b] = member.rows
        weights[k, p, b] = 1.0 if member.weights is None else member.weights
    return rows, weights
