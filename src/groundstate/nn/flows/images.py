r"""Glow for images: squeeze, channels mixed by 1×1 convolutions, affine couplings of convolutions,
half of the channels set aside after each level.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from groundstate.errors import ShapeError
from groundstate.nn.blocks.initialise import blank, init_
from groundstate.nn.flows.transform import ActNorm, Compose, Transform
from groundstate.nn.flows.univariate import AffineMap


class LinearLU(Transform):
    r"""An invertible matrix of channels, :math:`W = L(U + \mathrm{diag}(e^{s}))`, whose log-determinant is
    :math:`\sum s` times the pixels of a channel: Glow's 1×1 convolution.

    Parameters
    ----------
    features : channels × ``repeat``
    repeat : pixels of a channel, which stand next to each other in a row; 1 for tables

    Examples
    --------
    >>> z, ladj = LinearLU(4, repeat=2)(torch.arange(4.0)[None])
    >>> z.tolist(), ladj.tolist()
    ([[0.0, 1.0, 2.0, 3.0]], [0.0])
    """

    def __init__(self, features: int, repeat: int = 1) -> None:
        super().__init__()
        if features % repeat:
            raise ShapeError(f"{features} features are no multiple of repeat={repeat}")
        self.features, self.repeat = features, repeat
        self.channels = features // repeat
        self.lower = nn.Parameter(torch.zeros(self.channels, self.channels))
        self.upper = nn.Parameter(torch.zeros(self.channels, self.channels))
        self.log_scale = nn.Parameter(torch.zeros(self.channels))

    def config(self) -> dict[str, Any]:
        return {"features": self.features, "repeat": self.repeat}

    def _factors(self) -> tuple[Tensor, Tensor]:
        one = torch.eye(self.channels, dtype=self.lower.dtype, device=self.lower.device)
        return self.lower.tril(-1) + one, self.upper.triu(1) + self.log_scale.exp().diag()

    def _mixed(self, W: Tensor, x: Tensor) -> Tensor:
        if self.repeat == 1:
            return functional.linear(x, W)
        return (W @ x.unflatten(-1, (self.channels, self.repeat))).flatten(-2)

    def forward(self, x: Tensor, context: Tensor | None = None) -> tuple[Tensor, Tensor]:
        L, U = self._factors()
        return self._mixed(L @ U, x), (self.repeat * self.log_scale.sum()).expand(x.shape[:-1])

    def inverse(self, z: Tensor, context: Tensor | None = None) -> tuple[Tensor, Tensor]:
        L, U = self._factors()
        one = torch.eye(self.channels, dtype=z.dtype, device=z.device)
        half = torch.linalg.solve_triangular(L, one, upper=False, unitriangular=True)
        W = torch.linalg.solve_triangular(U, half, upper=True)
        return self._mixed(W, z), (-self.repeat * self.log_scale.sum()).expand(z.shape[:-1])


class ImageCoupling(Transform):
    r"""An affine coupling of the channels of an image: one half decides by a small convolutional network
    how the other is scaled and shifted.

    Parameters
    ----------
    shape : (C, H, W) with C ≥ 2
    hidden : channels of the network, convolutions 3×3, 1×1, 3×3
    context : numbers that the network sees at every pixel
    swap : whether the second half stays and the first moves
    generator : source of the initial weights

    Examples
    --------
    >>> x = torch.ones(1, 8)
    >>> torch.equal(ImageCoupling((2, 2, 2), 4)(x)[0], x)
    True
    """

    def __init__(
        self,
        shape: Sequence[int],
        hidden: int = 64,
        context: int = 0,
        swap: bool = False,
        *,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.shape, self.hidden, self.context = tuple(shape), hidden, context
        self.swap = swap
        C = self.shape[0]
        if C < 2:
            raise ShapeError(f"a coupling needs at least 2 channels, got an image {self.shape}")
        self.features = math.prod(self.shape)
        kept, moved = (C - C // 2, C // 2) if swap else (C // 2, C - C // 2)
        self.cut = C // 2
        generator = generator or torch.Generator().manual_seed(0)
        self.net = nn.Sequential(
            blank(nn.Conv2d, kept + context, hidden, 3, padding=1), nn.ReLU(),
            blank(nn.Conv2d, hidden, hidden, 1), nn.ReLU(),
            blank(nn.Conv2d, hidden, 2 * moved, 3, padding=1),
        )  # fmt: skip
        init_(self.net, "he", generator)
        nn.init.zeros_(self.net[-1].weight)  # type: ignore[arg-type]

    def config(self) -> dict[str, Any]:
        return {"shape": list(self.shape), "hidden": self.hidden, "context": self.context,
                "swap": self.swap}  # fmt: skip

    def _apply_map(self, v: Tensor, context: Tensor | None, back: bool) -> tuple[Tensor, Tensor]:
        image = v.unflatten(-1, self.shape)
        first, second = image[:, : self.cut], image[:, self.cut :]
        kept, moved = (second, first) if self.swap else (first, second)
        seen = kept
        if context is not None:
            spread = context[:, :, None, None].expand(-1, -1, *self.shape[1:])
            seen = torch.cat((kept, spread), 1)
        phi = self.net(seen).unflatten(1, (2, -1)).movedim(1, -1)  # (B, C', H, W, 2)
        moved, log_slope = (AffineMap().inverse if back else AffineMap().forward)(moved, phi)
        assert log_slope is not None
        parts = (moved, kept) if self.swap else (kept, moved)
        return torch.cat(parts, 1).flatten(1), log_slope.flatten(1).sum(1)

    def forward(self, x: Tensor, context: Tensor | None = None) -> tuple[Tensor, Tensor]:
        return self._apply_map(x, context, False)

    def inverse(self, z: Tensor, context: Tensor | None = None) -> tuple[Tensor, Tensor]:
        return self._apply_map(z, context, True)


class Multiscale(Transform):
    r"""Levels of squeeze (2×2 pixels become 4 channels) and steps of ActNorm, 1×1 convolution and
    coupling; after each level but the last half of the channels is finished and the rest goes on.

    Parameters
    ----------
    shape : (C, H, W)
    levels : squeezes at most; fewer where a side is odd
    steps : of each level
    hidden : channels of the networks
    context : numbers that the networks see
    generator : source of the initial weights

    Examples
    --------
    >>> f = Multiscale((1, 4, 4), steps=1, hidden=4)
    >>> z, ladj = f(torch.arange(16.0)[None])
    >>> f.levels, torch.allclose(f.inverse(z)[0], torch.arange(16.0)[None])
    (2, True)
    """

    def __init__(
        self,
        shape: Sequence[int],
        levels: int = 2,
        steps: int = 4,
        hidden: int = 64,
        context: int = 0,
        *,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.shape = tuple(int(s) for s in shape)
        if len(self.shape) != 3:
            raise ShapeError(f"shape is that of an image, (C, H, W), got {self.shape}")
        self.steps, self.hidden, self.context = steps, hidden, context
        self.features = math.prod(self.shape)
        generator = generator or torch.Generator().manual_seed(0)
        C, H, W = self.shape
        blocks: list[Compose] = []
        self.sizes: list[tuple[int, int, int]] = []
        while len(blocks) < levels and H % 2 == 0 and W % 2 == 0:
            C, H, W = 4 * C, H // 2, W // 2
            self.sizes.append((C, H, W))
            inner: list[Transform] = []
            for k in range(steps):
                inner += [
                    ActNorm(C * H * W, H * W),
                    LinearLU(C * H * W, H * W),
                    ImageCoupling((C, H, W), hidden, context, k % 2 == 1, generator=generator),
                ]
            blocks.append(Compose(inner))
            C //= 2
        if not blocks:
            raise ShapeError(
                f"Glow squeezes 2×2 pixels into channels and needs even sides, got {self.shape}; pad the "
                "images or use another flow"
            )
        self.blocks = nn.ModuleList(blocks)

    @property
    def levels(self) -> int:
        """Squeezes."""
        return len(self.blocks)

    def config(self) -> dict[str, Any]:
        return {"shape": list(self.shape), "levels": self.levels, "steps": self.steps,
                "hidden": self.hidden, "context": self.context}  # fmt: skip

    def forward(self, x: Tensor, context: Tensor | None = None) -> tuple[Tensor, Tensor]:
        return self._down(x, context, first=False)

    def _down(self, x: Tensor, context: Tensor | None, first: bool) -> tuple[Tensor, Tensor]:
        h, total = x.unflatten(-1, self.shape), x.new_zeros(len(x))
        done = []
        for i, block in enumerate(self.blocks):
            flat = functional.pixel_unshuffle(h, 2).flatten(1)
            if first:
                block.initialise(flat, context)  # type: ignore[operator]
            flat, ladj = block(flat, context)
            total = total + ladj
            if i + 1 < len(self.blocks):
                C, *side = self.sizes[i]
                done.append(flat[:, : len(flat[0]) // 2])
                h = flat[:, len(flat[0]) // 2 :].unflatten(1, (C // 2, *side))
            else:
                done.append(flat)
        return torch.cat(done, 1), total

    def inverse(self, z: Tensor, context: Tensor | None = None) -> tuple[Tensor, Tensor]:
        total, end = z.new_zeros(len(z)), self.features
        h: Tensor | None = None
        for i in reversed(range(len(self.blocks))):
            size = math.prod(self.sizes[i])
            own = size if h is None else size // 2
            flat = z[:, end - own : end]
            end -= own
            if h is not None:
                flat = torch.cat((flat, h.flatten(1)), 1)
            flat, ladj = self.blocks[i].inverse(flat, context)  # type: ignore[operator]
            total = total + ladj
            h = functional.pixel_shuffle(flat.unflatten(1, self.sizes[i]), 2)
        assert h is not None
        return h.flatten(1), total

    @torch.no_grad()
    def initialise(self, x: Tensor, context: Tensor | None = None) -> None:
        self._down(x, context, first=True)
