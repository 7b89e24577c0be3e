"""Probabilistic principal components."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.base import ClassNamePrefixFeaturesOutMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_array, check_is_fitted
from torch import Tensor

from groundstate.compute.foreign.sklearn import Interval
from groundstate.energy.base import Energy
from groundstate.energy.latent.probabilistic_pca import ProbabilisticPCAEnergy
from groundstate.learn import NLL, EigenFactors
from groundstate.models import settings
from groundstate.models.arrays import tensor, unwrap
from groundstate.models.base import Plan
from groundstate.models.imputation import impute
from groundstate.models.learned import Learned
from groundstate.models.roles import DensityMixin, EnergyTransformer
from groundstate.models.traits import Traits
from groundstate.registry import models

FACTORS = "set energy_.W, whose columns are the axes times their lengths, or energy_.b"


def _axes(W: Tensor) -> Tensor:
    """Orthonormal columns; a factor of no more than noise is zero: any axis that is left will do."""
    axes, R = torch.linalg.qr(W.double())
    return (axes * torch.where(R.diagonal() < 0, -1.0, 1.0)).to(W)


def _variances(energy: Any) -> tuple[Tensor, Tensor]:
    """Variances along the axes, and what part of the whole variance they are."""
    square, noise = energy.W.double().square().sum(0), energy.noise.double()
    total = square.sum() + noise * len(energy.b)
    return (square + noise).to(energy.W), ((square + noise) / total).to(energy.W)


@models.register(family="factors", task="representation", role="transformer")
class ProbabilisticPCA(ClassNamePrefixFeaturesOutMixin, DensityMixin, EnergyTransformer):
    r"""A Gaussian code, decoded linearly, with the same noise on every feature.

    .. math::
        e(x, z) = \frac{\|x - Wz - b\|^2}{2\nu} + \tfrac12\|z\|^2 + \text{const}, \qquad
        \min_{W, b, \nu}\; -\sum_i w_i \log\int e^{-e(x_i, z)}\,dz .

    With the largest eigenvalues :math:`\lambda_i` and eigenvectors of the covariance the minimum is
    :math:`W = Q(\Lambda - \nu I)^{1/2}`, ν the mean of the eigenvalues left out. Free z is
    representation, free x generation, and x known in part is filled in.

    Parameters
    ----------
    n_components : int or None, default=None
        Length of the code. None takes ``n_features - 1`` (at least 1), so that one direction is left
        to measure the noise.
    device : str or torch.device, default=None
        Where to compute; None is where X is.
    callbacks : sequence, default=None
        Callbacks of groundstate or scikit-learn.

    Attributes
    ----------
    components_ : (n_components, n_features) array
        Principal axes: orthonormal rows, the entry of largest modulus positive.
    mean_ : (n_features,) array
    noise_variance_ : float
        :math:`\nu`.
    explained_variance_ : (n_components,) array
        Variances along the axes (weights sum to one, no degree of freedom taken off), so that
        ``W = components_.T * sqrt(explained_variance_ - noise_variance_)``.
    explained_variance_ratio_ : (n_components,) array
    n_components_ : int
    energy_ : ProbabilisticPCAEnergy

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from groundstate import ProbabilisticPCA
    >>> X = load_iris().data
    >>> model = ProbabilisticPCA(2).fit(X)
    >>> round(float(model.noise_variance_), 6), round(model.score(X), 6)
    (0.050682, -2.699752)
    """

    traits = Traits(space={"n_components": settings.Whole(1, 3)})

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
        "device": "no_validation",  # type: ignore[dict-item]
        "callbacks": "no_validation",  # type: ignore[dict-item]
    }

    def __init__(
        self, n_components: int | None = None, *, device: Any = None, callbacks: Any = None
    ) -> None:
        self.n_components = n_components
        self.device = device
        self.callbacks = callbacks

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _min_rows(self) -> int:
        return 2

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        most = min(X.shape)
        length = self.n_components
        if length is None:
            length = max(1, X.shape[1] - 1)
        elif length > most:
            raise ValueError(
                f"n_components={length} must be at most min(n_samples, n_features)={most}"
            )
        energy = ProbabilisticPCAEnergy(X.shape[1], length)
        return Plan(energy=energy, rule=NLL(), solver=EigenFactors())

    def _learned(self, energy: Energy) -> dict[str, Any]:
        return {"n_components_": energy.W.shape[1]}  # type: ignore[index]

    impute = impute
    mean_ = Learned(lambda model: model.energy_.b)
    components_ = Learned(lambda model: _axes(model.energy_.W).T, instead=FACTORS)
    noise_variance_ = Learned(lambda model: model.energy_.noise.double(), instead=FACTORS)
    explained_variance_ = Learned(lambda model: _variances(model.energy_)[0], instead=FACTORS)
    explained_variance_ratio_ = Learned(lambda model: _variances(model.energy_)[1], instead=FACTORS)

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])

    def inverse_transform(self, Z: Any) -> Any:
        """Rows that codes ``(n_samples, n_components)`` are decoded to, without noise."""
        check_is_fitted(self, "energy_")
        energy = self.energy_
        assert isinstance(energy, ProbabilisticPCAEnergy)
        Z, home = unwrap(Z)
        device, dtype = energy.placement()
        kept = np.float64 if dtype == torch.float64 else np.float32
        codes = tensor(check_array(Z, dtype=kept, order="C", input_name="Z"), device)
        if codes.shape[1] != energy.W.shape[1]:
            raise ValueError(
                f"codes have {energy.W.shape[1]} columns in this model, got {codes.shape[1]}"
            )
        with torch.no_grad():
            return home.give(energy.decode(codes))

    def score(self, X: Any, y: Any = None) -> float:
        """Mean log density of the rows."""
        return float(np.mean(np.asarray(self.score_samples(X), dtype=np.float64)))

    def get_covariance(self) -> Any:
        """:math:`WW^\\top + \\nu I`, ``(n_features, n_features)``."""
        return self._matrix("covariance")

    def get_precision(self) -> Any:
        """The inverse of ``get_covariance()``."""
        return self._matrix("precision")

    def _matrix(self, name: str) -> Any:
        check_is_fitted(self, "energy_")
        with torch.no_grad():
            matrix: Tensor = getattr(self.energy_, name)()
        return matrix.cpu().numpy()
