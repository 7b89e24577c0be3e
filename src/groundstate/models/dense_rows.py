"""Models that need every entry of a row: sparse rows are taken and made dense."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from scipy.sparse import issparse
from torch import Tensor

from groundstate.models.arrays import Home
from groundstate.models.base import EnergyEstimator


class DenseRows(EnergyEstimator):
    """Sparse rows at the door become dense ones, in fitting and afterwards."""

    _accept_sparse: ClassVar[bool | str] = "csr"

    def _checked(self, X: Any, y: Any) -> Any:
        rows: Any
        rows, *rest = super()._checked(X, y)
        return (rows.toarray() if issparse(rows) else rows), *rest

    def _rows(self, X: Any) -> tuple[Tensor, Home]:
        x, home = super()._rows(X)
        return (x if x.layout == torch.strided else x.to_dense()), home


__all__ = ["DenseRows"]
