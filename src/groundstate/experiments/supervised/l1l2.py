r"""L1 selects, L2 shrinks; both are the likeliest θ under a prior."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize

from groundstate.compute.random import Key
from groundstate.experiments.base import COLOURS, Axes, Claim, Figure, Result, experiment
from groundstate.experiments.supervised.scenes import F64
from groundstate.models.linear.least_squares.ridge import Ridge
from groundstate.models.linear.paths import lasso_path
from groundstate.models.linear.sparse.lasso import Lasso

N, P, TRUE = 100, 50, 5
LAMBDA = 1.0  # of the one-dimensional picture
RATES = (0.5, 1.0, 2.0, 3.0)


def laplace_map(X: F64, y: F64, s2: float, rate: float) -> F64:
    r"""Minimise :math:`\|y - Xw\|^2/2s^2 + \lambda\|w\|_1` over :math:`w = u - v,\ u, v \ge 0`."""
    gram, moment, p = X.T @ X / s2, X.T @ y / s2, X.shape[1]

    def value(uv: F64) -> tuple[float, F64]:
        w = uv[:p] - uv[p:]
        g = gram @ w - moment
        return float(0.5 * w @ (g - moment) + rate * uv.sum()), np.append(g + rate, rate - g)

    found = minimize(value, np.zeros(2 * p), jac=True, method="L-BFGS-B", bounds=[(0, None)] * 2 * p,
                     options={"maxiter": 20_000, "maxfun": 50_000, "ftol": 1e-16, "gtol": 1e-9})  # fmt: skip
    w: F64 = found.x[:p] - found.x[p:]
    return w


def normal_map(X: F64, y: F64, s2: float, t2: float) -> F64:
    r"""Minimise :math:`\|y - Xw\|^2/2s^2 + \|w\|^2/2\tau^2` by quasi-Newton steps."""
    gram, moment = X.T @ X / s2 + np.eye(X.shape[1]) / t2, X.T @ y / s2

    def value(w: F64) -> tuple[float, F64]:
        g = gram @ w - moment
        return float(0.5 * w @ (g - moment)), g

    found: F64 = minimize(value, np.zeros(X.shape[1]), jac=True, method="BFGS",
                          options={"gtol": 1e-7}).x  # fmt: skip
    return found


def one_dimension() -> tuple[F64, F64, F64, F64]:
    """Targets a, both estimators, and the minimiser of (θ − a)² + λ|θ| on a fine grid."""
    a = np.linspace(-1.5, 1.5, 61)
    one = np.ones((1, 1))
    l1 = [Lasso(alpha=LAMBDA / 2, fit_intercept=False, tol=1e-12).fit(one, [v]).coef_[0] for v in a]
    l2 = [Ridge(alpha=LAMBDA, fit_intercept=False).fit(one, [v]).coef_[0] for v in a]
    theta = np.linspace(-2, 2, 16_001)
    grid = theta[((theta - a[:, None]) ** 2 + LAMBDA * np.abs(theta)).argmin(1)]
    return a, np.array(l1), np.array(l2), grid


@experiment(
    "SUP-X-l1l2", theme="supervised", title="L1 selects, L2 shrinks; both are MAP", slow=True
)
def l1l2(seed: int = 0, *, quick: bool = False) -> Result:
    r"""A penalty is minus the log of a prior: :math:`\lambda\|w\|_1` of the Laplace density
    :math:`\tfrac\lambda2e^{-\lambda|w|}`, :math:`\|w\|^2/2\tau^2` of a normal one. The first has a
    kink at 0 that catches weights, :math:`\arg\min(\theta - a)^2 + \lambda|\theta| = 0` exactly for
    :math:`|a| \le \lambda/2`; the second only scales, :math:`a/(1 + \lambda)`.

    100 rows, 50 columns of which 5 count; the two paths, and the likeliest weights found
    numerically under both priors against ``Lasso`` (α = λs²/n) and ``Ridge`` (α = s²/τ²).
    """
    rng = Key.of(seed).fold("data").numpy()
    X = rng.standard_normal((N, P))
    w = np.zeros(P)
    w[:TRUE] = (3.0, -2.0, 1.5, -1.5, 1.0)
    y = X @ w + rng.standard_normal(N)
    y -= y.mean()
    X -= X.mean(0)
    top = float(np.abs(X.T @ y).max() / N)
    alphas = top * np.logspace(0, -3, 40)
    _, lasso, _ = lasso_path(X, y, alphas=list(alphas), tol=1e-9)
    zeros = (lasso == 0).sum(0)
    strengths = np.logspace(4, -2, 40)
    ridge = np.stack(
        [Ridge(alpha=s, fit_intercept=False).fit(X, y).coef_ for s in strengths], axis=1
    )
    s2, rate, t2 = 1.0, 15.0, 0.1
    exact = Lasso(alpha=rate * s2 / N, fit_intercept=False, tol=1e-13, max_iter=10_000).fit(X, y)
    laplace = float(np.abs(laplace_map(X, y, s2, rate) - exact.coef_).max())
    shrunk = Ridge(alpha=s2 / t2, fit_intercept=False).fit(X, y).coef_
    normal = float(np.abs(normal_map(X, y, s2, t2) - shrunk).max())
    a, l1, l2, grid = one_dimension()
    inside = np.abs(a) <= LAMBDA / 2 + 1e-12
    claims = [
        Claim.equal("Lasso: zeros at α_max", int(zeros[0]), P),
        Claim.at_most("Lasso: zeros at α_max / 1000", int(zeros[-1]), 10),
        Claim.at_most("Lasso: correlation of zeros with the place on the falling path",
                      float(np.corrcoef(zeros, np.arange(40))[0, 1]), -0.8),
        Claim.equal("Ridge: zeros anywhere on the path", int((ridge == 0).sum()), 0),
        Claim.equal("one dimension: L1 is 0 exactly for |a| ≤ λ/2", bool(((l1 == 0) == inside).all()), True),
        Claim.at_most("one dimension: L1 against the grid", float(np.abs(l1 - grid).max()), 2e-4),
        Claim.at_most("one dimension: L2 against a/(1 + λ)", float(np.abs(l2 - a / (1 + LAMBDA)).max()), 1e-12),
        Claim.at_most("Laplace prior: likeliest θ against Lasso", laplace, 1e-5),
        Claim.at_most("normal prior: likeliest θ against Ridge", normal, 1e-5),
    ]  # fmt: skip
    numbers = {"zeros": zeros.tolist(), "alpha_max": top, "Laplace": laplace, "normal": normal}

    def draw(figure: Figure) -> None:
        axes = figure.subplots(2, 3)
        _path(axes[0, 0], alphas, lasso, "Lasso", "α")
        _path(axes[0, 1], strengths, ridge, "Ridge", "α")
        axes[0, 1].sharey(axes[0, 0])
        axes[0, 2].plot(a, a, ":", color=COLOURS[5])
        axes[0, 2].plot(a, l1, color=COLOURS[0], label="L1: 0 for |a| ≤ λ/2")
        axes[0, 2].plot(a, l2, color=COLOURS[1], label="L2: a/(1 + λ)")
        axes[0, 2].set(title="one weight", xlabel="a")
        axes[0, 2].legend()
        _landscape(axes[1, 0], lambda u, v: 2.0 * (np.abs(u) + np.abs(v)), "L1: kinks")
        _landscape(axes[1, 1], lambda u, v: 2.0 * (u**2 + v**2), "L2: a bowl")
        t = np.linspace(-3, 3, 601)
        for rate, colour in zip(RATES, COLOURS):
            axes[1, 2].plot(
                t, rate / 2 * np.exp(-rate * np.abs(t)), color=colour, label=f"λ = {rate:g}"
            )
        axes[1, 2].set(title="Laplace priors", xlabel="w")
        axes[1, 2].legend()

    return Result(claims, numbers, draw, size=(10.0, 5.8))


def _path(ax: Axes, at: F64, coefs: F64, title: str, label: str) -> None:
    for j, row in enumerate(coefs):
        real = j < TRUE
        ax.semilogx(at, row, color=COLOURS[j] if real else "#c5c9d0", linewidth=1.4 if real else 0.5,
                    zorder=2 if real else 1)  # fmt: skip
    ax.set(title=title, xlabel=label, ylabel="weights")
    ax.invert_xaxis()


def _landscape(ax: Axes, penalty: object, title: str) -> None:
    u, v = np.meshgrid(np.linspace(-1.2, 2.2, 171), np.linspace(-1.2, 2.2, 171))
    e = (u - 1.4) ** 2 + (v - 0.5) ** 2 + 0.6 * (u - 1.4) * (v - 0.5)
    e = e + penalty(u, v)  # type: ignore[operator]
    ax.contourf(u, v, e, levels=24, cmap="viridis")
    k = int(e.argmin())
    ax.plot(1.4, 0.5, "o", color="white", markersize=4)
    ax.plot(u.flat[k], v.flat[k], "*", color=COLOURS[1], markersize=12)
    ax.set(title=title, aspect="equal", xlabel="w₁", ylabel="w₂")
