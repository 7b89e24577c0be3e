r"""The end of a network: raw outputs become a distribution of the outcome,
:math:`\ell(y) = -\log p(y \mid f_\theta(x))`.

================== =================== ============================ ==========================
name               outcome             raw numbers per coordinate   distribution
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

from typing import Any, Literal

from torch import Tensor, nn
from torch.distributions import Distribution

from groundstate.errors import ShapeError, Unsupported
from groundstate.math.distributions import operations as distributions
from groundstate.math.distributions.quantiles import interval, wrapped
from groundstate.nn.heads.families import (
    FAMILIES,
    LINKS,
    SUPPORTS,
    Family,
    Kind,
    Link,
    check_support,
)


class Head(nn.Module):
    r"""What every head offers: a loss per row, and predictions from raw outputs.

    Attributes
    ----------
    name : of the distribution or loss
    kind : support of the outcome
    m : number of coordinates of y, or of labels or items
    n_outputs : raw numbers a network must give per row
    is_likelihood : whether the loss is :math:`-\log p`, normalised over y
    has_dist : whether ``dist`` is the normalised distribution of y in terms of what a network gives
    """

    name: str
    kind: Kind
    m: int
    n_outputs: int
    is_likelihood: bool = True
    has_dist: bool = False

    def dist(self, raw: Tensor) -> Distribution:
        """The distribution of y given raw outputs ``(B, n_outputs)``; batch shape ``(B,)``."""
        raise Unsupported(
            f"the loss {self.name!r} is no likelihood, so it predicts values but no distribution; "
            f"use one of {', '.join(FAMILIES)}"
        )

    def forward(self, raw: Tensor, y: Tensor) -> Tensor:
        """The loss of every row, ``(B,)``; ``check`` says beforehand whether y is in the support."""
        distribution = self.dist(raw)
        if not len(raw):  # torch's distributions cannot add the coordinates of no rows
            return raw.sum(1)
        return -distribution.log_prob(self.target(y, raw))

    def target(self, y: Tensor, raw: Tensor) -> Tensor:
        """y in the dtype and shape of the distribution's values."""
        if self.kind in ("labels", "ranking"):
            return y.long() if y.is_floating_point() else y
        y = y.to(raw.dtype)
        return y[:, None] if y.ndim == 1 else y

    def check(self, y: Tensor) -> None:
        """Raise ``DataError`` at the first outcome that is NaN or outside the support."""
        check_support(y, self.kind, self.m, f"the head {self.name!r}")

    def raw(self, raw: Tensor) -> Tensor:
        """The outputs, if there are as many as the distribution needs."""
        if raw.ndim != 2 or raw.shape[1] != self.n_outputs:
            raise ShapeError(
                f"the head {self.name!r} with m={self.m} needs raw outputs (B, {self.n_outputs}), "
                f"got {tuple(raw.shape)}; let the last layer have {self.n_outputs} outputs"
            )
        return raw

    def mean(self, raw: Tensor) -> Tensor:
        """The mean of y, ``(B, m)``; of labels the probabilities; of angles the mean direction."""
        distribution = self.dist(raw)
        if self.kind == "labels":
            probs: Tensor = distribution.probs  # type: ignore[attr-defined]
            return probs
        if self.kind == "ranking":
            raise Unsupported("a ranking has no mean; use mode")
        return wrapped(distribution.mean) if self.kind == "angle" else distribution.mean

    def mode(self, raw: Tensor) -> Tensor:
        """The most probable y; ties go to the lowest value."""
        found = distributions.mode(self.dist(raw))
        return wrapped(found) if self.kind == "angle" else found

    def predict(self, raw: Tensor) -> Tensor:
        """One value per row: the mode of binary values, labels and rankings, else the mean."""
        discrete = self.kind in ("binary", "labels", "ranking")
        return self.mode(raw) if discrete else self.mean(raw)

    def proba(self, raw: Tensor) -> Tensor:
        """Probabilities: of every label ``(B, K)``, or of a one ``(B, m)``."""
        if self.kind not in ("binary", "labels"):
            raise Unsupported(
                f"{self.name!r} is no distribution of labels, so there are no class probabilities; use "
                "predict_dist or predict_interval"
            )
        return self.mean(raw)

    def interval(self, raw: Tensor, level: float = 0.95) -> Tensor:
        """Lower and upper ends of the central interval of every coordinate, ``(2, B, m)``."""
        return interval(self.dist(raw), level)


class DistributionHead(Head):
    r"""Choose a distribution with the support of y; a network gives its parameters,
    :math:`\ell = -\log p(y \mid \text{raw})` with all constants.

    Values of different heads compare, because no constant is dropped. Coordinates are independent
    given x and add; ``multivariate_normal`` is one distribution of all of them.

    Parameters
    ----------
    dist : a name of the table above
    m : coordinates of y; labels or items for "categorical" and "plackett_luce"
    link : how raw numbers become positive: "softplus" is :math:`\log(1 + e^a) + 10^{-6}`, "exp"
        :math:`e^a` with a cut at ±30; None is the family's own, "exp" for rates and counts, else "softplus"
    covariance : of "multivariate_normal": "cholesky", or "diagonal" for independent coordinates

    Examples
    --------
    >>> import torch
    >>> head = DistributionHead("poisson")
    >>> head(torch.tensor([[0.5]]), torch.tensor([[3.0]]))
    tensor([1.9405])
    >>> head.mean(torch.tensor([[0.0]])), head.interval(torch.tensor([[2.0]]), 0.9).flatten()
    (tensor([[1.]]), tensor([ 3., 12.]))
    """

    has_dist = True

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

    def _pieces(self, raw: Tensor) -> list[Tensor]:
        raw = self.raw(raw)
        shape = (len(raw), self.n_outputs // self.m, self.m)
        return [raw] if self.family.whole else list(raw.view(shape).unbind(1))

    def dist(self, raw: Tensor) -> Distribution:
        return self.family.distribution(self._pieces(raw), LINKS[self.link])

    def forward(self, raw: Tensor, y: Tensor) -> Tensor:
        if self.family.rows is not None:
            return self.family.rows(self._pieces(raw), LINKS[self.link], self.target(y, raw))
        return super().forward(raw, y)


__all__ = [
    "FAMILIES",
    "LINKS",
    "SUPPORTS",
    "DistributionHead",
    "Family",
    "Head",
    "Kind",
    "Link",
    "check_support",
]
