r"""A discriminator read as an energy, and the generator that it judges."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from groundstate.energy.base import Energy
from groundstate.energy.registering import registered
from groundstate.energy.spaces import Real
from groundstate.nn.adversarial.dense import DenseDiscriminator, DenseGenerator


@registered(
    r"e(x, y) = -D(x, y),\qquad x = G(z, y),\ z \sim N(0, I)",
    lambda: AdversarialEnergy(DenseDiscriminator(3, (4,), 2), DenseGenerator(2, (4,), [1] * 3, 2), 3, 2),
)  # fmt: skip
class AdversarialEnergy(Energy):
    r"""Minus the logit of a discriminator, :math:`e(x, y) = -D(x, y)`: low where a row looks real.

    The energy ranks rows; it does not say how probable they are: at the end of the game D is constant
    and the distribution is that of the generator, :math:`x = G(z, y)` with :math:`z \sim N(0, I)`.

    Parameters
    ----------
    discriminator : module from x (and y) to logits ``(B, k)``; several are averaged
    generator : module ``(z, y, generator) -> (B, d)`` with ``n_components``
    d : length of x
    q : length of the condition y, 0 without

    Examples
    --------
    >>> e = AdversarialEnergy(DenseDiscriminator(2, (8,)), DenseGenerator(4, (8,), [1, 1]), 2)
    >>> x, z = e.draw(5, generator=torch.Generator().manual_seed(0))
    >>> x.shape, z.shape, e(x=x).shape
    (torch.Size([5, 2]), torch.Size([5, 4]), torch.Size([5]))
    """

    def __init__(self, discriminator: nn.Module, generator: nn.Module, d: int, q: int = 0) -> None:
        super().__init__(x=Real(d), **({"y": Real(q)} if q else {}))
        self.discriminator, self.generator = discriminator, generator
        self.d, self.q = d, q

    def config(self) -> dict[str, Any]:
        return {
            "discriminator": self.discriminator, "generator": self.generator,
            "d": self.d, "q": self.q,
        }  # fmt: skip

    def logits(self, x: Tensor, y: Tensor | None = None) -> Tensor:
        """What the discriminator says, ``(B, k)``: one logit, or one per patch."""
        s: Tensor = self.discriminator(x) if y is None else self.discriminator(x, y)
        return s

    def forward(self, x: Tensor, y: Tensor | None = None) -> Tensor:
        s = self.logits(x, y)
        return -(s[:, 0] if s.shape[1] == 1 else s.mean(1))

    def noise(self, n: int, generator: torch.Generator | None = None, T: float = 1.0) -> Tensor:
        r""":math:`z \sim N(0, T I)`, on the device and in the dtype of the network."""
        like = next(self.generator.parameters())
        shape = (n, int(self.generator.n_components))  # type: ignore[arg-type]
        z = torch.randn(*shape, generator=generator, device=like.device, dtype=like.dtype)
        return z if T == 1 else z * T**0.5

    def draw(
        self,
        n: int,
        y: Tensor | None = None,
        T: float = 1.0,
        generator: torch.Generator | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Generated rows ``(n, d)`` and the noise they were made from ``(n, n_components)``."""
        z = self.noise(n, generator, T)
        x: Tensor = self.generator(z, y, generator)
        return x, z
