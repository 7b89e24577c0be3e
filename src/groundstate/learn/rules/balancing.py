r"""Weights of several losses, :math:`L = \sum_k \lambda_k L_k`, fixed or found while learning."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import torch
from torch import Tensor, nn

from groundstate.compute.foreign.torch import foreach_norm
from groundstate.errors import Unsupported

FAINT = 1e-5  # a gradient this much weaker than the others counts as this strong

Gradients = Callable[[], list[list[Tensor]]]  # per term, per shared parameter


class Balance(nn.Module):
    """Decides the weights of the terms of ``LossTerms``.

    Ways that compare a loss with its past ("gradnorm", "relative", "dwa") are meant for losses that
    are positive, such as squared errors and cross-entropies.

    Attributes
    ----------
    every : how many steps lie between calls of ``update``
    gradients : whether ``update`` needs the gradients of the single terms
    current : Tensor (K,), the weights
    """

    every = 1
    gradients = False
    current: Tensor

    def begin(self, names: Sequence[str]) -> None:
        """Learn the names of the terms; called once."""
        self.names = tuple(names)
        self.register_buffer("current", torch.ones(len(names)))

    def update(
        self, values: Tensor, gradients: Gradients, generator: torch.Generator | None
    ) -> None:
        """Change the weights, given the values ``(K,)`` of the terms, detached."""

    def end_epoch(self, means: Tensor) -> None:
        """Change the weights, given the epoch's mean values ``(K,)``."""

    def total(self, values: Tensor) -> Tensor:
        r"""The objective :math:`\sum_k \lambda_k L_k` of values ``(K,)`` with a graph."""
        return torch.dot(self.current.to(values), values)


class Fixed(Balance):
    r""":math:`\lambda_k` as given, 1 by default.

    Parameters
    ----------
    weights : dict, optional
        By the name of the term; those left out are 1.

    Attributes
    ----------
    factors : tuple of float, the weights in the order of the terms
    """

    factors: tuple[float, ...] = ()

    def __init__(self, weights: Mapping[str, float] | None = None) -> None:
        super().__init__()
        self.given = dict(weights or {})

    def begin(self, names: Sequence[str]) -> None:
        super().begin(names)
        unknown = [name for name in self.given if name not in names]
        if unknown:
            raise ValueError(
                f"weights names {', '.join(map(repr, unknown))}, but the terms are "
                f"{', '.join(names)}"
            )
        self.factors = tuple(float(self.given.get(name, 1.0)) for name in names)
        self.current.copy_(torch.tensor(self.factors))


class Uncertainty(Balance):
    r"""Learned scales, :math:`L = \sum_k \tfrac12 e^{-s_k} L_k + \tfrac12 s_k`.

    Every term is a squared error under noise of variance :math:`\sigma_k^2 = e^{s_k}`, which is
    learned with θ; at the optimum :math:`\sigma_k^2 = L_k` (Kendall, Gal and Cipolla, 2018).
    """

    def begin(self, names: Sequence[str]) -> None:
        super().begin(names)
        self.s = nn.Parameter(torch.zeros(len(names)))

    def update(
        self, values: Tensor, gradients: Gradients, generator: torch.Generator | None
    ) -> None:
        self.current.copy_(0.5 * torch.exp(-self.s.detach()))

    def total(self, values: Tensor) -> Tensor:
        s = self.s.to(values)
        return 0.5 * (torch.exp(-s) * values + s).sum()


