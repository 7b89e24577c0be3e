r"""Schedules: the factor on the learning rate, step by step, :math:`\eta_t = \eta_0\,s(t)`."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from groundstate.errors import Unsupported
from groundstate.learn.callbacks.plateau import Plateau

Factor = Callable[[int], float]


class Schedule:
    """A factor that may depend on the number of steps of the whole run.

    Subclasses write ``factor``; ``at(total)`` fixes the number of steps and gives step → factor.
    """

    def factor(self, step: int, total: int) -> float:
        """The factor of step ``step`` (from 0) of ``total``."""
        raise Unsupported(f"{type(self).__name__} does not say its factor; override factor")

    def at(self, total: int) -> Factor:
        """Step → factor for a run of ``total`` steps."""
        return lambda step: self.factor(step, total)

    def table(self, total: int) -> list[float]:
        """All factors of a run."""
        return [self.factor(step, total) for step in range(total)]


@dataclass(frozen=True)
class Constant(Schedule):
    r""":math:`s(t) = 1`."""

    def factor(self, step: int, total: int) -> float:
        return 1.0


@dataclass(frozen=True)
class Step(Schedule):
    r""":math:`s(t) = \gamma^{\lfloor t / T \rfloor}`; ``every`` is T, a third of the run if None.

    Examples
    --------
    >>> Step(every=2, gamma=0.5).table(5)
    [1.0, 1.0, 0.5, 0.5, 0.25]
    """

    every: int | None = None
    gamma: float = 0.1

    def factor(self, step: int, total: int) -> float:
        return float(self.gamma ** (step // (self.every or max(1, -(-total // 3)))))


@dataclass(frozen=True)
class Exponential(Schedule):
    r""":math:`s(t) = \gamma^t`; without γ the last factor of the run is ``final``.

    Examples
    --------
    >>> Exponential(final=0.01).table(3)
    [1.0, 0.1, 0.01]
    """

    gamma: float | None = None
    final: float = 0.01

    def factor(self, step: int, total: int) -> float:
        if self.gamma is not None:
            return float(self.gamma**step)
        return float(self.final ** (step / max(1, total - 1)))


@dataclass(frozen=True)
class InverseTime(Schedule):
    r""":math:`s(t) = 1/(1 + t/\tau)`: the sum of the steps diverges, that of their squares does not,
    so the noise of single batches averages out.

    Examples
    --------
    >>> InverseTime(tau=1).table(4)
    [1.0, 0.5, 0.3333333333333333, 0.25]
    """

    tau: float = 1.0

    def factor(self, step: int, total: int) -> float:
        return 1.0 / (1.0 + step / self.tau)


@dataclass(frozen=True)
class InverseSqrt(Schedule):
    r""":math:`s(t) = 1/\sqrt{1 + t/\tau}`, the rate of online learning.

    Examples
    --------
    >>> InverseSqrt(tau=1).factor(3, 0)
    0.5
    """

    tau: float = 1.0

    def factor(self, step: int, total: int) -> float:
        return 1.0 / math.sqrt(1.0 + step / self.tau)


@dataclass(frozen=True)
class Linear(Schedule):
    r""":math:`s(t) = 1 - (1 - f)\,t/T`, from 1 down to ``final``.

    Examples
    --------
    >>> Linear().table(4)
    [1.0, 0.75, 0.5, 0.25]
    """

    final: float = 0.0

    def factor(self, step: int, total: int) -> float:
        return 1.0 - (1.0 - self.final) * min(1.0, step / max(1, total))


@dataclass(frozen=True)
class Cosine(Schedule):
    r""":math:`s(t) = f + \tfrac12(1 - f)(1 + \cos(\pi t/T))`; with ``restarts`` the run is that many
    falling half waves.

    Examples
    --------
    >>> [round(s, 3) for s in Cosine().table(4)]
    [1.0, 0.854, 0.5, 0.146]
    """

    final: float = 0.0
    restarts: int = 1

    def factor(self, step: int, total: int) -> float:
        place = self.restarts * step / max(1, total)
        phase = place - min(int(place), self.restarts - 1)
        return self.final + 0.5 * (1 - self.final) * (1 + math.cos(math.pi * min(1.0, phase)))


@dataclass(frozen=True)
class CosineLog(Schedule):
    r""":math:`s(t) = \tfrac12\bigl(1 - \cos(2\pi\log_2(1 + (2^c - 1)t/T))\bigr)`: c waves, each twice as
    long as the one before, that all end at 0. Each end is a place to stop at; c = 4 is "coslog4".

    Examples
    --------
    >>> [round(s, 3) for s in CosineLog(2).table(6)]
    [0.0, 0.93, 0.0, 0.718, 0.93, 0.324]
    """

    cycles: int = 4

    def factor(self, step: int, total: int) -> float:
        done = min(1.0, step / max(1, total))
        return 0.5 * (1 - math.cos(2 * math.pi * math.log2(1 + (2**self.cycles - 1) * done)))


@dataclass(frozen=True)
class FlatCosine(Schedule):
    r"""1 for the part ``flat`` of the run, then a half cosine wave down to 0.

    Examples
    --------
    >>> [round(s, 3) for s in FlatCosine().table(6)]
    [1.0, 1.0, 1.0, 1.0, 0.75, 0.25]
    """

    flat: float = 0.5

    def factor(self, step: int, total: int) -> float:
        done = min(1.0, step / max(1, total))
        left = max(0.0, done - self.flat) / (1 - self.flat)
        return 0.5 * (1 + math.cos(math.pi * left))


@dataclass(frozen=True)
class OneCycle(Schedule):
    r"""Up to the full rate and down again by half cosine waves: from 1/``start`` to 1 over the
    fraction ``rise``, then to 1/(``start`` · ``end``). ``lr`` is the highest rate.

    Examples
    --------
    >>> [round(s, 3) for s in OneCycle(rise=0.6).table(5)]
    [0.04, 0.52, 1.0, 0.5, 0.0]
    """

    rise: float = 0.3
    start: float = 25.0
    end: float = 1e4

    def factor(self, step: int, total: int) -> float:
        top = self.rise * total - 1.0  # as torch counts: the last step is total - 1
        low, last = 1 / self.start, 1 / (self.start * self.end)
        if step <= top:
            return _wave(low, 1.0, step / top if top > 0 else 1.0)
        return _wave(1.0, last, min(1.0, (step - top) / max(1e-12, total - 1 - top)))


@dataclass(frozen=True)
class Warmup(Schedule):
    r"""Rise linearly over the first ``steps``, :math:`s(t) = (t+1)/w`, then follow ``then``.

    Parameters
    ----------
    steps : int or float
        :math:`w`; a number below 1 is a fraction of the run.
    then : schedule by name, object or function
        What follows; its clock starts after the warm-up.

    Examples
    --------
    >>> Warmup(4).table(6)
    [0.25, 0.5, 0.75, 1.0, 1.0, 1.0]
    """

    steps: float = 0.05
    then: Any = "constant"

    def factor(self, step: int, total: int) -> float:
        return self.at(total)(step)

    def at(self, total: int) -> Factor:
        rise = math.ceil(self.steps * total) if 0 < self.steps < 1 else int(self.steps)
        then = resolve(self.then, max(1, total - rise))
        return lambda step: (step + 1) / rise if step < rise else then(step - rise)


@dataclass(frozen=True)
class Ramp(Schedule):
    r"""0 before T₁, then linear up to ``final`` at T₂, the weight of pseudo-labels:

    .. math:: \alpha(t) = \alpha_f\,\min\bigl(1, \max(0, (t - T_1)/(T_2 - T_1))\bigr)

    Examples
    --------
    >>> Ramp(3.0, 100, 600).factor(350, 0)
    1.5
    """

    final: float = 3.0
    begin: int = 100
    end: int = 600

    def factor(self, step: int, total: int) -> float:
        if step < self.begin:
            return 0.0
        if step >= self.end:
            return self.final
        return self.final * (step - self.begin) / (self.end - self.begin)


def _wave(a: float, b: float, done: float) -> float:
    return b + 0.5 * (a - b) * (1 + math.cos(math.pi * done))


SCHEDULES: dict[str, Callable[[], Schedule]] = {
    "constant": Constant,
    "step": Step,
    "exponential": Exponential,
    "inverse_time": InverseTime,
    "inverse_sqrt": InverseSqrt,
    "linear": Linear,
    "cosine": Cosine,
    "coslog4": CosineLog,
    "flat_cosine": FlatCosine,
    "onecycle": OneCycle,
    "warmup": Warmup,
}


def resolve(schedule: Any, total: int) -> Factor:
    """Step → factor for a run of ``total`` steps.

    Parameters
    ----------
    schedule : name, ``Schedule`` or function
        A name of ``SCHEDULES``, also with ``"warmup+"`` before it. A function of one argument gets
        the number of finished steps; if the argument is called ``done``, the finished fraction of
        the run.
    total : steps of the whole run

    Examples
    --------
    >>> resolve("warmup+cosine", 100)(0)
    0.2
    >>> resolve(lambda step: 0.5**step, 10)(3), resolve(lambda done: 1 - done, 10)(3)
    (0.125, 0.7)
    """
    if schedule is None:
        return lambda step: 1.0
    if isinstance(schedule, str):
        schedule = _named(schedule)
    if isinstance(schedule, Schedule):
        return schedule.at(total)
    if not callable(schedule):
        raise Unsupported(
            f"schedule must be a name, a Schedule or a function of the step, got {schedule!r}; "
            f"names are {', '.join(SCHEDULES)}, plateau"
        )
    given: Callable[[Any], float] = schedule
    if _argument(given) == "done":
        return lambda step: float(given(step / max(1, total)))
    return lambda step: float(given(step))


def _named(name: str) -> Schedule:
    if name.startswith("warmup+"):
        return Warmup(then=_named(name.removeprefix("warmup+")))
    if name not in SCHEDULES:
        known = (*SCHEDULES, "plateau")
        close = get_close_matches(name, known, 1)
        hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(known)}"
        raise Unsupported(f"schedule {name!r} is not known; {hint}")
    return SCHEDULES[name]()


def _argument(function: Callable[..., Any]) -> str:
    try:
        return next(iter(inspect.signature(function).parameters), "")
    except (TypeError, ValueError):
        return ""


def watcher(schedule: Any) -> Plateau | None:
    """The callback behind ``schedule="plateau"`` (or a ``Plateau``), None for other schedules."""
    if isinstance(schedule, Plateau):
        return schedule
    return Plateau() if schedule == "plateau" else None


__all__ = [
    "Constant",
    "Cosine",
    "CosineLog",
    "Exponential",
    "Factor",
    "FlatCosine",
    "InverseSqrt",
    "InverseTime",
    "Linear",
    "OneCycle",
    "Plateau",
    "Ramp",
    "SCHEDULES",
    "Schedule",
    "Step",
    "Warmup",
    "resolve",
    "watcher",
]
