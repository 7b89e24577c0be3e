"""Representations from two views of every row."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from torch import Tensor, nn

from groundstate.compute.foreign.sklearn import Interval, StrOptions
from groundstate.energy.base import Energy
from groundstate.energy.networks.embedding import EmbeddingEnergy
from groundstate.learn.base import Rule
from groundstate.learn.rules.views import TwoViews
from groundstate.models import settings
from groundstate.models.networks.seeds import init_key
from groundstate.models.representations.base import EmbeddingNetwork
from groundstate.models.traits import Traits
from groundstate.nn.augment import PRESETS, Augment, preset
from groundstate.nn.augment.tables import MaskColumns, SwapNoise
from groundstate.nn.blocks.mlp import MLP
from groundstate.registry import models


@models.register(family="representations", task="representation", role="transformer", auto=False)
class SimCLR(EmbeddingNetwork):
    r"""Codes under which two views of a row are alike, and unlike those of other rows.

    .. math::
        \min_{f, g}\ -\frac1{2N}\sum_i\log\frac{e^{\cos(z_i, z_{p(i)})/\tau}}
        {\sum_{j \ne i}e^{\cos(z_i, z_j)/\tau}}, \qquad z = g(h),\ h = f(\tilde x), \qquad
        e(x, z) = \tfrac12\|z - f(x)\|^2 .

    Every row is changed at random twice; of the 2N views of a batch each finds its other one. No labels are
    needed: the changes say what does not matter. After learning g is dropped and ``transform`` gives h.

    Parameters
    ----------
    augment : "auto", "light", "photo", "strong" or Augment, default="auto"
        Changes that keep the meaning. "auto" masks and swaps cells of tables and shifts, turns and scales
        pictures; "photo" and "strong" also mirror and change colours.
    projection : (int, int), default=(64, 16)
        Hidden units and outputs of g; () contrasts h itself.
    temperature : float, default=0.5
        τ.

    Attributes
    ----------
    n_iter_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import SimCLR
    >>> rng = np.random.default_rng(0)
    >>> X = np.repeat(rng.normal(size=(4, 1, 6)), 40, 1).reshape(160, 6) + 0.3 * rng.normal(size=(160, 6))
    >>> model = SimCLR(n_components=8, max_iter=5, random_state=0).fit(X)
    >>> model.transform(X).shape
    (160, 8)
    >>> model.knn_probe(X, np.repeat(range(4), 40), X, np.repeat(range(4), 40)) > 0.9
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "augment": [StrOptions({"auto", *PRESETS}), nn.Module],
        "projection": ["array-like"],
        "temperature": [Interval(Real, 0, None, closed="neither")],
        "batch_size": [Interval(Integral, 2, None, closed="left")],
    }
    traits = Traits(
        space={
            "learning_rate_init": settings.Real(1e-4, 1e-2, log=True),
            "temperature": settings.Real(0.05, 2.0, log=True),
        }
    )
    augment: Any
    projection: Any
    temperature: float

    def __init__(
        self,
        encoder: Any = None,
        augment: Any = "auto",
        projection: Any = (64, 16),
        *,
        n_components: int = 64,
        temperature: float = 0.5,
        hidden_layer_sizes: Any = (128,),
        solver: Any = "adam",
        learning_rate_init: float = 1e-3,
        batch_size: int = 256,
        max_iter: int = 100,
        alpha: float = 0.0,
        warm_start: bool = False,
        verbose: Any = False,
        random_state: Any = None,
        device: Any = "auto",
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    def _made_energy(self, d: int, k: int, net: nn.Module) -> Energy:
        return EmbeddingEnergy(d, k, net, self._projection(k))

    def _projection(self, k: int) -> nn.Module | None:
        sizes = [int(n) for n in np.asarray(self.projection).ravel()]
        if not sizes:
            return None
        key = init_key(self.random_state).fold("projection")
        return MLP(k, sizes[:-1], sizes[-1], "relu", generator=key.torch())

    def _loss(self, energy: Energy) -> Rule:
        return TwoViews(self._changes(), self._picture, self.temperature)

    def _changes(self) -> nn.Module:
        if isinstance(self.augment, nn.Module):
            return self.augment
        if self.augment == "auto":
            if len(self._picture) == 1:
                return Augment([MaskColumns(0.2), SwapNoise(0.2)])
            return Augment([_moves()])
        found = preset(self.augment)
        return Augment([]) if found is None else found

    def transform(self, X: Any, return_projection: bool = False) -> Any:
        """Codes h of the rows, ``(n_samples, n_components)``; with ``return_projection`` also g(h)."""
        x, home = self._rows(X)
        h = home.give(self._codes(x))
        return (h, home.give(self._codes(x, projected=True))) if return_projection else h

    def linear_probe(self, X: Any, y: Any, X_test: Any, y_test: Any, C: float = 1.0) -> float:
        """Accuracy on test rows of a logistic regression on the codes of labelled rows."""
        from groundstate.models.linear.logistic.logistic_regression import LogisticRegression

        return self._probed(LogisticRegression(C=C, max_iter=1000), X, y, X_test, y_test)

    def knn_probe(self, X: Any, y: Any, X_test: Any, y_test: Any, k: int = 5) -> float:
        """Accuracy on test rows of their k nearest labelled rows in the codes, by cosine."""
        from groundstate.models.neighbors.k_neighbors_classifier import KNeighborsClassifier

        return self._probed(KNeighborsClassifier(k), X, y, X_test, y_test, unit=True)

    def _probed(
        self, probe: Any, X: Any, y: Any, X_test: Any, y_test: Any, unit: bool = False
    ) -> float:
        both: list[Tensor] = [self._codes(self._rows(rows)[0]) for rows in (X, X_test)]
        if unit:
            train, test = (nn.functional.normalize(h, dim=1).cpu().numpy() for h in both)
        else:
            mean, std = both[0].mean(0), both[0].std(0).clamp_min(1e-6)
            train, test = (((h - mean) / std).cpu().numpy() for h in both)
        return float(probe.fit(train, np.asarray(y)).score(test, np.asarray(y_test)))


def _moves() -> Any:
    from groundstate.nn.augment import Affine

    return Affine(shift=0.12, rotate=20.0, scale=(0.8, 1.2))
