r"""Initial weights: the variance that keeps signals of one size from layer to layer."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from groundstate.errors import Unsupported
from groundstate.nn.blocks.activations import is_activation, recommended_init

SCHEMES = (
    "auto", "he", "he_mean", "xavier", "xavier_normal", "lecun", "normal", "orthogonal", "torch",
    "constant", "zeros",
)  # fmt: skip
MODES = ("fan_in", "fan_out")
_NORMS = (
    nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.LayerNorm, nn.GroupNorm,
    nn.InstanceNorm1d, nn.InstanceNorm2d, nn.InstanceNorm3d,
)  # fmt: skip
_CONV = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
_TRANSPOSED = (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)
Layer = nn.Linear | nn.Conv1d
M = TypeVar("M", bound=nn.Module)


class IdenticalUnits(UserWarning):
    """Units that start equal get equal gradients and stay equal."""


@torch.no_grad()
def init_(
    net: nn.Module,
    scheme: str = "auto",
    generator: torch.Generator | None = None,
    *,
    mode: str = "fan_in",
    std: float = 0.01,
    value: float = 0.0,
) -> nn.Module:
    r"""Set weights W (out, in) and biases of all linear and convolution layers, in place.

    ============== ==========================================================================
    he             normal, variance 2/fan_in (``mode="fan_out"``: 2/fan_out)
    he_mean        normal, variance 4/(fan_in + fan_out)
    xavier         uniform on :math:`\pm\sqrt{6/(\text{fan\_in}+\text{fan\_out})}`
    xavier_normal  normal, the same variance 2/(fan_in + fan_out)
    lecun          normal, variance 1/fan_in
    normal         normal, standard deviation ``std``
    orthogonal     orthonormal rows or columns, gain :math:`\sqrt2` before rectifiers
    torch          uniform on :math:`\pm1/\sqrt{\text{fan\_in}}`, biases too
    constant       every weight ``value``; ``zeros`` is ``constant`` with 0 (both warn)
    auto           he before activations of the ReLU family, xavier elsewhere
    ============== ==========================================================================

    Biases are 0 except under "torch"; scales and shifts of norm layers become 1 and 0. Variance
    2/fan_in keeps the second moment :math:`E[a^2]` through ReLU layers, 2/fan_out that of the
    gradients; ``he_mean`` is the compromise.

    Parameters
    ----------
    net : changed in place and returned
    scheme : see above
    generator : source of the draws; None is a fixed seed
    mode, std, value : options of "he", "normal", "constant"

    Examples
    --------
    >>> net = init_(nn.Sequential(nn.Linear(100, 50), nn.ReLU(), nn.Linear(50, 1)))
    >>> round(net[0].weight.var().item() * 100, 1), net[2].bias.item()
    (2.0, 0.0)
    """
    if scheme not in SCHEMES:
        raise Unsupported(f"init {scheme!r} is not known; use one of {', '.join(SCHEMES)}")
    if mode not in MODES:
        raise ValueError(f"mode must be one of {', '.join(MODES)}, got {mode!r}")
    generator = generator or torch.Generator().manual_seed(0)
    if scheme in ("constant", "zeros"):
        warnings.warn(
            f"init {scheme!r} gives the units of a layer equal weights: they get equal gradients "
            "and stay identical; use 'auto', 'he' or 'xavier' to train",
            IdenticalUnits,
            stacklevel=2,
        )
    for module in net.modules():
        if isinstance(module, _NORMS) and module.weight is not None:
            module.weight.fill_(1.0)
            if module.bias is not None:
                module.bias.zero_()
    for layer, follower in layers_with_activation(net):
        kind = recommended_init(follower) if scheme == "auto" else scheme
        _fill(
            layer, kind, generator, mode, std, value, rectified=recommended_init(follower) == "he"
        )
    return net


def linear(d_in: int, d_out: int, bias: bool = True) -> nn.Linear:
    """A linear layer on torch's default device whose values are not set yet and cost no draw."""
    layer: nn.Linear = nn.Linear.__new__(nn.Linear)  # skip_init makes it thrice, for a millisecond
    nn.Module.__init__(layer)
    layer.in_features, layer.out_features = d_in, d_out
    layer.weight = nn.Parameter(torch.empty(d_out, d_in))
    layer.register_parameter("bias", nn.Parameter(torch.empty(d_out)) if bias else None)
    return layer


def blank(layer: Callable[..., M], *args: Any, **options: Any) -> M:
    """Any layer of torch on the default device whose values are not set yet and cost no draw."""
    made = layer(*args, **options, device="meta")
    return made.to_empty(device=torch.get_default_device())


def layers_with_activation(net: nn.Module) -> Iterator[tuple[Layer, nn.Module | None]]:
    """Every linear or convolution layer with the activation it feeds, None before another layer."""
    weighted = (nn.Linear, *_CONV, *_TRANSPOSED)
    waiting: Layer | None = None
    for module in net.modules():
        if isinstance(module, weighted):
            if waiting is not None:
                yield waiting, None
            waiting = module  # type: ignore[assignment]
        elif waiting is not None and is_activation(module):
            yield waiting, module
            waiting = None
    if waiting is not None:
        yield waiting, None


def fans(layer: nn.Module) -> tuple[int, int]:
    """Numbers of inputs and outputs that one unit of a layer is connected to."""
    weight = layer.weight
    assert isinstance(weight, Tensor)
    positions = math.prod(weight.shape[2:])
    out, inn = weight.shape[0] * positions, weight.shape[1] * positions
    return (out, inn) if isinstance(layer, _TRANSPOSED) else (inn, out)


def _fill(
    layer: Layer,
    kind: str,
    generator: torch.Generator,
    mode: str,
    std: float,
    value: float,
    *,
    rectified: bool,
) -> None:
    weight, bias = layer.weight, layer.bias
    if weight.is_meta:  # shapes alone: there is nothing to set
        return
    inn, out = (max(1, fan) for fan in fans(layer))
    if bias is not None:
        bias.zero_()
    if kind == "he":
        _normal(weight, (inn if mode == "fan_in" else out) / 2, generator)
    elif kind == "he_mean":
        _normal(weight, (inn + out) / 4, generator)
    elif kind == "xavier":
        _uniform(weight, math.sqrt(6 / (inn + out)), generator)
    elif kind == "xavier_normal":
        _normal(weight, (inn + out) / 2, generator)
    elif kind == "lecun":
        _normal(weight, inn, generator)
    elif kind == "normal":
        _normal(weight, std**-2, generator)
    elif kind == "orthogonal":
        draw = torch.empty(weight.shape, dtype=weight.dtype, device=generator.device)
        gain = math.sqrt(2) if rectified else 1.0
        weight.copy_(nn.init.orthogonal_(draw, gain, generator=generator))
    elif kind == "torch":
        _uniform(weight, 1 / math.sqrt(inn), generator)
        if bias is not None:
            _uniform(bias, 1 / math.sqrt(inn), generator)
    else:
        weight.fill_(value if kind == "constant" else 0.0)


# Draws are made where the generator lives: the same weights on every device.
def _normal(weight: Tensor, precision: float, generator: torch.Generator) -> None:
    draw = torch.randn(
        weight.shape, generator=generator, dtype=weight.dtype, device=generator.device
    )
    weight.copy_(draw / precision**0.5)


def _uniform(weight: Tensor, radius: float, generator: torch.Generator) -> None:
    draw = torch.rand(
        weight.shape, generator=generator, dtype=weight.dtype, device=generator.device
    )
    weight.copy_((2 * draw - 1) * radius)
