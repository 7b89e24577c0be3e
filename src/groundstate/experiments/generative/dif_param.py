r"""Four things a denoiser may predict."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from sklearn.datasets import make_moons

from groundstate.compute.random import Key
from groundstate.experiments.base import COLOURS, Claim, Result, experiment
from groundstate.learn.losses import diffusion
from groundstate.math.diffusion import PREDICTION_TYPES, NoiseSchedule, add_noise, convert
from groundstate.math.divergences import mmd
from groundstate.math.kernels.stationary import RBF
from groundstate.models.generative.diffusion.ddpm import DDPM

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@experiment(
    "GENX-dif-param",
    theme="generative",
    title="Four predictions are one",
    slow=True,
)
def dif_param(seed: int = 0, *, quick: bool = False) -> Result:
    r"""With the weights of the bound the losses of :math:`\hat x_0`, :math:`\hat\epsilon`, :math:`\hat v`
    and the score :math:`-\hat\epsilon/\sqrt{1-\bar\alpha}` of one and the same prediction are
    equal. Without weights they stress other levels: the score's loss
    :math:`\|\epsilon-\hat\epsilon\|^2/(1-\bar\alpha)` is ruled by the smallest noise. The same
    network with the same budget on moons: each MMD² is reported.
    """
    schedule = NoiseSchedule("cosine", 50)
    rng = Key.of(seed).fold("param").numpy()
    x0, noise, guess = (torch.from_numpy(v) for v in rng.normal(size=(3, 98, 2)))
    t = torch.arange(2, 51).repeat(2)
    xt = add_noise(x0, noise, t, schedule)
    losses = {}
    for kind in PREDICTION_TYPES:
        pred, target = (convert(v, xt, t, schedule, "sample", kind) for v in (guess, x0))
        losses[kind] = diffusion(
            pred, target, t, schedule, reduction="none", weighting="vlb", prediction_type=kind
        )
    first = losses["epsilon"]
    gap = max(float(((v - first).abs() / first).max()) for v in losses.values())

    X = make_moons(400, noise=0.05, random_state=int(rng.integers(2**31)))[0]
    kernel, found, clouds = RBF(gamma=1.0), {}, {}
    for kind in PREDICTION_TYPES:
        model = DDPM(
            schedule=schedule, prediction_type=kind, hidden_layer_sizes=(64, 64), batch_size=200,
            max_iter=250, learning_rate_init=4e-3, random_state=seed,
        ).fit(X)  # fmt: skip
        clouds[kind] = model.sample(400, random_state=seed)
        found[kind] = float(mmd(clouds[kind], X, kernel))
    normal = rng.multivariate_normal(X.mean(0), np.cov(X.T), 400)
    gaussian = float(mmd(normal, X, kernel))
    claims = [
        Claim.below("largest relative gap between the weighted losses", gap, 1e-6),
        Claim.below("MMD² of noise over that of a Gaussian", found["epsilon"] / gaussian, 0.5),
    ]  # fmt: skip

    def draw(figure: Figure) -> None:
        axes: Any = figure.subplots(1, 4)
        for k, (ax, (kind, rows)) in enumerate(zip(axes, clouds.items(), strict=True)):
            ax.scatter(*X.T, s=2, color="lightgrey")
            ax.scatter(*rows.T, s=2, color=COLOURS[k])
            ax.set(title=f"{kind}\nMMD² {found[kind]:.4f}", xticks=[], yticks=[])

    return Result(claims, {"mmd": found, "gaussian": gaussian}, draw)
