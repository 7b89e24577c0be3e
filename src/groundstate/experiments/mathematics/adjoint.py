r"""Operators have their adjoints only with matching boundary and scaling."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from groundstate.compute.random import Key
from groundstate.experiments.base import COLOURS, Claim, Result, experiment
from groundstate.math import linalg
from groundstate.math.linalg import LinearOperator

if TYPE_CHECKING:
    from matplotlib.figure import Figure

N = 16


def gap(forward: LinearOperator, back: LinearOperator, seed: int) -> float:
    """The worst relative gap of the dot test for a pair that claims to be adjoint."""
    pair = LinearOperator(
        (forward.shape[0], forward.shape[1]),
        forward.matvec, back.matvec, is_complex=forward.is_complex or back.is_complex,
    )  # fmt: skip
    return linalg.dot_test(pair, n_trials=10, rtol=np.inf, random_state=seed)


@experiment(
    "MAT-x-adjoint", theme="mathematics", title="An adjoint needs the same boundary and scale"
)
def adjoint(seed: int = 0, *, quick: bool = False) -> Result:
    r"""The dot test :math:`\langle Af, g\rangle = \langle f, A^*g\rangle` on four pairs, each set up right
    and wrong: the divergence is :math:`-G^*` with the gradient's boundary only, the Laplacian
    symmetric only if one boundary serves both of its halves, the inverse Fourier transform the adjoint
    only if it is unitary, and splatting the adjoint of interpolation at the same positions only.

    A line of 16 points, 12 random positions.
    """
    rng = Key.of(seed).fold("positions").numpy()
    at = rng.uniform(0, N - 1, 12)
    G = linalg.Gradient(N)
    cut = torch.ones(N, dtype=torch.float64)
    cut[0] = 0.0
    open_div = LinearOperator((N, N), lambda g: g - cut * g.roll(1, -1))  # a zero before the line
    F, F_raw = linalg.Fourier(N), linalg.Fourier(N, "backward")
    inverse = LinearOperator((N, N), torch.fft.ifft, is_complex=True)
    T = linalg.Interpolate(N, at)
    L = linalg.Laplacian(N, "dirichlet")
    mixed = open_div @ G  # periodic differences forth, open ones back
    right = {
        "gradient and −divergence": gap(G, -linalg.Divergence(N), seed),
        "Laplacian with itself": gap(L, L, seed),
        "unitary Fourier and its inverse": gap(F, np.sqrt(N) * inverse, seed),
        "interpolate and splat": gap(T, linalg.Splat(N, at), seed),
    }  # fmt: skip
    wrong = {
        "gradient and open −divergence": gap(G, -1.0 * open_div, seed),
        "Laplacian of two boundaries": gap(mixed, mixed, seed),
        "Fourier of NumPy and its inverse": gap(F_raw, inverse, seed),
        "interpolate and shifted splat": gap(T, linalg.Splat(N, np.clip(at + 0.5, 0, N - 1)), seed),
    }
    f, g = rng.normal(size=(2, N))
    factor = abs(np.vdot(g, F_raw @ f) / np.vdot(inverse @ g, f))
    total = linalg.Splat(N, at)(np.arange(12.0)).sum()
    claims = [
        *(Claim.below(f"{name}: gap", value, 1e-12) for name, value in right.items()),
        *(Claim.above(f"{name}: gap", value, 1e-3) for name, value in wrong.items()),
        Claim.close("the default FFT is off by n", factor, N, tol=1e-9),
        Claim.close("a splat keeps the sum", total, 66.0, tol=1e-10),
    ]
    numbers = {
        "right": list(right.values()),
        "wrong": list(wrong.values()),
        "factor": float(factor),
    }
    shown: list[tuple[str, Any]] = [
        ("gradient", G), ("divergence", linalg.Divergence(N)), ("Fourier (real part)", F),
        ("its adjoint", F.H), ("interpolate", T), ("splat", linalg.Splat(N, at)),
    ]  # fmt: skip

    def draw(figure: Figure) -> None:
        panels = figure.subplots(1, 7, width_ratios=[1, 1, 1, 1, 1, 1, 1.3])
        for ax, (title, op) in zip(panels, shown):
            ax.imshow(np.real(op.to_dense()), cmap="coolwarm", vmin=-1, vmax=1)
            ax.set(title=title, xticks=[], yticks=[])
        last = panels[-1]
        sizes = [max(v, 1e-17) for v in (*right.values(), *wrong.values())]
        last.barh(range(8), sizes, color=[COLOURS[2]] * 4 + [COLOURS[4]] * 4)
        last.set(xscale="log", yticks=[], title="gap: right green, wrong red", xlim=(1e-18, 10))

    return Result(claims, numbers, draw, size=(12.0, 2.6))
