r"""Anchors: boxes of fixed sizes and shapes at every cell of a feature map, and which truth each takes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import Any

import torch
from torch import Tensor, nn

IGNORED, NEGATIVE = -2, -1  # what a matcher says of boxes that take no truth


class AnchorGenerator(nn.Module):
    r"""Boxes of k sizes and shapes around every cell of a feature map.

    With size s and ratio r = h/w an anchor has :math:`h = s\sqrt r,\; w = s/\sqrt r`, so that all
    ratios of a size have one area. Cell (i, j) of a map with stride S has its anchors around
    :math:`(jS, iS)`.

    Parameters
    ----------
    sizes : numbers (of one map), or one tuple of them for each map
    ratios : numbers h/w
    rounded : whether half sides are rounded to whole pixels, as torchvision does

    Attributes
    ----------
    k : anchors of a cell, of each map

    Examples
    --------
    >>> anchors = AnchorGenerator()
    >>> anchors.k, sum(len(a) for a in anchors([(40, 60)], (640, 960)))
    ([9], 21600)
    >>> AnchorGenerator((16,), (1.0,))([(1, 2)], (32, 64))[0].tolist()
    [[-8.0, -8.0, 8.0, 8.0], [24.0, -8.0, 40.0, 8.0]]
    """

    def __init__(
        self,
        sizes: Sequence[float] | Sequence[Sequence[float]] = (128, 256, 512),
        ratios: Sequence[float] = (0.5, 1.0, 2.0),
        rounded: bool = True,
    ) -> None:
        super().__init__()
        nested = [isinstance(s, Sequence) for s in sizes]
        if any(nested) and not all(nested):
            raise ValueError(f"sizes are numbers, or a tuple for each map; got {sizes!r}")
        levels: Any = sizes if any(nested) else [sizes]
        self.sizes = [[float(s) for s in level] for level in levels]
        self.ratios = [float(r) for r in ratios]
        if any(v <= 0 for level in [*self.sizes, self.ratios] for v in level):
            raise ValueError(f"sizes and ratios are positive, got {sizes!r} and {ratios!r}")
        self.rounded = rounded

    @property
    def k(self) -> list[int]:
        return [len(sizes) * len(self.ratios) for sizes in self.sizes]

    def cell(self, level: int, device: torch.device | None = None) -> Tensor:
        """The anchors of a cell at the origin, ratio by ratio, ``(k, 4)``."""
        pairs = [
            (s / math.sqrt(r), s * math.sqrt(r)) for r, s in product(self.ratios, self.sizes[level])
        ]
        half = torch.tensor(pairs, device=device) / 2
        half = half.round() if self.rounded else half
        return torch.cat([-half, half], 1)

    def forward(
        self,
        maps: Sequence[tuple[int, int]],
        image: tuple[int, int],
        device: torch.device | None = None,
    ) -> list[Tensor]:
        """Anchors of each map, row by row, cell by cell, ``(H·W·k, 4)``.

        Parameters
        ----------
        maps : heights and widths of the feature maps
        image : height and width of the picture; strides are whole numbers of its pixels
        """
        if len(maps) != len(self.sizes):
            raise ValueError(
                f"there are {len(maps)} feature maps and sizes of {len(self.sizes)}; give sizes as "
                "one tuple for each map"
            )
        found = []
        for level, (h, w) in enumerate(maps):
            y = torch.arange(h, device=device) * float(image[0] // h)
            x = torch.arange(w, device=device) * float(image[1] // w)
            at = torch.stack(torch.meshgrid(y, x, indexing="ij"), -1).flip(-1).reshape(-1, 1, 2)
            cell = self.cell(level, device)
            found.append((at.repeat(1, 1, 2) + cell).reshape(-1, 4))
        return found

    def extra_repr(self) -> str:
        return f"sizes={self.sizes}, ratios={self.ratios}"


class AnchorMatcher:
    r"""Which truth each box takes: the one it overlaps most, if the overlap is large enough.

    With :math:`m_a = \max_g \mathrm{IoU}(a, g)` a box is positive where :math:`m_a \ge` ``high``,
    negative where :math:`m_a <` ``low``, and ignored between. With ``best=True`` the boxes that
    overlap a truth most (of all boxes) are positive too, so that every truth that is touched at all
    is taken by some box. Such a box takes the truth that it overlaps most itself, as in torchvision.

    Parameters
    ----------
    high, low : overlaps
    best : whether every truth keeps its best boxes

    Examples
    --------
    >>> iou = torch.tensor([[0.8, 0.5, 0.2, 0.1]])
    >>> AnchorMatcher()(iou).tolist()
    [0, -2, -1, -1]
    """

    def __init__(self, high: float = 0.7, low: float = 0.3, best: bool = True) -> None:
        if not 0 <= low <= high <= 1:
            raise ValueError(f"overlaps need 0 <= low <= high <= 1, got low={low}, high={high}")
        self.high, self.low, self.best = high, low, best

    def __call__(self, iou: Tensor) -> Tensor:
        """The truth of each box, −1 for none and −2 to leave it out, int64 ``(..., A)``.

        Parameters
        ----------
        iou : Tensor, ``(..., G, A)``
            Overlaps of the truths with the boxes. G may be 0, and all boxes are negative then;
            a truth that only fills up a batch has the overlap −1 with all boxes.
        """
        *batch, truths, boxes = iou.shape
        if not truths or not boxes:
            return torch.full((*batch, boxes), NEGATIVE, dtype=torch.int64, device=iou.device)
        value, own = iou.max(-2)
        found = torch.where(value < self.high, IGNORED, own)
        found = torch.where(value < self.low, NEGATIVE, found)
        if self.best:
            top = iou.max(-1, keepdim=True).values
            found = torch.where(((iou == top) & (top > 0)).any(-2), own, found)
        return found

    def __repr__(self) -> str:
        return f"AnchorMatcher(high={self.high}, low={self.low}, best={self.best})"
