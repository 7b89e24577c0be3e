"""Every registered energy, every question, every method: what ``explain`` says is what happens.

A method that runs agrees with brute force within its flag (exact to 1e-6, bounds from their side,
estimates within their standard error); one that cannot raises before the energy is evaluated.
"""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from groundstate.energy import Energy
from groundstate.errors import Unreliable, Unsupported
from groundstate.infer import (
    HMC,
    Annealed,
    Gibbs,
    Importance,
    Langevin,
    Method,
    Metropolis,
    Variational,
    explain,
    marginalise,
    minimise,
    sample,
)
from groundstate.infer.dispatch import methods_for
from groundstate.infer.pack import bounds, is_simplex
from groundstate.registry import energies, methods

B = 3
# short runs of the methods whose defaults are made for real work
SHORT: dict[str, Method] = {
    "Annealed": Annealed(n=200, n_temps=20),
    "Gibbs": Gibbs(n_steps=5),
    "HMC": HMC(n_steps=5, n_leapfrog=5),
    "Importance": Importance(n=300),
    "Langevin": Langevin(n_steps=5),
    "Metropolis": Metropolis(n_steps=20),
    "Variational": Variational(n=8, max_iter=8),
}
OPERATIONS = {"minimise": minimise, "marginalise": marginalise, "sample": sample}


def seed(s: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(s)


@dataclass
class Truth:
    """Brute force over a list of values or a fine grid."""

    minimum: Tensor  # (B,)
    free_energy: Tensor  # (B,)
    mean: Tensor  # (B,) mean energy under the distribution
    deviation: Tensor  # (B,) its standard deviation
    listed: bool  # values were listed, not a grid


def axis(energy: Energy, name: str) -> tuple[Tensor, Tensor, Tensor] | None:
    """Values ``(K, *event)``, log weights ``(K,)`` and which of them lie at an open end."""
    space = energy.spaces[name]
    if space.is_finite:
        if space.size > 2**12:
            return None
        values = space.enumerate(dtype=torch.float64)
        return values, torch.zeros(len(values)), torch.zeros(len(values), dtype=torch.bool)
    d = math.prod(space.shape)
    if not space.is_real or is_simplex(space) or d > 2:
        return None
    low, high = bounds(space)
    points = 2001 if d == 1 else 161
    line = torch.linspace(max(low, -12.0), min(high, 12.0), points, dtype=torch.float64)
    w = torch.full((points,), float(line[1] - line[0]), dtype=torch.float64)
    w[[0, -1]] /= 2
    if (low < -12) != (
        high > 12
    ):  # the trapezoid rule is fine where both ends vanish, or neither is open
        w[1:-1:2], w[2:-1:2], w[[0, -1]] = w[1] * 4 / 3, w[1] * 2 / 3, w[1] / 3
    end = torch.zeros(points, dtype=torch.bool)
    end[0], end[-1] = low < -12, high > 12
    grid = torch.cartesian_prod(*[line] * d).reshape(-1, *space.shape)
    log_w = torch.cartesian_prod(*[w.log()] * d).reshape(points**d, -1).sum(1)
    ends = torch.cartesian_prod(*[end] * d).reshape(points**d, -1).any(1)
    return grid, log_w, ends


def truth(energy: Energy, free: tuple[str, ...], given: dict[str, Tensor]) -> Truth | None:
    axes = [axis(energy, name) for name in free]
    if any(a is None for a in axes) or math.prod(len(a[0]) for a in axes) > 40_000:
        return None
    index = list(itertools.product(*(range(len(a[0])) for a in axes)))
    at = torch.tensor(index)  # (K, names)
    values = {name: axes[i][0][at[:, i]] for i, name in enumerate(free)}
    log_w = sum(axes[i][1][at[:, i]] for i in range(len(free)))
    ends = torch.stack([axes[i][2][at[:, i]] for i in range(len(free))]).any(0)
    rows = []
    with torch.no_grad():
        for b in range(B):
            fixed = {n: v[b : b + 1].expand(len(at), *v.shape[1:]) for n, v in given.items()}
            rows.append(energy(**fixed, **values))
    e = torch.stack(rows)  # (B, K)
    p = (log_w - e).softmax(1)
    if bool((p[:, ends].sum(1) > 1e-9).any()):
        return None  # the integral does not converge within the grid, or not at all
    F = -torch.logsumexp(log_w - e, 1)
    listed = all(energy.spaces[n].is_finite for n in free)
    mean = torch.where(p > 0, p * e, 0.0).sum(1)
    deviation = torch.where(p > 0, p * (e - mean[:, None]).square(), 0.0).sum(1).sqrt()
    return Truth(e.min(1).values, F, mean, deviation, listed)


def questions(energy: Energy) -> Iterator[tuple[str, ...]]:
    names = tuple(energy.spaces)
    yield from ((name,) for name in names)
    if len(names) > 1:
        yield names


def run(op: str, energy: Energy, free, given, method: Method | None):
    extra = {"n": 64} if op == "sample" else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Unreliable)  # said in the answer's diagnostics as well
        return OPERATIONS[op](energy, free, given, method=method, generator=seed(1), **extra)


