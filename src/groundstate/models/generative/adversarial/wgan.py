"""A generator whose critic measures the Wasserstein distance."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from groundstate.compute.foreign.sklearn import Interval, StrOptions
from groundstate.compute.random import Key
from groundstate.energy.base import Energy
from groundstate.learn.base import History, Rule
from groundstate.learn.rules.adversarial.game import Game
from groundstate.models.base import Plan
from groundstate.models.generative.adversarial.players import AdversarialGenerator
from groundstate.registry import models

ROWS = 10_000  # of the data, at most, that the gap is measured on


@models.register(family="adversarial", task="generation", role="generator")
class WGAN(AdversarialGenerator):
    r"""A generator that lowers the Wasserstein distance, which a critic of slope one measures.

    .. math:: \min_G\max_{\|\nabla f\|\le1} E f(x) - E f(G(z)), \qquad e(x) = -f(x)

    The largest gap is :math:`W_1(p, p_G)`, which falls smoothly also where the two distributions do
    not overlap and a discriminator would be certain.

    Parameters
    ----------
    penalty : "gp" or "clip"
        How the slope is bounded: :math:`\lambda E(\|\nabla f(\hat x)\| - 1)^2` at points between real
        and generated rows, or weights within :math:`\pm`\ ``clip``.
    gp_weight : float
        λ.
    clip : float
        Largest weight of the critic, with ``penalty="clip"``.

    Attributes
    ----------
    critic_gap_ : float
        :math:`E f(x) - E f(G(z))` at the end, an estimate of :math:`W_1` between coded rows.

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import WGAN
    >>> X = np.random.default_rng(0).normal(3.0, 2.0, (400, 2)).astype("float32")
    >>> model = WGAN(4, (32,), max_iter=5, random_state=0).fit(X)
    >>> model.sample(3, random_state=0).shape
    (3, 2)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "penalty": [StrOptions({"gp", "clip"})],
        "gp_weight": [Interval(Real, 0, None, closed="neither")],
        "clip": [Interval(Real, 0, None, closed="neither")],
        "scale": [StrOptions({"auto", "standard", "minmax"}), None],
    }
    betas: ClassVar[tuple[float, float]] = (0.0, 0.9)
    penalty: str
    gp_weight: float
    clip: float
    critic_gap_: float

    def __init__(
        self,
        n_components: int = 100,
        hidden_layer_sizes: Sequence[int] = (128, 128),
        activation: str = "leaky_relu",
        *,
        penalty: str = "gp",
        gp_weight: float = 10.0,
        clip: float = 0.01,
        n_critic: int = 5,
        generator: nn.Module | None = None,
        discriminator: nn.Module | None = None,
        solver: Any = "adam",
        learning_rate_init: float = 1e-4,
        batch_size: int = 100,
        max_iter: int = 500,
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

    def _loss(self, energy: Energy) -> Rule:
        strength = self.gp_weight if self.penalty == "gp" else self.clip
        return Game("wasserstein", self.n_critic, self.penalty, strength)

    def _run(self, plan: Plan, data: Any, weight: Any, callbacks: Any, checked: bool) -> History:
        history = super()._run(plan, data, weight, callbacks, checked)
        self.critic_gap_ = gap(plan.energy, data["x"], data.get("y"), weight)
        return history


@torch.no_grad()
def gap(energy: Any, x: Tensor, y: Tensor | None, weight: Tensor | None) -> float:
    """E f(x) − E f(G(z)) over the rows, or evenly chosen ones among very many."""
    keep = slice(None, None, max(1, -(-len(x) // ROWS)))
    x, y = x[keep], None if y is None else y[keep]
    w = torch.ones(len(x), device=x.device) if weight is None else weight[keep]
    w = (w / w.sum()).to(x.dtype)
    made = energy.draw(len(x), y, generator=Key.of(0).fold("gap").torch(x.device))[0]
    given = {} if y is None else {"y": y}
    return float(w @ (energy(x=made, **given) - energy(x=x, **given)))
