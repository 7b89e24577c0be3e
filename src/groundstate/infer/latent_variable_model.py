r"""A hidden cause and what it makes: :math:`p(x) = \int p(z)\,p(x \mid z)\,dz`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.distributions import Distribution

from groundstate.compute.random import Key, RandomState
from groundstate.energy.basic.directed import DirectedEnergy
from groundstate.energy.spaces import Finite
from groundstate.infer.base import Draws, FreeEnergy, Method
from groundstate.infer.dispatch import marginalise, sample
from groundstate.infer.exact.quadrature import MAX_DIM, Quadrature
from groundstate.infer.sampling.importance import Importance


class LatentVariableModel:
    r"""The model :math:`p(x) = \int p(z)\,p(x \mid z)\,dz` of any prior and likelihood.

    A discrete z is summed, a conjugate one integrated in closed form, a real one of at most three
    numbers by Gauss-Hermite nodes, any other by importance sampling; ``log_prob_kind`` says which. A
    likelihood :math:`N(f(z), \sigma^2I)` with a network f is a mixture of infinitely many normal
    distributions.

    Parameters
    ----------
    prior : distribution of z, one event
    likelihood : maps values of z ``(B, ...)`` to a distribution of x with batch shape ``(B,)``

    Attributes
    ----------
    energy : ``DirectedEnergy``, :math:`-\log p(z) - \log p(x \mid z)`

    Examples
    --------
    >>> from torch.distributions import Categorical
    >>> rows = torch.tensor([[0.10, 0.90], [0.40, 0.60], [0.05, 0.95]])
    >>> model = LatentVariableModel(
    ...     Categorical(torch.tensor([0.5, 0.3, 0.2])), lambda z: Categorical(rows[z]))
    >>> round(model.log_prob(torch.tensor([0])).item(), 6)
    -1.714798
    >>> model.posterior(torch.tensor([0])).probs.round(decimals=4)
    tensor([[0.2778, 0.6667, 0.0556]])
    """

    def __init__(self, prior: Distribution, likelihood: Callable[[Tensor], Distribution]) -> None:
        self.energy = DirectedEnergy(prior, likelihood)

    @property
    def log_prob_kind(self) -> str:
        """ "exact" for sums and closed forms, "estimate" for nodes and draws."""
        closed = self.energy.ability("conditional", "z") is not None
        return "exact" if closed or isinstance(self.energy.spaces["z"], Finite) else "estimate"

    def sample(self, n: int = 1, random_state: RandomState = None) -> tuple[Tensor, Tensor]:
        """Ancestral draws :math:`z^* \\sim p(z)`, :math:`x^* \\sim p(x \\mid z^*)`: x and z."""
        if n < 1:
            raise ValueError(f"n must be at least 1, got {n}")
        drawn = self.energy.ancestral(n, generator=Key.of(random_state).torch())
        return drawn["x"], drawn["z"]

    def log_prob(
        self, x: Tensor, method: Method | None = None, random_state: RandomState = None
    ) -> Tensor:
        """:math:`\\log p(x)`, ``(B,)``, differentiable in what prior and likelihood hold."""
        return -self.free_energy(x, method, random_state).value

    def free_energy(
        self, x: Tensor, method: Method | None = None, random_state: RandomState = None
    ) -> FreeEnergy:
        """:math:`-\\log p(x)` with its kind and standard error.

        Parameters
        ----------
        x : rows ``(B, ...)``
        method : of ``groundstate.infer``; None takes the best that fits
        random_state : seed of methods that draw
        """
        method = self._method() if method is None else method
        generator = Key.of(random_state).torch(x.device)
        return marginalise(self.energy, "z", {"x": x}, method=method, generator=generator)

    def _method(self) -> Method | None:
        """Nodes or draws where z is neither summed nor integrated in closed form."""
        if self.log_prob_kind == "exact":
            return None
        few = torch.Size(self.energy.spaces["z"].shape).numel() <= MAX_DIM
        return Quadrature() if few else Importance()

    def posterior(self, x: Tensor) -> Distribution:
        """:math:`p(z \\mid x)` where it is in closed form; use ``draw_posterior`` elsewhere."""
        known = self.energy.ability("conditional", "z")
        if known is None:
            raise ValueError(
                "p(z | x) has no closed form for this pair of prior and likelihood; draw from it with "
                "draw_posterior(x, n)"
            )
        found: Distribution = known(x=x)
        return found

    def draw_posterior(
        self, x: Tensor, n: int = 1, random_state: RandomState = None, **settings: Any
    ) -> Draws:
        """Draws of z given x, ``(n, B, ...)``, by what ``groundstate.infer.sample`` finds best."""
        generator = Key.of(random_state).torch(x.device)
        return sample(self.energy, "z", {"x": x}, n, generator=generator, **settings)
