r"""Exact densities of rows by invertible networks."""

from __future__ import annotations

import math
from inspect import signature
from numbers import Integral, Real
from typing import Any, ClassVar

from torch import Tensor

from groundstate import registry
from groundstate.compute.foreign.sklearn import Interval, StrOptions
from groundstate.compute.random import Key
from groundstate.energy.networks.normalizing_flow import NormalizingFlowEnergy
from groundstate.models import settings
from groundstate.models.generative.flows.base import FlowGenerator
from groundstate.models.traits import Traits
from groundstate.nn.flows import FLOWS, Flow

NAMES = tuple(name for name in FLOWS if name != "cnf")  # which is an estimator of its own
FIRST = 1024  # rows that scales of ActNorm start from


@registry.models.register(family="flows", task="generation", role="generator")
class NormalizingFlow(FlowGenerator):
    r"""An invertible network f that maps rows to a normal distribution.

    .. math:: e(x) = -\log N(f(x); 0, I) - \log\left|\det\frac{\partial f}{\partial x}\right|
        = -\log p(x)

    is lowered on the rows: maximum likelihood with exact densities, exact draws :math:`x = f^{-1}(z)` and
    an exact code z of every row.

    ========  ====================================================================================
    nsf       monotone rational-quadratic splines, autoregressive, or ``coupling=True``
    maf       :math:`z_i = x_ie^{s_i(x_{<i})} + t_i(x_{<i})`: densities in one pass, draws in d steps
    iaf       the reverse: draws in one pass, densities in d steps
    realnvp   :math:`z_b = x_be^{s(x_a)} + t(x_a)`: both in one pass
    nice      the same with s = 0, and one scale of each column at the end
    glow      couplings between ActNorm and a matrix in LU form; of images multiscale and convolutional
    planar    :math:`x = z + \hat u\tanh(w^\top z + b)`, few parameters
    radial    :math:`x = z + \beta(z - c)/(\alpha + \|z - c\|)`, few parameters
    ========  ====================================================================================

    Parameters
    ----------
    flow : str or Flow
        A name above, or a ``groundstate.nn.flows.Flow`` of the coded columns, which is copied.
    n_transforms : int
        Maps one after another; of Glow for images in each level.
    bins : int
        Pieces of a spline.
    coupling : bool
        Whether splines move half of the columns by the other half.
    masks : "alternating" or "random"
        Order of the columns, or halves of them, from map to map.
    levels : int
        Squeezes of Glow for images.

    Attributes
    ----------
    flow_ : Flow, the torch module

    Examples
    --------
    >>> from groundstate import NormalizingFlow
    >>> from sklearn.datasets import make_moons
    >>> X, _ = make_moons(500, noise=0.08, random_state=0)
    >>> model = NormalizingFlow(max_iter=20, random_state=0).fit(X)
    >>> model.log_prob_kind_, model.sample(3, random_state=0).shape
    ('exact', (3, 2))
    >>> model.score(X) > -1.3  # nats of a row; a Gaussian has -1.9
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "flow": [StrOptions(set(NAMES)), Flow],
        "n_transforms": [Interval(Integral, 1, None, closed="left")],
        "bins": [Interval(Integral, 2, None, closed="left")],
        "coupling": ["boolean"],
        "masks": [StrOptions({"alternating", "random"})],
        "levels": [Interval(Integral, 1, None, closed="left")],
        "clip_norm": [Interval(Real, 0, None, closed="neither"), None],
    }
    traits = Traits(
        program=None,
        steps="max_iter",
        space={
            "learning_rate_init": settings.Real(1e-4, 1e-2, log=True),
            "n_transforms": settings.Whole(2, 8),
        },
    )

    def __init__(
        self,
        flow: Any = "nsf",
        *,
        n_transforms: int = 3,
        bins: int = 8,
        coupling: bool = False,
        masks: str = "alternating",
        levels: int = 2,
        hidden_layer_sizes: Any = (64, 64),
        activation: str = "relu",
        solver: Any = "adam",
        learning_rate_init: float = 5e-3,
        batch_size: Any = 128,
        max_iter: int = 60,
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
        d, context = x.shape[1], 0 if y is None else y.shape[1]
        if not isinstance(self.flow, str):
            energy = NormalizingFlowEnergy(d, self._network_of(self.flow), context)
            return energy.to(x.device, x.dtype)
        known = signature(FLOWS[self.flow]).parameters
        wanted = {
            "n_transforms": self.n_transforms, "hidden_layer_sizes": list(self._hidden),
            "activation": self.activation, "masks": self.masks, "bins": self.bins,
            "coupling": self.coupling, "levels": self.levels,
        }  # fmt: skip
        options = {name: value for name, value in wanted.items() if name in known}
        energy = NormalizingFlowEnergy(
            d, self.flow, context, options, self._image if self.flow == "glow" else None,
            generator=key.torch(),
        )  # fmt: skip
        energy.to(x.device, x.dtype)
        first = slice(None, FIRST)
        energy.flow.initialise(x[first], None if y is None else y[first])
        return energy

    @property
    def _image(self) -> tuple[int, ...] | None:
        """(C, H, W) of rows that are images."""
        shape = self.event_shape_
        return {2: (1, *shape), 3: shape}.get(len(shape))
