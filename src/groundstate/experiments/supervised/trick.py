r"""Kernel and explicit features give one classifier; the dual does not feel their number."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from groundstate.compute.random import Key
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.math.kernels.feature_maps import PolynomialKernelMap
from groundstate.models.svm.linear_svc import LinearSVC
from groundstate.models.svm.svc import SVC

COLUMNS = (2, 5, 20, 60, 200)
DIMENSIONS = (10, 30, 100, 300, 1000, 3000, 10_000)
N = 200


def seconds(fit: Any, repeats: int) -> float:
    """Shortest of several processor times."""
    found = []
    for _ in range(repeats):
        start = time.process_time()
        fit()
        found.append(time.process_time() - start)
    return min(found)


@experiment(
    "SUP-X-trick", theme="supervised", title="Kernel = explicit φ; dual cost is flat", slow=True
)
def trick(seed: int = 0, *, quick: bool = False) -> Result:
    r"""Rows enter the dual through :math:`k(x, z) = \varphi(x)^\top\varphi(z)` alone. For
    :math:`(x^\top z + 1)^2` with p columns φ has :math:`\tfrac12(p + 1)(p + 2)` entries, and the
    machine on φ decides as the machine with the kernel. Once the Gram matrix is there, the dual's
    cost does not depend on the number of features; the primal's does.

    200 rows, p from 2 to 200 for the decisions; 10 to 10,000 plain features for the times, which
    are processor times.
    """
    key = Key.of(seed)
    apart, sizes = [], []
    for p in COLUMNS:
        rng = key.fold("poly", p).numpy()
        X = rng.standard_normal((N, p)) / np.sqrt(p)
        new = rng.standard_normal((50, p)) / np.sqrt(p)
        y = (X[:, 0] * X[:, 1] * p + 0.3 * rng.standard_normal(N) > 0).astype(np.int64)
        phi = PolynomialKernelMap(2, 1.0)
        rows = phi(np.vstack([X, new]))
        hidden = SVC(kernel="poly", degree=2, gamma=1.0, coef0=1.0, tol=1e-9).fit(X, y)
        plain = SVC(kernel="linear", tol=1e-9).fit(rows[:N], y)
        gap = np.abs(hidden.decision_function(new) - plain.decision_function(rows[N:])).max()
        apart.append(float(gap))
        sizes.append(rows.shape[1])
    repeats = 2 if quick else 4
    dual, first, gram_time = [], [], []
    for d in DIMENSIONS:
        rng = key.fold("time", d).numpy()
        X = rng.standard_normal((N, d)) / np.sqrt(d)
        y = (X @ rng.standard_normal(d) > 0).astype(np.int64)
        gram = X @ X.T
        gram_time.append(seconds(lambda X=X: X @ X.T, repeats))
        dual.append(
            seconds(lambda K=gram, y=y: SVC(kernel="precomputed", C=10.0).fit(K, y), repeats)
        )
        first.append(seconds(lambda X=X, y=y: LinearSVC(C=10.0).fit(X, y), repeats))
    flat = max(dual) / min(dual)
    grows = first[-1] / first[0]
    claims = [
        *[Claim.at_most(f"p = {p}, {m} features: largest difference of decisions", a, 1e-6)
          for p, m, a in zip(COLUMNS, sizes, apart)],
        Claim.at_most("dual after the Gram matrix: longest over shortest time", flat, 5.0).on_the_clock(),
        Claim.at_least("primal: time at 10,000 features over that at 10", grows, 10.0).on_the_clock(),
    ]  # fmt: skip
    numbers = {"columns": list(COLUMNS), "features": sizes, "difference": apart}
    clock = {"dual": dual, "primal": first, "Gram": gram_time}

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2)
        left.loglog(sizes, apart, "o-", color=COLOURS[0])
        left.axhline(1e-6, color="black", linewidth=0.6, linestyle=":")
        left.set(title="kernel against explicit φ", xlabel="entries of φ", ylabel="difference")
        for values, name, colour in zip((dual, first, gram_time), ("dual, after the Gram", "primal",
                                        "Gram matrix"), COLOURS):  # fmt: skip
            right.loglog(
                DIMENSIONS, np.maximum(values, 1e-6), "o-", color=colour, markersize=3, label=name
            )
        right.set(title="time of a fit, 200 rows", xlabel="features", ylabel="seconds")
        right.legend()

    return Result(claims, numbers, draw, clock, size=(8.5, 3.4))
