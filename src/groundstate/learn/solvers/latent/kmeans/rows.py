r"""The rows of k-means: labels, bounds and sums per centroid, of several runs in one pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from groundstate.compute.mapped import pieces
from groundstate.compute.reduce import current
from groundstate.compute.tiles import one_blas_thread, over_slices, tile_rows
from groundstate.errors import DataError
from groundstate.learn.solvers.latent.kmeans import lloyd_numba as kernels
from groundstate.learn.solvers.latent.kmeans.drawers import row_hashes
from groundstate.learn.solvers.latent.kmeans.table import Table, as_csr

PART = 2**15  # rows whose moments are taken together
SMALL = 2**15  # numbers of a table that NumPy handles: no first fit of it waits for a compiler
FEW = 2**17  # rows times centroids that one compiled call takes care of, without bounds
BOUNDS = ("auto", "lloyd", "hamerly", "yinyang", "elkan")


@dataclass
class CentroidRun:
    """One run of Lloyd's algorithm: its centroids and what is known of every row.

    Attributes
    ----------
    mu : Tensor, ``(k, d)`` float64, about the rows' origin
    label : int32, ``(N,)``
    shift : how far each centroid moved last, ``(k,)``
    n, sums : weight ``(k,)`` and sum ``(k, d)`` of the rows of each centroid
    objective : J at the labels and centroids of now
    compared : how often a row was compared with all centroids
    """

    mu: Tensor
    label: Tensor
    shift: Tensor
    n: Tensor
    sums: Tensor
    group: NDArray[np.int32]
    upper: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    lower: NDArray[np.float64] = field(default_factory=lambda: np.empty((0, 0)))
    objective: float = float("nan")
    compared: float = 0.0


class CentroidRows:
    """Rows of this shard; sums are over all shards.

    Compiled kernels with bounds on the CPU, plain products on a GPU and for sparse rows.

    Parameters
    ----------
    x : Tensor, ``(N, d)``, dense or CSR
    weight : Tensor, ``(N,)``, or None
    bounds : "lloyd" compares every row every time, "hamerly" keeps one lower bound for each row,
        "yinyang" one for each ten centroids, "elkan" one for each centroid; "auto" chooses
    relocate : whether a centroid without rows moves to the row farthest from its own

    Attributes
    ----------
    variance : mean over columns of the weighted variance
    """

    def __init__(
        self, x: Tensor, weight: Tensor | None, bounds: str = "auto", relocate: bool = True
    ) -> None:
        self.x, self.bounds, self.relocate = x, bounds, relocate
        self.weight = None if weight is None else weight.double()
        self.sparse = x.layout == torch.sparse_csr
        self.fast = x.device.type == "cpu" and not self.sparse
        if self.fast:
            self.rows: Any = x.detach().contiguous().numpy()
            self.w: Any = np.empty(0) if self.weight is None else self.weight.numpy()
        else:
            self.table = Table(x, self.weight)
        zero = torch.zeros(x.shape[1], dtype=torch.float64, device=x.device)
        self.total, first, _ = self._moments(zero)
        if not self.total > 0:
            raise DataError("the weights sum to zero; at least one row needs a positive weight")
        # rows are taken about their mean, rounded to their own precision: products lose no digits
        self.origin = (zero if self.sparse else first / self.total).to(x.dtype)
        _, off, square = self._moments(self.origin.double())
        self.spread = float(square.sum())  # Σ w‖x − origin‖²
        self.variance = float((square - off.square() / self.total).mean()) / self.total

    def _moments(self, origin: Tensor) -> tuple[float, Tensor, Tensor]:
        """Weight, sum and sum of squares ``(d,)`` about ``origin``, over all shards."""
        if self.fast:
            x, w, at = self.rows, self.w, origin.numpy()
            if x.size <= SMALL and current().world == 1:
                v = x - at
                u, total = (w, float(w.sum())) if w.size else (np.ones(len(x)), float(len(x)))
                return total, torch.from_numpy(u @ v), torch.from_numpy(u @ (v * v))
            if len(x) <= PART and current().world == 1:
                total, one, two = kernels.moments(x, w, at, 0, len(x))
                return total, torch.from_numpy(one), torch.from_numpy(two)
            parts = list(
                over_slices(lambda lo, hi: kernels.moments(x, w, at, lo, hi), len(x), PART)
            )
            weight, first, square = (torch.as_tensor(np.sum(p, axis=0)) for p in zip(*parts))
        else:
            weight, first, square = self.table.moments(origin)
        sums = {"w": weight.double().to(origin.device), "x": first, "xx": square}
        sums = current().sum_dict(sums)
        return float(sums["w"]), sums["x"], sums["xx"]

    def begin(self, mu: Tensor) -> CentroidRun:
        """A run from these centroids, no row labelled yet."""
        k, n, device = len(mu), self.x.shape[0], self.x.device
        zeros = torch.zeros(k, dtype=torch.float64, device=device)
        start = mu.to(device).double() - self.origin.double()
        label = torch.full((n,), -1, dtype=torch.int32, device=device)
        run = CentroidRun(start, label, zeros, zeros.clone(), torch.zeros_like(start), _NOBODY)
        if self.fast:
            run.group, groups = _groups(start.numpy(), self.bounds)
            run.upper, run.lower = np.empty(n), np.empty((n, groups))
        return run

    @property
    def _slack(self) -> float:
        return float((self.x.shape[1] + 4) * np.finfo(self.rows.dtype).eps)

    def run(
        self, run: CentroidRun, threshold: float, furthest: float, max_iter: int
    ) -> tuple[list[float], list[float], bool, bool] | None:
        """All iterations in one compiled call, where one process holds few rows and no bounds are named.

        Gives the objective and the largest move of each, whether it converged, and whether it was
        because no label changed; None where the iterations are to be done one by one.
        """
        if not self.fast or current().world > 1 or self.bounds not in ("auto", "lloyd"):
            return None
        if len(self.rows) * len(run.mu) > FEW:
            return None
        rows = self.rows - self.origin.numpy()
        values, moves, done = np.empty(max_iter), np.empty(max_iter), 0
        while True:
            mu, n, sums, moved = (t.numpy() for t in (run.mu, run.n, run.sums, run.shift))
            with one_blas_thread():  # its many small products
                count, changed, square, empty = kernels.lloyd(
                    rows, self.w, mu, run.label.numpy(), n, sums, moved, self.spread, self.total,
                    threshold, furthest, values[done:], moves[done:],
                )  # fmt: skip
            run.compared += (count + empty) * len(rows)
            done += count
            if empty:
                square = self.update(run)
                values[done], moves[done] = run.objective, float(run.shift.max())
                done += 1
            converged = changed == 0 or square <= threshold or moves[done - 1] < furthest
            if converged or done == max_iter:
                run.objective = float(values[done - 1])
                return values[:done].tolist(), moves[:done].tolist(), converged, changed == 0

    # --- labels --------------------------------------------------------------------------

    def assign(self, runs: Sequence[CentroidRun]) -> list[int]:
        """Give every row its nearest centroid in each run; how many rows changed, over all shards.

        A tile of rows is read once for all runs.
        """
        parts = self._by_bounds(runs) if self.fast else self._by_table(runs)
        moved = []
        for run, part in zip(runs, parts, strict=True):
            found = current().sum_dict(part)
            # bounds tell what changed, a table counts anew
            run.n = run.n + found["n"] if self.fast else found["n"]
            run.sums = run.sums + found["x"] if self.fast else found["x"]
            changed, compared = found["counts"].tolist()
            run.compared += compared
            moved.append(int(changed))
        return moved

    def _by_bounds(self, runs: Sequence[CentroidRun]) -> list[dict[str, Tensor]]:
        x, slack, origin = self.rows, self._slack, self.origin.numpy()
        settings = []
        for run in runs:
            k, d = run.mu.shape
            near, half = np.empty((k, d), x.dtype), np.empty(k, x.dtype)
            gap, shift, far = (np.empty(k) for _ in range(3))
            drift = np.empty(run.lower.shape[1])
            kernels.prepare(
                run.mu.numpy(), run.shift.numpy(), run.group, slack, near, half, gap, shift, far,
                drift,
            )  # fmt: skip
            settings.append((
                near, half, run.group, gap, shift, far, drift, run.label.numpy(), run.upper,
                run.lower, slack, tile_rows(k * d),
            ))  # fmt: skip

        def kernel(lo: int, hi: int) -> list[Any]:
            return [kernels.step(x, self.w, origin, *one, lo, hi) for one in settings]

        sums: list[list[Any]] = [[np.zeros(len(r.mu)), np.zeros(r.mu.shape), 0, 0] for r in runs]
        for slices in over_slices(kernel, len(x)):
            for total, part in zip(sums, slices, strict=True):
                total[0] += part[0]
                total[1] += part[1]
                total[2:] = total[2] + part[2], total[3] + part[3]
        return [
            {
                "n": torch.from_numpy(n),
                "x": torch.from_numpy(s),
                "counts": torch.tensor([moved, compared], dtype=torch.float64),
            }
            for n, s, moved, compared in sums
        ]

    def _by_table(self, runs: Sequence[CentroidRun]) -> list[dict[str, Tensor]]:
        found = self.table.assign([run.mu for run in runs], self.origin)
        out = []
        for run, (label, n, sums) in zip(runs, found, strict=True):
            changed = (label != run.label).sum()
            counts = torch.stack([changed, torch.tensor(len(label), device=changed.device)])
            run.label = label
            out.append({"n": n, "x": sums, "counts": counts.double()})
        return out

    # --- centroids -----------------------------------------------------------------------

    def update(self, run: CentroidRun) -> float:
        """Move the centroids to the means of their rows; the sum of their squared moves."""
        n, sums = run.n, run.sums
        # what rounding leaves of a centroid whose rows all went away is not a row
        empty = n <= 1e-12 * self.total
        if self.relocate and bool(empty.any()):
            n, sums, empty = self._relocated(run, n.clone(), sums.clone(), empty)
        mean = sums / torch.where(empty, 1.0, n)[:, None]
        mu = torch.where(empty[:, None], run.mu, mean)
        run.shift = (mu - run.mu).square().sum(1).sqrt()
        run.mu = mu
        pulled = (2 * mu * run.sums - run.n[:, None] * mu.square()).sum()
        lost, square = torch.stack([pulled, run.shift.square().sum()]).tolist()
        run.objective = 0.5 * max(0.0, self.spread - lost) / self.total
        return float(square)

    def _relocated(
        self, run: CentroidRun, n: Tensor, sums: Tensor, empty: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Give each empty centroid the row farthest from its own, with all rows equal to it."""
        reduce = current()
        distance = self._distances(run)
        w = torch.ones_like(distance) if self.weight is None else self.weight
        distance = torch.where(w > 0, distance, -1.0)
        hashes = row_hashes(self.x)
        empty, most = empty.clone(), torch.iinfo(torch.int64).max
        for z in empty.nonzero().flatten().tolist():
            far = reduce.max(distance.max())
            if not bool(far > 0):
                break
            first = torch.where(distance == far, hashes, most).min()  # of equally far ones
            same = (hashes == reduce.min(first)) & (distance >= 0)
            at = same.nonzero().flatten()
            own = self._row(int(at[0])) if len(at) else torch.zeros_like(sums[0])
            have = reduce.sum(torch.cat([own, own.new_tensor([float(len(at) > 0)])]))
            row = have[:-1] / have[-1]
            old = torch.zeros_like(n).index_add_(0, run.label[same].long(), w[same])
            old = reduce.sum(old)
            n = n - old
            sums = sums - old[:, None] * row
            n[z], sums[z], empty[z] = old.sum(), old.sum() * row, False
            distance = torch.where(same, -1.0, distance)
        return n, sums, empty | (n <= 1e-12 * self.total)

    def _row(self, i: int) -> Tensor:
        if self.sparse:
            return torch.from_numpy(as_csr(self.x)[[i]].toarray()[0].astype(np.float64))
        return self.x[i].double() - self.origin.double()

    def _distances(self, run: CentroidRun) -> Tensor:
        if not self.fast:
            return self.table.distances(run.mu, run.label, self.origin)
        parts = zip(pieces(self.x, 2**16), run.label.split(2**16))
        origin = self.origin.double()
        return torch.cat(
            [(x.double() - origin - run.mu[z.long()]).square().sum(1) for x, z in parts]
        )

    def centroids(self, run: CentroidRun) -> Tensor:
        """Where the centroids are in the data's own coordinates, ``(k, d)`` float64."""
        return run.mu + self.origin.double()


