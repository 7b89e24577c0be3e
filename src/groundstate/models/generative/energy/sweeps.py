r"""Block Gibbs sampling of a restricted Boltzmann machine: :math:`z \sim p(z\mid x),\ x \sim p(x\mid z)`."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from groundstate.energy import BilinearEnergy, RestrictedEnergy
from groundstate.energy.undirected.columns import ColumnsDistribution, slots
from groundstate.math.distributions.operations import draw, mode

Machine = BilinearEnergy | RestrictedEnergy
LISTED = 2**14  # states of a layer from which draws are exact
MEANS = 100  # sweeps over which conditional means are averaged


def up(energy: Machine, x: Tensor, y: Tensor | None) -> Tensor:
    """Logits of z, ``(B, l)``."""
    return energy.up(x) if isinstance(energy, BilinearEnergy) else energy.up(x, y)


def down(energy: Machine, z: Tensor, y: Tensor | None) -> Tensor:
    """Inputs of the columns of x, ``(B, F)``."""
    return energy.down(z) if isinstance(energy, BilinearEnergy) else energy.down(z, y)


def visible(energy: Machine, inputs: Tensor, T: float) -> Any:
    """Distribution of x at a temperature."""
    if isinstance(energy, BilinearEnergy):
        return energy.visible(inputs / T)
    return energy.visible(inputs, T)


def bits(logits: Tensor, generator: torch.Generator) -> Tensor:
    u = torch.rand(logits.shape, generator=generator, device=logits.device, dtype=logits.dtype)
    return (u < torch.sigmoid(logits)).to(logits.dtype)


def sweep(
    energy: Machine, x: Tensor, y: Tensor | None, T: float, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """One sweep, hidden then visible: x and z."""
    z = bits(up(energy, x, y) / T, generator)
    return draw(visible(energy, down(energy, z, y), T), 1, generator)[0], z


@torch.no_grad()
def drawn(
    energy: Machine,
    start: Tensor,
    y: Tensor | None,
    T: float,
    burn_in: int,
    generator: torch.Generator,
) -> tuple[Tensor, Tensor]:
    """Rows and hidden bits from chains that start at rows; exact where a layer can be listed."""
    hidden = energy.W.shape[1]
    if y is None and 2**hidden <= LISTED:
        states = energy.spaces["z"].enumerate(start.device, start.dtype)
        p = torch.softmax(energy.over_x(states, T=T), 0)
        z = states[torch.multinomial(p, len(start), True, generator=generator)]
        return draw(visible(energy, down(energy, z, None), T), 1, generator)[0], z
    x, z = start, start.new_empty(0)
    for _ in range(max(burn_in, 1)):
        x, z = sweep(energy, x, y, T, generator)
    return x, z


@torch.no_grad()
def clamped(
    energy: Machine,
    x: Tensor,
    unknown: Tensor,
    y: Tensor | None,
    how: str,
    burn_in: int,
    generator: torch.Generator,
) -> Tensor:
    """Rows whose unknown cells are drawn ("sample"), most probable ("minimise") or at their mean.

    The chain runs with all known cells held; a mean is that of p(x | z) along the chain. A most probable
    row starts where the chain found the lowest free energy, and no single cell can lower it at the end.
    """
    best, lowest = x, None
    for _ in range(max(burn_in, 1)):
        new, _ = sweep(energy, x, y, 1.0, generator)
        x = torch.where(unknown, new, x)
        if how == "minimise":
            F = free_energy(energy, x, y)
            better = torch.ones_like(F, dtype=torch.bool) if lowest is None else lowest > F
            best = torch.where(better[:, None], x, best)
            lowest = F if lowest is None else torch.minimum(F, lowest)
    if how == "sample":
        return x
    if how == "minimise":
        return descended(energy, best, unknown, y, max(burn_in, 1))
    total: Tensor | None = None
    for _ in range(MEANS):
        z = bits(up(energy, x, y), generator)
        inputs = down(energy, z, y)
        seen = expected(energy, inputs)
        total = seen if total is None else total + seen
        x = torch.where(unknown, draw(visible(energy, inputs, 1.0), 1, generator)[0], x)
    assert total is not None
    return torch.where(unknown, columns(energy, total / MEANS), x)


def free_energy(energy: Machine, x: Tensor, y: Tensor | None) -> Tensor:
    """−log Σ_z exp(−e(x, z)), ``(B,)``."""
    return -(energy.over_z(x) if isinstance(energy, BilinearEnergy) else energy.over_z(x, y))


def descended(energy: Machine, x: Tensor, unknown: Tensor, y: Tensor | None, rounds: int) -> Tensor:
    """Rows at a minimum of the free energy in their unknown cells.

    EM moves all cells at once (what z is expected to be, then the best x for it) but stops where one bit
    outweighs what it expects of z; single bits and categories are therefore tried one by one after it.
    """
    levels = (2,) * x.shape[1] if isinstance(energy, BilinearEnergy) else energy.levels
    for _ in range(rounds):
        for _ in range(rounds):
            z = torch.sigmoid(up(energy, x, y))
            new = torch.where(unknown, mode(visible(energy, down(energy, z, y), 1.0)), x)
            still = torch.allclose(new, x, rtol=1e-6, atol=1e-6)
            x = new
            if still:
                break
        before = x
        for j, k in enumerate(levels):
            rows = unknown[:, j].nonzero().squeeze(1)
            if k == 0 or not len(rows):
                continue
            tried = x[rows].repeat(k, 1)
            tried[:, j] = torch.arange(k, device=x.device, dtype=x.dtype).repeat_interleave(
                len(rows)
            )
            given = None if y is None else y[rows].repeat(k, 1)
            F = free_energy(energy, tried, given).reshape(k, len(rows))
            x = x.clone()
            x[rows, j] = F.argmin(0).to(x.dtype)
        if torch.equal(before, x):
            break
    return x


def expected(energy: Machine, inputs: Tensor) -> Tensor:
    """Probabilities of bits and categories and means of reals, ``(B, F)``."""
    if isinstance(energy, BilinearEnergy):
        return torch.sigmoid(inputs)
    out = inputs.clone()
    starts, _ = slots(energy.levels)
    one = [starts[j] for j, k in enumerate(energy.levels) if k == 2]
    out[:, one] = torch.sigmoid(inputs[:, one])
    for j, k in enumerate(energy.levels):
        if k > 2:
            at = slice(starts[j], starts[j] + k)
            out[:, at] = torch.softmax(inputs[:, at], 1)
    return out


def columns(energy: Machine, means: Tensor) -> Tensor:
    """Rows ``(B, d)`` of expected features: of categories the most probable."""
    if isinstance(energy, BilinearEnergy):
        return means
    picked = ColumnsDistribution(means, energy.levels)
    out = picked.mean  # argmax of categories
    starts, _ = slots(energy.levels)
    one = [j for j, k in enumerate(energy.levels) if k <= 2]
    out[:, one] = means[:, [starts[j] for j in one]]
    return out


def base_rates(levels: tuple[int, ...], x: Tensor, weight: Tensor | None) -> Tensor:
    """Visible biases of independent columns with the data's rates, ``(F,)``; no rate is 0 or 1."""
    w = x.new_ones(len(x)) if weight is None else weight.to(x)
    total = w.sum()
    sums = w @ x  # (d,)
    kinds = torch.tensor(levels, device=x.device)
    one = torch.where(kinds == 2, torch.logit((sums + 0.5) / (total + 1.0)), sums / total)
    if all(k in (0, 2) for k in levels):
        return one
    parts = []
    for j, k in enumerate(levels):
        if k in (0, 2):
            parts.append(one[j : j + 1])
        else:
            counts = x.new_zeros(k).index_add_(0, x[:, j].long(), w)
            parts.append(((counts + 1.0) / (total + k)).log())
    return torch.cat(parts)
