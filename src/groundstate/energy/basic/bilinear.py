r"""Two layers of bits, :math:`e(x, z) = -x^\top Wz - x^\top b - z^\top c`."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.distributions import Bernoulli, Distribution, Independent
from torch.nn.functional import softplus

from groundstate.energy.abilities import offers
from groundstate.energy.base import Energy
from groundstate.energy.basic.initial import normal, seeded
from groundstate.energy.registering import registered
from groundstate.energy.spaces import Binary

_LAYER_LIMIT = 20  # bits of the smaller layer that are still enumerated
_ROWS = 2**14  # states per chunk


@registered(r"e(x, z) = -x^\top Wz - x^\top b - z^\top c", lambda: BilinearEnergy(3, 4, scale=1.0))
class BilinearEnergy(Energy):
    r"""Two layers of bits that interact only across,
    :math:`e(x, z) = -x^\top Wz - x^\top b - z^\top c`.

    Given one layer, the bits of the other are independent, so both conditionals and both free
    energies are exact: :math:`F(x) = -x^\top b - T\sum_j\log(1 + e^{(x^\top W + c)_j/T})`.

    Parameters
    ----------
    d : bits of x
    l : bits of z
    scale : standard deviation of the initial W
    generator : source of the initial W

    Attributes
    ----------
    W : Parameter, ``(d, l)``
    b : Parameter, ``(d,)``
    c : Parameter, ``(l,)``

    Examples
    --------
    >>> e = BilinearEnergy(3, 2, scale=0.0)
    >>> e.total().exp().item()  # all 2^5 states count one
    32.0
    """

    unpenalised = ("c",)

    def __init__(
        self, d: int, l: int, *, scale: float = 0.1, generator: torch.Generator | None = None
    ) -> None:
        super().__init__(x=Binary(d), z=Binary(l))
        self.W = nn.Parameter(normal(d, l, scale=scale, generator=seeded(generator)))
        self.b = nn.Parameter(torch.zeros(d))
        self.c = nn.Parameter(torch.zeros(l))

    def config(self) -> dict[str, Any]:
        return {"d": self.W.shape[0], "l": self.W.shape[1]}

    def forward(self, x: Tensor, z: Tensor) -> Tensor:
        return -((x @ self.W + self.c) * z).sum(-1) - x @ self.b

    def up(self, x: Tensor) -> Tensor:
        """Logits of z given x, ``(B, l)``."""
        return torch.addmm(self.c, x, self.W)

    def down(self, z: Tensor) -> Tensor:
        """Logits of x given z, ``(B, d)``."""
        return torch.addmm(self.b, z, self.W.T)

    def log_experts(self, x: Tensor) -> Tensor:
        r"""x as judged by each factor of the product :math:`e^{-F(x)} = e^{b^\top x}\prod_j(1 + e^{w_j^\top
        x + c_j})`, in logs, ``(B, 1 + l)``; the hidden units' are at least 0."""
        return torch.cat([(x @ self.b)[:, None], softplus(self.up(x))], 1)

    # what annealing between two machines asks for, as RestrictedEnergy has it

    def features(self, x: Tensor) -> Tensor:
        return x

    def biases(self, y: Tensor | None = None) -> tuple[Tensor, Tensor]:
        return self.b, self.c

    def log_visible(self, x: Tensor, b: Tensor) -> Tensor:
        return x @ b

    def log_volume(self, b: Tensor) -> Tensor:
        return softplus(b).sum(-1)

    def visible(self, inputs: Tensor) -> Distribution:
        return Independent(Bernoulli(logits=inputs, validate_args=False), 1)

    @offers.argmin("z")
    def best_z(self, x: Tensor) -> Tensor:
        return (self.up(x) > 0).to(x.dtype)

    @offers.argmin("x")
    def best_x(self, z: Tensor) -> Tensor:
        return (self.down(z) > 0).to(z.dtype)

    @offers.conditional("z")
    def distribution_z(self, x: Tensor, T: float = 1.0) -> Distribution:
        logits = self.up(x) if T == 1 else self.up(x) / T
        return Independent(Bernoulli(logits=logits, validate_args=False), 1)

    @offers.conditional("x")
    def distribution_x(self, z: Tensor, T: float = 1.0) -> Distribution:
        logits = self.down(z) if T == 1 else self.down(z) / T
        return Independent(Bernoulli(logits=logits, validate_args=False), 1)

    @offers.log_partition("z")
    def over_z(self, x: Tensor, T: float = 1.0) -> Tensor:
        return x @ self.b / T + softplus(self.up(x) / T).sum(-1)

    @offers.log_partition("x")
    def over_x(self, z: Tensor, T: float = 1.0) -> Tensor:
        return z @ self.c / T + softplus(self.down(z) / T).sum(-1)

    @offers.log_partition("x", "z", when=lambda e: min(e.W.shape) <= _LAYER_LIMIT)
    def total(self, T: float = 1.0) -> Tensor:
        """log Z by listing the smaller layer, ``(1,)``."""
        d, l = self.W.shape
        small, over = (self.spaces["x"], self.over_z) if d <= l else (self.spaces["z"], self.over_x)
        states = small.enumerate(self.W.device, self.W.dtype)  # (2^min, min)
        parts = [torch.logsumexp(over(part, T), 0) for part in states.split(_ROWS)]
        return torch.logsumexp(torch.stack(parts), 0, keepdim=True)
