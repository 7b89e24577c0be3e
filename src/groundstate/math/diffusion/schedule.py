r"""Noise schedules: how much signal and noise a row holds at each level of a diffusion."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from groundstate.errors import ShapeError

TERMINAL = 1e-3  # ᾱ_T above this leaves signal at the last level


def linear(n: int, start: float = 1e-4, end: float = 0.02) -> Tensor:
    return torch.linspace(start, end, n, dtype=torch.float64)


def scaled_linear(n: int, start: float = 0.00085, end: float = 0.012) -> Tensor:
    return torch.linspace(math.sqrt(start), math.sqrt(end), n, dtype=torch.float64).square()


def sigmoid(n: int, start: float = 1e-4, end: float = 0.02) -> Tensor:
    u = torch.linspace(-6, 6, n, dtype=torch.float64)
    return torch.sigmoid(u) * (end - start) + start


def cosine(n: int, s: float = 0.008, largest: float = 0.999) -> Tensor:
    u = torch.linspace(0, 1, n + 1, dtype=torch.float64)
    bar = torch.cos((u + s) / (1 + s) * math.pi / 2).square()
    return (1 - bar[1:] / bar[:-1]).clamp(max=largest)


KINDS: dict[str, Callable[..., Tensor]] = {
    "linear": linear, "scaled_linear": scaled_linear, "cosine": cosine, "sigmoid": sigmoid,
}  # fmt: skip


class NoiseSchedule:
    r"""Levels t = 1..T of a diffusion :math:`x_t = \sqrt{\alpha_t}\,x_{t-1} + \sqrt{1-\alpha_t}\,
    \epsilon`, :math:`\alpha_t = 1 - \beta_t`, so that :math:`x_t = \sqrt{\bar\alpha_t}\,x_0 +
    \sqrt{1-\bar\alpha_t}\,\epsilon` with :math:`\bar\alpha_t = \prod_{s\le t}\alpha_s` and
    :math:`\bar\alpha_0 = 1`.

    Arrays are float64 and indexed by t − 1, as in diffusers.

    Parameters
    ----------
    schedule : "linear", "scaled_linear", "cosine", "sigmoid", or the β themselves
    n_steps : T; taken from the β where they are given
    settings : of the kind: ``start`` and ``end`` (β_1 and β_T), of "cosine" ``s`` and ``largest``

    Attributes
    ----------
    betas, alphas, alpha_bars : ``(T,)``
    sigmas : noise per unit of signal, :math:`\sqrt{(1-\bar\alpha)/\bar\alpha}`
    snr, log_snr : :math:`\bar\alpha/(1-\bar\alpha)` and its logarithm
    posterior_variances : of :math:`q(x_{t-1}\mid x_t, x_0)`; 0 at t = 1

    Examples
    --------
    >>> NoiseSchedule().alpha_bars[[99, 249, 499]]
    tensor([0.8970, 0.5241, 0.0786], dtype=torch.float64)
    >>> NoiseSchedule("cosine", 1000)
    NoiseSchedule('cosine', n_steps=1000)
    """

    def __init__(
        self, schedule: str | Tensor | Any = "linear", n_steps: int | None = None, **settings: float
    ) -> None:
        if isinstance(schedule, str):
            if schedule not in KINDS:
                raise ValueError(f"schedule must be one of {', '.join(KINDS)}, got {schedule!r}")
            n = 1000 if n_steps is None else n_steps
            if n < 1:
                raise ValueError(f"n_steps must be at least 1, got {n_steps}")
            try:
                betas = KINDS[schedule](n, **settings)
            except TypeError as error:
                raise TypeError(f"the schedule {schedule!r} does not know {settings}") from error
            self.kind = schedule
        else:
            betas, self.kind = _given(schedule, n_steps, settings), "given"
        self.settings = settings
        self._fill(betas)
        if self.alpha_bars[-1] > TERMINAL:
            warnings.warn(
                f"the last of {self.n_steps} noise levels keeps a share "
                f"ᾱ_T = {self.alpha_bars[-1]:.4g} of the signal, and sampling starts from noise "
                f"without any: use more levels, larger β (end={20 / self.n_steps:.3g}), 'cosine', "
                "or NoiseSchedule(...).zero_terminal()",
                UserWarning,
                stacklevel=2,
            )

    def _fill(self, betas: Tensor) -> None:
        ends = bool((betas[:-1] < 1).all() and betas[-1] <= 1)
        if not (bool((betas > 0).all()) and ends):
            raise ValueError(f"every β must be between 0 and 1, got {_span(betas)}")
        if bool((betas.diff() < -1e-12).any()):
            raise ValueError("β must not fall: noise only grows with t; sort them")
        self.betas = betas
        self.alphas = 1 - betas
        self.alpha_bars = self.alphas.cumprod(0)
        before = torch.cat([torch.ones(1, dtype=torch.float64), self.alpha_bars[:-1]])
        self.posterior_variances = betas * (1 - before) / (1 - self.alpha_bars)
        self._tables: dict[Any, Tensor] = {}

    @property
    def n_steps(self) -> int:
        return len(self.betas)

    @property
    def sigmas(self) -> Tensor:
        return ((1 - self.alpha_bars) / self.alpha_bars).sqrt()

    @property
    def snr(self) -> Tensor:
        return self.alpha_bars / (1 - self.alpha_bars)

    @property
    def log_snr(self) -> Tensor:
        return self.snr.log()

    @property
    def logs_variances(self) -> tuple[Tensor, Tensor]:
        """log β and log β̃, between which a learned variance lies; β̃_1 = 0 counts as β̃_2."""
        small = self.posterior_variances.clone()
        small[0] = small[1] if self.n_steps > 1 else self.betas[0]
        return self.betas.log(), small.log()

    def table(self, name: str, like: Tensor) -> Tensor:
        """An attribute with its value at t = 0 before it, ``(T + 1,)``, where ``like`` is."""
        key = (name, like.device, like.dtype)
        if key not in self._tables:
            first = {"alpha_bars": 1.0, "alphas": 1.0, "betas": 0.0, "posterior_variances": 0.0}
            values = torch.cat([torch.tensor([first[name]]).double(), getattr(self, name)])
            self._tables[key] = values.to(like.device, like.dtype)
        return self._tables[key]

    def at(self, name: str, t: Any, like: Tensor) -> Tensor:
        """``alpha_bars``, ``alphas`` or ``betas`` at t = 0..T, shaped to multiply rows ``like``."""
        t = t if isinstance(t, Tensor) else torch.as_tensor(t)
        # on a GPU the check would wait for the device at every step; indexing fails there anyway
        if t.is_cpu and bool(((t < 0) | (t > self.n_steps)).any()):
            raise ValueError(f"t must be in 0..{self.n_steps}, got {_span(t)}")
        picked = self.table(name, like)[t.to(like.device)]
        if not picked.ndim:
            return picked
        return picked.reshape(*picked.shape, *(1,) * (like.ndim - picked.ndim))

    def signal_noise(self, t: Any, like: Tensor) -> tuple[Tensor, Tensor]:
        r"""a and s of :math:`x_t = a\,x_0 + s\,\epsilon`, shaped to multiply rows ``like``."""
        bar = self.at("alpha_bars", t, like)
        return bar.sqrt(), (1 - bar).sqrt()

    def zero_terminal(self) -> NoiseSchedule:
        r"""The schedule shifted and scaled in :math:`\sqrt{\bar\alpha}` so that nothing of the signal
        is left at t = T and t = 1 stays (Lin et al. 2024); then ε cannot be predicted at T, x₀ and
        v can.

        >>> NoiseSchedule("linear").zero_terminal().alpha_bars[-1].item()
        0.0
        """
        if self.n_steps < 2:
            raise ValueError("zero_terminal needs at least two levels")
        root = self.alpha_bars.sqrt()
        root = (root - root[-1]) * (root[0] / (root[0] - root[-1]))
        bars = root.square()
        alphas = torch.cat([bars[:1], bars[1:] / bars[:-1]])
        return NoiseSchedule(1 - alphas)

    @classmethod
    def of(cls, schedule: Any, n_steps: int | None = None) -> NoiseSchedule:
        """A schedule as it is, or one made of a name or of β."""
        if isinstance(schedule, NoiseSchedule):
            if n_steps not in (None, schedule.n_steps):
                raise ValueError(
                    f"the schedule has {schedule.n_steps} levels and n_steps={n_steps} was asked"
                )
            return schedule
        return cls(schedule, n_steps)

    def __repr__(self) -> str:
        options = "".join(f", {k}={v}" for k, v in self.settings.items())
        return f"NoiseSchedule({self.kind!r}, n_steps={self.n_steps}{options})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NoiseSchedule) and torch.equal(self.betas, other.betas)

    def __hash__(self) -> int:
        return hash(self.betas.numpy().tobytes())


def quiet(schedule: Any, n_steps: int | None = None) -> NoiseSchedule:
    """As ``NoiseSchedule.of``, without the warning: who chose the schedule has had it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return NoiseSchedule.of(schedule, n_steps)


