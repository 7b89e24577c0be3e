r"""Three definitions of R² agree in one case only."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from groundstate.compute.random import Key
from groundstate.evaluate import r2 as r2_score
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.models.linear.least_squares.linear_regression import LinearRegression
from groundstate.models.linear.least_squares.ridge import Ridge

FORMS: tuple[Literal["residual", "explained", "pearson"], ...] = (
    "residual",
    "explained",
    "pearson",
)


def three(y: Any, f: Any) -> list[float]:
    """The three forms."""
    return [float(r2_score(y, f, form)) for form in FORMS]


def spread(values: list[float]) -> float:
    """Least distance between two of them."""
    return float(np.diff(np.sort(values)).min())


@experiment("EVA-X-r2", theme="evaluation", title="Three R² agree only for in-sample least squares")
def r2(seed: int = 0, *, quick: bool = False) -> Result:
    r""":math:`1 - \mathrm{SSE}/\mathrm{SST}`, :math:`\sum(f-\bar y)^2/\mathrm{SST}` and the squared
    correlation are one number when f is the least-squares fit with an intercept on its own rows:
    then the residual is orthogonal to the fit and sums to 0. A penalty, no intercept, or other rows
    break this, and on other rows the first form falls below 0.

    20 rows with 12 features, y = 3 + x₁/2 + noise; judged on themselves and on 200 others.
    """
    rng = Key.of(seed).fold("rows").numpy()
    X, Z = rng.standard_normal((20, 12)), rng.standard_normal((200, 12))
    y, t = (3 + 0.5 * A[:, 0] + rng.standard_normal(len(A)) for A in (X, Z))
    models = {
        "least squares": LinearRegression().fit(X, y),
        "ridge": Ridge(alpha=20.0).fit(X, y),
        "no intercept": LinearRegression(fit_intercept=False).fit(X, y),
    }
    found = {f"{name}, its rows": three(y, m.predict(X)) for name, m in models.items()}
    found |= {f"{name}, new rows": three(t, m.predict(Z)) for name, m in models.items()}
    one = found["least squares, its rows"]
    hand = three([1.0, 2.0, 2.0, 4.0], np.array([0.9, 1.8, 2.7, 3.6]))
    claims = [
        Claim.at_most("least squares on its rows: largest less least", max(one) - min(one), 1e-12),
        *[
            Claim.close(f"x = 0..3, y = (1, 2, 2, 4): {form}", v, 0.852632, tol=1e-6)
            for form, v in zip(FORMS, hand)
        ],
        *[
            Claim.above(f"{name}: least distance of two forms", spread(v), 1e-6)
            for name, v in found.items()
            if name != "least squares, its rows"
        ],
        Claim.below(
            "least squares on new rows: 1 − SSE/SST", found["least squares, new rows"][0], 0.0
        ),
    ]

    def draw(figure: Figure) -> None:
        ax = figure.subplots()
        for i, (form, colour) in enumerate(zip(FORMS, COLOURS)):
            values = [v[i] for v in found.values()]
            shown = np.clip(values, -1.5, 3.0)
            ax.bar(np.arange(len(found)) + 0.27 * (i - 1), shown, 0.25, color=colour, label=form)
        ax.axhline(0, color="black", linewidth=0.8)
        ax.set_xticks(range(len(found)), [name.replace(", ", "\n") for name in found])
        ax.set(ylabel="R² (cut at −1.5 and 3)")
        ax.legend()

    return Result(claims, {"forms": list(FORMS), **found, "by hand": hand}, draw)
