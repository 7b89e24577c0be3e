r"""A network as an energy of real rows."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.distributions import Normal

from groundstate.compute.foreign.sklearn import Interval, StrOptions
from groundstate.compute.random import Key
from groundstate.energy.base import Energy
from groundstate.energy.basic.net import NetEnergy
from groundstate.errors import Unsupported
from groundstate.infer import sample as draw
from groundstate.infer.base import FreeEnergy
from groundstate.infer.dispatch import marginalise
from groundstate.infer.sampling.annealed import Annealed
from groundstate.infer.sampling.langevin import Langevin
from groundstate.learn.base import History, Rule
from groundstate.learn.rules import (
    NCE,
    NLL,
    Adversarial,
    ContrastiveDivergence,
    DenoisingScoreMatching,
    Naive,
    ReplayCD,
)
from groundstate.learn.rules.negatives.generators import PushForward
from groundstate.learn.rules.negatives.noise import GaussianNoise
from groundstate.models.base import Plan
from groundstate.models.generative.energy.boxes import DataBox
from groundstate.models.generative.energy.runaway import warn_of_runaway_chains
from groundstate.models.generative.network import NetworkGenerator
from groundstate.nn.blocks.mlp import MLP
from groundstate.registry import models

METHODS = ("ml_langevin", "cd", "nce", "score", "sampler", "grid", "naive")
SPREAD = 1.5  # of the Gaussian that annealing starts from, in spreads of the rows
NOISE = 8  # draws of noise for each row in "nce"


@models.register(family="energy", task="generation", role="generator")
class EnergyModel(NetworkGenerator):
    r"""Any network as an energy, :math:`p(x) \propto e^{-e_\theta(x)}`.

    .. math:: e_\theta(x) = f_\theta(x) + .005\,\|x\|^2, \qquad
              \nabla L = \nabla e(x) - E_{x\sim p}\nabla e(x)

    The weak bowl keeps the density integrable. What differs is where the energy is raised:

    ``"ml_langevin"``
        where chains of a replay buffer have got to by k steps of Langevin dynamics;
    ``"cd"``
        where k steps from the rows themselves lead;
    ``"nce"``
        on noise :math:`N(\hat\mu, \hat\Sigma)`, which a logistic regression tells from the rows; the
        normaliser is learned too;
    ``"score"``
        in the directions that lead away from the data (denoising score matching);
    ``"sampler"``
        on what a second network generates, which in turn seeks low energy and entropy;
    ``"grid"``
        everywhere, by a sum over a grid, for at most two columns: the exact gradient;
    ``"naive"``
        nowhere. All energies fall and nothing is learned; it is here to be seen.

    Parameters
    ----------
    network : module or None, default=None
        f, from coded rows (and contexts, beside them) to ``(B, 1)``; None is a multilayer perceptron.
    method : see above, default="ml_langevin"
    k : int, default=20
        Steps of Langevin dynamics in each learning step.
    step_size : float, default=0.01
        Of Langevin dynamics, in squared spreads of the rows.
    n_chains : int, default=10000
        Chains of the replay buffer, of which 5 % of those that are picked start afresh.
    sigma : float, default=0.1
        Noise of ``"score"``, in spreads of the rows.
    confine : float, default=0.01
        c of the bowl :math:`\tfrac c2\|x\|^2`.
    burn_in : int, default=200
        Steps before a draw of more than two columns.

    Attributes
    ----------
    log_z_ : float or None, the normaliser that ``"nce"`` learned
    energy_ : NetEnergy

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import EnergyModel
    >>> X = np.random.default_rng(0).normal(3.0, 0.5, (200, 1))
    >>> model = EnergyModel(method="grid", hidden_layer_sizes=(16,), max_iter=40, random_state=0).fit(X)
    >>> model.log_prob_kind_, bool(model.score(X) > -1.2), model.sample(2, random_state=0).shape
    ('exact', True, (2, 1))
    """

    category_code: ClassVar[str] = "dequantise"
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "network": [nn.Module, None],
        "method": [StrOptions(set(METHODS))],
        "k": [Interval(Integral, 1, None, closed="left")],
        "step_size": [Interval(Real, 0, None, closed="neither")],
        "n_chains": [Interval(Integral, 1, None, closed="left")],
        "sigma": [Interval(Real, 0, None, closed="neither")],
        "confine": [Interval(Real, 0, None, closed="left")],
        "burn_in": [Interval(Integral, 1, None, closed="left")],
    }
    log_z_: float | None

    def __init__(
        self,
        network: Any = None,
        method: str = "ml_langevin",
        *,
        k: int = 20,
        step_size: float = 0.01,
        n_chains: int = 10_000,
        sigma: float = 0.1,
        confine: float = 0.01,
        burn_in: int = 200,
        hidden_layer_sizes: Any = (128, 64),
        activation: str = "silu",
        solver: Any = "adam",
        learning_rate_init: float = 1e-3,
        batch_size: Any = 128,
        max_iter: int = 200,
        alpha: float = 0.0,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: float = 20,
        tol: float = 1e-4,
        warm_start: bool = False,
        scale: str | None = "standard",
        dequantize: bool = False,
        ema_decay: float | None = None,
        verbose: Any = False,
        random_state: Any = None,
        device: Any = "auto",
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    # --- learning ------------------------------------------------------------------------

    def _energy_of(self, x: Tensor, y: Tensor | None, key: Key) -> NetEnergy:  # type: ignore[override]
        d, q = x.shape[1], 0 if y is None else y.shape[1]
        if self.method == "grid" and d > 2:
            raise Unsupported(
                f"method='grid' sums over a grid of at most 2 coded columns, got {d}; use "
                "method='ml_langevin' or 'nce'"
            )
        weight = self._checked_weight(self._given_weight, x)
        w = x.new_ones(len(x)) if weight is None else torch.as_tensor(weight).to(x)
        self._noise = GaussianNoise.of(x, w)
        self.box_ = DataBox.around(x[w > 0]).to_numpy()
        self._seed = key
        net = self._hidden if self.network is None else self.network
        made = NetEnergy(
            d, net, self.confine, activation=self.activation, q=q, generator=key.torch()
        )
        return made.to(x.device, x.dtype)

    def _loss(self, energy: Energy) -> Rule:
        adjusted = Langevin(step_size=self.step_size)
        free = Langevin(step_size=self.step_size, adjusted=False)
        if self.method == "ml_langevin":
            return ReplayCD(self.n_chains, self.k, kernel=free, over="x")
        if self.method == "cd":
            return ContrastiveDivergence(self.k, adjusted, over="x")
        if self.method == "score":
            return DenoisingScoreMatching(self.sigma, over="x")
        if self.method == "grid":
            return NLL(over="x", approximate=self._box.quadrature())
        if self.method == "naive":
            return Naive(over="x")
        if self.method == "nce":
            return NCE(self._noise, NOISE, learn_z=self.condition_ is None, over="x")
        d = len(self.box_)
        g = MLP(d, self._hidden, d, self.activation, generator=self._seed.fold("g").torch())
        return Adversarial(PushForward(g, d), "mmd", weight=10.0, decay=1e-3, clip=20.0, over="x")

    @property
    def _box(self) -> DataBox:
        return DataBox.of(self.box_)

    def _run(self, plan: Plan, data: Any, weight: Any, callbacks: Any, checked: bool) -> History:
        history = super()._run(plan, data, weight, callbacks, checked)
        rule: Any = getattr(plan.rule, "rule", plan.rule)
        self.log_z_ = float(rule.c.detach()) if isinstance(rule, NCE) else None
        if isinstance(rule, ReplayCD) and rule.source.chains:
            warn_of_runaway_chains(
                rule.source.chains["x"], data["x"],
                "lower step_size or learning_rate_init, or raise confine",
            )  # fmt: skip
        return history

    # --- density -------------------------------------------------------------------------

    @property
    def _is_small(self) -> bool:
        return len(self.box_) <= 2

    @property
    def log_prob_kind(self) -> str:
        """Exact on a grid of at most two columns, else with an estimated normaliser."""
        return "exact" if self._is_small else "estimate"

    def _given(self, y: Tensor | None) -> dict[str, Tensor]:
        return {} if y is None else {"y": y}

    def _log_z(self, y: Tensor | None) -> Tensor:
        """log Z, ``(1,)`` or one for each y: by a grid, learned by "nce", or annealed."""
        if not self._is_small and self.log_z_ is not None:
            device, dtype = self.energy_.placement()
            return torch.tensor([self.log_z_], device=device, dtype=dtype)
        if y is None:
            return self._volume(None)
        unique, index = torch.unique(y, dim=0, return_inverse=True)
        return torch.cat([self._volume(row) for row in unique.split(1)])[index]

    def _volume(self, y: Tensor | None) -> Tensor:
        mark = tuple((p.data_ptr(), p._version) for p in self.energy_.parameters())
        if getattr(self, "_volumes", (None, None))[0] != mark:
            self._volumes: tuple[Any, dict[Any, Tensor]] = (mark, {})
        name = () if y is None else tuple(y.reshape(-1).tolist())
        kept = self._volumes[1]
        if name not in kept:
            with torch.no_grad():
                kept[name] = self._integral(y).detach()
        return kept[name]

    def _integral(self, y: Tensor | None) -> Tensor:
        if self._is_small:
            return self._box.log_integral(self.energy_, y)
        return -self.log_partition_estimate(y).value

    def log_partition_estimate(self, y: Tensor | None = None) -> FreeEnergy:
        """−log Z with its standard error, annealed from a Gaussian by Langevin dynamics."""
        device, dtype = self.energy_.placement()
        d = len(self.box_)
        base = Normal(torch.zeros(d, device=device, dtype=dtype), SPREAD, validate_args=False)
        method = Annealed(base, n=200, n_temps=200, kernel=Langevin(step_size=0.02), moves=2)
        return marginalise(
            self.energy_, "x", self._given(y), method=method, generator=Key.of(0).torch(device)
        )

    def _log_prob(self, x: Tensor, y: Tensor | None) -> Tensor:
        return -self.energy_(x=x, **self._given(y)) - self._log_z(y)

    def _energies(self, x: Tensor, y: Tensor | None, z: Tensor | None) -> Tensor:
        if y is None and self.condition_ is not None:
            return super()._energies(x, y, z)
        return self.energy_(x=x, **self._given(y))

    # --- draws ---------------------------------------------------------------------------

    @torch.no_grad()
    def _draw(
        self, n: int, y: Tensor | None, T: float, generator: torch.Generator
    ) -> tuple[Tensor, Tensor | None]:
        if self._is_small:
            return self._box.draw(self.energy_, n, y, T, generator), None
        d = len(self.box_)
        rule: Any = getattr(self, "rule_", None)
        inner: Any = getattr(rule, "rule", rule)
        if isinstance(inner, Adversarial):
            start = inner.g.draw(n, generator=generator)
        else:
            start = self._annealed_rows(n, y, T, d, generator)
        method = Langevin(step_size=self.step_size, n_steps=self.burn_in)
        kernel = method.kernel(self.energy_, self._given(y), T=T)
        return kernel.run({"x": start}, self.burn_in, generator)["x"], None

    def _annealed_rows(
        self, n: int, y: Tensor | None, T: float, d: int, generator: torch.Generator
    ) -> Tensor:
        """Rows from annealed chains, taken by their weights, so that modes have their share."""
        device, dtype = self.energy_.placement()
        base = Normal(torch.zeros(d, device=device, dtype=dtype), SPREAD, validate_args=False)
        method = Annealed(base, n_temps=100, kernel=Langevin(step_size=0.02), moves=2)
        many = max(n, 256) if y is None else 1
        drawn = draw(
            self.energy_, "x", self._given(y), n=many, T=T, method=method, generator=generator
        )
        x = drawn["x"]  # (many, B, d)
        if y is not None:
            return x[0]
        assert drawn.log_weight is not None
        p = torch.softmax(drawn.log_weight[:, 0], 0)
        return x[torch.multinomial(p, n, True, generator=generator), 0]
