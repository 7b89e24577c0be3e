"""The objective of softmax regression for L-BFGS."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from groundstate.learn.base import Problem
from groundstate.learn.solvers.logistic.objective import SoftmaxObjective


class SoftmaxRows:
    """A linear soft-min: its objective and gradient in one pass, without a graph."""

    def __init__(self, problem: Problem) -> None:
        self.rows = SoftmaxObjective(problem)

    @staticmethod
    def takes(problem: Problem) -> bool:
        """Whether it is a linear soft-min."""
        return SoftmaxObjective.takes(problem)

    def start(self) -> NDArray[np.float64]:
        flat: NDArray[np.float64] = torch.as_tensor(self.rows.start()).reshape(-1).cpu().numpy()
        return flat

    def _theta(self, flat: NDArray[np.float64]) -> Any:
        theta = flat.reshape(self.rows.shape)
        return theta if self.rows.on_host else torch.from_numpy(theta).to(self.rows.x.device)

    def scatter(self, flat: NDArray[np.float64]) -> None:
        self.rows.store(self._theta(flat))

    def value_and_gradient(self, flat: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        value, gradient = self.rows.evaluate(self._theta(flat))
        return value, torch.as_tensor(gradient).reshape(-1).cpu().numpy()
