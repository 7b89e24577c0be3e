r"""Guidance: pull samples towards a label, by the label or by a classifier."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from groundstate.infer.sampling.diffusion.loop import Predict
from groundstate.math.diffusion import NoiseSchedule, PredictionType, convert


class ClassifierFree:
    r""":math:`\hat\epsilon = \epsilon_u + w(\epsilon_c - \epsilon_u)`: 0 ignores the label, 1 is the
    conditional model, more trades diversity for fidelity (Ho & Salimans 2022).

    Both branches are one call of the denoiser with 2B rows. At one noise level the result is the score
    of :math:`p(x\mid y)^w\,p(x)^{1-w}`.

    Parameters
    ----------
    net : denoiser ``(x, t, y)``, trained with labels dropped at times
    scale : w
    null : label that says nothing, ``(q,)`` or a number; zeros by default
    rescale : share φ of the guided prediction that is scaled back to the standard deviation of the
        conditional one (Lin et al. 2024)
    interval : (lowest, highest) level t between which it guides; elsewhere w = 1

    Examples
    --------
    >>> guided = ClassifierFree(lambda x, t, y: x + y, scale=3.0)
    >>> guided(torch.zeros(1, 2), torch.ones(1), torch.ones(1, 2)).tolist()
    [[3.0, 3.0]]
    """

    def __init__(
        self,
        net: Callable[[Tensor, Tensor, Tensor], Tensor],
        scale: float = 1.0,
        *,
        null: Tensor | float = 0.0,
        rescale: float = 0.0,
        interval: tuple[float, float] | None = None,
    ) -> None:
        if not scale >= 0:
            raise ValueError(f"guidance_scale must be at least 0, got {scale}")
        if not 0 <= rescale <= 1:
            raise ValueError(f"rescale must be between 0 and 1, got {rescale}")
        self.net, self.scale, self.null = net, scale, null
        self.rescale, self.interval = rescale, interval

    def __call__(self, x: Tensor, t: Tensor, y: Tensor) -> Tensor:
        always = self.interval is None
        if self.scale == 1 or (self.scale == 0 and always):
            return self.net(x, t, y if self.scale == 1 else self._nothing(y))
        both = self.net(torch.cat([x, x]), torch.cat([t, t]), torch.cat([self._nothing(y), y]))
        free, bound = both.chunk(2)
        w: Tensor | float = self.scale
        if self.interval is not None:
            inside = (t >= self.interval[0]) & (t <= self.interval[1])
            w = torch.where(inside, self.scale, 1.0).to(x.dtype)
            w = w.reshape(-1, *(1,) * (x.ndim - 1))
        out = free + w * (bound - free)
        if self.rescale:
            axes = tuple(range(1, x.ndim))
            ratio = bound.std(axes, correction=0, keepdim=True) / out.std(
                axes, correction=0, keepdim=True
            )
            ratio = ratio.where(ratio.isfinite(), 1.0)  # one coordinate has no spread
            out = out * (self.rescale * ratio + 1 - self.rescale)
        return out

    def _nothing(self, y: Tensor) -> Tensor:
        if isinstance(self.null, Tensor):
            return self.null.to(y).expand_as(y)
        return torch.full_like(y, self.null)


class ClassifierGuided:
    r"""Score :math:`s + w\nabla_x\log p(y\mid x_t)`: any denoiser, pulled by a classifier of noisy rows
    (Dhariwal & Nichol 2021).

    Parameters
    ----------
    net : denoiser ``(x, t, ...)``
    log_prob : :math:`\log p(y\mid x_t)` of rows, ``(x, t, y) -> (B,)``, differentiable in x
    schedule : the ``NoiseSchedule``
    scale : w
    prediction_type : of the denoiser

    Examples
    --------
    >>> from groundstate.math.diffusion import NoiseSchedule
    >>> pull = ClassifierGuided(
    ...     lambda x, t: 0 * x, lambda x, t, y: (x * y).sum(1), NoiseSchedule(), prediction_type="score"
    ... )
    >>> pull(torch.zeros(1, 1), torch.tensor([5]), torch.tensor([[2.0]])).tolist()
    [[2.0]]
    """

    def __init__(
        self,
        net: Predict,
        log_prob: Callable[[Tensor, Tensor, Tensor], Tensor],
        schedule: NoiseSchedule,
        scale: float = 1.0,
        *,
        prediction_type: PredictionType = "epsilon",
    ) -> None:
        self.net, self.log_prob, self.schedule = net, log_prob, schedule
        self.scale, self.prediction_type = scale, prediction_type

    def __call__(self, x: Tensor, t: Tensor, y: Tensor, *given: Tensor) -> Tensor:
        with torch.enable_grad():
            at = x.detach().requires_grad_()
            (pull,) = torch.autograd.grad(self.log_prob(at, t, y).sum(), at)
        out = self.net(x, t, *given)
        score = convert(out, x, t, self.schedule, self.prediction_type, "score")
        guided: Tensor = convert(
            score + self.scale * pull, x, t, self.schedule, "score", self.prediction_type
        )
        return guided
