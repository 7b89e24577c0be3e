r"""Orthogonal matrices keep lengths, and their inverse is free."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from groundstate.compute.random import Key
from groundstate.experiments.base import COLOURS, Claim, Result, experiment
from groundstate.math import linalg

if TYPE_CHECKING:
    from matplotlib.figure import Figure

N, VECTORS = 512, 400


@experiment("MAT-x-orth", theme="mathematics", title="Orthogonal matrices invert for free")
def orth(seed: int = 0, *, quick: bool = False) -> Result:
    r""":math:`Q^\top Q = I` makes :math:`\|Qx\| = \|x\|` and :math:`Q^{-1} = Q^\top`, which costs nothing,
    where an inverse takes :math:`O(n^3)`. A determinant of ±1 is not enough: the shear has it and
    stretches.

    Q from the uniform (Haar) distribution, n = 512, on 400 random vectors.
    """
    rng = Key.of(seed).fold("haar").numpy()
    Q, R = np.linalg.qr(rng.normal(size=(N, N)))
    Q = Q * np.sign(np.diag(R))  # with these signs the distribution is uniform
    x = rng.normal(size=(N, VECTORS))
    size = np.linalg.norm(x, axis=0)
    kept = np.linalg.norm(Q @ x, axis=0) / size
    shear = np.eye(N) + np.eye(N, k=1)
    stretched = np.linalg.norm(shear @ x, axis=0) / size
    inverse = np.linalg.inv(Q)

    def fastest(act: object, repeats: int) -> float:
        best = np.inf
        for _ in range(repeats):
            start = perf_counter()
            act()  # type: ignore[operator]
            best = min(best, perf_counter() - start)
        return float(best)

    slow, free = fastest(lambda: np.linalg.inv(Q), 3), fastest(lambda: Q.T, 50)
    sign, log_size = np.linalg.slogdet(shear)
    claims = [
        Claim.equal("QᵀQ = I up to rounding", bool(linalg.is_orthogonal(Q)), True),
        Claim.at_most("lengths change by at most", float(np.abs(kept - 1).max()), 1e-12),
        Claim.at_most("distance of the inverse from the transpose", float(np.abs(inverse - Q.T).max()), 1e-12),
        Claim.close("|det Q|", float(np.exp(np.linalg.slogdet(Q)[1])), 1.0, tol=1e-9),
        Claim.close("det of the shear", float(sign * np.exp(log_size)), 1.0, tol=1e-9),
        Claim.equal("the shear is orthogonal", bool(linalg.is_orthogonal(shear)), False),
        Claim.above("a shear changes a length by", float(np.abs(stretched - 1).max()), 0.1),
        Claim.above("inverse over transpose, in time", slow / max(free, 1e-9), 100.0).on_the_clock(),
    ]  # fmt: skip
    numbers = {"kept": [float(kept.min()), float(kept.max())],
               "stretched": [float(stretched.min()), float(stretched.max())]}  # fmt: skip

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2)
        bins = np.linspace(1.0, 1.6, 60)
        left.hist(stretched, bins=bins, color=COLOURS[4], label="shear, det 1")
        left.hist(kept, bins=bins - 0.005, color=COLOURS[0], label="orthogonal")
        left.set(title="‖Ax‖/‖x‖ of 400 vectors", xlabel="ratio")
        left.legend()
        right.bar(["transpose", "inverse"], [free, slow], color=[COLOURS[0], COLOURS[4]])
        right.set(yscale="log", title=f"seconds, n = {N}")

    return Result(claims, numbers, draw, seconds={"inverse": slow, "transpose": free})
