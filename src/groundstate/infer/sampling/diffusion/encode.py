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

    A step :math:`x' = A x + B\hat x_0(x)` is undone by the fixed point :math:`x \leftarrow
    (x' - B\hat x_0(x))/A`, begun at the ε that the denoiser sees in :math:`x'`.

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
        a, s, own, clean = (
            float(c[i]) for c in (steps.signal, steps.noise, steps.own, steps.clean)
        )
        a_, s_ = float(reached[i]) ** 0.5, (1 - float(reached[i])) ** 0.5
        if own == 0:  # the last step forgets all but x₀, so it is undone through ε at x
            at = a / a_ * x
            for _ in range(n_iter):
                at = a * x + s * _noise(predict(at, t, *given), at, p[i], r[i], a, s)
            x = at
            continue
        seen = p[i].item() * x + r[i].item() * predict(x, t, *given)
        at = a * (x - s_ * (x - a * seen) / s) / a_ + (x - a * seen)
        for _ in range(n_iter):
            at = (x - clean * (p[i].item() * at + r[i].item() * predict(at, t, *given))) / own
        x = at
    return x


def _noise(out: Tensor, x: Tensor, p: Tensor, r: Tensor, a: float, s: float) -> Tensor:
    return (x - a * (p.item() * x + r.item() * out)) / s
