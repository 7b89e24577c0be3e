r"""Affine maps of pictures: every example by its own matrix, all of a batch in one sampling call.

In pixels from the middle of the picture a matrix says where the colour of an output place comes from,

.. math:: p_{in} = A\,p_{out} + t,

so boxes and points, which move forward, go by :math:`A^{-1}(p - t)`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

from groundstate.errors import ShapeError
from groundstate.nn.augment.base import Rng, Transform

FILLS = ("zeros", "border", "reflection", "mean")


class Affine(Transform):
    r"""Mirror, shift, crop, turn and scale images ``(B, C, H, W)`` in one ``grid_sample``.

    An example whose draws change nothing stays as it is, to the bit.

    Parameters
    ----------
    flip, flip_vertical : probabilities of mirroring left and right, and top and bottom
    shift : largest move, as a share of each side
    crop : (low, high), share of the area of a window at a random place that fills the picture
    rotate : largest turn in degrees, either way
    scale : (low, high) of the magnification about the middle
    mode : "bilinear" or "nearest"; masks are always moved by the nearest pixel
    fill : what comes in from outside: "zeros", "border", "reflection", or "mean", each picture's mean colour
    p : probability that an example is changed
    label_preserving : say False e.g. for mirrored letters

    Examples
    --------
    >>> x = torch.arange(16.0).view(1, 1, 4, 4)
    >>> torch.allclose(Affine(flip=1.0)(x), x.flip(-1), atol=1e-5)
    True
    >>> torch.equal(Affine()(x), x)
    True
    """

    moves = True

    def __init__(
        self,
        flip: float = 0.0,
        flip_vertical: float = 0.0,
        shift: float = 0.0,
        crop: Sequence[float] = (1.0, 1.0),
        rotate: float = 0.0,
        scale: Sequence[float] = (1.0, 1.0),
        mode: str = "bilinear",
        fill: str = "zeros",
        p: float = 1.0,
        label_preserving: bool = True,
    ) -> None:
        super().__init__(p, label_preserving)
        for name, chance in (("flip", flip), ("flip_vertical", flip_vertical)):
            if not 0 <= chance <= 1:
                raise ValueError(f"{name} is a probability in [0, 1], got {chance}")
        if shift < 0 or rotate < 0:
            raise ValueError(f"shift and rotate are at least 0, got {shift} and {rotate}")
        if not 0 < crop[0] <= crop[1] <= 1:
            raise ValueError(f"crop is a range of shares 0 < low <= high <= 1, got {tuple(crop)}")
        if not 0 < scale[0] <= scale[1]:
            raise ValueError(f"scale is a range of factors 0 < low <= high, got {tuple(scale)}")
        if fill not in FILLS:
            raise ValueError(f"fill is one of {', '.join(FILLS)}, got {fill!r}")
        self.flip, self.flip_vertical, self.shift, self.rotate = flip, flip_vertical, shift, rotate
        self.crop, self.scale = (crop[0], crop[1]), (scale[0], scale[1])
        self.mode, self.fill = mode, fill

    def draw(
        self, n: int, size: Sequence[int], generator: Rng = None,
        device: torch.device | None = None,
    ) -> Tensor:  # fmt: skip
        """Matrices :math:`(A, t)` in pixels from the middle, float32 ``(n, 2, 3)``."""
        u = torch.rand(9, n, generator=generator, device=device)  # one call, whatever is on
        side = u.new_tensor([size[1], size[0]])  # width, height
        angle = (2 * u[0] - 1) * math.radians(self.rotate)
        c, s = torch.cos(angle), torch.sin(angle)
        turn = torch.stack([torch.stack([c, -s], 1), torch.stack([s, c], 1)], 1)  # (n, 2, 2)
        low, high = self.scale
        zoom = low * (high / low) ** u[1]
        window = (self.crop[0] + (self.crop[1] - self.crop[0]) * u[2]).sqrt()
        mirror = 1 - 2 * torch.stack([u[3] < self.flip, u[4] < self.flip_vertical], 1).to(u.dtype)
        A = turn * (window / zoom)[:, None, None] * mirror[:, None, :]
        room = (1 - window)[:, None] / 2  # a window stays inside
        t = (2 * u[5:7].T - 1) * room * side + (2 * u[7:9].T - 1) * self.shift * side
        M = torch.cat([A, t[:, :, None]], 2)
        if self.p == 1:
            return M
        chosen = torch.rand(n, generator=generator, device=device) < self.p
        return torch.where(chosen[:, None, None], M, identity(n, device))

    def forward(self, x: Tensor, generator: Rng = None) -> Tensor:
        if not self.training or self.p == 0:
            return x
        if x.ndim != 4:
            raise ShapeError(f"Affine takes images (B, C, H, W), got {tuple(x.shape)}")
        M = self.draw(len(x), x.shape[2:], generator, x.device)
        return move_images(x, M, self.mode, self.fill)


def identity(n: int, device: torch.device | None = None) -> Tensor:
    """n matrices that move nothing, ``(n, 2, 3)``."""
    return torch.eye(2, 3, device=device).expand(n, 2, 3)


def move_images(x: Tensor, M: Tensor, mode: str = "bilinear", fill: str = "zeros") -> Tensor:
    """Images ``(B, C, H, W)`` moved by matrices ``(B, 2, 3)``; the identity changes no bit."""
    h, w = x.shape[2:]
    side = M.new_tensor([w, h])
    A = M[:, :, :2] * (side[None, :] / side[:, None])  # to the grid, which is square
    theta = torch.cat([A, (2 * M[:, :, 2] / side)[:, :, None]], 2).to(x.dtype)
    grid = functional.affine_grid(theta, list(x.shape), align_corners=False)
    if fill == "mean":
        colour = x.mean((2, 3), keepdim=True)
        moved = colour + functional.grid_sample(x - colour, grid, mode, align_corners=False)
    else:
        moved = functional.grid_sample(x, grid, mode, fill, align_corners=False)
    still = (identity(1, M.device) == M).flatten(1).all(1)
    return torch.where(still.view(-1, 1, 1, 1), x, moved)


def move_masks(masks: Tensor, M: Tensor, outside: int = 0) -> Tensor:
    """Masks ``(B, H, W)`` or ``(B, K, H, W)`` of bools or labels, moved by the nearest pixel.

    Parameters
    ----------
    outside : label of what comes in from outside, such as 255 where that is ignored
    """
    planes = masks if masks.ndim == 4 else masks[:, None]
    shifted = planes.to(torch.float32) - outside  # zeros come in
    moved = (move_images(shifted, M, "nearest") + outside).round().to(masks.dtype)
    return moved if masks.ndim == 4 else moved[:, 0]


def move_boxes(boxes: Tensor, M: Tensor, size: Sequence[int]) -> tuple[Tensor, Tensor]:
    """Boxes ``(B, K, 4)`` (or ``(B, 4)``), xyxy in pixels, moved by matrices ``(B, 2, 3)``.

    Returns
    -------
    boxes : of the same shape, the smallest around the moved corners, cut to the picture
    visible : ``(B, K)``, the share of the moved box inside of the picture
    """
    flat = boxes if boxes.ndim == 3 else boxes[:, None]
    side = boxes.new_tensor([size[1], size[0]])
    corners = flat[..., [0, 1, 2, 1, 2, 3, 0, 3]].unflatten(-1, (4, 2))  # (B, K, 4, 2)
    back = torch.linalg.inv(M[:, :, :2].to(boxes.dtype))
    centred = corners - side / 2 - M[:, None, None, :, 2].to(boxes.dtype)
    moved = torch.einsum("bij,bkcj->bkci", back, centred) + side / 2
    low, high = moved.amin(2), moved.amax(2)  # (B, K, 2)
    low_in, high_in = (torch.minimum(v.clamp_min(0), side) for v in (low, high))
    area = (high - low).prod(-1).clamp_min(torch.finfo(boxes.dtype).tiny)
    visible = (high_in - low_in).prod(-1) / area
    still = (identity(1, M.device) == M).flatten(1).all(1).view(-1, 1, 1)
    found = torch.where(still, flat, torch.cat([low_in, high_in], -1))
    return (found, visible) if boxes.ndim == 3 else (found[:, 0], visible[:, 0])
