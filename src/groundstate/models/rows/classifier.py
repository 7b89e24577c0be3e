"""Classifiers of rows that are no tables: a network's scores, cross-entropy, mini-batches."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.utils import Tags
from torch import Tensor

from groundstate.compute.foreign.sklearn import Interval, Options
from groundstate.compute.random import Key
from groundstate.compute.rows import count, split, to_device
from groundstate.energy.base import Energy
from groundstate.learn import L2, SoftMin
from groundstate.learn.solvers.networks.estimator import NetworkTraining
from groundstate.learn.train.stochastic import Stochastic
from groundstate.models import settings
from groundstate.models.arrays import Home
from groundstate.models.base import Plan
from groundstate.models.roles import EnergyClassifier
from groundstate.models.rows.kinds import check_form, tagged
from groundstate.models.traits import Traits

CHUNK = 1024  # rows answered at once


class RowClassifier(EnergyClassifier):
    r"""Base of the classifiers of images, texts, sequences and graphs.

    .. math:: J(\theta) = \frac{1}{\sum_i w_i}\sum_i w_i\,\bigl(-\log p(y_i\mid x_i)\bigr)
              + \tfrac\alpha2\|W\|^2

    is lowered by Adam on mini-batches of the weight line. A subclass declares ``rows`` and writes
    ``_energy``; ``_prepared`` where its rows need learned preparation.

    Parameters
    ----------
    alpha : float
        Strength of the penalty :math:`\tfrac\alpha2\|W\|^2` beside the mean loss.
    learning_rate_init : float
        Of Adam.
    batch_size : int
        Rows (units of weight) of a step.
    max_iter : int
        Passes over the rows at most.
    warm_start : bool
        Go on from the present weights in the next ``fit``.
    callbacks : sequence
        Such as ``groundstate.learn.Checkpoint(path)``, with which a killed run goes on.
    tol, n_iter_no_change : float and int or inf
        Learning rests when more than so many passes improve the loss by less than ``tol``; inf runs
        exactly ``max_iter`` passes.

    Attributes
    ----------
    energy_ : NetClassEnergy
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "learning_rate_init": [Interval(Real, 0, None, closed="neither")],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left"), Options(Real, {np.inf})],
        "class_weight": "no_validation",
        "random_state": "no_validation",
    }

    traits = Traits(
        steps="max_iter",
        space={
            "alpha": settings.Real(1e-6, 1e-1, log=True),
            "learning_rate_init": settings.Real(1e-3, 3e-1, log=True),
        },
    )
    alpha: float
    learning_rate_init: float
    batch_size: int
    max_iter: int
    tol: float
    n_iter_no_change: float
    warm_start: bool
    random_state: Any

    def __init__(
        self,
        *,
        alpha: float = 0.0001,
        learning_rate_init: float = 0.05,
        batch_size: int = 64,
        max_iter: int = 200,
        tol: float = 1e-3,
        n_iter_no_change: float = 10,
        class_weight: Any = None,
        warm_start: bool = False,
        random_state: Any = None,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    def __sklearn_tags__(self) -> Tags:
        return tagged(super().__sklearn_tags__(), self.rows)

    # --- what a preset fills in ----------------------------------------------------------

    def _energy(self, X: Any, k: int, generator: torch.Generator) -> Energy:
        """A new energy of prepared rows and k classes."""
        raise TypeError(f"{type(self).__name__} must define _energy(X, k, generator)")

    def _learn_preparation(self, X: Any, weight: Tensor | None) -> None:
        """Learn from the rows of positive weight how rows are prepared."""

    def _prepared(self, X: Any) -> Any:
        """Rows as the energy takes them."""
        return X

    # --- learning and answering ----------------------------------------------------------

    def _build(self, X: Any, y: Tensor | None, weight: Tensor | None) -> Plan:
        assert y is not None
        key = Key.of(self.random_state)
        goes_on = self.warm_start and hasattr(self, "energy_")
        if not goes_on:
            self._learn_preparation(X, weight)
        rows = self._prepared(X)
        if goes_on:
            energy = self.energy_
            check_form(self, rows)
            if energy.spaces["y"].size != len(self.classes_):
                raise ValueError(
                    f"going on needs the {energy.spaces['y'].size:.0f} classes of the first fit, y "
                    f"has {len(self.classes_)}; use warm_start=False to start anew"
                )
        else:
            energy = self._energy(rows, len(self.classes_), key.fold("init").torch())
        energy.eval()  # the state in which it answers; training switches for its own time
        total = float(count(X)) if weight is None else math.fsum(weight.tolist())
        solver = NetworkTraining(
            Stochastic(
                lr=self.learning_rate_init,
                batch_size=self.batch_size,
                max_epochs=self.max_iter,
                tol=None,
            ),
            self.tol,
            self.n_iter_no_change,
        )
        penalty = L2(self.alpha * total) if self.alpha > 0 else None
        return Plan(energy, SoftMin(), solver, penalty, {"x": rows, "y": y})

    def _rows(self, X: Any) -> tuple[Any, Home]:
        rows, home = super()._rows(X)
        rows = self._prepared(rows)
        check_form(self, rows)
        return rows, home

    def _class_table(self, x: Any) -> Tensor:
        device, n = self.energy_.placement()[0], count(x)
        sizes = [min(CHUNK, n - at) for at in range(0, n, CHUNK)]
        tables = []
        for part in split(x, sizes):
            here: Any = to_device(part, device)  # files are read
            check_form(self, here)
            tables.append(self.energy_.table("y", x=here))
        return torch.cat(tables) if tables else torch.zeros(0, len(self.classes_), device=device)
