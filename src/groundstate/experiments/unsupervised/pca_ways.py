r"""Many ways to one subspace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from scipy.linalg import subspace_angles

from groundstate.compute.random import Key
from groundstate.experiments.base import COLOURS, Claim, Result, experiment
from groundstate.learn.solvers.latent.factors.factor_em import FactorEM
from groundstate.learn.solvers.latent.factors.gaussian_fit import Factors
from groundstate.models.factors.pca import PCA
from groundstate.models.factors.probabilistic_pca import ProbabilisticPCA

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SD = np.array([3.0, 2.0, 1.0, 0.5, 0.3, 0.1])


def angle(a: Any, b: Any) -> float:
    """Largest angle between the spans of two sets of columns."""
    return float(subspace_angles(np.asarray(a), np.asarray(b)).max())


def autoencoder(X: Any, start: Any) -> tuple[Any, float]:
    """Decoder and mean squared error of a linear autoencoder with two codes, by L-BFGS."""
    x = torch.from_numpy(X)
    E = torch.from_numpy(start[0]).requires_grad_()
    D = torch.from_numpy(start[1]).requires_grad_()
    search = torch.optim.LBFGS(
        [E, D], max_iter=400, tolerance_grad=1e-11, tolerance_change=1e-18, history_size=30,
        line_search_fn="strong_wolfe",
    )  # fmt: skip

    def closure() -> Any:
        search.zero_grad()
        loss = (x - x @ E @ D).square().sum(1).mean()
        loss.backward()
        return loss

    loss = search.step(closure)
    with torch.no_grad():
        loss = (x - x @ E @ D).square().sum(1).mean()
    return D.detach().numpy().T, float(loss)


@experiment("UNSX-pca-ways", theme="unsupervised", title="Many ways to one subspace", slow=True)
def pca_ways(seed: int = 0, *, quick: bool = False) -> Result:
    r"""The plane of largest variance by the singular value decomposition, the eigenvectors of the
    covariance, power steps with deflation, EM and stochastic steps of probabilistic PCA, and a linear
    autoencoder from random starts: one subspace. The loss of the autoencoder is the sum of the discarded
    eigenvalues, :math:`\min_{E, D}\tfrac1n\sum_i\|x_i - DEx_i\|^2 = \sum_{k>2}\lambda_k`.

    300 rows in six dimensions, standard deviations (3, 2, 1, .5, .3, .1), two codes.
    """
    key = Key.of(seed)
    rng = key.fold("rows").numpy()
    X = rng.normal(size=(300, 6)) * SD
    X = X - X.mean(0)
    exact = PCA(2, svd_solver="full").fit(X)
    V = exact.components_.T
    values = np.linalg.eigvalsh(np.cov(X.T, ddof=0))
    left = float(values[:4].sum())
    start = rng.normal(size=(6, 2)) * 0.3, rng.normal(size=(2, 6)) * 0.3
    decoder, loss = autoencoder(X, start)
    em = ProbabilisticPCA(2, solver="em", tol=1e-12, max_iter=5000, random_state=seed).fit(X)
    sgd = ProbabilisticPCA(2, solver="sgd", max_iter=60, tol=0, random_state=seed).fit(X)
    power = PCA(2, svd_solver="power", random_state=seed).fit(X)
    eigen = PCA(2, svd_solver="covariance_eigh").fit(X)
    angles = {
        "eigenvectors": angle(eigen.components_.T, V), "power": angle(power.components_.T, V),
        "EM": angle(em.components_.T, V), "autoencoder": angle(decoder, V),
        "SGD": angle(sgd.components_.T, V),
        "PPCA as PCA": angle(ProbabilisticPCA(2).fit(X).to_pca().components_.T, V),
    }  # fmt: skip
    white = np.cov(PCA(2, whiten=True).fit_transform(X).T)
    off = float(np.abs(white - np.eye(2)).max())
    claims = [
        *(Claim.below(f"angle, {n}", a, 1e-2 if n == "SGD" else 1e-6) for n, a in angles.items()),
        Claim.close("loss of the autoencoder less the discarded variance", loss - left, 0.0, tol=1e-8),
        Claim.below("whitened codes: distance of the covariance to I", off, 1e-10),
    ]  # fmt: skip
    path = em_path(X, start[0], V)
    numbers = {"angles": angles, "loss": loss, "discarded": left, "angle by EM": path}

    def draw(figure: Figure) -> None:
        one, two = figure.subplots(1, 2)
        one.plot(path, color=COLOURS[0])
        one.set(yscale="log", xlabel="iteration of EM", title="angle to the plane, radians")
        shown = [max(a, 1e-17) for a in angles.values()]
        two.barh(list(angles), shown, color=COLOURS[1])
        two.set(xscale="log", title="angle at the end, radians")

    return Result(claims, numbers, draw, size=(9.0, 3.2))


def em_path(X: Any, W: Any, V: Any, steps: int = 60) -> list[float]:
    """Angles to the plane after each step of EM."""
    cov = torch.from_numpy(np.cov(X.T, ddof=0))
    now, solver, found = (
        Factors(torch.from_numpy(W), torch.tensor(1.0).double(), 1.0),
        FactorEM(),
        [],
    )
    for _ in range(steps):
        now = solver.step(now, cov)
        found.append(max(angle(now.W.numpy(), V), 1e-16))
    return found
