"""Forward kernels, posteriors and parametrisations."""

import numpy as np
import pytest
import torch

from groundstate.math.diffusion import (
    PREDICTION_TYPES,
    ContinuousSchedule,
    NoiseSchedule,
    add_noise,
    convert,
    forward_kernel,
    posterior,
    reverse_mean,
)


@pytest.fixture
def schedule() -> NoiseSchedule:
    with pytest.warns(UserWarning, match="keeps a share"):
        return NoiseSchedule([0.1, 0.2, 0.3])


@pytest.mark.parametrize(
    ("t", "x", "mean", "variance", "score"),
    [
        (2, 1.113103, 1.033199, 0.0714286, -0.944911),
        (3, 1.062066, 1.014845, 0.169355, -0.709952),
    ],
)
def test_numbers_of_the_specification(schedule, t, x, mean, variance, score):
    x0, noise = np.array([[1.0]]), np.array([[0.5]])
    xt = add_noise(x0, noise, t, schedule)
    np.testing.assert_allclose(xt, x, atol=1e-6)
    q = posterior(x0, xt, t, schedule)
    np.testing.assert_allclose(q.mean, mean, atol=1e-6)
    np.testing.assert_allclose(q.variance, variance, atol=1e-6)
    np.testing.assert_allclose(
        convert(noise, xt, t, schedule, "epsilon", "score"), score, atol=1e-6
    )
    for kind in PREDICTION_TYPES:
        prediction = convert(noise, xt, t, schedule, "epsilon", kind)
        np.testing.assert_allclose(reverse_mean(prediction, xt, t, schedule, kind), mean, atol=1e-6)


@pytest.mark.parametrize("source", PREDICTION_TYPES)
@pytest.mark.parametrize("target", PREDICTION_TYPES)
@pytest.mark.parametrize("continuous", [False, True])
def test_round_trips(source, target, continuous):
    rng = np.random.default_rng(0)
    x, value = torch.tensor(rng.normal(size=(2, 5, 3)))
    schedule = ContinuousSchedule("subvp") if continuous else NoiseSchedule()
    t = (
        torch.tensor([0.1, 0.3, 0.5, 0.7, 0.9])
        if continuous
        else torch.tensor([1, 10, 200, 500, 900])
    )
    there = convert(value, x, t, schedule, source, target)
    back = convert(there, x, t, schedule, target, source)
    torch.testing.assert_close(back, value, rtol=1e-6, atol=1e-6)


def test_unit_variance_is_kept_and_steps_compose():
    schedule = NoiseSchedule("cosine", 20)
    for t in range(1, 21):
        a, s = schedule.signal_noise(t, torch.ones(1, dtype=torch.float64))
        assert abs(a**2 + s**2 - 1) < 1e-12
        step = forward_kernel(torch.ones(1, 1, dtype=torch.float64), t, schedule)
        before, s_before = schedule.signal_noise(t - 1, torch.ones(1, dtype=torch.float64))
        torch.testing.assert_close((step.mean * before).item(), a.item())
        kept = step.mean.item() ** 2 * s_before.item() ** 2
        torch.testing.assert_close(kept + step.variance.item(), s.item() ** 2)


def test_first_step_has_no_variance(schedule):
    q = posterior([[1.0, 2.0]], [[3.0, 4.0]], 1, schedule)
    np.testing.assert_allclose(q.mean, [[1.0, 2.0]], rtol=1e-14)
    assert q.variance == 0


def test_posterior_is_bayes_rule():
    # q(x_{t-1} | x_t, x_0) ∝ q(x_t | x_{t-1}) q(x_{t-1} | x_0), on a grid
    schedule = NoiseSchedule("cosine", 10)
    grid = np.linspace(-8, 8, 20001)
    t, x0, xt = 6, 0.7, -0.4
    a, s = (float(v) for v in schedule.signal_noise(t - 1, torch.ones(1, dtype=torch.float64)))
    mean = np.sqrt(schedule.alphas[t - 1].item()) * grid
    log_p = -((grid - a * x0) ** 2) / (2 * s**2)
    log_p -= (xt - mean) ** 2 / (2 * schedule.betas[t - 1].item())
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    q = posterior([[x0]], [[xt]], t, schedule)
    np.testing.assert_allclose((p * grid).sum(), q.mean[0, 0], atol=1e-6)
    np.testing.assert_allclose((p * (grid - q.mean[0, 0]) ** 2).sum(), q.variance, atol=1e-6)


def test_rows_with_levels_of_their_own_equal_a_loop():
    schedule = NoiseSchedule()
    x0, noise = torch.randn(2, 4, 3, 2, 2, dtype=torch.float64, generator=torch.Generator())
    t = torch.tensor([1, 7, 300, 1000])
    whole = add_noise(x0, noise, t, schedule)
    for i in range(4):
        torch.testing.assert_close(whole[i], add_noise(x0[i], noise[i], int(t[i]), schedule))
    q = posterior(x0, whole, t, schedule)
    for i in range(4):
        torch.testing.assert_close(q.mean[i], posterior(x0[i], whole[i], int(t[i]), schedule).mean)


def test_dtype_and_gradient_follow_the_rows(schedule):
    x = torch.ones(2, 3, requires_grad=True)
    out = add_noise(x, torch.zeros(2, 3), 2, schedule)
    assert out.dtype == torch.float32
    out.sum().backward()
    torch.testing.assert_close(x.grad, torch.full((2, 3), 0.72**0.5))


def test_wrong_names_are_refused(schedule):
    with pytest.raises(ValueError, match="prediction_type must be one of"):
        convert([[1.0]], [[1.0]], 1, schedule, "noise", "sample")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="prediction_type must be one of"):
        convert([[1.0]], [[1.0]], 1, schedule, "sample", "noise")  # type: ignore[arg-type]
