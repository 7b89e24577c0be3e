r"""One temperature joins the uniform push, cross-entropy and the perceptron."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from groundstate.compute.random import Key
from groundstate.energy import Energy, LinearEnergy
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.experiments.tools import Watch, blobs
from groundstate.learn import Perceptron, Rule, Snapshots, SoftMin, Stochastic, fit, sgd, zero_one

TEMPERATURES = (math.inf, 10.0, 1.0, 0.1, 0.01)


@experiment("ENE-X-temperature", theme="energy", title="T joins uniform push, CE, perceptron")
def temperature(seed: int = 0, *, quick: bool = False) -> Result:
    r"""``SoftMin(T)`` is the perceptron when cold, cross-entropy at 1, and a uniform push when hot.

    :math:`L_T = e_y - F_T` with :math:`\partial L_T/\partial e_k = 1(k = y) - \mathrm{softmax}(-e/T)_k`.
    At T = 0.01 the softmax is one at the lowest energy and every update is the perceptron's. At
    T = inf it is 1/K whatever the energies are: the push is constant and energies drift without
    bound, while at finite T it dies out once the target wins.

    The rows have whole coordinates, the rate is 3 and b starts at (0, 1, 2): energies then never
    tie, so that every lead is at least 1, a hundred times T.
    """
    key = Key.of(seed)
    x, y = blobs(key.fold("data"), [[3, 0], [-3, 3], [-3, -3]], 2.0, 150)
    whole = {"x": x.round(), "y": y}
    cold = _path(SoftMin(0.01), whole, seed)
    sharp = _path(Perceptron(), whole, seed)
    gap = float((cold - sharp).abs().max())
    moves = int((sharp.diff(dim=0).abs().amax(1) > 0).sum())

    data = {"x": x, "y": y}
    epochs = 100
    energies: dict[float, Tensor] = {}
    errors: dict[float, Tensor] = {}
    sizes: dict[float, Tensor] = {}
    for T in TEMPERATURES:
        watch = Watch(lambda e: _look(e, x, y))
        energy = LinearEnergy(2, 3).double()
        solver = Stochastic(sgd, lr=0.05, batch_size=None, max_epochs=2 * epochs, tol=None)
        fit(energy, data, SoftMin(T), solver, callbacks=[watch], random_state=seed)
        energies[T], errors[T], sizes[T] = watch.seen.unbind(1)
    growth = {T: float(s[2 * epochs] / s[epochs]) for T, s in sizes.items()}
    hot = energies[math.inf]
    line = torch.linspace(0, float(hot[-1]), len(hot), dtype=hot.dtype)
    bend = float((hot - line).abs().max() / hot[-1].abs())
    accuracy = {T: 1 - float(e[-1]) for T, e in errors.items()}

    claims = [
        Claim.at_most("T = 0.01: largest gap of any parameter to the perceptron's, all steps",
                      gap, 1e-12),
        Claim.at_least("steps in which the perceptron moved", moves, 20),
        Claim.at_most("T = inf: bend of the target's energy trace, relative to a line", bend, 1e-9),
        Claim.close("T = inf: size of θ after twice the steps, relative", growth[math.inf], 2.0,
                    tol=1e-9),
        Claim.at_most("T = 1: size of θ after twice the steps, relative", growth[1.0], 1.5),
        Claim.below("T = inf: target energy at the end", float(hot[-1]), 0.0),
    ]  # fmt: skip
    numbers = {
        "gap to perceptron": gap,
        "moves": moves,
        "growth": {str(T): g for T, g in growth.items()},
        "accuracy": {str(T): a for T, a in accuracy.items()},
    }

    def draw(figure: Figure) -> None:
        left, middle, right = figure.subplots(1, 3)
        for T, colour in zip(TEMPERATURES, COLOURS):
            name = f"T = {T:g}"
            left.plot(energies[T].numpy(), color=colour, label=name)
            middle.plot(1 - errors[T].numpy(), color=colour, label=name)
            right.plot(sizes[T].numpy(), color=colour, label=name)
        left.set(title="mean energy of the target", xlabel="step")
        middle.set(title="accuracy", xlabel="step")
        right.set(title="size of θ", xlabel="step", yscale="log")
        left.legend()

    return Result(claims, numbers, draw, size=(10.0, 3.2))


def _path(rule: Rule, data: dict[str, Tensor], seed: int) -> Tensor:
    """θ after every single-row step, ``(steps, P)``."""
    energy = LinearEnergy(2, 3).double()
    assert energy.b is not None
    with torch.no_grad():
        energy.b.copy_(torch.arange(3.0))
    snapshots = Snapshots()
    solver = Stochastic(sgd, lr=3.0, batch_size=1, max_epochs=3, tol=None)
    fit(energy, data, rule, solver, callbacks=[snapshots], random_state=seed)
    return snapshots.draws.theta


def _look(energy: Energy, x: Tensor, y: Tensor) -> Tensor:
    """Mean energy of the target, error, and size of θ."""
    e = energy.table("y", x=x)
    size = torch.cat([p.reshape(-1) for p in energy.parameters()]).norm()
    return torch.stack([e.gather(1, y[:, None]).mean(), zero_one(e, y), size])
