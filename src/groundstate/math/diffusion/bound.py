r"""Bounds on the log density of a diffusion."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor
from torch.quasirandom import SobolEngine

from groundstate.math.diffusion.forward import forward_kernel, posterior
from groundstate.math.diffusion.parametrise import PredictionType, convert
from groundstate.math.diffusion.schedule import NoiseSchedule

Form = Literal["B", "A", "ratio"]
# log density of rows (B, D) under N(mean, variance of each row), (B, D)
Decoder = Callable[[Tensor, Tensor, Tensor], Tensor]
CHUNK = 2**16  # rows that the denoiser sees at once


@dataclass(frozen=True)
class Elbo:
    r"""A bound :math:`\log p(x_0) \ge J` and its terms.

    Attributes
    ----------
    value : J, ``(n,)``
    reconstruction : :math:`E\log p(x_0\mid x_1)`, ``(n,)``
    prior : :math:`KL(q(x_T\mid x_0)\,\|\,N(0, I))` in form B; what stands at T in the others, ``(n,)``
    steps : the terms of t = 2..T that are taken off, ``(T - 1, n)``
    bits_per_dim : :math:`-J/(D\ln 2)`, ``(n,)``
    """

    value: Tensor
    reconstruction: Tensor
    prior: Tensor
    steps: Tensor
    bits_per_dim: Tensor

    @classmethod
    def of(cls, reconstruction: Tensor, prior: Tensor, steps: Tensor, d: int) -> Elbo:
        """The bound of a Markov chain of latents over rows of d numbers from its terms."""
        value = reconstruction - prior - steps.sum(0)
        return cls(value, reconstruction, prior, steps, -value / (d * math.log(2)))


def elbo(
    predict: Callable[..., Tensor],
    x0: Tensor,
    schedule: NoiseSchedule,
    form: Form = "B",
    *,
    prediction_type: PredictionType = "epsilon",
    variance: str = "fixed_small",
    given: tuple[Tensor, ...] = (),
    n_draws: int | Sequence[int] = 1,
    common: bool = False,
    decoder: Decoder | None = None,
    generator: torch.Generator | None = None,
) -> Elbo:
    r""":math:`\log p(x_0) \ge E\log p(x_0\mid x_1) - KL(q(x_T\mid x_0)\|p) - \sum_{t\ge2}
    E\,KL(q(x_{t-1}\mid x_t, x_0)\|p_\theta(x_{t-1}\mid x_t))`.

    Form "B" is this one; each term has noise of its own. "ratio" is :math:`\log p(x_{0:T})/
    q(x_{1:T}\mid x_0)` of whole paths. "A" pairs :math:`p_\theta(x_{t-1}\mid x_t)` with
    :math:`q(x_{t-1}\mid x_{t-2})`; as a difference of log densities it is the same bound with more
    noise (written with a KL it would not be a bound, as :math:`x_t` depends on :math:`x_{t-1}`).

    Parameters
    ----------
    predict : denoiser ``(x, t, *given)``; with twice the features where the variance is learned
    x0 : rows ``(n, D)``
    schedule : the ``NoiseSchedule``
    form : "B", "A" or "ratio"
    prediction_type : what the denoiser predicts
    variance : of the reverse steps: "fixed_small" (β̃, at t = 1 that of t = 2), "fixed_large" (β) or
        "learned"
    given : further arguments of the denoiser, one row for each of ``x0``
    n_draws : draws of the noise that are averaged; in form B also a number for each level ``(T,)``, see
        ``draws_by_step``
    common : the same noise for every row, so that a row's bound does not depend on the others, spread evenly
        over the levels (scrambled Sobol points)
    decoder : log density of x₀ around the mean at t = 1; by default the normal one; see
        ``discretised``
    generator : of the noise

    Examples
    --------
    Data from N(0, 1) have :math:`E[x_0\mid x_t] = \sqrt{\bar\alpha_t}\,x_t`, and every path says the same:

    >>> schedule = NoiseSchedule("cosine", 20)
    >>> exact = lambda x, t: schedule.signal_noise(t, x)[0] * x
    >>> x = torch.full((3, 1), 0.7, dtype=torch.float64)
    >>> elbo(exact, x, schedule, "ratio", prediction_type="sample", variance="fixed_large").value
    tensor([-1.1639, -1.1639, -1.1639], dtype=torch.float64)
    """
    if form not in ("B", "A", "ratio"):
        raise ValueError(f"form must be 'B', 'A' or 'ratio', got {form!r}")
    if variance not in ("fixed_small", "fixed_large", "learned"):
        raise ValueError(f"variance must be fixed_small, fixed_large or learned, got {variance!r}")
    run = _Run(predict, x0, schedule, prediction_type, variance, given, common, generator, decoder)
    if isinstance(n_draws, int):
        parts = [run.draw(form) for _ in range(n_draws)]
    elif form != "B" or len(n_draws) != schedule.n_steps:
        raise ValueError(
            f"a number of draws for each of {schedule.n_steps} levels is for form 'B', got "
            f"{len(n_draws)} numbers and form {form!r}"
        )
    else:
        run.draws = [int(n) for n in n_draws]
        parts = [run.draw("B")]
    reconstruction, prior, steps = (torch.stack(each).mean(0) for each in zip(*parts, strict=True))
    return Elbo.of(reconstruction, prior, steps, x0[0].numel())


def draws_by_step(schedule: NoiseSchedule, most: int = 16) -> list[int]:
    r"""Draws for each level that make the bound calm at little cost: the term of t varies with
    :math:`\log\text{SNR}_{t-1} - \log\text{SNR}_t`, which is large for the first few levels alone.

    >>> draws = draws_by_step(NoiseSchedule())
    >>> draws[:4], sum(draws)
    ([16, 16, 10, 8], 1104)
    """
    steps = -schedule.log_snr.diff().clamp(max=0)
    if not len(steps):
        return [most]
    share = (most * steps / steps[0]).ceil().clamp(1, most)
    return [most, *(int(n) for n in share)]


def normal_log_prob(x: Tensor, mean: Tensor, variance: Tensor) -> Tensor:
    return -0.5 * ((x - mean).square() / variance + variance.log() + math.log(2 * math.pi))


def discretised(width: float | Tensor, low: float | Tensor, high: float | Tensor) -> Decoder:
    r"""Decoder of whole numbers: the mass of N(mean, σ²) on a cell around x, the outer cells open.

    Parameters
    ----------
    width : of a cell, in the units of x; 0 for coordinates that are real numbers
    low, high : the first and last value
    """

    def log_prob(x: Tensor, mean: Tensor, variance: Tensor) -> Tensor:
        half, lowest, highest = (torch.as_tensor(v).to(x) for v in (width, low, high))
        half = half / 2
        real = half == 0
        sd = variance.sqrt()
        above = torch.where(x >= highest - half * 0.5, torch.inf, (x + half - mean) / sd)
        below = torch.where(x <= lowest + half * 0.5, -torch.inf, (x - half - mean) / sd)
        # in the tail that is nearer, so that two numbers close to 1 are never subtracted
        flip = below + above > 0
        first, second = torch.where(flip, -above, below), torch.where(flip, -below, above)
        logs = torch.special.log_ndtr(second)
        gap = torch.special.log_ndtr(first.clamp(min=-1e4)) - logs
        mass = logs + torch.log1p(-gap.clamp(max=-1e-7).exp())
        return torch.where(real, normal_log_prob(x, mean, variance), mass)

    return log_prob


class _Run:
    """One evaluation of a bound."""

    def __init__(
        self, predict: Any, x0: Tensor, schedule: NoiseSchedule, kind: PredictionType, variance: str,
        given: tuple[Tensor, ...], common: bool, generator: Any, decoder: Decoder | None,
    ) -> None:  # fmt: skip
        self.predict, self.x0, self.schedule, self.kind = predict, x0, schedule, kind
        self.variance, self.given, self.common = variance, given, common
        self.generator, self.decoder = generator, decoder or normal_log_prob
        large, small = schedule.logs_variances
        self.draws = [1] * schedule.n_steps
        # terms change slowly with t, so noise that is spread evenly over them says more than chance
        self.sobol = None
        if common and x0[0].numel() <= SobolEngine.MAXDIM:
            where = x0.device if generator is None else generator.device
            seed = int(torch.randint(2**31, (1,), generator=generator, device=where))
            self.sobol = SobolEngine(x0[0].numel(), scramble=True, seed=seed)
        self.logs = torch.stack([large, small], 1).to(x0)  # (T, 2)

    def noise(self) -> Tensor:
        x0 = self.x0
        if self.sobol is not None:
            u = self.sobol.draw(1, dtype=torch.float64).clamp(1e-9, 1 - 1e-9)
            return torch.special.ndtri(u).to(x0).expand_as(x0)
        like = x0[:1] if self.common else x0
        z = torch.randn(like.shape, generator=self.generator, device=x0.device, dtype=x0.dtype)
        return z.expand_as(x0)

    def reverse(self, xt: Tensor, t: int) -> tuple[Tensor, Tensor]:
        """Mean and variance of p(x_{t-1} | x_t), ``(n, D)``."""
        level = torch.full((len(xt),), t, device=xt.device)
        outs = [
            self.predict(part, at, *given)
            for part, at, *given in zip(
                *(v.split(CHUNK) for v in (xt, level, *self.given)), strict=True
            )
        ]
        out = torch.cat(outs)
        high, low = self.logs[t - 1]
        log_variance = high if self.variance == "fixed_large" else low
        if self.variance == "learned":
            out, raw = out.chunk(2, 1)
            share = 0.5 * (raw + 1)
            log_variance = share * high + (1 - share) * low
        clean = convert(out, xt, t, self.schedule, self.kind, "sample")
        mean = posterior(clean, xt, t, self.schedule).mean
        return mean, log_variance.exp().expand_as(xt)

    def noised(self, t: int) -> Tensor:
        a, s = self.schedule.signal_noise(t, self.x0)
        return a * self.x0 + s * self.noise()

    def step(self, x: Tensor, t: int) -> Tensor:
        q = forward_kernel(x, t, self.schedule)
        return q.mean + q.variance.sqrt() * self.noise()

    def draw(self, form: str) -> tuple[Tensor, Tensor, Tensor]:
        T = self.schedule.n_steps
        if form == "ratio":
            return self.path()
        each = [
            self.decoder(self.x0, *self.reverse(self.noised(1), 1)).sum(1)
            for _ in range(self.draws[0])
        ]
        reconstruction = torch.stack(each).mean(0)
        if form == "B":
            a, s = self.schedule.signal_noise(T, self.x0)
            at_end = _kl(a * self.x0, s.square().expand_as(self.x0), torch.zeros_like(self.x0), 1.0)
            terms = [self.kl(t) for t in range(2, T + 1)]
        else:
            before = self.noised(T - 1)
            q = forward_kernel(before, T, self.schedule)
            at_end = _kl(q.mean, q.variance.expand_as(before), torch.zeros_like(before), 1.0)
            terms = [self.pair(t) for t in range(2, T + 1)]
        steps = torch.stack(terms) if terms else reconstruction.new_zeros(0, len(self.x0))
        return reconstruction, at_end, steps

    def kl(self, t: int) -> Tensor:
        if self.draws[t - 1] > 1:
            return torch.stack([self.kl_once(t) for _ in range(self.draws[t - 1])]).mean(0)
        return self.kl_once(t)

    def kl_once(self, t: int) -> Tensor:
        xt = self.noised(t)
        q = posterior(self.x0, xt, t, self.schedule)
        return _kl(q.mean, q.variance.expand_as(xt), *self.reverse(xt, t))

    def pair(self, t: int) -> Tensor:
        """log q(x_{t-1} | x_{t-2}) − log p(x_{t-1} | x_t) at a draw of the three."""
        first = self.noised(t - 2)
        q = forward_kernel(first, t - 1, self.schedule)
        middle = q.mean + q.variance.sqrt() * self.noise()
        p = self.reverse(self.step(middle, t), t)
        ahead = normal_log_prob(middle, q.mean, q.variance)
        return (ahead - normal_log_prob(middle, *p)).sum(1)

    def path(self) -> tuple[Tensor, Tensor, Tensor]:
        x, T, states = self.x0, self.schedule.n_steps, [self.x0]
        for t in range(1, T + 1):
            x = self.step(x, t)
            states.append(x)
        zero = torch.zeros_like(x)
        q = [forward_kernel(states[t - 1], t, self.schedule) for t in range(1, T + 1)]
        ahead = [normal_log_prob(states[t], *q[t - 1]).sum(1) for t in range(1, T + 1)]
        back = [
            normal_log_prob(states[t - 1], *self.reverse(states[t], t)) for t in range(2, T + 1)
        ]
        reconstruction = self.decoder(self.x0, *self.reverse(states[1], 1)).sum(1)
        at_end = ahead[-1] - normal_log_prob(states[T], zero, zero + 1).sum(1)
        steps = [ahead[t - 2] - back[t - 2].sum(1) for t in range(2, T + 1)]
        return (
            reconstruction,
            at_end,
            torch.stack(steps) if steps else reconstruction.new_zeros(0, len(x)),
        )


def _kl(m1: Tensor, v1: Tensor, m2: Tensor, v2: Tensor | float) -> Tensor:
    """KL(N(m1, v1) ‖ N(m2, v2)), summed over coordinates, ``(n,)``."""
    second = torch.as_tensor(v2).to(m1)
    ratio = v1 / second
    return 0.5 * (ratio - 1 - ratio.log() + (m1 - m2).square() / second).sum(1)
