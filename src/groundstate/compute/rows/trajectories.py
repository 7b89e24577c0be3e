"""Trajectories as rows: what was seen, done and earned, step by step."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from groundstate.compute.rows.ragged import Ragged
from groundstate.compute.rows.record import Record
from groundstate.compute.rows.segments import sum_items
from groundstate.errors import DataError


@dataclass(frozen=True, eq=False, repr=False)
class Trajectories(Record):
    """Episodes of different length.

    Parameters
    ----------
    observations : Ragged, one item per step, and one more where the last state was seen too
    actions, rewards : Ragged, one item per step, or None

    Examples
    --------
    >>> rows = Trajectories(
    ...     Ragged.of([[0.0, 1.0], [2.0]]), Ragged.of([[1, 0], [1]]), Ragged.of([[0.5, 1.0], [2.0]])
    ... )
    >>> rows, rows.returns().tolist()
    (2 trajectories of 1 to 2 steps: observations (), actions (), rewards (), [1.5, 2.0])
    """

    observations: Ragged
    actions: Ragged | None = None
    rewards: Ragged | None = None

    def returns(self) -> Tensor:
        """The sum of the rewards of every trajectory, ``(n,)``."""
        if self.rewards is None:
            raise DataError("these trajectories have no rewards to add up")
        return sum_items(self.rewards.values, self.rewards.offsets)

    def describe(self) -> str:
        steps = self.observations if self.actions is None else self.actions
        parts = {k: v for k, v in self.parts().items() if isinstance(v, Ragged)}
        listed = ", ".join(f"{k} {v.item_shape}" for k, v in parts.items())
        return f"{len(self)} trajectories of {steps._sizes('steps')}: {listed}"
