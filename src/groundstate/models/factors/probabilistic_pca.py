"""Probabilistic principal components."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar, Self

import torch
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin
from torch import Tensor

from groundstate.compute.foreign.sklearn import Interval, StrOptions
from groundstate.compute.random import Key
from groundstate.energy.base import Energy
from groundstate.energy.latent.probabilistic_pca import ProbabilisticPCAEnergy
from groundstate.learn.rules.softmin import NLL
from groundstate.learn.solvers.latent.factors.eigen_factors import EigenFactors, fixed_axes
from groundstate.learn.solvers.latent.factors.factor_em import FactorEM
from groundstate.learn.solvers.latent.factors.factor_sgd import FactorSGD, Walk, rate_of
from groundstate.learn.solvers.latent.factors.missing import MissingFactors
from groundstate.models import settings
from groundstate.models.base import Plan
from groundstate.models.factors.gaussian_factors import GaussianFactors
from groundstate.models.factors.pca import PCA
from groundstate.models.factors.sums import Sums
from groundstate.models.learned import Learned
from groundstate.models.traits import Traits
from groundstate.registry import models

FACTORS = "set energy_.W, whose columns are the axes times their lengths, or energy_.b"
BATCH = 100  # rows of a stochastic step


def _axes(W: Tensor) -> Tensor:
    """Orthonormal columns; a factor of no more than noise is zero: any axis that is left will do."""
    axes, R = torch.linalg.qr(W.double())
    return (axes * torch.where(R.diagonal() < 0, -1.0, 1.0)).to(W)


def _variances(energy: Any) -> tuple[Tensor, Tensor]:
    """Variances along the axes, and what part of the whole variance they are."""
    square = energy.prior_variance * energy.W.double().square().sum(0)
    noise = energy.noise.double()
    total = square.sum() + noise * len(energy.b)
    return (square + noise).to(energy.W), ((square + noise) / total).to(energy.W)


@dataclass(frozen=True)
class JointGaussian:
    """The distribution of (x, z), features first.

    Attributes
    ----------
    mean : ``(d + l,)``
    covariance, precision : ``(d + l, d + l)``
    """

    mean: NDArray[Any]
    covariance: NDArray[Any]
    precision: NDArray[Any]

    def __repr__(self) -> str:
        return f"JointGaussian({len(self.mean)} variables)"


@models.register(family="factors", task="representation", role="transformer")
class ProbabilisticPCA(ClassNamePrefixFeaturesOutMixin, GaussianFactors):
    r"""A Gaussian code, decoded linearly, with the same noise on every feature.

    .. math::
        e(x, z) = \frac{\|x - Wz - b\|^2}{2\nu} + \frac{\|z\|^2}{2\sigma^2} + \text{const}, \qquad
        \min_{W, b, \nu}\; -\sum_i w_i \log\int e^{-e(x_i, z)}\,dz .

    With the largest eigenvalues :math:`\lambda_i` and eigenvectors of the covariance the minimum is
    :math:`\sigma W = Q(\Lambda - \nu I)_+^{1/2}`, ν the mean of the eigenvalues left out. Free z is
    representation, free x generation, and x known in part is filled in: NaN is a missing value in
    ``fit``, ``transform``, ``score_samples`` and ``impute``.

    Parameters
    ----------
    n_components : int or None, default=None
        Length of the code. None takes ``n_features - 1`` (at least 1), so that one direction is left
        to measure the noise.
    noise_variance : "ml" or float, default="ml"
        ν, learned or given.
    prior_variance : float, default=1.0
        :math:`\sigma^2` of the code; ∞ in the limit gives the codes of least squares, 0 zero codes.
    posterior : "exact", "identity" or float, default="exact"
        q(z | x): the exact posterior, or :math:`N(m(x), s^2I)` with this :math:`s^2` ("identity": 1),
        whose bound is then maximised instead of the likelihood.
    solver : {"auto", "closed", "em", "sgd"}, default="auto"
        "auto" is the closed form, and EM where values are missing.
    tol : float, default=1e-6
        Iterations stop when one gains less, in nats per row.
    max_iter : int, default=1000
        Iterations of "em", passes of "sgd" at most.
    random_state : int, default=None
        Start of "em", start and order of "sgd".

    Attributes
    ----------
    components_ : (n_components, n_features) array
        Principal axes: orthonormal rows, the entry of largest modulus positive.
    mean_ : (n_features,) array
    noise_variance_ : float
        :math:`\nu`.
    explained_variance_ : (n_components,) array
        Variances along the axes (weights sum to one, no degree of freedom taken off), so that
        ``W = components_.T * sqrt((explained_variance_ - noise_variance_) / prior_variance)``.
    explained_variance_ratio_ : (n_components,) array
    n_components_ : int
    energy_ : ProbabilisticPCAEnergy

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from groundstate import ProbabilisticPCA
    >>> X = load_iris().data
    >>> model = ProbabilisticPCA(2).fit(X)
    >>> round(float(model.noise_variance_), 6), round(model.score(X), 6)
    (0.050682, -2.699752)
    """

    traits = Traits(space={"n_components": settings.Whole(1, 3)})
    _store_private: ClassVar[tuple[str, ...]] = ("_sums", "_walk")

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "noise_variance": [StrOptions({"ml"}), Interval(Real, 0, None, closed="neither")],
        "prior_variance": [Interval(Real, 0, None, closed="neither")],
        "posterior": [StrOptions({"exact", "identity"}), Interval(Real, 0, None, closed="neither")],
        "solver": [StrOptions({"auto", "closed", "em", "sgd"})],
    }

    def __init__(
        self,
        n_components: int | None = None,
        *,
        noise_variance: Any = "ml",
        prior_variance: float = 1.0,
        posterior: Any = "exact",
        solver: str = "auto",
        tol: float = 1e-6,
        max_iter: int = 1000,
        random_state: Any = None,
        device: Any = None,
        callbacks: Any = None,
    ) -> None:
        self._keep(locals())

    def _width(self) -> float | None:
        """:math:`s^2` of a restricted posterior, None for the exact one."""
        if self.posterior == "exact":
            return None
        return 1.0 if self.posterior == "identity" else float(self.posterior)

    def _energy(self, X: Tensor) -> ProbabilisticPCAEnergy:
        length = self._length(X, max(1, X.shape[1] - 1))
        generator = None
        if self.solver in ("em", "sgd"):
            generator = Key.of(self.random_state).fold("start").torch(torch.device("cpu"))
        return ProbabilisticPCAEnergy(
            X.shape[1], length, prior_variance=self.prior_variance, generator=generator
        )

    def _build(self, X: Tensor, y: Tensor | None, weight: Tensor | None) -> Plan:
        energy = self._energy(X)
        if self._counts_rows and not math.isfinite(float(X.sum())):
            return Plan(energy=energy, rule=NLL(), solver=self._for_missing())
        width = self._width()
        solver: Any = EigenFactors(self.noise_variance, width)
        if self.solver == "em":
            solver = FactorEM(self.noise_variance, width, self.tol, self.max_iter)
        elif self.solver == "sgd":
            solver = FactorSGD(self.noise_variance, width, BATCH, self.max_iter, self.tol)
        return Plan(energy=energy, rule=NLL(), solver=solver)

    def _for_missing(self) -> MissingFactors:
        if self.solver in ("closed", "sgd") or self.posterior != "exact":
            raise ValueError(
                f"X has missing values, which solver={self.solver!r} with "
                f"posterior={self.posterior!r} does not take; use solver='auto' or 'em' with "
                "posterior='exact'"
            )
        return MissingFactors(self.noise_variance, self.tol, self.max_iter)

    def _learned(self, energy: Energy) -> dict[str, Any]:
        for name in ("_sums", "_walk"):
            self.__dict__.pop(name, None)
        return {"n_components_": energy.W.shape[1]}  # type: ignore[index]

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from more rows.

        With ``solver="sgd"`` every call goes on with stochastic steps, in the order of the rows.
        Otherwise the sums of all rows seen are kept, and the result is that of ``fit`` on all of them.
        """
        self._validate_params()
        x, weight = self._more(X, sample_weight)
        if self.solver == "sgd":
            self._stochastic(x, weight)
        else:
            sums = Sums.added(getattr(self, "_sums", None), x, weight)
            self._from_sums(sums, x)
            self._sums = sums.kept()
        self.n_components_ = self._factors.W.shape[1]
        return self

    def _from_sums(self, sums: Sums, x: Tensor) -> None:
        plan = self._planned(x, sums)
        assert plan.solver is not None
        plan.energy.to(x.device, x.dtype)
        self.history_ = plan.solver.run(sums.problem(plan.energy, plan.rule))
        self.energy_, self.n_iter_ = plan.energy, max(1, self.history_.n_iter)

    def _planned(self, x: Tensor, sums: Sums) -> Plan:
        self._counts_rows = False
        try:
            if self.n_components is not None and self.n_components > min(sums.rows, x.shape[1]):
                raise ValueError(
                    f"n_components={self.n_components} must be at most min(n_samples, n_features)="
                    f"{min(sums.rows, x.shape[1])} of the rows seen so far"
                )
            return self._build(x, None, None)
        finally:
            del self._counts_rows

    def _stochastic(self, x: Tensor, weight: Tensor | None) -> None:
        state = getattr(self, "_walk", None)
        if state is None:
            energy = self._energy(x).to(x.device, x.dtype)
            assert isinstance(energy, ProbabilisticPCAEnergy)
            self.energy_, walk = energy, Walk.start(energy, x, self.noise_variance)
        else:
            walk = Walk.restored(state, x.device)
        for at in range(0, len(x), BATCH):
            v = None if weight is None else weight[at : at + BATCH]
            if v is None or float(v.sum()) > 0:
                learned = self.noise_variance == "ml"
                walk.step(x[at : at + BATCH], v, rate_of(walk.steps), learned, self._width())
        walk.write(self._factors)
        fixed_axes(self._factors)
        self._walk = walk.state()
        self.n_iter_ = walk.steps

    mean_ = Learned(lambda model: model.energy_.b)
    components_ = Learned(lambda model: _axes(model.energy_.W).T, instead=FACTORS)
    noise_variance_ = Learned(lambda model: model.energy_.noise.double(), instead=FACTORS)
    explained_variance_ = Learned(lambda model: _variances(model.energy_)[0], instead=FACTORS)
    explained_variance_ratio_ = Learned(lambda model: _variances(model.energy_)[1], instead=FACTORS)

    # --- answers -------------------------------------------------------------------------

    def bound(self, X: Any) -> Any:
        r"""Lower bound J of the log density of each row with the chosen posterior, ``(n_samples,)``.

        For the exact posterior it is the log density; for :math:`N(m(x), s^2I)` it is lower by
        :math:`\tfrac12[s^2\operatorname{tr}A - l - l\log s^2 - \log\det A]`,
        :math:`A = W^\top W/\nu + I/\sigma^2`, for every row.
        """
        width = self._width()
        density = self.score_samples(X)
        if width is None:
            return density
        with torch.no_grad():
            A = self._factors._A().double()
            l = len(A)
            gap = width * A.trace() - l - l * math.log(width) - torch.logdet(A)
        return density - 0.5 * float(gap)

    def joint(self) -> JointGaussian:
        r"""The Gaussian of features and code together.

        Mean :math:`(b, 0)`, covariance
        :math:`\begin{pmatrix}\nu I+\sigma^2WW^\top & \sigma^2W\\ \sigma^2W^\top & \sigma^2I\end{pmatrix}`
        and precision
        :math:`\begin{pmatrix}I/\nu & -W/\nu\\ -W^\top/\nu & W^\top W/\nu+I/\sigma^2\end{pmatrix}`.
        """
        with torch.no_grad():
            energy = self._factors
            W, prior = energy.W, energy.prior_variance
            d, l = W.shape
            across, rate = prior * W, -energy._rate
            eye = torch.eye(d + l).to(W)
            code = prior * eye[:l, :l]
            covariance = _blocks(energy.covariance(), across, across.T, code)
            precision = _blocks(eye[:d, :d] / energy.noise, rate.T, rate, energy._A())
            mean = torch.cat([energy.b, W.new_zeros(l)])
        return JointGaussian(*(v.cpu().numpy() for v in (mean, covariance, precision)))

    def to_pca(self) -> PCA:
        """Principal components with these axes: codes of a flat prior, at right angles."""
        check = self._factors
        rows = self.history_.about.get("weight", math.inf)
        up = 1.0 if math.isinf(rows) else rows / (rows - 1)
        model = PCA(self.n_components_, device=self.device)
        plan = model._build(check.b.detach()[None], None, None)
        plan.energy.to(check.b.device, check.b.dtype)
        model.energy_, model.n_features_in_ = plan.energy, self.n_features_in_
        energy: Any = model.energy_
        noise = float(check.noise.detach())
        with torch.no_grad():
            variance, _ = _variances(check)
            rest = noise * (len(check.b) - len(variance))
            energy.set(
                _axes(check.W), check.b, variance * up, noise=noise * up,
                total=(float(variance.sum()) + rest) * up, count=rows,
            )  # fmt: skip
        model.history_, model.n_iter_ = self.history_, 1
        model.n_components_ = self.n_components_
        if not math.isinf(rows):
            model.n_samples_ = round(rows)
        return model


def _blocks(a: Tensor, b: Tensor, c: Tensor, d: Tensor) -> Tensor:
    return torch.cat([torch.cat([a, b], 1), torch.cat([c, d], 1)])
