"""Hidden Markov models."""

from __future__ import annotations

import copy
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from groundstate.compute.foreign.sklearn import Interval, StrOptions
from groundstate.compute.random import Key
from groundstate.compute.rows import Ragged
from groundstate.energy.graphical.emissions import CategoricalEmission, GaussianEmission
from groundstate.energy.graphical.hidden_markov import HiddenMarkovEnergy
from groundstate.errors import DataError
from groundstate.learn.base import Problem
from groundstate.learn.rules.softmin import NLL
from groundstate.learn.solvers.em.expected import ExpectedEM
from groundstate.models import settings
from groundstate.models.base import Plan
from groundstate.models.generative.graphical.hidden_markov_answers import (
    HiddenMarkovAnswers,
    check_symbols,
)
from groundstate.models.generative.graphical.hidden_markov_start import begin
from groundstate.models.generative.graphical.sequences_in import read
from groundstate.models.learned import Learned
from groundstate.models.traits import Traits
from groundstate.registry import models

SHORT = 5  # iterations of each start where several are tried


def _write(logits: Tensor, p: Tensor, name: str) -> None:
    total = p.sum(-1)
    if bool((p < 0).any()) or not torch.allclose(total, torch.ones_like(total), atol=1e-5):
        raise ValueError(f"{name} holds probabilities that sum to 1 along the last axis")
    logits.copy_(p.log().clamp_min(-1e30))


def _symbols(model: Any) -> Tensor:
    emission = model.energy_.emission
    if not isinstance(emission, CategoricalEmission):
        raise AttributeError(f"emissionprob_ is of emission='categorical', not {model.emission!r}")
    return emission.logits


