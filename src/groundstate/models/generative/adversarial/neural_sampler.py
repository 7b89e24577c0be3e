"""A network that learns to sample a given energy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from groundstate.compute.random import Key
from groundstate.energy.base import Energy
from groundstate.energy.spaces import Real
from groundstate.learn.base import History
from groundstate.learn.fit import fit as learn
from groundstate.learn.rules.adversarial.sampler import ReverseKL
from groundstate.learn.rules.negatives.generators import PushForward
from groundstate.learn.train.stochastic import Stochastic
from groundstate.models.inherited import keep
from groundstate.nn.blocks.mlp import MLP


class FunctionEnergy(Energy):
    """A function of rows, ``(B, d) -> (B,)``, as an energy."""

    def __init__(self, function: Callable[[Tensor], Tensor], d: int) -> None:
        super().__init__(x=Real(d))
        self.function, self.d = function, d

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x)


class NeuralSampler(BaseEstimator):
    r"""A network :math:`x = g(\varepsilon)` whose draws follow a given energy, without data.

    .. math:: \min_g E\,e(g(\varepsilon)) + \lambda\,MMD^2(s, g(\varepsilon)), \qquad
        s \sim N(\mu_g, \alpha\Sigma_g)

    stands for :math:`KL(p_g \| e^{-e}/Z) = E\,e(g) - H(p_g) + \log Z`: pulling the draws towards the
    widest distribution of their own moments raises their entropy. Once learned, a draw is one pass of
    the network, and a good start for a chain that must be exact.

    Parameters
    ----------
    energy : Energy of one real variable ``x``, or a function ``(B, d) -> (B,)`` with ``n_features``
    lam : float or "auto"
        λ; "auto" balances the spread against the energy for d coordinates; 0 collapses to a minimum.
    inflation : float
        α, above 1.
    n_features : int, optional
        d, where ``energy`` is a function.
    n_components : int or None
        Length of ε; None is twice d, at least 8.
    hidden_layer_sizes, activation
        Of the network.
    T : float
        Temperature.
    learning_rate_init, batch_size, max_iter
        Steps of Adam, each on ``batch_size`` draws; the rate falls to zero along a cosine.
    random_state, device
        As in every estimator.

    Attributes
    ----------
    energy_ : the energy, held fixed
    sampler_ : PushForward
        :math:`g`.
    lam_ : float
    history_ : History

    Examples
    --------
    >>> model = NeuralSampler(lambda x: 0.5 * x.square().sum(1), n_features=2, max_iter=600,
    ...                       random_state=0).fit()
    >>> bool((abs(model.sample(5000, random_state=0).var(0) - 1) < 0.25).all())
    True
    """

    energy_: Energy
    sampler_: PushForward
    lam_: float
    history_: History

    def __init__(
        self,
        energy: Energy | Callable[[Tensor], Tensor],
        lam: float | str = "auto",
        inflation: float = 1.5,
        *,
        n_features: int | None = None,
        n_components: int | None = None,
        hidden_layer_sizes: Sequence[int] = (64, 64),
        activation: str = "tanh",
        T: float = 1.0,
        learning_rate_init: float = 2e-3,
        batch_size: int = 256,
        max_iter: int = 2000,
        random_state: Any = None,
        device: Any = None,
    ) -> None:
        keep(self, locals())

    def fit(self, X: Any = None, y: Any = None) -> Self:
        """Learn the sampler; X and y are not used: the energy is all there is to know."""
        key = Key.of(self.random_state)
        energy = self._held()
        d = energy.spaces["x"].shape[0]
        noise = self.n_components or max(8, 2 * d)
        net = MLP(
            noise, tuple(self.hidden_layer_sizes), d, self.activation,
            generator=key.fold("init").torch(),
        )  # fmt: skip
        device, dtype = energy.placement()
        sampler = PushForward(net.to(device, dtype), noise)
        rule = ReverseKL(sampler, self.lam, self.inflation, self.T)
        rows = torch.zeros(self.batch_size, d, device=device, dtype=dtype)
        solver = Stochastic(
            lr=self.learning_rate_init, batch_size=None, max_epochs=self.max_iter, tol=None,
            schedule="cosine",
        )  # fmt: skip
        self.history_ = learn(energy, {"x": rows}, rule, solver, random_state=key.fold("steps"))
        sampler.requires_grad_(False)
        self.energy_, self.sampler_, self.lam_ = energy, sampler, rule.weight_of(d)
        self.n_features_in_ = d
        return self

    def _held(self) -> Energy:
        """A copy of the energy whose parameters nobody moves."""
        given: Any = self.energy
        if not isinstance(given, Energy):
            if self.n_features is None:
                raise ValueError("n_features says how many coordinates the function energy takes")
            given = FunctionEnergy(given, self.n_features)
        if set(given.spaces) != {"x"} or len(given.spaces["x"].shape) != 1:
            raise ValueError(
                f"NeuralSampler draws one real vector x, the energy has {dict(given.spaces)}; fix what "
                "is known with energy.given(...)"
            )
        energy: Energy = deepcopy(given)
        if self.device is not None:
            energy.to(self.device)
        return energy.eval().requires_grad_(False)

    def sample(self, n_samples: int = 1, *, T: float = 1.0, random_state: Any = None) -> Any:
        r"""Rows ``(n_samples, d)``, one pass of the network each; T scales the noise by :math:`\sqrt T`."""
        check_is_fitted(self, "sampler_")
        if n_samples < 1:
            raise ValueError(f"n_samples must be at least 1, got {n_samples}")
        generator = Key.of(random_state).torch(self.energy_.placement()[0])
        with torch.no_grad():
            eps = self.sampler_.epsilon(n_samples, generator)
            x: Tensor = self.sampler_(eps * T**0.5)
        return np.asarray(x.cpu().numpy())