def _given(betas: Any, n_steps: int | None, settings: dict[str, float]) -> Tensor:
    values = torch.as_tensor(np.asarray(betas) if not isinstance(betas, Tensor) else betas)
    values = values.detach().cpu().double()
    if settings:
        raise TypeError(f"β that are given need no settings, got {settings}")
    if values.ndim != 1 or not len(values):
        raise ShapeError(f"β must be a vector (T,), got shape {tuple(values.shape)}")
    if n_steps is not None and n_steps != len(values):
        raise ValueError(f"n_steps={n_steps}, and {len(values)} β were given")
    return values


def _span(values: Tensor) -> str:
    return f"values from {values.min().item():.4g} to {values.max().item():.4g}"


def karras_sigmas(
    n: int, sigma_min: float = 0.002, sigma_max: float = 80.0, rho: float = 7.0
) -> Tensor:
    r"""Noise levels :math:`\sigma_i = (\sigma_{\max}^{1/\rho} + \tfrac{i}{n-1}(\sigma_{\min}^{1/\rho}
    - \sigma_{\max}^{1/\rho}))^\rho`, falling, ``(n,)`` (Karras et al. 2022).

    >>> karras_sigmas(18)[[0, 1, -1]]
    tensor([8.0000e+01, 5.7586e+01, 2.0000e-03], dtype=torch.float64)
    """
    if n < 1 or not 0 < sigma_min <= sigma_max or not rho > 0:
        raise ValueError(
            f"needs n ≥ 1, 0 < sigma_min ≤ sigma_max and rho > 0, got n={n}, sigma_min={sigma_min}, "
            f"sigma_max={sigma_max}, rho={rho}"
        )
    low, high = sigma_min ** (1 / rho), sigma_max ** (1 / rho)
    out = torch.linspace(high, low, n, dtype=torch.float64) ** rho
    out[0], out[-1] = sigma_max, sigma_min if n > 1 else sigma_max
    return out