@models.register(family="graphical", task="density", role="sequence model", auto=False)
class HiddenMarkovModel(HiddenMarkovAnswers):
    r"""Sequences that a hidden Markov chain emits.

    .. math:: e(x, z) = -\log\pi_{z_1} - \sum_{t>1}\log A_{z_{t-1}z_t} - \sum_t\log p(x_t \mid z_t)

    Summing out z is the forward algorithm, its minimum is Viterbi's path, its marginals are smoothing;
    learning is EM (Baum and Welch), whose likelihood never falls. Attributes have hmmlearn's names.

    Parameters
    ----------
    n_components : int, default=2
        Hidden states.
    emission : {"gaussian", "categorical", "gmm"}, default="gaussian"
        What a state emits: a Gaussian vector, a symbol 0, 1, 2, ..., or a mixture of Gaussians.
    covariance_type : {"diag", "full", "spherical", "tied"}, default="diag"
    n_mix : int, default=2
        Gaussians of a state of "gmm".
    n_features : int, default=None
        Number of symbols of "categorical"; None is one more than the largest in ``fit``.
    reg_covar : float, default=1e-3
        Added to the diagonal of every covariance.
    startprob_prior, transmat_prior, emissionprob_prior : float, default=1.0
        Dirichlet parameters; 1 is maximum likelihood.
    startprob_init, transmat_init, emissionprob_init, means_init, covars_init : arrays, default=None
        Where learning begins; None is uniform with states that last, symbols at random, means from
        k-means.
    n_init : int, default=1
        Starts of which the best after 5 iterations goes on.
    max_iter : int, default=100
    tol : float, default=1e-3
        Stop when an iteration gains less, in nats per sequence.

    Attributes
    ----------
    startprob_ : (n_components,) array
    transmat_ : (n_components, n_components) array
    emissionprob_ : (n_components, n_features) array, of "categorical"
    means_ : (n_components, d) array; of "gmm" (n_components, n_mix, d)
    covars_ : in hmmlearn's shapes, matrices (n_components, d, d) of "diag" and "full" alike
    weights_ : (n_components, n_mix) array, of "gmm"
    converged_ : bool
    lower_bounds_ : list of float
        Mean log-likelihood of a sequence before each iteration.

    Notes
    -----
    Sequences come as a list of arrays ``(length, d)``, an array ``(n, length, d)``, ``Ragged`` rows, or as
    hmmlearn has them: ``fit(X, lengths)`` with all steps in one array ``(n_steps, d)``. A step that is NaN
    is missing. ``score`` is the mean log-likelihood of a sequence (hmmlearn: the sum).

    Examples
    --------
    >>> import numpy as np
    >>> from groundstate import HiddenMarkovModel
    >>> model = HiddenMarkovModel.from_parameters(
    ...     [0.5, 0.5], [[0.7, 0.3], [0.3, 0.7]], emissionprob=[[0.1, 0.9], [0.8, 0.2]])
    >>> x = np.array([[1], [1], [0]])
    >>> model.filter(x)[:, 0].round(6).tolist(), model.predict(x).tolist()
    ([0.818182, 0.883357, 0.190668], [0, 0, 1])
    """

    traits = Traits(
        space={
            "n_components": settings.Whole(1, 8),
            "covariance_type": settings.Choice("diag", "full", "spherical", "tied"),
        },
        steps="max_iter",
    )
    rows: ClassVar[str] = "sequence"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "emission": [StrOptions({"gaussian", "categorical", "gmm"})],
        "covariance_type": [StrOptions({"diag", "full", "spherical", "tied"})],
        "n_mix": [Interval(Integral, 1, None, closed="left")],
        "n_features": [Interval(Integral, 1, None, closed="left"), None],
        "reg_covar": [Interval(Real, 0, None, closed="left")],
        "startprob_prior": [Interval(Real, 1, None, closed="left")],
        "transmat_prior": [Interval(Real, 1, None, closed="left")],
        "emissionprob_prior": [Interval(Real, 1, None, closed="left")],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "startprob_init": ["array-like", None],
        "transmat_init": ["array-like", None],
        "emissionprob_init": ["array-like", None],
        "means_init": ["array-like", None],
        "covars_init": ["array-like", None],
    }

    def __init__(
        self,
        n_components: int = 2,
        *,
        emission: str = "gaussian",
        covariance_type: str = "diag",
        n_mix: int = 2,
        n_features: int | None = None,
        reg_covar: float = 1e-3,
        startprob_prior: float = 1.0,
        transmat_prior: float = 1.0,
        emissionprob_prior: float = 1.0,
        startprob_init: Any = None,
        transmat_init: Any = None,
        emissionprob_init: Any = None,
        means_init: Any = None,
        covars_init: Any = None,
        n_init: int = 1,
        max_iter: int = 100,
        tol: float = 1e-3,
        warm_start: bool = False,
        random_state: Any = None,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    # --- learning ------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, lengths: Any = None) -> Self:
        """Learn from sequences; a weight of 2 is the sequence twice.

        ``fit(X, lengths)`` takes all steps in one array, as hmmlearn does.
        """
        return super().fit(X, y if lengths is None else lengths, sample_weight)

    def _checked(self, X: Any, y: Any) -> tuple[Any, Any, dict[str, Any]]:
        rows, _ = read(X, y)
        if not len(rows) or not int(rows.lengths.max()):
            raise DataError("HiddenMarkovModel got no steps to learn from")
        if self.emission == "categorical":
            check_symbols(rows, self.n_features)
        self.n_features_in_ = int(rows.values.shape[1])
        return rows, None, {}

    def _build(self, X: Any, y: Tensor | None, weight: Tensor | None) -> Plan:
        if weight is not None and not bool((weight > 0).any()):
            raise DataError("every sequence has weight 0, so there is nothing to learn from")
        last = getattr(self, "energy_", None) if self.warm_start else None
        solver = ExpectedEM(self.tol, self.max_iter)
        energy = self._new_energy(X)
        if isinstance(last, HiddenMarkovEnergy) and _same(last, energy):
            return Plan(energy=copy.deepcopy(last), rule=NLL(), solver=solver)
        key = Key.of(self.random_state)
        dtype = X.values.dtype
        tried = []
        for k in range(self.n_init):
            one = energy if not k else self._new_energy(X)
            one.to(X.device, dtype)
            begin(self, one, X, weight, key.fold("start", k))
            if self.n_init > 1:
                short = ExpectedEM(0.0, SHORT, quiet=True)
                history = short.run(Problem(one, NLL(), {"x": X}, weight))
                tried.append((history.extra["log_likelihood"][-1], one))
            else:
                tried.append((0.0, one))
        best = max(range(len(tried)), key=lambda k: tried[k][0])
        return Plan(energy=tried[best][1], rule=NLL(), solver=solver)

    def _new_energy(self, X: Ragged) -> HiddenMarkovEnergy:
        k, d = self.n_components, int(X.values.shape[1])
        emission: Any
        if self.emission == "categorical":
            top = torch.nan_to_num(X.values, nan=0.0).max()
            symbols = self.n_features or int(top) + 1
            emission = CategoricalEmission(k, symbols, self.emissionprob_prior - 1)
        else:
            m = self.n_mix if self.emission == "gmm" else 1
            emission = GaussianEmission(k, d, self.covariance_type, m, self.reg_covar)
        return HiddenMarkovEnergy(
            emission, start_prior=self.startprob_prior - 1, transition_prior=self.transmat_prior - 1
        )

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Self:
        super()._fit(X, y, sample_weight)
        self.converged_ = self.history_.converged
        self.lower_bounds_ = list(self.history_.extra["log_likelihood"])
        return self

    @classmethod
    def from_parameters(
        cls,
        startprob: Any,
        transmat: Any,
        *,
        emissionprob: Any = None,
        means: Any = None,
        covars: Any = None,
        covariance_type: str = "diag",
        **settings: Any,
    ) -> Self:
        """A model whose parameters are known, ready to answer."""
        kind = "gaussian" if emissionprob is None else "categorical"
        model = cls(
            len(startprob), emission=kind, covariance_type=covariance_type, reg_covar=0.0,
            startprob_init=startprob, transmat_init=transmat, emissionprob_init=emissionprob,
            means_init=means, covars_init=covars, **settings,
        )  # fmt: skip
        d = 1 if means is None else np.asarray(means).shape[1]
        if emissionprob is not None:
            model.n_features = np.asarray(emissionprob).shape[1]
        rows = Ragged(torch.zeros(1, d, dtype=torch.float64), torch.tensor([0, 1]))
        energy = model._new_energy(rows).double()
        begin(model, energy, rows, None, Key.of(0))
        from groundstate.learn.base import History

        model.n_features_in_, model.energy_ = d, energy
        model.history_, model.n_iter_ = History(solver="given"), 1
        return model

    startprob_ = Learned(
        lambda model: torch.softmax(model.energy_.start.clamp_min(-1e30), -1),
        lambda model, p: _write(model.energy_.start, p, "startprob_"),
    )
    transmat_ = Learned(
        lambda model: torch.softmax(model.energy_.transition.clamp_min(-1e30), -1),
        lambda model, p: _write(model.energy_.transition, p, "transmat_"),
    )
    emissionprob_ = Learned(
        lambda model: torch.softmax(_symbols(model).clamp_min(-1e30), -1),
        lambda model, p: _write(_symbols(model), p, "emissionprob_"),
    )

    @property
    def means_(self) -> NDArray[Any]:
        """Means of the Gaussians of each state."""
        emission: Any = self.energy_.emission
        mu = emission.gaussians.mu.detach().cpu().numpy()
        return mu.reshape(emission.k, emission.m, -1) if self.emission == "gmm" else mu

    @property
    def covars_(self) -> NDArray[Any]:
        """Covariances as matrices, ``(..., d, d)``; "tied" one for all."""
        emission: Any = self.energy_.emission
        g = emission.gaussians
        if g.covariance_type == "tied":
            return np.asarray(g.covariances().cpu().numpy())
        full = g.full_covariances().cpu().numpy()
        d = full.shape[-1]
        return full.reshape(emission.k, emission.m, d, d) if self.emission == "gmm" else full

    @property
    def weights_(self) -> NDArray[Any]:
        """Weights of the Gaussians of each state, ``(n_components, n_mix)``."""
        emission: Any = self.energy_.emission
        return np.asarray(emission.log_weights().exp().detach().cpu().numpy())


def _same(a: HiddenMarkovEnergy, b: HiddenMarkovEnergy) -> bool:
    return a.emission.config() == b.emission.config() and type(a.emission) is type(b.emission)
