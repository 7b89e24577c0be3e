r"""Short chains from the data are biased; long ones, and chains that never stop, less so."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from groundstate.compute.random import Key
from groundstate.energy import BilinearEnergy, Energy
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.experiments.tools import Watch
from groundstate.infer import Gibbs, kernel_matrix, posterior
from groundstate.learn import (
    NLL,
    ContrastiveDivergence,
    PersistentCD,
    Rule,
    Stochastic,
    fit,
    phases,
    sgd,
)

F64 = torch.float64
STATED = {1: (0.571875, 0.779480), 2: (0.554655, 0.766454), 5: (0.554310, 0.765031)}
MODEL = (0.554315, 0.765024)
STEPS, RATE, HIDDEN, CHAINS, LOOK = 1000, 0.5, 8, 8, 20


@experiment("ENE-X-cd", theme="energy", title="CD bias falls with k; PCD beats CD-1", slow=True)
def cd(seed: int = 0, *, quick: bool = False) -> Result:
    r"""Contrastive divergence replaces the model's phase in
    :math:`\nabla L = \nabla F(x) - E_{model}\nabla F` by :math:`\nabla F(x^-)`, k Gibbs steps from x.

    On two by two bits everything is exact: the distribution of :math:`x^-` is :math:`P^k\delta_x`
    with the kernel's matrix P, and its bias falls like the second eigenvalue, :math:`.2^k`, below
    1e-4 at k = 5. On the 14 pictures of 3 × 3 bars and stripes :math:`\log Z` is still a sum, so
    the exact log-likelihood can be watched while sampled gradients learn: CD-1 stops short, more
    steps help, and ``PersistentCD``, whose one step goes on from where the last left off, loses
    less than half of what CD-1 loses against the exact gradient, at the price of CD-1.
    """
    key = Key.of(seed)
    ks = range(1, 9)
    means, bias, slope_bias = _biases(ks)
    repeats = 1 if quick else 2
    curves: dict[str, Tensor] = {}
    for r in range(repeats):
        for name, seen in _learn(key.fold("learn", r)).items():
            curves[name] = curves.get(name, torch.zeros_like(seen)) + seen / repeats
    last = {name: float(seen[-1]) for name, seen in curves.items()}

    claims = [
        Claim.close(f"2×2, k = {k}: mean of {name}", float(value), stated, tol=1e-6)
        for k, at in (*((k, means[k - 1]) for k in STATED), (math.inf, means[-1]))
        for name, value, stated in zip(("x₁", "x₂"), at, STATED.get(int(min(k, 9)), MODEL))
    ]
    claims += [
        Claim.below("2×2, k = 5: bias of the mean of x⁻", float(bias[4]), 1e-4),
        Claim.below("2×2, k = 5: bias of the gradient", float(slope_bias[4]), 1e-4),
        Claim.below("2×2: largest ratio of the gradient's bias at k + 1 and k",
                    float((slope_bias[1:] / slope_bias[:-1]).max()), 1.0),
        Claim.above("bars and stripes: log-likelihood, PCD less CD-1",
                    last["PCD"] - last["CD-1"], 0.0),
        Claim.above("bars and stripes: log-likelihood, CD-5 less CD-1",
                    last["CD-5"] - last["CD-1"], 0.0),
        Claim.at_most("bars and stripes: what PCD loses against the exact gradient, over CD-1's loss",
                      (last["exact"] - last["PCD"]) / (last["exact"] - last["CD-1"]), 0.5),
        Claim.below("bars and stripes: best log-likelihood, never above −log 14",
                    max(last.values()), -math.log(14)),
    ]  # fmt: skip
    numbers = {
        "bias": bias.tolist(), "gradient bias": slope_bias.tolist(), "log-likelihood": last,
    }  # fmt: skip

    def draw(figure: Figure) -> None:
        left, middle, right = figure.subplots(1, 3, width_ratios=[3, 4, 2])
        left.semilogy(ks, bias.numpy(), "o-", color=COLOURS[0], label="mean of x⁻")
        left.semilogy(ks, slope_bias.numpy(), "s-", color=COLOURS[1], label="gradient")
        left.axhline(1e-4, color=COLOURS[5], linestyle=":")
        left.set(title="2 × 2: bias of CD-k", xlabel="k")
        left.legend()
        for (name, seen), colour in zip(curves.items(), COLOURS):
            steps = range(0, STEPS + 1, LOOK)
            middle.plot(steps, seen.numpy(), color=colour, label=f"{name}: {last[name]:.2f}")
        middle.axhline(-math.log(14), color=COLOURS[5], linestyle=":", label="−log 14")
        middle.set(title="bars and stripes: exact log-likelihood", xlabel="step")
        middle.legend()
        pictures = bars_and_stripes(3).reshape(7, 2, 3, 3)
        sheet = torch.full((7 * 4, 2 * 4), 0.5)
        for i in range(7):
            for j in range(2):
                sheet[4 * i : 4 * i + 3, 4 * j : 4 * j + 3] = pictures[i, j]
        right.imshow(sheet[:-1, :-1].numpy(), cmap="gray_r", vmin=0, vmax=1)
        right.set(title="the data", xticks=[], yticks=[])

    return Result(claims, numbers, draw, size=(11.0, 3.6))


def bars_and_stripes(n: int) -> Tensor:
    """All pictures of n × n pixels with whole rows or whole columns, ``(2^(n+1) − 2, n²)``."""
    bits = torch.cartesian_prod(*[torch.tensor([0.0, 1.0])] * n)
    rows = bits[:, :, None].expand(-1, n, n).reshape(-1, n * n)
    columns = bits[:, None, :].expand(-1, n, n).reshape(-1, n * n)
    return torch.unique(torch.cat([rows, columns]), dim=0)


def _biases(ks: range) -> tuple[list[Tensor], Tensor, Tensor]:
    """Means of x⁻ from x = (1, 1) for every k and of the model; largest biases of mean and ∇L."""
    energy = BilinearEnergy(2, 2).double()
    with torch.no_grad():
        energy.W.copy_(torch.tensor([[1.0, -1.0], [0.5, 2.0]]))
        energy.b.copy_(torch.tensor([0.1, -0.2]))
        energy.c.copy_(torch.tensor([0.3, -0.4]))
    states = energy.spaces["x"].enumerate(dtype=F64)  # (4, 2)
    free = energy.marginal("z")
    with torch.no_grad():
        P = kernel_matrix(Gibbs(blocks=("z", "x")).kernel(energy), on="x")  # the kernel of CD
        model = posterior(free, "x").log_prob(states).exp().reshape(-1)
    start = (states == 1).all(1).double()
    distributions = [torch.linalg.matrix_power(P, k) @ start for k in ks]
    exact = phases(energy, {"x": torch.ones(1, 2, dtype=F64)}).gradient

    means, bias, slope_bias = [], [], []
    for distribution in [*distributions, model]:
        loss = free(x=torch.ones(1, 2, dtype=F64)).sum() - distribution @ free(
            x=states
        )  # E of CD's loss
        found = torch.autograd.grad(loss, [energy.W, energy.b, energy.c])
        gaps = [(g - exact[name]).abs().max() for name, g in zip("Wbc", found)]
        means.append(distribution @ states)
        bias.append((distribution @ states - model @ states).abs().max())
        slope_bias.append(torch.stack(gaps).max())
    return means, torch.stack(bias[:-1]), torch.stack(slope_bias[:-1])


def _learn(key: Key) -> dict[str, Tensor]:
    """Exact mean log-likelihood along training by each rule, from the same start."""
    x = bars_and_stripes(3)
    rules: dict[str, Rule] = {
        "exact": NLL(),
        "CD-1": ContrastiveDivergence(1, n_chains=CHAINS),
        "CD-5": ContrastiveDivergence(5, n_chains=CHAINS),
        "PCD": PersistentCD(CHAINS * len(x)),
    }

    def log_likelihood(energy: Energy) -> Tensor:
        return -NLL()(energy, {"x": x}).loss.mean()

    curves = {}
    for name, rule in rules.items():
        energy = BilinearEnergy(9, HIDDEN, generator=key.fold("start").torch())
        watch = Watch(log_likelihood, every=LOOK)
        solver = Stochastic(
            sgd,
            lr=RATE,
            batch_size=None,
            max_epochs=STEPS,
            tol=None,
            schedule=lambda done: 1 - done,
        )
        fit(energy, {"x": x}, rule, solver, callbacks=[watch], random_state=key.fold(name))
        curves[name] = watch.seen
    return curves
