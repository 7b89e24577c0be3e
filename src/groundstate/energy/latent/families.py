r"""Components of mixtures: log densities of k distributions, and θ from weighted sums.

A family offers ``log_prob(x)`` ``(B, k)``, ``stats(x, r)``, sums weighted by responsibilities that add
over chunks and shards, ``update(sums)``, ``draw(z, generator)`` and ``check(x)``.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from groundstate.errors import DataError

TINY = 1e-10


class Family(nn.Module):
    """Base of the families; ``alpha`` counts are added to every probability.

    Parameters
    ----------
    k : number of components
    d : number of columns
    alpha : counts added to every probability
    """

    name = ""
    wants = "real numbers"

    def __init__(self, k: int, d: int, alpha: float = 1e-3) -> None:
        super().__init__()
        self.k, self.d, self.alpha = k, d, float(alpha)

    def bad(self, x: Tensor) -> Tensor:
        """Where values are outside the domain, ``(B, d)``."""
        return torch.zeros_like(x, dtype=torch.bool)

    def check(self, x: Tensor, first: int = 0) -> None:
        """Raise for values outside the domain; the column is named."""
        wrong = self.bad(x)
        if bool(wrong.any()):
            row, column = wrong.nonzero()[0].tolist()
            raise DataError(
                f"column {first + column} has {float(x[row, column]):g} in row {row}; "
                f"{self.name} components take {self.wants}"
            )

    def begin(self, x: Tensor) -> None:
        """Look at the rows once before learning, such as for the number of categories."""

    def log_prob(self, x: Tensor) -> Tensor:
        raise TypeError(f"{type(self).__name__} must define log_prob(x)")

    def stats(self, x: Tensor, r: Tensor) -> dict[str, Tensor]:
        return {"n": r.sum(0), "x": r.T @ x}

    def update(self, sums: dict[str, Tensor]) -> None:
        raise TypeError(f"{type(self).__name__} must define update(sums)")

    def draw(self, z: Tensor, generator: torch.Generator) -> Tensor:
        raise TypeError(f"{type(self).__name__} cannot be drawn from")

    def count(self) -> int:
        """Free parameters."""
        return sum(p.numel() for p in self.parameters())


class Bernoulli(Family):
    r""":math:`p(x\mid z) = \prod_j p_{zj}^{x_j}(1-p_{zj})^{1-x_j}`."""

    name, wants = "bernoulli", "0 and 1"

    def __init__(self, k: int, d: int, alpha: float = 1e-3) -> None:
        super().__init__(k, d, alpha)
        self.p = nn.Parameter(torch.full((k, d), 0.5))

    def bad(self, x: Tensor) -> Tensor:
        return (x != 0) & (x != 1)

    def log_prob(self, x: Tensor) -> Tensor:
        p = self.p.clamp(TINY, 1 - TINY)
        return x @ (p / (1 - p)).log().T + (1 - p).log().sum(1)

    def update(self, sums: dict[str, Tensor]) -> None:
        n = sums["n"][:, None] + 2 * self.alpha
        self.p.copy_((sums["x"] + self.alpha) / n.clamp_min(1e-300))

    def draw(self, z: Tensor, generator: torch.Generator) -> Tensor:
        return torch.bernoulli(self.p.detach()[z], generator=generator)


class Categorical(Family):
    """Each column is one of some categories, numbered from zero."""

    name, wants = "categorical", "whole numbers from 0"

    def __init__(self, k: int, d: int, alpha: float = 1e-3, levels: int = 2) -> None:
        super().__init__(k, d, alpha)
        self.p = nn.Parameter(torch.full((k, d, levels), 1.0 / levels))

    def bad(self, x: Tensor) -> Tensor:
        return (x < 0) | (x != x.round())

    def begin(self, x: Tensor) -> None:
        levels = max(2, int(x.max()) + 1)
        self.p = nn.Parameter(self.p.new_full((self.k, self.d, levels), 1.0 / levels))

    def _hot(self, x: Tensor) -> Tensor:
        levels = self.p.shape[2]
        hot = x.long().clamp(0, levels - 1)[:, :, None] == torch.arange(levels, device=x.device)
        return hot.to(x.dtype)

    def log_prob(self, x: Tensor) -> Tensor:
        logs = self.p.clamp_min(TINY).log()
        unseen = (x >= self.p.shape[2]).any(1, keepdim=True)
        found = torch.einsum("bjl,kjl->bk", self._hot(x), logs)
        return torch.where(unseen, found + math.log(TINY), found)

    def stats(self, x: Tensor, r: Tensor) -> dict[str, Tensor]:
        return {"n": r.sum(0), "x": torch.einsum("bk,bjl->kjl", r, self._hot(x))}

    def update(self, sums: dict[str, Tensor]) -> None:
        raised = sums["x"] + self.alpha
        self.p.copy_(raised / raised.sum(-1, keepdim=True).clamp_min(1e-300))

    def draw(self, z: Tensor, generator: torch.Generator) -> Tensor:
        p = self.p.detach()[z].flatten(0, 1)
        return torch.multinomial(p, 1, generator=generator).reshape(len(z), self.d).to(p.dtype)

    def count(self) -> int:
        return self.k * self.d * (self.p.shape[2] - 1)


class Multinomial(Family):
    """Counts of categories; how many there are in a row is given."""

    name, wants = "multinomial", "counts from 0"

    def __init__(self, k: int, d: int, alpha: float = 1e-3) -> None:
        super().__init__(k, d, alpha)
        self.p = nn.Parameter(torch.full((k, d), 1.0 / d))
        self.register_buffer("trials", torch.ones(()))

    trials: Tensor

    def bad(self, x: Tensor) -> Tensor:
        return (x < 0) | (x != x.round())

    def begin(self, x: Tensor) -> None:
        self.trials.copy_(x.sum(1).mean().round())

    def log_prob(self, x: Tensor) -> Tensor:
        constant = torch.lgamma(x.sum(1) + 1) - torch.lgamma(x + 1).sum(1)
        return x @ self.p.clamp_min(TINY).log().T + constant[:, None]

    def update(self, sums: dict[str, Tensor]) -> None:
        raised = sums["x"] + self.alpha
        self.p.copy_(raised / raised.sum(-1, keepdim=True).clamp_min(1e-300))

    def draw(self, z: Tensor, generator: torch.Generator) -> Tensor:
        p = self.p.detach()[z]
        at = torch.multinomial(p, int(self.trials), replacement=True, generator=generator)
        return torch.zeros_like(p).scatter_add_(1, at, torch.ones_like(at, dtype=p.dtype))

    def count(self) -> int:
        return self.k * (self.d - 1)


class PoissonComponents(Family):
    r"""Counts with a mean each, :math:`p(x\mid z) = \prod_j\lambda_{zj}^{x_j}e^{-\lambda_{zj}}/x_j!`."""

    name, wants = "poisson", "counts from 0"

    def __init__(self, k: int, d: int, alpha: float = 1e-3) -> None:
        super().__init__(k, d, alpha)
        self.rate = nn.Parameter(torch.ones(k, d))

    def bad(self, x: Tensor) -> Tensor:
        return (x < 0) | (x != x.round())

    def log_prob(self, x: Tensor) -> Tensor:
        rate = self.rate.clamp_min(TINY)
        return x @ rate.log().T - rate.sum(1) - torch.lgamma(x + 1).sum(1)[:, None]

    def update(self, sums: dict[str, Tensor]) -> None:
        self.rate.copy_(sums["x"] / sums["n"].clamp_min(1e-300)[:, None])

    def draw(self, z: Tensor, generator: torch.Generator) -> Tensor:
        return torch.poisson(self.rate.detach()[z], generator=generator)


class ExponentialComponents(Family):
    r"""Waiting times with a rate each, :math:`p(x\mid z) = \prod_j\lambda_{zj}e^{-\lambda_{zj}x_j}`."""

    name, wants = "exponential", "numbers of at least 0"

    def __init__(self, k: int, d: int, alpha: float = 1e-3) -> None:
        super().__init__(k, d, alpha)
        self.rate = nn.Parameter(torch.ones(k, d))

    def bad(self, x: Tensor) -> Tensor:
        return x < 0

    def log_prob(self, x: Tensor) -> Tensor:
        rate = self.rate.clamp_min(TINY)
        return rate.log().sum(1) - x @ rate.T

    def update(self, sums: dict[str, Tensor]) -> None:
        self.rate.copy_(sums["n"][:, None] / sums["x"].clamp_min(TINY))

    def draw(self, z: Tensor, generator: torch.Generator) -> Tensor:
        rate = self.rate.detach()[z]
        kind = {"dtype": rate.dtype, "device": rate.device}
        uniform = torch.rand(rate.shape, generator=generator, **kind)  # type: ignore[call-overload]
        return -torch.log1p(-uniform) / rate


class Gaussian(Family):
    """Columns independent, each with a mean and a variance."""

    name = "gaussian"

    def __init__(self, k: int, d: int, alpha: float = 1e-3, reg: float = 1e-6) -> None:
        super().__init__(k, d, alpha)
        self.reg = reg
        self.mean = nn.Parameter(torch.zeros(k, d))
        self.variance = nn.Parameter(torch.ones(k, d))

    def log_prob(self, x: Tensor) -> Tensor:
        scaled = (x[:, None] - self.mean).square() / self.variance
        constant = self.variance.log().sum(1) + self.d * math.log(2 * math.pi)
        return -0.5 * (scaled.sum(-1) + constant)

    def stats(self, x: Tensor, r: Tensor) -> dict[str, Tensor]:
        diff = x[:, None] - self.mean.detach()  # about the means of now: nothing cancels
        first = torch.einsum("bk,bkj->kj", r, diff)
        return {"n": r.sum(0), "x": first, "xx": torch.einsum("bk,bkj->kj", r, diff.square())}

    def update(self, sums: dict[str, Tensor]) -> None:
        n = sums["n"].clamp_min(1e-300)[:, None]
        step = sums["x"] / n
        self.mean.add_(step)
        self.variance.copy_((sums["xx"] / n - step.square()).clamp_min(0) + self.reg)

    def draw(self, z: Tensor, generator: torch.Generator) -> Tensor:
        mean, scale = self.mean.detach()[z], self.variance.detach()[z].sqrt()
        noise = torch.randn(mean.shape, generator=generator, dtype=mean.dtype, device=mean.device)
        return mean + scale * noise


def settings_of(family: Family) -> dict[str, Any]:
    """What makes a family of the same shape again."""
    more = {"levels": family.p.shape[2]} if isinstance(family, Categorical) else {}
    return {"alpha": family.alpha, **more}
