r"""Learning that does not settle but wanders draws the parameters from a distribution."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping

import numpy as np
import torch
from torch import Tensor
from torch.distributions import Normal

from groundstate.compute.random import Key
from groundstate.energy import CentroidEnergy
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.infer import HMC, minimise, sample
from groundstate.learn import (
    SGLD,
    GaussianPrior,
    Naive,
    ParameterEnergy,
    Penalty,
    Snapshots,
    Stochastic,
    fit,
    sgd,
)
from groundstate.learn.base import Batch, Solver

F64 = torch.float64
D = torch.tensor([1.0, 2.0, 6.0], dtype=F64)
SPREAD = float(D.var(correction=0))  # 14/3
EPS, ALPHA = 0.01, 0.1  # step of SGLD at N = 3, rate of SGD
PRIOR = GaussianPrior(1.0)


@experiment("ENE-X-theta", theme="energy", title="SGD and SGLD sample θ", slow=True)
def theta(seed: int = 0, *, quick: bool = False) -> Result:
    r"""The rows {1, 2, 6}, :math:`L_i = \tfrac12(x_i - \theta)^2` and a prior N(0, 1) make
    :math:`e(\theta) = \sum_i L_i + \tfrac12\theta^2`, whose distribution at temperature T is
    :math:`N(2.25, T/4)`; with N rows :math:`N(\sum x/(N+1), T/(N+1))`.

    ``SGLD`` with step ε has that mean and the variance
    :math:`\tfrac{T}{N+1}/(1 - \epsilon(N+1)/4)`: .252525 at T = 1, ε = .01. With a batch of one row
    the gradient's own noise adds :math:`(\epsilon N/2)^2\,\mathrm{Var}(x)` to every step. ``SGD``
    at a constant rate α needs no noise of ours to wander: its variance is
    :math:`\tfrac{\alpha}{2-\alpha}\mathrm{Var}(x) = .245614`. Every coordinate of θ is a chain.
    """
    key = Key.of(seed)
    chains = 5000 if quick else 10_000
    draws: dict[str, Tensor] = {}
    expected: dict[str, tuple[float, float]] = {}

    for T in (0.5, 1.0, 2.0, 4.0):
        name = f"SGLD, T = {T:g}"
        draws[name] = _sgld(key.fold("T", int(2 * T)), chains, EPS, T)
        expected[name] = (2.25, T * _variance(3, EPS))
    for n in (12, 48):
        eps = EPS * 4 / (n + 1)
        name = f"SGLD, N = {n}"
        draws[name] = _sgld(key.fold("N", n), chains, eps, 1.0, times=n // 3)
        expected[name] = (float(D.mean()) * n / (n + 1), _variance(n, eps))
    n, eps = 200, 1e-3
    stream = _Rows(key.fold("rows"), chains, n)
    draws["SGLD, batch of 1"] = _run(
        key, stream, SGLD(eps, max_epochs=2), chains, PRIOR, start=80, every=40
    )
    shrink = 1 - eps * (n + 1) / 2
    excess = (eps + (eps * n / 2) ** 2 * SPREAD) / (1 - shrink**2)
    expected["SGLD, batch of 1"] = (float(D.mean()) * n / (n + 1), excess)
    solver = Stochastic(sgd, lr=ALPHA, batch_size=None, max_epochs=2, tol=None)
    draws["SGD"] = _run(key, stream, solver, chains, None, start=80, every=40)
    expected["SGD"] = (float(D.mean()), ALPHA / (2 - ALPHA) * SPREAD)

    claims = []
    numbers: dict[str, dict[str, float]] = {}
    for name, (mean, variance) in expected.items():
        found = {"mean": float(draws[name].mean()), "variance": float(draws[name].var())}
        numbers[name] = found
        for what, value in (("mean", mean), ("variance", variance)):
            claims.append(
                Claim.close(f"{name}: {what} of θ", found[what], value, tol=0.03 * abs(value))
            )
    stated = {"SGLD, T = 1": 0.252525, "SGD": 0.245614}
    for name, value in stated.items():
        claims.append(Claim.close(f"{name}: the formula", expected[name][1], value, tol=1e-6))
    energy = ParameterEnergy(_model(1), Naive(), _batch(D[:, None]), PRIOR)
    best = float(minimise(energy, "theta", init={"theta": energy.theta})["theta"])
    exact = sample(
        energy, "theta", n=400, method=HMC(step_size=0.4, n_leapfrog=4, n_steps=25),
        init={"theta": energy.theta.expand(50, -1)}, generator=key.fold("hmc").torch(),
    )["theta"].reshape(-1)  # fmt: skip
    claims += [
        Claim.close("minimum of e(θ)", best, 2.25, tol=1e-6),
        Claim.close("HMC on e(θ): mean", float(exact.mean()), 2.25, tol=0.03 * 2.25),
        Claim.close("HMC on e(θ): variance", float(exact.var()), 0.25, tol=0.03 * 0.25),
    ]
    numbers["HMC"] = {"mean": float(exact.mean()), "variance": float(exact.var())}

    def draw(figure: Figure) -> None:
        panels = {
            "temperature": ["SGLD, T = 0.5", "SGLD, T = 1", "SGLD, T = 4"],
            "number of rows": ["SGLD, T = 1", "SGLD, N = 12", "SGLD, N = 48"],
            "noise of the gradient": ["SGLD, batch of 1", "SGD"],
        }
        for ax, (title, names) in zip(figure.subplots(1, 3), panels.items()):
            for name, colour in zip(names, COLOURS):
                values = draws[name].flatten().numpy()
                label = "SGLD, N = 3" if title == "number of rows" and name == names[0] else name
                ax.hist(values, 60, density=True, color=colour, alpha=0.35, label=label)
                mean, variance = expected[name]
                grid = np.linspace(values.min(), values.max(), 200)
                distribution = Normal(mean, math.sqrt(variance)).log_prob(torch.tensor(grid)).exp()
                ax.plot(grid, distribution.numpy(), color=colour)
            ax.set(title=title, xlabel="θ", yticks=[])
            ax.legend(loc="upper right")

    return Result(claims, numbers, draw, size=(11.0, 3.4))


def _variance(n: int, eps: float) -> float:
    """Of SGLD with all n rows and a prior of variance one, at T = 1."""
    return 1 / (n + 1) / (1 - eps * (n + 1) / 4)


def _model(chains: int) -> CentroidEnergy:
    """:math:`\\tfrac12\\|x - \\theta\\|^2` with one coordinate of θ per chain, started at the mode."""
    energy = CentroidEnergy(1, chains).double()
    torch.nn.init.constant_(energy.mu, 2.25)
    return energy


def _batch(x: Tensor) -> dict[str, Tensor]:
    return {"x": x, "z": torch.zeros(len(x), dtype=torch.int64)}


def _sgld(key: Key, chains: int, eps: float, T: float, times: int = 1) -> Tensor:
    """Draws with every row ``times`` over: a weight is the row so many times."""
    solver = SGLD(eps, T=T, batch_size=None, max_epochs=400)
    data, weight = _batch(D[:, None].expand(-1, chains)), torch.full_like(D, times)
    return _run(key, data, solver, chains, PRIOR, weight, start=100, every=100)


def _run(
    key: Key,
    data: Mapping[str, Tensor] | Iterable[Batch],
    solver: Solver,
    chains: int,
    penalty: Penalty | None,
    weight: Tensor | None = None,
    **when: int,
) -> Tensor:
    """Snapshots of θ, ``(snapshots, chains)``."""
    snapshots = Snapshots(**when)
    fit(
        _model(chains), data, Naive(), solver, penalty=penalty, sample_weight=weight,
        callbacks=[snapshots], random_state=key,
    )  # fmt: skip
    return snapshots.draws.theta


class _Rows:
    """A stream of batches of one row, drawn with replacement and for every chain on its own."""

    def __init__(self, key: Key, chains: int, length: int) -> None:
        self.generator, self.chains, self.length = key.torch(), chains, length

    def __len__(self) -> int:
        return self.length

    def __iter__(self) -> Iterator[Batch]:
        for _ in range(self.length):
            pick = torch.randint(len(D), (1, self.chains), generator=self.generator)
            yield _batch(D[pick])
