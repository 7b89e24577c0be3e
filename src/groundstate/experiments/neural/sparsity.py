r"""L1 by its proximal map gives exact zeros; L2 and the subgradient of L1 do not."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from groundstate.compute.random import Key
from groundstate.energy.networks.location import LocationHead
from groundstate.energy.networks.network import NetworkEnergy
from groundstate.experiments.base import COLOURS, Axes, Claim, Figure, Result, experiment
from groundstate.learn import L1, L2, NLL, Stochastic, fit
from groundstate.models.linear.least_squares.ridge import Ridge
from groundstate.models.linear.paths import lasso_path
from groundstate.nn import MLP

F64 = NDArray[np.float64]
INPUTS, RELEVANT, ROWS, LAMBDA = 50, 3, 300, 1.0
WAYS: dict[str, tuple[Any, bool]] = {
    "L1, proximal": (L1(3.0), True),
    "L1, subgradient": (L1(3.0), False),
    "L2": (L2(3.0), True),
}


def weights(data: dict[str, Tensor], key: Key, penalty: Any, prox: bool) -> Tensor:
    """All weights of a 50-16-1 net learned under the penalty, without biases."""
    net = MLP(INPUTS, (16,), 1, "tanh", generator=key.fold("net").torch())
    energy = NetworkEnergy(INPUTS, LocationHead("squared_error"), net)
    solver = Stochastic("adam", lr=0.01, batch_size=50, max_epochs=150, tol=None, prox=prox)
    fit(energy, data, NLL(), solver, penalty=penalty, random_state=key.fold("order"))
    return torch.cat([p.detach().reshape(-1) for n, p in net.named_parameters() if "weight" in n])


@experiment("NEU-X-sparsity", theme="neural", title="L1 gives exact zeros, L2 does not", slow=True)
def sparsity(seed: int = 0, *, quick: bool = False) -> Result:
    r"""For one weight :math:`(\theta - a)^2 + \lambda|\theta|` is least at
    :math:`\operatorname{sign}(a)\max(|a| - \lambda/2, 0)`: exactly zero for :math:`|a| \le \lambda/2`, because
    the penalty has a kink there with slopes ±λ; :math:`(\theta - a)^2 + \lambda\theta^2` only shrinks to
    :math:`a/(1 + \lambda)`. Steps along a subgradient hop around the kink and never land on it; the
    proximal step does.

    A 50-16-1 tanh net on 300 rows of which 3 inputs matter; paths of the linear Lasso and ridge; the
    sinkhole of the penalty, and the Laplace priors :math:`\tfrac\lambda2e^{-\lambda|\theta|}`.
    A run takes two seconds and repeats nothing; quick ones are the same.
    """
    key = Key.of(seed)
    generator = key.fold("rows").torch()
    x = torch.randn(ROWS, INPUTS, generator=generator)
    y = (
        1.5 * x[:, :1]
        - x[:, 1:2]
        + torch.sin(2 * x[:, 2:3])
        + 0.1 * torch.randn(ROWS, 1, generator=generator)
    )
    found = {name: weights({"x": x, "y": y}, key, *way) for name, way in WAYS.items()}
    zeros = {name: float((w == 0).double().mean()) for name, w in found.items()}

    a = torch.linspace(-2, 2, 401, dtype=torch.float64)
    # the loss (θ − a)² has curvature 2: its proximal step is ½
    l1, l2 = L1(LAMBDA).prox_of(a, 0.5), L2(2 * LAMBDA).prox_of(a, 0.5)
    grid = torch.linspace(-2.5, 2.5, 50_001, dtype=torch.float64)
    brute = torch.stack(
        [grid[((grid - at).square() + LAMBDA * grid.abs()).argmin()] for at in a[::20]]
    )
    inside = a.abs() <= LAMBDA / 2 + 1e-12
    h = torch.tensor([-1e-6, 0.0, 1e-6], dtype=torch.float64)
    kink = [float(v) for v in torch.stack([L1(LAMBDA).value_of(t) for t in h]).diff() / 1e-6]

    X, t = x.double().numpy(), y[:, 0].double().numpy()
    X, t = X - X.mean(0), t - t.mean()
    top = float(np.abs(X.T @ t).max() / ROWS)
    alphas = top * np.logspace(0, -3, 40)
    _, lasso, _ = lasso_path(X, t, alphas=list(alphas))
    strengths = np.logspace(5, -1, 40)
    ridge = np.stack([Ridge(alpha=s, fit_intercept=False).fit(X, t).coef_ for s in strengths], 1)
    claims = [
        Claim.above("proximal L1: share of weights that are 0", zeros["L1, proximal"], 0.3),
        Claim.equal("subgradient of L1: share of weights that are 0", zeros["L1, subgradient"], 0.0),
        Claim.equal("L2: share of weights that are 0", zeros["L2"], 0.0),
        Claim.equal("one weight: 0 exactly for |a| ≤ λ/2", bool(((l1 == 0) == inside).all()), True),
        Claim.at_most("one weight: L1 against the grid", float((l1[::20] - brute).abs().max()), 1e-4),
        Claim.at_most("one weight: L2 against a/(1 + λ)", float((l2 - a / (1 + LAMBDA)).abs().max()), 1e-12),
        Claim.close("slope of the penalty left of 0", kink[0], -LAMBDA, tol=1e-6),
        Claim.close("slope of the penalty right of 0", kink[1], LAMBDA, tol=1e-6),
        Claim.equal("linear Lasso: zeros at its largest α", int((lasso[:, 0] == 0).sum()), INPUTS),
        Claim.equal("linear ridge: zeros anywhere", int((ridge == 0).sum()), 0),
    ]  # fmt: skip
    numbers = {"zeros": zeros, "kink": kink, "lasso zeros": (lasso == 0).sum(0).tolist()}

    def draw(figure: Figure) -> None:
        axes = figure.subplots(2, 3)
        _path(axes[0, 0], alphas, lasso, "Lasso")
        _path(axes[0, 1], strengths, ridge, "ridge")
        for (name, w), colour in zip(found.items(), COLOURS):
            axes[0, 2].plot(np.sort(w.abs().numpy()) + 1e-7, color=colour, label=name)
        axes[0, 2].set(title="weights of the net by size", yscale="log")
        axes[0, 2].legend()
        u, v = np.meshgrid(np.linspace(-1.2, 2.2, 121), np.linspace(-1.2, 2.2, 121))
        e = (u - 1.4) ** 2 + (v - 0.4) ** 2 + 1.5 * (np.abs(u) + np.abs(v))
        axes[1, 0].contourf(u, v, e, levels=24, cmap="viridis")
        axes[1, 0].plot(
            u.flat[e.argmin()], v.flat[e.argmin()], "*", color=COLOURS[1], markersize=11
        )
        axes[1, 0].set(
            title="the sinkhole: least on an axis", xlabel="θ₁", ylabel="θ₂", aspect="equal"
        )
        axes[1, 1].plot(a.numpy(), l1.numpy(), color=COLOURS[0], label="L1")
        axes[1, 1].plot(a.numpy(), l2.numpy(), color=COLOURS[1], label="L2")
        axes[1, 1].set(title="one weight: minimiser by a", xlabel="a")
        axes[1, 1].legend()
        s = np.linspace(-3, 3, 601)
        for rate, colour in zip((0.5, 1, 2, 3), COLOURS):
            axes[1, 2].plot(
                s, rate / 2 * np.exp(-rate * np.abs(s)), color=colour, label=f"λ = {rate:g}"
            )
        axes[1, 2].set(title="Laplace priors", xlabel="θ")
        axes[1, 2].legend()

    return Result(claims, numbers, draw, size=(10.0, 5.8))


def _path(ax: Axes, at: F64, coefs: F64, title: str) -> None:
    for j, row in enumerate(coefs):
        real = j < RELEVANT
        ax.semilogx(at, row, color=COLOURS[j] if real else "#c5c9d0", linewidth=1.4 if real else 0.5,
                    zorder=2 if real else 1)  # fmt: skip
    ax.set(title=f"{title}: weights by strength", xlabel="strength")
    ax.invert_xaxis()
