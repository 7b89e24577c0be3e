r"""The bound of a diffusion, exact where the kernel is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from groundstate.compute.random import Key
from groundstate.experiments.base import COLOURS, Claim, Result, experiment

if TYPE_CHECKING:
    from matplotlib.figure import Figure

X0, TRUE = 0.7, -0.5 * (np.log(2 * np.pi) + 0.49)


def normal(x: Any, mean: Any, variance: Any) -> Any:
    return -0.5 * ((x - mean) ** 2 / variance + np.log(2 * np.pi * variance))


def kl(m1: Any, v1: Any, m2: Any, v2: Any) -> Any:
    return 0.5 * (v1 / v2 - 1 - np.log(v1 / v2) + (m1 - m2) ** 2 / v2)


def forms(betas: Any, slope: float, n: int, rng: Any) -> dict[str, Any]:
    """Ratio, form B and form A with a KL on n paths from x₀, and the mean terms of B."""
    T, alphas = len(betas), 1 - betas
    bars = np.concatenate([[1.0], np.cumprod(alphas)])
    x = [np.full(n, X0)]
    for alpha in alphas:
        x.append(np.sqrt(alpha) * x[-1] + np.sqrt(1 - alpha) * rng.normal(size=n))

    def reverse(
        t: int,
    ) -> tuple[Any, Any]:  # the exact kernel of N(0, 1), its slope off by a factor
        return slope * np.sqrt(alphas[t - 1]) * x[t], betas[t - 1]

    first = normal(x[0], *reverse(1))
    ratio = first + normal(x[T], 0, 1) - normal(x[T], np.sqrt(alphas[-1]) * x[T - 1], betas[-1])
    b = first - kl(np.sqrt(bars[T]) * X0, 1 - bars[T], 0, 1)
    a = first - kl(np.sqrt(alphas[-1]) * x[T - 1], betas[-1], 0, 1)
    terms = []
    for t in range(2, T + 1):
        step = np.sqrt(alphas[t - 2]) * x[t - 2]
        ratio = ratio + normal(x[t - 1], *reverse(t)) - normal(x[t - 1], step, betas[t - 2])
        past, now = bars[t - 1], bars[t]
        mean = (np.sqrt(alphas[t - 1]) * (1 - past) * x[t] + np.sqrt(past) * betas[t - 1] * X0) / (
            1 - now
        )
        term = kl(mean, betas[t - 1] * (1 - past) / (1 - now), *reverse(t))
        terms.append(term.mean())
        b = b - term
        a = a - kl(step, betas[t - 2], *reverse(t))
    return {"ratio": ratio, "A": a, "B": b, "terms": np.array(terms)}


@experiment(
    "GENX-dif-bound",
    theme="generative",
    title="The bound is exact for the exact kernel",
)
def dif_bound(seed: int = 0, *, quick: bool = False) -> Result:
    r"""For data from N(0, 1) with the exact reverse kernel :math:`N(\sqrt{\alpha_t}x_t, 1-\alpha_t)` the ratio
    :math:`\log p(x_{0:T})/q(x_{1:T}\mid x_0)` is :math:`\log p(x_0)` on every path. Form B has that mean and
    varies; form A with :math:`KL(q(x_t\mid x_{t-1})\,\|\,p(x_t\mid x_{t+1}))` varies more and is far too low,
    as :math:`x_{t+1}` depends on :math:`x_t`. A kernel with a wrong slope costs more with more steps.
    """
    rng = Key.of(seed).fold("bound").numpy()
    n = 100_000
    found, claims = {}, []
    cases = ((10, 0.3, 3.67, 1.49, 5.011, -1.209), (50, 0.05, 11.4, 2.14, 44.276, -1.300))
    for T, end, a_std, b_std, low, off in cases:
        betas = np.linspace(0.001, end, T)
        right, wrong = forms(betas, 1.0, n, rng), forms(betas, 0.98, n, rng)
        found[T] = right
        error = 4 * right["B"].std() / n**0.5
        claims += [
            Claim.below(f"T={T}: spread of the ratio over paths", right["ratio"].std(), 1e-12),
            Claim.close(f"T={T}: ratio", right["ratio"].mean(), -1.163939, tol=1e-6),
            Claim.close(f"T={T}: mean of form B", right["B"].mean(), TRUE, tol=error),
            Claim.close(f"T={T}: spread of form B", right["B"].std(), b_std, tol=0.03 * b_std),
            Claim.close(f"T={T}: spread of form A with a KL", right["A"].std(), a_std, tol=0.03 * a_std),
            Claim.close(f"T={T}: form A with a KL is too low by", TRUE - right["A"].mean(), low, tol=0.15),
            Claim.close(f"T={T}: form B with a slope of 0.98", wrong["B"].mean(), off, tol=0.035),
        ]  # fmt: skip

    def draw(figure: Figure) -> None:
        axes = figure.subplots(1, 2)
        for ax, (T, values) in zip(axes, found.items(), strict=True):
            for k, name in enumerate(("ratio", "B", "A")):
                ax.bar(k, values[name].mean(), yerr=values[name].std(), color=COLOURS[k], capsize=4)
            ax.axhline(TRUE, color="black", linewidth=0.8, linestyle="--")
            ax.set(
                xticks=range(3),
                xticklabels=["ratio", "B", "A with KL"],
                title=f"T = {T}",
                ylabel="nats",
            )
        inner = axes[0].inset_axes((0.08, 0.08, 0.5, 0.35))
        inner.bar(range(2, 11), found[10]["terms"], color=COLOURS[1])
        inner.set_title("terms of B by t", fontsize=7)

    numbers = {T: {k: float(np.mean(v[k])) for k in ("ratio", "A", "B")} for T, v in found.items()}
    return Result(claims, {str(T): v for T, v in numbers.items()}, draw)
