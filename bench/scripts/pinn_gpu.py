"""Burgers' equation by a physics-informed network on a GPU, full size, to a relative error of 1e-3.

DeepXDE is not needed: the opponent is the loop it runs with the PyTorch backend, written out: nested
``autograd.grad(create_graph=True)`` for the derivatives and ``torch.optim.LBFGS`` with strong Wolfe
steps and a memory of 100, on the same points, from the same weights, in float64.

Usage: python bench/scripts/pinn_gpu.py [device]
"""

from __future__ import annotations

import csv
import math
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from groundstate import physics
from groundstate.compute.random import Key
from groundstate.energy import ResidualEnergy
from groundstate.learn import Callback, Naive, ResidentLBFGS, fit
from groundstate.models.physics.points import assembled
from groundstate.nn.coordinate import CoordinateNet
from groundstate.nn.coordinate.derivatives import derivatives

DEVICE = torch.device(sys.argv[1] if len(sys.argv) > 1 else "cuda")
HIDDEN, CONDITIONS, COLLOCATION = (20,) * 8, 100, 10_000
GOAL, SECONDS, STEPS = 1e-3, 100.0, 20_000


def wait() -> None:
    if DEVICE.type == "cuda":
        torch.cuda.synchronize()


def pieces(seed: int) -> tuple[Any, ...]:
    problem = physics.library["burgers"](0.01 / math.pi)
    key = Key.of(seed)
    net = CoordinateNet(2, 1, HIDDEN, low=problem.domain.low, high=problem.domain.high,
                        generator=key.fold("init").torch()).double().to(DEVICE)  # fmt: skip
    sides = problem.pieces(CONDITIONS, key.fold("conditions"))
    points = problem.domain.sample(COLLOCATION, key.fold("collocation"))
    rows = assembled(problem, sides, points, None, None, None, DEVICE, torch.float64)
    _, grid = problem.domain.grid((101, 201))
    exact = torch.tensor(problem.solution(grid), device=DEVICE)
    return problem, net, sides, rows, torch.tensor(grid, device=DEVICE), exact


class Watch(Callback):
    """Stops at the goal or when time is up; looking does not count."""

    def __init__(self, net: Any, grid: torch.Tensor, exact: torch.Tensor) -> None:
        self.net, self.grid, self.exact = net, grid, exact
        self.steps, self.looked, self.error, self.start = 0, 0.0, math.nan, time.perf_counter()

    def look(self) -> bool:
        self.steps += 1
        if self.steps % 25:
            return False
        wait()
        began = time.perf_counter()
        with torch.no_grad():
            off = self.net(self.grid)[:, 0] - self.exact
            self.error = float(off.norm() / self.exact.norm())
        self.looked += time.perf_counter() - began
        return self.error < GOAL or self.seconds() > SECONDS

    def seconds(self) -> float:
        return time.perf_counter() - self.start - self.looked

    def on_epoch(self, run: Any) -> bool | None:
        return self.look()


def ours(seed: int) -> Watch:
    problem, net, sides, rows, grid, exact = pieces(seed)
    energy = ResidualEnergy(net, problem.residual(sides), 2).double().to(DEVICE)
    watch = Watch(net, grid, exact)
    fit(energy, rows.data(False), Naive(over="y"), ResidentLBFGS(STEPS, 0.0),
        sample_weight=rows.row_weights([1.0, 1.0, 1.0]), callbacks=[watch])  # fmt: skip
    wait()
    return watch


def nested(seed: int) -> Watch:
    problem, net, _, rows, grid, exact = pieces(seed)
    nu = problem.parameters["nu"]
    inner, outer = rows.x[rows.term == 0].requires_grad_(), rows.x[rows.term == 1]
    target = rows.y[rows.term == 1]
    watch = Watch(net, grid, exact)
    optimiser = torch.optim.LBFGS(
        net.parameters(), lr=1.0, max_iter=25, max_eval=100, history_size=100, tolerance_grad=0.0,
        tolerance_change=0.0, line_search_fn="strong_wolfe",
    )  # fmt: skip

    def closure() -> torch.Tensor:
        optimiser.zero_grad()
        u = net(inner)
        slope = torch.autograd.grad(u.sum(), inner, create_graph=True)[0]
        bend = torch.autograd.grad(slope[:, 1].sum(), inner, create_graph=True)[0][:, 1]
        r = slope[:, 0] + u[:, 0] * slope[:, 1] - nu * bend
        loss = r.square().mean() + (net(outer) - target).square().mean()
        loss.backward()
        return loss

    for _ in range(STEPS // 25):
        optimiser.step(closure)
        watch.steps += 24
        if watch.look():
            break
    wait()
    return watch


def evaluation(seed: int = 0, n: int = 50) -> dict[str, float]:
    """Seconds of one loss with its gradient, jets against nested gradients, neither recorded."""
    _, net, _, rows, _, _ = pieces(seed)
    x, found = rows.x[rows.term == 0], {}
    theta = list(net.parameters())
    for how in ("jet", "nested"):
        for count in (5, n):
            wait()
            start = time.perf_counter()
            for _ in range(count):
                d = derivatives(net, x, [(0,), (1,), (1, 1)], how)
                r = d[0,] + d[()] * d[1,] - 0.003 * d[1, 1]
                torch.autograd.grad(r.square().mean(), theta)
            wait()
        found[how] = (time.perf_counter() - start) / n
    return found


def main() -> None:
    print(
        f"{torch.cuda.get_device_name() if DEVICE.type == 'cuda' else DEVICE}, torch {torch.__version__}"
    )
    each = evaluation()
    print(f"one evaluation: jets {1e3 * each['jet']:.2f} ms, nested {1e3 * each['nested']:.2f} ms")
    table = []
    for seed in (0, 1):
        for name, run in (("groundstate", ours), ("nested loop", nested)):
            watch = run(seed)
            seconds = watch.seconds()
            table.append((seed, name, seconds, watch.steps, watch.error))
            each_ms = 1e3 * seconds / watch.steps
            print(
                f"seed {seed} {name}: {seconds:.1f} s, {watch.steps} steps ({each_ms:.2f} ms each)"
            )
            print(f"    relative L2 error {watch.error:.2e}", flush=True)
    ratios = [b[2] / b[3] / (a[2] / a[3]) for a, b in zip(table[::2], table[1::2])]
    print(f"ratio of times per step: {np.mean(ratios):.2f}")
    if "OUT" in os.environ:
        with (Path(os.environ["OUT"]) / "pinn_gpu.csv").open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["seed", "who", "seconds", "steps", "relative L2 error"])
            writer.writerows(table)


if __name__ == "__main__":
    main()
