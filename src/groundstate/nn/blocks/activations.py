r"""Activations :math:`a = \sigma(z)` by name, with what is known about each of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from groundstate.errors import ShapeError, Unsupported
from groundstate.nn.blocks.contract import blocks, rows_of


@blocks.register(make=lambda: Step(), batch=rows_of(3), formula=r"1[z\ge0]")
class Step(nn.Module):
    """Heaviside's step, 1 where z ≥ 0 and 0 elsewhere; its derivative is 0 everywhere it exists.

    >>> Step()(torch.tensor([-1.0, 0.0, 2.0]))
    tensor([0., 1., 1.])
    """

    def forward(self, z: Tensor) -> Tensor:
        # 0 * z keeps the result in the graph: the gradient is 0, not absent
        return (z >= 0).to(z.dtype) + 0 * z


@blocks.register(make=lambda: Sin(), batch=rows_of(3), formula=r"\sin z")
class Sin(nn.Module):
    r""":math:`\sin z`."""

    def forward(self, z: Tensor) -> Tensor:
        return torch.sin(z)


@blocks.register(make=lambda: Bump(), batch=rows_of(3), formula=r"e^{-z^2}")
class Bump(nn.Module):
    r""":math:`e^{-z^2}`: one unit that answers between two parallel planes."""

    def forward(self, z: Tensor) -> Tensor:
        return torch.exp(-z.square())


@blocks.register(make=lambda: Maxout(2), batch=rows_of(6), formula=r"\max_{i<k} z_{kd+i}")
class Maxout(nn.Module):
    r""":math:`a_d = \max_{i<k} z_{kd+i}`: the largest of k pieces, affine in what comes before.

    Parameters
    ----------
    k : pieces per unit; the last axis must be a multiple of it

    Examples
    --------
    >>> Maxout(2)(torch.tensor([0.0, -3.0, 0.0, 2.0]))  # max(0, x) is ReLU
    tensor([0., 2.])
    """

    def __init__(self, k: int = 2) -> None:
        super().__init__()
        if k < 1:
            raise ValueError(f"Maxout needs at least one piece per unit, got k={k}")
        self.k = k

    def forward(self, z: Tensor) -> Tensor:
        if z.shape[-1] % self.k:
            raise ShapeError(
                f"Maxout(k={self.k}) needs a last axis that is a multiple of {self.k}, "
                f"got {tuple(z.shape)}"
            )
        return z.unflatten(-1, (-1, self.k)).amax(-1)

    def extra_repr(self) -> str:
        return f"k={self.k}"


@dataclass(frozen=True)
class Activation:
    r"""One row of ``ACTIVATIONS``; calling it makes the module.

    Attributes
    ----------
    name : its key
    formula : :math:`\sigma(z)` in LaTeX
    make : class of the module
    options : keyword arguments of the module and their defaults here
    low, high : infimum and supremum of the values
    smooth : how many continuous derivatives: −1 for a jump, 0 for a kink, ``math.inf`` for all
    kinks : where a derivative jumps
    monotone : whether values never fall as z grows
    bound : the largest absolute entry of the Jacobian, ``math.inf`` for a jump
    init : scheme that ``init_`` recommends for the layer before
    elementwise : whether each value depends on one z only
    hidden : whether it is offered between layers: elementwise, with a useful gradient
    """

    name: str
    formula: str
    make: Callable[..., nn.Module]
    low: float
    high: float
    smooth: float
    bound: float
    monotone: bool = True
    init: Literal["he", "xavier"] = "xavier"
    kinks: tuple[float, ...] = ()
    elementwise: bool = True
    hidden: bool = True
    options: tuple[tuple[str, Any], ...] = ()

    def __call__(self, **options: Any) -> nn.Module:
        return self.make(**{**dict(self.options), **options})


INF = math.inf
_GELU_LOW, _SILU_LOW = -0.16997120747990369, -0.27846454276107380
_GELU_SLOPE, _SILU_SLOPE = 1.1289041451851550, 1.0998393201288670
_HE: dict[str, Any] = {"init": "he"}
_ROWS = (
    Activation("identity", "z", nn.Identity, -INF, INF, INF, 1.0),
    Activation("step", r"1[z\ge0]", Step, 0, 1, -1, INF, kinks=(0.0,), hidden=False),
    Activation("sigmoid", r"1/(1+e^{-z})", nn.Sigmoid, 0, 1, INF, 0.25),
    Activation("tanh", r"\tanh z", nn.Tanh, -1, 1, INF, 1.0),
    Activation("relu", r"\max(0,z)", nn.ReLU, 0, INF, 0, 1.0, kinks=(0.0,), **_HE),
    Activation("leaky_relu", r"\max(z, sz),\ s=0.01", nn.LeakyReLU, -INF, INF, 0, 1.0, kinks=(0.0,),
               options=(("negative_slope", 0.01),), **_HE),
    Activation("elu", r"z\text{ or }\alpha(e^z-1)\text{ below }0", nn.ELU, -1, INF, 1, 1.0,
               kinks=(0.0,), options=(("alpha", 1.0),), **_HE),
    Activation("gelu", r"z\,\Phi(z)", nn.GELU, _GELU_LOW, INF, INF, _GELU_SLOPE, monotone=False,
               **_HE),
    Activation("silu", r"z\,\sigma(z)", nn.SiLU, _SILU_LOW, INF, INF, _SILU_SLOPE, monotone=False,
               **_HE),
    Activation("softplus", r"\log(1+e^z)", nn.Softplus, 0, INF, INF, 1.0, **_HE),
    Activation("maxout", r"\max_{i<k} z_i", Maxout, -INF, INF, 0, 1.0, elementwise=False,
               hidden=False, options=(("k", 2),), **_HE),
    Activation("softmax", r"e^{z_k}/\sum_j e^{z_j}", nn.Softmax, 0, 1, INF, 0.25,
               elementwise=False, hidden=False, options=(("dim", -1),)),
    Activation("log_softmax", r"z_k-\log\sum_j e^{z_j}", nn.LogSoftmax, -INF, 0, INF, 1.0,
               elementwise=False, hidden=False, options=(("dim", -1),)),
    Activation("sin", r"\sin z", Sin, -1, 1, INF, 1.0, monotone=False),
    Activation("bump", r"e^{-z^2}", Bump, 0, 1, INF, math.sqrt(2 / math.e), monotone=False),
)  # fmt: skip

#: name -> Activation; ``ACTIVATIONS["relu"]()`` makes a module.
ACTIVATIONS: dict[str, Activation] = {row.name: row for row in _ROWS}
#: names that are offered between layers
HIDDEN = tuple(row.name for row in _ROWS if row.hidden)
_BY_CLASS = {row.make: row for row in _ROWS if row.name != "identity"}
_RECTIFIERS = (nn.PReLU, nn.ReLU6, nn.RReLU, nn.SELU, nn.CELU, nn.Mish, nn.Hardswish)


def activation(kind: str | nn.Module, **options: Any) -> nn.Module:
    """A module by name from ``ACTIVATIONS``; a module is returned as it is.

    >>> activation("leaky_relu", negative_slope=0.2)
    LeakyReLU(negative_slope=0.2)
    """
    if isinstance(kind, nn.Module):
        return kind
    if kind not in ACTIVATIONS:
        raise Unsupported(f"activation {kind!r} is not known; use one of {', '.join(ACTIVATIONS)}")
    return ACTIVATIONS[kind](**options)


def is_activation(module: nn.Module) -> bool:
    """Whether a module is an activation: of torch, or of ``ACTIVATIONS``."""
    if isinstance(module, nn.MultiheadAttention):
        return False
    return type(module).__module__ == "torch.nn.modules.activation" or type(module) in _BY_CLASS


def recommended_init(module: nn.Module | None) -> str:
    """The scheme for a layer that ``module`` follows: "he" for rectifiers, else "xavier"."""
    if module is None:
        return "xavier"
    if isinstance(module, _RECTIFIERS):
        return "he"
    row = _BY_CLASS.get(type(module))
    return row.init if row is not None else "xavier"
