"""A generative adversarial network."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from groundstate.compute.foreign.sklearn import Interval, StrOptions
from groundstate.compute.thread_policy import answering
from groundstate.energy.base import Energy
from groundstate.errors import DataError
from groundstate.learn.base import Rule
from groundstate.learn.rules.adversarial.game import Game
from groundstate.models.generative.adversarial.players import AdversarialGenerator
from groundstate.nn.adversarial import DenseDiscriminator, DenseGenerator
from groundstate.registry import models

LISTING = (256, 512, 1024)  # of the generator; the discriminator mirrors it


@models.register(family="adversarial", task="generation", role="generator")
class GAN(AdversarialGenerator):
    r"""A generator and a discriminator that learn from each other.

    .. math:: \min_G\max_D V, \qquad V = E\log D(x) + E\log(1 - D(G(z))), \qquad e(x) = -\mathrm{logit}\,D(x)

    For the best D the value is :math:`2\,JS(p, p_G) - 2\log2`, least where the generator's rows are
    distributed as the data; then :math:`D = \tfrac12`. There is no density: the energy ranks rows,
    and ``groundstate.evaluate`` judges samples. With y both players see it, and the model is
    :math:`p(x \mid y)`.

    Parameters
    ----------
    loss : "nonsaturating", "minimax", "lsgan" or "hinge"
        The generator lowers :math:`-\log D(G)`, or raises D's loss itself, which gives no gradient
        while D is ahead; see ``groundstate.learn.losses.gan``.
    network : None or "mnist-listing"
        The latter is for 784 pixels: G 100-256-512-1024-784 with LeakyReLU(0.2) and tanh, D
        784-1024-512-256-1 with dropout 0.3; ``hidden_layer_sizes``, ``activation`` and ``dropout``
        are then not used.
    r1 : float
        Strength γ of :math:`\tfrac\gamma2E\|\nabla D(x)\|^2` on real rows, which calms the game.
    label_smoothing : float
        Real rows count as real with probability one minus this.
    dropout : float
        Of the discriminator.
    spectral_norm : bool
        Bound the slope of the discriminator by one.

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import GAN
    >>> X = np.random.default_rng(0).normal(3.0, 2.0, (400, 1)).astype("float32")
    >>> model = GAN(n_components=4, hidden_layer_sizes=(32,), learning_rate_init=2e-3, max_iter=60,
    ...             random_state=0).fit(X)
    >>> bool(abs(model.sample(2000, random_state=0).mean() - 3) < 1), model.log_prob_kind_
    (True, 'none')
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "loss": [StrOptions({"nonsaturating", "minimax", "lsgan", "hinge"})],
        "network": [StrOptions({"mnist-listing"}), None],
        "r1": [Interval(Real, 0, None, closed="left")],
        "label_smoothing": [Interval(Real, 0, 1, closed="left")],
        "scale": [StrOptions({"auto", "standard", "minmax"}), None],
    }
    loss: str
    r1: float
    label_smoothing: float

    def __init__(
        self,
        n_components: int = 100,
        hidden_layer_sizes: Sequence[int] = (128, 128),
        activation: str = "leaky_relu",
        *,
        loss: str = "nonsaturating",
        n_critic: int = 1,
        r1: float = 0.0,
        label_smoothing: float = 0.0,
        dropout: float = 0.0,
        spectral_norm: bool = False,
        network: str | None = None,
        generator: nn.Module | None = None,
        discriminator: nn.Module | None = None,
        solver: Any = "adam",
        learning_rate_init: float = 2e-4,
        batch_size: int = 100,
        max_iter: int = 200,
        alpha: float = 0.0,
        warm_start: bool = False,
        scale: str | None = "auto",
        dequantize: bool = False,
        ema_decay: float | None = None,
        verbose: int = 0,
        random_state: Any = None,
        device: Any = "auto",
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    @property
    def _scaling(self) -> str | None:
        if self.scale == "auto" and self.network == "mnist-listing":
            return "minmax"
        return super()._scaling

    def _energy_of(self, x: Tensor, y: Tensor | None, key: Any) -> Energy:  # type: ignore[override]
        if self.network == "mnist-listing" and x.shape[1] != 784:
            raise DataError(
                f"network='mnist-listing' is for 784 pixels, X has {x.shape[1]} coded columns; leave "
                "network=None for other rows"
            )
        return super()._energy_of(x, y, key)

    def _made_generator(self, d: int, q: int, draws: torch.Generator) -> nn.Module:
        if self.network is None or self.generator is not None:
            return super()._made_generator(d, q, draws)
        return DenseGenerator(
            self.n_components, LISTING, [1] * d, q, "leaky_relu", "tanh", generator=draws
        )

    def _made_discriminator(self, d: int, q: int, draws: torch.Generator) -> nn.Module:
        if self.network is None or self.discriminator is not None:
            return super()._made_discriminator(d, q, draws)
        return DenseDiscriminator(d, LISTING[::-1], q, "leaky_relu", 0.3, generator=draws)

    def _loss(self, energy: Energy) -> Rule:
        return Game(
            self.loss, self.n_critic, "r1" if self.r1 else None, self.r1 or None,
            label_smoothing=self.label_smoothing,
        )  # fmt: skip

    def discriminator_score(self, X: Any, y: Any = None) -> Any:
        r"""How probably the discriminator takes each row for real, :math:`\sigma(D(x))`, ``(n,)``."""
        x, home = self._rows(X)
        c = self._contexts(y, len(x))
        with answering(self.energy_, x):
            return home.give(torch.sigmoid(-self._energies(x, c, None)))
