"""Diffusion: the samplers with the same network and steps as the schedulers of diffusers, and learning
beside a hand-written loop. Our sampler hands the network one level for all rows, which it then embeds once; a
loop around diffusers makes a level for every row, and most of the difference at many rows is this.
"""

from __future__ import annotations

from typing import Any

from groundstate.bench import Benchmark, Peer

STEPS = {"ddim": 50, "dpmpp_2m": 20, "ddpm": 100}


def noise(size: tuple[int, int], seed: int) -> dict[str, Any]:
    import torch

    from groundstate.nn import MLPDenoiser

    torch.manual_seed(seed)
    net = MLPDenoiser(size[1], hidden=(128, 128)).eval()
    torch.nn.init.normal_(net.head.weight, std=1e-2)
    return {"x": torch.randn(size), "net": net}


def ours(data: dict[str, Any]) -> Any:
    from groundstate.infer.sampling.diffusion import SAMPLERS, DiffusionSampler
    from groundstate.math.diffusion import NoiseSchedule

    schedule = NoiseSchedule()
    return {
        name: DiffusionSampler(data["net"], SAMPLERS[name](schedule, n))(data["x"])
        for name, n in STEPS.items()
    }


def diffusers(data: dict[str, Any]) -> Any:
    import torch
    from diffusers import DDIMScheduler, DDPMScheduler, DPMSolverMultistepScheduler

    linear = {"beta_schedule": "linear", "beta_start": 1e-4, "beta_end": 0.02}
    made = {
        "ddim": DDIMScheduler(timestep_spacing="trailing", clip_sample=False, **linear),
        "dpmpp_2m": DPMSolverMultistepScheduler(
            timestep_spacing="trailing", final_sigmas_type="zero", **linear
        ),
        "ddpm": DDPMScheduler(timestep_spacing="trailing", clip_sample=False, **linear),
    }
    out = {}
    with torch.no_grad():
        for name, scheduler in made.items():
            scheduler.set_timesteps(STEPS[name])
            x = data["x"]
            for t in scheduler.timesteps:
                x = scheduler.step(data["net"](x, t.expand(len(x)) + 1), t, x).prev_sample
            out[name] = x
    return out


SAMPLING = Benchmark(
    name="diffusion-sampling",
    title="DDIM (50), DPM-Solver++ (20) and DDPM (100 steps) with one network",
    sizes={"64x16": (64, 16), "512x16": (512, 16), "4096x16": (4096, 16)},
    data=noise,
    ours=ours,
    peers={"diffusers": Peer(diffusers, "diffusers", "diffusers")},
    score=lambda data, out: float(out["dpmpp_2m"].square().mean()),
    score_name="mean square of DPM-Solver++ samples",
    target=1.0,
)


def rows(size: tuple[int, int], seed: int) -> dict[str, Any]:
    import numpy as np

    return {"X": np.random.default_rng(seed).normal(size=size).astype(np.float32)}


EPOCHS = 5


def fitted(data: dict[str, Any]) -> Any:
    from groundstate import DDPM

    return DDPM(max_iter=EPOCHS, hidden_layer_sizes=(256, 256), random_state=0).fit(data["X"])


def by_hand(data: dict[str, Any]) -> Any:
    import torch

    from groundstate.math.diffusion import NoiseSchedule
    from groundstate.nn import MLPDenoiser

    torch.manual_seed(0)
    X = torch.from_numpy(data["X"])
    X = (X - X.mean(0)) / X.std(0)
    net = MLPDenoiser(X.shape[1], hidden=(256, 256))
    mean = [p.detach().clone() for p in net.parameters()]
    bars = NoiseSchedule().alpha_bars.float()
    optimiser = torch.optim.Adam(net.parameters(), 1e-3, foreach=True)
    for _ in range(EPOCHS):
        for at in torch.randperm(len(X)).split(128):
            x = X[at]
            t = torch.randint(1, 1001, (len(x),))
            eps = torch.randn_like(x)
            bar = bars[t - 1][:, None]
            loss = (net(bar.sqrt() * x + (1 - bar).sqrt() * eps, t) - eps).square().sum(1).mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            with torch.no_grad():
                torch._foreach_lerp_(mean, [p.detach() for p in net.parameters()], 1e-3)
    return net


def error(data: dict[str, Any], made: Any) -> float:
    """Mean squared error of the predicted noise in new noisy rows."""
    import torch

    from groundstate.math.diffusion import NoiseSchedule, add_noise

    net = getattr(made, "energy_", None)
    net = made if net is None else net.net
    rng = torch.Generator().manual_seed(1)
    x, eps = torch.randn(2, 4000, 16, generator=rng)
    t = torch.randint(1, 1001, (4000,), generator=rng)
    with torch.no_grad():
        out = net(add_noise(x, eps, t, NoiseSchedule()), t)
    return float((out - eps).square().sum(1).mean())


LEARNING = Benchmark(
    name="diffusion-learning",
    title="DDPM(max_iter=5).fit against a loop written by hand, running mean of the weights included",
    sizes={"500x16": (500, 16), "2000x16": (2_000, 16), "8000x16": (8_000, 16)},
    data=rows,
    ours=fitted,
    peers={"torch loop": Peer(by_hand, "torch", "torch")},
    score=error,
    score_name="error of the predicted noise",
    target=0.95,
)
