r"""The noise that a row came from as its code, and cells filled in by denoising."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from groundstate.infer.sampling.diffusion import SAMPLERS, DiffusionSampler, encode, inpaint
from groundstate.math.diffusion import NoiseSchedule
from groundstate.math.diffusion.schedule import quiet
from groundstate.models.generative.latent import LatentCode
from groundstate.models.generative.network import NetworkGenerator

FILL_STEPS = 100  # levels visited when missing cells are filled in
MODE_STEPS = 200  # steps uphill to the most probable values
CODE_STEPS = 100  # of the way from rows to noise and back
LEAST_SIGNAL = 3.7e-5  # ᾱ, half a log-SNR of -5.1: steps of solvers begin where x₀ can be seen


class NoiseCode(LatentCode, NetworkGenerator):
    """What a denoiser answers beside draws: codes and missing cells."""

    energy_: Any
    prediction_type: Any
    noise_schedule_: Any
    label_dropout: float
    _clip: Any

    # --- noise as a code -----------------------------------------------------------------

    @property
    def _code_size(self) -> int:
        return self.energy_.d

    @property
    def _seen_schedule(self) -> NoiseSchedule:
        """Levels that keep some signal: behind them a prediction of the noise says nothing of x₀."""
        bars = self.noise_schedule_.alpha_bars
        return quiet(self.noise_schedule_.betas[: max(1, int((bars > LEAST_SIGNAL).sum()))])

    def _encode(self, x: Tensor, y: Tensor | None) -> Tensor:
        schedule, given = self._seen_schedule, () if y is None else (y,)
        n = min(CODE_STEPS, schedule.n_steps)
        return encode(self._point, x, schedule, n, self.prediction_type, given=given)

    def _decode(self, z: Tensor, y: Tensor | None) -> Tensor:
        schedule, given = self._seen_schedule, () if y is None else (y,)
        steps = SAMPLERS["ddim"](schedule, min(CODE_STEPS, schedule.n_steps))
        return DiffusionSampler(self._point, steps, self.prediction_type)(z, given)

    def _point(self, x: Tensor, t: Tensor, y: Tensor | None = None) -> Tensor:
        return self.energy_.predict(x, t, y)[:, : self.energy_.d]

    # --- missing cells -------------------------------------------------------------------

    @property
    def _takes_no_label(self) -> bool:
        seen = self.condition_
        return seen is not None and seen.classes is not None and self.label_dropout > 0

    @torch.no_grad()
    def _fill(
        self, x: Tensor, unknown: Tensor, y: Tensor | None, how: str, generator: torch.Generator
    ) -> Tensor:
        schedule = self.noise_schedule_
        filled = inpaint(
            self._point, x, unknown, schedule, min(FILL_STEPS, schedule.n_steps),
            self.prediction_type, given=() if y is None else (y,), clip=self._clip,
            generator=generator,
        )  # fmt: skip
        if how == "sample":
            return filled
        level = torch.full((len(x),), self.energy_.level, device=x.device)
        step = schedule.signal_noise(level[:1], x)[1].square()
        for _ in range(MODE_STEPS):  # mean shift on the smoothed density
            moved = filled + step * self.energy_.score(filled, level, y)
            filled = torch.where(unknown, moved, filled)
        return filled
