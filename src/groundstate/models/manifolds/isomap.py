"""Maps of lengths of paths."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.base import ClassNamePrefixFeaturesOutMixin
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from groundstate.compute.foreign.sklearn import Interval, StrOptions
from groundstate.energy.latent.embedding.strain import GeodesicEnergy
from groundstate.learn.solvers.latent.embedding.common import repeated
from groundstate.learn.solvers.latent.embedding.scaling import GeodesicScaling
from groundstate.math.manifold.quality import residual_variance
from groundstate.math.manifold.scaling import double_centred, top_of_centred
from groundstate.models import settings
from groundstate.models.base import Plan
from groundstate.models.manifolds.base import EnergyEmbedding
from groundstate.models.traits import Traits
from groundstate.registry import models

PATHS = {"auto": "auto", "FW": "floyd_warshall", "D": "dijkstra"}


@models.register(family="manifolds", task="representation", role="embedding", auto=False)
class Isomap(ClassNamePrefixFeaturesOutMixin, EnergyEmbedding):
    r"""A map whose distances are the lengths of paths along the data.

    .. math::
        \min_Y\;\|\tau(D_S) - YY^\top\|^2, \qquad \tau(D) = -\tfrac12 H(D\circ D)H ,

    with :math:`D_S` the shortest paths along a graph that joins near rows: a rolled-up sheet is
    unrolled. Coordinates are :math:`\sqrt{\lambda_p}v_p` of the largest eigenvalues. A new row goes
    along :math:`d(x, \cdot) = \min_j d(x, x_j) + D_S(j, \cdot)` to where its strain
    :math:`e(x, z) = \tfrac12\sum_j(b_j(x) - y_j^\top z)^2` is lowest.

    Too few neighbours leave the graph in parts; too many make short cuts between parts of the data
    that only look near. ``residual_variance`` and the number of parts, ``n_parts_``, tell.

    Parameters
    ----------
    n_neighbors : int or None, default=5
    radius : float or None, default=None
        Join rows at most this far apart, in place of ``n_neighbors=None``.
    n_landmarks : int, "auto" or None, default=None
        Paths from so many rows, far from each other, in place of all; "auto" is
        ``max(200, 20 * n_components)``. Memory is n × m in place of n × n.
    eigen_solver, tol, max_iter : default="auto", 0, None
        Accepted for scikit-learn's sake; a block Krylov method finds the few eigenvalues to 1e-12.
    path_method : {"auto", "FW", "D"}, default="auto"
        Floyd and Warshall, or Dijkstra.
    n_jobs : int, default=None
        Accepted for scikit-learn's sake; torch's number of threads counts.
    p : float, default=2
        Exponent of the Minkowski metric.
    on_disconnected : {"connect", "largest", "error"}, default="connect"
        What to do with a graph in parts: join the nearest rows of different parts, and warn; lay out
        the largest part, with NaN for the others; or refuse.

    Attributes
    ----------
    embedding_ : (n_samples, n_components) array
    dist_matrix_ : (n_samples, n_samples) array, or (n_landmarks, n_samples)
    eigenvalues_ : (n_components,) array
    n_parts_ : int
        Of the graph, before they were joined.
    energy_ : GeodesicEnergy

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import Isomap
    >>> t = np.linspace(0, 4, 60)
    >>> X = np.column_stack([np.cos(t), np.sin(t)])
    >>> model = Isomap(n_neighbors=3, n_components=1).fit(X)
    >>> bool(abs(np.corrcoef(model.embedding_[:, 0], t)[0, 1]) > 0.9999)
    True
    """

    traits = Traits(space={"n_neighbors": settings.Whole(4, 40, log=True)})

    _places_known_rows: ClassVar[bool] = True
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_neighbors": [Interval(Integral, 1, None, closed="left"), None],
        "radius": [Interval(Real, 0, None, closed="both"), None],
        "n_landmarks": [
            StrOptions({"auto"}),
            Interval(Integral, 1, None, closed="left"),
            None,
        ],
        "eigen_solver": [StrOptions({"auto", "arpack", "dense"})],
        "max_iter": [Interval(Integral, 1, None, closed="left"), None],
        "path_method": [StrOptions({"auto", "FW", "D"})],
        "neighbors_algorithm": [StrOptions({"auto", "brute", "kd_tree", "ball_tree"})],
        "p": [Interval(Real, 0, None, closed="right")],
        "on_disconnected": [StrOptions({"connect", "largest", "error"})],
    }

    def __init__(
        self,
        *,
        n_neighbors: int | None = 5,
        radius: float | None = None,
        n_components: int = 2,
        n_landmarks: Any = None,
        eigen_solver: str = "auto",
        tol: float = 0,
        max_iter: int | None = None,
        path_method: str = "auto",
        neighbors_algorithm: str = "auto",
        n_jobs: int | None = None,
        metric: Any = "minkowski",
        p: float = 2,
        metric_params: dict[str, Any] | None = None,
        on_disconnected: str = "connect",
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        if self.n_neighbors is not None and self.radius is not None:
            raise ValueError(
                "Both n_neighbors and radius are provided. Use Isomap(radius=radius, "
                "n_neighbors=None) if intended to use radius-based neighbors"
            )
        if self.n_neighbors is None and self.radius is None:
            raise ValueError("Isomap needs n_neighbors or radius, got None for both")
        n = len(X) if weight is None else int(weight.sum())
        if self.n_components > n:
            raise ValueError(f"n_components={self.n_components} must be at most n_samples={n}")
        m = self.n_landmarks
        if m == "auto":
            m = max(200, 20 * self.n_components)
        if m is not None and m < self.n_components:
            raise ValueError(f"n_landmarks={m} must be at least n_components={self.n_components}")
        k = self.n_neighbors if self.n_neighbors is not None else min(10, n - 1)
        energy = GeodesicEnergy(
            X.shape[1], self.n_components, k, radius=self.radius, **self._memory()
        )
        method = PATHS[self.path_method]
        return self._planned(energy, GeodesicScaling(self.radius, m, self.on_disconnected, method))

    def _places(self, energy: Any, x: Tensor, weight: Tensor | None) -> Tensor:
        out: Tensor = torch.full(
            (len(x), energy.components), torch.nan, dtype=x.dtype, device=x.device
        )
        laid = torch.zeros(len(x), dtype=torch.bool, device=x.device)
        laid[self._index] = True
        if len(energy.Y) == len(self._index):
            first = torch.full((len(x),), len(x) + len(self._index), device=x.device)
            at = torch.arange(len(self._index), device=x.device)
            first.scatter_reduce_(0, self._index, at, "amin")
            out[laid] = energy.Y.detach()[first[laid]].to(x.dtype)
        else:
            out[laid] = energy.place(x[laid])
        absent = torch.ones_like(laid)
        absent[repeated(x, weight)] = False  # of weight zero: placed like any new row
        if bool(absent.any()):
            out[absent] = energy.place(x[absent])
        return out

    def _learned(self, energy: Any) -> dict[str, Any]:
        found = super()._learned(energy)
        history = self.__dict__.get("history_")
        if history is not None and "eigenvalues" in history.extra:
            kind = found["embedding_"].dtype
            found["eigenvalues_"] = np.asarray(history.extra["eigenvalues"], kind)
            found["n_parts_"] = int(history.extra["parts"][0])
        return found

    @property
    def dist_matrix_(self) -> Any:
        check_is_fitted(self, "energy_")
        paths: Tensor = self.energy_.paths  # type: ignore[assignment]
        return paths.detach().T.cpu().numpy()

    def reconstruction_error(self) -> float:
        r""":math:`\|\tau(D_S) - YY^\top\|/n` of the rows (of the landmarks, where there are)."""
        check_is_fitted(self, "energy_")
        energy: Any = self.energy_
        core = energy.paths if len(energy.Y) == len(energy.paths) else self._between(energy)
        B = double_centred(core.detach().double())
        Y = energy.Y.detach().double()
        return float(torch.linalg.matrix_norm(B - Y @ Y.T) / len(Y))

    @staticmethod
    def _between(energy: Any) -> Tensor:
        """Paths between landmarks, whose own rows of the table hold a zero."""
        at = energy.paths.argmin(0)
        found: Tensor = energy.paths[at]
        return found

    def residual_variance(self, n_components: int | None = None) -> float:
        r""":math:`1 - \mathrm{corr}^2(D_S, D_Y)` of a map of so many dimensions, at most all."""
        check_is_fitted(self, "energy_")
        energy: Any = self.energy_
        p = self.embedding_.shape[1] if n_components is None else n_components
        core = energy.paths if len(energy.Y) == len(energy.paths) else self._between(energy)
        core = core.detach().double()
        if p <= energy.components:
            Y = energy.Y.detach().double()[:, :p]
        else:
            values, vectors = top_of_centred(core, p)
            Y = vectors * values.clamp_min(0).sqrt()
        return float(residual_variance(core, Y, precomputed=True))
