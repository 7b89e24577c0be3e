r"""Settings as points of the unit cube, where every sampler of this room works.

A real setting goes through its logarithm where its range asks for it, and through the distribution
function of its prior where it has one, so that prior draws are uniform in the cube. A category is the
middle of its share of the axis; categories that are numbers in order keep their order.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Axis:
    """One setting: its distribution, its prior and how it sits on the unit interval.

    Attributes
    ----------
    levels : int
        Number of different values; 0 where they are a continuum.
    nominal : bool
        Categories without an order.
    """

    def __init__(self, distribution: Any, prior: Any = None) -> None:
        self.distribution = distribution
        self.prior = prior
        self.choices: tuple[Any, ...] | None = getattr(distribution, "choices", None)
        self.nominal = False
        if self.choices is not None:
            self.levels = len(self.choices)
            self.nominal = not _ordered(self.choices)
            return
        self.whole = isinstance(distribution.low, int)
        self.low, self.high = float(distribution.low), float(distribution.high)
        self.log, step = bool(distribution.log), distribution.step
        self.step = 1.0 if self.whole and step is None else float(step or 0.0)
        self.levels = round((self.high - self.low) / self.step) + 1 if self.step else 0
        # half a step more on both sides: every value has its share of the axis
        half = self.step / 2 if self.step else 0.0
        self.ends = (self.low - half, self.high + half)
        if self.log:
            self.ends = (math.log(self.ends[0]), math.log(self.ends[1]))
        if prior is not None:
            lowest, highest = prior.cdf([self.low - half, self.high + half])
            self.mass = (float(lowest), float(highest))

    def value(self, u: float) -> Any:
        """The setting at ``u`` in [0, 1]."""
        u = min(max(float(u), 0.0), 1.0)
        if self.choices is not None:
            return self.choices[min(int(u * self.levels), self.levels - 1)]
        if self.prior is not None:
            x = float(self.prior.ppf(self.mass[0] + u * (self.mass[1] - self.mass[0])))
        else:
            x = self.ends[0] + u * (self.ends[1] - self.ends[0])
            x = math.exp(x) if self.log else x
        if self.step:
            x = self.low + self.step * round((x - self.low) / self.step)
        x = min(max(x, self.low), self.high)
        return round(x) if self.whole else x

    def place(self, value: Any) -> float:
        """Where a value sits in [0, 1]."""
        if self.choices is not None:
            return (_index(self.choices, value) + 0.5) / self.levels
        x = min(max(float(value), self.low), self.high)
        if self.prior is not None:
            share = (float(self.prior.cdf(x)) - self.mass[0]) / (self.mass[1] - self.mass[0])
            return min(max(share, 0.0), 1.0)
        x = math.log(x) if self.log else x
        return (x - self.ends[0]) / max(self.ends[1] - self.ends[0], 1e-300)


class Cube:
    """The unit cube of several settings.

    Parameters
    ----------
    space : mapping of names to Optuna distributions
    priors : mapping of names to frozen scipy distributions, optional

    Attributes
    ----------
    names : list of str, sorted
    groups : (c,)
        Setting of each column of :meth:`embed`.

    Examples
    --------
    >>> from optuna.distributions import CategoricalDistribution, FloatDistribution
    >>> space = {"C": FloatDistribution(0.01, 100.0, log=True),
    ...          "kernel": CategoricalDistribution(["rbf", "poly"])}
    >>> cube = Cube(space)
    >>> cube.point({"C": 1.0, "kernel": "poly"}).round(6).tolist()
    [0.5, 0.75]
    >>> cube.setting([0.25, 0.2])["kernel"]
    'rbf'
    """

    def __init__(self, space: Mapping[str, Any], priors: Mapping[str, Any] | None = None) -> None:
        self.names = sorted(space)
        self.axes = [Axis(space[name], (priors or {}).get(name)) for name in self.names]
        groups: list[int] = []
        for j, axis in enumerate(self.axes):
            groups += [j] * (axis.levels if axis.nominal else 1)
        self.groups = np.array(groups, dtype=np.intp)
        starts = np.searchsorted(self.groups, np.arange(len(self.axes)))
        self.starts = starts
        smooth = [j for j, axis in enumerate(self.axes) if not axis.nominal and axis.levels != 2]
        self.smooth = np.array(smooth, dtype=np.intp)  # settings that a gradient may move
        self.discrete = all(axis.levels for axis in self.axes)

    def __len__(self) -> int:
        return len(self.names)

    def point(self, setting: Mapping[str, Any]) -> Floats:
        """Coordinates of a setting.  # (d,)"""
        return np.array([axis.place(setting[n]) for n, axis in zip(self.names, self.axes)])

    def setting(self, u: Sequence[float] | Floats) -> dict[str, Any]:
        """The setting at a point."""
        return {n: axis.value(float(v)) for n, axis, v in zip(self.names, self.axes, u)}

    def snap(self, U: Floats) -> Floats:
        """Points moved to where their settings really are.  # (m, d)"""
        U = np.clip(U, 0.0, 1.0)
        for j, axis in enumerate(self.axes):
            if not axis.levels:
                continue
            if axis.choices is None and (axis.log or axis.prior is not None):
                U[:, j] = [axis.place(axis.value(u)) for u in U[:, j]]
            else:
                at = np.minimum(np.floor(U[:, j] * axis.levels), axis.levels - 1)
                U[:, j] = (at + 0.5) / axis.levels
        return U

    def embed(self, U: Floats) -> Floats:
        """Points with every unordered category spread over columns.  # (m, d) -> (m, c)

        Two different categories are at distance one.
        """
        if len(self.groups) == len(self.axes):
            return U
        Z = np.zeros((len(U), len(self.groups)))
        for j, (axis, start) in enumerate(zip(self.axes, self.starts)):
            if axis.nominal:
                at = np.minimum((U[:, j] * axis.levels).astype(np.intp), axis.levels - 1)
                Z[np.arange(len(U)), start + at] = math.sqrt(0.5)
            else:
                Z[:, start] = U[:, j]
        return Z


def _ordered(choices: Sequence[Any]) -> bool:
    """Whether categories are numbers in rising or falling order, three at least."""
    plain = all(isinstance(c, (int, float)) and not isinstance(c, bool) for c in choices)
    if not plain or len(choices) < 3:
        return False
    steps = np.diff(np.asarray(choices, np.float64))
    return bool((steps > 0).all() or (steps < 0).all())


def _index(choices: Sequence[Any], value: Any) -> int:
    for i, choice in enumerate(choices):
        if choice is value or (type(choice) is type(value) and choice == value):
            return i
    return list(choices).index(value)
