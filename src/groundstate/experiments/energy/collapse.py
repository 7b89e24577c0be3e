r"""Lowering the energy of the data alone fails: every energy falls and nothing is told apart."""

from __future__ import annotations

import warnings

import torch
from torch import Tensor

from groundstate.compute.random import Key
from groundstate.energy import LinearEnergy, NetEnergy
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.experiments.tools import accuracy, blobs, landscape, regions, scatter
from groundstate.infer import Quadrature
from groundstate.learn import NLL, History, Naive, Perceptron, Rule, SoftMin, Stochastic, fit, sgd


def descend(
    energy: LinearEnergy, data: dict[str, Tensor], rule: Rule, n: int, lr: float
) -> History:
    """``n`` gradient steps on all rows."""
    solver = Stochastic(sgd, lr=lr, batch_size=None, max_epochs=n, tol=None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # Naive warns of exactly what is shown here
        return fit(energy, data, rule, solver, random_state=0)


@experiment("ENE-X-collapse", theme="energy", title="Lowering data energy alone fails", slow=True)
def collapse(seed: int = 0, *, quick: bool = False) -> Result:
    r"""Without a contrast R, energies fall for ever and the classes are not told apart.

    Two classes at (6, 5) and (4, 5), noise 0.5, and the linear energy :math:`e(x, y) = -w_y^\top x`.
    ``Naive`` has :math:`L = e`, so the gradient of :math:`w_k` is the constant
    :math:`-\pi_k\bar x_k`: after 200 steps of 0.01 the mean energy is
    :math:`-2\cdot\tfrac12\cdot\tfrac12(61 + 41) = -51`, on a straight line, and the class with the
    longer mean wins everywhere. ``SoftMin`` and ``Perceptron`` (2000 steps of 0.02) raise what is not
    the data and learn.
    """
    key = Key.of(seed)
    x, y = _classes(key.fold("data", 0), 2000)
    new = [_classes(key.fold("test", i), 200_000) for i in range(3 if quick else 5)]
    data = {"x": x, "y": y}

    naive = LinearEnergy(2, 2, bias=False).double()
    energies = torch.tensor(descend(naive, data, Naive(), 200, 0.01).objective)  # before each step
    with torch.no_grad():
        last = float(naive(**data).mean())
    line = torch.linspace(0.0, float(energies[-1]), len(energies), dtype=energies.dtype)
    bend = float((energies - line).abs().max() / abs(last))
    with_bias = LinearEnergy(2, 2).double()
    descend(with_bias, data, Naive(), 200, 0.01)
    scores = {"Naive": accuracy(naive, *new[0]), "Naive with b": accuracy(with_bias, *new[0])}

    learned: dict[str, LinearEnergy] = {}
    traces = {"Naive": energies}
    rules: list[tuple[Rule, int]] = [(SoftMin(), len(new)), (Perceptron(), 1)]
    for rule, repeats in rules:
        name, right = type(rule).__name__, []
        for i, test in enumerate(new[:repeats]):  # of one data set alone SoftMin moves by 0.1 %
            rows = _classes(key.fold("data", i), 2000)
            energy = LinearEnergy(2, 2).double()
            trace = descend(energy, {"x": rows[0], "y": rows[1]}, rule, 2000, 0.02).positive
            right.append(accuracy(energy, *test))
            if i == 0:
                learned[name], traces[name] = energy, torch.tensor(trace[:200])
        scores[name] = sum(right) / len(right)

    claims = [
        Claim.close("Naive: mean data energy after 200 steps", last, -51.0, tol=0.5),
        Claim.at_most("Naive: bend of the energy trace, relative to a line", bend, 1e-6),
        Claim.between("Naive: accuracy", scores["Naive"], 0.45, 0.55),
        Claim.between("Naive with an offset b: accuracy", scores["Naive with b"], 0.45, 0.55),
        Claim.at_least("SoftMin: accuracy", scores["SoftMin"], 0.93),
        Claim.at_least("Perceptron: accuracy", scores["Perceptron"], 0.93),
    ]
    nets = _nets(key, x, 60 if quick else 200)

    def draw(figure: Figure) -> None:
        axes = figure.subplots(2, 3)
        for (name, trace), colour in zip(traces.items(), COLOURS):
            axes[0, 0].plot(trace.numpy(), color=colour, label=name)
        axes[0, 0].set(title="mean energy of the data", xlabel="step")
        axes[0, 0].legend()
        for ax, (name, e) in zip(axes.flat[1:], [("Naive", naive), *learned.items()]):
            regions(ax, e, x, y)
            ax.set_title(f"{name}: {scores[name]:.1%} right")
        for ax, (name, net) in zip(axes.flat[4:], nets.items()):
            landscape(ax, lambda v, net=net: net(x=v), _unit(x))  # type: ignore[misc]
            scatter(ax, _unit(x), rows=150)
            ax.set_title(f"network energy, {name}")

    return Result(claims, {"energy": last, "bend": bend, **scores}, draw, size=(9.0, 5.6))


def _classes(key: Key, n: int) -> tuple[Tensor, Tensor]:
    return blobs(key, [[6, 5], [4, 5]], 0.5, n)


def _unit(x: Tensor) -> Tensor:
    return (x - x.mean(0)) / x.std(0)


def _nets(key: Key, x: Tensor, steps: int) -> dict[str, NetEnergy]:
    """A network energy of x alone, with and without a contrast, for the picture."""
    nets = {}
    rules: dict[str, Rule] = {"R = 0": Naive(), "R = F": NLL(approximate=Quadrature(points=40))}
    for name, rule in rules.items():
        generator = key.fold("net").torch()
        net = NetEnergy(2, (16, 16), confine=0.0, low=-4.0, high=4.0, generator=generator).double()
        solver = Stochastic(lr=0.02, batch_size=None, max_epochs=steps, tol=None)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            fit(net, {"x": _unit(x)[:300]}, rule, solver, random_state=0)
        nets[name] = net
    return nets
