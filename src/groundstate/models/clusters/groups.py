"""Clusterers that find groups of rows by an algorithm of scikit-learn's."""

from __future__ import annotations

from functools import cache
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from groundstate.compute.thread_policy import answering
from groundstate.energy.latent.linkage import LinkageEnergy
from groundstate.errors import DataError
from groundstate.learn import Naive
from groundstate.learn.solvers.latent.groups import KeepGroups
from groundstate.models.arrays import Home, unwrap
from groundstate.models.base import Plan
from groundstate.models.distances import GivenDistances, memory_of, without_gaps
from groundstate.models.roles import EnergyClusterer


class GroupClusterer(GivenDistances, EnergyClusterer):
    r"""Groups of rows, and :math:`e(x, z) = \tfrac12 D(x, G_z)^2` for one more.

    Parameters
    ----------
    leaf_size : int
    metric : str or callable
        "precomputed" takes the matrix of distances as X.

    Attributes
    ----------
    labels_ : (n_samples,) array
        The group of each row, −1 for noise.
    """

    _runs_on: Any = "answers"
    _algorithm: ClassVar[Any]  # scikit-learn's class
    _noise: ClassVar[bool] = True
    labels_: Any
    _found: Any  # scikit-learn's answer and the rows it is about, during a fit
    _rows_now: Tensor

    def _peer(self) -> Any:
        """scikit-learn's estimator with these parameters."""
        return self._algorithm(**{name: getattr(self, name) for name in _names(self._algorithm)})

    def _memory(self) -> dict[str, Any]:
        """Arguments of the energy's memory."""
        p = getattr(self, "p", None)
        return memory_of(self.metric, getattr(self, "metric_params", None), 2.0 if p is None else p)

    def _grouped(self, X: NDArray[Any], x: Tensor, weight: Tensor | None) -> tuple[Any, Any]:
        """scikit-learn's fitted estimator, and the numbers of the rows it is about ``(m,)``."""
        index = _repeated(weight, len(x))
        if weight is not None:
            X = X[index][:, index] if self._is_square else X[index]
        return self._found_by(X), index

    def _found_by(self, rows: NDArray[Any]) -> Any:
        """scikit-learn's estimator, fitted."""
        return self._peer().fit(self._seen(rows))

    def _seen(self, rows: NDArray[Any]) -> Any:
        """Rows or distances as scikit-learn takes them."""
        return without_gaps(rows) if self._is_square and np.isinf(rows).any() else rows

    def _kept(self, found: Any, x: Tensor, index: Any) -> KeepGroups:
        """What the energy keeps of the groups."""
        raise TypeError(f"{type(self).__name__} must define _kept(found, x, index)")

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        found, index = self._grouped(X.numpy(), X, weight)
        self._found, self._rows_now = (found, index), X
        groups = int(found.labels_.max(initial=-1)) + 1
        energy = LinkageEnergy(
            groups,
            X.shape[1],
            linkage=getattr(self, "linkage", "single"),
            noise=self._noise,
            **self._memory(),
        )
        return Plan(energy, Naive(latent="minimise"), self._kept(found, X, index))

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Any:
        try:
            return super()._fit(X, y, sample_weight)
        finally:
            for name in ("_found", "_rows_now"):
                self.__dict__.pop(name, None)

    def _learned(self, energy: Any) -> dict[str, Any]:
        found, index = self._found
        n = len(self._rows_now)
        labels = np.zeros(n, dtype=found.labels_.dtype)
        labels[index] = found.labels_
        left = np.ones(n, np.bool_)
        left[index] = False
        rest = left.nonzero()[0]  # rows of weight zero join whom they are near
        if len(rest):
            there = self._rows_now[torch.from_numpy(rest)]
            labels[rest] = self._numbers(energy.energies(there).argmin(1), energy).numpy()
        return {"labels_": labels}

    def _numbers(self, z: Tensor, energy: Any) -> Tensor:
        """Values of z as labels: noise is −1."""
        return torch.where(z == energy.k, -1, z) if self._noise else z

    def predict(self, X: Any) -> Any:
        """The group of lowest energy of each row, ``(n_samples,)``; −1 for noise."""
        x, home = self._rows(X)
        with answering(self.energy_, x):
            return home.give(self._numbers(self.energy_.table("z", x=x).argmin(1), self.energy_))

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Learn, then ``labels_``."""
        self.fit(X, y, sample_weight=sample_weight)
        return unwrap(X)[1].give(self.labels_)

    def _encoded(self, name: str, values: NDArray[Any]) -> NDArray[Any]:
        if name != "z" or not self._noise:
            return values
        energy: Any = self.energy_
        return np.where(values == -1, energy.k, values)

    def _decoded(self, name: str, values: Tensor, home: Home) -> Any:
        return home.give(self._numbers(values, self.energy_) if name == "z" else values)


@cache
def _names(algorithm: Any) -> tuple[str, ...]:
    """Parameters of a class of scikit-learn, whose signature is read once."""
    return tuple(algorithm._get_param_names())


def _repeated(weight: Tensor | None, n: int) -> NDArray[np.int64]:
    """Numbers of the rows that take part, each as often as its weight says."""
    every = np.arange(n)
    if weight is None:
        return every
    w = weight.cpu().numpy()
    whole = np.round(w)
    if (whole != w).any():
        raise DataError(
            "groups are made of rows, and half a row is in none: sample_weight must hold whole "
            f"numbers, got {w[whole != w][0]:g}"
        )
    return np.repeat(every, whole.astype(np.int64))


__all__ = ["GroupClusterer"]
