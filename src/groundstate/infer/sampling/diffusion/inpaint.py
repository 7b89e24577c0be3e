r"""Fill in what is missing of a row while it is sampled."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from groundstate.infer.sampling.diffusion.loop import Clip, DiffusionSampler, Predict, advance
from groundstate.infer.sampling.diffusion.tables import Variance, ddpm
from groundstate.math.diffusion import NoiseSchedule, PredictionType


@torch.no_grad()
def inpaint(
    predict: Predict,
    x: Tensor,
    unknown: Tensor,
    schedule: NoiseSchedule,
    n_steps: int | None = 50,
    prediction_type: PredictionType = "epsilon",
    *,
    given: tuple[Any, ...] = (),
    jumps: int = 10,
    variance: Variance = "fixed_large",
    clip: Clip = None,
    generator: torch.Generator | None = None,
) -> Tensor:
    r"""Replacement with resampling (RePaint, Lugmayr et al. 2022): at every level the known cells are
    those of :math:`q(x_{t'}\mid x_0)`, the others follow the reverse step; then the step is undone by
    noise, :math:`x_t = \sqrt{\bar\alpha_t/\bar\alpha_{t'}}\,x_{t'} + \ldots`, and done again ``jumps``
    times, so that the unknown cells come to fit the known ones.

    Parameters
    ----------
    predict : denoiser ``(x, t, *given)``
    x : rows ``(B, D)`` whose known cells count
    unknown : which cells are free, ``(B, D)``
    schedule : the ``NoiseSchedule``
    n_steps : levels that are visited; None: all
    prediction_type : what the denoiser predicts
    given : further arguments of the denoiser
    jumps : how often every level is sampled
    variance, clip : of the steps
    generator : of the noise

    Examples
    --------
    >>> x, unknown = torch.ones(1, 2), torch.tensor([[False, True]])
    >>> inpaint(lambda x, t: 5 + 0 * x, x, unknown, NoiseSchedule(), 5, "sample").tolist()
    [[1.0, 5.0]]
    """
    if jumps < 1:
        raise ValueError(f"jumps must be at least 1, got {jumps}")
    steps = ddpm(schedule, n_steps, variance=variance)
    rows = DiffusionSampler(predict, steps, prediction_type).rows.tolist()
    bars = schedule.table("alpha_bars", schedule.betas)
    before, after = bars[steps.t].tolist(), bars[steps.reached].tolist()
    levels = steps.t.to(x.device)

    def noise() -> Tensor:
        return torch.randn(x.shape, generator=generator, device=x.device, dtype=x.dtype)

    state, nothing = noise(), torch.zeros_like(x)
    for i, row in enumerate(rows):
        last = i == len(rows) - 1
        for jump in range(1 if last else jumps):
            if jump:
                share = before[i] / after[i]
                state = share**0.5 * state + (1 - share) ** 0.5 * noise()
            out = predict(state, levels[i].expand(len(x)), *given)
            state, _ = advance(state, nothing, out, noise(), row, clip)
            known = after[i] ** 0.5 * x + (1 - after[i]) ** 0.5 * noise()
            state = torch.where(unknown, state, known)
    return torch.where(unknown, state, x)
