r"""What contrastive rules share: latent variables, the route to the contrast, missing targets.

A rule decides *once* per energy and batch layout how its two terms are computed (a ``Plan``) and
then only computes, so that a training step costs its tensor operations and nothing more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NoReturn

import torch
from torch import Tensor, nn

from groundstate.energy.base import Energy
from groundstate.energy.spaces import Binary, Finite, Levels, Sequence, Space
from groundstate.errors import Unsupported
from groundstate.infer.base import Method
from groundstate.learn.base import Batch, Latent, Rule, Terms

TABLE_LIMIT = 2**12  # values of a variable that are listed in one table without being asked to


@dataclass(frozen=True)
class Plan:
    """How a rule computes its terms for one energy and one set of batch names."""

    over: tuple[str, ...]  # contrasted variables
    latents: tuple[str, ...]  # variables the batch does not hold
    given: tuple[str, ...]  # batch names that are not contrasted, context included
    view: Energy  # the energy with its latents summed or minimised out
    positive: Callable[[Batch, torch.Generator | None], Tensor]  # (B,)
    table: Callable[..., Tensor] | None  # all energies of one listable contrasted variable
    route: str  # how the contrast is computed
    exact: bool  # no sampling, search or bound in either term
    method: Method | None = None  # the inference method of the contrast
    scores: Callable[..., Tensor] | None = None  # −table without a sign pass, all targets known

    def known(self, batch: Batch) -> dict[str, Tensor]:
        """The part of the batch that stays as it is."""
        return {name: batch[name] for name in self.given}

    def energies(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Energies ``(B, K)`` of all values and the index ``(B,)`` of the row's own."""
        assert self.table is not None
        target = batch[self.over[0]]
        e = self.table(**{name: batch[name] for name in self.given})
        if target.dtype != torch.int64 or target.ndim != 1:
            target = index_of(self.view.spaces[self.over[0]], target)
        if e.shape[0] != target.shape[0]:
            e = e.expand(target.shape[0], -1)  # nothing is given: one table for all rows
        return e, target


class ContrastRule(Rule):
    r"""Base of the rules :math:`L = e(\text{data}) - R` with an inferred or sampled contrast.

    Parameters
    ----------
    over : str or tuple, optional
        The contrasted variables; None means ``y`` if the energy has it, else ``x``.
    latent : "marginalise", "minimise" or ``Variational``
        What happens to the variables that the batch does not hold: the free energy over them, the
        minimum, or a bound.
    approximate : inference method or tuple of them
        What may be used, in this order, where no exact method applies. Nothing approximate is
        ever used for a sum without being named here.
    """

    temperature: float = 1.0  # at which latents are summed out
    approximate: tuple[Method, ...]
    variational: nn.Module | None
    _planned: tuple[Energy, frozenset[str], Plan] | None

    def __init__(
        self,
        *,
        over: str | tuple[str, ...] | None = None,
        latent: Latent = "marginalise",
        approximate: Method | Iterable[Method] = (),
    ) -> None:
        super().__init__()
        if not isinstance(latent, nn.Module) and latent not in ("marginalise", "minimise"):
            raise ValueError(
                f"latent must be 'marginalise', 'minimise' or a Variational, got {latent!r}"
            )
        methods = (approximate,) if isinstance(approximate, Method) else tuple(approximate)
        # Past `nn.Module.__setattr__`, which small fits feel; and a class attribute would hide a
        # registered submodule of the name `latent`.
        vars(self).update(
            over=over, latent=latent, approximate=methods, variational=None, _planned=None
        )
        if isinstance(latent, nn.Module):
            self.variational = latent

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_planned": None}

    # --- deciding ------------------------------------------------------------------------

    def plan(self, energy: Energy, batch: Batch) -> Plan:
        """The plan for this energy and these batch names, made on first use."""
        planned = self._planned
        if planned is not None and planned[0] is energy and batch.keys() == planned[1]:
            return planned[2]
        self.require(energy, batch)
        plan = self._make_plan(energy, batch)
        self._planned = (energy, frozenset(batch), plan)
        self._first_use(energy, plan)
        return plan

    def is_exact(self, energy: Energy, batch: Batch) -> bool:
        return self.reason_against(energy, batch) is None and self.plan(energy, batch).exact

    def reason_against(self, energy: Energy, batch: Batch) -> str | None:
        return self._names_reason(energy, batch) or self._latent_reason(energy, batch)

    def _names_reason(self, energy: Energy, batch: Batch) -> str | None:
        wanted = (self.over,) if isinstance(self.over, str) else self.over or ()
        unknown = [name for name in wanted if name not in energy.spaces]
        if unknown:
            return (
                f"it has no variable {unknown[0]!r}; its variables are {', '.join(energy.spaces)}"
            )
        absent = [name for name in self.contrasted(energy) if name not in batch]
        if absent:
            return f"the batch holds no {absent[0]!r}, which the rule contrasts"
        return None

    def _latent_reason(self, energy: Energy, batch: Batch) -> str | None:
        from groundstate.learn.rules.inner import choose

        latents = self.latents(energy, batch)
        if self.variational is not None:
            if not latents:
                return (
                    "no variable is latent, every one is in the batch, so there is nothing to bound"
                )
            return self.variational.reason_against(energy, latents)  # type: ignore[operator]
        if not latents:
            return None
        return choose(energy, self.latent, latents, self.approximate)[1]

    def _make_plan(self, energy: Energy, batch: Batch) -> Plan:
        from groundstate.learn.rules.inner import hide

        over, latents = self.contrasted(energy), self.latents(energy, batch)
        given = tuple(name for name in batch if name not in over)
        view, exact = hide(energy, latents, self.latent, self.temperature, self.approximate)
        positive = self._positive(energy, view, latents)
        return self._route(Plan(over, latents, given, view, positive, None, "none", exact), energy)

    def _positive(
        self, energy: Energy, view: Energy, latents: tuple[str, ...]
    ) -> Callable[[Batch, torch.Generator | None], Tensor]:
        bound = self.variational
        if bound is not None:
            T = self.temperature

            def bounded(batch: Batch, generator: torch.Generator | None) -> Tensor:
                value: Tensor = bound(energy, latents, batch, T=T, generator=generator)
                return value

            return bounded
        if not latents:
            return lambda batch, generator: energy(**batch)
        return lambda batch, generator: view(**batch)

    def _view(self, energy: Energy, batch: Batch) -> Energy:
        """The energy with its latents hidden, as in the plan; computes nothing."""
        from groundstate.learn.rules.inner import hide

        latents = self.latents(energy, batch)
        return hide(energy, latents, self.latent, self.temperature, self.approximate)[0]

    def refuse(self, energy: Energy, reason: str) -> NoReturn:
        """Raise ``Unsupported`` for a reason that shows only in the values of a batch."""
        raise Unsupported(f"{type(self).__name__} cannot train {type(energy).__name__}: {reason}")

    def _route(self, plan: Plan, energy: Energy) -> Plan:
        """Fill in how the contrast is computed."""
        return plan

    def _first_use(self, energy: Energy, plan: Plan) -> None:
        """Called once when a plan is made, e.g. to warn."""


