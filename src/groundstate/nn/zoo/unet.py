r"""U-Net: down, up, and skips between maps of the same resolution."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from groundstate.errors import ShapeError
from groundstate.nn.architectures import architecture, rows
from groundstate.nn.blocks.norms import norm as make_norm
from groundstate.nn.conv.film import FilmBlock, PlaceAttention
from groundstate.nn.conv.upsample import resize_conv
from groundstate.nn.zoo.base import ImageNetwork


class DoubleConv(nn.Module):
    """2 × [conv 3×3, padding 1 → (norm) → ReLU], with a bias per map from a condition."""

    def __init__(
        self, before: int, after: int, n_dim: int, norm: str | None, cond_dim: int | None
    ) -> None:
        super().__init__()
        conv = getattr(nn, f"Conv{n_dim}d")
        self.conv1, self.conv2 = conv(before, after, 3, padding=1), conv(after, after, 3, padding=1)
        self.norm1 = nn.Identity() if norm is None else make_norm(norm, after, n_dim)
        self.norm2 = nn.Identity() if norm is None else make_norm(norm, after, n_dim)
        self.cond = None if cond_dim is None else nn.Linear(cond_dim, after)

    def forward(self, x: Tensor, cond: Tensor | None) -> Tensor:
        h = self.norm1(self.conv1(x))
        if self.cond is not None and cond is not None:
            h = h + self.cond(cond).reshape(*h.shape[:2], *(1,) * (h.ndim - 2))
        return torch.relu(self.norm2(self.conv2(torch.relu(h))))


@architecture(
    "unet", kind="image", shape=(1, 256, 256), inputs=rows(1, 5, 7),
    small={"base": 2, "depth": 2},
)  # fmt: skip
class UNet(ImageNetwork):
    r"""Down ``depth`` times (two convolutions 3×3 + ReLU, max pooling 2), up again, each time merging
    the encoder's map of the same resolution; a 1×1 convolution at the end. Output size = input size.

    Sides that :math:`2^{\text{depth}}` does not divide are padded and the output is cropped.

    Parameters
    ----------
    in_channels, out_channels : of the image and of the output
    base : maps at full resolution, doubled at every halving
    depth : halvings
    up : "transpose" (transposed convolution 2×2, stride 2) or "resize" (nearest, then convolution)
    merge : "concat", or "add" (an hourglass)
    norm : None, "batch", "layer", "instance" or "group" after every convolution
    skips : whether encoder maps are merged at all
    cond_dim : size of a condition ``cond`` ``(N, cond_dim)``, such as an embedded diffusion time, which
        adds a bias to every map of every block
    block : "plain" (two convolutions, ReLU) or "residual" (``FilmBlock``: group norms, SiLU, a condition
        that scales and shifts)
    attention : numbers of halvings after which places also look at each other (``PlaceAttention``)
    token_dim : size of tokens ``(N, L, token_dim)`` that attention also looks at
    n_dim : 1, 2 or 3 spatial axes

    Examples
    --------
    >>> net = UNet(1, 2, base=4, depth=2)
    >>> net(torch.zeros(2, 1, 13, 30)).shape
    torch.Size([2, 2, 13, 30])
    """

    def __init__(
        self,
        in_channels: int = 1,
        out_channels: int = 2,
        base: int = 64,
        depth: int = 4,
        up: str = "transpose",
        merge: str = "concat",
        norm: str | None = None,
        skips: bool = True,
        cond_dim: int | None = None,
        *,
        block: str = "plain",
        attention: tuple[int, ...] = (),
        token_dim: int | None = None,
        n_dim: int = 2,
    ) -> None:
        super().__init__()
        self._keep(locals())
        if block not in ("plain", "residual"):
            raise ValueError(f"block is 'plain' or 'residual', got {block!r}")
        if up not in ("transpose", "resize"):
            raise ValueError(f"up is 'transpose' or 'resize', got {up!r}")
        if merge not in ("concat", "add"):
            raise ValueError(f"merge is 'concat' or 'add', got {merge!r}")
        if n_dim not in (1, 2, 3) or depth < 1 or base < 1:
            raise ValueError(
                f"UNet needs n_dim of 1, 2 or 3, depth and base of at least 1, got n_dim={n_dim}, "
                f"depth={depth}, base={base}"
            )
        self.depth, self.skips, self.n_dim, self.cond_dim = depth, skips, n_dim, cond_dim
        self.concat, self.align = merge == "concat", 2**depth
        widths = [base * 2**i for i in range(depth + 1)]

        def made(before: int, after: int) -> DoubleConv | FilmBlock:
            if block == "residual":
                return FilmBlock(before, after, n_dim, cond_dim)
            return DoubleConv(before, after, n_dim, norm, cond_dim)

        def looks(level: int) -> PlaceAttention | None:
            return (
                PlaceAttention(widths[level], token_dim=token_dim) if level in attention else None
            )

        self.stem = None
        first = in_channels
        if block == "residual":  # its first norm needs more than the channels of an image
            self.stem = getattr(nn, f"Conv{n_dim}d")(in_channels, base, 3, padding=1)
            first = base
        self.down = nn.ModuleList(
            made(a, b) for a, b in zip([first, *widths], widths, strict=False)
        )
        levels = range(depth + 1)
        self.down_looks = nn.ModuleDict({str(i): m for i in levels if (m := looks(i)) is not None})
        self.up_looks = nn.ModuleDict(
            {str(i): m for i in levels[:-1] if (m := looks(i)) is not None}
        )
        self.pool = getattr(nn, f"MaxPool{n_dim}d")(2)
        self.up = nn.ModuleList()
        self.merge = nn.ModuleList()
        for low, high in zip(reversed(widths[:-1]), reversed(widths[1:]), strict=True):
            if up == "transpose":
                self.up.append(getattr(nn, f"ConvTranspose{n_dim}d")(high, low, 2, 2))
            else:
                self.up.append(resize_conv(high, low, n_dim=n_dim))
            joined = 2 * low if skips and self.concat else low
            self.merge.append(made(joined, low))
        self.head = getattr(nn, f"Conv{n_dim}d")(base, out_channels, 1)
        self._start()

    def _start(self) -> None:
        """Signals keep their size: variance 2/fan_in before rectifiers, 1/fan_in on the way up."""
        for block in (*self.down, *self.merge):
            if isinstance(block, FilmBlock):
                continue
            for layer in (block.conv1, block.conv2):
                nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
                nn.init.zeros_(layer.bias)
        for up in self.up:
            conv: Any = up if hasattr(up, "weight") else up.conv
            fan_in = len(conv.weight) if conv.transposed else conv.weight[0].numel()
            nn.init.normal_(conv.weight, std=fan_in**-0.5)
            nn.init.zeros_(conv.bias)

    def forward(
        self, x: Tensor, cond: Tensor | None = None, tokens: Tensor | None = None
    ) -> Tensor:
        x = self.checked(x)
        self._check_condition(cond)
        size, step = x.shape[2:], 2**self.depth
        short = [-s % step for s in size]
        if any(short):
            x = nn.functional.pad(x, [v for s in reversed(short) for v in (s // 2, s - s // 2)])
        if self.stem is not None:
            x = self.stem(x)
        maps = []
        for i, block in enumerate(self.down):
            x = block(self.pool(x) if i else x, cond)
            if str(i) in self.down_looks:
                x = self.down_looks[str(i)](x, tokens)
            maps.append(x)
        maps.pop()
        for i, (up, merge) in enumerate(zip(self.up, self.merge)):
            x, skip = up(x), maps.pop()
            if self.skips:
                x = torch.cat([skip, x], 1) if self.concat else skip + x
            x = merge(x, cond)
            level = str(self.depth - 1 - i)
            if level in self.up_looks:
                x = self.up_looks[level](x, tokens)
        out: Tensor = self.head(x)
        for axis, (s, n) in enumerate(zip(short, size), start=2):
            out = out.narrow(axis, s // 2, n)
        return out

    def _check_condition(self, cond: Tensor | None) -> None:
        if (cond is None) != (self.cond_dim is None):
            raise ShapeError(
                f"this UNet has cond_dim={self.cond_dim} and got "
                f"{'no condition' if cond is None else f'a condition {tuple(cond.shape)}'}"
            )
        if cond is not None and cond.shape[1:] != (self.cond_dim,):
            raise ShapeError(
                f"the condition must have shape (N, {self.cond_dim}), got {tuple(cond.shape)}"
            )


@architecture(
    "hourglass", kind="image", shape=(3, 256, 256), inputs=rows(1, 8, 8),
    small={"n": 2, "in_channels": 1, "out_channels": 2, "base": 2, "depth": 2},
)  # fmt: skip
class HourglassStack(ImageNetwork):
    r"""n U-Nets with added skips one after the other, :math:`h \leftarrow h + U_i(h)`, between a 3×3
    stem and a 1×1 head.

    Parameters
    ----------
    n : hourglasses
    in_channels, out_channels : of the image and of the output
    base, depth : maps at full resolution and halvings of each
    settings : further ones of ``UNet``

    Examples
    --------
    >>> HourglassStack(2, 3, 5, base=4, depth=2)(torch.zeros(1, 3, 16, 16)).shape
    torch.Size([1, 5, 16, 16])
    """

    def __init__(
        self,
        n: int = 2,
        in_channels: int = 3,
        out_channels: int = 16,
        base: int = 64,
        depth: int = 4,
        **settings: Any,
    ) -> None:
        super().__init__()
        self._keep({"n": n, "in_channels": in_channels, "out_channels": out_channels,
                    "base": base, "depth": depth, **settings})  # fmt: skip
        self.align = 2**depth
        self.stem = nn.Conv2d(in_channels, base, 3, padding=1)
        self.stack = nn.ModuleList(
            UNet(base, base, base, depth, merge="add", **settings) for _ in range(n)
        )
        self.head = nn.Conv2d(base, out_channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        h = torch.relu(self.stem(self.checked(x)))
        for part in self.stack:
            h = h + part(h)
        out: Tensor = self.head(h)
        return out
