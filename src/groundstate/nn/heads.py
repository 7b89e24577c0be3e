r"""The end of a network: raw outputs become a law of the outcome,
:math:`\ell(y) = -\log p(y \mid f_\theta(x))`.

================== =================== ============================ ==========================
name               outcome             raw numbers per coordinate   law
================== =================== ============================ ==========================
normal             real                μ, σ                         Normal
laplace            real                μ, b                         Laplace
student_t          real                μ, σ, ν − 2                  Student's t
lognormal          above 0             μ, σ of log y                log-normal
gamma              above 0             shape, rate                  Gamma
exponential        above 0             rate                         exponential
beta               in (0, 1)           a, b                         Beta
von_mises          angle in [−π, π]    μ, κ                         von Mises
bernoulli          0 or 1              logit                        Bernoulli
categorical        one of m labels     logit of each label          categorical
poisson            count               rate                         Poisson
negative_binomial  count               mean, number of failures     negative binomial
multivariate_normal real vector        μ, Cholesky factor           multivariate normal
plackett_luce      ranking of m items  score of each item           Plackett–Luce
================== =================== ============================ ==========================
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch import distributions as D
from torch.distributions import Distribution
from torch.nn import functional

from groundstate.errors import DataError, ShapeError, Unsupported
from groundstate.math import laws
from groundstate.math.plackett_luce import PlackettLuce
from groundstate.math.quantiles import interval, wrapped

Link = Literal["softplus", "exp"]
Positive = Callable[[Tensor], Tensor]
Kind = Literal["real", "positive", "unit", "angle", "binary", "labels", "count", "ranking"]

LINKS: dict[str, Positive] = {
    "softplus": lambda a: functional.softplus(a) + 1e-6,
    "exp": lambda a: a.clamp(-30.0, 30.0).exp(),  # e^±30: finite in float32, and so its square
}


@dataclass(frozen=True)
class Family:
    """How raw numbers become a law: of every coordinate alone, or of all m together."""

    kind: Kind
    outputs: Callable[[int], int]  # raw numbers for m coordinates
    law: Callable[[list[Tensor], Positive], Distribution]  # pieces (B, m) -> law of batch (B,)
    whole: bool = False  # the raw row (B, outputs) comes as one piece
    link: Link = "softplus"
    rows: Callable[[Tensor, Tensor], Tensor] | None = None  # raw, y -> loss: the same, faster


def _each(law: Any, *arguments: Tensor) -> Distribution:
    return D.Independent(law(*arguments, validate_args=False), 1, validate_args=False)


def _negative_binomial(p: list[Tensor], positive: Positive) -> Distribution:
    mean, failures = positive(p[0]), positive(p[1])
    logits = mean.log() - failures.log()
    return D.Independent(
        D.NegativeBinomial(failures, logits=logits, validate_args=False), 1, validate_args=False
    )


def _cholesky(p: list[Tensor], positive: Positive) -> Distribution:
    raw = p[0]  # (B, m + m(m+1)/2)
    m = round((math.sqrt(8 * raw.shape[-1] + 9) - 3) / 2)
    loc, scale, below = raw.split([m, m, m * (m - 1) // 2], -1)
    row, column = torch.tril_indices(m, m, -1, device=raw.device)
    L = torch.diag_embed(positive(scale))
    L = L.index_put((torch.arange(len(L), device=raw.device)[:, None], row, column), below)
    return D.MultivariateNormal(loc, scale_tril=L, validate_args=False)


def _times(n: int) -> Callable[[int], int]:
    return lambda m: n * m


FAMILIES: dict[str, Family] = {
    "normal": Family("real", _times(2), lambda p, f: _each(D.Normal, p[0], f(p[1]))),
    "laplace": Family("real", _times(2), lambda p, f: _each(D.Laplace, p[0], f(p[1]))),
    "student_t": Family(
        "real", _times(3), lambda p, f: _each(D.StudentT, 2 + f(p[2]), p[0], f(p[1]))
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
        rows=lambda raw, y: functional.binary_cross_entropy_with_logits(
            raw, y, reduction="none"
        ).sum(1),
    ),
    "categorical": Family(
        "labels",
        _times(1),
        lambda p, f: D.Categorical(logits=p[0], validate_args=False),
        whole=True,
        rows=lambda raw, y: functional.cross_entropy(raw, y, reduction="none"),
    ),
    "poisson": Family("count", _times(1), lambda p, f: _each(D.Poisson, f(p[0])), link="exp"),
    "negative_binomial": Family("count", _times(2), _negative_binomial, link="exp"),
    "multivariate_normal": Family("real", lambda m: m + m * (m + 1) // 2, _cholesky, whole=True),
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


class Head(nn.Module):
    r"""What every head offers: a loss per row, and predictions from raw outputs.

    Attributes
    ----------
    name : of the law or loss
    kind : support of the outcome
    m : number of coordinates of y, or of labels or items
    n_outputs : raw numbers a network must give per row
    is_likelihood : whether the loss is :math:`-\log p`, normalised over y
    """

    name: str
    kind: Kind
    m: int
    n_outputs: int
    is_likelihood: bool = True

    def dist(self, raw: Tensor) -> Distribution:
        """The law of y given raw outputs ``(B, n_outputs)``; batch shape ``(B,)``."""
        raise Unsupported(
            f"the loss {self.name!r} is no likelihood, so it predicts values but no distribution; "
            f"use one of {', '.join(FAMILIES)}"
        )

    def forward(self, raw: Tensor, y: Tensor) -> Tensor:
        """The loss of every row, ``(B,)``; ``check`` says beforehand whether y is in the support."""
        law = self.dist(raw)
        if not len(raw):  # torch's laws cannot add the coordinates of no rows
            return raw.sum(1)
        return -law.log_prob(self.target(y, raw))

    def target(self, y: Tensor, raw: Tensor) -> Tensor:
        """y in the dtype and shape of the law's values."""
        if self.kind in ("labels", "ranking"):
            return y.long() if y.is_floating_point() else y
        y = y.to(raw.dtype)
        return y[:, None] if y.ndim == 1 else y

    def check(self, y: Tensor) -> None:
        """Raise ``DataError`` at the first outcome that is NaN or outside the support."""
        check_support(y, self.kind, self.m, f"the head {self.name!r}")

    def raw(self, raw: Tensor) -> Tensor:
        """The outputs, if there are as many as the law needs."""
        if raw.ndim != 2 or raw.shape[1] != self.n_outputs:
            raise ShapeError(
                f"the head {self.name!r} with m={self.m} needs raw outputs (B, {self.n_outputs}), "
                f"got {tuple(raw.shape)}; let the last layer have {self.n_outputs} outputs"
            )
        return raw

    def mean(self, raw: Tensor) -> Tensor:
        """The mean of y, ``(B, m)``; of labels the probabilities; of angles the mean direction."""
        law = self.dist(raw)
        if self.kind == "labels":
            probs: Tensor = law.probs  # type: ignore[attr-defined]
            return probs
        if self.kind == "ranking":
            raise Unsupported("a ranking has no mean; use mode")
        return wrapped(law.mean) if self.kind == "angle" else law.mean

    def mode(self, raw: Tensor) -> Tensor:
        """The most probable y; ties go to the lowest value."""
        found = laws.mode(self.dist(raw))
        return wrapped(found) if self.kind == "angle" else found

    def predict(self, raw: Tensor) -> Tensor:
        """One value per row: the mode of binary values, labels and rankings, else the mean."""
        discrete = self.kind in ("binary", "labels", "ranking")
        return self.mode(raw) if discrete else self.mean(raw)

    def proba(self, raw: Tensor) -> Tensor:
        """Probabilities: of every label ``(B, K)``, or of a one ``(B, m)``."""
        if self.kind not in ("binary", "labels"):
            raise Unsupported(
                f"{self.name!r} is no law of labels, so there are no class probabilities; use "
                "predict_dist or predict_interval"
            )
        return self.mean(raw)

    def interval(self, raw: Tensor, level: float = 0.95) -> Tensor:
        """Lower and upper ends of the central interval of every coordinate, ``(2, B, m)``."""
        return interval(self.dist(raw), level)


