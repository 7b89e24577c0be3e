"""Stacks of several labels at once: members and a final estimator that know them all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from groundstate.energy.base import Energy
from groundstate.energy.compose.stacked import Stacked
from groundstate.energy.outputs import OutputsEnergy
from groundstate.models.base import EnergyEstimator


class LabelAnswers(OutputsEnergy):
    r"""A fitted classifier of several labels, :math:`e(x, y) = -\sum_o\log p_o(y_o\mid x)`; without
    ``predict_proba`` it is certain of what it predicts.

    Parameters
    ----------
    d : number of columns that it sees
    sizes : number of classes of each label
    estimator : fitted to class numbers
    method : whose answers are features
    """

    def __init__(self, d: int, sizes: Sequence[int], estimator: Any, method: str) -> None:
        super().__init__(d, sizes)
        self.estimator, self.method = estimator, method

    def config(self) -> dict[str, Any]:
        own = {"estimator": self.estimator, "method": self.method}
        return {"d": self.d, "sizes": list(self.sizes), **own}

    def _asked(self, question: str, x: Tensor) -> Any:
        rows = x if isinstance(self.estimator, EnergyEstimator) else x.cpu().numpy()
        return getattr(self.estimator, question)(rows)

    @torch.no_grad()
    def features(self, x: Tensor) -> Tensor:
        """Probabilities without the first class of each label, scores or class numbers, ``(B, f)``."""
        found = self._asked(self.method, x)
        if isinstance(found, list):
            return torch.cat([torch.as_tensor(p)[:, 1:].to(x) for p in found], 1)
        return torch.as_tensor(found).to(x)

    @torch.no_grad()
    def shares(self, x: Tensor) -> list[Tensor]:
        if not hasattr(self.estimator, "predict_proba"):
            best = torch.as_tensor(np.asarray(self._asked("predict", x))).long().to(x.device)
            return [torch.nn.functional.one_hot(b, k).to(x) for b, k in zip(best.T, self.sizes)]
        found = self._asked("predict_proba", x)
        if not isinstance(found, list):  # the probability that each holds
            found = [torch.stack([1 - p, p], 1) for p in torch.as_tensor(found).T]
        classes = getattr(self.estimator, "classes_", None)
        out = []
        for o, (p, k) in enumerate(zip(found, self.sizes, strict=True)):
            known = classes[o] if isinstance(classes, list) else np.arange(p.shape[1])
            whole = torch.zeros(len(x), k, dtype=x.dtype, device=x.device)
            at = torch.as_tensor(np.asarray(known, np.int64), device=x.device)
            whole[:, at] = torch.as_tensor(p).to(x)
            out.append(whole)
        return out


class StackedLabelsEnergy(OutputsEnergy, Stacked):
    r"""Labels judged by the answers of members, :math:`e(x, y) = e_\text{final}(\varphi(x), y)`.

    Parameters
    ----------
    d : number of features
    sizes : number of classes of each label
    members : energies of x whose answers are :math:`\varphi`
    final : energy of φ and the labels; None knows nothing yet
    passthrough : whether x itself is part of φ
    """

    def __init__(
        self,
        d: int,
        sizes: Sequence[int],
        members: Sequence[Energy] = (),
        final: Energy | None = None,
        passthrough: bool = False,
    ) -> None:
        super().__init__(d, sizes)
        self._seat(members, final, passthrough)

    def config(self) -> dict[str, Any]:
        return {
            "d": self.d, "sizes": list(self.sizes), "members": list(self.members),
            "final": self.final, "passthrough": self.passthrough,
        }  # fmt: skip

    def shares(self, x: Tensor) -> list[Tensor]:
        """The probabilities of the final estimator; equal ones before there is one."""
        if self.final is None:
            return [x.new_full((len(x), k), 1.0 / k) for k in self.sizes]
        final: Any = self.final
        each: list[Tensor] = final.shares(self.features(x))
        return each
