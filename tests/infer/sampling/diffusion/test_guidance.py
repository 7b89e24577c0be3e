"""Guidance by labels and by classifiers, on Gaussians where the guided distribution is known."""

import pytest
import torch
from torch import Tensor

from groundstate.infer.sampling.diffusion import (
    ClassifierFree,
    ClassifierGuided,
    DiffusionSampler,
    ddim,
)
from groundstate.math.diffusion import NoiseSchedule

SCHEDULE = NoiseSchedule()


def score(x: Tensor, t: Tensor, y: Tensor) -> Tensor:
    """N(1, .5) with a label, N(0, 1.5) without."""
    return torch.where(y > 0, -(x - 1) / 0.5, -x / 1.5)


@pytest.mark.parametrize(
    ("w", "mean", "variance"),
    [(0, 0, 1.5), (1, 1, 0.5), (2, 1.2, 0.3), (3, 1.285714, 0.214286), (7.5, 1.40625, 0.09375)],
)
def test_guided_gaussian(w, mean, variance):
    guided = ClassifierFree(score, w)
    x = torch.tensor([[-1.0], [0.5], [2.0]], dtype=torch.float64)
    found = guided(x, torch.ones(3), torch.ones(3, 1))
    torch.testing.assert_close(found, -(x - mean) / variance, rtol=1e-5, atol=1e-5)


def test_one_call_for_both_branches():
    calls = []

    def net(x, t, y):
        calls.append(len(x))
        return score(x, t, y)

    for w, rows in ((0.0, 3), (1.0, 3), (4.0, 6)):
        calls.clear()
        ClassifierFree(net, w)(torch.zeros(3, 1), torch.ones(3), torch.ones(3, 1))
        assert calls == [rows]


def test_interval_guides_between_levels_alone():
    x, y = torch.zeros(3, 1, dtype=torch.float64), torch.ones(3, 1)
    t = torch.tensor([100, 500, 900])
    found = ClassifierFree(score, 3.0, interval=(400, 600))(x, t, y)
    plain, strong = score(x, t, y), ClassifierFree(score, 3.0)(x, t, y)
    torch.testing.assert_close(found, torch.stack([plain[0], strong[1], plain[2]]))


def test_rescaling_gives_back_the_spread():
    x = torch.randn(4, 16, generator=torch.Generator().manual_seed(0))
    y, t = torch.ones(4, 1), torch.ones(4)
    bound = score(x, t, y)
    found = ClassifierFree(score, 5.0, rescale=1.0)(x, t, y)
    torch.testing.assert_close(found.std(1), bound.std(1))
    half = ClassifierFree(score, 5.0, rescale=0.5)(x, t, y)
    torch.testing.assert_close(half, 0.5 * (found + ClassifierFree(score, 5.0)(x, t, y)))
    column = ClassifierFree(score, 5.0)(x[:, :1], t, y)  # one coordinate has no spread to give back
    torch.testing.assert_close(ClassifierFree(score, 5.0, rescale=1.0)(x[:, :1], t, y), column)


@pytest.mark.parametrize("kind", ["epsilon", "score", "sample", "v_prediction"])
def test_classifier_turns_a_prior_into_its_posterior(kind):
    # x₀ ~ N(0, 1) and y | x₀ ~ N(x₀, 1): the posterior at y is N(y/2, 1/2)
    from groundstate.math.diffusion import convert

    def net(x, t):
        s = SCHEDULE.signal_noise(t, x)[1]
        return convert(s * x, x, t, SCHEDULE, "epsilon", kind)

    def log_prob(x, t, y):  # y | x_t ~ N(a x, 2 - a²)
        a = SCHEDULE.signal_noise(t, x)[0]
        return -0.5 * ((y - a * x).square() / (2 - a * a)).sum(1)

    guided = ClassifierGuided(net, log_prob, SCHEDULE, prediction_type=kind)
    z = torch.tensor([[-1.0], [0.0], [1.0]], dtype=torch.float64)
    y = torch.full((3, 1), 1.6, dtype=torch.float64)
    made = DiffusionSampler(guided, ddim(SCHEDULE, 500), kind)(z, (y,))
    torch.testing.assert_close(made, 0.8 + 0.5**0.5 * z, rtol=0, atol=0.01)


def test_bad_settings_are_refused():
    with pytest.raises(ValueError, match="guidance_scale must be"):
        ClassifierFree(score, -1.0)
    with pytest.raises(ValueError, match="rescale must be"):
        ClassifierFree(score, 2.0, rescale=2.0)
