"""The energy of a denoiser: its slope is the score."""

import torch

from groundstate.energy import DenoiserEnergy
from groundstate.math.diffusion import NoiseSchedule

SCHEDULE = NoiseSchedule()


def exact(x: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
    """ε of data from N(2, .25)."""
    a, s = SCHEDULE.signal_noise(t, x)
    return s * (x - 2 * a) / (0.25 * a * a + s * s)


def test_slope_is_the_score_and_differences_are_log_densities():
    energy = DenoiserEnergy(exact, 1, SCHEDULE)
    x = torch.tensor([[-1.0], [0.5], [3.0]], dtype=torch.float64).requires_grad_()
    e = energy(x=x)
    (slope,) = torch.autograd.grad(e.sum(), x)
    t = torch.full((3,), energy.level)
    torch.testing.assert_close(-slope, energy.score(x, t))
    a, s = SCHEDULE.signal_noise(energy.level, x)
    noisy = torch.distributions.Normal(2 * a, (0.25 * a * a + s * s).sqrt())
    gap = (e + noisy.log_prob(x)[:, 0]).detach()  # −log p − e is constant
    torch.testing.assert_close(gap, gap[:1].expand(3))


def test_the_level_of_the_data_has_a_tenth_of_noise():
    energy = DenoiserEnergy(exact, 1, SCHEDULE)
    s = (1 - SCHEDULE.alpha_bars[energy.level - 1]).sqrt()
    assert 0.1 <= s < 0.11
