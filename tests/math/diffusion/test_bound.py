"""Bounds on the log density of diffusions, where it is known."""

import numpy as np
import pytest
import torch

from groundstate.math.diffusion import NoiseSchedule, discretised, elbo

SCHEDULE = NoiseSchedule("cosine", 20)


def exact(schedule: NoiseSchedule):
    """x₀ of data from N(0, 1)."""
    return lambda x, t: schedule.signal_noise(t, x)[0] * x


def of(x0: float, n: int, schedule=SCHEDULE, form="B", seed=0, **settings):
    x = torch.full((n, 1), x0, dtype=torch.float64)
    return elbo(
        exact(schedule), x, schedule, form, prediction_type="sample", variance="fixed_large",
        generator=torch.Generator().manual_seed(seed), **settings,
    )  # fmt: skip


def test_every_path_says_the_same():
    found = of(0.7, 500, form="ratio")
    np.testing.assert_allclose(found.value, -1.163939, atol=1e-6)
    assert found.value.std() < 1e-12
    np.testing.assert_allclose(found.bits_per_dim, 1.163939 / np.log(2), atol=1e-6)


@pytest.mark.parametrize("form", ["A", "B"])
def test_other_forms_agree_in_the_mean(form):
    found = of(0.7, 20000, form=form)
    error = 4 * found.value.std() / len(found.value) ** 0.5
    assert abs(found.value.mean() + 1.163939) < error < 0.4
    total = found.reconstruction - found.prior - found.steps.sum(0)
    torch.testing.assert_close(found.value, total)


def test_prior_term():
    found = of(1.0, 1, NoiseSchedule())
    np.testing.assert_allclose(found.prior, 2.018e-5, rtol=1e-3)


def test_one_level_is_a_variational_autoencoder():
    # q = N(0, 1), p(x | z) = N(z, 1), x = 1: the bound −1.918939 of GEN-vae-elbo
    schedule = NoiseSchedule([1.0])
    x = torch.ones(200000, 1, dtype=torch.float64)
    found = elbo(
        lambda x, t: x, x, schedule, prediction_type="sample", variance="fixed_large",
        generator=torch.Generator().manual_seed(0),
    )  # fmt: skip
    assert len(found.steps) == 0 and float(found.prior[0]) == 0
    assert abs(found.value.mean() + 1.918939) < 4 * found.value.std() / 200000**0.5


def test_bounds_stay_below_the_density():
    x = torch.full((4000, 1), 0.7, dtype=torch.float64)
    wrong = lambda x, t: 0.9 * SCHEDULE.signal_noise(t, x)[0] * x
    found = elbo(wrong, x, SCHEDULE, prediction_type="sample", variance="fixed_large")
    assert found.value.mean() < -1.17


def test_common_noise_makes_rows_independent_of_the_others():
    x = torch.tensor([[0.1], [0.7], [2.0]], dtype=torch.float64)
    one = [
        elbo(exact(SCHEDULE), v, SCHEDULE, prediction_type="sample", common=True, n_draws=2,
             generator=torch.Generator().manual_seed(1)).value
        for v in (x, x[1:])
    ]  # fmt: skip
    torch.testing.assert_close(one[0][1:], one[1])


def test_whole_numbers_have_probabilities():
    decoder = discretised(1.0, -2.0, 2.0)
    x = torch.arange(-2.0, 3.0, dtype=torch.float64)[:, None]
    for mean, sd in ((0.3, 0.5), (-7.0, 0.2), (0.0, 30.0), (2.0, 1e-3)):
        logs = decoder(x, torch.full_like(x, mean), torch.full_like(x, sd**2))
        np.testing.assert_allclose(logs.exp().sum(), 1, atol=1e-9)
        assert torch.isfinite(logs).all()
    real = discretised(0.0, 0.0, 0.0)
    want = torch.distributions.Normal(0.3, 0.5).log_prob(x)
    torch.testing.assert_close(real(x, x * 0 + 0.3, x * 0 + 0.25), want)


def test_wrong_names_are_refused():
    with pytest.raises(ValueError, match="form must be"):
        of(0.7, 1, form="C")
    with pytest.raises(ValueError, match="variance must be"):
        elbo(exact(SCHEDULE), torch.ones(1, 1), SCHEDULE, variance="small")
