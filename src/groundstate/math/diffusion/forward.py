r"""The forward process of a diffusion: it has no parameters."""

from __future__ import annotations

from typing import Any, NamedTuple

from torch import Tensor

from groundstate.math.arrays import takes_arrays
from groundstate.math.diffusion.schedule import NoiseSchedule

Time = Any  # a level, or one per row


class NormalStep(NamedTuple):
    """Mean ``(B, ...)`` and variance, which all coordinates of a row share, ``(B, 1, ...)``."""

    mean: Tensor
    variance: Tensor


# Elementwise functions that run at every step: looking for NaN would stop a GPU each time.
@takes_arrays("x0", "noise", finite=False)
def add_noise(x0: Any, noise: Any, t: Time, schedule: Any) -> Tensor:
    r""":math:`x_t = \sqrt{\bar\alpha_t}\,x_0 + \sqrt{1-\bar\alpha_t}\,\epsilon`: the jump to level t.

    Parameters
    ----------
    x0, noise : rows ``(B, ...)``
    t : level 0..T, or one per row ``(B,)``
    schedule : a ``NoiseSchedule``, or a ``ContinuousSchedule`` with real t in [0, 1]

    Examples
    --------
    >>> add_noise([[1.0]], [[0.5]], 500, NoiseSchedule())
    array([[0.7602854]])
    """
    a, s = schedule.signal_noise(t, x0)
    return a * x0 + s * noise


@takes_arrays("x", finite=False)
def forward_kernel(x: Any, t: Time, schedule: NoiseSchedule) -> NormalStep:
    r""":math:`q(x_t\mid x_{t-1}) = N(\sqrt{\alpha_t}\,x_{t-1},\ 1-\alpha_t)`: one step of noise.

    Parameters
    ----------
    x : :math:`x_{t-1}`, ``(B, ...)``
    t : level 1..T that is reached, or one per row ``(B,)``
    schedule : the ``NoiseSchedule``

    Examples
    --------
    >>> forward_kernel([[1.0]], 1000, NoiseSchedule())
    NormalStep(mean=array([[0.98994949]]), variance=0.02)
    """
    return NormalStep(schedule.at("alphas", t, x).sqrt() * x, schedule.at("betas", t, x))


@takes_arrays("x0", "xt", finite=False)
def posterior(x0: Any, xt: Any, t: Time, schedule: NoiseSchedule) -> NormalStep:
    r""":math:`q(x_{t-1}\mid x_t, x_0)`, with mean :math:`[\sqrt{\alpha_t}(1-\bar\alpha_{t-1})x_t +
    \sqrt{\bar\alpha_{t-1}}(1-\alpha_t)x_0]/(1-\bar\alpha_t)` and variance :math:`(1-\alpha_t)
    (1-\bar\alpha_{t-1})/(1-\bar\alpha_t)`, which is 0 at t = 1.

    Parameters
    ----------
    x0, xt : rows ``(B, ...)``
    t : level 1..T, or one per row ``(B,)``
    schedule : the ``NoiseSchedule``

    Examples
    --------
    >>> posterior([[1.0]], [[0.0]], 1, NoiseSchedule())
    NormalStep(mean=array([[1.]]), variance=0.0)
    """
    alpha, beta = schedule.at("alphas", t, xt), schedule.at("betas", t, xt)
    bar, before = schedule.at("alpha_bars", t, xt), schedule.at("alpha_bars", t - 1, xt)
    mean = (alpha.sqrt() * (1 - before) * xt + before.sqrt() * beta * x0) / (1 - bar)
    return NormalStep(mean, schedule.at("posterior_variances", t, xt))
