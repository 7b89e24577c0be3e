r"""Codes of a linear Gaussian model are white only with the posterior covariance added."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from groundstate.compute.random import Key
from groundstate.experiments.base import COLOURS, Claim, Result, experiment
from groundstate.models.factors.probabilistic_pca import ProbabilisticPCA

if TYPE_CHECKING:
    from matplotlib.figure import Figure

VALUES = np.array([9.0, 4.0, 0.5, 0.3, 0.2])


@experiment("UNSX-white-codes", theme="unsupervised", title="Codes are white only with S added")
def white_codes(seed: int = 0, *, quick: bool = False) -> Result:
    r"""At the maximum of the likelihood :math:`\operatorname{Cov}(m) + S = I`: the codes m alone have
    variances :math:`1 - 1/\lambda_i` (noise 1), and with q held at :math:`N(m, I)` they have
    :math:`\sqrt{\lambda_i} - 1`. Neither is white.

    400 rows with covariance eigenvalues (9, 4, .5, .3, .2) exactly, two factors, noise variance 1.
    """
    rng = Key.of(seed).fold("rows").numpy()
    raw = rng.normal(size=(400, 5))
    q, _ = np.linalg.qr(raw - raw.mean(0))
    X = q * math.sqrt(400) * np.sqrt(VALUES)
    models = {
        "exact": ProbabilisticPCA(2, noise_variance=1.0),
        "identity": ProbabilisticPCA(2, noise_variance=1.0, posterior="identity"),
        "width 0.1": ProbabilisticPCA(2, noise_variance=1.0, posterior=0.1),
    }
    clouds, eigen = {}, {}
    for name, model in models.items():
        clouds[name] = model.fit(X).transform(X)
        eigen[name] = np.sort(np.linalg.eigvalsh(np.cov(clouds[name].T, ddof=0)))[::-1]
    W = models["exact"].energy_.W.detach().numpy()
    S = np.linalg.inv(W.T @ W + np.eye(2))
    white = np.abs(np.cov(clouds["exact"].T, ddof=0) + S - np.eye(2)).max()
    claims = [
        Claim.close("first variance of codes, exact posterior", eigen["exact"][0], 8 / 9, tol=1e-8),
        Claim.close("second", eigen["exact"][1], 0.75, tol=1e-8),
        Claim.close("first variance of codes, q = N(m, I)", eigen["identity"][0], 2.0, tol=1e-8),
        Claim.close("second", eigen["identity"][1], 1.0, tol=1e-8),
        Claim.below("exact: largest entry of Cov(m) + S − I", float(white), 1e-10),
    ]
    numbers = {f"variances, {name}": v.tolist() for name, v in eigen.items()}

    def draw(figure: Figure) -> None:
        for k, (name, ax) in enumerate(
            zip(clouds, figure.subplots(1, 3, sharex=True, sharey=True))
        ):
            ax.scatter(*clouds[name].T, s=5, color=COLOURS[k])
            at = np.linspace(0, 2 * np.pi, 100)
            ax.plot(2 * np.cos(at), 2 * np.sin(at), color="black", linewidth=0.8)
            ax.set(title=f"codes, q: {name}", aspect="equal")

    return Result(claims, numbers, draw, size=(9.0, 3.2))
