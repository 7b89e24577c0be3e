r"""EM of mixtures of columns of any kind, with as many components as held-out rows ask for.

.. math:: k = \arg\max_{k \in 1, 2, 4, \dots}\ \sum_f\sum_{i \in f}w_i\log p(x_i; \hat\theta_{-f, k})
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from groundstate.compute.random import Key
from groundstate.compute.reduce import current
from groundstate.compute.weight_line.line import WeightLine
from groundstate.energy.basic import CentroidEnergy
from groundstate.energy.latent.table_mixture import TableMixtureEnergy
from groundstate.learn.base import History, Problem
from groundstate.learn.rules.naive import Naive
from groundstate.learn.solvers.em.expected import ExpectedEM
from groundstate.learn.solvers.latent.kmeans.lloyd import Lloyd
from groundstate.learn.solvers.latent.kmeans.rows import nearest
from groundstate.registry import solvers

FOLDS = 4
EACH = 10  # rows at least for each component that is tried
MOST = 128  # components that are tried
JUDGES = 2**13  # rows, at most, that the number of components is chosen by


@solvers.register(
    formula=r"k = \arg\max_k \sum_f \sum_{i \in f} w_i \log p(x_i; \hat\theta_{-f, k})",
    make=lambda energy: TableMixtureEM(),
)
@dataclass(frozen=True)
class TableMixtureEM:
    """EM from the clusters of k-means, after the number of components was chosen.

    Parameters
    ----------
    n_components : number, or "likelihood": 1, 2, 4, ... until four-fold held-out likelihood falls
    em : what fits one mixture
    """

    n_components: int | str = "likelihood"
    em: ExpectedEM = field(default_factory=lambda: ExpectedEM(1e-4, quiet=True))

    def reason_against(self, problem: Problem) -> str | None:
        if not isinstance(problem.energy, TableMixtureEnergy):
            return "it is for mixtures of columns of any kind"
        if not problem.is_resident or set(problem.names) != {"x"}:
            return "it needs resident x"
        return self.em.reason_against(problem)

    @torch.no_grad()
    def run(self, problem: Problem) -> History:
        energy = problem.energy
        assert isinstance(energy, TableMixtureEnergy)
        held: dict[int, float] = {}
        if isinstance(self.n_components, str):
            held = _held_out(replace(problem, callbacks=()), self.em)
            k = max(held, key=lambda one: held[one])
        else:
            k = self.n_components
        energy.resize(k)
        _start(problem)
        history = self.em.run(problem)
        history.solver = "TableMixtureEM"
        history.extra["held_out"] = list(held.values())
        return history


def _held_out(problem: Problem, em: ExpectedEM) -> dict[int, float]:
    """Mean log-likelihood of held-out rows for each number of components."""
    x, key = problem.resident["x"], problem.key.fold("size")
    line = _line(x, problem.sample_weight)
    given = line.weights if line.total <= JUDGES else line.subsample(key, JUDGES / line.total)
    some = torch.from_numpy(given > 0).to(x.device)
    x, line = x[some], _line(x[some], torch.from_numpy(given[given > 0]))
    folds = min(FOLDS, line.n_distinct)
    found: dict[int, float] = {}
    if folds < 2:
        return {1: 0.0}
    parts = torch.from_numpy(line.folds(key.fold("folds"), folds)).to(x)
    whole = torch.from_numpy(line.weights.copy()).to(x)
    k = 1
    while k == 1 or (k <= MOST and k * EACH <= line.total and found[k // 2] == max(found.values())):
        sums = torch.zeros(2, dtype=torch.float64, device=x.device)
        for f, weight in enumerate(parts):
            energy = TableMixtureEnergy(k, problem.energy.levels, problem.energy.prior)  # type: ignore[arg-type]
            known = weight > 0
            rows = {"x": x[known]}
            one = replace(problem, energy=energy.to(x), data=rows, sample_weight=weight[known],
                          key=key.fold("fold", f))  # fmt: skip
            _start(one)
            em.run(one)
            left = (whole - weight).double()
            own = left > 0
            log_p = -energy(x=x[own]).double()
            sums += torch.stack([left[own] @ log_p, left[own].sum()])
        total = current().sum(sums)
        found[k] = float(total[0] / total[1])
        k *= 2
    return found


def _line(x: Tensor, weight: Tensor | None) -> WeightLine:
    return WeightLine.of(x.cpu().numpy(), weights=None if weight is None else weight.cpu())


def _start(problem: Problem) -> None:
    """θ from the clusters of the rows, levels one-hot."""
    energy = problem.energy
    assert isinstance(energy, TableMixtureEnergy)
    x, weight = problem.resident["x"], problem.sample_weight
    at = _clusters(energy, x, weight, problem.key.fold("start"))
    energy.origin_at(x, weight)
    sums = energy.sums(weight, x, one_hot(at, energy.k).double())
    energy.from_stats(current().sum_dict(sums))


def _clusters(energy: TableMixtureEnergy, x: Tensor, weight: Tensor | None, key: Key) -> Tensor:
    if energy.k == 1:
        return torch.zeros(len(x), dtype=torch.long, device=x.device)
    hot = [one_hot(x[:, j].long(), energy.levels[j]).to(x) for j in energy.discrete]
    rows = torch.cat([x[:, energy.real], *hot], 1)
    centroids = CentroidEnergy(energy.k, rows.shape[1]).to(rows)
    Lloyd().run(Problem(centroids, Naive(latent="minimise"), {"x": rows}, weight, key=key))
    return nearest(rows, centroids.mu)[0].long()
