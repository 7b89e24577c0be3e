r"""One Gaussian puts its mass between the branches."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

from groundstate.compute.random import Key
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.experiments.supervised.scenes import F64, Rng
from groundstate.models.networks.mixture_density_regressor import MixtureDensityRegressor

COMPONENTS = (1, 2, 3, 5)


def branches(n: int = 400) -> F64:
    """±1 + N(0, 0.01) without chance: even quantiles of both branches."""
    spread = 0.1 * ndtri((np.arange(n) + 0.5) / n)
    return np.concatenate([1 + spread, -1 + spread])


def bent(rng: Rng, n: int) -> tuple[F64, F64]:
    """x = y + 0.3 sin 2πy + noise, to be read backwards: several y for one x."""
    y = rng.random(n)
    x = y + 0.3 * np.sin(2 * np.pi * y) + 0.055 * rng.standard_normal(n)
    return x[:, None], y


@experiment("SUP-X-mdn", theme="supervised", title="One Gaussian fills the gap", slow=True)
def mdn(seed: int = 0, *, quick: bool = False) -> Result:
    r"""For :math:`y = \pm1 + N(0, .01)` the best single Gaussian is :math:`N(0, 1.01)`, with loss
    1.423914 and density .397 at 0, where the truth has 7.7e-22; two components have −.190499. A
    mixture :math:`\sum_z\pi_z(x)N(y; \mu_z(x), \sigma_z^2(x))` learns relations with several answers.

    The two branches by their quantiles; then 1,000 rows of the curve
    :math:`x = y + .3\sin2\pi y + N(0, .055^2)` read backwards, with 1, 2, 3 and 5 components and
    with 5 of equal weight, judged on 4,000 others.
    """
    y = branches()
    x = np.zeros((len(y), 1))
    flat = {
        k: MixtureDensityRegressor(k, hidden=(), covariance="constant", early_stopping=False, max_iter=400,
                                   learning_rate=0.02, tol=0.0, n_iter_no_change=60, batch_size=len(y),
                                   random_state=seed).fit(x, y)
        for k in (1, 2)
    }  # fmt: skip
    at = np.array([[0.0]])
    mean = float(flat[1].predict(at)[0])
    grid = np.linspace(-6, 6, 2401)
    density = flat[1].predict_density(at, grid)[0]
    variance = float(np.trapezoid(density * grid**2, grid) - mean**2)
    middle = float(flat[1].predict_density(at, np.array([0.0]))[0, 0])
    truth = float(np.exp(-0.5 / 0.01) / np.sqrt(2 * np.pi * 0.01))
    loss = {k: -float(model.score(x, y)) for k, model in flat.items()}

    key = Key.of(seed)
    X, t = bent(key.fold("train").numpy(), 1000)
    Z, s = bent(key.fold("test").numpy(), 4000)
    fits = {
        str(k): MixtureDensityRegressor(k, random_state=seed).fit(X, t) for k in COMPONENTS
    } | {"5, uniform": MixtureDensityRegressor(5, weights="uniform", random_state=seed).fit(X, t)}  # fmt: skip
    held = {name: -float(model.score(Z, s)) for name, model in fits.items()}
    claims = [
        Claim.close("two branches, K = 1: μ", mean, 0.0, tol=1e-2),
        Claim.close("two branches, K = 1: σ²", variance, 1.01, tol=1e-2),
        Claim.close("two branches, K = 1: loss", loss[1], 1.423914, tol=2e-3),
        Claim.close("two branches, K = 1: density at 0", middle, 0.396962, tol=5e-3),
        Claim.close("true density at 0, in 1e-22", truth * 1e22, 7.7, tol=0.05),
        Claim.close("two branches, K = 2: loss", loss[2], -0.190499, tol=1e-2),
        Claim.at_least("curve, K = 1: held-out loss", held["1"], -0.5),
        Claim.at_most("curve, K = 5: held-out loss", held["5"], -1.0),
        Claim.above("curve: equal weights less learned ones", held["5, uniform"] - held["5"], 0.0),
    ]
    numbers = {
        "branches": {str(k): v for k, v in loss.items()},
        "density at 0": middle,
        "curve": held,
    }

    def draw(figure: Figure) -> None:
        axes = figure.subplots(1, 4)
        axes[0].hist(y, 60, density=True, color=COLOURS[5], alpha=0.5)
        for k, model in flat.items():
            axes[0].plot(
                grid, model.predict_density(at, grid)[0], color=COLOURS[k - 1], label=f"K = {k}"
            )
        axes[0].set(title="two branches", xlabel="y", xlim=(-2.5, 2.5))
        axes[0].legend()
        a, b = np.linspace(-0.1, 1.1, 120)[:, None], np.linspace(-0.1, 1.1, 160)
        for ax, name in zip(axes[1:], ("1", "3", "5")):
            heat = fits[name].predict_density(a, b).T
            ax.pcolormesh(a[:, 0], b, np.minimum(heat, 6), cmap="viridis", rasterized=True)
            ax.scatter(X[:300, 0], t[:300], s=2, color="white", alpha=0.6)
            ax.set(
                title=f"K = {name}: {held[name]:.2f}",
                xlabel="x",
                xlim=(-0.1, 1.1),
                ylim=(-0.1, 1.1),
            )

    return Result(claims, numbers, draw, size=(12.0, 3.2))