class DistributionHead(Head):
    r"""Choose a law with the support of y; a network gives its parameters,
    :math:`\ell = -\log p(y \mid \text{raw})` with all constants.

    Values of different heads compare, because no constant is dropped. Coordinates are independent
    given x and add; ``multivariate_normal`` is one law of all of them.

    Parameters
    ----------
    dist : a name of the table above
    m : coordinates of y; labels or items for "categorical" and "plackett_luce"
    link : how raw numbers become positive: "softplus" is :math:`\log(1 + e^a) + 10^{-6}`, "exp"
        :math:`e^a`; None is the family's own, "exp" for rates and counts, else "softplus"
    covariance : of "multivariate_normal": "cholesky", or "diagonal" for independent coordinates

    Examples
    --------
    >>> head = DistributionHead("poisson")
    >>> head(torch.tensor([[0.5]]), torch.tensor([[3.0]]))
    tensor([1.9405])
    >>> head.mean(torch.tensor([[0.0]])), head.interval(torch.tensor([[2.0]]), 0.9).flatten()
    (tensor([[1.]]), tensor([ 3., 12.]))
    """

    def __init__(
        self,
        dist: str,
        m: int = 1,
        link: Link | None = None,
        covariance: Literal["cholesky", "diagonal"] = "cholesky",
    ) -> None:
        super().__init__()
        if dist not in FAMILIES:
            raise Unsupported(f"there is no head {dist!r}; use one of {', '.join(FAMILIES)}")
        if link is not None and link not in LINKS:
            raise ValueError(f"link must be one of {', '.join(LINKS)} or None, got {link!r}")
        if covariance not in ("cholesky", "diagonal"):
            raise ValueError(f"covariance must be 'cholesky' or 'diagonal', got {covariance!r}")
        self.name, self.m, self.covariance = dist, m, covariance
        self.kind = self.family.kind
        self.link: Link = link or self.family.link
        self.n_outputs = self.family.outputs(m)

    @property
    def family(self) -> Family:
        diagonal = self.name == "multivariate_normal" and self.covariance == "diagonal"
        return FAMILIES["normal" if diagonal else self.name]

    def config(self) -> dict[str, Any]:
        return {
            "dist": self.name, "m": self.m, "link": self.link, "covariance": self.covariance,
        }  # fmt: skip

    def extra_repr(self) -> str:
        return f"{self.name!r}, m={self.m}, link={self.link!r}"

    def dist(self, raw: Tensor) -> Distribution:
        raw = self.raw(raw)
        shape = (len(raw), self.n_outputs // self.m, self.m)
        pieces = [raw] if self.family.whole else list(raw.view(shape).unbind(1))
        return self.family.law(pieces, LINKS[self.link])

    def forward(self, raw: Tensor, y: Tensor) -> Tensor:
        if self.family.rows is not None:
            return self.family.rows(self.raw(raw), self.target(y, raw))
        return super().forward(raw, y)


__all__ = ["FAMILIES", "LINKS", "SUPPORTS", "DistributionHead", "Family", "Head", "check_support"]
