"""Principal components batch by batch."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
import torch
from scipy.sparse import issparse
from sklearn.utils import gen_batches
from torch import Tensor

from groundstate.compute.device import resolve_device
from groundstate.compute.foreign.sklearn import Interval, StrOptions
from groundstate.compute.random import Key
from groundstate.energy.latent.codes import LinearCodeEnergy
from groundstate.learn.base import History
from groundstate.learn.rules.naive import Naive
from groundstate.learn.solvers.latent.factors.incremental import oja_step, sketch_step
from groundstate.learn.solvers.latent.factors.principal_axes import PrincipalAxes
from groundstate.models.base import Plan
from groundstate.models.chunks import chunks_of
from groundstate.models.factors.pca import PCA
from groundstate.models.factors.sums import Sums
from groundstate.models.learned import Learned
from groundstate.models.streamed import named
from groundstate.models.traits import Traits
from groundstate.registry import models


@models.register(family="factors", task="representation", role="transformer")
class IncrementalPCA(PCA):
    r"""The axes of largest variance of rows that come in batches.

    .. math::
        e(x, z) = \tfrac12\|x - b - Wz\|^2 + \text{const}, \quad W^\top W = I .

    "exact" keeps weight, mean and scatter of all rows (:math:`d^2` numbers) and is `PCA` for any
    batches in any order; two of them can be merged. "sketch" keeps the axes alone, as scikit-learn
    does, and "oja" takes stochastic steps; both need :math:`d\cdot l` numbers.

    Parameters
    ----------
    n_components : int or None, default=None
        Number of axes; None keeps all of the first batch, at most.
    copy : bool, default=True
        Kept for scikit-learn's signature; X is never changed.
    batch_size : int or None, default=None
        Rows of a batch of ``fit``; None is five times the number of features.
    method : {"exact", "sketch", "oja"}, default="exact"
    random_state : int, default=None
        Start of "oja".

    Attributes
    ----------
    components_, explained_variance_, explained_variance_ratio_, singular_values_, mean_, \
    noise_variance_, n_components_ : as in `PCA`
    var_ : (n_features,) array
        Variances of the features, by the number of rows.
    n_samples_seen_ : int
    batch_size_ : int
    energy_ : LinearCodeEnergy

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import PCA, IncrementalPCA
    >>> X = np.random.default_rng(0).normal(size=(100, 5))
    >>> model = IncrementalPCA(2)
    >>> for part in np.split(X, 4):
    ...     _ = model.partial_fit(part)
    >>> np.allclose(model.components_, PCA(2).fit(X).components_)
    True
    """

    traits = Traits(space=None)
    _sums_tell = False
    _store_private: ClassVar[tuple[str, ...]] = ("_state",)
    _state: dict[str, Any] | None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
        "whiten": ["boolean"],
        "batch_size": [Interval(Integral, 1, None, closed="left"), None],
        "method": [StrOptions({"exact", "sketch", "oja"})],
    }

    def __init__(
        self,
        n_components: int | None = None,
        *,
        whiten: bool = False,
        copy: bool = True,
        batch_size: int | None = None,
        method: str = "exact",
        random_state: Any = None,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        """What all rows at once would be learned by; "exact" ends there for any batches."""
        length = self.n_components or 0
        energy = LinearCodeEnergy(X.shape[1], min(length, X.shape[1]), dtype=X.dtype)
        return Plan(energy, Naive(latent="minimise"), PrincipalAxes(self.n_components))

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Self:
        for name in ("_state", "n_features_in_", "feature_names_in_", "energy_"):
            self.__dict__.pop(name, None)
        device = resolve_device(self.device)
        chunks = chunks_of(X, sample_weight, device)
        if chunks is not None:
            for batch in chunks:
                self._add(batch["x"], batch.get("weight"))
            self.batch_size_ = len(chunks.first)
            named(self, chunks)
        else:
            x, weight = self._more(X, sample_weight)
            self.batch_size_ = self.batch_size or 5 * x.shape[1]
            if x.layout != torch.strided:
                self._add_sparse(X, weight, x.device)
            else:
                for part in self._batches(len(x)):
                    self._add(x[part], None if weight is None else weight[part])
        self._finish()
        return self

    def _batches(self, n: int) -> Any:
        least = self.n_components or 0 if self.method == "sketch" else 0
        return gen_batches(n, self.batch_size_, min_batch_size=min(least, n))

    def _add_sparse(self, X: Any, weight: Tensor | None, device: torch.device) -> None:
        rows = X.tocsr()
        for part in self._batches(rows.shape[0]):
            dense = torch.from_numpy(np.asarray(rows[part].toarray()))
            if dense.dtype != torch.float32:
                dense = dense.double()
            self._add(dense.to(device), None if weight is None else weight[part])

    def partial_fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, check_input: bool = True
    ) -> Self:
        """Learn from one more batch of rows ``(n, n_features)``; at least two the first time."""
        self._validate_params()
        if issparse(X):
            raise TypeError(
                "IncrementalPCA.partial_fit does not support sparse input. Either convert data to "
                "dense or use IncrementalPCA.fit to do so in batches."
            )
        x, weight = self._more(X, sample_weight)
        self._add(x, weight)
        self._finish()
        return self

    def merge(self, other: IncrementalPCA) -> Self:
        """Add what another one has seen; both ``method="exact"``."""
        if self.method != "exact" or other.method != "exact":
            raise ValueError(
                f"models are merged by their sums, which method='exact' keeps; got "
                f"{self.method!r} and {other.method!r}"
            )
        mine, theirs = getattr(self, "_state", None), getattr(other, "_state", None)
        if mine is None or theirs is None:
            raise ValueError("both models need to be fitted before they are merged")
        self._state = Sums.restored(mine).merge(Sums.restored(theirs)).kept()
        self._finish()
        return self

    def _length(self, rows: int, d: int) -> int:
        known = getattr(self, "energy_", None)
        if self.n_components is None:
            return min(rows, d) if known is None else int(known.W.shape[1])
        if self.n_components > d:
            raise ValueError(
                f"n_components={self.n_components} invalid for n_features={d}, need more rows than "
                "columns for IncrementalPCA processing"
            )
        if self.method == "sketch" and known is None and self.n_components > rows:
            raise ValueError(
                f"n_components={self.n_components} must be less or equal to the batch number of "
                f"samples {rows} for the first partial_fit call."
            )
        return self.n_components

    def _add(self, x: Tensor, weight: Tensor | None) -> None:
        state = getattr(self, "_state", None)
        d = x.shape[1]
        if self.method == "exact":
            if self.n_components is not None:
                self._length(len(x), d)
            self._state = Sums.added(state, x, weight).kept()
        else:
            if weight is not None:
                kept = weight > 0
                whole = bool((weight == weight.round()).all())
                if not whole:
                    raise ValueError(
                        f"method={self.method!r} takes weights that are whole numbers of rows; use "
                        "method='exact'"
                    )
                x = x[kept].repeat_interleave(weight[kept].long(), 0)
            k = self._kept(state, len(x), d)
            state = None if state is None else _tensors(state, x.device)
            if self.method == "sketch":
                state = sketch_step(state, x, k)
            else:
                generator = Key.of(self.random_state).fold("oja").torch(torch.device("cpu"))
                start = torch.randn(d, k, generator=generator, dtype=torch.float64)
                state = oja_step(state, x, k, start.to(x.device))
            self._state = _arrays(state)
        self._kind = x.dtype, x.device

    def _kept(self, state: Any, rows: int, d: int) -> int:
        return self._length(rows, d) if state is None else len(state["V"])

    def _finish(self) -> None:
        state = self._state
        assert state is not None
        dtype, device = self.__dict__.pop("_kind", None) or self.energy_.placement()[::-1]
        rows, d = int(state["rows"]), len(state["mean"])
        energy = LinearCodeEnergy(d, 0, dtype=dtype).to(device)
        assert isinstance(energy, LinearCodeEnergy)
        if self.method == "exact":
            sums = Sums.restored(state, device)
            length = None if self.n_components is None else min(self.n_components, rows)
            solver = PrincipalAxes(length)
            self.history_ = solver.run(sums.problem(energy, Naive(latent="minimise")))
        else:
            self._write(energy, _tensors(state, device), rows)
            self.history_ = History(converged=True, solver=self.method, stop="rows")
        self.energy_, self.n_iter_ = energy, 1
        self.n_samples_seen_ = rows
        for name, value in self._learned(energy).items():
            setattr(self, name, value)

    var_ = Learned(lambda model: _variances(model), instead="it belongs to the rows; fit again")

    def _write(self, energy: LinearCodeEnergy, state: dict[str, Any], rows: int) -> None:
        d, l = len(state["mean"]), len(state["V"])
        if rows < 2:
            raise ValueError(f"variances need at least two rows, got {rows}")
        if self.method == "sketch":
            variance = state["s"].square() / (rows - 1)
            count = min(state["all"], d)
            noise = state["left"] / (rows - 1) / (count - l) if count > l else 0.0
        else:
            order = state["variance"].argsort(descending=True)
            variance = state["variance"][order] * rows / (rows - 1)
            state["V"] = state["V"][order]
            rest = float(state["square"].sum()) / (rows - 1) - float(variance.sum())
            noise = max(0.0, rest) / (d - l) if d > l else 0.0
        total = float(state["square"].sum()) / (rows - 1)
        axes = state["V"].T
        energy.set(axes, state["mean"], variance, noise=noise, total=total, count=float(rows))


def _variances(model: Any) -> Tensor:
    """Variances of the features, by the weight of the rows."""
    state = model._state
    if "scatter" in state:
        return torch.from_numpy(np.diagonal(state["scatter"]) / state["weight"])
    return torch.from_numpy(np.asarray(state["square"]) / float(state["rows"]))


def _arrays(state: dict[str, Any]) -> dict[str, Any]:
    return {k: v.cpu().numpy() if isinstance(v, Tensor) else v for k, v in state.items()}


def _tensors(state: dict[str, Any], device: torch.device) -> dict[str, Any]:
    return {
        k: torch.from_numpy(np.array(v)).to(device) if isinstance(v, np.ndarray) else v
        for k, v in state.items()
    }
