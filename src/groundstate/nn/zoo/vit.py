r"""Vision transformers: an image as a sequence of patches."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import interpolate

from groundstate.errors import ShapeError
from groundstate.nn.architectures import architecture, rows
from groundstate.nn.zoo.base import ImageNetwork


def patchify(x: Tensor, patch: int) -> Tensor:
    r"""Images ``(N, C, H, W)`` as rows of patches ``(N, HW/p², C·p²)``, from top left to bottom right.

    >>> patchify(torch.arange(16.0).view(1, 1, 4, 4), 2)[0].tolist()[1]
    [2.0, 3.0, 6.0, 7.0]
    """
    n, c, h, w = x.shape
    if h % patch or w % patch:
        raise ShapeError(f"sides {h}×{w} are no multiples of the patch, {patch}; crop or pad them")
    cut = x.reshape(n, c, h // patch, patch, w // patch, patch)
    return cut.permute(0, 2, 4, 1, 3, 5).reshape(n, -1, c * patch * patch)


def unpatchify(rows: Tensor, patch: int, size: tuple[int, int]) -> Tensor:
    """The images ``(N, C, H, W)`` of rows of patches; the inverse of ``patchify``.

    >>> x = torch.arange(32.0).view(1, 2, 4, 4)
    >>> torch.equal(unpatchify(patchify(x, 2), 2, (4, 4)), x)
    True
    """
    n, length, wide = rows.shape
    h, w = size[0] // patch, size[1] // patch
    if length != h * w or wide % (patch * patch):
        raise ShapeError(
            f"{length} patches of {wide} numbers are no image of {size} in patches of {patch}²"
        )
    cut = rows.reshape(n, h, w, -1, patch, patch)
    return cut.permute(0, 3, 1, 4, 2, 5).reshape(n, -1, *size)


class Block(nn.Module):
    """Pre-norm: x + attention(LN x), x + MLP(LN x); a condition scales, shifts and gates (adaLN-zero)."""

    def __init__(
        self, dim: int, heads: int, mlp: int, dropout: float, cond_dim: int | None
    ) -> None:
        super().__init__()
        self.ln_1 = nn.LayerNorm(dim, eps=1e-6)
        self.self_attention = nn.MultiheadAttention(dim, heads, dropout=dropout, batch_first=True)
        self.dropout = nn.Dropout(dropout)
        self.ln_2 = nn.LayerNorm(dim, eps=1e-6)
        self.mlp = nn.Sequential(
            nn.Linear(dim, mlp), nn.GELU(), nn.Dropout(dropout), nn.Linear(mlp, dim),
            nn.Dropout(dropout),
        )  # fmt: skip
        for layer in (self.mlp[0], self.mlp[3]):
            nn.init.xavier_uniform_(layer.weight)  # type: ignore[arg-type]
            nn.init.normal_(layer.bias, std=1e-6)  # type: ignore[arg-type]
        self.modulation = None
        if cond_dim is not None:
            self.modulation = nn.Linear(cond_dim, 6 * dim)
            nn.init.zeros_(self.modulation.weight)
            nn.init.zeros_(self.modulation.bias)

    def forward(self, x: Tensor, cond: Tensor | None = None) -> Tensor:
        if self.modulation is None:
            return self._plain(x)
        assert cond is not None
        a, b, c, d, e, f = self.modulation(torch.nn.functional.silu(cond))[:, None].chunk(6, -1)
        h = self.ln_1(x) * (1 + a) + b
        x = x + c * self.self_attention(h, h, h, need_weights=False)[0]
        x = x + f * self.mlp(self.ln_2(x) * (1 + d) + e)
        return x

    def _plain(self, x: Tensor) -> Tensor:
        h = self.ln_1(x)
        x = x + self.dropout(self.self_attention(h, h, h, need_weights=False)[0])
        out: Tensor = x + self.mlp(self.ln_2(x))
        return out


class Encoder(nn.Module):
    """Positions, blocks, norm; names as torchvision's."""

    def __init__(self, length: int, blocks: list[Block], dim: int, dropout: float) -> None:
        super().__init__()
        self.pos_embedding = nn.Parameter(torch.empty(1, length, dim).normal_(std=0.02))
        self.dropout = nn.Dropout(dropout)
        self.layers = nn.ModuleDict(
            OrderedDict((f"encoder_layer_{i}", block) for i, block in enumerate(blocks))
        )
        self.ln = nn.LayerNorm(dim, eps=1e-6)

    def forward(self, x: Tensor, positions: Tensor, cond: Tensor | None) -> Tensor:
        h = self.dropout(x + positions)
        for block in self.layers.values():
            h = block(h, cond)
        out: Tensor = self.ln(h)
        return out


