r"""The rows of k-means and what is known about them: labels, bounds, sums per centroid."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from groundstate.compute.reduce import current
from groundstate.compute.tiles import one_blas_thread, over_slices, tile_rows
from groundstate.errors import DataError
from groundstate.learn.solvers.latent.kmeans import lloyd_numba as kernels

PART = 2**15  # rows whose moments are taken together
FEW = 2**13  # rows that one compiled call takes care of
BLOCK = 2**26  # numbers of one table of distances on a GPU


class CentroidRows:
    """Rows of this shard with the state of Lloyd's algorithm; sums are over all shards.

    Compiled kernels with bounds on the CPU, plain torch on a GPU.

    Parameters
    ----------
    x : Tensor, ``(N, d)``
    weight : Tensor, ``(N,)``, or None

    Attributes
    ----------
    mu : Tensor, ``(k, d)`` float64
    label : int32, ``(N,)``
    variance : mean over columns of the weighted variance
    objective : J at the labels and centroids of now
    compared : how often a row was compared with all centroids
    """

    def __init__(self, x: Tensor, weight: Tensor | None) -> None:
        self.x = x
        self.weight = None if weight is None else weight.double()
        self.fast = x.device.type == "cpu"
        if self.fast:
            self.rows: Any = x.detach().contiguous().numpy()
            self.w: Any = np.empty(0) if self.weight is None else self.weight.numpy()
        zero = torch.zeros(x.shape[1], dtype=torch.float64, device=x.device)
        self.total, first, _ = self._moments(zero)
        if not self.total > 0:
            raise DataError("the weights sum to zero; at least one row needs a positive weight")
        # rows are taken about their mean, rounded to their own precision: products lose no digits
        self.origin = (first / self.total).to(x.dtype)
        _, off, square = self._moments(self.origin.double())
        self.spread = float(square.sum())  # Σ w‖x − origin‖²
        self.variance = float((square - off.square() / self.total).mean()) / self.total

    def _moments(self, origin: Tensor) -> tuple[float, Tensor, Tensor]:
        """Weight, sum and sum of squares ``(d,)`` about ``origin``, over all shards."""
        if self.fast:
            x, w, at = self.rows, self.w, origin.numpy()
            if len(x) <= PART and current().world == 1:
                total, one, two = kernels.moments(x, w, at, 0, len(x))
                return total, torch.from_numpy(one), torch.from_numpy(two)
            parts = list(
                over_slices(lambda lo, hi: kernels.moments(x, w, at, lo, hi), len(x), PART)
            )
            weight, first, square = (torch.as_tensor(np.sum(p, axis=0)) for p in zip(*parts))
        else:
            x = self.x.double() - origin
            scaled = x if self.weight is None else x * self.weight[:, None]
            weight = torch.tensor(float(len(x))) if self.weight is None else self.weight.sum()
            first, square = scaled.sum(0), (scaled * x).sum(0)
        sums = {"w": weight.double().to(origin.device), "x": first, "xx": square}
        sums = current().sum_dict(sums)
        return float(sums["w"]), sums["x"], sums["xx"]

    def begin(self, mu: Tensor) -> None:
        """Forget the labels and start from these centroids."""
        k = len(mu)
        self.mu = mu - self.origin.double()
        device = self.x.device
        self.label = torch.full((len(self.x),), -1, dtype=torch.int32, device=device)
        self.shift = torch.zeros(k, dtype=torch.float64, device=device)
        self.n = torch.zeros(k, dtype=torch.float64, device=device)
        self.sums = torch.zeros_like(self.mu)
        self.compared, self.objective = 0.0, float("nan")
        if self.fast:
            self.upper, self.lower = np.empty(len(self.x)), np.empty(len(self.x))

    def run(self, threshold: float, max_iter: int) -> tuple[list[float], bool, bool] | None:
        """All iterations in one compiled call, where one process holds few rows.

        Gives the objective of each, whether it converged, and whether it was because no label
        changed; None where the iterations are to be done one by one.
        """
        if not self.fast or current().world > 1 or len(self.x) > FEW:
            return None
        k, d = self.mu.shape
        mu, n, sums, moved = (t.numpy() for t in (self.mu, self.n, self.sums, self.shift))
        values, done = np.empty(max_iter), 0
        while True:
            with one_blas_thread():  # its many small products
                count, changed, square, compared, empty = kernels.lloyd(
                    self.rows, self.w, self.origin.numpy(), mu, self.label.numpy(), self.upper,
                    self.lower, n, sums, moved, self.spread, self.total, threshold,
                    float((d + 4) * np.finfo(self.rows.dtype).eps), tile_rows(k * d),
                    values[done:],
                )  # fmt: skip
            self.compared += compared
            done += count
            if empty:
                square = self.update()
                values[done] = self.objective
                done += 1
                mu, moved = self.mu.numpy(), self.shift.numpy()
            converged = changed == 0 or square <= threshold
            if converged or done == max_iter:
                self.objective = float(values[done - 1])
                return values[:done].tolist(), converged, changed == 0

    # --- labels --------------------------------------------------------------------------

    def assign(self) -> int:
        """Give every row its nearest centroid; how many rows changed, over all shards."""
        parts = current().sum_dict(self._by_bounds() if self.fast else self._by_table())
        # bounds tell what changed, a table counts anew
        self.n = self.n + parts["n"] if self.fast else parts["n"]
        self.sums = self.sums + parts["x"] if self.fast else parts["x"]
        moved, compared = parts["counts"].tolist()
        self.compared += compared
        return int(moved)

    def _by_bounds(self) -> dict[str, Tensor]:
        x, k, d = self.rows, *self.mu.shape
        slack = float((d + 4) * np.finfo(x.dtype).eps)
        mu = self.mu.numpy().astype(x.dtype)
        half = (0.5 * np.square(mu, dtype=np.float64).sum(1)).astype(x.dtype)
        gap, shift, far = self._geometry(slack)
        label, origin = self.label.numpy(), self.origin.numpy()
        tile = tile_rows(k * d)

        def kernel(lo: int, hi: int) -> Any:
            return kernels.step(
                x, self.w, origin, mu, half, gap, shift, far, label, self.upper, self.lower,
                slack, tile, lo, hi,
            )  # fmt: skip

        n, sums, moved, compared = np.zeros(k), np.zeros((k, d)), 0, 0
        for n_part, x_part, m, c in over_slices(kernel, len(x)):
            n += n_part
            sums += x_part
            moved, compared = moved + m, compared + c
        counts = torch.tensor([moved, compared], dtype=torch.float64)
        return {"n": torch.from_numpy(n), "x": torch.from_numpy(sums), "counts": counts}

    def _geometry(self, slack: float) -> tuple[Any, Any, Any]:
        """Half distances between centroids, own shifts, and the largest shift of the others."""
        mu, shift = self.mu.numpy(), self.shift.numpy() * (1 + slack)
        square = np.einsum("kd,kd->k", mu, mu)
        apart = square[:, None] + square - 2 * (mu @ mu.T) - slack * (square[:, None] + square)
        np.fill_diagonal(apart, np.inf)
        gap = 0.5 * np.sqrt(np.maximum(apart.min(1), 0.0)) * (1 - slack)
        most = int(shift.argmax())
        far = np.full(len(mu), shift[most])
        far[most] = np.delete(shift, most).max(initial=0.0)
        return gap, shift, far

    def _by_table(self) -> dict[str, Tensor]:
        k, d = self.mu.shape
        mu = self.mu.to(self.x.dtype)
        half = 0.5 * mu.square().sum(1)
        old = self.label.long()
        label = torch.empty_like(old)
        n, sums = torch.zeros_like(self.n), torch.zeros_like(self.sums)
        step = max(1, BLOCK // max(k, d))
        number = torch.arange(k, device=old.device)[:, None]
        for at in range(0, len(self.x), step):
            part = self.x[at : at + step] - self.origin
            found = torch.addmm(half, part, mu.T, alpha=-1.0).argmin(1)
            label[at : at + step] = found
            hot = (found == number).double()  # (k, rows): a product sums in a fixed order
            if self.weight is not None:
                hot = hot * self.weight[at : at + step]
            n += hot.sum(1)
            sums += hot @ part.double()
        counts = torch.stack([(label != old).sum(), torch.tensor(len(old), device=n.device)])
        self.label = label.to(torch.int32)
        return {"n": n, "x": sums, "counts": counts.double()}

    # --- centroids -----------------------------------------------------------------------

    def update(self) -> float:
        """Move the centroids to the means of their rows; the sum of their squared moves."""
        n, sums = self.n, self.sums
        # what rounding leaves of a centroid whose rows all went away is not a row
        empty = n <= 1e-12 * self.total
        if bool(empty.any()):
            n, sums, empty = self._relocated(n.clone(), sums.clone(), empty)
        mean = sums / torch.where(empty, 1.0, n)[:, None]
        mu = torch.where(empty[:, None], self.mu, mean)
        self.shift = (mu - self.mu).square().sum(1).sqrt()
        self.mu = mu
        pulled = float((2 * mu * self.sums - self.n[:, None] * mu.square()).sum())
        self.objective = 0.5 * max(0.0, self.spread - pulled) / self.total
        return float(self.shift.square().sum())

    def _relocated(self, n: Tensor, sums: Tensor, empty: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Give each empty centroid the row farthest from its own, with all rows equal to it."""
        distance = self._distances()
        x = self.x.double() - self.origin.double()
        w = torch.ones_like(distance) if self.weight is None else self.weight
        distance = torch.where(w > 0, distance, -1.0)
        empty = empty.clone()
        for z in empty.nonzero().flatten().tolist():
            row, far = self._farthest(x, distance)
            if not far > 0:
                break
            same = (x == row).all(1) & (distance >= 0)
            old = torch.zeros_like(n).index_add_(0, self.label[same].long(), w[same])
            old = current().sum(old)
            n = n - old
            sums = sums - old[:, None] * row
            n[z], sums[z], empty[z] = old.sum(), old.sum() * row, False
            distance = torch.where(same, -1.0, distance)
        return n, sums, empty | (n <= 1e-12 * self.total)

    def _distances(self) -> Tensor:
        parts = zip(self.x.split(2**16), self.label.split(2**16))
        origin = self.origin.double()
        return torch.cat(
            [(x.double() - origin - self.mu[z.long()]).square().sum(1) for x, z in parts]
        )

    def _farthest(self, x: Tensor, distance: Tensor) -> tuple[Tensor, float]:
        """The farthest row over all shards; of equally far ones the first in lexical order."""
        reduce = current()
        far = reduce.max(distance.max())
        rows = reduce.gather(torch.unique(x[distance == far], dim=0))
        return torch.unique(rows, dim=0)[0] if len(rows) else x[0], float(far)

    def centroids(self) -> Tensor:
        """Where the centroids are in the data's own coordinates, ``(k, d)`` float64."""
        return self.mu + self.origin.double()


