r"""Several named losses as one rule, :math:`L = \sum_k \lambda_k L_k`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from groundstate.compute.reduce import current
from groundstate.energy.base import Energy
from groundstate.learn.base import Batch, Rule, Terms
from groundstate.learn.callbacks import Run
from groundstate.learn.rules.balancing import Balance, Fixed, balance
from groundstate.learn.rules.players import Move, moves_of

PENDING = 256  # steps whose values wait on the device to be summed

Term = Rule | Callable[..., Tensor]
Source = Mapping[str, Tensor] | Callable[[torch.Generator | None], Batch]


class LossTerms(Rule):
    r"""Named terms in one loss, :math:`L = \sum_k \lambda_k L_k`, with weights given or found.

    Parameters
    ----------
    terms : dict of rules or functions
        A function ``(energy, batch, generator) -> Tensor`` gives one loss per row ``(B,)`` or one
        number.
    weights : name, dict or ``Balance``, default="fixed"
        Numbers by term, or how they are found: "uncertainty" (learned scales), "gradnorm" (equal
        pace), "norms" (equal gradient norms), "annealing" (as strong as the first term), "relative"
        (ReLoBRaLo), "dwa" (dynamic weight average). See ``groundstate.learn.rules.balancing``.
    sources : dict, optional
        Rows of a term's own, such as the points where an equation must hold: tensors by variable
        name, or a function of a generator that draws them. The other terms see the batch.
    rows : int, optional
        How many rows of each tensor source a step draws; None takes all.
    shared : function of the energy, optional
        The parameters in which "gradnorm", "norms" and "annealing" compare gradients; all by
        default.

    Examples
    --------
    >>> import torch
    >>> from groundstate.energy import LinearEnergy
    >>> from groundstate.learn import SoftMin, Stochastic, fit
    >>> data = {"x": torch.tensor([[-1.0], [1.0]]), "y": torch.tensor([0, 1])}
    >>> def small(energy, batch, generator=None):
    ...     return sum(p.square().sum() for p in energy.parameters())
    >>> rule = LossTerms({"data": SoftMin(), "small": small}, weights={"small": 0.1})
    >>> solver = Stochastic(max_epochs=3, tol=None)
    >>> history = fit(LinearEnergy(1, 2), data, rule, solver)
    >>> sorted(history.extra)
    ['loss.data', 'loss.small', 'weight.data', 'weight.small']
    """

    def __init__(
        self,
        terms: Mapping[str, Term],
        weights: str | Mapping[str, float] | Balance = "fixed",
        *,
        sources: Mapping[str, Source] | None = None,
        rows: int | None = None,
        shared: Callable[[Energy], Any] | None = None,
    ) -> None:
        super().__init__()
        if not terms:
            raise ValueError("LossTerms needs at least one term, such as {'data': SoftMin()}")
        self.terms = dict(terms)
        self.names = tuple(terms)
        self.rules = nn.ModuleDict({k: t for k, t in terms.items() if isinstance(t, nn.Module)})
        unknown = [name for name in sources or {} if name not in terms]
        if unknown:
            raise ValueError(
                f"sources names {', '.join(map(repr, unknown))}, but the terms are "
                f"{', '.join(self.names)}"
            )
        self.sources = dict(sources or {})
        self.rows, self.shared = rows, shared
        self.balance = balance(weights)
        self.balance.begin(self.names)
        inside = [t for t in terms.values() if isinstance(t, Rule)]
        self.over = next((t.over for t in inside if t.over is not None), None)
        self.needs_gradient = any(t.needs_gradient for t in inside) or len(inside) < len(terms)
        self.smooth = all(t.smooth for t in inside)
        # with moving weights the objectives of two epochs cannot be compared
        self.is_objective = isinstance(self.balance, Fixed) and all(t.is_objective for t in inside)
        self.register_buffer("sums", torch.zeros(len(terms), dtype=torch.float64))
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64))
        self._count = -1  # steps of this epoch, read from the buffer at the first one
        self._pending: list[list[Tensor]] = []
        self.register_state_dict_pre_hook(self._before_state)

    sums: Tensor
    steps: Tensor

    @property
    def weights(self) -> dict[str, float]:
        """The present weights by term."""
        return dict(zip(self.names, self.balance.current.tolist(), strict=True))

    # --- values --------------------------------------------------------------------------

    def forward(
        self, energy: Energy, batch: Batch, *, generator: torch.Generator | None = None
    ) -> Terms:
        size = next(iter(batch.values())).shape[0]
        rows = [self._rows(name, energy, batch, size, generator) for name in self.names]
        weights = self.balance.current.to(rows[0])
        loss = torch.einsum("k,kb->b", weights, torch.stack(rows))  # (B,)
        exact = all(not isinstance(t, Rule) or t.is_exact(energy, batch) for t in self._inside())
        return Terms(loss, lambda: (loss, torch.zeros_like(loss)), exact=exact)

    def mean(
        self,
        energy: Energy,
        batch: Batch,
        weight: Tensor | None = None,
        total: float = 1.0,
        generator: torch.Generator | None = None,
    ) -> tuple[Tensor, Callable[[], Terms]]:
        found = [self._mean(name, energy, batch, weight, total, generator) for name in self.names]
        if self.training and torch.is_grad_enabled():
            self._watch(found, energy, generator)
        return self._total(found), lambda: self(energy, batch, generator=generator)

    def _total(self, values: list[Tensor]) -> Tensor:
        if not isinstance(self.balance, Fixed):
            return self.balance.total(torch.stack(values))
        total = None  # plain numbers: no tensor of weights is needed
        for value, factor in zip(values, self.balance.factors, strict=True):
            part = value if factor == 1.0 else factor * value
            total = part if total is None else total + part
        assert total is not None
        return total

    def _watch(
        self, values: list[Tensor], energy: Energy, generator: torch.Generator | None
    ) -> None:
        """Remember the step and let the balance look at it; nothing comes to the host."""
        if self._count < 0:
            self.to(values[0].device)
            self._count = int(self.steps)
        seen = [v.detach() for v in values]
        if not isinstance(self.balance, Fixed) and self._count % self.balance.every == 0:
            with torch.no_grad():
                self.balance.update(
                    _everywhere(torch.stack(seen)),
                    lambda: self._gradients(values, energy),
                    generator,
                )
        self._pending.append(seen)
        self._count += 1
        if len(self._pending) == PENDING:
            self._flush()

    def _flush(self) -> None:
        """Add the remembered values to the sums, one after the other, however often it is done."""
        if self._pending:
            rows = torch.stack([torch.stack(seen) for seen in self._pending])  # (T, K)
            self._pending = []
            added = torch.cat([self.sums[None], _everywhere(rows).double()])
            self.sums.copy_(added.cumsum(0)[-1])

    @staticmethod
    def _before_state(module: nn.Module, prefix: str, keep_vars: bool) -> None:
        """Bring the buffers up to date when a state is asked for."""
        assert isinstance(module, LossTerms)
        module._flush()
        module.steps.fill_(max(0, module._count))

    def _gradients(self, values: list[Tensor], energy: Energy) -> list[list[Tensor]]:
        chosen = energy.parameters() if self.shared is None else self.shared(energy)
        theta = [p for p in chosen if p.requires_grad]
        found = []
        for value in values:
            grads = torch.autograd.grad(
                value, theta, retain_graph=True, allow_unused=True, materialize_grads=True
            )
            found.append([_everywhere(g) for g in grads])
        return found

    def _mean(
        self,
        name: str,
        energy: Energy,
        batch: Batch,
        weight: Tensor | None,
        total: float,
        generator: torch.Generator | None,
    ) -> Tensor:
        term = self.terms[name]
        if name in self.sources:
            batch, weight = self._source(name, generator), None
        if isinstance(term, Rule):
            return term.mean(energy, batch, weight, total, generator)[0]
        value = term(energy, batch, generator=generator)
        if value.ndim == 0:
            return value
        return value.mean() if weight is None else torch.dot(value, weight) / total

    def _rows(
        self, name: str, energy: Energy, batch: Batch, size: int, generator: torch.Generator | None
    ) -> Tensor:
        term = self.terms[name]
        if name in self.sources:
            batch = self._source(name, generator)
        if isinstance(term, Rule):
            value: Tensor = term(energy, batch, generator=generator).loss
        else:
            value = term(energy, batch, generator=generator)
        if name not in self.sources and value.shape == (size,):
            return value
        return value.mean().expand(size)

    def _source(self, name: str, generator: torch.Generator | None) -> Batch:
        source = self.sources[name]
        if callable(source):
            return source(generator)
        n = next(iter(source.values())).shape[0]
        if self.rows is None or self.rows >= n or not self.training:
            return source
        device = next(iter(source.values())).device
        index = torch.randint(n, (self.rows,), generator=generator, device=device)
        return {k: v[index] for k, v in source.items()}

    # --- what solvers ask ----------------------------------------------------------------

    def end_epoch(self, run: Run) -> None:
        """Write the mean of every term and its weight to the history; balances may change them."""
        self._flush()
        steps = max(1, self._count)
        means = self.sums / steps
        numbers = torch.cat([means, self.balance.current.double()]).tolist()
        k = len(self.names)
        for i, name in enumerate(self.names):
            for kind, number in (("loss", numbers[i]), ("weight", numbers[k + i])):
                run.history.extra.setdefault(f"{kind}.{name}", []).append(number)
                run.logs[f"{kind}.{name}"] = number
        with torch.no_grad():
            self.balance.end_epoch(means)
        self.sums.zero_()
        self._count = 0

    def moves(self, energy: Energy) -> dict[str, Move]:
        """The further players of all terms."""
        return {
            f"{name}.{player}": move
            for name, term in self.terms.items()
            if isinstance(term, Rule)
            for player, move in moves_of(term, energy).items()
        }

    def _inside(self) -> list[Term]:
        return list(self.terms.values())

    def is_exact(self, energy: Energy, batch: Batch) -> bool:
        return all(t.is_exact(energy, batch) for t in self._inside() if isinstance(t, Rule))

    def reason_against(self, energy: Energy, batch: Batch) -> str | None:
        for name, term in self.terms.items():
            if not isinstance(term, Rule):
                continue
            source = self.sources.get(name, batch)
            reason = None if callable(source) else term.reason_against(energy, source)
            if reason is not None:
                return f"the term {name!r}: {reason}"
        return None


def _everywhere(value: Tensor) -> Tensor:
    """The sum over processes: every process must find the same weights."""
    return current().sum(value) if current().world > 1 else value
