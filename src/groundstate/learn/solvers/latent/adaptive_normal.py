r"""Learning normal distributions along the shortest curves of a metric."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from groundstate.compute.rows.distinct import merged
from groundstate.energy.basic import CentroidEnergy
from groundstate.energy.latent.adaptive_normal import LocallyAdaptiveNormalEnergy
from groundstate.errors import DataError
from groundstate.learn.base import History, Problem
from groundstate.learn.callbacks import Monitor, Run
from groundstate.learn.fit import fit
from groundstate.learn.rules.naive import Naive
from groundstate.learn.solvers.latent.kmeans.lloyd import Lloyd
from groundstate.math.distances.exponential import directions, path
from groundstate.math.distances.riemannian import RiemannianMetric
from groundstate.math.distances.tangent import (
    NEGLIGIBLE,
    STEPS,
    Nodes,
    box,
    cells,
    drawn_nodes,
    noise_of,
)

INTRINSIC = 5  # steps to the intrinsic mean, before the normaliser counts
HALVINGS = 4
INNER = 5  # steps of a covariance with the directions as they are


@dataclass
class _Component:
    """One component: its mean, covariance, directions to the rows, and nodes of its normaliser."""

    mu: Tensor
    cov: Tensor
    ways: Any  # curves to the rows and to the places of the grid
    v: Tensor  # directions to the rows
    points: Tensor | None = None  # places of the grid
    volume: float = 1.0
    nodes: Nodes | None = None
    log_c: Tensor = field(default_factory=lambda: torch.zeros((), dtype=torch.float64))


@dataclass(frozen=True)
class AdaptiveNormals:
    r"""Raise the log-likelihood of
    :math:`p(x) = \sum_z\pi_z\sqrt{\det M}\,e^{-\frac12\operatorname{Log}_{\mu_z}(x)^\top\Sigma_z^{-1}
    \operatorname{Log}_{\mu_z}(x)}/C_z`.

    μ begins at the row nearest to a mean of k-means and moves along the mean of the directions to its
    rows, :math:`\Sigma` is their second moment; then both follow the gradient of the likelihood, which
    takes off the directions that the model itself expects: :math:`\mu \leftarrow
    \operatorname{Exp}_\mu(\bar v - E[v])`, :math:`\Sigma \leftarrow \Sigma + \overline{vv^\top} -
    E[vv^\top]`. A step that lowers the likelihood is halved.

    Parameters
    ----------
    metric : where
    nodes : of a normaliser
    max_iter, tol : iterations, and the gain in nats per row at which they end
    reg_covar : the least share of the mean variance that a direction has
    """

    metric: RiemannianMetric
    nodes: int = 576
    max_iter: int = 30
    tol: float = 1e-3
    reg_covar: float = 1e-8

    def reason_against(self, problem: Problem) -> str | None:
        if not isinstance(problem.energy, LocallyAdaptiveNormalEnergy):
            return "it is for normal distributions along shortest curves"
        if not problem.is_resident or set(problem.names) != {"x"}:
            return "it needs resident x alone"
        return "it takes no penalty" if problem.penalty is not None else None

    @torch.no_grad()
    def run(self, problem: Problem) -> History:
        energy = problem.energy
        assert isinstance(energy, LocallyAdaptiveNormalEnergy)
        start = time.perf_counter()
        history = History(solver="AdaptiveNormals")
        rows, w = merged({"x": problem.resident["x"].detach()}, problem.sample_weight)
        x, w = rows["x"].double(), w.double()
        if len(x) < 2:
            raise DataError(
                "all rows are equal, so there is no direction between them to learn from"
            )
        task = _Task(self, x, w / w.sum(), energy.points, problem.key)
        k = len(energy.mu)
        with Monitor(problem.callbacks, Run(problem, history, self.max_iter)) as monitor:
            weights, parts = task.begun(k)
            last = -math.inf
            for step in range(self.max_iter):
                weights, parts, value = task.improved(weights, parts)
                if not math.isfinite(value):
                    raise DataError(
                        "the likelihood of normal distributions along shortest curves is not finite: "
                        "the columns of X may have very different scales; standardise them"
                    )
                history.objective.append(-value)
                history.seconds.append(time.perf_counter() - start)
                history.n_iter = step + 1
                stop = monitor.epoch(-value)
                if stop or abs(value - last) < self.tol:
                    history.converged = abs(value - last) < self.tol
                    break
                last = value
        history.stop = "converged" if history.converged else "max_iter"
        energy.from_moments(
            weights, torch.stack([p.mu for p in parts]), torch.stack([p.cov for p in parts])
        )
        energy.normalise(self.nodes, problem.key)
        return history


class _Task:
    def __init__(self, solver: AdaptiveNormals, x: Tensor, w: Tensor, n: int, key: Any) -> None:
        self.metric, self.solver, self.x, self.w, self.n = solver.metric, solver, x, w, n
        self.key = key
        self.grid = x.shape[1] <= 2
        self.half_log_det = 0.5 * self.metric.log_det(x)
        self.noise = noise_of(solver.nodes, x.shape[1], key, x)

    # --- the first means ------------------------------------------------------------------

    def begun(self, k: int) -> tuple[Tensor, list[_Component]]:
        """Intrinsic means and second moments of the parts that k-means finds."""
        x, w = self.x, self.w
        label = torch.zeros(len(x), dtype=torch.int64, device=x.device)
        centre = (w @ x)[None]
        if k > 1:
            start = CentroidEnergy(k, x.shape[1]).to(x.device, x.dtype)
            fit(start, {"x": x}, Naive(latent="minimise"), Lloyd(), sample_weight=w,
                random_state=self.key)  # fmt: skip
            centre = start.mu.detach()
            label = start.table("z", x=x).argmin(1)
        weights, parts = [], []
        for z in range(k):
            share = w * (label == z)
            total = float(share.sum())
            mine = share > 0 if total > 0 else w > 0
            near = (x[mine] - centre[z]).square().sum(1).argmin()
            r = share / total if total > 0 else w
            part = self.at(x[mine][near].clone(), torch.eye(x.shape[1]).to(x), None)
            for _ in range(INTRINSIC if self.solver.max_iter > 1 else 1):
                part = self.nearer(part, r)
            parts.append(self.with_nodes(part, self.second(part.v, r)))
            weights.append(max(total, 1e-12))
        return torch.tensor(weights, dtype=x.dtype, device=x.device), parts

    def nearer(self, part: _Component, r: Tensor) -> _Component:
        """A step along the mean of the directions, halved until the squared distances to the rows
        become less: the whole one leaps over a narrow valley of the data and back."""
        step, far = r @ part.v, self.distance(part, r)
        for _ in range(HALVINGS):
            tried = self.moved(part, step)
            if self.distance(tried, r) < far:
                return tried
            step = 0.3 * step
        return part

    def distance(self, part: _Component, r: Tensor) -> float:
        """The mean squared distance of the rows."""
        mu = part.mu.expand_as(part.v)
        return float(r @ self.metric.quadratic(mu, part.v))

    def second(self, v: Tensor, r: Tensor) -> Tensor:
        S = (v * r[:, None]).T @ v
        least = self.solver.reg_covar * S.trace().clamp(min=1e-12) / len(S)
        return S + least * torch.eye(len(S)).to(S)

    # --- directions ------------------------------------------------------------------------

    def at(self, mu: Tensor, cov: Tensor, before: _Component | None) -> _Component:
        """Directions from a mean, from the curves of a mean nearby where there are some."""
        points = None if before is None else before.points
        every = self.x if points is None else torch.cat([self.x, points])
        starts: Any = ("line", "graph")
        if before is not None:
            t = torch.linspace(1, 0, self.n).to(mu)[:, None]
            starts = before.ways + t * (mu - before.mu)
        found = self.metric.geodesic(mu, every, self.n, starts=starts)
        v = directions(self.metric, found.points, found.length)
        part = _Component(mu, cov, found.points, v[: len(self.x)], points)
        if points is not None and before is not None and before.nodes is not None:
            part.volume = before.volume
            part.nodes = Nodes(v[len(self.x) :], before.nodes.log_weight, points)
        elif before is not None and before.nodes is not None:
            part.nodes = drawn_nodes(self.metric, mu, cov, self.noise)
        return part

    def moved(self, part: _Component, step: Tensor) -> _Component:
        mu = path(self.metric, part.mu, step, STEPS)[-1]
        return self.at(mu, part.cov, part)

    def with_nodes(self, part: _Component, cov: Tensor) -> _Component:
        """The places of a grid around it, or draws."""
        part.cov = cov
        if self.grid:
            low, high = box(self.metric, part.mu, cov, self.n)
            each = max(2, round(self.solver.nodes ** (1 / len(cov))))
            points, part.volume = cells(low, high, each)
            found = self.metric.geodesic(part.mu, points, self.n, starts=("graph",))
            v = directions(self.metric, found.points, found.length)
            weight = 0.5 * self.metric.log_det(points) + math.log(part.volume)
            nodes = Nodes(v, weight, points)
            height = nodes.log_densities(torch.linalg.inv(cov))
            held = height > height.amax() - NEGLIGIBLE  # the others cost as much and add nothing
            part.points = points[held]
            part.nodes = Nodes(v[held], weight[held], points[held])
            part.ways = torch.cat([part.ways, found.points[held]])
        else:
            part.nodes = drawn_nodes(self.metric, part.mu, cov, self.noise)
        return self.normalised(part)

    def normalised(self, part: _Component) -> _Component:
        assert part.nodes is not None
        part.log_c = part.nodes.log_normaliser(torch.linalg.inv(part.cov))
        return part

    # --- ascent ----------------------------------------------------------------------------

    def log_joint(self, weights: Tensor, parts: list[_Component]) -> Tensor:
        """log π_z p(x | z), ``(n, k)``."""
        columns = []
        for part in parts:
            P = torch.linalg.inv(part.cov)
            columns.append(self.half_log_det - 0.5 * ((part.v @ P) * part.v).sum(1) - part.log_c)
        return torch.stack(columns, 1) + (weights / weights.sum()).log()

    def value(self, weights: Tensor, parts: list[_Component]) -> float:
        return float(self.w @ torch.logsumexp(self.log_joint(weights, parts), 1))

    def improved(
        self, weights: Tensor, parts: list[_Component]
    ) -> tuple[Tensor, list[_Component], float]:
        """One round: shares of the rows, then covariance and mean of each component."""
        share = torch.softmax(self.log_joint(weights, parts), 1) * self.w[:, None]
        weights = share.sum(0)
        parts = [self.fitted(p, share[:, z], weights[z]) for z, p in enumerate(parts)]
        value = self.value(weights, parts)
        for z, part in enumerate(parts):
            if not weights[z] > 1e-9:
                continue
            assert part.nodes is not None
            _, expected, _ = part.nodes.moments(torch.linalg.inv(part.cov))
            step = share[:, z] @ part.v / weights[z] - expected
            for _ in range(HALVINGS):
                tried = self.normalised(self.moved(part, step))
                new = [tried if i == z else p for i, p in enumerate(parts)]
                gained = self.value(weights, new)
                if gained > value:
                    parts, value = new, gained
                    break
                step = 0.3 * step
        return weights, parts, value

    def fitted(self, part: _Component, share: Tensor, total: Tensor) -> _Component:
        """The covariance under which the model expects the second moment that the rows have."""
        if not total > 1e-9:
            return part
        S = self.second(part.v, share / total)
        nodes = part.nodes
        assert nodes is not None

        def cost(cov: Tensor) -> float:
            P = torch.linalg.inv(cov)
            return float(0.5 * (P * S).sum() + nodes.log_normaliser(P))

        cov, low = part.cov, cost(part.cov)
        for _ in range(INNER):
            _, _, K = nodes.moments(torch.linalg.inv(cov))
            rate, better = 1.0, False
            for _ in range(HALVINGS):
                new = cov + rate * (S - K)
                new = 0.5 * (new + new.T)
                if bool(torch.linalg.cholesky_ex(new)[1] == 0):
                    value = cost(new)
                    if value < low - 1e-9:
                        cov, low, better = new, value, True
                        break
                rate *= 0.3
            if not better:
                break
        part = _Component(part.mu, cov, part.ways, part.v, part.points, part.volume, nodes)
        if not self.grid:
            part.nodes = drawn_nodes(self.metric, part.mu, cov, self.noise)
        return self.normalised(part)
