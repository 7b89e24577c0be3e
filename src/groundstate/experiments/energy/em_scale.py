r"""The cost of a mini-batch EM step does not depend on the number of rows."""

from __future__ import annotations

import time

import torch
from torch import Tensor

from groundstate.compute.random import Key
from groundstate.energy import CentroidEnergy, Energy
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.experiments.tools import Watch, blobs
from groundstate.learn import EM, NLL, Callback, Run, fit

SIZES = (10**3, 10**4, 10**5, 10**6)
BATCH, STEPS = 250, 200
LOOKS = tuple(sorted({1, 2, 3, 5, 8, 12, 20, 30, 50, 80, 120, STEPS}))
CENTRES = [[-3.0, -1.0], [-2.5, 1.5], [0.0, 2.5], [2.5, 1.5], [2.75, -1.5]]
START = 0.1 * torch.tensor(CENTRES, dtype=torch.float64)


class Clock(Callback):
    """Times the steps and ends the run after a number of them.

    Parameters
    ----------
    steps : steps of the run
    rows : sample on which the bound is noted at ``LOOKS``; the time it takes does not count
    """

    def __init__(self, steps: int, rows: Tensor | None = None) -> None:
        self.steps, self.rows = steps, rows
        self.times: list[float] = []
        self.bounds: list[float] = []

    def on_begin(self, run: Run) -> None:
        self.begun = time.perf_counter()

    def on_step(self, run: Run) -> bool:
        self.times.append(time.perf_counter() - self.begun)
        if self.rows is not None and run.total_steps in LOOKS:
            self.bounds.append(bound_of(run.energy, self.rows))
        self.begun = time.perf_counter()
        return run.total_steps >= self.steps


def bound_of(energy: Energy, x: Tensor) -> float:
    """Mean log-likelihood, which the bound touches after the E-step."""
    with torch.no_grad():
        return -float(NLL()(energy, {"x": x}).loss.mean())


def started() -> CentroidEnergy:
    """Five centroids near the origin, in the directions of the clusters."""
    energy = CentroidEnergy(5, 2).double()
    energy.mu.data.copy_(START)
    return energy


@experiment(
    "ENE-X-em-scale", theme="energy", title="Minibatch EM cost does not grow with N", slow=True
)
def em_scale(seed: int = 0, *, quick: bool = False) -> Result:
    r"""A step of stochastic EM sees n rows and costs :math:`O(n)`, whatever N is:

    .. math:: s \leftarrow (1 - \rho_t)\,s + \rho_t\,\frac1n\sum_{i \in \text{batch}}
              E_{q_i}[t(x_i, z)], \qquad \rho_t = (t + 2)^{-.7},

    where full EM reads all N rows for every step of θ. From a thousand to a million rows of five
    clusters, 200 steps of 250 rows cost the same time and end within 1 % of full EM's bound.
    """
    key = Key.of(seed)
    sample, _ = blobs(key.fold("sample"), CENTRES, 1.0, 2000)
    data = {N: blobs(key.fold("data", N), CENTRES, 1.0, N)[0] for N in SIZES}
    solver = EM(batch_size=BATCH, max_iter=10**6, tol=None)
    fits: dict[int, list[float]] = {N: [] for N in SIZES}
    curves: dict[int, list[float]] = {}
    bounds: dict[str, list[float]] = {"mini-batch": [], "full": []}
    for repeat in range(1 if quick else 3):
        for N, x in data.items():
            energy, clock = started(), Clock(STEPS, sample if repeat == 0 else None)
            fit(energy, {"x": x}, NLL(), solver, callbacks=[clock], random_state=seed)
            fits[N].append(float(torch.tensor(clock.times[5:], dtype=torch.float64).median()))
            if repeat == 0:
                curves[N] = clock.bounds
                bounds["mini-batch"].append(bound_of(energy, x))
    full: dict[int, list[float]] = {}
    full_seconds = []
    for N, x in data.items():
        energy, watch = started(), Watch(lambda e: bound_of(e, sample))
        history = fit(energy, {"x": x}, NLL(), EM(max_iter=500, tol=1e-6), callbacks=[watch])
        full[N] = watch.seen.tolist()
        full_seconds.append(min(history.seconds))
        bounds["full"].append(bound_of(energy, x))

    step = {N: min(found) for N, found in fits.items()}
    ratio = max(step.values()) / min(step.values())
    worst = max(abs(1 - a / b) for a, b in zip(bounds["mini-batch"], bounds["full"]))
    claims = [
        Claim.at_most("time of a step: largest over N against smallest", ratio, 2.0).on_the_clock(),
        Claim.at_most("largest relative distance of the bound from full EM's", worst, 0.01),
    ]
    numbers = {"N": list(SIZES), **bounds, "distance": worst, "rows seen": BATCH * STEPS}
    seconds = {"step": list(step.values()), "full iteration": full_seconds, "ratio": ratio}

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2)
        for (N, curve), colour in zip(curves.items(), COLOURS):
            seen = [BATCH * t for t in LOOKS]
            left.plot(seen, curve, color=colour, label=f"mini-batch, N = {N:,}")
            rows = [N * max(t, 0.5) for t in range(len(full[N]))]
            left.plot(rows, full[N], color=colour, linestyle=":", marker=".", markersize=4)
        left.plot([], [], color="black", linestyle=":", label="full EM")
        left.set(xscale="log", xlabel="rows seen", title="bound on a sample")
        left.legend(loc="lower right")
        right.loglog(SIZES, [1e3 * s for s in step.values()], "o-", color=COLOURS[0],
                     label="mini-batch step")  # fmt: skip
        right.loglog(SIZES, [1e3 * s for s in full_seconds], "o:", color=COLOURS[1],
                     label="full iteration")  # fmt: skip
        right.set(xlabel="rows N", title="milliseconds for one move of θ")
        right.legend()

    return Result(claims, numbers, draw, seconds)