def listable(energy: Energy, names: tuple[str, ...]) -> bool:
    """Whether the values of these variables are few enough to be listed in one table."""
    if len(names) != 1:
        return False
    space = energy.spaces[names[0]]
    if isinstance(space, Sequence) and energy.ability("chain", *names) is not None:
        return False
    if energy.ability("table", *names) is not None:
        return True
    return space.is_finite and space.size <= TABLE_LIMIT and "lengths" not in energy.context


def table_of(energy: Energy, name: str) -> Callable[..., Tensor]:
    """The declared table, else the generic one; looked up once."""
    declared = energy.ability("table", name)
    if declared is not None:
        return declared
    return lambda **given: energy.table(name, **given)


def index_of(space: Space, value: Tensor) -> Tensor:
    """The place ``(B,)`` of each value in ``space.enumerate()``.

    >>> index_of(Binary(2), torch.tensor([[1.0, 0.0]]))
    tensor([2])
    """
    if isinstance(space, Finite):
        return value
    if isinstance(space, Binary):
        digits, base = value.flatten(1).to(torch.int64), 2
    elif isinstance(space, Sequence) and isinstance(space.item, Finite):
        digits, base = value, space.item.n
    elif isinstance(space, Sequence) and isinstance(space.item, Binary):
        digits, base = value.flatten(1).to(torch.int64), 2
    elif isinstance(space, Levels) and space.is_finite:
        code = torch.zeros(len(value), dtype=torch.int64, device=value.device)
        for j, k in enumerate(space.sizes):
            code = code * k + value[:, j].long()
        return code
    else:
        raise Unsupported(f"{space!r} cannot be listed, so its values have no index")
    weights = base ** torch.arange(digits.shape[1] - 1, -1, -1, device=digits.device)
    return (digits * weights).sum(1)


def pick(e: Tensor, y: Tensor) -> Tensor:
    """``e[i, y_i]``, ``(B,)``; 0 in rows whose target is missing (−1)."""
    chosen = e.gather(1, y.clamp(min=0)[:, None])[:, 0]
    return chosen.masked_fill(y < 0, 0.0)


def terms_of(e: Tensor, y: Tensor, loss: Tensor, exact: bool = True) -> Terms:
    """Losses of rows of a table of energies, as the target's energy and what it is held against."""

    def parts() -> tuple[Tensor, Tensor]:
        positive = pick(e, y)
        return positive, positive - loss

    return Terms(loss, parts, exact=exact)


def check_temperature(T: float) -> float:
    if not T >= 0 or math.isnan(T):
        raise ValueError(f"temperature must be in [0, inf], got T={T}")
    return float(T)


def against_classes(rule: Rule, energy: Energy, batch: Batch, use: str) -> str | None:
    """Why a rule cannot compare the energies of all classes, for the ``use`` it has for them."""
    if "y" not in energy.spaces or energy.ability("table", "y") is None:
        return f"it has no table of class energies, which {use}"
    if "y" not in batch:
        return "the batch holds no 'y', which the rule contrasts"
    if rule.latents(energy, batch):
        return "it has latent variables; use Margin, which sums or minimises them out"
    return None
