r"""The energy of a set of objects in a picture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from groundstate.compute.rows import Objects
from groundstate.energy.base import Energy
from groundstate.energy.spaces import ObjectSpace, Real
from groundstate.nn.detection.parts import Detected, Parts
from groundstate.nn.detection.rcnn import Detector


class DetectionEnergy(Energy):
    r"""A network says at many boxes what is there, and a set of objects y is assigned to them:

    .. math:: e(x, y) = \sum_b -\log p(c_b\mid x) + \sum_{b: c_b > 0}\ell(t_b(x) - t^*_b)
              + \sum_{b: c_b > 0} m_b(x, y).

    The boxes b are all anchors and all proposed regions. Each takes the object that it overlaps
    most, if it overlaps one by enough, and is background otherwise; :math:`c_b` is the class that it
    should say, :math:`t^*_b` the offset to the object's box, :math:`m_b` the misfit of the object's
    mask. Proposals depend on x and θ; no gradient flows through the place of a proposal.

    Parameters
    ----------
    net : Detector
        Its ``parts`` are the sums above, its ``detect`` searches the set of lowest energy.
    shape : of a picture, (channels, height, width)
    classes : number of classes, without the background
    mean, scale : of each channel, subtracted from and divided out of pictures

    Examples
    --------
    >>> from groundstate.nn.detection.rcnn import FasterRCNN
    >>> net = FasterRCNN(3, fpn=16, sizes=(8, 16, 32), levels=2, hidden=32).eval()
    >>> e = DetectionEnergy(net, (3, 32, 32), 2)
    >>> y = Objects.of([([[4, 4, 16, 16]], [1]), ([], [])])
    >>> e(x=torch.zeros(2, 3, 32, 32), y=y).shape
    torch.Size([2])
    """

    bounded_below = True  # −log p and misfits are at least 0
    centre: Tensor
    spread: Tensor

    def __init__(
        self,
        net: Detector,
        shape: Sequence[int],
        classes: int,
        mean: Sequence[float] | None = None,
        scale: Sequence[float] | None = None,
    ) -> None:
        channels, height, width = shape
        super().__init__(
            x=Real(channels, height, width), y=ObjectSpace(classes, height, width, net.masks)
        )
        self.net, self.classes = net, classes
        self.register_buffer("centre", torch.tensor(mean or [0.0] * channels))
        self.register_buffer("spread", torch.tensor(scale or [1.0] * channels))

    def config(self) -> dict[str, Any]:
        return {
            "net": self.net,
            "shape": list(self.spaces["x"].shape),
            "classes": self.classes,
            "mean": self.centre.tolist(),
            "scale": self.spread.tolist(),
        }

    def prepared(self, x: Tensor) -> Tensor:
        """Pictures as the network sees them."""
        return (x - self.centre[:, None, None]) / self.spread[:, None, None]

    def parts(self, x: Tensor, y: Objects, words: Tensor | None = None) -> Parts:
        """The terms of the energy; with ``words`` ``(B,)`` over a balanced sample of the boxes."""
        return self.net.parts(self.prepared(x), y, words)

    def forward(self, x: Tensor, y: Objects) -> Tensor:
        return torch.stack([part.total for part in self.parts(x, y).values()]).sum(0)

    @torch.no_grad()
    def detect(self, x: Tensor) -> list[Detected]:
        """The objects of each picture, the highest score first."""
        return self.net.detect(self.prepared(x))
