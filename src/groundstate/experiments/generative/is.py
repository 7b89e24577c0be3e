r"""An estimate of log p tightens with the number of draws, and the proposal decides how fast."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import nn

from groundstate.compute.random import Key
from groundstate.energy.latent.deep.energy import DeepLatentEnergy
from groundstate.energy.latent.deep.priors import NormalPrior
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.infer.variational.codes import DiagonalNormal
from groundstate.math.stats.psis import pareto_k
from groundstate.models.generative.autoencoders.vae import VAE
from groundstate.nn.heads.likelihoods import GaussianLikelihood

DRAWS = (1, 5, 50, 500, 5000)
EXACT = -2.265512
MOST = 10**6  # draws of one proposal and M
PROPOSALS = {  # mean and variance of q at x = 2, where the posterior is N(1, .5)
    "prior N(0, 1)": (0.0, 1.0),
    "q = N(1, 1)": (1.0, 1.0),
    "posterior N(1, .5)": (1.0, 0.5),
    "narrow N(1, .1)": (1.0, 0.1),
}


def log_weights(
    mean: float, variance: float, n: int, repeats: int, d: int, generator: torch.Generator
) -> torch.Tensor:
    """log p(x, z) - log q(z) for x = (2, ..., 2), ``(n, repeats)``."""
    energy = DeepLatentEnergy(nn.Identity(), GaussianLikelihood(d), NormalPrior(d)).double()
    family = DiagonalNormal()
    numbers = torch.tensor([[mean] * d + [math.log(variance)] * d], dtype=torch.float64)
    q = family.parts(numbers.expand(repeats, -1))
    z, log_q = family.draws(q, n, generator)
    x = torch.full((n * repeats, d), 2.0, dtype=torch.float64)
    return -energy(x=x, z=z.reshape(-1, d)).view(n, repeats) - log_q()


@experiment(
    "GENX-is", theme="generative", title="Importance sampling needs a good proposal", slow=True
)
def importance(seed: int = 0, *, quick: bool = False) -> Result:
    r""":math:`\log\hat p = \log\tfrac1M\sum_i p(x, z_i)/q(z_i)` is biased down by about
    :math:`\mathrm{Var}(w)/2M\,p^2`, so it rises with M; at the posterior the weights are constant. A
    narrow q of variance s² misses the posterior's tail, :math:`k = 1 - s^2/\tfrac12`, and the prior is
    useless when the code is long.

    :math:`z \sim N(0, 1)`, :math:`x \mid z \sim N(z, 1)`, x = 2; then a trained VAE.
    """
    repeats = 500 if quick else 1000
    noise = Key.of(seed).fold("noise").torch()
    means: dict[str, list[float]] = {}
    stds: dict[str, list[float]] = {}
    for name, (mean, variance) in PROPOSALS.items():
        found = [
            log_weights(mean, variance, m, min(repeats, MOST // m), 1, noise).logsumexp(0)
            - math.log(m)
            for m in DRAWS
        ]
        means[name] = [float(f.mean()) for f in found]
        stds[name] = [float(f.std()) for f in found]
    q, prior = "q = N(1, 1)", "prior N(0, 1)"
    narrow = pareto_k(log_weights(1.0, 0.1, 50_000, 40, 1, noise))
    wide = pareto_k(log_weights(1.0, 1.0, 50_000, 4, 1, noise))
    long = {
        name: float((log_weights(m, v, 500, 100, 20, noise).logsumexp(0) - math.log(500)).std())
        for name, (m, v) in list(PROPOSALS.items())[:2]
    }
    rng = Key.of(seed).fold("rows").numpy()
    t = rng.uniform(0, 1.5 * np.pi, 200)
    X = np.column_stack([np.cos(t), np.sin(t)]) + 0.1 * rng.normal(size=(200, 2))
    model = VAE(
        2,
        hidden_layer_sizes=(32,),
        learning_rate_init=1e-2,
        batch_size=128,
        max_iter=40,
        random_state=seed,
    ).fit(X)
    trained = [float(model.elbo(X).mean())]  # the mean of one draw
    trained += [float(model.importance(X, None, m).log_prob.mean()) for m in (50, 500)]
    claims = [
        Claim.close("mean of one draw of q = N(1, 1)", means[q][0], -2.4189, tol=0.12),
        Claim.close("mean of 50 draws", means[q][2], -2.2666, tol=0.01),
        Claim.close("mean of 5,000 draws: log p", means[q][4], EXACT, tol=2e-3),
        Claim.above("rise of the mean from 1 to 5,000 draws", means[q][4] - means[q][0], 0.05),
        Claim.at_most("spread of the posterior's estimate", max(stds["posterior N(1, .5)"]), 1e-9),
        Claim.above("spread of the prior's estimate over q's, 50 draws",
                    stds[prior][2] / stds[q][2], 1.5),
        Claim.above("the same for a code of length 20, 500 draws", long[prior] / long[q], 2.0),
        Claim.above("Pareto's k of the narrow proposal, mean of 40", float(narrow.mean()), 0.7),
        Claim.below("Pareto's k of q", float(wide.mean()), 0.5),
        Claim.at_least("a trained VAE: 500 draws less its bound", trained[-1] - trained[0], -0.05),
    ]  # fmt: skip

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2)
        for colour, name in zip(COLOURS, PROPOSALS, strict=False):
            left.semilogx(DRAWS, means[name], "o-", color=colour, label=name)
            shown = [max(s, 1e-6) for s in stds[name]]
            right.loglog(DRAWS, shown, "o-", color=colour, label=name)
        left.axhline(EXACT, color="grey", linestyle=":")
        left.set(xlabel="draws M", title="mean of the estimate", ylim=(-2.9, -2.15))
        right.set(xlabel="draws M", title="its standard deviation")
        right.legend()

    numbers = {"mean": means, "std": stds, "long": long, "trained": trained}
    return Result(claims, numbers, draw, size=(9.0, 3.4))
