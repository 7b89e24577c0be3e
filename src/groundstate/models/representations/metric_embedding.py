"""Embeddings from labels."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets
from torch import Tensor, nn

from groundstate.compute.foreign.sklearn import Interval, StrOptions
from groundstate.compute.thread_policy import answering
from groundstate.energy.base import Energy
from groundstate.energy.networks.embedding import PrototypeEnergy
from groundstate.learn.base import History, Rule
from groundstate.learn.losses.triplet import MINERS
from groundstate.learn.rules.views import LabelledContrast
from groundstate.learn.rules.views.labelled import LOSSES
from groundstate.models import settings
from groundstate.models.base import Plan
from groundstate.models.representations import few_shot
from groundstate.models.representations.base import EmbeddingNetwork
from groundstate.models.resident import class_numbers
from groundstate.models.traits import Traits
from groundstate.registry import models


@models.register(family="representations", task="representation", role="transformer", auto=False)
class MetricEmbedding(EmbeddingNetwork):
    r"""Codes in which rows of one label are near each other, also of labels that come later.

    .. math::
        \min_f\ \operatorname{mean}\,[\,\|f(x_a) - f(x_p)\| - \|f(x_a) - f(x_n)\| + m\,]_+, \qquad
        e(x, y) = \|f(x) - c_y\|^2,

    over triplets of a row, one of its label and one of another, which are looked for in every batch. What is
    learned is a distance: new classes are told apart by a few examples (``episodes``, ``few_shot``), rows
    are found by likeness (``retrieve``).

    Parameters
    ----------
    loss : {"triplet", "contrastive", "supcon"}, default="triplet"
        Triplets; pairs, :math:`d^2` or :math:`(m - d)_+^2`; or a softmax over the batch.
    miner : {"semihard", "hard", "all"}, default="semihard"
        Of triplets: the nearest negative beyond the positive, the farthest positive and nearest negative, or
        all.
    margin : float, default=1.0
        m.
    temperature : float, default=0.1
        Of "supcon".
    balanced : bool, default=True
        Classes have the same share of every batch, however many rows they have.

    Attributes
    ----------
    classes_ : (n_classes,) array

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import MetricEmbedding
    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(120) % 3
    >>> X = np.column_stack([y + 0.2 * rng.normal(size=120), 5 * rng.normal(size=120)])
    >>> model = MetricEmbedding(n_components=2, max_iter=30, random_state=0).fit(X, y)
    >>> recall, precision = model.retrieval(X, y)
    >>> recall > 0.9
    True
    """

    _takes_target: ClassVar[bool] = True
    _takes_classes: ClassVar[bool] = True
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "loss": [StrOptions(set(LOSSES))],
        "miner": [StrOptions(set(MINERS))],
        "margin": [Interval(Real, 0, None, closed="neither")],
        "temperature": [Interval(Real, 0, None, closed="neither")],
        "balanced": ["boolean"],
        "batch_size": [Interval(Integral, 2, None, closed="left")],
    }
    traits = Traits(
        space={
            "learning_rate_init": settings.Real(1e-4, 1e-2, log=True),
            "margin": settings.Real(0.1, 2.0, log=True),
        }
    )
    _store_private: ClassVar[tuple[str, ...]] = ("_known", "_known_labels")
    loss: str
    miner: Any
    margin: float
    temperature: float
    balanced: bool
    classes_: NDArray[Any]
    _known: Tensor
    _known_labels: Tensor

    def __init__(
        self,
        encoder: Any = None,
        *,
        loss: str = "triplet",
        miner: str = "semihard",
        margin: float = 1.0,
        temperature: float = 0.1,
        balanced: bool = True,
        n_components: int = 32,
        hidden_layer_sizes: Any = (128,),
        solver: Any = "adam",
        learning_rate_init: float = 1e-3,
        batch_size: int = 128,
        max_iter: int = 100,
        alpha: float = 1e-4,
        warm_start: bool = False,
        verbose: Any = False,
        random_state: Any = None,
        device: Any = "auto",
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    def _target(self, y: Any) -> tuple[NDArray[np.int64], dict[str, Any]]:
        check_classification_targets(y)
        classes, index = np.unique(y, return_inverse=True)
        return index.astype(np.int64), {"classes_": classes}

    def _resident_target(self, y: Any, X: Tensor) -> tuple[Tensor, dict[str, Any]] | None:
        found = class_numbers(y, len(X))
        return None if found is None else (found[0], {"classes_": found[1]})

    def _row_weight(self, y: Any, weight: Any) -> Any:
        if not self.balanced or y is None:
            return weight
        index = torch.as_tensor(y)
        given = weight if weight is not None else np.ones(len(index))
        w = torch.as_tensor(given, dtype=torch.float64)
        per_class = torch.bincount(index.cpu(), w.cpu(), len(self.classes_))
        present = (per_class > 0).sum()
        factor = w.sum().cpu() / (present * per_class.clamp_min(1e-300))
        found = w * factor[index.cpu()].to(w.device)
        return (
            found.to(weight.device, weight.dtype) if isinstance(weight, Tensor) else found.numpy()
        )

    def _loss(self, energy: Energy) -> Rule:
        return LabelledContrast(self.loss, self.miner, self.margin, self.temperature)

    def _made_energy(self, d: int, k: int, net: nn.Module) -> Energy:
        return PrototypeEnergy(d, k, len(self.classes_), net)

    def _run(self, plan: Plan, data: Any, weight: Any, callbacks: Any, checked: bool) -> History:
        history = super()._run(plan, data, weight, callbacks, checked)
        energy: Any = plan.energy
        with answering(energy, data["x"]):
            energy.remember(data["x"], data["y"], weight)
        return history

    def _encoded(self, name: str, values: NDArray[Any]) -> NDArray[Any]:
        if name != "y":
            return values
        unknown = np.setdiff1d(values, self.classes_)
        if len(unknown):
            raise ValueError(f"y holds labels not seen in fit: {unknown[:5].tolist()}")
        return np.searchsorted(self.classes_, values)

    def _decoded(self, name: str, values: Tensor, home: Any) -> Any:
        return home.give(self.classes_[values.cpu().numpy()] if name == "y" else values)

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        plan = super()._build(X, y, weight)
        assert plan.data is not None and y is not None
        kept = slice(None) if weight is None else weight > 0
        self._known, self._known_labels = plan.data["x"][kept].detach(), y[kept].detach()
        return plan

    # --- answers -------------------------------------------------------------------------

    def pairwise(self, X: Any, Y: Any = None) -> NDArray[np.float64]:
        """Distances of codes, ``(n_samples, n_others)``; Y is X by default."""
        A = self._plain(X)
        return cdist(A, A if Y is None else self._plain(Y))

    def retrieve(self, X: Any, k: int = 5) -> tuple[NDArray[np.float64], NDArray[Any]]:
        """Distances and labels of the k training rows that are most alike, ``(n_samples, k)`` each."""
        known = self._codes(self._known.to(self.energy_.placement()[0]))
        if not 1 <= k <= len(known):
            raise ValueError(f"k must be in 1..{len(known)}, the rows that were learned, got {k}")
        d = cdist(self._plain(X), known.double().cpu().numpy())
        near = np.argsort(d, axis=1, kind="stable")[:, :k]
        labels = self.classes_[self._known_labels.cpu().numpy()]
        return np.take_along_axis(d, near, 1), labels[near]

    def retrieval(self, X: Any, y: Any, k: int = 1) -> tuple[float, float]:
        """Recall at k and MAP at R of rows among each other, by leaving each one out."""
        return few_shot.retrieval(self._plain(X), y, k)

    def few_shot(self, X: Any, y: Any, X_new: Any) -> tuple[NDArray[Any], NDArray[np.float64]]:
        """Labels of a few examples ``(X, y)``, which may be new, and their probabilities for new rows.

        :math:`\\mathrm{softmax}(-\\|f(x) - c_k\\|^2)` with the mean code :math:`c_k` of each label.
        """
        classes, centres = few_shot.prototypes(self._plain(X), y)
        return classes, few_shot.prototype_proba(centres, self._plain(X_new))

    def episodes(
        self,
        X: Any,
        y: Any,
        way: int = 5,
        shot: int = 1,
        n_episodes: int = 100,
        random_state: Any = 0,
    ) -> tuple[float, float]:
        """Mean accuracy and its standard error over tasks of ``way`` classes with ``shot`` examples each."""
        return few_shot.episodes(
            self._plain, X, y, way, shot, n_episodes=n_episodes, random_state=random_state
        )

    def _plain(self, X: Any) -> NDArray[np.float64]:
        found: NDArray[np.float64] = self._codes(self._rows(X)[0]).double().cpu().numpy()
        return found
