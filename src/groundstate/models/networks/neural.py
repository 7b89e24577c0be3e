"""What estimators around a user's module share: making the module, and further settings."""

from __future__ import annotations

import inspect
import math
from copy import deepcopy
from typing import Any

from torch import nn

from groundstate.compute.random import Key, seeded
from groundstate.models.networks.mlp import glorot_
from groundstate.nn.blocks.mlp import MLP

INPUTS = ("in_features", "n_features", "n_inputs", "input_size", "in_channels", "d_in", "d")
OUTPUTS = ("out_features", "n_outputs", "n_classes", "num_classes", "output_size", "d_out", "k")


def wrapped_module(model: Any, d: int, outputs: int, key: Key) -> nn.Module:
    """The user's module: the network of ``NeuralClassifier`` and ``NeuralRegressor``."""
    with seeded(key):  # the initial weights of torch's layers know no other generator
        net = make_module(model.module, d, outputs, dict(model.module_params or {}))
    if model.module is None:
        glorot_(net, key.torch())
    if model.input_shape is None:
        return net
    shape = tuple(int(n) for n in model.input_shape)
    size = math.prod(shape)
    if size != d:
        raise ValueError(f"input_shape={shape} holds {size} numbers per row, but X has {d} columns")
    return nn.Sequential(nn.Unflatten(1, shape), net)


def engine_settings(model: Any) -> dict[str, Any]:
    """Further settings of the trainer."""
    return {
        name: getattr(model, name) for name in ("clip_norm", "schedule", "precision", "compile")
    }


def fitted_module(model: Any) -> nn.Module:
    """The fitted module."""
    net: Any = model.energy_.net
    return net if model.input_shape is None else net[1]


def make_module(module: Any, d: int, outputs: int, given: dict[str, Any]) -> nn.Module:
    """A module for d columns and so many outputs, from an instance, a class or a function.

    An instance is copied with its weights. A class or function is called with ``given`` and, for its
    parameters named like ``in_features`` and ``out_features``, the two sizes; one with other names
    gets them in this order.

    >>> make_module(nn.Linear, 3, 2, {"bias": False})
    Linear(in_features=3, out_features=2, bias=False)
    """
    if module is None:
        return MLP(d, (100,), outputs, "relu")
    if isinstance(module, nn.Module):
        return deepcopy(module)
    arguments = dict(given)
    parameters = inspect.signature(module).parameters
    sizes = {name: d for name in INPUTS if name in parameters}
    sizes |= {name: outputs for name in OUTPUTS if name in parameters}
    arguments = {**sizes, **arguments}
    positional: list[int] = []
    if not sizes:
        free = [
            p
            for p in parameters.values()
            if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
            and p.default is p.empty
            and p.name not in arguments
        ]
        positional = [d, outputs][: len(free)]
    made = module(*positional, **arguments)
    if not isinstance(made, nn.Module):
        raise TypeError(
            f"module must be or give a torch.nn.Module, but {getattr(module, '__name__', module)!r} "
            f"gave {type(made).__name__}"
        )
    return made