@architecture(
    "vit", kind="image", shape=(3, 224, 224), inputs=rows(1, 8, 8),
    small={"image_size": 8, "patch": 4, "dim": 8, "depth": 2, "heads": 2, "in_channels": 1,
           "num_classes": 2},
)  # fmt: skip
class ViT(ImageNetwork):
    r"""Patches as tokens: a convolution whose stride is its kernel, learned positions, transformer
    blocks with the norm first, GELU; the answer comes from a class token or the mean of all.

    Names and sizes are torchvision's. Images of another size resize the positions (bicubic). With
    ``cond_dim`` blocks are adaLN-zero: a condition gives scale, shift and gate of each half, all 0 at
    the start, so that a block begins as the identity. With ``pool=None`` every token answers for its
    patch and the output is an image ``(N, num_classes, H, W)``, as a denoiser needs.

    Parameters
    ----------
    image_size : side of the images it is made for
    patch : side of a patch
    dim, depth, heads : width, blocks and attention heads
    mlp_dim : width inside the blocks; by default 4·dim
    pool : "cls", "mean" or None
    cond_dim : size of the condition ``cond`` ``(N, cond_dim)``
    dropout : in embedding, attention and MLP
    in_channels, num_classes : of the images and the logits

    Examples
    --------
    >>> net = ViT(16, 4, 8, 2, 2, in_channels=1, num_classes=3)
    >>> net(torch.zeros(2, 1, 16, 16)).shape, net(torch.zeros(2, 1, 24, 8)).shape
    (torch.Size([2, 3]), torch.Size([2, 3]))
    """

    def __init__(
        self,
        image_size: int = 224,
        patch: int = 16,
        dim: int = 768,
        depth: int = 12,
        heads: int = 12,
        pool: str | None = "cls",
        cond_dim: int | None = None,
        *,
        mlp_dim: int | None = None,
        dropout: float = 0.0,
        in_channels: int = 3,
        num_classes: int = 1000,
    ) -> None:
        super().__init__()
        self._keep(locals())
        if pool not in ("cls", "mean", None):
            raise ValueError(f"pool is 'cls', 'mean' or None, got {pool!r}")
        if image_size % patch:
            raise ValueError(f"image_size={image_size} is no multiple of patch={patch}")
        if dim % heads:
            raise ValueError(f"dim={dim} does not part into heads={heads}")
        self.patch, self.pool, self.cond_dim = patch, pool, cond_dim
        self.grid = image_size // patch
        self.conv_proj = nn.Conv2d(in_channels, dim, patch, patch)
        fan = in_channels * patch * patch
        nn.init.trunc_normal_(self.conv_proj.weight, std=fan**-0.5)
        assert self.conv_proj.bias is not None
        nn.init.zeros_(self.conv_proj.bias)
        self.class_token = nn.Parameter(torch.zeros(1, 1, dim)) if pool == "cls" else None
        blocks = [Block(dim, heads, mlp_dim or 4 * dim, dropout, cond_dim) for _ in range(depth)]
        length = self.grid**2 + (pool == "cls")
        self.encoder = Encoder(length, blocks, dim, dropout)
        out = num_classes * patch**2 if pool is None else num_classes
        head = nn.Linear(dim, out)
        nn.init.zeros_(head.weight)
        nn.init.zeros_(head.bias)
        self.heads = nn.Sequential(OrderedDict(head=head))

    def positions(self, h: int, w: int) -> Tensor:
        """Positions of a grid of h × w patches, ``(1, tokens, dim)``, resized where it is another."""
        table = self.encoder.pos_embedding
        if (h, w) == (self.grid, self.grid):
            return table
        extra = 0 if self.class_token is None else 1
        first, grid = table[:, :extra], table[:, extra:]
        grid = grid.reshape(1, self.grid, self.grid, -1).permute(0, 3, 1, 2)
        grid = interpolate(grid, size=(h, w), mode="bicubic", align_corners=True)
        return torch.cat([first, grid.permute(0, 2, 3, 1).flatten(1, 2)], 1)

    def tokens(self, x: Tensor, cond: Tensor | None = None) -> Tensor:
        """What the encoder makes of every token, ``(N, tokens, dim)``."""
        size = self.checked(x).shape[2:]
        if any(s % self.patch for s in size):
            raise ShapeError(
                f"ViT cuts images into patches of {self.patch}², got {tuple(x.shape)}; resize or pad"
            )
        if (cond is None) != (self.cond_dim is None):
            raise ShapeError(
                f"this ViT has cond_dim={self.cond_dim} and got "
                f"{'no condition' if cond is None else f'a condition {tuple(cond.shape)}'}"
            )
        h: Tensor = self.conv_proj(x).flatten(2).transpose(1, 2)
        if self.class_token is not None:
            h = torch.cat([self.class_token.expand(len(h), -1, -1), h], 1)
        place = self.positions(size[0] // self.patch, size[1] // self.patch)
        out: Tensor = self.encoder(h, place, cond)
        return out

    def forward(self, x: Tensor, cond: Tensor | None = None) -> Tensor:
        h = self.tokens(x, cond)
        if self.pool is None:
            return unpatchify(self.heads(h), self.patch, (x.shape[2], x.shape[3]))
        logits: Tensor = self.heads(h[:, 0] if self.pool == "cls" else h.mean(1))
        return logits


@architecture(
    "vit_b_16", kind="image", shape=(3, 224, 224), inputs=rows(1, 32, 32),
    small={"image_size": 32, "dim": 8, "depth": 1, "heads": 2, "in_channels": 1, "num_classes": 2},
)  # fmt: skip
def vit_b_16(**settings: Any) -> ViT:
    """Vision transformer, base size, patches of 16²; 86,567,656 parameters."""
    return ViT(**settings)
