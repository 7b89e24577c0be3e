r"""Greedy learning of a deep network, layer by layer, before it sees labels."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from groundstate.compute.random import Key
from groundstate.energy.base import Energy
from groundstate.energy.basic import BilinearEnergy
from groundstate.energy.latent.deep.autoencoder import AutoencoderEnergy
from groundstate.energy.latent.deep.priors import NormalPrior
from groundstate.energy.undirected.restricted import RestrictedEnergy
from groundstate.errors import DataError, ShapeError
from groundstate.learn.base import History, Rule
from groundstate.learn.fit import fit
from groundstate.learn.rules.codes.reconstruction import Reconstruction
from groundstate.learn.rules.contrastive import ContrastiveDivergence
from groundstate.learn.solvers.latent.boltzmann import BoltzmannSGD
from groundstate.learn.train.stochastic import Stochastic
from groundstate.nn.blocks.corrupt import Corruption, Kind
from groundstate.nn.heads.likelihoods import BernoulliLikelihood, SquaredError

Method = Literal["autoencoder", "denoising", "rbm"]
METHODS = ("autoencoder", "denoising", "rbm")


def pretrain_layers(
    net: nn.Module,
    X: Any,
    method: Method = "denoising",
    *,
    corruption: Kind = "gaussian",
    level: float = 0.3,
    max_iter: int = 50,
    learning_rate_init: float = 1e-3,
    batch_size: int = 128,
    sample_weight: Any = None,
    random_state: Any = None,
) -> list[History]:
    r"""Learn the hidden layers of a perceptron from rows without labels, each on the codes of the one
    before,

    .. math:: \min_{W_l} \sum_i -\log p(h_i \mid W_l^\top\sigma(W_l\tilde h_i)), \qquad
        h \leftarrow \sigma(W_l h),

    in place, with the weights of a layer also for the way back (bits where codes are in [0, 1], else
    the squared error); the output layer stays as it is. Fine-tune it with labels then: in a deep network of
    sigmoids the gradient of a random start fades, that of this start does not (Hinton & Salakhutdinov
    2006, Vincent et al. 2010).

    Parameters
    ----------
    net : ``MLP``, or a ``torch.nn.Sequential`` of linear layers with activations between
    X : rows ``(n, d)``, scaled as the network will see them
    method : what each layer is
        An "autoencoder", a "denoising" one, or the hidden layer of a restricted Boltzmann machine
        ("rbm", for sigmoids; visible units are normal where values leave [0, 1]).
    corruption, level : noise of "denoising", see ``groundstate.nn.blocks.corrupt.Corruption``
    max_iter : epochs of each layer
    learning_rate_init, batch_size : of Adam
    sample_weight : ``(n,)``; a weight of 2 is the row twice
    random_state : int, key or None

    Returns
    -------
    list of History, one for each hidden layer

    Examples
    --------
    >>> from groundstate.nn import MLP
    >>> X = np.random.default_rng(0).normal(size=(200, 4))
    >>> net = MLP(4, (8, 3), 2, "sigmoid")
    >>> found = pretrain_layers(net, X, max_iter=20, learning_rate_init=0.01, random_state=0)
    >>> len(found), found[0].objective[-1] < found[0].objective[0]
    (2, True)
    """
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}, got {method!r}")
    layers = hidden_layers(net)
    place = next(net.parameters())
    codes = torch.as_tensor(np.asarray(X) if not isinstance(X, Tensor) else X)
    codes = codes.detach().to(place.device, place.dtype)
    if codes.ndim != 2 or codes.shape[1] != layers[0][0].in_features:
        raise ShapeError(
            f"X must be (n, {layers[0][0].in_features}) for this network, got {tuple(codes.shape)}"
        )
    if not bool(torch.isfinite(codes).all()):
        raise DataError("X holds NaN or infinity; fill it in or drop the rows")
    weight = None if sample_weight is None else torch.as_tensor(sample_weight).to(codes)
    found, key = [], Key.of(random_state)
    for i, layer in enumerate(layers):
        own = key.fold("layer", i)
        energy: Energy
        rule: Rule
        if method == "rbm":
            energy, rule = _machine(layer, codes, own), ContrastiveDivergence(1, over="x")
        else:
            energy, rule = _autoencoder(layer, codes), Reconstruction()
            if method == "denoising":
                rule = Reconstruction(
                    Corruption(corruption, level, codes.amin(0), codes.amax(0)).to(codes)
                )
        made = BoltzmannSGD if isinstance(energy, BilinearEnergy) else Stochastic
        solver = made(
            "adam", lr=learning_rate_init, batch_size=batch_size, max_epochs=max_iter, tol=None
        )
        energy.to(codes.device, codes.dtype)
        found.append(
            fit(energy, {"x": codes}, rule, solver, sample_weight=weight, random_state=own)
        )
        if isinstance(energy, BilinearEnergy | RestrictedEnergy):
            with torch.no_grad():
                layer[0].weight.copy_(energy.W.T)
                layer[0].bias.copy_(energy.c)
        with torch.no_grad():
            codes = layer.eval()(codes)
            layer.train(net.training)
    return found


def hidden_layers(net: nn.Module) -> list[Any]:
    """The hidden layers of a perceptron: each linear map with what follows up to the next; without the
    last."""
    stack = getattr(net, "layers", net)
    plain = isinstance(stack, nn.Sequential)
    kept = list(stack) if plain else []  # type: ignore[arg-type]
    starts = [i for i, m in enumerate(kept) if isinstance(m, nn.Linear)]
    inner = [m for m in kept if not isinstance(m, nn.Linear) and list(m.children())]
    if len(starts) < 2 or starts[0] != 0 or inner:
        raise TypeError(
            "pretrain_layers reads an MLP without residual=True, or a torch.nn.Sequential of Linear "
            f"layers with activations between and one Linear at the end, got {type(net).__name__}"
        )
    return [nn.Sequential(*kept[a:b]) for a, b in pairwise(starts)]


class Mirrored(nn.Module):
    """The way back through a linear layer, :math:`z W + b`, with the weights of the way there.

    Weights of its own could be large where the layer's are small, so that codes would fade from layer
    to layer.
    """

    def __init__(self, layer: nn.Linear) -> None:
        super().__init__()
        self.layer = layer
        self.bias = nn.Parameter(torch.zeros(layer.in_features))

    def forward(self, z: Tensor) -> Tensor:
        return torch.addmm(self.bias, z, self.layer.weight)


def _autoencoder(layer: Any, codes: Tensor) -> AutoencoderEnergy:
    d, k = layer[0].in_features, layer[0].out_features
    kind = BernoulliLikelihood(d) if _is_unit(codes) else SquaredError(d)
    return AutoencoderEnergy(layer, Mirrored(layer[0]), kind, NormalPrior(k))


def _is_unit(codes: Tensor) -> bool:
    return bool((codes >= 0).all() and (codes <= 1).all())


def _machine(layer: Any, codes: Tensor, key: Key) -> BilinearEnergy | RestrictedEnergy:
    if [type(m) for m in layer[1:]] != [nn.Sigmoid] or layer[0].bias is None:
        raise ValueError(
            "method='rbm' learns layers sigmoid(Wx + c), with a bias and nothing else; use "
            "method='denoising' for other activations"
        )
    d, k = layer[0].in_features, layer[0].out_features
    generator = key.fold("machine").torch()
    energy: BilinearEnergy | RestrictedEnergy
    mean = codes.mean(0)
    if _is_unit(codes):
        energy = BilinearEnergy(d, k, scale=0.01, generator=generator)
        mean = torch.logit(mean.clamp(0.01, 0.99))
    else:
        energy = RestrictedEnergy((0,) * d, k, scale=0.01, generator=generator)
    with torch.no_grad():
        energy.b.copy_(
            mean
        )  # so that the hidden units learn what columns have to do with each other
    return energy
