"""How far apart two distributions are: f-divergences, Wasserstein, Sinkhorn, Fréchet and kernel distances."""

from groundstate.math.divergences.bernoulli import kl_bernoulli, kl_bernoulli_inv
from groundstate.math.divergences.discriminator import optimal_discriminator, optimal_value
from groundstate.math.divergences.f_divergence import chi2, f_divergence, hellinger, renyi, tv
from groundstate.math.divergences.fisher import fisher
from groundstate.math.divergences.frechet import frechet, frechet_from_samples
from groundstate.math.divergences.js import js
from groundstate.math.divergences.kl import kl, kl_gaussian
from groundstate.math.divergences.mmd import median_length_scale, mmd
from groundstate.math.divergences.wasserstein import sinkhorn, wasserstein
from groundstate.math.divergences.wasserstein_1d import sliced_wasserstein, wasserstein_1d

__all__ = [
    "chi2",
    "f_divergence",
    "fisher",
    "frechet",
    "frechet_from_samples",
    "hellinger",
    "js",
    "kl",
    "kl_bernoulli",
    "kl_bernoulli_inv",
    "kl_gaussian",
    "median_length_scale",
    "mmd",
    "optimal_discriminator",
    "optimal_value",
    "renyi",
    "sinkhorn",
    "sliced_wasserstein",
    "tv",
    "wasserstein",
    "wasserstein_1d",
]
