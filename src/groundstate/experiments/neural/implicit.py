r"""Steps of finite length follow the flow of a modified loss."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import torch
from torch import Tensor

from groundstate.compute.random import Key
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.math.optim import flow, gradient_descent, modified_loss

RATES = (0.08, 0.04, 0.02, 0.01)
BATCHES = 4


class Bowl:
    r"""One batch, :math:`\tfrac12(\theta - c)^\top A(\theta - c)`."""

    def __init__(self, A: Tensor, c: Tensor) -> None:
        self.A, self.c = A, c

    def __call__(self, theta: Tensor) -> Tensor:
        r = theta - self.c
        return 0.5 * (r @ self.A @ r)

    def gradient(self, theta: Tensor) -> Tensor:
        return self.A @ (theta - self.c)


def slope(errors: list[float]) -> float:
    """Order of the error: slope of its logarithm in that of the rate, at the last halving."""
    return float(np.log2(errors[-2] / errors[-1]))


@experiment("NEU-X-implicit", theme="neural", title="Descent follows a modified loss", slow=True)
def implicit(seed: int = 0, *, quick: bool = False) -> Result:
    r"""The flow :math:`\dot\theta = -\nabla L` misses a pass of mini-batch steps by :math:`O(\alpha^2)`.
    The flow of :math:`L_{SGD} = L + \tfrac\alpha4\|\nabla L\|^2 +
    \tfrac{\alpha}{4B}\sum_b\|\nabla L_b - \nabla L\|^2` misses their mean over the orders by
    :math:`O(\alpha^3)`, and without the last term, :math:`L_{GD}`, only full steps are met that well.

    Four random bowls in the plane as batches, curvatures 0.3 to 1.2, L their mean; α = 0.08 down to
    0.01. One pass in
    each of the 24 orders, or the same time in full steps; the order of an error is that of its last
    halving.
    A run takes about a second; quick ones are the same.
    """
    g = Key.of(seed).fold("bowls").torch()
    bowls = []
    for _ in range(BATCHES):
        turn, _ = torch.linalg.qr(torch.randn(2, 2, generator=g, dtype=torch.float64))
        curvatures = 0.3 + 0.9 * torch.rand(2, generator=g, dtype=torch.float64)
        centre = torch.randn(2, generator=g, dtype=torch.float64)
        bowls.append(Bowl(turn @ curvatures.diag() @ turn.T, centre))
    start = torch.tensor([2.0, -1.5], dtype=torch.float64)

    def L(theta: Tensor) -> Tensor:
        return torch.stack([bowl(theta) for bowl in bowls]).mean()

    def epoch(lr: float) -> Tensor:
        """The mean end of a pass over all orders."""
        ends = []
        for order in permutations(bowls):
            theta = start
            for bowl in order:
                theta = theta - lr * bowl.gradient(theta)
            ends.append(theta)
        return torch.stack(ends).mean(0)

    losses = ("L", "L_GD", "L_SGD")
    pass_error: dict[str, list[float]] = {name: [] for name in losses}
    step_error: dict[str, list[float]] = {name: [] for name in losses[:2]}
    for lr in RATES:
        follow = {"L": L, "L_GD": modified_loss(L, lr),
                  "L_SGD": modified_loss(L, lr, "sgd", bowls)}  # fmt: skip
        end, full = epoch(lr), gradient_descent(L, start, step=lr, tol=0.0, max_iter=BATCHES).x
        for name, loss in follow.items():
            there = flow(loss, start, BATCHES * lr)
            pass_error[name].append(float((there - end).norm()))
            if name in step_error:
                step_error[name].append(float((there - full).norm()))
    orders = {name: slope(errors) for name, errors in pass_error.items()}
    full_orders = {name: slope(errors) for name, errors in step_error.items()}
    claims = [
        Claim.close("a pass: order of the error with L", orders["L"], 2, tol=0.3),
        Claim.close("a pass: order of the error with L_GD", orders["L_GD"], 2, tol=0.3),
        Claim.close("a pass: order of the error with L_SGD", orders["L_SGD"], 3, tol=0.3),
        Claim.close("full steps: order of the error with L", full_orders["L"], 2, tol=0.3),
        Claim.close("full steps: order of the error with L_GD", full_orders["L_GD"], 3, tol=0.3),
        Claim.below("a pass at α = 0.01: error with L_SGD, against L_GD", pass_error["L_SGD"][-1],
                    pass_error["L_GD"][-1]),
    ]  # fmt: skip
    numbers = {"rates": list(RATES), "pass": pass_error, "full steps": step_error,
               "orders": orders, "orders of full steps": full_orders}  # fmt: skip

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2, width_ratios=(1.2, 1))
        coarse, n = 0.2, 12
        steps = gradient_descent(L, start, step=coarse, tol=0.0, max_iter=n).path
        times = np.linspace(0, n * coarse, 120).tolist()
        ways = {"flow of L": flow(L, start, times),
                "flow of L_GD": flow(modified_loss(L, coarse), start, times)}  # fmt: skip
        low, high = steps.min(0).values - 0.4, steps.max(0).values + 0.4
        a = torch.linspace(float(low[0]), float(high[0]), 60, dtype=torch.float64)
        b = torch.linspace(float(low[1]), float(high[1]), 60, dtype=torch.float64)
        grid = torch.stack(torch.meshgrid(a, b, indexing="xy"), -1).reshape(-1, 2)
        values = torch.func.vmap(L)(grid).reshape(60, 60)
        left.contour(a, b, values.sqrt(), levels=14, colors="#c9ced6", linewidths=0.7)
        left.plot(steps[:, 0], steps[:, 1], "o-", color="black", markersize=3, linewidth=0.7,
                  label=f"steps, α = {coarse}")  # fmt: skip
        for (name, way), colour in zip(ways.items(), COLOURS):
            left.plot(way[:, 0], way[:, 1], color=colour, label=name)
        left.set(title="full steps and the flows", xlabel="θ₁", ylabel="θ₂")
        for (name, errors), colour in zip(pass_error.items(), COLOURS):
            right.loglog(
                RATES, errors, "o-", color=colour, label=f"{name}: order {orders[name]:.2f}"
            )
        right.set(title="error after a pass, mean over orders", xlabel="α")
        for ax in (left, right):
            ax.legend()

    return Result(claims, numbers, draw, size=(9.0, 3.8))
