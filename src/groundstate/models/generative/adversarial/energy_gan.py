"""A generator against an energy."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from groundstate.compute.foreign.sklearn import Interval, StrOptions
from groundstate.energy.base import Energy
from groundstate.errors import Unsupported
from groundstate.infer import sample as draw
from groundstate.infer.sampling.langevin import Langevin
from groundstate.learn.base import Rule
from groundstate.learn.rules.adversarial.game import Game
from groundstate.models.generative.adversarial.players import AdversarialGenerator
from groundstate.models.generative.network import NetworkGenerator
from groundstate.nn.adversarial import Reconstruction
from groundstate.registry import models


@models.register(family="adversarial", task="generation", role="generator")
class EnergyGAN(AdversarialGenerator):
    r"""An energy that is low on the data and pushed up where a generator looks for low energy.

    .. math:: \min_e E\,e(x) + E\,(m - e(g(z)))_+, \qquad \min_g E\,e(g(z)) + \lambda\,MMD^2(s, g),
        \qquad e(x) = \|F(G(x)) - x\|^2

    Without the margin m the game has no lower end: energies of generated rows would rise for ever.
    With the entropy of the generator (λ) and no margin its gradient would be that of maximum
    likelihood, :math:`E\nabla e(x) - E\nabla e(g)`. The energy is what an outlier has much of.

    Parameters
    ----------
    critic : "autoencoder", "network" or module
        What the energy is: the error of rebuilding a row, a dense network, or a module of your own
        from rows to logits :math:`-e`.
    n_code : int or None
        Length of the autoencoder's code; None is half the coded columns, at least 1 and at most 32.
    margin : float or None
        m; None is the total variance of the coded rows, the error of an autoencoder that knows their
        mean alone.
    entropy : float or "auto"
        λ of the generator's entropy, as in ``NeuralSampler``; 0 leaves it out.
    mcmc_steps : int
        Steps of Langevin dynamics with acceptance from each generated row, in ``sample``.
    step_size : float
        Of those steps, in coded units.

    Attributes
    ----------
    margin_ : float, the margin that was used

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import EnergyGAN
    >>> rng = np.random.default_rng(0)
    >>> t = rng.uniform(0, 2 * np.pi, 400)
    >>> ring = (2 * np.c_[np.cos(t), np.sin(t)] + 0.1 * rng.normal(size=(400, 2))).astype("float32")
    >>> model = EnergyGAN(4, (32, 32), learning_rate_init=1e-3, max_iter=40, random_state=0).fit(ring)
    >>> far = model.energy(np.array([[8.0, 8.0]], dtype="float32"))
    >>> bool(model.energy(ring).mean() < far[0]), model.log_prob_kind_
    (True, 'unnormalised')
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "critic": [StrOptions({"autoencoder", "network"}), nn.Module],
        "n_code": [Interval(Integral, 1, None, closed="left"), None],
        "margin": [Interval(Real, 0, None, closed="neither"), None],
        "entropy": [StrOptions({"auto"}), Interval(Real, 0, None, closed="left")],
        "mcmc_steps": [Interval(Integral, 0, None, closed="left")],
        "step_size": [Interval(Real, 0, None, closed="neither")],
        "scale": [StrOptions({"auto", "standard", "minmax"}), None],
    }
    log_prob_kind: Any = "unnormalised"
    score_samples = NetworkGenerator.score_samples
    score = NetworkGenerator.score
    log_prob = NetworkGenerator.log_prob
    critic: Any
    n_code: int | None
    margin: float | None
    entropy: float | str
    mcmc_steps: int
    step_size: float
    margin_: float

    def __init__(
        self,
        n_components: int = 16,
        hidden_layer_sizes: Sequence[int] = (128, 128),
        activation: str = "leaky_relu",
        *,
        critic: Any = "autoencoder",
        n_code: int | None = None,
        margin: float | None = None,
        entropy: float | str = 0.0,
        mcmc_steps: int = 0,
        step_size: float = 0.01,
        n_critic: int = 1,
        generator: nn.Module | None = None,
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

    def _learn_preparation(self, X: Any, y: Any, weight: Tensor | None) -> None:
        super()._learn_preparation(X, y, weight)
        if self.mcmc_steps and self.coding_.levels.any():
            raise Unsupported(
                "mcmc_steps moves rows by gradients, which columns of categories do not have; leave it 0"
            )
        rows = self.coding_.encode(X).double()
        w = torch.ones(len(rows)).to(rows) if weight is None else weight.double()
        w = w / w.sum()
        spread = float(w @ (rows - w @ rows).square().sum(1))
        self.margin_ = float(self.margin) if self.margin is not None else max(spread, 1e-6)

    @property
    def _given_discriminator(self) -> nn.Module | None:
        return self.critic if isinstance(self.critic, nn.Module) else None

    def _made_discriminator(self, d: int, q: int, draws: torch.Generator) -> nn.Module:
        if self.critic != "autoencoder":
            return super()._made_discriminator(d, q, draws)
        code = self.n_code or min(32, max(1, d // 2))
        return Reconstruction(d, self._hidden, code, q, self.activation, generator=draws)

    def _loss(self, energy: Energy) -> Rule:
        return Game("energy", self.n_critic, margin=self.margin_, spread=self.entropy)

    def _draw(
        self, n: int, y: Tensor | None, T: float, generator: torch.Generator
    ) -> tuple[Tensor, Tensor | None]:
        x, z = super()._draw(n, y, T, generator)
        if not self.mcmc_steps:
            return x, z
        chain = Langevin(self.step_size, self.mcmc_steps, adjusted=True)
        given = {"x": x} if y is None else {"x": x, "y": y}
        free, start = {"x": torch.ones_like(x, dtype=torch.bool)}, {"x": x}
        moved = draw(
            self.energy_, free, given, 1, T=T, method=chain, init=start, generator=generator
        )["x"][0]
        return moved.to(x.dtype), z
