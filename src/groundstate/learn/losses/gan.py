r"""The losses of two players: a discriminator that gives logits, and a generator that it judges.

With real rows x, generated rows G and :math:`D = \sigma(s)` of a logit s, the value of the game is
:math:`V = E\log D(x) + E\log(1 - D(G))`. Everything is written in s, by softplus, so that nothing
overflows: :math:`-\log D = \mathrm{softplus}(-s)`, :math:`-\log(1 - D) = \mathrm{softplus}(s)`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor
from torch.nn.functional import relu, softplus

from groundstate.errors import Unsupported

Part = Callable[["GANLoss", Tensor], Tensor]


def _real(loss: GANLoss, s: Tensor) -> Tensor:
    # cross-entropy to the label 1 - smoothing; softplus(s) = softplus(-s) + s
    return softplus(-s) + loss.label_smoothing * s if loss.label_smoothing else softplus(-s)


# name -> the discriminator's loss on real and on generated rows, the generator's
TABLE: dict[str, tuple[Part, Part, Part]] = {
    "nonsaturating": (_real, lambda loss, t: softplus(t), lambda loss, t: softplus(-t)),
    "minimax": (_real, lambda loss, t: softplus(t), lambda loss, t: -softplus(t)),
    "lsgan": (
        lambda loss, s: 0.5 * (s - 1).square(),
        lambda loss, t: 0.5 * t.square(),
        lambda loss, t: 0.5 * (t - 1).square(),
    ),
    "hinge": (lambda loss, s: relu(1 - s), lambda loss, t: relu(1 + t), lambda loss, t: -t),
    "wasserstein": (lambda loss, s: -s, lambda loss, t: t, lambda loss, t: -t),
    "energy": (lambda loss, s: -s, lambda loss, t: relu(loss.margin + t), lambda loss, t: -t),
}


@dataclass(frozen=True)
class GANLoss:
    """What the two players lower, value by value of their logits; made by ``gan``."""

    name: str
    label_smoothing: float = 0.0
    margin: float = 1.0

    def real(self, s: Tensor) -> Tensor:
        """The discriminator's loss on logits of real rows."""
        return TABLE[self.name][0](self, s)

    def fake(self, t: Tensor) -> Tensor:
        """The discriminator's loss on logits of generated rows."""
        return TABLE[self.name][1](self, t)

    def generator(self, t: Tensor) -> Tensor:
        """The generator's loss on logits of its rows."""
        return TABLE[self.name][2](self, t)

    def discriminator(self, real: Tensor, fake: Tensor) -> Tensor:
        """The mean loss of the discriminator, a scalar."""
        return self.real(real).mean() + self.fake(fake).mean()


def value(real: Tensor, fake: Tensor) -> Tensor:
    r""":math:`V = E\log D(x) + E\log(1 - D(G))` from logits; at most 0, and :math:`-2\log2` where
    :math:`D = \tfrac12`.

    Examples
    --------
    >>> import torch
    >>> round(float(value(torch.zeros(3), torch.zeros(5))), 6)
    -1.386294
    """
    return -softplus(-real).mean() - softplus(fake).mean()


def gan(name: str, *, label_smoothing: float = 0.0, margin: float = 1.0) -> GANLoss:
    r"""The losses of a game by name, in logits s of real and t of generated rows.

    ============= ===================================================== ==========================
    name          discriminator                                         generator
    ============= ===================================================== ==========================
    nonsaturating :math:`-\log\sigma(s) - \log(1-\sigma(t))`            :math:`-\log\sigma(t)`
    minimax       the same                                              :math:`\log(1-\sigma(t))`
    lsgan         :math:`\tfrac12(s-1)^2 + \tfrac12t^2`                 :math:`\tfrac12(t-1)^2`
    hinge         :math:`(1-s)_+ + (1+t)_+`                             :math:`-t`
    wasserstein   :math:`-s + t`                                        :math:`-t`
    energy        :math:`e(x) + (m - e(G))_+`, :math:`e = -s`           :math:`e(G)`
    ============= ===================================================== ==========================

    Parameters
    ----------
    name : one of the table
    label_smoothing : a real row counts as real with probability one minus this (the first two)
    margin : m of "energy"

    Examples
    --------
    >>> import torch
    >>> loss = gan("nonsaturating")
    >>> t = torch.tensor([-20.0], requires_grad=True)  # the discriminator is sure: generated
    >>> loss.generator(t).sum().backward()
    >>> round(float(t.grad), 4)
    -1.0
    """
    if not 0 <= label_smoothing < 1:
        raise ValueError(f"label_smoothing is a share in [0, 1), got {label_smoothing}")
    if label_smoothing and name not in ("nonsaturating", "minimax"):
        raise Unsupported(
            f"label_smoothing blurs the labels of a cross-entropy, which {name!r} has not; leave it "
            "0, or take loss='nonsaturating'"
        )
    if name not in TABLE:
        raise Unsupported(f"there is no GAN loss {name!r}; use one of {', '.join(TABLE)}")
    return GANLoss(name, label_smoothing, margin)
