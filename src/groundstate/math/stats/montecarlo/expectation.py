r"""Expectations by Monte Carlo: :math:`\mathbb{E} f \approx \frac1n\sum_i f(v_i)`, error
:math:`\sigma/\sqrt n`.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass

import scipy.stats
import torch
from torch import Tensor

from groundstate.compute.display import Displayed
from groundstate.errors import Unreliable

LOOKS = 8  # places at which the running standard error is noted, each twice as far as the last
DOMINANT = 0.1  # share of the sum of squares that one draw of a thousand may have
STEEP = -0.25  # a finite variance gives a slope of -1/2 in log stderr against log n
TOP = 200  # largest deviations that are kept for the tail index


@dataclass(frozen=True)
class Expectation(Displayed):
    """A Monte Carlo mean with its standard error.

    Attributes
    ----------
    mean, stderr : shape of one value of ``f``
    variance : variance of ``f`` over the draws
    n : draws; for weighted draws the effective number
    reliable : False when the tail of the values is so heavy that their variance is infinite, or, without a tail
        index, when the standard error does not fall like 1/√n or hangs on a single draw
    running : draws and largest standard error at each look
    running_mean : means at the same looks, ``(looks, ...)``
    tail_index : Hill's estimate for the largest deviations; below 2 the variance is infinite
    df : degrees of freedom of the interval; infinite for a normal one
    """

    mean: Tensor
    stderr: Tensor
    variance: Tensor
    n: float
    reliable: bool = True
    running: tuple[tuple[int, float], ...] = ()
    running_mean: Tensor | None = None
    tail_index: float = math.inf
    df: float = math.inf

    def interval(self, level: float = 0.95) -> tuple[Tensor, Tensor]:
        r""":math:`\bar f \pm t\,\mathrm{stderr}`."""
        if not 0 < level < 1:
            raise ValueError(f"level is a confidence between 0 and 1 such as 0.95, got {level}")
        reach = float(scipy.stats.t.ppf((1 + level) / 2, self.df)) * self.stderr
        return self.mean - reach, self.mean + reach


class Accumulator:
    """Moments of values that come in blocks, with what is needed to judge them.

    Parameters
    ----------
    tail : keep the largest deviations and count a Hill index below 2 as an infinite variance; not for
        finitely many values
    """

    def __init__(self, *, tail: bool = True) -> None:
        self.tail = tail
        self.count = 0
        self.mean = self.square = self.largest = torch.zeros(())
        self.top: Tensor | None = None
        self.running: list[tuple[int, float]] = []
        self.means: list[Tensor] = []

    def add(self, values: Tensor) -> None:
        """Take a block ``(m, ...)`` in."""
        m = len(values)
        own = values.detach().to(torch.float64)
        own_mean = own.mean(0)
        own_square = (own - own_mean).square().sum(0)
        gap = own_mean - self.mean
        total = self.count + m
        self.square = self.square + own_square + gap.square() * (self.count * m / total)
        self.mean = self.mean + gap * (m / total)
        off = (own - self.mean).abs()
        self.largest = torch.maximum(self.largest, off.amax(0).square())
        if self.tail:
            both = off if self.top is None else torch.cat([self.top, off])
            self.top = both.topk(min(TOP, len(both)), dim=0).values
        self.count = total

    @property
    def variance(self) -> Tensor:
        return self.square / max(self.count - 1, 1)

    @property
    def stderr(self) -> Tensor:
        return (self.variance / self.count).sqrt()

    def look(self) -> None:
        """Note mean and standard error."""
        self.running.append((self.count, float(self.stderr.max())))
        self.means.append(self.mean)

    def tail_index(self) -> float:
        r"""Hill's estimate from the :math:`\sqrt n` largest deviations, the least over components."""
        k = min(TOP - 1, math.isqrt(self.count))
        if self.top is None or len(self.top) <= k or k < 10:
            return math.inf
        start = self.top[k].clamp(min=torch.finfo(torch.float64).tiny)
        mean = (self.top[:k].clamp(min=torch.finfo(torch.float64).tiny) / start).log().mean(0)
        return float((1 / mean.clamp(min=1e-300)).min())

    def result(self) -> Expectation:
        """The mean of all blocks; warns where it cannot be trusted."""
        index = self.tail_index()
        k = min(TOP - 1, math.isqrt(self.count))
        if self.tail:  # three standard errors below 2
            doubtful = self.count >= 1000 and index * (1 + 3 / math.sqrt(k)) < 2
        else:  # one draw that makes up much of all squares: the next one will move everything again
            lonely = self.count >= 1000 and bool((self.largest > DOMINANT * self.square).any())
            doubtful = lonely or not _falls(self.running)
        rounding = bool((self.stderr <= 1e-14 * self.mean.abs()).all())  # no spread to judge
        reliable = rounding or not doubtful
        if not reliable:
            first, last = self.running[0], self.running[-1]
            why = f"Hill's index of the largest draws is {index:.2g}, below 2" if self.tail else (
                "the standard error does not fall steadily with the number of draws"
            )  # fmt: skip
            warnings.warn(
                f"{why} (standard error {first[1]:.3g} at n={first[0]}, {last[1]:.3g} at "
                f"n={self.count}); the variance may be infinite and the mean meaningless",
                Unreliable,
                stacklevel=3,
            )
        return Expectation(
            self.mean, self.stderr, self.variance, self.count, reliable, tuple(self.running),
            torch.stack(self.means) if self.means else None, index, self.count - 1,
        )  # fmt: skip


def looks_until(n: int) -> list[int]:
    """Where to look on the way to n draws: n, n/2, n/4 and so on."""
    return sorted({max(2, n >> k) for k in range(LOOKS)})


def _falls(running: list[tuple[int, float]]) -> bool:
    points = [(math.log(k), math.log(s)) for k, s in running if s > 0 and k >= 100]
    if len(points) < 4:
        return True
    x, y = (torch.tensor(v, dtype=torch.float64) for v in zip(*points, strict=True))
    x = x - x.mean()
    return float((x * y).sum() / x.square().sum()) < STEEP
