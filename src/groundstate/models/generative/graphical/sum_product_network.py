"""Sum-product networks: mixtures of products of mixtures, in which every marginal is one pass."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import torch
from torch import Tensor

from groundstate.compute.foreign.sklearn import Interval, StrOptions
from groundstate.compute.random import Key
from groundstate.compute.weight_line.line import WeightLine
from groundstate.energy.graphical.circuit import CircuitEnergy
from groundstate.learn.solvers.em.expected import ExpectedEM
from groundstate.models import settings
from groundstate.models.generative.graphical.circuits import learned_circuit, random_circuit
from groundstate.models.generative.graphical.tabular import GraphOfColumns
from groundstate.models.traits import Traits
from groundstate.registry import models


@models.register(family="graphical", task="generation", role="generator", auto=False)
class SumProductNetwork(GraphOfColumns):
    r"""A probabilistic circuit of sums and products over the columns.

    .. math:: p(x) = \sum_kw_kp_k(x)\ \text{(sums: rows of different kinds)},\qquad
              p(x) = \prod_kp_k(x_{(k)})\ \text{(products: independent columns)}

    nested, with tables or Gaussians of single columns at the leaves. A column is summed out by setting
    its leaves to 1, so every marginal and every conditional probability takes one pass.

    Parameters
    ----------
    structure : {"learn", "random"} or list of nodes, default="learn"
        "learn" splits columns that are independent and groups of rows in turn (LearnSPN); "random" makes
        random binary trees of the columns; or nodes as ``CircuitEnergy`` takes them.
    min_rows : int, default=30
        Fewer rows are not split further ("learn").
    threshold : float, default=0.01
        Columns are independent when the p-value of their dependence is above it ("learn").
    dependence : {"g2", "rdc"}, default="g2"
        The test of two columns ("learn"): G² of their levels, of real columns of quarters of their ranks,
        or the randomised dependence coefficient, which also sees forms that quarters do not.
    n_groups : int, default=2
        Groups of rows of a sum ("learn").
    n_components : int, default=4
        Sums of each part of the columns ("random").
    n_repetitions : int, default=3
        Random trees ("random").
    smoothing : float, default=0.1
        Pseudo-count of each value of a leaf.
    scale : {"standard", "minmax"} or None, default="standard"
    tol : float, default=1e-5
        EM stops when an iteration gains less, in nats per row.
    max_iter : int, default=100
        Iterations of EM at most, after the structure is found; 0 leaves it as the structure is.

    Attributes
    ----------
    energy_ : CircuitEnergy
    n_nodes_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import SumProductNetwork
    >>> rng = np.random.default_rng(0)
    >>> z = rng.random(500) < 0.5
    >>> X = np.where(z[:, None], rng.normal(3, 1, (500, 2)), rng.normal(-3, 1, (500, 2)))
    >>> model = SumProductNetwork(random_state=0).fit(X)
    >>> model.impute(np.array([[3.0, np.nan]])).round(0).tolist()
    [[3.0, 3.0]]
    """

    traits = Traits(
        space={
            "min_rows": settings.Whole(10, 200, log=True),
            "smoothing": settings.Real(1e-3, 1.0, log=True),
        }
    )
    category_code: ClassVar[str] = "levels"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "structure": [StrOptions({"learn", "random"}), list],
        "min_rows": [Interval(Integral, 1, None, closed="left")],
        "threshold": [Interval(Real, 0, 1, closed="both")],
        "dependence": [StrOptions({"g2", "rdc"})],
        "n_groups": [Interval(Integral, 2, None, closed="left")],
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "n_repetitions": [Interval(Integral, 1, None, closed="left")],
        "smoothing": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 0, None, closed="left")],
    }

    def __init__(
        self,
        structure: Any = "learn",
        *,
        min_rows: int = 30,
        threshold: float = 0.01,
        n_groups: int = 2,
        n_components: int = 4,
        n_repetitions: int = 3,
        smoothing: float = 0.1,
        dependence: str = "g2",
        scale: str | None = "standard",
        tol: float = 1e-5,
        max_iter: int = 100,
        random_state: Any = None,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    def _learn_coding(self, X: Tensor, weight: Tensor | None) -> None:
        known = X
        if bool(torch.isnan(X).any()):  # the scale of a column is that of what is known of it
            own = (~torch.isnan(X)).double()
            own = own if weight is None else own * weight.double()[:, None]
            total = (own * torch.nan_to_num(X)).sum(0) / own.sum(0).clamp_min(1e-300)
            known = torch.where(torch.isnan(X), total.to(X), X)
        super()._learn_coding(known, weight)

    def _part(self, x: Tensor, weight: Tensor | None) -> CircuitEnergy:
        levels = self.levels_
        key = Key.of(self.random_state).fold("structure")
        if self.structure == "random":
            nodes = random_circuit(len(levels), self.n_components, self.n_repetitions, key)
        elif self.structure == "learn":
            nodes = learned_circuit(
                x, levels, weight, min_rows=self.min_rows, threshold=self.threshold,
                n_groups=self.n_groups, key=key, dependence=self.dependence,
            )  # fmt: skip
        else:
            nodes = self.structure
        return CircuitEnergy(nodes, levels, self.smoothing, 1e-4)

    def _solver(self, x: Tensor) -> Any:
        return ExpectedEM(self.tol, max(self.max_iter, 1), quiet=True)

    def _start(self, energy: Any, x: Tensor, weight: Tensor | None, key: Any) -> None:
        """Leaves that differ, around the columns' own distributions."""
        rng = Key.of(self.random_state).fold("start", key).numpy()
        with torch.no_grad():
            for j, n in enumerate(energy.discrete):
                size = energy.levels[energy.nodes[n][1]]
                noise = torch.from_numpy(rng.normal(0, 0.5, size))
                energy.tables[j, :size] = noise.to(energy.tables)
            if energy.real:
                at = [energy.nodes[n][1] for n in energy.real]
                # a row of its own for every leaf: k-means starts so, too
                rows = WeightLine.of(
                    torch.nan_to_num(x).double().cpu().numpy(),
                    weights=None if weight is None else weight.double().cpu().numpy(),
                ).draw(Key.of(self.random_state).fold("leaves", key), len(at))
                picked = x[torch.as_tensor(rows, device=x.device), at]
                energy.mean.copy_(torch.nan_to_num(picked))
            noise = torch.from_numpy(rng.normal(0, 0.1, len(energy.weights)))
            energy.weights.copy_(noise)

    @property
    def n_nodes_(self) -> int:
        """Leaves, sums and products."""
        energy: Any = self.energy_
        parts = getattr(energy, "parts", [energy])
        return sum(len(part.nodes) for part in parts)

    def _log_known(self, part: Any, x: Tensor) -> Tensor:
        free = torch.isnan(x)
        known = torch.where(free, 0.0, x)
        if bool(free.any()):
            return part.log_marginal(known, free)
        return -part(x=x)

    def _mean_of(self, conditional: Any) -> Tensor:
        mean: Tensor = conditional.mean
        columns = [
            p.argmax(1).to(mean) if p.shape[1] else mean[:, j]
            for j, p in enumerate(conditional.marginals())
        ]
        return torch.stack(columns, 1)
