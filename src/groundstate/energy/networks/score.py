r"""An energy of noisy rows, one for every noise level, whose slope is a score."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from groundstate.energy.base import Energy
from groundstate.energy.registering import registered
from groundstate.energy.spaces import Real
from groundstate.nn.blocks.mlp import network


@registered(
    r"e_\sigma(x) = \frac{\|x\|^2}{2(1+\sigma^2)} + \frac{\sqrt{1+\sigma^2}}\sigma "
    r"f_\theta(x/\sqrt{1+\sigma^2}, \log\sigma)",
    lambda: ScoreEnergy(1, net=(8,)),
)
class ScoreEnergy(Energy):
    r"""Rows of spread one with noise of level σ,

    .. math:: e_\sigma(x) = \frac{\|x\|^2}{2(1+\sigma^2)} + \frac{\sqrt{1+\sigma^2}}\sigma\,
              f_\theta\Bigl(\frac{x}{\sqrt{1+\sigma^2}}, \log\sigma\Bigr),

    so that :math:`-\nabla e_\sigma` learns the score of the data smoothed by :math:`N(0, \sigma^2)`: that
    of a unit Gaussian, and a network whose slope has the size 1/σ that scores near the data have.

    Parameters
    ----------
    d : number of features
    net : hidden sizes, or a module from ``(B, d + 1 + q)`` to ``(B, 1)``
    q : length of the context y, 0 without
    sigma : noise level where none is given
    activation : of the hidden layers, smooth
    generator : source of the initial weights

    Examples
    --------
    >>> e = ScoreEnergy(2, net=(8,))
    >>> e.score(torch.zeros(3, 2), torch.full((3,), 0.5)).shape
    torch.Size([3, 2])
    """

    context = ("sigma",)

    def __init__(
        self,
        d: int,
        net: Sequence[int] | nn.Module = (64, 64),
        q: int = 0,
        sigma: float = 0.1,
        activation: str = "silu",
        *,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(**({"x": Real(d), "y": Real(q)} if q else {"x": Real(d)}))
        if not sigma > 0:
            raise ValueError(f"sigma is a noise level above 0, got {sigma}")
        self.d, self.q, self.sigma, self.activation = d, q, float(sigma), activation
        self.sizes = None if isinstance(net, nn.Module) else tuple(net)
        self.net = network(net, d + 1 + q, 1, generator, activation)

    def config(self) -> dict[str, Any]:
        return {
            "d": self.d, "net": self.net if self.sizes is None else list(self.sizes), "q": self.q,
            "sigma": self.sigma, "activation": self.activation,
        }  # fmt: skip

    def forward(self, x: Tensor, y: Tensor | None = None, sigma: Tensor | None = None) -> Tensor:
        level = x.new_full((len(x), 1), self.sigma) if sigma is None else sigma.reshape(-1, 1)
        wide = (1 + level.square()).sqrt()
        parts = [x / wide, level.log().expand(len(x), 1), *(() if y is None else (y,))]
        f = self.net(torch.cat(parts, 1))
        out = 0.5 * (x / wide).square().sum(1) + (wide / level * f)[:, 0]
        return out

    def score(self, x: Tensor, sigma: Tensor, y: Tensor | None = None) -> Tensor:
        r""":math:`-\nabla_x e_\sigma(x)`, ``(B, d)``; with a graph where x asks for one."""
        keep = x.requires_grad
        with torch.enable_grad():
            at = x if keep else x.detach().requires_grad_()
            given = {} if y is None else {"y": y}
            e = self(x=at, sigma=sigma, **given)
            (g,) = torch.autograd.grad(e.sum(), at, create_graph=keep)
        return -g
