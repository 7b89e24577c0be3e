"""Rows that are remembered, their weights, and the search for the nearest of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from groundstate.errors import DataError
from groundstate.math.distances import check_metric, inverse_root, power_of, smallest, unit_rows
from groundstate.math.nearest import NearestRows, nearest_on_device


class Memory(nn.Module):
    r"""Rows and the k nearest of them; a row of weight w stands in for w rows.

    Parameters
    ----------
    d : number of features
    n_neighbors : how many, in units of weight
    metric : "minkowski", "euclidean", "manhattan", "chebyshev", "cosine", "mahalanobis" or a function
    p : exponent of "minkowski"
    VI : inverse covariance of "mahalanobis"
    algorithm : "auto", "brute" or "tree"
    n, weighted : room for so many rows, with weights or not, before they are loaded

    Attributes
    ----------
    rows : buffer, ``(n, d)``
    weight : buffer, ``(n,)``, or empty when every row counts once
    root : buffer, ``(d, d)``; maps rows to where a Mahalanobis distance is Euclidean
    """

    rows: Tensor
    weight: Tensor
    root: Tensor

    def __init__(
        self,
        d: int,
        n_neighbors: int = 5,
        *,
        metric: str | Callable[[Any, Any], float] = "minkowski",
        p: float = 2.0,
        VI: Any = None,
        algorithm: str = "auto",
        n: int = 0,
        weighted: bool = False,
    ) -> None:
        super().__init__()
        check_metric(metric)
        self.d, self.n_neighbors, self.algorithm = d, n_neighbors, algorithm
        self.metric, self.p = metric, float(p)
        self.register_buffer("rows", torch.zeros(n, d))
        self.register_buffer("weight", torch.ones(n if weighted else 0))
        root = torch.zeros(0, 0)
        if metric == "mahalanobis":
            root = torch.eye(d) if VI is None else torch.as_tensor(inverse_root(VI))
            if len(root) != d:
                raise ValueError(f"VI must be {d} x {d} for {d} features, got {tuple(root.shape)}")
        self.register_buffer("root", root)
        self._search: NearestRows | None = None

    def config(self) -> dict[str, Any]:
        """The constructor's arguments; VI is in the buffer ``root``."""
        return {
            "d": self.d, "n_neighbors": self.n_neighbors, "metric": self.metric, "p": self.p,
            "algorithm": self.algorithm, "n": len(self.rows), "weighted": len(self.weight) > 0,
        }  # fmt: skip

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_search": None}

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        self._search = None
        return super()._apply(fn, recurse)

    def keep(self, x: Tensor, weight: Tensor | None) -> None:
        """Remember these rows in place of any others."""
        total = float(len(x)) if weight is None else float(weight.sum())
        if total < self.n_neighbors:
            raise DataError(
                f"Expected n_neighbors <= n_samples_fit, but n_neighbors = {self.n_neighbors}, "
                f"n_samples_fit = {total:g}, n_samples = {len(x)}"
            )
        self.rows = x.clone()
        self.weight = x.new_ones(0) if weight is None else weight.to(x.dtype, copy=True)
        self._search = None

    def nearest(self, x: Tensor, k: int) -> tuple[Tensor, Tensor]:
        """Distances (float64) and indices of the k nearest rows, ``(B, k)``, ties to lower index."""
        if callable(self.metric):
            return smallest(x, self.rows, k, self.metric)
        power = power_of(self.metric, self.p)
        if power not in (None, 2.0):
            return smallest(x, self.rows, k, power)
        if x.is_cuda:
            distance, index = nearest_on_device(self._placed(x), self._placed(self.rows), k)
        else:
            if self._search is None:
                self._search = NearestRows(self._placed(self.rows).numpy(), self.algorithm)
            found = self._search.query(self._placed(x).numpy(), k)
            distance, index = torch.from_numpy(found[0]), torch.from_numpy(found[1])
        return (0.5 * distance.square() if self.metric == "cosine" else distance), index

    def _placed(self, x: Tensor) -> Tensor:
        """Rows where the metric is Euclidean."""
        if self.metric == "cosine":
            return unit_rows(x.detach())
        if self.metric == "mahalanobis":
            return x.detach().double() @ self.root.double()
        return x.detach()

    def measured(self, x: Tensor, index: Tensor) -> Tensor:
        """Distances to given rows ``(B, m)``, float64 and differentiable in x."""
        x, rows = x.double(), self.rows.double()[index]
        if callable(self.metric):
            with torch.no_grad():
                flat = [[float(self.metric(a, b)) for b in near] for a, near in
                        zip(x.detach().cpu().numpy(), rows.cpu().numpy(), strict=True)]  # fmt: skip
            return x.new_tensor(flat) + 0.0 * x.sum(1, keepdim=True)
        if self.metric == "cosine":
            return 1 - torch.cosine_similarity(x[:, None], rows, dim=-1)
        gap = x[:, None] - rows
        if self.metric == "mahalanobis":
            gap = gap @ self.root.double()
        power = power_of(self.metric, self.p)
        return torch.linalg.vector_norm(gap, 2.0 if power is None else power, dim=-1)

    def counted(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Distances, indices and how many rows each stands for, ``(B, m)``; they sum to k."""
        k = self.n_neighbors
        if not len(self.weight):
            distance, index = self.nearest(x, k)
            return distance, index, torch.ones_like(distance)
        enough = self.weight.double().sort().values.cumsum(0) >= k * (1 - 1e-12)
        m = int(enough.nonzero()[0]) + 1 if bool(enough.any()) else len(self.rows)
        distance, index = self.nearest(x, m)
        weight = self.weight.double()[index]
        upto = weight.cumsum(1)
        return distance, index, upto.clamp_max(k) - (upto - weight).clamp_max(k)


__all__ = ["Memory"]
