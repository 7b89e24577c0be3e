"""What the two multilayer perceptrons share: the network, its start, and its matrices by name."""

from __future__ import annotations

import math
from numbers import Integral
from typing import Any

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import nn

from groundstate.compute.random import Key
from groundstate.models import settings
from groundstate.models.learned import LearnedLayers
from groundstate.models.traits import Cost, Traits
from groundstate.nn.blocks.mlp import MLP

NAMES = {"logistic": "sigmoid"}  # scikit-learn's names of ours


MLP_TRAITS = Traits(
    cost=Cost(0.15, columns=0.1, classes=0.2, start=0.03),
    scaled_target=True,
    steps="max_iter",
    space={
        "alpha": settings.Real(1e-6, 1e-1, log=True),
        "learning_rate_init": settings.Real(1e-4, 3e-2, log=True),
        "hidden_layer_sizes": settings.Choice((32,), (100,), (64, 64)),
        "dropout": settings.Real(0.0, 0.5),
    },
)


def perceptron(model: Any, d: int, outputs: int, key: Key) -> nn.Module:
    """Dense layers with one activation: the network of ``MLPClassifier`` and ``MLPRegressor``."""
    name = NAMES.get(model.activation, model.activation)
    net = MLP(d, _sizes(model), outputs, name, dropout=model.dropout, init="xavier")
    return glorot_(net, key.torch(), 2.0 if name == "sigmoid" else 6.0)


def _sizes(model: Any) -> tuple[int, ...]:
    given = model.hidden_layer_sizes
    sizes = [given] if np.ndim(given) == 0 else list(given)
    if any(not isinstance(s, Integral) or s < 1 for s in sizes):
        raise ValueError(f"hidden_layer_sizes must be whole numbers above 0, got {given}")
    return tuple(int(s) for s in sizes)


def layers(model: Any) -> list[nn.Linear]:
    """The dense layers of a fitted network."""
    check_is_fitted(model, "energy_")
    return [layer for layer in model.energy_.net.modules() if isinstance(layer, nn.Linear)]


def weights_of_layers() -> LearnedLayers:
    """``coefs_``: the weights of every layer, each ``(in, out)``."""
    return LearnedLayers(lambda model: [layer.weight.T for layer in layers(model)])


def biases_of_layers() -> LearnedLayers:
    """``intercepts_``: the biases of every layer, each ``(out,)``."""
    return LearnedLayers(lambda model: [layer.bias for layer in layers(model)])


def n_layers(model: Any) -> int:
    """Number of layers, input and output included."""
    return len(layers(model)) + 1


def n_outputs(model: Any) -> int:
    """Number of outputs."""
    return layers(model)[-1].out_features


def out_activation(model: Any) -> str:
    """What turns the last layer into the prediction."""
    head = getattr(model.energy_ if hasattr(model, "energy_") else None, "head", None)
    if head is None:
        return "logistic" if n_outputs(model) == 1 else "softmax"
    if head.name == "bernoulli":
        return "logistic"
    return "exp" if head.name == "poisson" else "identity"


@torch.no_grad()
def glorot_(net: nn.Module, generator: torch.Generator, factor: float = 6.0) -> nn.Module:
    r"""Weights and biases uniform on :math:`\pm\sqrt{c/(\text{in}+\text{out})}`, in place.

    >>> net = glorot_(nn.Linear(3, 3), torch.Generator().manual_seed(0))
    >>> bool(net.weight.abs().max() <= 1)
    True
    """
    for layer in net.modules():
        if isinstance(layer, nn.Linear):
            bound = math.sqrt(factor / (layer.in_features + layer.out_features))
            for part in (layer.weight, layer.bias):
                drawn = torch.rand(part.shape, generator=generator, dtype=torch.float64)
                part.copy_(bound * (2 * drawn - 1))
    return net
