r"""Centroids coincide above T = λ₁ and part below it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from groundstate.experiments.base import COLOURS, Claim, Result, experiment
from groundstate.learn.solvers.latent.kmeans.soft import moments, soft_step
from groundstate.models.clusters.kmeans import KMeans
from groundstate.models.clusters.soft_kmeans import SoftKMeans

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@experiment("UNSX-annealing", theme="unsupervised", title="Clusters are born at T = λ₁")
def annealing(seed: int = 0, *, quick: bool = False) -> Result:
    r"""Two centroids a little apart at the mean of a cloud: the linear part of a step of soft k-means
    multiplies their distance along the first axis by :math:`\lambda_1/T`, the largest variance over the
    temperature. Above :math:`T = \lambda_1` they fall together, below it they part.
    """
    rng = np.random.default_rng(seed)
    X = np.concatenate([rng.normal((m, 0), (1.0, 0.5), (300, 2)) for m in (-3.0, 3.0)])
    x = torch.from_numpy(X)
    mean, cov, _ = moments(x, None)
    top = float(torch.linalg.eigvalsh(cov)[-1])

    def apart(T: float) -> torch.Tensor:
        mu = mean + torch.tensor([[1e-3, 1e-3], [-1e-3, -1e-3]], dtype=torch.float64)
        for _ in range(6000):
            n, sums, _J = soft_step(x, None, mu, T)
            new = sums / n[:, None]
            done = float((new - mu).abs().max()) < 1e-12
            mu = new
            if done:
                break
        return mu

    def gap(T: float) -> float:
        mu = apart(T)
        return float((mu[0] - mu[1]).norm())

    hot, cold, colder = gap(1.01 * top), gap(0.99 * top), gap(0.95 * top)
    soft = SoftKMeans(2, temperature=0.01 * top, schedule="anneal", random_state=seed, tol=1e-8)
    annealed = soft.fit(X).inertia_
    random = [KMeans(2, init="random", n_init=1, random_state=s).fit(X).inertia_ for s in range(9)]
    claims = [
        Claim.at_most("distance of the centroids at T = 1.01 λ₁", hot, 1e-6),
        Claim.at_least("distance at T = 0.99 λ₁", cold, 0.5),
        Claim.between("distance at T = 0.95 λ₁", colder, 1.8, 2.5),
        Claim.close("critical temperature of the estimator", soft.critical_temperature_, top, tol=1e-9),
        Claim.at_most("annealed inertia over the median of random starts",
                      annealed / float(np.median(random)), 1.01),
    ]  # fmt: skip
    temperatures = np.linspace(0.3, 1.3, 11 if quick else 26) * top
    tree = np.array([apart(float(T))[:, 0].sort().values.numpy() for T in temperatures])

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2)
        left.scatter(*X.T, s=4, color=COLOURS[5])
        left.set_title("two groups")
        right.plot(temperatures / top, tree, color=COLOURS[0], marker=".")
        right.axvline(1.0, color="black", ls="--", lw=1)
        right.set(xlabel="T / λ₁", ylabel="first coordinate", title="centroids at rest")

    return Result(
        claims, {"T": temperatures.tolist(), "centroids": tree.tolist()}, draw, size=(8.0, 3.2)
    )
