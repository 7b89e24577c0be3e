r"""The one loop of all samplers of diffusions; on a GPU one step is recorded and replayed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, overload

import torch
from torch import Tensor

from groundstate.compute.recorded import Recorder
from groundstate.errors import NotApplicable
from groundstate.infer.sampling.diffusion.tables import Steps
from groundstate.math.diffusion import PredictionType
from groundstate.math.diffusion.parametrise import clean_coefficients

# (x, t, *given) -> prediction of the shape of x, or with twice its features where the variance is learned
Predict = Callable[..., Tensor]
Clip = tuple[float | Tensor, float | Tensor] | None


def advance(x: Tensor, before: Tensor, out: Tensor, z: Tensor, row: Any, clip: Clip) -> Any:
    """One row of the table: where x goes, and the clean row that was seen."""
    p, r, own, clean, old, fresh, high, low = row
    raw = None
    if out.shape[1] != x.shape[1]:
        out, raw = out.chunk(2, 1)
    plain = isinstance(own, float)  # numbers of the host: terms that are zero cost nothing
    seen: Any = torch.add(p * x, out, alpha=r) if plain else p * x + r * out
    if clip is not None:
        seen = seen.clamp(*clip)
    if raw is not None:  # between log β̃ and log β, as Nichol & Dhariwal 2021
        share = 0.5 * (raw + 1)
        fresh = torch.exp(0.5 * (share * high + (1 - share) * low)) * (fresh > 0)
    if not plain or raw is not None:
        return own * x + clean * seen + old * before + fresh * z, seen
    moved = torch.add(own * x, seen, alpha=clean)
    for share, term in ((old, before), (fresh, z)):
        if share:
            moved.add_(term, alpha=share)
    return moved, seen


class DiffusionSampler:
    r"""Runs the table of a sampler: :math:`x \leftarrow A x + B\hat x_0 + D\hat x_0^{\text{before}} +
    C\epsilon` from pure noise to rows.

    No step waits for the device. On CUDA a step is recorded once for each shape and replayed; where
    it cannot be recorded it runs as it is.

    Parameters
    ----------
    predict : the denoiser ``(x, t, *given)``, t ``(B,)`` whole levels 1..T
    steps : table of a sampler, such as ``ddim(schedule, 50)``
    prediction_type : what the denoiser predicts
    clip : range that :math:`\hat x_0` is clipped to
    record : False never records

    Examples
    --------
    >>> from groundstate.math.diffusion import NoiseSchedule
    >>> from groundstate.infer.sampling.diffusion import ddim
    >>> always = DiffusionSampler(lambda x, t: torch.ones_like(x), ddim(NoiseSchedule(), 10), "sample")
    >>> always(torch.zeros(2, 1)).tolist()
    [[1.0], [1.0]]
    """

    def __init__(
        self,
        predict: Predict,
        steps: Steps,
        prediction_type: PredictionType = "epsilon",
        *,
        clip: Clip = None,
        record: bool = True,
    ) -> None:
        self.predict, self.steps, self.clip = predict, steps, clip
        p, r = clean_coefficients(steps.signal, steps.noise, prediction_type)
        logs = steps.logs if steps.logs is not None else torch.zeros(len(steps), 2).double()
        self.rows = torch.stack(
            [p, r, steps.own, steps.clean, steps.before, steps.fresh, *logs.unbind(1)], 1
        )
        if not bool(torch.isfinite(self.rows).all()):
            raise ValueError(
                f"a denoiser that predicts {prediction_type!r} says nothing at a level without signal "
                "(ᾱ = 0); predict 'sample' or 'v_prediction', or use another schedule"
            )
        self.random = (steps.fresh > 0).tolist()
        self.recorder = Recorder(self._step, list) if record else None

    def _step(
        self, x: Tensor, before: Tensor, t: Tensor, z: Tensor, row: Tensor, given: tuple[Any, ...]
    ) -> tuple[Tensor, Tensor]:
        out = self.predict(x, t.expand(len(x)), *given)
        moved: tuple[Tensor, Tensor] = advance(x, before, out, z, row.unbind(), self.clip)
        return moved

    @overload
    def __call__(
        self, x: Tensor, given: tuple[Any, ...] = (), *,
        generator: torch.Generator | None = None, path: Literal[False] = False,
    ) -> Tensor: ...  # fmt: skip

    @overload
    def __call__(
        self, x: Tensor, given: tuple[Any, ...] = (), *,
        generator: torch.Generator | None = None, path: Literal[True],
    ) -> tuple[Tensor, list[Tensor]]: ...  # fmt: skip

    @torch.no_grad()
    def __call__(
        self,
        x: Tensor,
        given: tuple[Any, ...] = (),
        *,
        generator: torch.Generator | None = None,
        path: bool = False,
    ) -> Tensor | tuple[Tensor, list[Tensor]]:
        """Rows from noise ``x`` ``(B, ...)`` at the first level; with ``path`` also every state.

        Parameters
        ----------
        x : :math:`x_T \\sim N(0, I)`
        given : further arguments of the denoiser, such as labels
        generator : of the noise of the steps
        path : whether the states in between come back too, one per row of the table
        """
        work = self._worker(x)
        levels = self.steps.t.to(x.device)
        rows = self.rows.to(x.device, x.dtype) if work is not None else self.rows.tolist()
        before, nothing, film = torch.zeros_like(x), torch.zeros_like(x), [x]
        for i, random in enumerate(self.random):
            z = nothing
            if random:
                z = torch.randn(x.shape, generator=generator, device=x.device, dtype=x.dtype)
            if work is not None:
                try:
                    x, before = work(x, before, levels[i], z, rows[i], given)
                except NotApplicable:
                    work, self.recorder, rows = None, None, self.rows.tolist()
            if work is None:
                out = self.predict(x, levels[i].expand(len(x)), *given)
                x, before = advance(x, before, out, z, rows[i], self.clip)
            if path:
                film.append(x.clone())
        x = x.clone() if work is not None else x  # a replay's memory is used again
        return (x, film) if path else x

    def _worker(self, x: Tensor) -> Any:
        return self.recorder if x.is_cuda and self.recorder is not None else None
