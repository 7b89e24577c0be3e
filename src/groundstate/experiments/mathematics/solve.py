r"""Four solvers agree, and only the singular value decomposition survives singularity."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from groundstate.compute.random import Key
from groundstate.experiments.base import COLOURS, Claim, Result, experiment
from groundstate.math import linalg

if TYPE_CHECKING:
    from matplotlib.figure import Figure

METHODS = ("cholesky", "lu", "qr", "svd")
CONDITIONS = tuple(10.0**k for k in range(1, 15))
SIZES = (50, 100, 200, 400, 800)


def definite(rng: np.random.Generator, n: int, condition: float) -> Any:
    """A symmetric matrix with eigenvalues from 1 down to 1/condition."""
    Q = np.linalg.qr(rng.normal(size=(n, n)))[0]
    A = (Q * np.geomspace(1, 1 / condition, n)) @ Q.T
    return 0.5 * (A + A.T)


def size(x: Any) -> float:
    return float(np.linalg.norm(x))


@experiment(
    "MAT-x-solve", theme="mathematics", title="Four solvers agree; only SVD survives singularity"
)
def solve(seed: int = 0, *, quick: bool = False) -> Result:
    r""":math:`Ax = b` by :math:`LL^\top`, LU with exchanged rows, QR and :math:`A^+`. All leave a small
    residual however bad the condition κ is, while the error of x grows like :math:`\kappa\varepsilon`;
    LU without exchanges stops at a zero pivot, and a singular system has the solution of least norm by
    SVD alone.

    Symmetric positive definite systems, 60 unknowns for κ from 10 to 10¹⁴, and up to 800 unknowns for
    time.
    """
    rng = Key.of(seed).fold("systems").numpy()
    residual: dict[str, list[float]] = {m: [] for m in METHODS}
    error: dict[str, list[float]] = {m: [] for m in METHODS}
    spread = []
    for condition in CONDITIONS:
        A = definite(rng, 60, condition)
        x = rng.normal(size=60)
        answers = []
        for method in METHODS:
            try:
                found, info = linalg.solve(A, A @ x, method)
            except np.linalg.LinAlgError:  # rounding has made A indefinite
                found, info = np.full(60, np.nan), None
            answers.append(found)
            residual[method].append(float(info.residual) if info else float("nan"))
            error[method].append(float(np.linalg.norm(found - x) / np.linalg.norm(x)))
        gaps = [np.abs(a - answers[-1]).max() / np.abs(x).max() for a in answers]
        spread.append(float(np.nanmax(gaps)))
    seconds: dict[str, list[float]] = {m: [] for m in METHODS}
    for n in SIZES:
        A, b = definite(rng, n, 100.0), rng.normal(size=n)
        for method in METHODS:
            start = perf_counter()
            linalg.solve(A, b, method)
            seconds[method].append(perf_counter() - start)
    B = rng.normal(size=(6, 3))
    singular, b = B @ B.T, rng.normal(size=6)
    shortest, info = linalg.solve(singular, b)
    exact = np.linalg.lstsq(singular, b, rcond=None)[0]
    failed = []
    for method in ("cholesky", "lu"):
        try:
            linalg.solve(np.ones((3, 3)), np.ones(3), method)
        except np.linalg.LinAlgError:
            failed.append(method)
    try:
        linalg.lu_nopivot([[0.0, 1.0], [1.0, 0.0]])
        stopped = False
    except np.linalg.LinAlgError:
        stopped = True
    at = CONDITIONS.index(1e4)
    null = np.eye(6) - np.linalg.pinv(singular) @ singular
    other = shortest + null @ rng.normal(size=6)
    claims = [
        Claim.below("spread of four answers at κ = 10⁴", spread[at], 1e-10),
        Claim.below("largest residual of LU, QR and SVD for all κ",
                    max(max(residual[m]) for m in ("lu", "qr", "svd")), 1e-10),
        Claim.above("error of x at κ = 10¹⁴", error["lu"][-1], 1e-6),
        Claim.equal("LU without exchanges stops at [[0, 1], [1, 0]]", stopped, True),
        Claim.equal("a singular matrix stops", failed, ["cholesky", "lu"]),
        Claim.equal("and is solved by", info.method, "svd"),
        Claim.below("its answer against least squares", float(np.abs(shortest - exact).max()), 1e-10),
        Claim.below("residual gained by another solution",
                    abs(size(singular @ other - b) - size(singular @ shortest - b)), 1e-10),
        Claim.above("and its length over the shortest", size(other) / size(shortest), 1.0),
    ]  # fmt: skip
    numbers = {"condition": list(CONDITIONS), "spread": spread, "error": error["lu"],
               "residual": residual["svd"]}  # fmt: skip

    def draw(figure: Figure) -> None:
        left, middle, right = figure.subplots(1, 3)
        for method, colour in zip(METHODS, COLOURS):
            left.loglog(CONDITIONS, np.maximum(residual[method], 1e-17), color=colour, label=method)
            middle.loglog(CONDITIONS, error[method], color=colour)
            right.loglog(SIZES, seconds[method], "o-", color=colour, label=method)
        middle.loglog(CONDITIONS, 2.2e-16 * np.array(CONDITIONS), ":", color=COLOURS[5], label="κε")
        left.set(title="residual", xlabel="condition", ylim=(1e-18, 1))
        middle.set(title="error of x", xlabel="condition")
        right.set(title="seconds", xlabel="unknowns", xticks=SIZES, xticklabels=SIZES)
        right.minorticks_off()
        left.legend()
        middle.legend()

    return Result(claims, numbers, draw, seconds=seconds, size=(11.0, 3.3))
