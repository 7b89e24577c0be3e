r"""Changes of colour and hidden patches, for pictures with values in [0, 1]."""

from __future__ import annotations

import torch
from torch import Tensor

from groundstate.errors import ShapeError
from groundstate.nn.augment.base import Rng, Transform

_LUMA = (0.2989, 0.587, 0.114)


class ColourJitter(Transform):
    r"""Brightness, contrast, saturation and hue by random factors, as torchvision's jitter, in this
    order.

    With factors :math:`f \sim U(1-a, 1+a)`: brightness is :math:`fx`, contrast
    :math:`fx + (1-f)\bar g` with the mean grey :math:`\bar g`, saturation :math:`fx + (1-f)g`;
    hue turns by a share of the circle in :math:`\pm a`. Grey pictures have no saturation and no hue.

    Parameters
    ----------
    brightness, contrast, saturation : a, at least 0
    hue : a, at most 0.5
    p, label_preserving : of ``Transform``

    Examples
    --------
    >>> x = torch.rand(2, 3, 4, 4, generator=torch.Generator().manual_seed(0))
    >>> torch.equal(ColourJitter(0, 0, 0, 0)(x), x)
    True
    """

    def __init__(
        self, brightness: float = 0.2, contrast: float = 0.2, saturation: float = 0.2,
        hue: float = 0.0, p: float = 1.0, label_preserving: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(p, label_preserving)
        if min(brightness, contrast, saturation, hue) < 0 or hue > 0.5:
            raise ValueError(
                "brightness, contrast and saturation are at least 0, hue is in [0, 0.5]; got "
                f"{(brightness, contrast, saturation, hue)}"
            )
        self.brightness, self.contrast, self.saturation = brightness, contrast, saturation
        self.hue = hue

    def change(self, x: Tensor, generator: Rng) -> Tensor:
        if x.ndim != 4:
            raise ShapeError(f"ColourJitter takes images (B, C, H, W), got {tuple(x.shape)}")
        u = torch.rand(4, len(x), 1, 1, 1, generator=generator, device=x.device).to(x.dtype)
        spread = x.new_tensor([self.brightness, self.contrast, self.saturation]).view(3, 1, 1, 1, 1)
        bright, contrast, colour = (1 + spread * (2 * u[:3] - 1)).clamp_min(0)
        if self.brightness:
            x = (bright * x).clamp(0, 1)
        if self.contrast:
            x = _blend(x, grey(x).mean((2, 3), keepdim=True), contrast)
        if x.shape[1] != 3:
            return x
        if self.saturation:
            x = _blend(x, grey(x), colour)
        return turned(x, self.hue * (2 * u[3] - 1)) if self.hue else x


class Cutout(Transform):
    """Hide a square at a random place behind the mean colour of the picture.

    Parameters
    ----------
    size : side as a share of the shorter side of the picture
    p, label_preserving : of ``Transform``
    """

    def __init__(self, size: float = 0.25, p: float = 0.5, label_preserving: bool = True) -> None:
        super().__init__(p, label_preserving)
        if not 0 <= size <= 1:
            raise ValueError(f"size is a share of the side in [0, 1], got {size}")
        self.size = size

    def change(self, x: Tensor, generator: Rng) -> Tensor:
        inside = window(x, torch.full((len(x),), self.size, device=x.device), generator)
        return torch.where(inside[:, None], x.mean((2, 3), keepdim=True), x)


def window(x: Tensor, share: Tensor, generator: Rng) -> Tensor:
    """Squares with this share of the shorter side around random pixels, bool ``(B, H, W)``."""
    if x.ndim != 4:
        raise ShapeError(f"a window is cut from images (B, C, H, W), got {tuple(x.shape)}")
    h, w = x.shape[2:]
    u = torch.rand(2, len(x), generator=generator, device=x.device)
    half = share * min(h, w) / 2
    rows = (torch.arange(h, device=x.device) + 0.5 - (u[0] * h)[:, None]).abs() <= half[:, None]
    columns = (torch.arange(w, device=x.device) + 0.5 - (u[1] * w)[:, None]).abs() <= half[:, None]
    return rows[:, :, None] & columns[:, None, :]


def grey(x: Tensor) -> Tensor:
    """The luminance ``(B, 1, H, W)``; pictures without three channels give their mean."""
    if x.shape[1] != 3:
        return x.mean(1, keepdim=True)
    return torch.einsum("bchw,c->bhw", x, x.new_tensor(_LUMA))[:, None]


def turned(x: Tensor, by: Tensor) -> Tensor:
    """Hues of pictures ``(B, 3, H, W)`` turned by a share of the circle ``(B, 1, 1, 1)``."""
    high, low = x.amax(1), x.amin(1)
    span = high - low
    safe = torch.where(span > 0, span, 1.0)
    r, g, b = x.unbind(1)
    sector = torch.where(
        high == r,
        ((g - b) / safe) % 6,
        torch.where(high == g, (b - r) / safe + 2, (r - g) / safe + 4),
    )  # in sixths of the circle
    sector = (sector + 6 * by[:, 0]) % 6
    offset = x.new_tensor([5.0, 3.0, 1.0]).view(1, 3, 1, 1)
    k = (offset + sector[:, None]) % 6
    wave = torch.minimum(k, 4 - k).clamp(0, 1)
    moved = high[:, None] - span[:, None] * wave
    return torch.where(by == 0, x, moved)


def _blend(x: Tensor, other: Tensor, factor: Tensor) -> Tensor:
    return torch.where(factor == 1, x, (factor * x + (1 - factor) * other).clamp(0, 1))
