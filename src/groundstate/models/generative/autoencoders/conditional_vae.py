"""The variational autoencoder of rows given their label."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils.metaestimators import available_if
from torch import Tensor, nn

from groundstate.compute.foreign.sklearn import Interval
from groundstate.compute.random import Key
from groundstate.compute.thread_policy import answering
from groundstate.energy.latent.deep.energy import DeepLatentEnergy
from groundstate.errors import DataError
from groundstate.infer.variational.codes import CodeFamily
from groundstate.learn.rules.bounds.negative_elbo import NegativeELBO
from groundstate.learn.rules.bounds.semi_supervised import SemiSupervisedELBO
from groundstate.models.arrays import unwrap
from groundstate.models.generative.autoencoders.vae import VAE
from groundstate.models.generative.condition import Condition, is_classes
from groundstate.models.networks.seeds import init_key
from groundstate.nn.blocks.mlp import MLP
from groundstate.registry import models

UNKNOWN = -1


@dataclass(frozen=True, eq=False)
class PartlyKnown(Condition):
    """Classes of which some rows have none: -1 is a context of zeros."""

    @classmethod
    def learned(cls, y: Any, weight: Any = None) -> Condition:
        y = np.asarray(y)
        gone = _unknown(y)
        if not gone.any():
            return super().learned(y, weight)
        if gone.all():
            raise DataError("every label is -1, unknown; ConditionalVAE needs some that are known")
        w = None if weight is None else np.asarray(weight)[~gone]
        return super().learned(y[~gone], w)

    def encode(self, y: Any) -> NDArray[np.float64]:
        y = np.asarray(y.cpu() if isinstance(y, Tensor) else y)
        gone = _unknown(y) if self.classes is not None else np.zeros(len(np.atleast_1d(y)), bool)
        if self.classes is None or UNKNOWN in self.classes or not gone.any():
            return super().encode(y)
        out = np.zeros((len(gone), self.size))
        if not gone.all():
            out[~gone] = super().encode(y.reshape(-1)[~gone])
        return out


def _unknown(y: NDArray[Any]) -> NDArray[np.bool_]:
    """Which labels are -1."""
    flat = y.reshape(-1)
    if y.ndim > 1 or not is_classes(y) or flat.dtype.kind in "US":
        return np.zeros(len(flat), bool)
    return np.asarray(flat == UNKNOWN, bool)


@models.register(family="autoencoders", task="generation", role="generator")
class ConditionalVAE(VAE):
    r"""A code beside a known label, and labels that are only partly known.

    .. math::
        e(x, y, z) = -\log p_\theta(x \mid z, y) - \log p(z \mid y), \qquad
        U(x) = \sum_y q(y \mid x)\bigl[L(x, y) - \log p(y) + \log q(y \mid x)\bigr]

    y goes to encoder and decoder, so that the code holds what the label does not say. Labels -1 are
    unknown: a classifier :math:`q(y \mid x)` learns with the rest, the loss of such a row is the bound U
    summed over all classes (Kingma et al. 2014, M2), and ``predict`` asks it.

    Parameters
    ----------
    n_components, likelihood, posterior, prior, beta, n_samples
        As in ``VAE``, and so are all others.
    conditional_prior : bool, default=False
        A normal :math:`p(z \mid y)` whose mean and spread are learned for each y, instead of p(z).
    label_weight : float, default=1.0
        Weight of the classifier's cross-entropy on known labels, where some are unknown.

    Attributes
    ----------
    classes_ : (n_classes,) array, where y are labels

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import ConditionalVAE
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 200)
    >>> X = rng.normal(size=(200, 2)) + 6 * y[:, None]
    >>> model = ConditionalVAE(hidden_layer_sizes=(16,), max_iter=40, random_state=0).fit(X, y)
    >>> bool((model.sample(100, y=1, random_state=0).mean(0) > 4).all())
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "conditional_prior": ["boolean"],
        "label_weight": [Interval(Real, 0, None, closed="left")],
    }
    label_weight: float

    def __init__(
        self,
        n_components: int = 2,
        likelihood: Any = "gaussian",
        posterior: str = "diag",
        prior: str = "normal",
        beta: float | str = 1.0,
        n_samples: int = 1,
        *,
        conditional_prior: bool = False,
        label_weight: float = 1.0,
        likelihood_scale: Any = "learned",
        prior_scale: float = 1.0,
        posterior_scale: float = 1.0,
        n_prior_components: int = 10,
        free_bits: float = 0.0,
        objective: str = "elbo",
        grad: str = "pathwise",
        n_importance: int = 500,
        network: Any = None,
        hidden_layer_sizes: Any = (128, 64),
        activation: str = "relu",
        solver: Any = "adam",
        learning_rate_init: float = 1e-3,
        batch_size: int | str = "auto",
        max_iter: int = 200,
        alpha: float = 0.0,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: float = math.inf,
        tol: float = 1e-4,
        warm_start: bool = False,
        scale: str | None = "auto",
        dequantize: bool = False,
        ema_decay: float | None = None,
        verbose: int = 0,
        random_state: Any = None,
        device: Any = "auto",
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    def _learned_condition(self, y: Any, rows: Any) -> Condition:
        weight = self._checked_weight(self._given_weight, rows)
        return PartlyKnown.learned(y, weight.cpu() if isinstance(weight, Tensor) else weight)

    def _energy_of(self, x: Tensor, y: Tensor | None, key: Key) -> DeepLatentEnergy:  # type: ignore[override]
        energy = super()._energy_of(x, y, key)
        classes = self.condition_ is not None and self.condition_.classes is not None
        gone = classes and y is not None and bool((y.sum(1) == 0).any())
        self._partly = bool(gone)
        return energy

    def _bound_rule(
        self, encoder: nn.Module | None, family: CodeFamily, energy: DeepLatentEnergy
    ) -> NegativeELBO:
        if not self.__dict__.pop("_partly", False):
            return super()._bound_rule(encoder, family, energy)
        assert self.condition_ is not None
        key = init_key(self.random_state).fold("init", "classifier")
        inputs, k = energy.likelihood.n_inputs, self.condition_.size
        classifier = MLP(inputs, self._hidden, k, self.activation, generator=key.torch())
        log_prior = torch.from_numpy(np.log(self.condition_.weights))
        return SemiSupervisedELBO(
            encoder, classifier, log_prior, family, alpha=self.label_weight, **self._rule_settings
        )

    @property
    def classes_(self) -> Any:
        seen = getattr(self, "condition_", None)
        classes = None if seen is None else seen.classes
        if classes is None:
            raise AttributeError("y in fit were no labels, so there are no classes")
        return classes

    def _has_classes(self) -> bool:
        seen = getattr(self, "condition_", None)
        return not hasattr(self, "energy_") or (seen is not None and seen.classes is not None)

    @available_if(_has_classes)
    def predict_proba(self, X: Any) -> Any:
        """Probability of each class ``(n_samples, n_classes)``: of the classifier that learned from
        partly known labels, else by Bayes' rule :math:`p(y)\\,p(x \\mid y)`."""
        x, home = self._rows(X)
        k = len(self.classes_)
        with answering(self.energy_, x):
            if isinstance(self._rule, SemiSupervisedELBO):
                return home.give(self._classified(x))
            assert self.condition_ is not None
            contexts, logs = self.condition_.all_contexts(x)
            each = [self._density(x, c.expand(len(x), -1)) + p for c, p in zip(contexts, logs)]
            return home.give(torch.stack(each, 1).softmax(1).reshape(len(x), k))

    @available_if(_has_classes)
    def predict(self, X: Any) -> Any:
        """The most probable class of each row."""
        p, home = unwrap(self.predict_proba(X))
        index = np.asarray(p.argmax(1).cpu() if isinstance(p, Tensor) else p.argmax(1))
        return home.give(self.classes_[index])

    def _classified(self, x: Tensor) -> Tensor:
        logits: Tensor = self._rule.classifier(self.energy_.likelihood.inputs(x))
        return logits.softmax(1)

    def _contexts_of(self, y: Any, x: Tensor) -> Tensor | None:
        """Contexts of y; of labels that are unknown, what the classifier says of the row, else the most
        probable one."""
        found = self._contexts(y, len(x))
        if self.condition_ is None or self.condition_.classes is None:
            return super()._contexts_of(y, x)
        gone = torch.ones(len(x), dtype=torch.bool) if found is None else (found.sum(1) == 0).cpu()
        if found is not None and not bool(gone.any()):
            return found
        rows = x[gone.to(x.device)]
        with torch.no_grad():
            if isinstance(self._rule, SemiSupervisedELBO):
                own = self._classified(rows)
            else:
                likely = super()._contexts_of(None, rows)
                assert likely is not None
                own = likely
        if found is None:
            return own
        found[gone.to(x.device)] = own.to(found)
        return found

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from rows and their labels (-1 unknown) or real columns y; without y a plain VAE."""
        return super().fit(X, y, sample_weight)
