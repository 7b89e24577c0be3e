r"""The soft minimum: cross-entropy, maximum likelihood, and everything between two extremes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import torch
from torch import Tensor
from torch.nn import functional

from groundstate.compute.rows import count
from groundstate.energy.base import Energy
from groundstate.energy.exact import marginal_way
from groundstate.infer.base import Method
from groundstate.learn.base import Batch, Latent, Reduction, Terms, reduced
from groundstate.learn.losses.energies import in_float, perceptron_loss
from groundstate.learn.rules.common import (
    ContrastRule,
    Plan,
    check_temperature,
    listable,
    pick,
    table_of,
    terms_of,
)
from groundstate.learn.rules.inner import choose, free_energy_of, replace, suggested, theta_free
from groundstate.learn.rules.missing import split_positive
from groundstate.registry import rules


def softmin_loss(e: Tensor, y: Tensor, T: float = 1.0, reduction: Reduction = "mean") -> Tensor:
    r""":math:`L_T = e_y - F_T`, :math:`F_T = -T\log\sum_k e^{-e_k/T}`, on a table of energies.

    At T = 1 the cross-entropy :math:`-\log p(y)`; at T = 0 the perceptron loss; at T = inf
    :math:`e_y - \operatorname{mean}_k e_k` (the constant :math:`T\log K` is dropped). The gradient
    :math:`\partial L/\partial e_k = 1(k=y) - \operatorname{softmax}(-e/T)_k` does not scale with T.

    Parameters
    ----------
    e : Tensor, ``(B, K)``
        Energies, low is good.
    y : Tensor, ``(B,)`` int64
        Targets; −1 marks a missing one, whose loss is 0.
    T : float in [0, inf], default=1.0
    reduction : {"mean", "sum", "none"}

    Examples
    --------
    >>> e = torch.tensor([[1.0, 2.0, 3.0]]).repeat(3, 1)
    >>> softmin_loss(e, torch.arange(3), reduction="none")
    tensor([0.4076, 1.4076, 2.4076])
    >>> softmin_loss(e, torch.arange(3), T=math.inf, reduction="none")
    tensor([-1.,  0.,  1.])
    """
    return reduced(_rows(e, y, check_temperature(T)), reduction)


def _rows(e: Tensor, y: Tensor, T: float) -> Tensor:
    if T == 1.0:
        return functional.cross_entropy(-e, y, ignore_index=-1, reduction="none")
    if T == 0.0:
        return perceptron_loss(e, y, reduction="none")
    e = in_float(e)
    if math.isinf(T):
        return (pick(e, y) - e.mean(1)).masked_fill(y < 0, 0.0)
    return T * functional.cross_entropy(e * (-1 / T), y, ignore_index=-1, reduction="none")


@rules.register(
    formula=r"L = e_y + T\log\sum_{y'} e^{-e_{y'}/T}",
    make=lambda energy: SoftMin(approximate=suggested(energy)),
)
class SoftMin(ContrastRule):
    r""":math:`L_T = e_y - F_T`. Lowers e on the target, raises e on all values ∝ their probability.

    :math:`F_T = -T\log\sum_{y'} e^{-e_{y'}/T}` is the free energy over the contrasted (and latent)
    variables. T = 1 is cross-entropy or, over all unobserved variables, maximum likelihood; T → 0
    the perceptron; T = inf a uniform push. A normaliser that is declared and free of θ costs
    nothing: the loss is the energy plus a constant.

    Parameters
    ----------
    T : float in [0, inf], default=1.0
        Temperature, also of the sum over latents.
    over, latent, approximate
        See ``ContrastRule``.

    Examples
    --------
    >>> from groundstate.energy import Energy, Finite, Real
    >>> class Line(Energy):
    ...     def forward(self, x, y):
    ...         return x[:, 0] * y
    >>> energy = Line(x=Real(1), y=Finite(3))
    >>> SoftMin()(energy, {"x": torch.ones(2, 1), "y": torch.tensor([0, 2])}).loss
    tensor([0.4076, 2.4076])
    """

    T: float

    def __init__(
        self,
        T: float = 1.0,
        *,
        over: str | tuple[str, ...] | None = None,
        latent: Latent = "marginalise",
        approximate: Method | Iterable[Method] = (),
    ) -> None:
        super().__init__(over=over, latent=latent, approximate=approximate)
        T = check_temperature(T)
        vars(self).update(T=T, temperature=T, smooth=T > 0 and latent != "minimise")

    def extra_repr(self) -> str:
        return f"T={self.T}"

    def forward(
        self, energy: Energy, batch: Batch, *, generator: torch.Generator | None = None
    ) -> Terms:
        plan = self.plan(energy, batch)
        T = self.T
        if plan.route == "table":
            e, y = plan.energies(batch)
            loss = _rows(e, y, T)
            return terms_of(e, y, loss, plan.exact)
        positive = split_positive(self, plan, energy, batch, generator)
        contrast = self._contrast(plan, energy, batch, generator)
        return Terms(positive - contrast, lambda: (positive, contrast), exact=plan.exact)

    def mean(
        self,
        energy: Energy,
        batch: Batch,
        weight: Tensor | None = None,
        total: float = 1.0,
        generator: torch.Generator | None = None,
    ) -> tuple[Tensor, Callable[[], Terms]]:
        plan = self.plan(energy, batch)
        if weight is not None or plan.scores is None or self.T != 1.0:
            return super().mean(energy, batch, weight, total, generator)
        scores = plan.scores(**{name: batch[name] for name in plan.given})
        # one fused forward and backward: no sign pass over the table, no separate mean
        y = batch[plan.over[0]]
        loss = functional.cross_entropy(scores, y, ignore_index=-1)
        e = scores.detach()  # the terms of this very pass, if anybody asks
        return loss, lambda: _terms(in_float(e).neg(), y, plan.exact)

    def _contrast(
        self, plan: Plan, energy: Energy, batch: Batch, generator: torch.Generator | None
    ) -> Tensor:
        rows = count(batch[plan.over[0]])
        if plan.route == "normalised":
            device, dtype = energy.placement(batch)
            return torch.zeros(rows, device=device, dtype=dtype)
        free = self._free(plan.over, plan.latents)
        whole = plan.view if self.latent == "minimise" else energy
        value = free_energy_of(whole, free, plan.known(batch), self.T, plan.method, generator)
        return value if value.shape[0] == rows else value.expand(rows)

    def _free(self, over: tuple[str, ...], latents: tuple[str, ...]) -> tuple[str, ...]:
        """What the contrast sums over: a minimised latent is no longer there."""
        return over if self.latent == "minimise" else (*over, *latents)

    def reason_against(self, energy: Energy, batch: Batch) -> str | None:
        reason = super().reason_against(energy, batch)
        if reason is not None:
            return reason
        over, latents = self.contrasted(energy), self.latents(energy, batch)
        free = self._free(over, latents)
        if self._is_normalised(energy, free):
            return None
        view = self._view(energy, batch)
        if listable(view, over):
            return None
        whole = view if self.latent == "minimise" else energy
        return self._choose(whole, free)[1]

    def _choose(self, whole: Energy, free: tuple[str, ...]) -> tuple[Method | None, str | None]:
        """The method of the contrast; at T = 0 the sum is a minimum, at T = inf a mean."""
        if self.T == 0:
            return choose(whole, "minimise", free)
        if math.isinf(self.T) and marginal_way(whole, free, self.T) is None:
            return None, (
                f"T=inf is the mean over all values of {', '.join(free)}, which cannot be listed; "
                "use a finite temperature"
            )
        return choose(whole, "marginalise", free, self.approximate)

    def _is_normalised(self, energy: Energy, free: tuple[str, ...]) -> bool:
        return self.T == 1.0 and energy.normalised == frozenset(free)

    def _route(self, plan: Plan, energy: Energy) -> Plan:
        free = self._free(plan.over, plan.latents)
        if self._is_normalised(energy, free):
            return replace(plan, route="normalised")
        if self.variational is None and listable(plan.view, plan.over):
            scores = plan.view.declared("scores", *plan.over)
            table = table_of(plan.view, plan.over[0])
            return replace(plan, route="table", table=table, scores=scores)
        whole = plan.view if self.latent == "minimise" else energy
        method = self._choose(whole, free)[0]
        exact = plan.exact and method is not None and method.exact
        return replace(plan, route="marginalise", method=method, exact=exact)

    def _lists(
        self, energy: Energy, view: Energy, over: tuple[str, ...], free: tuple[str, ...]
    ) -> bool:
        """Whether a table is the way: declared, or there is no normaliser in closed form."""
        if not listable(view, over):
            return False
        declared = view.ability("table", *over) is not None
        closed = self.latent != "minimise" and 0 < self.T < math.inf
        return declared or not closed or energy.ability("log_partition", *free) is None

    def contrast_is_constant(self, energy: Energy) -> bool:
        free = self.contrasted(energy)
        return self._is_normalised(energy, free) or theta_free(energy, free, self.T)


def _terms(e: Tensor, y: Tensor, exact: bool) -> Terms:
    loss = _rows(e, y, 1.0)
    return terms_of(e, y, loss, exact)


@rules.register(
    formula=r"L = -\log p_\theta", make=lambda energy: NLL(approximate=suggested(energy))
)
class NLL(SoftMin):
    r""":math:`L = -\log p_\theta`. Lowers e on the data, raises e on all values ∝ their
    probability.

    Maximum likelihood: ``SoftMin`` at T = 1, with latents summed out, so that
    :math:`L = F_z(\text{data}) + \log Z`, and minimising it minimises
    :math:`\mathrm{KL}(\text{data}\,\|\,p_\theta)`. What is given and not contrasted is not
    modelled.

    Parameters
    ----------
    over, latent, approximate
        See ``ContrastRule``.

    Examples
    --------
    >>> from groundstate.energy import Energy, Finite
    >>> class Coin(Energy):
    ...     def forward(self, x):
    ...         return 0.0 * x
    >>> NLL()(Coin(x=Finite(2)), {"x": torch.tensor([0, 1])}).loss
    tensor([0.6931, 0.6931])
    """

    def __init__(
        self,
        *,
        over: str | tuple[str, ...] | None = None,
        latent: Latent = "marginalise",
        approximate: Method | Iterable[Method] = (),
    ) -> None:
        super().__init__(1.0, over=over, latent=latent, approximate=approximate)
