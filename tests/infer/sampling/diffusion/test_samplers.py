"""Samplers of diffusions against closed forms and against diffusers."""

import math

import pytest
import torch
from torch import Tensor

from groundstate.infer.sampling.diffusion import (
    SAMPLERS,
    DiffusionSampler,
    Steps,
    ddim,
    ddpm,
    encode,
    timesteps,
)
from groundstate.infer.sampling.diffusion.loop import advance
from groundstate.math.diffusion import PREDICTION_TYPES, NoiseSchedule, convert

SCHEDULE = NoiseSchedule()
START = torch.tensor([[-1.5, -0.3, 0.4, 2.0]], dtype=torch.float64)
NOISE = torch.tensor(
    [0.8032760780963507, 0.17483339327910358, 0.08897809502587893, -0.6137180077293578]
)


def exact(x: Tensor, t: Tensor, schedule: NoiseSchedule = SCHEDULE) -> Tensor:
    """ε of data from N(2, .25)."""
    a, s = schedule.signal_noise(t, x)
    return s * (x - 2 * a) / (0.25 * a * a + s * s)


def bent(x: Tensor, t: Tensor) -> Tensor:
    return exact(x, t) + 0.05 * torch.sin(3 * x) * t[:, None] / 1000


def moments(steps: Steps) -> tuple[float, float]:
    """Mean and standard deviation of what a sampler makes of N(0, 1) with the exact ε of N(2, .25)."""
    mean, variance = 0.0, 1.0
    for i in range(len(steps)):
        a, s = steps.signal[i].item(), steps.noise[i].item()
        own, clean, fresh = (c[i].item() for c in (steps.own, steps.clean, steps.fresh))
        k = 0.25 * a / (0.25 * a * a + s * s)  # E[x₀ | x] = k x + c
        c = 2 - k * a * 2
        mean = (own + clean * k) * mean + clean * c
        variance = (own + clean * k) ** 2 * variance + fresh**2
    return mean, math.sqrt(variance)


def test_ancestral_sampling_of_a_gaussian():
    for kind, sd in (("fixed_large", 0.50075), ("fixed_small", 0.49611)):
        mean, found = moments(ddpm(SCHEDULE, variance=kind))
        assert abs(mean - 1.99998) < 1e-5 and abs(found - sd) < 1e-5
    coarse = NoiseSchedule("linear", 100, start=1e-3, end=0.2)
    assert abs(moments(ddpm(coarse, variance="fixed_large"))[1] - 0.5077) < 1e-4
    assert abs(moments(ddpm(coarse, variance="fixed_small"))[1] - 0.4682) < 1e-4


@pytest.mark.parametrize(
    ("n", "sd"), [(10, 0.369955), (50, 0.471403), (100, 0.485447), (1000, 0.498495)]
)
def test_implicit_sampling_of_a_gaussian(n, sd):
    assert abs(moments(ddim(SCHEDULE, n))[1] - sd) < 1e-6


def test_implicit_sampling_with_all_noise_is_ancestral():
    assert abs(moments(ddim(SCHEDULE, eta=1.0))[1] - 0.496110) < 1e-6
    for n in (1000, 30):
        implicit, ancestral = ddim(SCHEDULE, n, eta=1.0), ddpm(SCHEDULE, n)
        for name in ("own", "clean", "fresh"):
            torch.testing.assert_close(getattr(implicit, name), getattr(ancestral, name))


