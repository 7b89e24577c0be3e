"""What an estimator names for its data: an energy, a rule, a solver and a penalty."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor

from groundstate.energy.base import Energy
from groundstate.learn.base import Penalty, Rule, Solver


@dataclass
class Plan:
    """What an estimator is made of; ``data`` defaults to x (and y where there is one)."""

    energy: Energy
    rule: Rule
    solver: Solver | None = None
    penalty: Penalty | None = None
    data: Mapping[str, Tensor] | None = None
