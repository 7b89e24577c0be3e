"""Diffusion on a GPU: sampling with recorded steps, and digits by a small DDPM.

``python bench/scripts/diffusion_gpu.py [--device cuda] [--data .gpudata] [--epochs 60]``. The same U-Net
and steps in three loops: ours with the step recorded as a CUDA graph, ours launched kernel by kernel,
and the schedulers of diffusers (where installed; else their step written out). Then `DDPM` learns the
10,000 digits of MNIST in ``--data``, and the Fréchet distance of its samples is measured in the features
of a small classifier, beside that between two halves of the digits. Writes ``diffusion-gpu.csv`` and
``digits.png`` under ``$OUT`` where that is set.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from groundstate import DDPM
from groundstate.infer.sampling.diffusion import SAMPLERS, DiffusionSampler
from groundstate.math.diffusion import NoiseSchedule
from groundstate.math.divergences import frechet_from_samples
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


def digits(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    def read(name: str, head: int) -> np.ndarray:
        raw = gzip.decompress((folder / name).read_bytes())
        return np.frombuffer(raw, np.uint8, offset=head)

    X = read("mnist10k-images-idx3-ubyte.gz", 16).reshape(-1, 28, 28).astype(np.float32) / 255
    return X, read("mnist10k-labels-idx1-ubyte.gz", 8).astype(np.int64)


def classifier(X: np.ndarray, y: np.ndarray, device: str) -> nn.Sequential:
    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Conv2d(1, 32, 3, 2, 1), nn.ReLU(), nn.Conv2d(32, 64, 3, 2, 1), nn.ReLU(), nn.Flatten(),
        nn.Linear(64 * 49, 64), nn.ReLU(), nn.Linear(64, 10),
    ).to(device)  # fmt: skip
    rows, labels = torch.from_numpy(X).to(device)[:, None], torch.from_numpy(y).to(device)
    optimiser = torch.optim.Adam(net.parameters(), 1e-3)
    for _ in range(8):
        for at in torch.randperm(len(rows), device=device).split(128):
            optimiser.zero_grad()
            nn.functional.cross_entropy(net(rows[at]), labels[at]).backward()
            optimiser.step()
    return net


@torch.no_grad()
def features(net: nn.Sequential, X: np.ndarray, device: str) -> np.ndarray:
    return net[:-1](torch.from_numpy(X).to(device)[:, None]).cpu().double().numpy()


def learn_digits(folder: Path, epochs: int, device: str) -> None:
    X, y = digits(folder)
    order = np.random.default_rng(0).permutation(len(X))  # the file is sorted by difficulty
    X, y = X[order], y[order]
    model = DDPM(
        1000, "cosine", network_params={"base": 32}, scale="minmax", max_iter=epochs,
        sampler="dpmpp_2m", sample_steps=25, random_state=0, device=device,
    )  # fmt: skip
    start = time.perf_counter()
    model.fit(X, y)
    fitted = time.perf_counter() - start
    start = time.perf_counter()
    drawn = np.asarray(model.sample(2000, random_state=0), np.float32).clip(0, 1)
    drawing = time.perf_counter() - start
    net = classifier(X, y, device)
    half = len(X) // 2
    true = features(net, X, device)

    def distance(a: np.ndarray, b: np.ndarray) -> float:
        return round(float(frechet_from_samples(a, b)), 3)

    labels = np.repeat(np.arange(10), 100)
    asked = np.asarray(model.sample(1000, y=labels, guidance_scale=2.0, random_state=1), np.float32)
    with torch.no_grad():
        said = net(torch.from_numpy(asked.clip(0, 1)).to(device)[:, None]).argmax(1).cpu().numpy()
    report(
        "digits by DDPM", fit_s=round(fitted, 1), sample_2000_s=round(drawing, 2), epochs=epochs,
        loss=round(model.loss_curve_[-1], 3), frechet=distance(features(net, drawn, device), true),
        frechet_of_halves=distance(true[:half], true[half:]),
        right_label_at_guidance_2=round(float((said == labels).mean()), 3),
    )  # fmt: skip
    picture(asked.reshape(10, 100, 28, 28)[:, :10])


def picture(rows: np.ndarray) -> None:
    if "OUT" not in os.environ:
        return
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import image

    sheet = rows.transpose(0, 2, 1, 3).reshape(280, 280).clip(0, 1)
    image.imsave(Path(os.environ["OUT"]) / "digits.png", sheet, cmap="gray")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--data", default=".gpudata")
    parser.add_argument("--epochs", type=int, default=60)
    given = parser.parse_args()
    try:
        sampling(given.device)
        if Path(given.data, "mnist10k-images-idx3-ubyte.gz").is_file():
            learn_digits(Path(given.data), given.epochs, given.device)
    finally:
        if "OUT" in os.environ and ROWS:
            names = list(dict.fromkeys(k for row in ROWS for k in row))
            with (Path(os.environ["OUT"]) / "diffusion-gpu.csv").open("w", newline="") as file:
                writer = csv.DictWriter(file, names)
                writer.writeheader()
                writer.writerows(ROWS)


if __name__ == "__main__":
    main()