# diffusers 0.42.1, timestep_spacing="trailing", betas linear 1e-4 to .02, no clipping: DDIMScheduler,
# DPMSolverMultistepScheduler(final_sigmas_type="zero") and HeunDiscreteScheduler begun at START
# · sqrt(σ² + 1), each stepped over its timesteps with net(scale_model_input(x, t), t + 1)
PEER = {
    ("ddim", 4): [1.5495123867998704, 1.9859669180717638, 1.9863767849952119, 2.424864932340309],
    ("dpmpp_2m", 4): [1.7186414536230163, 1.8833342574582836, 2.1473987738693276, 2.3992293047831925],
    ("heun", 4): [1.9195671588973235, 1.632600213581449, 2.381362169305608, 2.3317814756259256],
    ("ddim", 10): [1.3532667198003754, 1.9201841947375304, 2.062107887343024, 2.7235303127687653],
    ("dpmpp_2m", 10): [1.3459501486487746, 1.8889290827545109, 2.11884606137987, 2.7908417978611113],
    ("heun", 10): [1.3216324612508914, 1.864576990448304, 2.146808494874258, 2.84609701066822],
    ("ddim", 50): [1.219573502884055, 1.8800167766123346, 2.1151203533477463, 2.922666440845904],
    ("dpmpp_2m", 50): [1.1802796187475542, 1.868608591334024, 2.1298983425572398, 2.9799957537313517],
    ("heun", 50): [1.1886097250573344, 1.8697979290186344, 2.129127873689723, 2.9704262602190052],
}  # fmt: skip


@pytest.mark.parametrize(("name", "n"), list(PEER))
def test_parity_with_diffusers(name, n):
    made = DiffusionSampler(bent, SAMPLERS[name](SCHEDULE, n))(START)
    # diffusers keeps ᾱ in float32
    torch.testing.assert_close(made[0], torch.tensor(PEER[name, n]).double(), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("kind", "peer"),
    [  # the same with prediction_type=kind of DDIMScheduler, 10 steps
        ("sample", [-6.775690481457883, -4.444778269875284, -3.0020174326532407, 0.15370282756914788]),
        ("v_prediction", [0.9921360047896108, 1.1312086189044692, 1.2085022194835702, 1.4069842531314982]),
    ],
)  # fmt: skip
def test_parity_of_prediction_types(kind, peer):
    made = DiffusionSampler(bent, ddim(SCHEDULE, 10), kind)(START)
    torch.testing.assert_close(made[0], torch.tensor(peer).double(), rtol=1e-6, atol=1e-6)


def one_step(steps: Steps, i: int) -> Tensor:
    sampler = DiffusionSampler(bent, steps)
    out = bent(START, steps.t[i].expand(1))
    moved: Tensor = advance(START, START, out, NOISE.double(), sampler.rows[i].tolist(), None)[0]
    return moved[0]


@pytest.mark.parametrize(
    ("variance", "t", "peer"),
    [  # DDPMScheduler(variance_type=...).step(net, t - 1, START, generator=Generator().manual_seed(3))
        ("fixed_small", 1000, [-1.372053823161, -0.271211519628, 0.407878129155, 1.893643989397]),
        ("fixed_small", 501, [-1.405231059126, -0.274574801965, 0.412396854061, 1.933196191427]),
        ("fixed_small", 101, [-1.443576335285, -0.278394135798, 0.413931108487, 1.973599845245]),
        ("fixed_large", 1000, [-1.372053775282, -0.271211509207, 0.407878134459, 1.893643952816]),
        ("fixed_large", 501, [-1.405196514438, -0.274567283298, 0.412400680542, 1.933169798637]),
        ("fixed_large", 101, [-1.443246083999, -0.278322256460, 0.413967690095, 1.973347527061]),
    ],
)  # fmt: skip
def test_a_step_of_ddpm_equals_diffusers(variance, t, peer):
    found = one_step(ddpm(SCHEDULE, variance=variance), 1000 - t)
    # its ᾱ in float32 leave 1 - ᾱ four digits at t = 2, so that it is compared at larger t
    torch.testing.assert_close(found, torch.tensor(peer).double(), rtol=0, atol=1e-6)


