r"""A field that carries noise to data, learned by regression."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from groundstate import registry
from groundstate.compute.foreign.sklearn import Interval, StrOptions
from groundstate.compute.random import Key
from groundstate.energy.base import Energy
from groundstate.energy.networks.normalizing_flow import NormalizingFlowEnergy
from groundstate.errors import Unsupported
from groundstate.learn.base import Rule
from groundstate.learn.rules.paths.flow_matching import COUPLINGS, PATHS, TIMES, VelocityMatching
from groundstate.models.base import Plan
from groundstate.models.generative.flows.cnf import ContinuousGenerator


@registry.models.register(family="flows", task="generation", role="generator")
class FlowMatching(ContinuousGenerator):
    r"""A field :math:`v_\theta` whose flow carries noise (t = 0) to data (t = 1), learned by regression.

    .. math:: L = \|v_\theta(t, x_t) - \dot x_t\|^2,\qquad x_t = (1 - t)x_0 + tx_1,\quad
        x_0\sim N(0, I),\ x_1\text{ a row}

    No solver runs while learning. ``sample`` follows the field in ``n_steps`` steps; densities are those of
    the continuous flow, :math:`e(x) = -\log p(x)`.

    Parameters
    ----------
    coupling : "independent" or "ot"
        Which noise goes to which row: any, or within a batch the pairs with least squared distances, whose
        paths cross less and are straighter.
    path : "linear" or "vp"
        Straight, or with :math:`x_t = \cos(\tfrac\pi2t)x_0 + \sin(\tfrac\pi2t)x_1`.
    time : "uniform" or "logit_normal"
        Distribution of t while learning.
    method : {"heun", "rk4", "midpoint", "euler", "dopri5"}
        The solver of ``sample``; log densities and codes use dopri5.
    n_steps : int
        Of ``sample``.
    guidance : float
        w of :math:`v_\varnothing + w(v_y - v_\varnothing)` in samples of a model that was fitted with y:
        above 1 they are more typical of y and less diverse.
    label_dropout : float
        Share of the rows whose y is hidden while learning, as guidance needs.

    Attributes
    ----------
    flow_ : Flow, the torch module

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import FlowMatching
    >>> X = np.random.default_rng(0).normal(2.0, 0.5, (500, 1))
    >>> model = FlowMatching(hidden_layer_sizes=(32,), max_iter=100, random_state=0).fit(X)
    >>> drawn = model.sample(2000, random_state=0)
    >>> bool(abs(drawn.mean() - 2) < 0.1), bool(abs(drawn.std() - 0.5) < 0.1)
    (True, True)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "coupling": [StrOptions(set(COUPLINGS))],
        "path": [StrOptions(set(PATHS))],
        "time": [StrOptions(set(TIMES))],
        "guidance": [Interval(Real, 0, None, closed="left")],
        "label_dropout": [Interval(Real, 0, 1, closed="left")],
        "n_steps": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        coupling: str = "independent",
        path: str = "linear",
        *,
        time: str = "uniform",
        method: str = "heun",
        n_steps: int = 50,
        guidance: float = 1.0,
        label_dropout: float = 0.1,
        hidden_layer_sizes: Any = (64, 64, 64),
        activation: str = "silu",
        trace: str = "auto",
        rtol: float = 1e-5,
        atol: float = 1e-5,
        solver: Any = "adam",
        learning_rate_init: float = 1e-2,
        batch_size: Any = 256,
        max_iter: int = 300,
        alpha: float = 0.0,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: float = math.inf,
        tol: float = 1e-4,
        warm_start: bool = False,
        scale: str | None = "standard",
        dequantize: bool = False,
        ema_decay: float | None = None,
        clip_norm: float | None = None,
        schedule: Any = "cosine",
        verbose: Any = False,
        random_state: Any = None,
        device: Any = "auto",
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    def _energy_of(self, x: Tensor, y: Tensor | None, key: Key) -> NormalizingFlowEnergy:  # type: ignore[override]
        return self._field(x, y, key, "dopri5")

    def _loss(self, energy: Energy) -> Rule:
        return VelocityMatching(
            self.coupling, self.path, self.time, label_dropout=self.label_dropout
        )

    @property
    def _takes_no_label(self) -> bool:
        seen = self.condition_
        return seen is not None and seen.classes is not None and self.label_dropout > 0

    def _draw(
        self, n: int, y: Tensor | None, T: float, generator: torch.Generator
    ) -> tuple[Tensor, Tensor | None]:
        z: Tensor = self.flow_.base.sample(n, T=T, generator=generator)
        return self._carried(z, y), z

    def _carried(self, z: Tensor, y: Tensor | None) -> Tensor:
        step = self.energy_.continuous
        assert step is not None
        way = step.path(z, y, method=self.method, n_steps=self.n_steps, guidance=self.guidance)
        return way[-1]

    def velocity(self, t: float, X: Any, y: Any = None) -> Any:
        """The field at time t in rows X, in units of the rows."""
        x, home = self._rows(X)
        c = self._contexts(y, len(x))
        if c is None and self.condition_ is not None:
            if not self._takes_no_label:
                raise ValueError(f"{type(self).__name__} was fitted with y, so it needs y here")
            c = x.new_zeros(len(x), self.condition_.size)
        given = () if c is None else (c,)
        with torch.no_grad():
            v = self.energy_.velocity(torch.tensor(float(t)), x, *given)  # type: ignore[misc]
        return home.give(v * torch.from_numpy(self.coding_.scale).to(v))

    def rectify(self, n_rounds: int = 1, n_samples: int = 2000) -> Self:
        """Learn again on pairs of noise and the model's own samples of it, whose paths do not cross.

        Each round straightens the field, so that fewer steps do.

        Parameters
        ----------
        n_rounds : int
        n_samples : pairs that are drawn in each round
        """
        check_is_fitted(self, "energy_")
        if n_rounds < 1 or n_samples < 1:
            raise ValueError(
                f"n_rounds and n_samples must be at least 1, got {n_rounds} and {n_samples}"
            )
        if self.condition_ is not None:
            raise Unsupported("rectify pairs samples of a model without y; fit it without y")
        for _ in range(n_rounds):
            generator = Key.of(self.random_state).fold("pairs", self._epochs).torch()
            z = self.flow_.base.sample(n_samples, generator=generator)
            with torch.no_grad():
                x = self._carried(z, None)
            rule = VelocityMatching("independent", self.path, self.time)
            rule.to(x.device, x.dtype)
            data = {"x": x, "noise": z}
            solver = self._training(rule, float(n_samples))
            self._run(Plan(self.energy_, rule, solver, None, data), data, None, [], True)
        return self
