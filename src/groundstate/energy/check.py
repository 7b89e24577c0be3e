r"""Check an energy against first principles: central differences, enumeration, quadrature.

A user writes e and its abilities; ``gradcheck`` compares gradients with
:math:`(e(v + hd) - e(v - hd))/2h` along random directions d and every declared ability with what
the values of e alone say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from groundstate.energy import brute
from groundstate.energy.base import Energy
from groundstate.energy.spaces import Real, Space
from groundstate.errors import GroundstateError, Unsupported
from groundstate.math.distributions.operations import draw

Values = Mapping[str, Tensor]
TEMPERATURES = (1.0, 0.7)


class Mismatch(GroundstateError, AssertionError):
    """A gradient or an ability that disagrees with the values of the energy."""


@dataclass
class Report:
    """What was compared, with the largest error found in each."""

    energy: str
    checks: dict[str, float] = field(default_factory=dict)
    unchecked: list[str] = field(default_factory=list)

    @property
    def worst(self) -> float:
        return max(self.checks.values(), default=0.0)

    def __str__(self) -> str:
        rows = [f"{name:40s} {error:.1e}" for name, error in self.checks.items()]
        rows += [f"{name:40s} too large to check" for name in self.unchecked]
        return "\n".join([self.energy, *rows])

    def add(self, name: str, ours: Tensor, truth: Tensor, tol: float) -> None:
        ours, truth = torch.broadcast_tensors(ours.detach(), truth.detach())
        same = (ours == truth) | (torch.isinf(truth) & (ours > 1e3))
        error = torch.where(same, 0.0, (ours - truth).abs() / (1 + truth.abs()))
        worst = float(error.max()) if error.numel() else 0.0
        self.checks[name] = max(worst, self.checks.get(name, 0.0))
        if not worst <= tol:
            at = int(error.flatten().nan_to_num(torch.inf).argmax())
            raise Mismatch(
                f"{self.energy}: {name} is {ours.flatten()[at]:.8g} where e says "
                f"{truth.flatten()[at]:.8g} (relative error {worst:.1e}, allowed {tol:.0e})"
            )


def gradcheck(energy: Energy, values: Values, *, tol: float = 1e-6, seed: int = 0) -> Report:
    """Compare e's gradients and every declared ability with central differences or brute force.

    Runs on a float64 copy. Sums over more than 2^16 values or more than two real dimensions are
    listed as unchecked.

    Parameters
    ----------
    energy : the energy
    values : a few rows for all of its variables (and, if wanted, its context)
    tol : allowed relative error
    seed : of the random directions

    Returns
    -------
    Report; raises ``Mismatch`` at the first disagreement

    Examples
    --------
    >>> from groundstate.energy import LinearEnergy
    >>> e = LinearEnergy(2, 3, scale=1.0)
    >>> report = gradcheck(e, {"x": torch.ones(4, 2), "y": torch.tensor([0, 1, 2, 0])})
    >>> sorted(report.checks)
    ['gradient of W', 'gradient of b', 'gradient of x', 'table of y']
    """
    energy = deepcopy(energy).double()
    v = {n: t.double() if t.is_floating_point() else t for n, t in values.items()}
    generator = torch.Generator().manual_seed(seed)
    report = Report(type(energy).__name__)
    _gradients(energy, v, report, generator, max(tol, 1e-6))
    for row in energy.capabilities():
        given = {n: t for n, t in v.items() if n not in row.variables}
        case = _Case(energy, row.kind, row.variables, given, v, report, tol, generator)
        if row.kind in _CHECKS and (row.kind != "table" or case.listed):
            _CHECKS[row.kind](case)
    if energy.normalised:
        given = {n: t for n, t in v.items() if n not in energy.normalised}
        truth = _brute(energy, energy.ordered(energy.normalised), given)
        if truth is None:
            report.unchecked.append("normalised")
        else:
            report.add("normalised", torch.zeros(1, dtype=torch.float64), truth, tol)
    if energy.ability("stats") is not None and energy.ability("from_stats") is not None:
        _closed_form(energy, v, report, tol)
    return report


def _gradients(
    energy: Energy, v: Values, report: Report, generator: torch.Generator, tol: float
) -> None:
    held: frozenset[str] = getattr(energy, "held", frozenset())
    real = [n for n, s in energy.spaces.items() if s.is_real and n in v and n not in held]
    leaves = {n: v[n].clone().requires_grad_() for n in real}
    parameters = {n: p for n, p in energy.named_parameters() if p.requires_grad}
    e = energy(**{**v, **leaves})
    names = [*leaves, *parameters]
    if not names or not e.requires_grad:
        return
    grads = torch.autograd.grad(
        e.sum(), [*leaves.values(), *parameters.values()], allow_unused=True
    )
    with torch.no_grad():
        for name, grad in zip(names, grads):
            target = v[name] if name in leaves else parameters[name].data
            d = torch.randn(target.shape, generator=generator, dtype=torch.float64)
            d = torch.where(torch.isfinite(target), d, 0.0)
            if name in leaves:
                d = d * _room(energy.spaces[name], target)
            inner = torch.zeros_like(target) if grad is None else grad
            h = 1e-5
            if name in leaves:
                sides = [energy(**{**v, name: target + s * h * d}) for s in (1, -1)]
                truth = (sides[0] - sides[1]) / (2 * h)
                ours = (inner * d).flatten(1).sum(1) if d.ndim > 1 else inner * d
            else:
                kept = target.clone()
                sides = []
                for s in (1, -1):
                    target.copy_(kept + s * h * d)
                    sides.append(energy(**v).sum())
                target.copy_(kept)
                truth = (sides[0] - sides[1]) / (2 * h)
                ours = (inner * d).sum()
            report.add(f"gradient of {name}", ours, truth, tol)


def _room(space: Space, v: Tensor) -> Tensor:
    """How far a step may go without leaving a bounded space, at most 1."""
    room = torch.ones_like(v)
    if isinstance(space, Real):
        if space.low is not None:
            room = torch.minimum(room, v - space.low)
        if space.high is not None:
            room = torch.minimum(room, space.high - v)
    return room


@dataclass(frozen=True)
class _Case:
    """One declared ability under check."""

    energy: Energy
    kind: str
    names: tuple[str, ...]
    given: dict[str, Tensor]
    values: Values
    report: Report
    tol: float
    generator: torch.Generator

    @property
    def title(self) -> str:
        return f"{self.kind} of {', '.join(self.names)}"

    @property
    def listed(self) -> bool:
        return all(self.energy.spaces[n].size <= brute.LIMIT for n in self.names)

    def call(self, *args: Any, **kwargs: Any) -> Any:
        ability = self.energy.ability(self.kind, *self.names)
        assert ability is not None
        return ability(*args, **self.given, **kwargs)

    def energies(self) -> Tensor:
        return brute.energies(self.energy, self.names, self.given)

    def at(self, value: Tensor) -> Tensor:
        return self.energy(**self.given, **{self.names[0]: value})

    def add(self, ours: Tensor, truth: Tensor, note: str = "", slack: float = 1.0) -> None:
        self.report.add(self.title + note, ours, truth, slack * self.tol)


def _table(case: _Case) -> None:
    case.add(case.energy.table(case.names[0], **case.given), case.energies())


def _argmin(case: _Case) -> None:
    best = case.call().detach()
    e = case.at(best)
    if case.listed:
        case.add(e, case.energies().min(1).values)
        return
    leaf = best.clone().requires_grad_()
    out = case.at(leaf)
    grad = torch.autograd.grad(out.sum(), leaf, allow_unused=True)[0] if out.requires_grad else None
    if grad is not None:
        case.add(grad, torch.zeros_like(grad), " (stationary)", 1e3)
    for scale in (1e-2, 1.0):
        noise = torch.randn(best.shape, generator=case.generator, dtype=best.dtype)
        case.add(torch.minimum(case.at(best + scale * noise), e), e)


def _temperatures(case: _Case) -> Iterator[tuple[float, Any]]:
    """The ability at each temperature that it knows; there must be one."""
    known = 0
    for T in dict.fromkeys((*TEMPERATURES, float(getattr(case.energy, "T", 1.0)))):
        try:
            answer = case.call(T=T)
        except Unsupported:
            continue
        known += 1
        yield T, answer
    if not known:
        raise Mismatch(
            f"{case.report.energy}: {case.title} is declared but holds at no temperature"
        )


def _conditional(case: _Case) -> None:
    for T, distribution in _temperatures(case):
        if case.listed:
            values = case.energy.spaces[case.names[0]].enumerate(None, torch.float64)
            rows = brute.rows_of(case.energy, case.given)
            ours = torch.stack([distribution.log_prob(u.expand(rows, *u.shape)) for u in values], 1)
            case.add(ours, torch.log_softmax(-case.energies() / T, 1))
        else:
            a, b = draw(
                distribution, 2, case.generator
            )  # ratios: the distribution's own normaliser is torch's
            case.add(
                distribution.log_prob(a) - distribution.log_prob(b), (case.at(b) - case.at(a)) / T
            )


def _log_partition(case: _Case) -> None:
    distribution_of = (
        case.energy.ability("conditional", *case.names) if len(case.names) == 1 else None
    )
    for T, ours in _temperatures(case):
        truth = _brute(case.energy, case.names, case.given, T)
        if truth is None and distribution_of is not None:
            distribution = distribution_of(**case.given, T=T)
            value = draw(distribution, 1, case.generator)[0]
            truth = -case.at(value) / T - distribution.log_prob(value)
        if truth is not None:
            case.add(ours, truth)
        elif case.title not in case.report.unchecked:
            case.report.unchecked.append(case.title)


def _brute(
    energy: Energy, names: tuple[str, ...], given: Mapping[str, Tensor], T: float = 1.0
) -> Tensor | None:
    if "lengths" in given:  # listing full sequences would count what stands behind the end
        return None
    return brute.log_partition(energy, names, given, T)


def _chain(case: _Case) -> None:
    case.add(case.call().energy(case.values[case.names[0]]), case.energy(**case.values))


def _step(case: _Case) -> None:
    value = case.values[case.names[0]]
    rows = value.shape[0]
    increments, state = case.call(None)
    if state.rows != rows:
        state = state.pick(torch.zeros(rows, dtype=torch.int64))
        increments = increments.expand(rows, -1)
    total = torch.zeros(rows, dtype=increments.dtype)
    while True:
        at = state.order[state.position]
        symbols = value[:, at]
        if "lengths" in case.given:
            symbols = torch.where(at < case.given["lengths"], symbols, 0)
        total = total + increments.gather(1, symbols[:, None]).squeeze(1)
        state = state.append(symbols)
        if state.done:
            break
        increments, state = case.call(state)
    case.add(total, case.energy(**case.values))


def _closed_form(energy: Energy, v: Values, report: Report, tol: float) -> None:
    """After ``from_stats`` the weighted energy is stationary, and a weight of 2 is a row twice."""
    stats, from_stats = energy.ability("stats"), energy.ability("from_stats")
    assert stats is not None and from_stats is not None
    rows = next(iter(v.values())).shape[0]
    weights = torch.linspace(0.5, 2.0, rows, dtype=torch.float64)
    from_stats(stats(weights, **v))
    parameters = [p for p in energy.parameters() if p.requires_grad]
    grads = torch.autograd.grad((weights * energy(**v)).sum(), parameters)
    for grad in grads:
        report.add("from_stats (stationary)", grad, torch.zeros_like(grad), 1e2 * tol)
    doubled = {n: torch.cat((t, t[:1])) for n, t in v.items()}
    twice = torch.ones(rows, dtype=torch.float64)
    twice[0] = 2.0
    once = stats(twice, **v)
    for key, value in stats(None, **doubled).items():
        report.add(f"stats ({key})", once[key], value, tol)


_CHECKS: dict[str, Callable[[_Case], None]] = {
    "table": _table,
    "argmin": _argmin,
    "conditional": _conditional,
    "log_partition": _log_partition,
    "chain": _chain,
    "step": _step,
}
