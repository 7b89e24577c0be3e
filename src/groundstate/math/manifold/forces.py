r"""The gradient of a map's divergence, on the device of its coordinates.

:math:`\nabla_{y_i} L = 4(\alpha\,\text{pull}_i - \text{push}_i/Z)` with pulls
:math:`\sum_j p_{ij}\,\varepsilon'(y_i - y_j)` along the pairs of the data, pushes
:math:`\sum_j e^{-\varepsilon}\varepsilon'(y_i - y_j)` of all pairs of the map, and α = 1 but for the
early exaggeration. Every row sums its own forces and rows are cut into fixed slices, so the bits do
not depend on the number of threads.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from groundstate.compute.tiles import over_slices
from groundstate.math.manifold.divergence import PairEnergy
from groundstate.math.manifold.grid import Grid, convolved, plan

METHODS = ("exact", "barnes_hut", "fft")
SLICE = 512  # rows whose sums are taken together
CHUNK = 32  # edges of a row that are summed together on a device
CELLS = 2**24  # pairs of one tile


class HostForces:
    """Forces of a map with the Cauchy kernel, by compiled loops.

    Parameters
    ----------
    starts, ends, p : pairs of the data in CSR form
    method : "exact", "barnes_hut" or "fft" (two dimensions)
    angle : how wide a cell may look to count as one row, of "barnes_hut"
    """

    def __init__(
        self, starts: Tensor, ends: Tensor, p: Tensor, method: str, angle: float = 0.5
    ) -> None:
        from groundstate.math.manifold import forces_numba, grid_numba, quadtree_numba

        self.kernels, self.trees, self.grids = forces_numba, quadtree_numba, grid_numba
        self.pairs = (starts.numpy(), ends.int().numpy(), p.double().numpy())
        self.n, self.method, self.angle = len(starts) - 1, method, angle
        self.constant = float(torch.xlogy(p.double(), p.double()).sum())
        self.grid = Grid(PairEnergy())
        self.like = torch.empty(0)  # transforms in single precision

    def __call__(self, Y: NDArray[Any], pull: float = 1.0) -> tuple[NDArray[Any], float]:
        """Gradient ``(n, p)`` and Z for coordinates ``(p, n)``; ``pull`` multiplies the data's part."""
        toward = np.empty((self.n, len(Y)))
        for _ in over_slices(
            lambda lo, hi: self.kernels.attraction(*self.pairs, Y, lo, hi, toward), self.n, SLICE
        ):
            pass
        push, z = self.push(Y)
        toward *= 4.0 * pull
        toward -= (4.0 / z) * push
        return toward, z

    def divergence(self, Y: NDArray[Any], z: float) -> float:
        """KL(P‖Q) for coordinates ``(p, n)`` and their Z."""
        energy = math.fsum(
            over_slices(
                lambda lo, hi: self.kernels.pair_energy(*self.pairs, Y, lo, hi), self.n, SLICE
            )
        )
        return self.constant + energy + math.log(z)

    def push(self, Y: NDArray[Any]) -> tuple[NDArray[Any], float]:
        """Pushes ``(n, p)`` and Z."""
        if self.method == "fft":
            return self._by_grid(Y)
        if self.method == "barnes_hut":
            return self._by_tree(Y)
        out = np.empty((self.n, len(Y)))
        parts = over_slices(
            lambda lo, hi: self.kernels.repulsion(Y, lo, hi, out), self.n, SLICE // 4
        )
        return out, math.fsum(parts)

    def _by_grid(self, Y: NDArray[Any]) -> tuple[NDArray[Any], float]:
        low, high = Y.min(1), Y.max(1)
        spacing, nodes, size = plan(float((high - low).max()))
        spectrum, shift = self.grid.spectrum(spacing, nodes, size, 2, self.like)
        corner = (low + high) / 2 - spacing * nodes / 2
        grid = np.zeros((nodes, nodes))
        self.grids.spread(Y, corner, spacing, grid)
        field = convolved(torch.from_numpy(grid).to(self.like), spectrum, size).numpy()
        out = np.empty((self.n, 2))
        parts = over_slices(
            lambda lo, hi: self.grids.collect(Y, corner, spacing, field, lo, hi, out),
            self.n, 4 * SLICE,
        )  # fmt: skip
        return out, math.fsum(parts) + self.n * (self.n * shift - 1.0)

    def _by_tree(self, Y: NDArray[Any]) -> tuple[NDArray[Any], float]:
        p = len(Y)
        bits = 62 // p if p > 1 else 52
        low = Y.min(1)
        width = max(float((Y.max(1) - low).max()) * (1 + 1e-9), 1e-300)
        code = np.empty(self.n, np.int64)
        self.trees.codes(Y, low, width, bits, code)
        order = np.argsort(code, kind="stable")
        code, rows = code[order], np.ascontiguousarray(Y[:, order])
        room = 4 * self.n + 64
        first, last, child, after = (np.empty(room, np.int64) for _ in range(4))
        centre, side = np.empty((room, p)), np.empty(room)
        self.trees.build(code, rows, bits, width, first, last, child, after, centre, side)
        sorted_ = np.empty((self.n, p))
        parts = over_slices(
            lambda lo, hi: self.trees.walk(
                rows, first, last, child, after, centre, side, self.angle, lo, hi, sorted_
            ),
            self.n, SLICE,
        )  # fmt: skip
        z = math.fsum(parts)
        out = np.empty_like(sorted_)
        out[order] = sorted_
        return out, z


