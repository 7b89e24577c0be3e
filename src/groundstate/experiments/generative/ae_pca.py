r"""Autoencoders bend, PCA cannot."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.decomposition import PCA

from groundstate.compute.random import Key
from groundstate.experiments.base import COLOURS, Claim, Result, experiment
from groundstate.models.generative.autoencoders.autoencoder import Autoencoder

if TYPE_CHECKING:
    from matplotlib.figure import Figure

N = 400


def parabola(rng: np.random.Generator, n: int) -> np.ndarray:
    t = rng.uniform(-1.5, 1.5, n)
    return np.column_stack([t, t**2]) + 0.05 * rng.normal(size=(n, 2))


def sheet(rng: np.random.Generator, n: int) -> np.ndarray:
    """A sheet that is bent to three quarters of a tube."""
    t, h = rng.uniform(0, 1.5 * np.pi, n), rng.uniform(-1, 1, n)
    return np.column_stack([np.cos(t), np.sin(t), h]) + 0.03 * rng.normal(size=(n, 3))


@experiment("GENX-ae-pca", theme="generative", title="Autoencoders bend, PCA cannot", slow=True)
def ae_pca(seed: int = 0, *, quick: bool = False) -> Result:
    r"""PCA returns rows to a flat subspace, :math:`\hat x = \mu + UU^\top(x - \mu)` of rank k; an
    autoencoder :math:`\hat x = g(f(x))` returns them to a curve or a bent sheet. Codes of PCA are
    uncorrelated, those of an autoencoder are whatever its networks found.

    A parabola with one number and a bent sheet with two, errors on new rows; the best of three starts
    by training error, as a network may fold.
    """
    key = Key.of(seed)
    cases = {"parabola": (parabola, 1), "sheet": (sheet, 2)}
    claims, found, shown = [], {}, {}
    seconds: dict[str, float] = {}
    for name, (make, k) in cases.items():
        rng = key.fold(name).numpy()
        X, new = make(rng, N), make(rng, N)
        began = time.perf_counter()
        pca = PCA(k).fit(X)
        middle = time.perf_counter()
        fits = [
            Autoencoder(
                k, (32,), "tanh", scale=None, batch_size=64, max_iter=100, learning_rate_init=1e-2,
                n_iter_no_change=np.inf, random_state=key.fold(name, i).low % 2**32,
            ).fit(X)
            for i in range(3)
        ]  # fmt: skip
        model = max(fits, key=lambda fit: fit.score(X))
        end = time.perf_counter()
        flat = pca.inverse_transform(pca.transform(new))
        bent = model.reconstruct(new)
        errors = [float(np.square(new - back).sum(1).mean()) for back in (flat, bent)]
        own = float(np.square(X - model.reconstruct(X)).sum(1).mean())
        rank = int(np.linalg.matrix_rank(flat - pca.mean_, tol=1e-8))
        claims.append(Claim.equal(f"{name}: rank of what PCA returns", rank, k))
        claims.append(
            Claim.below(f"{name}: error of the autoencoder over PCA's", errors[1] / errors[0], 0.5)
        )
        if k == 2:
            a, b = (abs(np.corrcoef(m.transform(X).T)[0, 1]) for m in (pca, model))
            claims.append(Claim.below("sheet: correlation of PCA's codes", float(a), 1e-10))
            claims.append(Claim.above("sheet: correlation of the autoencoder's", float(b), 1e-3))
        found[name] = {"pca": errors[0], "autoencoder": errors[1], "gap": errors[1] - own}
        seconds[f"{name}: PCA"], seconds[f"{name}: autoencoder"] = middle - began, end - middle
        shown[name] = (new, flat, bent)

    def draw(figure: Figure) -> None:
        for i, (name, sets) in enumerate(shown.items()):
            for j, (title, points) in enumerate(
                zip(("rows", "PCA", "autoencoder"), sets, strict=True)
            ):
                kind = {"projection": "3d"} if points.shape[1] == 3 else {}
                ax: Any = figure.add_subplot(2, 3, 3 * i + j + 1, **kind)
                ax.scatter(*points.T, s=4, color=COLOURS[j])
                ax.set(title=f"{name}: {title}", xticks=[], yticks=[])

    return Result(claims, found, draw, seconds=seconds, size=(9.0, 6.0))
