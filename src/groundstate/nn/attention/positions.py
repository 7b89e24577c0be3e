r"""Where an item stands: vectors added to embeddings, turns of queries and keys, biases of scores."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from groundstate.errors import ShapeError
from groundstate.nn.blocks.contract import blocks, rows_of


@blocks.register(
    make=lambda: SinusoidalPositions(4),
    batch=rows_of(5, 4),
    formula=r"x_t+(\sin t\omega_i,\cos t\omega_i)_i",
)
class SinusoidalPositions(nn.Module):
    r""":math:`x_t \mapsto x_t + P_t`, :math:`P_{t,2i} = \sin(t/b^{2i/D})`,
    :math:`P_{t,2i+1} = \cos(t/b^{2i/D})`.

    Every :math:`\|P_t\|^2 = D/2`, and :math:`P_s\cdot P_t` depends on s − t alone.

    Parameters
    ----------
    dim : D, even
    base : b

    Examples
    --------
    >>> SinusoidalPositions(4).table(2)[1]
    tensor([0.8415, 0.5403, 0.0100, 0.9999])
    """

    def __init__(self, dim: int, base: float = 1e4) -> None:
        super().__init__()
        if dim % 2:
            raise ShapeError(f"sinusoidal positions come in pairs, got an odd dim {dim}")
        self.dim, self.base = dim, base

    def table(
        self, length: int, start: int = 0, *, device: torch.device | str | None = None
    ) -> Tensor:
        """P of positions start, start + 1, ..., ``(length, dim)``."""
        t = torch.arange(start, start + length, device=device, dtype=torch.float64)
        omega = self.base ** (
            -torch.arange(0, self.dim, 2, device=device, dtype=torch.float64) / self.dim
        )
        angle = t[:, None] * omega
        return torch.stack((angle.sin(), angle.cos()), -1).flatten(1).float()

    def forward(self, x: Tensor, start: int = 0) -> Tensor:
        _features(self, x, self.dim)
        return x + self.table(x.shape[-2], start, device=x.device).to(x.dtype)

    def extra_repr(self) -> str:
        return f"{self.dim}, base={self.base:g}"


@blocks.register(
    make=lambda: LearnedPositions(6, 4), batch=rows_of(6, 4), formula=r"x_t+P_t,\ P\in\theta"
)
class LearnedPositions(nn.Module):
    r""":math:`x_t \mapsto x_t + P_t` with a free vector for each of ``max_len`` positions.

    Parameters
    ----------
    max_len : positions
    dim : D
    std : standard deviation of the initial values
    generator : their source; None is a fixed seed

    Attributes
    ----------
    weight : Parameter, ``(max_len, dim)``

    Examples
    --------
    >>> LearnedPositions(8, 4)(torch.zeros(2, 3, 4)).shape
    torch.Size([2, 3, 4])
    """

    def __init__(
        self,
        max_len: int,
        dim: int,
        *,
        std: float = 0.02,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.max_len, self.dim, self.std = max_len, dim, std
        generator = generator or torch.Generator().manual_seed(0)
        self.weight = nn.Parameter(torch.randn(max_len, dim, generator=generator) * std)

    def forward(self, x: Tensor, start: int = 0) -> Tensor:
        _features(self, x, self.dim)
        end = start + x.shape[-2]
        if end > self.max_len:
            raise ShapeError(
                f"learned positions reach to {self.max_len}, got a sequence of {end}; cut it, or "
                "use sinusoidal positions or RoPE, which go on"
            )
        return x + self.weight[start:end]

    def extra_repr(self) -> str:
        return f"{self.max_len}, {self.dim}"


class RoPE(nn.Module):
    r"""Queries and keys turned by their position, pair by pair of features.

    .. math:: R_t = \operatorname{diag}\bigl(\mathrm{rot}(t\omega_0),\dots,
              \mathrm{rot}(t\omega_{d/2-1})\bigr),\qquad \omega_k = b^{-2k/d},\qquad
              (R_i q)^\top(R_j k) = q^\top R_{j-i}\,k

    so that scores depend on the distance of positions alone.

    Parameters
    ----------
    dim_head : d, even
    base : b
    interleaved : pair neighbouring features (2k, 2k+1) instead of (k, k + d/2); the two differ by
        a fixed permutation of features

    Examples
    --------
    >>> RoPE(2)(torch.tensor([[1.0, 0.0], [1.0, 0.0]]))
    tensor([[1.0000, 0.0000],
            [0.5403, 0.8415]])
    """

    def __init__(self, dim_head: int, base: float = 1e4, interleaved: bool = False) -> None:
        super().__init__()
        if dim_head % 2:
            raise ShapeError(f"RoPE turns pairs of features, got an odd dim_head {dim_head}")
        self.dim_head, self.base, self.interleaved = dim_head, base, interleaved

    @property
    def frequencies(self) -> Tensor:
        """ω, ``(dim_head / 2,)``, float64."""
        k = torch.arange(0, self.dim_head, 2, dtype=torch.float64)
        return self.base ** (-k / self.dim_head)

    def forward(self, x: Tensor, start: int | Tensor = 0) -> Tensor:
        """x ``(..., T, dim_head)`` at positions start, start + 1, ...; a tensor names them all."""
        _features(self, x, self.dim_head)
        if isinstance(start, Tensor):
            t = start.to(x.device, torch.float64)
        else:
            t = torch.arange(start, start + x.shape[-2], device=x.device, dtype=torch.float64)
        angle = t[..., None] * self.frequencies.to(x.device)
        cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
        if self.interleaved:
            a, b = x[..., 0::2], x[..., 1::2]
            return torch.stack((a * cos - b * sin, a * sin + b * cos), -1).flatten(-2)
        a, b = x.chunk(2, -1)
        return torch.cat((a * cos - b * sin, a * sin + b * cos), -1)

    def extra_repr(self) -> str:
        return f"{self.dim_head}, base={self.base:g}, interleaved={self.interleaved}"


class RelativeBias(nn.Module):
    r"""A learned bias of scores for each head and bucket of distance,
    :math:`s_{ij} \mathrel{+}= b_{h,\,\mathrm{bucket}(j-i)}`.

    Half of the buckets hold near distances one by one, the others grow logarithmically up to
    ``max_distance``, beyond which all share one; ``bidirectional`` gives each sign its half.

    Parameters
    ----------
    heads : number of heads
    buckets : of distances
    max_distance : where the last bucket begins
    bidirectional : whether keys after the query have buckets of their own

    Attributes
    ----------
    weight : Parameter, ``(buckets, heads)``

    Examples
    --------
    >>> RelativeBias(2)(3, 3).shape
    torch.Size([2, 3, 3])
    """

    def __init__(
        self, heads: int, buckets: int = 32, max_distance: int = 128, bidirectional: bool = True
    ) -> None:
        super().__init__()
        self.heads, self.buckets = heads, buckets
        self.max_distance, self.bidirectional = max_distance, bidirectional
        self.weight = nn.Parameter(torch.zeros(buckets, heads))

    def bucket(self, distance: Tensor) -> Tensor:
        """Numbers of the buckets of ``distance`` = key position − query position."""
        buckets, shift = self.buckets, torch.zeros_like(distance)
        if self.bidirectional:
            buckets //= 2
            shift = (distance > 0) * buckets
            distance = distance.abs()
        else:
            distance = (-distance).clamp_min(0)
        exact = buckets // 2
        far = distance.clamp_min(1).float() / exact
        growth = far.log() / math.log(self.max_distance / exact) * (buckets - exact)
        large = (exact + growth.long()).clamp_max(buckets - 1)
        return shift + torch.where(distance < exact, distance, large)

    def forward(self, queries: int, keys: int) -> Tensor:
        """Biases ``(heads, queries, keys)``; queries are the last positions of the keys."""
        return self.weight[self.bucket(_distances(queries, keys, self.weight.device))].permute(
            2, 0, 1
        )

    def extra_repr(self) -> str:
        return f"{self.heads}, buckets={self.buckets}, max_distance={self.max_distance}"


class ALiBi(nn.Module):
    r"""Scores fall with distance, :math:`s_{ij} \mathrel{-}= m_h|i-j|`, with
    :math:`m_h = 2^{-8h/H}`; nothing is learned.

    Parameters
    ----------
    heads : H

    Examples
    --------
    >>> ALiBi(2)(2, 2)[0]
    tensor([[-0.0000, -0.0625],
            [-0.0625, -0.0000]])
    """

    def __init__(self, heads: int) -> None:
        super().__init__()
        self.heads = heads

    @property
    def slopes(self) -> Tensor:
        """m, ``(heads,)``: the powers of two where H is one, filled up between them where not."""
        near = 2 ** math.floor(math.log2(self.heads))
        own = [2.0 ** (-8 * h / near) for h in range(1, near + 1)]
        between = [2.0 ** (-4 * h / near) for h in range(1, 2 * near + 1, 2)]
        return torch.tensor((own + between)[: self.heads])

    def forward(self, queries: int, keys: int, device: torch.device | str = "cpu") -> Tensor:
        """Biases ``(heads, queries, keys)``; queries are the last positions of the keys."""
        distance = _distances(queries, keys, device).abs()
        return -self.slopes.to(device)[:, None, None] * distance

    def extra_repr(self) -> str:
        return f"{self.heads}"


def _distances(queries: int, keys: int, device: torch.device | str) -> Tensor:
    """Key position minus query position, ``(queries, keys)``."""
    at = torch.arange(keys - queries, keys, device=device)
    return torch.arange(keys, device=device) - at[:, None]


def _features(module: nn.Module, x: Tensor, dim: int) -> None:
    if x.shape[-1] != dim:
        raise ShapeError(
            f"{type(module).__name__} of {dim} features got an input of shape {tuple(x.shape)}"
        )
