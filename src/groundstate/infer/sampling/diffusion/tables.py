r"""Samplers of diffusions as tables: each evaluation of the denoiser is one row of coefficients.

DDPM, DDIM, Heun's method and DPM-Solver++ all move by

.. math:: x \leftarrow A\,x + B\,\hat x_0 + D\,\hat x_0^{\text{before}} + C\,\epsilon,

with the clean row :math:`\hat x_0` that the denoiser sees in :math:`x` at level t, and the one it saw
before. They differ in the numbers A, B, C, D alone, so one loop runs them all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from groundstate.math.diffusion import NoiseSchedule

Spacing = Literal["trailing", "leading", "linspace"]
Variance = Literal["fixed_small", "fixed_large", "learned"]
VARIANCES: tuple[Variance, ...] = ("fixed_small", "fixed_large", "learned")


@dataclass(frozen=True)
class Steps:
    """The table of a sampler; every column is ``(K,)`` in float64, K evaluations of the denoiser.

    Attributes
    ----------
    t : level of the evaluation
    reached : level that the step reaches, 0 at the end
    signal, noise : a and s of x_t = a x₀ + s ε at t
    own, clean, before, fresh : A, B, D and C
    logs : log of the largest and the smallest variance of the step ``(K, 2)``, between which a learned
        one lies; None where it is fixed
    """

    t: Tensor
    reached: Tensor
    signal: Tensor
    noise: Tensor
    own: Tensor
    clean: Tensor
    before: Tensor
    fresh: Tensor
    logs: Tensor | None = None

    def __len__(self) -> int:
        return len(self.t)


def timesteps(
    schedule: NoiseSchedule, n: int | None = None, spacing: Spacing = "trailing"
) -> Tensor:
    r"""Levels that are visited, falling, ``(n,)``; "trailing" is T, T − T/n, ….

    Parameters
    ----------
    schedule : the levels 1..T
    n : how many of them; None: all
    spacing : "trailing", "leading" or "linspace", the names of diffusers (whose levels are t − 1)

    Examples
    --------
    >>> timesteps(NoiseSchedule(), 4)
    tensor([1000,  750,  500,  250])
    """
    T = schedule.n_steps
    n = T if n is None else n
    if not 1 <= n <= T:
        raise ValueError(f"a sampler takes 1 to {T} of the {T} levels, got {n} steps")
    if spacing == "trailing":
        at = T - torch.arange(n, dtype=torch.float64) * (T / n)
    elif spacing == "leading":
        at = (torch.arange(n, dtype=torch.float64) * (T // n)).flip(0) + 1
    elif spacing == "linspace":
        at = torch.linspace(1, T, n + 1, dtype=torch.float64).flip(0)[:-1]
    else:
        raise ValueError(f"spacing must be trailing, leading or linspace, got {spacing!r}")
    return at.round().to(torch.int64)


def _levels(
    schedule: NoiseSchedule, n: int | None, spacing: Spacing
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Levels before and after each step, and ᾱ there."""
    t = timesteps(schedule, n, spacing)
    after = torch.cat([t[1:], t.new_zeros(1)])
    bars = schedule.table("alpha_bars", schedule.betas)
    return t, after, bars[t], bars[after]


def ddpm(
    schedule: NoiseSchedule,
    n_steps: int | None = None,
    *,
    variance: Variance = "fixed_small",
    spacing: Spacing = "trailing",
) -> Steps:
    r"""Ancestral sampling: :math:`x_{t-1} \sim N(\mu_\theta(x_t), \sigma_t^2)` with the posterior mean at
    :math:`\hat x_0`; no noise in the last step (Ho et al. 2020).

    Parameters
    ----------
    schedule : the ``NoiseSchedule``
    n_steps : levels that are visited; None: all
    variance : "fixed_small" (that of the posterior, β̃), "fixed_large" (β), or "learned" between the two
    spacing : see ``timesteps``
    """
    if variance not in VARIANCES:
        raise ValueError(f"variance must be one of {', '.join(VARIANCES)}, got {variance!r}")
    t, after, bar, bar_after = _levels(schedule, n_steps, spacing)
    alpha = bar / bar_after
    large = 1 - alpha
    small = large * (1 - bar_after) / (1 - bar)
    sigma = (large if variance == "fixed_large" else small).sqrt()
    sigma[-1] = 0
    logs = None
    if variance == "learned":
        lowest = small.clone()
        lowest[-1] = small[-2] if len(small) > 1 else large[-1]
        logs = torch.stack([large.log(), lowest.log()], 1)
    own = alpha.sqrt() * (1 - bar_after) / (1 - bar)
    clean = bar_after.sqrt() * large / (1 - bar)
    return Steps(
        t, after, bar.sqrt(), (1 - bar).sqrt(), own, clean, torch.zeros_like(own), sigma, logs
    )


