r"""Bias, variance and noise of polynomials, by degree and number of rows."""

from __future__ import annotations

import numpy as np
from numpy.polynomial.legendre import legvander

from groundstate.compute.random import Key
from groundstate.experiments.base import COLOURS, Axes, Claim, Figure, Result, experiment
from groundstate.experiments.supervised.scenes import F64

DEGREES = tuple(range(13))
BIAS = {1: 0.196456, 3: 0.004096, 5: 1.4e-5, 9: 0.0}


def truth(x: F64) -> F64:
    """The mean of y."""
    return np.sin(3 * x)


def noise(x: F64) -> F64:
    """The standard deviation of y: larger to the right."""
    return 0.3 * (1 + 0.5 * x)


def fits(key: Key, n: int, degree: int, sd: F64 | float, at: F64, datasets: int) -> F64:
    """What fits to so many draws of the noise say at points, ``(datasets, points)``."""
    x = np.linspace(-1, 1, n)
    y = truth(x) + sd * key.numpy().standard_normal((datasets, n))  # one design, one factorisation
    theta = np.linalg.lstsq(legvander(x, degree), y.T, rcond=None)[0]
    return np.asarray((legvander(at, degree) @ theta).T)


def parts(f: F64, at: F64) -> tuple[F64, F64, F64]:
    """Squared bias and variance with the empirical mean, and the mean squared distance, per point."""
    middle = f.mean(0)
    return (middle - truth(at)) ** 2, f.var(0), np.square(f - truth(at)).mean(0)


@experiment("EVA-X-bv", theme="evaluation", title="Bias falls and variance rises with capacity")
def bv(seed: int = 0, *, quick: bool = False) -> Result:
    r""":math:`E(y - \hat f)^2 = \sigma^2(x) + (E\hat f - f)^2 + \mathrm{Var}\hat f`, exactly, also with
    the mean over the fits at hand. With the degree of a polynomial the bias falls and the variance
    rises, so the risk has a minimum inside; four times the rows quarter the variance and leave the
    bias; the noise is the floor. On a fixed design the variance is :math:`\sigma^2(d+1)/n`.

    f = sin 3x on even points of [−1, 1], noise growing from .15 to .45, degrees 0 to 12, 20 and 80
    rows, 500 draws of the noise; then the fixed design with noise .3 whose parts are known.
    """
    datasets = 200 if quick else 500
    key = Key.of(seed)
    at = np.linspace(-0.98, 0.98, 99)
    floor = float(np.square(noise(at)).mean())
    curves: dict[int, F64] = {}
    worst = 0.0
    for n in (20, 80):
        rows = []
        sd = noise(np.linspace(-1, 1, n))
        for d in DEGREES:
            bias, variance, total = parts(fits(key.fold(n, d), n, d, sd, at, datasets), at)
            worst = max(worst, float(np.abs(bias + variance - total).max()))
            rows.append([float(bias.mean()), float(variance.mean()), floor + float(total.mean())])
        curves[n] = np.array(rows)  # (degrees, bias² variance risk)
    best = {n: int(c[:, 2].argmin()) for n, c in curves.items()}

    x = np.linspace(-1, 1, 20)
    off: dict[str, float] = {}
    for d, exact in BIAS.items():
        f = fits(key.fold("fixed", d), 20, d, 0.3, x, datasets)
        each = np.square(f - f.mean(0)).mean(1)  # one per data set
        varies = float(each.sum() / (datasets - 1))
        spread = float(each.std(ddof=1) / np.sqrt(datasets))
        shift = float(np.square(f.mean(0) - truth(x)).mean()) - varies / datasets  # unbiased
        error = 2 * np.sqrt((exact + varies / datasets) * varies / datasets)
        off[f"degree {d}: variance"] = (varies - 0.09 * (d + 1) / 20) / spread
        off[f"degree {d}: bias²"] = (shift - exact) / float(error)
    ratio = float(curves[80][1:8, 1].sum() / curves[20][1:8, 1].sum())
    low = curves[20][:4, 0]
    claims = [
        Claim.below("largest |total − sum| over points, degrees, rows", worst, 1e-12),
        *[
            Claim.close(f"{name}, in standard errors off", v, 0.0, tol=3.0)
            for name, v in off.items()
        ],
        Claim.below(
            "bias² at degree 12 over that at degree 0", curves[20][-1, 0] / curves[20][0, 0], 0.05
        ),
        Claim.above(
            "least rise of the variance from degree to degree",
            float(np.diff(curves[20][:, 1]).min()),
            0.0,
        ),
        Claim.between("20 rows: degree of least risk", best[20], 1, 11),
        Claim.close("variance at 80 rows over that at 20", ratio, 0.25, tol=0.05),
        Claim.close(
            "bias² at 80 rows over that at 20, degrees 0 to 3",
            float((curves[80][:4, 0] / low).mean()),
            1.0,
            tol=0.25,
        ),
        Claim.above(
            "least risk less the noise",
            float(min(c[:, 2].min() for c in curves.values())) - floor,
            0.0,
        ),
    ]
    numbers = {
        "noise": floor,
        **{
            f"{n} rows: {what}": c[:, j].tolist()
            for n, c in curves.items()
            for j, what in enumerate(("bias²", "variance", "risk"))
        },
        "standard errors off": off,
    }

    def board(ax: Axes, d: int, n: int) -> None:
        two = np.array([-0.5, 0.5])
        f = fits(key.fold("darts", n, d), n, d, noise(np.linspace(-1, 1, n)), two, 60) - truth(two)
        for radius in (0.2, 0.4, 0.6):
            ring = np.linspace(0, 2 * np.pi, 60)
            ax.plot(radius * np.cos(ring), radius * np.sin(ring), color=COLOURS[5], linewidth=0.5)
        ax.plot(*f.T, "o", markersize=2, color=COLOURS[4])
        ax.set(
            title=f"degree {d}, {n} rows",
            xticks=[],
            yticks=[],
            aspect="equal",
            xlim=(-0.8, 0.8),
            ylim=(-0.8, 0.8),
        )

    def draw(figure: Figure) -> None:
        grid = figure.add_gridspec(2, 5, width_ratios=(2.2, 2.2, 1, 1, 0.01))
        risk = figure.add_subplot(grid[:, 0])
        for j, name in enumerate(("bias²", "variance", "risk")):
            for n, style in ((20, "-"), (80, "--")):
                risk.semilogy(
                    DEGREES,
                    np.maximum(curves[n][:, j], 1e-6),
                    style,
                    color=COLOURS[j],
                    label=f"{name}, {n} rows",
                )
        risk.axhline(floor, color="black", linestyle=":", linewidth=0.8)
        risk.set(xlabel="degree", ylim=(1e-5, 1), title="dots: the noise")
        risk.legend(fontsize=6)
        for i, d in enumerate((1, 9)):
            ax = figure.add_subplot(grid[i, 1])
            bundle = fits(key.fold("bundle", d), 20, d, noise(np.linspace(-1, 1, 20)), at, 25)
            ax.plot(at, bundle.T, color=COLOURS[0], linewidth=0.5, alpha=0.6)
            ax.plot(at, truth(at), color="black", linewidth=1)
            ax.set(title=f"25 fits of degree {d}", ylim=(-2, 2), xticks=[])
            for j, n in enumerate((20, 80)):
                board(figure.add_subplot(grid[i, 2 + j]), d, n)

    return Result(claims, numbers, draw, size=(12.0, 4.2))
