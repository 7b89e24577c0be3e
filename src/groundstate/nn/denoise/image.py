r"""Denoisers of images: a U-Net and a vision transformer that know the noise level."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn

from groundstate.errors import ShapeError
from groundstate.nn.denoise.time import LevelEmbedding
from groundstate.nn.zoo.unet import UNet
from groundstate.nn.zoo.vit import ViT

ATTENTION = 16  # longest side of a map on which places look at each other


def image_shape(shape: Sequence[int]) -> tuple[int, int, int]:
    """Channels, height and width of images ``(H, W)`` or ``(C, H, W)``."""
    if len(shape) == 2:
        return 1, int(shape[0]), int(shape[1])
    if len(shape) != 3:
        raise ShapeError(
            f"images have shape (H, W) or (C, H, W), got {tuple(shape)}; use MLPDenoiser for rows of a table"
        )
    return int(shape[0]), int(shape[1]), int(shape[2])


class _ImageDenoiser(nn.Module):
    """Rows ``(B, D)`` or images ``(B, *shape)`` in, the same out."""

    shape: tuple[int, int, int]
    outputs: int
    embed: LevelEmbedding
    net: nn.Module

    def config(self) -> dict[str, Any]:
        return dict(self._settings)  # type: ignore[arg-type]

    def _run(self, image: Tensor, cond: Tensor, *tokens: Tensor | None) -> Tensor:
        out: Tensor = self.net(image, cond)
        return out

    def forward(
        self, x: Tensor, t: Tensor, y: Tensor | None = None, tokens: Tensor | None = None
    ) -> Tensor:
        if x[0].numel() != math.prod(self.shape):
            raise ShapeError(f"rows of shape {self.shape} are denoised, got {tuple(x.shape[1:])}")
        out = self._run(x.reshape(len(x), *self.shape), self.embed(t, y), tokens)
        if self.outputs == 1:
            return out.reshape(x.shape)
        if x.ndim == 2:
            return out.flatten(1)
        return out


class UNetDenoiser(_ImageDenoiser):
    r"""U-Net of residual blocks (group norm, SiLU) that the embedded noise level and label scale and shift
    (FiLM), up by nearest neighbours and convolution, attention on maps of at most 16 pixels; the head
    starts at 0.

    Parameters
    ----------
    shape : of an image, ``(H, W)`` or ``(C, H, W)``
    q : size of the context y, 0 without
    base : maps at full resolution, doubled at every halving
    depth : halvings
    outputs : per pixel: 1, or 2 where variances are learned
    skips : whether encoder maps are merged
    token_dim : size of tokens ``(B, L, token_dim)`` that attention also looks at
    n_steps : number T of levels

    Examples
    --------
    >>> import torch
    >>> net = UNetDenoiser((1, 8, 8), q=3, base=8, depth=2)
    >>> net(torch.ones(2, 64), torch.tensor([1, 9]), torch.zeros(2, 3)).shape
    torch.Size([2, 64])
    """

    def __init__(
        self,
        shape: Sequence[int],
        q: int = 0,
        base: int = 32,
        depth: int = 2,
        outputs: int = 1,
        skips: bool = True,
        token_dim: int | None = None,
        n_steps: int = 1000,
    ) -> None:
        super().__init__()
        self._settings = {"shape": list(shape), "q": q, "base": base, "depth": depth,
                          "outputs": outputs, "skips": skips, "token_dim": token_dim,
                          "n_steps": n_steps}  # fmt: skip
        self.shape, self.outputs = image_shape(shape), outputs
        side = max(self.shape[1:])
        small = [i for i in range(depth + 1) if -(-side // 2**i) <= ATTENTION]
        # a map of full resolution has the most places and the least to say about far ones
        levels = tuple(i for i in small if i) or (depth,)
        self.embed = LevelEmbedding(4 * base, q, n_steps)
        self.net = UNet(
            self.shape[0], outputs * self.shape[0], base, depth, "resize", skips=skips,
            cond_dim=4 * base, block="residual", attention=levels, token_dim=token_dim,
        )  # fmt: skip
        head: Any = self.net.head
        nn.init.zeros_(head.weight)
        nn.init.zeros_(head.bias)

    def _run(self, image: Tensor, cond: Tensor, *tokens: Tensor | None) -> Tensor:
        out: Tensor = self.net(image, cond, *tokens)
        return out


class DiTDenoiser(_ImageDenoiser):
    r"""Transformer on patches whose blocks the embedded noise level and label scale, shift and gate
    (adaLN-zero); the head starts at 0 (Peebles & Xie 2023).

    Parameters
    ----------
    shape, q, outputs, n_steps : see ``UNetDenoiser``
    patch : side of a patch
    dim, layers, heads : of the transformer

    Examples
    --------
    >>> import torch
    >>> DiTDenoiser((8, 8), patch=4, dim=16, layers=1, heads=2)(torch.ones(2, 8, 8), torch.ones(2)).shape
    torch.Size([2, 8, 8])
    """

    def __init__(
        self,
        shape: Sequence[int],
        q: int = 0,
        patch: int = 4,
        dim: int = 128,
        layers: int = 4,
        heads: int = 4,
        outputs: int = 1,
        n_steps: int = 1000,
    ) -> None:
        super().__init__()
        self._settings = {"shape": list(shape), "q": q, "patch": patch, "dim": dim, "layers": layers,
                          "heads": heads, "outputs": outputs, "n_steps": n_steps}  # fmt: skip
        self.shape, self.outputs = image_shape(shape), outputs
        channels, height, width = self.shape
        if height != width:
            raise ShapeError(f"DiTDenoiser takes square images, got {height} by {width}")
        self.embed = LevelEmbedding(dim, q, n_steps)
        self.net = ViT(
            height, patch, dim, layers, heads, None, dim, in_channels=channels,
            num_classes=outputs * channels,
        )  # fmt: skip