class GradNorm(Balance):
    r"""Terms train at the same pace: descend :math:`\sum_k |G_k - \bar G\,r_k^\alpha|` in λ.

    :math:`G_k = \lambda_k\|\nabla L_k\|`, :math:`\bar G` its mean, and :math:`r_k` the share of its
    first value that a term still has, relative to the mean over terms. The weights sum to K (Chen
    et al., 2018).

    Parameters
    ----------
    alpha : float, default=1.5
        How strongly slow terms are helped.
    lr : float, default=0.025
        Rate of the weights.
    every : int, default=1
        Steps between updates; each costs one gradient per term.
    """

    gradients = True

    def __init__(self, alpha: float = 1.5, lr: float = 0.025, every: int = 1) -> None:
        super().__init__()
        self.alpha, self.lr, self.every = alpha, lr, _at_least_one(every)

    def begin(self, names: Sequence[str]) -> None:
        super().begin(names)
        self.register_buffer("first", torch.zeros(len(names)))

    first: Tensor

    def update(
        self, values: Tensor, gradients: Gradients, generator: torch.Generator | None
    ) -> None:
        values = values.to(self.current)
        self.first.copy_(torch.where(self.first == 0, values, self.first))
        norms = _norms(gradients()).to(self.current)  # (K,)
        tiny = torch.finfo(norms.dtype).tiny
        G = self.current * norms
        pace = (values / _away_from_zero(self.first)).clamp_min(0)
        goal = G.mean() * (pace / pace.mean().clamp_min(tiny)).pow(self.alpha)
        moved = self.current - self.lr * torch.sign(G - goal) * norms / norms.mean().clamp_min(tiny)
        moved = moved.clamp_min(1e-3)
        self.current.copy_(moved * (len(self.names) / moved.sum()))


class EqualNorms(Balance):
    r"""All weighted gradients have the same norm,
    :math:`\hat\lambda_k = \tfrac1K\sum_j\|\nabla L_j\| / \|\nabla L_k\|`, averaged over time.

    Parameters
    ----------
    decay : float, default=0.9
        :math:`\lambda \leftarrow d\lambda + (1-d)\hat\lambda`.
    every : int, default=10
        Steps between updates; each costs one gradient per term.
    """

    gradients = True

    def __init__(self, decay: float = 0.9, every: int = 10) -> None:
        super().__init__()
        self.decay, self.every = decay, _at_least_one(every)

    def update(
        self, values: Tensor, gradients: Gradients, generator: torch.Generator | None
    ) -> None:
        norms = _norms(gradients()).to(self.current)
        mean = norms.mean().clamp_min(torch.finfo(norms.dtype).tiny)
        wanted = mean / torch.maximum(norms, FAINT * mean)
        self.current.lerp_(wanted, 1 - self.decay)


class Annealing(Balance):
    r"""Every term pulls as strongly as the reference,
    :math:`\hat\lambda_k = \max|\nabla L_{\text{ref}}| / \operatorname{mean}|\nabla L_k|`.

    The rule for equations with boundary conditions, where the equation's gradients drown those of
    the conditions (Wang, Teng and Perdikaris, 2021). The reference keeps the weight 1.

    Parameters
    ----------
    reference : str, optional
        Name of the term; the first by default.
    decay : float, default=0.9
    every : int, default=10
    """

    gradients = True

    def __init__(self, reference: str | None = None, decay: float = 0.9, every: int = 10) -> None:
        super().__init__()
        self.reference, self.decay, self.every = reference, decay, _at_least_one(every)

    def begin(self, names: Sequence[str]) -> None:
        super().begin(names)
        if self.reference is not None and self.reference not in names:
            raise ValueError(
                f"reference={self.reference!r} is no term; the terms are {', '.join(names)}"
            )
        self._at = 0 if self.reference is None else list(names).index(self.reference)

    def update(
        self, values: Tensor, gradients: Gradients, generator: torch.Generator | None
    ) -> None:
        found = gradients()
        top = torch.stack([g.abs().max() for g in found[self._at]]).max()
        size = sum(g.numel() for g in found[0])
        means = torch.stack([torch.stack([g.abs().sum() for g in own]).sum() for own in found])
        top = top.clamp_min(torch.finfo(top.dtype).tiny)
        wanted = top / torch.maximum(means / size, FAINT * top)
        wanted[self._at] = 1.0
        self.current.lerp_(wanted.to(self.current), 1 - self.decay)


