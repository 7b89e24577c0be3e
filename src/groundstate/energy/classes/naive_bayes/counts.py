r"""Naive Bayes over bits and counts: features that are independent given the class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributions import Distribution, Independent, Poisson
from torch.nn.functional import linear, softplus

from groundstate.energy.abilities import offers
from groundstate.energy.classes.naive_bayes.joint import LOWEST, JointClassEnergy
from groundstate.energy.classes.naive_bayes.missing import (
    observed_sums,
    seen_weight,
    shared,
    some_missing,
    spoilt,
    without_missing,
)
from groundstate.energy.registering import registered
from groundstate.energy.spaces import Binary, Count
from groundstate.errors import Unsupported


def _example(cls: Any) -> Any:
    energy = cls(3, 2, alpha=0.0)
    with torch.no_grad():
        energy.logits.copy_(torch.tensor([0.3, -0.2, 0.1]))
        energy.W.copy_(torch.tensor([[0.5, -1.0], [0.2, 0.4], [-0.3, 0.9]]))
    return energy


@registered(
    r"e(x, y) = -\log\pi_y - \sum_j [x_j\log p_{yj} + (1 - x_j)\log(1 - p_{yj})]",
    lambda: _example(BernoulliClassEnergy),
)
class BernoulliClassEnergy(JointClassEnergy):
    r"""Independent bits given the class,
    :math:`e(x, y) = -\log\pi_y - \sum_j [x_j\log p_{yj} + (1-x_j)\log(1-p_{yj})]`.

    With :math:`p = \sigma(W)` it is linear in x: :math:`-\log\pi_y - W_yx + \sum_j\log(1+e^{W_{yj}})`.
    The factor of a missing bit (NaN) is left out.

    Parameters
    ----------
    k : number of classes
    d : number of features
    alpha : counts added to both values of every bit when learning
    prior : ``(k,)`` probabilities that are kept, or None to learn them

    Attributes
    ----------
    W : Parameter, ``(k, d)``; log odds of a one

    Examples
    --------
    >>> e = BernoulliClassEnergy(2, 1)
    >>> x, y = torch.tensor([[1.0], [1.0], [0.0]]), torch.tensor([0, 0, 1])
    >>> e.from_stats(e.stats(None, x=x, y=y))
    >>> torch.sigmoid(e.W).flatten().round(decimals=4).tolist()
    [0.75, 0.33329999446868896]
    """

    missing = frozenset({"x"})

    def __init__(
        self,
        k: int,
        d: int,
        alpha: float | Sequence[float] = 1.0,
        prior: Sequence[float] | Tensor | None = None,
    ) -> None:
        super().__init__(k, Binary(d), prior)
        self.d, self.alpha = d, alpha
        self.W = nn.Parameter(torch.zeros(k, d))

    def config(self) -> dict[str, Any]:
        return {"k": self.k, "d": self.d, "alpha": self.alpha, **self.kept_prior()}

    def log_p(self) -> Tensor:
        """Log probability of a one, ``(k, d)``."""
        return -softplus(-self.W)

    def log_likelihood(self, x: Tensor) -> Tensor:
        no = softplus(self.W)  # −log(1 − p)
        found = linear(x, self.W, -no.sum(1))
        if not spoilt(found):
            return found
        filled, gone = without_missing(x)
        return linear(filled, self.W, -no.sum(1)) + linear(gone, no)

    def draw_x(self, y: Tensor, generator: torch.Generator) -> Tensor:
        p = torch.sigmoid(self.W.detach())[y]
        u = torch.rand(p.shape, generator=generator, device=generator.device, dtype=p.dtype)
        return (u.to(p.device) < p).to(p.dtype)

    @offers.stats
    def stats(
        self, weights: Tensor | None, x: Tensor, y: Tensor | Distribution
    ) -> dict[str, Tensor]:
        """Rows, observed entries and ones per class."""
        return observed_sums(self, x, y, weights)

    @offers.from_stats
    @torch.no_grad()
    def from_stats(self, stats: dict[str, Tensor]) -> None:
        """Smoothed log odds of every bit."""
        self._keep(stats)
        alpha = stats["x"].new_tensor(self.alpha)
        ones = stats["x"] + alpha
        zeros = (seen_weight(stats) - stats["x"]).clamp_min(0.0) + alpha
        odds = ones.log().clamp_min(LOWEST) - zeros.log().clamp_min(LOWEST)
        self.W.copy_(odds)


@registered(
    r"e(x, y) = -\log\pi_y + \lambda - \sum_j [x_j\log\lambda p_{yj} - \log x_j!]",
    lambda: _example(MultinomialClassEnergy),
)
class MultinomialClassEnergy(JointClassEnergy):
    r"""Counts of words drawn from the class,
    :math:`e(x, y) = -\log\pi_y + \lambda - \sum_j [x_j\log\lambda p_{yj} - \log x_j!]`.

    The number of words is Poisson with mean λ, the same for all classes, and each word is drawn from
    :math:`p_y = \mathrm{softmax}(W_y)`. Classes differ by :math:`\log\pi_y + \sum_j x_j\log p_{yj}`
    alone (``word_scores``). Fractional counts such as tf-idf are accepted. The Poisson factor of a
    missing count (NaN) is left out; in learning, counts stand for the rows that miss them.

    Parameters
    ----------
    k : number of classes
    d : number of words
    alpha : counts added to every word when learning
    prior : ``(k,)`` probabilities that are kept, or None to learn them

    Attributes
    ----------
    W : Parameter, ``(k, d)``; unnormalised log probabilities
    length : buffer, ``(1,)``; λ, the mean number of words

    Examples
    --------
    >>> e = MultinomialClassEnergy(1, 2)
    >>> e.from_stats(e.stats(None, x=torch.tensor([[1.0, 3.0]]), y=torch.tensor([0])))
    >>> e.log_p().exp().round(decimals=4).tolist()
    [[0.33329999446868896, 0.666700005531311]]
    """

    missing = frozenset({"x"})
    length: Tensor

    def __init__(
        self,
        k: int,
        d: int,
        alpha: float | Sequence[float] = 1.0,
        prior: Sequence[float] | Tensor | None = None,
    ) -> None:
        super().__init__(k, Count(d), prior)
        self.d, self.alpha = d, alpha
        self.W = nn.Parameter(torch.zeros(k, d))
        self.register_buffer("length", torch.ones(1))

    def config(self) -> dict[str, Any]:
        return {"k": self.k, "d": self.d, "alpha": self.alpha, **self.kept_prior()}

    def log_p(self) -> Tensor:
        """Log probability of every word in every class, ``(k, d)``."""
        return torch.log_softmax(self.W, 1)

    def word_scores(self, x: Tensor) -> Tensor:
        r""":math:`\log\pi_y + \sum_j x_j\log p_{yj}`: the words in their order, ``(B, k)``.

        Without the missing words the mean number of words is smaller: :math:`\lambda p_{yj}` each.
        """
        log_p = self.log_p()
        found = linear(x, log_p, self.log_prior)
        if not spoilt(found):
            return found
        filled, gone = without_missing(x)
        return linear(filled, log_p, self.log_prior) + self.length * linear(gone, log_p.exp())

    def log_likelihood(self, x: Tensor) -> Tensor:
        found = self._log_counts(x)
        if not spoilt(found):
            return found
        filled, gone = without_missing(x)
        return self._log_counts(filled) + self.length * linear(gone, self.log_p().exp())

    def _log_counts(self, x: Tensor) -> Tensor:
        per_word = self.length.clamp_min(1e-30).log()
        if x.layout == torch.sparse_csr:
            v = x.values()
            each = torch.sparse_csr_tensor(
                x.crow_indices(), x.col_indices(), v * per_word - torch.lgamma(v + 1), x.shape
            )
            common = each @ v.new_ones(x.shape[1], 1)  # (B, 1)
        else:
            common = (x * per_word - torch.lgamma(x + 1)).sum(1, keepdim=True)
        return linear(x, self.log_p()) + common - self.length

    @offers.conditional("x")
    def counts(self, y: Tensor, T: float = 1.0) -> Distribution:
        """Independent Poisson counts with means λp_y, at T = 1."""
        if T != 1:
            raise Unsupported(f"the distribution of counts is known at T=1, got T={T}")
        rate = (self.length * self.log_p().exp())[y]
        return Independent(Poisson(rate, validate_args=False), 1, validate_args=False)

    def draw_x(self, y: Tensor, generator: torch.Generator) -> Tensor:
        rate = (self.length * self.log_p().exp()).detach()[y]
        return torch.poisson(rate.to(generator.device), generator=generator).to(rate.device)

    @offers.stats
    def stats(
        self, weights: Tensor | None, x: Tensor, y: Tensor | Distribution
    ) -> dict[str, Tensor]:
        """Rows, observed entries and words per class."""
        return observed_sums(self, x, y, weights)

    @offers.from_stats
    @torch.no_grad()
    def from_stats(self, stats: dict[str, Tensor]) -> None:
        """Smoothed shares of every word."""
        self._keep(stats)
        words, alpha = stats["x"], stats["x"].new_tensor(self.alpha)
        if some_missing(stats):  # as if all rows had been like the observed ones
            seen = stats["seen"]
            words = shared(words, seen) * stats["n"][:, None]
            alpha = alpha * (seen.sum(0) > 0)  # a word that nobody observed is no word
        self.length.fill_(float(words.sum() / stats["n"].sum().clamp_min(1e-300)))
        counts = words + alpha
        share = counts / counts.sum(1, keepdim=True).clamp_min(1e-300)
        self.W.copy_(share.log().clamp_min(LOWEST))
