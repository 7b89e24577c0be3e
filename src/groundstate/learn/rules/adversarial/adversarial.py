r"""A learned sampler provides the negatives: two players, one energy."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from groundstate.energy.base import Energy
from groundstate.infer.base import Method
from groundstate.learn.base import Batch, Latent, Terms
from groundstate.learn.rules.common import ContrastRule, Plan
from groundstate.learn.rules.inner import held, replace, suggested
from groundstate.learn.rules.negatives.generators import (
    Affine,
    Generator,
    PushForward,
    mmd_squared,
    wider_gaussian,
)
from groundstate.learn.rules.negatives.sources import evaluate
from groundstate.registry import rules


def _made(energy: Energy) -> Adversarial:
    name = "y" if "y" in energy.spaces else "x"
    shape = energy.spaces[name].shape
    d = math.prod(shape)
    net: nn.Module = (
        Affine(d) if len(shape) == 1 else nn.Sequential(Affine(d), nn.Unflatten(1, shape))
    )
    return Adversarial(PushForward(net, noise=d), m=1.0, approximate=suggested(energy))


@rules.register(
    formula=r"\nabla L = \nabla e(x) - E_\varepsilon\nabla e(g(\varepsilon))", make=_made
)
class Adversarial(ContrastRule):
    r""":math:`L = e(x) - E\,e(g(\varepsilon))`. Lowers e on the data, raises e on what a generator
    draws; the generator in turn seeks low energy and entropy.

    The generator descends :math:`E\,e(g(\varepsilon)) - T\,H(p_g)`, the reverse KL divergence to
    the model (``inner``); without the entropy it collapses to a minimum. The energy's loss is unbounded
    below, so one of ``m`` (:math:`L = e(x) + E\max(0, m - e(g(\varepsilon)))`), ``clip`` or
    ``decay`` is required.

    Parameters
    ----------
    generator : ``PushForward`` or module with an attribute ``noise``
        :math:`g`, from noise to the contrasted variable.
    entropy : "mmd", "exact", None or a function ``(draws, generator) -> scalar``
        "mmd" pulls the draws towards :math:`N(\mu_g, \alpha\Sigma_g)` by MMD², which adds
        :math:`\tfrac d2\ln\alpha` nats if reached; "exact" is the log-determinant of a flow; a
        function returns an entropy to be raised.
    weight : float, default=1.0
        Factor of the entropy term.
    alpha : float > 1, default=2.0
    m : float, optional
        Hinge on the energy of generated values.
    clip : float, optional
        Energies count up to ± this.
    decay : float, default=0.0
        Adds :math:`\tfrac{\text{decay}}2\|\theta\|^2` to the energy's loss.
    T : float, default=1.0
    n : int, default=1
        Generated values per row.
    over, latent, approximate
        See ``ContrastRule``.

    Examples
    --------
    >>> from groundstate.energy import NetEnergy
    >>> rule = Adversarial(PushForward(Affine(2), noise=2), m=1.0)
    >>> noise = torch.Generator().manual_seed(0)
    >>> terms = rule(NetEnergy(2), {"x": torch.zeros(8, 2)}, generator=noise)
    >>> terms.is_objective, terms.exact
    (False, False)
    """

    is_objective = False

    def __init__(
        self,
        generator: nn.Module,
        entropy: str | Callable[[Tensor, Any], Tensor] | None = "mmd",
        weight: float = 1.0,
        alpha: float = 2.0,
        m: float | None = None,
        *,
        clip: float | None = None,
        decay: float = 0.0,
        T: float = 1.0,
        n: int = 1,
        over: str | tuple[str, ...] | None = None,
        latent: Latent = "marginalise",
        approximate: Method | Iterable[Method] = (),
    ) -> None:
        super().__init__(over=over, latent=latent, approximate=approximate)
        if not isinstance(generator, PushForward):
            generator = PushForward(generator, int(generator.noise))  # type: ignore[arg-type]
        if isinstance(entropy, str) and entropy not in ("mmd", "exact"):
            raise ValueError(f"entropy must be 'mmd', 'exact', None or a function, got {entropy!r}")
        if not alpha > 1:
            raise ValueError(f"alpha must be above 1, or the target is no wider, got {alpha}")
        self.source = Generator(generator, n)
        self.entropy: Any = entropy
        self.weight, self.alpha, self.T = weight, alpha, T
        self.m, self.clip, self.decay = m, clip, decay
        self.smooth = m is None and clip is None

    def config(self) -> dict[str, Any]:
        return {
            "generator": self.g, "entropy": self.entropy, "weight": self.weight,
            "alpha": self.alpha, "m": self.m, "clip": self.clip, "decay": self.decay, "T": self.T,
            "n": self.source.n, "over": self.over, "latent": self.latent,
            "approximate": self.approximate,
        }  # fmt: skip

    @property
    def g(self) -> PushForward:
        """The generator."""
        return self.source.g

    def forward(
        self, energy: Energy, batch: Batch, *, generator: torch.Generator | None = None
    ) -> Terms:
        plan = self.plan(energy, batch)
        positive = plan.positive(batch, generator)
        e = self.source.draw(plan, energy, batch, generator).energy  # (n, B)
        if self.clip is not None:
            positive = positive.clamp(-self.clip, self.clip)
            e = e.clamp(-self.clip, self.clip)
        if self.m is not None:
            contrast = -functional.relu(self.m - e).mean(0)
        else:
            contrast = e.mean(0)
        if self.decay:
            squares = [p.square().sum() for p in energy.parameters() if p.requires_grad]
            positive = positive + 0.5 * self.decay * torch.stack(squares).sum()
        return Terms(
            positive - contrast, lambda: (positive, contrast), exact=False, is_objective=False
        )

    def inner(
        self, energy: Energy, batch: Batch, generator: torch.Generator | None = None
    ) -> Tensor:
        """The generator's loss, a scalar: energy of its draws minus their entropy; θ is held."""
        plan = self.plan(energy, batch)
        with held(energy):
            values, eps = self.source.values(plan, batch, generator)
            loss = evaluate(plan, batch, values, generator).mean()
            x = values[plan.over[0]].flatten(0, 1).flatten(1)  # (n*B, d)
            return loss + self._entropy_term(x, eps, generator)

    def _entropy_term(self, x: Tensor, eps: Tensor, generator: torch.Generator | None) -> Tensor:
        if self.entropy is None or self.weight == 0:
            return x.new_zeros(())
        if self.entropy == "mmd":
            return self.weight * mmd_squared(x, wider_gaussian(x, self.alpha, generator))
        if self.entropy == "exact":
            # H(p_g) = H(eps) + E log|det dg/deps|; the first term is constant.
            volume = self.g.log_abs_det(eps)
            assert volume is not None
            return -self.T * self.weight * volume.mean()
        return -self.T * self.weight * self.entropy(x, generator)

    def players(self, energy: Energy) -> dict[str, list[Tensor]]:
        """Who moves what: the energy lowers ``forward``'s loss, the generator ``inner``'s."""
        return {"energy": list(energy.parameters()), "generator": list(self.source.parameters())}

    def reason_against(self, energy: Energy, batch: Batch) -> str | None:
        reason = self._names_reason(energy, batch)
        if reason is not None:
            return reason
        reason = self.source.reason_against(energy, self.contrasted(energy))
        if reason is not None:
            return reason
        if self.m is None and self.clip is None and not self.decay > 0:
            return (
                "the energies of generated values can rise without end; bound them with m=, clip= "
                "or decay="
            )
        if self.entropy == "exact" and getattr(self.g.net, "log_abs_det", None) is None:
            return "entropy='exact' needs a flow, a generator with log_abs_det; use entropy='mmd'"
        return self._latent_reason(energy, batch)

    def _route(self, plan: Plan, energy: Energy) -> Plan:
        return replace(plan, route="generator", exact=False)
