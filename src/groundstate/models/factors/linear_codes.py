"""What models with linear codes share: projecting rows, and rows of codes."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.utils import Tags
from sklearn.utils.validation import check_array, check_is_fitted
from torch import Tensor

from groundstate.compute.thread_policy import answering
from groundstate.models.arrays import Home, tensor, unwrap
from groundstate.models.roles import EnergyTransformer
from groundstate.models.streamed import Streamed


def codes_of(model: Any, Z: Any, length: int) -> tuple[Tensor, Home]:
    """Checked codes ``(n, length)`` on the device of a fitted model, and where answers go."""
    check_is_fitted(model, "energy_")
    device, dtype = model.energy_.placement()
    if isinstance(Z, Tensor) and Z.device == device and Z.ndim == 2 and Z.is_floating_point():
        codes, home = Z.detach().to(dtype), Home(Z.device)
    else:
        Z, home = unwrap(Z)
        kept = np.float64 if dtype == torch.float64 else np.float32
        codes = tensor(check_array(Z, dtype=kept, order="C", input_name="Z"), device)
    if codes.shape[1] != length:
        raise ValueError(f"codes have {length} columns in this model, got {codes.shape[1]}")
    return codes, home


class LinearCodes(Streamed, EnergyTransformer):
    """A transformer whose energy encodes and decodes: projections, sparse rows too.

    Parameters
    ----------
    power_iteration_normalizer : {"auto", "QR", "LU", "none"}
        Kept for scikit-learn's signature; it is always QR.
    """

    _accept_sparse: ClassVar[bool | str] = "csr"

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _scale(self) -> Tensor | None:
        """Standard deviations that codes are divided by."""
        return None

    @property
    def _n_features_out(self) -> int:
        return int(self.energy_.W.shape[1])

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Learn, then the codes of the rows, ``(n_samples, n_components)``."""
        self.fit(X, y, sample_weight)
        if (
            type(X) is np.ndarray and X.dtype.char in "fd" and X.dtype.isnative
        ):  # fit has checked it
            x = tensor(X, self.energy_.placement()[0])
            with answering(self.energy_, x):
                return self._coded(x).cpu().numpy()
        return self.transform(X)

    def transform(self, X: Any) -> Any:
        """Codes, ``(n_samples, n_components)``."""
        x, home = self._rows(X)
        with answering(self.energy_, x):
            return home.give(self._coded(x))

    def _coded(self, x: Tensor) -> Tensor:
        energy: Any = self.energy_
        code: Tensor = energy.encode(x)
        scale = self._scale()
        return code if scale is None else code / scale

    def inverse_transform(self, X: Any) -> Any:
        """Rows that codes ``(n_samples, n_components)`` stand for, ``(n_samples, n_features)``."""
        check_is_fitted(self, "energy_")
        energy: Any = self.energy_
        codes, home = codes_of(self, X, self._n_features_out)
        with answering(energy, codes):
            scale = self._scale()
            return home.give(energy.decode(codes if scale is None else codes * scale))
