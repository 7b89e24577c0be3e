r"""The variance of the energy over z is doubt about x."""

from __future__ import annotations

import torch

from groundstate.compute.random import Key
from groundstate.energy import CentroidEnergy
from groundstate.experiments.base import COLOURS, Claim, Figure, Result, experiment
from groundstate.infer import energy_moments


@experiment("ENE-X-latent-uncertainty", theme="energy", title="Variance over z is doubt about x")
def latent_uncertainty(seed: int = 0, *, quick: bool = False) -> Result:
    r"""With means ±a and equal prior weights, :math:`U(x) = \tfrac12(x^2 + a^2)` and
    :math:`V(x) = a^2x^2`.

    :math:`U = \sum_z w_z e(x, z)` and :math:`V = \sum_z w_z (e(x, z) - U)^2` of
    :math:`e(x, z) = \tfrac12(x - \mu_z)^2`. Under the prior, V grows with the distance from the
    middle: the energies of the two explanations differ ever more. Under the Boltzmann weights one
    explanation wins far out, and :math:`V \to 0`: nothing is left to doubt.
    """
    a = 1.0 + float(Key.of(seed).fold("a").uniform(1)[0])
    x = torch.linspace(-8.0, 8.0, 401, dtype=torch.float64)[:, None]
    energy = CentroidEnergy(2, 1).double()
    with torch.no_grad():
        energy.mu.copy_(torch.tensor([[-a], [a]], dtype=torch.float64))
        prior = torch.full((2,), 0.5, dtype=torch.float64)
        flat = energy_moments(energy, "z", {"x": x}, weights=prior)
        warm = energy_moments(energy, "z", {"x": x})
    square = x[:, 0].square()
    gap_mean = float((flat.mean - 0.5 * (square + a * a)).abs().max())
    gap_variance = float((flat.variance - a * a * square).abs().max())
    far, peak = float(warm.variance[[0, -1]].max()), float(warm.variance.max())
    falls = warm.variance[x[:, 0] > 4.0].diff()
    claims = [
        Claim.at_most("largest error of U = (x² + a²)/2", gap_mean, 1e-12),
        Claim.at_most("largest error of V = a²x²", gap_variance, 1e-12),
        Claim.at_most("Boltzmann weights: V at |x| = 8 relative to its peak", far / peak, 1e-3),
        Claim.below("Boltzmann weights: largest rise of V beyond x = 4", float(falls.max()), 0.0),
    ]
    numbers = {"a": a, "U error": gap_mean, "V error": gap_variance, "V far": far, "V peak": peak}

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2)
        at = x[:, 0].numpy()
        left.plot(at, flat.mean.numpy(), color=COLOURS[0], label="prior weights")
        left.plot(at, warm.mean.detach().numpy(), color=COLOURS[1], label="Boltzmann weights")
        left.set(title="mean energy U(x)", xlabel="x")
        left.legend()
        right.plot(at, flat.variance.numpy(), color=COLOURS[0], label="prior weights")
        right.plot(at, warm.variance.detach().numpy(), color=COLOURS[1], label="Boltzmann weights")
        right.set(title="variance V(x) of the energy over z", xlabel="x", ylim=(0, 6 * peak))
        right.legend()
        for ax in (left, right):
            for mu in (-a, a):
                ax.axvline(mu, color=COLOURS[5], linewidth=0.7, linestyle=":")

    return Result(claims, numbers, draw)
