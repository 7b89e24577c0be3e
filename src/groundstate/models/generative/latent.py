r"""Generators with a code: :math:`z = f(x)`, :math:`\hat x = g(z)`, and walks between codes."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import torch
from scipy.stats import norm
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from groundstate.compute.random import Key
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
        """Codes, ``(n_samples, n_components)``; of a model that was fitted with y and is not told it, those
        of the most probable y of each row."""
        x, home = self._rows(X)
        with answering(self.energy_, x):
            return home.give(self._codes_of(x, self._contexts_of(y, x)))

    encode = transform

    def inverse_transform(self, Z: Any, y: Any = None) -> Any:
        """Rows of codes ``(n_samples, n_components)``, their mean; of a model that was fitted with y and is
        not told it, over what y was in training."""
        z = self._codes(Z)
        c = self._contexts(y, len(z))
        if c is None and self.condition_ is not None and self._takes_no_label:
            c = z.new_zeros(len(z), self.condition_.size)
        return self._decoded_rows(z, c)

    decode = inverse_transform

    def reconstruct(self, X: Any, y: Any = None) -> Any:
        """Rows as their codes remember them: ``inverse_transform(transform(X))``, of one y."""
        x, _ = self._rows(X)
        with answering(self.energy_, x):
            c = self._contexts_of(y, x)
            z = self._codes_of(x, c)
        return self._decoded_rows(z, c)

    def _codes_of(self, x: Tensor, c: Tensor | None) -> Tensor:
        return torch.cat([self._encode(a, b) for a, b in self._blocks(x, c)])

    def _decoded_rows(self, z: Tensor, c: Tensor | None) -> Any:
        """Rows of codes and their contexts."""
        with answering(self.energy_, z):
            if c is None and self.condition_ is not None:
                return as_given(self._mean_over_y(z), self)
            x = torch.cat([self._decode(a, b) for a, b in self._blocks(z, c)])
            return as_given(self.coding_.decode(x), self)

    def _mean_over_y(self, z: Tensor) -> Tensor:
        """Rows of codes, the mean over what y was in training; of a category the most frequent level."""
        assert self.condition_ is not None
        contexts, logs = self.condition_.all_contexts(z)
        each = [
            self.coding_.decode(
                torch.cat([self._decode(a, c.expand(len(a), -1)) for (a,) in self._blocks(z)])
            )
            for c in contexts
        ]
        rows, share = torch.stack(each), logs.softmax(0)  # (m, B, d), (m,)
        mean = torch.einsum("m,mbd->bd", share.to(rows), rows)
        for j, k in enumerate(self.coding_.levels.tolist()):
            if k:
                hot = torch.nn.functional.one_hot(rows[:, :, j].long(), k).to(share)
                mean[:, j] = torch.einsum("m,mbk->bk", share, hot).argmax(1).to(mean)
        return mean

    def interpolate(self, a: Any, b: Any, n: int = 10, mode: Walk = "linear", y: Any = None) -> Any:
        """Rows on the way from row a to row b through the code, ``(n, *event_shape_)``.

        Parameters
        ----------
        a, b : one row each
        n : rows on the way, both ends among them
        mode : a straight line, an arc that keeps the norm ("slerp"), or the shortest way in the
            decoder's metric :math:`J^\\top J` ("geodesic")
        y : what both are rows of; None goes on a straight line from the most probable y of a to that of b
        """
        if n < 2:
            raise ValueError(f"a way has two ends, so n must be at least 2, got {n}")
        ends = [self._code_of(v, y) for v in (a, b)]
        (first, c), (last, d) = ends
        way = self._way(first[0], last[0], n, mode, c).detach()
        t = torch.linspace(0, 1, n, device=way.device, dtype=way.dtype)
        return self._decoded_rows(way, None if c is None or d is None else lerp(c[0], d[0], t))

    def _code_of(self, row: Any, y: Any) -> tuple[Tensor, Tensor | None]:
        """The code of one row and its context, ``(1, k)`` and ``(1, q)``."""
        x, _ = self._rows(_one(row, self.event_shape_))
        with answering(self.energy_, x):
            c = self._contexts_of(y, x)
            return self._codes_of(x, c).detach(), c

    def _way(self, a: Tensor, b: Tensor, n: int, mode: Walk, c: Tensor | None) -> Tensor:
        t = torch.linspace(0, 1, n, device=a.device, dtype=a.dtype)
        if mode == "linear":
            return lerp(a, b, t)
        if mode == "slerp":
            return slerp(a, b, t)
        if mode == "geodesic":
            found: Tensor = self._metric_of(c).geodesic(a, b, max(n, 3)).points
            return found if n > 2 else torch.stack([a, b])
        raise ValueError(f"mode must be 'linear', 'slerp' or 'geodesic', got {mode!r}")

    def decoder_metric(self, y: Any = None) -> PullbackMetric:
        """The metric :math:`J^\\top J` of the decoder J on the code, which measures ways in x; of a model
        that was fitted with y the decoder of that y."""
        check_is_fitted(self, "energy_")
        if y is None and self.condition_ is not None:
            raise ValueError(
                f"{type(self).__name__} was fitted with y and has a decoder for each; decoder_metric "
                "needs y"
            )
        return self._metric_of(self._contexts(y, 1))

    def _metric_of(self, c: Tensor | None) -> PullbackMetric:
        return PullbackMetric(lambda z: self._decode(z[None], c)[0])

    def latent_grid(self, k: int = 10, range: float | None = None, y: Any = None) -> Any:
        """Rows decoded at k x k codes of the plane, ``(k, k, *event_shape_)``, given y if there is one.

        At the normal quantiles (i + ½)/k of both coordinates, or evenly in [-range, range].
        """
        size = self._code_size
        if size != 2:
            raise Unsupported(f"latent_grid looks at codes of 2 numbers, these have {size}")
        at = norm.ppf((np.arange(k) + 0.5) / k) if range is None else np.linspace(-range, range, k)
        z = np.stack(np.meshgrid(at, -at), -1).reshape(-1, 2)
        rows = self.inverse_transform(z, y)
        return rows.reshape(k, k, *self.event_shape_)

    def traverse(self, x: Any, j: int, values: Any, y: Any = None) -> Any:
        """Row x with coordinate j of its code at each of the values, ``(len(values), *event_shape_)``."""
        z, c = self._code_of(x, y)
        if not 0 <= j < z.shape[1]:
            raise ValueError(f"the code has coordinates 0 to {z.shape[1] - 1}, got j={j}")
        given = torch.as_tensor(np.asarray(unwrap(values)[0])).to(z)
        many = z.repeat(len(given), 1)
        many[:, j] = given
        return self._decoded_rows(many, None if c is None else c.expand(len(given), -1))

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

    def _contexts_of(self, y: Any, x: Tensor) -> Tensor | None:
        """Contexts of coded rows: of y, or, where it is not given, of the most probable y of each row."""
        seen = self.condition_
        if y is not None or seen is None:
            return self._contexts(y, len(x))
        if self._takes_no_label:
            return x.new_zeros(len(x), seen.size)
        contexts, logs = seen.all_contexts(x)
        return contexts[(logs + self._log_by_y(x, contexts)).argmax(1)]

    def _log_by_y(self, x: Tensor, contexts: Tensor) -> Tensor:
        """Log probability of coded rows given each context, ``(B, m)``, but for a constant of each row."""
        seen = self.condition_
        if self.log_prob_kind_ != "exact" or seen is None or seen.classes is None:
            generator = Key.of(0).fold("y").torch(x.device)
            known = torch.zeros_like(x, dtype=torch.bool)
            return self._log_known_by_y(x, known, contexts, generator)
        return torch.stack([self._density(x, c.expand(len(x), -1)) for c in contexts], 1).detach()


def _one(row: Any, event: tuple[int, ...]) -> Any:
    """One row as a table of one."""
    if isinstance(row, Tensor):
        return row[None] if row.ndim == len(event) else row
    if hasattr(row, "columns"):
        return row
    array = np.asarray(row)
    return array[None] if array.ndim == len(event) else array
