r"""The variational autoencoder with codes of codes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Integral
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from groundstate.compute.foreign.sklearn import Interval, StrOptions
from groundstate.compute.random import Key
from groundstate.compute.thread_policy import answering
from groundstate.energy.base import Energy
from groundstate.energy.latent.deep.energy import DeepLatentEnergy
from groundstate.energy.latent.deep.hierarchy import FromBottom, HierarchicalPrior
from groundstate.energy.latent.deep.priors import NormalPrior
from groundstate.infer.variational.codes import CodeFamily, DiagonalNormal
from groundstate.infer.variational.hierarchy import BottomUp, Ladder
from groundstate.learn.base import Rule
from groundstate.math.diffusion import Elbo
from groundstate.models.generative.autoencoders.importance import codes_of
from groundstate.models.generative.autoencoders.parts import make_likelihood
from groundstate.models.generative.autoencoders.vae import MONITOR, VAE
from groundstate.models.networks.seeds import init_key
from groundstate.nn.blocks.mlp import MLP
from groundstate.registry import models

ENCODERS = ("bottom_up", "ladder")


@models.register(family="autoencoders", task="generation", role="generator", auto=False)
class HierarchicalVAE(VAE):
    r"""A variational autoencoder whose code has levels, a Markov chain from the top to the rows,

    .. math:: z_L \sim N(0, I), \quad z_l \sim N(\mu_l(z_{l+1}), \sigma_l^2(z_{l+1})), \quad
        x \sim p_\theta(x \mid z_1),

    .. math:: \log p(x) \ge E_q\log p(x \mid z_1) - E_q\log\frac{q(z_L \mid \cdot)}{p(z_L)}
        - \sum_{l<L} E_q\log\frac{q(z_l \mid \cdot)}{p(z_l \mid z_{l+1})} .

    Its energy is :math:`e(x, z) = -\log p(x \mid z_1) - \log p(z)`, and everything that a ``VAE`` answers
    it answers in the same way. One level is a ``VAE``; many levels with an encoder that only adds noise
    are diffusion (``DDPM``).

    Parameters
    ----------
    n_components : sequence of int, default=(8, 4, 2)
        Lengths of :math:`z_1, \dots, z_L`; ``transform`` gives all of them side by side.
    encoder : "ladder" or "bottom_up", default="ladder"
        "bottom_up" is :math:`q(z_1 \mid x)\prod_l q(z_{l+1} \mid z_l)`; "ladder" runs from the top
        down as the prior does and joins at each level what x and the level above say, so that upper levels
        are not given up as easily.
    beta, n_samples, likelihood, likelihood_scale, free_bits, objective, n_importance
        As in ``VAE``.

    Attributes
    ----------
    active_units_ : (sum(n_components),) array of bool
        Units whose mean varies over the rows.
    energy_ : DeepLatentEnergy with a HierarchicalPrior
    rule_ : NegativeELBO, with the encoder

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import HierarchicalVAE
    >>> t = np.random.default_rng(0).uniform(0, 2 * np.pi, 200)
    >>> X = np.column_stack([np.cos(t), np.sin(t), np.cos(2 * t)])
    >>> model = HierarchicalVAE((2, 1), hidden_layer_sizes=(32,), max_iter=60, random_state=0).fit(X)
    >>> model.sample(3, random_state=0).shape, model.transform(X).shape, model.elbo_terms(X).steps.shape
    ((3, 3), (200, 3), (1, 200))
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_components": ["array-like", Interval(Integral, 1, None, closed="left")],
        "encoder": [StrOptions(set(ENCODERS))],
    }
    # what the levels fix
    posterior: ClassVar[str] = "hierarchical"
    prior: ClassVar[str] = "normal"
    prior_scale: ClassVar[float] = 1.0
    grad: ClassVar[str] = "pathwise"
    network: Any = None

    def __init__(
        self,
        n_components: Any = (8, 4, 2),
        likelihood: Any = "gaussian",
        encoder: str = "ladder",
        beta: float | str = 1.0,
        n_samples: int = 1,
        *,
        likelihood_scale: Any = "learned",
        free_bits: float = 0.0,
        objective: str = "elbo",
        n_importance: int = 500,
        hidden_layer_sizes: Any = (128, 64),
        activation: str = "relu",
        solver: Any = "adam",
        learning_rate_init: float = 1e-3,
        batch_size: int | str = "auto",
        max_iter: int = 200,
        alpha: float = 0.0,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: float = math.inf,
        tol: float = 1e-4,
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

    # --- learning ------------------------------------------------------------------------

    @property
    def _lengths(self) -> list[int]:
        given = self.n_components
        sizes = [int(k) for k in (given if isinstance(given, Sequence) else [given])]
        if not sizes or min(sizes) < 1:
            raise ValueError(f"n_components are lengths of levels, at least 1 each, got {given!r}")
        return sizes

    def _energy_of(self, x: Tensor, y: Tensor | None, key: Key) -> DeepLatentEnergy:  # type: ignore[override]
        kind = self._likelihood_name if isinstance(self.likelihood, str) else self.likelihood
        head = make_likelihood(kind, x.shape[1], self.levels_, self.likelihood_scale)
        head.check(x)
        q, sizes = 0 if y is None else y.shape[1], self._lengths
        outputs = head.n_outputs
        decoder: nn.Module = MLP(
            sizes[0] + q, self._hidden[::-1], outputs, self.activation,
            generator=key.fold("decoder").torch(),
        )  # fmt: skip
        if len(sizes) == 1:
            return DeepLatentEnergy(decoder, head, NormalPrior(sizes[0]), q)
        down = [
            self._between(sizes[i + 1], sizes[i], key.fold("down", i))
            for i in range(len(sizes) - 1)
        ]
        prior = HierarchicalPrior(sizes, down)
        return DeepLatentEnergy(FromBottom(decoder, sizes[0], prior.k), head, prior, q)

    def _between(self, into: int, out: int, key: Key) -> MLP:
        """A network from one level to the numbers of another."""
        net = MLP(into, self._hidden[-1:], 2 * out, self.activation, generator=key.torch())
        last: Any = net.layers[-1]
        with torch.no_grad():  # every level starts with variance 1, whatever the one before it says
            last.weight[out:] = 0
            last.bias[out:] = 0
        return net

    def _loss(self, energy: Energy) -> Rule:
        assert isinstance(energy, DeepLatentEnergy)
        key, sizes = init_key(self.random_state).fold("init"), self._lengths
        family: CodeFamily
        if len(sizes) == 1:
            family, numbers = DiagonalNormal(), 2 * sizes[0]
        elif self.encoder == "ladder":
            own = [
                self._between(sizes[i + 1], sizes[i], key.fold("ladder", i))
                for i in range(len(sizes) - 1)
            ]
            family, numbers = Ladder(sizes, own), 2 * sum(sizes)
        else:
            up = [
                self._between(sizes[i], sizes[i + 1], key.fold("up", i))
                for i in range(len(sizes) - 1)
            ]
            family, numbers = BottomUp(sizes, up), 2 * sizes[0]
        inputs = energy.likelihood.n_inputs + energy.condition
        encoder = MLP(
            inputs, self._hidden, numbers, self.activation, generator=key.fold("encoder").torch()
        )
        return self._bound_rule(encoder, family, energy)

    # --- the bound -----------------------------------------------------------------------

    def elbo_terms(self, X: Any, y: Any = None, n_samples: int = MONITOR) -> Elbo:
        """The bound of each row with its terms, as of a diffusion model: ``reconstruction`` of x from
        :math:`z_1`, ``prior`` what the top level costs, ``steps`` ``(L - 1, n_samples)`` what each level
        below it costs, the lowest first."""
        x, home = self._rows(X)
        c = self._contexts_of(y, x)
        energy, family = self.energy_, self._family
        prior: Any = energy.prior
        with answering(energy, x):
            params = self._numbers(x, c)
            z, log_q = codes_of(family, params, n_samples, energy.prior.k)
            context = None if c is None else c.repeat(n_samples, 1)
            flat = z.reshape(n_samples * len(x), -1)
            e = energy.reconstruction(x.repeat(n_samples, 1), flat, context)
            if isinstance(family, BottomUp | Ladder):
                logs = zip(family.log_probs(params, z), prior.log_probs(z), strict=True)
                costs = torch.stack([(q - p).mean(0) for q, p in logs])
            else:
                costs = (log_q() - energy.prior.log_prob(z)).mean(0)[None]
            reconstruction = -e.view(n_samples, -1).mean(0) - self.coding_.log_scale
            found = Elbo.of(reconstruction, costs[-1], costs[:-1], x.shape[1])
        parts = (found.value, found.reconstruction, found.prior, found.steps, found.bits_per_dim)
        return Elbo(*(home.give(v) for v in parts))
