"""Rows that are numbers only after they were moved to a device: files, stretches, stored pictures."""

from __future__ import annotations

from typing import Self

import torch
from torch import Tensor

from groundstate.compute.rows.base import RowContainer

NOWHERE = torch.device("meta")


class Unread(RowContainer):
    """A container without tensors of its own, whose rows are counted and picked on the host."""

    def floating(self, dtype: torch.dtype) -> Self:
        return self

    def tensors(self) -> tuple[Tensor, ...]:
        return ()

    @property
    def device(self) -> torch.device:
        return NOWHERE

    @property
    def index_device(self) -> torch.device:
        return torch.device("cpu")
