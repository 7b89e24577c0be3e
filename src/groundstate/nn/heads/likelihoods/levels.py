r"""Likelihoods of tables with columns of categories."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch import distributions as D
from torch.distributions import Distribution
from torch.nn import functional

from groundstate.math.distributions.columns import Joined, LevelColumns
from groundstate.nn.heads.likelihoods.scaled import FLOOR, Scale, ScaledLikelihood


class MixedLikelihood(ScaledLikelihood):
    r"""A table: real columns are normal, columns of categories have a softmax over their levels.

    Columns of x keep their places; a category is its level number. The outputs are the means of
    the real columns, then the logits of the categories, each in the order of the columns.

    Parameters
    ----------
    levels : number of levels of each column, 0 for a real one
    scale, floor : of the real columns, as in ``GaussianLikelihood``

    Examples
    --------
    >>> p = MixedLikelihood([0, 3])
    >>> p.n_outputs, p.n_inputs, p.inputs(torch.tensor([[0.5, 2.0]])).tolist()
    (4, 4, [[0.5, 0.0, 0.0, 1.0]])
    >>> round(p(torch.zeros(1, 4), torch.tensor([[0.0, 2.0]])).item(), 4)  # ½ log 2π + log 3
    2.0176
    """

    name = "mixed"

    def __init__(self, levels: Sequence[int], scale: Scale = 1.0, floor: float = FLOOR) -> None:
        self.levels = [int(k) for k in levels]
        if min(self.levels, default=-1) < 0:
            raise ValueError(
                f"levels are 0 for a real column, else their number, got {list(levels)}"
            )
        self.real = [j for j, k in enumerate(self.levels) if k == 0]
        self.categories = [j for j, k in enumerate(self.levels) if k > 0]
        super().__init__(len(self.real) or 1, scale, floor)
        self.d = len(self.levels)
        self.n_outputs = len(self.real) + sum(self.levels)

    def config(self) -> dict[str, Any]:
        return {"levels": self.levels, "scale": self.scale, "floor": self.floor}

    @property
    def n_inputs(self) -> int:
        return self.n_outputs

    def inputs(self, x: Tensor) -> Tensor:
        hot = [
            functional.one_hot(x[:, j].long(), self.levels[j]).to(x.dtype) for j in self.categories
        ]
        return torch.cat([x[:, self.real], *hot], 1)

    def distribution(self, out: Tensor) -> Distribution:
        parts: list[tuple[list[int], Distribution]] = []
        mean, logits = out.split([len(self.real), sum(self.levels)], 1)
        if self.real:
            normal = D.Normal(mean, self.scales(mean).expand_as(mean), validate_args=False)
            parts.append((self.real, D.Independent(normal, 1, validate_args=False)))
        if self.categories:
            sizes = [self.levels[j] for j in self.categories]
            parts.append((self.categories, LevelColumns(logits, sizes)))
        return Joined(parts)

    def mean(self, out: Tensor) -> Tensor:
        return self.distribution(self._checked(out)).mean

    def check(self, x: Tensor) -> None:
        top = x.new_tensor([k or torch.inf for k in self.levels])
        category = x.new_tensor([bool(k) for k in self.levels]).bool()
        bad = category & ~((x >= 0) & (x < top) & (x == x.round()))
        self._refuse(
            x, bad, f"this column has level numbers below {self.levels[int(bad.nonzero()[0, 1])]}"
            if bool(bad.any()) else "",
        )  # fmt: skip


class CategoricalLikelihood(MixedLikelihood):
    """Every column is a category: ``MixedLikelihood`` without real columns.

    >>> CategoricalLikelihood([2, 2])(torch.zeros(1, 4), torch.tensor([[0.0, 1.0]]))
    tensor([1.3863])
    """

    name = "categorical"

    def __init__(self, levels: Sequence[int]) -> None:
        super().__init__(levels)
        if self.real:
            raise ValueError(
                f"likelihood='categorical' needs levels in every column, got {list(levels)}; use "
                "likelihood='mixed' for tables with real columns"
            )

    def config(self) -> dict[str, Any]:
        return {"levels": self.levels}
