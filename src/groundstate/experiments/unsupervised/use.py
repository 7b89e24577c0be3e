r"""After fitting: new samples and posteriors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from sklearn.datasets import make_blobs, make_moons
from sklearn.metrics.pairwise import rbf_kernel

from groundstate.experiments.base import COLOURS, Claim, Result, experiment
from groundstate.models.mixtures.gaussian_mixture import GaussianMixture

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TESTS = 9


def _p_value(a: np.ndarray, b: np.ndarray, rng: np.random.Generator, draws: int) -> float:
    """Permutation test of the maximum mean discrepancy with a Gaussian kernel."""
    both = np.vstack([a, b])
    gap = np.sqrt(np.square(both[:, None] - both).sum(-1))
    K = rbf_kernel(both, gamma=0.5 / np.median(gap[gap > 0]) ** 2 * 4)
    n = len(a)

    def statistic(order: np.ndarray) -> float:
        s = np.where(order < n, 1.0 / n, -1.0 / len(b))
        return float(s @ K @ s)

    own = statistic(np.arange(len(both)))
    other = [statistic(rng.permutation(len(both))) for _ in range(draws)]
    return (1 + sum(v >= own for v in other)) / (draws + 1)


@experiment("UNSX-use", theme="unsupervised", title="A density draws new rows and names components")
def use(seed: int = 0, *, quick: bool = False) -> Result:
    r"""Draw from :math:`p(x) = \sum_z\pi_zN(x; \mu_z, \Sigma_z)` and ask for :math:`p(z \mid x)`.

    Ten Gaussians fitted to two moons draw rows that a two-sample test cannot tell from held-out
    ones; one Gaussian does not. Posteriors of groups of known origin are calibrated.

    A p value of equal distributions is below .05 once in twenty, so nine tests, each of 300 new draws
    against 300 other held-out rows, are judged by their median. Calibration is judged on 20,000 rows:
    on 2,000 the error of ten bins is .02 by chance alone, as :math:`E|\bar y - p| =
    \sqrt{2p(1-p)/\pi n}` in each.
    """
    X, _ = make_moons(2000 + TESTS * 300, noise=0.12, random_state=seed)
    train, tests = X[:2000], X[2000:].reshape(TESTS, 300, 2)
    rng = np.random.default_rng(seed)
    draws = 200
    models = {
        k: GaussianMixture(k, n_init=3, random_state=seed, max_iter=500).fit(train) for k in (1, 10)
    }
    samples = {
        k: model.sample(TESTS * 300, random_state=seed + 7)[0][
            np.random.default_rng(seed).permutation(TESTS * 300)  # draws come by component
        ].reshape(TESTS, 300, 2)
        for k, model in models.items()
    }
    p = {
        k: float(np.median([_p_value(a, b, rng, draws) for a, b in zip(rows, tests, strict=True)]))
        for k, rows in samples.items()
    }
    B, y = make_blobs(22_000, centers=[[0, 0], [2.5, 0]], random_state=seed)
    two = GaussianMixture(2, random_state=seed, max_iter=500).fit(B[:2000])
    r = two.predict_proba(B[2000:])
    right = y[2000:] if np.mean((r[:, 1] > 0.5) == y[2000:]) > 0.5 else 1 - y[2000:]
    bins = np.clip((r[:, 1] * 10).astype(int), 0, 9)
    off = sum(abs(r[bins == i, 1].mean() - right[bins == i].mean()) * np.mean(bins == i)
              for i in range(10) if (bins == i).any())  # fmt: skip
    claims = [
        Claim.at_least("two-sample p of ten components, median of nine", p[10], 0.05),
        Claim.at_most("two-sample p of one component, median of nine", p[1], 0.01),
        Claim.at_most("expected calibration error of the posterior", float(off), 0.04),
    ]

    def draw(figure: Figure) -> None:
        for ax, (k, rows) in zip(figure.subplots(1, 2), samples.items(), strict=True):
            ax.scatter(*tests[0].T, s=5, color="lightgrey", label="held-out rows")
            ax.scatter(*rows[0].T, s=5, color=COLOURS[0], label="drawn rows")
            ax.set(xticks=[], yticks=[], title=f"{k} components, p = {p[k]:.3f}")
        ax.legend()

    return Result(
        claims,
        {"p": {str(k): v for k, v in p.items()}, "calibration": float(off)},
        draw,
        size=(8.0, 3.2),
    )
