"""Maps of neighbours."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.base import ClassNamePrefixFeaturesOutMixin
from sklearn.utils import check_array
from torch import Tensor

from groundstate.compute.foreign.sklearn import Interval, StrOptions
from groundstate.energy.latent.embedding.neighbor_map import NeighborMapEnergy
from groundstate.learn.solvers.latent.embedding.tsne import NeighborDescent
from groundstate.math.manifold.descent import Schedule
from groundstate.models import settings
from groundstate.models.arrays import unwrap
from groundstate.models.base import Plan
from groundstate.models.manifolds.base import EnergyEmbedding
from groundstate.models.traits import Traits
from groundstate.registry import models


@models.register(family="manifolds", task="representation", role="embedding")
class TSNE(ClassNamePrefixFeaturesOutMixin, EnergyEmbedding):
    r"""A map in which rows have the neighbours that they have among the features (t-SNE).

    .. math::
        \min_Y\; \mathrm{KL}(P\,\|\,Q), \qquad
        q_{ij} \propto e^{-\varepsilon(\|y_i - y_j\|^2)}, \quad \varepsilon(s) = \log(1 + s) ,

    with :math:`p_{ij}` the affinities of rows at a perplexity. Near rows are kept near; distances
    between clusters, and their sizes, mean little. A pair of the map has a heavy-tailed
    distribution, which leaves moderate distances room that a plane does not have.

    There is no map of new rows: Y is a table, not a function. ``transform`` puts new rows into the
    frozen map, each by its own neighbours,
    :math:`\min_z e(x, z) = \mathrm{KL}(p_{\cdot\mid x}\,\|\,q_{\cdot\mid z})`.

    Parameters
    ----------
    perplexity : float, default=30
        How many neighbours a row has, roughly; less than the number of rows.
    early_exaggeration : float, default=12
        How many times as much neighbours pull during the first 250 steps.
    learning_rate : float or "auto", default="auto"
        "auto" is ``max(n_samples / early_exaggeration / 4, 50)``, without the 50 for "gaussian".
    max_iter : int, default=1000
    n_iter_without_progress : int, default=300
    min_grad_norm : float, default=1e-7
    init : {"pca", "random"} or array (n_samples, n_components), default="pca"
        "pca" keeps more of the large arrangement, scaled to a standard deviation of 1e-4.
    verbose : int, default=0
        Above zero, a progress bar.
    random_state : int, default=None
        Of ``init="random"``; nothing else is random.
    method : {"auto", "exact", "barnes_hut", "fft"}, default="auto"
        How the pushes of all pairs are summed: pair by pair (up to 1,000 rows), by a tree of cells,
        or by a grid and Fourier transforms (from 10,000 rows on, in two dimensions).
    angle : float, default=0.5
        How wide a cell of the tree may look to count as one row.
    kernel : {"t", "gaussian"}, default="t"
        The distribution of a pair of the map; "gaussian" is symmetric SNE.
    dof : float, default=1
        Degrees of freedom of "t"; fewer spread clusters further apart.
    distance_power : float or "intrinsic", default=1
        "intrinsic" takes distances to the power of the local dimension over that of the map, so that
        rows of many dimensions, which are all equally far away, get neighbours.
    n_jobs : int, default=None
        Accepted for scikit-learn's sake; torch's number of threads counts.
    callbacks : sequence, default=None
        Callbacks of groundstate or scikit-learn, called every 50 steps.

    Attributes
    ----------
    embedding_ : (n_samples, n_components) array
    kl_divergence_ : float
    learning_rate_ : float
    n_iter_ : int
    energy_ : NeighborMapEnergy

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import TSNE
    >>> X = np.repeat(np.eye(3), 10, axis=0) + np.random.default_rng(0).normal(0, 0.1, (30, 3))
    >>> model = TSNE(perplexity=5, learning_rate=10).fit(X)  # few rows: smaller steps than "auto"
    >>> model.embedding_.shape, model.kl_divergence_ < 0.1
    ((30, 2), True)
    """

    traits = Traits(space={"perplexity": settings.Real(5.0, 50.0, log=True)})

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "perplexity": [Interval(Real, 0, None, closed="neither")],
        "early_exaggeration": [Interval(Real, 1, None, closed="left")],
        "learning_rate": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 250, None, closed="left")],
        "n_iter_without_progress": [Interval(Integral, -1, None, closed="left")],
        "min_grad_norm": [Interval(Real, 0, None, closed="left")],
        "init": [StrOptions({"pca", "random"}), "array-like"],
        "method": [StrOptions({"auto", "exact", "barnes_hut", "fft"})],
        "angle": [Interval(Real, 0, 1, closed="both")],
        "kernel": [StrOptions({"t", "gaussian"})],
        "dof": [Interval(Real, 0, None, closed="neither")],
        "distance_power": [StrOptions({"intrinsic"}), Interval(Real, 0, None, closed="neither")],
    }

    def __init__(
        self,
        n_components: int = 2,
        *,
        perplexity: float = 30.0,
        early_exaggeration: float = 12.0,
        learning_rate: Any = "auto",
        max_iter: int = 1000,
        n_iter_without_progress: int = 300,
        min_grad_norm: float = 1e-7,
        metric: Any = "euclidean",
        metric_params: dict[str, Any] | None = None,
        init: Any = "pca",
        verbose: int = 0,
        random_state: Any = None,
        method: str = "auto",
        angle: float = 0.5,
        kernel: str = "t",
        dof: float = 1.0,
        distance_power: Any = 1.0,
        n_jobs: int | None = None,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        n = len(X) if weight is None else int(weight.sum())
        init = self.init
        if isinstance(init, str):
            if init == "pca" and self._is_square:
                raise ValueError(
                    'The parameter init="pca" cannot be used with metric="precomputed"; pass '
                    'init="random" or coordinates.'
                )
        else:
            init = check_array(unwrap(init)[0], dtype=np.float64, input_name="init")
            if init.shape != (len(X), self.n_components):
                raise ValueError(
                    f"init must hold the coordinates of all rows, ({len(X)}, {self.n_components}), "
                    f"got {init.shape}"
                )
            init = torch.from_numpy(init)
        rate = self.learning_rate
        if rate == "auto":
            rate = n / self.early_exaggeration / 4
            if self.kernel == "t":  # which pulls less from afar, so that a step cannot overshoot
                rate = max(rate, 50.0)
        self.learning_rate_ = float(rate)
        wait = self.n_iter_without_progress
        schedule = Schedule(
            exaggeration=float(self.early_exaggeration), rate=float(rate), max_iter=self.max_iter,
            min_grad_norm=self.min_grad_norm, patience=math.inf if wait < 0 else wait,  # type: ignore[arg-type]
        )  # fmt: skip
        energy = NeighborMapEnergy(
            X.shape[1], self.n_components, self.perplexity, kernel=self.kernel, dof=self.dof,
            distance_power=self.distance_power, **self._memory(),
        )  # fmt: skip
        return self._planned(energy, NeighborDescent(init, schedule, self.method, self.angle))

    def _learned(self, energy: Any) -> dict[str, Any]:
        found = super()._learned(energy)
        history = self.__dict__.get("history_")
        if history is not None and "kl" in history.extra:
            found["kl_divergence_"] = history.extra["kl"][-1]
        return found
