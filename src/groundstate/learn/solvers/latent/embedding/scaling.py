r"""Coordinates of distances and of paths in closed form: :math:`-\tfrac12 H(D\circ D)H \approx YY^\top`."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from typing import Any

import torch
from scipy.sparse.csgraph import connected_components
from torch import Tensor

from groundstate.energy.latent.embedding.strain import GeodesicEnergy, StrainEnergy
from groundstate.errors import DataError, Unreliable
from groundstate.learn.base import History, Problem
from groundstate.learn.callbacks import Monitor, Run
from groundstate.learn.solvers.latent.embedding.common import (
    metric_of,
    no_signs,
    reason_against,
    repeated,
    taken,
)
from groundstate.math.graphs.paths import connect, geodesic_distances
from groundstate.math.manifold.scaling import (
    additive_constant,
    spread_rows,
    top_of_centred,
    top_of_rows,
)
from groundstate.math.neighbors.graph import neighbors_graph
from groundstate.math.neighbors.pairwise import pairwise

LARGE = 5000  # rows whose table of all paths is worth a warning


@dataclass(frozen=True)
class ClassicalScaling:
    r"""Classical multidimensional scaling, of all rows or of landmarks.

    Parameters
    ----------
    landmarks : how many rows, far from each other, get coordinates by the eigenvalues of their
        distances; None is all rows. The others are placed by their distances to these
    add_constant : add the least constant that makes the distances Euclidean (Cailliez)
    """

    landmarks: int | None = None
    add_constant: bool = False

    def reason_against(self, problem: Problem) -> str | None:
        return reason_against(problem, StrainEnergy)

    @torch.no_grad()
    def run(self, problem: Problem) -> History:
        begin = time.perf_counter()
        energy = problem.energy
        assert isinstance(energy, StrainEnergy)
        x = problem.resident["x"]
        metric, params = metric_of(energy.memory)
        square = metric == "precomputed"
        index = repeated(x, problem.sample_weight)
        history = History(converged=True, solver="ClassicalScaling", stop="closed form", n_iter=1)
        with Monitor(problem.callbacks, Run(problem, history, max_epochs=1)) as monitor:
            if self.landmarks is not None and self.landmarks < len(index):
                rows = taken(x, index, square)
                chosen = spread_rows(
                    lambda i: rows[:, i] if square else pairwise(
                        rows, rows[i : i + 1], metric=metric, metric_params=params)[:, 0],
                    len(rows), self.landmarks,
                ).to(x.device)  # fmt: skip
                index = index[chosen.sort().values]
            rows = taken(x, index, square)
            if metric == "euclidean" and not self.add_constant:
                values, vectors, spread = top_of_rows(rows.double(), energy.components)
            else:
                D = rows if square else pairwise(rows, metric=metric, metric_params=params)
                D = D.double()
                if self.add_constant:
                    c = additive_constant(D)
                    history.extra["constant"] = [float(c)]
                    D = D + c * (1 - torch.eye(len(D), dtype=D.dtype, device=D.device))
                values, vectors = top_of_centred(D, energy.components)
                spread = D.square().mean(1)
            Y = no_signs(vectors * values.clamp_min(0).sqrt())
            energy.remember(x[index], Y.to(x.dtype), index, spread)
            history.about["places"] = index
            history.extra["eigenvalues"] = values.tolist()
            history.seconds.append(time.perf_counter() - begin)
            monitor.epoch(float("nan"))
        return history


@dataclass(frozen=True)
class GeodesicScaling:
    r"""Classical scaling of the lengths of shortest paths along a graph of near rows (Isomap).

    Parameters
    ----------
    radius : edges within it, in place of to the nearest rows
    landmarks : paths from so many rows only, far from each other; None is from all
    on_disconnected : "connect" joins the parts by the shortest edges between them, and warns;
        "largest" keeps the largest part; "error" refuses
    """

    radius: float | None = None
    landmarks: int | None = None
    on_disconnected: str = "connect"
    path_method: str = "auto"

    def reason_against(self, problem: Problem) -> str | None:
        return reason_against(problem, GeodesicEnergy)

    @torch.no_grad()
    def run(self, problem: Problem) -> History:
        begin = time.perf_counter()
        energy = problem.energy
        assert isinstance(energy, GeodesicEnergy)
        x = problem.resident["x"]
        square = energy.memory.metric == "precomputed"
        index = repeated(x, problem.sample_weight)
        rows = taken(x, index, square)
        history = History(converged=True, solver="GeodesicScaling", stop="closed form", n_iter=1)
        with Monitor(problem.callbacks, Run(problem, history, max_epochs=1)) as monitor:
            graph, rows, kept, parts = self._graph(energy, rows)
            n = len(rows)
            m = n if self.landmarks is None else min(self.landmarks, n)
            if m == n > LARGE:
                warnings.warn(
                    f"the paths between all pairs of {n} rows take {8 * n * n / 2**30:.1f} GiB; "
                    "n_landmarks='auto' needs a small part of that",
                    Unreliable, stacklevel=2,
                )  # fmt: skip
            if m < n:
                chosen = spread_rows(lambda i: self._from(graph, [i], rows)[0], n, m).to(x.device)
                paths = self._from(graph, chosen.tolist(), rows).T.contiguous()  # (n, m)
                core = paths[chosen]
            else:
                paths = core = self._from(graph, None, rows)
            values, vectors = top_of_centred(core.double(), energy.components)
            Y = no_signs(vectors * values.clamp_min(0).sqrt())
            index = index if kept is None else index[kept]
            energy.remember_paths(x[index], paths, Y, index, core.double().square().mean(1))
            history.extra["eigenvalues"] = values.tolist()
            history.extra["parts"] = [float(parts)]
            history.about["places"] = index
            history.seconds.append(time.perf_counter() - begin)
            monitor.epoch(float("nan"))
        return history

    def _from(self, graph: Any, sources: Any, rows: Tensor) -> Tensor:
        kind = str(rows.dtype).removeprefix("torch.")
        found = geodesic_distances(graph, sources, self.path_method, dtype=kind)
        return torch.as_tensor(found, device=rows.device)

    def _graph(self, energy: GeodesicEnergy, rows: Tensor) -> tuple[Any, Tensor, Any, int]:
        """A connected graph of the rows, the rows that are left, which, and how many parts it had."""
        metric, params = metric_of(energy.memory)
        data: Any = rows if rows.device.type != "cpu" else rows.numpy()
        k = None if self.radius is not None else energy.neighbors
        if k is not None and k >= len(rows):
            raise DataError(
                f"Expected n_neighbors < n_samples, but n_neighbors = {k}, n_samples = {len(rows)}"
            )
        graph = neighbors_graph(data, k, self.radius, metric=metric, metric_params=params)
        host = _host(graph)
        parts, label = connected_components(host, directed=False)
        if parts == 1:
            return graph, rows, None, 1
        finding = f"the graph of near rows has {parts} parts"
        if self.on_disconnected == "error":
            raise DataError(
                f"{finding}; raise n_neighbors or radius, or choose on_disconnected='connect'"
            )
        if self.on_disconnected == "largest":
            size = torch.from_numpy(label).bincount()
            kept = torch.from_numpy((label == int(size.argmax())).nonzero()[0]).to(rows.device)
            warnings.warn(
                f"{finding}; the largest, {len(kept)} of {len(rows)} rows, is laid out",
                Unreliable, stacklevel=2,
            )  # fmt: skip
            at = kept.cpu().numpy()
            smaller = host[at][:, at]
            return (
                smaller if rows.device.type == "cpu" else _tensor(smaller, rows),
                taken(rows, kept, metric == "precomputed"), kept, int(parts),
            )  # fmt: skip
        warnings.warn(
            f"{finding}; they are joined by the shortest edges between them, which makes the distances "
            "between parts too long or too short: raise n_neighbors or radius",
            Unreliable, stacklevel=2,
        )  # fmt: skip
        joined, _ = connect(host, rows.cpu().numpy(), metric=metric, metric_params=params)
        return (
            joined if rows.device.type == "cpu" else _tensor(joined, rows),
            rows,
            None,
            int(parts),
        )


def _host(graph: Any) -> Any:
    from groundstate.math.graphs.paths import _csr

    return _csr(graph)


def _tensor(graph: Any, like: Tensor) -> Tensor:
    """A SciPy graph as a sparse tensor on the device of the rows."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse", category=UserWarning)
        parts = (graph.indptr, graph.indices, graph.data)
        at, to, d = (torch.from_numpy(part).to(like.device) for part in parts)
        return torch.sparse_csr_tensor(at.long(), to.long(), d, graph.shape)
