r"""Distributions of an outcome and how raw numbers become them; which values each of them allows."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor
from torch import distributions as D
from torch.distributions import Distribution
from torch.nn import functional

from groundstate.errors import DataError
from groundstate.math.distributions.plackett_luce import PlackettLuce

Link = Literal["softplus", "exp"]
Positive = Callable[[Tensor], Tensor]
Kind = Literal["real", "positive", "unit", "angle", "binary", "labels", "count", "ranking"]

LINKS: dict[str, Positive] = {
    "softplus": lambda a: functional.softplus(a) + 1e-6,
    "exp": lambda a: a.clamp(-30.0, 30.0).exp(),  # e^±30: finite in float32, and so its square
}


@dataclass(frozen=True)
class Family:
    """How raw numbers become a distribution: of every coordinate alone, or of all m together."""

    kind: Kind
    outputs: Callable[[int], int]  # raw numbers for m coordinates
    distribution: Callable[
        [list[Tensor], Positive], Distribution
    ]  # pieces (B, m) -> distribution of batch (B,)
    whole: bool = False  # the raw row (B, outputs) comes as one piece
    link: Link = "softplus"
    # pieces, link, y -> −log p of the rows: the same as ``distribution``, faster
    rows: Callable[[list[Tensor], Positive, Tensor], Tensor] | None = None


def _each(distribution: Any, *arguments: Tensor) -> Distribution:
    return D.Independent(distribution(*arguments, validate_args=False), 1, validate_args=False)


def _negative_binomial(p: list[Tensor], positive: Positive) -> Distribution:
    mean, failures = positive(p[0]), positive(p[1])
    logits = mean.log() - failures.log()
    return D.Independent(
        D.NegativeBinomial(failures, logits=logits, validate_args=False), 1, validate_args=False
    )


def _student_rows(p: list[Tensor], positive: Positive, y: Tensor) -> Tensor:
    nu, sigma = 2 + positive(p[2]), positive(p[1])
    tail = 0.5 * (nu + 1) * torch.log1p(((y - p[0]) / sigma).square() / nu)
    constant = torch.lgamma(0.5 * nu) - torch.lgamma(0.5 * (nu + 1)) + 0.5 * (math.pi * nu).log()
    return (tail + constant + sigma.log()).sum(1)


def _factor(raw: Tensor, positive: Positive) -> tuple[Tensor, Tensor]:
    """Mean ``(B, m)`` and Cholesky factor ``(B, m, m)`` from ``(B, m + m(m+1)/2)``."""
    m = round((math.sqrt(8 * raw.shape[-1] + 9) - 3) / 2)
    loc, scale, below = raw.split([m, m, m * (m - 1) // 2], -1)
    row, column = torch.tril_indices(m, m, -1, device=raw.device)
    L = torch.diag_embed(positive(scale))
    L = L.index_put((torch.arange(len(L), device=raw.device)[:, None], row, column), below)
    return loc, L


def _cholesky(p: list[Tensor], positive: Positive) -> Distribution:
    loc, L = _factor(p[0], positive)
    return D.MultivariateNormal(loc, scale_tril=L, validate_args=False)


def _cholesky_rows(p: list[Tensor], positive: Positive, y: Tensor) -> Tensor:
    loc, L = _factor(p[0], positive)
    z = torch.linalg.solve_triangular(L, (y - loc).unsqueeze(-1), upper=False).squeeze(-1)
    volume = L.diagonal(dim1=-2, dim2=-1).log().sum(-1)
    return 0.5 * z.square().sum(-1) + volume + 0.5 * loc.shape[-1] * math.log(2 * math.pi)


def _times(n: int) -> Callable[[int], int]:
    return lambda m: n * m


FAMILIES: dict[str, Family] = {
    "normal": Family("real", _times(2), lambda p, f: _each(D.Normal, p[0], f(p[1]))),
    "laplace": Family("real", _times(2), lambda p, f: _each(D.Laplace, p[0], f(p[1]))),
    "student_t": Family(
        "real",
        _times(3),
        lambda p, f: _each(D.StudentT, 2 + f(p[2]), p[0], f(p[1])),
        rows=_student_rows,
    ),
    "lognormal": Family("positive", _times(2), lambda p, f: _each(D.LogNormal, p[0], f(p[1]))),
    "gamma": Family(
        "positive", _times(2), lambda p, f: _each(D.Gamma, f(p[0]), f(p[1])), link="exp"
    ),
    "exponential": Family(
        "positive", _times(1), lambda p, f: _each(D.Exponential, f(p[0])), link="exp"
    ),
    "beta": Family("unit", _times(2), lambda p, f: _each(D.Beta, f(p[0]), f(p[1]))),
    "von_mises": Family("angle", _times(2), lambda p, f: _each(D.VonMises, p[0], f(p[1]))),
    "bernoulli": Family(
        "binary",
        _times(1),
        lambda p, f: D.Independent(D.Bernoulli(logits=p[0], validate_args=False), 1, False),
        rows=lambda p, f, y: functional.binary_cross_entropy_with_logits(
            p[0], y, reduction="none"
        ).sum(1),
    ),
    "categorical": Family(
        "labels",
        _times(1),
        lambda p, f: D.Categorical(logits=p[0], validate_args=False),
        whole=True,
        rows=lambda p, f, y: functional.cross_entropy(p[0], y, reduction="none"),
    ),
    "poisson": Family("count", _times(1), lambda p, f: _each(D.Poisson, f(p[0])), link="exp"),
    "negative_binomial": Family("count", _times(2), _negative_binomial, link="exp"),
    "multivariate_normal": Family(
        "real", lambda m: m + m * (m + 1) // 2, _cholesky, whole=True, rows=_cholesky_rows
    ),
    "plackett_luce": Family("ranking", _times(1), lambda p, f: PlackettLuce(p[0]), whole=True),
}

SUPPORTS: dict[Kind, tuple[str, Callable[[Tensor, int], Tensor]]] = {
    "real": ("a finite number", lambda y, m: torch.isfinite(y)),
    "positive": ("a number above 0", lambda y, m: torch.isfinite(y) & (y > 0)),
    "unit": ("a number between 0 and 1, both excluded", lambda y, m: (y > 0) & (y < 1)),
    "angle": ("an angle in [-pi, pi]", lambda y, m: y.abs() <= math.pi * (1 + 1e-6)),
    "binary": ("0 or 1", lambda y, m: (y == 0) | (y == 1)),
    "count": ("a count 0, 1, 2, ...", lambda y, m: torch.isfinite(y) & (y >= 0) & (y == y.round())),
    "labels": ("a label 0 to {k}", lambda y, m: (y >= 0) & (y < m) & (y == y.round())),
    "ranking": ("items 0 to {k}, each once", lambda y, m: (y.sort(-1).values
        == torch.arange(m, device=y.device)).all(-1)),
}  # fmt: skip


def check_support(y: Tensor, kind: Kind, m: int, name: str) -> None:
    """Raise ``DataError`` with the first row of ``y`` that is NaN or outside the support."""
    says, inside = SUPPORTS[kind]
    good = inside(y, m)
    if not bool(good.all()):
        at = (~good).nonzero()[0].tolist()
        raise DataError(
            f"y[{', '.join(map(str, at))}] is {y[tuple(at)].tolist()}, but {name} needs "
            f"{says.format(k=m - 1)}; fix the target or choose a head for its support"
        )
