r"""Fast R-CNN: proposals found on the picture, one pass of a backbone, pooled regions, a head."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

import numpy as np
import torch
from torch import Tensor, nn

from groundstate.compute.rows import Objects
from groundstate.nn.detection.backbone import Backbone, ConvBody
from groundstate.nn.detection.heads import BoxHead, BoxPredictor
from groundstate.nn.detection.parts import Detected, Padded, Parts
from groundstate.nn.detection.rcnn import Detector
from groundstate.nn.detection.regions import selective_search
from groundstate.nn.detection.roi import roi_pool
from groundstate.nn.detection.roi_heads import RoIHeads
from groundstate.nn.detection.sampling import uniforms

KNOWN = 10_000  # pictures whose proposals are kept


class PooledRegions(nn.Module):
    """RoI pooling of the last map: the largest value in each of size² cells of whole pixels."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size

    def forward(self, maps: Sequence[Tensor], regions: Tensor, image: tuple[int, int]) -> Tensor:
        """Features ``(R, C, size, size)`` of regions ``(R, 5)``: the picture's number, and corners."""
        found: Tensor = roi_pool(maps[-1], regions, self.size, maps[-1].shape[2] / image[0])
        return found


class Proposals(nn.Module):
    """Boxes of selective search in each picture, found once and remembered by its pixels.

    Values of a picture are spread over [0, 1] before, so that standardised pictures have the same
    regions. The search runs on the CPU wherever the picture is.

    Parameters
    ----------
    most : boxes of a picture; of more, the largest regions are taken
    scale, sigma, min_size : of ``selective_search``

    Examples
    --------
    >>> x = torch.zeros(1, 3, 20, 20); x[:, :, 5:12, 4:10] = 1
    >>> Proposals(most=3, sigma=0.0)(x).boxes.tolist()
    [[[4.0, 5.0, 10.0, 12.0], [0.0, 0.0, 20.0, 20.0], [0.0, 0.0, 0.0, 0.0]]]
    """

    def __init__(
        self, most: int = 2000, scale: float = 100.0, sigma: float = 0.8, min_size: int = 20
    ) -> None:
        super().__init__()
        self.most, self.scale, self.sigma, self.min_size = most, scale, sigma, min_size
        self._known: dict[bytes, Tensor] = {}

    def forward(self, x: Tensor) -> Padded:
        """Boxes ``(B, most, 4)`` of pictures ``(B, C, H, W)``."""
        boxes, real = (
            torch.zeros(len(x), self.most, 4),
            torch.zeros(len(x), self.most, dtype=torch.bool),
        )
        for i, picture in enumerate(x.detach().float().cpu().numpy()):
            found = self._of(picture)
            boxes[i, : len(found)], real[i, : len(found)] = found, True
        return Padded(boxes.to(x.device), real.to(x.device))

    def _of(self, picture: np.ndarray[tuple[int, ...], np.dtype[np.float32]]) -> Tensor:
        key = blake2b(picture.tobytes(), digest_size=16).digest()
        if key not in self._known:
            spread = np.ptp(picture)
            shown = (picture - picture.min()) / (spread if spread > 0 else 1.0)
            found = selective_search(shown, self.scale, self.sigma, self.min_size)
            while len(self._known) >= KNOWN:
                self._known.pop(next(iter(self._known)))
            self._known[key] = torch.from_numpy(found.boxes[-self.most :]).float()
        return self._known[key]


class FastRCNN(Detector):
    r"""Fast R-CNN: one pass of a backbone for all regions of a picture.

    Selective search proposes boxes on the picture; they are scaled to the last map of the backbone,
    RoI pooling gives each the same shape, dense layers its class and box:

    .. math:: e(x, y) = \sum_r -\log p(c_r) + \sum_{r: c_r > 0} \ell(t_{r,c_r} - t^*_r) ,

    c_r the class of the object that the region overlaps by at least half, 0 for background.

    Parameters
    ----------
    num_classes : with the background, which is class 0
    backbone : "small" (three stages, stride 8), the name of a residual network, or a module with ``stages``
    hidden : units of the dense layers of the head
    frozen : whether batch norms of the backbone keep their vectors
    proposals : boxes of a picture at most
    scale, sigma, min_size : of ``selective_search``
    regions_sampled : regions of a picture in a loss, a quarter of them objects
    lowest, most : score and number of reported objects
    in_channels : of the pictures

    Examples
    --------
    >>> net = FastRCNN(3, hidden=32).eval()
    >>> len(net(torch.zeros(2, 3, 48, 48)))
    2
    """

    def __init__(
        self,
        num_classes: int = 21,
        backbone: str | nn.Module = "small",
        *,
        hidden: int = 1024,
        frozen: bool = False,
        proposals: int = 2000,
        scale: float = 100.0,
        sigma: float = 0.8,
        min_size: int = 20,
        regions_sampled: int = 512,
        lowest: float = 0.05,
        most: int = 100,
        in_channels: int = 3,
    ) -> None:
        super().__init__()
        self._keep(locals())
        if num_classes < 2:
            raise ValueError(
                f"num_classes counts the background, so it is at least 2, got {num_classes}"
            )
        small = isinstance(backbone, str) and backbone == "small"
        body = ConvBody((16, 32, 64), in_channels) if small else backbone  # a stride of 8
        self.backbone = Backbone(body, None, 1, frozen=frozen, in_channels=in_channels)
        self.proposals = Proposals(proposals, scale, sigma, min_size)
        self.roi_heads = RoIHeads(
            PooledRegions(7),  # type: ignore[arg-type]
            BoxHead(self.backbone.out_channels * 49, hidden),
            BoxPredictor(hidden, num_classes),
            sample=regions_sampled, lowest=lowest, most=most,
        )  # fmt: skip

    def maps(self, x: Tensor) -> list[Tensor]:
        """The last feature map of pictures, in a list."""
        found: list[Tensor] = self.backbone(self.checked(x))
        return found

    def parts(self, x: Tensor, targets: Objects, words: Tensor | None = None) -> Parts:
        image = (int(x.shape[2]), int(x.shape[3]))
        # the truths are regions too, so that there is something to learn from the first step on
        regions = self.proposals(x).join(Padded.of(targets.boxes))
        u = None if words is None else uniforms(words, regions.boxes.shape[1])
        chosen = self.roi_heads.choose(regions, targets, u)
        return self.roi_heads.parts(self.maps(x), chosen, targets, image)

    @torch.no_grad()
    def detect(self, x: Tensor) -> list[Detected]:
        image = (int(x.shape[2]), int(x.shape[3]))
        return self.roi_heads.detect(self.maps(x), self.proposals(x), image)
