r"""Entropy keeps a neural sampler from falling into a minimum."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from groundstate.compute.random import Key
from groundstate.energy.base import Energy
from groundstate.energy.spaces import Real
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.math.divergences import mmd
from groundstate.models.generative.adversarial import NeuralSampler


class DoubleWell(Energy):
    r""":math:`2(x_1^2 - 1)^2 + 2x_2^2`."""

    def __init__(self) -> None:
        super().__init__(x=Real(2))

    def forward(self, x: Tensor) -> Tensor:
        return 2 * (x[:, 0].square() - 1).square() + 2 * x[:, 1].square()


def bowl(x: Tensor) -> Tensor:
    return 0.5 * x.square().sum(1)


def exact(n: int, key: Key) -> Tensor:
    """Draws of the double well from a fine grid."""
    grid = np.linspace(-2.5, 2.5, 2001)
    p = np.exp(-2 * (grid**2 - 1) ** 2)
    rng = key.numpy()
    return torch.from_numpy(
        np.column_stack([rng.choice(grid, n, p=p / p.sum()), 0.5 * rng.standard_normal(n)])
    ).float()


def burn_in(start: Tensor, key: Key) -> float:
    r"""Median steps after which eight chains of random steps agree,
    :math:`\hat R = \sqrt{1 + B/W} < 1.05` of their means and variances; start ``(8, R, 2)``."""
    rng = key.torch()
    x, e = start, DoubleWell()(x=start.reshape(-1, 2)).reshape(start.shape[:2])
    path = [x]
    for _ in range(800):
        y = x + torch.randn(x.shape, generator=rng)
        new = DoubleWell()(x=y.reshape(-1, 2)).reshape(e.shape)
        taken = torch.rand(e.shape, generator=rng).log() < e - new
        x, e = torch.where(taken[..., None], y, x), torch.where(taken, new, e)
        path.append(x)
    draws = torch.stack(path).double()  # (801, 8, R, 2)
    n = torch.arange(1.0, 802.0).double()[:, None, None, None]
    mean = draws.cumsum(0) / n
    inner = (draws.square().cumsum(0) / n - mean.square()).mean(1)  # (801, R, 2)
    r = (1 + mean.var(1) / inner.clamp_min(1e-12)).sqrt().amax(2)  # (801, R)
    agree = (r < 1.05) & (n[:, 0, :, 0] > 20)
    return float(agree.double().argmax(0).double().median())


@experiment("GENX-sampler", theme="generative", title="A neural sampler needs entropy", slow=True)
def sampler(seed: int = 0, *, quick: bool = False) -> Result:
    r"""A network that lowers :math:`E\,e(g(\varepsilon)) + \lambda\,MMD^2(s, g)`, with
    :math:`s \sim N(\mu_g, \alpha\Sigma_g)`, draws from :math:`e^{-e}/Z`; with λ = 0 all of its draws are at a
    minimum.

    A bowl of variances 1, and a double well of variances 0.852 and 0.25; 2,000 steps of 256 draws. Chains of
    random steps that start at its draws agree sooner than those that start anywhere in a box of side 20.
    """
    key = Key.of(seed)
    truth = exact(2000, key.fold("exact"))
    round_ = NeuralSampler(bowl, n_features=2, random_state=key.fold("bowl")).fit()
    spread = round_.sample(20_000, random_state=key.fold("a")).var(0)
    flat = NeuralSampler(bowl, 0.0, n_features=2, max_iter=600, random_state=key.fold("flat")).fit()
    fallen = float(flat.sample(4000, random_state=key.fold("b")).var(0).max())
    found, apart = {}, {}
    for alpha in (1.2, 1.5, 3.0):
        model = NeuralSampler(DoubleWell(), inflation=alpha, random_state=key.fold("well")).fit()
        found[alpha] = torch.from_numpy(model.sample(20_000, random_state=key.fold("c")))
        apart[alpha] = float(mmd(found[alpha][:2000], truth))
    fell = NeuralSampler(DoubleWell(), 0.0, max_iter=600, random_state=key.fold("fell")).fit()
    lost = float(mmd(torch.from_numpy(fell.sample(2000, random_state=key.fold("d"))), truth))
    well = found[1.5]
    variance, right = well.var(0).tolist(), float((well[:, 0] > 0).double().mean())
    gauss = truth.mean(0) + truth.std(0) * torch.randn(2000, 2, generator=key.fold("n").torch())
    groups = 40 if quick else 100
    drawn = well[: 8 * groups].reshape(8, groups, 2)
    anywhere = 20 * torch.rand(8, groups, 2, generator=key.fold("box").torch()) - 10
    steps = [burn_in(start, key.fold("chain")) for start in (drawn, anywhere)]
    claims = [
        Claim.between("smaller variance of draws from the bowl", float(spread.min()), 0.9, 1.1),
        Claim.between("larger variance of draws from the bowl", float(spread.max()), 0.9, 1.1),
        Claim.below("largest variance with λ = 0", fallen, 1e-3),
        Claim.close("variance across the double well (exact 0.852)", variance[0], 0.87, tol=0.05),
        Claim.close("variance along it (exact 0.25)", variance[1], 0.27, tol=0.03),
        Claim.between("share in the right well", right, 0.45, 0.55),
        Claim.below("MMD² to exact draws, as a share of that of a Gaussian",
                    apart[1.5] / float(mmd(gauss, truth)), 0.5),
        Claim.above("MMD² with λ = 0 over that with λ", lost / apart[1.5], 5.0),
        Claim.below("median steps to R̂ < 1.05, from its draws over from anywhere",
                    steps[0] / steps[1], 0.9),
    ]  # fmt: skip
    numbers = {"bowl": spread.tolist(), "λ=0": fallen, "well": variance, "right": right,
               "mmd": list(apart.values()), "steps to agree": steps}  # fmt: skip

    def draw(figure: Figure) -> None:
        left, right_ = figure.subplots(1, 2)
        a, b = np.meshgrid(np.linspace(-2, 2, 81), np.linspace(-1.6, 1.6, 65))
        places = torch.from_numpy(np.column_stack([a.ravel(), b.ravel()]))
        e = DoubleWell()(x=places).numpy().reshape(a.shape)
        left.contour(a, b, np.minimum(e, 8), levels=12, cmap="viridis")
        left.scatter(*well[:600].T, s=3, color=COLOURS[1])
        left.set_title("draws on the energy")
        right_.plot(list(apart), list(apart.values()), "o-", color=COLOURS[0])
        right_.set_xlabel("inflation α")
        right_.set_title("MMD² to exact draws")

    return Result(claims, numbers, draw)
