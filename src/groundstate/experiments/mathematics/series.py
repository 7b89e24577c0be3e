r"""The exponential series always converges, the logarithmic one only near the identity."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from groundstate.compute.random import Key
from groundstate.errors import Unreliable
from groundstate.experiments.base import COLOURS, Claim, Result, experiment
from groundstate.math import linalg

if TYPE_CHECKING:
    from matplotlib.figure import Figure

A0 = np.array([[3.0, 1.0], [1.0, 2.0]])
TERMS = 40


def away(sums: Any, exact: Any) -> list[float]:
    """Distances of partial sums from the limit, relative to its size."""
    gaps = np.linalg.norm(sums - exact, axis=(1, 2)) / np.linalg.norm(exact)
    return [float(g) for g in gaps]


@experiment("MAT-x-series", theme="mathematics", title="The logarithmic series needs to be near I")
def series(seed: int = 0, *, quick: bool = False) -> Result:
    r""":math:`\sum A^k/k!` converges for every A; :math:`\sum(-1)^{k+1}(A - I)^k/k` only where the spectral
    radius of :math:`A - I` is below 1. :math:`\log(AB) = \log A + \log B` only where A and B commute.

    A₀ = [[3, 1], [1, 2]], whose radius is 2.618; a random symmetric matrix with radius ½; for the
    product A₀ with diag(2, 1), and with a polynomial in A₀.
    """
    rng = Key.of(seed).fold("matrix").numpy()
    S = rng.normal(size=(4, 4))
    S = S + S.T
    near = np.eye(4) + 0.5 * S / np.abs(np.linalg.eigvalsh(S)).max()
    expm = torch.linalg.matrix_exp(torch.from_numpy(A0)).numpy()
    grow = away(linalg.exp_series(A0, TERMS, partial=True), expm)
    good = away(linalg.log_series(near, TERMS, partial=True), linalg.logm(near))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        bad = away(linalg.log_series(A0, TERMS, partial=True), linalg.logm(A0))
    warned = any(issubclass(w.category, Unreliable) for w in caught)
    radius = float(np.abs(np.linalg.eigvalsh(A0 - np.eye(2))).max())
    D = np.diag([2.0, 1.0])
    residual = linalg.logm(A0 @ D) - linalg.logm(A0) - linalg.logm(D)
    friend = A0 @ A0 + np.eye(2)
    commuting = linalg.logm(A0 @ friend) - linalg.logm(A0) - linalg.logm(friend)
    expected = [[0.0201, -0.1394], [0.1515, -0.0201]]
    rate = good[-1] ** (1 / TERMS)
    claims = [
        Claim.below("exp of A₀: error after 40 terms", grow[-1], 1e-12),
        Claim.below("log at radius ½: error after 40 terms", good[-1], 1e-12),
        Claim.close("radius of A₀ − I", radius, 2.618, tol=1e-3),
        Claim.above("log of A₀: error after 40 terms", bad[-1], 1e10),
        Claim.equal("the divergent series warns", warned, True),
        Claim.below("log(AB) − log A − log B for diag(2, 1): gap to the known one",
                    float(np.abs(residual - expected).max()), 5e-5),
        Claim.close("its trace", float(np.trace(residual)), 0.0, tol=1e-12),
        Claim.below("the same for matrices that commute", float(np.abs(commuting).max()), 1e-12),
    ]  # fmt: skip
    numbers = {"exp": grow, "log near": good, "log far": bad, "residual": residual.tolist(),
               "rate": float(rate)}  # fmt: skip

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2)
        k = np.arange(1, TERMS + 1)
        for values, label, colour in (
            (grow, "exp A₀", COLOURS[0]),
            (good, "log, radius ½", COLOURS[2]),
            (bad, "log A₀, radius 2.6", COLOURS[4]),
        ):
            left.semilogy(k, np.maximum(values, 1e-17), color=colour, label=label)
        left.set(title="error of partial sums", xlabel="terms")
        left.legend()
        right.imshow(residual, cmap="coolwarm", vmin=-0.2, vmax=0.2)
        for (i, j), value in np.ndenumerate(residual):
            right.text(j, i, f"{value:.4f}", ha="center", va="center")
        right.set(title="log(AB) − log A − log B", xticks=[], yticks=[])

    return Result(claims, numbers, draw)
