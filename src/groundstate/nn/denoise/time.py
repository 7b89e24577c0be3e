r"""What a denoiser knows beside the noisy row: the noise level and the label."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn


def level_waves(t: Tensor, dim: int, n_steps: int = 1000) -> Tensor:
    r""":math:`(\cos\omega_k t', \sin\omega_k t')` with :math:`\omega_k = 10^{-4k/(d/2)}` and
    :math:`t' = 1000\,t/T`, ``(B, dim)``.

    >>> level_waves(torch.tensor([0]), 4)
    tensor([[1., 1., 0., 0.]])
    """
    half = dim // 2
    speeds = torch.exp(-math.log(1e4) / half * torch.arange(half, device=t.device))
    angle = t[:, None].float() * (1000.0 / n_steps) * speeds
    return torch.cat([angle.cos(), angle.sin()], 1)


class LevelEmbedding(nn.Module):
    r"""An embedding of the noise level t, plus one of the label: :math:`MLP(\text{waves}(t)) + W y`, with a
    vector of its own in the place of :math:`W y` where y is unknown (zeros).

    Parameters
    ----------
    dim : size of the embedding
    q : size of the context y, 0 without
    n_steps : number T of levels

    Examples
    --------
    >>> LevelEmbedding(8, 3)(torch.tensor([1, 5]), torch.zeros(2, 3)).shape
    torch.Size([2, 8])
    """

    def __init__(self, dim: int, q: int = 0, n_steps: int = 1000) -> None:
        super().__init__()
        self.dim, self.q, self.n_steps = dim, q, n_steps
        self.net = nn.Sequential(nn.Linear(dim, dim), nn.SiLU(), nn.Linear(dim, dim))
        self.label = nn.Linear(q, dim, bias=False) if q else None
        self.unknown = nn.Parameter(torch.zeros(dim)) if q else None

    def forward(self, t: Tensor, y: Tensor | None = None) -> Tensor:
        weight: Tensor = self.net[0].weight  # type: ignore[assignment]
        out: Tensor = self.net(level_waves(t, self.dim, self.n_steps).to(weight.dtype))
        if self.label is None or self.unknown is None:
            return out
        if y is None:
            return out + self.unknown
        known = (y != 0).any(1, keepdim=True)
        return out + torch.where(known, self.label(y), self.unknown)
