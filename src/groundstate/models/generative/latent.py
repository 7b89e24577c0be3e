r"""Generators with a code: :math:`z = f(x)`, :math:`\hat x = g(z)`, and walks between codes."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import torch
from scipy.stats import norm
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from groundstate.compute.thread_policy import answering
from groundstate.errors import ShapeError, Unsupported
from groundstate.math.distances.riemannian import PullbackMetric
from groundstate.math.geometry.interpolate import lerp, slerp
from groundstate.models.arrays import unwrap
from groundstate.models.generative.base import GenerativeEstimator
from groundstate.models.generative.shapes import as_given

Walk = Literal["linear", "slerp", "geodesic"]


class LatentCode(TransformerMixin, GenerativeEstimator):
    """What a code allows: encode, decode, reconstruct, walk, look around.

    A subclass writes ``_encode`` and ``_decode`` for coded rows.
    """

    def _encode(self, x: Tensor, y: Tensor | None) -> Tensor:
        """Codes ``(B, k)`` of coded rows: the mean of the posterior."""
        raise TypeError(f"{type(self).__name__} must define _encode(x, y)")

    def _decode(self, z: Tensor, y: Tensor | None) -> Tensor:
        """Coded rows ``(B, D)`` of codes: their mean."""
        raise TypeError(f"{type(self).__name__} must define _decode(z, y)")

    def _rows_around(self, z: Tensor, y: Tensor | None, generator: torch.Generator) -> Tensor:
        """Coded rows ``(B, D)`` of codes: drawn where the decoder is a distribution, else their mean."""
        return self._decode(z, y)

    @property
    def _cell_variance(self) -> float | None:
        """Of a coded cell given the code, where the decoder has a scale."""
        return None

    def transform(self, X: Any, y: Any = None) -> Any:
        """Codes, ``(n_samples, n_components)``."""
        x, home = self._rows(X)
        c = self._contexts_or_mean(y, x)
        with answering(self.energy_, x):
            return home.give(torch.cat([self._encode(a, b) for a, b in self._blocks(x, c)]))

    encode = transform

    def inverse_transform(self, Z: Any, y: Any = None) -> Any:
        """Rows of codes ``(n_samples, n_components)``, their mean."""
        z = self._codes(Z)
        c = self._contexts_or_mean(y, z)
        with answering(self.energy_, z):
            x = torch.cat([self._decode(a, b) for a, b in self._blocks(z, c)])
            return as_given(self.coding_.decode(x), self)

    decode = inverse_transform

    def reconstruct(self, X: Any, y: Any = None) -> Any:
        """Rows as their codes remember them: ``inverse_transform(transform(X))``."""
        return self.inverse_transform(self.transform(X, y), y)

    def interpolate(self, a: Any, b: Any, n: int = 10, mode: Walk = "linear") -> Any:
        """Rows on the way from row a to row b through the code, ``(n, *event_shape_)``.

        Parameters
        ----------
        a, b : one row each
        n : rows on the way, both ends among them
        mode : a straight line, an arc that keeps the norm ("slerp"), or the shortest way in the
            decoder's metric :math:`J^\\top J` ("geodesic")
        """
        if n < 2:
            raise ValueError(f"a way has two ends, so n must be at least 2, got {n}")
        ends = [self._codes(self.transform(_one(v, self.event_shape_))) for v in (a, b)]
        return self.inverse_transform(self._way(ends[0][0], ends[1][0], n, mode).detach())

    def _way(self, a: Tensor, b: Tensor, n: int, mode: Walk) -> Tensor:
        t = torch.linspace(0, 1, n, device=a.device, dtype=a.dtype)
        if mode == "linear":
            return lerp(a, b, t)
        if mode == "slerp":
            return slerp(a, b, t)
        if mode == "geodesic":
            found: Tensor = self.decoder_metric().geodesic(a, b, max(n, 3)).points
            return found if n > 2 else torch.stack([a, b])
        raise ValueError(f"mode must be 'linear', 'slerp' or 'geodesic', got {mode!r}")

    def decoder_metric(self) -> PullbackMetric:
        """The metric :math:`J^\\top J` of the decoder J on the code, which measures ways in x."""
        return PullbackMetric(lambda z: self._decode(z[None], None)[0])

    def latent_grid(self, k: int = 10, range: float | None = None) -> Any:
        """Rows decoded at k x k codes of the plane, ``(k, k, *event_shape_)``.

        At the normal quantiles (i + ½)/k of both coordinates, or evenly in [-range, range].
        """
        size = self._code_size
        if size != 2:
            raise Unsupported(f"latent_grid looks at codes of 2 numbers, these have {size}")
        at = norm.ppf((np.arange(k) + 0.5) / k) if range is None else np.linspace(-range, range, k)
        z = np.stack(np.meshgrid(at, -at), -1).reshape(-1, 2)
        rows = self.inverse_transform(z)
        return rows.reshape(k, k, *self.event_shape_)

    def traverse(self, x: Any, j: int, values: Any) -> Any:
        """Row x with coordinate j of its code at each of the values, ``(len(values), *event_shape_)``."""
        z = self._codes(self.transform(_one(x, self.event_shape_)))
        if not 0 <= j < z.shape[1]:
            raise ValueError(f"the code has coordinates 0 to {z.shape[1] - 1}, got j={j}")
        given = torch.as_tensor(np.asarray(unwrap(values)[0])).to(z)
        many = z.repeat(len(given), 1)
        many[:, j] = given
        return self.inverse_transform(many)

    @property
    def _code_size(self) -> int:
        return int(self.energy_.spaces["z"].shape[0])

    def _codes(self, Z: Any) -> Tensor:
        """Codes on the device of θ, ``(n, k)``."""
        check_is_fitted(self, "energy_")
        device, dtype = self.energy_.placement()
        z = Z.detach() if isinstance(Z, Tensor) else torch.from_numpy(np.asarray(Z, np.float64))
        z = z.to(device, dtype)
        if z.ndim != 2 or z.shape[1] != self._code_size:
            raise ShapeError(f"codes have shape (n, {self._code_size}), got {tuple(z.shape)}")
        return z

    def _contexts_or_mean(self, y: Any, like: Tensor) -> Tensor | None:
        """Contexts of y; of a conditional model without y, zeros: unknown."""
        if y is None and self.condition_ is not None:
            return like.new_zeros(len(like), self.condition_.size)
        return self._contexts(y, len(like))


def _one(row: Any, event: tuple[int, ...]) -> Any:
    """One row as a table of one."""
    if isinstance(row, Tensor):
        return row[None] if row.ndim == len(event) else row
    if hasattr(row, "columns"):
        return row
    array = np.asarray(row)
    return array[None] if array.ndim == len(event) else array
