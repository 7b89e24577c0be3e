r"""Diffusion in continuous time."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import torch
from torch import Tensor

from groundstate.compute.foreign.sklearn import Interval, StrOptions
from groundstate.compute.random import Key
from groundstate.energy.base import Energy
from groundstate.energy.networks.score import ScoreEnergy
from groundstate.infer.sampling.score_sde import (
    EPS,
    Score,
    flow_ode,
    last_level,
    ode_log_prob,
    reverse_sde,
)
from groundstate.learn.base import Rule
from groundstate.learn.rules.score import DenoisingScoreMatching
from groundstate.math.diffusion import ContinuousSchedule
from groundstate.models.generative.latent import LatentCode
from groundstate.models.generative.network import NetworkGenerator
from groundstate.registry import models

SAMPLERS = ("em", "pc", "ode")
SMALL = 0.05  # the time at which modes are looked for
MODE_STEPS = 50
FILL_STEPS = 100  # of filling in missing cells,
JUMPS = 10  # each of them done so often
EXACT = 10  # coded columns up to which the divergence is exact


class Times:
    """Noise per unit of signal at times that are even in [ε, 1]."""

    def __init__(self, schedule: ContinuousSchedule) -> None:
        self.schedule = schedule

    def __call__(self, n: int, generator: Any) -> Tensor:
        device = generator.device if generator is not None else None
        u = torch.rand(n, generator=generator, device=device)
        a, s = self.schedule.signal_noise(EPS + (1 - EPS) * u)
        return s / a


@models.register(family="diffusion", task="generation", role="generator")
class ScoreSDE(LatentCode, NetworkGenerator):
    r"""Rows are carried to noise by :math:`dx = f\,dt + g\,dw` and back by the score.

    .. math:: dx = [f - g^2 s_\theta(x, t)]\,dt + g\,d\bar w, \qquad
              \dot x = f - \tfrac12 g^2 s_\theta(x, t),

    with :math:`x_t = a(t)\,x_0 + s(t)\,\varepsilon`. The score is the slope of one energy of all noise
    levels, :math:`s_\theta(x, t) = -\nabla e_\sigma(x/a)/a` at :math:`\sigma = s/a`, learned by denoising.
    The equation without noise has the same marginals; it gives rows a code and a density.

    Parameters
    ----------
    sde : {"vp", "ve", "subvp"}, default="vp"
        Whether the variance is kept, grows, or stays below that of "vp".
    sampler : {"em", "pc", "ode"}, default="em"
        Steps of Euler and Maruyama, the same with a corrector of Langevin dynamics, or the equation
        without noise.
    n_steps : int, default=200
        Steps of "em" and "pc".
    snr : float, default=0.16
        Signal to noise of a corrector step.
    trace : {"auto", "exact", "hutchinson"}, default="auto"
        The divergence in ``score_samples``; "auto" is exact for at most 10 coded columns.
    ode_steps : int, default=100
        Runge-Kutta steps of the equation without noise.

    Attributes
    ----------
    schedule_ : ContinuousSchedule
    energy_ : ScoreEnergy

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import ScoreSDE
    >>> X = np.random.default_rng(0).normal(3.0, 0.5, (200, 1))
    >>> model = ScoreSDE(hidden_layer_sizes=(16,), max_iter=5, n_steps=20, random_state=0).fit(X)
    >>> model.sample(2, random_state=0).shape, model.log_prob_kind_
    ((2, 1), 'exact')
    """

    category_code: ClassVar[str] = "dequantise"
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "sde": [StrOptions({"vp", "ve", "subvp"})],
        "sampler": [StrOptions(set(SAMPLERS))],
        "n_steps": [Interval(Integral, 1, None, closed="left")],
        "snr": [Interval(Real, 0, None, closed="neither")],
        "trace": [StrOptions({"auto", "exact", "hutchinson"})],
        "ode_steps": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        sde: str = "vp",
        *,
        sampler: str = "em",
        n_steps: int = 200,
        snr: float = 0.16,
        trace: str = "auto",
        ode_steps: int = 100,
        hidden_layer_sizes: Any = (128, 64),
        activation: str = "silu",
        solver: Any = "adam",
        learning_rate_init: float = 2e-3,
        batch_size: Any = 128,
        max_iter: int = 200,
        alpha: float = 0.0,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: float = 20,
        tol: float = 1e-4,
        warm_start: bool = False,
        scale: str | None = "standard",
        dequantize: bool = False,
        ema_decay: float | None = None,
        verbose: Any = False,
        random_state: Any = None,
        device: Any = "auto",
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    @property
    def schedule_(self) -> ContinuousSchedule:
        """The equation's f and g."""
        kind: Any = self.sde
        return ContinuousSchedule(kind, sigma_max=20.0)  # rows have spread one

    def _energy_of(self, x: Tensor, y: Tensor | None, key: Key) -> ScoreEnergy:  # type: ignore[override]
        q = 0 if y is None else y.shape[1]
        net = self._hidden if self.network is None else self.network
        a, s = self.schedule_.signal_noise(torch.tensor(EPS, dtype=torch.float64))
        return ScoreEnergy(
            x.shape[1], net, q, float(s / a), self.activation, generator=key.torch()
        ).to(x.device, x.dtype)

    def _loss(self, energy: Energy) -> Rule:
        return DenoisingScoreMatching(Times(self.schedule_), over="x")

    def _score(self, y: Tensor | None) -> Score:
        energy: Any = self.energy_
        schedule = self.schedule_

        def score(x: Tensor, t: Tensor) -> Tensor:
            a, s = schedule.signal_noise(t, x)
            found: Tensor = energy.score(x / a, (s / a).expand(len(x), 1)[:, 0], y) / a
            return found

        return score

    @property
    def _exact(self) -> bool:
        d = int(self.energy_.spaces["x"].shape[0])
        return self.trace == "exact" or (self.trace == "auto" and d <= EXACT)

    @property
    def log_prob_kind(self) -> str:
        """Exact up to the solver where the divergence is, else an estimate."""
        return "exact" if self._exact else "estimate"

    def _log_prob(self, x: Tensor, y: Tensor | None) -> Tensor:
        score = self._score(y)
        found = ode_log_prob(
            score, x, self.schedule_, trace="exact" if self._exact else "hutchinson",
            n_steps=self.ode_steps,
        )  # fmt: skip
        if x.requires_grad:  # its gradient is the score, which needs no derivative of the solver
            at = x.detach()
            slope = score(at, at.new_full((len(at),), EPS)).detach()
            found = found + (slope * (x - at)).sum(1)
        return found

    def _fill(
        self, x: Tensor, unknown: Tensor, y: Tensor | None, how: str, generator: torch.Generator
    ) -> Tensor:
        score, schedule = self._score(y), self.schedule_
        start = self._prior(len(x), 1.0, generator)
        filled = reverse_sde(
            score, start, schedule, min(FILL_STEPS, self.n_steps), held=(x, unknown), jumps=JUMPS,
            generator=generator,
        )  # fmt: skip
        if how == "minimise":
            t = x.new_full((len(x),), SMALL)
            for _ in range(MODE_STEPS):  # mean shift on the rows with a little noise
                step = schedule.signal_noise(t, x)[1].square()
                filled = torch.where(unknown, filled + step * score(filled, t).detach(), filled)
        return filled

    def _prior(self, n: int, T: float, generator: torch.Generator) -> Tensor:
        device, dtype = self.energy_.placement()
        shape = (n, int(self.energy_.spaces["x"].shape[0]))
        noise = torch.randn(shape, generator=generator, device=device, dtype=dtype)
        return last_level(self.schedule_)[1] * T**0.5 * noise

    def _draw(
        self, n: int, y: Tensor | None, T: float, generator: torch.Generator
    ) -> tuple[Tensor, Tensor | None]:
        z = self._prior(n, T, generator)
        if self.sampler == "ode":
            return self._decode(z, y), z
        x = reverse_sde(
            self._score(y), z, self.schedule_, self.n_steps, T=T, snr=self.snr,
            n_corrector=int(self.sampler == "pc"), generator=generator,
        )  # fmt: skip
        return x, z

    @property
    def _code_size(self) -> int:
        return int(self.energy_.spaces["x"].shape[0])

    def _encode(self, x: Tensor, y: Tensor | None) -> Tensor:
        return flow_ode(self._score(y), x, self.schedule_, EPS, 1.0, self.ode_steps)

    def _decode(self, z: Tensor, y: Tensor | None) -> Tensor:
        return flow_ode(self._score(y), z, self.schedule_, 1.0, EPS, self.ode_steps)
