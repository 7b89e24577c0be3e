"""Changes of rows of a table: cells hidden, or taken from other rows."""

from __future__ import annotations

import torch
from torch import Tensor

from groundstate.nn.augment.base import Rng, Transform


class MaskColumns(Transform):
    """Set a share of the cells ``(B, d)`` to ``fill``, the mean of standardised columns.

    Examples
    --------
    >>> x = torch.ones(1000, 4)
    >>> round(MaskColumns(0.25)(x, torch.Generator().manual_seed(0)).mean().item(), 1)
    0.8
    """

    def __init__(
        self, share: float = 0.2, fill: float = 0.0, p: float = 1.0, label_preserving: bool = True
    ) -> None:
        super().__init__(p, label_preserving)
        self.share, self.fill = _share(share), fill

    def change(self, x: Tensor, generator: Rng) -> Tensor:
        u = torch.rand(x.shape, generator=generator, device=x.device)
        return torch.where(u < self.share, torch.full_like(x, self.fill), x)


class SwapNoise(Transform):
    """Take a share of the cells ``(B, d)`` from other rows of the batch, column by column: what each column
    holds stays as likely as it was.

    Examples
    --------
    >>> x = torch.arange(6.0).reshape(3, 2)
    >>> changed = SwapNoise(0.5)(x, torch.Generator().manual_seed(0))
    >>> sorted(set(changed[:, 0].tolist()) - {0.0, 2.0, 4.0})
    []
    """

    def __init__(self, share: float = 0.2, p: float = 1.0, label_preserving: bool = True) -> None:
        super().__init__(p, label_preserving)
        self.share = _share(share)

    def change(self, x: Tensor, generator: Rng) -> Tensor:
        u = torch.rand(x.shape, generator=generator, device=x.device)
        other = torch.randint(len(x), x.shape, generator=generator, device=x.device)
        return torch.where(u < self.share, x.gather(0, other), x)


def _share(share: float) -> float:
    if not 0 <= share <= 1:
        raise ValueError(f"a share of the cells is in [0, 1], got {share}")
    return share
