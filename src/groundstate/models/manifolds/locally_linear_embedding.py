"""Maps of local coordinates."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

from sklearn.base import ClassNamePrefixFeaturesOutMixin
from torch import Tensor

from groundstate.compute.foreign.sklearn import Interval, StrOptions
from groundstate.energy.latent.embedding.graph_map import BarycentreEnergy
from groundstate.learn.solvers.latent.embedding.graph import LocalAlignment
from groundstate.models import settings
from groundstate.models.base import Plan
from groundstate.models.manifolds.base import EnergyEmbedding
from groundstate.models.traits import Traits
from groundstate.registry import models


@models.register(family="manifolds", task="representation", role="embedding", auto=False)
class LocallyLinearEmbedding(ClassNamePrefixFeaturesOutMixin, EnergyEmbedding):
    r"""A map in which every row is the same mixture of its neighbours as among the features.

    .. math::
        \min_Y\;\sum_i\Bigl\|y_i - \sum_jw_{ij}y_j\Bigr\|^2 = \mathrm{tr}(Y^\top MY), \qquad
        Y^\top Y = I ,

    with :math:`w_i` the weights, which sum to one, that make :math:`x_i` of its k nearest rows. The
    variants take other local matrices: several weightings for each row ("modified"), second
    derivatives on tangent spaces ("hessian"), or the tangent spaces themselves ("ltsa"). A new row goes
    to :math:`\sum_jw_j(x)y_j`, the minimum of :math:`e(x, z) = \tfrac12\|z - \sum_jw_j(x)y_j\|^2`.

    Parameters
    ----------
    n_neighbors : int, default=5
    reg : float, default=1e-3
        Of the weights, relative to the spread of the neighbours.
    eigen_solver : {"auto", "arpack", "dense"}, default="auto"
        All eigenvalues at once ("dense", and up to 300 rows), or a factorised matrix and a few steps of
        Lanczos.
    tol : float, default=1e-6
        Accepted for scikit-learn's sake; the few eigenvalues are found to machine precision.
    max_iter : int, default=100
        Accepted for scikit-learn's sake.
    method : {"standard", "hessian", "modified", "ltsa"}, default="standard"
    hessian_tol, modified_tol : float, default=1e-4, 1e-12
        As in scikit-learn.
    n_jobs : int, default=None
        Accepted for scikit-learn's sake; torch's number of threads counts.
    device : str or torch.device, default=None
        Where new rows are placed; the map itself is laid out on the CPU.

    Attributes
    ----------
    embedding_ : (n_samples, n_components) array
        The entry of largest modulus of each column is positive.
    reconstruction_error_ : float
        :math:`\mathrm{tr}(Y^\top MY)`, the sum of the eigenvalues.
    energy_ : BarycentreEnergy

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import LocallyLinearEmbedding
    >>> t = np.linspace(0, 4, 60)
    >>> X = np.column_stack([np.cos(t), np.sin(t)])
    >>> model = LocallyLinearEmbedding(n_neighbors=4, n_components=1).fit(X)
    >>> bool(abs(np.corrcoef(model.embedding_[:, 0], t)[0, 1]) > 0.98)
    True
    """

    traits = Traits(space={"n_neighbors": settings.Whole(4, 40, log=True)})
    _runs_on = "answers"
    metric = "euclidean"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "reg": [Interval(Real, 0, None, closed="left")],
        "eigen_solver": [StrOptions({"auto", "arpack", "dense"})],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "method": [StrOptions({"standard", "hessian", "modified", "ltsa"})],
        "hessian_tol": [Interval(Real, 0, None, closed="left")],
        "modified_tol": [Interval(Real, 0, None, closed="left")],
        "neighbors_algorithm": [StrOptions({"auto", "brute", "kd_tree", "ball_tree"})],
        "random_state": ["random_state"],
        "n_jobs": [None, Integral],
        "device": "no_validation",  # type: ignore[dict-item]
        "callbacks": "no_validation",  # type: ignore[dict-item]
    }

    def __init__(
        self,
        *,
        n_neighbors: int = 5,
        n_components: int = 2,
        reg: float = 1e-3,
        eigen_solver: str = "auto",
        tol: float = 1e-6,
        max_iter: int = 100,
        method: str = "standard",
        hessian_tol: float = 1e-4,
        modified_tol: float = 1e-12,
        neighbors_algorithm: str = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        p, k, d = self.n_components, self.n_neighbors, X.shape[1]
        if p > d:
            raise ValueError(
                "output dimension must be less than or equal to input dimension, got "
                f"n_components={p} for {d} features"
            )
        if self.method == "hessian" and k <= p * (p + 3) // 2:
            raise ValueError(
                "for method='hessian', n_neighbors must be greater than "
                f"[n_components * (n_components + 3) / 2] = {p * (p + 3) // 2}, got {k}"
            )
        if self.method == "modified" and k < p:
            raise ValueError(f"modified LLE requires n_neighbors >= n_components, got {k} and {p}")
        solver = LocalAlignment(
            self.method, 0.0, self.eigen_solver == "dense", self.hessian_tol, self.modified_tol
        )
        return self._planned(BarycentreEnergy(d, p, k, self.reg), solver)

    def _learned(self, energy: Any) -> dict[str, Any]:
        found = super()._learned(energy)
        history = self.__dict__.get("history_")
        if history is not None and "eigenvalues" in history.extra:
            found["reconstruction_error_"] = float(sum(history.extra["eigenvalues"]))
        return found