def check_minimum(found, energy: Energy, free, given, known: Truth | None) -> None:
    e = energy(**{k: v for k, v in given.items() if k not in free}, **found.values).detach()
    torch.testing.assert_close(found.energy, e, atol=1e-8, rtol=1e-8)
    if found.trace is not None:
        assert bool((found.trace.diff(dim=0) <= 0).all())
    if known is None:
        return
    if known.listed:
        assert bool((found.energy >= known.minimum - 1e-9).all())
    if found.exact:
        assert bool((found.energy <= known.minimum + 1e-6).all())


def check_free_energy(found, known: Truth | None) -> None:
    if known is None:
        return
    gap = (found.value - known.free_energy).detach()
    if found.kind == "exact":
        assert float(gap.abs().max()) < 1e-6
        return
    slack = 4 * found.stderr if found.stderr is not None else torch.zeros(B)
    if found.kind == "upper":
        assert bool((gap >= -slack - 1e-6).all())
    elif found.kind == "lower":
        assert bool((gap <= slack + 1e-6).all())
    else:
        trusted = found.info.get("pareto_k", torch.zeros(B)) <= 0.7
        if "ess" in found.info:
            trusted &= found.info["ess"] > 30
        assert bool((gap.abs() <= slack + 1e-5)[trusted].all())


def check_draws(found, energy: Energy, free, given, known: Truth | None) -> None:
    for name in free:
        v, space = found.values[name], energy.spaces[name]
        assert v.shape == (64, B, *space.shape) and not v.requires_grad
        assert bool(space.contains(v.reshape(64 * B, *space.shape)).all())
    assert found.energy.shape == (64, B)
    e = energy(
        **{k: v.repeat(64, *(1,) * (v.ndim - 1)) for k, v in given.items()},
        **{k: v.reshape(64 * B, *v.shape[2:]) for k, v in found.values.items()},
    ).detach()
    torch.testing.assert_close(found.energy.reshape(-1), e, atol=1e-8, rtol=1e-8)
    if found.kind == "exact" and known is not None:
        stderr = known.deviation / 8
        assert bool(((found.energy.mean(0) - known.mean).abs() <= 4.5 * stderr + 1e-6).all())


# a shortest curve for every value; a row placed among all others for every value
LONG = ("LocallyAdaptiveNormalEnergy", "FuzzyMapEnergy", "NeighborMapEnergy")


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize(
    "row",
    [pytest.param(r, id=r.name, marks=[pytest.mark.slow] * (r.name in LONG)) for r in energies],
)
def test_what_explain_says_is_what_happens(row, operation, monkeypatch):
    energy = row.make().double()
    batch = {n: v.double() if v.is_floating_point() else v for n, v in row.batch(B, seed()).items()}
    for free in questions(energy):
        given = {n: v for n, v in batch.items() if n not in free}
        if not given and len(free) == len(energy.spaces):
            energy_rows, rows = {}, 1
        else:
            energy_rows, rows = given, B
        verdicts = dict(explain(energy, operation, free, given))
        known = truth(energy, free, given)
        for method in methods_for(operation):
            name = type(method).__name__
            method = SHORT.get(name, method)
            where = f"{row.name} {operation} {free} by {name}"
            if verdicts[name].startswith("cannot: "):
                with monkeypatch.context() as patch:
                    patch.setattr(type(energy), "forward", _never)
                    with pytest.raises(Unsupported):
                        run(operation, energy, free, given, method)
                continue
            assert verdicts[name] in ("runs, exact", "runs, approximate"), where
            try:
                found = run(operation, energy, free, energy_rows, method)
            except FloatingPointError as reason:  # a real distribution that cannot be normalised
                assert known is None and "no finite minimum" in str(reason), where
                continue
            if operation == "minimise":
                check = known if rows == B else _first(known)
                check_minimum(found, energy, free, energy_rows, check)
            elif operation == "marginalise":
                assert (found.kind == "exact") == (verdicts[name] == "runs, exact"), where
                if known is not None and rows == 1:
                    found = _repeat(found)
                check_free_energy(found, known)
            elif rows == B:
                check_draws(found, energy, free, given, known)


def _never(self: Energy, **_: Tensor) -> Tensor:
    raise AssertionError("the energy was evaluated by a method that cannot run")


def _first(known: Truth | None) -> Truth | None:
    if known is None:
        return None
    parts = (known.minimum, known.free_energy, known.mean, known.deviation)
    return Truth(*(v[:1] for v in parts), known.listed)


def _repeat(found):
    from dataclasses import replace

    stderr = None if found.stderr is None else found.stderr.expand(B)
    info = {k: v.expand(B) for k, v in found.info.items() if isinstance(v, Tensor) and v.ndim == 1}
    return replace(found, value=found.value.expand(B), stderr=stderr, info=info)


def test_every_method_is_registered_and_every_registered_method_is_asked():
    asked = {type(m).__name__ for op in OPERATIONS for m in methods_for(op)}
    assert asked == set(methods.names())
    for row in methods:
        assert row.formula and row.summary
