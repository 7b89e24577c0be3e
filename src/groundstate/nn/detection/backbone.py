r"""Feature maps of pictures: a convolutional body, and a pyramid on its stages."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from groundstate.nn.architectures import create
from groundstate.nn.zoo.base import ImageNetwork
from groundstate.nn.zoo.resnet import ResNet


class ConvBody(ImageNetwork):
    r"""Stages of two 3×3 convolutions, each with group norm and ReLU, the first with stride 2.

    Small enough to learn from hundreds of pictures; a group norm looks at one picture alone, so that
    batches may be small and a picture's maps do not depend on its neighbours.

    Parameters
    ----------
    channels : of each stage
    in_channels : of the pictures

    Examples
    --------
    >>> [tuple(m.shape[1:]) for m in ConvBody((8, 16))(torch.zeros(1, 3, 32, 32))]
    [(8, 16, 16), (16, 8, 8)]
    """

    def __init__(self, channels: Sequence[int] = (16, 32, 64, 64), in_channels: int = 3) -> None:
        super().__init__()
        channels = tuple(channels)
        self._keep(locals())
        stages, before = [], in_channels
        for c in channels:
            layers: list[nn.Module] = []
            for stride in (2, 1):
                layers += [
                    nn.Conv2d(before, c, 3, stride, 1, bias=False),
                    nn.GroupNorm(max(1, c // 8), c),
                    nn.ReLU(),
                ]
                before = c
            stages.append(nn.Sequential(*layers))
        self.layers = nn.ModuleList(stages)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def stages(self, x: Tensor) -> list[Tensor]:
        """Maps after every stage, from the finest to the coarsest."""
        h, found = self.checked(x), []
        for stage in self.layers:
            h = stage(h)
            found.append(h)
        return found

    forward = stages


class FeaturePyramid(nn.Module):
    r"""Maps of all scales with the meaning of the coarsest:
    :math:`p_i = K_i * \bigl(W_i c_i + \operatorname{up}(W_{i+1} c_{i+1} + \dots)\bigr)`.

    1×1 convolutions bring the stages :math:`c_i` to one number of channels, coarser sums are
    enlarged to the next finer side (nearest) and added, and a 3×3 convolution smooths each. With
    ``more=True`` a last map takes every second pixel of the coarsest one.

    Parameters
    ----------
    channels : of the stages, from the finest to the coarsest
    out : of all maps of the pyramid

    Examples
    --------
    >>> maps = FeaturePyramid((8, 16), 4)([torch.zeros(1, 8, 16, 16), torch.zeros(1, 16, 8, 8)])
    >>> [tuple(m.shape[1:]) for m in maps]
    [(4, 16, 16), (4, 8, 8), (4, 4, 4)]
    """

    def __init__(self, channels: Sequence[int], out: int, more: bool = True) -> None:
        super().__init__()
        self.more = more
        self.inner_blocks = nn.ModuleList(nn.Sequential(nn.Conv2d(c, out, 1)) for c in channels)
        self.layer_blocks = nn.ModuleList(
            nn.Sequential(nn.Conv2d(out, out, 3, padding=1)) for _ in channels
        )
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_uniform_(module.weight, a=1)
                nn.init.zeros_(module.bias)  # type: ignore[arg-type]

    def forward(self, stages: Sequence[Tensor]) -> list[Tensor]:
        """Maps of the pyramid, from the finest to the coarsest."""
        inner = [block(c) for block, c in zip(self.inner_blocks, stages, strict=True)]
        sums = [inner[-1]]
        for finer in inner[-2::-1]:
            size = (int(finer.shape[2]), int(finer.shape[3]))
            sums.insert(0, finer + functional.interpolate(sums[0], size, mode="nearest"))
        maps: list[Tensor] = [block(s) for block, s in zip(self.layer_blocks, sums, strict=True)]
        if self.more:
            maps.append(functional.max_pool2d(maps[-1], 1, 2))
        return maps


class FrozenNorm(nn.Module):
    r"""A batch norm whose vectors stay as they are,
    :math:`y = \gamma(x-\mu)/\sqrt{v+\epsilon} + \beta`.
    """

    weight: Tensor
    bias: Tensor
    running_mean: Tensor
    running_var: Tensor

    def __init__(self, channels: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.eps = eps
        for name, value in (("weight", 1), ("bias", 0), ("running_mean", 0), ("running_var", 1)):
            self.register_buffer(name, torch.full((channels,), float(value)))

    def forward(self, x: Tensor) -> Tensor:
        scale = self.weight * (self.running_var + self.eps).rsqrt()
        shift = self.bias - self.running_mean * scale
        return x * scale.reshape(1, -1, 1, 1) + shift.reshape(1, -1, 1, 1)


def freeze_norms(module: nn.Module) -> nn.Module:
    """Put a ``FrozenNorm`` with the same vectors in the place of every batch norm."""
    for name, child in module.named_children():
        if isinstance(child, nn.BatchNorm2d):
            frozen = FrozenNorm(child.num_features, child.eps)
            frozen.load_state_dict(
                {k: v for k, v in child.state_dict().items() if k != "num_batches_tracked"}
            )
            setattr(module, name, frozen)
        else:
            freeze_norms(child)
    return module


class Backbone(nn.Module):
    """A body, and a pyramid on its last stages; without one, the map of the last stage alone.

    Parameters
    ----------
    body : a network with ``stages``, or the name of one: "small" (``ConvBody``) or a residual network
        of ``groundstate.nn.architectures``
    fpn : channels of a pyramid, or None
    levels : how many of the last stages the pyramid stands on
    frozen : whether batch norms keep their vectors
    more : whether the pyramid has one more, coarser map
    in_channels : of the pictures

    Attributes
    ----------
    out_channels : of the maps
    """

    def __init__(
        self,
        body: str | nn.Module = "small",
        fpn: int | None = 256,
        levels: int = 4,
        *,
        frozen: bool = False,
        more: bool = True,
        in_channels: int = 3,
    ) -> None:
        super().__init__()
        self.body = _body(body, in_channels)
        if frozen:
            freeze_norms(self.body)
        self.levels = levels
        with torch.no_grad():
            self.body.eval()
            sizes = [int(m.shape[1]) for m in self._stages(torch.zeros(1, in_channels, 64, 64))]
            self.body.train()
        if levels > len(sizes):
            raise ValueError(
                f"the body has {len(sizes)} stages; a pyramid cannot stand on {levels}"
            )
        self.fpn = None if fpn is None else FeaturePyramid(sizes[-levels:], fpn, more)
        self.out_channels = sizes[-1] if fpn is None else fpn
        self.maps = 1 if fpn is None else levels + more

    def _stages(self, x: Tensor) -> list[Tensor]:
        found: list[Tensor] = self.body.stages(x)  # type: ignore[operator]
        return found

    def forward(self, x: Tensor) -> list[Tensor]:
        stages = self._stages(x)
        if self.fpn is None:
            return stages[-1:]
        maps: list[Tensor] = self.fpn(stages[-self.levels :])
        return maps


def _body(body: str | nn.Module, in_channels: int) -> nn.Module:
    if isinstance(body, str):
        found = ConvBody(in_channels=in_channels) if body == "small" else _named(body, in_channels)
    else:
        found = deepcopy(body)  # the caller's own keeps its head
    if isinstance(found, ResNet):
        found.fc = nn.Identity()  # a detector has heads of its own
    if not callable(getattr(found, "stages", None)):
        raise ValueError(
            f"a backbone needs a method stages(x) that gives its maps, {type(found).__name__} has none; "
            "pass 'small', the name of a residual network, or such a module"
        )
    return found


def _named(name: str, in_channels: int) -> Any:
    return create(name, in_channels=in_channels)
