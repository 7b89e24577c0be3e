"""How far apart two distributions are: f-divergences, Wasserstein, Sinkhorn, Fréchet and kernel distances."""

from typing import TYPE_CHECKING

from groundstate.lazy import lazy

if TYPE_CHECKING:
    from groundstate.math.divergences.bernoulli import kl_bernoulli as kl_bernoulli
    from groundstate.math.divergences.bernoulli import kl_bernoulli_inv as kl_bernoulli_inv
    from groundstate.math.divergences.discriminator import (
        optimal_discriminator as optimal_discriminator,
    )
    from groundstate.math.divergences.discriminator import optimal_value as optimal_value
    from groundstate.math.divergences.f_divergence import chi2 as chi2
    from groundstate.math.divergences.f_divergence import f_divergence as f_divergence
    from groundstate.math.divergences.f_divergence import hellinger as hellinger
    from groundstate.math.divergences.f_divergence import renyi as renyi
    from groundstate.math.divergences.f_divergence import tv as tv
    from groundstate.math.divergences.fisher import fisher as fisher
    from groundstate.math.divergences.frechet import frechet as frechet
    from groundstate.math.divergences.frechet import frechet_from_samples as frechet_from_samples
    from groundstate.math.divergences.js import js as js
    from groundstate.math.divergences.kl import kl as kl
    from groundstate.math.divergences.kl import kl_gaussian as kl_gaussian
    from groundstate.math.divergences.mmd import median_length_scale as median_length_scale
    from groundstate.math.divergences.mmd import mmd as mmd
    from groundstate.math.divergences.wasserstein import sinkhorn as sinkhorn
    from groundstate.math.divergences.wasserstein import wasserstein as wasserstein
    from groundstate.math.divergences.wasserstein_1d import sliced_wasserstein as sliced_wasserstein
    from groundstate.math.divergences.wasserstein_1d import wasserstein_1d as wasserstein_1d

lazy(__name__)
