r"""Forming the square of a matrix loses half of the digits."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from groundstate.compute.random import Key
from groundstate.experiments.base import COLOURS, Claim, Result, experiment

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SMALL = tuple(10.0 ** (-k / 2) for k in range(2, 31))


def lauchli(e: float) -> Any:
    """Two columns that are nearly the same, ``(3, 2)``."""
    return np.array([[1.0, 1.0], [e, 0.0], [0.0, e]])


def by_square(S: Any) -> Any:
    """Singular values as roots of the eigenvalues of SᵀS, descending."""
    return np.sqrt(np.maximum(np.linalg.eigvalsh(S.T @ S)[::-1], 0.0))


def off(found: list[float]) -> list[float]:
    """Relative errors of the small singular value."""
    return [abs(f / e - 1) for f, e in zip(found, SMALL)]


def seconds_of(act: Any, repeats: int = 3) -> float:
    best = np.inf
    for _ in range(repeats):
        start = perf_counter()
        act()
        best = min(best, perf_counter() - start)
    return float(best)


@experiment("MAT-x-gram", theme="mathematics", title="Forming SᵀS loses half of the digits")
def gram(seed: int = 0, *, quick: bool = False) -> Result:
    r"""The singular values of Läuchli's [[1, 1], [e, 0], [0, e]] are :math:`\sqrt{2 + e^2}` and e. The
    singular value decomposition finds e down to rounding; :math:`S^\top S` holds :math:`1 + e^2`, which is 1
    for e = 10⁻⁸, and its second eigenvalue is lost. Where rows are many the square is cheaper all the
    same, where columns are many it is not.

    e from 0.1 to 10⁻¹⁵; times for 20,000 × 60 and 60 × 900 random entries.
    """
    rng = Key.of(seed).fold("tables").numpy()
    direct = [float(np.linalg.svd(lauchli(e), compute_uv=False)[1]) for e in SMALL]
    squared = [float(by_square(lauchli(e))[1]) for e in SMALL]
    lost = next(e for e, gap in zip(SMALL, off(squared)) if gap > 0.5)
    e8 = lauchli(1e-8)
    at_e8 = float(np.linalg.svd(e8, compute_uv=False)[1])
    tall, wide = rng.normal(size=(20_000, 60)), rng.normal(size=(60, 900))
    times = {
        "tall, square": seconds_of(lambda: np.linalg.eigh(tall.T @ tall)),
        "tall, SVD": seconds_of(lambda: np.linalg.svd(tall, full_matrices=False)),
        "wide, square": seconds_of(lambda: np.linalg.eigh(wide.T @ wide)),
        "wide, SVD": seconds_of(lambda: np.linalg.svd(wide, full_matrices=False)),
    }
    tall_ratio = times["tall, SVD"] / times["tall, square"]
    wide_ratio = times["wide, square"] / times["wide, SVD"]
    gap = float(np.abs(by_square(tall) / np.linalg.svd(tall, compute_uv=False) - 1).max())
    claims = [
        Claim.close("s₂ at e = 10⁻⁸ by SVD, in 10⁻⁸", at_e8 * 1e8, 1.0, tol=1e-6),
        Claim.close("s₂ at e = 10⁻⁸ by the square, in 10⁻⁸", by_square(e8)[1] * 1e8, 0.0, tol=1e-3),
        Claim.below("worst relative error by SVD down to 10⁻¹²", max(off(direct)[:23]), 1e-3),
        Claim.between("the square loses s₂ at e of about √ε, e =", lost, 1e-9, 1e-7),
        Claim.below("where the condition is small both agree", gap, 1e-12),
        Claim.above("tall: SVD over square, in time", tall_ratio, 1.0).on_the_clock(),
        Claim.above("wide: square over SVD, in time", wide_ratio, 1.0).on_the_clock(),
    ]  # fmt: skip
    numbers = {"e": list(SMALL), "svd": direct, "square": squared, "lost": lost}

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2)
        left.loglog(SMALL, direct, "o-", markersize=3, color=COLOURS[0], label="SVD of S")
        left.loglog(
            SMALL,
            np.maximum(squared, 1e-16),
            "s-",
            markersize=3,
            color=COLOURS[4],
            label="eigenvalues of SᵀS",
        )
        left.set(title="s₂ recovered", xlabel="e", ylabel="s₂")
        left.legend()
        right.barh(list(times), list(times.values()), color=[COLOURS[4], COLOURS[0]] * 2)
        right.set(xscale="log", title="seconds")

    return Result(claims, numbers, draw, seconds=times)
