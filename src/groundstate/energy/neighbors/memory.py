"""Rows that are remembered, their weights, and the search for the nearest of them."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from groundstate.compute.modules import LightModule
from groundstate.errors import DataError
from groundstate.math.distances.dissimilarities import TABLES, OfTable, table
from groundstate.math.distances.euclidean import (
    CELLS,
    inverse_root,
    known_metric,
    lowest,
    pairwise,
    power_of,
    reached,
    smallest,
    unit_rows,
)
from groundstate.math.neighbors.nearest import NearestRows
from groundstate.math.neighbors.nearest_device import nearest_on_device
from groundstate.math.neighbors.radius import Ragged, within, within_by


class Memory(LightModule):
    r"""Rows and the k nearest of them; a row of weight w stands in for w rows.

    Parameters
    ----------
    d : number of features
    n_neighbors : how many, in units of weight
    metric : a name (see ``groundstate.math.distances.euclidean.METRICS``) or a function of two rows;
        "precomputed" rows are the distances to all rows that were there when the memory was made
    p : exponent of "minkowski"
    VI : inverse covariance of "mahalanobis"
    w : weights of the features in "minkowski"
    algorithm : "auto", "brute" or "tree"
    n, weighted : room for so many rows, with weights or not, before they are loaded

    Attributes
    ----------
    rows : buffer, ``(n, d)``
    weight : buffer, ``(n,)``, or empty when every row counts once
    root : buffer, ``(d, d)``, or empty; maps rows to where a Mahalanobis distance is Euclidean and
        a weighted one is not weighted
    column : buffer, ``(n,)``; where the distances to each remembered row stand, if precomputed
    """

    rows: Tensor
    weight: Tensor
    root: Tensor
    column: Tensor

    def __init__(
        self,
        d: int,
        n_neighbors: int = 5,
        *,
        metric: str | Callable[[Any, Any], float] = "minkowski",
        p: float = 2.0,
        VI: Any = None,
        w: Any = None,
        algorithm: str = "auto",
        n: int = 0,
        weighted: bool = False,
        stretched: bool = False,
    ) -> None:
        super().__init__()
        known_metric(metric)
        if metric == "haversine" and d != 2:
            raise ValueError(f"'haversine' needs 2 features, latitude and longitude, got {d}")
        self.d, self.n_neighbors, self.algorithm = d, n_neighbors, algorithm
        self.metric, self.p = metric, float(p)
        self.register_buffer("rows", torch.zeros(n, d))
        self.register_buffer("weight", torch.ones(n if weighted else 0))
        root = torch.zeros(0, 0)
        if metric == "mahalanobis":
            root = torch.eye(d) if VI is None else torch.as_tensor(inverse_root(VI))
            if len(root) != d:
                raise ValueError(f"VI must be {d} x {d} for {d} features, got {tuple(root.shape)}")
        elif w is not None or stretched:
            root = torch.eye(d) if w is None else _stretch(w, d, power_of(str(metric), self.p))
        self.stretched = metric != "mahalanobis" and len(root) > 0
        self.register_buffer("root", root)
        given = metric == "precomputed"
        self.register_buffer("column", torch.arange(n if given else 0), persistent=given)
        self._search: tuple[Tensor, Tensor, NearestRows] | None = None  # and what it was made from

    def config(self) -> dict[str, Any]:
        """The constructor's arguments; VI is in the buffer ``root``."""
        return {
            "d": self.d, "n_neighbors": self.n_neighbors, "metric": self.metric, "p": self.p,
            "algorithm": self.algorithm, "n": len(self.rows), "weighted": len(self.weight) > 0,
            **({"stretched": True} if self.stretched else {}),
        }  # fmt: skip

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_search": None}

    def keep(self, x: Tensor, weight: Tensor | None) -> Tensor | None:
        """Remember these rows in place of any others, but none of weight zero.

        Returns
        -------
        Where the rows were kept, ``(n,)``; None where all were.
        """
        kept = None
        if weight is not None and bool((weight == 0).any()):
            kept = weight > 0
            x, weight = x[kept], weight[kept]
        total = float(len(x)) if weight is None else float(weight.sum())
        if total < self.n_neighbors:
            raise DataError(
                f"Expected n_neighbors <= n_samples_fit, but n_neighbors = {self.n_neighbors}, "
                f"n_samples_fit = {total:g}, n_samples = {len(x)}"
            )
        self.rows = x.clone()
        self.weight = x.new_ones(0) if weight is None else weight.to(x.dtype, copy=True)
        self._search = None
        if self.metric == "precomputed":
            every = torch.arange(self.d, device=x.device)
            self.column = every if kept is None else every[kept]
        return kept

    def nearest(self, x: Tensor, k: int) -> tuple[Tensor, Tensor]:
        """Distances (float64) and indices of the k nearest rows, ``(B, k)``, ties to lower index."""
        if callable(self.metric) and not isinstance(self.metric, OfTable):
            return smallest(x, self.rows, k, self.metric)
        if callable(self.metric) or self.metric in TABLES or self.metric == "precomputed":
            step = max(1, CELLS // max(1, len(self.rows)))
            parts = [lowest(self.every(part), k) for part in x.detach().split(step)]
            return reached(torch.cat([a for a, _ in parts])), torch.cat([b for _, b in parts])
        power = power_of(self.metric, self.p)
        if power not in (None, 2.0):
            return smallest(self._placed(x), self._placed(self.rows), k, power)
        if x.is_cuda:
            distance, index = nearest_on_device(self._placed(x), self._placed(self.rows), k)
        else:
            found = self._searched().query(self._placed(x).numpy(), k)
            distance, index = torch.from_numpy(found[0]), torch.from_numpy(found[1])
        return (0.5 * distance.square() if self.metric == "cosine" else distance), index

    def within(self, x: Tensor, radius: float) -> Ragged:
        """All rows at most ``radius`` away from each of x, found in tiles."""
        power = None if callable(self.metric) else power_of(self.metric, self.p)
        if power == 2.0 or self.metric == "mahalanobis":
            if x.is_cuda:
                return within(self._placed(x), self._placed(self.rows), radius)
            search = self._searched()
            return within(self._placed(x), torch.from_numpy(search.rows), radius, search)
        return within_by(self.every, x, len(self.rows), min(radius, sys.float_info.max))

    def _searched(self) -> NearestRows:
        kept = self._search
        if kept is None or kept[0] is not self.rows or kept[1] is not self.root:
            found = NearestRows(self._placed(self.rows).numpy(), self.algorithm)
            kept = self._search = self.rows, self.root, found
        return kept[2]

    def _placed(self, x: Tensor) -> Tensor:
        """Rows where the metric is Euclidean."""
        if self.metric == "cosine":
            return unit_rows(x.detach())
        if len(self.root):
            return x.detach().double() @ self.root.double()
        return x.detach()

    def nothing(self, x: Tensor) -> Tensor:
        """Zeros ``(B,)`` with a gradient in x, which is zero; NaN of rows without a place."""
        if self.metric == "precomputed":  # infinitely far apart are rows that a graph does not join
            x = torch.where(x.isinf(), 0.0, x)
        return 0.0 * x.sum(1)

    def measured(self, x: Tensor, index: Tensor) -> Tensor:
        """Distances to given rows ``(B, m)``, float64 and differentiable in x."""
        if self.metric in TABLES or self.metric == "precomputed":
            return self.every(x).gather(1, index)
        x, rows = x.double(), self.rows.double()[index]
        if callable(self.metric):
            with torch.no_grad():
                flat = [[float(self.metric(a, b)) for b in near] for a, near in
                        zip(x.detach().cpu().numpy(), rows.cpu().numpy(), strict=True)]  # fmt: skip
            return x.new_tensor(flat) + 0.0 * x.sum(1, keepdim=True)
        if self.metric == "cosine":
            return 1 - (unit_rows(x)[:, None] * unit_rows(rows)).sum(-1)
        gap = x[:, None] - rows
        if len(self.root):
            gap = gap @ self.root.double()
        power = power_of(self.metric, self.p)
        return torch.linalg.vector_norm(gap, 2.0 if power is None else power, dim=-1)

    def squared(self, x: Tensor, index: Tensor) -> Tensor:
        """Squared distances to one given row each ``(B,)``, float64 and smooth at distance zero."""
        euclidean = not callable(self.metric) and power_of(self.metric, self.p) == 2.0
        if not euclidean and self.metric != "mahalanobis":
            return self.measured(x, index[:, None])[:, 0].square()
        gap = x.double() - self.rows.double()[index]
        return (gap @ self.root.double() if len(self.root) else gap).square().sum(-1)

    def every(self, x: Tensor) -> Tensor:
        """Distances to all rows ``(B, n)``, float64 and differentiable in x."""
        if isinstance(self.metric, OfTable):
            return self.metric.table(x, self.rows) + self.nothing(x)[:, None]
        if callable(self.metric):
            index = torch.arange(len(self.rows), device=x.device)
            return self.measured(x, index.expand(len(x), -1))
        if self.metric == "precomputed":
            return x.double()[:, self.column]
        if self.metric in TABLES:
            return table(self.metric, x, self.rows)
        x, rows = x.double(), self.rows.double()
        if self.metric == "cosine":
            return 1 - unit_rows(x) @ unit_rows(rows).T
        if len(self.root):
            x, rows = x @ self.root.double(), rows @ self.root.double()
        power = power_of(self.metric, self.p)
        return pairwise(x, rows, 2.0 if power is None else power)

    def units(self, x: Tensor, k: int, own: bool = False) -> tuple[Tensor, Tensor]:
        """Distances and indices of the k nearest, ``(B, k)``, where weight w makes w rows of one.

        The j-th is the row at which the summed weight reaches j. ``own``: x are the rows
        themselves, and none of them counts itself.
        """
        if not own and not len(self.weight):
            return self.nearest(x, k)
        distance, index, weight = self._weighed(x, k, own)
        wanted = torch.arange(1, k + 1, device=x.device) * (1 - 1e-12)
        at = torch.searchsorted(weight.cumsum(1), wanted.double().expand(len(x), k).contiguous())
        at = at.clamp_max(index.shape[1] - 1)
        return distance.gather(1, at), index.gather(1, at)

    def _weighed(self, x: Tensor, k: int, own: bool) -> tuple[Tensor, Tensor, Tensor]:
        """Distances, indices and weights of rows that stand for k; of its own x has one less."""
        distance, index = self.nearest(x, self._enough(k + own))
        weight = self.weight.double()[index] if len(self.weight) else torch.ones_like(distance)
        if own:
            itself = index == torch.arange(len(x), device=index.device)[:, None]
            weight = torch.where(itself, (weight - 1).clamp_min(0), weight)
        return distance, index, weight

    def total(self) -> float:
        """How many rows the remembered ones stand for."""
        return float(self.weight.double().sum()) if len(self.weight) else float(len(self.rows))

    def _enough(self, k: int) -> int:
        """So many rows stand for k, whichever they are."""
        if not len(self.weight):
            return min(k, len(self.rows))
        enough = self.weight.double().sort().values.cumsum(0) >= k * (1 - 1e-12)
        return int(enough.nonzero()[0]) + 1 if bool(enough.any()) else len(self.rows)

    def counted(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Distances, indices and how many rows each stands for, ``(B, m)``; they sum to k.

        Of x that is ``rows`` itself, the very tensor, no row counts itself.
        """
        k, own = self.n_neighbors, x is self.rows
        if not own and not len(self.weight):
            distance, index = self.nearest(x, k)
            return distance, index, torch.ones_like(distance)
        distance, index, weight = self._weighed(x, k, own)
        upto = weight.cumsum(1)
        return distance, index, upto.clamp_max(k) - (upto - weight).clamp_max(k)


def _stretch(w: Any, d: int, power: float | None) -> Tensor:
    """The map after which weighted features count the same, ``(d, d)``."""
    weight = torch.as_tensor(np.asarray(w, dtype=np.float64))
    if power is None or math.isinf(power):
        raise ValueError("weights w of the features are for a Minkowski metric with a finite p")
    if weight.shape != (d,) or bool((weight < 0).any()):
        raise ValueError(
            f"w must hold one weight of at least 0 for each of the {d} features, got "
            f"{weight.tolist()}"
        )
    return torch.diag(weight ** (1.0 / power))