class Relative(Balance):
    r"""Terms that fell least weigh most, with random looks back (ReLoBRaLo).

    .. math:: b_k(t, t') = K\,\mathrm{softmax}_k\bigl(L_k(t)/(T L_k(t'))\bigr), \qquad
        \lambda(t) = \alpha\,[\rho\lambda(t-1) + (1-\rho) b(t, 0)] + (1-\alpha) b(t, t-1)

    with :math:`\rho` Bernoulli (Bischof and Kraus, 2021).

    Parameters
    ----------
    alpha : float, default=0.95
    rho : float, default=0.99
        Mean of the Bernoulli variable.
    T : float, default=1.0
    """

    def __init__(self, alpha: float = 0.95, rho: float = 0.99, T: float = 1.0) -> None:
        super().__init__()
        self.alpha, self.rho, self.T = alpha, rho, T

    first: Tensor
    last: Tensor

    def begin(self, names: Sequence[str]) -> None:
        super().begin(names)
        self.register_buffer("first", torch.zeros(len(names)))
        self.register_buffer("last", torch.zeros(len(names)))

    def update(
        self, values: Tensor, gradients: Gradients, generator: torch.Generator | None
    ) -> None:
        values = values.to(self.current)
        self.first.copy_(torch.where(self.first == 0, values, self.first))
        self.last.copy_(torch.where(self.last == 0, values, self.last))
        rho = torch.full((), self.rho, device=values.device)
        if generator is not None:
            rho = torch.bernoulli(rho, generator=generator)
        back = rho * self.current + (1 - rho) * self._against(values, self.first)
        new = self.alpha * back + (1 - self.alpha) * self._against(values, self.last)
        self.current.copy_(new)
        self.last.copy_(values)

    def _against(self, values: Tensor, earlier: Tensor) -> Tensor:
        ratio = values / _away_from_zero(earlier)
        return len(self.names) * torch.softmax(ratio / self.T, 0)


class DynamicAverage(Balance):
    r"""Terms that fell least in the last epoch weigh most,
    :math:`\lambda_k = K\,\mathrm{softmax}_k(r_k/T)` with :math:`r_k = L_k(t-1)/L_k(t-2)` over epochs
    (Liu, Johns and Davison, 2019).

    Parameters
    ----------
    T : float, default=2.0
    """

    def __init__(self, T: float = 2.0) -> None:
        super().__init__()
        self.T = T

    last: Tensor

    def begin(self, names: Sequence[str]) -> None:
        super().begin(names)
        self.register_buffer("last", torch.zeros(len(names)))

    def end_epoch(self, means: Tensor) -> None:
        means = means.to(self.current)
        ratio = torch.where(self.last != 0, means / _away_from_zero(self.last), 1.0)
        self.current.copy_(len(self.names) * torch.softmax(ratio / self.T, 0))
        self.last.copy_(means)


def _away_from_zero(value: Tensor) -> Tensor:
    return torch.where(value == 0, torch.finfo(value.dtype).eps, value)


def _norms(gradients: list[list[Tensor]]) -> Tensor:
    return torch.stack([torch.stack(foreach_norm(own)).norm() for own in gradients])


def _at_least_one(every: int) -> int:
    if every < 1:
        raise ValueError(f"every must be at least 1 step, got {every}")
    return every


BALANCES: dict[str, Callable[[], Balance]] = {
    "fixed": Fixed,
    "equal": Fixed,
    "uncertainty": Uncertainty,
    "gradnorm": GradNorm,
    "norms": EqualNorms,
    "annealing": Annealing,
    "relative": Relative,
    "dwa": DynamicAverage,
}


def balance(weights: Any) -> Balance:
    """A ``Balance`` from its name, from fixed numbers by term, or itself.

    Examples
    --------
    >>> type(balance("dwa")).__name__, type(balance({"data": 2.0})).__name__
    ('DynamicAverage', 'Fixed')
    """
    if isinstance(weights, Balance):
        return weights
    if isinstance(weights, Mapping):
        return Fixed(weights)
    if isinstance(weights, str) and weights in BALANCES:
        return BALANCES[weights]()
    close = get_close_matches(str(weights), BALANCES, 1)
    hint = f"did you mean {close[0]!r}?" if close else f"names are {', '.join(BALANCES)}"
    raise Unsupported(
        f"weights must be numbers by term, a Balance or a name, got {weights!r}; {hint}"
    )
