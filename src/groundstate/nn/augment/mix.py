r"""Examples mixed with others of their batch, and labels mixed as much."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from groundstate.compute.foreign.torch import standard_gamma
from groundstate.nn.augment.base import Rng, column
from groundstate.nn.augment.colour import window


class Mixup(nn.Module):
    r"""Mix examples with others of the batch, :math:`\tilde x = \lambda x + (1-\lambda)x'`, with
    :math:`\lambda \sim \mathrm{Beta}(\alpha, \alpha)`; the loss is mixed with the same λ.

    Parameters
    ----------
    alpha : 0 mixes nothing

    Examples
    --------
    >>> x = torch.eye(4)
    >>> mixed, partner, share = Mixup(1.0)(x, torch.Generator().manual_seed(0))
    >>> torch.allclose(mixed, share[:, None] * x + (1 - share[:, None]) * x[partner])
    True
    """

    label_preserving = False

    def __init__(self, alpha: float = 0.2) -> None:
        super().__init__()
        if alpha < 0:
            raise ValueError(f"alpha must be at least 0, got {alpha}")
        self.alpha = alpha

    def forward(self, x: Tensor, generator: Rng = None) -> tuple[Tensor, Tensor, Tensor]:
        """The mixed examples, the partners ``(B,)`` and the shares λ ``(B,)`` of the first."""
        if not self.training or self.alpha == 0:
            return _unmixed(x)
        partner = torch.randperm(len(x), generator=generator, device=x.device)
        share = beta(self.alpha, len(x), x.device, generator)
        share = torch.maximum(share, 1 - share).to(x.dtype)  # the example itself dominates
        s = column(share, x)
        return s * x + (1 - s) * x[partner], partner, share


class CutMix(nn.Module):
    r"""Paste a window of another example of the batch; its share of the area is its share of the loss.

    The window has the area :math:`1-\lambda`, :math:`\lambda \sim \mathrm{Beta}(\alpha, \alpha)`, cut
    at the border of the picture; the share that counts is that of the pixels that stayed.

    Parameters
    ----------
    alpha : 0 mixes nothing

    Examples
    --------
    >>> x = torch.stack([torch.zeros(1, 8, 8), torch.ones(1, 8, 8)])
    >>> mixed, partner, share = CutMix(1.0)(x, torch.Generator().manual_seed(1))
    >>> torch.allclose(mixed.mean((1, 2, 3)), share * x[:, 0, 0, 0] + (1 - share) * x[partner, 0, 0, 0])
    True
    """

    label_preserving = False

    def __init__(self, alpha: float = 1.0) -> None:
        super().__init__()
        if alpha < 0:
            raise ValueError(f"alpha must be at least 0, got {alpha}")
        self.alpha = alpha

    def forward(self, x: Tensor, generator: Rng = None) -> tuple[Tensor, Tensor, Tensor]:
        """The mixed examples, the partners ``(B,)`` and the shares λ ``(B,)`` of the first."""
        if not self.training or self.alpha == 0:
            return _unmixed(x)
        partner = torch.randperm(len(x), generator=generator, device=x.device)
        lam = beta(self.alpha, len(x), x.device, generator)
        h, w = x.shape[2:]
        side = ((1 - lam) * h * w).sqrt() / min(h, w)  # a square of this area
        inside = window(x, side, generator)  # (B, H, W)
        share = 1 - inside.to(x.dtype).mean((1, 2))
        return torch.where(inside[:, None], x[partner], x), partner, share


def mixed_labels(y: Tensor, partner: Tensor, share: Tensor, k: int) -> Tensor:
    r"""Soft labels :math:`\lambda\,\mathbb 1_{y} + (1-\lambda)\,\mathbb 1_{y'}` of mixed examples.

    >>> mixed_labels(torch.tensor([0, 1]), torch.tensor([1, 0]), torch.tensor([0.75, 1.0]), 2)
    tensor([[0.7500, 0.2500],
            [0.0000, 1.0000]])
    """
    one = torch.nn.functional.one_hot(y, k).to(share.dtype)
    return share[:, None] * one + (1 - share[:, None]) * one[partner]


def beta(alpha: float, n: int, device: torch.device, generator: Rng) -> Tensor:
    """n draws of Beta(α, α), by two gammas."""
    drawn = standard_gamma(torch.full((2, n), alpha, device=device), generator=generator)
    return drawn[0] / drawn.sum(0).clamp_min(torch.finfo(drawn.dtype).tiny)


def _unmixed(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    return x, torch.arange(len(x), device=x.device), x.new_ones(len(x))