def test_a_noisy_step_of_ddim_equals_diffusers():
    # DDIMScheduler with 10 steps, .step(net, 499, START, eta=.5, generator=Generator().manual_seed(3))
    peer = [-0.6372440094216545, 0.21091451799961825, 0.7596588243757141, 1.9197332795775253]
    found = one_step(ddim(SCHEDULE, 10, eta=0.5), 5)
    torch.testing.assert_close(found, torch.tensor(peer).double(), rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", SAMPLERS)
def test_all_parametrisations_make_the_same_rows(name):
    steps = SAMPLERS[name](SCHEDULE, 8)

    def as_kind(kind: str):
        return lambda x, t: convert(bent(x, t), x, t, SCHEDULE, "epsilon", kind)

    first = None
    for kind in PREDICTION_TYPES:
        sampler = DiffusionSampler(as_kind(kind), steps, kind)
        made = sampler(START, generator=torch.Generator().manual_seed(0))
        first = made if first is None else first
        torch.testing.assert_close(made, first, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ["ddim", "heun", "dpmpp_2m"])
def test_solvers_converge_to_the_same_flow(name):
    # the flow of N(2, .25) maps x to 2 + x/2, up to the signal that is left at T
    made = DiffusionSampler(exact, SAMPLERS[name](SCHEDULE, 200))(START)
    torch.testing.assert_close(made, 2 + START / 2, rtol=0, atol=0.04 if name == "ddim" else 0.02)


def test_noise_can_be_found_again():
    for n in (20, 100):
        x = 2 + START / 2
        z = encode(exact, x, SCHEDULE, n, n_iter=40)
        made = DiffusionSampler(exact, ddim(SCHEDULE, n))(z)
        torch.testing.assert_close(made, x, rtol=0, atol=1e-6)


def test_rows_do_not_see_each_other_and_paths_are_kept():
    steps = SAMPLERS["dpmpp_2m"](SCHEDULE, 6)
    x = torch.randn(5, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    sampler = DiffusionSampler(bent, steps)
    whole, film = sampler(x, path=True)
    assert len(film) == 7 and torch.equal(film[0], x) and torch.equal(film[-1], whole)
    torch.testing.assert_close(whole, torch.cat([sampler(row[None]) for row in x]))


def test_clean_rows_are_clipped():
    made = DiffusionSampler(bent, ddim(SCHEDULE, 10), clip=(-1.0, 1.0))(START)
    assert made.max() <= 1


def test_learned_variances_lie_between_the_fixed_ones():
    fixed = {kind: ddpm(SCHEDULE, variance=kind) for kind in ("fixed_small", "fixed_large")}
    learned = DiffusionSampler(bent, ddpm(SCHEDULE, variance="learned"))
    for raw, kind in ((1.0, "fixed_large"), (-1.0, "fixed_small")):
        out = torch.cat([bent(START, torch.tensor([500])), torch.full_like(START, raw)], 1)
        found = advance(START, START, out, NOISE.double(), learned.rows[500].tolist(), None)[0]
        want = DiffusionSampler(bent, fixed[kind])
        same = advance(START, START, out[:, :4], NOISE.double(), want.rows[500].tolist(), None)[0]
        torch.testing.assert_close(found, same)


def test_spacings_are_those_of_diffusers():
    # DDIMScheduler(timestep_spacing=...).set_timesteps(4).timesteps + 1
    assert timesteps(SCHEDULE, 4).tolist() == [1000, 750, 500, 250]
    assert timesteps(SCHEDULE, 4, "leading").tolist() == [751, 501, 251, 1]
    assert timesteps(SCHEDULE).tolist() == list(range(1000, 0, -1))


def test_levels_without_signal():
    zero = SCHEDULE.zero_terminal()
    with pytest.raises(ValueError, match="without signal"):
        DiffusionSampler(bent, ddim(zero, 10))
    for name in ("ddim", "ddpm", "dpmpp_2m"):
        v = DiffusionSampler(lambda x, t: 0 * x, SAMPLERS[name](zero, 10), "v_prediction")
        assert torch.isfinite(v(START)).all()


def test_bad_settings_are_refused():
    with pytest.raises(ValueError, match="1 to 1000"):
        ddim(SCHEDULE, 1001)
    with pytest.raises(ValueError, match="eta must be"):
        ddim(SCHEDULE, 10, eta=2)
    with pytest.raises(ValueError, match="variance must be one of"):
        ddpm(SCHEDULE, variance="small")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="spacing must be"):
        timesteps(SCHEDULE, 4, "even")  # type: ignore[arg-type]
