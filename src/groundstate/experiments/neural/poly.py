r"""Double descent in the degree of a polynomial, where the small true class stays the best."""

from __future__ import annotations

import numpy as np
from numpy.polynomial.legendre import legvander
from numpy.typing import NDArray

from groundstate.compute.random import Key
from groundstate.evaluate.curves.capacity_sweep import mean_squared
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.math.linalg.min_norm import min_norm_solution

F64 = NDArray[np.float64]
N, NOISE = 20, 0.2
DEGREES = (*range(1, 31), 35, 40, 50, 70, 100, 150, 200, 300, 500)


def truth(x: F64) -> F64:
    """A cubic."""
    return 2 * x**3 - x


def rows(key: Key) -> tuple[F64, F64]:
    rng = key.fold("rows").numpy()
    x = rng.uniform(-1, 1, N)
    return x, truth(x) + NOISE * rng.standard_normal(N)


@experiment("NEU-X-poly", theme="neural", title="A second descent need not beat the true class")
def poly(seed: int = 0, *, quick: bool = False) -> Result:
    r"""Polynomials :math:`\sum_{k\le K}\theta_kP_k(x)` in the Legendre basis, of least norm where they
    interpolate: the error explodes at degree :math:`K = n - 1`, where the interpolant is unique, and
    falls again. But the truth is a cubic, and no second descent comes below degree 3: more
    parameters help where the true class is large, not where it is small.

    20 rows with noise 0.2, degrees 1 to 500, the median over 20 draws.
    """
    at = np.linspace(-1, 1, 1001)
    top = max(DEGREES)
    basis = legvander(at, top)
    errors = []
    for key in Key.of(seed).split(8 if quick else 20):
        x, y = rows(key)
        powers = legvander(x, top)
        fits = [min_norm_solution(powers[:, : k + 1], y) for k in DEGREES]
        errors.append([mean_squared(truth(at), basis[:, : len(f)] @ f) for f in fits])
    error = np.median(errors, axis=0)
    best3, worst, last = (float(error[DEGREES.index(k)]) for k in (3, N - 1, top))
    valley = float(error[[k >= N for k in DEGREES]].min())
    claims = [
        Claim.equal("degree with the largest error", DEGREES[int(error.argmax())], N - 1),
        Claim.below("error at degree 500 over the peak", last / worst, 1e-3),
        Claim.below("error at degree 500 over that at degree 15",
                    last / float(error[DEGREES.index(15)]), 1.0),
        Claim.above("error at degree 500 over that at degree 3", last / best3, 1.0),
        Claim.above("least error beyond the peak over that at degree 3", valley / best3, 1.0),
    ]  # fmt: skip
    numbers = {"degrees": list(DEGREES), "error": error.tolist(), "peak": worst, "degree 3": best3}

    def draw(figure: Figure) -> None:
        curve, fit = figure.subplots(1, 2)
        curve.semilogy(np.array(DEGREES) + 1, error, "o-", markersize=2.5, color=COLOURS[1])
        curve.axvline(N, color=COLOURS[5], linestyle=":", linewidth=1)
        curve.set(
            xlabel="coefficients (dots: as many as rows)", ylabel="squared error", xscale="log"
        )
        x, y = rows(Key.of(seed).fold(0))
        fit.plot(at, truth(at), color="black", linewidth=1, label="truth")
        for k, colour in zip((3, N - 1, top), COLOURS):
            theta = min_norm_solution(legvander(x, k), y)
            fit.plot(at, basis[:, : k + 1] @ theta, color=colour, linewidth=1, label=f"degree {k}")
        fit.scatter(x, y, s=12, color=COLOURS[5], zorder=3)
        fit.set(xlabel="x", ylim=(-2, 2), title="the cubic and two interpolants")
        fit.legend(loc="lower right", frameon=True, framealpha=0.9)

    return Result(claims, numbers, draw, size=(9.0, 3.6))
