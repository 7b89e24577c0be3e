r"""Bayesian averaging: the Gibbs posterior of θ, and the weights of a finite set of models.

.. math:: q(\theta) \propto p(\theta)\, e^{-\beta\sum_i L_i(\theta)} .

With :math:`L = -\log p` and β = 1 this is Bayes' rule. (The Gibbs form with an energy that is not
normalised hides a prior :math:`\propto (\int e^{-\beta L}dx)^N`.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.distributions import Distribution, Independent, MultivariateNormal, Normal
from torch.func import functional_call, jacrev

from groundstate.energy.base import Energy
from groundstate.energy.compose.committee import CommitteeClassEnergy, CommitteeMeanEnergy
from groundstate.energy.spaces import Finite
from groundstate.errors import ShapeError, Unsupported
from groundstate.infer import minimise, posterior, sample
from groundstate.learn.base import Penalty, Rule
from groundstate.learn.fit import fit
from groundstate.learn.posterior.parameters import ParameterEnergy, ThetaDraws
from groundstate.learn.posterior.predictive import Predictive, posterior_predictive
from groundstate.learn.posterior.sgld import SGLD
from groundstate.learn.posterior.snapshots import Snapshots
from groundstate.learn.rules.naive import Naive
from groundstate.learn.rules.softmin import SoftMin


class GibbsPosterior:
    r"""The distribution of the parameters, :math:`q(\theta) \propto p(\theta)e^{-\beta\sum_i L_i(\theta)}`.

    In closed form where the sum is quadratic in θ (``distribution``); otherwise its mode, which
    with
    :math:`\beta = \alpha/N` is regularised learning, and draws by Markov chains or SGLD.

    Parameters
    ----------
    energy : whose parameters are asked for; it is left as it is
    prior : :math:`-\log p(\theta)` as a penalty; None is flat
    beta : inverse temperature of the data
    rule : the loss of a row; L = e unless given

    Examples
    --------
    >>> from groundstate.energy import CentroidEnergy
    >>> from groundstate.learn import GaussianPrior
    >>> data = {"x": torch.tensor([[1.0], [2.0], [6.0]]), "z": torch.zeros(3, dtype=torch.int64)}
    >>> q = GibbsPosterior(CentroidEnergy(1, 1), GaussianPrior(1.0), beta=0.5).fit(data)
    >>> round(q.distribution.mean.item(), 4), round(q.distribution.variance.item(), 4)
    (1.8, 0.4)
    """

    theta: ParameterEnergy

    def __init__(
        self,
        energy: Energy,
        prior: Penalty | None = None,
        beta: float = 1.0,
        rule: Rule | None = None,
    ) -> None:
        if not beta > 0:
            raise ValueError(f"beta is an inverse temperature and must be positive, got {beta}")
        self.energy, self.prior, self.beta = energy, prior, beta
        self.rule = Naive() if rule is None else rule

    def fit(
        self, data: Mapping[str, Tensor], sample_weight: Tensor | None = None
    ) -> GibbsPosterior:
        """Look at rows; nothing is computed yet."""
        self.data, self.weight = dict(data), sample_weight
        self.theta = ParameterEnergy(
            self.energy,
            self.rule,
            self.data,
            self.prior,
            1 / self.beta,
            sample_weight=sample_weight,
        )
        return self

    def mode(self) -> Tensor:
        """The most probable θ (MAP), ``(P,)``."""
        best: Tensor = minimise(self.theta, "theta", init={"theta": self.theta.theta})["theta"]
        return best[0]

    @property
    def distribution(self) -> MultivariateNormal:
        """The posterior as a Gaussian, where :math:`\\beta\\sum L - \\log p` is quadratic in θ."""
        start = self.theta.theta[0]
        other = start + torch.linspace(0.5, 1.5, len(start), dtype=start.dtype, device=start.device)
        H, there = (jacrev(jacrev(self.theta._one))(at).detach() for at in (start, other))
        size = H.abs().max()
        if not torch.allclose(H, there, rtol=1e-4, atol=1e-6 * float(size)):
            raise Unsupported(
                "the posterior is not Gaussian: the curvature of the loss depends on θ; use "
                "sample(n) or mode()"
            )
        if not bool((torch.linalg.eigvalsh(H) > 1e-10 * size).all()):
            raise Unsupported(
                "the posterior has no covariance: some direction of θ is not seen by data or "
                "prior; give a prior"
            )
        g = jacrev(self.theta._one)(start).detach()
        return MultivariateNormal(start - torch.linalg.solve(H, g), precision_matrix=H)

    def sample(
        self,
        n: int = 1000,
        method: Any = None,
        generator: torch.Generator | None = None,
        burn_in: int = 100,
    ) -> ThetaDraws:
        """Draws of θ, by `SGLD` settings or a sampler of ``groundstate.infer`` (None picks one)."""
        if not isinstance(method, SGLD):
            found = sample(self.theta, "theta", n=n, method=method, generator=generator)
            return self.theta.draws(found["theta"])
        # the temperature of SGLD is on all of ΣL + Ω: scale the prior so that β stays on L alone
        penalty = None if self.prior is None else _Scaled(self.prior, 1 / self.beta)
        kept = Snapshots(keep=n, start=burn_in)
        run = replace(method, T=1 / self.beta, step_size=method.step_size * self.beta)
        kept_before = [p.detach().clone() for p in self.energy.parameters()]
        fit(self.energy, self.data, self.rule, run, sample_weight=self.weight, penalty=penalty,
            callbacks=[kept], random_state=generator)  # fmt: skip
        with torch.no_grad():
            for p, before in zip(self.energy.parameters(), kept_before, strict=True):
                p.copy_(before)
        return kept.draws

    def predictive(
        self,
        x: Tensor | Mapping[str, Tensor] | None = None,
        draws: ThetaDraws | None = None,
        free: str | None = None,
    ) -> Distribution | Predictive:
        r"""The averaged distribution of what is not given, :math:`\int p(y\mid x, \theta)q(\theta)d\theta`.

        From draws it is their mean. Without, the Gaussian ``distribution`` is carried through in
        closed form: exact where the mean of y is linear in θ and its variance does not depend on θ.
        """
        if draws is not None:
            return posterior_predictive(draws, x, free=free)
        given = {"x": x} if isinstance(x, Tensor) else dict(x or {})
        name = free or next(v for v in self.energy.spaces if v not in given)
        distribution, inner = self.distribution, self.theta.model.energy

        def mean(theta: Tensor) -> Tensor:
            named = {f"inner.{k}": v for k, v in self.theta.named(theta).items()}
            return _centre(functional_call(_Ask(inner, name, given), named, (), strict=False))

        at = distribution.mean
        J = jacrev(mean)(at)  # (B, event, P)
        spread = torch.einsum("...p,pq,...q->...", J, distribution.covariance_matrix, J)
        within = posterior(inner, name, given).variance.detach()
        return Independent(Normal(mean(at).detach(), (within + spread.detach()).sqrt()), 1)


class _Ask(torch.nn.Module):
    def __init__(self, inner: Energy, name: str, given: dict[str, Tensor]) -> None:
        super().__init__()
        self.inner, self.name, self.given = inner, name, given

    def forward(self) -> Distribution:
        distribution: Distribution = posterior(self.inner, self.name, self.given)
        return distribution


def _centre(distribution: Distribution) -> Tensor:
    mean: Tensor = distribution.mean
    return mean


class _Scaled(Penalty):
    def __init__(self, penalty: Penalty, factor: float) -> None:
        super().__init__()
        self.penalty, self.factor = penalty, factor

    def value(self, energy: Energy) -> Tensor:
        return self.factor * self.penalty(energy)


class ModelAverage:
    r"""Exact weights of a finite set of models, :math:`q(m) \propto p(m)e^{-\beta\sum_i L_{mi}}`.

    Computed with log-sum-exp, so that losses of any size keep their order.

    Parameters
    ----------
    models : energies of the same variables, already learned
    beta : inverse temperature of the data
    prior : ``(M,)`` weights before the data; equal unless given
    rule : the loss of a row; :math:`-\log p(y\mid x)` unless given

    Attributes
    ----------
    weights : ``(M,)``, sum to one
    log_evidence : :math:`\log\sum_m p(m)e^{-\beta\sum_i L_{mi}}`

    Examples
    --------
    >>> from groundstate.energy import TableEnergy
    >>> fair, biased = torch.tensor([0.5, 0.5]), torch.tensor([0.9, 0.1])
    >>> models = [TableEnergy(-p.log(), "y") for p in (fair, biased)]
    >>> average = ModelAverage(models).fit({"y": torch.tensor([0, 0, 0, 1])})
    >>> [round(w, 4) for w in average.weights.tolist()]  # 0.0625 against 0.0729
    [0.4616, 0.5384]
    """

    weights: Tensor
    log_evidence: float

    def __init__(
        self,
        models: Sequence[Energy],
        beta: float = 1.0,
        prior: Sequence[float] | Tensor | None = None,
        rule: Rule | None = None,
    ) -> None:
        if not models:
            raise ValueError("ModelAverage needs at least one model")
        self.models, self.beta = list(models), float(beta)
        p = torch.ones(len(self.models)) if prior is None else torch.as_tensor(prior)
        if p.shape != (len(self.models),) or bool((p < 0).any()) or not float(p.sum()) > 0:
            raise ShapeError(
                f"prior must be {len(self.models)} weights that are not negative, got {p.tolist()}"
            )
        self.prior, self.rule = p.double() / p.double().sum(), SoftMin() if rule is None else rule

    @torch.no_grad()
    def fit(self, data: Mapping[str, Tensor], sample_weight: Tensor | None = None) -> ModelAverage:
        """Weigh the models by rows."""
        total = []
        for model in self.models:
            loss = self.rule(model, data).loss.double()
            total.append(
                loss.sum() if sample_weight is None else torch.dot(loss, sample_weight.double())
            )
        score = self.prior.log() - self.beta * torch.stack(total).cpu()
        self.weights, self.log_evidence = torch.softmax(score, 0), float(torch.logsumexp(score, 0))
        return self

    def committee(self, variable: str = "y") -> Energy:
        """The averaged distribution of classes, or the averaged value, as one energy of x and y."""
        first = self.models[0]
        (d,) = first.spaces["x"].shape
        space = first.spaces[variable]
        out: Any
        if isinstance(space, Finite):
            out = CommitteeClassEnergy(d, space.n, self.models)
        else:
            out = CommitteeMeanEnergy(d, int(space.shape[0]), self.models)
        out.to(*first.placement())
        out.weigh(self.weights)
        energy: Energy = out
        return energy

    @torch.no_grad()
    def log_prob(self, values: Mapping[str, Tensor]) -> Tensor:
        r"""The predictive distribution of rows, :math:`\log\sum_m q(m)e^{-L_m}`, ``(B,)``."""
        each = torch.stack([-self.rule(model, values).loss for model in self.models])
        weight = self.weights.to(each).log()
        return torch.logsumexp(each + weight[:, None], 0)
