"""Classical multidimensional scaling."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.base import ClassNamePrefixFeaturesOutMixin
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from groundstate.energy.latent.embedding.strain import StrainEnergy
from groundstate.learn.solvers.latent.embedding.scaling import ClassicalScaling
from groundstate.math.manifold.scaling import double_centred
from groundstate.models.base import Plan
from groundstate.models.manifolds.base import EnergyEmbedding
from groundstate.registry import models


@models.register(family="manifolds", task="representation", role="embedding", auto=False)
class ClassicalMDS(ClassNamePrefixFeaturesOutMixin, EnergyEmbedding):
    r"""Coordinates whose inner products are those that the distances speak of.

    .. math::
        \min_Y\;\|B - YY^\top\|^2, \qquad B = -\tfrac12 H(D\circ D)H, \quad H = I - 11^\top/n ,

    which is :math:`Y = V\sqrt{\lambda_+}` with the largest eigenvalues and eigenvectors of B. Of
    Euclidean distances these are the scores of a principal component analysis. The energy of a row x
    at a place z is the strain :math:`\tfrac12\sum_j(b_j(x) - y_j^\top z)^2`; its minimum places new
    rows, and known ones where they are.

    Parameters
    ----------
    add_constant : bool, default=False
        Add the least constant to all distances that makes them Euclidean (Cailliez).

    Attributes
    ----------
    embedding_ : (n_samples, n_components) array
        The entry of largest modulus of each column is positive.
    eigenvalues_ : (n_components,) array
        The largest of B, in decreasing order.
    dissimilarity_matrix_ : (n_samples, n_samples) array
    negative_mass_ : float
        :math:`\sum|\lambda_-|/\sum|\lambda|`: how far the distances are from Euclidean ones. It is
        computed when it is asked for, from all eigenvalues.
    constant_ : float
        What was added, zero without ``add_constant``.
    energy_ : StrainEnergy

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import ClassicalMDS
    >>> D = np.array([[0.0, 3.0, 4.0], [3.0, 0.0, 5.0], [4.0, 5.0, 0.0]])
    >>> model = ClassicalMDS(metric="precomputed").fit(D)
    >>> model.eigenvalues_.round(6).tolist()
    [12.964148, 3.702519]
    >>> round(float(np.linalg.norm(model.embedding_[1] - model.embedding_[2])), 6)
    5.0
    """

    _places_known_rows: ClassVar[bool] = True
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "add_constant": ["boolean"],
    }

    _needs_all_pairs: ClassVar[bool] = True

    def __init__(
        self,
        n_components: int = 2,
        *,
        metric: Any = "euclidean",
        metric_params: dict[str, Any] | None = None,
        add_constant: bool = False,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        n = len(X) if weight is None else int(weight.sum())
        if self.n_components > n:
            raise ValueError(f"n_components={self.n_components} must be at most n_samples={n}")
        energy = StrainEnergy(X.shape[1], self.n_components, **self._memory())
        return self._planned(energy, ClassicalScaling(add_constant=self.add_constant))

    def _learned(self, energy: Any) -> dict[str, Any]:
        found = super()._learned(energy)
        history = self.__dict__.get("history_")
        if history is not None and "eigenvalues" in history.extra:
            kind = found["embedding_"].dtype
            found["eigenvalues_"] = np.asarray(history.extra["eigenvalues"], kind)
            found["constant_"] = history.extra.get("constant", [0.0])[0]
        return found

    @property
    def dissimilarity_matrix_(self) -> Any:
        check_is_fitted(self, "energy_")
        energy: Any = self.energy_
        with torch.no_grad():
            return energy.away(energy.memory.rows).cpu().numpy()

    @property
    def negative_mass_(self) -> float:
        D = self.dissimilarity_matrix_.astype(np.float64)
        D += self.constant_ * (1 - np.eye(len(D)))
        values = np.linalg.eigvalsh(double_centred(D))
        return float(-values[values < 0].sum() / max(np.abs(values).sum(), 1e-300))
