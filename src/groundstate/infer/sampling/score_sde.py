r"""Diffusions in continuous time, run backwards with a score.

.. math:: dx = [f - g^2 s]\,dt + g\,d\bar w, \qquad \dot x = f - \tfrac12 g^2 s,

the second with the same marginals and no noise: the probability flow, along which densities are
known.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Literal

import torch
from torch import Tensor

from groundstate.compute.random import Key
from groundstate.math.diffusion import ContinuousSchedule
from groundstate.math.ode import integrate

Score = Callable[[Tensor, Tensor], Tensor]  # rows (B, d), times (B,) -> (B, d)
EPS = 1e-3  # the time that stands for the data: scores are undefined without noise


def _times(x: Tensor, t: float) -> Tensor:
    return torch.full((len(x),), t, device=x.device, dtype=x.dtype)


def _noise(x: Tensor, generator: torch.Generator) -> Tensor:
    return torch.randn(x.shape, generator=generator, device=x.device, dtype=x.dtype)


@torch.no_grad()
def reverse_sde(
    score: Score,
    x: Tensor,
    schedule: ContinuousSchedule,
    n_steps: int = 500,
    *,
    n_corrector: int = 0,
    snr: float = 0.16,
    T: float = 1.0,
    eps: float = EPS,
    denoise: bool = True,
    held: tuple[Tensor, Tensor] | None = None,
    jumps: int = 1,
    generator: torch.Generator | None = None,
) -> Tensor:
    r"""Rows at t = 0 from noise x at t = 1, by Euler and Maruyama's steps of the reversed equation.

    Parameters
    ----------
    score : :math:`s(x, t)`
    x : draws of the prior, ``(B, d)``
    schedule : the ``ContinuousSchedule``
    n_steps : steps from 1 to ``eps``
    n_corrector : steps of Langevin dynamics after each, of size
        :math:`2\alpha(\text{snr}\,\|\xi\|/\|s\|)^2` (predictor and corrector)
    snr : signal to noise of a corrector step
    T : temperature of the noise
    eps : the last time
    denoise : end with the mean of the last step, without its noise
    held : clean rows ``(B, d)`` and mask of their unknown cells; the known ones are put in, with the
        noise of the time, at every step
    jumps : with held cells, how often every step is done; between two it is undone by noise, so that
        unknown cells come to fit the known ones (Lugmayr et al. 2022)
    generator : source of randomness

    Returns
    -------
    ``(B, d)``
    """
    if n_steps < 1:
        raise ValueError(f"n_steps must be at least 1, got {n_steps}")
    generator = generator or Key.of(None).torch(x.device)
    times = torch.linspace(1.0, eps, n_steps + 1, dtype=torch.float64).tolist()
    mean = x
    for now, after in pairwise(times):
        t, h = _times(x, now), now - after
        a, s = schedule.signal_noise(t, x)
        b, r = schedule.signal_noise(_times(x, after), x)
        g = schedule.diffusion(t)[:, None]
        for jump in range(1 if held is None or after == eps else jumps):
            if jump:
                share = a / b
                x = share * x + (s.square() - (share * r).square()).sqrt() * _noise(x, generator)
            if held is not None:
                x = torch.where(held[1], x, a * held[0] + s * _noise(x, generator))
            for _ in range(n_corrector):
                slope, xi = score(x, t), _noise(x, generator)
                ratio = xi.norm(dim=1).mean() / slope.norm(dim=1).mean().clamp_min(1e-12)
                size = 2 * (snr * ratio) ** 2
                x = x + size * slope + (2 * size * T).sqrt() * xi
            mean = x - h * (schedule.drift(x, t) - g.square() * score(x, t))
            x = mean + g * math.sqrt(h * T) * _noise(x, generator)
    x = mean if denoise else x
    return x if held is None else torch.where(held[1], x, held[0])


@torch.no_grad()
def flow_ode(
    score: Score,
    x: Tensor,
    schedule: ContinuousSchedule,
    start: float = 1.0,
    end: float = EPS,
    n_steps: int = 100,
) -> Tensor:
    r"""Rows carried along the probability flow :math:`\dot x = f - \tfrac12 g^2 s` from time ``start`` to
    ``end`` by Runge-Kutta steps, ``(B, d)``: from noise to data, or back to the code of a row."""

    def slope(t: Tensor, x: Tensor) -> Tensor:
        at = t.reshape(-1).expand(len(x)).to(x)
        return schedule.drift(x, at) - 0.5 * schedule.diffusion(at)[:, None].square() * score(x, at)

    out: Tensor = integrate(slope, x, _grid(start, end, n_steps, x), "rk4")[-1]
    return out


def _grid(start: float, end: float, n: int, like: Tensor) -> Tensor:
    """Times that lie closer where there is little noise and the field is steep; rows share them, so
    that the answer for a row does not depend on the others."""
    at = torch.linspace(math.sqrt(start), math.sqrt(end), n + 1, dtype=torch.float64).square()
    return at.to(like.device, like.dtype)


def ode_log_prob(
    score: Score,
    x: Tensor,
    schedule: ContinuousSchedule,
    *,
    trace: Literal["exact", "hutchinson"] = "exact",
    n_probes: int = 1,
    mean: float = 0.0,
    variance: float = 1.0,
    eps: float = EPS,
    n_steps: int = 100,
    generator: torch.Generator | None = None,
) -> Tensor:
    r""":math:`\log p_\epsilon(x) = \log p_1(x_1) + \int_\epsilon^1\mathrm{div}(f - \tfrac12 g^2 s)\,dt`
    along the probability flow, ``(B,)``, with :math:`p_1 = N(a_1 m, (a_1^2 v + s_1^2)I)`.

    Parameters
    ----------
    score : :math:`s(x, t)`, differentiable in x
    x : rows ``(B, d)``
    schedule : the ``ContinuousSchedule``
    trace : the divergence by d derivatives, or by random signs v as :math:`v^\top J v`, unbiased
    n_probes : of them
    mean, variance : of the data, m and v, of which a little is left at t = 1
    eps : the time that stands for the data
    n_steps : Runge-Kutta steps of fourth order
    generator : of the random signs

    Examples
    --------
    Standard normal rows stay so under "vp", and their score is −x:

    >>> x = torch.zeros(1, 1, dtype=torch.float64)
    >>> round(ode_log_prob(lambda x, t: -x, x, ContinuousSchedule("vp")).item(), 4)
    -0.9189
    """
    d = x.shape[1]
    probes = None
    if trace == "hutchinson":
        generator = generator or Key.of(0).torch(x.device)
        probes = torch.randn(
            (n_probes, *x.shape), generator=generator, device=x.device, dtype=x.dtype
        )
        probes = torch.where(probes >= 0, 1.0, -1.0).to(x.dtype)
    elif trace != "exact":
        raise ValueError(f"trace must be 'exact' or 'hutchinson', got {trace!r}")

    def slope(t: Tensor, state: Tensor) -> Tensor:
        with torch.enable_grad():
            at = state[:, :d].detach().requires_grad_()
            times = t.reshape(-1).expand(len(at)).to(at)
            g2 = schedule.diffusion(times)[:, None].square()
            v = schedule.drift(at, times) - 0.5 * g2 * score(at, times)
            div = divergence(v, at, probes)
        return torch.cat([v.detach(), div[:, None].detach()], 1)

    state = torch.cat([x.detach(), x.new_zeros(len(x), 1)], 1)
    end = integrate(slope, state, _grid(eps, 1.0, n_steps, x), "rk4")[-1].detach()
    a, width = last_level(schedule, variance)
    gap = (end[:, :d] - a * mean) / width
    base = -0.5 * gap.square().sum(1) - d * (0.5 * math.log(2 * math.pi) + math.log(width))
    return base + end[:, d]


def last_level(schedule: ContinuousSchedule, variance: float = 1.0) -> tuple[float, float]:
    """Share of the signal at t = 1, and the spread there of rows of a variance."""
    a, s = (float(v) for v in schedule.signal_noise(torch.ones((), dtype=torch.float64)))
    return a, math.sqrt(a * a * variance + s * s)


def divergence(v: Tensor, x: Tensor, probes: Tensor | None = None) -> Tensor:
    r""":math:`\mathrm{tr}\,\partial v/\partial x`, ``(B,)``, by one pass per coordinate or probe."""
    if probes is None:
        parts = []
        for j in range(x.shape[1]):
            (g,) = torch.autograd.grad(v[:, j].sum(), x, retain_graph=True)
            parts.append(g[:, j])
        return torch.stack(parts).sum(0)
    parts = []
    for p in probes:
        (g,) = torch.autograd.grad((v * p).sum(), x, retain_graph=True)
        parts.append((g * p).sum(1))
    return torch.stack(parts).mean(0)
