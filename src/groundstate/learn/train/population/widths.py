r"""Members of different widths in one program: units that are not there stay zero.

A hidden unit whose weights are all zero has activation :math:`\sigma(0) = 0` and hands back
:math:`W^\top\delta = 0`, so neither its incoming nor its outgoing weights ever get a gradient. A
narrow network is therefore a wide one with such units, exactly, for activations that are zero at
zero; no mask is needed.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from groundstate.energy.base import Energy
from groundstate.learn.train.dense import written_layers

ZERO_AT_ZERO = frozenset({None, "relu", "tanh", "silu", "gelu"})
_WORTH = 2**20  # multiply-adds of a step that take as long as what surrounds a step
_SIZES = frozenset({"sizes", "widths", "in_features", "out_features"})


def chain_of(energy: Energy) -> list[nn.Linear] | None:
    """The dense layers of a network that can be widened, in their order; else None."""
    layers = written_layers(energy)
    if layers is None or any(layer.activation not in ZERO_AT_ZERO for layer in layers):
        return None
    named = dict(energy.named_modules())
    found = [named[layer.weight.removesuffix(".weight")] for layer in layers]
    return [layer for layer in found if isinstance(layer, nn.Linear)]


def kind_of(energy: Energy, plain: tuple[type, ...]) -> tuple[Any, ...] | None:
    """What networks of different widths have in common; None where they must not be widened."""
    chain = chain_of(energy)
    if chain is None:
        return None
    found: list[Any] = [chain[0].in_features, chain[-1].out_features, *energy.placement()]
    for name, module in energy.named_modules():
        own = {k: v for k, v in vars(module).items() if k != "training" and isinstance(v, plain)}
        kept = sorted((k, v) for k, v in own.items() if k not in _SIZES)
        found.append((name, type(module), repr(kept), [n for n, _ in module.named_parameters()]))
    return (repr(found),)


def joined(
    groups: Sequence[list[int]], energies: Sequence[Energy], rows: int, plain: tuple[type, ...]
) -> list[list[int]]:
    """Groups of one shape, put together where padding costs less than another program.

    Parameters
    ----------
    groups : numbers of members of one shape each
    rows : of a step
    plain : kinds of attributes that count as settings
    """
    out: list[list[int]] = []
    open_: dict[Any, tuple[int, int]] = {}  # kind: place in out, parameters of its widest member
    order = sorted(groups, key=lambda g: -_parameters(energies[g[0]]))
    for group in order:
        kind, size = kind_of(energies[group[0]], plain), _parameters(energies[group[0]])
        at, widest = open_.get(kind, (-1, 0))
        if kind is not None and at >= 0 and len(group) * rows * (widest - size) < _WORTH:
            out[at] = [*out[at], *group]
            continue
        if kind is not None:
            open_[kind] = len(out), size
        out.append(list(group))
    return [sorted(group) for group in sorted(out, key=min)]


def _parameters(energy: Energy) -> int:
    return sum(p.numel() for p in energy.parameters())


@torch.no_grad()
def widened(energies: Sequence[Energy]) -> list[Energy]:
    """Copies whose hidden layers all have the widths of the widest; themselves where they agree."""
    if len({tuple(p.shape for p in energy.parameters()) for energy in energies}) == 1:
        return list(energies)
    chains = [chain_of(energy) for energy in energies]
    if any(chain is None for chain in chains):
        return list(energies)
    shapes = [[tuple(layer.weight.shape) for layer in chain or ()] for chain in chains]
    most = [
        (max(o), max(i)) for o, i in (zip(*at, strict=True) for at in zip(*shapes, strict=True))
    ]
    out = []
    for energy in energies:
        wide = copy.deepcopy(energy)
        for layer, (rows, columns) in zip(chain_of(wide) or (), most, strict=True):
            layer.weight = nn.Parameter(_padded(layer.weight, (rows, columns)))
            if layer.bias is not None:
                layer.bias = nn.Parameter(_padded(layer.bias, (rows,)))
            layer.out_features, layer.in_features = rows, columns
        out.append(wide)
    return out


def _padded(t: Tensor, shape: tuple[int, ...]) -> Tensor:
    wide = t.new_zeros(shape)
    wide[tuple(slice(n) for n in t.shape)] = t
    return wide


@torch.no_grad()
def narrowed(wide: Sequence[Energy], energies: Sequence[Energy]) -> None:
    """Give what the copies learned back to the members."""
    for copied, energy in zip(wide, energies, strict=True):
        if copied is energy:
            continue
        for own, theirs in zip(energy.parameters(), copied.parameters(), strict=True):
            own.data = theirs[tuple(slice(n) for n in own.shape)].clone()
