"""Principal components."""

from __future__ import annotations

import math
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.base import ClassNamePrefixFeaturesOutMixin
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from groundstate.compute.foreign.sklearn import Interval, RealNotInt, StrOptions
from groundstate.compute.thread_policy import answering
from groundstate.energy.base import Energy
from groundstate.energy.latent.codes import LinearCodeEnergy
from groundstate.learn.rules.naive import Naive
from groundstate.learn.solvers.latent.factors.principal_axes import TALL, PrincipalAxes
from groundstate.learn.solvers.latent.factors.row_sums import LARGE
from groundstate.models import settings
from groundstate.models.arrays import plain_rows
from groundstate.models.base import Plan
from groundstate.models.factors.linear_codes import LinearCodes
from groundstate.models.learned import Learned
from groundstate.models.traits import Traits
from groundstate.registry import models

SPREAD = "it belongs to the rows; fit again, or set energy_.variance"


@models.register(family="factors", task="representation", role="transformer")
class PCA(ClassNamePrefixFeaturesOutMixin, LinearCodes):
    r"""The plane of least squared distance to the rows: directions of largest variance.

    .. math::
        e(x, z) = \tfrac12\|x - b - Wz\|^2 + \text{const}, \quad W^\top W = I, \qquad
        \min_{W, b}\; \sum_i w_i \min_z e(x_i, z) .

    The columns of W are the eigenvectors of the covariance with the largest eigenvalues, b is the
    mean, and the code of a row is :math:`W^\top(x - b)`. Planes are nested: with one axis more, the
    others stay.

    Rows may be arrays, sparse matrices, tensors on a device, and rows larger than memory: a memory
    map, an iterator of arrays, paths of Parquet files (see ``groundstate.models.chunks``).

    Parameters
    ----------
    n_components : int, float, "mle" or None, default=None
        Number of axes; a fraction of the variance to be explained; by the evidence of Minka; None
        keeps all, ``min(n_samples, n_features)``.
    copy : bool, default=True
        Kept for scikit-learn's signature; X is never changed.
    whiten : bool, default=False
        Codes of unit variance.
    svd_solver : {"auto", "full", "covariance_eigh", "arpack", "randomized", "power"}, default="auto"
        "full" decomposes the rows, "covariance_eigh" their covariance, "randomized" finds few axes
        by products with random vectors, "arpack" by Lanczos' method, "power" axis after axis, as in
        the definition. "auto" takes the covariance for tall tables, "arpack" for sparse ones, else
        "randomized" for few axes of large tables. Where variances are so small that the covariance
        has lost them, the rows are decomposed instead; ``history_.about["svd_solver"]`` says so.
    tol : float, default=0
        Of "arpack".
    iterated_power : int or "auto", default="auto"
        Power steps of "randomized".
    n_oversamples : int, default=10
        Random vectors of "randomized" beyond the axes.
    random_state : int, default=None
        Of "randomized", "arpack" and "power".

    Attributes
    ----------
    components_ : (n_components_, n_features) array
        Axes as rows, the entry of largest modulus positive.
    explained_variance_ : (n_components_,) array
        Variances of the codes, by the number of rows less one.
    explained_variance_ratio_ : (n_components_,) array
    singular_values_ : (n_components_,) array
    mean_ : (n_features,) array
    noise_variance_ : float
        Mean variance of the directions left out.
    n_components_, n_samples_ : int
    energy_ : LinearCodeEnergy

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import PCA
    >>> X = np.array([[2.0, 0], [-2, 0], [0, 1], [0, -1]])
    >>> model = PCA().fit(X)
    >>> model.components_.tolist(), model.explained_variance_.round(4).tolist()
    ([[1.0, 0.0], [0.0, 1.0]], [2.6667, 0.6667])
    >>> PCA(1).fit(X).reconstruction_error(X).tolist()
    [0.0, 0.0, 1.0, 1.0]
    """

    traits = Traits(
        space={"n_components": settings.Whole(1, 3), "whiten": settings.Choice(False, True)}
    )

    _sums_tell: ClassVar[bool] = (
        True  # whether sums of all rows come first, and show what is not finite
    )

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [
            Interval(Integral, 0, None, closed="left"),
            Interval(RealNotInt, 0, 1, closed="neither"),
            StrOptions({"mle"}),
            None,
        ],
        "whiten": ["boolean"],
        "svd_solver": [
            StrOptions({"auto", "full", "covariance_eigh", "arpack", "randomized", "power"})
        ],
        "iterated_power": [StrOptions({"auto"}), Interval(Integral, 0, None, closed="left")],
        "n_oversamples": [Interval(Integral, 1, None, closed="left")],
        "power_iteration_normalizer": [StrOptions({"auto", "QR", "LU", "none"})],
    }

    def __init__(
        self,
        n_components: Any = None,
        *,
        copy: bool = True,
        whiten: bool = False,
        svd_solver: str = "auto",
        tol: float = 0.0,
        iterated_power: Any = "auto",
        n_oversamples: int = 10,
        power_iteration_normalizer: str = "auto",
        random_state: Any = None,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    def _min_rows(self) -> int:
        return 2

    def _checked_table(self, X: Any, y: Any) -> tuple[Any, Any, dict[str, Any]]:
        """Rows whose covariance is taken are not looked at before: their sums tell."""
        if self._sums_tell and self.svd_solver == "auto" and type(X) is np.ndarray and X.ndim == 2:
            d = X.shape[1]
            tall = X.size >= LARGE and d <= TALL
            if tall and plain_rows(X, max(self._min_rows(), 10 * d), finite=True):
                return self._counted(X), None, {}
        return super()._checked_table(X, y)

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        solver = PrincipalAxes(
            self.n_components, self.svd_solver, self.tol, self.iterated_power, self.n_oversamples
        )
        length = self.n_components if isinstance(self.n_components, int) else 0
        energy = LinearCodeEnergy(X.shape[1], min(length, X.shape[1]), dtype=X.dtype)
        return Plan(energy, Naive(latent="minimise"), solver)

    def _learned(self, energy: Energy) -> dict[str, Any]:
        assert isinstance(energy, LinearCodeEnergy)
        return {"n_components_": energy.W.shape[1], "n_samples_": round(float(energy.count))}

    components_ = Learned(lambda model: model.energy_.W.T)
    mean_ = Learned(lambda model: model.energy_.b)
    explained_variance_ = Learned(lambda model: model.energy_.variance)
    explained_variance_ratio_ = Learned(
        lambda model: model.energy_.variance / (model.energy_.total or 1.0), instead=SPREAD
    )
    singular_values_ = Learned(
        lambda model: (model.energy_.variance * (model.energy_.count - 1)).sqrt(), instead=SPREAD
    )

    @property
    def noise_variance_(self) -> float:
        """Mean variance of the directions left out."""
        self._fitted()
        return float(self.energy_.noise)

    def _fitted(self) -> None:
        if "energy_" not in vars(self):
            raise AttributeError("PCA has noise_variance_ after fit, and is not fitted yet")

    # --- answers -------------------------------------------------------------------------

    def _scale(self) -> Tensor | None:
        if not self.whiten:
            return None
        variance = self.energy_.variance
        assert isinstance(variance, Tensor)
        return variance.sqrt().clamp_min(torch.finfo(variance.dtype).eps)

    def reconstruction_error(self, X: Any) -> Any:
        """Squared distance of each row to the plane, twice its energy, ``(n_samples,)``."""
        x, home = self._rows(X)
        energy: Any = self.energy_
        with answering(energy, x):
            return home.give(2 * energy.left(x, energy.encode(x)))

    def score_samples(self, X: Any) -> Any:
        r"""Log density of each row under :math:`N(b, W(\Lambda - \nu I)W^\top + \nu I)`."""
        x, home = self._rows(X)
        energy: Any = self.energy_
        with answering(energy, x):
            x = x if x.layout == torch.strided else x.to_dense()
            code = energy.encode(x)
            d, l = energy.W.shape
            least = 1e-12 * energy.total / d + 1e-300
            variance, noise = energy.variance.double().clamp_min(least), max(energy.noise, least)
            square = (code.double().square() / variance).sum(1) + variance.log().sum()
            if d > l:
                rest = 2 * energy.left(x, code).double()
                square = square + rest / noise + (d - l) * math.log(noise)
            out = -0.5 * (square + d * math.log(2 * math.pi))
        return home.give(out.to(energy.W.dtype))

    def score(self, X: Any, y: Any = None) -> float:
        """Mean log density of the rows."""
        return float(np.mean(np.asarray(self.score_samples(X), dtype=np.float64)))

    def get_covariance(self) -> Any:
        r""":math:`W(\Lambda - \nu I)W^\top + \nu I`, ``(n_features, n_features)``."""
        V, extra, noise = self._parts()
        return ((V.T * extra) @ V + noise * torch.eye(V.shape[1]).to(V)).cpu().numpy()

    def get_precision(self) -> Any:
        """The inverse of ``get_covariance()``."""
        V, extra, noise = self._parts()
        eye = torch.eye(V.shape[1]).to(V)
        if not noise > 0:
            return torch.linalg.inv((V.T * extra) @ V + noise * eye).cpu().numpy()
        return ((eye - (V.T * (extra / (extra + noise))) @ V) / noise).cpu().numpy()

    @torch.no_grad()
    def _parts(self) -> tuple[Tensor, Tensor, float]:
        check_is_fitted(self, "energy_")
        energy: Any = self.energy_
        extra = (energy.variance - energy.noise).clamp_min(0)
        return energy.W.detach().T, extra, energy.noise
