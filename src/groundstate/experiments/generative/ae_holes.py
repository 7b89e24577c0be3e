r"""Random codes of an autoencoder decode to nonsense, those of a VAE do not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

from groundstate.compute.random import Key
from groundstate.evaluate.generators.frechet import frechet_distance
from groundstate.experiments.base import COLOURS, Claim, Result, experiment
from groundstate.models.generative.autoencoders.autoencoder import Autoencoder
from groundstate.models.generative.autoencoders.vae import VAE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

K = 8
RADII = np.array([0.0, 0.5, 1.0, 1.5, 2.0, 3.0])


@experiment("GENX-ae-holes", theme="generative", title="Codes between codes", slow=True)
def ae_holes(seed: int = 0, *, quick: bool = False) -> Result:
    r"""An autoencoder's loss :math:`\|x - g(f(x))\|^2` says nothing about codes that no row has; a VAE's
    :math:`E_q[-\log p(x \mid z)] + \mathrm{KL}(q\,\|\,N(0, I))` spreads every row over a region and all
    rows over N(0, I).

    Digits, eight numbers per code. Codes of N(0, I) are decoded and compared with test rows by the
    Fréchet distance of 20 principal components; codes of test rows are moved by a radius r.
    """
    key = Key.of(seed)
    rng = key.fold("codes").numpy()
    rows = load_digits().data / 16
    order = key.fold("split").numpy().permutation(len(rows))
    train, test = rows[order[:1200]], rows[order[1200:]]
    common: dict[str, Any] = {
        "hidden_layer_sizes": (128,), "max_iter": 60 if quick else 250, "learning_rate_init": 1e-3,
        "scale": None, "batch_size": 128, "n_iter_no_change": np.inf,
        "random_state": key.fold("fit").low % 2**32,
    }  # fmt: skip
    models: dict[str, Any] = {
        "AE": Autoencoder(K, **common).fit(train),
        "VAE": VAE(K, likelihood="gaussian", likelihood_scale=float(np.sqrt(0.05)), **common).fit(
            train
        ),
    }
    pca = PCA(20).fit(train)
    z = rng.normal(size=(1000, K))
    drawn = {name: model.inverse_transform(z) for name, model in models.items()}
    held = pca.transform(test)
    distance = {name: frechet_distance(pca.transform(x), held) for name, x in drawn.items()}
    distance["floor"] = frechet_distance(pca.transform(train), held)
    way = rng.normal(size=(len(test), K))
    way /= np.linalg.norm(way, axis=1, keepdims=True)
    curves = {}
    for name, model in models.items():
        codes = model.transform(test)
        curves[name] = np.array([
            np.square(model.inverse_transform(codes + r * way) - test).sum(1).mean() for r in RADII
        ])  # fmt: skip
    growth = {name: float(curve[4] - curve[0]) for name, curve in curves.items()}
    claims = [
        Claim.above("Fréchet distance of the AE's draws over the VAE's",
                    distance["AE"] / distance["VAE"], 5),
        Claim.above("Fréchet distance of the VAE's draws over that of training rows",
                    distance["VAE"] / distance["floor"], 1),
        Claim.above("growth of the error up to r = 2, AE over VAE", growth["AE"] / growth["VAE"], 1.5),
    ]  # fmt: skip

    def draw(figure: Figure) -> None:
        axes = figure.subplots(1, 3)
        for ax, name in zip(axes, models, strict=False):
            grid = drawn[name][:36].reshape(6, 6, 8, 8).swapaxes(1, 2).reshape(48, 48)
            ax.imshow(grid, cmap="Greys", vmin=0, vmax=1)
            ax.set(title=f"{name}: decoded N(0, I)", xticks=[], yticks=[])
        for i, (name, curve) in enumerate(curves.items()):
            axes[2].plot(RADII, curve, "o-", color=COLOURS[i], label=name)
        axes[2].set(xlabel="radius r", title="error after a move of the code")
        axes[2].legend()

    values = {"distance": distance, "radius": {k: v.tolist() for k, v in curves.items()}}
    return Result(claims, values, draw, size=(9.0, 3.2))
