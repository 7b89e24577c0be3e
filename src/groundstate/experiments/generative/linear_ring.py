r"""A linear decoder makes Gaussians and nothing else."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from groundstate.compute.random import Key
from groundstate.data import make_ring
from groundstate.energy import LinearGaussianLVM
from groundstate.errors import Unreliable
from groundstate.experiments.base import COLOURS, Claim, Result, experiment
from groundstate.infer import Quadrature, marginalise
from groundstate.models.generative.autoencoders.vae import VAE

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@experiment(
    "GENX-linear-ring", theme="generative", title="A linear decoder makes Gaussians", slow=True
)
def linear_ring(seed: int = 0, *, quick: bool = False) -> Result:
    r"""With :math:`z \sim N(0, \sigma^2I)` and :math:`x \mid z \sim N(Wz + b, I)` the marginal is
    :math:`N(b, I + \sigma^2WW^\top)`, whatever W: no ring. A network :math:`g(z)` in the place of
    :math:`Wz + b` mixes infinitely many Gaussians along a curve.

    The marginal by nodes against the formula; rows on a ring of radius 3, both decoders learned as a VAE,
    the linear one with a learned scale, held-out :math:`\log p` by importance sampling.
    """
    key = Key.of(seed)
    e = (
        LinearGaussianLVM(3, 2, s=1.5, generator=key.fold("W").torch())
        .double()
        .requires_grad_(False)
    )
    x = torch.randn(20, 3, generator=key.fold("x").torch(), dtype=torch.float64)
    by_nodes = -marginalise(e, "z", {"x": x}, method=Quadrature(24)).value - e.total()
    error = float((by_nodes - e.marginal_x().log_prob(x)).abs().max())
    X, new = (make_ring(800, random_state=key.fold(part)) for part in ("train", "test"))
    common: dict[str, Any] = {
        "likelihood": "gaussian", "learning_rate_init": 5e-3,
        "max_iter": 40 if quick else 100, "batch_size": 128,
        "random_state": key.fold("fit").low % 2**32,
    }  # fmt: skip
    models: dict[str, Any] = {
        "linear": VAE(
            2, hidden_layer_sizes=(), activation="identity", likelihood_scale="learned", **common
        ).fit(X),
        "network": VAE(
            2, hidden_layer_sizes=(64, 64), activation="relu", likelihood_scale=0.15, **common
        ).fit(X),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Unreliable)  # an estimate that is too low makes it harder
        scores = {name: model.score(new) for name, model in models.items()}
    gauss = -0.5 * (2 * np.log(2 * np.pi) + np.linalg.slogdet(np.cov(X.T))[1] + 2)
    claims = [
        Claim.below("linear marginal by nodes against N(b, I + σ²WWᵀ)", error, 1e-8),
        Claim.close("linear decoder against the fitted Gaussian", scores["linear"], gauss, tol=0.1),
        Claim.above("network over linear, nats per row", scores["network"] - scores["linear"], 0.5),
    ]

    def draw(figure: Figure) -> None:
        axes = figure.subplots(1, 2)
        for i, (ax, (name, model)) in enumerate(zip(axes, models.items(), strict=True)):
            drawn = model.sample(600, random_state=0)
            ax.scatter(*X[:300].T, s=4, color="lightgrey")
            ax.scatter(*drawn.T, s=4, color=COLOURS[i])
            ax.set(
                title=f"{name}: log p = {scores[name]:.2f}",
                aspect="equal",
                xlim=(-5, 5),
                ylim=(-5, 5),
            )

    return Result(claims, {"log_p": scores, "gaussian": gauss}, draw, size=(8.0, 4.0))
