r"""Eigenvalues and eigenvectors of the covariance of rows, by whichever way is cheapest."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from groundstate.compute.random import Key
from groundstate.compute.reduce import current
from groundstate.errors import DataError
from groundstate.learn.base import Batch, Problem
from groundstate.learn.solvers.latent.factors.row_sums import RowSums
from groundstate.math.linalg.lanczos import lanczos
from groundstate.math.linalg.range_finder import CentredRows, randomized_svd

WIDE = 10_000  # columns of a covariance matrix at most
SQUARED = "covariance_eigh"


@dataclass(frozen=True)
class Spectrum:
    """What is known of the covariance of rows, in double precision.

    Attributes
    ----------
    mean : ``(d,)``; None where rows are not centred
    values : ``(m,)``, variances by the weight, the largest first
    vectors : ``(d, m)``, the entry of largest modulus of each column positive
    total : the sum of all d variances
    weight : of the rows
    solver : how it was found
    """

    mean: Tensor | None
    values: Tensor
    vectors: Tensor
    total: float
    weight: float
    solver: str


class Summed:
    """Rows of which the sums are known, in place of the rows of a problem."""

    def __init__(self, sums: RowSums) -> None:
        self.sums = sums

    def __iter__(self) -> Iterator[Batch]:
        raise DataError("the sums of these rows are known; the rows themselves are gone")


def upright(vectors: Tensor) -> Tensor:
    """Columns whose entry of largest modulus is positive."""
    if not vectors.numel():
        return vectors
    peak = vectors.gather(0, vectors.abs().argmax(0, keepdim=True))
    return vectors * torch.where(peak < 0, -1.0, 1.0)


def descending(cov: Tensor) -> tuple[Tensor, Tensor]:
    """Eigenvalues of a covariance, none below zero, and upright eigenvectors, the largest first."""
    if cov.device.type != "cpu" or len(cov) > 64:
        values, vectors = torch.linalg.eigh(cov)
        return values.flip(0).clamp_min(0), upright(vectors.flip(1))
    small, axes = _largest_first(cov.numpy())
    return torch.from_numpy(small), torch.from_numpy(axes)


def _largest_first(cov: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """`descending` by NumPy, the same in a third of the time where a matrix is small."""
    values, axes = np.linalg.eigh(cov)
    axes = axes[:, ::-1]
    peak = axes[np.abs(axes).argmax(0), np.arange(len(values))]
    return np.maximum(values[::-1], 0.0), axes * np.copysign(1.0, peak)


def completed(vectors: Tensor, values: Tensor, k: int) -> Tensor:
    """The first k axes; those without variance are made of unit vectors, in their order.

    Without it they would be whatever the decomposition left there, and change with the order of rows.
    """
    d = len(vectors)
    known: list[float] = values[: max(1, k)].tolist()
    if 0 < k <= len(known) and known[0] > 0 and known[k - 1] > d * 4e-16 * known[0]:
        return vectors[:, :k]
    none = len(values) and float(values[0]) <= 0
    rank = 0 if none else int((values > d * 4e-16 * values[:1]).sum())
    if k <= rank:
        return vectors[:, :k]
    found = vectors[:, :rank]
    for least in (0.1, 1e-3, 1e-9):  # prefer unit vectors that are not nearly spanned
        for j in range(d):
            if found.shape[1] >= k:
                return found
            e = torch.zeros(d, dtype=found.dtype, device=found.device)
            e[j] = 1.0
            for _ in range(2):
                e = e - found @ (found.T @ e)
            length = float(e.norm())
            if length > least:
                found = torch.cat([found, upright((e / length)[:, None])], 1)
    return found


def moments(problem: Problem) -> RowSums:
    """Weight, mean and scatter of all rows of all shards, in one pass."""
    found: RowSums | None = None
    if isinstance(problem.data, Summed):
        found = problem.data.sums
    elif problem.is_resident:
        x = problem.resident["x"]
        found = RowSums(x.shape[1], x.device).update(x, problem.sample_weight)
    else:
        for batch, weight in problem.chunks(2**16):
            x = batch["x"]
            if found is None:
                found = RowSums(x.shape[1], x.device)
            found.update(x, weight)
    if found is None:
        raise DataError("there are no rows to learn from")
    found = found.reduced()
    if not found.weight > 0:
        raise DataError("the weights sum to zero; at least one row needs a positive weight")
    if not math.isfinite(float(found.mean.sum())):
        raise DataError("Input X contains NaN or infinity; impute or drop such rows")
    return found


def by_moments(problem: Problem) -> Spectrum:
    """All eigenvalues, of the matrix of scatter: one pass over the rows, in pieces or over shards."""
    sums = moments(problem)
    values, vectors = descending(sums.covariance())
    return Spectrum(sums.mean, values, vectors, float(values.sum()), sums.weight, SQUARED)


def by_little(x: Tensor) -> Spectrum:
    """`by_moments` of a small table without weights, where calls cost more than sums."""
    rows = x.numpy()
    mean = rows.mean(0, dtype=np.float64)
    diff = rows - mean
    cov = diff.T @ diff
    cov /= len(rows)
    values, vectors = _largest_first(cov)
    arrays = torch.from_numpy(mean), torch.from_numpy(values), torch.from_numpy(vectors)
    return Spectrum(*arrays, float(values.sum()), float(len(rows)), SQUARED)


def by_power(problem: Problem, k: int, tol: float = 1e-12, max_iter: int = 100_000) -> Spectrum:
    r"""Axis after axis: :math:`e_k = \arg\max_{\|e\|=1,\,e\perp e_1..e_{k-1}} e^\top\Sigma e`.

    Multiply by Σ, take the earlier axes off, normalise, until nothing changes.
    """
    sums = moments(problem)
    cov = sums.covariance()
    found: list[Tensor] = []
    generator = problem.key.fold("power").torch(torch.device("cpu"))
    for _ in range(k):
        e = torch.randn(len(cov), generator=generator, dtype=torch.float64).to(cov)
        for _ in range(max_iter):
            before, e = e, cov @ e
            for earlier in found:
                e = e - (earlier @ e) * earlier
            length = e.norm()
            if not length > 1e-14 * cov.trace():  # no variance is left: any axis that is
                e = _outside(found, len(cov), generator).to(cov)
                break
            e = e / length
            if float((e - before).norm()) < tol:
                break
        found.append(e)
    vectors = torch.stack(found, 1) if found else cov.new_zeros(len(cov), 0)
    values = (vectors * (cov @ vectors)).sum(0)
    total = float(cov.trace())
    return Spectrum(sums.mean, values, upright(vectors), total, sums.weight, "power")


def _outside(found: list[Tensor], d: int, generator: torch.Generator) -> Tensor:
    """A direction at right angles to those found."""
    e = torch.randn(d, generator=generator, dtype=torch.float64)
    for _ in range(2):
        for earlier in found:
            e = e - (earlier.cpu() @ e) * earlier.cpu()
    return e / e.norm()


def by_rows(problem: Problem, centred: bool = True) -> Spectrum:
    """All singular values of the rows themselves, which keeps those that squares would lose."""
    x, root, mean, weight = _rows(problem, centred)
    if x.layout != torch.strided:
        x = x.to_dense()
    rows = x.double() if mean is None else x.double() - mean
    rows = rows if root is None else rows * root[:, None]
    _, s, Vt = torch.linalg.svd(rows, full_matrices=False)
    values = s.square() / weight
    return Spectrum(mean, values, upright(Vt.T), float(values.sum()), weight, "full")


def by_few(
    problem: Problem, k: int, solver: str, *, centred: bool = True, power: int = 4,
    oversamples: int = 10, tol: float = 0.0,
) -> Spectrum:  # fmt: skip
    """The k largest: ``"randomized"`` by products with random vectors, ``"arpack"`` by Lanczos."""
    x, root, mean, weight = _rows(problem, centred)
    device, key = x.device, problem.key
    r = None if root is None else root.to(x.dtype)
    rows = CentredRows(x, None if mean is None else mean.to(x.dtype), r)
    if solver == "randomized":
        generator = key.fold("range").torch(torch.device("cpu"))
        _, s, Vt = randomized_svd(
            rows, k, power=power, oversamples=oversamples, generator=generator
        )
        values, vectors = s.double().square() / weight, Vt.T.double()
    else:
        values, vectors = _lanczos(rows, k, tol, key, device)
        values = values / weight
    total = _total(x, root, mean, weight)
    return Spectrum(mean, values, upright(vectors), total, weight, solver)


def _lanczos(
    rows: CentredRows, k: int, tol: float, key: Key, device: torch.device
) -> tuple[Tensor, Tensor]:
    """Of the smaller of the two products of the rows with themselves."""
    n, d = rows.shape
    tall = n >= d
    generator = key.fold("lanczos").torch(torch.device("cpu"))
    start = torch.randn(min(n, d), generator=generator, dtype=torch.float64).to(device, rows.dtype)
    values, vectors, _ = lanczos(rows.gram, start, k, tol=tol)
    values, vectors = values.double().clamp_min(0), vectors.double()
    if tall:
        return values, vectors
    # singular values of zero have no image: any axis that is left will do
    return values, torch.linalg.qr(rows.tdot(vectors.to(rows.dtype)).double()).Q


def _rows(problem: Problem, centred: bool) -> tuple[Tensor, Tensor | None, Tensor | None, float]:
    """Rows, square roots of their weights, their mean and the sum of weights."""
    if not problem.is_resident or current().world > 1:
        raise DataError(
            "rows in pieces or over several processes are decomposed by their covariance alone; use "
            f"svd_solver='auto' or {SQUARED!r}, with at most {WIDE} columns"
        )
    x, w = problem.resident["x"], problem.sample_weight
    weight = float(len(x)) if w is None else float(w.double().sum())
    if not weight > 0:
        raise DataError("the weights sum to zero; at least one row needs a positive weight")
    root = None if w is None else w.double().sqrt()
    if not centred:
        return x, root, None, weight
    if x.layout == torch.strided:
        sums = x.sum(0, dtype=torch.float64) if w is None else w.double() @ x.double()
    else:
        one = torch.ones(len(x), dtype=x.dtype, device=x.device)
        sums = CentredRows(x).tdot(one if w is None else w.to(x.dtype)).double()
    return x, root, sums / weight, weight


def _total(x: Tensor, root: Tensor | None, mean: Tensor | None, weight: float) -> float:
    """Sum of the variances of all columns."""
    if x.layout != torch.strided:
        entries = x.values().double().square()
        if root is None:
            square = float(entries.sum())
        else:
            counts = x.crow_indices().diff()
            square = float(entries @ root.square().repeat_interleave(counts.long()))
        return square / weight - (0.0 if mean is None else float(mean.square().sum()))
    total = 0.0
    for at in range(0, len(x), 2**14):
        part = x[at : at + 2**14].double()
        part = part if mean is None else part - mean
        part = part if root is None else part * root[at : at + 2**14, None]
        total += float(part.square().sum())
    return total / weight


def sparse_scatter(problem: Problem) -> Spectrum:
    """`by_moments` of sparse rows."""
    from scipy.sparse import csr_matrix

    x, root, mean, weight = _rows(problem, True)
    assert mean is not None
    host: Any = csr_matrix(
        (x.values().cpu().numpy(), x.col_indices().cpu().numpy(), x.crow_indices().cpu().numpy()),
        shape=tuple(x.shape),
    )
    v = None if root is None else root.square().cpu().numpy()
    scaled = host if v is None else host.multiply(v[:, None]).tocsr()
    gram = torch.from_numpy((host.T @ scaled).toarray().astype("float64")).to(x.device)
    values, vectors = descending(gram / weight - torch.outer(mean, mean))
    return Spectrum(mean, values, vectors, float(values.sum()), weight, SQUARED)
