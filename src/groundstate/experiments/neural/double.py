r"""Test error peaks where there are as many parameters as rows, and falls again beyond."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from groundstate.compute.random import Key
from groundstate.evaluate.curves.capacity_sweep import capacity_sweep
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.math.linalg.min_norm import min_norm_solution
from groundstate.models.linear.least_squares.ridge import Ridge

F64 = NDArray[np.float64]
N, D = 40, 10
NOISES = (0.1, 0.3)
SIZES = (5, 10, 15, 20, 25, 30, 34, 36, 38, 40, 42, 44, 48, 60, 100, 200, 400, 1000)
LAMBDA = 0.05


class RandomFeatures:
    r""":math:`f(x) = \theta^\top\max(0, Wx)/\sqrt p` with W drawn and only θ learned.

    Of all θ with the least squared error the one of least norm is taken, or with ``ridge`` the
    minimiser of :math:`\|y - f\|^2 + \lambda\|\theta\|^2`.
    """

    def __init__(self, p: int, key: Key, ridge: float = 0.0) -> None:
        self.W = key.fold("features", p).numpy().standard_normal((D, p)) / np.sqrt(D)
        self.ridge = ridge

    def features(self, X: F64) -> F64:
        found: F64 = np.maximum(0, X @ self.W) / np.sqrt(self.W.shape[1])
        return found

    def fit(self, X: F64, y: F64) -> RandomFeatures:
        A = self.features(X)
        if self.ridge:
            self.coef_ = Ridge(alpha=self.ridge, fit_intercept=False).fit(A, y).coef_
        else:
            self.coef_ = min_norm_solution(A, y)
        return self

    def predict(self, X: F64) -> F64:
        found: F64 = self.features(X) @ self.coef_
        return found


def rows(key: Key, noise: float) -> tuple[F64, F64, F64, F64]:
    """Noisy training rows of a random line, and a clean thousand to judge by."""
    rng = key.fold("rows").numpy()
    w = rng.standard_normal(D)
    w /= np.linalg.norm(w)
    X, Z = rng.standard_normal((N, D)), rng.standard_normal((1000, D))
    return X, X @ w + noise * rng.standard_normal(N), Z, Z @ w


def medians(seed: int, repeats: int, noise: float, ridge: float = 0.0) -> tuple[F64, F64, F64]:
    """Training error, test error and norm by size, the median over data sets and features."""
    found = []
    for key in Key.of(seed).split(repeats):
        make = lambda p, _, key=key: RandomFeatures(p, key, ridge)  # noqa: E731
        sweep = capacity_sweep(make, SIZES, rows(key, noise))
        found.append([sweep.train[:, 0], sweep.test[:, 0], sweep.norm[:, 0]])
    train, test, norm = np.median(found, axis=0)
    return train, test, norm


@experiment("NEU-X-double", theme="neural", title="Test error peaks at parameters = rows")
def double(seed: int = 0, *, quick: bool = False) -> Result:
    r"""With p random features the rows are fitted exactly from :math:`p = n` on. There the one
    solution that interpolates also follows the noise and has a huge norm; with more parameters the
    interpolant of least norm, :math:`\min\|\theta\|` subject to :math:`A\theta = y`, becomes smooth
    again, and the test error falls below the best classical size. A penalty
    :math:`\lambda\|\theta\|^2` takes the peak away.

    ReLU features of 10 inputs, 40 rows of a line with noise 0.1 and 0.3, 5 to 1,000 parameters,
    λ = 0.05; medians over 20 draws of rows and features.
    """
    repeats = 8 if quick else 20
    curves = {noise: medians(seed, repeats, noise) for noise in NOISES}
    train, test, norm = curves[0.3]
    smooth = medians(seed, repeats, 0.3, LAMBDA)[1]
    p = np.array(SIZES)
    at, best = SIZES.index(N), float(test[p < N].min())
    quiet = curves[0.1][1]
    claims = [
        Claim.between("size with the largest test error", float(p[test.argmax()]), 0.9 * N, 1.1 * N),
        Claim.below("largest training error beyond p = n", float(train[p > N].max()), 1e-10),
        Claim.at_least("test error at p = 40 over that at p = 20", float(test[at] / test[SIZES.index(20)]), 10),
        Claim.below("test error at p = 1000 over the best of p < n", float(test[-1]) / best, 1.0),
        Claim.below("test error at p = 1000 over that at p = 20", float(test[-1] / test[SIZES.index(20)]), 1.0),
        Claim.between("size with the largest norm", float(p[norm.argmax()]), 0.9 * N, 1.1 * N),
        Claim.above("peak with noise 0.3 over peak with noise 0.1", float(test.max() / quiet.max()), 1.0),
        Claim.below("ridge at p = 40 over the best of p < n without it", float(smooth[at]) / best, 1.0),
        Claim.below("ridge at p = 40 over ridge at p = 20", float(smooth[at] / smooth[SIZES.index(20)]), 1.0),
    ]  # fmt: skip
    numbers = {
        "sizes": list(SIZES),
        "train": train.tolist(),
        "test": test.tolist(),
        "test with noise 0.1": quiet.tolist(),
        "norm": norm.tolist(),
        "ridge": smooth.tolist(),
    }

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2)
        left.loglog(p, test, "o-", markersize=3, color=COLOURS[1], label="test, noise 0.3")
        left.loglog(p, quiet, "--", color=COLOURS[1], linewidth=1, label="test, noise 0.1")
        left.loglog(p, smooth, color=COLOURS[2], label="test, ridge λ = 0.05")
        left.loglog(p, np.maximum(train, 1e-4), color=COLOURS[0], label="training")
        right.loglog(p, norm, "o-", markersize=3, color=COLOURS[3])
        for ax, label in ((left, "squared error"), (right, "norm of θ")):
            ax.axvline(N, color=COLOURS[5], linestyle=":", linewidth=1)
            ax.set(xlabel="parameters p (dots: p = n)", ylabel=label)
        left.set_ylim(1e-4)
        left.legend()

    return Result(claims, numbers, draw, size=(9.0, 3.6))
