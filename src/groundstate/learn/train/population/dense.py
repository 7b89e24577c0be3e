"""One member as a module, and the program of members that are plain multilayer networks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import torch
from torch import Tensor, nn

from groundstate.compute.population.dense import Dense
from groundstate.compute.population.stack import Population
from groundstate.energy.base import Energy
from groundstate.errors import NotApplicable
from groundstate.learn.base import Rule
from groundstate.learn.train.dense import written_head, written_layers


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
) -> Dense:
    """The written-out program of this population; ``NotApplicable`` where there is none."""
    if any(True for _ in rule.parameters()):
        raise NotApplicable(f"{type(rule).__name__} has parameters of its own")
    layers, head = written_layers(energy), written_head(energy, rule, data)
    if layers is None or head is None:
        raise NotApplicable(
            "it is for dense layers in a row under a softmax, squared or logistic loss"
        )
    if data["x"].dtype != population.flat.dtype:
        raise NotApplicable(f"rows are {data['x'].dtype}, parameters {population.flat.dtype}")
    named = [
        replace(
            layer,
            weight=f"energy.{layer.weight}",
            bias=None if layer.bias is None else f"energy.{layer.bias}",
            dropout=None if layer.dropout is None else f"energy.{layer.dropout}",
        )
        for layer in layers
    ]
    return Dense(population.params, population.buffers, named, head)