class DeviceForces:
    """The same with torch, on any device and for any pair energy.

    Edges stand in chunks of 32 of one row, so that sums along them have a fixed order.
    """

    def __init__(
        self, starts: Tensor, ends: Tensor, p: Tensor, method: str, pair: PairEnergy,
        dtype: torch.dtype,
    ) -> None:  # fmt: skip
        self.n, self.pair, self.method = len(starts) - 1, pair, method
        self.constant = float(torch.xlogy(p.double(), p.double()).sum())
        self.grid = Grid(pair)
        device = starts.device
        degree = starts.diff()
        chunks = (degree + CHUNK - 1) // CHUNK  # of each row
        before = chunks.cumsum(0) - chunks
        row = torch.arange(self.n, device=device).repeat_interleave(degree)
        slot = torch.arange(len(ends), device=device) - starts[:-1].repeat_interleave(degree)
        at = before[row] * CHUNK + slot
        total = int(chunks.sum())
        self.end = torch.zeros(total * CHUNK, dtype=torch.int64, device=device)
        self.end[at] = ends
        self.p = torch.zeros(total * CHUNK, dtype=dtype, device=device)
        self.p[at] = p.to(dtype)
        self.end, self.p = self.end.view(-1, CHUNK), self.p.view(-1, CHUNK)
        self.row = torch.arange(self.n, device=device).repeat_interleave(chunks)  # of each chunk
        most = max(1, int(chunks.max()))
        steps = torch.arange(most, device=device)
        self.chunk = torch.where(
            steps < chunks[:, None], before[:, None] + steps, total
        )  # (n, most)

    def __call__(self, Y: Tensor, pull: float = 1.0) -> tuple[Tensor, Tensor]:
        """Gradient ``(n, p)`` and Z for coordinates ``(n, p)``."""
        gap, square = self._edges(Y)
        pulls = (gap * (self.p * self.pair.slope(square))[..., None]).sum(1)  # (chunks, p)
        pulls = torch.cat([pulls, pulls.new_zeros(1, Y.shape[1])])[self.chunk].sum(1)
        push, z = self.push(Y)
        return 4.0 * (pull * pulls - push / z.to(Y.dtype)), z

    def _edges(self, Y: Tensor) -> tuple[Tensor, Tensor]:
        """Differences along the edges ``(chunks, 32, p)`` and their squared lengths."""
        gap = Y[self.row][:, None] - Y[self.end]
        square = gap[..., 0].square()
        for c in range(1, Y.shape[1]):
            square = torch.addcmul(square, gap[..., c], gap[..., c])
        return gap, square

    def divergence(self, Y: Tensor, z: Tensor) -> float:
        square = self._edges(Y)[1]
        energy = (self.p * self.pair.energy(square)).sum(dtype=torch.float64)
        return self.constant + float(energy + z.double().log())

    def push(self, Y: Tensor) -> tuple[Tensor, Tensor]:
        """Pushes ``(n, p)`` and Z."""
        if self.method == "fft":
            return self.grid(Y)
        out, z = [], torch.zeros((), dtype=torch.float64, device=Y.device)
        own = float(self.pair.similarity(torch.zeros((), dtype=torch.float64)))
        for part in Y.split(max(1, CELLS // len(Y))):
            square = torch.cdist(part, Y, compute_mode="donot_use_mm_for_euclid_dist").square()
            q = self.pair.similarity(square)
            z = z + q.sum(dtype=torch.float64)
            w = q * self.pair.slope(square)
            out.append(w.sum(1, keepdim=True) * part - w @ Y)
        return torch.cat(out), z - own * len(Y)