def ddim(
    schedule: NoiseSchedule,
    n_steps: int | None = None,
    *,
    eta: float = 0.0,
    spacing: Spacing = "trailing",
) -> Steps:
    r""":math:`x_{t'} = \sqrt{\bar\alpha_{t'}}\,\hat x_0 + \sqrt{1-\bar\alpha_{t'}-\sigma^2}\,\hat\epsilon
    + \sigma z` with :math:`\sigma = \eta\sqrt{(1-\bar\alpha_{t'})/(1-\bar\alpha_t)}\sqrt{1-\bar\alpha_t/
    \bar\alpha_{t'}}` (Song et al. 2021): deterministic for η = 0, DDPM for η = 1.

    Parameters
    ----------
    schedule, n_steps, spacing : see ``ddpm``
    eta : share of noise
    """
    if not 0 <= eta <= 1:
        raise ValueError(f"eta must be between 0 and 1, got {eta}")
    t, after, bar, bar_after = _levels(schedule, n_steps, spacing)
    sigma = eta * ((1 - bar_after) / (1 - bar) * (1 - bar / bar_after)).sqrt()
    a, s = bar.sqrt(), (1 - bar).sqrt()
    own = (1 - bar_after - sigma.square()).clamp(min=0).sqrt() / s
    return Steps(t, after, a, s, own, bar_after.sqrt() - own * a, torch.zeros_like(own), sigma)


def dpmpp_2m(
    schedule: NoiseSchedule, n_steps: int | None = None, *, spacing: Spacing = "trailing"
) -> Steps:
    r"""DPM-Solver++(2M) (Lu et al. 2022): with :math:`\lambda = \log(a/s)`, :math:`h = \lambda' - \lambda`,
    :math:`x' = \tfrac{s'}{s}x - a'(e^{-h} - 1)\bigl[\hat x_0 + \tfrac{h}{2h_{\text{before}}}(\hat x_0 -
    \hat x_0^{\text{before}})\bigr]`; the first and the last step are of first order.

    Parameters
    ----------
    schedule, n_steps, spacing : see ``ddpm``
    """
    t, after, bar, bar_after = _levels(schedule, n_steps, spacing)
    a, s = bar.sqrt(), (1 - bar).sqrt()
    a_after, s_after = bar_after.sqrt(), (1 - bar_after).sqrt()
    ratio = (s_after / a_after) * (a / s)  # e^{-h}; 0 in the last step
    h = -ratio.log()
    own, clean = s_after / s, a_after * (1 - ratio)
    slope = torch.zeros_like(h)
    slope[1:-1] = 0.5 * h[1:-1] / h[:-2]
    return Steps(t, after, a, s, own, clean * (1 + slope), -clean * slope, torch.zeros_like(own))


def heun(
    schedule: NoiseSchedule, n_steps: int | None = None, *, spacing: Spacing = "trailing"
) -> Steps:
    r"""Heun's method for :math:`du/d\sigma = (u - \hat x_0)/\sigma`, :math:`u = x/a`, :math:`\sigma = s/a`
    (Karras et al. 2022): a step of Euler, then a second look from its end; 2n − 1 evaluations.

    The second look adds :math:`a'\,\tfrac{1-k}{2k}(\hat x_0' - \hat x_0)`, :math:`k = \sigma'/\sigma`.

    Parameters
    ----------
    schedule, n_steps, spacing : see ``ddpm``
    """
    t, after, bar, bar_after = _levels(schedule, n_steps, spacing)
    a, s = bar.sqrt(), (1 - bar).sqrt()
    a_after, s_after = bar_after.sqrt(), (1 - bar_after).sqrt()
    k = (s_after / a_after) * (a / s)
    look = a_after * (1 - k) / (2 * k)
    zero, one = torch.zeros_like(k), torch.ones_like(k)
    first = torch.stack([t, after, a, s, s_after / s, a_after * (1 - k), zero, zero], 1)
    second = torch.stack([after, after, a_after, s_after, one, look, -look, zero], 1)
    rows = torch.stack([first, second], 1).flatten(0, 1)[:-1]  # at level 0 there is nothing to see
    columns = rows.unbind(1)
    return Steps(columns[0].long(), columns[1].long(), *columns[2:])


SAMPLERS: dict[str, Callable[..., Steps]] = {
    "ddpm": ddpm, "ddim": ddim, "heun": heun, "dpmpp_2m": dpmpp_2m,
}  # fmt: skip
