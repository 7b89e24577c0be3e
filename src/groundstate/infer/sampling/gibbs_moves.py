r"""Exact moves: blocks drawn from their distribution given all the rest."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any

import torch
from torch import Tensor
from torch.distributions import Bernoulli, Distribution, Independent

from groundstate.compute.random import Key
from groundstate.infer.exact.grid import Grid, alphabet
from groundstate.infer.sampling.transitions import Move, Outcome, State, Target, Values
from groundstate.math.chains.chain import ChainDistribution
from groundstate.math.distributions.operations import draw
from groundstate.math.info.free_energy import boltzmann_logits


class DistributionMove(Move):
    """Draw a variable from its declared conditional (or chain) distribution."""

    def __init__(self, target: Target, name: str) -> None:
        self.target, self.name = target, name
        self.space = target.energy.spaces[name]

    def distribution(self, values: Values) -> Distribution:
        rest = {n: v for n, v in values.items() if n != self.name}
        target = self.target
        declared = target.energy.ability("conditional", self.name)
        if declared is None:
            chain = target.energy.ability("chain", self.name)
            assert chain is not None
            return ChainDistribution(chain(**target.fixed, **rest), target.T)
        if self.name in target.partly:
            rest.update({self.name: values[self.name], "mask": target.masks[self.name]})
        distribution: Distribution = declared(**target.fixed, **rest, T=target.T)
        return distribution

    def noise(self, n: int, state: State, generator: torch.Generator) -> Sequence[Any]:
        value = state.values[self.name]
        if alphabet(self.space) != 2 or not value.is_floating_point():  # numbers of categories
            return [generator] * n
        return uniforms(n, value, generator)

    def step(self, state: State, noise: Any) -> State:
        generator, u = noise if isinstance(noise, tuple) else (noise, None)
        distribution = self.distribution(state.values)
        base = distribution.base_dist if isinstance(distribution, Independent) else distribution
        rows = state.chains
        if u is not None and isinstance(base, Bernoulli):
            p = torch.sigmoid(base.logits).expand(u.shape)
            new = p.gt_(u) if p.is_contiguous() else (p > u).to(p.dtype)
        elif isinstance(distribution, ChainDistribution):
            shape = (rows,) if distribution.batch_shape[0] == 1 else ()
            new = distribution.sample(shape, generator).reshape(rows, *self.space.shape)
        elif distribution.batch_shape[0] == rows:
            new = draw(distribution, 1, generator)[0]
        else:  # a distribution that depends on nothing has one row
            new = draw(distribution, rows, generator)[:, 0]
        return State({**state.values, self.name: new}, None, None, state.memory)

    def outcomes(self, values: Values) -> Iterable[Outcome]:
        distribution, rows = self.distribution(values), len(values[self.name])
        for v in self.space.enumerate(values[self.name].device, values[self.name].dtype):
            new = v.expand(rows, *self.space.shape)
            p = distribution.log_prob(new).exp()
            yield p.expand(rows), {**values, self.name: new}


class ListMove(Move):
    """Draw some finite variables jointly from the listed energies of all their values."""

    def __init__(self, target: Target, names: tuple[str, ...]) -> None:
        self.target, self.names = target, names
        device, dtype = target.energy.placement(target.fixed)
        spaces = {n: target.energy.spaces[n] for n in names}
        self.grid = Grid(spaces, device=device, dtype=dtype)

    def table(self, values: Values) -> Tensor:
        rest = {n: v for n, v in values.items() if n not in self.names}
        rows = len(next(iter(values.values())))
        if len(self.names) == 1:
            table = self.target.energy.table(self.names[0], **self.target.fixed, **rest)
            return table.expand(rows, -1)
        k = self.grid.size
        listed, _ = self.grid.rows(torch.arange(k, device=self.grid.device), rows)
        known = {**self.target.fixed, **rest}
        repeated = {n: v.repeat_interleave(k, 0) for n, v in known.items()}
        return self.target.energy(**repeated, **listed).reshape(rows, k)

    def noise(self, n: int, state: State, generator: torch.Generator) -> Sequence[Any]:
        like = next(iter(state.values.values()))
        size = (n, state.chains)
        u = torch.rand(size, generator=generator, device=like.device, dtype=torch.float64)
        return list(u)

    def step(self, state: State, noise: Any) -> State:
        table = self.table(state.values)
        code = pick(table, self.target.T, noise)
        new = {n: v[0] for n, v in self.grid.take(code[None]).items()}
        energy = table.gather(1, code[:, None])[:, 0]
        return State({**state.values, **new}, energy, None, state.memory)

    def outcomes(self, values: Values) -> Iterable[Outcome]:
        p = torch.softmax(boltzmann_logits(self.table(values).double(), self.target.T), -1)
        for k in range(self.grid.size):
            code = torch.full((1, len(p)), k, device=p.device)
            new = {n: v[0] for n, v in self.grid.take(code).items()}
            yield p[:, k], {**values, **new}


class SiteMove(Move):
    """Draw one coordinate of a discrete variable from the energies of its values there."""

    def __init__(self, target: Target, name: str, site: int) -> None:
        self.target, self.name, self.site = target, name, site
        size = alphabet(target.energy.spaces[name])
        assert size is not None
        self.size = size

    def table(self, values: Values) -> tuple[Tensor, list[Tensor]]:
        v = values[self.name]
        flat = v.reshape(len(v), -1)
        options = []
        for k in range(self.size):
            changed = flat.clone()
            changed[:, self.site] = k
            options.append(changed.reshape(v.shape))
        known = {**self.target.fixed, **values}
        stacked = {n: u.repeat(self.size, *(1,) * (u.ndim - 1)) for n, u in known.items()}
        stacked[self.name] = torch.cat(options)
        return self.target.energy(**stacked).reshape(self.size, len(v)).T, options  # (C, K)

    def movable(self) -> Tensor | None:
        mask = self.target.masks.get(self.name)
        return None if mask is None else mask.reshape(len(mask), -1)[:, self.site]

    def noise(self, n: int, state: State, generator: torch.Generator) -> Sequence[Any]:
        v = state.values[self.name]
        size = (n, len(v))
        return list(torch.rand(size, generator=generator, device=v.device, dtype=torch.float64))

    def step(self, state: State, noise: Any) -> State:
        table, _ = self.table(state.values)
        v = state.values[self.name]
        flat = v.reshape(len(v), -1).clone()
        code = pick(table, self.target.T, noise)
        movable = self.movable()
        if movable is not None:
            code = torch.where(movable, code, flat[:, self.site].long())
        flat[:, self.site] = code.to(v.dtype)
        energy = table.gather(1, code[:, None])[:, 0]
        return State({**state.values, self.name: flat.reshape(v.shape)}, energy, None, state.memory)

    def outcomes(self, values: Values) -> Iterable[Outcome]:
        table, options = self.table(values)
        p = torch.softmax(boltzmann_logits(table.double(), self.target.T), -1)
        movable = self.movable()
        for k, new in enumerate(options):
            q = p[:, k]
            if movable is not None:
                v = values[self.name].reshape(len(table), -1)[:, self.site]
                q = torch.where(movable, q, (v == k).double())
            yield q, {**values, self.name: new}


class ColourMove(Move):
    """Draw coordinates that do not touch each other, all at once, from their declared energies."""

    def __init__(self, target: Target, name: str, members: list[int]) -> None:
        self.target, self.name, self.members = target, name, members

    def logits(self, values: Values) -> Tensor:
        sites = self.target.energy.ability("sites", self.name)
        assert sites is not None
        table = sites(**self.target.fixed, **values, members=self.members)  # (C, m, K)
        return boltzmann_logits(table, self.target.T)

    def movable(self) -> Tensor | None:
        mask = self.target.masks.get(self.name)
        return None if mask is None else mask[:, self.members]

    def noise(self, n: int, state: State, generator: torch.Generator) -> Sequence[Any]:
        v = state.values[self.name]
        size = (n, len(v), len(self.members))
        return list(torch.rand(size, generator=generator, device=v.device, dtype=torch.float64))

    def step(self, state: State, noise: Any) -> State:
        v = state.values[self.name]
        cumulative = torch.softmax(self.logits(state.values), -1).cumsum(-1)
        u = noise.to(cumulative.dtype)[..., None] * cumulative[..., -1:]
        new = (cumulative <= u).sum(-1).clamp_max(cumulative.shape[-1] - 1).to(v.dtype)
        movable = self.movable()
        if movable is not None:
            new = torch.where(movable, new, v[:, self.members])
        changed = v.clone()
        changed[:, self.members] = new
        return State({**state.values, self.name: changed}, None, None, state.memory)

    def outcomes(self, values: Values) -> Iterable[Outcome]:
        p = torch.softmax(self.logits(values).double(), -1)  # (C, m, K)
        v, movable = values[self.name], self.movable()
        if movable is not None:
            own = torch.nn.functional.one_hot(v[:, self.members].long(), p.shape[-1]).to(p)
            p = torch.where(movable[..., None], p, own)
        for chosen in product(range(p.shape[-1]), repeat=len(self.members)):
            q = p.new_ones(len(v))
            for j, k in enumerate(chosen):
                q = q * p[:, j, k]
            new = v.clone()
            new[:, self.members] = torch.tensor(chosen, dtype=v.dtype, device=v.device)
            yield q, {**values, self.name: new}


def pick(table: Tensor, T: float, u: Tensor) -> Tensor:
    """One index per row from the Boltzmann distribution of a table ``(C, K)`` at uniform ``u`` ``(C,)``."""
    cumulative = torch.softmax(boltzmann_logits(table, T), -1).cumsum(-1)
    target = u.to(table.dtype) * cumulative[:, -1]
    return (cumulative <= target[:, None]).sum(-1).clamp_max(table.shape[-1] - 1)


def uniforms(n: int, like: Tensor, generator: torch.Generator) -> Sequence[Any]:
    """``n`` times the generator and uniforms like ``like``; on the CPU from a fast stream."""
    if like.device.type != "cpu" or like.dtype not in (torch.float32, torch.float64):
        size = (n, *like.shape)
        block = torch.rand(size, generator=generator, device=like.device, dtype=like.dtype)
        return [(generator, u) for u in block]
    return _Stream(n, like, generator)


class _Stream(Sequence[tuple[torch.Generator, Tensor]]):
    """Uniforms drawn when they are asked for, in order; ``generator`` seeds them."""

    def __init__(self, n: int, like: Tensor, generator: torch.Generator) -> None:
        import numpy as np

        self.n, self.generator = n, generator
        self.shape, self.dtype = like.shape, like.dtype
        seed = Key.of(generator)
        self.source = np.random.Generator(np.random.SFC64([seed.high, seed.low]))

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, i: Any) -> Any:
        if not 0 <= i < self.n:
            raise IndexError(i)
        if self.dtype == torch.float64:
            return self.generator, torch.from_numpy(self.source.random(tuple(self.shape)))
        count = self.shape.numel()  # 32 bits each: cheaper than floats that are made one by one
        words = torch.from_numpy(self.source.bit_generator.random_raw((count + 1) // 2))
        u = words.view(torch.int32)[:count].to(self.dtype).mul_(2.0**-32).add_(0.5)
        return self.generator, u.view(self.shape)
