r"""Only He's variance carries signals through fifty layers."""

from __future__ import annotations

import warnings

import numpy as np
import torch
from numpy.typing import NDArray

from groundstate.compute.random import Key
from groundstate.energy.networks.location import LocationHead
from groundstate.energy.networks.network import NetworkEnergy
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.learn import NLL, Stochastic, fit, probe
from groundstate.nn import MLP, init_
from groundstate.nn.blocks.initialise import IdenticalUnits

F64 = NDArray[np.float64]
WIDTH, DEPTH, ROWS = 100, 50, 200
VARIANCES = (0.001, 0.01, 0.02, 0.1, 1.0)
FUNNEL = (512, 256, 128, 64, 32)
SCHEMES = {"fan-in": ("he", "fan_in"), "mean": ("he_mean", "fan_in"), "fan-out": ("he", "fan_out")}


def signals(net: MLP, key: Key) -> tuple[F64, F64]:
    """Variances of the pre-activations and of the gradients in them, by hidden layer."""
    x = torch.randn(ROWS, net.in_features, generator=key.fold("x").torch(), dtype=torch.float64)
    layers = [
        row for row in probe(net, x, generator=key.fold("g").torch()).layers if row.kind == "Linear"
    ]
    hidden = layers[: net.depth]
    return np.array([r.variance for r in hidden]), np.array([r.gradient**2 for r in hidden])


def deep(keys: tuple[Key, ...], variance: float) -> tuple[F64, F64]:
    """Mean signals of square nets with weights of one variance."""
    found = []
    for key in keys:
        net = MLP(WIDTH, (WIDTH,) * DEPTH, WIDTH).double()
        init_(net, "normal", key.torch(), std=variance**0.5)
        found.append(signals(net, key))
    forward, backward = np.mean(found, axis=0)
    return forward, backward


def funnel(keys: tuple[Key, ...], scheme: str, mode: str) -> tuple[float, float]:
    """Growth of activations to the last and of gradients to the first layer of a narrowing net."""
    found = []
    for key in keys:
        net = MLP(FUNNEL[0], FUNNEL, FUNNEL[-1]).double()
        init_(net, scheme, key.torch(), mode=mode)
        forward, backward = signals(net, key)
        found.append((forward[-1] / forward[0], backward[0] / backward[-1]))
    forth, back = np.mean(found, axis=0)
    return float(forth), float(back)


def twins(key: Key, scheme: str) -> float:
    """Largest difference between the hidden units of a net that started with equal ones."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IdenticalUnits)
        net = MLP(2, (8,), 1, "tanh").double()
        init_(net, scheme, value=0.5)
    x = torch.randn(64, 2, generator=key.torch(), dtype=torch.float64)
    energy = NetworkEnergy(2, LocationHead("squared_error"), net).double()
    data = {"x": x, "y": torch.sin(2 * x[:, :1])}
    fit(energy, data, NLL(), Stochastic(lr=0.05, max_epochs=100, tol=None), random_state=key)
    W = next(net.parameters()).detach()
    return float((W - W[0]).abs().max())


@experiment("NEU-X-init", theme="neural", title="Only He's initialisation keeps signals", slow=True)
def init(seed: int = 0, *, quick: bool = False) -> Result:
    r"""Through a ReLU layer of width D with weights of variance :math:`\sigma^2` the variance of a signal
    is multiplied by :math:`\tfrac12D\sigma^2`, forwards and backwards. Over 50 layers of width 100
    that is :math:`(50\sigma^2)^{50}`: 1 for :math:`\sigma^2 = 2/D = 0.02`, and between :math:`10^{-65}`
    and :math:`10^{85}` otherwise.

    Where widths differ, fan-in keeps activations, fan-out keeps gradients, and their mean parts the
    damage: a net that narrows from 512 to 32. Equal weights give equal units for ever. Means over 10 nets.
    """
    keys = Key.of(seed).fold("nets").split(3 if quick else 10)
    square = {v: deep(keys, v) for v in VARIANCES}
    ends = {v: (f[-1], b[0]) for v, (f, b) in square.items()}
    claims = []
    for v, (f, b) in ends.items():
        distribution = (WIDTH / 2 * v) ** DEPTH
        for name, value in (("forward", f), ("backward", b)):
            if v == 0.02:
                claims.append(Claim.between(f"σ² = {v:g}, {name}: variance", value, 0.1, 10))
            else:
                claims.append(Claim.close(f"σ² = {v:g}, {name}: log₁₀ of the variance",
                                          np.log10(value), np.log10(distribution), tol=1.0))  # fmt: skip
    narrow = {name: funnel(keys, *scheme) for name, scheme in SCHEMES.items()}
    forth, back = ({n: pair[i] for n, pair in narrow.items()} for i in (0, 1))
    stay = {scheme: twins(Key.of(seed).fold("twins"), scheme) for scheme in ("zeros", "constant")}
    claims += [
        Claim.between("funnel, fan-in: growth of activations", forth["fan-in"], 0.5, 2),
        Claim.between("funnel, fan-out: growth of gradients", back["fan-out"], 0.5, 2),
        Claim.above("funnel, mean over fan-in: activations", forth["mean"] / forth["fan-in"], 1),
        Claim.above("funnel, fan-out over mean: activations", forth["fan-out"] / forth["mean"], 1),
        Claim.above("funnel, mean over fan-in: gradients", back["mean"] / back["fan-in"], 1),
        Claim.above("funnel, fan-out over mean: gradients", back["fan-out"] / back["mean"], 1),
        Claim.at_most("zeros: difference of units after 100 steps", stay["zeros"], 1e-12),
        Claim.at_most(
            "equal weights: difference of units after 100 steps", stay["constant"], 1e-12
        ),
    ]
    numbers = {
        "forward": {str(v): float(f) for v, (f, _) in ends.items()},
        "backward": {str(v): float(b) for v, (_, b) in ends.items()},
        "funnel": {name: list(pair) for name, pair in narrow.items()},
    }

    def draw(figure: Figure) -> None:
        axes = figure.subplots(1, 2, sharey=True)
        layer = np.arange(1, DEPTH + 1)
        for i, (ax, title) in enumerate(zip(axes, ("activations", "gradients"))):
            for v, colour in zip(VARIANCES, COLOURS):
                ax.semilogy(layer, square[v][i], color=colour, label=f"σ² = {v:g}")
            ax.set(title=f"variance of {title}", xlabel="layer")
        axes[0].legend()

    return Result(claims, numbers, draw)
