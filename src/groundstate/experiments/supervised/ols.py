r"""Normal equations, gradient descent and Gaussian maximum likelihood find one line."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize

from groundstate.compute.random import Key
from groundstate.evaluate.metrics.goodness import r2
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.experiments.supervised.scenes import F64
from groundstate.models.linear.least_squares.linear_regression import LinearRegression

TRUE = np.array([1.0, 2.0, -1.0, 0.5])  # offset first
SIGMAS = (0.3, 1.0, 3.0)


def descend(X: F64, y: F64, steps: int, rate: float = 1.0) -> F64:
    r"""All iterates of :math:`\theta \leftarrow \theta - 2\eta X^\top(X\theta - y)` from 0.

    The step η is ``rate`` over the largest curvature of the sum of squares.
    """
    gram, moment = X.T @ X, X.T @ y
    eta = rate / (2 * np.linalg.eigvalsh(gram)[-1])
    path = np.zeros((steps + 1, X.shape[1]))
    for t in range(steps):
        path[t + 1] = path[t] - 2 * eta * (gram @ path[t] - moment)
    return path


def likeliest(X: F64, y: F64) -> F64:
    r"""Coefficients and log σ that minimise :math:`n\log\sigma + \|y - X\theta\|^2/2\sigma^2`."""
    n, p = X.shape

    def nll(v: F64) -> tuple[float, F64]:
        r, precision = y - X @ v[:p], np.exp(-2 * v[p])
        slope = np.append(-precision * (X.T @ r), n - precision * (r @ r))
        return float(n * v[p] + 0.5 * precision * (r @ r)), slope

    start = np.append(np.zeros(p), np.log(y.std()))
    found: F64 = minimize(nll, start, jac=True, method="BFGS", options={"gtol": 1e-10}).x
    return found


def r2_forms(y: F64, f: F64) -> list[float]:
    """Residual, explained and squared-correlation form of R²."""
    return [r2(y, f, "residual"), r2(y, f, "explained"), r2(y, f, "pearson")]


@experiment("SUP-X-ols", theme="supervised", title="Normal equations = descent = Gaussian ML")
def ols(seed: int = 0, *, quick: bool = False) -> Result:
    r"""For :math:`y = X\theta + N(0, \sigma^2)` the likelihood is largest where the sum of squares is
    smallest, whatever σ is: :math:`(X^\top X)^{-1}X^\top y`, descent and maximum likelihood agree.

    In sample and with an intercept,
    :math:`R^2 = 1 - \text{SSE}/\text{SST} = \sum(f - \bar y)^2/\sum(y - \bar y)^2 = \text{corr}(y, f)^2`.
    Out of sample the first form has no floor: a cubic carried beyond its data falls below 0. The
    data are 200 rows of three columns with σ = 0.3, 1 and 3.
    """
    key = Key.of(seed)
    claims, agreement, forms = [], {}, {}
    for sigma in SIGMAS:
        rng = key.fold("data", str(sigma)).numpy()
        X = np.column_stack([np.ones(200), rng.standard_normal((200, 3))])
        y = X @ TRUE + sigma * rng.standard_normal(200)
        model = LinearRegression().fit(X[:, 1:], y)
        direct = np.append(model.intercept_, model.coef_)
        walked, likely = descend(X, y, 500)[-1], likeliest(X, y)[:4]
        apart = max(np.abs(direct - walked).max(), np.abs(direct - likely).max())
        agreement[str(sigma)] = float(apart)
        claims.append(Claim.at_most(f"σ = {sigma:g}: largest distance of the three θ", apart, 1e-6))
        forms[str(sigma)] = r2_forms(y, model.predict(X[:, 1:]))
        spread = max(forms[str(sigma)]) - min(forms[str(sigma)])
        claims.append(Claim.at_most(f"σ = {sigma:g}: spread of the R² forms", spread, 1e-12))

    rng = key.fold("curve").numpy()
    x = rng.random(60)
    wave = np.sin(2 * np.pi * x) + 0.1 * rng.standard_normal(60)
    powers = np.arange(1, 4)
    cubic = LinearRegression().fit(x[:, None] ** powers, wave)
    beyond = np.linspace(1.0, 1.5, 50)
    outside = r2_forms(np.sin(2 * np.pi * beyond), cubic.predict(beyond[:, None] ** powers))
    claims.append(Claim.below("residual R² of a cubic beyond its data", outside[0], 0.0))

    rng = key.fold("picture").numpy()
    u = rng.uniform(-1, 3, 200)
    v = 0.5 + 1.5 * u + rng.standard_normal(200)
    U = np.column_stack([np.ones(200), u])
    path, line = descend(U, v, 60, rate=1.6), LinearRegression().fit(u[:, None], v)

    def draw(figure: Figure) -> None:
        bowl, fit, out = figure.subplots(1, 3)
        a, b = np.linspace(-1.0, 2.2, 80), np.linspace(-0.4, 3.2, 80)
        A, B = np.meshgrid(a, b)
        loss = ((v[:, None, None] - A - B * u[:, None, None]) ** 2).mean(0)
        bowl.contourf(a, b, np.log(loss), levels=18, cmap="viridis")
        bowl.plot(path[:, 0], path[:, 1], "o-", color="white", markersize=2.5, linewidth=0.8)
        bowl.plot(line.intercept_, line.coef_[0], "*", color=COLOURS[1], markersize=11)
        bowl.set(title="loss and the path of descent", xlabel="offset", ylabel="slope")
        fit.scatter(u, v, s=7, color=COLOURS[0], alpha=0.6)
        ends = np.array([-1.0, 3.0])
        fit.plot(ends, line.predict(ends[:, None]), color=COLOURS[1])
        fit.set(title="the fitted line", xlabel="x", ylabel="y")
        wide = np.linspace(0, 1.5, 200)
        out.scatter(x, wave, s=7, color=COLOURS[0], alpha=0.6)
        out.plot(wide, np.sin(2 * np.pi * wide), color=COLOURS[5], linewidth=0.8, label="truth")
        out.plot(wide, cubic.predict(wide[:, None] ** powers), color=COLOURS[1], label="cubic")
        out.set(title=f"beyond the data R² = {outside[0]:.1f}", xlabel="x", ylim=(-3, 3))
        out.legend()

    numbers = {"distance": agreement, "R2": forms, "R2 out of sample": outside}
    return Result(claims, numbers, draw, size=(10.0, 3.3))
