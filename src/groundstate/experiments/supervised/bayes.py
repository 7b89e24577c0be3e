r"""The Gibbs posterior narrows with β and N; noisy learning draws from it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from groundstate.compute.random import Key
from groundstate.energy import CentroidEnergy
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.experiments.supervised.scenes import F64, friedman
from groundstate.infer import Metropolis, minimise, sample
from groundstate.learn import (
    SGLD,
    GaussianPrior,
    Naive,
    ParameterEnergy,
    Snapshots,
    Stochastic,
    fit,
    sgd,
)
from groundstate.learn.base import Batch
from groundstate.learn.posterior.averaging import GibbsPosterior
from groundstate.models.ensembles.snapshots.snapshot_ensemble_regressor import (
    SnapshotEnsembleRegressor,
)

ROWS = torch.tensor([1.0, 2.0, 6.0], dtype=torch.float64)
PRIOR = GaussianPrior(1.0)
DISTRIBUTIONS = {  # prior, β and repetitions of the rows: mean and variance of θ
    "flat, β = 1": (None, 1.0, 1, 3.0, 1 / 3),
    "flat, β = ½": (None, 0.5, 1, 3.0, 2 / 3),
    "N(0, 1), β = 1": (PRIOR, 1.0, 1, 2.25, 0.25),
    "N(0, 1), β = ½": (PRIOR, 0.5, 1, 1.8, 0.4),
    "N(0, 1), β = 1, four times the rows": (PRIOR, 1.0, 4, 36 / 13, 1 / 13),
}


def posterior(prior: Any, beta: float, times: int) -> GibbsPosterior:
    r""":math:`q(\theta) \propto p(\theta)\,e^{-\beta\sum_i\frac12(x_i - \theta)^2}`."""
    x = ROWS.repeat(times)[:, None]
    data = {"x": x, "z": torch.zeros(len(x), dtype=torch.int64)}
    return GibbsPosterior(CentroidEnergy(1, 1).double(), prior, beta).fit(data)


def walk(energy: ParameterEnergy, draws: int, key: Key) -> F64:
    """Independent chains of Metropolis, the last state of each."""
    found = sample(energy, "theta", n=draws, method=Metropolis(n_steps=60), generator=key.torch(),
                   init={"theta": energy.theta + 2.0})["theta"]  # fmt: skip
    flat: F64 = found.reshape(-1).numpy()
    return flat


class Drawn:
    """A stream of single rows, drawn with replacement for every chain on its own."""

    def __init__(self, key: Key, chains: int, length: int) -> None:
        self.generator, self.chains, self.length = key.torch(), chains, length

    def __len__(self) -> int:
        return self.length

    def __iter__(self) -> Iterator[Batch]:
        for _ in range(self.length):
            pick = torch.randint(len(ROWS), (1, self.chains), generator=self.generator)
            yield {"x": ROWS[pick], "z": torch.zeros(1, dtype=torch.int64)}


def learned(
    key: Key, chains: int, data: Any, solver: Any, penalty: Any, every: int, start: int
) -> Tensor:
    """Snapshots of θ, ``(snapshots, chains)``; every coordinate is a chain."""
    energy = CentroidEnergy(1, chains).double()
    torch.nn.init.constant_(energy.mu, 2.25)
    snapshots = Snapshots(start=start, every=every)
    fit(energy, data, Naive(), solver, penalty=penalty, callbacks=[snapshots], random_state=key)
    return snapshots.draws.theta


def committee(key: Key, seed: int) -> dict[str, list[float]]:
    """Test errors of members and of their mean: snapshots of one run, and runs of their own."""
    X, y, _ = friedman(key.fold("train").numpy(), 300)
    Z, t, _ = friedman(key.fold("test").numpy(), 1000)
    mean, sd = X.mean(0), X.std(0)
    X, Z = (X - mean) / sd, (Z - mean) / sd
    one = SnapshotEnsembleRegressor(random_state=seed, batch_size=8).fit(X, y)
    runs = [
        SnapshotEnsembleRegressor(n_snapshots=1, random_state=s, batch_size=8).fit(X, y)
        for s in range(10)
    ]
    rows = torch.from_numpy(Z)
    with torch.no_grad():
        predicted = {
            "snapshots": [minimise(m, "y", {"x": rows})["y"][:, 0].numpy() for m in one.members_],
            "runs": [run.predict(Z) for run in runs],
        }
    found = {}
    for name, answers in predicted.items():
        f = np.array(answers)
        member, whole = float(((f - t) ** 2).mean()), float(((f.mean(0) - t) ** 2).mean())
        found[name] = [member, whole, float(f.var(0).mean())]
    return found


@experiment(
    "SUP-X-bayes", theme="supervised", title="The Gibbs posterior narrows with β and N", slow=True
)
def bayes(seed: int = 0, *, quick: bool = False) -> Result:
    r""":math:`q(\theta) \propto p(\theta)e^{-\beta\sum_iL_i(\theta)}`: for :math:`L = \tfrac12(x - \theta)^2`
    and the rows {1, 2, 6} it is :math:`N(3, 1/3\beta)` with a flat prior and
    :math:`N(9\beta/(3\beta + 1), 1/(3\beta + 1))` with N(0, 1). Metropolis pays one pass over the
    rows per proposal; noisy descent (SGLD) needs no rejection, and has the variance :math:`.25/(1 -
    \epsilon) = .252525` at ε = .01.

    4,000 chains of Metropolis for each distribution, 10,000 of SGLD; descent row by row at a
    constant and at a falling rate; ten snapshots of one run against ten runs on Friedman's
    function.
    """
    key = Key.of(seed)
    draws = 2000 if quick else 4000
    claims, drawn = list[Claim](), dict[str, F64]()
    numbers: dict[str, Any] = {}
    for name, (prior, beta, times, mean, variance) in DISTRIBUTIONS.items():
        q = posterior(prior, beta, times)
        off = max(
            abs(q.distribution.mean.item() - mean), abs(q.distribution.variance.item() - variance)
        )
        claims.append(Claim.at_most(f"{name}: closed form, largest error", off, 1e-9))
        drawn[name] = values = walk(q.theta, draws, key.fold(name))
        numbers[name] = [float(values.mean()), float(values.var(ddof=1))]
        claims += _within(name, values, mean, variance)
    name = "N(0, 1), β = 1"
    noise = key.fold("predictive").numpy().standard_normal(draws)
    claims += _within("predictive", drawn[name] + noise, 2.25, 1.25)

    ahead: Any = posterior(PRIOR, 1.0, 1).predictive({"z": torch.zeros(1, dtype=torch.int64)})
    off = max(abs(ahead.mean.item() - 2.25), abs(ahead.variance.item() - 1.25))
    claims.append(Claim.at_most("predictive: closed form, largest error", off, 1e-9))

    counted = posterior(PRIOR, 1.0, 1).theta
    before, steps = counted.passes, 50
    sample(counted, "theta", n=1, method=Metropolis(n_steps=steps, adapt=False, burn_in=0),
           generator=key.fold("count").torch(), init={"theta": counted.theta})  # fmt: skip
    passes = counted.passes - before
    chains = 5000 if quick else 10_000
    batch = {"x": ROWS[:, None].expand(-1, chains), "z": torch.zeros(3, dtype=torch.int64)}
    sgld = learned(key, chains, batch, SGLD(0.01, batch_size=None, max_epochs=500), PRIOR, 100, 400)
    values = sgld.reshape(-1).numpy()
    claims += _within("SGLD, ε = .01", values, 2.25, 0.25 / (1 - 0.01))
    spread = {}
    for word, schedule in (("constant", None), ("falling", lambda done: 0.01**done)):
        solver = Stochastic(sgd, lr=0.1, batch_size=None, max_epochs=2, tol=None, schedule=schedule)
        stream = Drawn(key.fold("stream", word), 4000, 200)
        spread[word] = float(learned(key, 4000, stream, solver, None, 100, 300).var())
    lost = 1 - spread["falling"] / spread["constant"]
    crowd = committee(key.fold("committee"), seed)
    claims += [
        Claim.equal("Metropolis: passes over the rows for 50 proposals, less the one at the start",
                    passes - 1, steps),
        Claim.at_least("share of the variance that a falling rate loses", lost, 0.8),
        Claim.at_most("snapshots: loss of their mean less the mean of their losses",
                      crowd["snapshots"][1] - crowd["snapshots"][0], 0.0),
        Claim.at_most("runs: the same", crowd["runs"][1] - crowd["runs"][0], 0.0),
    ]  # fmt: skip
    numbers |= {"SGLD": [float(values.mean()), float(values.var())], "passes": passes,
                "SGD variance": spread, "member, mean, variance": crowd}  # fmt: skip

    def draw(figure: Figure) -> None:
        left, middle, right = figure.subplots(1, 3)
        t = np.linspace(-1, 6, 300)
        for (name, (_, _, _, mean, variance)), colour in zip(DISTRIBUTIONS.items(), COLOURS):
            left.hist(drawn[name], 50, density=True, color=colour, alpha=0.25)
            left.plot(t, _normal(t, mean, variance), color=colour, label=name)
        left.set(title="posteriors: Metropolis and formula", xlabel="θ", yticks=[])
        left.legend(fontsize=6)
        middle.hist(values, 60, density=True, color=COLOURS[0], alpha=0.4, label="SGLD, ε = .01")
        middle.plot(t, _normal(t, 2.25, 0.25 / 0.99), color=COLOURS[0])
        middle.set(title="noisy descent", xlabel="θ", yticks=[], xlim=(0, 4.5))
        middle.legend()
        for k, (name, (member, whole, _)) in enumerate(crowd.items()):
            right.bar([3 * k, 3 * k + 1], [member, whole], color=(COLOURS[5], COLOURS[2]))
            right.text(3 * k + 0.5, member, name, ha="center", va="bottom")
        right.set(title="mean loss of members, loss of their mean", xticks=[])
        right.set_ylim(0, 1.15 * max(v[0] for v in crowd.values()))

    return Result(claims, numbers, draw, size=(11.0, 3.4))


def _within(name: str, values: F64, mean: float, variance: float) -> list[Claim]:
    """Mean and variance within three standard errors."""
    n, spread = len(values), float(values.var(ddof=1))
    return [
        Claim.close(f"{name}: mean", float(values.mean()), mean, tol=3 * math.sqrt(variance / n)),
        Claim.close(f"{name}: variance", spread, variance, tol=3 * variance * math.sqrt(2 / n)),
    ]


def _normal(t: F64, mean: float, variance: float) -> F64:
    density: F64 = np.exp(-((t - mean) ** 2) / (2 * variance)) / math.sqrt(2 * math.pi * variance)
    return density
