"""The proposal as an energy, so that the core's inference minimises, marginalises and samples it."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from groundstate.energy import Energy, Finite


class ProposalEnergy(Energy):
    r"""Energy of a candidate setting,
    :math:`e(y) = -\beta\,\mathrm{EI}_y/\max\mathrm{EI} + \alpha d_y - \log p_{0y}`.

    Parameters
    ----------
    logits : (m,)
        Minus the energies.

    Examples
    --------
    >>> import torch
    >>> from groundstate.infer import minimise
    >>> int(minimise(ProposalEnergy([0.0, 3.0, 1.0]), "y").values["y"])
    1
    """

    logits: Tensor

    def __init__(self, logits: Any) -> None:
        values = torch.from_numpy(np.ascontiguousarray(logits, np.float64))
        super().__init__(y=Finite(len(values)))
        self.register_buffer("logits", values)

    def forward(self, y: Tensor) -> Tensor:
        return -self.logits[y]
