"""When a population is one of plain multilayer networks, and its loss one that is written out."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Mapping

import torch
from torch import Tensor, nn

from groundstate.compute.dropout import KeyedDropout
from groundstate.compute.population.dense import Dense, Head, Layer, read_layers
from groundstate.compute.population.stack import Population
from groundstate.energy.base import Energy
from groundstate.learn.base import Rule

_ROWS = 6
_CLOSE = 1e-8


class Objective(nn.Module):
    """One member: its energy and the rule; penalties are added by the step."""

    def __init__(self, energy: Energy, rule: Rule) -> None:
        super().__init__()
        self.energy, self.rule = energy, rule

    def forward(self, batch: Mapping[str, Tensor], weight: Tensor | None) -> Tensor:
        if weight is None:
            return self.rule.mean(self.energy, batch)[0]
        total = weight.sum().clamp_min(torch.finfo(weight.dtype).tiny)
        return torch.dot(self.rule(self.energy, batch).loss, weight) / total


def dense_program(
    population: Population, energy: Energy, rule: Rule, data: Mapping[str, Tensor]
) -> Dense | None:
    """The hand-written program of this population, None where there is none.

    Modules that look like a multilayer network under a known loss are put to the proof: losses and
    gradients at two random θ must be those of the energy and the rule, in double precision.
    """
    layers = _layers(energy)
    if layers is None or set(data) != {"x", "y"} or any(True for _ in rule.parameters()):
        return None
    x, y = data["x"], data["y"]
    if x.ndim != 2 or x.dtype != population.flat.dtype or x.layout != torch.strided:
        return None
    outputs = population.params[layers[-1].weight].shape[1]
    if layers[-1].dropout is not None or layers[-1].activation is not None:
        return None
    heads: tuple[Head, ...]
    if y.dtype == torch.int64 and y.ndim == 1:
        if not bool(((y >= 0) & (y < max(2, outputs))).all()):
            return None
        heads = ("softmax",) if outputs > 1 else ("logistic",)  # one output for two classes
    elif y.is_floating_point() and y.shape[1:] == (outputs,):
        inside = bool(((y >= 0) & (y <= 1)).all())
        heads = ("squared", "logistic") if inside else ("squared",)
    else:
        return None
    for head in heads:
        found = _proof(energy, rule, layers, head, x[:_ROWS], y[:_ROWS])
        if found is not None:
            return Dense(population, layers, head, *found)
    return None


def _layers(energy: Energy) -> tuple[Layer, ...] | None:
    total = sum(1 for _ in energy.parameters())
    for name, module in energy.named_modules():
        if name and sum(1 for _ in module.parameters()) == total:
            layers = read_layers(module, f"energy.{name}.")
            if layers is not None:
                return layers
    return None


def _proof(
    energy: Energy, rule: Rule, layers: tuple[Layer, ...], head: Head, x: Tensor, y: Tensor
) -> tuple[float, float] | None:
    """Scale and offset that make the written-out loss the rule's, or None."""
    objective = Objective(copy.deepcopy(energy), copy.deepcopy(rule)).double().cpu().train()
    x, y = x.detach().double().cpu(), y.detach().cpu()
    batch = {"x": x, "y": y.double() if y.is_floating_point() else y}
    generator = torch.Generator().manual_seed(0)
    weight = torch.rand(len(x), generator=generator, dtype=torch.float64) + 0.5
    found: list[tuple[float, float]] = []
    for _ in range(2):
        with torch.no_grad():
            for p in objective.parameters():
                p.copy_(torch.randn(p.shape, generator=generator) / max(1, p.shape[-1]) ** 0.5)
        for module in objective.modules():
            if isinstance(module, KeyedDropout):
                module.count.zero_()
        pair = _compare(objective, layers, head, batch, weight)
        if pair is None:
            return None
        found.append(pair)
    (scale, offset), second = found
    same = abs(scale - second[0]) + abs(offset - second[1]) < 1e-6 * (1 + abs(scale) + abs(offset))
    return (_snap(scale), _snap(offset)) if same else None


def _compare(
    objective: Objective,
    layers: tuple[Layer, ...],
    head: Head,
    batch: dict[str, Tensor],
    weight: Tensor,
) -> tuple[float, float] | None:
    one = Population([objective])  # a copy, also of the counts of dropout
    with warnings.catch_warnings(), torch.enable_grad():
        warnings.simplefilter("ignore")  # the run itself says what there is to say
        try:
            theirs = objective(batch, weight)
            given = torch.autograd.grad(theirs, list(objective.parameters()), allow_unused=True)
        except Exception:  # whatever it is, the run meets it again and says so
            return None
    program = Dense(one, layers, head)
    program.compiled = False
    grads = {name: torch.zeros_like(p) for name, p in one.params.items()}
    ours = program(batch["x"], batch["y"], weight, grads)
    if any(g is None for g in given):
        return None
    a = torch.cat([g.reshape(-1) for g in given])
    b = torch.cat([g.reshape(-1) for g in grads.values()])
    scale = float(a @ b / (b @ b).clamp_min(1e-300))
    if not scale > 0 or not torch.allclose(a, scale * b, rtol=1e-6, atol=_CLOSE * scale):
        return None
    return scale, float(theirs.detach() - scale * ours[0])


def _snap(value: float) -> float:
    """The number that was meant: rounding in the proof must not become a factor."""
    return next((c for c in (0.0, 0.5, 1.0, 2.0) if abs(value - c) < 1e-7), value)


__all__ = ["Objective", "dense_program"]
