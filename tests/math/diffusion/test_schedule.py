"""Noise schedules: numbers of the specification and of diffusers, what is refused, what is warned of."""

import numpy as np
import pytest
import torch

from groundstate.errors import ShapeError
from groundstate.math.diffusion import ContinuousSchedule, NoiseSchedule, karras_sigmas


def small() -> NoiseSchedule:
    with pytest.warns(UserWarning, match="keeps a share"):
        return NoiseSchedule([0.1, 0.2, 0.3])


def test_products_of_three_steps():
    schedule = small()
    np.testing.assert_allclose(schedule.alpha_bars, [0.9, 0.72, 0.504], atol=1e-12)
    np.testing.assert_allclose(schedule.snr, [9, 0.72 / 0.28, 0.504 / 0.496], atol=1e-12)
    np.testing.assert_allclose(schedule.log_snr, schedule.snr.log(), atol=1e-12)
    np.testing.assert_allclose(schedule.sigmas, schedule.snr**-0.5, atol=1e-12)


def test_linear_values():
    bars = NoiseSchedule().alpha_bars
    np.testing.assert_allclose(
        bars[[99, 249, 499, 999]], [0.897018, 0.524085, 0.078587, 4.0358e-5], atol=5e-7
    )
    np.testing.assert_allclose(bars[999], 4.0358e-5, rtol=2e-5)


def test_cosine_values():
    bars = NoiseSchedule("cosine").alpha_bars
    np.testing.assert_allclose(bars[[249, 499, 749]], [0.847012, 0.493844, 0.144272], atol=5e-7)
    assert NoiseSchedule("cosine").betas.max() == 0.999


def test_parity_with_diffusers():
    # diffusers 0.42.1: DDPMScheduler(beta_schedule="scaled_linear", beta_start=.00085, beta_end=.012)
    # and DDPMScheduler(beta_schedule="sigmoid"): .alphas_cumprod[[0, 499, 999]]
    with pytest.warns(UserWarning, match="0.00466"):  # a known flaw of that schedule
        scaled = NoiseSchedule("scaled_linear")
    at = [0, 499, 999]
    np.testing.assert_allclose(
        scaled.alpha_bars[at],
        [0.9991499781608582, 0.27766942977905273, 0.00466009508818388],
        rtol=2e-5,
    )
    np.testing.assert_allclose(
        NoiseSchedule("sigmoid").alpha_bars[at],
        [0.9998508095741272, 0.3019309937953949, 3.9681821363046765e-05],
        rtol=2e-5,
    )


def test_too_few_levels_warn_and_can_be_repaired():
    with pytest.warns(UserWarning, match=r"ᾱ_T = 0.3636.*zero_terminal"):
        schedule = NoiseSchedule("linear", 100)
    repaired = schedule.zero_terminal()
    assert repaired.alpha_bars[-1] == 0
    np.testing.assert_allclose(repaired.alpha_bars[0], schedule.alpha_bars[0], atol=1e-12)
    NoiseSchedule("linear", 100, start=1e-3, end=0.2)  # warns of nothing


def test_continuous_values():
    t = torch.tensor([0.5, 1.0], dtype=torch.float64)
    vp = ContinuousSchedule("vp")
    np.testing.assert_allclose(vp.alpha_bar(t), [0.079064, 4.3186e-5], atol=5e-7)
    a, s = vp.signal_noise(t)
    np.testing.assert_allclose(a**2 + s**2, 1, atol=1e-12)
    ve = ContinuousSchedule("ve", sigma_min=0.1, sigma_max=10)
    np.testing.assert_allclose(ve.signal_noise(t)[1], [1, 10], atol=1e-12)
    assert ve.prior_std == 10


@pytest.mark.parametrize("kind", ["vp", "ve", "subvp"])
def test_moments_solve_the_equation(kind):
    # da/dt = f a, ds²/dt = 2 f s² + g²
    schedule = ContinuousSchedule(kind)
    t = torch.linspace(0.05, 0.95, 7, dtype=torch.float64).requires_grad_()
    a, s = schedule.signal_noise(t)
    f = schedule.drift(torch.ones_like(t), t)
    g = schedule.diffusion(t)
    if kind != "ve":
        (da,) = torch.autograd.grad(a.sum(), t, retain_graph=True)
        torch.testing.assert_close(da, f * a)
    (dv,) = torch.autograd.grad(s.square().sum(), t, retain_graph=True)
    torch.testing.assert_close(dv, 2 * f * s.square() + g.square())


def test_karras():
    sigmas = karras_sigmas(18)
    np.testing.assert_allclose(sigmas[:2], [80, 57.58599], atol=1e-5)
    assert sigmas[-1] == 0.002 and len(sigmas) == 18 and (sigmas.diff() < 0).all()
    with pytest.raises(ValueError, match="sigma_min"):
        karras_sigmas(3, 2.0, 1.0)


@pytest.mark.parametrize(
    ("betas", "error", "message"),
    [
        ([0.1, 1.2], ValueError, "between 0 and 1"),
        ([0.0, 0.2], ValueError, "between 0 and 1"),
        ([0.3, 0.2], ValueError, "must not fall"),
        ([[0.3, 0.2]], ShapeError, "vector"),
        ([], ShapeError, "vector"),
        ([0.1, np.nan], ValueError, "between 0 and 1"),
    ],
)
def test_bad_noise_is_refused(betas, error, message):
    with pytest.raises(error, match=message):
        NoiseSchedule(betas)


def test_bad_settings_are_refused():
    with pytest.raises(ValueError, match="one of linear"):
        NoiseSchedule("square")
    with pytest.raises(ValueError, match="n_steps must be at least 1"):
        NoiseSchedule("linear", 0)
    with pytest.raises(TypeError, match="does not know"):
        NoiseSchedule("cosine", 10, end=0.1)
    with pytest.raises(ValueError, match="n_steps=5 was asked"):
        NoiseSchedule.of(NoiseSchedule(), 5)
    with pytest.raises(ValueError, match=r"t must be in 0..1000"):
        NoiseSchedule().at("betas", 1001, torch.ones(1))
    with pytest.raises(ValueError, match="kind must be one of"):
        ContinuousSchedule("vpx")  # type: ignore[arg-type]
