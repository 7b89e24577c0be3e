r"""A denoiser as an energy: its score at one noise level is the slope."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from groundstate.energy.base import Energy
from groundstate.energy.registering import registered
from groundstate.energy.spaces import Real
from groundstate.math.diffusion import NoiseSchedule, PredictionType, convert
from groundstate.math.diffusion.parametrise import check_prediction_type
from groundstate.math.diffusion.schedule import quiet

NODES = 16  # of the quadrature along a ray
SMALL = 0.1  # noise of the level that stands for the data


class _Sketch(nn.Module):
    """A small smooth denoiser, as an example."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 2)

    def forward(self, x: Tensor, t: Tensor, y: Tensor | None = None) -> Tensor:
        at = t.to(x).reshape(-1, 1) / 4
        out: Tensor = torch.tanh(self.layer(torch.cat([x, at], 1)))
        return out


@registered(
    r"e_t(x) = -\int_0^1 \langle x, s_\theta(ux, t)\rangle\,du",
    lambda: DenoiserEnergy(_Sketch(), 2, NoiseSchedule("cosine", 4), level=2),
)
class DenoiserEnergy(Energy):
    r"""Noisy rows of a diffusion: :math:`e_t(x) = -\int_0^1\langle x, s_\theta(ux, t)\rangle\,du`, with the
    score :math:`s_\theta = -\hat\epsilon/\sqrt{1-\bar\alpha_t}` of the denoiser.

    Where the score is a gradient, as the true one is, :math:`-\nabla e_t = s_\theta` and
    :math:`e_t = -\log p_t(x) + \log p_t(0)`.

    Parameters
    ----------
    net : denoiser ``net(x, t)`` or ``net(x, t, y)`` of noisy rows ``(B, d)``, levels ``(B,)`` and contexts
        ``(B, q)``; twice d outputs where the variance is learned
    d : size of a row
    schedule : the ``NoiseSchedule``, or its β
    q : size of the context y, 0 without
    prediction_type : what ``net`` predicts
    variance : of the reverse steps: "fixed_small", "fixed_large" or "learned"
    level : t of the energy; by default the first with noise of at least 0.1

    Examples
    --------
    The noise in rows that are nothing but noise is the row itself, whose energy is x²/2:

    >>> from groundstate.math.diffusion import NoiseSchedule
    >>> whole = DenoiserEnergy(lambda x, t: x, 1, NoiseSchedule("cosine", 8), level=8)
    >>> whole(x=torch.tensor([[2.0]]))
    tensor([2.0000])
    """

    def __init__(
        self,
        net: Any,
        d: int,
        schedule: Any,
        q: int = 0,
        prediction_type: PredictionType = "epsilon",
        variance: str = "fixed_small",
        level: int | None = None,
    ) -> None:
        super().__init__(**({"x": Real(d), "y": Real(q)} if q else {"x": Real(d)}))
        check_prediction_type(prediction_type)
        self.net, self.d, self.q = net, d, q
        self.prediction_type, self.variance = prediction_type, variance
        self.noise_schedule = quiet(schedule)
        if level is None:
            noise = (1 - self.noise_schedule.alpha_bars).sqrt()
            level = min(int((noise < SMALL).sum()) + 1, self.noise_schedule.n_steps)
        if not 1 <= level <= self.noise_schedule.n_steps:
            raise ValueError(f"level must be in 1..{self.noise_schedule.n_steps}, got {level}")
        self.level = level

    def config(self) -> dict[str, Any]:
        return {"net": self.net, "d": self.d, "schedule": self.noise_schedule.betas.numpy(),
                "q": self.q, "prediction_type": self.prediction_type, "variance": self.variance,
                "level": self.level}  # fmt: skip

    def predict(self, x: Tensor, t: Tensor, y: Tensor | None = None) -> Tensor:
        """What the denoiser says of noisy rows; twice the size where the variance is learned."""
        out: Tensor = self.net(x, t) if y is None else self.net(x, t, y)
        return out

    def score(self, x: Tensor, t: Tensor, y: Tensor | None = None) -> Tensor:
        r""":math:`s_\theta(x, t)`, ``(B, d)``."""
        out = self.predict(x, t, y)[:, : self.d]
        found: Tensor = convert(out, x, t, self.noise_schedule, self.prediction_type, "score")
        return found

    def forward(self, x: Tensor, y: Tensor | None = None) -> Tensor:
        nodes, weights = np.polynomial.legendre.leggauss(NODES)
        u = torch.from_numpy(0.5 * (nodes + 1)).to(x)
        w = torch.from_numpy(0.5 * weights).to(x)
        along = (x[:, None] * u[:, None]).flatten(0, 1)  # (B·K, d)
        t = torch.full((len(along),), self.level, device=x.device)
        own = None if y is None else y.repeat_interleave(len(u), 0)
        slopes = self.score(along, t, own).reshape(len(x), len(u), -1)
        return -((slopes * x[:, None]).sum(2) @ w)
