r"""Sequences of real numbers by the chain rule,
:math:`e(x) = -\sum_i\log\sum_z\pi_z(h_i)\,N(x_{\pi(i)};\mu_z(h_i),\sigma_z^2(h_i))`.
"""

from __future__ import annotations

from collections.abc import Sequence as Seq
from typing import Any

import torch
from torch import Tensor
from torch import distributions as D
from torch.distributions import Distribution

from groundstate.energy.base import Energy
from groundstate.energy.registering import registered
from groundstate.energy.sequences.autoregressive import Autoregressive, permutation
from groundstate.energy.spaces import Real
from groundstate.errors import Unsupported
from groundstate.math.distributions.operations import draw, fresh
from groundstate.nn.heads.mixture import MixtureHead
from groundstate.nn.recurrent.recurrent import Recurrent


@registered(
    r"e(x) = -\sum_i \log p(x_i \mid x_{<i}),\ x_i \in \mathbb{R}",
    lambda: RealChainRuleEnergy(4, 2, hidden=6),
)
class RealChainRuleEnergy(Autoregressive, Energy):
    r"""Real numbers one after the other, each from a mixture of normals,
    :math:`e(x) = -\sum_i\log\sum_z\pi_z(h_i)\,N(x_{\pi(i)};\mu_z(h_i),\sigma_z^2(h_i))` with
    :math:`h_i = \mathrm{GRU}(h_{i-1}, x_{\pi(i-1)})`.

    One network answers all positions, so that the number of parameters does not depend on the
    length. Log-densities are exact, draws independent; any order π of the factors is valid.

    Parameters
    ----------
    length : numbers of a row
    components : of the mixture; 1 is a normal head, more a mixture density
    hidden : size of the state of the recurrent network
    order : the permutation π; by default 0, 1, 2, ...
    generator : source of the initial weights

    Examples
    --------
    >>> e = RealChainRuleEnergy(3)
    >>> e.sample(5).shape, e.log_prob(torch.zeros(2, 3)).shape
    (torch.Size([5, 3]), torch.Size([2]))
    >>> e.conditional(torch.zeros(2, 1)).mean.shape
    torch.Size([2])
    """

    normalised = frozenset({"x"})
    variable = "x"

    def __init__(
        self,
        length: int,
        components: int = 1,
        hidden: int = 16,
        order: Seq[int] | None = None,
        *,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(x=Real(length))
        self.length, self.components, self.hidden = length, components, hidden
        self.order = permutation(order, length)
        generator = generator or torch.Generator().manual_seed(0)
        # two inputs: the number before, and whether there is one
        self.net = Recurrent("gru", 2, hidden, generator=generator)
        self.head = MixtureHead(hidden, components, generator=generator)

    def config(self) -> dict[str, Any]:
        return {"length": self.length, "components": self.components, "hidden": self.hidden,
                "order": list(self.order)}  # fmt: skip

    def forward(self, x: Tensor) -> Tensor:
        values = x[:, self.order]  # (B, L)
        return -self._mixture(self._states(values[:, :-1])).log_prob(values).sum(1)

    def _states(self, before: Tensor) -> Tensor:
        """States :math:`h_i` behind each number of ``before`` ``(B, P)`` and at the start,
        ``(B, P + 1, hidden)``."""
        inputs = torch.stack((before, torch.ones_like(before)), -1)
        start = inputs.new_zeros(len(before), 1, 2)
        states: Tensor = self.net(torch.cat((start, inputs), 1))
        return states

    def _mixture(self, h: Tensor) -> D.MixtureSameFamily:
        log_pi, mu, sigma = self.head(h)
        weights = D.Categorical(logits=log_pi, validate_args=False)
        parts = D.Normal(mu.squeeze(-1), sigma.squeeze(-1), validate_args=False)
        return D.MixtureSameFamily(weights, parts, validate_args=False)

    @torch.no_grad()
    def conditional(self, prefix: Tensor, **given: Any) -> Distribution:
        """The mixture of the number that follows ``prefix`` ``(B, P)``, batch shape ``(B,)``."""
        prefix = self._checked(prefix).to(self.placement()[1])
        return self._mixture(self._states(prefix)[:, -1])

    @torch.no_grad()
    def ancestral(
        self, n: int, *, T: float = 1.0, generator: torch.Generator | None = None
    ) -> dict[str, Tensor]:
        """Independent exact draws at T = 1, number by number, ``(n, L)``."""
        if T != 1:
            raise Unsupported(f"ancestral draws are exact at T=1 only, got T={T}")
        generator = fresh(generator)
        device, dtype = self.placement()
        value = torch.zeros(n, self.length, device=device, dtype=dtype)
        item, state = torch.zeros(n, 2, device=device, dtype=dtype), self.net.start(n)
        for at in self.order:
            h, state = self.net.step(item, state)
            mixture = self._mixture(h)
            z = draw(mixture.mixture_distribution, 1, generator)[0]  # (n,)
            x = draw(mixture.component_distribution, 1, generator)[0]  # (n, K)
            value[:, at] = x.gather(1, z[:, None])[:, 0]
            item = torch.stack((value[:, at], torch.ones_like(value[:, at])), -1)
        return {"x": value}
