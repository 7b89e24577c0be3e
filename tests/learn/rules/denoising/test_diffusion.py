"""The loss of denoisers: weights of the specification, identities, what is drawn."""

import numpy as np
import pytest
import torch

from groundstate.energy import DenoiserEnergy, LinearEnergy
from groundstate.errors import ShapeError, Unsupported
from groundstate.learn import Diffusion
from groundstate.learn.losses import diffusion
from groundstate.learn.rules.denoising.diffusion import levels
from groundstate.math.diffusion import (
    PREDICTION_TYPES,
    NoiseSchedule,
    add_noise,
    convert,
    loss_weights,
    posterior,
)


@pytest.fixture
def schedule() -> NoiseSchedule:
    with pytest.warns(UserWarning, match="keeps a share"):
        return NoiseSchedule([0.1, 0.2, 0.3])


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_weights_of_the_bound(schedule):
    for kind, want in (
        ("sample", [3.2142857, 0.7776498]),
        ("epsilon", [1.25, 0.7653061]),
        ("score", [0.35, 0.3795918]),
    ):
        np.testing.assert_allclose(loss_weights(schedule, "vlb", kind)[1:], want, atol=1e-7)
    # (1 − α)² / (2 σ_q² (1 − ᾱ) α), and (1 − α)² / (2 σ_q² α)
    alpha, bar, v = (
        v[1:] for v in (schedule.alphas, schedule.alpha_bars, schedule.posterior_variances)
    )
    score = (1 - alpha) ** 2 / (2 * v * alpha)
    torch.testing.assert_close(loss_weights(schedule, "vlb", "score")[1:], score)
    torch.testing.assert_close(loss_weights(schedule, "vlb")[1:], score / (1 - bar))


def test_weights_of_the_parametrisations(schedule):
    bar = schedule.alpha_bars
    for weighting in ("vlb", "snr", "min_snr"):
        clean = loss_weights(schedule, weighting, "sample")
        torch.testing.assert_close(loss_weights(schedule, weighting), clean * (1 - bar) / bar)
    torch.testing.assert_close(loss_weights(schedule, "snr"), torch.ones(3).double())
    wide = NoiseSchedule()
    torch.testing.assert_close(
        loss_weights(wide, "min_snr"), (5 / wide.snr).clamp(max=1), rtol=1e-12, atol=1e-12
    )


def test_the_bound_is_the_kl_between_steps():
    # KL of two normals with the variance of the posterior is ‖Δμ‖²/(2σ²), for every parametrisation
    schedule = NoiseSchedule("cosine", 8)
    rng = torch.Generator().manual_seed(0)
    x0, noise, guess = torch.randn(3, 7, 3, generator=rng, dtype=torch.float64)
    t = torch.arange(2, 9)
    xt = add_noise(x0, noise, t, schedule)
    true, made = posterior(x0, xt, t, schedule), posterior(guess, xt, t, schedule)
    kl = (true.mean - made.mean).square().sum(1) / (2 * true.variance[:, 0])
    for kind in PREDICTION_TYPES:
        pred, target = (convert(v, xt, t, schedule, "sample", kind) for v in (guess, x0))
        loss = diffusion(
            pred, target, t, schedule, reduction="none", weighting="vlb", prediction_type=kind
        )
        torch.testing.assert_close(loss, 8 * kl, rtol=1e-6, atol=1e-6)  # times the number of terms


def test_a_predictor_of_nothing_loses_one_per_coordinate():
    energy = DenoiserEnergy(lambda x, t: 0 * x, 5, NoiseSchedule())
    loss = Diffusion()(energy, {"x": torch.zeros(20000, 5)}, generator=seeded()).loss
    assert abs(loss.mean() - 5) < 4 * (10 / 20000) ** 0.5


def test_losses_sum_over_coordinates_and_weigh_rows():
    schedule = NoiseSchedule()
    pred, target = torch.zeros(2, 3, 2), torch.ones(2, 3, 2)
    t, w = torch.tensor([3, 9]), torch.tensor([3.0, 1.0])
    each = diffusion(pred, target, t, schedule, reduction="none", weighting="snr")
    torch.testing.assert_close(each, torch.full((2,), 6.0))
    torch.testing.assert_close(
        diffusion(pred, target, t, schedule, w, weighting=lambda t, s: t.double()),
        torch.tensor((3 * 6 * 3 + 6 * 9) / 4),
    )
    with pytest.raises(ShapeError, match="one shape"):
        diffusion(pred, target[:1], t, schedule)
    with pytest.raises(ValueError, match="weighting must be"):
        diffusion(pred, target, t, schedule, weighting="plain")  # type: ignore[arg-type]


def test_levels_are_uniform_and_stratified():
    like = torch.zeros(1)
    one = levels(50, 100, like, seeded())
    assert (one.sort().values.diff() >= 1).all() and one.min() >= 1 and one.max() <= 100
    first = torch.stack([levels(4, 10, like, seeded(i))[0] for i in range(2000)])
    counts = torch.bincount(first, minlength=11)[1:].double()
    assert counts.min() > 150 and counts.max() < 250


def test_unknown_labels():
    seen = []

    def net(x, t, y):
        seen.append(y)
        return 0 * x

    energy = DenoiserEnergy(net, 2, NoiseSchedule(), q=3)
    batch = {"x": torch.zeros(2000, 2), "y": torch.ones(2000, 3)}
    Diffusion(label_dropout=0.25)(energy, batch, generator=seeded())
    gone = (seen[0] == 0).all(1).double().mean()
    assert abs(gone - 0.25) < 0.04 and bool(((seen[0] == 0) | (seen[0] == 1)).all())
    rule = Diffusion(label_dropout=0.25).eval()
    rule(energy, batch, generator=seeded())
    assert bool((seen[1] == 1).all())


def test_learned_variances_are_pulled_to_the_best():
    # with the exact mean the bound's term is least at the variance of the posterior of x_{t-1} given x_t
    schedule = NoiseSchedule("cosine", 10)
    raw = torch.zeros(10, dtype=torch.float64, requires_grad=True)

    def net(x, t):
        s = schedule.signal_noise(t, x)[1]
        return torch.cat([s * x, raw[t - 1][:, None].expand_as(x)], 1)  # data from N(0, 1)

    energy = DenoiserEnergy(net, 1, schedule, variance="learned")
    x = torch.randn(40000, 1, dtype=torch.float64, generator=seeded())
    optimiser = torch.optim.Adam([raw], lr=0.1)
    rule = Diffusion(bound_share=1.0)
    for i in range(150):
        optimiser.zero_grad()
        rule(energy, {"x": x[i % 20 :: 20]}, generator=seeded(i)).loss.mean().backward()
        optimiser.step()
    # the reverse kernel of N(0, 1) has the variance β, at the top of the range
    assert (raw[1:].detach() - 1).abs().max() < 0.25


def test_energies_without_a_denoiser_are_refused():
    with pytest.raises(Unsupported, match="no denoiser"):
        Diffusion()(LinearEnergy(2, 2), {"x": torch.zeros(1, 2), "y": torch.zeros(1).long()})
    with pytest.raises(ValueError, match="label_dropout"):
        Diffusion(label_dropout=1.0)
