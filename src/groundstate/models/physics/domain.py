r"""Where an equation holds: boxes of named coordinates, and parts of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from groundstate.compute.random import Key
from groundstate.energy.networks.equation import Law, law
from groundstate.errors import DataError

Points = NDArray[np.float64]
SAMPLERS = ("sobol", "lhs", "uniform")


@dataclass(frozen=True, init=False)
class Box:
    r"""A box of named coordinates, such as ``Box(t=(0, 1), x=(-1, 1))``; one coordinate is an interval.

    Parameters
    ----------
    sides : from and to of every coordinate, by its letter; ``t`` is time

    Examples
    --------
    >>> box = Box(t=(0, 1), x=(-1, 1))
    >>> box.names, box.sample(4, random_state=0).shape
    (('t', 'x'), (4, 2))
    """

    names: tuple[str, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]

    def __init__(
        self, *, names: Sequence[str] = (), low: Sequence[float] = (), high: Sequence[float] = (),
        **sides: tuple[float, float],
    ) -> None:  # fmt: skip
        names = (*names, *sides)
        low, high = (
            (*low, *(s[0] for s in sides.values())),
            (*high, *(s[1] for s in sides.values())),
        )
        if not names or len(names) != len(low) or len(names) != len(high):
            raise ValueError("a box needs sides, such as Box(t=(0, 1), x=(-1, 1))")
        for name, a, b in zip(names, low, high):
            if not a < b:
                raise ValueError(f"the side {name} must go from low to high, got ({a}, {b})")
        object.__setattr__(self, "names", tuple(names))
        object.__setattr__(self, "low", tuple(map(float, low)))
        object.__setattr__(self, "high", tuple(map(float, high)))

    @property
    def box(self) -> Box:
        return self

    def contains(self, X: Points) -> NDArray[np.bool_]:
        """Which points are in it, ``(n,)``."""
        inside = ((np.array(self.low) <= X) & (np.array(self.high) >= X)).all(1)
        return np.asarray(inside)

    def sample(self, n: int, random_state: Any = None, how: str = "sobol") -> Points:
        """n points spread over it, ``(n, d)``: "sobol" (scrambled), "lhs" or "uniform"."""
        if how not in SAMPLERS:
            raise ValueError(f"points are drawn by one of {', '.join(SAMPLERS)}, got {how!r}")
        unit = _unit(n, len(self.names), Key.of(random_state), how)
        return np.array(self.low) + unit * (np.array(self.high) - np.array(self.low))

    def side(self, name: str, at: float, n: int, random_state: Any = None) -> Points:
        """n points where one coordinate has this value."""
        i = self.index(name)
        if len(self.names) == 1:
            return np.full((1, 1), at)
        X = np.insert(_unit(n, len(self.names) - 1, Key.of(random_state), "sobol"), i, 0.0, axis=1)
        X = np.array(self.low) + X * (np.array(self.high) - np.array(self.low))
        X[:, i] = at
        return X

    def grid(self, shape: int | Sequence[int]) -> tuple[list[Points], Points]:
        """Axes and points ``(prod(shape), d)`` of a grid with both ends."""
        sizes = [shape] * len(self.names) if isinstance(shape, int) else list(shape)
        if len(sizes) != len(self.names) or min(sizes) < 1:
            raise ValueError(
                f"a grid of {', '.join(self.names)} needs one size for each, got {shape}"
            )
        axes = [np.linspace(a, b, k) for a, b, k in zip(self.low, self.high, sizes)]
        return axes, np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, len(axes))

    def index(self, name: str) -> int:
        if name not in self.names:
            raise ValueError(f"{name!r} is no coordinate; they are {', '.join(self.names)}")
        return self.names.index(name)


@dataclass(frozen=True)
class Mask:
    r"""The part of a box where a function of the coordinates is positive.

    Parameters
    ----------
    box : around it
    inside : text or function of the coordinates, positive inside, such as ``"1 - x**2 - y**2"``

    Examples
    --------
    >>> disc = Mask(Box(x=(-1, 1), y=(-1, 1)), "1 - x**2 - y**2")
    >>> disc.contains(np.array([[0.0, 0.0], [0.9, 0.9]])).tolist()
    [True, False]
    """

    box: Box
    inside: Law

    @property
    def names(self) -> tuple[str, ...]:
        return self.box.names

    @property
    def low(self) -> tuple[float, ...]:
        return self.box.low

    @property
    def high(self) -> tuple[float, ...]:
        return self.box.high

    def contains(self, X: Points) -> NDArray[np.bool_]:
        t = torch.as_tensor(X, dtype=torch.float64)
        value = law(self.inside)({c: t[:, i] for i, c in enumerate(self.names)})
        inside: NDArray[np.bool_] = (torch.as_tensor(value) > 0).numpy() & self.box.contains(X)
        return inside

    def sample(self, n: int, random_state: Any = None, how: str = "sobol") -> Points:
        key, size = Key.of(random_state), max(64, 2 * n)
        for _ in range(12):
            X = self.box.sample(size, key, how)
            X = X[self.contains(X)]
            if len(X) >= n:
                return X[:n]
            size *= 2
        raise DataError(
            f"fewer than {n} of {size // 2} points of the box are inside {self.inside!r}"
        )

    def side(self, name: str, at: float, n: int, random_state: Any = None) -> Points:
        X = self.box.side(name, at, 4 * n, random_state)
        return X[self.contains(X)][:n]

    def grid(self, shape: int | Sequence[int]) -> tuple[list[Points], Points]:
        return self.box.grid(shape)

    def index(self, name: str) -> int:
        return self.box.index(name)


Domain = Box | Mask


def _unit(n: int, d: int, key: Key, how: str) -> Points:
    if n < 1:
        raise ValueError(f"at least one point is needed, got {n}")
    if how == "uniform":
        return torch.rand(n, d, generator=key.torch(), dtype=torch.float64).numpy()
    seed = int(torch.randint(2**31 - 1, (), generator=key.torch()))
    if how == "lhs":
        from scipy.stats.qmc import LatinHypercube

        drawn: Points = LatinHypercube(d, rng=seed).random(n)
        return drawn
    engine = torch.quasirandom.SobolEngine(d, scramble=True, seed=seed)
    return np.asarray(engine.draw(n, dtype=torch.float64).numpy())
