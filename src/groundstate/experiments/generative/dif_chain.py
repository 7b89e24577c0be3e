r"""Forward to noise, backward to data."""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.datasets import make_moons

from groundstate.compute.random import Key
from groundstate.experiments.base import COLOURS, Claim, Result, experiment
from groundstate.infer.sampling.diffusion import Steps, ddim, ddpm
from groundstate.math.diffusion import NoiseSchedule, add_noise
from groundstate.math.divergences import mmd
from groundstate.math.kernels.stationary import RBF
from groundstate.models.generative.diffusion.ddpm import DDPM

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def spread(steps: Steps) -> tuple[float, float]:
    """Mean and standard deviation of samples with the exact ε of N(2, ¼), in closed form."""
    mean, variance = 0.0, 1.0
    for a, s, own, clean, fresh in zip(
        *(c.tolist() for c in (steps.signal, steps.noise, steps.own, steps.clean, steps.fresh)), strict=True
    ):  # fmt: skip
        k = 0.25 * a / (0.25 * a * a + s * s)
        mean = (own + clean * k) * mean + clean * (2 - 2 * k * a)
        variance = (own + clean * k) ** 2 * variance + fresh**2
    return mean, math.sqrt(variance)


@experiment("GENX-dif-chain", theme="generative", title="Noise added is noise removed", slow=True)
def dif_chain(seed: int = 0, *, quick: bool = False) -> Result:
    r"""With the exact noise of N(2, ¼) every sampler's mean and spread follow from its coefficients,
    :math:`x_{t-1} = (x_t - \tfrac{1-\alpha_t}{\sqrt{1-\bar\alpha_t}}\epsilon)/\sqrt{\alpha_t} + \sigma_tz`. A
    learned chain turns noise into moons, which a Gaussian cannot. With T = 100 levels of the noise made for
    1000 the last level keeps :math:`\sqrt{.3636}` of the mean.
    """
    schedule, coarse = NoiseSchedule(), NoiseSchedule("linear", 100, start=1e-3, end=0.2)
    claims = [
        Claim.close(
            "mean, σ² = β", spread(ddpm(schedule, variance="fixed_large"))[0], 1.99998, tol=1e-5
        )
    ]
    for name, steps, sd, tol in (
        ("σ² = β", ddpm(schedule, variance="fixed_large"), 0.50075, 1e-5),
        ("σ² = β̃", ddpm(schedule), 0.49611, 1e-5),
        ("T=100, σ² = β", ddpm(coarse, variance="fixed_large"), 0.5077, 1e-4),
        ("T=100, σ² = β̃", ddpm(coarse), 0.4682, 1e-4),
        ("DDIM, 10 steps", ddim(schedule, 10), 0.369955, 1e-6),
        ("DDIM, 50 steps", ddim(schedule, 50), 0.471403, 1e-6),
        ("DDIM, 100 steps", ddim(schedule, 100), 0.485447, 1e-6),
        ("DDIM, 1000 steps", ddim(schedule, 1000), 0.498495, 1e-6),
        ("DDIM, η = 1, 1000 steps", ddim(schedule, eta=1.0), 0.496110, 1e-6),
    ):
        claims.append(Claim.close(f"standard deviation, {name}", spread(steps)[1], sd, tol=tol))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        short = NoiseSchedule("linear", 100)
    left = short.signal_noise(100, short.betas)[0].item()
    claims.append(Claim.close("share of the mean left at T=100", left, 0.3636**0.5, tol=1e-4))

    key = Key.of(seed).fold("chain")
    rng = key.numpy()
    X = make_moons(1000, noise=0.05, random_state=int(rng.integers(2**31)))[0]
    model = DDPM(
        100, coarse, hidden_layer_sizes=(64, 64), batch_size=250, max_iter=500,
        learning_rate_init=4e-3, random_state=seed,
    ).fit(X)  # fmt: skip
    drawn, film = model.sample(1000, return_path=True, random_state=seed)
    normal = rng.multivariate_normal(X.mean(0), np.cov(X.T), 1000)
    kernel = RBF(gamma=1.0)
    far, near = (float(mmd(rows, X, kernel)) for rows in (normal, drawn))
    claims.append(Claim.at_most("MMD² of the moons over that of a Gaussian", near / far, 0.25))
    noisy = {t: add_noise(X, rng.normal(size=X.shape), t, coarse) for t in (0, 10, 30, 60, 100)}

    def draw(figure: Figure) -> None:
        axes: Any = figure.subplots(2, 5)
        for ax, (t, rows) in zip(axes[0], noisy.items(), strict=True):
            ax.scatter(*np.asarray(rows).T, s=2, color=COLOURS[0])
            ax.set(title=f"t = {t}", xticks=[], yticks=[])
        for ax, t in zip(axes[1], (100, 60, 30, 10, 0), strict=True):
            ax.scatter(*film[100 - t].T, s=2, color=COLOURS[1])
            ax.set(title=f"back at t = {t}", xticks=[], yticks=[])

    return Result(claims, {"mmd": {"moons": near, "gaussian": far}}, draw)
