"""The restricted Boltzmann machine."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted
from torch import Tensor
from torch.nn.functional import softplus

from groundstate.compute.foreign.sklearn import Interval
from groundstate.compute.random import Key, mix64
from groundstate.compute.weight_line.hashing import row_hash
from groundstate.energy.basic import BilinearEnergy
from groundstate.infer import log_partition
from groundstate.learn import BoltzmannSGD, PersistentCD, fit, sgd
from groundstate.math.distributions.bernoulli_layer_numba import gibbs_sweep
from groundstate.math.distributions.operations import draw
from groundstate.models import settings
from groundstate.models.arrays import tensor
from groundstate.models.base import Plan
from groundstate.models.learned import Learned
from groundstate.models.resident import places
from groundstate.models.roles import EnergyTransformer
from groundstate.models.traits import Traits
from groundstate.registry import models


@models.register(family="undirected", task="representation", role="transformer")
class BernoulliRBM(ClassNamePrefixFeaturesOutMixin, EnergyTransformer):
    r"""Two layers of bits that interact only across, learned against its own dreams.

    .. math::
        e(x, z) = -x^\top Wz - x^\top b - z^\top c, \qquad
        \nabla L = \nabla F(x) - \operatorname{mean}_c\nabla F(x_c),

    with the free energy :math:`F(x) = -x^\top b - \sum_j\log(1 + e^{(x^\top W + c)_j})`. The chains
    :math:`x_c` never stop: each learning step moves them by one sweep of Gibbs sampling (persistent
    contrastive divergence, also called stochastic maximum likelihood).

    Parameters
    ----------
    n_components : int, default=256
        Hidden bits.
    learning_rate : float, default=0.1
        Step size of plain gradient descent on the mean over a mini-batch.
    batch_size : int, default=10
        Rows of a mini-batch, and number of chains.
    n_iter : int, default=10
        Passes over the data.
    verbose : int, default=0
        Above zero, a progress bar.

    Attributes
    ----------
    components_ : (n_components, n_features) array, Wᵀ
    intercept_hidden_ : (n_components,) array, c
    intercept_visible_ : (n_features,) array, b
    h_samples_ : (batch_size, n_components) array
        Hidden bits of the chains.
    v_samples_ : (batch_size, n_features) array
        Visible bits of the chains.
    energy_ : BilinearEnergy

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import BernoulliRBM
    >>> X = np.array([[0, 0, 0], [0, 1, 1], [1, 0, 1], [1, 1, 1]])
    >>> model = BernoulliRBM(n_components=2, random_state=0).fit(X)
    >>> model.transform(X).shape, bool(model.log_likelihood(X).mean() > -3 * np.log(2))
    ((4, 2), True)
    """

    traits = Traits(
        space={
            "n_components": settings.Whole(4, 256, log=True),
            "learning_rate": settings.Real(1e-3, 0.3, log=True),
            "n_iter": settings.Whole(5, 50, log=True),
        },
    )

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "n_iter": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        n_components: int = 256,
        *,
        learning_rate: float = 0.1,
        batch_size: int = 10,
        n_iter: int = 10,
        verbose: int = 0,
        random_state: Any = None,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    # --- learning ------------------------------------------------------------------------

    def _new_energy(self, features: int) -> BilinearEnergy:
        generator = Key.of(self.random_state).fold("init").torch()
        return BilinearEnergy(features, self.n_components, scale=0.01, generator=generator)

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        solver = BoltzmannSGD(
            optimizer=sgd,
            lr=self.learning_rate,
            batch_size=self.batch_size,
            max_epochs=self.n_iter,
            tol=None,
        )
        return Plan(energy=self._new_energy(X.shape[1]), rule=self._new_rule(), solver=solver)

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Self:
        super()._fit(X, y, sample_weight)
        self.n_steps_ = 0
        return self

    rule_: Any  # PersistentCD

    @staticmethod
    def upgrade_learned(learned: dict[str, Any]) -> dict[str, Any]:
        """Chains of files that kept them beside the model, as the state of its rule."""
        if "h_samples_" not in learned or "rule_" in learned:
            return learned
        rule = PersistentCD(n_chains=len(learned["h_samples_"]))
        chains = {"z": learned["h_samples_"], "x": learned["v_samples_"]}
        rule.source._keep({name: torch.from_numpy(np.array(v)) for name, v in chains.items()})
        return {**learned, "rule_": rule}

    def _new_rule(self) -> PersistentCD:
        return PersistentCD(n_chains=self.batch_size)

    @property
    def h_samples_(self) -> NDArray[Any]:
        """Hidden bits of the chains, ``(batch_size, n_components)``."""
        return self.rule_.source.chains["z"].cpu().numpy()

    @property
    def v_samples_(self) -> NDArray[Any]:
        """Visible bits of the chains, ``(batch_size, n_features)``."""
        return self.rule_.source.chains["x"].cpu().numpy()

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """One learning step on all rows of X, going on from where the model is."""
        first = not hasattr(self, "energy_")
        if first:
            self._validate_params()
        if first:
            X_, _, _ = self._checked(X, None)
            device, _ = places(self, X)
            x = tensor(X_, device)
            self.energy_ = self._new_energy(x.shape[1]).to(device, x.dtype)
            self.n_steps_ = 0
        else:
            x, _ = self._rows(X)
        weight = self._checked_weight(sample_weight, x.cpu().numpy())
        if first or not hasattr(self, "rule_") or len(self.h_samples_) != self.batch_size:
            self.rule_ = self._new_rule()
        self.history_ = fit(
            self.energy_,
            {"x": x},
            self.rule_,
            BoltzmannSGD(optimizer=sgd, lr=self.learning_rate, batch_size=None, max_epochs=1),
            sample_weight=None if weight is None else tensor(weight, x.device),
            random_state=Key.of(self.random_state).fold("step", self.n_steps_),
        )
        self.n_steps_ += 1
        self.n_iter_ = 1
        return self

    components_ = Learned(lambda model: model.energy_.W.T)
    intercept_hidden_ = Learned(lambda model: model.energy_.c)
    intercept_visible_ = Learned(lambda model: model.energy_.b)

    # --- answers -------------------------------------------------------------------------

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])

    @property
    def _energy(self) -> BilinearEnergy:
        check_is_fitted(self, "energy_")
        assert isinstance(self.energy_, BilinearEnergy)
        return self.energy_

    def gibbs(self, v: Any, random_state: Any = None) -> Any:
        """One sweep of Gibbs sampling, hidden then visible bits, ``(n_samples, n_features)`` bool."""
        x, home = self._rows(v)
        energy = self.energy_
        assert isinstance(energy, BilinearEnergy)
        key = Key.of(self.random_state if random_state is None else random_state).fold("gibbs")
        if x.device.type == "cpu" and x.dtype == torch.float32:
            bits = gibbs_sweep(x, energy.W, energy.b, energy.c, (key.high, key.low))
            return home.give(bits)
        generator = key.torch(x.device)
        with torch.no_grad():
            z = draw(energy.distribution_z(x), 1, generator)[0]
            return home.give(draw(energy.distribution_x(z), 1, generator)[0] > 0)

    def score_samples(self, X: Any) -> Any:
        r"""Pseudo-log-likelihood of each row, ``(n_samples,)``.

        :math:`d\log\sigma(F(\tilde x) - F(x))` with one bit of :math:`\tilde x` flipped; which bit
        follows from the content of the row and ``random_state`` (0 if that is not an integer).
        """
        x, home = self._rows(X)
        energy = self._energy
        d = x.shape[1]
        seed = self.random_state if isinstance(self.random_state, Integral) else 0
        word = np.uint64(Key.of(seed).fold("flip").low)
        bit = mix64(row_hash(x) ^ word) % np.uint64(d)
        index = torch.from_numpy(bit.astype(np.int64)).to(x.device)[:, None]
        with torch.no_grad():
            flipped = x.scatter(1, index, 1 - x.gather(1, index))
            gap = energy.over_z(x) - energy.over_z(flipped)  # F(x̃) − F(x)
            return home.give(-d * softplus(-gap))

    def log_likelihood(self, X: Any) -> Any:
        r"""Exact :math:`\log p(x) = -F(x) - \log Z` of each row, ``(n_samples,)``.

        Needs a layer of at most 20 bits, whose states are listed; beyond that the error names
        estimators of log Z.
        """
        x, home = self._rows(X)
        energy = self._energy
        with torch.no_grad():
            return home.give(energy.over_z(x) - log_partition(energy, ("x", "z")))
