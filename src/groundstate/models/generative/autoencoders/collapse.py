"""What the codes of the training rows say after a fit: active units, and a mixture as their prior."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import torch
from torch import Tensor

from groundstate.compute.thread_policy import answering
from groundstate.energy.latent.deep.priors import FullMixturePrior
from groundstate.errors import Unreliable
from groundstate.models.generative.autoencoders.importance import codes_of
from groundstate.models.networks.seeds import init_key

ACTIVE = 0.01  # variance of a unit's mean over the rows, below which it says nothing
LOOK = 4096  # rows whose codes are looked at
FEW = 64  # rows below which nothing is reported about them
DRAWS = 4  # codes of a row, for a mixture


def look_at_codes(model: Any, x: Tensor, y: Tensor | None, weight: Tensor | None) -> None:
    """Set ``active_units_`` of a fitted model, warn of collapse, fit the mixture of "posthoc_gmm"."""
    x, y = x[:LOOK], None if y is None else y[:LOOK]
    w = x.new_ones(len(x)) if weight is None else weight[:LOOK].to(x)
    family = model._family
    with answering(model.energy_, x):
        q = family.parts(model._numbers(x, y))
        codes = family.centre(q)
        if model.prior == "posthoc_gmm":
            drawn = codes_of(family, model._numbers(x, y), DRAWS, codes.shape[1])[0]
            model.energy_.prior = mixture_of(model, drawn.flatten(0, 1), w.repeat(DRAWS))
    share = (w / w.sum())[:, None]
    varies = (share * (codes - (share * codes).sum(0)).square()).sum(0)
    varies = varies if len(codes) > 1 else torch.ones_like(varies)
    model.active_units_ = (varies > ACTIVE).cpu().numpy()
    if len(x) >= FEW and not model.active_units_.any():
        warnings.warn(
            f"posterior collapse: none of the {len(varies)} units of the code varies over the rows "
            f"(largest variance of their means {float(varies.max()):.2g}), so the decoder has learned to "
            "do without; lower beta, let it rise with beta='linear:50', set free_bits=0.1, or narrow the "
            "likelihood with likelihood_scale='learned'",
            Unreliable,
            stacklevel=2,
        )


def mixture_of(model: Any, codes: Tensor, weight: Tensor) -> FullMixturePrior:
    """A Gaussian mixture fitted to codes ``(n, k)`` of weights ``(n,)``."""
    from groundstate.models.mixtures.gaussian_mixture import GaussianMixture

    n = min(int(model.n_prior_components), len(codes))
    seed = init_key(model.random_state).fold("mixture").low % 2**31
    mixture = GaussianMixture(n, reg_covar=1e-4, random_state=seed)
    rows = codes.cpu().double().round(decimals=6).numpy()  # equal rows, whatever the last bits say
    mixture.fit(rows, sample_weight=weight.cpu().double().numpy())
    factors = np.linalg.cholesky(mixture.covariances_)
    made = [torch.tensor(np.array(v)) for v in (mixture.weights_, mixture.means_, factors)]
    return FullMixturePrior(*made).to(codes)
