r"""A learning rate from one short run in which it grows."""

from __future__ import annotations

import contextlib
import copy
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from statistics import median
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from groundstate.energy.base import Energy
from groundstate.errors import Unsupported
from groundstate.learn.base import Batch, Penalty, Rule
from groundstate.learn.callbacks import Callback, Run
from groundstate.learn.fit import fit

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from groundstate.learn.train.stochastic import Stochastic

CHECK = 8  # steps between looks at the loss


@dataclass(frozen=True)
class RateCurve:
    """The loss over the learning rate.

    Attributes
    ----------
    rates : list of float, growing
    losses : list of float, the loss of the step that used the rate, before its update
    smoothed : list of float, exponential means of the losses
    suggestion : the rate where the smoothed loss falls fastest
    largest : the rate where the smoothed loss is lowest; beyond it steps do harm
    """

    rates: list[float]
    losses: list[float]
    smoothed: list[float]
    suggestion: float
    largest: float

    def plot(self) -> Figure:
        """The curve with both rates marked."""
        from matplotlib.figure import Figure

        fig = Figure(figsize=(5.5, 3.2), layout="constrained")
        ax = fig.add_subplot()
        ax.semilogx(self.rates, self.losses, color="0.8")
        ax.semilogx(self.rates, self.smoothed)
        for rate, word, style in (
            (self.suggestion, "falls fastest", "-"),
            (self.largest, "lowest", ":"),
        ):
            ax.axvline(rate, color="0.4", linestyle=style, label=f"{word}: {rate:.2g}")
        first, lowest = _level(self.losses), min(self.smoothed)
        span = max(first - lowest, 1e-9)
        ax.set(xlabel="learning rate", ylabel="loss")
        ax.set_ylim(lowest - 0.3 * span, first + 0.6 * span)
        ax.legend(frameon=False, fontsize=8)
        return fig


class _Recorder(Callback):
    """Keeps losses on the device and stops after ``steps`` or once the loss has blown up."""

    def __init__(self, steps: int) -> None:
        self.steps, self.losses = steps, list[Tensor]()

    def on_step(self, run: Run) -> bool:
        assert run.loss is not None
        self.losses.append(run.loss)
        if len(self.losses) >= self.steps:
            return True
        return len(self.losses) % CHECK == 0 and _blown([float(v) for v in self.losses])


def _blown(losses: list[float]) -> bool:
    smoothed, first = _smooth(losses), _level(losses)
    lowest = min(smoothed)
    return not math.isfinite(smoothed[-1]) or smoothed[-1] > first + 2 * max(
        first - lowest, 0.5 * abs(first)
    )


def _smooth(losses: list[float], beta: float = 0.9) -> list[float]:
    mean, out = 0.0, []
    for t, value in enumerate(losses, 1):
        mean = beta * mean + (1 - beta) * value
        out.append(mean / (1 - beta**t))
    return out


def _level(losses: list[float]) -> float:
    """The loss before anything was learned: the median of the first tenth."""
    return median(losses[: max(3, len(losses) // 10)])


def find_lr(
    energy: Energy,
    data: Mapping[str, Tensor] | Iterable[Batch],
    rule: Rule,
    solver: Stochastic | None = None,
    *,
    low: float = 1e-6,
    high: float = 10.0,
    steps: int = 200,
    sample_weight: Tensor | None = None,
    penalty: Penalty | None = None,
    random_state: Any = None,
) -> RateCurve:
    r"""Let the learning rate grow from ``low`` to ``high`` in one short run of a copy.

    .. math:: \eta_t = \eta_{\min} (\eta_{\max}/\eta_{\min})^{t/T}

    The run stops once the loss has blown up. Energy and rule are left as they are.

    Parameters
    ----------
    energy, data, rule, sample_weight, penalty, random_state : as in ``fit``
    solver : the optimiser and batch size to look for; ``Stochastic()`` by default
    low, high : first and last rate
    steps : of the whole run

    Returns
    -------
    RateCurve

    Examples
    --------
    >>> import torch
    >>> from groundstate.energy import LinearEnergy
    >>> from groundstate.learn import SoftMin
    >>> g = torch.Generator().manual_seed(0)
    >>> x = torch.randn(256, 2, generator=g)
    >>> data = {"x": x, "y": (x[:, 0] > 0).long()}
    >>> curve = find_lr(LinearEnergy(2, 2), data, SoftMin(), steps=100, random_state=0)
    >>> 1e-3 < curve.suggestion <= curve.largest
    True
    """
    from groundstate.learn.train.stochastic import Stochastic

    if not 0 < low < high:
        raise ValueError(f"rates must satisfy 0 < low < high, got low={low}, high={high}")
    if steps < 10:
        raise ValueError(f"steps must be at least 10 to see a curve, got {steps}")
    growth = math.log(high / low) / steps
    settings = replace(
        solver or Stochastic(),
        lr=low,
        schedule=lambda step: math.exp(growth * step),
        max_epochs=steps,
        tol=None,
    )
    trial, own = copy.deepcopy(energy), copy.deepcopy(rule)
    recorder = _Recorder(steps)
    # a rate that is far too high ends the run, which is what is looked for
    with contextlib.suppress(FloatingPointError):
        fit(
            trial, data, own, settings, sample_weight=sample_weight, penalty=penalty,
            callbacks=[recorder], random_state=random_state,
        )  # fmt: skip
    if not recorder.losses:
        raise Unsupported("the data gave no steps, so there is no curve")
    losses = torch.stack(recorder.losses).tolist()
    return _curve(losses, low, growth)


def _curve(losses: list[float], low: float, growth: float) -> RateCurve:
    n = next((i for i, v in enumerate(losses) if not math.isfinite(v)), len(losses))
    losses = losses[:n]
    if not losses:
        raise FloatingPointError(
            "the loss is not finite at the lowest rate; scale the inputs or check the data"
        )
    rates = [low * math.exp(growth * i) for i in range(n)]
    smoothed = _smooth(losses)
    lowest = min(range(n), key=lambda i: smoothed[i])
    return RateCurve(rates, losses, smoothed, rates[_steepest(losses, lowest)], rates[lowest])


def _steepest(losses: list[float], lowest: int) -> int:
    """The middle of the window, up to the lowest point, in which a line through the losses falls
    most: single batches are too noisy for differences."""
    half = max(3, len(losses) // 16)
    offsets = range(-half, half + 1)
    best, at = 0.0, lowest
    for i in range(half, min(lowest, len(losses) - 1 - half) + 1):
        slope = math.fsum(k * losses[i + k] for k in offsets)
        if slope < best:
            best, at = slope, i
    return at
