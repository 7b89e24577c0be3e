"""What probabilistic PCA and factor analysis share: a density with linear Gaussian codes."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from groundstate.compute.reduce import current
from groundstate.compute.thread_policy import answering
from groundstate.energy.latent.probabilistic_pca import ProbabilisticPCAEnergy
from groundstate.learn.solvers.latent.factors.missing import observed_answers
from groundstate.models.factors.linear_codes import codes_of
from groundstate.models.imputation import impute
from groundstate.models.roles import DensityMixin, EnergyTransformer
from groundstate.models.streamed import Streamed


class GaussianFactors(Streamed, DensityMixin, EnergyTransformer):
    r"""A row is :math:`Wz + b` plus noise; a missing value is an open coordinate of x."""

    _allow_nan: ClassVar[bool] = True

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _min_rows(self) -> int:
        return 2

    def _length(self, X: Tensor, default: int) -> int:
        """Length of the code; of a stream, whose rows are not counted, at most its width."""
        length: int | None = getattr(self, "n_components", None)
        if length is None:
            return default
        most = min(X.shape) if self._counts_rows and current().world == 1 else X.shape[1]
        if length > most:
            raise ValueError(
                f"n_components={length} must be at most min(n_samples, n_features)={most}"
            )
        return length

    @property
    def _factors(self) -> ProbabilisticPCAEnergy:
        check_is_fitted(self, "energy_")
        energy = self.energy_
        assert isinstance(energy, ProbabilisticPCAEnergy)
        return energy

    @property
    def _n_features_out(self) -> int:
        return int(self._factors.W.shape[1])

    impute = impute

    def transform(self, X: Any) -> Any:
        """Means of the codes, ``(n_samples, n_components)``; NaN in X is missing."""
        x, home = self._rows(X)
        with answering(self.energy_, x):
            energy = self._factors
            if bool(torch.isnan(x).any()):
                return home.give(observed_answers(energy, x)[0])
            return home.give(energy.encode(x))

    def _log_density(self, x: Tensor) -> Tensor:
        if bool(torch.isnan(x).any()):
            return observed_answers(self._factors, x)[1]
        return super()._log_density(x)

    def energy(self, X: Any, y: Any = None, z: Any = None) -> Any:
        """Energy of each row, ``(n_samples,)``; without z the free energy, and NaN is missing."""
        x, home = self._rows(X)
        if z is None and bool(torch.isnan(x).any()):
            with torch.no_grad():
                return home.give(-observed_answers(self._factors, x)[1])
        return super().energy(X, y, z)

    def inverse_transform(self, X: Any) -> Any:
        """Rows that codes ``(n_samples, n_components)`` are decoded to, without noise."""
        codes, home = codes_of(self, X, self._factors.W.shape[1])
        with answering(self.energy_, codes):
            return home.give(self._factors.decode(codes))

    def score(self, X: Any, y: Any = None) -> float:
        """Mean log density of the rows."""
        return float(np.mean(np.asarray(self.score_samples(X), dtype=np.float64)))

    def get_covariance(self) -> Any:
        r""":math:`\sigma^2WW^\top + \Psi`, ``(n_features, n_features)``."""
        with torch.no_grad():
            return self._factors.covariance().cpu().numpy()

    def get_precision(self) -> Any:
        """The inverse of ``get_covariance()``."""
        with torch.no_grad():
            return self._factors.precision().cpu().numpy()
