r"""A code of the intrinsic dimension loses nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from groundstate.compute.random import Key
from groundstate.data import make_disc
from groundstate.experiments.base import COLOURS, Claim, Result, experiment
from groundstate.models.generative.autoencoders.autoencoder import Autoencoder

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def lost(X: np.ndarray, back: np.ndarray) -> float:
    return float(np.square(X - back).sum(1).mean())


@experiment(
    "GENX-ae-disc", theme="generative", title="A code of the intrinsic dimension loses nothing"
)
def ae_disc(seed: int = 0, *, quick: bool = False) -> Result:
    r"""Rows :math:`(a, a, b)` with :math:`(a, b)` uniform on the unit disc have two dimensions.
    :math:`f(x) = (x_1, x_3)`, :math:`g(z) = (z_1, z_1, z_2)` loses nothing. One number loses:
    :math:`z = \tfrac{a+b}2`, decoded to :math:`(z, z, z)`, :math:`E\|x - g(f(x))\|^2 = \tfrac34E(a-b)^2 =
    0.375`; the best line, along (1, 1, 0), the smallest eigenvalue :math:`E\,b^2 = 0.25`. An autoencoder
    with two numbers learns the first pair.
    """
    key = Key.of(seed)
    X = make_disc(400_000, random_state=key.fold("rows"))
    two = X[:, [0, 0, 2]]
    middle = X[:, [0, 2]].mean(1, keepdims=True).repeat(3, 1)
    values, axes = np.linalg.eigh(np.cov(X.T, bias=True))
    best = X @ axes[:, -1:] @ axes[:, -1:].T
    rows = X[:500]
    models = {
        k: Autoencoder(
            k, (), "identity", scale=None, learning_rate_init=1e-2, batch_size=100,
            max_iter=100 if quick else 200, n_iter_no_change=np.inf,
            random_state=key.fold("fit").low % 2**32,
        ).fit(rows)
        for k in (1, 2)
    }  # fmt: skip
    test = make_disc(500, random_state=key.fold("test"))
    trained = {k: lost(test, model.reconstruct(test)) for k, model in models.items()}
    claims = [
        Claim.equal("two numbers by hand lose", lost(X, two), 0.0),
        Claim.close("(z, z, z) of z = (a + b)/2 loses", lost(X, middle), 0.375, tol=0.003),
        Claim.close("the best line loses", lost(X, best), 0.25, tol=0.003),
        Claim.close("and that is the smaller eigenvalue", float(values[1]), 0.25, tol=0.003),
        Claim.below("a trained code of two loses, on new rows", trained[2], 1e-3),
        Claim.between("a trained code of one loses, on new rows", trained[1], 0.2, 0.3),
    ]

    def draw(figure: Figure) -> None:
        show = test[:300]
        sets = {
            "rows (a, a, b)": show, "trained, two numbers": models[2].reconstruct(show),
            "trained, one number": models[1].reconstruct(show),
        }  # fmt: skip
        for i, (title, points) in enumerate(sets.items()):
            ax = figure.add_subplot(1, 3, i + 1, projection="3d")
            ax.scatter(*points.T, s=4, color=COLOURS[i])
            ax.set(title=title, xlim=(-1, 1), ylim=(-1, 1), zlim=(-1, 1))
            ax.set_xticks([])
            ax.set_yticks([])

    return Result(claims, {"trained": trained}, draw, size=(9.0, 3.2))
