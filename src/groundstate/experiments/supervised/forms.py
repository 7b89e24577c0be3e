r"""Definiteness decides what descent does."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from groundstate.compute.random import Key
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.experiments.supervised.scenes import F64
from groundstate.math.optim import (
    IndefiniteError,
    cg,
    classify_critical_point,
    lbfgs,
    newton,
    steepest_descent,
)

FORMS: dict[str, tuple[list[list[float]], list[float]]] = {
    "definite": ([[3.0, 2.0], [2.0, 6.0]], [2.0, -8.0]),
    "negative": ([[-3.0, -2.0], [-2.0, -6.0]], [-2.0, 8.0]),
    "singular": ([[3.0, 2.0], [2.0, 4.0 / 3.0]], [3.0, 2.0]),
    "indefinite": ([[3.0, 2.0], [2.0, -4.0]], [2.0, -8.0]),
}
STARTS = ((-2.0, -2.0), (3.0, 1.5), (-3.0, 2.5))


def outcome(solve: Any, A: F64, b: F64, x0: tuple[float, float]) -> tuple[str, F64, F64]:
    """A word, the end, and the path."""
    try:
        found = solve(A, b, x0=list(x0), max_iter=300)
    except IndefiniteError as error:
        end = np.asarray(error.x)
        return "raises", end, np.array([x0, end])
    return ("converges" if found.converged else "wanders"), found.x, found.path


def wave(seed: int) -> tuple[Any, F64, F64]:
    """Mean squared error of sin(ωx + φ) on noisy rows, as a function of (ω, φ)."""
    rng = Key.of(seed).fold("wave").numpy()
    x = np.sort(rng.uniform(-3, 3, 60))
    y = np.sin(1.5 * x + 0.5) + 0.1 * rng.standard_normal(60)
    at, target = torch.from_numpy(x), torch.from_numpy(y)

    def loss(v: Tensor) -> Tensor:
        return (torch.sin(v[0] * at + v[1]) - target).square().mean()

    return loss, x, y


@experiment("SUP-X-forms", theme="supervised", title="Definiteness decides", slow=True)
def forms(seed: int = 0, *, quick: bool = False) -> Result:
    r""":math:`\tfrac12x^\top Ax - b^\top x` has a minimum if A is positive definite, a maximum if it is
    negative, a line of equally good points if it is singular (and b in its range), a saddle if it
    is indefinite. Steepest descent and conjugate gradients converge on the first, end on points of
    the line that depend on the start on the third, and say so on the others.

    Four matrices, three starts; then :math:`\sin(\omega x + \varphi)` fitted to rows by least squares
    from 60 starts, which is not convex: several minima, and saddles between them.
    """
    forms_ = {n: (np.array(A), np.array(b)) for n, (A, b) in FORMS.items()}
    labels = {n: classify_critical_point(A).kind for n, (A, _) in forms_.items()}
    runs = {
        (name, solver.__name__): [outcome(solver, A, b, s) for s in STARTS]
        for name, (A, b) in forms_.items()
        for solver in (steepest_descent, cg)
    }
    claims = [
        Claim.equal("labels", labels, {"definite": "minimum", "negative": "maximum",
                                       "singular": "inconclusive", "indefinite": "saddle"}),
    ]  # fmt: skip
    for solver in ("steepest_descent", "cg"):
        ends = np.array([end for _, end, _ in runs["definite", solver]])
        claims.append(Claim.at_most(f"{solver}, definite: distance from (2, −2)",
                                    float(np.abs(ends - [2, -2]).max()), 1e-5))  # fmt: skip
        A, b = forms_["singular"]
        ends = np.array([end for _, end, _ in runs["singular", solver]])
        off = float(np.abs(ends @ A - b).max())
        apart = float(np.linalg.norm(ends[0] - ends[2]))
        claims.append(Claim.at_most(f"{solver}, singular: distance from the line", off, 1e-5))
        claims.append(Claim.at_least(f"{solver}, singular: distance of two ends", apart, 0.5))
        for name in ("negative", "indefinite"):
            words = sorted({word for word, _, _ in runs[name, solver]})
            claims.append(Claim(f"{solver}, {name}", words, "raises or wanders, never converges",
                                "converges" not in words))  # fmt: skip

    loss, x, y = wave(seed)
    starts = [(w, p) for w in np.linspace(0.2, 4.0, 10) for p in np.linspace(-2.5, 2.5, 6)]
    fits = [lbfgs(loss, list(s), tol=1e-7, max_iter=200) for s in starts]
    values = np.array([e.fun for e in fits if e.converged])
    best = float(values.min())
    # between two minima: the raw Newton step is drawn to whatever is stationary
    tries = [newton(loss, [w, p], damping="none", max_iter=30) for w in (2.2, 2.6, 3.0)
             for p in (-1.5, -0.5, 0.5, 1.5)]  # fmt: skip
    saddles = [t.x for t in tries if t.converged and abs(t.x[0]) < 4.5
               and classify_critical_point(loss, t.x).kind == "saddle"]  # fmt: skip
    minimum = min((e for e in fits if e.converged), key=lambda e: e.fun)
    share = float((values < best + 1e-4).mean())
    kind = classify_critical_point(loss, minimum.x, tol=1e-6).kind
    claims += [
        Claim.at_least("sinusoid: distinct values at the minima found", len(set(values.round(4))), 2),
        Claim.between("sinusoid: share of starts that end at the best", share, 0.02, 0.9),
        Claim.equal("sinusoid: the best is a", kind, "minimum"),
        Claim.at_least("sinusoid: saddles found", len(saddles), 1),
    ]  # fmt: skip
    numbers = {"labels": labels, "sinusoid minima": sorted({float(v) for v in values.round(4)}),
               "share at the best": share,
               "outcomes": {f"{n}, {s}": [w for w, _, _ in r] for (n, s), r in runs.items()}}  # fmt: skip

    def draw(figure: Figure) -> None:
        for k, (name, (A, b)) in enumerate(forms_.items()):
            ax: Any = figure.add_subplot(1, 5, k + 1, projection="3d")
            u, v = np.meshgrid(np.linspace(-5, 6, 45), np.linspace(-6, 5, 45))
            ax.plot_surface(u, v, _height(A, b, u, v), cmap="viridis", alpha=0.55, linewidth=0)
            for (_, _, path), colour in zip(runs[name, "steepest_descent"], COLOURS[1:]):
                near = path[np.abs(path).max(1) < 6]
                ax.plot(near[:, 0], near[:, 1], _height(A, b, *near.T), "o-", color=colour,
                        markersize=2, linewidth=1.2)  # fmt: skip
            ax.set(title=f"{name}: {labels[name]}", xticks=[], yticks=[], zticks=[])
        ax = figure.add_subplot(1, 5, 5)
        a, c = np.linspace(-0.3, 4.5, 90), np.linspace(-3.2, 3.2, 90)
        grid = np.array([[float(((np.sin(w * x + p) - y) ** 2).mean()) for w in a] for p in c])
        ax.contourf(a, c, grid, levels=18, cmap="viridis")
        for end in fits:
            if -0.3 < end.x[0] < 4.5 and abs(end.x[1]) < 3.2:
                ax.plot(*end.x, ".", color="white", markersize=4)
        tops = [e.x for e in fits if e.converged and e.fun < best + 1e-4 and e.x[0] > 0]
        ax.plot(*min(tops, key=lambda v: abs(v[1])), "*", color=COLOURS[1], markersize=10)
        ax.plot([], [], "*", color=COLOURS[1], label="minimum")
        for s in saddles[:3]:
            if -0.3 < s[0] < 4.5 and abs(s[1]) < 3.2:
                ax.plot(*s, "X", color=COLOURS[4], markersize=7)
        ax.plot([], [], "X", color=COLOURS[4], label="saddle")
        ax.set(
            title="sinusoid: loss of (ω, φ)",
            xlabel="ω",
            ylabel="φ",
            xlim=(-0.3, 4.5),
            ylim=(-3.2, 3.2),
        )
        ax.legend(labelcolor="white")

    return Result(claims, numbers, draw, size=(15.0, 3.4))


def _height(A: F64, b: F64, u: Any, v: Any) -> Any:
    quadratic = 0.5 * (A[0, 0] * u**2 + 2 * A[0, 1] * u * v + A[1, 1] * v**2)
    return quadratic - b[0] * u - b[1] * v
