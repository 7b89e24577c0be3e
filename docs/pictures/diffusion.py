"""Pictures of diffusion models."""

from __future__ import annotations

import torch
from common import COLOURS, figure
from matplotlib.figure import Figure
from sklearn.datasets import make_moons

from groundstate import DDPM
from groundstate.infer.sampling.diffusion import DiffusionSampler, ddim, dpmpp_2m
from groundstate.math.diffusion import NoiseSchedule


def ddpm() -> Figure:
    """Noise becomes moons; guided rows of one label."""
    X, y = make_moons(300, noise=0.05, random_state=0)
    model = DDPM(
        40, "cosine", hidden_layer_sizes=(64, 64), batch_size=150, max_iter=150,
        learning_rate_init=5e-3, label_dropout=0.3, random_state=0,
    )  # fmt: skip
    model.fit(X, y)
    _, film = model.sample(300, return_path=True, random_state=0)
    fig = Figure(figsize=(8.0, 4.2), layout="constrained")
    above, below = fig.subfigures(2)
    for k, at in enumerate((0, 20, 30, 36, 40)):
        ax = above.add_subplot(1, 5, k + 1)
        ax.scatter(*film[at].T, s=4, color=COLOURS[0], linewidth=0)
        ax.set(title=f"{at} of 40 steps", xlim=(-2.5, 3.5), ylim=(-2, 2.5), xticks=[], yticks=[])
    for k, w in enumerate((0.0, 1.0, 2.0, 5.0)):
        ax = below.add_subplot(1, 4, k + 1)
        drawn = model.sample(
            200, y=1, guidance_scale=w, sampler="ddim", sample_steps=20, random_state=0
        )
        ax.scatter(*X.T, s=3, color="lightgrey", linewidth=0)
        ax.scatter(*drawn.T, s=4, color=COLOURS[1], linewidth=0)
        ax.set(title=f"guidance {w:g}", xlim=(-2.5, 3.5), ylim=(-2, 2.5), xticks=[], yticks=[])
    return fig


def family() -> Figure:
    """Signal left by the schedules, and the spread of samples by number of steps."""
    fig, (left, right) = figure(2)
    for k, kind in enumerate(("linear", "cosine", "sigmoid")):
        left.plot(NoiseSchedule(kind).alpha_bars, color=COLOURS[k], label=kind)
    left.legend(frameon=False)
    left.set(xlabel="t", ylabel="ᾱ", title="share of the signal")
    schedule = NoiseSchedule()

    def noise(x: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
        a, s = schedule.signal_noise(t, x)
        return s * (x - 2 * a) / (a * a / 4 + s * s)

    z = torch.tensor([[-1.0], [1.0]], dtype=torch.float64)
    counts = (5, 10, 20, 50, 100, 300)
    for k, sampler in enumerate((ddim, dpmpp_2m)):
        ends = [DiffusionSampler(noise, sampler(schedule, n))(z) for n in counts]
        spread = [float(e[1] - e[0]) / 2 for e in ends]
        right.semilogx(counts, spread, "o-", color=COLOURS[k], label=sampler.__name__)
    right.axhline(0.5, color="grey", linewidth=0.8)
    right.legend(frameon=False)
    right.set(xlabel="steps", ylabel="standard deviation", title="samples of N(2, ¼)")
    return fig


PICTURES = {"DDPM": ddpm, "family-diffusion": family}
