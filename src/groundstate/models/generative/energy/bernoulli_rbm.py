"""The restricted Boltzmann machine."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from groundstate.compute.foreign.sklearn import Interval, StrOptions
from groundstate.compute.random import Key
from groundstate.energy import BilinearEnergy, Energy, RestrictedEnergy
from groundstate.errors import DataError, Unsupported
from groundstate.learn import L2, NLL, BoltzmannSGD, ContrastiveDivergence, PersistentCD, fit
from groundstate.learn.base import History, Rule
from groundstate.learn.rules.negatives.tempered import ladder
from groundstate.learn.train.optimizers import momentum as with_momentum
from groundstate.learn.train.stochastic import Stochastic, sgd
from groundstate.models import settings
from groundstate.models.arrays import tensor
from groundstate.models.base import Plan
from groundstate.models.generative.coding import Coding
from groundstate.models.generative.energy import sweeps
from groundstate.models.generative.energy.machine_answers import MachineAnswers
from groundstate.models.generative.energy.runaway import warn_of_runaway_chains
from groundstate.models.generative.shapes import Shapes
from groundstate.models.resident import places
from groundstate.models.traits import Traits
from groundstate.registry import models

KINDS = ("bernoulli", "gaussian", "categorical")
SCHEDULES = {"constant": None, "linear": lambda done: 1.0 - done}


@models.register(family="energy", task="generation", role="generator")
class BernoulliRBM(ClassNamePrefixFeaturesOutMixin, MachineAnswers):
    r"""Visible columns above a layer of hidden bits that interact only across.

    .. math::
        e(x, z) = -x^\top Wz - x^\top b - z^\top c, \qquad
        F(x) = -x^\top b - \sum_j\log(1 + e^{(x^\top W + c)_j}), \qquad
        \nabla L = \nabla F(x) - \operatorname{mean}_c\nabla F(x_c).

    Given one layer, the bits of the other are independent. The negatives :math:`x_c` are chains that
    never stop (``"pcd"``, also called stochastic maximum likelihood), k sweeps of Gibbs sampling from
    the data (``"cd"``), or all states by their probabilities (``"exact"``, where a layer has at most 20
    bits). ``fit(X, y)`` learns :math:`p(x \mid y)`, biases that depend on y.

    Parameters
    ----------
    n_components : int, default=256
        Hidden bits.
    learning_rate : float, default=0.1
        Step size of gradient descent on the mean over a mini-batch.
    batch_size : int, default=10
        Rows of a mini-batch.
    n_iter : int, default=10
        Passes over the data.
    method : {"pcd", "cd", "exact"}, default="pcd"
    k : int, default=1
        Sweeps of Gibbs sampling for each learning step.
    n_chains : int, default=100
        Chains of ``"pcd"``. scikit-learn has ``batch_size`` of them.
    n_temperatures : int, default=1
        Above 1, chains of ``"pcd"`` also run at higher temperatures, their inverses evenly down to
        1/n, and change places with those at 1 (parallel tempering): machines with separate modes mix.
    schedule : {"linear", "constant"}, default="linear"
        "linear" lowers the rate to zero along the run, without which noisy gradients do not converge; at a
        small rate a short run then goes half as far. scikit-learn's is constant.
    momentum : float, default=0.0
    weight_decay : float, default=0.0
        Strength of :math:`\tfrac12\|W\|^2` beside the mean loss.
    visible : {"bernoulli", "gaussian", "categorical"} or one for each column, default="bernoulli"
        What columns of numbers are: bits or shares in [0, 1]; reals with
        :math:`\|x-b\|^2/2\sigma^2 - x^\top Wz/\sigma^2`; or numbers 0, 1, ... of categories. Columns
        of categories of a frame are what they are.
    sigma : float, default=1.0
        Standard deviation of real columns given z, in the units of ``scale``.
    scale : {"standard", "minmax"} or None, default=None
        Of real columns.
    network : module or None, default=None
        From the context of y ``(B, q)`` to shifts of all biases ``(B, F + n_components)``; None is a
        linear map. With the rows before a row as y, this is a machine for sequences.
    burn_in : int, default=100
        Sweeps before a draw, where draws are not exact.
    verbose : int, default=0
        Above zero, a progress bar.

    Attributes
    ----------
    components_ : (n_components, n_features) array, Wᵀ
    intercept_hidden_ : (n_components,) array, c
    intercept_visible_ : (n_features,) array, b
    h_samples_ : (n_chains, n_components) array
        Hidden bits of the chains of "pcd".
    v_samples_ : (n_chains, n_features) array
        Their visible bits.
    base_ : (n_features,) array
        Visible biases of independent columns, where annealing starts.
    energy_ : BilinearEnergy, or RestrictedEnergy for other columns or with y

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import BernoulliRBM
    >>> X = np.array([[0, 0, 0], [0, 1, 1], [1, 0, 1], [1, 1, 1]])
    >>> model = BernoulliRBM(n_components=2, method="exact", n_iter=200, random_state=0).fit(X)
    >>> model.transform(X).shape, bool(model.score(X) > -3 * np.log(2)), model.log_prob_kind_
    ((4, 2), True, 'exact')
    """

    traits = Traits(
        space={
            "n_components": settings.Whole(4, 256, log=True),
            "learning_rate": settings.Real(1e-3, 0.3, log=True),
            "n_iter": settings.Whole(5, 50, log=True),
        },
        steps="n_iter",
    )
    category_code: ClassVar[str] = "levels"
    _accept_sparse: ClassVar[bool | str] = "dense"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "n_iter": [Interval(Integral, 1, None, closed="left")],
        "method": [StrOptions({"pcd", "cd", "exact"})],
        "k": [Interval(Integral, 1, None, closed="left")],
        "n_chains": [Interval(Integral, 1, None, closed="left")],
        "n_temperatures": [Interval(Integral, 1, None, closed="left")],
        "schedule": [StrOptions(set(SCHEDULES))],
        "momentum": [Interval(Real, 0, 1, closed="left")],
        "weight_decay": [Interval(Real, 0, None, closed="left")],
        "visible": [StrOptions(set(KINDS)), "array-like"],
        "sigma": [Interval(Real, 0, None, closed="neither")],
        "network": [nn.Module, None],
        "burn_in": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        n_components: int = 256,
        *,
        learning_rate: float = 0.1,
        batch_size: int = 10,
        n_iter: int = 10,
        method: str = "pcd",
        k: int = 1,
        n_chains: int = 100,
        n_temperatures: int = 1,
        schedule: str = "linear",
        momentum: float = 0.0,
        weight_decay: float = 0.0,
        visible: Any = "bernoulli",
        sigma: float = 1.0,
        scale: str | None = None,
        network: Any = None,
        burn_in: int = 100,
        verbose: int = 0,
        random_state: Any = None,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        assert tags.transformer_tags is not None
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    # --- learning ------------------------------------------------------------------------

    def _kinds(self, d: int) -> list[str]:
        if isinstance(self.visible, str):
            return [self.visible] * d
        kinds = [str(v) for v in self.visible]
        if len(kinds) != d or not set(kinds) <= set(KINDS):
            raise ValueError(
                f"visible names one of {', '.join(KINDS)} for each of {d} columns, got {kinds}"
            )
        return kinds

    def _levels_of(self, x: Tensor) -> tuple[int, ...]:
        """What each coded column is: 0 real, 2 a bit, else its number of categories."""
        found = []
        lowest, highest = x.amin(0).tolist(), x.amax(0).tolist()
        for j, (known, kind) in enumerate(zip(self.levels_, self._kinds(x.shape[1]))):
            if known:
                found.append(max(known, 2))
                continue
            low, high = lowest[j], highest[j]
            if kind == "gaussian":
                found.append(0)
            elif kind == "bernoulli":
                if low < 0 or high > 1:
                    raise DataError(
                        f"visible='bernoulli' is for values in [0, 1], but column {j} holds values "
                        f"from {low:.4g} to {high:.4g}; scale it, or use visible='gaussian'"
                    )
                found.append(2)
            else:
                if low < 0 or bool((x[:, j] != x[:, j].round()).any()):
                    raise DataError(
                        f"visible='categorical' is for whole numbers from 0, but column {j} holds "
                        f"values from {low:.4g} to {high:.4g}; number its categories"
                    )
                found.append(max(int(high) + 1, 2))
        return tuple(found)

    def _new_energy(self, levels: tuple[int, ...], context: int) -> Energy:
        generator = Key.of(self.random_state).fold("init").torch()
        if set(levels) == {2} and not context:
            return BilinearEnergy(len(levels), self.n_components, scale=0.01, generator=generator)
        return RestrictedEnergy(
            levels, self.n_components, context=context, net=self.network if context else None,
            sigma=self.sigma, scale=0.01, generator=generator,
        )  # fmt: skip

    def _new_rule(self, energy: Any) -> Rule:
        if self.n_temperatures > 1 and self.method != "pcd":
            raise ValueError(
                f"n_temperatures={self.n_temperatures} is for chains that go on, method='pcd', not "
                f"{self.method!r}"
            )
        if self.method == "cd":
            return ContrastiveDivergence(self.k, over="x")
        if self.method == "pcd":
            hot = None if self.n_temperatures == 1 else ladder(self.n_temperatures)
            return PersistentCD(self.n_chains, self.k, temperatures=hot, over="x")
        if energy.ability("log_partition", "x", "z") is None:
            d, l = energy.W.shape
            raise Unsupported(
                f"method='exact' lists all states of a layer of at most 20 bits, got {d} visible and "
                f"{l} hidden; use method='pcd'"
            )
        return NLL(over="x")

    def _solver(self, energy: Energy, batch_size: int | None, epochs: int) -> Stochastic:
        kind = BoltzmannSGD if isinstance(energy, BilinearEnergy) else Stochastic
        optimizer: Any = sgd
        if self.momentum:
            optimizer = partial(with_momentum, momentum=self.momentum)
        return kind(
            optimizer=optimizer, lr=self.learning_rate, batch_size=batch_size, max_epochs=epochs,
            tol=None, schedule=SCHEDULES[self.schedule],
        )  # fmt: skip

    def _prepared_rows(self, X: Tensor, weight: Tensor | None) -> tuple[Tensor, tuple[int, ...]]:
        self._learn_coding(X, weight)
        rows = self.coding_.encode(X)
        levels = self._levels_of(rows)
        self.base_ = sweeps.base_rates(levels, rows.double(), weight).cpu().numpy()
        return rows, levels

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        rows, levels = self._prepared_rows(X, weight)
        energy = self._new_energy(levels, 0 if y is None else y.shape[1])
        total = float(len(X)) if weight is None else float(weight.sum())
        penalty = L2(self.weight_decay * total) if self.weight_decay else None
        data = {"x": rows} if y is None else {"x": rows, "y": y}
        solver = self._solver(energy, self.batch_size, self.n_iter)
        return Plan(energy, self._new_rule(energy), solver, penalty, data)

    def _run(
        self, plan: Plan, data: Mapping[str, Tensor], weight: Tensor | None, callbacks: list[Any],
        checked: bool,
    ) -> History:  # fmt: skip
        # bits are exact in float32, whose products take half the time; the noise of a step is larger
        dtype = plan.energy.placement()[1]
        if isinstance(plan.energy, BilinearEnergy):
            plan.energy.float()
            data = {name: v.float() for name, v in data.items()}
        history = super()._run(plan, data, weight, callbacks, True)
        plan.energy.to(dtype)
        plan.rule.to(dtype)
        if isinstance(plan.rule, PersistentCD):
            warn_of_runaway_chains(plan.rule.source.chains["x"], data["x"], "lower learning_rate")
        return history

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Self:
        super()._fit(X, y, sample_weight)
        self.n_steps_ = 0
        return self

    @staticmethod
    def upgrade_learned(learned: dict[str, Any]) -> dict[str, Any]:
        """What machines of bits kept before they generated: no code of columns, chains beside them."""
        if "coding_" not in learned:
            d = int(learned["n_features_in_"])
            zeros = np.zeros(d)
            coding = Coding(np.zeros(d, np.int64), zeros, zeros, np.ones(d), "levels")
            learned = {
                **learned, "_levels": {}, "coding_": coding, "event_shape_": (d,), "base_": zeros,
                "_shapes": Shapes((d,)), "condition_": None,
            }  # fmt: skip
        if "h_samples_" not in learned or "rule_" in learned:
            return learned
        rule = PersistentCD(n_chains=len(learned["h_samples_"]))
        chains = {"z": learned["h_samples_"], "x": learned["v_samples_"]}
        rule.source._keep({name: torch.from_numpy(np.array(v)) for name, v in chains.items()})
        return {**learned, "rule_": rule}

    def _chains(self, name: str) -> NDArray[Any]:
        check_is_fitted(self, "energy_")
        if not isinstance(getattr(self, "rule_", None), PersistentCD):
            raise AttributeError(f"there are chains with method='pcd', not with {self.method!r}")
        return self.rule_.source.chains[name].cpu().numpy()

    @property
    def h_samples_(self) -> NDArray[Any]:
        """Hidden bits of the chains, ``(n_chains, n_components)``."""
        return self._chains("z")

    @property
    def v_samples_(self) -> NDArray[Any]:
        """Visible bits of the chains, ``(n_chains, n_features)``."""
        return self._chains("x")

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """One learning step on all rows of X, going on from where the model is."""
        first = not hasattr(self, "energy_")
        if first:
            self._validate_params()
            self._given_weight = sample_weight
            X_, y_, attributes = self._checked(X, y)
            for name, value in attributes.items():
                setattr(self, name, value)
            device, _ = places(self, X)
            raw = tensor(X_, device)
            context = None if y_ is None else tensor(y_, device)
            x, levels = self._prepared_rows(raw, None)
            energy = self._new_energy(levels, 0 if context is None else context.shape[1])
            self.energy_ = energy.to(device, x.dtype)
            self.n_steps_ = 0
        else:
            x, _ = self._rows(X)
            context = self._contexts(y, len(x))
        weight = self._checked_weight(sample_weight, x.cpu().numpy())
        kept = getattr(self, "rule_", None)
        if first or kept is None:
            kept = self._new_rule(self.energy_)
        self.history_ = fit(
            self.energy_,
            {"x": x} if context is None else {"x": x, "y": context},
            kept,
            self._solver(self.energy_, None, 1),
            sample_weight=None if weight is None else tensor(weight, x.device),
            random_state=Key.of(self.random_state).fold("step", self.n_steps_),
        )
        if kept.stateful:
            self.rule_ = kept
        self.n_steps_ += 1
        self.n_iter_ = 1
        return self
