r"""A density that flows along a learned field."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any, ClassVar

from torch import Tensor

from groundstate import registry
from groundstate.compute.foreign.sklearn import Interval, StrOptions
from groundstate.compute.random import Key
from groundstate.energy.networks.normalizing_flow import NormalizingFlowEnergy
from groundstate.math.ode import GRADIENTS, METHODS
from groundstate.models.generative.flows.base import FlowGenerator


class ContinuousGenerator(FlowGenerator):
    """Base of the estimators whose map is the solution of a differential equation.

    Parameters
    ----------
    trace : "auto", "exact" or "hutchinson"
        How the divergence of the field is found; "auto" is exact for at most 10 coded columns, and else an
        estimate with random signs that are fixed outside training.
    rtol, atol : float
        Error that a step of dopri5 may have.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "trace": [StrOptions({"auto", "exact", "hutchinson"})],
        "method": [StrOptions({m for m in METHODS if m != "radau"})],
        "n_steps": [Interval(Integral, 1, None, closed="left")],
        "rtol": [Interval(Real, 0, None, closed="neither")],
        "atol": [Interval(Real, 0, None, closed="neither")],
        "gradient": [StrOptions(set(GRADIENTS))],
        "clip_norm": [Interval(Real, 0, None, closed="neither"), None],
    }
    trace: str
    rtol: float
    atol: float

    @property
    def log_prob_kind(self) -> str:
        """Exact up to the solver where the divergence is, else an estimate."""
        step = self.energy_.continuous
        return "exact" if step is not None and step.exact else "estimate"

    def _field(
        self, x: Tensor, y: Tensor | None, key: Key, method: str, **more: Any
    ) -> NormalizingFlowEnergy:
        options = {
            "hidden_layer_sizes": list(self._hidden), "activation": self.activation,
            "trace": self.trace, "method": method, "rtol": self.rtol, "atol": self.atol, **more,
        }  # fmt: skip
        context = 0 if y is None else y.shape[1]
        energy = NormalizingFlowEnergy(x.shape[1], "cnf", context, options, generator=key.torch())
        return energy.to(x.device, x.dtype)


@registry.models.register(family="flows", task="generation", role="generator")
class CNF(ContinuousGenerator):
    r"""A continuous normalising flow: noise is carried to data by a learned field.

    .. math:: \dot x = v_\theta(t, x),\qquad
        e(x) = -\log N(x_0; 0, I) + \int_0^1\mathrm{tr}\,\frac{\partial v}{\partial x}\,dt = -\log p(x)

    with :math:`x_1 = x` and :math:`x_0` found backwards in time. Learned by maximum likelihood through the
    solver; ``FlowMatching`` learns the same kind of field without one, many times faster.

    Parameters
    ----------
    method : {"dopri5", "rk4", "midpoint", "heun", "euler"}
        The solver.
    n_steps : int
        Of methods with fixed steps.
    gradient : {"backprop", "adjoint", "checkpoint"}
        Through the solver: all steps remembered, an equation backwards in time, or steps computed again.

    Attributes
    ----------
    flow_ : Flow, the torch module

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import CNF
    >>> X = np.random.default_rng(0).normal(3.0, 0.5, (100, 1))
    >>> model = CNF(hidden_layer_sizes=(8,), max_iter=3, method="rk4", n_steps=4, random_state=0).fit(X)
    >>> model.log_prob_kind_, model.sample(2, random_state=0).shape
    ('exact', (2, 1))
    """

    def __init__(
        self,
        *,
        hidden_layer_sizes: Any = (64, 64),
        activation: str = "silu",
        trace: str = "auto",
        method: str = "dopri5",
        n_steps: int = 20,
        rtol: float = 1e-5,
        atol: float = 1e-5,
        gradient: str = "backprop",
        solver: Any = "adam",
        learning_rate_init: float = 1e-2,
        batch_size: Any = 256,
        max_iter: int = 50,
        alpha: float = 0.0,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: float = math.inf,
        tol: float = 1e-4,
        warm_start: bool = False,
        scale: str | None = "standard",
        dequantize: bool = False,
        ema_decay: float | None = None,
        clip_norm: float | None = 5.0,
        schedule: Any = "cosine",
        verbose: Any = False,
        random_state: Any = None,
        device: Any = "auto",
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    def _energy_of(self, x: Tensor, y: Tensor | None, key: Key) -> NormalizingFlowEnergy:  # type: ignore[override]
        return self._field(x, y, key, self.method, n_steps=self.n_steps, gradient=self.gradient)
