r"""Words weighed by how rare they are in the other classes, :math:`e(x, y) = -\sum_j x_jw_{yj}`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributions import Distribution
from torch.nn.functional import linear

from groundstate.energy.abilities import offers
from groundstate.energy.classes.naive_bayes.joint import LOWEST, JointClassEnergy
from groundstate.energy.classes.naive_bayes.missing import (
    observed_sums,
    shared,
    some_missing,
    spoilt,
    without_missing,
)
from groundstate.energy.registering import registered
from groundstate.energy.spaces import Count
from groundstate.errors import Unsupported


def _example() -> ComplementClassEnergy:
    energy = ComplementClassEnergy(3, 2)
    with torch.no_grad():
        energy.W.copy_(torch.tensor([[0.5, 1.0], [0.2, 0.4], [0.3, 0.9]]))
    return energy


@registered(r"e(x, y) = -\sum_j x_j w_{yj}", _example)
class ComplementClassEnergy(JointClassEnergy):
    r"""Counts against the words of all other classes, :math:`e(x, y) = -\sum_j x_jw_{yj}`, with
    :math:`w_{yj} = -\log p(\text{word } j \mid \text{not } y)`.

    Only differences between classes mean something: there is no distribution of x, and priors decide
    nothing. A missing count (NaN) adds nothing; in learning, the other rows of its class stand for it.

    Parameters
    ----------
    k : number of classes
    d : number of words
    alpha : counts added to every word when learning
    prior : ``(k,)`` probabilities that are kept, or None to learn them; they are only reported
    norm : whether the weights of a class sum to one

    Attributes
    ----------
    W : Parameter, ``(k, d)``

    Examples
    --------
    >>> e = ComplementClassEnergy(2, 2)
    >>> x, y = torch.tensor([[3.0, 0.0], [0.0, 1.0]]), torch.tensor([0, 1])
    >>> e.from_stats(e.stats(None, x=x, y=y))
    >>> (-e.W).exp().round(decimals=4).tolist()
    [[0.33329999446868896, 0.666700005531311], [0.800000011920929, 0.20000000298023224]]
    """

    normalised = frozenset()
    missing = frozenset({"x"})

    def __init__(
        self,
        k: int,
        d: int,
        alpha: float | Sequence[float] = 1.0,
        prior: Sequence[float] | Tensor | None = None,
        norm: bool = False,
    ) -> None:
        super().__init__(k, Count(d), prior)
        self.d, self.alpha, self.norm = d, alpha, norm
        self.logits.requires_grad_(False)
        self.W = nn.Parameter(torch.zeros(k, d))

    ancestral: Any = None  # there are no rows to draw, see `draw_x`

    def config(self) -> dict[str, Any]:
        own = {"k": self.k, "d": self.d, "alpha": self.alpha, "norm": self.norm}
        return {**own, **self.kept_prior()}

    def log_p(self) -> Tensor:
        """The weights of all words, ``(k, d)``."""
        return self.W

    def log_likelihood(self, x: Tensor) -> Tensor:
        found = linear(x, self.W)
        return linear(without_missing(x)[0], self.W) if spoilt(found) else found

    @offers.table("y")
    def energies(self, x: Tensor) -> Tensor:
        return -self.log_likelihood(x)

    def draw_x(self, y: Tensor, generator: torch.Generator) -> Tensor:
        raise Unsupported(
            "the complement of a class has no distribution of rows to draw from; use MultinomialNB"
        )

    def stats(
        self, weights: Tensor | None, x: Tensor, y: Tensor | Distribution
    ) -> dict[str, Tensor]:
        """Rows, observed entries and words per class."""
        return observed_sums(self, x, y, weights)

    @torch.no_grad()
    def from_stats(self, stats: dict[str, Tensor]) -> None:
        """Logarithms of the smoothed shares that words have outside of each class."""
        self._keep(stats)
        words = stats["x"]
        if some_missing(stats):  # as if all rows had been like the observed ones
            words = shared(words, stats["seen"]) * stats["n"][:, None]
        others = words.sum(0) - words + words.new_tensor(self.alpha)
        share = others / others.sum(1, keepdim=True).clamp_min(1e-300)
        weights = -share.log().clamp_min(LOWEST)
        self.W.copy_(weights / weights.sum(1, keepdim=True) if self.norm else weights)
