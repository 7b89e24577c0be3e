"""Principal components in the space of a kernel."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import torch
from sklearn.base import ClassNamePrefixFeaturesOutMixin
from sklearn.exceptions import NotFittedError
from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS
from sklearn.utils import Tags
from torch import Tensor

from groundstate.compute.foreign.sklearn import Interval, StrOptions
from groundstate.compute.thread_policy import answering
from groundstate.energy.base import Energy
from groundstate.energy.latent.kernel_codes import KernelCodeEnergy
from groundstate.learn.rules.naive import Naive
from groundstate.learn.solvers.latent.factors.kernel_axes import KernelAxes
from groundstate.math.kernels import Geometry, Kernel
from groundstate.models import settings
from groundstate.models.arrays import unwrap
from groundstate.models.base import Plan
from groundstate.models.factors.linear_codes import codes_of
from groundstate.models.kernels.nested import NestedKernel
from groundstate.models.kernels.pairwise import ridge_kernel
from groundstate.models.learned import Learned
from groundstate.models.roles import EnergyTransformer
from groundstate.models.traits import Traits
from groundstate.registry import models


@models.register(family="factors", task="representation", role="transformer", max_rows=10_000)
class KernelPCA(ClassNamePrefixFeaturesOutMixin, NestedKernel, EnergyTransformer):
    r"""The plane of least squared distance to the images of the rows in the space of a kernel.

    .. math::
        e(x, z) = \tfrac12\|\phi(x) - \mu - \textstyle\sum_k z_kv_k\|^2 + \text{const}, \qquad
        \langle\phi(x), \phi(x')\rangle = k(x, x') .

    Axes come from the eigenvectors of the centred kernel matrix HKH, and the rows have the coordinates
    :math:`\sqrt{\lambda_k}v_k`. The linear kernel gives `PCA`, and :math:`-\tfrac12D^2` of distances as a
    precomputed kernel classical scaling.

    Parameters
    ----------
    n_components : int or None, default=None
        Number of axes; None keeps all of positive variance.
    kernel : str, kernel object or callable, default="linear"
        A kernel of ``groundstate.math.kernels``, a name known to scikit-learn ("linear", "rbf", "poly",
        "sigmoid", "cosine", "precomputed", ...), or a function of two rows.
    gamma : float, default=None
        Of the named kernels; None is 1/n_features.
    degree, coef0 : of the polynomial and sigmoid kernels
    kernel_params : dict, default=None
        Arguments of a function.
    alpha : float, default=1.0
        Ridge of the inverse map.
    fit_inverse_transform : bool, default=False
        Learn to go back from codes to rows, by kernel ridge regression.
    eigen_solver : {"auto", "dense", "arpack", "randomized"}, default="auto"
        All eigenvectors, few by Lanczos' method, or few by products with random vectors. "auto" is
        "arpack" for few axes of more than 200 rows.
    tol : float, default=0
        Of "arpack".
    max_iter : int or None, default=None
        Products of "arpack" at most; None goes on until it has converged.
    iterated_power : int or "auto", default="auto"
        Steps of "randomized".
    remove_zero_eig : bool, default=False
        Leave out axes without variance.
    random_state : int, default=None
    copy_X : bool, default=True
        Kept for scikit-learn's signature; X is never changed.
    n_jobs : int, default=None
        Kept for scikit-learn's signature.
    n_landmarks : int or None, default=None
        Rows that stand for all others (Nyström), for tables whose kernel matrix is too large.

    Attributes
    ----------
    eigenvalues_ : (n_components,) array
    eigenvectors_ : (n_samples, n_components) array
    X_fit_ : (n_distinct, n_features) array
        The rows; equal rows are kept once.
    gamma_ : float
    dual_coef_, X_transformed_fit_ : arrays, with ``fit_inverse_transform=True``
    energy_ : KernelCodeEnergy

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import PCA, KernelPCA
    >>> X = np.random.default_rng(0).normal(size=(20, 3))
    >>> np.allclose(np.abs(KernelPCA(2).fit_transform(X)), np.abs(PCA(2).fit_transform(X)))
    True
    """

    traits = Traits(
        space={
            "n_components": settings.Whole(1, 3),
            "kernel": settings.Choice("rbf", "poly"),
            "gamma": settings.Real(1e-3, 1e1, log=True),
        }
    )
    _accept_sparse: ClassVar[bool | str] = "dense"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "kernel": [
            StrOptions(set(PAIRWISE_KERNEL_FUNCTIONS) | {"precomputed"}), Kernel, callable,
        ],
        "gamma": [Interval(Real, 0, None, closed="left"), None],
        "degree": [Interval(Real, 0, None, closed="left")],
        "kernel_params": [dict, None],
        "fit_inverse_transform": ["boolean"],
        "eigen_solver": [StrOptions({"auto", "dense", "arpack", "randomized"})],
        "max_iter": [Interval(Integral, 1, None, closed="left"), None],
        "iterated_power": [Interval(Integral, 0, None, closed="left"), StrOptions({"auto"})],
        "remove_zero_eig": ["boolean"],
        "n_landmarks": [Interval(Integral, 1, None, closed="left"), None],
    }  # fmt: skip

    def __init__(
        self,
        n_components: int | None = None,
        *,
        kernel: Any = "linear",
        gamma: float | None = None,
        degree: float = 3,
        coef0: float = 1,
        kernel_params: dict[str, Any] | None = None,
        alpha: float = 1.0,
        fit_inverse_transform: bool = False,
        eigen_solver: str = "auto",
        tol: float = 0,
        max_iter: int | None = None,
        iterated_power: Any = "auto",
        remove_zero_eig: bool = False,
        random_state: Any = None,
        copy_X: bool = True,
        n_jobs: int | None = None,
        n_landmarks: int | None = None,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags

    def _min_rows(self) -> int:
        return 2

    def _given(self, d: int) -> Kernel:
        return ridge_kernel(self.kernel, d, self.gamma, self.degree, self.coef0, self.kernel_params)

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        if self.kernel == "precomputed":
            if self.fit_inverse_transform:
                raise ValueError("Cannot fit_inverse_transform with a precomputed kernel.")
            if X.shape[0] != X.shape[1]:
                raise ValueError(
                    f"kernel='precomputed' needs the square matrix of kernel values between the "
                    f"training rows, got X of shape {tuple(X.shape)}"
                )
        if self.n_landmarks is not None and self.kernel == "precomputed":
            raise ValueError("n_landmarks needs rows, not a precomputed kernel")
        solver = KernelAxes(
            self.n_components, self.eigen_solver, self.tol, self.iterated_power,
            self.remove_zero_eig, self.n_landmarks, self.max_iter,
        )  # fmt: skip
        self._seen = X, weight
        energy = KernelCodeEnergy(X.shape[1], 1, self._given(X.shape[1]))
        return Plan(energy, Naive(latent="minimise"), solver)

    def _learned(self, energy: Energy) -> dict[str, Any]:
        assert isinstance(energy, KernelCodeEnergy)
        X, weight = self.__dict__.pop("_seen")
        values = np.asarray(self.history_.extra["eigenvalues"])
        known = self.history_.about.pop("codes", None)
        with torch.no_grad():
            self._codes = codes = energy.encode(X) if known is None else known.to(X.dtype)
        vectors = codes.double().cpu().numpy() / np.sqrt(np.where(values > 0, values, np.inf))
        if weight is not None:
            vectors = vectors * np.sqrt(weight.double().cpu().numpy())[:, None]
        kept = np.float32 if X.dtype == torch.float32 else np.float64
        d = X.shape[1]
        found: dict[str, Any] = {
            "eigenvalues_": values.astype(kept),
            "eigenvectors_": vectors.astype(kept),
            "gamma_": 1.0 / d if self.gamma is None else self.gamma,
        }
        if self.fit_inverse_transform:
            with torch.no_grad():
                K = self._given(d).of(Geometry(codes, codes)).double()
                K.diagonal().add_(self.alpha)
                dual = torch.linalg.solve(K, X.double()).to(X)
            found["X_transformed_fit_"] = codes.cpu().numpy()
            found["dual_coef_"] = dual.cpu().numpy()
        return found

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from rows ``X`` (n_samples, n_features); a weight of 2 is the row twice."""
        super().fit(X, y, sample_weight)
        del self._codes
        return self

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Learn, then the codes of the rows, ``(n_samples, n_components)``."""
        super().fit(X, y, sample_weight)
        return unwrap(X)[1].give(self.__dict__.pop("_codes"))

    X_fit_ = Learned(lambda model: model.energy_.centers)

    @property
    def _n_features_out(self) -> int:
        return len(self.eigenvalues_)

    def transform(self, X: Any) -> Any:
        """Codes, ``(n_samples, n_components)``."""
        x, home = self._rows(X)
        energy: Any = self.energy_
        with answering(energy, x):
            return home.give(energy.encode(x))

    def inverse_transform(self, X: Any) -> Any:
        """Rows near those that codes come from, ``(n_samples, n_features)``."""
        if not self.fit_inverse_transform:
            raise NotFittedError(
                "The fit_inverse_transform parameter was not set to True when instantiating and "
                "hence the inverse transform is not available."
            )
        codes, home = codes_of(self, X, self._n_features_out)
        with answering(self.energy_, codes):
            seen = torch.from_numpy(self.X_transformed_fit_).to(codes)
            K = self._given(self.n_features_in_).of(Geometry(codes, seen))
            return home.give(K @ torch.from_numpy(self.dual_coef_).to(codes))
