r"""The way back: the noise that DDIM would turn into given rows."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from groundstate.infer.sampling.diffusion.loop import Predict
from groundstate.infer.sampling.diffusion.tables import Spacing, ddim
from groundstate.math.diffusion import NoiseSchedule, PredictionType
from groundstate.math.diffusion.parametrise import clean_coefficients


@torch.no_grad()
def encode(
    predict: Predict,
    x: Tensor,
    schedule: NoiseSchedule,
    n_steps: int | None = None,
    prediction_type: PredictionType = "epsilon",
    *,
    given: tuple[Any, ...] = (),
    n_iter: int = 5,
    spacing: Spacing = "trailing",
) -> Tensor:
    r"""The noise :math:`x_T` from which DDIM with η = 0 and the same steps makes ``x``.

    Before and after a step the row is :math:`x = a\hat x_0 + s\hat\epsilon` and :math:`x' = a'\hat x_0 +
    s'\hat\epsilon`, so that it is undone by the fixed point :math:`x \leftarrow a\,(x' - s'\hat\epsilon(x))/
    a' + s\,\hat\epsilon(x)`.

    Parameters
    ----------
    predict, schedule, n_steps, prediction_type, given, spacing : as of ``DiffusionSampler`` and ``ddim``
    x : rows ``(B, ...)``
    n_iter : iterations per step; 1 is the usual inversion of DDIM, more make it exact

    Examples
    --------
    >>> encode(lambda x, t: 0 * x, torch.ones(1, 1), NoiseSchedule(), 10)  # no noise to remove
    tensor([[0.0064]])
    """
    steps = ddim(schedule, n_steps, spacing=spacing)
    p, r = clean_coefficients(steps.signal, steps.noise, prediction_type)
    reached = schedule.table("alpha_bars", schedule.betas)[steps.reached]
    levels = steps.t.to(x.device)
    for i in reversed(range(len(steps))):
        t = levels[i].expand(len(x))
        a, s, to_clean, of_out = (float(c[i]) for c in (steps.signal, steps.noise, p, r))
        a_, s_ = float(reached[i]) ** 0.5, (1 - float(reached[i])) ** 0.5
        at = x
        for _ in range(n_iter):
            noise = (at - a * (to_clean * at + of_out * predict(at, t, *given))) / s
            at = a * (x - s_ * noise) / a_ + s * noise
        x = at
    return x
