"""Diffusion on a GPU: sampling with recorded steps.

``python bench/scripts/diffusion_gpu.py [--device cuda]``. The same U-Net and steps in three loops: ours with
the step recorded as a CUDA graph, ours launched kernel by kernel, and the schedulers of diffusers (where
installed; else their step written out). Writes ``diffusion-gpu.csv`` under ``$OUT`` where that is set.
"""

from __future__ import annotations

import argparse
import csv
import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from groundstate.infer.sampling.diffusion import SAMPLERS, DiffusionSampler
from groundstate.math.diffusion import NoiseSchedule
from groundstate.nn import UNetDenoiser

ROWS: list[dict[str, Any]] = []


def report(what: str, **numbers: Any) -> None:
    ROWS.append({"what": what, **numbers})
    print(what, " ".join(f"{k}={v}" for k, v in numbers.items()), flush=True)


def best(work: Callable[[], Any], device: str, repeats: int = 5) -> float:
    work()
    seconds = []
    for _ in range(repeats):
        if device == "cuda":
            torch.cuda.synchronize()
        start = time.perf_counter()
        work()
        if device == "cuda":
            torch.cuda.synchronize()
        seconds.append(time.perf_counter() - start)
    return float(np.median(seconds))


def peer_loop(
    name: str, n: int, net: Callable[[Tensor, Tensor], Tensor], x: Tensor
) -> Callable[[], Tensor]:
    """The loop of diffusers, or one that does what its step does where it is not installed."""
    try:
        import diffusers
    except ImportError:
        return written_out(n, net, x)
    linear: dict[str, Any] = {"beta_schedule": "linear", "beta_start": 1e-4, "beta_end": 0.02}
    if name == "ddim":
        made = diffusers.DDIMScheduler(timestep_spacing="trailing", clip_sample=False, **linear)
    elif name == "dpmpp_2m":
        made = diffusers.DPMSolverMultistepScheduler(
            timestep_spacing="trailing", final_sigmas_type="zero", **linear
        )
    else:
        made = diffusers.DDPMScheduler(timestep_spacing="trailing", clip_sample=False, **linear)

    @torch.no_grad()
    def run() -> Tensor:
        made.set_timesteps(n, device=x.device)
        state = x
        for t in made.timesteps:
            out = net(state, t.expand(len(x)) + 1)
            state = made.step(out, t, state).prev_sample
        return state

    return run


def written_out(n: int, net: Callable[[Tensor, Tensor], Tensor], x: Tensor) -> Callable[[], Tensor]:
    bars = NoiseSchedule().alpha_bars.to(x)

    @torch.no_grad()
    def run() -> Tensor:
        state = x
        for i in range(n):
            t = 1000 - i * (1000 // n)
            bar, after = bars[t - 1], bars[t - 1 - 1000 // n] if i < n - 1 else bars.new_ones(())
            out = net(state, torch.full((len(x),), t, device=x.device))
            clean = (state - (1 - bar).sqrt() * out) / bar.sqrt()
            state = after.sqrt() * clean + (1 - after).sqrt() * out
        return state

    return run


def sampling(device: str) -> None:
    schedule = NoiseSchedule()
    for base, rows in ((16, 16), (32, 64), (64, 256)):
        torch.manual_seed(0)
        net = UNetDenoiser((1, 28, 28), base=base).to(device).eval()
        nn.init.normal_(net.net.head.weight, std=1e-2)  # type: ignore[union-attr, arg-type]
        x = torch.randn(rows, 784, device=device)
        for name, n in (("ddpm", 100), ("ddim", 50), ("dpmpp_2m", 20)):
            steps = SAMPLERS[name](schedule, n)
            ours = DiffusionSampler(net, steps)
            plain = DiffusionSampler(net, steps, record=False)
            seconds = {
                "recorded": best(partial(ours, x), device),
                "launched": best(partial(plain, x), device),
                "peer": best(peer_loop(name, n, net, x), device),
            }
            draws = [torch.Generator(device).manual_seed(0) for _ in range(2)]
            gap = (ours(x, generator=draws[0]) - plain(x, generator=draws[1])).abs().max().item()
            report(
                f"sample {name} {n} steps, base {base}, {rows} rows",
                **{k: round(v, 5) for k, v in seconds.items()},
                times_peer=round(seconds["peer"] / seconds["recorded"], 2),
                times_launched=round(seconds["launched"] / seconds["recorded"], 2),
                largest_gap=gap,
            )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cuda")
    given = parser.parse_args()
    try:
        sampling(given.device)
    finally:
        if "OUT" in os.environ and ROWS:
            names = list(dict.fromkeys(k for row in ROWS for k in row))
            with (Path(os.environ["OUT"]) / "diffusion-gpu.csv").open("w", newline="") as file:
                writer = csv.DictWriter(file, names)
                writer.writeheader()
                writer.writerows(ROWS)


if __name__ == "__main__":
    main()