_NOBODY = np.empty(0, np.int32)


def _groups(mu: NDArray[np.float64], bounds: str) -> tuple[NDArray[np.int32], int]:
    """The group of each centroid, and how many groups there are."""
    k = len(mu)
    if bounds == "auto":
        bounds = "hamerly"
    if bounds == "lloyd" or k == 1:
        return np.zeros(k, np.int32), 0
    if bounds == "elkan":
        return np.arange(k, dtype=np.int32), k
    count = 1 if bounds == "hamerly" else -(-k // 10)
    group = np.zeros(k, np.int32)
    if count > 1:
        middle = mu[:count].copy()
        for _ in range(5):
            group = np.square(mu[:, None] - middle).sum(-1).argmin(1).astype(np.int32)
            for g in np.unique(group):
                middle[g] = mu[group == g].mean(0)
    return group, count


def nearest(x: Tensor, mu: Tensor, weight: Tensor | None = None) -> tuple[Tensor, float]:
    """Nearest centroid of every row ``(N,)`` int32, and the weighted sum of squared distances."""
    mu = mu.detach()
    if x.device.type != "cpu" or x.layout == torch.sparse_csr:
        return Table(x, None if weight is None else weight.double()).nearest(mu)
    rows = x.detach().contiguous().numpy()
    wide = mu.numpy().astype(np.float64, copy=False)
    at = wide.mean(0).astype(rows.dtype)
    centred = (wide - at).astype(rows.dtype, copy=False)
    half = (0.5 * np.square(centred, dtype=np.float64).sum(1)).astype(rows.dtype, copy=False)
    w = np.empty(0) if weight is None else weight.detach().double().numpy()
    if rows.size <= SMALL and len(rows) * len(half) <= 8 * SMALL:
        v = rows - at
        label = (half - v @ centred.T).argmin(1)
        each = np.square(v.astype(np.float64, copy=False) - centred[label]).sum(1)
        value = each.sum() if weight is None else w @ each
        return torch.from_numpy(label.astype(np.int32)), float(value)
    found, tile = np.empty(len(rows), np.int32), tile_rows(centred.size)
    parts = over_slices(
        lambda lo, hi: kernels.nearest(rows, w, at, centred, half, found, tile, lo, hi), len(rows)
    )
    total = float(sum(parts))
    return torch.from_numpy(found), total
