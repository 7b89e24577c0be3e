r"""Weight, mean and scatter of rows in one pass, in pieces, over shards and on a device."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from groundstate.compute.reduce import current
from groundstate.compute.tiles import over_slices
from groundstate.errors import DataError

F64 = NDArray[np.float64]
CELLS = 2**17  # numbers of a tile: it is summed and multiplied while it is in the cache
ROWS = 2**16  # rows of a slice, the sums of which are added in order
SMALL = 2**12  # numbers of a table that is summed at once
LARGE = 2**18  # numbers of a table from which compiled products pay for being loaded
NARROW = 256  # columns up to which they are faster than those of BLAS and the sums after them
FAR = 1e4  # squared means, in variances, from which rows are moved before they are multiplied


class RowSums:
    r"""Weight n, mean and scatter of rows, :math:`S = \sum_i w_i(x_i-\bar x)(x_i-\bar x)^\top`, mergeable.

    Two of them are one by Chan's formula, with :math:`\delta = \bar x_b - \bar x_a`:

    .. math::
        \bar x = \bar x_a + \tfrac{n_b}{n}\delta, \qquad
        S = S_a + S_b + \tfrac{n_a n_b}{n}\,\delta\delta^\top .

    Sums are of double precision. Rows whose means are far from zero, counted in standard deviations,
    are moved first, so that nothing cancels; tiles are multiplied while they are in the cache, slices of
    rows in threads.

    Parameters
    ----------
    d : number of columns
    device : where sums are kept; pieces must be there

    Attributes
    ----------
    weight : sum of the weights
    rows : rows seen
    mean : ``(d,)`` tensor
    scatter : ``(d, d)`` tensor, S

    Examples
    --------
    >>> a = RowSums(1).update(np.array([[1e8], [1e8 + 1]]))
    >>> b = RowSums(1).update(np.array([[1e8 + 2]]))
    >>> a.merge(b).covariance().item()
    0.6666666666666666
    """

    def __init__(self, d: int, device: torch.device | str = "cpu") -> None:
        self.weight, self.rows = 0.0, 0
        self._at = d, device
        self._sums: tuple[Tensor, Tensor] | None = None

    @property
    def mean(self) -> Tensor:
        return self._known()[0]

    @property
    def scatter(self) -> Tensor:
        return self._known()[1]

    def _known(self) -> tuple[Tensor, Tensor]:
        if self._sums is None:
            d, device = self._at
            zero = torch.zeros(d + 1, d, dtype=torch.float64, device=device)
            self._sums = zero[0], zero[1:]
        return self._sums

    def update(self, x: Any, weight: Any = None) -> Self:
        """Add rows ``(n, d)``, arrays or tensors, with weights ``(n,)``."""
        rows = x if isinstance(x, Tensor) else torch.from_numpy(np.ascontiguousarray(x))
        w = weight if weight is None or isinstance(weight, Tensor) else torch.as_tensor(weight)
        if rows.ndim != 2 or rows.shape[1] != self._at[0]:
            raise DataError(
                f"rows of {self._at[0]} columns are summed here, got shape {tuple(rows.shape)}"
            )
        for part in _parts(rows.detach(), None if w is None else w.detach()):
            self._add(*part)
        self.rows += len(rows)
        return self

    def _add(self, weight: float, mean: Tensor, scatter: Tensor) -> None:
        if weight == 0:
            return
        if self.weight == 0:
            self.weight, self._sums = weight, (mean, scatter)
            return
        total = self.weight + weight
        delta = mean - self.mean
        # not in place: these may be another one's tensors
        between = self.weight * weight / total
        scatter = (self.scatter + scatter).addr_(delta, delta, alpha=between)
        self._sums = self.mean + delta * (weight / total), scatter
        self.weight = total

    def merge(self, other: RowSums) -> Self:
        """Add what another one has seen."""
        self._add(other.weight, other.mean.to(self.mean), other.scatter.to(self.scatter))
        self.rows += other.rows
        return self

    def reduced(self) -> RowSums:
        """Over all shards; alone, this one."""
        reduce = current()
        if reduce.world == 1:
            return self
        device = self.mean.device
        counts = torch.tensor([self.weight, self.rows], dtype=torch.float64, device=device)
        sums = reduce.sum_dict({"counts": counts, "x": self.weight * self.mean})
        out = RowSums(len(self.mean), device)
        out.weight, out.rows = float(sums["counts"][0]), int(sums["counts"][1])
        if out.weight == 0:
            return out
        mean = sums["x"] / out.weight
        delta = self.mean - mean
        out._sums = mean, reduce.sum(self.scatter + self.weight * torch.outer(delta, delta))
        return out

    def covariance(self, ddof: float = 0) -> Tensor:
        """S divided by the weight less ``ddof``, ``(d, d)``."""
        if not self.weight > ddof:
            raise DataError(
                f"a covariance with ddof={ddof:g} needs rows of more weight, got {self.weight:g}"
            )
        return self.scatter / (self.weight - ddof)

    def correlation(self) -> Tensor:
        """``(d, d)``; NaN for a column that does not vary."""
        sd = self.scatter.diagonal().sqrt()
        return self.scatter / torch.outer(sd, sd)

    def __repr__(self) -> str:
        return f"RowSums(columns={len(self.mean)}, rows={self.rows}, weight={self.weight:g})"


Part = tuple[float, Tensor, Tensor]


def _parts(x: Tensor, w: Tensor | None) -> Iterator[Part]:
    """Weight, mean and scatter of slices of rows."""
    if x.device.type != "cpu":
        for at in range(0, len(x), ROWS):
            yield _on_device(x[at : at + ROWS], None if w is None else w[at : at + ROWS])
        return
    rows, weights = x.numpy(), None if w is None else w.double().numpy()
    if rows.dtype not in (np.float32, np.float64):
        rows = rows.astype(np.float64)
    if rows.size <= SMALL:
        yield _little(rows, weights)
        return

    summed = _wide_slice if _in_registers(rows) else _slice

    def slice_of(lo: int, hi: int) -> list[Part]:
        return summed(rows[lo:hi], None if weights is None else weights[lo:hi])

    if len(rows) <= ROWS:
        yield from slice_of(0, len(rows))
        return
    for parts in over_slices(slice_of, len(rows), ROWS):
        yield from parts


def _in_registers(rows: NDArray[Any]) -> bool:
    if rows.size < LARGE or rows.shape[1] > NARROW or rows.dtype != np.float64:
        return False
    from groundstate.compute.foreign.numba import wide_registers

    return wide_registers()


def _on_device(x: Tensor, w: Tensor | None) -> Part:
    rows = x.double()
    if w is None:
        mean = rows.mean(0)
        diff = rows - mean
        return float(len(x)), mean, diff.T @ diff
    v = w.double()
    total = float(v.sum())
    mean = (v @ rows) / (total or 1.0)
    diff = rows - mean
    return total, mean, (diff * v[:, None]).T @ diff


@np.errstate(invalid="ignore")  # what is not finite is seen in the mean
def _little(x: NDArray[Any], w: F64 | None) -> Part:
    """All at once, where tiles would cost more than the sums."""
    rows = x.astype(np.float64, copy=False)
    total = float(len(rows)) if w is None else float(w.sum())
    sums = rows.sum(0) if w is None else w @ rows
    mean = sums / (total or 1.0)
    diff = rows - mean
    scatter = diff.T @ (diff if w is None else diff * w[:, None])
    return total, torch.from_numpy(mean), torch.from_numpy(scatter)


@np.errstate(invalid="ignore")  # what is not finite is seen in the mean
def _slice(x: NDArray[Any], w: F64 | None) -> list[Part]:
    """Sums of a slice about a point near its mean; a new point where the mean runs away."""
    from scipy.linalg.blas import dsyrk, ssyrk

    n, d = x.shape
    single = x.dtype == np.float32
    tile = min(n, max(64, CELLS // d // 64 * 64))
    buffer = np.empty((tile, d), x.dtype)
    out: list[Part] = []
    scatter, sums, weight = np.zeros((d, d), order="F"), np.zeros(d), 0.0
    shift: NDArray[Any] | None = None
    spread: F64 | None = None
    origin: F64 = np.zeros(d)
    for lo in range(0, n, tile):
        rows = x[lo : lo + tile]
        v = None if w is None else w[lo : lo + tile]
        own = float(len(rows)) if v is None else float(v.sum())
        if own == 0:
            continue
        total = rows.sum(0, dtype=np.float64) if v is None else v @ rows
        mean = total / own
        if spread is None:
            spread = np.var(rows, axis=0, dtype=np.float64) + np.finfo(np.float64).tiny
        if not bool(((mean - origin) ** 2 <= FAR * spread).all()):
            out.append(_part(weight, sums, scatter, origin))
            shift = mean.astype(x.dtype)
            origin = shift.astype(np.float64)
            scatter, sums, weight = np.zeros((d, d), order="F"), np.zeros(d), 0.0
        moved = rows if shift is None else np.subtract(rows, shift, out=buffer[: len(rows)])
        if v is not None:
            root = np.sqrt(v).astype(x.dtype)
            moved = np.multiply(moved, root[:, None], out=buffer[: len(rows)])
        if single:
            scatter += ssyrk(1.0, moved.T)
        else:
            scatter = dsyrk(1.0, moved.T, beta=1.0, c=scatter, overwrite_c=1)
        sums += total - own * origin
        weight += own
    out.append(_part(weight, sums, scatter, origin))
    return out


@np.errstate(invalid="ignore")  # what is not finite is seen in the mean
def _wide_slice(x: F64, w: F64 | None) -> list[Part]:
    """`_slice` in one pass over the rows, where registers are wide; see ``row_sums_numba``."""
    from groundstate.learn.solvers.latent.factors.row_sums_numba import (
        BLOCK,
        padded,
        scatter_about,
    )

    n, d = x.shape
    tile, columns = max(BLOCK, CELLS // d // BLOCK * BLOCK), padded(d)
    block, found = np.zeros((BLOCK, columns)), np.empty((columns, columns))
    out: list[Part] = []
    scatter, origin = np.zeros((columns, columns)), np.zeros(d)
    least = np.finfo(np.float64)
    spread: F64 | None = None
    for lo in range(0, n, tile):
        rows = x[lo : lo + tile]
        root = np.empty(0) if w is None else np.sqrt(w[lo : lo + tile])
        scatter_about(rows, root, origin, block, found)
        if not found[d, d] > 0:
            continue
        delta = found[:d, d] / found[d, d]
        if spread is None or not bool((delta**2 <= FAR * spread).all()):
            far = delta**2
            own = np.maximum(found.diagonal()[:d] / found[d, d] - far, 0.0)
            if not bool((far <= FAR * own).all()):
                out.append(_of_products(scatter, origin))
                origin = origin + delta
                scatter[:] = 0.0
                scatter_about(rows, root, origin, block, found)
                own = found.diagonal()[:d] / found[d, d]
            # a column that does not vary moves by the rounding of its mean
            spread = own + (least.eps * origin) ** 2 + least.tiny
        scatter += found
    out.append(_of_products(scatter, origin))
    return out


def _of_products(found: F64, origin: F64) -> Part:
    """`_part` of products whose last columns are the sums and the weight."""
    d = len(origin)
    return _part(float(found[d, d]), found[:d, d], found[:d, :d], origin)


def _part(weight: float, sums: F64, upper: F64, origin: F64) -> Part:
    """About the mean, from sums about another point; ``upper`` holds one triangle of them."""
    if weight == 0:
        return 0.0, torch.from_numpy(origin), torch.from_numpy(upper)
    full = np.triu(upper)
    full += np.triu(upper, 1).T
    delta = sums / weight
    full -= weight * np.outer(delta, delta)
    return weight, torch.from_numpy(origin + delta), torch.from_numpy(np.ascontiguousarray(full))
