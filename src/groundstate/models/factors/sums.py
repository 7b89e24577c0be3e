"""The sums of the rows that ``partial_fit`` has seen, between calls and in the store."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from groundstate.energy.base import Energy
from groundstate.learn.base import Problem, Rule
from groundstate.learn.solvers.latent.factors.row_sums import RowSums
from groundstate.learn.solvers.latent.factors.spectrum import Summed


class Sums(RowSums):
    """Weight, mean and scatter as plain arrays for the store, and as a problem for a solver."""

    @classmethod
    def added(cls, state: dict[str, Any] | None, x: Tensor, weight: Tensor | None) -> Sums:
        """What was seen before, and these rows."""
        out = cls(x.shape[1], x.device)
        if state is not None:
            out.merge(cls.restored(state, x.device))
        out.update(x, weight)
        return out

    @classmethod
    def restored(cls, state: dict[str, Any], device: torch.device | str = "cpu") -> Sums:
        """The sums of ``kept()``."""
        out = cls(len(state["mean"]), device)
        out.weight, out.rows = float(state["weight"]), int(state["rows"])
        arrays = (
            torch.as_tensor(np.array(state[name]), device=device) for name in ("mean", "scatter")
        )
        out._sums = tuple(arrays)  # type: ignore[assignment]
        return out

    def kept(self) -> dict[str, Any]:
        """As plain arrays."""
        return {
            "weight": self.weight, "rows": self.rows,
            "mean": self.mean.cpu().numpy(), "scatter": self.scatter.cpu().numpy(),
        }  # fmt: skip

    def problem(self, energy: Energy, rule: Rule) -> Problem:
        """A problem whose solver asks for moments alone."""
        return Problem(energy, rule, Summed(self))
