r"""Minibatch EM scales."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import torch
from torch import Tensor

from groundstate.compute.random import Key
from groundstate.energy.latent.gaussian_mixture import GaussianMixtureEnergy
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.experiments.tools import Watch, blobs
from groundstate.learn import NLL, Callback, MixtureEM, Run, fit

SIZES = (10**3, 10**4, 10**5, 10**6)
BATCH, STEPS, EVERY, WINDOW = 256, 400, 10, 10
CENTRES = [[-3.0, -1.0], [-2.5, 1.5], [0.0, 2.5], [2.5, 1.5], [2.75, -1.5]]
KINDS = ("stepwise", "gradient")


class Steps(Callback):
    """Times of the steps, and the likelihood of some rows after every so many of them."""

    def __init__(self, rows: Tensor) -> None:
        self.rows, self.times, self.seen = rows, [], []  # type: ignore[var-annotated]

    def on_begin(self, run: Run) -> None:
        self.seen.append(likelihood(run.energy, self.rows))
        self.begun = time.perf_counter()

    def on_step(self, run: Run) -> bool:
        self.times.append(time.perf_counter() - self.begun)
        if run.total_steps % EVERY == 0:
            self.seen.append(likelihood(run.energy, self.rows))
        self.begun = time.perf_counter()
        return run.total_steps >= STEPS


def likelihood(energy: Any, x: Tensor) -> float:
    """Mean log-likelihood."""
    with torch.no_grad():
        parts = [torch.logsumexp(-energy.energies(part), 1).sum() for part in x.split(2**17)]
    return float(sum(parts) / len(x))


def _started() -> GaussianMixtureEnergy:
    energy = GaussianMixtureEnergy(5, 2, "identity", uniform=True).double()
    energy.mu.data.copy_(0.1 * torch.tensor(CENTRES, dtype=torch.float64))
    return energy


@experiment("UNSX-sgd-em", theme="unsupervised", title="Minibatch EM scales", slow=True)
def sgd_em(seed: int = 0, *, quick: bool = False) -> Result:
    r"""Two ways to move θ after every 256 rows, whatever n is: averages of the statistics,
    :math:`s \leftarrow (1-\rho_t)s + \rho_t s_{batch}`, and the gradient,
    :math:`\mu_z \leftarrow \mu_z + \eta_t\,\overline{\alpha_z(x - \mu_z)}`.

    Five unit Gaussians, n from a thousand to a million: 400 steps of either cost the same time for
    every n and end within .01 nats of full EM. A step may lower the likelihood; its mean over ten
    looks rises until the end is reached.
    """
    key = Key.of(seed)
    sample, _ = blobs(key.fold("sample"), CENTRES, 1.0, 2000)
    seconds: dict[str, list[float]] = {kind: [] for kind in KINDS}
    curves: dict[str, list[float]] = {}
    apart, full_time, down, rise = 0.0, [], 0, np.inf
    numbers: dict[str, Any] = {"n": list(SIZES), "full": [], **{kind: [] for kind in KINDS}}
    for n in SIZES:
        x, _ = blobs(key.fold("data", n), CENTRES, 1.0, n)
        energy, watch = _started(), Watch(lambda e: likelihood(e, sample))
        history = fit(energy, {"x": x}, NLL(), MixtureEM(max_iter=500, tol=1e-7), callbacks=[watch])
        full_time.append(float(np.median(history.seconds)))
        numbers["full"].append(likelihood(energy, x))
        curves[f"full {n}"] = watch.seen.tolist()
        for kind in KINDS:
            energy, clock = _started(), Steps(sample)
            solver = MixtureEM(batch_size=BATCH, max_iter=10**6, tol=None, online=kind)
            fit(energy, {"x": x}, NLL(), solver, callbacks=[clock], random_state=seed)
            numbers[kind].append(likelihood(energy, x))
            seconds[kind].append(float(np.median(clock.times[10:])))
            curves[f"{kind} {n}"] = clock.seen
            looks = np.array(clock.seen)
            mean = np.convolve(looks, np.ones(WINDOW) / WINDOW, mode="valid")
            down += int((np.diff(looks) < 0).sum())
            rise = min(rise, float(np.diff(mean).min()))
            apart = max(apart, abs(numbers[kind][-1] - numbers["full"][-1]))
    slope = max(float(np.polyfit(np.log(SIZES), np.log(s), 1)[0]) for s in seconds.values())
    claims = [
        Claim.below("time of a step: its slope in n, both logarithmic", slope, 0.1).on_the_clock(),
        Claim.at_most("largest distance of a log-likelihood from full EM's", apart, 0.01),
        Claim.above("looks at which the likelihood of a sample had fallen", down, 0),
        Claim.at_least("least rise of its mean over ten looks", rise, -1e-3),
    ]
    numbers |= {"distance": apart, "falls": down, "rise": rise}

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2)
        for n, colour in zip((SIZES[0], SIZES[-1]), COLOURS):
            for kind, style in zip(KINDS, ("-", "--")):
                curve = curves[f"{kind} {n}"]
                rows = np.maximum(BATCH * EVERY * np.arange(len(curve)), BATCH)
                left.plot(rows, curve, style, color=colour, label=f"{kind}, n = {n:,}")
            curve = curves[f"full {n}"]
            left.plot(n * np.maximum(np.arange(len(curve)), 0.5), curve, ":", color=colour,
                      label=f"full, n = {n:,}")  # fmt: skip
        left.set(xscale="log", xlabel="rows touched", title="log-likelihood of a sample")
        left.legend()
        for kind, colour in zip(KINDS, COLOURS):
            right.loglog(SIZES, [1e3 * s for s in seconds[kind]], "o-", color=colour,
                         label=f"{kind} step")  # fmt: skip
        right.loglog(
            SIZES, [1e3 * s for s in full_time], "o:", color="black", label="full iteration"
        )
        right.set(xlabel="rows n", title="milliseconds for one move of θ")
        right.legend()

    return Result(claims, numbers, draw, {**seconds, "full": full_time}, size=(9.0, 3.4))