def nearest(x: Tensor, mu: Tensor, weight: Tensor | None = None) -> tuple[Tensor, float]:
    """Nearest centroid of every row ``(N,)`` int32, and the weighted sum of squared distances."""
    if x.device.type != "cpu":
        return _nearest_by_table(x, mu.detach(), weight)
    rows = x.detach().contiguous().numpy()
    origin = mu.detach().double().mean(0).to(x.dtype)
    centred = (mu.detach().double() - origin.double()).numpy().astype(rows.dtype)
    half = (0.5 * np.square(centred, dtype=np.float64).sum(1)).astype(rows.dtype)
    w = np.empty(0) if weight is None else weight.detach().double().numpy()
    found = np.empty(len(rows), np.int32)
    tile, at = tile_rows(centred.size), origin.numpy()
    parts = over_slices(
        lambda lo, hi: kernels.nearest(rows, w, at, centred, half, found, tile, lo, hi), len(rows)
    )
    total = float(sum(parts))
    return torch.from_numpy(found), total


def _nearest_by_table(x: Tensor, mu: Tensor, weight: Tensor | None) -> tuple[Tensor, float]:
    origin = mu.double().mean(0).to(x.dtype)
    centred = (mu.double() - origin.double()).to(x.dtype)
    half = 0.5 * centred.square().sum(1)
    labels, total = [], torch.zeros((), dtype=torch.float64, device=x.device)
    step = max(1, BLOCK // max(centred.shape))
    for at in range(0, len(x), step):
        part = x[at : at + step] - origin
        label = torch.addmm(half, part, centred.T, alpha=-1.0).argmin(1)
        d2 = (part - centred[label]).double().square().sum(1)
        total += d2.sum() if weight is None else d2 @ weight[at : at + step].double()
        labels.append(label.to(torch.int32))
    return torch.cat(labels), float(total)


__all__ = ["CentroidRows", "nearest"]
