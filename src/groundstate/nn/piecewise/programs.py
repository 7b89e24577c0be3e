r"""Piecewise linear networks as programs of affine maps, rectifiers and skips."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from groundstate.errors import Unsupported
from groundstate.nn.blocks.mlp import MLP
from groundstate.nn.blocks.residual import Residual

F64 = NDArray[np.float64]


@dataclass(frozen=True)
class Affine:
    """a ← W a + b; None is the identity."""

    W: F64
    b: F64


@dataclass(frozen=True)
class Rectify:
    """a ← a where a > 0, slope · a elsewhere."""

    slope: F64


@dataclass(frozen=True)
class Keep:
    """Remember a for the skip."""


@dataclass(frozen=True)
class Add:
    """a ← P h + s a with the remembered h."""

    scale: float
    project: tuple[Affine, ...]


Op = Affine | Rectify | Keep | Add


def program(net: nn.Module) -> Iterator[Op]:
    """The steps of a network, batch norm with its running statistics, dropout off."""
    if isinstance(net, MLP):
        yield from program(net.layers)
    elif isinstance(net, nn.Sequential):
        for layer in net:
            yield from program(layer)
    elif isinstance(net, Residual):
        yield Keep()
        yield from program(net.branch)
        skip = () if net.project is None else tuple(program(net.project))
        if not all(isinstance(op, Affine) for op in skip):
            raise Unsupported("linear regions need an affine projection in a residual block")
        yield Add(net.factor, skip)  # type: ignore[arg-type]
    elif isinstance(net, nn.Linear):
        W, b = _array(net.weight), net.bias
        yield Affine(W, np.zeros(len(W)) if b is None else _array(b))
    elif isinstance(net, nn.BatchNorm1d) and net.running_mean is not None:
        mean, var = _array(net.running_mean), _array(_given(net.running_var))
        gain = 1 / np.sqrt(var + net.eps)
        if net.affine:
            gain = gain * _array(net.weight)
        shift = _array(net.bias) if net.affine else 0.0
        yield Affine(np.diag(gain), shift - gain * mean)
    elif isinstance(net, nn.ReLU):
        yield Rectify(np.zeros(1))
    elif isinstance(net, nn.LeakyReLU):
        yield Rectify(np.array([net.negative_slope]))
    elif isinstance(net, nn.PReLU):
        yield Rectify(_array(net.weight))
    elif not isinstance(net, nn.Identity | nn.Dropout | nn.Flatten):
        raise Unsupported(
            f"linear regions need layers that are piecewise linear (Linear, ReLU, LeakyReLU, "
            f"PReLU, BatchNorm1d, Residual), the network has {type(net).__name__}"
        )


def _given(value: Tensor | None) -> Tensor:
    assert value is not None
    return value


def _array(value: Any) -> F64:
    return np.asarray(value.detach().double().cpu().numpy())
